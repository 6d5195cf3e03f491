"""Defines a small record for tests of lanes, and a call that runs a stage over flat rows of numbers, compiled or not.

Number k of an input is in world k % W of element k // W: the same flat inputs at every width W, so that outputs of
different widths can be compared bit for bit.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.lanes import Field, Layout, Library, Record, allocate, stage
from featherlane.engine.lanes.processor import base_of
from featherlane.engine.lanes.record import python_record

FORMS = (("float64", 1), ("float64", 8), ("float32", 1), ("float32", 16))
OUTPUTS = 24  # rows of `out` for each element

CELLS = Layout(
    "Cells",
    (
        Field("n", "size", doc="elements"),
        Field("k", "int", ("n",)),
        Field("long", "long", ("n",)),
        Field("table", "scalar", ("n",)),
        Field("x", "real", ("n",)),
        Field("y", "real", ("n",)),
        Field("z", "real", ("n",)),
        Field("clock", "real", ("n",), dtype="float64"),
        Field("out", "real", ("n", OUTPUTS)),
    ),
)


@stage
def doubles(d):
    """Doubles x, in a module that a separate process can import, for every pytest import mode."""
    for i in range(d.n):
        d.x[i] = 2.0 * d.x[i]


@stage
def doubles_twice(d):
    """Calls another stage."""
    doubles(d)
    doubles(d)


def library() -> Library:
    """Returns stages of one parameter `d`, of cells; a constant record of cells is called `m`."""
    return Library({"m": (CELLS, True), "d": (CELLS, False)})


def cells(dtype, width, n, **inputs) -> Record:
    """Returns a record of n elements; inputs by field name, reals as flat arrays of n * width numbers."""
    arrays = allocate(CELLS, {"n": n}, width=width, dtype=dtype)
    for name, values in inputs.items():
        arrays[name][:] = np.reshape(values, arrays[name].shape)
    return Record(CELLS, {"n": n}, arrays, width=width, dtype=dtype)


def evaluate(stages, stage, dtype, width, *, compiled=True, checked=False, **inputs) -> np.ndarray:
    """Returns outputs of the stage, one row of n * width numbers for each output; `stages` is a library."""
    d = cells(dtype, width, np.size(inputs["x"]) // width, **inputs)
    if compiled:
        stages.function(stage, base_of(dtype), width, checked=checked)(d.address)
        d.check_faults(stage.name)
    else:
        with np.errstate(all="ignore"):
            stage(python_record(d))
    return d.arrays["out"].reshape(-1, OUTPUTS, width).transpose(1, 0, 2).reshape(OUTPUTS, -1)


def same_bits(a, b) -> bool:
    """Returns whether all bits are equal; all NaNs count as equal."""
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a) | (a != a), np.signbit(b) | (b != b))
