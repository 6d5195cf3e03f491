"""Checks the arguments of a rollout: names of fields, arrays to record into, controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.assignment import as_real_array, broadcast_reals, value_entries
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.user.control import Controller
from featherlane.errors import ModelError, near

Control = ArrayLike | Mapping[str, ArrayLike] | Kernel | Controller | Callable[[Any, int], ArrayLike]  # of a rollout
INPUTS = DATA.of("drive", "input")  # fields that the caller sets before each step
WHOLE = frozenset(f.name for f in DATA.fields if f.dtype == "int64")  # counts, stored as reals
BINDABLE = dict.fromkeys(DATA.that("shown"))  # fields of each world


def world_shape(model: Model, name: str, given_contacts: int = 0) -> tuple[int, ...]:
    """Returns the shape of a field of a world, as stored: a number has the shape (1,).

    Args:
        name: a field of `DATA`.
        given_contacts: as of `featherlane.Batch`.
    """
    return DATA[name].dims(Workspace.sizes_of(model, given_contacts))


def integers(counts: np.ndarray) -> np.ndarray:
    """Returns stored counts as integers, a read-only copy."""
    found = counts.astype(np.int64)
    found.flags.writeable = False
    return found


def check_bindable(model: Model, call: str, name: Any) -> None:
    """Raises an error for a name that no field of a world has, and for unsupported sensors; the error names `call`."""
    if isinstance(name, str) and name == "sensordata":
        from featherlane.engine.model.features import refuse_sensors

        refuse_sensors(model)
    check_field_name(call, name)


def check_field_name(call: str, name: Any) -> None:
    """Raises an error for a value that is not the name of a field of a world."""
    if not isinstance(name, str) or name not in BINDABLE:
        raise ModelError(f"{call}: unknown field {name!r}{near(name, BINDABLE)}")


def field_names(call: str, given) -> list[str]:
    """Returns names of fields from one name or several."""
    names = []
    for name in value_entries(call, given, "are names of fields"):
        if not isinstance(name, str):
            raise ModelError(f"{call}: got {name!r}, allowed are names of fields")
        names.append(name)
    return names


def recordings(
    names: list[str], lead: tuple[int, ...], out, dims: Callable[[str], tuple[int, ...]], dtype: np.dtype
) -> dict[str, np.ndarray]:
    """Returns arrays to record fields into, with these leading axes; checks given ones; `dims` are of a world."""
    spare, result = sorted(set(out or ()) - set(names)), {}
    if spare:
        raise ModelError(f"out: got {spare[0]!r}, which is not recorded{near(spare[0], names)}")
    for name in names:
        field, given = DATA[name], (out or {}).get(name)
        shape, kind = lead if field.is_number else (*lead, *dims(name)), field.stored_as(dtype)
        result[name] = result_array(f"out[{name!r}]", given, shape, kind)
    return result


def result_array(name: str, given, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns an array for results; a given one is checked."""
    if given is None:
        return np.empty(shape, dtype)
    fits = isinstance(given, np.ndarray) and given.shape == shape and given.dtype == dtype
    if not (fits and given.flags.c_contiguous and given.flags.writeable):
        what = f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
        raise ModelError(f"{name}: got {what}, allowed is a writable C-order array of {dtype} {shape}")
    return given


def controls_of_rollout(control, shape: tuple[int, ...], name: str = "control") -> np.ndarray:
    """Returns controls of a rollout, checked: of each world, or the same for all."""
    given = as_real_array(name, control, f"are numbers {shape} or {shape[1:]}")
    if given.shape not in (shape, shape[1:]):
        raise ModelError(f"{name}: got shape {given.shape}, allowed is {shape} or {shape[1:]}")
    return np.broadcast_to(given, shape)


def inputs_of_rollout(control, lead: tuple[int, ...], dims: Callable[[str], tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Returns inputs of the steps of a rollout by field, checked.

    Args:
        control: controls, or a dict of inputs by field.
        lead: leading axes of each.
        dims: the shape of a field in a world.

    Raises:
        ModelError: a field is not an input of a step; an invalid shape.
    """
    if not isinstance(control, Mapping):
        return {"ctrl": controls_of_rollout(control, (*lead, *dims("ctrl")))}
    found = {}
    for name, values in control.items():
        if name not in INPUTS:
            raise ModelError(f"control: got {name!r}, allowed are the inputs of a step: {', '.join(INPUTS)}")
        found[name] = controls_of_rollout(values, (*lead, *dims(name)), f"control[{name!r}]")
    return found


def control_of_step(given, step: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns controls that a function computed for one step of a rollout, checked."""
    return broadcast_reals("control", given, shape, f" in step {step}").astype(dtype, copy=False)
