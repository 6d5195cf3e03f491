"""Parses the fields of sweep parameters: `body_mass[torso]`, `geom_friction[:, 0]`, `opt.timestep`, `qpos[root, 2]`.

A path is a field, optionally with entries in brackets: a name or a number for the first axis, and numbers, ranges `1:3`
or `:` for the others.  Several paths joined by ` + ` take the same value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane import Model
from featherlane.distributed.fields import STATE
from featherlane.errors import ModelError, near
from featherlane.extension import DATA, MODEL, is_mixed, selection, split_path, world_shape
from featherlane.lanes import Field
from featherlane.results import Option

# fields without derived fields: a change of these leaves the constants of a model unchanged
INDEPENDENT = re.compile(
    r"opt_\w+|\w*_sol(ref|imp)\w*|\w+_(friction|margin|gap|damping|stiffness|frictionloss|range|forcerange|ctrlrange|actrange)"
    r"|actuator_(gain|bias|dyn)prm|sensor_\w+|geom_(erp|slip|restitution\w*)|site_size"
)
OPTIONS = tuple(name for name in dir(Option) if not name.startswith("_") and name != "choices")


@dataclass(frozen=True)
class Part:
    """Entries of one field.

    Attributes:
        owner: "model" for a real per-world field; "state" for the initial state; "variant" for an option or an integer
            field of the model, which worlds of one batch share.
        index: index of the entries, without the axis of worlds.
        shape: shape of the entries.
        whole: whether the last axis is taken as a whole and its entries have different meanings.
    """

    field: str
    owner: str
    index: tuple[Any, ...]
    shape: tuple[int, ...]
    whole: bool = False


@dataclass(frozen=True)
class Target:
    """The target of one parameter.

    Attributes:
        parts: entries of one or several fields.
    """

    path: str
    parts: tuple[Part, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape of a value with a number per entry."""
        return self.parts[0].shape


def parse_target(model: Model, path: str) -> Target:
    """Parses a path.

    Raises:
        ModelError: the field does not exist or cannot be swept, or the entries do not exist.
    """
    if not isinstance(path, str) or not path.strip():
        raise ModelError(
            f"parameters: got the name {path!r}, allowed are fields such as 'body_mass[torso]' or 'opt.timestep'"
        )
    parts = tuple(_part(model, path, text) for text in re.split(r"\s\+\s", path))
    if len({part.owner == "variant" for part in parts}) > 1:
        raise ModelError(
            f"parameter {path!r}: got an option or integer field together with a per-world field, allowed is one kind"
        )
    return Target(path, parts)


def _part(model: Model, path: str, text: str) -> Part:
    parts = split_path(text)
    if parts is None:
        raise ModelError(f"parameter {path!r}: got {text!r}, allowed is FIELD, FIELD[NAME] or FIELD[NAME, NUMBER]")
    name, entries = parts[0].replace("opt.", "opt_"), parts[1]
    owner, field = _owner(model, path, name)
    if owner == "variant" and field is None:
        return Part(name, owner, (), ())
    assert field is not None
    dims = world_shape(model, name) if owner == "state" else field.dims(model.size_values())
    index = () if entries is None else selection(model, f"parameter {path!r}", field, dims, entries)
    shape = np.zeros(dims)[index].shape if 0 not in dims or index else dims
    if 0 in shape:
        raise ModelError(f"parameter {path!r}: selects no entry, {name} has shape {dims}")
    if dims == (1,) and not index:
        shape = ()  # options are scalars
    full = is_mixed(name) and len(dims) > 0 and bool(shape) and len(index) < len(dims)
    return Part(name, owner, index, shape, full)


def _owner(model: Model, path: str, name: str) -> tuple[str, Field | None]:
    """Returns the owner of a field: the worlds of a batch, their state, or a variant of the model."""
    if name in MODEL and MODEL[name].kind == "real":
        return "model", MODEL[name]
    if name in STATE and DATA[name].traits.shown:
        return "state", DATA[name]
    if name.startswith("opt_") and name.removeprefix("opt_") in OPTIONS:
        return "variant", None
    if name in MODEL and name != "hfield_data" and model.is_editable(name):
        return "variant", MODEL[name]
    if name in MODEL:
        raise ModelError(
            f"parameter {path!r}: {name} is fixed when the model is loaded; fl.variants compiles a model for each value"
        )
    known = [f.name for f in MODEL.fields if model.is_editable(f.name)] + list(STATE)
    known += [f"opt.{option}" for option in OPTIONS]
    shown = name.replace("opt_", "opt.") if name.startswith("opt_") else name
    raise ModelError(f"parameter {path!r}: unknown field {shown!r} of the model or the state{near(shown, known)}")
