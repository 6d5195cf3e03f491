"""Copies between a batch, which stores one problem after another, and a tile, whose lanes interleave W problems.

`lcp_memory` lists the copies.  A copy has four entries: the address of an array in the tile, the address of its
values of the first problem in the batch, the number of values of a problem, and the stride to the values of the next
problem (0: all problems share them).  A 0 ends a list.  featherlane/lcp/tile.py fills it before the stages run.
Matrices are checked as they are copied, because reading many of them again costs more than the check.
at: index in lcp_memory of a copy, whose four entries are at, at + 1, at + 2 and at + 3.
`scalars(p, address)` is the array of float64 at that address; W = `width(p)`: lanes of the tile.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.fields import PROBLEM

RESULTS = 40  # start of the list of results
DOUBT = 79  # index of a flag: 1 if a loaded matrix is not finite or not symmetric
BATCH, VALUES, STRIDE = 1, 2, 3  # positions of a copy's entries behind the address in the tile
BYTES = 8  # of a float64
ASYMMETRY = 1e-10  # largest |A_ij - A_ji| relative to the largest entry: products of matrices are symmetric to rounding


@kernel
def copy_in(p, at, first, count):
    """Runs the copy at lcp_memory[at], of `count` problems from `first` on, from the batch to the tile.

    Value j of the problem in `lane` is batch[lane * stride + j] and tile[j * W + lane]; lanes without a problem get 0.
    """
    W = width(p)
    values, stride = p.lcp_memory[at + VALUES], p.lcp_memory[at + STRIDE]
    tile = scalars(p, p.lcp_memory[at])
    batch = scalars(p, p.lcp_memory[at + BATCH] + BYTES * stride * first)
    for j in range(values):
        for lane in range(count):
            tile[j * W + lane] = batch[lane * stride + j]
        for lane in range(count, W):
            tile[j * W + lane] = 0.0


@kernel
def copy_out(p, at, first, count):
    """Runs the copy at lcp_memory[at], of `count` problems from `first` on, from the tile to the batch.

    Value j of the problem in `lane` is batch[lane * stride + j] and tile[j * W + lane].
    """
    W = width(p)
    values, stride = p.lcp_memory[at + VALUES], p.lcp_memory[at + STRIDE]
    tile = scalars(p, p.lcp_memory[at])
    batch = scalars(p, p.lcp_memory[at + BATCH] + BYTES * stride * first)
    for lane in range(count):
        for j in range(values):
            batch[lane * stride + j] = tile[j * W + lane]


@kernel
def is_doubtful(p):
    """Returns a mask of worlds with a dense A, A_ij = lcp.A[i * n + j], that is not finite or not symmetric."""
    n = p.lcp.n[0]
    # not_finite: 0, or NaN if an entry is not finite;  asymmetry, largest: max |A_ij - A_ji| and max |A_ij|
    not_finite, asymmetry, largest = 0.0, 0.0, 0.0
    for i in range(n):
        for j in range(i + 1):
            lower, upper = p.lcp.A[i * n + j], p.lcp.A[j * n + i]
            # 0 times a finite number is 0, times inf or NaN it is NaN
            not_finite = not_finite + 0.0 * (lower + upper)
            asymmetry = fmax(fabs(lower - upper), asymmetry)
            largest = fmax(fabs(lower), largest)
    return not_(not_finite == 0.0) | (asymmetry > ASYMMETRY * largest)


@stage(p=PROBLEM)
def load_lanes(p, first, count):
    """Copies problems first to first + count - 1 to the lanes; flags a dense A that is not finite or not symmetric.

    Reads:  lcp_memory (80,), and the problems at its addresses.
    Writes: the rows at its addresses; lcp_memory at DOUBT.
    """
    at = 0
    while p.lcp_memory[at] != 0:
        copy_in(p, at, first, count)
        at += 4
    if p.lcp.dense[0] != 0:
        p.lcp_memory[DOUBT] = 1 if any_(is_doubtful(p)) else 0


@stage(p=PROBLEM)
def store_lanes(p, first, count):
    """Copies the results of problems first to first + count - 1 from the lanes to the batch.

    Reads:  lcp_memory (80,), and the rows at its addresses from RESULTS on.
    Writes: the results at the addresses paired with these rows.
    """
    at = RESULTS
    while p.lcp_memory[at] != 0:
        copy_out(p, at, first, count)
        at += 4
