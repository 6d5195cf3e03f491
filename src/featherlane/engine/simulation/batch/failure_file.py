"""Saves and loads failures: states, inputs and the model with its meshes, in one .npz without pickles.

A file is untrusted: its arrays are checked as arguments are.  It does not contain the integer tables by which kernels
index memory.  `load` rebuilds them from MuJoCo's model and reads only options and editable fields.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.engine.model.arguments import one_of, whole_argument
from featherlane.engine.model.array_file import read_arrays, whole_file
from featherlane.engine.model.fields import MODEL, is_editable
from featherlane.engine.model.limits import check_field
from featherlane.engine.model.link import HAS_ANCHOR, HAS_AXIS, KINDS, Link
from featherlane.engine.model.load import from_mujoco
from featherlane.engine.model.model import LAYOUT, Model
from featherlane.engine.model.mujoco_arrays import binary
from featherlane.engine.model.option import set_integers
from featherlane.engine.model.reader import heard, mujoco_module
from featherlane.engine.simulation.batch.arrays import LASTING
from featherlane.engine.simulation.tile.fields import DATA, STATUS
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.user.control import NUMBERS
from featherlane.engine.simulation.world.user_contacts import contact_capacity
from featherlane.errors import ModelError

FORMAT = 2
REFUSAL = "not a file of a failure"
OPTIONS = tuple(f.name for f in MODEL.fields if f.kind == "size" and f.name.startswith("opt_"))
EDITABLE = tuple(f.name for f in MODEL.fields if f.kind != "real" and is_editable(f))
AXIS = (0.0, 0.0, 1.0)  # axis of a link until its real fields are read


def read_failure(path: str | Path) -> dict[str, Any]:
    """Returns the constructor arguments of a failure in a file, and its `_edits` and `_needed`; see `load_failure`."""
    path = _path(path)
    held = read_arrays(path, str(path), REFUSAL)
    try:
        if int(held["format"]) != FORMAT or str(held["layout"]) != LAYOUT:
            raise ModelError(f"{path}: written by another version of Featherlane, whose models have other fields")
        return _parts(held, path)
    except ModelError:
        raise
    except Exception as error:  # untrusted bytes can raise any error of a parser
        raise ModelError(f"{path}: {REFUSAL} ({type(error).__name__}: {error})") from None


def save(failure, path: str | Path) -> None:
    """Writes a failure; see `Failure.save`.

    Raises:
        ModelError: the path does not end in .npz, or cannot be written; the model has variants.
    """
    path = _path(path)
    if path.suffix != ".npz":
        raise ModelError(f"{path}: got {path.suffix or 'no suffix'}, allowed is .npz")
    if failure._common.nvariant:  # the file has MuJoCo's model, which lacks the hulls of other variants
        raise ModelError(f"{path}: the model has variants, allowed are models without; pickle the failure")
    held: dict[str, Any] = _arrays(failure)
    try:
        with whole_file(path) as part:
            np.savez_compressed(part, **held)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from None


def _path(given) -> Path:
    """Returns a path, checked."""
    if not isinstance(given, str | os.PathLike) or not str(given) or "\0" in str(given):
        raise ModelError(f"path: got {given!r}, allowed is the path of a .npz file")
    return Path(given)


def _arrays(failure) -> dict[str, np.ndarray]:
    """Returns all arrays of a failure, by their names in a file."""
    mujoco = mujoco_module()
    model = failure._common
    out = {
        "format": FORMAT,
        "layout": LAYOUT,
        "mujoco": mujoco.__version__,
        "world": failure.world,
        "step": failure.step,
        "causes": failure.causes,
        "given_contacts": failure._given_contacts,
        "control": failure._control_name(),
        "mjb": binary(model.mj_model),
        "source": model.source,
        "options": [model.size_values()[name] for name in OPTIONS],
        "real_buffer": model.real_buffer,
        "link_names": np.array(model.link_names, "U"),
        "link_type": model.link_type,
        "link_body": model.link_body,
    }
    out |= {f"model.{name}": model.__dict__[name] for name in EDITABLE}
    out |= {f"state.{name}": rows for name, rows in failure.states.items()}
    out |= {f"scratch.{name}": n for name, n in failure._scratch.items()}
    out |= {f"own.{name}": rows for name, rows in failure._own.items()}
    for k, names in enumerate(failure._edited()):
        if k and names:
            out[f"edits.{k}"] = names
    return {name: np.asarray(value) for name, value in out.items()}


def _parts(held: dict[str, np.ndarray], path: Path) -> dict[str, Any]:
    """Returns the constructor arguments of a failure from the arrays of a file, checked."""
    states, own = (
        {key.removeprefix(head): a for key, a in held.items() if key.startswith(head)} for head in ("state.", "own.")
    )
    model, given = _model(held, path), contact_capacity(int(held["given_contacts"]))
    Workspace(model, 1, np.float64, given=given)  # a replay creates one: its errors are raised here already
    _check_states(model, states, given)
    for name, values in own.items():
        if name not in MODEL or MODEL[name].kind != "real":
            raise ModelError(f"own.{name}: unknown field, allowed are real fields of a model")
        dtype = MODEL[name].stored_as(states["qpos"].dtype)
        _check_rows(f"own.{name}", values, dtype, model.__dict__[name].shape)
        check_field(model, name, values)
    edits = [held[f"edits.{k}"].tolist() if f"edits.{k}" in held else [] for k in range(1, len(states["time"]))]
    causes = tuple(held["causes"].tolist())
    if not causes or not {*causes} <= {*STATUS}:
        raise ModelError(f"{path}: causes: got {causes}, allowed are {', '.join(STATUS)}")
    return {
        "world": whole_argument("world", int(held["world"]), 0),
        "step": whole_argument("step", int(held["step"]), 0),
        "causes": causes,
        "states": states,
        "model": model,
        "own": own,
        "given_contacts": given,
        "scratch": {k.removeprefix("scratch."): int(n) for k, n in held.items() if k.startswith("scratch.")},
        "_edits": [list(states), *edits],
        "_needed": str(held["control"]),
    }


def _check_states(model: Model, states: dict[str, np.ndarray], given: int) -> None:
    """Raises an error for states that are not (nstep, ...) rows of persistent fields, all of one precision."""
    sizes, (nstep, _), dtype = Workspace.sizes_of(model, given), states["time"].shape, states["qpos"].dtype
    if not nstep or dtype not in (np.float64, np.float32):
        raise ModelError(
            f"state.qpos: got {dtype} with {nstep} steps, allowed are float64 and float32 with at least one step"
        )
    for name, rows in states.items():
        if name.startswith(NUMBERS):
            _check_rows(f"state.{name}", rows, dtype, (nstep, *rows.shape[1:2]))
            continue
        one_of("state", name, LASTING)
        _check_rows(f"state.{name}", rows, DATA[name].stored_as(dtype), (nstep, *DATA[name].dims(sizes)))


def _check_rows(name: str, rows: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    if rows.dtype != dtype or rows.shape != shape:
        raise ModelError(f"{name}: got {rows.dtype} {rows.shape}, allowed is {dtype} {shape}")


def _model(held: dict[str, np.ndarray], path: Path) -> Model:
    """Returns the model of a file with rebuilt tables, without user callbacks."""
    mujoco = mujoco_module()
    try:
        with heard():
            mj_model = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": held["mjb"].tobytes()})
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(
            f"{path}: MuJoCo {mujoco.__version__} cannot read its model, written by {held['mujoco']}: {error}"
        ) from None
    with heard():
        model = from_mujoco(mj_model, str(held["source"]), _links(held))
    _check_rows("real_buffer", held["real_buffer"], model.real_buffer.dtype, model.real_buffer.shape)
    model.__setstate__(model.__getstate__() | {"real_buffer": held["real_buffer"]})
    set_integers(model, dict(zip(OPTIONS, held["options"].tolist(), strict=True)))
    for name in EDITABLE:
        setattr(model, name, held[f"model.{name}"])
    model.check_edits()
    return model


def _links(held: dict[str, np.ndarray]) -> list[Link]:
    """Returns links between the bodies of a file's model; their real fields are in `real_buffer`."""
    rows = zip(held["link_type"].tolist(), held["link_body"].tolist(), held["link_names"].tolist(), strict=True)
    return [
        Link(
            KINDS[kind],
            *bodies,
            name=name,
            anchor=AXIS if kind in HAS_ANCHOR else None,
            axis=AXIS if kind in HAS_AXIS else None,
        )
        for kind, bodies, name in rows
    ]
