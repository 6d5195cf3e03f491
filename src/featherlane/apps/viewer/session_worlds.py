"""The worlds of a session, in one or several batches, and edits of their models."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from featherlane import Batch, Model, set_const
from featherlane.apps.viewer.history import Kept, bad_steps
from featherlane.apps.viewer.mouse_forces import MouseForces
from featherlane.errors import ModelError, near
from featherlane.extension import LARGEST, bounded, whole_argument


@dataclass
class Part:
    """A batch of a session; parts differ in model options, which worlds of one batch share."""

    batch: Batch
    mouse: MouseForces
    label: str = ""
    first: int = 0  # number of its first world in the session

    def kept(self) -> Kept:
        """Returns the persistent state of the worlds."""
        return {name: array for name, array in self.batch.checkpoint().items() if not name.startswith("model.")}

    def restore(self, kept: Kept) -> None:
        """Restores a persistent state under the present model."""
        own = {f"model.{name}": rows for name, rows in self.batch.expanded_fields.items()}
        self.batch.restore(kept | own)

    def world(self, row: int) -> tuple[np.ndarray, np.ndarray, tuple]:
        """Returns position, velocity and poses of mocap bodies of a world."""
        b = self.batch
        return b.qpos[row], b.qvel[row], (b.mocap_pos[row], b.mocap_quat[row])

    @classmethod
    def of(cls, batch: Batch, label: str = "") -> Part:
        """Returns a part with the session's batch; failures are reported in the page, not by a warning."""
        batch.mute()
        return cls(batch, MouseForces(batch.model), label)


class Worlds:
    """Worlds that are numbered consecutively through all parts.

    Attributes:
        model: model of the first part.
        epoch: number of model edits so far.
    """

    def __init__(self, parts: Sequence[Part]):
        self.parts = tuple(parts)
        self.model: Model = self.parts[0].batch.model
        self.nworld, self.epoch = 0, 0
        for part in self.parts:
            part.first, self.nworld = self.nworld, self.nworld + part.batch.nworld

    @property
    def timestep(self) -> float:
        return float(self.model.opt.timestep)

    def locate(self, world: int) -> tuple[Part, int]:
        """Returns the part of a world and its row in the part.

        Raises:
            ModelError: the world does not exist.
        """
        whole_argument("world", world, 0, self.nworld - 1)
        part = next(part for part in reversed(self.parts) if part.first <= world)
        return part, int(world) - part.first

    def rows(self, name: str) -> np.ndarray:
        """Returns a per-world field of all parts, (nworld, ...)."""
        return np.concatenate([getattr(part.batch, name) for part in self.parts])

    @property
    def bad_worlds(self) -> list[int]:
        """Returns worlds with non-finite or out-of-range state or controls since their last reset."""
        return np.flatnonzero(np.concatenate([bad_steps(part.batch) for part in self.parts])).tolist()

    def set_control(self, actuator: int, value: float, worlds: Sequence[int] | None = None) -> None:
        """Sets a control of some worlds, or of all."""
        bounded("control", value, -LARGEST, LARGEST)
        for part, rows in self._chosen(worlds):
            part.batch.ctrl[rows, actuator] = value

    def _chosen(self, worlds: Sequence[int] | None) -> list[tuple[Part, slice | list[int]]]:
        """Returns the parts and the rows in them."""
        if worlds is None:
            return [(part, slice(None)) for part in self.parts]
        rows: dict[int, list[int]] = {}
        for world in worlds:
            part, row = self.locate(world)
            rows.setdefault(self.parts.index(part), []).append(row)
        return [(self.parts[k], chosen) for k, chosen in rows.items()]

    # ---- the model ---------------------------------------------------------------------------------------------------
    def set_option(self, name: str, value) -> None:
        """Sets an option of all worlds.

        Raises:
            ModelError: the option does not exist, the value is invalid, or it conflicts with other options.
        """
        known = [option for option in dir(self.model.opt) if not option.startswith("_")]
        if name not in known:
            raise ModelError(f"unknown option {name!r}{near(name, known)}")
        if name == "contact_model" and len(self.parts) > 1:
            raise ModelError(
                "option contact_model: not allowed in a side-by-side comparison, which has one world "
                "for each contact model"
            )
        before = [copy.copy(getattr(part.batch.model.opt, name)) for part in self.parts]
        done = 0
        try:
            for part in self.parts:
                setattr(part.batch.model.opt, name, value)
                done += 1
        except ModelError:
            for part, old in zip(self.parts[:done], before, strict=False):
                setattr(part.batch.model.opt, name, old)
            raise
        self.epoch += 1

    def mass(self, body: int, world: int = 0) -> float:
        """Returns the mass of a body in a world [kg]."""
        return float(self._field("body_mass", world)[body])

    def set_mass(self, body: int, mass: float, worlds: Sequence[int] | None = None) -> None:
        """Sets the mass [kg] of a body in some worlds, or in all; its inertia scales with the mass (density changes).

        Raises:
            ModelError: the mass is not positive, or the body has no mass.
        """
        old = self.mass(body, 0 if worlds is None else worlds[0])
        name = self.model.names("body")[body] or body
        bounded(f"body {name}: mass", mass, 0.0, LARGEST, above=True)
        if not old > 0.0:
            raise ModelError(f"body {name}: its mass is 0 and cannot be scaled")
        factor = mass / old

        def scale(rows: np.ndarray) -> None:
            rows[:, body] *= factor

        for field in ("body_mass", "body_inertia"):
            self._edit(field, worlds, scale)
        for part, rows in self._chosen(worlds):
            if worlds is None:
                set_const(part.batch.model)
            if part.batch.expanded_fields:
                part.batch.set_const(None if worlds is None or isinstance(rows, slice) else rows)
        self.epoch += 1

    def friction(self, body: int, world: int = 0) -> float | None:
        """Returns the sliding friction of a body's first geom in a world; None without geoms."""
        geoms = self._geoms(body)
        return float(self._field("geom_friction", world)[geoms[0], 0]) if len(geoms) else None

    def set_friction(self, body: int, friction: float, worlds: Sequence[int] | None = None) -> None:
        """Sets the sliding friction coefficient of all geoms of a body in some worlds, or in all.

        Raises:
            ModelError: the coefficient is negative, or the body has no geoms.
        """
        geoms, name = self._geoms(body), self.model.names("body")[body] or body
        bounded(f"body {name}: friction", friction, 0.0, LARGEST)
        if not len(geoms):
            raise ModelError(f"body {name}: it has no geoms, so it has no friction")

        def slide(rows: np.ndarray) -> None:
            rows[:, geoms, 0] = friction

        self._edit("geom_friction", worlds, slide)
        self.epoch += 1

    def _geoms(self, body: int) -> np.ndarray:
        return np.flatnonzero(np.asarray(self.model.geom_bodyid) == body)

    def _field(self, name: str, world: int) -> np.ndarray:
        part, row = self.locate(world)
        rows = part.batch.expanded(name)
        return getattr(part.batch.model, name) if rows is None else rows[row]

    def _edit(self, name: str, worlds: Sequence[int] | None, edit: Callable[[np.ndarray], None]) -> None:
        """Changes a field of the model in some worlds, or in all; `edit` receives rows of worlds."""
        for part, rows in self._chosen(worlds):
            if worlds is not None:
                own = part.batch.expand(name)
                changed = own[rows]
                edit(changed)
                own[rows] = changed
                continue
            edit(getattr(part.batch.model, name)[None])
            own = part.batch.expanded(name)
            if own is not None:
                edit(own)
