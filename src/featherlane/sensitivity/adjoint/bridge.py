"""What the bridges to other libraries have in common: `featherlane.torch.Dynamics` and `featherlane.jax.Dynamics`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from featherlane.sensitivity.adjoint.dynamics import Dynamics
from featherlane.simulation.batch.batch import Batch


def about(who: str, more: str) -> str:
    """The docstring of a bridge: who makes what of the functions, what is the library's own, and what all have."""
    common = (Bridge.__doc__ or "").partition("\n")[2]
    return f"Steps and rollouts of the worlds of a batch, as functions that {who}.\n\n    {more}\n{common}"


class Bridge(ABC):
    """Steps and rollouts of the worlds of a batch, as functions that another library differentiates.

    All that is no argument (the model, time, warm starts, applied forces, mocap bodies) is as in the batch when this is
    made, at the start of every call: the same arguments give the same bits, and later edits of the batch and its model
    change nothing.  A quaternion in `qpos` of any length stands for its direction; its gradient is tangent to the
    sphere.  There are no second derivatives.

    Args:
        batch: the worlds; it stays as it is.
        nthread: threads, 0: those of the batch.
        frictionloss: with the dry friction of joints and tendons, in derivatives; steps always have it.

    Attributes:
        model: a copy of the batch's model.
        nworld: worlds.

    Raises:
        TypeError: `batch` is no Batch.
        ModelError: nthread or frictionloss out of range.
        UnsupportedFeatureError: the flag `sleep` is on.
    """

    def __init__(self, batch: Batch, nthread: int = 0, frictionloss: bool = True):
        self._dynamics = Dynamics(batch, nthread, frictionloss)
        self.model, self.nworld = self._dynamics.model, batch.nworld

    def step(self, qpos, qvel, act, ctrl, **fields):
        """One step of every world.

        Args:
            qpos, qvel, act: (nworld, nq), (nworld, nv), (nworld, na); None for `act` where na is 0.
            ctrl: (nworld, nu).
            fields: real fields of the model, (nworld, ...) each, in place of the model's numbers (`body_mass=masses`).

        Returns:
            (qpos, qvel, act) after the step, of the arguments' dtype.

        Raises:
            ModelError: arguments of other shapes, dtypes or devices; no such field.
        """
        return tuple(after[:, 0] for after in self.rollout(qpos, qvel, act, self._one_step(ctrl), **fields))

    @abstractmethod
    def rollout(self, qpos, qvel, act, control, **fields) -> tuple[Any, ...]:
        """Steps of every world, one for each control.

        Args:
            qpos, qvel, act: as `step` takes them.
            control: (nworld, nstep, nu), or (nstep, nu) for all worlds.
            fields: as `step` takes them.

        Returns:
            (qpos, qvel, act) after each step, (nworld, nstep, nq), (nworld, nstep, nv), (nworld, nstep, na).

        Raises:
            ModelError: arguments of other shapes, dtypes or devices; no such field.
        """

    @abstractmethod
    def _one_step(self, ctrl) -> Any:
        """Controls (nworld, nu) as those of a rollout of one step; all else as it is."""
