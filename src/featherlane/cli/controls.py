"""Where a simulation's controls come from: nowhere, a random generator, a file of numbers, a function."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

from featherlane.errors import ModelError
from featherlane.lanes import Kernel

HOLD = 0.1  # s, how long a random control is held
UNLIMITED = 1.0  # bound of random controls of an actuator without a range


def control_range(model) -> np.ndarray:
    """Lower and upper bounds of random controls, (nu, 2); `model` is a Model or an MjModel."""
    bounds = np.tile([-UNLIMITED, UNLIMITED], (model.nu, 1))
    limited = np.asarray(model.actuator_ctrllimited, bool)
    bounds[limited] = np.asarray(model.actuator_ctrlrange)[limited]
    return bounds


class Zero:
    """Controls stay as they are: zero, or a keyframe's."""

    nstep = None

    def advance(self, batch, start: int, nstep: int) -> None:
        """Steps start .. start + nstep - 1."""
        batch.step(nstep)


class Random:
    """Uniform within the actuators' ranges (-1 to 1 where there is none), new every 0.1 s.

    A world's controls depend on the seed and its number alone, not on how many worlds there are.
    """

    nstep = None

    def __init__(self, model, seed: int, timestep: float):
        self.bounds, self.seed = control_range(model), seed
        self.hold = max(1, round(HOLD / timestep))

    def draw(self, k: int, nworld: int) -> np.ndarray:
        """The k-th controls of all worlds, (nworld, nu)."""
        unit = np.random.default_rng([self.seed, k]).random((nworld, len(self.bounds)))
        return self.bounds[:, 0] + unit * (self.bounds[:, 1] - self.bounds[:, 0])

    def steer(self, data, k: int) -> None:
        """Set the controls of one world before step k, where new ones are due."""
        if k % self.hold == 0:
            data.ctrl = self.draw(k // self.hold, 1)[0]

    def advance(self, batch, start: int, nstep: int) -> None:
        """Steps start .. start + nstep - 1."""
        stop = start + nstep
        while start < stop:
            k = start // self.hold
            following = min(stop, (k + 1) * self.hold)
            batch.ctrl = self.draw(k, batch.nworld)
            batch.step(following - start)
            start = following


class Tape:
    """Controls of each step from an array, (nstep, nu) for all worlds or (nworld, nstep, nu)."""

    def __init__(self, values: np.ndarray, source: str, model, nworld: int):
        _check(values, source, model.nu, nworld)
        self.values = np.broadcast_to(values, (nworld, *values.shape[-2:]))
        self.nstep = values.shape[-2]

    def advance(self, batch, start: int, nstep: int) -> None:
        """Steps start .. start + nstep - 1."""
        batch.rollout(nstep, control=self.values[:, start : start + nstep], record=())


class Controller:
    """Controls that a function `control(batch, step)` computes before each step: what broadcasts to (nworld, nu)."""

    nstep = None

    def __init__(self, function, source: str):
        self.function, self.source = function, source

    def advance(self, batch, start: int, nstep: int) -> None:
        """Steps start .. start + nstep - 1."""
        for k in range(start, start + nstep):
            given = self.function(batch, k)
            try:
                batch.ctrl = given
            except ModelError as error:
                raise ModelError(f"{self.source}: step {k}: {error}") from None
            batch.step()


class Compiled:
    """Controls that a kernel `control(m, d)` sets within each step."""

    nstep = None

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def advance(self, batch, start: int, nstep: int) -> None:
        """Steps start .. start + nstep - 1."""
        batch.rollout(nstep, control=self.kernel, record=())


def _function(given: str) -> Controller | Compiled:
    """The function that `file.py` or `file.py:name` means; its name is `control` if none is given."""
    file, _, name = given.partition(".py")
    path, name = Path(file + ".py").expanduser(), name.removeprefix(":") or "control"
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    function = runpy.run_path(str(path)).get(name)
    if not callable(function):
        raise ModelError(f"{path}: has no function {name}(batch, step) and no kernel {name}(m, d)")
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
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise ModelError(f"{source}: got {values[at]} at {at}, allowed are finite numbers")


def read_controls(given: str, model, nworld: int, seed: int) -> Zero | Random | Tape | Controller | Compiled:
    """The source that `--controls` names.

    Raises:
        ModelError: neither a known word, nor a readable .npy file of the right shape, nor a function in a .py file.
    """
    if given == "zero":
        return Zero()
    if given == "random":
        return Random(model, seed, model.opt.timestep)
    if given.endswith(".py") or ".py:" in given:
        return _function(given)
    path = Path(given).expanduser()
    if path.suffix != ".npy":
        raise ModelError(
            f"controls: got {given!r}, allowed are zero, random, a file that ends in .npy, or file.py:function"
        )
    try:
        values = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError) as error:
        raise ModelError(f"{path}: cannot be read as a NumPy array: {error}") from None
    return Tape(values, str(path), model, nworld)
