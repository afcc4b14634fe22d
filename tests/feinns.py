"""Small finite-element problems the tests share."""

import jax
import jax.numpy as jnp

import natgrad as ng

KAPPA = lambda x: 2 + jnp.sin(x[0] + 2 * x[1])
BETA = lambda x: jnp.stack([jnp.sqrt(x[0] - x[1] ** 2 + 5), jnp.sqrt(x[1] - x[0] ** 2 + 5)])
SIGMA = lambda x: jnp.exp(x[0] / 2 - x[1] / 3) + 2


def network(width: int = 5, seed: int = 0):
    return ng.MLP(2, 1, width, 2, key=jax.random.key(seed))


def square(general: bool = False, cells: int = 3, degree: int = 2):
    space = ng.fem.rectangle((cells, cells + 1), degree=degree)
    return space.on_skfem_mesh() if general else space


def triangles(degree: int = 2):
    import skfem

    mesh = skfem.MeshTri.init_tensor(jnp.linspace(0, 1, 4), jnp.linspace(0, 1, 4)).with_defaults()
    return ng.fem.Space(mesh, degree=degree)


def ritz(space=None, width: int = 5, **options):
    """−Δu = f, u given on the boundary (not zero)."""
    exact = lambda x: jnp.sin(2 * x[0] + x[1])
    f = lambda x: 5 * jnp.sin(2 * x[0] + x[1])
    return ng.FEINNEnergy(
        network(width), space or square(), ng.fem.Form(), load=f, dirichlet=exact, **{"exact": exact, **options}
    )


def cubic(space=None, width: int = 5, **options):
    """−Δu + u³ = f with Neumann data on a part of the boundary."""
    exact = lambda x: 1 + jnp.sin(2 * x[0] + x[1])
    flux = jax.grad(exact)
    f = lambda x: -jnp.trace(jax.hessian(exact)(x)) + exact(x) ** 3
    return ng.FEINNEnergy(
        network(width),
        space or square(),
        ng.fem.Form(),
        load=f,
        dirichlet={"left": exact, "right": exact},
        neumann={"top": lambda x, n: flux(x) @ n, "bottom": lambda x, n: flux(x) @ n},
        potential=lambda u, x: u**4 / 4,
        **{"exact": exact, **options},
    )


def transport(space=None, width: int = 5, **options):
    """Diffusion, reaction and transport with mixed boundary conditions."""
    exact = lambda x: jnp.sin(2 * x[0] + x[1]) * jnp.cos(x[1])
    grad = jax.grad(exact)
    flux = lambda x: KAPPA(x) * grad(x)
    f = lambda x: -jnp.trace(jax.jacfwd(flux)(x)) + BETA(x) @ grad(x) + SIGMA(x) * exact(x)
    return ng.FEINNLeastSquares(
        network(width),
        space or square(),
        ng.fem.Form(diffusion=KAPPA, advection=BETA, reaction=SIGMA),
        load=f,
        dirichlet={("left", "right"): exact},
        neumann={"top": lambda x, n: flux(x) @ n, "bottom": lambda x, n: flux(x) @ n},
        **{"exact": exact, **options},
    )


def dense(operator):
    """The matrix of an operator on nodal values."""
    return operator.apply(jnp.eye(operator.shape[0]))
