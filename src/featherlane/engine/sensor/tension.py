"""Forces of spatial tendons on the bodies along their paths.

The total force of a tendon (spring, damper, actuators, rows and armature) is positive if it pushes the ends of the
path apart.  Every segment applies a force along its line to the bodies at its two ends.  If the path wraps around
a geom, forces act on the geom's body at the first and last contact points of the path.
Element k of the paths of all tendons is a site, a geom or a pulley (wrap_type), with the index wrap_objid; wrap_sideid
is a geom's side site, wrap_prm a pulley's divisor.  Tendon i has tendon_num elements from tendon_adr on.
Rows 0 to ndofrow - 1 act on one DoF each; the general rows, from ndofrow to nrow - 1, act on several DoFs.  Row k
has the entries row_J from row_dofadr[k] on.
`pulls_tendon` returns whether an actuator acts on the tendon, `jacobian_rate` returns (dJ/dt) qvel, `wrap` returns
(bends, first, last, arc): whether the path bends at a geom, the points where it meets and leaves it, and the length
between them.
Source: MuJoCo's change log of 4.0.0 on mj_rnePostConstraint.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.tendon import tendon_equality_error
from featherlane.engine.dynamics.body.com import point_wrench
from featherlane.engine.dynamics.tendon.force import (
    damper_force,
    jacobian_rate,
    pulls_tendon,
    spring_force,
    tendon_armature,
)
from featherlane.engine.dynamics.tendon.length import is_fixed
from featherlane.engine.dynamics.tendon.wrap import wrap


# ---- the force of a tendon ------------------------------------------------------------------------------------------
@kernel
def row_sign(m, d, i, k):
    """Returns 1 in worlds where general row k has the Jacobian of tendon i, -1 for the opposite Jacobian.

    Both have the same sparse entries; the sign is that of their dot product.
    """
    row, ten_row = d.row_dofadr[k], m.ten_J_rowadr[i]
    along = 0.0
    for n in range(m.ten_J_rownnz[i]):
        along = fma(d.row_J[row + n], d.ten_J[ten_row + n], along)
    return where(along < 0.0, -1.0, 1.0)


@kernel
def row_force(m, d, i):
    """Returns the force of the rows of tendon i: friction loss, limits, equalities."""
    force = 0.0
    for k in range(d.ndofrow[0], d.nrow[0]):
        kind, obj = d.row_type[k], d.row_id[k]
        f = where(d.row_present[k] > 0.0, d.row_force[k], 0.0)
        if kind in (FRICTION_TENDON, LIMIT_TENDON) and obj == i:
            force = fma(row_sign(m, d, i, k), f, force)
        elif kind == EQUALITY and m.eq_type[obj] == EQ_TENDON:
            # the row's Jacobian is J_1 - slope J_2, with the slope of the equality's polynomial
            if m.eq_obj1id[obj] == i:
                force = force + f
            if m.eq_obj2id[obj] == i:
                _, slope = tendon_equality_error(m, d, obj)
                force = fma(-slope, f, force)
    return force


@kernel
def armature_force(m, d, i):
    """Returns -armature (J qacc + (dJ/dt) qvel): the force of the armature of tendon i [N]."""
    armature = tendon_armature(m, i)
    length_acc = 0.0  # second derivative of the length
    if any_(armature != 0.0):
        length_acc = jacobian_rate(m, d, i)  # (dJ/dt) qvel
        for e in tendon_entries(m, i):
            length_acc = fma(d.ten_J[e], d.qacc[m.ten_J_colind[e]], length_acc)
    return -(armature * length_acc)


@kernel
def tendon_force(m, d, i):
    """Returns the total force of tendon i [N]: rows, armature, spring, damper and actuators."""
    force = row_force(m, d, i) + armature_force(m, d, i)
    if not (m.opt_disableflags & DISABLE_SPRING):
        force = force + spring_force(m, d, i)
    if not (m.opt_disableflags & DISABLE_DAMPER):
        force = force + damper_force(m, d, i)
    for k in range(m.nactuator):
        if pulls_tendon(m, k, i):
            output = m.actuator_outadr[k]
            force = fma(m.actuator_gear[output][0], d.actuator_force[output], force)
    return force


# ---- along the path -------------------------------------------------------------------------------------------------
@kernel
def add_body_wrench(m, d, b, mask, sign, force, moment, point):
    """cfrc_ext[b] += sign times a force at a point and a moment, in worlds of the mask; the world body is skipped."""
    if b > 0:
        old = d.cfrc_ext[b]
        new = fma(sign, point_wrench(d, force, moment, point, m.body_rootid[b]), old)
        d.cfrc_ext[b] = where(mask, new, old)


@kernel
def add_tension_force(m, d, b, mask, point, force):
    """cfrc_ext[b] += a force at a point, in world axes, in worlds of the mask."""
    add_body_wrench(m, d, b, mask, 1.0, force, Vec3(zeros(3)), point)


@kernel
def add_segment_forces(m, d, s, t, mask, force):
    """Adds the forces of the segment between sites s and t, in worlds of the mask; `force` pushes them apart."""
    s_pos, t_pos = d.site_xpos[s], d.site_xpos[t]
    u = normalize3(t_pos - s_pos)[0]
    add_tension_force(m, d, m.site_bodyid[s], mask, s_pos, -force * u)
    add_tension_force(m, d, m.site_bodyid[t], mask, t_pos, force * u)


@kernel
def add_wrapped_forces(m, d, k, mask, force):
    """Adds the forces of the path between the sites before and after element k, a geom, in worlds of the mask."""
    s, g, t = m.wrap_objid[k - 1], m.wrap_objid[k], m.wrap_objid[k + 1]
    s_pos, t_pos = d.site_xpos[s], d.site_xpos[t]
    # the path meets the geom at `first` and leaves it at `last`, in worlds where it bends
    bends, first, last, _ = wrap(m, d, s, t, g, m.wrap_type[k], m.wrap_sideid[k])
    # without wrapping, the first and the last segment are both the whole straight line
    first, last = where(bends, first, t_pos), where(bends, last, s_pos)
    # directions of the segments before and after the geom
    u, v = normalize3(first - s_pos)[0], normalize3(t_pos - last)[0]
    add_tension_force(m, d, m.site_bodyid[s], mask, s_pos, -force * u)
    add_tension_force(m, d, m.geom_bodyid[g], mask & bends, first, force * u)
    add_tension_force(m, d, m.geom_bodyid[g], mask & bends, last, -force * v)
    add_tension_force(m, d, m.site_bodyid[t], mask, t_pos, force * v)


@kernel
def add_path_forces(m, d, i, mask, force):
    """Adds the forces on the bodies along the path of the spatial tendon i, in worlds of the mask.

    Elements of the path are sites, geoms between two sites, and pulleys, which divide the force on what follows.
    """
    part_force = force
    k = m.tendon_adr[i]
    last = k + m.tendon_num[i] - 1
    while k < last:
        if m.wrap_type[k] == WRAP_PULLEY:
            part_force = force / m.wrap_prm[k]
            k += 1
        elif m.wrap_type[k + 1] == WRAP_PULLEY:
            k += 1  # no segment between a site and a pulley
        elif m.wrap_type[k + 1] >= WRAP_SPHERE:
            add_wrapped_forces(m, d, k + 1, mask, part_force)
            k += 2
        else:
            add_segment_forces(m, d, m.wrap_objid[k], m.wrap_objid[k + 1], mask, part_force)
            k += 1


@kernel
def tendon_forces(m, d, active):
    """Adds the forces of all spatial tendons to cfrc_ext, in the active worlds.

    Reads:  ten_*, qacc, actuator_force, row_* and row_force, cacc of Newton-Euler without joint accelerations.
    """
    for i in range(m.ntendon):
        if not is_fixed(m, i):
            add_path_forces(m, d, i, active, tendon_force(m, d, i))
