"""The devices and the processes of a run, as the command line asks for them."""

import os

import jax

from natgrad.backend import cluster
from natgrad.backend.programs import disk
from natgrad.backend.xla import on_cpu

BY_HAND = "--coordinator HOST:PORT, --process-id I and --num-processes N"


def join(
    devices: int | None, distributed: bool, coordinator: str | None, process_id: int | None, num_processes: int | None
) -> None:
    """The devices of this process, and the other processes, before JAX looks for either."""
    given = [value is not None for value in (coordinator, process_id, num_processes)]
    if distributed:
        if any(given):
            raise ValueError(f"--distributed asks the launcher for what {BY_HAND} say: give one of the two")
        if devices is not None:
            raise ValueError("--distributed takes all devices of all processes: leave --devices out")
        disk.keep_by_jax()
        cluster.join()
        return
    if any(given) and not all(given):
        raise ValueError(f"several processes need all of {BY_HAND}")
    count = num_processes or 1
    if devices is not None:
        split_processor(devices, count)
    if coordinator is not None and process_id is not None:
        disk.keep_by_jax()
        cluster.connect(coordinator, process_id, count)
    elif not on_cpu():
        disk.keep_by_jax()


def split_processor(devices: int, count: int) -> None:
    """Divides this processor into its share of the devices, for `count` processes."""
    if devices < 1 or devices % count:
        raise ValueError(f"--devices must be a positive multiple of the number of processes ({count}), got {devices}")
    most = max(16, os.cpu_count() or 1)  # more parts of a processor than that wait for each other without end
    if devices // count > most:
        raise ValueError(f"--devices must be at most {most} a process, got {devices}")
    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        jax.config.update("jax_num_cpu_devices", devices // count)
