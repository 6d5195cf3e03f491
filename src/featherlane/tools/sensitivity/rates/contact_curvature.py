"""Second derivatives of the cost of a contact in its basis, the curvature C of contact_rates.py.

C[k] is a 6 x 6 matrix over the directions of the basis: 0 normal, 1 and 2 tangents, 3 to 5 rotations.  The record p
stores it as slot_curvature[k, row], rows of six.  y = J a - aref in this basis is primal.con_y: con_y[k] has the first
three components, and basis_value(d, con_y, k, i) is component i of all six.  con_D is D of the normal, 0 in worlds
without the contact.  con_dim > 3: torsional or rolling friction, with all three rotations.
Imported: pyramid_weights and angular_edges_weights, entries of C for a pyramid; cone_weights, (w, e, q, b) of
`_set_cone_curvature`, and 1 / |y_f|; slip_rate, (mask of slipping, D / |y_f|), y_f the part of y along friction.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.rows.cone import cone_weights
from featherlane.engine.solver.rows.coulomb import slip_rate
from featherlane.engine.solver.rows.pyramid import angular_edges_weights, pyramid_weights
from featherlane.engine.solver.rows.rows import basis_value


@kernel
def _set_entry(p, k, row, column, value):
    """C[k][row, column] and C[k][column, row] <- value."""
    C = flat(p.slot_curvature)
    # 36 entries for each contact, by rows of six
    C[36 * k + 6 * row + column] = value
    C[36 * k + 6 * column + row] = value


@kernel
def _set_pyramid_curvature(d, p, k):
    """C[k] <- that of a pyramid: the sum of D (n + u)(n + u)^T over its pushing edges, u a direction of friction."""
    y = d.primal.con_y[k]
    # entries (normal, normal), (normal, tangent 1), (tangent 1, tangent 1), (normal, tangent 2), (tangent 2, tangent 2)
    normal, normal_1, own_1, normal_2, own_2 = pyramid_weights(d.con_D[k], y)
    _set_entry(p, k, 0, 1, normal_1)
    _set_entry(p, k, 1, 1, own_1)
    _set_entry(p, k, 0, 2, normal_2)
    _set_entry(p, k, 2, 2, own_2)
    if d.con_dim[k] > 3:
        # each pushing edge n +- axis adds D to the entry (axis, axis) and the same D to (normal, normal)
        normal_axes, own_axes = angular_edges_weights(d, k)
        for i in range(3):
            _set_entry(p, k, 0, 3 + i, normal_axes[i])
            _set_entry(p, k, 3 + i, 3 + i, own_axes[i])
            normal = normal + own_axes[i]
    _set_entry(p, k, 0, 0, normal)


@kernel
def _set_cone_curvature(m, d, p, k):
    """C[k] <- that of a cone: w n n^T - e (n t^T + t n^T) + q t t^T + b I.

    n is the normal; y_f, the part of y along the friction directions, t = y_f / |y_f| and I are over these directions.
    Under Coulomb's law, column 0 has -(D / |y_f|) y_f instead of -e t.
    """
    (w, e, q, b), inverse_length = cone_weights(m, d, k)  # 1 / |y_f|
    _set_entry(p, k, 0, 0, w)
    # directions of friction, 1 to end - 1: two tangents, with con_dim > 3 also three rotations
    end = 6 if d.con_dim[k] > 3 else 3
    for i in range(1, end):
        ti = basis_value(d, d.primal.con_y, k, i) * inverse_length
        _set_entry(p, k, 0, i, -(e * ti))
        for j in range(1, i + 1):
            tj = basis_value(d, d.primal.con_y, k, j) * inverse_length
            qtt = q * ti * tj
            _set_entry(p, k, i, j, qtt + b if i == j else qtt)
    if m.opt_contact_model == COULOMB:
        # the bound of friction follows the normal force: C is not symmetric
        _, rate = slip_rate(d, k)  # D / |y_f| where the contact slips, else 0
        for i in range(1, end):
            yi = basis_value(d, d.primal.con_y, k, i)
            p.slot_curvature[k, i][0] = -(rate * yi)


@kernel
def contact_curvature(m, d, p, k):
    """slot_curvature[k] <- C of contact k at the solution."""
    for row in range(6):
        p.slot_curvature[k, row] = zeros(6)
    if d.con_dim[k] == 1:  # without friction: the contact pushes while y < 0
        _set_entry(p, k, 0, 0, where(d.primal.con_y[k][0] < 0.0, d.con_D[k], 0.0))
    elif has_pyramids(m):
        _set_pyramid_curvature(d, p, k)
    else:
        _set_cone_curvature(m, d, p, k)
