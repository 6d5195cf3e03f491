"""The loop over tiles, and what is done in each: steps, or inverse dynamics.  One call works through many tiles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from featherlane.prelude import *
from featherlane.lanes import Layout, Stage
from featherlane.simulation.step.forward import forward, forward_pass, step
from featherlane.simulation.step.inverse import inverse
from featherlane.simulation.step.wake import unsettle
from featherlane.simulation.tile.capacity import SIGNATURE_BITS
from featherlane.simulation.tile.rows import find_memory, load_worlds, read_controls, store_worlds, write_records


@kernel
def load_tile(m, d, b, thread, tile, W):
    """The worlds of a tile, and which lanes hold one."""
    load_worlds(b, thread, tile, W)
    find_memory(d, b, tile, W)
    d.active[0] = where(lane_index(d) + tile * W < b.nworld, 1.0, 0.0)
    unsettle(m, d)


@overload
def over_tiles(function: Callable, /) -> Stage: ...


@overload
def over_tiles(**records: Layout) -> Callable[[Callable], Stage]: ...


def over_tiles(function: Callable | None = None, /, **records: Layout) -> Any:
    """Decorator: what is done in one tile, `(m, d, b, thread, tile, W)`, as a stage that does it in many.

    The stage `(m, d, b, thread, first, last)` brings worlds into each tile of a thread in turn, marks the lanes that
    hold one as active, and calls the function.  What goes back to the worlds' rows the function writes.  With a record
    of its own, `@over_tiles(p=LAYOUT)`, p stands behind b in both.
    """
    return looped(function, {}) if function else functools.partial(looped, records=records)


def looped(function: Callable, records: dict[str, Layout]) -> Stage:
    """The stage of `over_tiles`, with the records of the function."""
    do = kernel(function)

    def plain(m, d, b, thread, first, last):
        W = width(d)
        for tile in range(first, last):
            load_tile(m, d, b, thread, tile, W)
            do(m, d, b, thread, tile, W)

    def with_record(m, d, b, p, thread, first, last):
        W = width(d)
        for tile in range(first, last):
            load_tile(m, d, b, thread, tile, W)
            do(m, d, b, p, thread, tile, W)

    loop: Any = with_record if records else plain
    functools.update_wrapper(loop, function)
    del loop.__wrapped__  # the stage has parameters of its own
    return Stage(loop, records)


def in_each_tile(name: str, do: Stage) -> Stage:
    """The loop of `over_tiles` about a stage `(m, d, b, thread, tile)`, or `(m, d, b, p, thread, tile)`, p its record.

    For what reads numbers of the model itself, not through stages that it calls: worlds may have their own, which tiles
    bring, and compiled code takes a number of the model to stay what it is as long as a stage runs.
    """

    def plain(m, d, b, thread, first, last):
        W = width(d)
        for tile in range(first, last):
            load_tile(m, d, b, thread, tile, W)
            do(m, d, b, thread, tile)

    def with_record(m, d, b, p, thread, first, last):
        W = width(d)
        for tile in range(first, last):
            load_tile(m, d, b, thread, tile, W)
            do(m, d, b, p, thread, tile)

    loop, records = (with_record, {"p": do.records[do.parameters[3]]}) if do.records else (plain, {})
    loop.__name__, loop.__qualname__, loop.__module__ = name, name, do.function.__module__
    loop.__doc__ = f"""`{do.name}` in each tile.

    Reads:  the rows that the transfers of b bring in.
    Writes: what `{do.name}` writes; active, recall_address, tree_settled.
    """
    return Stage(loop, records)


@stage
def sign_contacts(m, d):
    """Which candidate pairs touch in each world, as bits: worlds with like bits make narrow tiles.

    Reads:  con_cand, con_present.   Writes: signature (nsignature,) whole numbers below 2^24.
    """
    for k in range(d.nsignature):
        d.signature[k] = zero(d)
    bits, last = SIGNATURE_BITS * d.nsignature, -1
    for k in range(d.ncon_slot[0]):
        p = d.con_cand[k]
        bit = (p if m.ncand <= bits else p * bits // m.ncand) % bits
        if p >= 0 and bit != last:
            word = bit // SIGNATURE_BITS
            weight = real(d, 1.0) * (1 << (SIGNATURE_BITS - 1 - bit % SIGNATURE_BITS))
            d.signature[word] = d.signature[word] + d.con_present[k] * weight
        last = bit


@over_tiles
def run_tiles(m, d, b, thread, tile, W):
    """The worlds of a tile through nstep time steps, or one forward pass where nstep is 0.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    if b.nstep == 0:
        forward_pass(m, d)
    for s in range(b.nstep):
        read_controls(b, thread, tile, W, s)
        step(m, d)
        write_records(b, thread, tile, W, s)
    sign_contacts(m, d)
    store_worlds(b, thread, tile, W)


@over_tiles
def inverse_tiles(m, d, b, thread, tile, W):
    """Inverse dynamics of the worlds of a tile: at the call's accelerations, or at forward's where nstep is 0.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    if b.nstep == 0:
        forward(m, d)
    for s in range(b.nstep):
        read_controls(b, thread, tile, W, s)
    inverse(m, d)
    write_records(b, thread, tile, W, 0)
    store_worlds(b, thread, tile, W)
