"""The fields of a boxed LCP, the same in a tile of worlds and in problems that stand alone.

    A x = b + w,   lo <= x <= hi,   w >= 0 at lo, w <= 0 at hi, w = 0 between

Two forms stand side by side.  The *rows* of W problems of one structure, a value per world: what the iterative solvers
read; A is dense (`lcp_A`) or a product Y Y^T + diag(lcp_cfm) of sparse rows (`lcp_Y`) that is never formed.  And *one*
dense problem of a single world, in shared numbers, where pivots branch: `one_*`.
"""

from featherlane.lanes.layout import Field, Layout
from featherlane.solver.fields import HISTORY_SIZES

LCP_SIZES = (
    Field("nlcp", "size", doc="capacity: rows of the LCP"),
    Field("nlcpcol", "size", doc="capacity: columns named by all rows of Y; rows may share theirs"),
    Field("nlcpY", "size", doc="capacity: entries of Y"),
    Field("nlcpA", "size", doc="capacity: entries of a dense A, row by row, in every world"),
    Field("nlcpz", "size", doc="columns of Y: length of Y^T x"),
    Field("nlcpone", "size", doc="capacity: rows of one world's dense problem, a multiple of 8"),
    Field("nlcppair", "size", doc="the square of it: entries of its matrices"),
)

LCP = (
    Field("lcp_n", "int", (1,), "1", "rows", "solve", "scratch"),
    Field(
        "lcp_dense",
        "int",
        (1,),
        "1",
        "1: A is dense, in lcp_A with stride lcp_n; 0: A = Y Y^T + diag(lcp_cfm)",
        "solve",
        "scratch",
    ),
    Field("lcp_findex", "int", ("nlcp",), "1", "row whose solution scales the bounds, -1: none", "solve", "room"),
    Field("lcp_coladr", "int", ("nlcp",), "1", "first entry of the row in lcp_col", "solve", "room"),
    Field("lcp_colnum", "int", ("nlcp",), "1", "entries of the row of Y", "solve", "room"),
    Field("lcp_rowadr", "int", ("nlcp",), "1", "first entry of the row in lcp_Y", "solve", "room"),
    Field("lcp_col", "int", ("nlcpcol",), "1", "column of an entry", "solve", "room"),
    Field("lcp_order", "int", ("nlcp",), "1", "rows in the order in which a sweep visits them", "solve", "room"),
    Field("lcp_seed", "long", (1,), "1", "state of the generator that shuffles them", "solve", "scratch"),
    Field("lcp_parameter", "real", (2,), "1", "tolerance, over-relaxation", "solve", "room"),
    Field("lcp_Y", "real", ("nlcpY",), "1", "rows of Y", "solve", "room"),
    Field("lcp_A", "real", ("nlcpA",), "1/kg", "dense symmetric A, its diagonal with the softness", "solve", "room"),
    Field("lcp_cfm", "real", ("nlcp",), "1/kg", "softness on the diagonal; 1 of an absent row", "solve", "room"),
    Field("lcp_diag", "real", ("nlcp",), "1/kg", "diagonal of A with the softness", "solve", "room"),
    Field("lcp_b", "real", ("nlcp",), "m/s^2, rad/s^2", "right-hand side", "solve", "room"),
    Field("lcp_lo", "real", ("nlcp",), "N, N m", "lower bound, at most 0; not read where findex >= 0", "solve", "room"),
    Field("lcp_hi", "real", ("nlcp",), "N, N m, 1", "upper bound, at least 0; mu where findex >= 0", "solve", "room"),
    Field("lcp_add", "real", ("nlcp",), "N, N m", "added to mu |x[findex]|", "solve", "room"),
    Field("lcp_x", "real", ("nlcp",), "N, N m", "solution; the start of an iterative solver", "solve", "room"),
    Field("lcp_w", "real", ("nlcp",), "m/s^2, rad/s^2", "A x - b", "solve", "room"),
    Field("lcp_z", "real", ("nlcpz",), "1", "Y^T x", "solve", "room"),
    Field("lcp_y", "real", ("nlcp",), "1", "room: point of extrapolation", "solve", "room"),
    Field("lcp_g", "real", ("nlcp",), "1", "room: gradient there", "solve", "room"),
    Field("lcp_old", "real", ("nlcp",), "1", "room: solution one step before", "solve", "room"),
    Field("lcp_best", "real", ("nlcp",), "1", "room: solution of the smallest residual", "solve", "room"),
    Field("lcp_step", "real", ("nlcp",), "kg", "room: step of a row, about 1 / diagonal", "solve", "room"),
    Field("lcp_change", "real", ("nlcp",), "1", "room: change of w", "solve", "room"),
    Field("lcp_status", "real", (1,), "1", "how the solver ended, see Status", "solve", "scratch"),
    Field("lcp_niter", "real", (1,), "1", "iterations or pivots", "solve", "scratch"),
    Field("lcp_residual", "real", (1,), "1", "complementarity residual at the end", "solve", "scratch"),
    Field(
        "stat_residual",
        "real",
        ("nrecord",),
        "1",
        "complementarity residual after each iteration, the start first",
        "solve",
        "table",
        asked="want_history",
    ),
    Field("one_n", "int", (1,), "1", "rows of the problem", "solve", "scratch"),
    Field("one_row", "int", ("nlcpone",), "1", "row of the tile that a row of the problem is", "solve", "room"),
    Field("one_findex", "int", ("nlcpone",), "1", "row whose solution scales the bounds, -1: none", "solve", "room"),
    Field("one_order", "int", ("nlcpone",), "1", "row at each place of the pivoting", "solve", "room"),
    Field("one_place", "int", ("nlcpone",), "1", "place of each row", "solve", "room"),
    Field(
        "one_state",
        "int",
        ("nlcpone",),
        "1",
        "by place: at a bound, between them or waiting, see places.py",
        "solve",
        "room",
    ),
    Field("one_factor", "int", ("nlcpone",), "1", "place of each row of the factor, -1: none", "solve", "room"),
    Field("one_slot", "int", ("nlcpone",), "1", "by place: its row of the factor, -1: none", "solve", "room"),
    Field(
        "one_count", "int", (4,), "1", "rows of the factor, gaps among them, room, rows without findex", "solve", "room"
    ),
    Field(
        "one_mark",
        "int",
        ("nlcpone",),
        "1",
        "by place: passed over until the row of this place is driven",
        "solve",
        "room",
    ),
    Field("one_niter", "int", (1,), "1", "pivots", "solve", "scratch"),
    Field("one_status", "int", (1,), "1", "how the solver ended, see Status", "solve", "scratch"),
    Field("one_residual", "scalar", (1,), "1", "complementarity residual at the end", "solve", "scratch"),
    Field(
        "one_A",
        "scalar",
        ("nlcppair",),
        "1/kg",
        "full A with the softness, rows of n filled up to eights",
        "solve",
        "room",
    ),
    Field(
        "one_L", "scalar", ("nlcppair",), "1", "L^T of the rows between their bounds, rows of as many", "solve", "room"
    ),
    Field("one_D", "scalar", ("nlcpone",), "kg", "1 / D of it", "solve", "room"),
    Field("one_b", "scalar", ("nlcpone",), "m/s^2", "right-hand side", "solve", "room"),
    Field("one_lo", "scalar", ("nlcpone",), "N", "lower bound; not read where findex >= 0", "solve", "room"),
    Field("one_hi", "scalar", ("nlcpone",), "N", "upper bound, or mu", "solve", "room"),
    Field("one_add", "scalar", ("nlcpone",), "N", "added to mu |x[findex]|", "solve", "room"),
    Field("one_lower", "scalar", ("nlcpone",), "N", "lower bound in effect", "solve", "room"),
    Field("one_upper", "scalar", ("nlcpone",), "N", "upper bound in effect", "solve", "room"),
    Field("one_x", "scalar", ("nlcpone",), "N", "solution", "solve", "room"),
    Field("one_w", "scalar", ("nlcpone",), "m/s^2", "A x - b", "solve", "room"),
    Field("one_ell", "scalar", ("nlcpone",), "1", "room: L^-1 of the row that is driven", "solve", "room"),
    Field("one_turn", "scalar", ("nlcpone",), "1", "room: L^-1 of another row, or a row that leaves", "solve", "room"),
    Field("one_sum", "scalar", (64,), "1", "room: sums eight side by side", "solve", "room"),
    Field("place_A", "scalar", ("nlcppair",), "1", "A by place, its diagonal scaled to about 1", "solve", "room"),
    Field("place_scale", "scalar", ("nlcpone",), "kg^1/2", "power of two that scales a row, by place", "solve", "room"),
    Field(
        "place_b",
        "scalar",
        ("nlcpone",),
        "1",
        "right-hand side, scaled, by place; so are the following",
        "solve",
        "room",
    ),
    Field("place_lo", "scalar", ("nlcpone",), "1", "lower bound in effect", "solve", "room"),
    Field("place_hi", "scalar", ("nlcpone",), "1", "upper bound in effect", "solve", "room"),
    Field("place_x", "scalar", ("nlcpone",), "1", "solution", "solve", "room"),
    Field("place_w", "scalar", ("nlcpone",), "1", "A x - b", "solve", "room"),
    Field("place_dx", "scalar", ("nlcpone",), "1", "change of x by a unit of the row that is driven", "solve", "room"),
    Field("place_dw", "scalar", ("nlcpone",), "1", "change of w by it", "solve", "room"),
    Field("one_y", "scalar", ("nlcpone",), "1", "room: a solution, by row of the factor", "solve", "room"),
    Field("one_best", "scalar", ("nlcpone",), "1", "room: friction limits before a step, by place", "solve", "room"),
)

# in a tile of worlds
FIELDS = LCP_SIZES + LCP

# what a batch of problems needs beside it: direct solves in lanes, and where problems and results lie in memory
LCP_BATCH = (
    Field("lcp_L", "real", ("nlcpA",), "1", "room: factor of the rows between their bounds", "solve", "room"),
    Field("lcp_memory", "long", (80,), "1", "copies, see lane_memory.py", "solve", "room"),
)

# problems that stand alone
PROBLEM = Layout("Problem", HISTORY_SIZES + LCP_SIZES + LCP + LCP_BATCH)
