"""CPU levels that kernels are compiled for, and the widths of tiles on this machine."""

from __future__ import annotations

import functools
import os
import platform
import sys

import numpy as np

from featherlane.engine.libraries import private
from featherlane.errors import ArgumentError

AVX = frozenset({"avx"})  # MuJoCo's published libraries need it, too
V3 = AVX | frozenset("avx2 bmi1 bmi2 f16c fma abm movbe".split())
V4 = V3 | frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split())
LEVELS = {  # CPU level -> (LLVM's processor, features)
    "x86-64-v4": ("x86-64-v4", "-prefer-256-bit"),
    "x86-64-v3": ("x86-64-v3", ""),
    "x86-64": ("x86-64", "+avx"),
    "aarch64": ("generic", ""),
    "apple-m1": ("apple-m1", ""),
    "generic": ("generic", ""),  # any other processor, without its extensions
}
TRIPLES = {  # (system, architecture) that kernels are cross-compiled for -> LLVM's target triple
    ("linux", "x86_64"): "x86_64-unknown-linux-gnu",
    ("linux", "aarch64"): "aarch64-unknown-linux-gnu",
    ("macos", "aarch64"): "arm64-apple-macosx11.0.0",
    ("windows", "x86_64"): "x86_64-pc-windows-gnu",
}
SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}  # sys.platform -> system
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}  # platform.machine() -> architecture, if they differ
NATIVE = "native"
WIDTHS = {"f64": 8, "f32": 16}
NUMPY_NAMES = {  # NumPy's name of a processor feature -> Linux's names of the features that it implies
    "X86_V3": V3,  # NumPy 2.4 and later
    "X86_V4": V4,
    "AVX": AVX,
    "AVX2": {"avx2"},
    "FMA3": {"fma", "bmi1", "bmi2", "abm", "movbe"},  # every processor with FMA3 and AVX2 has the other four
    "F16C": {"f16c"},
    "AVX512F": {"avx512f"},
    "AVX512CD": {"avx512cd"},
    "AVX512_SKX": {"avx512bw", "avx512dq", "avx512vl"},
}


def _flags_of_numpy() -> frozenset[str]:
    """Returns the flags that NumPy detected with the CPUID instruction, on any system."""
    umath = private("numpy", private("numpy", np, "_core"), "_multiarray_umath")
    found = getattr(umath, "__cpu_features__", {})
    return frozenset(flag for name, flags in NUMPY_NAMES.items() if found.get(name) for flag in flags)


@functools.cache
def _flags() -> frozenset[str]:
    system, architecture = host()
    if architecture != "x86_64":
        return frozenset()
    if system != "linux":
        return _flags_of_numpy()
    with open("/proc/cpuinfo") as f:
        return frozenset(next((line for line in f if line.startswith("flags")), "").split())


def host() -> tuple[str, str]:
    """Returns (system, architecture) of this machine: ("linux", "x86_64")."""
    machine = platform.machine().lower()
    return SYSTEMS.get(sys.platform, sys.platform), ARCHITECTURES.get(machine, machine)


def levels_of_architecture(system: str = "", architecture: str = "") -> list[str]:
    """Returns the CPU levels of an architecture and system, or of this machine's, the best first."""
    system, architecture = (system, architecture) if system else host()
    if architecture == "x86_64":
        return ["x86-64-v4", "x86-64-v3", "x86-64"]
    if architecture == "aarch64":
        return ["apple-m1" if system == "macos" else "aarch64"]
    return ["generic"]


def target_name(level: str, system: str, architecture: str) -> str:
    """Returns the name of a CPU level of a system: the level alone for this machine's, else `aarch64.linux-aarch64`."""
    return level if (system, architecture) == host() else f"{level}.{system}-{architecture}"


def split_target(name: str) -> tuple[str, tuple[str, str]]:
    """Returns (CPU level, (system, architecture)) of a name of `target_name`."""
    level, _, place = name.partition(".")
    system, _, architecture = place.partition("-")
    return level, (system, architecture) if place else host()


def levels() -> list[str]:
    """Returns the CPU levels that this machine runs, the best first; `native`, this exact processor, is the last."""
    needs = {"x86-64-v4": V4, "x86-64-v3": V3, "x86-64": AVX}
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
