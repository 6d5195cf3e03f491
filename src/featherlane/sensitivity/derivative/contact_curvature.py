"""Second derivatives of the cost of a contact in its basis, the curvature C of contact_rates.py."""

from featherlane.prelude import *
from featherlane.solver.rows.cone import cone_weights
from featherlane.solver.rows.coulomb import slip_rate
from featherlane.solver.rows.pyramid import edge_weights, turning_weights
from featherlane.solver.rows.rows import basis_value


@kernel
def _set(t, k, r, c, x):
    """Sets entries (r, c) and (c, r) of the curvature."""
    C = flat(t.slot_curvature)
    C[36 * k + 6 * r + c] = x
    C[36 * k + 6 * c + r] = x


@kernel
def _pyramid_curvature(d, p, k):
    y = d.primal.con_y[k]
    nn, n1, w1, n2, w2 = edge_weights(d.con_D[k], y)
    _set(p, k, 0, 1, n1)
    _set(p, k, 1, 1, w1)
    _set(p, k, 0, 2, n2)
    _set(p, k, 2, 2, w2)
    if d.con_dim[k] > 3:
        cross_, own = turning_weights(d, k)
        for i in range(3):
            _set(p, k, 0, 3 + i, cross_[i])
            _set(p, k, 3 + i, 3 + i, own[i])
            nn = nn + own[i]
    _set(p, k, 0, 0, nn)


@kernel
def _cone_curvature(m, d, p, k):
    (w, e, q, b), inverse = cone_weights(m, d, k)
    _set(p, k, 0, 0, w)
    last = 6 if d.con_dim[k] > 3 else 3
    for i in range(1, last):
        ti = basis_value(d, d.primal.con_y, k, i) * inverse
        _set(p, k, 0, i, -(e * ti))
        for j in range(1, i + 1):
            tj = basis_value(d, d.primal.con_y, k, j) * inverse
            x = q * ti * tj
            _set(p, k, i, j, x + b if i == j else x)
    if m.opt_contact_model == COULOMB:
        _, rate = slip_rate(d, k)
        for i in range(1, last):
            yi = basis_value(d, d.primal.con_y, k, i)
            p.slot_curvature[k, i][0] = -(rate * yi)


@kernel
def contact_curvature(m, d, p, k):
    """slot_curvature <- C of contact k at the solution."""
    for r in range(6):
        p.slot_curvature[k, r] = zeros(6)
    if d.con_dim[k] == 1:
        _set(p, k, 0, 0, where(d.primal.con_y[k][0] < 0.0, d.con_D[k], 0.0))
    elif has_pyramids(m):
        _pyramid_curvature(d, p, k)
    else:
        _cone_curvature(m, d, p, k)
