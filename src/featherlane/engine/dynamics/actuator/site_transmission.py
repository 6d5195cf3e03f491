"""Computes actuators on sites: a wrench in a site's frame, the relative pose of two sites, or a relative orientation.

    site               gear is a force and a torque in the site's frame, the length 0
    site and refsite   gear is a direction of pose in the reference's frame, the length the pose's component on it; the
                       wrench acts on the site's body, its opposite on the reference's
    so3                three outputs: the rotation vector of a ball joint, or of a site relative to its reference

The moment of a refsite or so3 is that of the wrench.  It equals the gradient of the length if the reference does not
rotate and the rotation vector is parallel to the gear's axis.
`clear_moment` clears the row of an output in actuator_moment, and `add_wrench_moment` adds J^T of a wrench to it.
quat_sub(q, r) is the rotation vector from r to q, in the axes of r.
i is the index of an actuator, o that of its output.
Source: MuJoCo, transmissions site and so3.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.wrench import add_wrench_moment, clear_moment


@kernel
def site_quat(m, d, s):
    """Returns the orientation of site s."""
    return d.xquat[m.site_bodyid[s]] @ m.site_quat[s]


@kernel
def _add_wrench_pair(m, d, o, s, r, force, torque):
    """Adds a wrench at site s and its opposite at site r to the moment of output o, each at its site's position."""
    add_wrench_moment(m, d, o, m.site_bodyid[s], d.site_xpos[s], force, torque)
    add_wrench_moment(m, d, o, m.site_bodyid[r], d.site_xpos[r], -force, -torque)


@kernel
def store_site_transmission(m, d, i):
    """Computes length and moment of an actuator on site s, with or without a reference site r.

    Length with a reference: gear . (position of s in the frame of r, rotation vector from r to s).
    Reads:  site_xpos, site_xmat, xquat.   Writes: actuator_length, actuator_moment.
    """
    o, s, r = m.actuator_outadr[i], m.actuator_trnid[i, 0], m.actuator_trnid[i, 1]
    force, torque = m.actuator_gear[o].force, m.actuator_gear[o].torque
    clear_moment(m, d, o)
    if r < 0:
        R, p = d.site_xmat[s], d.site_xpos[s]
        add_wrench_moment(m, d, o, m.site_bodyid[s], p, R @ force, R @ torque)
        d.actuator_length[o] = 0.0
    else:
        R = d.site_xmat[r]
        position = R.T @ (d.site_xpos[s] - d.site_xpos[r])
        rotation = quat_sub(site_quat(m, d, s), site_quat(m, d, r))
        _add_wrench_pair(m, d, o, s, r, R @ force, R @ torque)
        d.actuator_length[o] = dot(position, force) + dot(rotation, torque)


@kernel
def store_orientation_transmission(m, d, i):
    """Computes lengths and moments of the three outputs of an so3 actuator, of a ball joint or a site with reference r.

    The lengths are the rotation vector.  A rotation leaves its axis in place, so the components of this vector in the
    axes of the reference are also those in the axes of the target.  The torques act about the target's axes: those of a
    ball's body, which are its DoFs, or those of a site, with the opposite torques on the reference.
    So the velocity of an output is the relative angular velocity, not the rate of its length.
    Reads:  qpos, site_xpos, site_xmat, xquat.   Writes: actuator_length, actuator_moment.
    """
    # target: a ball joint if there is no reference (r < 0), else a site
    o, target, r = m.actuator_outadr[i], m.actuator_trnid[i, 0], m.actuator_trnid[i, 1]
    if r < 0:
        a = m.jnt_qposadr[target]
        rotation = quat_log(Quat(d.qpos[a : a + 4]).unit)
        # the row of output o + k has one entry: DoF k of the ball
        for k in range(3):
            d.actuator_moment[m.moment_rowadr[o + k]] = 1.0
    else:
        rotation = quat_sub(site_quat(m, d, target), site_quat(m, d, r))
        for k in range(3):
            clear_moment(m, d, o + k)
            _add_wrench_pair(m, d, o + k, target, r, Vec3(zeros(3)), d.site_xmat[target].columns[k])
    d.actuator_length[o : o + 3] = rotation
