"""Samples a row of numbers from each of many NumPy generators, compiled: a call of a generator takes 0.4 us in Python.

The C functions are those that `Generator.random` and `Generator.standard_normal` call, so numbers and states of the
generators are NumPy's.  NumPy documents their use from compiled code (Extending, CFFI), but only some of its builds
export them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.random import _generator

from featherlane.prelude import *
from featherlane.lanes import Layout, Record, allocate
from featherlane.lanes.layout import Declare, size
from featherlane.lanes.record import address
from featherlane.simulation.tile.library import library

GENERATORS = Layout(
    "Generators",
    (
        size("ngenerator", "generators, at most"),
        Declare().long("generator", "ngenerator", "1", "addresses of the generators to sample from"),
    ),
)
_C = ctypes.CDLL(_generator.__file__)
METHODS = {"uniform": "random", "normal": "standard_normal"}
FUNCTIONS = {
    kind: ctypes.cast(f, ctypes.c_void_p).value
    for kind in METHODS
    if (f := getattr(_C, f"random_standard_{kind}_fill", None))
}
FEW = 4  # generators for which calls in Python take less time
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


@stage(g1=GENERATORS)
def sample_rows(g1, function, count, n, rows):
    """Writes n numbers of each of the first `count` generators to the float64 rows at the address `rows`.

    Reads:  generator.
    """
    for k in range(count):
        call(function, g1.generator[k], n, rows + 8 * n * k)


class RowSampler:
    """Samples rows of numbers from generators, which must not be replaced."""

    def __init__(self, generators: Sequence[np.random.Generator]):
        self.generators, sizes = tuple(generators), {"ngenerator": len(generators)}  # kept alive for their addresses
        self._addresses = np.array([_pointer(g.bit_generator.capsule, b"BitGenerator") for g in generators])
        arrays = allocate(GENERATORS, sizes, 1, np.float64)
        self._given = arrays["generator"]
        self._run = library().bind(sample_rows, Record(GENERATORS, sizes, arrays, 1, np.float64))

    def rows(self, kind: str, ids: np.ndarray, n: int) -> np.ndarray:
        """Returns n numbers of each generator in `ids`, (len(ids), n).

        Args:
            kind: "uniform", between 0 and 1, or "normal", of the standard normal distribution.
            ids: numbers of the generators.
            n: numbers of each.
        """
        out, count, function = np.empty((len(ids), n)), len(ids), FUNCTIONS.get(kind)
        if function is None or not FEW <= count <= len(self._given):
            for row, i in zip(out, ids.tolist(), strict=True):
                getattr(self.generators[i], METHODS[kind])(out=row)
        else:
            self._given[:count] = self._addresses[ids]
            self._run(function, count, n, address(out))
        return out
