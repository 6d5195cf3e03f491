"""Second derivatives of the lengths of spatial tendons with straight segments, column by column.

A segment from x on one body to y on another has the length L and the direction u = (y - x) / L. With X_i the velocity
of x for dof i, and w_i the angular velocity of its axis,

    d^2 L / dq_i dq_k = (Y_i - X_i) . (1 - u u^T) / L (Y_k - X_k) + u . (dY_i / dq_k - dX_i / dq_k)
    dX_i / dq_k = w_l x X_m        l the upper of both dofs, m the lower one

The dofs of one ball turn each other's axes: there l = k, m = i.
"""

from featherlane.prelude import *
from featherlane.dynamics.tendon.length import carrier
from featherlane.sensitivity.derivative.smooth_rates import turns_with


@kernel
def _arm(m, d, s):
    """Returns the position of site s relative to the com of its tree."""
    return sub3(load3(d.site_xpos, 3 * s), load3(d.subtree_com, 3 * m.body_rootid[m.site_bodyid[s]]))


@kernel
def _carried(d, k, arm):
    """Returns the velocity of a point for dof k."""
    return add3(load3(d.cdof, 6 * k + 3), cross(load3(d.cdof, 6 * k), arm))


@kernel
def _motion(m, d, s, k):
    """Returns whether dof k moves site s, and the velocity of the site for it."""
    moves, x, i = 0, zeros(d, 3), m.body_lastdof[m.site_bodyid[s]]
    while i >= 0:
        if i == k:
            moves, x = 1, _carried(d, k, _arm(m, d, s))
        i = m.dof_parentid[i]
    return moves, x


@kernel
def _add_end(m, d, p, s, k, motion, t, u):
    """ten_bend += X_i . t + u . dX_i / dq_k, of the dofs i that move site s."""
    moves, X = motion
    arm, i = _arm(m, d, s), m.body_lastdof[m.site_bodyid[s]]
    while i >= 0:
        Y = _carried(d, i, arm)
        f = dot3(Y, t)
        if moves:
            if i < k and not turns_with(m, i, k):
                f = f + dot3(u, cross(load3(d.cdof, 6 * i), X))
            else:
                f = f + dot3(u, cross(load3(d.cdof, 6 * k), Y))
        p.ten_bend[i] = p.ten_bend[i] + f
        i = m.dof_parentid[i]


@kernel
def _add_segment(m, d, p, s, t, k, scale):
    """Adds the segment between sites s and t."""
    if carrier(m, m.site_bodyid[s]) != carrier(m, m.site_bodyid[t]):
        u, length = normalize3(sub3(load3(d.site_xpos, 3 * t), load3(d.site_xpos, 3 * s)))
        first, last = _motion(m, d, s, k), _motion(m, d, t, k)
        x = sub3(last[1], first[1])
        turn = scale3(scale / fmax(length, MINVAL), axpy3(-dot3(u, x), u, x))
        u = scale3(scale, u)
        _add_end(m, d, p, t, k, last, turn, u)
        _add_end(m, d, p, s, k, first, scale3(-1.0, turn), scale3(-1.0, u))


@kernel
def tendon_bend(m, d, p, i, k):
    """ten_bend <- the derivative of row i of the tendons' Jacobian by the position of dof k, on the tendon's dofs."""
    for e in range(m.ten_J_rowadr[i], m.ten_J_rowadr[i] + m.ten_J_rownnz[i]):
        p.ten_bend[m.ten_J_colind[e]] = zero(d)
    scale, n = real(d, 1.0), m.tendon_adr[i]
    last = n + m.tendon_num[i] - 1
    while n < last:
        if m.wrap_type[n] == WRAP_PULLEY:
            scale = 1.0 / m.wrap_prm[n]
        elif m.wrap_type[n + 1] != WRAP_PULLEY:
            _add_segment(m, d, p, m.wrap_objid[n], m.wrap_objid[n + 1], k, scale)
        n += 1
