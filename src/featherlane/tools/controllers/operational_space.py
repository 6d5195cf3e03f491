"""`OperationalSpace`: the site of an arm follows a pose; its kernel runs within each step.

    tau = J^T (Lambda F - Lambda_full J a) + M a + c,   Lambda = (J M^-1 J^T)^-1
    F = K (x_target - x) - D J qvel,   a = k (posture - q) - 2 sqrt(k) qvel

J (6, n) and M (n, n) are the Jacobian of the site and the inertia matrix for the n controlled dofs, c compensates
Coriolis, centrifugal and gravity forces.  `a` is the acceleration towards a posture; its effect on the site is removed.
Source: Khatib, A unified approach for motion and force control of robot manipulators: the operational space formulation
    (1987), eqs. (15), (50); the posture term: sec. VII.
Deviation: directions of F in which the arm cannot move (singular poses) get no force.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.packed_factor import packed_factor, solve_packed, triangle_index
from featherlane.engine.lanes import Kernel
from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of, object_names
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.user.control import Controller
from featherlane.engine.simulation.world.data import Data
from featherlane.errors import ModelError

STIFFNESS, POSTURE_STIFFNESS = 150.0, 10.0  # [1/s^2], those of robosuite
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


class Dof(NamedTuple):
    """One controlled dof.

    Attributes:
        dof, coordinate: its index, and that of its joint's coordinate.
        actuator: the actuator that drives it.
        torque: force or torque of a unit of control [N, N m].
        entries: for the controlled dofs up to this one, the place of their entry in M; -1: it is zero.
    """

    dof: int
    coordinate: int
    actuator: int
    torque: float
    entries: tuple[int, ...]


@functools.cache
def operational_space(site: int, root: int, chain: tuple[Dof, ...], rows: int, decoupled: bool) -> Kernel:
    """Returns the kernel of the controller.

    Args:
        site: the site.
        root: the body to whose subtree's centre of mass the motion axes of the arm refer.
        chain: the controlled dofs, ascending.
        rows: 3: the position; 6: the position and the orientation.
        decoupled: whether the coupling of position and orientation is left out of Lambda.
    """
    n = len(chain)
    dofs, torques = tuple(c.dof for c in chain), tuple(c.torque for c in chain)
    coordinates, actuators = tuple(c.coordinate for c in chain), tuple(c.actuator for c in chain)
    entries = tuple(c.entries for c in chain)

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
            for b in unrolled(range(a + 1)):
                p.inertia[triangle_index(a, b)] = 0.0 if entries[a][b] < 0 else d.M[entries[a][b]]

    @kernel
    def site_force(d, p):
        """Stores p.force = F = K (x_target - x) - D J qvel, a spring and a damper at a site of unit inertia."""
        for k in range(rows):
            speed = 0.0
            for a in unrolled(range(n)):
                speed = fma(p.jac[rows * a + k], d.qvel[dofs[a]], speed)
            p.force[k] = -p.damping[k] * speed
        error = Vec3(p.target_pos[0:3]) - d.site_xpos[site]
        for k in unrolled(range(3)):
            p.force[k] = fma(p.stiffness[k], error[k], p.force[k])
        if rows == 6:
            turn = _orientation_error(d.site_xmat[site], Mat3(p.target_mat[0:9]))
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
            tau = 0.0
            for b in unrolled(range(n)):
                tau = fma(p.inertia[triangle_index(max(a, b), min(a, b))], p.acceleration[b], tau)
            p.tau[a] = tau

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
            # c: compensates the bias forces that gravity compensation leaves
            tau = p.tau[a] + (d.qfrc_bias[dofs[a]] - d.qfrc_gravcomp[dofs[a]])
            for k in range(rows):
                tau = fma(p.jac[rows * a + k], p.force[k] - p.null[k], tau)
            d.ctrl[actuators[a]] = tau / torques[a]

    return control


class OperationalSpace(Controller):
    """Moves a site of an arm to a pose: a spring and a damper act on the site as on a body of unit inertia.

        arm = fl.controllers.OperationalSpace(batch, "grip", ["joint1", "joint2", ...])
        arm.target_pos = 0.4, 0.0, 0.3
        batch.rollout(25, control=arm)

    The targets and gains are arrays by world, which a policy may set between calls.  They begin with the pose and the
    posture of `qpos0`, a stiffness of 150 1/s^2 and critical damping.

    Args:
        batch: a `Batch`.
        site: name or id of the site.
        actuators: names or ids of the actuators that drive the arm: of the type `motor`, each on a hinge or slide joint
            of its own.
        orientation: whether the orientation is controlled, too.
        decoupled: whether position and orientation are controlled as if they were not coupled, as robosuite does.

    Attributes:
        target_pos: (nworld, 3) [m], in the world frame.
        target_mat: (nworld, 9) rotation matrix by rows, as `site_xmat`; with `orientation`.
        stiffness: (nworld, 3 or 6) [1/s^2] along and about the axes of the world frame.
        damping: (nworld, 3 or 6) [1/s].
        posture: (nworld, n) [m, rad] preferred positions of the n joints; they act where the site's motion allows it.
        posture_stiffness: (nworld, 1) [1/s^2], 10 at first; 0: no posture.

    Raises:
        ModelError: an actuator of another type, on another joint, or twice; a site that no joint of the arm moves.
        UnknownNameError: an unknown site or actuator.

    Source: Khatib (1987), see the module.  The orientation error is that of robosuite's OSC_POSE.
    """

    def __init__(
        self,
        batch: Any,
        site: str | int,
        actuators: Sequence[str | int],
        *,
        orientation: bool = True,
        decoupled: bool = False,
    ):
        model: Model = instance("batch", batch, Batch, "a Batch").model
        place = index_of(model, "site", site)
        chain = _chain(model, actuators)
        rows, n = (6 if flag("orientation", orientation) else 3), len(chain)
        body = int(model.site_bodyid[place])
        root = int(model.body_rootid[body])
        _check_moved(model, body, chain, str(site))
        code = operational_space(place, root, chain, rows, flag("decoupled", decoupled) and rows == 6)
        numbers = {"target_pos": 3, "target_mat": 9} if rows == 6 else {"target_pos": 3}
        numbers |= {"stiffness": rows, "damping": rows, "posture": n, "posture_stiffness": 1}
        scratch = {"jac": rows * n, "inertia": n * (n + 1) // 2, "column": n, "acceleration": n, "tau": n}
        scratch |= {"mobility": rows * (rows + 1) // 2, "factor": rows * (rows + 1) // 2, "force": rows, "null": rows}
        super().__init__(batch, code, scratch=scratch, **numbers)
        start = Data(model)
        start.forward()
        self.target_pos, self.stiffness, self.damping = start.site_xpos[place], STIFFNESS, 2.0 * math.sqrt(STIFFNESS)
        if rows == 6:
            self.target_mat = start.site_xmat[place].ravel()
        self.posture, self.posture_stiffness = model.qpos0[[c.coordinate for c in chain]], POSTURE_STIFFNESS


def _chain(model: Model, actuators: Sequence[str | int]) -> tuple[Dof, ...]:
    """Returns the dofs that the actuators drive, ascending.

    Raises:
        ModelError, UnknownNameError: see `OperationalSpace`.
    """
    if isinstance(actuators, str) or not isinstance(actuators, Sequence | np.ndarray) or not len(actuators):
        raise ModelError(f"actuators: got {actuators!r}, allowed are one or more names or ids of actuators")
    found: dict[int, tuple[int, int, float]] = {}
    for key in actuators:
        i = index_of(model, "actuator", key)
        kinds = model.actuator_trntype[i], model.actuator_gaintype[i], model.actuator_biastype[i]
        kinds += (model.actuator_dyntype[i],)
        joint, gain = int(model.actuator_trnid[i, 0]), float(model.actuator_gainprm[i, 0] * model.actuator_gear[i, 0])
        if kinds[0] not in (TRN_JOINT, TRN_JOINTINPARENT) or kinds[1:] != (GAIN_FIXED, BIAS_NONE, DYN_NONE) or not gain:
            raise ModelError(f"actuator {key!r}: got another type, allowed are motors of joints with a gear")
        if model.jnt_type[joint] not in (HINGE, SLIDE):
            raise ModelError(f"actuator {key!r}: it drives a ball or free joint, allowed are hinges and slides")
        dof = int(model.jnt_dofadr[joint])
        if dof in found:
            raise ModelError(f"actuator {key!r}: its joint has another one of these actuators, allowed is one each")
        found[dof] = int(model.jnt_qposadr[joint]), i, gain
    dofs = sorted(found)
    return tuple(Dof(dof, *found[dof], _entries(model, dof, dofs)) for dof in dofs)


def _entries(model: Model, i: int, dofs: Sequence[int]) -> tuple[int, ...]:
    """Returns where M has the entries of row i in the columns `dofs` up to i; -1 where it has none."""
    start, number = model.M_rowadr[i], model.M_rownnz[i]
    columns = model.M_colind[start : start + number].tolist()
    return tuple(int(start) + columns.index(j) if j in columns else -1 for j in dofs if j <= i)


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
