"""Rollouts as functions of arrays, and their products with cotangents: what bridges to other libraries stand on.

States go in and out by coordinates, (qpos, qvel, act).  A quaternion of any length stands for its direction, so the
function is defined around the unit sphere, and its derivatives are those of its four numbers (cotangent.py).
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np

from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.model.arguments import instance
from featherlane.model.assignment import flag, reals
from featherlane.sensitivity.adjoint.cotangent import Coordinates
from featherlane.sensitivity.adjoint.product_worlds import steps_of
from featherlane.sensitivity.adjoint.sweep import Steps, sweep
from featherlane.sensitivity.adjoint.trajectory import States, Trajectory, worlds_like
from featherlane.sensitivity.derivative.parameters import Parameters
from featherlane.sensitivity.derivative.transition import check, threads
from featherlane.simulation.batch.batch import Batch

STATE = ("qpos", "qvel", "act")


class Run(NamedTuple):
    """A rollout that was run, as its gradient needs it.

    Attributes:
        trajectory: its states.
        fields: the model's numbers that were given, by name.
        after: (qpos, qvel, act) after each step, each (nworld, nstep, n).
    """

    trajectory: Trajectory
    fields: dict[str, np.ndarray]
    after: tuple[np.ndarray, ...]


class Dynamics:
    """Rollouts of the worlds of a batch, as functions of where they start, of controls and of the model's numbers.

    All else (the model, time, warm starts, applied forces, mocap bodies) is as in the batch when this is made, at the
    start of every rollout: the same arguments give the same bits, and later edits of the batch and its model change
    nothing.

    Args:
        batch: the worlds; it stays as it is.
        nthread: threads, 0: those of the batch.
        frictionloss: with dry friction, in derivatives.

    Attributes:
        model: a copy of the batch's model, which nobody should edit.
        nworld, dtype: of the worlds.
        sizes: of a state: nq, nv, na.

    Raises:
        TypeError: `batch` is no Batch.
        UnsupportedFeatureError: as `linearize` does.
    """

    def __init__(self, batch: Batch, nthread: int = 0, frictionloss: bool = True):
        instance("batch", batch, Batch, "a Batch", ArgumentTypeError)
        check(batch.model, batch)
        self.model, self.nworld, self.dtype = copy.deepcopy(batch.model), batch.nworld, batch.dtype
        self.nthread, self.frictionloss = threads(nthread), flag("frictionloss", frictionloss)
        self.sizes = self.model.nq, self.model.nv, self.model.na
        self._start = worlds_like(batch, 1, self.nthread or batch.nthread, self.model)
        self._kept = {name: rows.copy() for name, rows in self._start.arrays.rows.items()}
        self._fields = {name: rows.copy() for name, rows in self._start.arrays.expanded.items()}
        self._coordinates, self._steps = Coordinates(self.model), {}

    def shapes(self, nstep: int) -> dict[str, tuple[int, ...]]:
        """Of the arguments of a rollout."""
        shapes = {name: (self.nworld, n) for name, n in zip(STATE, self.sizes, strict=True)}
        return shapes | {"control": (self.nworld, nstep, self.model.nu)}

    def start(self) -> Batch:
        """The worlds as they were when this was made; they are this one's own, and go on with its next call."""
        return self._worlds({})

    def field_shapes(self, names) -> dict[str, tuple[int, ...]]:
        """Of model fields that are given, by the names that the model has for them; checked."""
        asked = Parameters(self.model, tuple(names))
        known = asked.names
        for name, field in zip(known, asked.fields, strict=True):
            if name != field:
                raise ModelError(f"fields: got {name!r}, allowed are whole fields, as {field!r}")
        return {name: (self.nworld, *np.shape(self.model.__dict__[name])) for name in known}

    def run(self, qpos, qvel, act, control, fields=None) -> Run:
        """A rollout.

        Args:
            qpos, qvel, act: (nworld, n) where worlds start.
            control: (nworld, nstep, nu), at least one step.
            fields: name of a real model field -> (nworld, ...) numbers in its place.

        Raises:
            ModelError: shapes or names that do not fit.
        """
        control = reals("control", control, "are numbers")
        nstep = control.shape[1] if control.ndim == 3 else 0
        if nstep == 0:
            raise ModelError(f"control: got shape {control.shape}, allowed is (nworld, nstep, nu) with a step or more")
        given = {"qpos": qpos, "qvel": qvel, "act": act, "control": control}
        rows = {name: _fitting(name, given[name], shape) for name, shape in self.shapes(nstep).items()}
        fields = fields or {}
        shapes = self.field_shapes(fields)
        numbers = {
            name: _fitting(name, value, shapes[name])
            for name, value in zip(shapes, fields.values(), strict=True)
        }  # fmt: skip
        worlds = self._worlds(numbers)
        for name in STATE:
            worlds.arrays.rows[name][...] = rows[name]
        trajectory = Trajectory(self.model, worlds, rows["control"].astype(self.dtype), 1)
        recorded = trajectory.states()
        after = (np.concatenate([recorded[k][:, 1:], trajectory.last[k][:, None]], 1) if k in recorded
                 else np.zeros((self.nworld, nstep, 0), self.dtype) for k in STATE)  # fmt: skip
        return Run(trajectory, numbers, tuple(after))

    def pull_back(self, run: Run, *cotangents) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, States]:
        """Gradients by (qpos, qvel, act, control, fields) of what has these by the states after each step.

        Args:
            run: what `run` gave.
            cotangents: by qpos, qvel and act after each step, each (nworld, nstep, n), or None for zeros.
        """
        trajectory, (nq, nv, _) = run.trajectory, self.sizes
        nstep = trajectory.control.shape[1]
        given = [np.zeros((self.nworld, nstep, n)) if g is None else np.asarray(g, float)
                 for g, n in zip(cotangents, self.sizes, strict=True)]  # fmt: skip
        by_state = np.concatenate(given, -1)
        unit = run.after[0].astype(float)
        by_dof = np.concatenate([self._coordinates.to_tangent(unit, by_state[..., :nq]), by_state[..., nq:]], -1)

        def loss(k: int, states: States):
            return (None if k == 0 else by_dof[:, k - 1]), None

        self._worlds(run.fields)
        found = sweep(trajectory, by_dof[:, -1], loss, self._steps_of(trajectory, tuple(run.fields)))
        start = trajectory.states()["qpos"][:, 0] if nq else np.zeros((self.nworld, 0))
        by_qpos = self._coordinates.from_tangent(start.astype(float), found.state[:, :nv])
        by_qvel, by_act = found.state[:, nv : 2 * nv], found.state[:, 2 * nv :]
        return by_qpos, by_qvel, by_act, found.control, found.parameters

    def _worlds(self, fields: dict[str, np.ndarray]) -> Batch:
        """The worlds as they were when this was made, with other numbers of the model."""
        worlds = self._start
        for name, rows in self._kept.items():
            worlds.arrays.rows[name][...] = rows
        for name in (*worlds.arrays.expanded, *fields):
            if name in fields:
                worlds.expand(name)[...] = fields[name]
            elif name in self._fields:
                worlds.arrays.expanded[name][...] = self._fields[name]
            else:
                worlds.arrays.expanded[name][...] = self.model.__dict__[name]
        if fields and Parameters(self.model, tuple(fields)).follows:
            worlds.set_const()
        return worlds

    def _steps_of(self, trajectory: Trajectory, names: tuple[str, ...]) -> Steps:
        """Where the derivatives of such a rollout's steps are computed, which is kept from call to call."""
        key = trajectory.control.shape[1], names, tuple(self._start.arrays.expanded)
        if key not in self._steps:
            self._steps = {key: steps_of(trajectory, names, self.nthread, self.frictionloss)}
        return self._steps[key]


def _fitting(name: str, value, shape: tuple[int, ...]) -> np.ndarray:
    """Real numbers of one shape."""
    array = reals(name, value, f"are numbers {shape}")
    if array.shape != shape:
        raise ModelError(f"{name}: got shape {array.shape}, allowed is {shape}")
    return array
