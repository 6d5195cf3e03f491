"""Failures in files: states, inputs and the model with its meshes, in one .npz without pickles."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.model import BUFFERS, LAYOUT, Model
from featherlane.model.reader import heard, mujoco_module

FORMAT = 1


def read(path: str | Path) -> dict[str, Any]:
    """What a failure in a file is made of, and `_edits` and `_needed` of it; see `load_failure`."""
    path = _path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            held = dict(file)
        if int(held["format"]) != FORMAT or str(held["layout"]) != LAYOUT:
            raise ModelError(f"{path}: was written by another release, whose models have other fields")
        return _parts(held, path)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except ModelError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ModelError(f"{path}: is no file of a failure ({type(error).__name__}: {error})") from None


def save(failure, path: str | Path) -> None:
    """Write a failure; see `Failure.save`.

    Raises:
        ModelError: the path does not end in .npz, or cannot be written.
    """
    path = _path(path)
    if path.suffix != ".npz":
        raise ModelError(f"{path}: got {path.suffix or 'no suffix'}, allowed is .npz")
    held: dict[str, Any] = _arrays(failure)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            np.savez_compressed(file, **held)
        os.replace(part, path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def _path(given) -> Path:
    """A path, checked."""
    if not isinstance(given, str | os.PathLike) or not str(given) or "\0" in str(given):
        raise ModelError(f"path: got {given!r}, allowed is the path of a .npz file")
    return Path(given)


def _arrays(failure) -> dict[str, np.ndarray]:
    """All of a failure, by the names that it has in a file."""
    mujoco = mujoco_module()
    model = failure._common
    mjb = np.zeros((mujoco.mj_sizeModel(model.mj_model), 1), np.uint8)
    mujoco.mj_saveModel(model.mj_model, None, mjb)
    out = {
        "format": FORMAT,
        "layout": LAYOUT,
        "mujoco": mujoco.__version__,
        "world": failure.world,
        "step": failure.step,
        "causes": failure.causes,
        "given_contacts": failure._given_contacts,
        "control": failure._control_name(),
        "mjb": mjb[:, 0],
        "source": model.source,
        "link_names": np.array(model.link_names, "U"),
        "size_names": list(model.size_values()),
        "sizes": list(model.size_values().values()),
        "user_functions": bool(model.user_actuators or model.user_sensors),
    }
    out |= {name: getattr(model, name) for name in (f"{kind}_buffer" for kind in BUFFERS)}
    out |= {f"state.{name}": rows for name, rows in failure.states.items()}
    out |= {f"own.{name}": rows for name, rows in failure._own.items()}
    for k, names in enumerate(failure._edited()):
        if k and names:
            out[f"edits.{k}"] = names
    return {name: np.asarray(value) for name, value in out.items()}


def _parts(held: dict[str, np.ndarray], path: Path) -> dict[str, Any]:
    """What the arrays of a file mean."""
    states, own = (
        {key.removeprefix(head): a for key, a in held.items() if key.startswith(head)} for head in ("state.", "own.")
    )
    edits = [held[f"edits.{k}"].tolist() if f"edits.{k}" in held else [] for k in range(1, len(states["time"]))]
    return {
        "world": int(held["world"]),
        "step": int(held["step"]),
        "causes": tuple(held["causes"].tolist()),
        "states": states,
        "model": _model(held, path),
        "own": own,
        "given_contacts": int(held["given_contacts"]),
        "_edits": [list(states), *edits],
        "_needed": str(held["control"]),
    }


def _model(held: dict[str, np.ndarray], path: Path) -> Model:
    """The model of a file, without functions of the user."""
    mujoco = mujoco_module()
    try:
        with heard():
            mj_model = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": held["mjb"].tobytes()})
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(
            f"{path}: its model is of MuJoCo {held['mujoco']}, which {mujoco.__version__} does not read: {error}"
        ) from None
    model = object.__new__(Model)
    model.__setstate__(
        {
            "mj_model": mj_model,
            "source": str(held["source"]),
            "dropped": [],
            "revision": 0,
            "user_sensors": {},
            "user_actuators": {},
            "link_names": held["link_names"].tolist(),
            "_layout": str(held["layout"]),
            "_sizes": dict(zip(held["size_names"].tolist(), held["sizes"].tolist(), strict=True)),
            **{f"{kind}_buffer": held[f"{kind}_buffer"] for kind in BUFFERS},
        }
    )
    return model
