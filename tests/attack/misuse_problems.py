"""Wrong problems, elements and trainings."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import skfem

import natgrad as ng
from natgrad.experiment.config import Config
from tests.attack.misuse_tools import (
    COUNT,
    NET,
    SQUARE,
    TWO,
    VALUE,
    X,
    each,
    inf,
    key,
    least,
    nan,
    problem,
    train,
    trained,
    weak,
)
from tests.helpers import poisson


def _prepare(name: Any, **options: Any) -> Any:
    from natgrad.experiment.config import prepare

    return prepare(Config(name, **options))


PROBLEMS = [
    *each(
        "residual(index)",
        least,
        (lambda u, x: u(x) * x[5], lambda u, x: u(x) - x[2], lambda u, x: x[-3] * u(x)),
        "pde.*(index|coordinate|shape)|index",
    ),
    *each("residual raises", least, (lambda u, x: {}["nu"], lambda u, x: 1 / 0, lambda u, x: [][1]), "pde"),
    *each("residual(weight)", lambda v: least(weight=v), ("10", None, 0, -1, nan, inf, [1, 2], 1j), "weight"),
    *each("residual(data)", lambda v: least(lambda u, x, y: u(x) - y, data=v), (np.ones(4), 3.0, "x", None), "data"),
    *each("residual, NaN data", lambda v: least(lambda u, x, y: u(x) - y, data=v), (np.full(9, nan),), "data|finite"),
    *each("residual of no network", least, (lambda u, x: x[0] * 0 + 1j, lambda u, x: "x", lambda u, x: None), "pde"),
    *each("points by a function", lambda v: least(points=v), (lambda key: SQUARE.interior(5, key=key),), "fresh=True"),
    *each(
        "block names",
        lambda v: ng.LeastSquares(NET, pde=ng.Residual(VALUE, SQUARE.interior(9, key=0)), **{v: ng.Residual(VALUE, X)}),
        ("exact", "weights"),
        "exact|weights",
    ),
    *each(
        "exact",
        lambda v: least(points=SQUARE.interior(9, key=key(0)), exact=v),
        (0.0, "x", lambda x: x, lambda x, y: x[0], lambda x: x[7]),
    ),
    *each(
        "with_weights",
        lambda v: problem().with_weights(v),
        ({"rim": 2.0}, {"pde": -1.0}, {"pde": nan}, {"pde": "x"}, [1.0]),
        "rim|weight|block",
    ),
    *each("energy(metric)", lambda v: ng.EnergyMinimization(NET, a=ng.Energy(VALUE, X, metric=v)), (None, "H1", 3)),
    *each(
        "energy(density)",
        lambda v: ng.EnergyMinimization(NET, a=ng.Energy(v, X, metric=ng.metrics.L2())),
        (3, None, lambda u, x: x, lambda u, x: u(x) * x[4]),
        "densit|a'",
    ),
    *each("EnergyNorm(diffusion)", ng.metrics.EnergyNorm, (-1, nan, inf, "x", None), "diffusion|coefficient"),
    *each("GrossPitaevskii(beta)", lambda v: ng.metrics.GrossPitaevskii(1.0, v), (-1, nan, inf, "x"), "beta|β"),
    *each("gramian(strategy)", lambda v: ng.gramian(problem(), strategy=v), ("dense", 3, None)),
    *each("gramian(batch)", lambda v: ng.gramian(problem(), strategy="batched", batch=v), COUNT),
    *each("gramian(problem)", ng.gramian, (3, None, NET)),
    *each("gramian(params)", lambda v: ng.gramian(problem(), v).diagonal(), (3, {"w": jnp.ones(3)})),
    *each("shard(mesh)", lambda v: ng.shard(problem(), v), (3, None, "x")),
    *each("devices(count)", ng.devices, (0, -1, 99, 1.5, "x"), "device|count"),
    *each("laplacian(dims)", lambda v: ng.laplacian(NET, X[0], v), (5, -7, [0, 0], "x")),
    *each("partial(dims)", lambda v: ng.partial(NET, X[0], *v), ((), (5,), ("x",), (0.5,)), "coordinate|dims"),
    *each("gradient(x)", lambda v: ng.gradient(NET, v), (X, 3.0, "x", None), "point|array"),
    *each("gradient(u)", lambda v: ng.gradient(v, X[0]), (3.0, None, NET(X[0])), "function"),
]

ELEMENTS = [
    *each("rectangle(cells)", ng.fem.rectangle, (0, -1, 1.5, "x", (1, 2, 3, 4), (2, 0), None)),
    *each("rectangle(degree)", lambda v: ng.fem.rectangle((2, 2), v), (0, -1, 1.5, 99, "x", None)),
    *each(
        "rectangle(upper)", lambda v: ng.fem.rectangle((2, 2), 1, upper=v), ((-1, 1), (0, 1), (nan, 1), (1, 1, 1), "x")
    ),
    *each("Space(mesh)", ng.fem.Space, (3, None, "mesh.msh")),
    *each("Space(degree)", lambda v: ng.fem.Space(skfem.MeshTri(), v), (0, -1, 99, "x")),
    *each(
        "Form(diffusion)",
        lambda v: weak(ng.fem.Form(diffusion=v)),
        (-1.0, nan, inf, "x", [[1.0, 0.0], [0.0, -1.0]], lambda x: -1.0),
    ),
    *each("Form(reaction)", lambda v: weak(ng.fem.Form(reaction=v)), (nan, inf, "x")),
    *each("Form(order)", lambda v: weak(ng.fem.Form(order=v)), (-1, 1.5, "x")),
    *each("FEINN(load)", lambda v: weak(load=v), (nan, "x", lambda x: x, lambda x: nan)),
    *each(
        "FEINN(dirichlet)",
        lambda v: weak(dirichlet=v),
        (nan, {"north": 0.0}, "left", lambda x: x),
        "dirichlet|north|point",
    ),
    *each(
        "FEINN(neumann)",
        lambda v: weak(dirichlet={"left": 0.0}, neumann=v),
        ({"north": 1.0}, 3.0, {"right": nan}),
        "north|neumann",
    ),
    *each("FEINN(potential)", lambda v: weak(potential=v), (3, "u**4", lambda u: u)),
    *each("FEINN(metric)", lambda v: weak(metric=v), ("H7", 3), "metric|form"),
    *each("FEINN(exact)", lambda v: weak(exact=v), (3.0, "x", lambda x: x)),
    *each("FEINN(network)", lambda v: weak(net=v), (3, ng.MLP(3, 1, 3, 1, key=key(0)), TWO), "network|u\\b"),
    *each("FEINN(form)", lambda v: weak(form=v), (3, "laplace")),
]

SOLVE = [
    *each("solve(problem)", lambda v: ng.solve(v, ng.FullNGD(), 1), (3, None, NET)),
    *each("solve(solver)", lambda v: ng.solve(problem(), v, 1), (3, None, "nystrom", ng.FullNGD, ng.NaturalGradient)),
    *each("solve(steps)", lambda v: train(steps=v), (0, -1, 1.5, nan, "x", None)),
    *each("solve(evaluate_every)", lambda v: train(evaluate_every=v), (0, -1, 1.5, "x", None)),
    *each("solve(target_error)", lambda v: train(target_error=v), (-1, nan, inf, "x")),
    *each("solve(target_loss)", lambda v: train(target_loss=v), (nan, "x")),
    *each("solve(target_error), no exact", lambda v: train(of=least(), target_error=v), (0.1,), "target_error"),
    *each("solve(time_limit)", lambda v: train(time_limit=v), (0, -1, nan, "x")),
    *each("solve(patience)", lambda v: train(patience=v), COUNT),
    *each("solve(group)", lambda v: train(group=v), COUNT),
    *each("solve(memory)", lambda v: train(memory=v), (0, -1, nan, "lots", 1), "memory|it may"),
    *each("solve(callback)", lambda v: train(callback=v), (3, "print")),
    *each("solve(checkpoint)", lambda v: train(checkpoint=v), (3, "print")),
    *each("solve(key)", lambda v: train(key=v), ("x", 1.5, X)),
    *each("solve(params)", lambda v: train(params=v), (3, "x", {"w": jnp.ones(3)}, poisson(width=5).params), "params"),
    *each(
        "solve(params), NaN",
        lambda v: train(params=jax.tree.map(lambda a: a * v, problem().params)),
        (nan,),
        "params|finite",
    ),
    *each("solve(resume)", lambda v: train(resume=v), (3, "x", {"w": 3}, problem().params)),
    *each(
        "solve(resume), another solver",
        lambda v: train(v, resume=trained()),
        (ng.Adam(), ng.BFGS(), ng.NystromNGD(max_rank=4)),
        "resume|solver",
    ),
    *each(
        "solve(resume), another problem", lambda v: train(of=v, resume=trained()), (poisson(width=5),), "resume|params"
    ),
    *each(
        "solve(resume), another rank",
        lambda v: train(
            ng.NystromNGD(max_rank=v, gramian="jacobian"),
            resume=train(ng.NystromNGD(max_rank=6, gramian="jacobian"), steps=2),
        ),
        (3,),
        "rank|resume",
    ),
    *each("Config(problem)", lambda v: _prepare(v), ("poison3d", "", None, 3), "problem|poison3d"),
    *each("Config(steps)", lambda v: _prepare("poisson3d", steps=v), (0, -1, 1.5, "x")),
    *each(
        "Config(settings)",
        lambda v: _prepare("poisson3d", settings=v),
        (("width",), ("=",), ("width=x",)),
        "width|key=value",
    ),
]
