"""Hashes the parts of a sweep: a run resumes in a folder only if all hashes match those of the folder."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import textwrap
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane import Model
from featherlane.distributed.sweeps.plan import Plan
from featherlane.distributed.sweeps.reduction import Named
from featherlane.lanes import Kernel


def identity(plan: Plan) -> dict[str, str]:
    """Returns a hash of each part: model, parameters, rollout, reduce, seed, samples."""
    run = plan.rollout
    parameters = [
        (path, source.kind, source.apply, source.each, list(source.options), source.function)
        for path, source in plan.sources.items()
    ]
    return {
        "model": _digest(_of_model(plan.model)),
        "parameters": _digest(parameters),
        "rollout": _digest([run.nstep, run.control, list(run.record), run.keyframe, run.dtype]),
        "reduce": _digest(plan.reduce),
        "seed": _digest(plan.seed),
        "samples": _digest([plan.draws, plan.nsample]),
    }


def _of_model(model: Model) -> list[Any]:
    """Returns everything that a step reads."""
    functions = [sorted(vars(model)[name].items(), key=str) for name in ("user_sensors", "user_actuators")]
    return [
        model.size_values(),
        *model.contents(),
        list(model.link_names),
        str(functions) if any(functions) else "",
        str(model.user_lcp_solver) if model.user_lcp_solver else "",
    ]


def _digest(value: Any) -> str:
    found = hashlib.sha256()
    _feed(found, value, set())
    return found.hexdigest()[:32]


def _feed(found, value: Any, seen: set[int]) -> None:
    """Adds a value to a hash; functions are hashed by their source and captured values."""
    if isinstance(value, Named):
        value = value.given
    if isinstance(value, Kernel):
        value = value.function
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        found.update(f"array {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    elif isinstance(value, Mapping):
        found.update(b"dict")
        for key in sorted(value, key=str):
            _feed(found, [str(key), value[key]], seen)
    elif isinstance(value, list | tuple):
        found.update(f"list {len(value)}".encode())
        for entry in value:
            _feed(found, entry, seen)
    elif isinstance(value, types.FunctionType):
        if id(value) not in seen:
            seen.add(id(value))
            found.update(b"function" + _written(value))
            cells = [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
            _feed(found, [value.__defaults__, value.__kwdefaults__, cells], seen)
    elif isinstance(value, types.MethodType):
        _feed(found, [value.__func__, value.__self__], seen)
    elif isinstance(value, functools.partial):
        _feed(found, [value.func, value.args, value.keywords], seen)
    elif isinstance(value, str | bytes | bool | int | float | type(None)):
        found.update(f"{type(value).__name__} {json.dumps(str(value))}".encode())
    else:
        # an object: its class, its `__call__`, and its attributes
        found.update(f"object {type(value).__module__}.{type(value).__qualname__}".encode())
        called = vars(type(value)).get("__call__")
        if isinstance(called, types.FunctionType):
            _feed(found, called, seen)
        if id(value) not in seen and hasattr(value, "__dict__"):
            seen.add(id(value))
            _feed(found, vars(value), seen)


def _is_set(cell: types.CellType) -> bool:
    """Returns whether a variable of an enclosing function has a value."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _written(function: types.FunctionType) -> bytes:
    """Returns the source of a function; its bytecode if there is no source."""
    try:
        return textwrap.dedent(inspect.getsource(function)).encode()
    except (OSError, TypeError):
        return function.__code__.co_code + repr(function.__code__.co_names).encode()
