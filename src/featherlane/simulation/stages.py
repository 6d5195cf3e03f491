"""A step, and every stage of it alone, for one world: what `featherlane.step`, `featherlane.crb`, ... are.

A function takes the model and a `Data`, runs one compiled pass on the data's memory and leaves its results in the
data's fields.  A stage trusts that what it reads is valid: it follows from the stages above it in this file.

Every function raises TypeError where the data is no `Data`, ModelError where the model is not the data's and differs
from it in size, and RuntimeError while another thread is in a call of the data.
"""

from __future__ import annotations

import operator

import numpy as np

from featherlane.collision.collision import collision as _collision
from featherlane.dynamics.actuator.actuation import actuation as _actuation
from featherlane.dynamics.actuator.adhesion import adhesive_pull as _adhesive_pull
from featherlane.dynamics.actuator.adhesion import contact_transmission as _contact_transmission
from featherlane.dynamics.actuator.transmission import transmission as _transmission
from featherlane.dynamics.body.com import com_pos as _com_pos
from featherlane.dynamics.body.com import com_vel as _com_vel
from featherlane.dynamics.body.kinematics import frames as _frames
from featherlane.dynamics.body.kinematics import kinematics as _kinematics
from featherlane.dynamics.body.newton_euler import rne as _rne
from featherlane.dynamics.body.newton_euler import rne_acc as _rne_acc
from featherlane.dynamics.body.rne_derivative import rne_vel as _rne_vel
from featherlane.dynamics.inertia.articulated import aba as _aba
from featherlane.dynamics.inertia.joint_space import crb as _crb
from featherlane.dynamics.inertia.joint_space import factor_m as _factor_m
from featherlane.dynamics.integrator.implicit import implicit as _implicit
from featherlane.dynamics.integrator.integrate import advance as _advance
from featherlane.dynamics.integrator.integrate import euler as _euler
from featherlane.dynamics.integrator.integrate import implicitfast as _implicitfast
from featherlane.dynamics.integrator.smooth import energy as _energy
from featherlane.dynamics.integrator.smooth import smooth_acceleration as _smooth_acceleration
from featherlane.dynamics.integrator.velocity_derivative import actuator_vel as _actuator_vel
from featherlane.dynamics.integrator.velocity_derivative import passive_vel as _passive_vel
from featherlane.dynamics.integrator.velocity_derivative import smooth_vel as _smooth_vel
from featherlane.dynamics.passive.forces import passive as _passive
from featherlane.dynamics.tendon.length import tendon as _tendon
from featherlane.errors import ModelError, warn_of_bad_numbers
from featherlane.lanes import Stage
from featherlane.model.assign import flag
from featherlane.model.enums import Disable, Enable
from featherlane.model.integrator import SCHEMES, has_metric, has_moment
from featherlane.model.model import Model, check_model
from featherlane.sensor.camera import cameras as _cameras
from featherlane.sensor.momentum import subtree_vel as _subtree_vel
from featherlane.sensor.wrench import rne_post_constraint as _rne_post_constraint
from featherlane.simulation.query.product import mul_m as _mul_m
from featherlane.simulation.step import forward as _contents
from featherlane.simulation.step.consistency import compare_forward_inverse as _compare_forward_inverse
from featherlane.simulation.step.early_contacts import early_contacts as _early_contacts
from featherlane.simulation.step.early_contacts import forces_need_contacts
from featherlane.simulation.step.inverse import inverse as _inverse
from featherlane.simulation.world.data import Data, busy, ready
from featherlane.solver.island import islands as _islands


def _run(model: Model, data: Data, stage: Stage) -> None:
    world = ready(model, data)
    with world._turn:
        world.workspace.bound(stage)()


def _measure(model: Model, data: Data, stage: Stage) -> None:
    """Run a stage that computes sensors, those of the user, too."""
    world = ready(model, data)
    run = world._measured(stage)
    with world._turn:
        run()


# ---- whole steps -----------------------------------------------------------------------------------------------------


def step(model: Model, data: Data, nstep: int = 1) -> None:
    """Advance the world by nstep time steps of `model.opt.timestep` [s].

    Reads the state (`time`, `qpos`, `qvel`, `qacc_warmstart`) and the inputs (`ctrl`, `qfrc_applied`, `xfrc_applied`,
    `mocap_pos`, `mocap_quat`, `eq_active`), and writes the new state.  All derived fields are left as they follow from
    the state before the last step.  A world is reset, and counted in `data.status`, where its position, velocity,
    activation, time, acceleration or a mocap body's pose is NaN or beyond 1e10; the first time of a data is told by a
    `BadNumberWarning`.  Steps in which a control is are counted, too, but there all controls count as 0 and nothing is
    reset.
    With the flag `sleep` trees that rest fall asleep and stay where they are until something wakes them
    (`data.tree_asleep`).

    Args:
        model: the model.
        data: the world.
        nstep: time steps, at least 1.

    Raises:
        ModelError: nstep is no whole number or below 1; the model's sizes are not the data's.
        TypeError: `data` is no Data.
        RuntimeError: another thread is in a call of this data.

    Source: MuJoCo mj_step.
    """
    if type(data) is not Data or data.model is not model or data._stamp is not model._stamp:
        ready(model, data)
    run = data._step
    if run is None:
        run = data.__dict__["_step"] = ready(model, data)._measured(_contents.step)
    count = 1 if nstep.__class__ is int and nstep == 1 else _whole(nstep)
    token = data._turn_token  # as `with data._turn` does, at a third of the cost
    try:
        token.pop()
    except IndexError:
        raise busy() from None
    try:
        if count == 1:
            run()
        else:
            for _ in range(count):
                run()
    finally:
        token.append(None)
    if data._bad[0] and not data._told:
        data.__dict__["_told"] = True
        warn_of_bad_numbers("a world", not model.opt_disableflags & Disable.AUTORESET, "data", 1)


def _whole(nstep: int) -> int:
    """A number of steps, checked."""
    try:
        count = 0 if isinstance(nstep, bool) else operator.index(nstep)
    except TypeError:
        count = 0
    if count < 1:
        raise ModelError(f"nstep: got {nstep!r}, allowed is a whole number from 1")
    return count


def forward(model: Model, data: Data) -> None:
    """Everything that follows from the present state, down to the acceleration `qacc`, without a step.

    With the flag `sleep` trees wake here, too; none falls asleep.  Where a number of the state or the acceleration is
    NaN or beyond 1e10 it is counted in `data.status`, and nothing is reset.

    Source: MuJoCo mj_forward.
    """
    _measure(model, data, _contents.forward_pass)


def forward_position(model: Model, data: Data) -> None:
    """All that depends on the position alone, but for contacts: kinematics, com_pos, tendon, crb, factor_m,
    transmission.

    Where forces act through contacts these are found here, too.

    Source: MuJoCo mj_fwdPosition (without collisions and constraints).
    """
    _run(model, data, _contents.forward_position)
    if forces_need_contacts(model):
        _run(model, data, _early_contacts)


def forward_velocity(model: Model, data: Data) -> None:
    """What depends on position and velocity: com_vel, rne, passive.

    Source: MuJoCo mj_fwdVelocity (actuator velocities are written by `actuation`).
    """
    _run(model, data, _contents.forward_velocity)


def forward_constraint(model: Model, data: Data) -> None:
    """Contacts, rows and the acceleration under them: collision, make_constraint, solve.

    Source: MuJoCo mj_fwdConstraint, with collisions.
    """
    _run(model, data, _contents.forward_constraint)


# ---- inverse dynamics ------------------------------------------------------------------------------------------------


def inverse(model: Model, data: Data) -> None:
    """Inverse dynamics: the external force that gives the acceleration `data.qacc` in the present state.

    Writes `qfrc_inverse` (nv,) [N, N m], which is what `qfrc_applied`, `xfrc_applied` and the actuators have to give
    together, and all that it depends on: contacts and rows, `qfrc_constraint`, the rows' forces.  Constraint forces
    follow at once, without a solver.  With `model.opt.enableflags` `invdiscrete` the acceleration is the change of
    velocity over a step, divided by its length, and what the integrator damps is accounted for.

    Raises:
        ModelError: `invdiscrete` with the integrator RK4; the contact model `lcp`, whose forces do not follow from it.

    Source: MuJoCo mj_inverse (under `invdiscrete` actuator forces are computed anew here).
    """
    check_inverse(model)
    _measure(model, data, _inverse)


def check_inverse(model: Model) -> None:
    """Refuse what has no inverse.

    Raises:
        ModelError: `invdiscrete` with the integrator RK4; the contact model `lcp`.
    """
    check_model(model)
    if model.opt.contact_model == "lcp":
        raise ModelError(
            "inverse: contact_model 'lcp', allowed is 'convex': rigid contacts have no force that follows from qacc"
        )
    if model.opt.enableflags & Enable.INVDISCRETE and not (has_moment(model) or has_metric(model)):
        name = SCHEMES[int(model.opt.integrator)].name
        raise ModelError(
            f"inverse: invdiscrete with the integrator {name}; allowed are euler, implicit and implicitfast"
        )


def compare_forward_inverse(model: Model, data: Data) -> None:
    """How far forward and inverse dynamics are apart, after `forward`: `data.solver_fwdinv` (2,) [N, N m].

    The norms of two differences: `qfrc_constraint` and what follows from `qacc` directly; the applied and actuator
    forces and `qfrc_inverse`.  Steps do so, too, where `model.opt.enableflags` has the bit `fwdinv`.

    Raises:
        ModelError: the contact model `lcp`, which has no inverse.

    Source: MuJoCo mj_compareFwdInv (which says 0 where there are no constraints).
    """
    check_inverse(model)
    _run(model, data, _compare_forward_inverse)


# ---- position --------------------------------------------------------------------------------------------------------


def kinematics(model: Model, data: Data) -> None:
    """Frames of bodies, joints, geoms and sites from `qpos`, in world axes.

    Writes `xpos`, `xipos` (nbody, 3), `xanchor` (njnt, 3), `geom_xpos`, `site_xpos` [m], `xquat`, `xmat`, `xaxis`,
    `geom_xmat`, `site_xmat`.

    Source: MuJoCo mj_kinematics (`ximat` is written by `com_pos`, and qpos is not normalised); Featherstone sec. 4.4.
    """
    _run(model, data, _kinematics)
    _run(model, data, _frames)


def frames(model: Model, data: Data) -> None:
    """Frames of geoms and sites from those of their bodies, in world axes; `kinematics` includes it.

    Writes `geom_xpos` (ngeom, 3), `site_xpos` (nsite, 3) [m], `geom_xmat` (ngeom, 9), `site_xmat` (nsite, 9).

    Source: MuJoCo mj_kinematics.
    """
    _run(model, data, _frames)


def cameras(model: Model, data: Data) -> None:
    """Frames of the cameras, which may follow a body or look at one; `forward` includes it.

    Writes `cam_xpos` (ncam, 3) [m] and `cam_xmat` (ncam, 9), from the frames of bodies and `subtree_com`.

    Source: MuJoCo mj_camlight (cameras alone).
    """
    _run(model, data, _cameras)


def com_pos(model: Model, data: Data) -> None:
    """Centres of mass of all subtrees, body inertias and motion axes at the tree's centre of mass, rotation first.

    Writes `subtree_com` (nbody, 3) [m], `cinert` (nbody, 10) [kg m^2, kg m, kg], `cdof` (nv, 6) [1, m], `ximat`.

    Source: MuJoCo mj_comPos; Featherstone eq. 2.63.
    """
    _run(model, data, _com_pos)


def tendon(model: Model, data: Data) -> None:
    """Lengths of the tendons, and their Jacobian: what each dof adds to the rate of a length.

    Fixed tendons are sums of joint coordinates; spatial ones the shortest ways past sites and round geoms.  Writes
    `ten_length` (ntendon,) [m] and `ten_J` (nJten,) [1, m]: row i stands from `model.ten_J_rowadr[i]` on, its dofs in
    `model.ten_J_colind`.

    Source: MuJoCo mj_tendon (without the path for drawing).
    """
    _run(model, data, _tendon)


def crb(model: Model, data: Data) -> None:
    """Composite-rigid-body inertias and the joint-space inertia matrix; `full_m` shows it dense.

    Writes `crb` (nbody, 10) and `M` (nC,) [kg, kg m, kg m^2], the lower triangle by rows on the tree's pattern.
    Armature of tendons is in M, so `tendon` comes before.

    Source: Featherstone sec. 6.2, eq. 6.13-6.14; MuJoCo mj_makeM.
    """
    _run(model, data, _crb)


def factor_m(model: Model, data: Data) -> None:
    """The factors of M = L^T D L, without fill.

    Writes `qLD` (nC,) and `qLDiagInv` (nv,) [1/(kg m^2)].

    Source: Featherstone sec. 6.5, table 6.3; MuJoCo mj_factorM.
    """
    _run(model, data, _factor_m)


def transmission(model: Model, data: Data) -> None:
    """Lengths and moments of the actuators; those on bodies act through the contacts that `collision` left.

    Writes `actuator_length` (nout,) [m, rad] and `actuator_moment` (nmoment,), rows on the dofs `moment_colind`.

    Source: MuJoCo mj_transmission (whose pattern follows from the state).
    """
    _run(model, data, _transmission)
    if model.nadhesion:
        _run(model, data, _contact_transmission)


def collision(model: Model, data: Data) -> None:
    """Contacts of the present frames: `data.contact`, `data.ncon`.

    They have no rows until `make_constraint` makes them.  Contacts beyond the capacity `data.nconmax` are dropped, the
    last ones first, and counted in `data.status`.

    Source: MuJoCo mj_collision.
    """
    _run(model, data, _collision)
    data.con_D[...] = 0.0


# ---- velocity --------------------------------------------------------------------------------------------------------


def com_vel(model: Model, data: Data) -> None:
    """Body velocities and the rates of the motion axes, at the tree's centre of mass, rotation first.

    Writes `cvel` (nbody, 6) [rad/s, m/s] and `cdof_dot` (nv, 6) [1/s, m/s].

    Source: MuJoCo mj_comVel; Featherstone eq. 5.14.
    """
    _run(model, data, _com_vel)


def passive(model: Model, data: Data) -> None:
    """Forces of springs, dampers, gravity compensation, a medium and adhesive contacts.

    Writes `qfrc_spring`, `qfrc_damper`, `qfrc_gravcomp`, `qfrc_fluid`, `qfrc_adhesion` and their sum `qfrc_passive`,
    each (nv,) [N, N m].  In a medium it reads what `com_vel` left; adhesive contacts are those that `collision` left.

    Source: MuJoCo mj_passive.
    """
    check_model(model)
    if model.flg_adhesion:
        _run(model, data, _adhesive_pull)
    _run(model, data, _passive)


def rne(model: Model, data: Data, flg_acc: bool = False) -> np.ndarray:
    """Recursive Newton-Euler: the forces of given motion.

    Args:
        model: the model.
        data: the world, with `com_pos` and `com_vel` valid.
        flg_acc: False gives C(q, v), Coriolis, centrifugal and gravity forces; True adds the forces that accelerate the
            bodies by `data.qacc`.

    Returns:
        (nv,) [N, N m], a copy; without acceleration it is also `data.qfrc_bias`.

    Source: Featherstone sec. 5.3, table 5.1; MuJoCo mj_rne.

    Note:
        Armature is no body: M qacc has its part, this result does not.
    """
    accelerated = flag("flg_acc", flg_acc)
    _run(model, data, _rne_acc if accelerated else _rne)
    return (data.qvec if accelerated else data.qfrc_bias).copy()


def subtree_vel(model: Model, data: Data) -> None:
    """Velocity of each subtree's centre of mass, and its angular momentum about that.

    Writes `subtree_linvel` (nbody, 3) [m/s] and `subtree_angmom` (nbody, 3) [kg m^2/s], world axes; reads what
    `com_vel` left.  A step writes them where a sensor of the model needs them, and in a batch where they are bound.

    Source: MuJoCo mj_subtreeVel.
    """
    _run(model, data, _subtree_vel)


# ---- force and acceleration ------------------------------------------------------------------------------------------


def actuation(model: Model, data: Data) -> None:
    """Actuator velocities and forces from `ctrl`, and their effect on the dofs.

    Writes `actuator_velocity` (nout,) [m/s, rad/s], `actuator_force` (nout,) and `qfrc_actuator` (nv,) [N, N m].

    Source: MuJoCo mj_fwdActuation.
    """
    _run(model, data, _actuation)


def smooth_acceleration(model: Model, data: Data) -> None:
    """All forces but those of constraints, `qfrc_smooth` (nv,) [N, N m], and the acceleration that they give.

    Writes `qacc_smooth` (nv,) [m/s^2, rad/s^2], by the factors of M.

    Source: MuJoCo mj_fwdAcceleration.
    """
    _run(model, data, _smooth_acceleration)


def aba(model: Model, data: Data) -> None:
    """The articulated-body algorithm: `qacc_smooth` (nv,) [m/s^2, rad/s^2] from forces in O(nv), without M.

    Reads what `com_vel`, `passive` and `actuation` left, and the applied forces.

    Raises:
        ModelError: a tendon has armature, for which there is no recursion over bodies.

    Source: Featherstone sec. 7.3, table 7.1 (armature adds to D).
    """
    check_model(model)
    heavy = (model.tendon_armature != 0.0) | (model.tendon_actuatorid != -1)
    if heavy.any():
        tendon = model.names("tendon")[heavy.argmax()] or f"#{heavy.argmax()}"
        raise ModelError(f"aba: tendon {tendon!r} may have armature, allowed are models without")
    _run(model, data, _aba)


def energy(model: Model, data: Data) -> None:
    """Potential energy of gravity and springs, and kinetic energy: `data.energy` (2,) [J].

    A step computes them, too, where `model.opt.enableflags` has the bit for energy: those of the state before the step.

    Note:
        Frames and M are read as the last pass left them, `qvel` and joint springs as they stand now.  After `step` the
        frames are those of the old position: the sum would mix it with the new velocity and drift by a term of the
        order of the timestep.  Call `forward_position` (or `forward`) first for the energy of the new state.

    Source: MuJoCo mj_energyPos, mj_energyVel.
    """
    _run(model, data, _energy)


def rne_post_constraint(model: Model, data: Data) -> None:
    """Accelerations of all bodies, forces on them from outside, and forces between each body and its parent.

    Writes `cacc` (nbody, 6) [rad/s^2, m/s^2], gravity included as acceleration upwards, `cfrc_ext` (nbody, 6) and
    `cfrc_int` (nbody, 6) [N m, N], each at its tree's centre of mass, rotation first; reads what `forward` left.  A
    step writes them where a sensor of the model needs them, and in a batch where they are bound.

    Source: MuJoCo mj_rnePostConstraint.
    """
    _run(model, data, _rne_post_constraint)


def inverse_smooth(model: Model, data: Data) -> np.ndarray:
    """Inverse dynamics without constraints: the force that gives `data.qacc` in the present state.

    tau = M qacc + C(q, v) - passive forces, everything computed anew from `qpos`, `qvel` and `qacc`.

    Returns:
        (nv,) [N, N m]: what actuators, `qfrc_applied` and `xfrc_applied` have to give together.

    Source: Featherstone eq. 5.1; MuJoCo mj_inverse (which goes by recursive Newton-Euler, and subtracts
    constraint forces, too).
    """
    forward_position(model, data)
    forward_velocity(model, data)
    return _mul_m(model, data, data.qacc) + data.qfrc_bias - data.qfrc_passive


# ---- derivatives by velocity -----------------------------------------------------------------------------------------


def rne_vel(model: Model, data: Data) -> None:
    """How Coriolis and centrifugal forces change with the velocities: `qDeriv` <- d `qfrc_bias` / d `qvel`.

    Writes `qDeriv` (nD,) [N s/m, N m s/rad], a sparse matrix by rows (`model.D_rowadr`, `D_rownnz`, `D_colind`): row i
    holds the ancestors of dof i, itself and its descendants.  Reads what `crb` and `com_vel` left.

    Source: Singh, Russo, Wensing, IEEE RA-L 7, 2022; MuJoCo mjd_rne_vel.
    """
    _run(model, data, _rne_vel)


def passive_vel(model: Model, data: Data) -> None:
    """How damping changes with the velocities: `qDeriv` (nD,) <- d `qfrc_passive` / d `qvel` [N s/m, N m s/rad].

    Source: MuJoCo mjd_passive_vel.
    """
    _run(model, data, _passive_vel)


def actuator_vel(model: Model, data: Data) -> None:
    """How actuators change with the velocities: `qDeriv` (nD,) <- d `qfrc_actuator` / d `qvel` [N s/m, N m s/rad].

    An actuator whose force, or the sum on whose joint, is clamped contributes nothing.  Reads what `actuation` left.

    Source: MuJoCo mjd_actuator_vel.
    """
    _run(model, data, _actuator_vel)


def smooth_vel(model: Model, data: Data) -> None:
    """How all smooth forces change with the velocities, as the integrator implicit takes it.

    Writes `qDeriv` (nD,) <- d (`qfrc_actuator` + `qfrc_passive` - `qfrc_bias`) / d `qvel` [N s/m, N m s/rad]; reads
    what `crb`, `com_vel` and `actuation` left.

    Source: MuJoCo mjd_smooth_vel.
    """
    _run(model, data, _smooth_vel)


# ---- constraints -----------------------------------------------------------------------------------------------------


def make_constraint(model: Model, data: Data) -> None:
    """Constraint rows: friction loss, limits, contacts; `data.nefc` of them, shown as `data.efc_J`, `data.efc_D`, ...

    Source: MuJoCo mj_makeConstraint, mj_referenceConstraint; chapter Computation, sec. "Constraint model".
    """
    _run(model, data, _contents.make_constraint)


def solve(model: Model, data: Data) -> None:
    """Newton's method on the rows: the acceleration under the constraints.

    Writes `qacc` (nv,) [m/s^2, rad/s^2], `qfrc_constraint` (nv,) [N, N m], `solver_niter` and `solver_residual`, the
    norm of the scaled gradient at the end.

    Source: MuJoCo mj_fwdConstraint with the Newton solver; chapter Computation, sec. "Solver".
    """
    _run(model, data, _contents.solve_constraint)


def islands(model: Model, data: Data) -> None:
    """Constraint islands of the present rows: trees that contacts, limits and other rows connect.

    Writes `nisland`, `tree_island` (ntree,) and `dof_island` (nv,): the number of the island, -1 where no row acts on
    the tree.  Islands are numbered by their first trees.

    Source: MuJoCo documentation, chapter Computation, sec. "Constraint islands".
    """
    _run(model, data, _islands)


# ---- integration -----------------------------------------------------------------------------------------------------


def euler(model: Model, data: Data) -> None:
    """Semi-implicit Euler with implicit joint damping, from `qacc` as it stands: `qvel`, `qpos`, `time`.

    Under the contact model `lcp` damping is in `qacc` already.

    Source: MuJoCo mj_Euler.
    """
    check_model(model)
    _run(model, data, _advance if model.opt.contact_model == "lcp" else _euler)


def implicitfast(model: Model, data: Data) -> None:
    """Implicit in the velocity without derivatives of Coriolis forces: `qvel`, `qpos`, `time`.

    Source: MuJoCo mj_implicit with the integrator implicitfast.
    """
    _run(model, data, _implicitfast)


def implicit(model: Model, data: Data) -> None:
    """Implicit in the velocity with all derivatives of smooth forces: `qvel`, `qpos`, `time`.

    Writes also `qDeriv` as `smooth_vel` does, and its factors `qLU` (nD,).

    Source: MuJoCo mj_implicit with the integrator implicit.
    """
    _run(model, data, _implicit)


def runge_kutta(model: Model, data: Data) -> None:
    """The fourth-order step, after `forward`: three more accelerations, then `qvel`, `qpos`, `time`.

    Source: MuJoCo mj_RungeKutta(4).
    """
    _run(model, data, _contents.runge_kutta)


def reset_data(model: Model, data: Data) -> None:
    """The data to the model's default state: qpos0, no velocity, no force; all derived fields zero.

    Source: MuJoCo mj_resetData.
    """
    ready(model, data).reset()


def reset_data_keyframe(model: Model, data: Data, key: str | int) -> None:
    """The data to a keyframe, by name or number.

    Raises:
        UnknownNameError: no such keyframe.

    Source: MuJoCo mj_resetDataKeyframe.
    """
    ready(model, data).reset(key)
