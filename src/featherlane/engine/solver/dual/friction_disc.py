"""Solves for the friction of one elliptic contact at a fixed normal force: a quadratic minimised over a disc.

    minimise over t:  1/2 t^T A t + b^T t      with |t| <= r,

t: the forces across n in the basis scaled by friction, n = 2, 3 or 5 of them (dimension 4 has only the spin).  Inside
the disc t = -A^-1 b; else t = -(A + l)^-1 b with the multiplier l > 0 at which |t| = r.  1 / |t(l)| is concave and
nearly linear in l, so Newton's method on 1 / |t| = 1 / r rises from 0 to the root without passing it.
disc.A, disc.L: packed lower triangles, entry (i, j) at `triangle_index(i, j)`.  `factor_disc` computes L D L^T =
A + l in disc.L, with 1 / D = 0 for pivots up to `least`; `solve_packed` computes x <- (L D L^T)^-1 x.
Source: MuJoCo documentation, Computation, "Algorithms" (PGS, elliptic cones); More, "The Levenberg-Marquardt
algorithm", 1978, for the equation in 1 / |t|, where MuJoCo takes |t|^2.
Note:   a direction without mobility (pivot 0) gets no force; MuJoCo omits all friction of such a contact.
        MuJoCo's 20 rounds may end before |t| = r if inertias differ much (a rolling dog's paw); it then keeps
        the contact's previous friction, because the new one costs more.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.sparse.packed_factor import packed_factor, solve_packed, triangle_index

ROUNDS = 20  # of Newton's method; 3 to 6 are usual
FLAT = 1e-12  # of the trace: a pivot up to this counts as 0
TINY = 1e-30  # smallest divisor: avoids a division by 0


@kernel
def disc_entry(d, multiplier, i, j, diagonal):
    """Returns entry (i, j) of A + l, with the multiplier l on the diagonal.  diagonal: whether i = j."""
    a = d.disc.A[triangle_index(i, j)]
    return a + multiplier if diagonal else a


factor_disc = packed_factor(disc_entry)


@kernel
def disc_product(n, x, y):
    """Returns x . y of n components."""
    s = 0.0
    for c in range(n):
        s = fma(x[c], y[c], s)
    return s


@kernel
def solve_on_disc(d, n, r):
    """Computes disc.t, the minimum over the disc of radius r, from disc.A and disc.b, of n components.

    Newton's method on 1 / |t| = 1 / r:  l += (|t| / r - 1) |t|^2 / (t . w),  with w = (A + l)^-1 t.
    Reads:  disc.A, disc.b.
    Writes: disc.t.
    Scratch: disc.w, disc.L.
    Cost:   O(n^3) a round.
    """
    trace = 0.0
    multiplier = 0.0  # l
    for c in range(n):
        trace = trace + d.disc.A[triangle_index(c, c)]
    slack = 1e-13  # relative, of |t| = r
    if single_precision(d):
        slack = 1e-6
    outside = r >= 0.0  # mask of worlds with |t| > r in all rounds so far: all at first
    length = r  # |t|
    for _ in range(ROUNDS):
        factor_disc(d, multiplier, d.disc.L, n, FLAT * trace)  # writes disc.L
        for c in range(n):
            d.disc.t[c] = -d.disc.b[c]
        solve_packed(d.disc.L, n, d.disc.t)  # t = -(A + l)^-1 b
        length = sqrt(disc_product(n, d.disc.t, d.disc.t))
        outside = outside & (length > fma(slack, r, r)) & (r > 0.0)
        if not any_(outside):
            break
        for c in range(n):
            d.disc.w[c] = d.disc.t[c]
        solve_packed(d.disc.L, n, d.disc.w)  # w = (A + l)^-1 t
        # l += (|t| / r - 1) |t|^2 / (t . w)
        tw = where(outside, disc_product(n, d.disc.t, d.disc.w), 1.0)
        increase = (length / where(outside, r, 1.0) - 1.0) * (length * length) / tw
        multiplier = where(outside, multiplier + increase, multiplier)
    # scaled to |t| = r exactly; with r = 0 the force is 0
    scale = where(length > r, r / fmax(length, TINY), 1.0)
    for c in range(n):
        d.disc.t[c] = where(r > 0.0, scale * d.disc.t[c], 0.0)
