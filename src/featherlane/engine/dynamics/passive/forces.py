"""Computes passive forces: springs and dampers of joints and tendons, gravity compensation, fluid forces, adhesion.

Imported kernels:

    has_coefficients(c)            mask of worlds where one of the coefficients (k, c, e) is not 0
    spring_reference(m, d, j)      rest position of the spring of slide or hinge j
    ball_reference(m, d, j)        rest quaternion of the spring of ball j
    spring_law, damper_law         force -x (k + c x + e x^2) or -v (b + c |v| + e v^2) for coefficients and x or v
    vector_spring_law              the spring's force along a deflection x, by its length |x|
    damping_coefficients(m, d, i)  (b, c, e) of DoF i, of its joint and actuators
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.reflected import damping_coefficients
from featherlane.engine.dynamics.body.com import point_wrench
from featherlane.engine.dynamics.body.force_laws import (
    damper_law,
    has_coefficients,
    spring_energy,
    spring_law,
    vector_spring_law,
)
from featherlane.engine.dynamics.body.plastic import ball_reference, spring_reference
from featherlane.engine.dynamics.passive.fluid import fluid_force, fluid_worlds, passive_forces_act
from featherlane.engine.dynamics.tendon.force import add_tendon_dampers, add_tendon_springs


@kernel
def spring_coefficients(m, j):
    """Returns (k, c, e): the spring force of joint j is -x (k + c x + e x^2)."""
    return m.jnt_stiffness[j], m.jnt_stiffnesspoly[j].second, m.jnt_stiffnesspoly[j].third


@kernel
def ball_deflection(m, d, j):
    """Returns the rotation vector of ball j, or of free joint j, from its spring's rest, in body axes."""
    adr = m.jnt_qposadr[j]
    if is_free_joint(m.jnt_type[j]):
        adr, rest = adr + 3, Quat(m.qpos_spring[adr + 3 : adr + 7])
    else:
        rest = ball_reference(m, d, j)
    return quat_sub(Quat(d.qpos[adr : adr + 4]).unit, rest)


@kernel
def joint_spring_force(m, d, j):
    """Returns the force of the spring of slide or hinge j [N, N m]."""
    return spring_law(spring_coefficients(m, j), d.qpos[m.jnt_qposadr[j]] - spring_reference(m, d, j))


@kernel
def joint_spring_energy(m, d, j):
    """Returns the energy of the spring of slide or hinge j [J]; its derivative by the position is minus the force."""
    return spring_energy(spring_coefficients(m, j), d.qpos[m.jnt_qposadr[j]] - spring_reference(m, d, j))


@kernel
def dof_damper_force(m, d, i):
    """Returns the force of the damper of DoF i [N, N m]."""
    return damper_law(damping_coefficients(m, d, i), d.qvel[i])


@kernel
def _store_spring_forces(m, d):
    """qfrc_spring <- forces of the joints' springs; three DoFs of a ball or a free joint along the deflection."""
    for j in range(m.njnt):
        adr, dof, kind = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_type[j]
        coefficients = spring_coefficients(m, j)
        if is_scalar(kind):
            d.qfrc_spring[dof] = joint_spring_force(m, d, j)
        elif any_(has_coefficients(coefficients)):
            if is_free_joint(kind):
                x = Vec3(d.qpos[adr : adr + 3]) - Vec3(m.qpos_spring[adr : adr + 3])
                d.qfrc_spring[dof : dof + 3] = vector_spring_law(coefficients, x)
                dof += 3
            d.qfrc_spring[dof : dof + 3] = vector_spring_law(coefficients, ball_deflection(m, d, j))


@kernel
def has_gravity_compensation(m):
    """Returns whether gravity and passive forces (springs or dampers) are on and some body is compensated."""
    return m.ngravcomp > 0 and passive_forces_act(m) and not (m.opt_disableflags & DISABLE_GRAVITY)


@kernel
def _add_gravity_compensation(m, d):
    """qfrc_gravcomp += J^T (minus the fraction body_gravcomp of each body's weight), at its centre of mass."""
    g = m.opt_gravity[0]
    largest = 0.0
    for i in range(m.nbody):
        largest = fmax(largest, m.body_gravcomp[i])
    for i in range(1, m.nbody):
        # as in MuJoCo, negative compensation acts only in a world where some body's is positive
        fraction = where(largest > 0.0, m.body_gravcomp[i], 0.0)
        if any_(fraction != 0.0):
            force = -(m.body_mass[i] * fraction) * g
            # the spatial force at the centre of mass of the tree, to which cdof refers
            wrench = point_wrench(d, force, moment=zeros(3), point=d.xipos[i], root=m.body_rootid[i])
            k = m.body_lastdof[i]  # then its ancestors; -1: none
            while k >= 0:
                f = d.qfrc_gravcomp[k]
                d.qfrc_gravcomp[k] = where(fraction != 0.0, f + dot(d.cdof[k], wrench), f)
                k = m.dof_parentid[k]


@kernel
def add_adhesion_force(m, d, acts):
    """qfrc_passive += the pull of adhesive contacts, qfrc_adhesion, computed before; if not `acts`, clears it instead.

    acts: whether passive forces are enabled.
    """
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
        _store_spring_forces(m, d)  # qfrc_spring
        add_tendon_springs(m, d)
    if not (flags & DISABLE_DAMPER):
        for i in range(m.nv):
            d.qfrc_damper[i] = dof_damper_force(m, d, i)
        add_tendon_dampers(m, d)
    if has_gravity_compensation(m):
        _add_gravity_compensation(m, d)
    for i in range(m.nv):
        f = d.qfrc_spring[i] + d.qfrc_damper[i]
        if not m.jnt_actgravcomp[m.dof_jntid[i]]:
            f = f + d.qfrc_gravcomp[i]
        d.qfrc_passive[i] = f
    has_fluid = fluid_worlds(m)
    if passive_forces_act(m) and any_(has_fluid):
        fluid_force(m, d)  # writes qfrc_fluid
        for i in range(m.nv):
            d.qfrc_passive[i] = where(has_fluid, d.qfrc_passive[i] + d.qfrc_fluid[i], d.qfrc_passive[i])
    elif d.want_all:  # all outputs are requested
        for i in range(m.nv):
            d.qfrc_fluid[i] = 0.0
    if m.flg_adhesion:
        add_adhesion_force(m, d, acts=passive_forces_act(m))
