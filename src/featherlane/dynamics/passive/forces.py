"""Computes passive forces: springs and dampers of joints and tendons, gravity compensation, fluid forces, adhesion."""

from featherlane.prelude import *
from featherlane.dynamics.actuator.reflected import damping
from featherlane.dynamics.body.com import last_dof, point_wrench
from featherlane.dynamics.body.plastic import ball_reference, spring_reference
from featherlane.dynamics.passive.fluid import fluid_force, in_medium, medium_acts
from featherlane.dynamics.tendon.force import add_tendon_dampers, add_tendon_springs


@kernel
def spring_coefficients(m, j):
    """Returns (k, c, e): the spring force of joint j is -x (k + c x + e x^2)."""
    return m.jnt_stiffness[j], m.jnt_stiffnesspoly[j].second, m.jnt_stiffnesspoly[j].third


@kernel
def is_sprung(k):
    """Returns the mask of worlds where the joint has a spring."""
    return (k[0] != 0.0) | (k[1] != 0.0) | (k[2] != 0.0)


@kernel
def _vector_spring(d, v, k, x):
    """Computes the spring force of three DoFs from v on: along x, by its length."""
    sprung, r = is_sprung(k), norm3(x)
    s = fma(r, fma(r, k[2], k[1]), k[0])
    d.qfrc_spring[v : v + 3] = where(sprung, -(s * x), Vec3(zeros(3)))


@kernel
def ball_deflection(m, d, j):
    """Returns the rotation vector of ball j, or of free joint j, from its spring's rest."""
    a = m.jnt_qposadr[j]
    if is_free_joint(m.jnt_type[j]):
        a, rest = a + 3, Quat(m.qpos_spring[a + 3 : a + 7])
    else:
        rest = ball_reference(m, d, j)
    return quat_sub(Quat(d.qpos[a : a + 4]).unit, rest)


@kernel
def _springs(m, d):
    """Computes the spring force of each joint."""
    for j in range(m.njnt):
        a, v, kind = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_type[j]
        k = spring_coefficients(m, j)
        if is_scalar(kind):
            x = d.qpos[a] - spring_reference(m, d, j)
            d.qfrc_spring[v] = where(is_sprung(k), -(x * fma(x, fma(x, k[2], k[1]), k[0])), 0.0)
        elif any_(is_sprung(k)):
            if is_free_joint(kind):
                _vector_spring(d, v, k, Vec3(d.qpos[a : a + 3]) - Vec3(m.qpos_spring[a : a + 3]))
                v += 3
            _vector_spring(d, v, k, ball_deflection(m, d, j))


@kernel
def _dampers(m, d):
    """Computes the damping force of each DoF."""
    for i in range(m.nv):
        b, c, e = damping(m, d, i)
        v = d.qvel[i]
        s = fabs(v)
        d.qfrc_damper[i] = where((b != 0.0) | (c != 0.0) | (e != 0.0), -(v * fma(s, fma(s, e, c), b)), 0.0)


@kernel
def compensates(m):
    """Returns whether gravity is on and some body is compensated."""
    passive = m.opt_disableflags & (DISABLE_SPRING | DISABLE_DAMPER) != DISABLE_SPRING | DISABLE_DAMPER
    return m.ngravcomp > 0 and passive and not (m.opt_disableflags & DISABLE_GRAVITY)


@kernel
def _gravity_compensation(m, d):
    """Applies J^T to minus a fraction of each body's weight, at its centre of mass."""
    g, most = m.opt_gravity[0], 0.0
    for i in range(m.nbody):
        most = fmax(most, m.body_gravcomp[i])
    for i in range(1, m.nbody):
        # as in MuJoCo, negative compensation acts only in a world where some body's is positive
        s = where(most > 0.0, m.body_gravcomp[i], 0.0)
        if any_(s != 0.0):
            force = -(m.body_mass[i] * s) * g
            wrench = point_wrench(d, force, zeros(3), d.xipos[i], m.body_rootid[i])
            k = last_dof(m, i)
            while k >= 0:
                f = d.qfrc_gravcomp[k]
                d.qfrc_gravcomp[k] = where(s != 0.0, f + dot(d.cdof[k], wrench), f)
                k = m.dof_parentid[k]


@kernel
def add_adhesion_force(m, d, acts):
    """Adds the pull of adhesive contacts, which was computed before, if passive forces are enabled."""
    for i in range(m.nv):
        if acts:
            # a sum with 0 would change the sign of a zero in worlds without adhesion
            f, pull = d.qfrc_passive[i], d.qfrc_adhesion[i]
            d.qfrc_passive[i] = where(pull != 0.0, f + pull, f)
        else:
            d.qfrc_adhesion[i] = 0.0


@stage
def passive(m, d):
    """Computes passive forces: springs, dampers, gravity compensation, fluid forces and adhesive contacts.

    Spring: -x (k + c x + e x^2), for a ball or a free joint along the deflection and by its length; damper:
    -v (b + c |v| + e v^2).  Compensation that counts as an actuator's (jnt_actgravcomp) is added in `actuation`.
    Source: MuJoCo mj_passive; chapter Computation, passive forces.
    Reads:  qpos, qvel, plastic, xipos, subtree_com, cdof, ten_length, ten_velocity, ten_J; in a fluid cvel and the
            frames of bodies; qfrc_adhesion.
    Writes: qfrc_spring, qfrc_damper, qfrc_gravcomp, qfrc_fluid, qfrc_passive (nv,) [N, N m]; zeros in qfrc_adhesion
            without adhesion.
    Scratch: cfrc_fluid.
    Note:   if both springs and dampers are disabled, so are gravity compensation, fluid and adhesive forces.
    """
    flags = m.opt_disableflags
    for i in range(m.nv):
        d.qfrc_spring[i] = 0.0
        d.qfrc_damper[i] = 0.0
        d.qfrc_gravcomp[i] = 0.0
    if not (flags & DISABLE_SPRING):
        _springs(m, d)
        add_tendon_springs(m, d)
    if not (flags & DISABLE_DAMPER):
        _dampers(m, d)
        add_tendon_dampers(m, d)
    everything = flags & (DISABLE_SPRING | DISABLE_DAMPER)
    if compensates(m):
        _gravity_compensation(m, d)
    for i in range(m.nv):
        f = d.qfrc_spring[i] + d.qfrc_damper[i]
        if not m.jnt_actgravcomp[m.dof_jntid[i]]:
            f = f + d.qfrc_gravcomp[i]
        d.qfrc_passive[i] = f
    medium = in_medium(m)
    if medium_acts(m) and any_(medium):
        fluid_force(m, d)
        for i in range(m.nv):
            d.qfrc_passive[i] = where(medium, d.qfrc_passive[i] + d.qfrc_fluid[i], d.qfrc_passive[i])
    elif d.want_all:
        for i in range(m.nv):
            d.qfrc_fluid[i] = 0.0
    if m.flg_adhesion:
        add_adhesion_force(m, d, everything != DISABLE_SPRING | DISABLE_DAMPER)
