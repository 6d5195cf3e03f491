"""What a machine has, and what it runs: asked of each node, and compared with what asks.

The cores that a process may use stand by NUMA node, as Linux lists them; elsewhere, and where nothing is told, all are
of one.
"""

from __future__ import annotations

import hashlib
import os
import platform
import socket
from pathlib import Path
from typing import NamedTuple

from featherlane.configuration import package_version
from featherlane.model.reader import mujoco_module
from featherlane.simulation.tile.library import library, stages

NUMA = Path("/sys/devices/system/node")
BOOT = Path("/proc/sys/kernel/random/boot_id")


class Machine(NamedTuple):
    """A machine as a process on it sees it.

    Attributes:
        name: its host's name.
        boot: the same for all processes of one running machine.
        cores: numbers of the cores that the process may use, those of each NUMA node together.
        memory: bytes that are free.
        versions: what has to be the same on all nodes, by name.
    """

    name: str
    boot: str
    cores: tuple[tuple[int, ...], ...]
    memory: int
    versions: dict[str, str]


def this_machine() -> Machine:
    """The machine that this process runs on."""
    name = socket.gethostname()
    boot = BOOT.read_text().strip() if BOOT.exists() else name
    return Machine(name, boot, numa_cores(), free_memory(), versions())


def versions() -> dict[str, str]:
    """What a world's bits, and models on their way, depend on, by name."""
    return {
        "featherlane": package_version("featherlane"),
        "the layout of records": library().layout_hash(),
        "kernels": kernels_hash(),
        "python": platform.python_version(),
        "numpy": package_version("numpy"),
        "mujoco": str(mujoco_module().__version__),
    }


def kernels_hash() -> str:
    """Short hash of the engine's kernels, as they are written."""
    found = stages()
    return hashlib.sha256("".join(found[name].code_hash() for name in sorted(found)).encode()).hexdigest()[:16]


def numa_cores(allowed: set[int] | None = None, root: Path = NUMA) -> tuple[tuple[int, ...], ...]:
    """Cores by NUMA node, nodes without any left out.

    Args:
        allowed: numbers of cores; None for those that this process may use.
        root: where Linux lists nodes.
    """
    if allowed is None:
        has = hasattr(os, "sched_getaffinity")
        allowed = os.sched_getaffinity(0) if has else set(range(os.cpu_count() or 1))
    places = sorted(root.glob("node[0-9]*/cpulist"), key=lambda path: int(path.parent.name.removeprefix("node")))
    groups = [sorted(core_numbers(path.read_text()) & allowed) for path in places]
    rest = sorted(allowed.difference(*groups))
    return tuple(tuple(group) for group in (*groups, rest) if group)


def core_numbers(text: str) -> set[int]:
    """Numbers as Linux lists them, `0-3,8`."""
    ends = [part.split("-") for part in text.strip().split(",") if part]
    return {n for end in ends for n in range(int(end[0]), int(end[-1]) + 1)}


def free_memory() -> int:
    """Bytes of memory that programs can still have without swapping, where the system tells; else as much as there is.

    Source: Linux, Documentation/filesystems/proc.rst, MemAvailable; and the memory controller of control groups.
    """
    free = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    told = Path("/proc/meminfo")
    if told.exists():
        lines = dict(line.split(":", 1) for line in told.read_text().splitlines() if ":" in line)
        free = int(lines["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in lines else free
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (group / "memory.max").read_text(), (group / "memory.current").read_text()
        return min(free, int(limit) - int(used))
    except (OSError, ValueError):  # no such controller, or no limit (`max`)
        return free
