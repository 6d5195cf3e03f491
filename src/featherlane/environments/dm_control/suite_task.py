"""Base class of dm_control's tasks: models and rewards of the package, indices by name, collision-free states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np

from featherlane import Batch
from featherlane.environments.task import Task
from featherlane.extension import required

XX, XZ, ZX, ZY, ZZ = 0, 2, 6, 7, 8  # elements of a rotation matrix that is stored by rows


@dataclass(kw_only=True)
class SuiteTask(Task):
    """A task of dm_control's suite.

    Attributes:
        frame_skip: time steps per action.
        camera_id, width, height: rendering options; the default camera is the model's first.
    """

    frame_skip: int = 1
    camera_id: int | None = 0
    width: int = 320
    height: int = 240

    # attributes of the task, not keyword arguments
    name: ClassVar[str]
    file: ClassVar[str]
    limit: ClassVar[int] = 1000
    reward_threshold: ClassVar[float | None] = None
    derived = "dm_control"

    def __post_init__(self) -> None:
        rewards = required("dm_control.utils.rewards", "a task of dm_control")
        self.tolerance: Callable[..., np.ndarray] = rewards.tolerance  # shape of rewards, from 0 to 1
        self.model = self.source(Path(rewards.__file__).parents[1] / "suite" / self.file)
        self._ignored_warning = "MuJoCo: compiler attribute 'settotalmass'"  # dm_control's files have it
        self.max_episode_steps = self.limit

    def prepare(self, worlds: Batch) -> None:
        if "sensordata" in self.fields:
            self.sensordata = worlds.bind("sensordata")  # reading `worlds.sensordata` checks all sensors each time

    def source(self, path: Path) -> Any:
        """Returns what `featherlane.load` takes, for the model file of the domain."""
        return path

    def small_control(self, controls: np.ndarray) -> np.ndarray:
        """Returns 1 for controls (n, nu) of 0, and 0.8 if all have the magnitude 1 or more, (n,)."""
        small = self.tolerance(controls, margin=1.0, sigmoid="quadratic", value_at_margin=0.0)
        return (4.0 + small.mean(axis=1)) / 5.0

    def sample_without_contact(self, worlds: Batch, ids: np.ndarray, sample: Callable[[np.ndarray], None]) -> None:
        """Calls `sample`, which sets states of some worlds, until no world has a contact."""
        while len(ids):
            sample(ids)
            worlds.forward(ids)
            ids = ids[worlds.ncon[ids] > 0]


def parsed(path: Path) -> ElementTree.Element:
    """Returns the XML tree of a model file, which can be edited; its includes have absolute paths."""
    root = ElementTree.parse(path).getroot()
    for include in root.iter("include"):
        include.set("file", str(path.parent / include.attrib["file"]))
    return root


def text(root: ElementTree.Element) -> str:
    """Returns the text of an XML tree."""
    return ElementTree.tostring(root, encoding="unicode")


def sensor_columns(worlds: Batch, *names: str) -> np.ndarray:
    """Returns the columns of sensors in `sensordata`, in this order."""
    model, found = worlds.model, []
    for name in names:
        sensor = model.sensor(name).id
        first = int(model.sensor_adr[sensor])
        found += range(first, first + int(model.sensor_dim[sensor]))
    return np.array(found)


def joint_columns(worlds: Batch, *names: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the columns of joints with one DoF in `qpos` and in `qvel`, in this order."""
    joints = [worlds.model.joint(name).id for name in names]
    return worlds.model.jnt_qposadr[joints].astype(int), worlds.model.jnt_dofadr[joints].astype(int)


def in_frame(vectors: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Returns vectors (n, k, 3) in the frames with axes in the columns of matrices (n, 9)."""
    return vectors @ matrices.reshape(-1, 3, 3)


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Returns the lengths of vectors (n, k), (n,)."""
    return np.sqrt(np.einsum("ni,ni->n", vectors, vectors))
