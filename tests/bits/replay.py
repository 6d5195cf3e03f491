"""Computes the recorded scenes on another system or processor, from models that were compiled on this one.

`python tests/bits replay save FOLDER [scene ...]` writes the models of scenes as MuJoCo binary files, and the hash of
each scene's inputs.
`python tests/bits replay compare FOLDER [scene ...]` computes the scenes with these models and prints a line for each.
It compares the inputs with those saved, and the results with data/bits.json.  MuJoCo also compiles each model on the
present machine.  The fields that differ are listed and not used: rounding in its compiler depends on the C library.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import importlib
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import mujoco
import numpy as np

from bits import hashes
from bits.scenes import SCENES

load = importlib.import_module("featherlane.engine.model.load")  # the package has a function of this name


@contextlib.contextmanager
def changed_compiler(change: Callable) -> Iterator[None]:
    """Replaces each compiled model by `change(model, k)`; k counts the models of the scene."""
    compiled, count = load._compile, iter(range(10**6))

    def compile_and_change(*arguments):
        model, *rest = compiled(*arguments)
        return change(model, next(count)), *rest

    with mock.patch.object(load, "_compile", compile_and_change):
        yield


def file_of(folder: Path, scene: str, k: int) -> Path:
    """Returns the file of a scene's k-th model."""
    return folder / f"{hashlib.sha256(scene.encode()).hexdigest()[:16]}-{k}.mjb"


def inputs_of(folder: Path, scene: str) -> Path:
    """Returns the file of the hash of a scene's inputs."""
    return file_of(folder, scene, 0).with_suffix(".inputs")


def save(folder: Path, scene: str) -> None:
    """Writes the models of a scene, and computes it."""

    def write(model, k):
        mujoco.mj_saveModel(model, str(file_of(folder, scene, k)))
        return model

    with changed_compiler(write):
        found = hashes.hashes(SCENES[scene])
    inputs_of(folder, scene).write_text(found["inputs"])
    report(scene, found, found["inputs"])


def compare(folder: Path, scene: str) -> tuple[bool, list[str]]:
    """Computes a scene with the models in the folder; returns (equal?, fields that MuJoCo compiled differently)."""
    fields: list[str] = []

    def replace(model, k):
        kept = mujoco.MjModel.from_binary_path(str(file_of(folder, scene, k)))
        fields.extend(differing_fields(model, kept))
        return kept

    with changed_compiler(replace):
        found = hashes.hashes(SCENES[scene])
    return report(scene, found, inputs_of(folder, scene).read_text()), fields


def differing_fields(a: mujoco.MjModel, b: mujoco.MjModel) -> list[str]:
    """Returns the names of the arrays that differ in their bits."""
    names = [name for name in dir(a) if isinstance(getattr(a, name), np.ndarray)]
    return [name for name in names if getattr(a, name).tobytes() != getattr(b, name).tobytes()]


def report(scene: str, found: dict[str, str], inputs: str) -> bool:
    """Prints which hashes of a scene differ from the recorded results and the inputs; returns if all are equal."""
    expected = hashes.recorded()["scenes"][scene] | {"inputs": inputs}
    moved = [part for part in found if found[part] != expected[part]]
    print(f"{'DIFFERS in ' + ', '.join(moved) if moved else 'equal'}: {scene}", flush=True)
    return not moved


def main(arguments: list[str]) -> int:
    """Saves or compares; returns 1 if bits differ."""
    if len(arguments) < 2 or arguments[0] not in ("save", "compare"):
        sys.exit("python tests/bits replay save FOLDER [scene ...], or compare")
    action, folder, names = arguments[0], Path(arguments[1]), arguments[2:] or list(SCENES)
    folder.mkdir(parents=True, exist_ok=True)
    if action == "save":
        for name in names:
            save(folder, name)
        return 0
    begin, equal, compiled = time.monotonic(), 0, collections.Counter()
    for name in names:
        same, fields = compare(folder, name)
        equal += same
        compiled.update(fields)
    print(f"MuJoCo's compiler differs in: {', '.join(f'{f} ({n} models)' for f, n in compiled.items()) or 'nothing'}")
    seconds = time.monotonic() - begin
    print(f"{platform.machine()}: bits of {equal} of {len(names)} scenes equal, {seconds:.0f} s")
    return int(equal < len(names))
