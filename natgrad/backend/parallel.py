"""Several devices and hosts, by JAX's own SPMD runtime: points spread over the devices, parameters on all of them.

Every sum over points, L = Σ_r w_r e(x_r), ∇L = Aᵀ c, G = AᵀA, is a sum over devices of sums over their own points. A
step runs as one program on every device (`everywhere`, by `jax.shard_map`), which sees a problem with fewer points and
adds up what it finds with `total` (a psum). All else, sketches, factorizations, pCG, the line search, is done on every
device with the same numbers, and random numbers come from the same keys: iterates are those of one device up to the
order of summation. Rows of the Jacobian never leave their device.

    problem = ng.shard(problem, ng.devices(8))        # then ng.solve, ng.gramian, solver.step as ever

A module whose arrays have one row for each point says so by `per_point = True`. Where the devices do not divide the
points of a block, copies of its last point at weight zero fill it up.
"""

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, PyTree

from natgrad.backend.cluster import join

AXIS = "points"


def devices(count: int | None = None, *, distributed: bool = False) -> Mesh:
    """The mesh of the first `count` devices (of all processes), all by default: `ng.shard(problem, ng.devices(4))`.

    With `distributed` the processes that a launcher started (srun, mpirun, a Kubernetes job) join first, each of which
    runs the same script: `mesh = ng.devices(distributed=True)`, before all other use of JAX.
    """
    if distributed:
        join()
    found = jax.devices()
    count = len(found) if count is None else count
    if not isinstance(count, int | np.integer):
        raise ValueError(f"devices takes their number, an integer, got {count!r}")
    if not 1 <= count <= len(found):
        kind = found[0].platform
        hint = ""
        if kind == "cpu":
            hint = f": XLA_FLAGS=--xla_force_host_platform_device_count={count} makes more of a processor"
        raise ValueError(f"there {'is' if len(found) == 1 else 'are'} {len(found)} {kind} device(s), not {count}{hint}")
    if jax.process_count() > 1 and count < len(found):
        raise ValueError(f"{jax.process_count()} processes have {len(found)} devices together: use all, not {count}")
    return Mesh(np.asarray(found[:count]), (AXIS,))


def shard(problem: PyTree, mesh: Mesh) -> PyTree:
    """The problem with its points spread over the devices of a mesh and everything else on all of them.

    problem = ng.shard(problem, ng.devices(8))
    solution = ng.solve(problem, ng.NystromNGD(), steps=100)
    """
    if not isinstance(mesh, Mesh) or mesh.axis_names != (AXIS,):
        raise ValueError(f"shard takes a mesh such as ng.devices(8), got {mesh!r}")
    if mesh_of(problem) is not None:
        raise ValueError("the problem is spread over devices already: shard the one it was made from")

    def sharded(part: Any) -> Any:
        if not _per_point(part):
            return _put(part, mesh, PartitionSpec())
        part = jax.tree_util.tree_map_with_path(lambda path, a: _put(_fill(path, a, mesh.size), mesh, _ROWS), part)
        return dataclasses.replace(part, mesh=mesh) if hasattr(part, "mesh") else part

    return jax.tree.map(sharded, problem, is_leaf=_per_point)


def mesh_of(problem: PyTree) -> Mesh | None:
    """The devices a problem is spread over; None for one that is not."""
    return problem.features[0].mesh if problem.features else None


def everywhere(fn: Callable, problem: PyTree, *args: Any) -> Any:
    """fn(problem, *args), by every device with its own points where the problem is spread over several.

    Arguments and results are the same on all devices: what `fn` makes of points it must have added up by `total`.
    """
    mesh = mesh_of(problem)
    if mesh is None or inside():
        return fn(problem, *args)
    specs = jax.tree.map(lambda part: _ROWS if _per_point(part) else PartitionSpec(), problem, is_leaf=_per_point)
    others = (PartitionSpec(),) * len(args)
    # JAX's check of what is replicated would ask for annotations in every loop, users' residuals included.
    run = jax.shard_map(fn, mesh=mesh, in_specs=(specs, *others), out_specs=PartitionSpec(), check_vma=False)
    return jax.jit(run)(problem, *args)


def inside() -> bool:
    """Whether this is traced for one device of several, with its own points alone."""
    return AXIS in jax.sharding.get_abstract_mesh().manual_axes


def count() -> int:
    """How many devices share the points of the problem at hand."""
    return jax.lax.axis_size(AXIS) if inside() else 1


def total(x: PyTree) -> PyTree:
    """The sum over all devices of what each has."""
    return jax.lax.psum(x, AXIS) if inside() else x


def mean(x: PyTree) -> PyTree:
    """The mean over all devices: of `jax.grad(f)`, where f is a `total`, the gradient.

    The transpose of a psum is a psum: each device finds its own points' part of the derivative of the sum of all
    devices' f, which are the same number.
    """
    return jax.lax.pmean(x, AXIS) if inside() else x


def not_before(x: PyTree, known: Float[Array, ""]) -> PyTree:
    """x, not before `known` is.

    XLA on CPUs may run two sums over devices at the same time, one of them in a branch or loop, where neither needs the
    other's result, and then mixes them up: eight devices on two cores crashed within a hundred steps. So what goes into
    a branch or loop with sums waits for those before it.
    """
    if not inside():
        return x
    broken = jnp.isnan(known)  # a result that the compiler cannot foresee
    return jax.tree.map(lambda leaf: jnp.where(broken, jnp.zeros_like(leaf), leaf), x)


def gather(x: Array, rows: int | None = None) -> Array:
    """The rows of all devices, those that fill up aside (from `rows` on)."""
    return (jax.lax.all_gather(x, AXIS, tiled=True) if inside() else x)[:rows]


def own_rows(x: Array, rows: int, fill: str = "constant") -> Array:
    """This device's `rows` rows of an x that has those of all devices: what undoes `gather`."""
    x = jnp.pad(x, [(0, count() * rows - x.shape[0])] + [(0, 0)] * (x.ndim - 1), mode=fill)
    return jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index(AXIS) * rows, rows) if inside() else x


def on_all_rows(fn: Callable[[Array], Array], x: Array, rows: int) -> Array:
    """fn, which takes `rows` rows to as many, of an x whose rows are spread: column by column, some on each device."""
    local = x.shape[0]
    if not inside() or x.ndim == 1:
        return own_rows(fn(gather(x, rows)), local)
    result = jnp.pad(fn(columns(x)[:rows]), ((0, count() * local - rows), (0, 0)))
    return jax.lax.all_to_all(result, AXIS, split_axis=0, concat_axis=1, tiled=True)[:, : x.shape[1]]


def columns(x: Array) -> Array:
    """All rows of some columns (on each device others, filled up with zeros), of an x whose rows are spread."""
    if not inside():
        return x
    filled = jnp.pad(x, ((0, 0), (0, -x.shape[1] % count())))
    return jax.lax.all_to_all(filled, AXIS, split_axis=1, concat_axis=0, tiled=True)


def agree(value: float) -> float:
    """The largest of what the processes say, so that all of them decide the same."""
    if jax.process_count() == 1:
        return value
    from jax.experimental import multihost_utils

    return float(np.max(multihost_utils.process_allgather(np.float64(value))))


def first() -> bool:
    """Whether this process is the one that writes and speaks."""
    return jax.process_index() == 0


def by_first(fn: Callable[[], Any]) -> Any:
    """What fn gives, or the ValueError it raises, called by the first process alone and told to all."""
    if jax.process_count() == 1:
        return fn()
    from jax.experimental import multihost_utils

    value, complaint = None, None
    if first():
        try:
            value = fn()
        except ValueError as error:
            complaint = str(error)
    data = np.frombuffer(pickle.dumps((value, complaint)), np.uint8)
    size = int(multihost_utils.broadcast_one_to_all(np.int64(data.size)))
    data = multihost_utils.broadcast_one_to_all(data if first() else np.zeros(size, np.uint8))
    value, complaint = pickle.loads(np.asarray(data).tobytes())
    if complaint is not None:
        raise ValueError(complaint)
    return value


def by_first_alone(fn: Callable[[], Any]) -> Any:
    """What fn gives in the first process, None in the others; its ValueError reaches all."""
    kept: list[Any] = []
    by_first(lambda: kept.append(fn()))
    return kept[0] if kept else None


def lost(error: BaseException) -> bool:
    """Whether an error says that another process of the run has gone."""
    words = ("gloo", "nccl", "all-reduce", "coordination", "heartbeat", "unavailable", "deadline_exceeded")
    return jax.process_count() > 1 and any(word in str(error).lower() for word in words)


_ROWS = PartitionSpec(AXIS)


def _per_point(part: Any) -> bool:
    return getattr(part, "per_point", False) is True


def _fill(path: Any, a: Array, count: int) -> np.ndarray:
    """Rows up to a multiple of the number of devices: copies of the last one, of weights zeros."""
    rows = np.asarray(a)
    pads = [(0, -len(rows) % count)] + [(0, 0)] * (rows.ndim - 1)
    return np.pad(rows, pads, mode="constant" if getattr(path[-1], "name", None) == "weights" else "edge")


def _put(a: Any, mesh: Mesh, spec: PartitionSpec) -> Array:
    sharding = NamedSharding(mesh, spec)
    a = np.asarray(a)
    return jax.make_array_from_callback(a.shape, sharding, lambda index: a[index])
