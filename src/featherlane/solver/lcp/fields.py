"""Fields of a boxed LCP, both in a tile of worlds and in standalone problems.

    A x = b + w,   lo <= x <= hi,   w >= 0 at lo, w <= 0 at hi, w = 0 between

There are two forms.  The *rows* of W problems of one structure, with a value per world, are for the iterative solvers;
A is dense (`lcp.A`) or a product Y Y^T + diag(lcp.cfm) of sparse rows (`lcp.Y`) that is never formed.  *One* dense
problem of a single world, in arrays that all lanes share, is for pivoting methods, which branch: `one_*`.
"""

from featherlane.lanes.layout import Declare, Layout, size
from featherlane.solver.fields import HISTORY_SIZES

_lcp = Declare("solve", "scratch", record="lcp")
_lcp_room = Declare("solve", "room", record="lcp")
_table = Declare("solve", "table", asked="want_history")
_one = Declare("solve", "scratch", record="one")
_one_room = Declare("solve", "room", record="one")
_place = Declare("solve", "room", record="place")
_room = Declare("solve", "room")

LCP_SIZES = (
    size("nlcp", "capacity: rows of the LCP"),
    size("nlcpcol", "capacity: columns named by all rows of Y; rows may share theirs"),
    size("nlcpY", "capacity: entries of Y"),
    size("nlcpA", "capacity: entries of a dense A, row by row, in every world"),
    size("nlcpz", "columns of Y: length of Y^T x"),
    size("nlcpone", "capacity: rows of one world's dense problem, a multiple of 8"),
    size("nlcppair", "the square of it: entries of its matrices"),
)

LCP = (
    _lcp.int("n", "1", "1", "rows"),
    _lcp.int("dense", "1", "1", "1: A is dense, in lcp.A with stride lcp.n; 0: A = Y Y^T + diag(lcp.cfm)"),
    _lcp_room.int("findex", "nlcp", "1", "row whose solution scales the bounds, -1: none"),
    _lcp_room.int("coladr", "nlcp", "1", "first entry of the row in lcp.col"),
    _lcp_room.int("colnum", "nlcp", "1", "entries of the row of Y"),
    _lcp_room.int("rowadr", "nlcp", "1", "first entry of the row in lcp.Y"),
    _lcp_room.int("col", "nlcpcol", "1", "column of an entry"),
    _lcp_room.int("order", "nlcp", "1", "rows in the order in which a sweep visits them"),
    _lcp.long("seed", "1", "1", "state of the generator that shuffles them"),
    _lcp_room.real("parameter", "2", "1", "tolerance, over-relaxation"),
    _lcp_room.real("Y", "nlcpY", "1", "rows of Y"),
    _lcp_room.real("A", "nlcpA", "1/kg", "dense symmetric A, its diagonal with the softness"),
    _lcp_room.real("cfm", "nlcp", "1/kg", "softness on the diagonal; 1 of an absent row"),
    _lcp_room.real("diag", "nlcp", "1/kg", "diagonal of A with the softness"),
    _lcp_room.real("b", "nlcp", "m/s^2, rad/s^2", "right-hand side"),
    _lcp_room.real("lo", "nlcp", "N, N m", "lower bound, at most 0; not read where findex >= 0"),
    _lcp_room.real("hi", "nlcp", "N, N m, 1", "upper bound, at least 0; mu where findex >= 0"),
    _lcp_room.real("add", "nlcp", "N, N m", "added to mu |x[findex]|"),
    _lcp_room.real("x", "nlcp", "N, N m", "solution; the start of an iterative solver"),
    _lcp_room.real("w", "nlcp", "m/s^2, rad/s^2", "A x - b"),
    _lcp_room.real("z", "nlcpz", "1", "Y^T x"),
    _lcp_room.real("y", "nlcp", "1", "room: point of extrapolation"),
    _lcp_room.real("g", "nlcp", "1", "room: gradient there"),
    _lcp_room.real("old", "nlcp", "1", "room: solution one step before"),
    _lcp_room.real("best", "nlcp", "1", "room: solution of the smallest residual"),
    _lcp_room.real("step", "nlcp", "kg", "room: step of a row, about 1 / diagonal"),
    _lcp_room.real("change", "nlcp", "1", "room: change of w"),
    _lcp.real("status", "1", "1", "how the solver ended, see Status"),
    _lcp.real("niter", "1", "1", "iterations or pivots"),
    _lcp.real("residual", "1", "1", "complementarity residual at the end"),
    _table.real("stat_residual", "nrecord", "1", "complementarity residual after each iteration, the start first"),
    _one.int("n", "1", "1", "rows of the problem"),
    _one_room.int("row", "nlcpone", "1", "row of the tile that a row of the problem is"),
    _one_room.int("findex", "nlcpone", "1", "row whose solution scales the bounds, -1: none"),
    _one_room.int("order", "nlcpone", "1", "row at each place of the pivoting"),
    _one_room.int("place", "nlcpone", "1", "place of each row"),
    _one_room.int("state", "nlcpone", "1", "by place: at a bound, between them or waiting, see scaled_problem.py"),
    _one_room.int("factor", "nlcpone", "1", "place of each row of the factor, -1: none"),
    _one_room.int("slot", "nlcpone", "1", "by place: its row of the factor, -1: none"),
    _one_room.int("count", "4", "1", "rows of the factor, gaps among them, room, rows without findex"),
    _one_room.int("mark", "nlcpone", "1", "by place: passed over until the row of this place is driven"),
    _one.int("niter", "1", "1", "pivots"),
    _one.int("status", "1", "1", "how the solver ended, see Status"),
    _one.scalar("residual", "1", "1", "complementarity residual at the end"),
    _one_room.scalar("A", "nlcppair", "1/kg", "full A with the softness, rows of n filled up to eights"),
    _one_room.scalar("L", "nlcppair", "1", "L^T of the rows between their bounds, rows of as many"),
    _one_room.scalar("D", "nlcpone", "kg", "1 / D of it"),
    _one_room.scalar("b", "nlcpone", "m/s^2", "right-hand side"),
    _one_room.scalar("lo", "nlcpone", "N", "lower bound; not read where findex >= 0"),
    _one_room.scalar("hi", "nlcpone", "N", "upper bound, or mu"),
    _one_room.scalar("add", "nlcpone", "N", "added to mu |x[findex]|"),
    _one_room.scalar("lower", "nlcpone", "N", "lower bound in effect"),
    _one_room.scalar("upper", "nlcpone", "N", "upper bound in effect"),
    _one_room.scalar("x", "nlcpone", "N", "solution"),
    _one_room.scalar("w", "nlcpone", "m/s^2", "A x - b"),
    _one_room.scalar("ell", "nlcpone", "1", "room: L^-1 of the row that is driven"),
    _one_room.scalar("turn", "nlcpone", "1", "room: L^-1 of another row, or a row that leaves"),
    _one_room.scalar("sum", "64", "1", "room: sums eight side by side"),
    _place.scalar("A", "nlcppair", "1", "A by place, its diagonal scaled to about 1"),
    _place.scalar("scale", "nlcpone", "kg^1/2", "power of two that scales a row, by place"),
    _place.scalar("b", "nlcpone", "1", "right-hand side, scaled, by place; so are the following"),
    _place.scalar("lo", "nlcpone", "1", "lower bound in effect"),
    _place.scalar("hi", "nlcpone", "1", "upper bound in effect"),
    _place.scalar("x", "nlcpone", "1", "solution"),
    _place.scalar("w", "nlcpone", "1", "A x - b"),
    _place.scalar("dx", "nlcpone", "1", "change of x by a unit of the row that is driven"),
    _place.scalar("dw", "nlcpone", "1", "change of w by it"),
    _one_room.scalar("y", "nlcpone", "1", "room: a solution, by row of the factor"),
    _one_room.scalar("best", "nlcpone", "1", "room: friction limits before a step, by place"),
)

# fields in a tile of worlds
FIELDS = LCP_SIZES + LCP

# additional fields of a batch of problems: direct solves in lanes, and the addresses of problems and results
LCP_BATCH = (
    _room.real("lcp_L", "nlcpA", "1", "room: factor of the rows between their bounds"),
    _room.long("lcp_memory", "80", "1", "copies, see lane_memory.py"),
)

# fields of standalone problems
PROBLEM = Layout("Problem", HISTORY_SIZES + LCP_SIZES + LCP + LCP_BATCH)
