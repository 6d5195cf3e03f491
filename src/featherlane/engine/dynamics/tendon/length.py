"""Computes tendon lengths, their Jacobian, and their rates.

    fixed      L = sum of c_j q_j over slides and hinges
    spatial    L = sum of the lengths of its segments, each over the divisor of the last pulley before it

A segment from point x on body a to point y on body b has the length rate u . (dy - dx), u = (y - x) / |y - x|: it
pulls the two bodies at its ends together.  So a row of the Jacobian is the effect of a unit tension on the DoFs.  The
forces of all segments are summed on the bodies, as wrenches at the com of each tree, and propagated to the root,

    f_a -= u,  f_b += u;    J_i = S_i . f,  f_parent += f,

as in the backward pass of Newton-Euler; the scratch cfrc[b] holds f_b.  The part of a path that lies on a geom moves
with the geom's body and does no work.  The pattern of the rows is fixed at load time: all DoFs above any body on the
path. Row i has ten_J_rownnz[i] entries from ten_J_rowadr[i] on, whose DoFs are in ten_J_colind.

Tendon i has the tendon_num[i] elements from tendon_adr[i] on.  Element k has the type wrap_type[k], the object
wrap_objid[k] (joint, site, geom) and the parameter wrap_prm[k] (a coefficient, or the divisor of a pulley).

point_wrench(d, force, moment, point, root) returns the wrench of a force at a point, at the com of the tree of `root`.
wrap(m, d, s, t, g, ...) returns (bends, p, q, arc) of the path from site s to t around geom g: whether it bends, the
points where it meets and leaves the geom, and the length between them.

Source: MuJoCo mj_tendon, mj_fwdVelocity; chapter Computation, "Actuation model" (moment arms).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.com import point_wrench
from featherlane.engine.dynamics.tendon.wrap import wrap


@kernel
def is_fixed(m, i):
    """Returns whether tendon i is a combination of joints."""
    return m.wrap_type[m.tendon_adr[i]] == WRAP_JOINT


@kernel
def _fixed_length(m, d, i):
    """Returns the length sum c_j q_j of the fixed tendon i; writes its row of ten_J: the coefficients c_j."""
    length = 0.0
    row = m.ten_J_rowadr[i]
    for k in range(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i]):
        j, coefficient = m.wrap_objid[k], m.wrap_prm[k]
        e = row  # finds the entry whose DoF is that of joint j
        while m.ten_J_colind[e] != m.jnt_dofadr[j]:
            e += 1
        d.ten_J[e] = coefficient
        length = fma(coefficient, d.qpos[m.jnt_qposadr[j]], length)
    return length


# ---- a unit tension on the bodies ------------------------------------------------------------------------------------
@kernel
def moving_body(m, b):
    """Returns the nearest body with DoFs on the path from body b to the root, which moves b; or 0."""
    i = m.body_lastdof[b]
    return m.dof_bodyid[i] if i >= 0 else 0


@kernel
def _clear_forces(m, d, i):
    """cfrc <- 0 of the bodies that tendon i can pull."""
    for e in tendon_entries(m, i):
        k = m.ten_J_colind[e]
        b = m.dof_bodyid[k]
        # once per body, at its first DoF
        if m.body_dofadr[b] == k:
            d.cfrc[b] = zeros(6)


@kernel
def _add_force(m, d, b, point, force):
    """cfrc += a force at a point of body b, on the body with DoFs that moves it."""
    c = moving_body(m, b)
    if c > 0:
        d.cfrc[c] += point_wrench(d, force, moment=zeros(3), point=point, root=m.body_rootid[c])


@kernel
def _forces_to_dofs(m, d, i):
    """ten_J, row i <- the components of the forces cfrc along each axis, from the leaves to the root.

    J_k = S_k . f_b;  f_parent += f_b.
    """
    row = m.ten_J_rowadr[i]
    # DoFs of children before those of their parents
    for e in range(row + m.ten_J_rownnz[i] - 1, row - 1, -1):
        k = m.ten_J_colind[e]
        b, parent_dof = m.dof_bodyid[k], m.dof_parentid[k]
        f = d.cfrc[b]
        d.ten_J[e] = dot(d.cdof[k], f)
        # once per body, at its first DoF
        if parent_dof >= 0 and m.body_dofadr[b] == k:
            d.cfrc[m.dof_bodyid[parent_dof]] += f


# ---- segments --------------------------------------------------------------------------------------------------------
@kernel
def _add_straight_segment(m, d, s, t, scale):
    """Returns the length of the segment between sites s and t; adds its forces of magnitude `scale` to cfrc."""
    a, b, x, y = m.site_bodyid[s], m.site_bodyid[t], d.site_xpos[s], d.site_xpos[t]
    u, length = normalize3(y - x)
    force = scale * u
    # forces within one moving body cancel
    if moving_body(m, a) != moving_body(m, b):
        _add_force(m, d, a, x, -force)
        _add_force(m, d, b, y, force)
    return length


@kernel
def _add_wrapped_segment(m, d, k, scale):
    """Returns |p - x| + arc + |y - q|, the length of the path from site x around element k, a geom, to site y.

    Adds its forces of magnitude `scale` to cfrc of the three bodies.  The path goes straight from x on body a to p,
    follows the geom of body b from p to q, and goes straight to y on body c.
    """
    s, g, t = m.wrap_objid[k - 1], m.wrap_objid[k], m.wrap_objid[k + 1]
    a, b, c = m.site_bodyid[s], m.geom_bodyid[g], m.site_bodyid[t]
    x, y = d.site_xpos[s], d.site_xpos[t]
    bends, p, q, arc = wrap(m, d, s, t, g, m.wrap_type[k], m.wrap_sideid[k])
    # a path that does not bend is straight: both of its straight parts are then the whole path
    p, q = where(bends, p, y), where(bends, q, x)
    u, before = normalize3(p - x)
    v, after = normalize3(y - q)
    if moving_body(m, a) == moving_body(m, c):
        # One body moves both sites: the forces of a straight path cancel, as do those of a path around a geom that this
        # body moves.  They are left out, because the rounding error of their sum would be a moment arm.
        geom_moves_apart = 1.0 if moving_body(m, b) != moving_body(m, a) else 0.0
        scale = where(bends, geom_moves_apart * scale, 0.0)
    u, v = scale * u, scale * v
    _add_force(m, d, a, x, -u)
    _add_force(m, d, b, p, where(bends, 1.0, 0.0) * u)
    _add_force(m, d, b, q, where(bends, -1.0, 0.0) * v)
    _add_force(m, d, c, y, v)
    return where(bends, before + arc + after, before)


@kernel
def _spatial_length(m, d, i):
    """Returns the length of the spatial tendon i, the sum of |segment| / divisor; writes its gradient, a row of ten_J.

    The divisor is that of the last pulley before the segment.
    """
    length, scale = 0.0, 1.0
    _clear_forces(m, d, i)
    k = m.tendon_adr[i]
    last = k + m.tendon_num[i] - 1
    # k: a pulley, or a site at the start of a segment
    while k < last:
        if m.wrap_type[k] == WRAP_PULLEY:
            scale = 1.0 / m.wrap_prm[k]
            k += 1
        elif m.wrap_type[k + 1] == WRAP_PULLEY:
            # no segment leads to a pulley
            k += 1
        elif m.wrap_type[k + 1] >= WRAP_SPHERE:
            # the types from WRAP_SPHERE on are geoms: site, geom, site
            length = fma(scale, _add_wrapped_segment(m, d, k + 1, scale), length)
            k += 2
        else:
            length = fma(scale, _add_straight_segment(m, d, m.wrap_objid[k], m.wrap_objid[k + 1], scale), length)
            k += 1
    _forces_to_dofs(m, d, i)
    return length


# ---- stages ----------------------------------------------------------------------------------------------------------
@stage
def tendon(m, d):
    """Computes the lengths of tendons and their Jacobian, the derivative of each length's rate by each DoF.

    Fixed tendons are sums of joint coordinates, spatial ones the shortest paths along sites and around geoms.  Row i of
    the Jacobian is stored from `model.ten_J_rowadr[i]` on, its DoFs in `model.ten_J_colind`.
    Source: MuJoCo mj_tendon (its wrap_xpos, the path for rendering, is computed on request: see `tendon_path`).
    Reads:  qpos, site_xpos, geom_xpos, geom_xmat, subtree_com, cdof.
    Writes: ten_length (ntendon,) [m], ten_J (nJten,) [1, m].
    Scratch: cfrc.
    Frame:  world axes at the tree's com.   Cost: O(elements of the paths + nJten).
    """
    for i in range(m.ntendon):
        # both kernels also write row i of ten_J
        if is_fixed(m, i):
            d.ten_length[i] = _fixed_length(m, d, i)
        else:
            d.ten_length[i] = _spatial_length(m, d, i)


@stage
def tendon_velocity(m, d):
    """Computes ten_velocity = J qvel.

    Source: MuJoCo mj_fwdVelocity.
    Reads:  ten_J (nJten,), qvel (nv,).   Writes: ten_velocity (ntendon,) [m/s].
    """
    for i in range(m.ntendon):
        rate = 0.0
        for e in tendon_entries(m, i):
            rate = fma(d.ten_J[e], d.qvel[m.ten_J_colind[e]], rate)
        d.ten_velocity[i] = rate


@kernel
def add_tendon_force(m, d, i, force, x):
    """x += J^T force of tendon i, bitwise unchanged where the force is 0; x is (nv,)."""
    for e in tendon_entries(m, i):
        k = m.ten_J_colind[e]
        x[k] = where(force != 0.0, fma(d.ten_J[e], force, x[k]), x[k])
