"""Lemke's method for standard LCPs: w = A z - b, w, z >= 0, w^T z = 0, for any A.

A covering variable z0 in w = A z - b + z0 1 makes the start feasible; complementary pivots then remove it.  Ties are
broken by the lexicographic rule, so no basis repeats.  The method finds a solution for every positive semi-definite A
that has one, and for friction pyramids (standard_form.py).  A ray means that there is no solution, or that the method
does not reach it.

The dictionary has a row for each basic variable and a column for each other one, basic = q + T nonbasic:
variables 0 .. n-1 are w, n .. 2 n - 1 are z, 2 n is z0.
Layout: T_rc = scaled.A[stride * r + c], with stride = nlcpone and n + 1 columns;  q_r = scaled.b[r];
    one.order[r]: the basic variable of row r;  one.position[c]: the nonbasic variable of column c;  one.x = z.
Source: Cottle, Pang, Stone, "The Linear Complementarity Problem", 1992, sec. 4.4 and 4.9.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.method import ONE, Count, Method
from featherlane.engine.solver.lcp.status import INACCURATE, INFEASIBLE, ITERATIONS, SOLVED

TIE = 1e-13  # ratios closer than this, relative to the smaller one, are equal
INF = float("inf")
PIVOT = 1e-11  # of the largest entry of a column: a smaller pivot is rounding
TOLERANCE = 1e-10  # residual of a solution
REFINEMENTS = 2  # corrections of z by the final dictionary, `refine_basic_z`


# ---- the dictionary --------------------------------------------------------------------------------------------------
@kernel
def problem_entry(p1, i, j):
    """Returns A_ij of the problem, whose rows in one.A are padded to a multiple of eight."""
    return p1.one.A[i * ((p1.one.n[0] + 7) // 8 * 8) + j]


@kernel
def start_dictionary(p1):
    """Sets the dictionary to w = -b + A z + z0: all of w is basic."""
    n, stride = p1.one.n[0], p1.nlcpone
    for i in range(n):
        for j in range(n):
            p1.scaled.A[stride * i + j] = problem_entry(p1, i, j)
        p1.scaled.A[stride * i + n] = 1.0
        p1.scaled.b[i] = -p1.one.b[i]
        p1.one.order[i] = i
        p1.one.position[i] = n + i
    p1.one.position[n] = 2 * n


@kernel
def exchange_variables(p1, r, c):
    """Exchanges the basic variable of row r and the nonbasic one of column c; the pivot is T_rc.

    Row r is solved for the variable of column c: its entries are -T_rj / T_rc for j != c, 1 / T_rc in column c, and
    -q_r / T_rc.  In each other row i, this row replaces the variable: T_ic is set to 0, and its former value times row
    r is added.
    """
    n, stride = p1.one.n[0], p1.nlcpone
    inverse = 1.0 / p1.scaled.A[stride * r + c]
    for j in range(n + 1):
        p1.scaled.A[stride * r + j] = -(p1.scaled.A[stride * r + j] * inverse)
    p1.scaled.A[stride * r + c] = inverse
    p1.scaled.b[r] = -(p1.scaled.b[r] * inverse)
    for i in range(n):
        T_ic = p1.scaled.A[stride * i + c]
        if i != r and T_ic != 0.0:
            p1.scaled.A[stride * i + c] = 0.0
            for j in range(n + 1):
                p1.scaled.A[stride * i + j] = p1.scaled.A[stride * i + j] + T_ic * p1.scaled.A[stride * r + j]
            p1.scaled.b[i] = p1.scaled.b[i] + T_ic * p1.scaled.b[r]
    entering, leaving = p1.one.position[c], p1.one.order[r]
    p1.one.order[r], p1.one.position[c] = entering, leaving


@kernel
def nonbasic_column(p1, variable):
    """Returns the column of a nonbasic variable; -1 if it is basic."""
    found = -1
    for c in range(p1.one.n[0] + 1):
        if p1.one.position[c] == variable:
            found = c
    return found


# ---- the ratio test --------------------------------------------------------------------------------------------------
@kernel
def lexicographic_coefficient(p1, i, j):
    """Returns the coefficient of eps^(j + 1) in the basic variable of row i, if -b is -b + (eps, eps^2, ...).

    The dictionary then has w_j - eps^(j + 1) in place of each w_j.  So the coefficient is -T_ic if w_j is nonbasic in
    column c, 1 if w_j is the basic variable of row i, else 0.
    """
    c = nonbasic_column(p1, j)
    coefficient = 0.0
    if c >= 0:
        coefficient = -p1.scaled.A[p1.nlcpone * i + c]
    elif p1.one.order[i] == j:
        coefficient = 1.0
    return coefficient


@kernel
def reaches_zero_first(p1, i, r, c):
    """Checks whether the basic variable of row i falls to zero before that of row r, if the variable of column c grows.

    A tie is decided by the coefficients of the powers of eps, in turn: the lexicographic rule.
    """
    stride = p1.nlcpone
    # rates at which they fall, and values of the variable of column c at which they are zero
    speed_i, speed_r = -p1.scaled.A[stride * i + c], -p1.scaled.A[stride * r + c]
    ratio_i, ratio_r = p1.scaled.b[i] / speed_i, p1.scaled.b[r] / speed_r
    j = 0  # eps^(j + 1) decides next
    n = p1.one.n[0]
    while j < n and fabs(ratio_i - ratio_r) <= TIE * fabs(ratio_r):
        ratio_i, ratio_r = lexicographic_coefficient(p1, i, j) / speed_i, lexicographic_coefficient(p1, r, j) / speed_r
        j += 1
    return ratio_i < ratio_r


@kernel
def leaving_row(p1, c):
    """Returns the row whose basic variable falls to zero first if the variable of column c grows, -1: none.

    In a tie it is the row of z0, if that is one of them; else the lexicographic rule decides (`reaches_zero_first`).
    """
    n, stride = p1.one.n[0], p1.nlcpone
    leaving = -1
    largest = 0.0  # largest |T_ic|
    for i in range(n):
        size = fabs(p1.scaled.A[stride * i + c])
        if size > largest:
            largest = size
    # only the variables of rows with T_ic < 0 fall
    for i in range(n):
        if p1.scaled.A[stride * i + c] < -(PIVOT * largest) and (leaving < 0 or reaches_zero_first(p1, i, leaving, c)):
            leaving = i
    # z0, variable 2 n: it leaves if it reaches zero no later than that of the row `leaving`, up to rounding.  There
    # is such a row, because the row of z0 passed the same test above
    for i in range(n):
        if p1.one.order[i] == 2 * n and p1.scaled.A[stride * i + c] < -(PIVOT * largest):
            # values of the variable of column c at which they are zero
            ratio = -(p1.scaled.b[leaving] / p1.scaled.A[stride * leaving + c])
            ratio_z0 = -(p1.scaled.b[i] / p1.scaled.A[stride * i + c])
            if ratio_z0 <= ratio * (1.0 + TIE):
                leaving = i
    return leaving


@kernel
def first_leaving_row(p1):
    """Returns the row with the lowest q, whose variable leaves as z0 enters; -1: no q is below zero.

    In a tie it is the last row: the rule compares q_i + eps^(i + 1), and the last row has the smallest eps^(i + 1).
    """
    leaving, least = -1, 0.0
    for i in range(p1.one.n[0]):
        if p1.scaled.b[i] < 0.0 and p1.scaled.b[i] <= least:
            leaving, least = i, p1.scaled.b[i]
    return leaving


# ---- the method ------------------------------------------------------------------------------------------------------
@kernel
def store_basic_z(p1):
    """Sets one.x = z of the basis, one.lower = 0 and one.upper = infinity."""
    n = p1.one.n[0]
    for i in range(n):
        p1.one.x[i], p1.one.lower[i], p1.one.upper[i] = 0.0, 0.0, INF
    for i in range(n):
        variable = p1.one.order[i]
        if n <= variable < 2 * n:  # a basic z; the nonbasic z are 0
            # rounding may make q negative
            p1.one.x[variable - n] = fmax(p1.scaled.b[i], 0.0)


@kernel
def compute_lemke_w(p1):
    """Computes one.w = A z - b."""
    for i in range(p1.one.n[0]):
        w_i = -p1.one.b[i]
        for j in range(p1.one.n[0]):
            w_i = w_i + problem_entry(p1, i, j) * p1.one.x[j]
        p1.one.w[i] = w_i


@kernel
def refine_basic_z(p1):
    """Corrects the basic z by the nonbasic w, which would be 0 without rounding.  Overwrites scaled.dx.

    z of row i <- max(z - sum over columns c of nonbasic w of T_ic w, 0),   with w = A z - b in one.w
    """
    n, stride = p1.one.n[0], p1.nlcpone
    for i in range(n):
        variable = p1.one.order[i]
        if n <= variable < 2 * n:
            z = p1.one.x[variable - n]
            for c in range(n + 1):
                nonbasic = p1.one.position[c]
                if nonbasic < n:  # a w
                    z = z - p1.scaled.A[stride * i + c] * p1.one.w[nonbasic]
            p1.scaled.dx[variable - n] = z  # one.x keeps the old z until all corrections are known
    for i in range(n):
        variable = p1.one.order[i]
        if n <= variable < 2 * n:
            p1.one.x[variable - n] = fmax(p1.scaled.dx[variable - n], 0.0)


@kernel
def lemke_residual(p1):
    """Returns the residual of status.py: max |max(z - w / a, 0) - z| / max(|z|, |b| / a), with a = max A_ii."""
    a, worst, largest_z, largest_b = 0.0, 0.0, 0.0, 0.0
    for i in range(p1.one.n[0]):
        a = fmax(problem_entry(p1, i, i), a)
    step = 1.0 / a if a > 0.0 else 1.0
    for i in range(p1.one.n[0]):
        z = p1.one.x[i]
        worst = fmax(fabs(fmax(z - step * p1.one.w[i], 0.0) - z), worst)
        largest_z = fmax(z, largest_z)
        largest_b = fmax(fabs(p1.one.b[i]), largest_b)
    size = fmax(step * largest_b, largest_z)
    return worst / size if size > 0.0 else worst


@kernel
def follow_path(p1, pivots):
    """Runs complementary pivots, at most `pivots`, until z0 leaves the basis or a ray is found; returns the status.

    r: row whose variable leaves;  c: column whose variable enters.  The first pivot enters z0, in column n.
    """
    n = p1.one.n[0]
    count, status = 0, ITERATIONS
    r = first_leaving_row(p1)
    c = n
    if r < 0:  # -b >= 0: z = 0 is the solution
        status = SOLVED
    while status == ITERATIONS and count < pivots:
        leaving = p1.one.order[r]
        exchange_variables(p1, r, c)
        count += 1
        if leaving == 2 * n:  # z0
            status = SOLVED
        else:
            # the complement of the variable that left enters: z_i after w_i, w_i after z_i
            c = nonbasic_column(p1, leaving + n if leaving < n else leaving - n)
            r = leaving_row(p1, c)
            if r < 0:  # a ray: no row falls
                status = INFEASIBLE
    p1.one.niter[0] = count
    return status


@kernel
def lemke(p1, pivots):
    """Solves the standard LCP one.A, one.b of a record with capacity for one more row, by at most `pivots` pivots.

    Reads:  one.n < nlcpone, one.A, one.b.
    Writes: one.x = z, one.w, one.lower, one.upper, one.status, one.residual, one.niter (pivots).
    Scratch: scaled.A, scaled.b, scaled.dx, one.order, one.position.
    Cost:   n^2 products per pivot.
    """
    start_dictionary(p1)  # writes scaled.A, scaled.b
    status = follow_path(p1, pivots)
    store_basic_z(p1)  # writes one.x
    compute_lemke_w(p1)  # writes one.w
    if status == SOLVED:
        for _ in range(REFINEMENTS):
            refine_basic_z(p1)
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
    Scratch: scaled.*.
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
