"""The loop over tiles, and its body: steps, or inverse dynamics.  One call processes many tiles."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, overload

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel, Layout, Stage
from featherlane.engine.simulation.step.forward import forward, forward_pass, forward_to, step
from featherlane.engine.simulation.step.inverse import inverse
from featherlane.engine.simulation.step.wake import unsettle_trees
from featherlane.engine.simulation.tile.capacity import EFFORT_BITS, EFFORTS, SIGNATURE_BITS
from featherlane.engine.simulation.tile.rows import (
    copy_step_inputs,
    find_memory,
    load_worlds,
    prefetch_worlds,
    store_worlds,
    write_records,
)


@kernel
def load_tile(m, d, b, thread, tile):
    """Loads the worlds of a tile; writes `active`, 1 in lanes that hold a world; marks its trees as unsettled."""
    load_worlds(b, thread, tile)
    if (tile + 1) * width(d) < b.nworld:
        prefetch_worlds(b, tile + 1)  # while this tile is computed
    find_memory(d, b, tile)
    d.active[0] = where(lane_index(d) + tile * width(d) < b.nworld, 1.0, 0.0)
    unsettle_trees(m, d)


@overload
def over_tiles(function: Callable, /) -> Stage: ...


@overload
def over_tiles(**records: Layout) -> Callable[[Callable], Stage]: ...


def over_tiles(function: Callable | None = None, /, **records: Layout) -> Any:
    """Decorates a function for one tile, `(m, d, b, thread, tile)`: returns a stage that calls it for many tiles.

    The stage `(m, d, b, thread, first, last)` loads worlds into each tile of a thread in turn, marks the lanes that
    hold one as active, and calls the function.  The function itself writes results back to the worlds' rows.  With a
    separate record, `@over_tiles(p=LAYOUT)`, both take p after b.
    """
    if function is None:
        return functools.partial(over_tiles, **records)
    return _loop(function.__name__, function.__doc__, kernel(function), records)


def in_each_tile(name: str, do: Stage) -> Stage:
    """Returns the loop of `over_tiles` around a stage `(m, d, b, thread, tile)`, or `(m, d, b, p, thread, tile)`.

    A function that reads model parameters itself, rather than through stages that it calls, must be such a stage:
    worlds may have different parameters, which are loaded for each tile, and compiled code treats a model parameter as
    constant while a stage runs.
    """
    text = f"""`{do.name}` in each tile.

    Reads:  the rows that the transfers of b bring in.
    Writes: what `{do.name}` writes; active, recall_address, tree_settled.
    """
    return _loop(name, text, do, do.records)


def _loop(name: str, text: str | None, do: Kernel, records: Mapping[str, Layout]) -> Stage:
    """Returns the stage that loads each tile and runs `do`; kernels have no optional arguments, so it has two forms."""

    def plain(m, d, b, thread, first, last):
        for tile in range(first, last):
            load_tile(m, d, b, thread, tile)
            do(m, d, b, thread, tile)

    def with_record(m, d, b, p, thread, first, last):
        for tile in range(first, last):
            load_tile(m, d, b, thread, tile)
            do(m, d, b, p, thread, tile)

    loop = with_record if records else plain
    loop.__name__, loop.__qualname__, loop.__doc__, loop.__module__ = name, name, text, do.function.__module__
    return Stage(loop, records)


@stage
def sign_contacts(m, d):
    """Computes bits for the candidate pairs that touch in each world; tiles are formed of worlds with similar bits.

    A word holds SIGNATURE_BITS bits, the first pair in the highest one.  If there are more pairs than bits,
    neighbouring pairs share one.  The last word has EFFORT_BITS bits for each number of EFFORTS that the iterations of
    the solver exceed: a tile iterates until its slowest world has converged, so slow worlds share tiles.
    Reads:  con_cand, con_present, solver_niter.   Writes: signature (nsignature,) whole numbers below 2^24.
    """
    clear(d.signature, d.nsignature)
    words = d.nsignature - 1
    bits = SIGNATURE_BITS * words
    last_bit = -1
    for k in range(d.ncon_slot[0]):
        pair = d.con_cand[k]
        bit = (pair if m.ncand <= bits else pair * bits // m.ncand) % bits  # from 0 to bits - 1, also for pair -1
        # -1: no candidate pair; the slots of a pair are consecutive, so its bit is added once
        if pair >= 0 and bit != last_bit:
            word = bit // SIGNATURE_BITS
            weight = 1.0 * (1 << (SIGNATURE_BITS - 1 - bit % SIGNATURE_BITS))
            d.signature[word] = d.signature[word] + d.con_present[k] * weight
        last_bit = bit
    effort = 0.0
    for level in unrolled(range(6)):  # all of EFFORTS
        bits_of_level = 1.0 * (((1 << EFFORT_BITS) - 1) << (EFFORT_BITS * level))
        effort = effort + where(d.solver_niter[0] > 1.0 * EFFORTS[level], bits_of_level, 0.0)
    d.signature[words] = effort


@over_tiles
def run_tiles(m, d, b, thread, tile):
    """Steps the worlds of a tile nstep times and computes its stage, or runs one forward pass if nstep is 0.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, unread, and all else of this thread's
            workspace.
    """
    if b.nstep == 0:
        forward_pass(m, d)
    for s in range(b.nstep):
        copy_step_inputs(b, thread, tile, s)  # controls and other inputs of a time step
        d.unread[0] = 1 if s < b.nunread else 0  # outputs of this step are not computed
        step(m, d)
        write_records(b, thread, tile, s)
    d.unread[0] = 0
    if b.stage > 0:
        forward_to(m, d, b.stage)
    sign_contacts(m, d)
    store_worlds(b, thread, tile)


@over_tiles
def inverse_tiles(m, d, b, thread, tile):
    """Computes inverse dynamics of a tile's worlds: at the call's accelerations, or at forward's if nstep is 0.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    if b.nstep == 0:
        forward(m, d)
    for s in range(b.nstep):
        copy_step_inputs(b, thread, tile, s)  # d.qacc
    inverse(m, d)
    write_records(b, thread, tile, s=0)
    store_worlds(b, thread, tile)
