"""Computes plastic springs: a deflection beyond the yield threshold moves the spring's reference.

The state `plastic` stores the reference: from `jnt_plasticadr` on a coordinate of a slide or hinge, or the quaternion
of a ball; from `tendon_plasticadr` on the two rest lengths of a tendon.  It replaces `qpos_spring` and
`tendon_lengthspring` in forces and energy.  At the end of a step the reference is moved towards the new
position (return mapping), so that the remaining deflection is the threshold y:

    x = q - q_ref;   |x| > y:  q_ref += (1 - y / |x|) x
    ball:                      q_ref <- q_ref exp((1 - y / |x|) x),  x the rotation vector from q_ref to q
    tendon:                    both lengths move; a lower one that is 0, of a string that can go slack, stays
                               while the upper one is stretched

The new length of a tendon is the old one and J times the motion of the step.
Source: MuJoCo 4, attribute springyield.  Found by experiment with 4.0.1: one update per step at the new position, only
with springs enabled; a threshold below 0 counts as 0; the tendon length above.
"""

from featherlane.engine.prelude import *


@kernel
def spring_reference(m, d, j):
    """Returns the rest position of the spring of slide or hinge j."""
    if m.nplastic > 0 and m.jnt_plasticadr[j] >= 0:
        rest = d.plastic[m.jnt_plasticadr[j]]
    else:
        rest = m.qpos_spring[m.jnt_qposadr[j]]
    return rest


@kernel
def ball_reference(m, d, j):
    """Returns the rest orientation of the spring of ball j."""
    p = m.jnt_plasticadr[j]
    if p >= 0:
        rest = Quat(d.plastic[p : p + 4])
    else:
        adr = m.jnt_qposadr[j]
        rest = Quat(m.qpos_spring[adr : adr + 4])
    return rest


@kernel
def _yield_ball(d, adr, p, limit):
    """Updates the spring's reference of a ball: the quaternion at plastic[p]; that of the joint is at qpos[adr].

    q_ref <- q_ref exp((1 - limit / |x|) x) if |x| > limit, x the rotation vector from q_ref to q.
    """
    rest = Quat(d.plastic[p : p + 4])
    x = quat_sub(Quat(d.qpos[adr : adr + 4]).unit, rest)
    angle = norm3(x)
    beyond = angle > limit
    fraction = where(beyond, 1.0 - limit / where(beyond, angle, 1.0), 0.0)
    moved = (rest @ rotation_vector_quat(fraction * x)).unit
    d.plastic[p : p + 4] = where(beyond, moved, rest)


@kernel
def tendon_reference(m, d, i):
    """Returns (lower, upper): rest lengths of the spring of tendon i."""
    p = m.tendon_plasticadr[i]
    if p >= 0:
        rest = Range(d.plastic[p : p + 2])
    else:
        rest = m.tendon_lengthspring[i]
    return rest


@kernel
def _yield_tendon(d, p, length, limit):
    """Updates the two rest lengths of a tendon, plastic[p] and plastic[p + 1], which has the given length.

    Both move by the excess of the length over high + limit, or below low - limit.
    """
    low, high = d.plastic[p : p + 2]
    stretched = length > high + limit
    crushed = not_(stretched) & (length < low - limit)
    shift = where(stretched, (length - limit) - high, where(crushed, (length + limit) - low, 0.0))
    # a string that can go slack has the rest lengths 0 and high: 0 stays while the string is stretched
    keeps_low = stretched & (low == 0.0) & (high > 0.0)
    d.plastic[p] = where(keeps_low, low, low + shift)
    d.plastic[p + 1] = high + shift


@kernel
def yield_springs(m, d, length, J, velocity):
    """plastic <- references within the threshold of the new position.

    Args:
        length: (ntendon,) lengths of the tendons at the start of the step [m].
        J: (nJten,) their Jacobian there.
        velocity: (nv,) the velocity that took the step to its end.

    Reads:  qpos, plastic.   Writes: plastic (nplastic,) [m, rad, quaternion].
    """
    if m.nplastic > 0 and not (m.opt_disableflags & DISABLE_SPRING):
        h = timestep(m)
        for i in range(m.ntendon):
            if m.tendon_plasticadr[i] >= 0:
                # new length = length + h J velocity
                rate = 0.0
                for e in tendon_entries(m, i):
                    rate = fma(J[e], velocity[m.ten_J_colind[e]], rate)
                limit = fmax(m.tendon_springyield[i], 0.0)
                _yield_tendon(d, m.tendon_plasticadr[i], fma(h, rate, length[i]), limit)
        for j in range(m.njnt):
            joint = m.joint[j]
            p = joint.plasticadr
            if p >= 0:
                adr = joint.qposadr
                limit = fmax(joint.springyield, 0.0)
                if is_ball(joint.type):
                    _yield_ball(d, adr, p, limit)
                else:
                    # the update of the module docstring clips q_ref to [q - y, q + y]
                    d.plastic[p] = fmax(fmin(d.plastic[p], d.qpos[adr] + limit), d.qpos[adr] - limit)
