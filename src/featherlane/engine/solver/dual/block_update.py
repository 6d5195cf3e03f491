"""Updates of projected Gauss-Seidel: sets the forces of one block to their optimum, with all others fixed.

A block is a row, or a contact with a friction pyramid or an elliptic cone (pgs.py has the formulas).  Its problem is

    minimise over the admissible forces f of the block:  1/2 f^T (A + R) f + f^T y,

with A its diagonal block dual.A, and y = J a - aref along its rows without R, at the current forces of all blocks.
Layout: dual.f[q, c] is the force of row (or edge) c of block q; the two edges of direction i of a pyramid, y_0 + y_i
and y_0 - y_i, have the numbers 2 i - 2 and 2 i - 1.  dual.A[q] is a packed lower triangle (`symmetric_index`).
While a contact is visited, dual.block_y holds y of its rows, block_force its forces (of edges, for a pyramid), and
block_change the sum of their changes along the basis; z = Y^T f of all blocks is updated at the end of the visit.
con_dim[k]: number of rows of contact k, 0 the normal, 1 and 2 the tangents, 3 to 5 the rotation axes.  R, Rt: 1 / con_D
and 1 / con_Dt, regularisation of the normal and the friction rows.  live: mask of worlds that continue.
`row_products(d, q, c, count)` returns (Y z) of `count` rows of block q, from row c on; `add_row_forces(d, q, c, f,
count)` adds the forces f of these rows to z = Y^T f.
`has_edges`: contact k is a pyramid with friction; `force_count`: number of its forces.
`basis_value(d, x, k, c)` is component c of x along the basis of contact k; primal.con_warm has b = J a0 - aref.
Updates return (decrease, drift).  decrease: of the cost; a change delta of a force with derivative y and second
derivative a decreases it by -delta (y + a delta / 2).  drift: (f_new - f_start) (f_start - f_old) for a force f_old
before the momentum step, f_start after it, and f_new after the update.  If the sum of all drifts is negative, the sweep
opposes the momentum, and the momentum starts again from 0 (pgs.py).
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.row import UNBOUNDED
from featherlane.engine.dynamics.sparse.packed_factor import symmetric_index, triangle_index
from featherlane.engine.solver.dual.friction_disc import solve_on_disc
from featherlane.engine.solver.dual.problem import (
    add_row_forces,
    force_count,
    has_edges,
    row_products,
)
from featherlane.engine.solver.rows.laws import TINY
from featherlane.engine.solver.rows.rows import basis_value

ROUNDS = 2  # visits of a contact within a sweep
TOUCHING = 1e-15  # N: a smaller normal force counts as 0


@kernel
def regularisation_or_huge(D):
    """Returns R = 1 / D; for an absent row (D = 0) a value so large that its force becomes 0."""
    return 1.0 / fmax(D, TINY)


@kernel
def store_force(d, q, e, f, live):
    """Stores f as force e of block q in live worlds; returns the drift (f_new - f_start) (f_start - f_old).

    The drift is negative if the sweep opposes the momentum.  f_start, f_old: the force after the momentum step, dual.f,
    and before it, dual.old.
    """
    start = d.dual.f[q, e]
    d.dual.f[q, e] = where(live, f, start)
    return (f - start) * (start - d.dual.old[q, e])


@kernel
def update_row_force(d, q, b, D, lo, hi, live):
    """Updates the block of one row: f <- clip(f - (A + R)^-1 (y + R f), lo, hi); returns the cost's decrease and drift.

    b: J a0 - aref of the row.  D: 1 / R.  lo, hi: bounds of the force.  live: mask of worlds that continue.
    """
    f = d.dual.f[q, 0]
    R = regularisation_or_huge(D)
    # y: b + Y z + R f, first derivative of the cost;  a: A + R, second derivative
    y = fma(R, f, b + row_products(d, q, c=0, count=1)[0])
    a = d.dual.A[q, 0] + R
    f_new = clip(f - y / a, lo, hi)
    delta = where(live, f_new - f, 0.0)
    add_row_forces(d, q, c=0, f=(delta,), count=1)
    return -(delta * fma(0.5 * a, delta, y)), store_force(d, q, e=0, f=f_new, live=live)


@kernel
def load_contact(m, d, k, q):
    """Computes y = b + Y z along the rows of contact k in dual.block_y, and clears dual.block_change.

    b = J a0 - aref is in primal.con_warm.
    """
    dim = d.con_dim[k]
    done = 0  # number of rows
    while done + 3 <= dim:  # three rows at a time, for which z is read once
        product = row_products(d, q, done, count=3)
        for c in range(3):
            d.dual.block_y[done + c] = basis_value(d, d.primal.con_warm, k, done + c) + product[c]
        done += 3
    for c in range(done, dim):
        d.dual.block_y[c] = basis_value(d, d.primal.con_warm, k, c) + row_products(d, q, c, count=1)[0]
    for c in range(dim):
        d.dual.block_change[c] = 0.0


@kernel
def change_force(d, q, dim, c, delta):
    """Changes the force along row c of a contact by delta: dual.block_change, and dual.block_y += A delta."""
    d.dual.block_change[c] = d.dual.block_change[c] + delta
    for e in range(dim):
        d.dual.block_y[e] = fma(d.dual.A[q, symmetric_index(c, e)], delta, d.dual.block_y[e])


@kernel
def add_contact_change(d, q, dim):
    """Updates z = Y^T f by dual.block_change, the change of a contact's forces."""
    done = 0  # number of rows
    while done + 3 <= dim:  # three rows at a time, for which z is read and written once
        add_row_forces(d, q, done, d.dual.block_change[done : done + 3], count=3)
        done += 3
    for c in range(done, dim):
        add_row_forces(d, q, c, (d.dual.block_change[c],), count=1)


@kernel
def visit_edge(d, q, dim, e, R, live):
    """Updates edge e of a pyramid, n + s i with s = 1 or -1: f <- max(f - y / a, 0); returns the cost's decrease.

    i: a direction of the basis other than n.  y, a: first and second derivative of the cost by f,
    y = y_n + s y_i + R f,  a = A_nn + A_ii + 2 s A_in + R.
    """
    # edges 2 i - 2 and 2 i - 1 are n + i and n - i
    i = 1 + e // 2
    s = 1.0 - 2.0 * (e % 2)
    f = d.dual.block_force[e]
    y = fma(R, f, fma(s, d.dual.block_y[i], d.dual.block_y[0]))
    A_ii, A_in = d.dual.A[q, symmetric_index(i, i)], d.dual.A[q, symmetric_index(i, 0)]
    a = ((d.dual.A[q, 0] + A_ii) + (2.0 * s) * A_in) + R
    delta = where(live, fmax(f - y / a, 0.0) - f, 0.0)
    d.dual.block_force[e] = f + delta
    # the edge is the sum of row 0 and s times row i
    change_force(d, q, dim, c=0, delta=delta)
    change_force(d, q, dim, i, s * delta)
    return -(delta * fma(0.5 * a, delta, y))


@kernel
def visit_pyramid(m, d, k, q, sweep, live):
    """Minimises the dual cost over the edge forces f_e >= 0 of contact k, block q; returns (its decrease, the drift).

    ROUNDS rounds of Gauss-Seidel: one edge after the other, f_e <- max(f_e - y_e / a_e, 0) (`visit_edge`).
    """
    dim = d.con_dim[k]
    n_edges = force_count(m, d, k)
    R = regularisation_or_huge(d.con_D[k])
    load_contact(m, d, k, q)  # writes dual.block_y, clears dual.block_change
    for e in range(n_edges):
        d.dual.block_force[e] = d.dual.f[q, e]
    decrease, drift = 0.0, 0.0
    for visit in range(ROUNDS):
        for position in range(n_edges):
            # visits start alternately from the first and from the last edge
            e = position if (sweep + visit) % 2 == 0 else n_edges - 1 - position
            decrease = decrease + visit_edge(d, q, dim, e, R, live)
    for e in range(n_edges):
        drift = drift + store_force(d, q, e, d.dual.block_force[e], live)
    add_contact_change(d, q, dim)  # updates dual.z
    return decrease, drift


@kernel
def cone_gradient(d, q, c, R, Rt):
    """Returns the derivative of the cost by force c of an elliptic contact: y_c + R_c f_c.

    R: regularisation of the normal row, Rt: of the friction rows.
    """
    return fma(R if c == 0 else Rt, d.dual.block_force[c], d.dual.block_y[c])


@kernel
def set_cone_force(d, q, dim, c, target, R, Rt, live):
    """Sets force c of an elliptic contact to its target in live worlds; returns the cost's decrease.

    `change_force` then updates what depends on the force, block_y and block_change.
    R, Rt: as in `cone_gradient`.   Writes: dual.block_force, block_y, block_change.
    """
    delta = where(live, target - d.dual.block_force[c], 0.0)
    a = d.dual.A[q, symmetric_index(c, c)] + (R if c == 0 else Rt)
    decrease = -(delta * fma(0.5 * a, delta, cone_gradient(d, q, c, R, Rt)))
    d.dual.block_force[c] = d.dual.block_force[c] + delta
    change_force(d, q, dim, c, delta)
    return decrease


@kernel
def store_ray(d, q, dim, R, Rt, held):
    """Computes dual.block_ray, the direction v in which the force f changes, from f and the gradient g of the cost.

        v = f                  in `held` worlds: the normal force exceeds TOUCHING
        v = n                  else, if g_n <= 0: the normal force does not increase the cost
        v = n - g_t / |g_t|    else: the ray on the rim of the cone with the steepest descent

    g_n, g_t: parts of g along n and along the friction directions.  The rim matters if the contact accelerates away
    from the surface, and fast along it: then friction decreases the cost, but needs a normal force.
    """
    squares = 0.0  # |g_t|^2
    normal_gradient = cone_gradient(d, q, c=0, R=R, Rt=Rt)
    for c in range(1, dim):
        gradient = cone_gradient(d, q, c, R, Rt)
        squares = fma(gradient, gradient, squares)
    inverse_norm = where(normal_gradient > 0.0, 1.0 / fmax(sqrt(squares), TINY), 0.0)  # 1 / |g_t|, or 0: v = n
    for c in range(dim):
        from_tip = 1.0 if c == 0 else -(cone_gradient(d, q, c, R, Rt) * inverse_norm)  # v if the force is 0
        d.dual.block_ray[c] = where(held, d.dual.block_force[c], from_tip)


@kernel
def ray_length(d, q, dim, R, Rt):
    """Returns the distance along the ray v = dual.block_ray to the minimum of the cost: -(v . g) / (v . (A + R) v).

    g: the gradient of the cost (`cone_gradient`).
    """
    slope, curvature = 0.0, 0.0
    for c in range(dim):
        v = d.dual.block_ray[c]
        Av = 0.0
        slope = fma(v, cone_gradient(d, q, c, R, Rt), slope)
        for e in range(dim):
            Av = fma(d.dual.A[q, symmetric_index(c, e)], d.dual.block_ray[e], Av)
        curvature = fma(v, fma(R if c == 0 else Rt, v, Av), curvature)
    curved = curvature > 0.0  # else the length is 0: the force stays
    return where(curved, -(slope / where(curved, curvature, 1.0)), 0.0)


@kernel
def move_along_ray(d, q, dim, R, Rt, live):
    """Minimises the dual cost along the ray start + length v of `store_ray`; returns its decrease.

    start = f, length >= -1   in `held` worlds, in which v = f: at -1 the force is 0
    start = 0, length >= 0    else: the ray begins at the tip of the cone
    """
    held = d.dual.block_force[0] > TOUCHING  # mask of worlds with a normal force
    decrease = 0.0
    store_ray(d, q, dim, R, Rt, held)  # writes dual.block_ray
    length = fmax(ray_length(d, q, dim, R, Rt), where(held, -1.0, 0.0))
    for c in range(dim):
        start = where(held, d.dual.block_force[c], 0.0)
        decrease = decrease + set_cone_force(d, q, dim, c, fma(length, d.dual.block_ray[c], start), R, Rt, live)
    return decrease


@kernel
def solve_friction(d, q, dim, R, Rt, live):
    """Sets the friction of an elliptic contact to its optimum at a fixed normal force; returns the cost's decrease.

    `solve_on_disc` minimises 1/2 t^T disc.A t + disc.b^T t with |t| <= normal force, for the n friction forces t:
    disc.A = A + Rt of the friction rows, and disc.b = y - A f, their y without friction.
    Writes: disc.*; dual.block_force, block_change, block_y.
    """
    n = dim - 1
    for c in range(n):  # component c of the disc belongs to row c + 1 of the block: row 0 is the normal
        b = d.dual.block_y[c + 1]
        for e in range(n):
            b = fma(-d.dual.A[q, symmetric_index(c + 1, e + 1)], d.dual.block_force[e + 1], b)
        d.disc.b[c] = b
        for e in range(c + 1):
            a = d.dual.A[q, symmetric_index(c + 1, e + 1)]
            d.disc.A[triangle_index(c, e)] = a + Rt if c == e else a
    normal_force = d.dual.block_force[0]
    solve_on_disc(d, n, where(normal_force > TOUCHING, normal_force, 0.0))  # writes disc.t
    decrease = 0.0
    for c in range(n):
        decrease = decrease + set_cone_force(d, q, dim, c + 1, d.disc.t[c], R, Rt, live)
    return decrease


@kernel
def visit_cone(m, d, k, q, live):
    """Minimises the dual cost over the force of elliptic contact k, block q; returns (its decrease, the drift).

    ROUNDS rounds: along the ray through the force, then over the friction t with |t| <= f_0 at fixed normal force f_0.
    """
    contact = d.contact[k]
    dim = contact.dim
    R, Rt = regularisation_or_huge(contact.D), regularisation_or_huge(contact.Dt)
    load_contact(m, d, k, q)  # writes dual.block_y, clears dual.block_change
    for c in range(dim):
        d.dual.block_force[c] = d.dual.f[q, c]
    decrease, drift = 0.0, 0.0
    for _ in range(ROUNDS):
        decrease = decrease + move_along_ray(d, q, dim, R, Rt, live)
        decrease = decrease + solve_friction(
            d, q, dim, R, Rt, live
        )  # both update dual.block_force, block_y, block_change
    for c in range(dim):
        drift = drift + store_force(d, q, c, d.dual.block_force[c], live)
    add_contact_change(d, q, dim)  # updates dual.z
    return decrease, drift


@kernel
def visit_contact(m, d, k, q, sweep, live):
    """Minimises the dual cost over the forces of contact k, block q; returns (its decrease, the drift)."""
    if has_edges(m, d, k):
        decrease, drift = visit_pyramid(m, d, k, q, sweep, live)
    elif d.con_dim[k] > 1:
        decrease, drift = visit_cone(m, d, k, q, live)
    else:
        # without friction: one row that only pushes
        b, D = d.primal.con_warm[k][0], d.con_D[k]
        decrease, drift = update_row_force(d, q, b, D, lo=0.0, hi=UNBOUNDED, live=live)
    return decrease, drift
