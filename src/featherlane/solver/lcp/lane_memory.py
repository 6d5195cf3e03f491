"""Copies between a batch, one problem after the other, and a tile, whose lanes hold W problems side by side.

`lcp_memory` lists them, four numbers each: where the tile has the rows, where the batch has those of its first problem,
how many rows, and how far the next problem's are, in numbers (0: all problems have the same).  Lists end with 0.
Matrices are looked at on their way in, because reading many of them costs more than that.
"""

from featherlane.prelude import *
from featherlane.solver.lcp.fields import PROBLEM

RESULTS = 40  # where the list of results begins
DOUBT = 79  # where it stands whether a matrix is not finite or not symmetric
BYTES = 8  # of a number: batches are float64
ASYMMETRY = 1e-10  # of the largest entry: products of matrices are symmetric to rounding


@kernel
def copy_in(p, at, first, count):
    """One copy of the list, from the batch: zeros in lanes without a problem."""
    W, rows, stride = width(p), p.lcp_memory[at + 2], p.lcp_memory[at + 3]
    tile, batch = scalars(p, p.lcp_memory[at]), scalars(p, p.lcp_memory[at + 1] + BYTES * stride * first)
    for j in range(rows):
        for lane in range(count):
            tile[j * W + lane] = batch[lane * stride + j]
        for lane in range(count, W):
            tile[j * W + lane] = 0.0


@kernel
def copy_out(p, at, first, count):
    """One copy of the list, to the batch."""
    W, rows, stride = width(p), p.lcp_memory[at + 2], p.lcp_memory[at + 3]
    tile, batch = scalars(p, p.lcp_memory[at]), scalars(p, p.lcp_memory[at + 1] + BYTES * stride * first)
    for lane in range(count):
        for j in range(rows):
            batch[lane * stride + j] = tile[j * W + lane]


@kernel
def is_doubtful(p):
    """Has a world a dense A that is not finite, or not symmetric?"""
    n, none, gap, size = p.lcp.n[0], zero(p), zero(p), zero(p)
    for i in range(n):
        for j in range(i + 1):
            x, y = p.lcp.A[i * n + j], p.lcp.A[j * n + i]
            none = none + 0.0 * (x + y)
            gap, size = fmax(fabs(x - y), gap), fmax(fabs(x), size)
    return not_(none == 0.0) | (gap > ASYMMETRY * size)


@stage(p=PROBLEM)
def load_lanes(p, first, count):
    """Problems `first` to `first + count - 1` into the lanes; says where a dense A is in doubt.

    Reads:  lcp_memory (80,), and the problems whose addresses stand there.
    Writes: the rows whose addresses stand there; lcp_memory at DOUBT.
    """
    at = 0
    while p.lcp_memory[at] != 0:
        copy_in(p, at, first, count)
        at += 4
    if p.lcp.dense[0] != 0:
        p.lcp_memory[DOUBT] = 1 if any_(is_doubtful(p)) else 0


@stage(p=PROBLEM)
def store_lanes(p, first, count):
    """Results of the lanes to those of the problems.

    Reads:  lcp_memory (80,), and the rows whose addresses stand there from RESULTS on.
    Writes: the results whose addresses stand beside them.
    """
    at = RESULTS
    while p.lcp_memory[at] != 0:
        copy_out(p, at, first, count)
        at += 4
