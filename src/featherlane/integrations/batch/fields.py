"""Names of the fields that `mujoco_batch.Batch` binds and expands, their arrays, and the errors for other names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from featherlane.extension import DATA, MODEL

INTEGRATION, USER = int(mujoco.mjtState.mjSTATE_INTEGRATION), int(mujoco.mjtState.mjSTATE_USER)
# fields of MjData that are parts of a state, in the order of a state vector
BITS = sorted((int(bit), name.removeprefix("mjSTATE_")) for name, bit in mujoco.mjtState.__members__.items())
STATE = {
    "qacc_warmstart" if name == "WARMSTART" else name.lower(): bit
    for bit, name in BITS
    if bit & INTEGRATION and bit & (bit - 1) == 0
}
UNKEPT = ("plugin",)  # parts that Featherlane refuses
# outputs whose values are integers in MjData
WHOLE = {"ncon": (), "nefc": (), "solver_niter": (mujoco.mjNISLAND,), "tree_asleep": None, "tree_awake": None}
# fields of both libraries with another meaning or size
DIFFERENT = {"qDeriv", "qLU", "body_awake", "dof_island", "nisland", "signature", "tree_island", "warning"}
# fields of an MjModel that all simulations share
ASSETS = ("bvh_child", "bvh_depth", "bvh_nodeid", "_sizes", "names", "paths", "plugin", "text_data")
ASSETS += ("hfield_", "mesh_", "oct_", "skin_", "tex_")


def fields() -> tuple[frozenset[str], frozenset[str]]:
    """Returns the names that `bind` and `expand` accept."""
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    data = mujoco.MjData(model)
    bound = {name for name in dir(data) if name in DATA.that("shown") or name in STATE} - DIFFERENT - {*UNKEPT}
    arrays = {name for name in dir(model) if isinstance(getattr(model, name, None), np.ndarray)}
    expanded = {name for name in arrays if not name.startswith(ASSETS)}
    options = {f"opt.{name}" for name in dir(model.opt) if not name.startswith("_")}
    return frozenset(bound), frozenset(expanded | {name for name in options if not callable(option(model, name))})


def option(model: Any, name: str) -> Any:
    """Returns the value of a field `opt.name` of an MjModel."""
    return getattr(model.opt, name.removeprefix("opt."), None)


DATA_FIELDS, MODEL_FIELDS = fields()


def native_name(name: str) -> str:
    """Returns Featherlane's name of a field of an MjModel."""
    return name.replace("opt.", "opt_")


def is_real(name: str) -> bool:
    """Returns whether Featherlane's worlds can have separate values of a field of an MjModel."""
    return native_name(name) in MODEL and MODEL[native_name(name)].kind == "real"


def is_physics(name: str) -> bool:
    """Returns whether a field that is not real determines how Featherlane steps a model."""
    return native_name(name) in MODEL or name.startswith(("mesh_", "hfield_", "exclude_"))


def values(model: Any, name: str) -> np.ndarray:
    """Returns the array of a field of an MjModel; options as arrays of one value, integers as int32."""
    if not name.startswith("opt."):
        return getattr(model, name)
    value = np.asarray(option(model, name))
    return value if value.dtype.kind == "f" else value.astype(np.int32)


def set_values(model: Any, name: str, value: np.ndarray) -> None:
    """Sets a field of an MjModel."""
    if not name.startswith("opt."):
        getattr(model, name)[: len(value)] = value
    elif isinstance(option(model, name), np.ndarray):
        option(model, name)[:] = value
    else:
        setattr(model.opt, name.removeprefix("opt."), value.item())


def template(data: Any, name: str) -> np.ndarray | None:
    """Returns a field of an MjData as an array, an int as int32; None if it is neither."""
    value = getattr(data, name, None)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return np.zeros((), np.int32)
    return value if isinstance(value, np.ndarray) else np.zeros(()) if name == "time" else None


# ---- errors ----------------------------------------------------------------------------------------------------------
def near(name: str, names: Iterable[str]) -> str:
    """Returns a hint with similar names."""
    close = difflib.get_close_matches(name, [*names], n=3)
    return f" (did you mean {', '.join(map(repr, close))}?)" if close else ""


def place(name: str, names: Iterable[str]) -> str:
    """Returns a hint to the call that accepts a name, or to similar names."""
    if name in MODEL_FIELDS:
        return f"; {name} is a field of MjModel: use expand({name!r})"
    if f"opt.{name}" in MODEL_FIELDS:
        return f"; {name} is an option: use expand('opt.{name}')"
    return near(name, names)


def unbindable(data: Any, name: str) -> ValueError:
    """Returns the error for a name that `bind` does not accept; `data` is an MjData."""
    value = getattr(data, name, None) if isinstance(name, str) and not name.startswith("_") else None
    if isinstance(value, int | np.integer):
        counts = sorted(n for n in DATA_FIELDS if isinstance(getattr(data, n), int))
        return ValueError(f"{name} is not one of the MjData scalars bind() accepts: {', '.join(counts)}")
    if isinstance(value, np.ndarray) and name.startswith(("efc_", "island_", "map_", "tree_island", "dof_island")):
        return ValueError(f"{name} is in the arena of MjData, whose size changes between steps; it cannot be bound")
    if isinstance(value, np.ndarray):
        return ValueError(f"{name}: Featherlane does not compute this field of MjData")
    return ValueError(f"{name} is not an array of MjData{place(str(name), DATA_FIELDS)}")


def unexpandable(model: Any, name: str) -> ValueError:
    """Returns the error for a name that `expand` does not accept; `model` is an MjModel."""
    if name in DATA_FIELDS:
        return ValueError(f"{name} is a field of MjData: use bind({name!r})")
    if isinstance(name, str) and isinstance(getattr(model, name, None), np.ndarray):
        return ValueError(f"{name} is asset data, which all simulations share; it cannot be expanded")
    return ValueError(f"{name} is not an expandable field of MjModel{place(str(name), MODEL_FIELDS)}")


def computed(name: str) -> ValueError:
    """Returns the error for a write to an output."""
    return ValueError(f"{name} is computed by every call and cannot be written; write state or expanded model fields")
