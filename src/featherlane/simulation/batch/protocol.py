"""Defines `Worlds`, the common interface of batches of one model, of several models, or across machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from featherlane.model.model import Model
from featherlane.simulation.batch.filming import Record
from featherlane.simulation.batch.reduction import Reduction
from featherlane.simulation.query.camera import VISIBLE, Camera, Images
from featherlane.simulation.query.objects import Object
from featherlane.simulation.query.pattern import RayPattern
from featherlane.simulation.query.scan import Scan
from featherlane.simulation.world.data import Data
from featherlane.simulation.world.recordings import Control


class Worlds(Protocol):
    """Declares the common interface of `Batch`, `MixedBatch` and `distributed.Batch`: many worlds that step together.

    A function that takes `Worlds` accepts each of the three.  Their arrays differ: `Batch` has live arrays, those of
    `MixedBatch` are padded to the widest model, and `distributed.Batch` returns copies.  Therefore, set the state by
    assignment: `worlds.qpos = values`.

    State fields and derived fields are attributes under MuJoCo's names, with one row per world.

    Attributes:
        nworld: number of worlds.
        dtype: float64 or float32.
    """

    @property
    def nworld(self) -> int: ...

    @property
    def dtype(self) -> np.dtype: ...

    @property
    def status(self) -> dict[str, np.ndarray]:
        """Returns the counts since the last reset of each world, by name, each (nworld,) int64."""
        ...

    @property
    def failures(self) -> list[Any]:
        """Returns, with `record_failures`, a list of `Failure`, each with the number of its world."""
        ...

    def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None: ...

    def bind(self, name: str) -> np.ndarray:
        """Binds an output, which each later call computes; returns its values, (nworld, ...)."""
        ...

    def expand(self, name: str) -> Any:
        """Makes a real model field per-world; returns a live array (`MixedBatch`: one for each group)."""

    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Recomputes the model fields that depend on expanded ones."""

    def set_variant(self, geom: str, ids: ArrayLike | None, variant: str, *, inertia: bool = True) -> None:
        """Gives worlds a variant of a geom, a body, or another group of `load(..., variants=...)`."""

    def step(self, nstep: int = 1, ids: ArrayLike | None = None, stage: str | None = None) -> None:
        """Advances worlds by `nstep` time steps; `ids` are numbers of worlds or a mask, None for all.

        Derived fields up to `stage` ("position", "velocity" or "acceleration") are computed for the new state.
        """

    def forward(self, ids: ArrayLike | None = None) -> None:
        """Computes all derived fields of the present state, without a step."""

    def reset(self, ids: ArrayLike | None = None, keyframe: int | str | np.ndarray = -1, forward: bool = True) -> None:
        """Sets worlds to the model's defaults, or to keyframes; with `forward`, computes bound outputs."""

    def rollout(
        self,
        nstep: int,
        control: Control | None = None,
        record: Record = ("qpos",),
        ids: ArrayLike | None = None,
        out: Mapping[str, np.ndarray] | None = None,
        reduce: Reduction | None = None,
    ) -> Any:
        """Advances worlds by `nstep` steps; returns name -> (n, nstep, ...), or reductions of it over worlds.

        `record` lists names of fields, and cameras.  Images are "camera/output" -> (n, nstep, height, width, ...).
        """

    def camera(
        self,
        camera: int | str | Camera,
        width: int | None = None,
        height: int | None = None,
        output: str | Sequence[str] = ("depth",),
        ids: ArrayLike | None = None,
        *,
        geomgroup: ArrayLike | None = VISIBLE,
        near: float | None = None,
        far: float | None = None,
    ) -> Images:
        """Computes images of a camera in each world's present state."""
        ...

    def scan(
        self,
        body: Object,
        pattern: RayPattern | ArrayLike,
        alignment: str = "base",
        output: str | Sequence[str] = ("distance",),
        ids: ArrayLike | None = None,
        *,
        geomgroup: ArrayLike | None = None,
        bodyexclude: int | str | None = "parent",
        cutoff: float = np.inf,
    ) -> Scan:
        """Casts the rays of a pattern from a frame in each world's present state."""
        ...

    def height_scan(
        self,
        body: Object,
        pattern: RayPattern | ArrayLike,
        alignment: str = "yaw",
        ids: ArrayLike | None = None,
        *,
        geomgroup: ArrayLike | None = None,
        cutoff: float = np.inf,
        miss: float | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Computes heights of a frame above the surfaces that the rays of a pattern hit, (n, nray) [m]."""
        ...

    def get_data(self, world: int) -> Data:
        """Returns one world as an `fl.Data` in float64, after `forward`."""
        ...

    def get_model(self, world: int) -> Model:
        """Returns one world's model: a copy with its expanded fields."""
        ...

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Returns copies of all persistent data, for `restore`, np.savez and pickle."""
        ...

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Restores a checkpoint; the simulation continues bitwise identically."""
