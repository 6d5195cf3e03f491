"""`OperationalSpace`: the site of an arm follows a pose; its kernel runs within each step.

    tau = J^T (Lambda F - Lambda_full J a) + M a + c,   Lambda = (J M^-1 J^T)^-1
    F = K (x_target - x) - D v,   a = k (posture - q) - 2 sqrt(k) qvel

J (6, n) and M (n, n) are the Jacobian of the site and the inertia matrix for the n controlled dofs.  v is the velocity
of the site, minus that of the base.  c compensates Coriolis, centrifugal and gravity forces.  `a` is the acceleration
towards a posture; its effect on the site is removed.
Source: Khatib, A unified approach for motion and force control of robot manipulators: the operational space formulation
    (1987), eqs. (15), (50); the posture term: sec. VII.
Deviation: directions of F in which the arm cannot move (singular poses) get no force.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.packed_factor import packed_factor, solve_packed, triangle_index
from featherlane.engine.lanes import Kernel, kernel_factory
from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of, object_names
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.world.data import Data
from featherlane.errors import ModelError
from featherlane.tools.controllers.actions import INPUT_TYPES, Actions, Pair, Part, limits
from featherlane.tools.controllers.chain import Dof, chain_kernels, chain_of, times_inertia

STIFFNESS, POSTURE_STIFFNESS = 150.0, 10.0  # [1/s^2], those of robosuite
MOST_SHIFT, MOST_TURN = 0.05, 0.5  # [m, rad] of an action, those of robosuite
SINGULAR = 1e-9  # of the largest diagonal entry of J M^-1 J^T: smaller pivots are directions without motion


# entries of matrices for `packed_factor`: p is the record of the controller; s and diagonal are not used
@kernel
def _inertia(p, s, i, j, diagonal):
    """Returns M_ij."""
    return p.inertia[triangle_index(i, j)]


@kernel
def _mobility(p, s, i, j, diagonal):
    """Returns entry (i, j) of J M^-1 J^T."""
    return p.mobility[triangle_index(i, j)]


@kernel
def _decoupled_mobility(p, s, i, j, diagonal):
    """Returns entry (i, j) of J M^-1 J^T, without what couples the orientation to the position."""
    if i >= 3 and j < 3:
        x = 0.0
    else:
        x = p.mobility[triangle_index(i, j)]
    return x


_factor_inertia, _factor_mobility = packed_factor(_inertia), packed_factor(_mobility)
_factor_decoupled = packed_factor(_decoupled_mobility)


@kernel
def _orientation_error(R, target):
    """Returns half the sum of the cross products of the axes: sin(angle) times the axis of the turn to the target."""
    (a, b, c), (x, y, z) = R.columns, target.columns
    return 0.5 * (cross(a, x) + cross(b, y) + cross(c, z))


class Frame(NamedTuple):
    """A site.

    Attributes:
        site: its index; -1: the world.
        body: its body; -1: it does not move.
        root: the body to whose subtree's centre of mass the velocity of the body refers.
    """

    site: int
    body: int
    root: int


WORLD = Frame(-1, -1, -1)


def _frame(model: Model, key: str | int) -> Frame:
    """Returns the frame of a site that is given by name or id."""
    site = index_of(model, "site", key)
    body = int(model.site_bodyid[site])
    return Frame(site, body if model.body_weldid[body] else -1, int(model.body_rootid[body]))


@kernel_factory
def operational_space(
    place: Frame, origin: Frame, chain: tuple[Dof, ...], rows: int, decoupled: bool, limited: bool
) -> Kernel:
    """Returns the kernel of the controller.

    Args:
        place: the site.
        origin: the site in whose frame targets are; WORLD: the world.
        chain: the controlled dofs.
        rows: 3: the position; 6: the position and the orientation.
        decoupled: whether the coupling of position and orientation is left out of Lambda.
        limited: whether the target position has limits.
    """
    n = len(chain)
    (site, body, root), (base, base_body, base_root) = place, origin
    dofs, coordinates = tuple(c.dof for c in chain), tuple(c.coordinate for c in chain)
    store_inertia, compensation, drive = chain_kernels(chain)

    @kernel
    def chain_matrices(d, p):
        """Stores J in p.jac, column by column, and the lower triangle of M in p.inertia; a, b: controlled dofs.

        The column of dof a is the site's velocity for a unit velocity of the dof: linear, then angular, world axes.
        """
        lever = d.site_xpos[site] - d.subtree_com[root]  # cdof is about the com of the tree
        for a in unrolled(range(n)):
            axis = d.cdof[dofs[a]]
            p.jac[rows * a : rows * a + 3] = axis.linear + cross(axis.angular, lever)
            if rows == 6:
                p.jac[rows * a + 3 : rows * a + 6] = axis.angular
        store_inertia(d, p)

    @kernel
    def update_position(d, p):
        """Sets the target position to the site's plus p.change in worlds with a new goal; clips it to the limits."""
        x = d.site_xpos[site]
        if base >= 0:
            x = d.site_xmat[base].T @ (x - d.site_xpos[base])
        x = where(p.update[0] > 0.0, x + Vec3(p.change[0:3]), Vec3(p.target_pos[0:3]))
        for k in unrolled(range(3)):
            p.target_pos[k] = clip(x[k], p.lower[k], p.upper[k]) if limited else x[k]
        p.update[0] = 0.0

    @kernel
    def update_orientation(d, p):
        """Sets the target orientation to the site's, turned by p.turn, in worlds with a new goal."""
        R = d.site_xmat[site]
        if base >= 0:
            R = d.site_xmat[base].T @ R
        p.target_mat[0:9] = where(p.update[1] > 0.0, Mat3(p.turn[0:9]) @ R, Mat3(p.target_mat[0:9]))
        p.update[1] = 0.0

    @kernel
    def update_posture(d, p):
        """Takes the posture from the state, in worlds that were reset."""
        for a in unrolled(range(n)):
            p.posture[a] = where(p.restart[0] > 0.0, d.qpos[coordinates[a]], p.posture[a])
        p.restart[0] = 0.0

    @kernel
    def site_force(d, p):
        """Stores p.force = F = K (x_target - x) - D v, a spring and a damper at a site of unit inertia.

        v is the velocity of the site, relative to the base if there is one.
        """
        motion = d.cvel[body]
        v, w = motion.linear + cross(motion.angular, d.site_xpos[site] - d.subtree_com[root]), motion.angular
        if base_body >= 0:
            motion = d.cvel[base_body]
            v -= motion.linear + cross(motion.angular, d.site_xpos[base] - d.subtree_com[base_root])
            w -= motion.angular
        for k in unrolled(range(rows)):
            p.force[k] = -p.damping[k] * (v[k] if k < 3 else w[k - 3])
        x = Vec3(p.target_pos[0:3])
        if base >= 0:
            x = d.site_xpos[base] + d.site_xmat[base] @ x
        error = x - d.site_xpos[site]
        for k in unrolled(range(3)):
            p.force[k] = fma(p.stiffness[k], error[k], p.force[k])
        if rows == 6:
            R = Mat3(p.target_mat[0:9])
            if base >= 0:
                R = d.site_xmat[base] @ R
            turn = _orientation_error(d.site_xmat[site], R)
            for k in unrolled(range(3)):
                p.force[3 + k] = fma(p.stiffness[3 + k], turn[k], p.force[3 + k])

    @kernel
    def posture_force(d, p):
        """Stores p.acceleration = k (posture - q) - 2 sqrt(k) qvel, critically damped, and p.tau = M p.acceleration."""
        stiffness = p.posture_stiffness[0]
        for a in unrolled(range(n)):
            error = p.posture[a] - d.qpos[coordinates[a]]
            p.acceleration[a] = stiffness * error - 2.0 * sqrt(stiffness) * d.qvel[dofs[a]]
        for a in unrolled(range(n)):
            p.tau[a] = times_inertia(p, p.acceleration, a, n)

    @kernel
    def mobility(p):
        """Stores the lower triangle of J M^-1 J^T in p.mobility; returns its largest diagonal entry.

        Replaces M in p.inertia by its factor.
        """
        _factor_inertia(p, p, p.inertia, n, 0.0)
        largest = 0.0
        for k in range(rows):
            for a in range(n):
                p.column[a] = p.jac[rows * a + k]
            solve_packed(p.inertia, n, p.column)  # column = M^-1 J_k^T
            for i in range(k, rows):
                entry = 0.0
                for a in range(n):
                    entry = fma(p.jac[rows * a + i], p.column[a], entry)
                p.mobility[triangle_index(i, k)] = entry
            largest = fmax(largest, p.mobility[triangle_index(k, k)])
        return largest

    @kernel
    def control(m, d, p):
        """Sets the controls of the arm: tau = J^T (Lambda F - Lambda_full J a) + M a + c, over the motors' gears.

        With `decoupled`, Lambda has no coupling of position and orientation; Lambda_full always has.
        """
        if any_(p.update[0] > 0.0):
            update_position(d, p)
        if rows == 6:  # noqa: SIM102  `and` would compile the second condition, too
            if any_(p.update[1] > 0.0):
                update_orientation(d, p)
        if any_(p.restart[0] > 0.0):
            update_posture(d, p)
        chain_matrices(d, p)
        site_force(d, p)
        posture_force(d, p)
        least = SINGULAR * mobility(p)
        # p.null = J a, the acceleration of the site due to the posture's; then Lambda_full J a, the force
        for k in range(rows):
            site_acceleration = 0.0
            for a in range(n):
                site_acceleration = fma(p.jac[rows * a + k], p.acceleration[a], site_acceleration)
            p.null[k] = site_acceleration
        _factor_mobility(p, p, p.factor, rows, least)  # of J M^-1 J^T; the second argument is not used
        solve_packed(p.factor, rows, p.null)
        if decoupled:
            _factor_decoupled(p, p, p.factor, rows, least)
        solve_packed(p.factor, rows, p.force)  # Lambda F
        for a in unrolled(range(n)):
            tau = p.tau[a] + compensation(d, a)
            for k in range(rows):
                tau = fma(p.jac[rows * a + k], p.force[k] - p.null[k], tau)
            drive(d, a, tau)

    return control


class OperationalSpace(Part):
    """Moves a site of an arm to a pose: a spring and a damper act on the site as on a body of unit inertia.

        arm = fl.controllers.OperationalSpace(batch, "grip", ["joint1", "joint2", ...])
        arm.target_pos = 0.4, 0.0, 0.3
        batch.rollout(25, control=arm)

    The targets and gains are arrays by world, which a policy may set between calls, directly or by `set_goal`.  They
    begin with the pose and the posture of `qpos0`, a stiffness of 150 1/s^2 and critical damping.  By default, an
    action is a shift of up to 0.05 m and a rotation vector of up to 0.5 rad, along each axis of the target's frame.

    Args:
        batch: a `Batch`.
        site: name or id of the site.
        actuators: names or ids of the actuators that drive the arm: of the type `motor`, each on a hinge or slide joint
            of its own.
        orientation: whether the orientation is controlled, too; `"held"`: it is, but actions have no rotation, and the
            target is the orientation at the time of an action.
        decoupled: whether position and orientation are controlled as if they were not coupled, as robosuite does.
        base: name or id of the site in whose frame targets and actions are; None: the world.
        actions: how actions are read.
        position_limits: (lower, upper) limits of the targets of actions [m], numbers or (3,); None: none.

    Attributes:
        target_pos: (nworld, 3) [m], in the frame of the base or the world.
        target_mat: (nworld, 9) rotation matrix by rows, as `site_xmat`, in the same frame; with `orientation`.
        stiffness: (nworld, 3 or 6) [1/s^2] along and about the axes of the world frame.
        damping: (nworld, 3 or 6) [1/s], of the difference between the velocities of the site and of the base.
        posture: (nworld, n) [m, rad] preferred positions of the n joints, in the order of the actuators; they act where
            the site's motion allows it.  `reset` takes them from the state of the next step.
        posture_stiffness: (nworld, 1) [1/s^2], 10 at first; 0: no posture.

    Raises:
        ModelError: an actuator of another type, on another joint, or twice; a site that no joint of the arm moves;
            wrong `actions`.
        UnknownNameError: an unknown site or actuator.

    Source: Khatib (1987), see the module.  The orientation error and the actions are those of robosuite's OSC_POSE and
        OSC_POSITION.
    """

    def __init__(
        self,
        batch: Any,
        site: str | int,
        actuators: Sequence[str | int],
        *,
        orientation: bool | Literal["held"] = True,
        decoupled: bool = False,
        base: str | int | None = None,
        actions: Actions | None = None,
        position_limits: Pair | None = None,
    ):
        model: Model = instance("batch", batch, Batch, "a Batch").model
        place, origin = _frame(model, site), WORLD if base is None else _frame(model, base)
        chain = chain_of(model, actuators)
        turns = _turns(orientation)  # in actions
        rows, n = (6 if turns or orientation == "held" else 3), len(chain)
        _check_moved(model, int(model.site_bodyid[place.site]), chain, str(site))
        limited = position_limits is not None
        code = operational_space(*(place, origin, chain, rows), flag("decoupled", decoupled) and rows == 6, limited)
        numbers = {"target_pos": 3, "target_mat": 9} if rows == 6 else {"target_pos": 3}
        numbers |= {"stiffness": rows, "damping": rows, "posture": n, "posture_stiffness": 1}
        numbers |= {"update": rows // 3, "restart": 1, "change": 3} | ({"turn": 9} if rows == 6 else {})
        numbers |= {"lower": 3, "upper": 3} if limited else {}
        scratch = {"jac": rows * n, "inertia": n * (n + 1) // 2, "column": n, "acceleration": n, "tau": n}
        scratch |= {"mobility": rows * (rows + 1) // 2, "factor": rows * (rows + 1) // 2, "force": rows, "null": rows}
        columns = 6 if turns else 3
        reach = np.array([MOST_SHIFT] * 3 + [MOST_TURN] * 3)[:columns]
        super().__init__(
            *(batch, code, actions, (-reach, reach), columns),
            gains=rows,
            input_types=INPUT_TYPES,
            actuators=[c.actuator for c in chain],
            scratch=scratch,
            numbers=numbers,
        )
        if limited:
            self.lower, self.upper = limits("position_limits", position_limits, 3)
        start = Data(model)
        start.forward()
        x, R = start.site_xpos[place.site], start.site_xmat[place.site].reshape(3, 3)
        if base is not None:
            B = start.site_xmat[origin.site].reshape(3, 3)
            x, R = B.T @ (x - start.site_xpos[origin.site]), B.T @ R
        self.target_pos, self.stiffness, self.damping = x, STIFFNESS, 2.0 * math.sqrt(STIFFNESS)
        if rows == 6:
            self.target_mat, self.turn = R.ravel(), np.eye(3).ravel()
        self.posture, self.posture_stiffness = model.qpos0[[c.coordinate for c in chain]], POSTURE_STIFFNESS
        self.__dict__["_turns"] = turns

    def _set_goal(self, values: np.ndarray, desired: bool) -> None:
        x, turn = values[:, :3], np.eye(3)
        if self._turns:
            single = self.actions.single_precision_rotations and not self._is_absolute
            turn = rotation_matrices(values[:, 3:], single)
        rotates, update = "turn" in self.rows, self.rows["update"]
        self._move("target_pos", x, desired)
        if self._is_absolute:
            if self._turns:
                self.target_mat, update[:, 1] = _flat(turn), 0.0
            elif rotates and not desired:
                self.turn, update[:, 1] = _flat(turn), 1.0
        elif desired:
            waiting = update[:, :1] > 0.0
            for name in ("target_mat", "turn") if rotates else ():
                last = self.rows[name]
                chosen = waiting if name == "turn" else ~waiting
                setattr(self, name, np.where(chosen, _flat(turn @ last.reshape(-1, 3, 3)), last))
        elif rotates:
            self.turn = _flat(turn)

    def _reset(self, ids: np.ndarray) -> None:
        for name, value in {"change": 0.0, "update": 1.0, "restart": 1.0, "turn": _flat(np.eye(3))}.items():
            if name in self.rows:
                self.rows[name][ids] = value


def _turns(orientation: Any) -> bool:
    """Returns whether actions have a rotation."""
    if isinstance(orientation, str) and orientation != "held":
        raise ModelError(f"orientation: got {orientation!r}, allowed are True, False and 'held'")
    return orientation != "held" and flag("orientation", orientation)


def _flat(matrices: np.ndarray) -> np.ndarray:
    """Returns 3 x 3 matrices as rows of nine numbers."""
    return matrices.reshape(*matrices.shape[:-2], 9)


def rotation_matrices(vectors: np.ndarray, single: bool = False) -> np.ndarray:
    """Returns the matrices (n, 3, 3) of rotation vectors (n, 3) [rad].

    Args:
        single: whether the quaternion and its products are rounded to float32; the diagonal is a sum in float64.
    """
    angle = np.linalg.norm(vectors, axis=1, keepdims=True)
    axis = vectors / np.where(angle > 0.0, angle, 1.0)
    q = np.concatenate([np.cos(angle / 2.0), axis * np.sin(angle / 2.0)], axis=1)
    q = q.astype(np.float32) if single else q
    norm = (q * q).sum(1, dtype=float).astype(q.dtype)  # as OpenBLAS adds the squares
    scale = np.sqrt(2.0 / norm.astype(float))
    q = (q * scale[:, None]).astype(q.dtype)
    P = q[:, :, None] * q[:, None, :]  # products
    R = np.empty((len(q), 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        R[:, i, i] = 1.0 - P[:, j + 1, j + 1].astype(float) - P[:, k + 1, k + 1]
        R[:, i, j], R[:, j, i] = P[:, i + 1, j + 1] - P[:, 0, k + 1], P[:, i + 1, j + 1] + P[:, 0, k + 1]
    return R


def _check_moved(model: Model, body: int, chain: Sequence[Dof], site: str) -> None:
    """Raises an error if none of the dofs moves the body, or one of another tree is among them."""
    above, k = set(), body
    while k > 0:
        above.add(k)
        k = int(model.body_parentid[k])
    for c in chain:
        if int(model.dof_bodyid[c.dof]) not in above:
            name = object_names(model, "actuator")[c.actuator] or c.actuator
            raise ModelError(f"actuator {name!r}: its joint does not move the site {site!r}, allowed are those that do")
