"""Actions of a policy: `Actions` describes how they are read, `Part` is the base of the controllers that read them.

`set_goal` scales the actions of all worlds in NumPy.  The kernel adds a goal's change to the state, in the next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.arguments import instance, one_of
from featherlane.engine.model.assignment import flag, reals
from featherlane.engine.simulation.batch.arrays import chosen_worlds
from featherlane.engine.simulation.user.control import Controller
from featherlane.errors import ModelError
from featherlane.tools.inverse_kinematics.targets import rows_of_worlds

INPUT_TYPES, GOAL_UPDATE_MODES = ("delta", "absolute"), ("achieved", "desired")
IMPEDANCE_MODES = ("fixed", "variable_kp", "variable")
Pair = tuple[ArrayLike, ArrayLike]
Ends = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False, kw_only=True)
class Actions:
    """Describes how `set_goal` reads actions.  The names are those of robosuite's configurations.

        Actions(output_min=-0.02, output_max=0.02, impedance_mode="variable_kp")

    Attributes:
        input_min, input_max: limits of actions, numbers or (k,) for the k columns; actions are clipped to them.
        output_min, output_max: results of a linear map at these limits; None: those of the controller.
        input_type: `delta`: the goal is the state or the last goal, plus the mapped action (velocities and forces: the
            mapped action); `absolute`: the goal is the action itself.
        impedance_mode: `fixed`: an action has only a goal; `variable_kp`: the stiffness of each direction precedes it,
            and the damping is critical; `variable`: the damping ratio of each direction precedes both.
        kp_limits: (least, greatest) stiffness in actions [1/s^2], numbers or (k,).
        damping_ratio_limits: (least, greatest) damping ratio in actions, numbers or (k,).
        single_precision_rotations: whether rotations of deltas are rounded to float32, as in robosuite.

    A controller checks the values when it is made.
    """

    input_min: ArrayLike = -1.0
    input_max: ArrayLike = 1.0
    output_min: ArrayLike | None = None
    output_max: ArrayLike | None = None
    input_type: str = "delta"
    impedance_mode: str = "fixed"
    kp_limits: Pair = (0.0, 300.0)
    damping_ratio_limits: Pair = (0.0, 10.0)
    single_precision_rotations: bool = False


def limits(name: str, value: Any, n: int, *, least: float = -np.inf, apart: bool = False) -> Ends:
    """Returns the limits (n,) of a pair (lower, upper), each a number or (n,).

    Args:
        least: the least allowed limit.
        apart: whether the limits must differ.

    Raises:
        ModelError: no pair, non-finite numbers, or limits in the wrong order.
    """
    if not isinstance(value, tuple | list | np.ndarray) or len(value) != 2:
        raise ModelError(f"{name}: got {value!r}, allowed is a pair (lower, upper)")
    allowed = f"are finite numbers{f' >= {least:g}' if least > -np.inf else ''} or arrays ({n},) of them"
    ends = [reals(name, end, allowed) for end in value]
    for end in ends:
        if end.shape not in ((), (n,)) or not np.isfinite(end).all() or (end < least).any():
            raise ModelError(f"{name}: got {end.tolist()}, allowed {allowed}")
    low, high = (np.broadcast_to(end, (n,)) for end in ends)
    wrong = np.flatnonzero(high <= low if apart else high < low)
    if len(wrong):
        k, order = wrong[0], "above" if apart else "not below"
        raise ModelError(
            f"{name}[{k}]: got {low[k]:g} and {high[k]:g}, allowed is an upper limit {order} the lower one"
        )
    return low, high


class Part(Controller):
    """A controller that reads actions.  Several of them make a `Composite`.

    Args:
        batch, function, scratch: as for `Controller`.
        actions: how actions are read.
        outputs: (output_min, output_max) unless `actions` has them.
        columns: numbers of a goal in an action.
        gains: number of stiffnesses in an action with variable impedance; 0: the impedance is fixed.
        input_types: the allowed ones.
        actuators: ids of the actuators whose controls the kernel sets.
        numbers: as for `Controller`.
    """

    batch: Any
    nworld: int
    actions: Actions
    action_width: int
    actuators: tuple[int, ...]
    _reading: dict[str, Ends]  # limits by name

    def __init__(
        self,
        batch: Any,
        function: Kernel,
        actions: Actions | None,
        outputs: Pair,
        columns: int,
        *,
        gains: int = 0,
        input_types: tuple[str, ...] = ("delta",),
        actuators: Sequence[int],
        scratch: Mapping[str, int] = MappingProxyType({}),
        numbers: Mapping[str, int],
    ):
        read = Actions() if actions is None else instance("actions", actions, Actions, "an Actions")
        one_of("actions.input_type", read.input_type, input_types)
        mode = one_of("actions.impedance_mode", read.impedance_mode, IMPEDANCE_MODES if gains else ("fixed",))
        flag("actions.single_precision_rotations", read.single_precision_rotations)
        least = outputs[0] if read.output_min is None else read.output_min
        most = outputs[1] if read.output_max is None else read.output_max
        reading = {
            "inputs": limits("actions.input_min, input_max", (read.input_min, read.input_max), columns, apart=True),
            "outputs": limits("actions.output_min, output_max", (least, most), columns),
        }
        groups = ("damping_ratio_limits", "kp_limits")[2 - IMPEDANCE_MODES.index(mode) :]  # in the order of an action
        reading |= {name: limits(f"actions.{name}", getattr(read, name), gains, least=0.0) for name in groups}
        super().__init__(batch, function, scratch=scratch, **numbers)
        width = columns + gains * len(groups)
        self.__dict__.update(actions=read, action_width=width, actuators=tuple(actuators))
        self.__dict__.update(batch=batch, nworld=batch.nworld, _reading=reading, _groups=groups)
        self.__dict__["_is_absolute"] = read.input_type == "absolute"

    @property
    def action_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest action, (action_width,) each; infinite for absolute goals."""
        ends = [self._reading[name] for name in (*self._groups, "inputs")]
        if self._is_absolute:
            ends[-1] = np.full_like(ends[-1][0], -np.inf), np.full_like(ends[-1][0], np.inf)
        return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])

    def set_goal(self, action: ArrayLike, goal_update_mode: str = "achieved") -> None:
        """Sets the goals of all worlds by actions.

        The next step completes goals that are relative to its state; they replace a goal that was written before it.

        Args:
            action: (nworld, action_width), or (action_width,) for all worlds.
            goal_update_mode: what a delta is added to: `achieved`, the state of the next step; `desired`, the last
                goal.

        Raises:
            ModelError: another shape, a non-finite number, or an unknown mode; nothing is changed.
        """
        desired = one_of("goal_update_mode", goal_update_mode, GOAL_UPDATE_MODES) == "desired"
        values = rows_of_worlds("action", action, self.nworld, self.action_width)
        self._read(values, desired)

    def _read(self, values: np.ndarray, desired: bool) -> None:
        """Sets gains and goals by checked actions (nworld, action_width)."""
        ratio = 1.0
        for name in self._groups:
            low, high = self._reading[name]
            gains, values = np.clip(values[:, : len(low)], low, high), values[:, len(low) :]
            if name == "kp_limits":
                self.stiffness, self.damping = gains, 2.0 * np.sqrt(gains) * ratio
            ratio = gains
        if not self._is_absolute:
            (low, high), (least, most) = self._reading["inputs"], self._reading["outputs"]
            scale, middle = (most - least) / (high - low), (high + low) / 2.0
            values = (np.clip(values, low, high) - middle) * scale + (most + least) / 2.0
        self._set_goal(values, desired)

    def _limited(self, goal: np.ndarray) -> np.ndarray:
        """Returns goals within the limits that the controller has."""
        return np.clip(goal, self.lower, self.upper) if "lower" in self.rows else goal

    def _set_goal(self, values: np.ndarray, desired: bool) -> None:
        """Sets the goals by values (nworld, columns); `desired`: they are changes of the last goals."""

    def _move(self, goal: str, values: np.ndarray, desired: bool) -> None:
        """Sets a goal, or its `change`, which the kernel adds to the state in worlds whose `update` is 1."""
        update = self.rows["update"]
        if self._is_absolute:
            setattr(self, goal, self._limited(values))
            update[:, 0] = 0.0
        elif desired:
            waiting, last = update[:, :1] > 0.0, self.rows[goal]  # no step has completed their goal
            setattr(self, goal, np.where(waiting, last, self._limited(last + values)))
            self.change = np.where(waiting, self.change + values, self.change)
        else:
            self.change, self.update = values, 1.0

    def reset(self, ids: ArrayLike | None = None) -> None:
        """Clears what the controller remembers of worlds, after their reset; their goal is the state of the next step.

        Args:
            ids: numbers of the worlds, a mask, or None for all.

        Raises:
            ModelError: an unknown world.
        """
        self._reset(chosen_worlds(ids, self.nworld))

    def _reset(self, ids: np.ndarray) -> None:
        """Clears the memory of checked worlds."""
