"""docs/walk.md names every file that one default step visits, and no other."""

import re
import sys
from pathlib import Path

import jax

import natgrad as ng

PACKAGE = Path(ng.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "walk.md"


def test_the_walk_of_a_step_has_the_files_of_the_page():
    cube, keys = ng.Box([0, 0, 0], [1, 1, 1]), jax.random.split(jax.random.key(0), 4)
    problem = ng.LeastSquares(
        ng.MLP(in_size=3, out_size=1, width=19, depth=2, key=keys[0]),
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + 1.0, cube.interior(510, key=keys[1])),
        boundary=ng.Residual(lambda u, x: u(x), cube.boundary(70, key=keys[2])),
    )
    solver = ng.plan(ng.NystromNGD(max_rank=120), problem)  # as `ng.solve` does
    state = solver.init(problem, problem.params, keys[3])
    visited = files_of(lambda: jax.eval_shape(solver.step, problem, problem.params, state))

    told = PAGE.read_text().split("What else can stand")[0]
    steps = [line for line in told.splitlines() if re.match(r"\| \d", line)]
    named = set(re.findall(r"`([\w/]+\.py)`", "\n".join(steps))) | set(re.findall(r"`(backend/\w+\.py)`", told))
    assert visited == named, f"visited, not named: {visited - named}; named, not visited: {named - visited}"
    assert f"A step visits {len(visited)} files." in told


def files_of(call):
    """The files of the package whose functions a call enters, relative to it."""
    visited = set()

    def see(frame, event, argument):
        if event == "call":
            visited.add(frame.f_code.co_filename)

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = (path for path in map(Path, visited) if path.is_relative_to(PACKAGE))
    return {path.relative_to(PACKAGE).as_posix() for path in inside}
