"""Computes forward kinematics: frames of bodies, joints, geoms and sites from qpos."""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.joint import move_joint


@kernel
def _body_offset(m, d, i):
    """Returns (position, orientation) of body i before its joints move, in world axes; of a mocap body, the given ones.

    Position x_p + R_p pos and orientation q_p quat, from the frame of the parent p.
    """
    body = m.body[i]
    p, mocap = body.parentid, body.mocapid
    if mocap >= 0:
        pos, quat = d.mocap_pos[mocap], d.mocap_quat[mocap].unit
    else:
        pos, quat = body.pos, body.quat
    if p > 0:
        pos = d.xpos[p] + d.xmat[p] @ pos
        quat = d.xquat[p] @ quat
    return pos, quat


@kernel
def store_body_frame(m, d, i):
    """Computes the frames of body i and its joints, from the frame of its parent; if its only joint is free, from qpos.

    Writes: xpos, xquat, xmat, xipos of the body; xanchor, xaxis of its joints.
    """
    first, njoint = m.body_jntadr[i], m.body_jntnum[i]
    if njoint == 1 and is_free_joint(m.jnt_type[first]):
        adr = m.jnt_qposadr[first]
        pos = Vec3(d.qpos[adr : adr + 3])
        quat = Quat(d.qpos[adr + 3 : adr + 7])
        d.xanchor[first] = pos
        d.xaxis[first] = m.jnt_axis[first]  # the motion of a free joint does not depend on it
    else:
        pos, quat = _body_offset(m, d, i)
        for j in range(first, first + njoint):
            pos, quat = move_joint(m, d, j, pos, quat)  # writes xanchor, xaxis
    quat = quat_renormalize(quat)
    R = quat.matrix
    d.xpos[i] = pos
    d.xquat[i] = quat
    d.xmat[i] = R
    d.xipos[i] = pos + R @ m.body_ipos[i]


@stage
def kinematics(m, d):
    """Computes the frames of all bodies and joints.

    A body starts at its offset from the parent and is moved by its joints in order; a body whose only joint is free
    takes its frame from qpos alone.  Quaternions in qpos need not have unit length; qpos is not changed.
    Source: MuJoCo mj_kinematics; Featherstone sec. 4.4.
    Reads:  qpos, mocap_pos, mocap_quat.
    Writes: xpos, xipos (nbody, 3) [m], xquat (nbody, 4), xmat (nbody, 9), xanchor [m], xaxis (njnt, 3).
    Frame: world.                          Cost: O(nbody + njnt).
    """
    d.xpos[0] = zeros(3)
    d.xquat[0] = (1.0, 0.0, 0.0, 0.0)
    d.xmat[0] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    d.xipos[0] = zeros(3)
    for i in range(1, m.nbody):
        store_body_frame(m, d, i)


@kernel
def geom_pose(m, d, g):
    """Returns position and orientation of geom g, from its body's frame."""
    b = m.geom_bodyid[g]
    return d.xpos[b] + d.xmat[b] @ m.geom_pos[g], (d.xquat[b] @ m.geom_quat[g]).matrix


@kernel
def store_geom_frame(m, d, g):
    """geom_xpos, geom_xmat <- the frame of geom g, from its body's frame."""
    d.geom_xpos[g], d.geom_xmat[g] = geom_pose(m, d, g)


@kernel
def store_site_frame(m, d, s, has_orientation):
    """site_xpos <- the position of site s, from its body's frame; site_xmat <- its orientation if `has_orientation`."""
    b = m.site_bodyid[s]
    d.site_xpos[s] = d.xpos[b] + d.xmat[b] @ m.site_pos[s]
    if has_orientation:
        d.site_xmat[s] = (d.xquat[b] @ m.site_quat[s]).matrix


@stage
def frames(m, d):
    """Computes the frames of all geoms and sites from those of their bodies; `forward` includes it.

    Source: MuJoCo mj_kinematics.
    Reads:  xpos, xquat, xmat.
    Writes: geom_xpos (ngeom, 3), site_xpos (nsite, 3) [m], geom_xmat (ngeom, 9), site_xmat (nsite, 9).   Frame: world.
    """
    for g in range(m.ngeom):
        store_geom_frame(m, d, g)
    for s in range(m.nsite):
        store_site_frame(m, d, s, has_orientation=1)


@kernel
def _store_geom_axis(m, d, g):
    """geom_xpos <- the position of geom g; the third column of geom_xmat <- its z axis, other columns unchanged."""
    b = m.geom_bodyid[g]
    d.geom_xpos[g] = d.xpos[b] + d.xmat[b] @ m.geom_pos[g]
    z = quat_z_axis(d.xquat[b] @ m.geom_quat[g])
    d.geom_xmat[g][2], d.geom_xmat[g][5], d.geom_xmat[g][8] = z


@stage
def collision_frames(m, d):
    """Computes the frames of geoms in candidate pairs, as needed in a step, bitwise identical to `frames`.

    If only z axes are read, only the z axis is computed; if contacts are off, nothing.
    Reads:  xpos, xquat, xmat, collide_geom.   Writes: geom_xpos, geom_xmat of these geoms.   Frame: world.
    """
    if not (m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_CONTACT)):
        # contacts among planes, spheres and capsules (all_round) read only z axes.  Other shapes, and groups of bodies
        # or geoms, are tested by bounding boxes, which have three axes.  Surface velocities are given in geoms' frames
        only_z_axes = m.all_round and m.ngroup + m.ncrowd + m.flg_surfacevel == 0
        for k in range(m.ncollide):
            if only_z_axes:
                _store_geom_axis(m, d, m.collide_geom[k])
            else:
                store_geom_frame(m, d, m.collide_geom[k])


@stage
def path_frames(m, d):
    """Computes the frames of the sites and geoms that tendons and transmissions read, bitwise identical to `frames`.

    step_site_turned[k] is 1 if the orientation of site step_site[k] is also read.
    Reads:  xpos, xquat, xmat, step_site, step_geom.   Writes: site_xpos, site_xmat, geom_xpos, geom_xmat of these.
    """
    for k in range(m.nstepsite):
        store_site_frame(m, d, m.step_site[k], m.step_site_turned[k])
    for k in range(m.nstepgeom):
        store_geom_frame(m, d, m.step_geom[k])
