"""Copies rows of worlds into a tile and back: the record of the transfers, and the kernels that execute them.

A transfer copies `count` reals of each world between a row in memory and the rows of the tile:

    address(world, step) = row + index * stride + step * (stride of a step)       (in reals)

So state, per-world model fields, controls of a rollout and recorded outputs are all transfers.  The index is the
world's number for data that the batch stores (load, store), and its position in the call's list for data of the call
(control, record).  Fields that are float64 at every precision are copied as float64 (`wide`).  A partially filled tile
repeats its last world in the remaining lanes; these lanes are inactive and are not written back.

In the kernels k is the number of a transfer, s of a step; `index` is b.order, the worlds' numbers, or
b.call_position, their positions in the call's list.
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Field, Layout

PREFETCHED = 64  # reals of a row that are requested; the processor itself continues a longer row
ROWS = Layout(
    "Rows",
    (
        Field("nworld", "size", doc="number of worlds in this call"),
        Field("nlane", "size", doc="lanes of the tiles of all worlds"),
        Field("nstep", "size", doc="number of time steps; 0: forward only"),
        Field("stage", "size", doc="stage up to which fields of the last state are computed after the steps; 0: none"),
        Field("nunread", "size", doc="number of first steps without outputs, which the stage computes afterwards"),
        Field("order", "long", ("nlane",), "1", "worlds in the order of their lanes; the last one fills its tile"),
        Field("recall_row", "size", doc="address of world 0's pair cache; 0: no cache"),
        Field("recall_stride", "size", doc="bytes between the pair caches of two worlds"),
        Field(
            "call_position", "long", ("nlane",), "1", "positions of these worlds in the call's list, in the same order"
        ),
        Field(
            "nload",
            "size",
            doc="number of transfers before the first step; they come first, the others follow in this order",
        ),
        Field("ncontrol", "size", doc="number of transfers before each step"),
        Field("nrecord", "size", doc="number of transfers after each step"),
        Field("nstore", "size", doc="number of transfers after the last step"),
        Field("row", "long", ("ntransfer",), "1", "address of world 0's first real"),
        Field("count", "long", ("ntransfer",), "1", "number of reals per world"),
        Field("stride", "long", ("ntransfer",), "reals", "distance between two worlds"),
        Field("step", "long", ("ntransfer",), "reals", "distance between two steps"),
        Field("wide", "long", ("ntransfer",), "1", "1: float64 in every precision"),
        Field("tile_address", "long", ("nthread", "ntransfer"), "1", "address of the tile's rows for each thread"),
        Field("nthread", "size", doc="threads"),
        Field("ntransfer", "size", doc="number of transfers of all kinds"),
    ),
)


@kernel
def _copy_into_lanes(b, index, tile, k, s, out, source):
    """Copies rows of worlds (source) into lanes of the tile (out): transfer k of step s.

    The tile holds the W lanes of a real side by side: real i of lane l is out[i W + l].  All lanes are copied at once,
    so that misses of the cache overlap.
    """
    W, count, stride, shift = width(b), b.count[k], b.stride[k], s * b.step[k]
    # starts of the rows of the tile's worlds in source
    starts = tuple(index[tile * W + lane] * stride + shift for lane in range(width(b)))
    for i in range(count):
        values = tuple(source[start + i] for start in starts)
        for lane in unrolled(range(width(b))):
            out[i * W + lane] = values[lane]


@kernel
def _copy_out_of_lanes(b, index, tile, k, s, out, source):
    """Copies lanes of the tile (source) into rows of worlds (out): transfer k of step s.

    The tile holds the W lanes of a real side by side.  All lanes are copied at once, except in a partially filled tile,
    whose last lanes hold no world.
    """
    W, count, stride, shift = width(b), b.count[k], b.stride[k], s * b.step[k]
    filled = b.nworld - tile * W  # number of lanes that hold a world, if less than W
    if filled >= W:
        # starts of the rows of the tile's worlds in out
        starts = tuple(index[tile * W + lane] * stride + shift for lane in range(width(b)))
        for i in range(count):
            values = tuple(source[i * W + lane] for lane in range(width(b)))
            for lane in unrolled(range(width(b))):
                out[starts[lane] + i] = values[lane]
    else:
        for lane in range(filled):
            start = index[tile * W + lane] * stride + shift
            for i in range(count):
                out[start + i] = source[i * W + lane]


@kernel
def read_rows(b, index, thread, tile, k, s):
    """Copies rows of a tile's worlds into the tile: transfer k of step s."""
    address = b.tile_address[thread * b.ntransfer + k]
    if b.wide[k]:
        _copy_into_lanes(b, index, tile, k, s, doubles(b, address), doubles(b, b.row[k]))
    else:
        _copy_into_lanes(b, index, tile, k, s, scalars(b, address), scalars(b, b.row[k]))


@kernel
def write_rows(b, index, thread, tile, k, s):
    """Copies the tile's values back into the rows of its worlds: transfer k of step s."""
    address = b.tile_address[thread * b.ntransfer + k]
    if b.wide[k]:
        _copy_out_of_lanes(b, index, tile, k, s, doubles(b, b.row[k]), doubles(b, address))
    else:
        _copy_out_of_lanes(b, index, tile, k, s, scalars(b, b.row[k]), scalars(b, address))


@kernel
def _prefetch_rows(b, tile, k, source):
    """Requests the cache lines of the rows of a tile's worlds in `source`: transfer k."""
    count, stride = min(b.count[k], PREFETCHED), b.stride[k]
    for lane in range(width(b)):
        first = b.order[tile * width(b) + lane] * stride
        # eight reals are at most one cache line
        for i in range(0, count - 1, 8):
            prefetch(source, first + i)
        prefetch(source, first + count - 1)


@kernel
def prefetch_worlds(b, tile):
    """Requests the stored data of a tile's worlds, which `load_worlds` reads later."""
    for k in range(b.nload):
        if b.wide[k]:
            _prefetch_rows(b, tile, k, doubles(b, b.row[k]))
        else:
            _prefetch_rows(b, tile, k, scalars(b, b.row[k]))


@kernel
def load_worlds(b, thread, tile):
    """Copies the stored data of a tile's worlds from the batch into the tile."""
    for k in range(b.nload):
        read_rows(b, b.order, thread, tile, k, s=0)


@kernel
def find_memory(d, b, tile):
    """Writes recall_address: the address at which each world of the tile stores data of its convex pairs; 0: none."""
    for lane in range(width(d)):
        address = b.recall_row
        if address != 0:
            address += b.order[tile * width(d) + lane] * b.recall_stride
        d.recall_address[lane] = address


@kernel
def copy_step_inputs(b, thread, tile, s):
    """Copies the call's inputs for step s into the tile: the fields of d and of the call's record p that it provides.

    The call (a plan of Python code) decides which fields these are, and what a step is: a time step, a column, a ray.
    """
    # transfers are in the order load, control, record, store
    for k in range(b.nload, b.nload + b.ncontrol):
        read_rows(b, b.call_position, thread, tile, k, s)


@kernel
def write_records(b, thread, tile, s):
    """Copies the call's outputs of step s out of the tile: fields of d and of the call's record p."""
    first = b.nload + b.ncontrol
    for k in range(first, first + b.nrecord):
        write_rows(b, b.call_position, thread, tile, k, s)


@kernel
def store_worlds(b, thread, tile):
    """Copies the tile's worlds back into the rows of the batch."""
    for k in range(b.ntransfer - b.nstore, b.ntransfer):
        write_rows(b, b.order, thread, tile, k, s=0)
