"""Lemke's method for standard LCPs: w = A z - b, w, z >= 0, w^T z = 0, for any A.

A covering variable z0 in w = A z - b + z0 1 makes the start feasible; complementary pivots then remove it.  Ties are
broken by the lexicographic rule, so no basis repeats.  The method finds a solution for every positive semi-definite A
that has one, and for friction pyramids (standard_form.py).  A ray means that there is no solution, or that the method
does not reach it.

The dictionary has a row for each basic variable and a column for each other one, basic = q + T nonbasic:
variables 0 .. n-1 are w, n .. 2 n - 1 are z, 2 n is z0.
Source: Cottle, Pang, Stone, "The Linear Complementarity Problem", 1992, sec. 4.4 and 4.9.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.fields import PROBLEM
from featherlane.solver.lcp.method import ONE, Count, Method
from featherlane.solver.lcp.status import INACCURATE, INFEASIBLE, ITERATIONS, SOLVED

TIE = 1e-13  # ratios closer than this, relative to the smaller one, are equal
INF = float("inf")
PIVOT = 1e-11  # of the largest entry of a column: a smaller pivot is rounding
TOLERANCE = 1e-10  # residual of a solution
REFINEMENTS = 2  # of the solution, by the final dictionary of the path


# ---- the dictionary --------------------------------------------------------------------------------------------------
@kernel
def entry_of(p1, i, j):
    """Returns A_ij, whose rows are padded to a multiple of eight."""
    return p1.one.A[i * ((p1.one.n[0] + 7) // 8 * 8) + j]


@kernel
def start_dictionary(p1):
    """Sets w = A z + z0 - b: all of w basic."""
    n, stride = p1.one.n[0], p1.nlcpone
    for i in range(n):
        for j in range(n):
            p1.place.A[stride * i + j] = entry_of(p1, i, j)
        p1.place.A[stride * i + n] = 1.0
        p1.place.b[i] = -p1.one.b[i]
        p1.one.order[i] = i
        p1.one.place[i] = n + i
    p1.one.place[n] = 2 * n


@kernel
def exchange(p1, r, c):
    """Exchanges the variables of row r and column c."""
    n, stride = p1.one.n[0], p1.nlcpone
    inverse = 1.0 / p1.place.A[stride * r + c]
    for j in range(n + 1):
        p1.place.A[stride * r + j] = -(p1.place.A[stride * r + j] * inverse)
    p1.place.A[stride * r + c] = inverse
    p1.place.b[r] = -(p1.place.b[r] * inverse)
    for i in range(n):
        f = p1.place.A[stride * i + c]
        if i != r and f != 0.0:
            p1.place.A[stride * i + c] = 0.0
            for j in range(n + 1):
                p1.place.A[stride * i + j] = p1.place.A[stride * i + j] + f * p1.place.A[stride * r + j]
            p1.place.b[i] = p1.place.b[i] + f * p1.place.b[r]
    entered, left = p1.one.place[c], p1.one.order[r]
    p1.one.order[r], p1.one.place[c] = entered, left


@kernel
def nonbasic_column(p1, variable):
    """Returns the column of a nonbasic variable; -1 if it is basic."""
    found = -1
    for c in range(p1.one.n[0] + 1):
        if p1.one.place[c] == variable:
            found = c
    return found


# ---- the ratio test --------------------------------------------------------------------------------------------------
@kernel
def perturbation(p1, i, j):
    """Returns the coefficient of eps^j in the basic variable of row i, for q + (eps, eps^2, ...) in place of q."""
    c, x = nonbasic_column(p1, j), 0.0
    if c >= 0:
        x = -p1.place.A[p1.nlcpone * i + c]
    elif p1.one.order[i] == j:
        x = 1.0
    return x


@kernel
def comes_first(p1, i, r, c):
    """Checks whether row i reaches zero before row r as column c grows; ties by the lexicographic order."""
    stride = p1.nlcpone
    fi, fr = -p1.place.A[stride * i + c], -p1.place.A[stride * r + c]
    a, b = p1.place.b[i] / fi, p1.place.b[r] / fr
    j, n = 0, p1.one.n[0]
    while j < n and fabs(a - b) <= TIE * fabs(b):
        a, b = perturbation(p1, i, j) / fi, perturbation(p1, r, j) / fr
        j += 1
    return a < b


@kernel
def leaving_row(p1, c):
    """Returns the row that reaches zero first as column c grows, -1: none; z0 wins every tie."""
    n, stride, r, most = p1.one.n[0], p1.nlcpone, -1, 0.0
    for i in range(n):
        size = fabs(p1.place.A[stride * i + c])
        if size > most:
            most = size
    for i in range(n):
        if p1.place.A[stride * i + c] < -(PIVOT * most) and (r < 0 or comes_first(p1, i, r, c)):
            r = i
    for i in range(n):
        if p1.one.order[i] == 2 * n and p1.place.A[stride * i + c] < -(PIVOT * most):
            first = -(p1.place.b[r] / p1.place.A[stride * r + c])
            if -(p1.place.b[i] / p1.place.A[stride * i + c]) <= first * (1.0 + TIE):
                r = i
    return r


@kernel
def covering_row(p1):
    """Returns the row with the lowest q, the last one in a tie; -1: none is below zero."""
    r, least = -1, 0.0
    for i in range(p1.one.n[0]):
        if p1.place.b[i] < 0.0 and p1.place.b[i] <= least:
            r, least = i, p1.place.b[i]
    return r


# ---- the method ------------------------------------------------------------------------------------------------------
@kernel
def read_solution(p1):
    """Sets one.x = z of the basis."""
    n = p1.one.n[0]
    for i in range(n):
        p1.one.x[i], p1.one.lower[i], p1.one.upper[i] = 0.0, 0.0, INF
    for i in range(n):
        v = p1.one.order[i]
        if n <= v < 2 * n:
            p1.one.x[v - n] = fmax(p1.place.b[i], 0.0)


@kernel
def compute_lemke_w(p1):
    """Computes one.w = A z - b."""
    for i in range(p1.one.n[0]):
        s = -p1.one.b[i]
        for j in range(p1.one.n[0]):
            s = s + entry_of(p1, i, j) * p1.one.x[j]
        p1.one.w[i] = s


@kernel
def correct_basic(p1):
    """Corrects basic z by the step that takes w of their rows, which are not basic, to 0."""
    n, stride = p1.one.n[0], p1.nlcpone
    for i in range(n):
        v = p1.one.order[i]
        if n <= v < 2 * n:
            z = p1.one.x[v - n]
            for c in range(n + 1):
                u = p1.one.place[c]
                if u < n:
                    z = z - p1.place.A[stride * i + c] * p1.one.w[u]
            p1.place.dx[v - n] = z
    for i in range(n):
        v = p1.one.order[i]
        if n <= v < 2 * n:
            p1.one.x[v - n] = fmax(p1.place.dx[v - n], 0.0)


@kernel
def lemke_residual(p1):
    """Returns the residual of status.py: max |z - max(z - w / a, 0)| relative to the size of z and b / a."""
    a, far, size, load = 0.0, 0.0, 0.0, 0.0
    for i in range(p1.one.n[0]):
        a = fmax(entry_of(p1, i, i), a)
    step = 1.0 / a if a > 0.0 else 1.0
    for i in range(p1.one.n[0]):
        z = p1.one.x[i]
        far = fmax(fabs(fmax(z - step * p1.one.w[i], 0.0) - z), far)
        size, load = fmax(z, size), fmax(fabs(p1.one.b[i]), load)
    size = fmax(step * load, size)
    return far / size if size > 0.0 else far


@kernel
def follow_path(p1, pivots):
    """Runs complementary pivots until z0 leaves, or a ray, or `pivots` of them; returns the status."""
    n, count, status = p1.one.n[0], 0, ITERATIONS
    r, c = covering_row(p1), n
    if r < 0:
        status = SOLVED
    while status == ITERATIONS and count < pivots:
        left = p1.one.order[r]
        exchange(p1, r, c)
        count += 1
        if left == 2 * n:
            status = SOLVED
        else:
            c = nonbasic_column(p1, left + n if left < n else left - n)
            r = leaving_row(p1, c)
            if r < 0:
                status = INFEASIBLE
    p1.one.niter[0] = count
    return status


@kernel
def lemke(p1, pivots):
    """Solves the standard LCP one.A, one.b of a record with capacity for one more row, by at most `pivots` pivots.

    Reads:  one.n < nlcpone, one.A, one.b.
    Writes: one.*, one.niter (pivots).
    Cost:   n^2 products per pivot.
    """
    start_dictionary(p1)
    status = follow_path(p1, pivots)
    read_solution(p1)
    compute_lemke_w(p1)
    if status == SOLVED:
        for _ in range(REFINEMENTS):
            correct_basic(p1)
            compute_lemke_w(p1)
    p1.one.residual[0] = lemke_residual(p1)
    if p1.one.residual[0] <= TOLERANCE:
        status = SOLVED
    elif status == SOLVED:
        status = INACCURATE
    p1.one.status[0] = status


@stage(p1=PROBLEM)
def solve_lemke(p1, pivots):
    """Solves a standalone problem by `lemke`.

    Reads:  one.n, one.A, one.b.
    Writes: one.x (nlcpone,) [N], one.w (nlcpone,) [m/s^2], one.*.
    Scratch: place.*.
    """
    lemke(p1, pivots)


METHOD = Method(
    "lemke",
    solve_lemke,
    form=ONE,
    numbers={"iterations": Count(10000, "largest number of pivots")},
    symmetric=False,
    bounded=False,
)
