"""`Gripper`: actions open and close the fingers of a gripper.

    c <- clip(c + speed sign(action), -1, 1),   ctrl_i = offset_i + gain_i c_j(i)

c_j is the closing of column j of an action.  Initially, offset is the centre of the actuator's `ctrlrange`, and gain is
half its width, times the direction.
Source: the grippers of robosuite 1.5 and 1.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel, kernel_factory
from featherlane.engine.model.arguments import bounded, instance, whole_argument
from featherlane.engine.model.assignment import broadcast_reals, flag
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.errors import ModelError
from featherlane.tools.controllers.actions import Part
from featherlane.tools.controllers.chain import several_actuators


@kernel_factory
def grip(actuators: tuple[int, ...], columns: tuple[int, ...], width: int) -> Kernel:
    """Returns the kernel of a gripper: the actuators, the column of an action for each, and the number of columns."""
    n = len(actuators)

    @kernel
    def control(m, d, p):
        """Sets the controls of the fingers."""
        for j in range(width):
            p.closing[j] = clip(p.closing[j] + p.rate[j], -1.0, 1.0)
        for i in unrolled(range(n)):
            d.ctrl[actuators[i]] = fma(p.gain[i], p.closing[columns[i]], p.offset[i])

    return control


class Gripper(Part):
    """Closes and opens the fingers of a gripper by the sign of actions.

        hand = fl.controllers.Gripper(batch, ["finger1", "finger2"], directions=[-1, 1])
        hand.set_goal(np.ones((batch.nworld, 1)))  # close

    Args:
        batch: a `Batch`.
        actuators: names or ids of the actuators, each with a `ctrlrange`.
        directions: (n,) 1 if the actuator has its greatest control when closed, -1 if it has its least; or one number.
        columns: (n,) the column of an action that each actuator follows; None: all follow the only column.
        speed: change of the closing by an action, half of the range being 1; None: the closing is the action.
        binary: whether only the sign of an action counts.
        each_step: whether the closing changes in each step of a rollout, as in robosuite 1.4, not once per action.

    Attributes:
        closing: (nworld, k) from -1, open, to 1, closed; initially 0.
        rate: (nworld, k) change of the closing in each step.
        gain, offset: (nworld, n) the control of an actuator is offset + gain * closing.
        action_width: k.

    Raises:
        ModelError: an actuator without `ctrlrange`, wrong shapes or values.
        UnknownNameError: an unknown actuator.
    """

    def __init__(
        self,
        batch: Any,
        actuators: Sequence[str | int],
        *,
        directions: ArrayLike = 1.0,
        columns: Sequence[int] | None = None,
        speed: float | None = 0.2,
        binary: bool = True,
        each_step: bool = False,
    ):
        model: Model = instance("batch", batch, Batch, "a Batch").model
        ids = several_actuators(model, actuators)
        for key, i in zip(actuators, ids, strict=True):
            if not model.actuator_ctrllimited[i]:
                raise ModelError(f"actuator {key!r}: it has no ctrlrange, allowed are actuators with one")
        given = [0] * len(ids) if columns is None else list(columns)
        if len(given) != len(ids):
            raise ModelError(f"columns: got {len(given)}, allowed are {len(ids)}, one for each actuator")
        chosen = tuple(whole_argument(f"columns[{k}]", j, 0, len(ids) - 1) for k, j in enumerate(given))
        width = max(chosen) + 1
        if each_step and speed is None:
            raise ModelError("each_step: got True without a speed, allowed is it with a speed")
        numbers = {"closing": width, "rate": width, "gain": len(ids), "offset": len(ids)}
        ends = np.asarray(model.actuator_ctrlrange)[ids]
        signs = broadcast_reals("directions", directions, (len(ids),))
        if not np.isfinite(signs).all():
            raise ModelError(f"directions: got {signs.tolist()}, allowed are finite numbers")
        super().__init__(
            *(batch, grip(tuple(ids), chosen, width), None, (-1.0, 1.0), width), actuators=ids, numbers=numbers
        )
        self.gain, self.offset = signs * (ends[:, 1] - ends[:, 0]) / 2.0, ends.mean(1)
        change = None if speed is None else bounded("speed", speed, 0.0)
        self.__dict__.update(speed=change, binary=flag("binary", binary), each_step=flag("each_step", each_step))

    def _set_goal(self, values: np.ndarray, desired: bool) -> None:
        if self.speed is None:
            self.closing = values
            return
        change = self.speed * (np.sign(values) if self.binary else values)
        if self.each_step:
            self.rate = change
        else:
            self.closing = np.clip(self.closing + change, -1.0, 1.0)

    def _reset(self, ids: np.ndarray) -> None:
        self.closing[ids] = self.rate[ids] = 0.0
