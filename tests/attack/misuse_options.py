"""Wrong options: of solvers, networks and domains."""

import jax.numpy as jnp
import numpy as np

import natgrad as ng
from natgrad import damping
from tests.attack.misuse_tools import COUNT, CUBE, NET, RATE, SIX, SQUARE, WAVE, X, by_hand, each, inf, key, least, nan

OPTIONS = [  # of solvers and their parts
    *each("Armijo(shrink)", lambda v: ng.Armijo(shrink=v), (0, 1, 1.5, -0.5, nan, inf, "half", None)),
    *each("Armijo(decrease)", lambda v: ng.Armijo(decrease=v), (-1, 1, 2, nan, inf, "x")),
    *each("Armijo(max_trials)", lambda v: ng.Armijo(max_trials=v), COUNT),
    *each("GridSearch(points)", lambda v: ng.GridSearch(points=v), COUNT),
    *each("PCG(maxiter)", lambda v: ng.PCG(ng.Nystrom(), maxiter=v), COUNT),
    *each("PCG(tol)", lambda v: ng.PCG(ng.Nystrom(), tol=v), RATE),
    *each("PCG(min_decrease)", lambda v: ng.PCG(ng.Nystrom(), min_decrease=v), RATE),
    *each("PCG(warm_start)", lambda v: ng.PCG(ng.Nystrom(), warm_start=v), ("maybe", 2, None)),
    *each("RowFactor(max_rank)", lambda v: ng.RowFactor(max_rank=v), COUNT),
    *each("RowFactor(levels)", lambda v: ng.RowFactor(levels=v), COUNT),
    *each("RowFactor(test)", lambda v: ng.RowFactor(test=v), ("cauchy", 3, None)),
    *each("PivotedRowFactor(block)", lambda v: ng.PivotedRowFactor(block=v), COUNT),
    *each("PivotedRowFactor(tolerance)", lambda v: ng.PivotedRowFactor(tolerance=v), RATE),
    *each("PCG(scaling)", lambda v: ng.PCG(ng.Nystrom(), scaling=v), (0, 2, -1, nan, "x")),
    *each("PCG(preconditioner)", ng.PCG, (3, "nystrom", None, ng.Nystrom)),
    *each("Direct(power_iterations)", lambda v: ng.Direct(power_iterations=v), COUNT),
    *each("Nystrom(max_rank)", lambda v: ng.Nystrom(max_rank=v), COUNT),
    *each("Nystrom(levels)", lambda v: ng.Nystrom(levels=v), COUNT),
    *each("Nystrom(increase)", lambda v: ng.Nystrom(increase=v), COUNT),
    *each("Nystrom(ratio)", lambda v: ng.Nystrom(ratio=v), RATE),
    *each("Nystrom(test)", lambda v: ng.Nystrom(test=v), ("cauchy", 3, None)),
    *each("Nystrom(method)", lambda v: ng.Nystrom(method=v), ("qr", 3, None)),
    *each("RPCholesky(block)", lambda v: ng.RPCholesky(block=v), COUNT),
    *each("RPCholesky(method)", lambda v: ng.RPCholesky(method=v), ("qr", None)),
    *[
        case
        for rule in ("Relative", "Spectral", "LossPower", "GradientPower", "Geometric", "LevenbergMarquardt")
        for case in each(
            f"{rule}(gamma)", lambda v, rule=rule: getattr(damping, rule)(gamma=v), (0, -1, inf, nan, "x", None)
        )
    ],
    *each("LossPower(scale)", lambda v: damping.LossPower(scale=v), RATE),
    *each("LossPower(power)", lambda v: damping.LossPower(power=v), (nan, inf, "x")),
    *each("Geometric(ratio)", lambda v: damping.Geometric(ratio=v), (0, -1, nan, inf, "x")),
    *each("LevenbergMarquardt(up)", lambda v: damping.LevenbergMarquardt(up=v), (0, -1, nan, inf, "x")),
    *each("LevenbergMarquardt(start)", lambda v: damping.LevenbergMarquardt(start=v), RATE),
    *each("Relative(start)", lambda v: damping.Relative(start=v), RATE),
    *each("Relative(decay)", lambda v: damping.Relative(decay=v), (0, -1, 2, nan, "x")),
    *each("Guarded(short)", lambda v: damping.Guarded(damping.Relative(), short=v), (0, -1, 2, nan, "x")),
    *each("Guarded(up)", lambda v: damping.Guarded(damping.Relative(), up=v), (1, 0, -1, nan, "x")),
    *each("Guarded(rule)", damping.Guarded, (3, "Relative", None)),
    *each("NystromNGD(gamma)", lambda v: ng.NystromNGD(gamma=v), (0, -1, inf, nan, "x")),
    *each("NystromNGD(recipe)", lambda v: ng.NystromNGD(recipe=v), ("fancy", 3, None)),
    *each("NystromNGD(acceleration)", lambda v: ng.NystromNGD(acceleration=v), RATE),
    *each("NystromNGD(momentum)", lambda v: ng.NystromNGD(momentum=v), (1, -0.1, nan, "x")),
    *each("NystromNGD(gramian)", lambda v: ng.NystromNGD(gramian=v), ("dense", 3)),
    *each("NystromNGD(batch)", lambda v: ng.NystromNGD(batch=v), COUNT),
    *each("NystromNGD(memory)", lambda v: ng.NystromNGD(memory=v), (0, -1, nan, "lots")),
    *each("NystromNGD(damping)", lambda v: ng.NystromNGD(damping=v), (3, "Spectral", damping.Spectral)),
    *each("NystromNGD(search)", lambda v: ng.NystromNGD(search=v), (3, "Armijo", ng.Armijo)),
    *each("NystromNGD(max_rnk)", lambda v: ng.NystromNGD(max_rnk=v), (3,)),
    *each("NaturalGradient(direction)", lambda v: ng.NaturalGradient(direction=v), (3, "pcg", None, ng.PCG)),
    *each("Adam(total)", lambda v: ng.Adam(total=v), COUNT),
    *each("Adam(warmup)", lambda v: ng.Adam(warmup=v), (-1, 1.5, nan, "x")),
    *each("Adam(peak)", lambda v: ng.Adam(peak=v), (0, *RATE)),
    *each("Adam(end)", lambda v: ng.Adam(end=v), RATE),
    *each("LBFGS(history)", lambda v: ng.LBFGS(history=v), COUNT),
    *each("BFGS(search)", lambda v: ng.BFGS(search=v), (3, "Wolfe", ng.Armijo())),
    *each("Wolfe(curvature)", lambda v: ng.Wolfe(curvature=v), (0, 1, -1, nan, "x")),
    *each("Wolfe(max_evaluations)", lambda v: ng.Wolfe(max_evaluations=v), COUNT),
    *each("Balanced(every)", lambda v: ng.Balanced(ng.FullNGD(), every=v), (-1, 1.5, nan, "x")),
    *each("Balanced(solver)", ng.Balanced, (3, None, ng.FullNGD)),
    *each("Balanced(BFGS, every)", lambda v: ng.Balanced(ng.BFGS(), every=v), (10,), "every"),
]

NETWORKS = [
    *each("MLP(in_size)", lambda v: ng.MLP(v, 1, 3, 1, key=key(0)), (*COUNT, None)),
    *each("MLP(out_size)", lambda v: ng.MLP(2, v, 3, 1, key=key(0)), (*COUNT, None)),
    *each("MLP(width)", lambda v: ng.MLP(2, 1, v, 1, key=key(0)), (*COUNT, None, [], [4, 0])),
    *each("MLP(depth)", lambda v: ng.MLP(2, 1, 3, v, key=key(0)), (-1, 1.5, nan, "x")),
    *each("MLP(activation)", lambda v: ng.MLP(2, 1, 3, 1, activation=v, key=key(0)), ("tanh", 3, None)),
    *each("MLP(key)", lambda v: ng.MLP(2, 1, 3, 1, key=v), (None, "x", 1.5)),
    *each("Waves(width)", lambda v: ng.Waves(2, 1, v, up_to=1.0, key=key(0)), COUNT),
    *each(
        "Waves(up_to)",
        lambda v: ng.Waves(2, 1, 3, up_to=v, key=key(0)),
        (0, -1.0, nan, inf, "x", None, (1.0, 2.0, 3.0)),
    ),
    *each("FourierFeatures(frequencies)", lambda v: ng.FourierFeatures(NET, 2, v, key=key(1)), (0, -1, "x", [[1.0]])),
    *each("FourierFeatures(scale)", lambda v: ng.FourierFeatures(SIX, 2, 3, scale=v, key=key(1)), (nan, inf, "x")),
    *each("FourierFeatures(in_size)", lambda v: ng.FourierFeatures(NET, v, 3, key=key(1)), COUNT),
    *each("Periodic(periods)", lambda v: ng.Periodic(NET, v), ((0, 1), (-1, 1), (nan, 1), 3, "x")),
    *each(
        "HardBoundary(distance)",
        lambda v: least(net=ng.HardBoundary(NET, v)),
        (3, None, lambda x: x, lambda x: jnp.ones(3)),
    ),
    *each(
        "HardBoundary(lift)",
        lambda v: least(net=ng.HardBoundary(NET, WAVE, v)),
        (3, lambda x: jnp.ones(3), lambda x: x),
    ),
    *each("Normalized(scale)", lambda v: ng.Normalized(NET, SQUARE, v), (0, -1, nan, inf, "x", (1, 2))),
    *each("Normalized(domain)", lambda v: ng.Normalized(NET, v), (3, None, X, CUBE), "domain|in_size"),
    *each("Fields()", lambda v: ng.Fields(), (0,), "network"),
    *each("Fields(u)", lambda v: least(net=ng.Fields(u=v), fn=lambda w, x: w.u(x)), (3, None, "net"), "u"),
    *each("Apply(apply)", lambda v: ng.Apply(v, {"w": jnp.ones(2)}), (3, None, "x")),
    *each(
        "float16",
        lambda v: least(net=ng.MLP(2, 1, 3, 1, key=key(0), dtype=v)),
        (jnp.float16, jnp.int32),
        "float16|int32|dtype",
    ),
    *each(
        "complex network",
        lambda v: least(net=ng.Apply(lambda p, x: jnp.sum(p * x).real, v)),
        (jnp.ones(2, complex),),
        "complex",
    ),
    *each(
        "no parameters", lambda v: least(net=ng.Apply(lambda p, x: x[0] + jnp.sum(p), v)), (jnp.ones(0),), "parameter"
    ),
]

DOMAINS = [
    *each("Box(lower)", lambda v: ng.Box(v, [1, 1]), ([1, 1], [2, 0], [nan, 0], [-inf, 0], [0], "ab", None), "lower"),
    *each("Box()", lambda v: ng.Box(v, v), ([],), "lower"),
    *each("Interval(a)", lambda v: ng.Interval(v, 1), (1, 2, nan, inf, "x", None)),
    *each("Ball(radius)", lambda v: ng.Ball([0, 0], v), (0, -1, nan, inf, "x", None)),
    *each("Ball(center)", lambda v: ng.Ball(v, 1), ("x", [nan], [], None)),
    *each("Polygon(vertices)", ng.Polygon, ([(0, 0), (1, 1)], "x", [(0, 0), (1, nan), (1, 1)], [0, 1, 2], 3), "vert"),
    *each("Polygon(crossing)", ng.Polygon, ([(0, 0), (1, 1), (1, 0), (0, 1)],), "cross|intersect"),
    *each(
        "interior(n)",
        lambda v: SQUARE.interior(v, key=key(0)),
        (0, -1, 2.5, nan, "x", None, 10**13),
        r"\bn\b|points|memory",
    ),
    *each("interior(key)", lambda v: SQUARE.interior(9, key=v), (None, "x", 1.5)),
    *each("interior(rule)", lambda v: SQUARE.interior(9, key=key(0), rule=v), ("simpson", 3, None)),
    *each("boundary(faces)", lambda v: SQUARE.boundary(8, key=key(0), faces=v), ([], ["north"], [(5, 0)], 3), "face"),
    *each("boundary(n)", lambda v: SQUARE.boundary(v, key=key(0)), (0, -1, "x"), r"\bn\b|points"),
    *each("SpaceTime(time)", lambda v: ng.SpaceTime(v, SQUARE), (SQUARE, 3, None)),
    *each("SpaceTime(space)", lambda v: ng.SpaceTime(ng.Interval(0, 1), v), (3, None)),
    *each("contains(x)", SQUARE.contains, ([1.0, 2.0, 3.0], "x"), "coordinates|numbers|point"),
    *each(
        "as arrays",
        lambda v: least(points=v),
        (X[0], np.zeros((0, 2)), X * nan, "x", None, 3, SQUARE, 1j * X),
        "points",
    ),
    *each(
        "weights by hand",
        lambda v: least(points=by_hand(weights=v)),
        (np.full(9, -1.0), np.full(9, nan), np.ones(4)),
        "weights",
    ),
    *each("points by hand", lambda v: least(points=by_hand(v)), (np.zeros((0, 2)), X * nan, X * inf), "points"),
    *each(
        "evaluation",
        lambda v: least(exact=WAVE, evaluation=v),
        (by_hand(X[:0]), by_hand(X * nan), by_hand(weights=np.full(9, -1.0)), 3),
    ),
    *each(
        "evaluation elsewhere",
        lambda v: least(exact=WAVE, evaluation=v),
        (CUBE.interior(5, key=key(0)),),
        "evaluation|shape|dimension",
    ),
]
