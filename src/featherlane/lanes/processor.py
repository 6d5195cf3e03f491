"""CPU levels that kernels are compiled for, and the widths of tiles on this machine."""

from __future__ import annotations

import functools
import os
import platform
import sys

import numpy as np

from featherlane.errors import ArgumentError

V3 = frozenset("avx2 bmi1 bmi2 f16c fma abm movbe".split())
V4 = V3 | frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split())
LEVELS = {  # CPU level -> (LLVM's processor, features)
    "x86-64-v4": ("x86-64-v4", "-prefer-256-bit"),
    "x86-64-v3": ("x86-64-v3", ""),
    "x86-64": ("x86-64", ""),
    "aarch64": ("generic", ""),
    "apple-m1": ("apple-m1", ""),
    "generic": ("generic", ""),  # any other processor, without its extensions
}
NATIVE = "native"
WIDTHS = {"f64": 8, "f32": 16}


@functools.cache
def _flags() -> frozenset[str]:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return frozenset()
    with open("/proc/cpuinfo") as f:
        return frozenset(next((line for line in f if line.startswith("flags")), "").split())


def levels_of_architecture() -> list[str]:
    """Returns the CPU levels of this machine's architecture and system, the best first."""
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return ["x86-64-v4", "x86-64-v3", "x86-64"]
    if machine in ("aarch64", "arm64"):
        return ["apple-m1"] * (sys.platform == "darwin") + ["aarch64"]
    return ["generic"]


def levels() -> list[str]:
    """Returns the CPU levels that this machine runs, the best first; `native`, this exact processor, is the last."""
    needs = {"x86-64-v4": V4, "x86-64-v3": V3}
    return [level for level in levels_of_architecture() if needs.get(level, frozenset()) <= _flags()] + [NATIVE]


def level_features(level: str) -> tuple[str, str]:
    """Returns LLVM's names of the processor and of the features of a CPU level.

    Raises:
        ValueError: an unknown level.
    """
    if level not in LEVELS:
        raise ArgumentError(f"CPU level: got {level!r}, allowed are {', '.join(LEVELS)} and {NATIVE}")
    return LEVELS[level]


def cpu_level() -> str:
    """Returns the best level that this machine runs; FEATHERLANE_CPU overrides it.

    Raises:
        ValueError: FEATHERLANE_CPU names a level that does not exist or that this machine lacks.
    """
    supported = levels()
    forced = os.environ.get("FEATHERLANE_CPU")
    if forced and forced not in supported:
        raise ArgumentError(f"FEATHERLANE_CPU: got {forced!r}, allowed on this machine are {', '.join(supported)}")
    return forced or supported[0]


def base_of(dtype) -> str:
    """Returns `f64` or `f32`.

    Raises:
        ValueError: any other dtype.
    """
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in ("float64", "float32"):
        raise ArgumentError(f"dtype: got {name}, allowed are float64 and float32")
    return "f64" if name == "float64" else "f32"


def tile_width(dtype) -> int:
    """Returns the worlds in a tile: 8 in float64, 16 in float32; FEATHERLANE_WIDTH and FEATHERLANE_WIDTH32 override.

    Raises:
        ValueError: the override is not 1, 2, 4, 8, 16 or 32.
    """
    base = base_of(dtype)
    variable = "FEATHERLANE_WIDTH" if base == "f64" else "FEATHERLANE_WIDTH32"
    given = os.environ.get(variable)
    if not given:
        return WIDTHS[base]
    if given not in ("1", "2", "4", "8", "16", "32"):
        raise ArgumentError(f"{variable}: got {given!r}, allowed are 1, 2, 4, 8, 16 and 32")
    return int(given)


def compiled_variants() -> list[tuple[str, int]]:
    """Returns all (precision, worlds in a tile) that run: one world in float64, tiles in both precisions."""
    return list(dict.fromkeys((("f64", 1), ("f64", tile_width(np.float64)), ("f32", tile_width(np.float32)))))
