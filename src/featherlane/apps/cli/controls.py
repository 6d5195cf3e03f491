"""Sources of controls for a simulation: zero, random, an array, or a function."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from featherlane.apps.cli.user_file import function_in, with_model_errors
from featherlane.apps.measure.controls import Random
from featherlane.errors import ModelError
from featherlane.extension import check_finite, read_array
from featherlane.lanes import Kernel


class Zero:
    """Leaves the controls unchanged: zero, or those of a keyframe."""

    nstep = None

    def advance(self, batch, start: int, nstep: int) -> None:
        """Takes steps start .. start + nstep - 1."""
        batch.step(nstep)


class Tape:
    """Reads controls of each step from an array, (nstep, nu) for all worlds or (nworld, nstep, nu)."""

    def __init__(self, values: np.ndarray, source: str, model, nworld: int):
        _check(values, source, model.nu, nworld)
        self.values = np.broadcast_to(values, (nworld, *values.shape[-2:]))
        self.nstep = values.shape[-2]

    def advance(self, batch, start: int, nstep: int) -> None:
        """Takes steps start .. start + nstep - 1."""
        batch.rollout(nstep, control=self.values[:, start : start + nstep], record=())


class Controller:
    """Calls `control(batch, step)` before each step; its result broadcasts to (nworld, nu)."""

    nstep = None

    def __init__(self, function, source: str):
        self.function, self.source = with_model_errors(function, source), source

    def advance(self, batch, start: int, nstep: int) -> None:
        """Takes steps start .. start + nstep - 1."""
        for k in range(start, start + nstep):
            given = self.function(batch, k)
            try:
                batch.ctrl = given
            except ModelError as error:
                raise ModelError(f"{self.source}: step {k}: {error}") from None
            batch.step()


class Compiled:
    """Runs a kernel `control(m, d)` within each step."""

    nstep = None

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def advance(self, batch, start: int, nstep: int) -> None:
        """Takes steps start .. start + nstep - 1."""
        batch.rollout(nstep, control=self.kernel, record=())


def _function(given: str) -> Controller | Compiled:
    """Returns the function of `file.py` or `file.py:name`; the default name is `control`."""
    file, _, name = given.partition(".py")
    path, name = Path(file + ".py").expanduser(), name.removeprefix(":") or "control"
    function = function_in(path, name, f"function {name}(batch, step) or kernel {name}(m, d)")
    if isinstance(function, Kernel):
        return Compiled(function)
    return Controller(function, f"{path}:{name}")


def _check(values: np.ndarray, source: str, nu: int, nworld: int) -> None:
    allowed = f"allowed is (steps, {nu}) or ({nworld}, steps, {nu})"
    fits = values.ndim in (2, 3) and values.shape[-1] == nu and values.shape[-2] > 0
    if not fits or (values.ndim == 3 and values.shape[0] != nworld):
        raise ModelError(f"{source}: got shape {values.shape}, {allowed}")
    if values.dtype.kind not in "fiu":
        raise ModelError(f"{source}: got {values.dtype}, allowed are real numbers")
    check_finite(source, values)


def control_source(given: str, model, nworld: int, seed: int) -> Zero | Random | Tape | Controller | Compiled:
    """Returns the source of controls for `--controls`.

    Raises:
        ModelError: it is neither a known word, a readable .npy file of the right shape, nor a function in a .py file.
    """
    if given == "zero":
        return Zero()
    if given == "random":
        return Random(model, seed, model.opt.timestep)
    if given.endswith(".py") or ".py:" in given:
        return _function(given)
    path = Path(given).expanduser()
    if path.suffix != ".npy":
        raise ModelError(f"controls: got {given!r}, allowed are zero, random, FILE.npy and FILE.py:FUNCTION")
    return Tape(read_array(path, str(path)), str(path), model, nworld)
