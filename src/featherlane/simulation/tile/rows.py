"""Worlds' rows into a tile and back: the record of what goes where, and the kernels that move it.

A transfer copies `count` reals of each world between a row in memory and the rows of the tile:

    address(world, step) = row + index * stride + step * step_stride       (in reals)

so state, per-world model fields, controls of a rollout and recorded outputs are all transfers.  The index is the
world's number for what the batch keeps (load, store), and its place in the call for what the call brought (control,
record).  Fields that are float64 at every precision are copied as float64 (`wide`).  A tile that is not full repeats
its last world in the lanes left over; those do not take part and are not written back.
"""

from featherlane.prelude import *
from featherlane.lanes import Field, Layout

_TRANSFERS = (
    ("load", "once, before the first step"),
    ("control", "before each step"),
    ("record", "after each step"),
    ("store", "once, after the last step"),
)

ROWS = Layout(
    "Rows",
    (
        Field("nworld", "size", doc="worlds of this call"),
        Field("nstep", "size", doc="time steps; 0: forward only"),
        Field("order", "long", ("nworld",), "1", "worlds in the order in which they fill tiles"),
        Field("recall_row", "size", doc="address of what world 0 remembers of its pairs; 0: nothing is remembered"),
        Field("recall_stride", "size", doc="bytes from one world's memory to the next"),
        Field("place", "long", ("nworld",), "1", "their places in the call's list of worlds"),
        *(
            field
            for kind, when in _TRANSFERS
            for field in (
                Field(f"n{kind}", "size", doc=f"transfers {when}"),
                Field(f"{kind}_row", "long", (f"n{kind}",), "1", "address of world 0's first real"),
                Field(f"{kind}_tile", "long", (f"n{kind}",), "1", "offset of the tile's rows in its thread's table"),
                Field(f"{kind}_count", "long", (f"n{kind}",), "1", "reals of a world"),
                Field(f"{kind}_stride", "long", (f"n{kind}",), "reals", "from one world to the next"),
                Field(f"{kind}_step", "long", (f"n{kind}",), "reals", "from one step to the next"),
                Field(f"{kind}_wide", "long", (f"n{kind}",), "1", "1: float64 at every precision"),
            )
        ),
        Field("tile_address", "long", ("nthread", "ntransfer"), "1", "address of the tile's rows, thread by thread"),
        Field("nthread", "size", doc="threads"),
        Field("ntransfer", "size", doc="transfers of all kinds"),
    ),
)


@kernel
def lane_place(b, tile, lane):
    """Which of the call's worlds a lane of a tile holds; the last one again where there is none."""
    k = tile * width(b) + lane
    return k if k < b.nworld else b.nworld - 1


@kernel
def _read(b, index, tile, out, source, count, stride, shift):
    """out <- source, from rows of worlds into lanes."""
    W = width(b)
    for lane in range(W):
        first = index[lane_place(b, tile, lane)] * stride + shift
        for i in range(count):
            out[i * W + lane] = source[first + i]


@kernel
def _write(b, index, tile, out, source, count, stride, shift):
    """out <- source, from lanes into rows of worlds, one row after the other."""
    W = width(b)
    for lane in range(min(W, b.nworld - tile * W)):
        first = index[tile * W + lane] * stride + shift
        for i in range(count):
            out[first + i] = source[i * W + lane]


@kernel
def read_rows(b, index, tile, row, address, count, stride, shift, wide):
    """Rows of a tile's worlds into the tile."""
    if wide:
        _read(b, index, tile, doubles(b, address), doubles(b, row), count, stride, shift)
    else:
        _read(b, index, tile, scalars(b, address), scalars(b, row), count, stride, shift)


@kernel
def write_rows(b, index, tile, row, address, count, stride, shift, wide):
    """The tile's values back into the rows of its worlds."""
    if wide:
        _write(b, index, tile, doubles(b, row), doubles(b, address), count, stride, shift)
    else:
        _write(b, index, tile, scalars(b, row), scalars(b, address), count, stride, shift)


@kernel
def load_worlds(b, thread, tile):
    """What the batch keeps of a tile's worlds, into the tile."""
    for k in range(b.nload):
        a = b.tile_address[thread * b.ntransfer + b.load_tile[k]]
        read_rows(b, b.order, tile, b.load_row[k], a, b.load_count[k], b.load_stride[k], 0, b.load_wide[k])


@kernel
def find_memory(d, b, tile):
    """Where the worlds of the tile remember their pairs."""
    for lane in range(width(d)):
        address = b.recall_row
        if address != 0:
            address += b.order[lane_place(b, tile, lane)] * b.recall_stride
        d.recall_address[lane] = address


@kernel
def read_controls(b, thread, tile, s):
    """What the call brought for step s."""
    for k in range(b.ncontrol):
        a, shift = b.tile_address[thread * b.ntransfer + b.control_tile[k]], s * b.control_step[k]
        n, stride, wide = b.control_count[k], b.control_stride[k], b.control_wide[k]
        read_rows(b, b.place, tile, b.control_row[k], a, n, stride, shift, wide)


@kernel
def write_records(b, thread, tile, s):
    """What the call takes from step s."""
    for k in range(b.nrecord):
        a, shift = b.tile_address[thread * b.ntransfer + b.record_tile[k]], s * b.record_step[k]
        n, stride, wide = b.record_count[k], b.record_stride[k], b.record_wide[k]
        write_rows(b, b.place, tile, b.record_row[k], a, n, stride, shift, wide)


@kernel
def store_worlds(b, thread, tile):
    """What the batch keeps, back into its rows."""
    for k in range(b.nstore):
        a = b.tile_address[thread * b.ntransfer + b.store_tile[k]]
        write_rows(b, b.order, tile, b.store_row[k], a, b.store_count[k], b.store_stride[k], 0, b.store_wide[k])
