"""How the processes of a run find each other: by what their launcher tells, or by hand.

`join` goes by what JAX detects in the environment: Slurm, Open MPI, Kubernetes and TPU pods. Open MPI says since its
version 5 who takes part in MPI alone, where JAX asks mpi4py for it.
"""

import os
import signal
import threading
from importlib.util import find_spec
from typing import Any

import jax

HEARTBEAT = 30  # seconds without a sign of life after which a process counts as dead
#: What each launcher leaves in the environment of its processes.
SIGNS = {
    "Slurm": ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
    "Open MPI": ("OMPI_COMM_WORLD_SIZE",),
    "Kubernetes": ("KUBERNETES_SERVICE_HOST",),
}


def connect(coordinator: str, process_id: int, num_processes: int) -> None:
    """Joins the processes of a run: `coordinator` is host:port of process 0. To be called before all other of JAX."""
    host, colon, port = coordinator.rpartition(":")
    if not (host and colon and port.isdigit()):
        raise ValueError(f"the coordinator is host:port of process 0, got {coordinator!r}")
    if not 0 <= process_id < num_processes:
        raise ValueError(
            f"process ids run from 0 to {num_processes - 1} for {num_processes} processes, got {process_id}"
        )
    _initialize(coordinator_address=coordinator, num_processes=num_processes, process_id=process_id)


def join() -> None:
    """Joins the processes that a launcher started; a second call does nothing. To be called before all other of JAX."""
    if jax.distributed.is_initialized():
        return
    how: dict[str, Any] = {"cluster_detection_method": _method()}
    if os.environ.get("CUDA_VISIBLE_DEVICES", "").count(",") == 0 and os.environ.get("CUDA_VISIBLE_DEVICES"):
        how["local_device_ids"] = 0  # the launcher gave each process its own; JAX takes all processes to see all
    try:
        _initialize(**how)
    except ValueError:  # JAX found nothing to go by
        raise ValueError(_nothing()) from None
    except Exception as error:  # whatever a launcher's own library raises
        reason = " ".join(str(error).split())
        if "before any JAX" in reason:
            raise ValueError("the processes must join before all other use of JAX, and it was used already") from None
        raise ValueError(f"the processes cannot join: {reason}") from None


def _initialize(**how: Any) -> None:
    before = signal.getsignal(signal.SIGTERM)
    jax.distributed.initialize(
        initialization_timeout=120, heartbeat_timeout_seconds=HEARTBEAT, shutdown_timeout_seconds=HEARTBEAT, **how
    )
    if before is not None and threading.current_thread() is threading.main_thread():
        # JAX's runtime takes SIGTERM for itself, and a process that is not training would not end by it.
        signal.signal(signal.SIGTERM, before)


def _method() -> str | None:
    """What JAX has to be asked for by name; None where it looks by itself."""
    if "OMPI_COMM_WORLD_SIZE" not in os.environ or "OMPI_MCA_orte_hnp_uri" in os.environ:
        return None
    if find_spec("mpi4py") is None:  # what else JAX might find, Slurm's, is that of Open MPI's own daemons
        raise ValueError("Open MPI tells from version 5 on mpi4py alone who takes part: install mpi4py")
    return "mpi4py"


def _nothing() -> str:
    """What was looked for, and what of it is missing."""
    sought = []
    for name, signs in SIGNS.items():
        lacking = [sign for sign in signs if sign not in os.environ]
        hint = f"no {lacking[0]}" if lacking else ""
        if not lacking:
            hint = {"Kubernetes": "it needs jax[k8s]"}.get(name, "")
        sought.append(f"{name} ({hint})" if hint else name)
    return (
        f"no launcher of several processes was found; looked for {', '.join(sought)} and a TPU pod: start natgrad by "
        "srun or mpirun, or give --coordinator, --process-id and --num-processes"
    )
