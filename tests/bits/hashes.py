"""Bits of short motions: the hash of the results, and the file that stores the hashes.

A scene is recomputed in each precision, and its results are compared with `data/bits.json`, which `record.py`
writes: a change of the engine that changes a last bit is detected.  Each scene also has a hash of its inputs, the
model and the worlds' initial states: they come from MuJoCo's compiler and from NumPy, and show whether the steps or
their inputs changed.  Initial states are sampled and scaled by + - * / and square roots only, which every library
rounds alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from featherlane.engine.model.fields import MODEL

FILE = Path(__file__).parents[1] / "data" / "bits.json"
DTYPES = ("float64", "float32")
DIGITS = 16  # of a hash: 64 bits
Arrays = Mapping[str, np.ndarray]
ADVICE = """
A change of the engine moved a last bit of scenes whose inputs stand. If it was meant to, list it in CHANGELOG.md under
"Trajectories" and record the scenes again: python tests/bits record"""


@dataclass(frozen=True)
class Outcome:
    """Holds a scene's inputs and results, arrays by name."""

    inputs: Arrays
    outputs: Arrays


@dataclass(frozen=True)
class Scene:
    """Describes a computation, in each precision.

    Attributes:
        compute: function of the precision.
        dtypes: the precisions that are supported.
        slow: runs only with `pytest -m slow`.
    """

    compute: Callable[[str], Outcome]
    dtypes: tuple[str, ...] = DTYPES
    slow: bool = False


RECORDED_AS = {"nreset": "nbad"}  # fields that were renamed after their hashes were recorded


def digest(arrays: Arrays) -> str:
    """Returns a hash of arrays: of names, kinds, shapes and bits; -0.0 differs from 0.0, but all NaNs are equal."""
    found = hashlib.sha256()
    arrays = {RECORDED_AS.get(name, name): array for name, array in arrays.items()}
    for name in sorted(arrays):
        values = np.array(arrays[name], order="C")
        if values.dtype.kind == "f":
            values[np.isnan(values)] = np.nan
        found.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        found.update(values.tobytes())
    return found.hexdigest()[:DIGITS]


def model_inputs(model) -> dict[str, np.ndarray]:
    """Returns all values of a model, by the names of its fields."""
    return {field.name: model.rows[field.name] for field in MODEL.fields if field.kind != "size"}


def hashes(scene: Scene) -> dict[str, str]:
    """Returns the scene's hashes: of its inputs, and of its results in each precision."""
    outcomes = {dtype: scene.compute(dtype) for dtype in scene.dtypes}
    inputs = digest(outcomes[scene.dtypes[0]].inputs)
    return {"inputs": inputs} | {dtype: digest(outcome.outputs) for dtype, outcome in outcomes.items()}


def recorded() -> dict:
    """Returns the file: `mujoco`, the version that it was recorded with, and `scenes`, hashes by name."""
    return json.loads(FILE.read_text()) if FILE.exists() else {"mujoco": mujoco.__version__, "scenes": {}}


def write(scenes: Mapping[str, Mapping[str, str]]) -> None:
    """Rewrites the file, one line per scene, sorted by name."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(scenes[name])}" for name in sorted(scenes))
    FILE.write_text(f'{{"mujoco": "{mujoco.__version__}", "scenes": {{\n{lines}\n}}}}\n')
