"""Networks and solutions in a file: loaded where their code is not, gone on with bit for bit, refused in a line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.experiment.run import run
from natgrad.storage import container
from tests.experiment.small_runs import config
from tests.helpers import poisson

ROOT = Path(ng.__file__).parents[1]
SOLVERS = {"rows": ng.NystromNGD(max_rank=12), "adam": ng.Adam(20), "lbfgs": ng.LBFGS(history=3)}
X = jnp.array([0.3, 0.6])


class Own(ng.Adam):
    """A solver that is not natgrad's."""


def hard(offset=0.0):
    """A network with functions of one's own."""
    network = ng.MLP(2, 1, 4, 1, key=jax.random.key(1))
    return ng.HardBoundary(network, distance=lambda x: x[0] * (1 - x[0]) + offset)


def constrained():
    """A problem whose network has functions of one's own."""
    square = ng.Box([0, 0], [1, 1])
    block = ng.Residual(lambda u, x: ng.laplacian(u, x) + 1, square.interior(20, key=jax.random.key(0)))
    return ng.LeastSquares(hard(), pde=block)


def elsewhere(code, *arguments, x64=True):
    """What another process prints; it has no code but this."""
    head = "import sys, jax, jax.numpy as jnp, numpy as np\n"
    head += "jax.config.update('jax_enable_x64', True)\n" if x64 else ""
    done = subprocess.run(
        [sys.executable, "-c", head + "import natgrad as ng\n" + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def same(one, other):
    """Whether two trees are, bit for bit."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        a, b = container.data(a), container.data(b)
        assert (a.dtype, np.asarray(a).tobytes()) == (b.dtype, np.asarray(b).tobytes())


@pytest.fixture(scope="module")
def solved():
    """A problem, a solver and three steps."""
    problem, solver = poisson(), SOLVERS["adam"]
    return problem, solver, ng.solve(problem, solver, 3, progress=False)


@pytest.fixture
def saved(solved, tmp_path):
    solved[2].save(tmp_path / "u.ng")
    return tmp_path / "u.ng"


def test_a_network_is_loaded_where_its_code_is_not(tmp_path):
    key = jax.random.key(0)
    plate = ng.Box([0, 0], [2, 1])
    u = ng.Normalized(ng.MLP(2, 2, 5, 2, activation=jax.nn.gelu, key=key), plate, scale=(3.0, 2.0))
    network = ng.Fields(u=u, k=ng.MLP(2, 1, 4, 1, activation=jnp.sin, key=key, dtype="float32"))
    ng.save(tmp_path / "u.ng", network)
    told = elsewhere(
        "u = ng.load(sys.argv[1]); print(np.asarray(u(jnp.array([0.3, 0.6]))).tobytes().hex())", tmp_path / "u.ng"
    )
    assert told == np.asarray(network(X)).tobytes().hex()
    again = ng.load(tmp_path / "u.ng")
    assert {leaf.dtype.name for leaf in jax.tree.leaves(again)} == {"float32", "float64"}


@pytest.mark.parametrize(
    ("name", "make"),
    [("adam", "ng.Adam(20)"), pytest.param("rows", "ng.NystromNGD(max_rank=12)", marks=pytest.mark.slow)],
)
def test_a_solution_goes_on_in_another_process(tmp_path, name, make):
    """Bit for bit as if nothing had happened."""
    problem, solver = poisson(), SOLVERS[name]
    ng.solve(problem, solver, 3, progress=False).save(tmp_path / "u.ng")
    whole = ng.solve(problem, solver, 6, progress=False)
    code = (
        "from tests.helpers import poisson\n"
        "before = ng.load_solution(sys.argv[1])\n"
        f"after = ng.solve(poisson(), {make}, 3, resume=before, progress=False)\n"
        "print(np.asarray(after.history.loss).tobytes().hex())\n"
        "print(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(after.params)]).tobytes().hex())\n"
    )
    losses, params = elsewhere(code, tmp_path / "u.ng").split()
    assert losses == np.asarray(whole.history.loss).tobytes().hex()
    assert params == np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(whole.params)]).tobytes().hex()


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.usefixtures("quick_compilation")
def test_a_solution_comes_back_whole(name, tmp_path):
    problem = poisson()
    solution = ng.solve(problem, SOLVERS[name], 2, evaluate_every=2, progress=False)
    ng.save(tmp_path / "u.ng", solution)
    again = ng.load_solution(tmp_path / "u.ng")
    same((solution.params, solution.state), (again.params, again.state))
    assert solution.origin == again.origin
    for field in ("loss", "errors", "status", "steps", "time", "validation", "diagnosis"):
        assert getattr(again, field) == getattr(solution, field)
    for column in solution.history:
        if column not in ("errors", "weights"):
            np.testing.assert_array_equal(again.history[column], solution.history[column])
    np.testing.assert_array_equal(ng.load(tmp_path / "u.ng")(X), solution.u(X))
    with pytest.raises(ValueError, match="resume goes on as it began, but"):
        ng.solve(problem, ng.BFGS(), 1, resume=again, progress=False)


@pytest.mark.usefixtures("quick_compilation")
def test_functions_of_ones_own_come_from_the_problem(tmp_path):
    problem, solver = constrained(), SOLVERS["adam"]
    ng.solve(problem, solver, 2, progress=False).save(tmp_path / "u.ng")
    whole = ng.solve(problem, solver, 4, progress=False)
    with pytest.raises(ValueError, match=r"network\.distance is a function, .*: give what made it, ng.load_solution\("):
        ng.load_solution(tmp_path / "u.ng")
    other = constrained()
    again = ng.solve(other, solver, 2, resume=ng.load_solution(tmp_path / "u.ng", other), progress=False)
    np.testing.assert_array_equal(again.history.loss, whole.history.loss)


@pytest.mark.usefixtures("quick_compilation")
def test_a_solver_of_ones_own_comes_from_the_caller(tmp_path):
    problem, solver = poisson(), Own(20)
    ng.solve(problem, solver, 2, progress=False).save(tmp_path / "u.ng")
    whole = ng.solve(problem, solver, 4, progress=False)
    with pytest.raises(ValueError, match="of the class Own, which is not natgrad's"):
        ng.load_solution(tmp_path / "u.ng")
    before = ng.load_solution(tmp_path / "u.ng", problem, solver)
    again = ng.solve(problem, solver, 2, resume=before, progress=False)
    np.testing.assert_array_equal(again.history.loss, whole.history.loss)


def test_a_template_has_what_a_file_cannot_hold(tmp_path):
    ng.save(tmp_path / "u.ng", hard())
    with pytest.raises(ValueError, match=r"network\.distance is a function.*like=network"):
        ng.load(tmp_path / "u.ng")
    assert ng.load(tmp_path / "u.ng", like=hard(1.0))(X) == hard(1.0)(X)
    apply = lambda p, x: p["v"] @ jnp.tanh(p["w"] @ x)
    params = {"w": jnp.arange(6.0).reshape(3, 2), "v": jnp.ones(3)}
    ng.save(tmp_path / "a.ng", ng.Apply(apply, params))
    template = ng.Apply(apply, jax.tree.map(jnp.zeros_like, params))
    assert ng.load(tmp_path / "a.ng", like=template)(X) == apply(params, X)


@pytest.mark.usefixtures("quick_compilation")
def test_the_network_of_a_run_folder(tmp_path):
    result = run(config(steps=2), tmp_path / "run", quiet=True)
    u = ng.load(tmp_path / "run")
    assert ng.num_parameters(u) == result["parameters"]
    with pytest.raises(ValueError, match="leave `like` out"):
        ng.load(tmp_path / "run", like=u)
    (path,) = (tmp_path / "run" / "checkpoint").glob("*2.ckpt")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="natgrad did not save it"):
        ng.save(path, u)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="is no network or solution of natgrad's, but a checkpoint"):
        ng.load(path)


def test_single_and_double_precision(tmp_path, saved):
    network = ng.MLP(2, 1, 4, 1, key=jax.random.key(0), dtype="float32")
    ng.save(tmp_path / "f.ng", network)
    code = (
        "print(ng.load(sys.argv[1]).layers[0].weight.dtype)\n"
        "try: ng.load(sys.argv[2])\nexcept ValueError as error: print(error)\n"
    )
    kind, told = elsewhere(code, tmp_path / "f.ng", saved, x64=False).splitlines()
    assert kind == "float32"
    assert told == ("cannot read u.ng: it is in float64: call jax.config.update('jax_enable_x64', True) first")


def damaged(data, how):
    whole = bytearray(data)
    if how == "a bit":
        whole[-len(whole) // 3] ^= 4
    elif how == "the header":
        whole[data.index(b'"leaves"') + 3] ^= 1
    elif how == "newer":
        whole = data.replace(b"natgrad solution 1", b"natgrad solution 7", 1)
    elif how == "foreign":
        whole = b"\x89PNG\r\n" + data
    elif how == "empty":
        whole = b""
    elif how == "a network":
        whole = data.replace(b"natgrad solution 1", b"natgrad network 1", 1)
    else:
        whole = whole[: int(len(data) * how)]
    return bytes(whole)


@pytest.mark.parametrize(
    ("how", "line"),
    [
        (0.001, "was not saved by natgrad"),
        (0.01, "is damaged: its checksum does not match"),
        (0.5, "is damaged: its checksum does not match"),
        (0.999, "is damaged: its checksum does not match"),
        ("a bit", "is damaged: its checksum does not match"),
        ("the header", "is damaged: its checksum does not match"),
        ("newer", "is of format 7, this natgrad reads format 1"),
        ("foreign", "was not saved by natgrad"),
        ("empty", "was not saved by natgrad"),
        ("a network", "is no solution of natgrad's, but a network"),
    ],
)
def test_a_damaged_file_is_refused_in_a_line(saved, how, line):
    saved.write_bytes(damaged(saved.read_bytes(), how))
    with pytest.raises(ValueError, match=r"^u\.ng") as told:
        ng.load_solution(saved)
    assert str(told.value) == f"u.ng {line}"


@pytest.mark.parametrize("header", [[], {}, {"u": {"class": "os.system", "fields": {}}}, {"u": {"array": 3}}, {"u": 3}])
def test_a_forged_file_is_refused_in_a_line(tmp_path, header):
    path = tmp_path / "u.ng"
    path.write_bytes(
        b"".join(
            p.encode() if isinstance(p, str) else bytes(p)
            for p in container.parts("network", header, container.pack([]))
        )
    )
    with pytest.raises(ValueError, match=r"cannot read u\.ng") as told:
        ng.load(path)
    assert "\n" not in str(told.value)


def test_nothing_else_is_overwritten(tmp_path, saved):
    network = ng.MLP(2, 1, 4, 1, key=jax.random.key(0))
    (tmp_path / "thesis.ng").write_text("natgrad is a word of mine\n")
    (tmp_path / "link.ng").symlink_to(saved)
    (tmp_path / "folder.ng").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name, line in (
        ("thesis.ng", "is there already, and natgrad did not save it: choose another name"),
        ("link.ng", "is there already, and natgrad did not save it: choose another name"),
        ("folder.ng", "is a folder: give the name of a file"),
        ("no/u.ng", "lies in a folder that does not exist: make it first"),
    ):
        with pytest.raises(ValueError, match=line):
            ng.save(tmp_path / name, network)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    ng.save(saved, network)  # what natgrad saved may go
    np.testing.assert_array_equal(ng.load(saved)(X), network(X))


def test_a_full_disk_leaves_the_old_file(tmp_path, saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        ng.save(saved, ng.MLP(2, 1, 4, 1, key=jax.random.key(0)))
    assert saved.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["u.ng"]


def test_wrong_arguments_are_refused(tmp_path, saved, solved):
    problem, solver, _ = solved
    wide = ng.MLP(2, 1, 9, 2, key=jax.random.key(0))
    half = ng.MLP(2, 1, 4, 1, key=jax.random.key(0), dtype="bfloat16")
    for call, line in (
        (lambda: ng.save(tmp_path / "x.ng", 3), "save takes a network with parameters, or a solution, got int"),
        (lambda: ng.save(tmp_path / "x.ng", jnp.tanh), "save takes a network with parameters, or a solution, got"),
        (lambda: ng.load(tmp_path / "none.ng"), "none.ng cannot be read: No such file or directory"),
        (lambda: ng.load(tmp_path), "there is no run in"),
        (lambda: ng.load(saved, like=3), "like is a network of the same make as the one in the file, got int"),
        (lambda: ng.load_solution(tmp_path), "is a run folder: ng.load has its network"),
        (lambda: ng.save(tmp_path / "x.ng", half), "a file cannot hold arrays of bfloat16: cast them to float32 first"),
        (lambda: ng.solve(problem, solver, 1, resume=saved), r"or ng.load_solution\(path\), got PosixPath"),
        (
            lambda: ng.load(saved, like=wide),
            r"does not fit: .* have float64\[6, 2\] where the template has float64\[9, 2\]",
        ),
        (lambda: ng.load_solution(saved, 3), "load_solution takes a problem such as"),
        (lambda: ng.load_solution(saved, solver=solver), "give the problem too"),
        (lambda: ng.load_solution(saved, poisson(width=5)), "does not fit: the network's parameters have"),
        (lambda: ng.load_solution(saved, problem, ng.LBFGS()), "does not fit: the solver's state have"),
        (lambda: ng.load_solution(saved, problem, 3), "takes a solver"),
    ):
        with pytest.raises(ValueError, match=line) as told:
            call()
        assert "\n" not in str(told.value)


def test_the_header_is_json_that_a_person_can_read(saved):
    kind, checksum, header, *_ = saved.read_bytes().split(b"\n", 3)
    assert kind == b"natgrad solution 1"
    assert len(checksum) == 64
    assert json.loads(header)["u"]["class"] == "natgrad.networks.MLP"
