"""Collects all stages of the engine and their records, for ahead-of-time compilation."""

from __future__ import annotations

import functools
import hashlib
import importlib
import pkgutil

from featherlane.engine.lanes import Library, Stage
from featherlane.engine.model.fields import MODEL
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.rows import ROWS
from featherlane.errors import ArgumentError

RECORDS = {"m": (MODEL, True), "d": (DATA, False), "b": (ROWS, True), "m1": (MODEL, True), "d1": (DATA, False)}


ENGINE = "dynamics collision constraint solver sensor simulation".split()
PACKAGES = (*(f"engine.{name}" for name in ENGINE), "tools")


def stages() -> dict[str, Stage]:
    """Returns every stage defined in the packages that contain physics, by name."""
    found: dict[str, Stage] = {}
    for package in PACKAGES:
        path = importlib.import_module(f"featherlane.{package}").__path__
        for info in pkgutil.walk_packages(path, f"featherlane.{package}."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Stage) and found.setdefault(value.name, value) is not value:
                    raise ArgumentError(f"two stages have the name {value.name!r}")
    return found


@functools.cache
def library() -> Library:
    """Returns the engine's library of compiled stages."""
    return Library(RECORDS)


def kernels_hash() -> str:
    """Returns a short hash of the source of all kernels: two installations with one hash have the same results."""
    found = stages()
    return hashlib.sha256("".join(found[name].code_hash() for name in sorted(found)).encode()).hexdigest()[:16]
