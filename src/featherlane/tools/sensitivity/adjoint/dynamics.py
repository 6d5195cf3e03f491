"""Rollouts as functions of arrays, and their vector-Jacobian products; the adapters to other libraries use them.

States are given and returned as coordinates (qpos, qvel, act).  A quaternion of any nonzero length represents its
direction, so the function is defined around the unit sphere.  Its gradients have four numbers (cotangent.py).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import flag, reals
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.tools.sensitivity.adjoint.cotangent import STATE, Coordinates
from featherlane.tools.sensitivity.adjoint.native import NativeAdjoint, NativeRollout
from featherlane.tools.sensitivity.adjoint.product_worlds import steps_of
from featherlane.tools.sensitivity.adjoint.sweep import Steps, backward_sweep
from featherlane.tools.sensitivity.adjoint.trajectory import States, Trajectory, worlds_like
from featherlane.tools.sensitivity.api.transition import check_differentiable, threads
from featherlane.tools.sensitivity.systems.served import has_products
from featherlane.tools.sensitivity.worlds.parameters import Parameters


class Run(NamedTuple):
    """Holds a finished rollout with the data that its gradient needs.

    Attributes:
        trajectory: its states.
        fields: the given model parameters, by name.
        after: (qpos, qvel, act) after each step, each (nworld, nstep, n).
    """

    trajectory: Trajectory
    fields: dict[str, np.ndarray]
    after: tuple[np.ndarray, ...]


class Dynamics:
    """Computes rollouts of a batch's worlds as functions of initial states, controls and model parameters.

    All other inputs (model, time, warm starts, applied forces, mocap bodies) are copied from the batch at construction
    and restored at the start of every rollout.  The same arguments give bitwise identical results, and later edits of
    the batch and its model have no effect.

    Args:
        batch: the worlds; it is not changed.
        nthread: threads, 0: those of the batch.
        frictionloss: include dry friction in derivatives.

    Attributes:
        model: a copy of the batch's model; do not edit it.
        nworld, dtype: of the worlds.
        sizes: of a state: nq, nv, na.

    Raises:
        TypeError: `batch` is not a Batch.
        UnsupportedFeatureError: as `linearize` does.
    """

    def __init__(self, batch: Batch, nthread: int = 0, frictionloss: bool = True):
        instance("batch", batch, Batch, "a Batch", ArgumentTypeError)
        check_differentiable(batch.model, batch)
        self.model, self.nworld, self.dtype = copy.deepcopy(batch.model), batch.nworld, batch.dtype
        self.nthread, self.frictionloss = threads(nthread), flag("frictionloss", frictionloss)
        self.sizes = self.model.nq, self.model.nv, self.model.na
        self._start = worlds_like(batch, 1, self.nthread or batch.nthread, self.model)
        self._kept = {name: rows.copy() for name, rows in self._start.arrays.rows.items()}
        self._fields = {name: rows.copy() for name, rows in self._start.arrays.expanded.items()}
        self._coordinates, self._steps = Coordinates(self.model), {}

    def shapes(self, nstep: int) -> dict[str, tuple[int, ...]]:
        """Returns the shapes of a rollout's arguments."""
        shapes = {name: (self.nworld, n) for name, n in zip(STATE, self.sizes, strict=True)}
        return shapes | {"control": (self.nworld, nstep, self.model.nu)}

    def coordinates(self, arrays: Any = np) -> Coordinates:
        """Returns what converts gradients between coordinates and DoFs.

        Args:
            arrays: a module with NumPy's functions for the arrays in use.
        """
        return Coordinates(self.model, arrays)

    def native_rollout(self, nstep: int) -> NativeRollout:
        """Returns rollouts of nstep steps without given model fields, as calls that need no Python."""
        return NativeRollout(self._worlds({}), nstep)

    def native_adjoint(self, nstep: int) -> NativeAdjoint | None:
        """Returns rollouts of nstep steps and their adjoint as calls; None without matrix-free products."""
        if self.dtype != np.float64 or not has_products(self.model):
            return None
        return NativeAdjoint(self._worlds({}), nstep, self.frictionloss)

    def field_shapes(self, names: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Checks names of given model fields and returns their shapes by name."""
        chosen = Parameters(self.model, tuple(names))
        known = chosen.names
        for name, field in zip(known, chosen.fields, strict=True):
            if name != field:
                raise ModelError(f"fields: got {name!r}, allowed are whole fields, for example {field!r}")
        return {name: (self.nworld, *np.shape(self.model.__dict__[name])) for name in known}

    def run(
        self,
        qpos: ArrayLike,
        qvel: ArrayLike,
        act: ArrayLike,
        control: ArrayLike,
        fields: Mapping[str, ArrayLike] | None = None,
    ) -> Run:
        """Runs a rollout.

        Args:
            qpos, qvel, act: (nworld, n) initial states of the worlds.
            control: (nworld, nstep, nu), at least one step.
            fields: name of a real model field -> (nworld, ...) values that replace it.

        Raises:
            ModelError: invalid shapes or names.
        """
        control = reals("control", control, "are numbers")
        nstep = control.shape[1] if control.ndim == 3 else 0
        if nstep == 0:
            raise ModelError(
                f"control: got shape {control.shape}, allowed is (nworld, nstep, nu) with at least one step"
            )
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

    def pull_back(
        self, run: Run, *cotangents: ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, States]:
        """Computes gradients by (qpos, qvel, act, control, fields) from gradients by the states after each step.

        Args:
            run: the result of `run`.
            cotangents: gradients by qpos, qvel and act after each step, each (nworld, nstep, n); None for zeros.
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
        found = backward_sweep(trajectory, by_dof[:, -1], loss, self._steps_of(trajectory, tuple(run.fields)))
        start = trajectory.states()["qpos"][:, 0] if nq else np.zeros((self.nworld, 0))
        by_qpos = self._coordinates.from_tangent(start.astype(float), found.state[:, :nv])
        by_qvel, by_act = found.state[:, nv : 2 * nv], found.state[:, 2 * nv :]
        return by_qpos, by_qvel, by_act, found.control, found.parameters

    def _worlds(self, fields: dict[str, np.ndarray]) -> Batch:
        """Returns the worlds in their state at construction, with the given model parameters."""
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
        """Returns the object that differentiates the steps of such a rollout; it is kept from call to call."""
        key = trajectory.control.shape[1], names, tuple(self._start.arrays.expanded)
        if key not in self._steps:
            self._steps = {key: steps_of(trajectory, names, self.nthread, self.frictionloss)}
        return self._steps[key]


def _fitting(name: str, value: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Checks that a value is real and of the given shape, and returns it as an array."""
    array = reals(name, value, f"are numbers {shape}")
    if array.shape != shape:
        raise ModelError(f"{name}: got shape {array.shape}, allowed is {shape}")
    return array
