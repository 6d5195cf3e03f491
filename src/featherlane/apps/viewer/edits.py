"""Edits of the models of worlds that a page owns: options, masses and friction of bodies, controls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from featherlane import set_const
from featherlane.apps.viewer.source import Clock
from featherlane.errors import ModelError, near
from featherlane.extension import bounded


class Edits(Clock):
    """Worlds whose models and controls can be edited."""

    epoch = 0  # number of model edits so far

    @property
    def timestep(self) -> float:
        """Returns the time step of all models [s]."""
        return float(self.model.opt.timestep)

    def set_control(self, actuator: int, value: float, worlds: Sequence[int] | None = None) -> None:
        """Sets a control of some worlds, or of all."""
        bounded("control", value)
        self.batch.ctrl[slice(None) if worlds is None else list(worlds), actuator] = value

    def set_option(self, name: str, value) -> None:
        """Sets an option of all worlds, or of none if one of them refuses it."""
        known = [option for option in dir(self.model.opt) if not option.startswith("_")]
        if name not in known:
            raise ModelError(f"unknown option {name!r}{near(name, known)}")
        if name == "contact_model" and self.labels:
            raise ModelError(
                "option contact_model: not allowed in a side-by-side comparison, which has one world "
                "for each contact model"
            )
        models = self.batch.models
        before = [copy.copy(getattr(model.opt, name)) for model in models]
        done = 0
        try:
            for model in models:
                setattr(model.opt, name, value)
                done += 1
        except ModelError:
            for model, old in zip(models[:done], before, strict=False):
                setattr(model.opt, name, old)
            raise
        self.epoch += 1

    def mass(self, body: int, world: int = 0) -> float:
        """Returns the mass of a body in a world [kg]."""
        return float(self._field("body_mass", world)[body])

    def set_mass(self, body: int, mass: float, worlds: Sequence[int] | None = None) -> None:
        """Sets the mass [kg] of a body in some worlds, or in all; the inertia scales with it (density changes)."""
        old = self.mass(body, 0 if worlds is None else worlds[0])
        name = self.model.names("body")[body] or body
        bounded(f"body {name}: mass", mass, 0.0, above=True)
        if not old > 0.0:
            raise ModelError(f"body {name}: its mass is 0 and cannot be scaled")
        for field in ("body_mass", "body_inertia"):
            self._edit(field, worlds, body, lambda values: values * (mass / old))
        if worlds is None:
            for model in self.batch.models:
                set_const(model)
        if any(group.expanded_fields for group in self.batch.groups):
            self.batch.set_const(worlds)
        self.epoch += 1

    def friction(self, body: int, world: int = 0) -> float | None:
        """Returns the sliding friction of a body's first geom in a world; None without geoms."""
        geoms = self._geoms(body)
        return float(self._field("geom_friction", world)[geoms[0], 0]) if len(geoms) else None

    def set_friction(self, body: int, friction: float, worlds: Sequence[int] | None = None) -> None:
        """Sets the sliding friction coefficient of all geoms of a body in some worlds, or in all."""
        geoms, name = self._geoms(body), self.model.names("body")[body] or body
        bounded(f"body {name}: friction", friction, 0.0)
        if not len(geoms):
            raise ModelError(f"body {name}: it has no geoms, so it has no friction")

        self._edit("geom_friction", worlds, (geoms, 0), lambda values: friction)
        self.epoch += 1

    def _geoms(self, body: int) -> np.ndarray:
        return np.flatnonzero(np.asarray(self.model.geom_bodyid) == body)

    def _field(self, name: str, world: int) -> np.ndarray:
        group, row = self.locate(world)
        rows = group.expanded(name)
        return getattr(group.model, name) if rows is None else rows[row]

    def _edit(self, name: str, worlds: Sequence[int] | None, at: Any, edit: Callable[[Any], Any]) -> None:
        """Changes the elements `at` of a field of the model in some worlds, or in all."""
        if worlds is not None:
            owners = [(self.batch.expand(name), worlds)]
        else:
            shared = [(getattr(group.model, name)[None], (0,)) for group in self.batch.groups]
            own = [(group.expanded(name), range(group.nworld)) for group in self.batch.groups]
            owners = shared + [(rows, ids) for rows, ids in own if rows is not None]
        for rows, ids in owners:
            for world in ids:
                row = rows[world]
                row[at] = edit(row[at])
                rows[world] = row
