"""Common part of the adapters to other libraries: `Dynamics` of `featherlane.integrations.torch` and `.jax`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from featherlane.engine.simulation.batch.batch import Batch
from featherlane.tools.sensitivity.adjoint.dynamics import Dynamics

Array = TypeVar("Array")  # of the other library


class Bridge(ABC, Generic[Array]):
    """Computes steps and rollouts of a batch's worlds as functions that another library differentiates.

    All other inputs (model, time, warm starts, applied forces, mocap bodies) are copied from the batch at construction
    and restored at the start of every call.  The same arguments give bitwise identical results, and later edits of the
    batch and its model have no effect.  A quaternion in `qpos` of any nonzero length represents its direction; its
    gradient is tangent to the sphere.  Second derivatives are not supported.

    Args:
        batch: the worlds; it is not changed.
        nthread: threads, 0: those of the batch.
        frictionloss: include the dry friction of joints and tendons in derivatives; steps always include it.

    Attributes:
        model: a copy of the batch's model.
        nworld: worlds.

    Raises:
        TypeError: `batch` is not a Batch.
        ModelError: nthread or frictionloss out of range.
        UnsupportedFeatureError: the flag `sleep` or `speculative` is on.
    """

    def __init_subclass__(cls, who: str, more: str) -> None:
        """Sets the docstring of an adapter: the library `who`, what is specific to it, and the common part."""
        super().__init_subclass__()
        common = (Bridge.__doc__ or "").partition("\n")[2]
        cls.__doc__ = f"Steps and rollouts of the worlds of a batch, as functions that {who}.\n\n    {more}\n{common}"

    def __init__(self, batch: Batch, nthread: int = 0, frictionloss: bool = True):
        self._dynamics = Dynamics(batch, nthread, frictionloss)
        self.model, self.nworld = self._dynamics.model, batch.nworld

    def step(
        self, qpos: Array, qvel: Array, act: Array | None, ctrl: Array, **fields: Array
    ) -> tuple[Array, Array, Array]:
        """Computes one step of every world.

        Args:
            qpos, qvel, act: (nworld, nq), (nworld, nv), (nworld, na); None for `act` if na is 0.
            ctrl: (nworld, nu).
            fields: real fields of the model, (nworld, ...) each, which replace the model's values (`body_mass=masses`).

        Returns:
            (qpos, qvel, act) after the step, in the arguments' dtype.

        Raises:
            ModelError: arguments of invalid shapes, dtypes or devices; an unknown field.
        """
        after: tuple[Any, Any, Any] = self.rollout(qpos, qvel, act, self._one_step(ctrl), **fields)
        return after[0][:, 0], after[1][:, 0], after[2][:, 0]

    @abstractmethod
    def rollout(
        self, qpos: Array, qvel: Array, act: Array | None, control: Array, **fields: Array
    ) -> tuple[Array, Array, Array]:
        """Computes steps of every world, one for each control.

        Args:
            qpos, qvel, act: as for `step`.
            control: (nworld, nstep, nu), or (nstep, nu) for all worlds.
            fields: as for `step`.

        Returns:
            (qpos, qvel, act) after each step, (nworld, nstep, nq), (nworld, nstep, nv), (nworld, nstep, na).

        Raises:
            ModelError: arguments of invalid shapes, dtypes or devices; an unknown field.
        """

    @abstractmethod
    def _one_step(self, ctrl: Array) -> Array:
        """Returns controls (nworld, nu) as those of a rollout of one step; all else unchanged."""
