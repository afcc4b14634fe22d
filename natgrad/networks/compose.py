"""Several networks as one, and functions of other libraries as networks."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from natgrad.backend import host
from natgrad.networks.base import Function


class Fields(eqx.Module):
    """Several named networks in one parameter vector, in the order given.

    Each is an attribute; called, the whole returns the outputs of all as one vector.

    >>> from natgrad.networks import MLP
    >>> k1, k2 = jax.random.split(jax.random.key(0))
    >>> flow = Fields(u=MLP(2, 2, 32, 2, key=k1), p=MLP(2, 1, 32, 2, key=k2))
    >>> x = jnp.ones(2)
    >>> flow.u(x).shape, flow.p(x).shape, flow(x).shape
    ((2,), (), (3,))
    """

    networks: tuple[Function, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, **networks: Function):
        if not networks:
            raise ValueError("Fields takes at least one named network, such as Fields(u=MLP(...))")
        for name in networks:
            if name in ("networks", "names") or name.startswith("_"):
                raise ValueError(f"{name!r} is taken; give the field another name")
        self.networks = tuple(networks.values())
        self.names = tuple(networks)

    def __getattr__(self, name: str) -> Function:
        # Reached only for what is not an attribute; while a copy is being built, `names` is not one either.
        names = self.__dict__.get("names", ())
        if name in names:
            return self.networks[names.index(name)]
        raise AttributeError(f"no field {name!r}; the fields are {', '.join(names)}")

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(network(x)) for network in self.networks])


class Apply(eqx.Module):
    """u(x) = apply(params, x): any function with any pytree of parameters, of Flax or of no library at all.

    The floating-point arrays among the leaves of `params` are the parameters. `apply` takes one point (d,) and gives a
    scalar or a vector (m,); a Flax network with one output gives (1,), so take its [0].

    >>> from natgrad.networks import num_parameters
    >>> params = {"w": jnp.ones((8, 3)), "v": jnp.ones(8)}
    >>> u = Apply(lambda p, x: p["v"] @ jnp.tanh(p["w"] @ x), params)
    >>> u(jnp.ones(3)).shape, num_parameters(u)
    ((), 32)

    Flax Linen: `Apply(lambda p, x: model.apply(p, x)[0], model.init(key, x))`. Flax NNX:

        graph, state = nnx.split(model)
        u = Apply(lambda state, x: nnx.merge(graph, state)(x)[0], state)
    """

    params: PyTree
    apply: Callable[[PyTree, Array], Array] = eqx.field(static=True)

    def __init__(self, apply: Callable[[PyTree, Array], Array], params: PyTree):
        if not callable(apply):
            raise ValueError(f"Apply takes a function of (params, x) first, got {type(apply).__name__}")
        try:
            self.params = jax.tree.map(host.array, params)
        except TypeError as error:
            raise ValueError("the parameters of Apply must be arrays in dicts, lists or tuples") from error
        self.apply = apply

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        return self.apply(self.params, x)
