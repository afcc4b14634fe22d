"""Spectra of the Gramian along training: all eigenvalues of G(θ_k) at some iterations k."""

import io
from pathlib import Path

import jax
import numpy as np
import scipy.linalg

from natgrad.experiment.config import Config, prepare
from natgrad.experiment.folder import held
from natgrad.gramian import gramian
from natgrad.optim.resample import present
from natgrad.solve import solve

CURVES = 6
LARGEST = 20_000  # parameters: the matrix takes 3 GB


def spectrum(config: Config, at: list[int] | None, folder: Path, *, force: bool, quiet: bool) -> tuple[Path, Path]:
    """Trains, and writes spectrum.npz (`steps` (k,), `eigenvalues` (k, p), largest first, `loss` (k,)) and a plot."""
    with held(folder, "spectrum") as home:
        if home.has("spectrum.npz") and not force:
            raise ValueError(f"{folder} holds spectra already: --force replaces them")
        home.check(["spectrum.npz", "spectrum.png"])
        steps, found, losses = eigenvalues(config, at, quiet)
        from natgrad.experiment.plots import spectra

        buffer = io.BytesIO()
        np.savez_compressed(buffer, steps=np.asarray(steps), eigenvalues=np.asarray(found), loss=np.asarray(losses))
        title = f"Gramian of {config.problem}, {config.optimizer}"
        draw = lambda workshop: [spectra(steps, np.asarray(found), title, workshop / "spectrum.png")]
        return home.write("spectrum.npz", buffer.getvalue()), home.draw(draw)[0]


def eigenvalues(config: Config, at: list[int] | None, quiet: bool) -> tuple[list[int], list[np.ndarray], list[float]]:
    """Trains; the iterations that were looked at, the eigenvalues and the loss there."""
    prepared = prepare(config)
    problem, record = prepared.problem, prepared.record
    if problem.num_parameters > LARGEST:
        raise ValueError(f"the spectrum of {problem.num_parameters} parameters is out of reach: at most {LARGEST}")
    wanted = sorted(set(at)) if at else sorted({round(k * record["steps"] / (CURVES - 1)) for k in range(CURVES)})
    if wanted[0] < 0 or wanted[-1] > record["steps"]:
        raise ValueError(f"--at takes iterations between 0 and {record['steps']}, got {wanted[0]}, …, {wanted[-1]}")

    assemble = jax.jit(lambda problem, params: gramian(problem, params, "assembled").as_matrix())
    losses: list[float] = []
    found: list[np.ndarray] = []
    steps: list[int] = []
    key = jax.random.fold_in(jax.random.key(config.seed), 1)
    start = prepared.solver.init(problem, problem.params, key) if problem.auto or problem.moving else None
    now = {"step": 0, "loss": float(present(problem, start).loss(problem.params))}

    def measure(params, state) -> None:
        if now["step"] in wanted:
            matrix = np.asarray(assemble(present(problem, state), params))
            values = scipy.linalg.eigvalsh(matrix, check_finite=True)[::-1]
            steps.append(int(now["step"]))
            found.append(values)
            losses.append(now["loss"])

    measure(problem.params, start)
    if wanted[-1]:
        every = record["evaluate_every"]
        solve(
            problem, prepared.solver, wanted[-1], key=key, evaluate_every=every, progress=not quiet,
            callback=lambda entry: now.update(step=entry["step"], loss=entry["loss"]), checkpoint=measure, group=1,
        )  # fmt: skip
    return steps, found, losses
