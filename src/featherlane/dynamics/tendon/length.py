"""Computes tendon lengths, their Jacobian, and their rates.

    fixed      L = sum of c_j q_j over slides and hinges
    spatial    L = sum of the lengths of its segments, each over the divisor of the last pulley before it

A segment from point x on body a to point y on body b has the length rate u . (dy - dx), u = (y - x) / |y - x|: it
pulls the two bodies at its ends together.  So a row of the Jacobian is the effect of a unit tension on the DoFs.  The
forces of all segments are summed on the bodies, as wrenches at the com of each tree, and propagated to the root,

    f_a -= u,  f_b += u;    J_i = S_i . f,  f_parent += f,

as in the backward pass of Newton-Euler.  The part of a path that lies on a geom moves with the geom's body and does no
work.  The pattern of the rows is fixed at load time: all DoFs above any body on the path.
Source: MuJoCo mj_tendon, mj_fwdVelocity; chapter Computation, "Actuation model" (moment arms).
"""

from featherlane.prelude import *
from featherlane.dynamics.body.com import point_wrench
from featherlane.dynamics.tendon.wrap import wrap


@kernel
def is_fixed(m, i):
    """Returns whether tendon i is a combination of joints."""
    return m.wrap_type[m.tendon_adr[i]] == WRAP_JOINT


@kernel
def _fixed(m, d, i):
    """Computes the length of the fixed tendon i; writes its row of the Jacobian."""
    length, row = 0.0, m.ten_J_rowadr[i]
    for k in range(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i]):
        j, c, e = m.wrap_objid[k], m.wrap_prm[k], row
        while m.ten_J_colind[e] != m.jnt_dofadr[j]:
            e += 1
        d.ten_J[e] = c
        length = fma(c, d.qpos[m.jnt_qposadr[j]], length)
    return length


# ---- a unit tension on the bodies ------------------------------------------------------------------------------------
@kernel
def carrier(m, b):
    """Returns the body with DoFs that carries body b, or 0."""
    i = m.body_lastdof[b]
    return m.dof_bodyid[i] if i >= 0 else 0


@kernel
def _clear_forces(m, d, i):
    """Clears the forces on the bodies that tendon i can pull."""
    for e in range(m.ten_J_rowadr[i], m.ten_J_rowadr[i] + m.ten_J_rownnz[i]):
        k = m.ten_J_colind[e]
        b = m.dof_bodyid[k]
        if m.body_dofadr[b] == k:
            d.cfrc[b] = zeros(6)


@kernel
def _push(m, d, b, point, force):
    """Adds a force at a point of body b."""
    c = carrier(m, b)
    if c > 0:
        d.cfrc[c] += point_wrench(d, force, zeros(3), point, m.body_rootid[c])


@kernel
def _pull(m, d, a, b, x, y, force):
    """Adds the forces of a segment from x on body a to y on body b: `force` on b, and its opposite on a."""
    if carrier(m, a) != carrier(m, b):
        _push(m, d, a, x, -force)
        _push(m, d, b, y, force)


@kernel
def _forces_to_dofs(m, d, i):
    """Computes row i of the Jacobian: the components of the forces along each axis, from the leaves to the root."""
    row = m.ten_J_rowadr[i]
    for e in range(row + m.ten_J_rownnz[i] - 1, row - 1, -1):
        k = m.ten_J_colind[e]
        b, p = m.dof_bodyid[k], m.dof_parentid[k]
        f = d.cfrc[b]
        d.ten_J[e] = dot(d.cdof[k], f)
        if p >= 0 and m.body_dofadr[b] == k:
            d.cfrc[m.dof_bodyid[p]] += f


# ---- segments --------------------------------------------------------------------------------------------------------
@kernel
def _straight(m, d, s, t, scale):
    """Returns the length of the segment between sites s and t; pulls their bodies with the force scale."""
    x, y = d.site_xpos[s], d.site_xpos[t]
    u, length = normalize3(y - x)
    _pull(m, d, m.site_bodyid[s], m.site_bodyid[t], x, y, scale * u)
    return length


@kernel
def _around(m, d, k, scale):
    """Returns the length of the path around element k, a geom, between adjacent sites; pulls the three bodies."""
    s, g, t = m.wrap_objid[k - 1], m.wrap_objid[k], m.wrap_objid[k + 1]
    a, b, c = m.site_bodyid[s], m.geom_bodyid[g], m.site_bodyid[t]
    x, y = d.site_xpos[s], d.site_xpos[t]
    bends, p, q, arc = wrap(m, d, s, t, g, m.wrap_type[k], m.wrap_sideid[k])
    # for a straight path, the first and the last part are both the whole path
    p, q = where(bends, p, y), where(bends, q, x)
    u, first = normalize3(p - x)
    v, last = normalize3(y - q)
    if carrier(m, a) == carrier(m, c):
        # forces within one body cancel: their rounded sum would be a moment arm
        between = 1.0 if carrier(m, b) != carrier(m, a) else 0.0
        scale = where(bends, between * scale, 0.0)
    u, v = scale * u, scale * v
    _push(m, d, a, x, -u)
    _push(m, d, b, p, where(bends, 1.0, 0.0) * u)
    _push(m, d, b, q, where(bends, -1.0, 0.0) * v)
    _push(m, d, c, y, v)
    return where(bends, first + arc + last, first)


@kernel
def _spatial(m, d, i):
    """Computes the length of the spatial tendon i; writes its row of the Jacobian."""
    length, scale = 0.0, 1.0
    _clear_forces(m, d, i)
    k = m.tendon_adr[i]
    last = k + m.tendon_num[i] - 1
    while k < last:
        if m.wrap_type[k] == WRAP_PULLEY:
            scale = 1.0 / m.wrap_prm[k]
            k += 1
        elif m.wrap_type[k + 1] == WRAP_PULLEY:
            k += 1
        elif m.wrap_type[k + 1] >= WRAP_SPHERE:
            length = fma(scale, _around(m, d, k + 1, scale), length)
            k += 2
        else:
            length = fma(scale, _straight(m, d, m.wrap_objid[k], m.wrap_objid[k + 1], scale), length)
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
        if is_fixed(m, i):
            d.ten_length[i] = _fixed(m, d, i)
        else:
            d.ten_length[i] = _spatial(m, d, i)


@stage
def tendon_velocity(m, d):
    """Computes ten_velocity = J qvel.

    Source: MuJoCo mj_fwdVelocity.
    Reads:  ten_J (nJten,), qvel (nv,).   Writes: ten_velocity (ntendon,) [m/s].
    """
    for i in range(m.ntendon):
        rate = 0.0
        for e in range(m.ten_J_rowadr[i], m.ten_J_rowadr[i] + m.ten_J_rownnz[i]):
            rate = fma(d.ten_J[e], d.qvel[m.ten_J_colind[e]], rate)
        d.ten_velocity[i] = rate


@kernel
def add_tendon_force(m, d, i, force, x):
    """x += J^T force of tendon i; skipped if the force is 0; x is (nv,)."""
    for e in range(m.ten_J_rowadr[i], m.ten_J_rowadr[i] + m.ten_J_rownnz[i]):
        k = m.ten_J_colind[e]
        x[k] = where(force != 0.0, fma(d.ten_J[e], force, x[k]), x[k])
