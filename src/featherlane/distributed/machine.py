"""Describes machines and their software versions, to compare the nodes of a cluster.

The usable cores of a process are grouped by NUMA node, as Linux lists them; on other systems, or without this list,
all cores form one group.
"""

from __future__ import annotations

import os
import platform
import socket
from pathlib import Path
from typing import NamedTuple

import numpy as np

import featherlane
from featherlane.extension import configuration, kernels_hash, mujoco_module

NUMA = Path("/sys/devices/system/node")
BOOT = Path("/proc/sys/kernel/random/boot_id")


class Machine(NamedTuple):
    """A machine, as described by a process on it.

    Attributes:
        name: host name.
        boot: identifier that is equal for all processes of one running machine.
        cores: numbers of the cores that the process may use, grouped by NUMA node.
        versions: versions by name that must be equal on all nodes.
    """

    name: str
    boot: str
    cores: tuple[tuple[int, ...], ...]
    versions: dict[str, str]


def this_machine() -> Machine:
    """Describes the machine of this process."""
    name = socket.gethostname()
    boot = BOOT.read_text().strip() if BOOT.exists() else name
    return Machine(name, boot, numa_cores(), versions())


def versions() -> dict[str, str]:
    """Returns the versions by name that models in transit and bitwise results depend on."""
    return {
        "featherlane": featherlane.__version__,
        "record layout": configuration()["layout"],
        "kernels": kernels_hash(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mujoco": str(mujoco_module().__version__),
    }


def numa_cores(allowed: set[int] | None = None, root: Path = NUMA) -> tuple[tuple[int, ...], ...]:
    """Returns cores by NUMA node, without nodes that have none.

    Args:
        allowed: numbers of cores; None for those that this process may use.
        root: folder where Linux lists NUMA nodes.
    """
    if allowed is None:
        has = hasattr(os, "sched_getaffinity")
        allowed = os.sched_getaffinity(0) if has else set(range(os.cpu_count() or 1))
    places = sorted(root.glob("node[0-9]*/cpulist"), key=lambda path: int(path.parent.name.removeprefix("node")))
    groups = [sorted(core_numbers(path.read_text()) & allowed) for path in places]
    rest = sorted(allowed.difference(*groups))
    return tuple(tuple(group) for group in (*groups, rest) if group)


def core_numbers(text: str) -> set[int]:
    """Parses core numbers in Linux's format, `0-3,8`."""
    ends = [part.split("-") for part in text.strip().split(",") if part]
    return {n for end in ends for n in range(int(end[0]), int(end[-1]) + 1)}
