"""Laws of scalar rows: the force as a function of x = J a - aref, and what solvers derive from it.

    bounded     f = clamp(-D x, lo, hi)    any scalar row, with the fields lo and hi
    one-sided   f = max(-D x, 0)           limits, contacts without friction, edges of a pyramid: fewer instructions

The cost of a row is s(x) with f = -ds/dx; it is -f (x + f / 2D).  A law has four functions:

    *_force     (f, cost) at x
    *_slope     (g, h) plus the first and second derivative of the cost along x + a v
    *_weight    the second derivative of the cost at x: D, or 0 at a bound
    *_switch    positive if the row reaches or leaves a bound between x and x + a v, else 0

Contacts have functions of the same names: pyramid.py, cone.py (elliptic cones) and coulomb.py.
row: d.row[k], with D = 1 / R (0 in worlds without the row), lo, hi; v: J p of a direction p; a: step length.
d.nfrictionrow, d.ndofrow, d.nrow: end of the rows of friction loss of dofs, of all one-dof rows, of all scalar rows.
Source: MuJoCo documentation, Computation, "Solver" (primal problem).
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel

TINY = 1e-30  # smallest divisor: avoids divisions by 0


# ---- bounded -------------------------------------------------------------------------------------------------------
@kernel
def bounded_force(row, x):
    """Returns (force, cost) of a row: f = clamp(-D x, lo, hi), cost -f (x + f / 2D)."""
    f = clip(-(row.D * x), row.lo, row.hi)  # 0 if D = 0
    return f, -(f * fma(0.5 * f, 1.0 / fmax(row.D, TINY), x))  # D = 0: the cost is 0, as f is


@kernel
def bounded_slope(row, x, v, a, g, h):
    """Returns (g, h) plus the derivatives of a row's cost along the line, at step length a.

    f = clamp(-D (x + a v), lo, hi);  g -= f v;  h += D v^2 if the row is not at a bound.
    """
    free_force = -(row.D * fma(a, v, x))
    f = clip(free_force, row.lo, row.hi)  # equal to free_force if the row is not at a bound
    return fma(-f, v, g), fma(where(f == free_force, row.D, 0.0) * v, v, h)


@kernel
def bounded_weight(row, x):
    """Returns D of a row if it is not at a bound, else 0."""
    force = -(row.D * x)
    return where((force > row.lo) & (force < row.hi), row.D, 0.0)


@kernel
def bounded_switch(row, x, v, a):
    """Returns a positive number if a row reaches, leaves or changes its bound between x and x + a v, else 0."""
    force = -(row.D * x)
    force_then = -(row.D * fma(a, v, x))
    # 0: at the lower bound, 1: free, 2: at the upper bound
    before = where(force > row.lo, 1.0, 0.0) + where(force < row.hi, 0.0, 1.0)
    after = where(force_then > row.lo, 1.0, 0.0) + where(force_then < row.hi, 0.0, 1.0)
    return fabs(before - after)


# ---- one-sided -----------------------------------------------------------------------------------------------------
@kernel
def one_sided_force(D, x):
    """Returns (force, cost) of a row that only pushes: f = max(-D x, 0), cost D min(x, 0)^2 / 2."""
    x = fmin(x, 0.0)
    f = -(D * x)
    return f, -(0.5 * f) * x


@kernel
def one_sided_slope(D, x, v, a, g, h):
    """Returns (g, h) plus the derivatives of a row's cost along the line, at step length a.

    With u = x + a v:  g += D min(u, 0) v;  h += D v^2 if u < 0.
    """
    u = fma(a, v, x)
    Dv = D * v
    return fma(fmin(u, 0.0), Dv, g), fma(where(u < 0.0, v, 0.0), Dv, h)


@kernel
def one_sided_weight(D, x):
    """Returns D of a row that pushes, else 0."""
    return where(x < 0.0, D, 0.0)


@kernel
def one_sided_switch(x, v, a):
    """Returns 1 if a row starts or stops pushing between x and x + a v, else 0."""
    return fabs(where(x < 0.0, 1.0, 0.0) - where(fma(a, v, x) < 0.0, 1.0, 0.0))


# ---- all scalar rows -----------------------------------------------------------------------------------------------
def fold_laws(bounded: Kernel, one_sided: Kernel) -> Kernel:
    """Returns the kernel (d, s, x) that computes a value x from all scalar rows, one after the other, by their laws.

    Args:
        bounded: kernel (d, k, s, x) that returns x after row k, of friction loss or a general row.
        one_sided: the same for row k, the limit of a slide or hinge.
    """

    @kernel
    def fold(d, s, x):
        """Returns x after all scalar rows; s: an argument that is the same for all of them."""
        for k in range(d.nfrictionrow[0]):
            x = bounded(d, k, s, x)
        # one-dof rows after those of friction loss are limits
        for k in range(d.nfrictionrow[0], d.ndofrow[0]):
            x = one_sided(d, k, s, x)
        for k in range(d.ndofrow[0], d.nrow[0]):
            x = bounded(d, k, s, x)
        return x

    return fold
