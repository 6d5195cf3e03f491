"""Accelerations of bodies, external forces on them, and the forces between a body and its parent.

External forces are those of the user, of contacts, of equality constraints between bodies, and of tendons along their
paths.  The rest of a body's mass times acceleration comes from its parent through the joint; a force sensor
measures it.

d.active is 1 in the worlds whose contacts and rows are in the tile; the kernels take it as the mask `active`.
Rows 0 to ndofrow - 1 act on one DoF each; the general rows, from ndofrow to nrow - 1, act on several DoFs.
pass_joints(m, d, b, vel, acc) returns (velocity, acceleration at qacc = 0) of body b, from those of its parent.
fastened_body and anchor return the body, and the anchor in world axes, of a connect or weld on side 0 or 1;
`orientations` returns (frame of a weld's rotation error, the error as a quaternion).
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.equality import anchor, fastened_body, is_fastening, orientations
from featherlane.engine.dynamics.actuator.adhesion import normal_force
from featherlane.engine.dynamics.body.joint import moved_along
from featherlane.engine.dynamics.body.newton_euler import pass_joints, world_acceleration
from featherlane.engine.sensor.tension import add_body_wrench, tendon_forces


# ---- external forces ------------------------------------------------------------------------------------------------
@kernel
def set_applied_forces(m, d, active):
    """cfrc_ext <- xfrc_applied, which acts at the bodies' centres of mass, in the active worlds."""
    # other worlds keep their values
    zero = Force(zeros(6))
    d.cfrc_ext[0] = where(active, zero, d.cfrc_ext[0])
    for b in range(1, m.nbody):
        d.cfrc_ext[b] = where(active, zero, d.cfrc_ext[b])
        applied = d.xfrc_applied[b]
        has_force = (
            fabs(applied[0])
            + fabs(applied[1])
            + fabs(applied[2])
            + (fabs(applied[3]) + fabs(applied[4]) + fabs(applied[5]))
        ) != 0.0
        if any_(has_force):
            add_body_wrench(
                m, d, b, active & has_force, sign=1.0, force=applied.force, moment=applied.torque, point=d.xipos[b]
            )


@kernel
def add_contact_forces(m, d, active):
    """cfrc_ext += contact forces on the second body, and their opposite on the first, in the active worlds."""
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        acts = active & (c.present > 0.0) & (c.D != 0.0)  # D = 0: no row, no force
        # in the frame of the contact; normal_force: without the pull of adhesion
        R, contact_force = c.frame, c.force
        force = R.T @ Vec3(normal_force(m, d, k), contact_force.fy, contact_force.fz)
        moment = R.T @ contact_force.torque
        point = c.pos
        add_body_wrench(m, d, c.carrier[0], acts, sign=-1.0, force=force, moment=moment, point=point)
        add_body_wrench(m, d, c.carrier[1], acts, sign=1.0, force=force, moment=moment, point=point)


@kernel
def weld_moment(m, d, e, f):
    """Returns the moment on the first body of forces f along the rotation error of weld e, in world axes.

    q = (q_0, q_v) is the error as a quaternion, R the matrix of its frame, and scale the weld's torquescale.
    With y = R^T (omega_1 - omega_2) the error has the rate scale vec(y q) / 2.  So the power of the forces is

        f . scale (q_0 y + y x q_v) / 2 = (omega_1 - omega_2) . R scale (q_0 f + q_v x f) / 2
    """
    frame, q = orientations(m, d, e)
    moment = fma(q.w, f, cross(Vec3(q.x, q.y, q.z), f))
    return frame.matrix @ (0.5 * m.eq_data[e, 10] * moment)  # eq_data[10]: torquescale


@kernel
def add_fastening_forces(m, d, active):
    """cfrc_ext += forces of connects and welds: on the first body, and their opposite on the second, at their anchors.

    A connect has three rows, whose forces act at the anchors; a weld has three more, of its rotation error.
    active: mask of worlds.
    """
    k = d.ndofrow[0]
    while k < d.nrow[0]:
        nrow, e = d.row_rownum[k], d.row_id[k]  # rows of the constraint that begins at row k
        if d.row_type[k] == EQUALITY and is_fastening(m, e):
            acts = active & (d.row_present[k] > 0.0)
            force = Vec3(d.row_force[k : k + 3])
            moment = Vec3(zeros(3))
            if m.eq_type[e] == EQ_WELD:
                moment = weld_moment(m, d, e, Vec3(d.row_force[k + 3 : k + 6]))
            b1 = fastened_body(m, e, side=0)
            add_body_wrench(m, d, b1, acts, sign=1.0, force=force, moment=moment, point=anchor(m, d, e, side=0))
            b2 = fastened_body(m, e, side=1)
            add_body_wrench(m, d, b2, acts, sign=-1.0, force=force, moment=moment, point=anchor(m, d, e, side=1))
        k += nrow


@stage
def external_forces(m, d):
    """Computes forces on bodies that do not act through their joints, in the worlds whose rows are in the tile.

    Source: MuJoCo mj_rnePostConstraint.
    Reads:  xfrc_applied, con_* and con_force, row_* and row_force, ten_*, actuator_force, qacc, subtree_com, cacc
            of Newton-Euler without joint accelerations.
    Writes: cfrc_ext (nbody, 6) [N m, N] of these worlds.   Frame: world axes at the tree's com.
    """
    active = d.active[0] > 0.0
    set_applied_forces(m, d, active)
    add_contact_forces(m, d, active)
    add_fastening_forces(m, d, active)
    tendon_forces(m, d, active)


# ---- between bodies -------------------------------------------------------------------------------------------------
@kernel
def pass_axis(d, dof, before, vel, acc):
    """Returns (velocity, acceleration) after a dof: vel + S qvel, acc + S qacc + (before x S) qvel.

    before: velocity before the joint, at which the axis S moves; vel, acc: motions before the dof.
    """
    S = d.cdof[dof]
    acc = fma(d.qacc[dof], S, fma(d.qvel[dof], cross_motion(before, S), acc))
    return fma(d.qvel[dof], S, vel), acc


@kernel
def pass_moving_joints(m, d, b, vel, acc):
    """Returns the acceleration of body b: a += S qacc + dS/dt qvel.

    vel, acc: velocity and acceleration of its parent.
    """
    for j in body_joints(m, b):
        dof, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            vel = moved_along(vel, Vec3(d.qvel[dof : dof + 3]))
            acc = moved_along(acc, Vec3(d.qacc[dof : dof + 3]))
            dof += 3
        before = vel  # the axes of one ball have the same motion before them
        vel, acc = pass_axis(d, dof, before, vel, acc)
        if has_quaternion(kind):
            vel, acc = pass_axis(d, dof + 1, before, vel, acc)
            vel, acc = pass_axis(d, dof + 2, before, vel, acc)
    return acc


@stage
def interaction_forces(m, d):
    """Computes accelerations of bodies under qacc, and the force of each body's parent on it.

    f_i = I_i a_i + v_i x* I_i v_i - f_ext,i + sum over children f_j.
    Source: MuJoCo mj_rnePostConstraint; Featherstone sec. 5.3, table 5.1.
    Reads:  qvel, qacc, cdof, cvel, cinert, cfrc_ext, opt_gravity.
    Writes: cacc (nbody, 6) [rad/s^2, m/s^2], gravity included as -g, cfrc_int (nbody, 6) [N m, N].
    Frame: world axes at the tree's com.   Cost: O(nv).
    """
    d.cacc[0] = world_acceleration(m)
    d.cfrc_int[0] = zeros(6)
    for b in range(1, m.nbody):
        p = m.body_parentid[b]
        acc = pass_moving_joints(m, d, b, d.cvel[p], d.cacc[p])
        d.cacc[b] = acc
        # f_i without the children
        I, vel = d.cinert[b], d.cvel[b]
        d.cfrc_int[b] = I @ acc + cross_force(vel, I @ vel) - d.cfrc_ext[b]
    # leaves first
    for b in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[b]
        d.cfrc_int[p] += d.cfrc_int[b]


@kernel
def accelerations_of_velocity(m, d):
    """Computes cacc by Newton-Euler without joint accelerations, which the armature of tendons reads."""
    d.cacc[0] = world_acceleration(m)
    for b in range(1, m.nbody):
        p = m.body_parentid[b]
        _, acc = pass_joints(m, d, b, d.cvel[p], d.cacc[p])
        d.cacc[b] = acc


@stage
def rne_post_constraint(m, d):
    """Computes accelerations of all bodies, external forces on them, and forces between each body and its parent.

    Runs `external_forces`, then `interaction_forces`.  A step runs it if a sensor of the model needs it, a batch also
    if a result is bound.
    Source: MuJoCo mj_rnePostConstraint.
    Reads:  all that `forward` wrote.
    Writes: cacc (nbody, 6) [rad/s^2, m/s^2], gravity included as acceleration upwards; cfrc_ext, cfrc_int (nbody, 6) [N
            m, N].
    Frame:  world axes at the tree's com, rotation first.
    """
    accelerations_of_velocity(m, d)
    external_forces(m, d)
    interaction_forces(m, d)
