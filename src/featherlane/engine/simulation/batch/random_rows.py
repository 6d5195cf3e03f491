"""Samples a row of numbers from each of many NumPy generators in compiled code, without a Python call for each.

The C functions are those that `Generator.random` and `Generator.standard_normal` call, so numbers and states of the
generators are NumPy's.  NumPy documents their use from compiled code (Extending, CFFI), but only some of its builds
export them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Layout, Record, allocate
from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.lanes.record import address
from featherlane.engine.libraries import private
from featherlane.engine.simulation.tile.library import library

GENERATORS = Layout(
    "Generators",
    (
        size("ngenerator", "generators, at most"),
        Declare().long("generator", "ngenerator", "1", "addresses of the generators to sample from"),
    ),
)
FILLS = {"random": "random_standard_uniform_fill", "standard_normal": "random_standard_normal_fill"}
FEW = 4  # generators for which calls in Python take less time
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@cache
def functions() -> dict[str, int | None]:
    """Returns the address of the C function of each method of a generator, if this build of NumPy exports it."""
    c = ctypes.CDLL(private("numpy", np.random, "_generator").__file__)
    found = {method: getattr(c, name) for method, name in FILLS.items() if hasattr(c, name)}
    return {method: ctypes.cast(function, ctypes.c_void_p).value for method, function in found.items()}


@stage(g1=GENERATORS)
def sample_rows(g1, function, count, n, rows):
    """Writes n float64 numbers of each of the first `count` generators to rows.

    function: address of a C function (generator, n, target) that samples n numbers.

    Reads:  generator.
    Writes: the memory at the address `rows`.
    """
    for k in range(count):
        call(function, g1.generator[k], n, rows + 8 * n * k)  # 8 bytes per number


class RowSampler:
    """Samples a row of numbers from each of many NumPy generators; numbers and later states are NumPy's.

    Args:
        generators: the generators, which are used as long as the sampler.
    """

    def __init__(self, generators: Sequence[np.random.Generator]):
        self._generators = tuple(generators)

    def rows(self, method: str, ids: np.ndarray, n: int) -> np.ndarray:
        """Returns n numbers of each generator in `ids`, (len(ids), n) float64 [1].

        Args:
            method: "random" (uniform from 0 to 1) or "standard_normal", the method of a generator that is called.
            ids: indices of the generators.
            n: numbers of each.
        """
        out, count = np.empty((len(ids), n)), len(ids)
        if FEW <= count <= len(self._generators) and method in functions():
            run, given, addresses = self._compiled
            given[:count] = addresses[ids]
            run(functions()[method], count, n, address(out))
        else:
            for row, i in zip(out, ids.tolist(), strict=True):
                getattr(self._generators[i], method)(out=row)
        return out

    @cached_property
    def _compiled(self) -> tuple[Callable[..., Any], np.ndarray, np.ndarray]:
        """Returns the compiled stage, its array of addresses, and the addresses of all generators."""
        sizes = {"ngenerator": len(self._generators)}
        arrays = allocate(GENERATORS, sizes, width=1, dtype=np.float64)
        addresses = np.array([_pointer(g.bit_generator.capsule, b"BitGenerator") for g in self._generators])
        run = library().bind(sample_rows, Record(GENERATORS, sizes, arrays, width=1, dtype=np.float64))
        return run, arrays["generator"], addresses
