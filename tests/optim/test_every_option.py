"""No option is accepted and ignored: each changes the computation of the part that has it, or is refused."""

import contextlib
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.optim import recipes
from natgrad.optim.damping import Outcome, Seen
from tests.helpers import Dense, poisson

OTHER = {  # another value than the default one, by the option's name
    "max_rank": 7, "test": "uniform", "levels": 3, "block": 3, "tolerance": 0.3, "power_iterations": 3,
    "method": ("cholesky", "svd"), "increase": 3, "ratio": 0.25, "reuse": True, "staleness": 2.0,
    "maxiter": 17, "tol": 1e-3, "min_decrease": 1e-3, "warm_start": False, "scaling": 1e-3,
    "search": (ng.GridSearch(), ng.Armijo(shrink=0.3), ng.Wolfe(decrease=0.01)), "gramian": "batched", "batch": 5,
    "memory": 3e4, "acceleration": 0.7, "momentum": 0.5, "decrease": 0.01, "shrink": 0.3, "max_trials": 5, "points": 5,
    "gamma": 3.0, "scale": 0.1, "power": 1.0, "start": (0.03, 2e-4), "up": 5.0, "down": 5.0, "decay": 0.7,
    "by_loss": True, "short": 0.1, "total": 99, "warmup": 9, "peak": 0.1, "end": 1e-3, "scaled": True, "history": 9,
    "curvature": 0.5, "max_evaluations": 9, "every": 3, "damping": ng.damping.Spectral(), "passes": 3,
    "trials": 4,
}  # fmt: skip
G = Dense(jnp.diag(jnp.logspace(0, -6, 40)))
B, KEY = jnp.ones(40), jax.random.key(0)
GOOD, FAR = jnp.asarray(True), jnp.asarray(30)
POISSON = poisson()


def program(fn, *args):
    """The program of a function in words, its constants included."""
    closed = jax.make_jaxpr(fn)(*args)
    return str(closed), [np.asarray(c).tobytes() for c in closed.consts if hasattr(c, "dtype") and c.dtype != KEY.dtype]


def built(builder):
    """Two preconditioners and the state after them."""

    def run(G, b):
        mu = lambda largest: 1e-6 * largest
        state = builder.init(40, b.dtype, KEY)
        for _ in range(2):
            found, state = builder.build(G, mu, state, KEY)
            state = builder.adapt(state, FAR, GOOD)
        return found.inverse(1e-6)(b), state

    return program(run, G, B)


def solved(direction):
    """A direction, a correction and the state after them."""

    def run(G, b):
        state = direction.init(40, b.dtype, KEY)
        system, state = direction.prepare(G, lambda largest: 1e-6 * largest, state, KEY, 3)
        one, two = system.solve(b, x0=b), system.correct(b, x0=b)
        return one, two, direction.finish(state, one, GOOD)

    return program(run, G, B)


def damped(rule):
    """μ and the memory, twice."""

    def run(largest, loss, mu, step):
        state = rule.init(loss.dtype)
        for k in range(2):
            seen = Seen(largest, loss, loss, jnp.asarray(k))
            state, found = rule.update(state, Outcome(seen, rule.mu(state, seen), mu, step, step)), rule.mu(state, seen)
        return found, state

    return program(run, *jnp.linspace(1.0, 2.0, 4))


def searched(search):
    if isinstance(search, ng.Wolfe):
        return stepped(ng.BFGS(search=search))
    return program(lambda slope: search(lambda a: a**2 - slope * a, slope), jnp.asarray(1.0))


def stepped(solver, problem=POISSON):
    """What is planned, and a whole step."""
    solver = ng.plan(solver, problem)
    state = solver.init(problem, problem.params, KEY)
    kept = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state)
    return program(solver.step, problem, problem.params, state), str(kept)


def planned(solver):
    return ng.plan(solver, POISSON)


def balanced(solver):
    problem = ng.LeastSquares(
        ng.MLP(1, 1, 4, 1, key=KEY),
        pde=ng.Residual(lambda u, x: u(x), jnp.ones((5, 1)), weight="auto"),
        rim=ng.Residual(lambda u, x: u(x) - 1, jnp.ones((2, 1))),
    )
    return stepped(solver, problem)


relative = functools.partial(ng.damping.Relative, start=1e-2, decay=0.5, by_loss=False)
PARTS = [
    *[(built, make) for make in (ng.RowFactor, ng.PivotedRowFactor, ng.Nystrom, ng.RPCholesky)],
    (built, ng.Identity),
    (solved, ng.PCG),
    (solved, ng.Direct),
    (solved, functools.partial(ng.Kernel, solver=ng.Direct(scaling=1.0))),
    (stepped, functools.partial(ng.NaturalGradient, ng.Direct())),
    (planned, ng.NGD),
    *[(damped, getattr(ng.damping, name)) for name in ("Spectral", "LossPower", "GradientPower", "Geometric")],
    (damped, ng.damping.LevenbergMarquardt),
    (damped, relative),
    (damped, functools.partial(ng.damping.Guarded, relative())),
    *[(searched, make) for make in (ng.Armijo, ng.GridSearch, ng.Wolfe)],
    *[(stepped, make) for make in (ng.Adam, ng.BFGS, ng.SSBroyden, ng.LBFGS)],
    (stepped, ng.Polish),
    (balanced, functools.partial(ng.Balanced, ng.FullNGD())),
]
FILL = {"max_rank": 12, "scaling": 1.0}  # what a plan would decide
SKIP = {"direction", "preconditioner", "solver", "rule"}  # parts, whose options are tried by themselves


def kind(make):
    return make.func if isinstance(make, functools.partial) else make


def cases():
    for look, make in PARTS:
        for field in dataclasses.fields(kind(make)):
            if field.name not in SKIP:
                yield pytest.param(look, make, field.name, id=f"{kind(make).__name__}-{field.name}")


def filled(make, **options):
    """The part with the options that a plan would have decided."""
    names = {field.name for field in dataclasses.fields(kind(make))}
    if kind(make) is ng.PCG:
        options = {"preconditioner": ng.RowFactor(12)} | options
    return make(**{name: value for name, value in FILL.items() if name in names} | options)


@functools.cache
def usual(look, make, options=()):
    return look(filled(make, **dict(options)))


@pytest.mark.parametrize(("look", "make", "name"), [*cases()])
def test_every_option_of_every_part_changes_something(look, make, name):
    if kind(make) is ng.Kernel and name == "scaling":
        look = lambda direction: stepped(ng.NaturalGradient(direction))  # what is scaled are the rows
    values = OTHER[name] if isinstance(OTHER[name], tuple) else (OTHER[name],)
    given = (("gramian", "batched"),) if name == "batch" else ()
    before = usual(look, make, given) if "lambda" not in look.__name__ else look(filled(make))
    tried = []
    for value in values:
        try:
            part = filled(make, **dict(given) | {name: value})
        except ValueError:  # a value of another part that has an option of this name
            continue
        try:
            tried.append(look(part))
        except ValueError as refused:  # memory that is not enough
            tried.append(str(refused))
    assert tried, f"none of {values} is a value of {name}"
    assert any(after != before for after in tried)


RECIPES = [
    (ng.NystromNGD, "default", (ng.RowFactor, ng.PCG)),
    (ng.NystromNGD, "published", (ng.Nystrom, ng.PCG)),
    (ng.RPCholNGD, "default", (ng.PivotedRowFactor, ng.PCG)),
    (ng.RPCholNGD, "published", (ng.RPCholesky, ng.PCG)),
    (ng.MatrixFreeNGD, "default", (ng.Identity, ng.PCG)),
    (ng.FullNGD, "default", (ng.Direct,)),
    (ng.KernelNGD, "default", (ng.Kernel,)),
]


@pytest.mark.parametrize(("make", "recipe", "kinds"), RECIPES)
def test_a_short_name_takes_the_options_of_its_parts_and_refuses_those_of_others(make, recipe, kinds):
    own = {name for part in (*kinds, ng.NaturalGradient) for name in recipes.names(part)}
    for name in {name for part in recipes.MADE_OF for name in recipes.names(part)}:
        values = OTHER[name] if isinstance(OTHER[name], tuple) else (OTHER[name],)
        more = {"gramian": "batched"} if name == "batch" else {}
        if name not in own:
            with pytest.raises(ValueError, match=f"the option '{name}' would do nothing here: it is one of") as told:
                make(recipe=recipe, **{name: values[0]})
            assert "\n" not in str(told.value)
            continue
        made = []
        for value in values:
            with contextlib.suppress(ValueError):
                made.append(make(recipe=recipe, **more, **{name: value}))
        usual = recipe == "published" and recipes.PUBLISHED.get(name) in values
        assert usual or any(one != make(recipe=recipe, **more) for one in made), name


def test_gamma_beside_a_damping_is_refused():
    for make in (ng.NystromNGD, ng.FullNGD, ng.KernelNGD, ng.MatrixFreeNGD, ng.RPCholNGD, ng.NGD):
        assert make(gamma=3.0) != make()
        with pytest.raises(ValueError, match="gamma is an option of the damping: write Spectral"):
            make(gamma=3.0, damping=ng.damping.Spectral())
