"""Describes the machine of a measurement."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np

from featherlane.extension import configuration, cores, mujoco_module


def machine() -> dict[str, Any]:
    """Returns the processor, cores, load, versions and kernels of this process."""
    found = configuration()
    return {
        "processor": processor_name(),
        "cores": cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "cpu_level": found["cpu"],
        "widths": found["widths"],
        "kernels": found["kernels"],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mujoco": mujoco_module().__version__,
    }


def processor_name() -> str:
    """Returns the processor's name from the system."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return platform.processor() or platform.machine()
