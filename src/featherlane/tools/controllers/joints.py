"""`JointPosition`, `JointVelocity`, `JointTorque`: actions set goals of joints.

    JointPosition:  tau = M (K (q* - q) - D qvel) + c
    JointVelocity:  tau = clip(kp e + ki sum(e) + kd mean(e - e_last) + c),  e = qvel* - qvel
    JointTorque:    tau = tau* + c

M is the inertia matrix of the n controlled dofs, and c compensates Coriolis, centrifugal and gravity forces; not
compensated: c = 0 and M = 1.  The sum omits steps that follow one with a clipped force; the mean is over five steps.
Source: robosuite 1.5, JOINT_POSITION, JOINT_VELOCITY and JOINT_TORQUE; Astrom and Murray, Feedback Systems, sec. 10.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel, kernel_factory
from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.tools.controllers.actions import INPUT_TYPES, Actions, Pair, Part, limits
from featherlane.tools.controllers.chain import Dof, chain_kernels, chain_of, force_range, times_inertia

STIFFNESS = 50.0  # [1/s^2], that of robosuite
WINDOW = 5  # steps over which changes of the velocity error are averaged


@kernel_factory
def joint_position(chain: tuple[Dof, ...], compensated: bool, limited: bool) -> Kernel:
    """Returns the kernel of `JointPosition`; `limited`: whether goals have limits."""
    n = len(chain)
    dofs, coordinates = tuple(c.dof for c in chain), tuple(c.coordinate for c in chain)
    store_inertia, compensation, drive = chain_kernels(chain)

    @kernel
    def update_goal(d, p):
        """Moves the goal from the positions of the joints, in worlds with a new goal."""
        for a in unrolled(range(n)):
            q = where(p.update[0] > 0.0, d.qpos[coordinates[a]] + p.change[a], p.goal[a])
            p.goal[a] = clip(q, p.lower[a], p.upper[a]) if limited else q
        p.update[0] = 0.0

    @kernel
    def control(m, d, p):
        """Sets the controls of the joints."""
        if any_(p.update[0] > 0.0):
            update_goal(d, p)
        for a in unrolled(range(n)):
            error = p.goal[a] - d.qpos[coordinates[a]]
            p.acceleration[a] = p.stiffness[a] * error - p.damping[a] * d.qvel[dofs[a]]
        if compensated:
            store_inertia(d, p)
        for a in unrolled(range(n)):
            tau = p.acceleration[a]
            if compensated:
                tau = times_inertia(p, p.acceleration, a, n) + compensation(d, a)
            drive(d, a, tau)

    return control


class JointPosition(Part):
    """Moves joints to positions: a spring and a damper act on each joint as on unit inertia.

        arm = fl.controllers.JointPosition(batch, ["motor1", "motor2"])
        arm.set_goal(np.array([0.5, -1.0]))  # changes of .025 and -.05 rad
        batch.rollout(25, control=arm)

    Args:
        batch: a `Batch`.
        actuators: names or ids of the actuators that drive the joints: of the type `motor`, each on a hinge or slide
            joint of its own.
        actions: how actions are read; the greatest change is 0.05 unless they have it.
        compensated: whether the force is multiplied by the inertia matrix, and Coriolis, centrifugal and gravity forces
            are added.
        position_limits: (lower, upper) limits of the goals of actions, numbers or (n,); None: none.

    Attributes:
        goal: (nworld, n) [m, rad] in the order of the actuators; initially those of `qpos0`.
        stiffness: (nworld, n) [1/s^2], 50 at first; not compensated: [N/m, N m/rad].
        damping: (nworld, n) [1/s], critical at first; not compensated: [N s/m, N m s/rad].

    Raises:
        ModelError: an actuator of another type, on another joint, or twice; wrong `actions` or limits.
        UnknownNameError: an unknown actuator.

    Source: see the module.  Deviation: limits apply to absolute goals, too.
    """

    def __init__(
        self,
        batch: Any,
        actuators: Sequence[str | int],
        *,
        actions: Actions | None = None,
        compensated: bool = True,
        position_limits: Pair | None = None,
    ):
        model: Model = instance("batch", batch, Batch, "a Batch").model
        chain, limited = chain_of(model, actuators), position_limits is not None
        n = len(chain)
        numbers = {"goal": n, "stiffness": n, "damping": n, "update": 1, "change": n}
        numbers |= {"lower": n, "upper": n} if limited else {}
        super().__init__(
            *(batch, joint_position(chain, flag("compensated", compensated), limited), actions, (-0.05, 0.05), n),
            gains=n,
            input_types=INPUT_TYPES,
            actuators=[c.actuator for c in chain],
            scratch={"acceleration": n, "inertia": n * (n + 1) // 2},
            numbers=numbers,
        )
        if limited:
            self.lower, self.upper = limits("position_limits", position_limits, n)
        self.goal = model.qpos0[[c.coordinate for c in chain]]
        self.stiffness, self.damping = STIFFNESS, 2.0 * np.sqrt(STIFFNESS)

    def _set_goal(self, values: np.ndarray, desired: bool) -> None:
        self._move("goal", values, desired)

    def _reset(self, ids: np.ndarray) -> None:
        self.rows["change"][ids], self.rows["update"][ids] = 0.0, 1.0


@kernel_factory
def joint_velocity(chain: tuple[Dof, ...], compensated: bool) -> Kernel:
    """Returns the kernel of `JointVelocity`."""
    n, dofs = len(chain), tuple(c.dof for c in chain)
    _, compensation, drive = chain_kernels(chain)

    @kernel
    def control(m, d, p):
        """Sets the controls of the joints, and stores the errors."""
        free = p.saturated[0] == 0.0  # in the last step
        p.count[0] = fmin(p.count[0] + 1.0, 1.0 * WINDOW)
        saturated = 0.0
        for a in unrolled(range(n)):
            error = p.goal[a] - d.qvel[dofs[a]]
            total = error - p.last_error[a]
            for k in unrolled(range(WINDOW - 1, 0, -1)):
                p.changes[WINDOW * a + k] = p.changes[WINDOW * a + k - 1]
                total += p.changes[WINDOW * a + k]
            p.changes[WINDOW * a] = error - p.last_error[a]
            p.last_error[a] = error
            p.error_sum[a] = where(free, p.error_sum[a] + error, p.error_sum[a])
            tau = p.kp[a] * error + p.ki[a] * p.error_sum[a] + p.kd[a] * (total / p.count[0])
            if compensated:
                tau += compensation(d, a)
            clipped = clip(tau, p.least_force[a], p.greatest_force[a])
            saturated = where(clipped == tau, saturated, 1.0)
            drive(d, a, clipped)
        p.saturated[0] = saturated

    return control


class JointVelocity(Part):
    """Moves joints with velocities, by proportional, integral and derivative gains.

        arm = fl.controllers.JointVelocity(batch, ["motor1", "motor2"], kp=20.0)
        arm.set_goal(np.array([0.5, -1.0]))  # .25 and -.5 rad/s
        batch.rollout(25, control=arm)

    Args:
        batch: a `Batch`.
        actuators: as for `JointPosition`.
        kp: proportional gains [N s/m, N m s/rad], a number or (n,).
        actions: how actions are read, of the input type `delta`; the greatest goal is 0.5 unless they have it.
        compensated: whether Coriolis, centrifugal and gravity forces are added.
        velocity_limits: (lower, upper) limits of the goals of actions, numbers or (n,); None: none.

    Attributes:
        goal: (nworld, n) [m/s, rad/s] in the order of the actuators, initially 0.
        kp, ki, kd: (nworld, n) gains; ki is 0.005 kp and kd 0.001 kp at first.  Those are per step; RK4 has four calls
            in a step, which count as steps.
        least_force, greatest_force: (nworld, n) [N, N m] limits of the forces; at first those of `ctrlrange`.
        error_sum, last_error, changes, count, saturated: the memory of the controller.

    Raises:
        ModelError: as for `JointPosition`; a gain that is not a finite number.
        UnknownNameError: an unknown actuator.

    Source: see the module.
    """

    def __init__(
        self,
        batch: Any,
        actuators: Sequence[str | int],
        kp: ArrayLike,
        *,
        actions: Actions | None = None,
        compensated: bool = True,
        velocity_limits: Pair | None = None,
    ):
        model: Model = instance("batch", batch, Batch, "a Batch").model
        chain = chain_of(model, actuators)
        n = len(chain)
        gains, _ = limits("kp", (kp, kp), n)
        self.__dict__["_ends"] = None if velocity_limits is None else limits("velocity_limits", velocity_limits, n)
        numbers = dict.fromkeys("goal kp ki kd least_force greatest_force error_sum last_error".split(), n)
        super().__init__(
            *(batch, joint_velocity(chain, flag("compensated", compensated)), actions, (-0.5, 0.5), n),
            actuators=[c.actuator for c in chain],
            numbers=numbers | {"changes": WINDOW * n, "count": 1, "saturated": 1},
        )
        self.kp, self.ki, self.kd = gains, 0.005 * gains, 0.001 * gains
        self.least_force, self.greatest_force = force_range(model, chain)

    def _set_goal(self, values: np.ndarray, desired: bool) -> None:
        self.goal = values if self._ends is None else np.clip(values, *self._ends)

    def _reset(self, ids: np.ndarray) -> None:
        for name in ("goal", "error_sum", "last_error", "changes", "count", "saturated"):
            self.rows[name][ids] = 0.0


@kernel_factory
def joint_torque(chain: tuple[Dof, ...], compensated: bool) -> Kernel:
    """Returns the kernel of `JointTorque`."""
    n = len(chain)
    _, compensation, drive = chain_kernels(chain)

    @kernel
    def control(m, d, p):
        """Sets the controls of the joints."""
        for a in unrolled(range(n)):
            drive(d, a, p.goal[a] + compensation(d, a) if compensated else p.goal[a])

    return control


class JointTorque(Part):
    """Exerts forces on joints.

        arm = fl.controllers.JointTorque(batch, ["motor1", "motor2"])
        arm.set_goal(np.array([0.5, -1.0]))  # .05 and -.1 N m
        batch.rollout(25, control=arm)

    Args:
        batch: a `Batch`.
        actuators: as for `JointPosition`.
        actions: how actions are read, of the input type `delta`; the greatest goal is 0.1 unless they have it.
        compensated: whether Coriolis, centrifugal and gravity forces are added.
        torque_limits: (lower, upper) limits of goals [N, N m], numbers or (n,); None: those of `ctrlrange`.

    Attributes:
        goal: (nworld, n) [N, N m] in the order of the actuators, initially 0.

    Raises:
        ModelError: as for `JointPosition`.
        UnknownNameError: an unknown actuator.

    Source: see the module.
    """

    def __init__(
        self,
        batch: Any,
        actuators: Sequence[str | int],
        *,
        actions: Actions | None = None,
        compensated: bool = True,
        torque_limits: Pair | None = None,
    ):
        model: Model = instance("batch", batch, Batch, "a Batch").model
        chain = chain_of(model, actuators)
        n = len(chain)
        given = force_range(model, chain) if torque_limits is None else limits("torque_limits", torque_limits, n)
        super().__init__(
            *(batch, joint_torque(chain, flag("compensated", compensated)), actions, (-0.1, 0.1), n),
            actuators=[c.actuator for c in chain],
            numbers={"goal": n},
        )
        self.__dict__["_ends"] = given

    def _set_goal(self, values: np.ndarray, desired: bool) -> None:
        self.goal = np.clip(values, *self._ends)

    def _reset(self, ids: np.ndarray) -> None:
        self.goal[ids] = 0.0
