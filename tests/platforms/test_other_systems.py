"""Kernels for Windows run under wine with the bits of this machine; a library for macOS is linked and inspected."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import processor
from featherlane.engine.lanes.kernel import symbol
from featherlane.engine.lanes.runtime import LAYOUT_SYMBOL
from featherlane.engine.simulation.tile.library import library

HERE = Path(__file__).parent
link = importlib.import_module("featherlane.engine.lanes.link")
WINDOWS, MACOS = ("windows", "x86_64"), ("macos", "aarch64")
HOST = pytest.mark.skipif(processor.host() != ("linux", "x86_64"), reason="recordings are made on Linux x86-64")
ZIG = pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="needs ziglang: pip install ziglang")
WINE = pytest.mark.skipif(not shutil.which("wine"), reason="needs wine: apt-get install wine")
V4 = pytest.mark.skipif("x86-64-v4" not in processor.levels(), reason="needs AVX-512")
pytestmark = [pytest.mark.slow, HOST, ZIG]
LINKER = {"__mh_dylib_header", "___dso_handle"}  # symbols that some linkers define and export
ARM64, DYLIB, LOAD_DYLIB, SYMTAB, SIGNATURE = 0x0100000C, 6, 0xC, 0x2, 0x1D  # mach-o/loader.h, mach/machine.h


@pytest.fixture(scope="module")
def recorded():
    """The module recorded_stages.py, which imports its neighbour."""
    sys.path.insert(0, str(HERE))
    yield importlib.import_module("recorded_stages")
    sys.path.remove(str(HERE))


@pytest.fixture(scope="module")
def recordings(recorded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    recorded.record(folder)
    return folder


def linked(recorded, calls, level: str, place, out: Path) -> Path:
    """Compiles stages, and those that they call, for a CPU level of another system, and links them."""
    objects = recorded.objects(calls, processor.target_name(level, *place))
    paths = [out.with_name(f"{level}-{name}.o") for name in objects]
    for path, code in zip(paths, objects.values(), strict=True):
        path.write_bytes(code)
    link.link(map(str, paths), str(out), {LAYOUT_SYMBOL: library().layout_hash()}, place)
    return out


@WINE
@pytest.mark.parametrize(
    "name, level",
    [
        ("steps", "x86-64-v3"),
        ("stages", "x86-64"),
        ("stages", "x86-64-v3"),
        pytest.param("stages", "x86-64-v4", marks=V4),
    ],
)
def test_kernels_for_windows_give_the_same_bits(recorded, recordings, tmp_path, name, level):
    dll = linked(recorded, recorded.wanted()[name], level, WINDOWS, tmp_path / f"{level}.dll")
    assert not list(tmp_path.glob("*.lib"))  # import libraries
    program = tmp_path / "replay.exe"
    subprocess.run([*link.linker(WINDOWS), "-O1", "-o", program, HERE / "replay.c"], check=True, timeout=600)
    quiet = {**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
    command = ["wine", str(program), str(dll), str(recordings / f"{name}.bin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=quiet)
    number = recorded.STEPS if name == "steps" else len(recorded.wanted()[name])
    assert done.stdout.splitlines()[-1:] == [f"{number} of {number} calls equal"], done.stdout + done.stderr
    assert done.returncode == 0


def test_the_replay_detects_a_different_bit(recorded, tmp_path, rng):
    """The same program on this system: equal for a recorded stage, and not if a bit of its result is another one."""
    stage, (base, width) = call = recorded.wanted()["stages"][0]
    assert stage.name == "kinematics"
    so = linked(recorded, [call], "x86-64", processor.host(), tmp_path / "own.so")
    program, recording = tmp_path / "replay", tmp_path / "recording.bin"
    subprocess.run([*link.compiler(), "-O1", "-o", program, HERE / "replay.c", "-ldl"], check=True, timeout=60)
    records = recorded.records_of_a_tile(fl.bundled("humanoid"), base, width, rng)
    for bit in (0, 1):

        def run(bit=bit):
            library().bind(stage, *records)()
            records[1].arrays["xpos"].reshape(-1).view(np.int64)[-1] ^= bit

        recorded.write(recording, symbol(stage, base, width, False), records, run)
        done = subprocess.run([program, so, recording], capture_output=True, text=True, check=False, timeout=60)
        assert done.stdout.splitlines() == [
            f"{symbol(stage, base, width, False)}: {bit} bytes differ",
            f"{1 - bit} of 1 calls equal",
        ]
        assert done.returncode == bit


def commands(library: bytes) -> dict[int, list[bytes]]:
    """Returns the load commands of a Mach-O file, by kind."""
    found, at = {}, 32
    for _ in range(struct.unpack_from("<I", library, 16)[0]):
        kind, size = struct.unpack_from("<II", library, at)
        found.setdefault(kind & 0x7FFFFFFF, []).append(library[at : at + size])
        at += size
    return found


def test_a_library_for_macos_is_linked(recorded, tmp_path):
    out = linked(recorded, recorded.wanted()["stages"], "apple-m1", MACOS, tmp_path / "apple-m1.so")
    content = out.read_bytes()
    magic, cpu, _, kind = struct.unpack_from("<IIII", content)
    assert (magic, cpu, kind) == (0xFEEDFACF, ARM64, DYLIB)
    found = commands(content)
    needed = [c[struct.unpack_from("<I", c, 8)[0] :].split(b"\0")[0] for c in found[LOAD_DYLIB]]
    assert needed == [b"/usr/lib/libSystem.B.dylib"]
    assert SIGNATURE in found  # macOS loads no unsigned arm64 code
    at, count, text, size = struct.unpack_from("<IIII", found[SYMTAB][0], 8)
    names = content[text : text + size]
    exported, undefined = set(), set()
    for k in range(count):
        name, kind = struct.unpack_from("<IB", content, at + 16 * k)
        if kind & 1:  # external
            (exported if kind & 0xE else undefined).add(names[name : names.index(b"\0", name)].decode())
    wanted = recorded.objects(recorded.wanted()["stages"], processor.target_name("apple-m1", *MACOS))
    assert exported - LINKER == {f"_{name}" for name in (*wanted, LAYOUT_SYMBOL)}
    assert undefined <= {"_memset", "_memcpy", "_memmove", "_bzero", "dyld_stub_binder"}
