"""Fields of a boxed LCP, both in a tile of worlds and in standalone problems.

    A x = b + w,   lo <= x <= hi,   w >= 0 at lo, w <= 0 at hi, w = 0 between

There are two forms.  The *rows* of W problems of one structure, with a value per world, are for the iterative solvers;
A is dense (`lcp.A`) or a product Y Y^T + diag(lcp.cfm) of sparse rows (`lcp.Y`) that is never formed.  *One* dense
problem of a single world, in arrays that all lanes share, is for pivoting methods, which branch: `one_*`.
"""

from featherlane.engine.lanes.layout import Declare, Layout, size
from featherlane.engine.solver.fields import HISTORY_SIZES

_lcp = Declare("solve", "scratch", record="lcp")
_lcp_room = Declare("solve", "room", record="lcp")
_table = Declare("solve", "table", condition="want_history")
_one = Declare("solve", "scratch", record="one")
_one_room = Declare("solve", "room", record="one")
_scaled = Declare("solve", "room", record="scaled")
_room = Declare("solve", "room")

LCP_SIZES = (
    size("nlcp", "capacity: rows of the LCP"),
    size("nlcpcol", "capacity: columns of all rows of Y; rows may share columns"),
    size("nlcpY", "capacity: entries of Y"),
    size("nlcpA", "capacity: entries of a dense A, by rows, in every world"),
    size("nlcpz", "number of columns of Y: length of Y^T x"),
    size("nlcpone", "capacity: rows of one world's dense problem, a multiple of 8"),
    size("nlcppair", "square of nlcpone: entries of its matrices"),
)

LCP = (
    _lcp.int("n", "1", "1", "number of rows"),
    _lcp.int("dense", "1", "1", "1: A is dense, in lcp.A with stride lcp.n; 0: A = Y Y^T + diag(lcp.cfm)"),
    _lcp_room.int("findex", "nlcp", "1", "row whose solution scales the bounds, -1: none"),
    _lcp_room.int("coladr", "nlcp", "1", "first entry of the row in lcp.col"),
    _lcp_room.int("colnum", "nlcp", "1", "number of entries of the row of Y"),
    _lcp_room.int("rowadr", "nlcp", "1", "first entry of the row in lcp.Y"),
    _lcp_room.int("col", "nlcpcol", "1", "column of an entry"),
    _lcp_room.int("order", "nlcp", "1", "rows in the order of a sweep"),
    _lcp.long("seed", "1", "1", "state of the random generator that shuffles the rows"),
    _lcp_room.real("parameter", "2", "1", "tolerance, relaxation factor"),
    _lcp_room.real("Y", "nlcpY", "1", "rows of Y"),
    _lcp_room.real("A", "nlcpA", "1/kg", "dense symmetric A, including CFM on the diagonal"),
    _lcp_room.real("cfm", "nlcp", "1/kg", "CFM on the diagonal; 1 for an absent row"),
    _lcp_room.real("diag", "nlcp", "1/kg", "diagonal of A, including CFM"),
    _lcp_room.real("b", "nlcp", "m/s^2, rad/s^2", "right-hand side"),
    _lcp_room.real("lo", "nlcp", "N, N m", "lower bound, <= 0; not used for findex >= 0"),
    _lcp_room.real("hi", "nlcp", "N, N m, 1", "upper bound, >= 0; the friction coefficient mu for findex >= 0"),
    _lcp_room.real("add", "nlcp", "N, N m", "constant part of a friction bound: mu |x[findex]| + add"),
    _lcp_room.real("x", "nlcp", "N, N m", "solution; initial guess of an iterative solver"),
    _lcp_room.real("w", "nlcp", "m/s^2, rad/s^2", "A x - b"),
    _lcp_room.real("z", "nlcpz", "1", "Y^T x"),
    _lcp_room.real("lower", "nlcp", "N, N m", "pivoting: effective lower bound at the solution"),
    _lcp_room.real("upper", "nlcp", "N, N m", "pivoting: effective upper bound at the solution"),
    _lcp_room.real("y", "nlcp", "N, N m", "buffer: y, the point from which a step of APGD starts"),
    _lcp_room.real("g", "nlcp", "m/s^2, rad/s^2", "buffer: gradient at this point, A y - b"),
    _lcp_room.real("target", "nlcp", "N, N m", "buffer: x of each row after its step, before and after the projection"),
    _lcp_room.real("dx", "nlcp", "N, N m", "buffer: change of x"),
    _lcp_room.real("dw", "nlcp", "m/s^2, rad/s^2", "buffer: change of w, A dx"),
    _lcp_room.real("best", "nlcp", "1", "buffer: solution with the smallest residual"),
    _lcp_room.real("step", "nlcp", "kg", "buffer: step size of a row, about 1 / diagonal"),
    _lcp.real("status", "1", "1", "result of the solver, see Status"),
    _lcp.real("niter", "1", "1", "number of iterations or pivots"),
    _lcp.real("residual", "1", "1", "complementarity residual after the last iteration"),
    _table.real("stat_residual", "nrecord", "1", "complementarity residual at the start and after each iteration"),
    _one.int("n", "1", "1", "number of rows of the problem"),
    _one_room.int("row", "nlcpone", "1", "row of the tile for each row of the problem"),
    _one_room.int("findex", "nlcpone", "1", "row whose solution scales the bounds, -1: none"),
    _one_room.int("order", "nlcpone", "1", "row at each position of the pivoting"),
    _one_room.int("position", "nlcpone", "1", "position of each row"),
    _one_room.int("state", "nlcpone", "1", "by position: at a bound, between bounds or waiting, see scaled_problem.py"),
    _one_room.int("factor", "nlcpone", "1", "position of each row of the factor, -1: none"),
    _one_room.int("factor_row", "nlcpone", "1", "by position: row of the factor, -1: none"),
    _one.int("nfactor", "1", "1", "number of rows of the factor"),
    _one.int("ngap", "1", "1", "number of gaps among the rows of the factor"),
    _one.int("nconstant", "1", "1", "number of rows with constant bounds, which precede those with findex >= 0"),
    _one_room.int("mark", "nlcpone", "1", "by position: skipped until the row at this position is driven"),
    _one.int("niter", "1", "1", "number of pivots"),
    _one.int("status", "1", "1", "result of the solver, see Status"),
    _one.scalar("residual", "1", "1", "complementarity residual after the last pivot"),
    _one_room.scalar("A", "nlcppair", "1/kg", "full A including CFM, rows of n padded to a multiple of 8"),
    _one_room.scalar("L", "nlcppair", "1", "L^T of the rows between their bounds, with the same row length"),
    _one_room.scalar("D", "nlcpone", "kg", "1 / D of this factor"),
    _one_room.scalar("b", "nlcpone", "m/s^2", "right-hand side"),
    _one_room.scalar("lo", "nlcpone", "N", "lower bound; not used for findex >= 0"),
    _one_room.scalar("hi", "nlcpone", "N", "upper bound, or the friction coefficient mu"),
    _one_room.scalar("add", "nlcpone", "N", "constant part of a friction bound: mu |x[findex]| + add"),
    _one_room.scalar("lower", "nlcpone", "N", "effective lower bound"),
    _one_room.scalar("upper", "nlcpone", "N", "effective upper bound"),
    _one_room.scalar("x", "nlcpone", "N", "solution"),
    _one_room.scalar("w", "nlcpone", "m/s^2", "A x - b"),
    _one_room.scalar("rhs_entering", "nlcpone", "1", "buffer: L^-1 A_Ci of the driven row i"),
    _one_room.scalar("rhs", "nlcpone", "1", "buffer: right-hand side of other substitutions"),
    _one_room.scalar("sum", "64", "1", "buffer: eight partial sums"),
    _scaled.scalar("A", "nlcppair", "1", "A by position, with its diagonal scaled to about 1"),
    _scaled.scalar("scale", "nlcpone", "kg^1/2", "power of two that scales a row, by position"),
    _scaled.scalar("b", "nlcpone", "1", "scaled right-hand side, by position"),
    _scaled.scalar("lo", "nlcpone", "1", "scaled effective lower bound, by position"),
    _scaled.scalar("hi", "nlcpone", "1", "scaled effective upper bound, by position"),
    _scaled.scalar("x", "nlcpone", "1", "scaled solution, by position"),
    _scaled.scalar("w", "nlcpone", "1", "A x - b, scaled, by position"),
    _scaled.scalar("dx", "nlcpone", "1", "change of x per unit of the driven row"),
    _scaled.scalar("dw", "nlcpone", "1", "change of w per unit of the driven row"),
    _one_room.scalar("y", "nlcpone", "1", "buffer: a solution, by row of the factor"),
    _one_room.scalar("best", "nlcpone", "1", "buffer: friction limits before a step, by position"),
)

# fields in a tile of worlds
FIELDS = LCP_SIZES + LCP

# additional fields of a batch of problems: direct solves in lanes, and the addresses of problems and results
LCP_BATCH = (
    _room.real(
        "lcp_state", "nlcp", "1", "direct solves in lanes: -1: at the lower bound, 1: at the upper one, 0: free"
    ),
    _room.real("lcp_dx", "nlcp", "N, N m", "direct solves in lanes: change of x by active row; first its right side"),
    _room.real("lcp_L", "nlcpA", "1", "buffer: factor of the rows between their bounds, a packed lower triangle"),
    _room.long("lcp_memory", "80", "1", "copies, see lane_memory.py"),
)

# fields of standalone problems
PROBLEM = Layout("Problem", HISTORY_SIZES + LCP_SIZES + LCP + LCP_BATCH)
