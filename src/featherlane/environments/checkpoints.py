"""Checkpoints of an environment: worlds, episodes, random number generators, and the state of its task.

A checkpoint holds no models, meshes and terrains.  A pickle of an environment holds them, because a process that loads
it may lack the files of the model.  Both find the live arrays of a task with `live_arrays`.  The state of a task
consists of the numbers and arrays that its attributes hold, such as the levels of a curriculum.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane.environments.live_arrays import container, inside, is_part, memory_of
from featherlane.environments.random_streams import RandomStreams
from featherlane.errors import ModelError
from featherlane.extension import instance

PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
SEVERAL = (list, tuple, set, frozenset, deque)
ABSENT = object()  # what is no state: models, functions, live arrays, an object that is saved elsewhere
KIND, BATCH, DERIVED = "kind", "batch", "derived"  # parts of a checkpoint besides attributes of the environment


class Attributes(dict):
    """The state of an object: that of its attributes, or of the entries of a list."""


def checkpoint(env: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Returns copies of the worlds, of their derived fields, and of the attributes `names` of an environment."""
    memory, seen = [rows for *_, rows in memory_of(env.batch)], set()
    kept: dict[str, Any] = {KIND: type(env.task).__name__, BATCH: env.batch.checkpoint()}
    kept[DERIVED] = {name: rows.copy() for name, rows in env.batch.bound.items()}
    kept |= {name: _state(getattr(env, name), memory, seen) for name in names}
    kept["task"].pop("model", None)  # may be its XML text
    return kept


def restore(env: Any, kept: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Sets an environment to a checkpoint.

    Raises:
        ModelError: not a checkpoint; one of another task, model, number of worlds or precision.
    """
    instance("restore", kept, Mapping, "the result of checkpoint()")
    if missing := [name for name in (KIND, BATCH, DERIVED, *names) if name not in kept]:
        raise ModelError(f"restore: the checkpoint does not contain {missing[0]!r}")
    if kept[KIND] != type(env.task).__name__:
        raise ModelError(f"restore: got a checkpoint of the task {kept[KIND]}, allowed is {type(env.task).__name__}")
    env.batch.restore(kept[BATCH])
    for name, rows in kept[DERIVED].items():
        env.batch.bind(name)
        env.batch.bound[name][...] = rows
    _put(vars(env), {name: kept[name] for name in names}, "")


def _state(thing: Any, memory: list[np.ndarray], seen: set[int]) -> Any:
    """Returns a copy of a value, the states of the parts of another object, or ABSENT."""
    if _is_value(thing, memory):
        return copy.deepcopy(thing)
    if isinstance(thing, np.random.Generator):
        return Attributes(bit_generator=thing.bit_generator.state)
    if isinstance(thing, RandomStreams):
        states = [generator.bit_generator.state for generator in thing.generators]
        return Attributes(generators=states, entropies=list(thing.entropies))
    if id(thing) in seen or isinstance(thing, np.ndarray):
        return ABSENT
    seen.add(id(thing))
    states = {key: _state(inner, memory, seen) for key, inner in inside(thing)}
    found = (dict if isinstance(thing, dict) else Attributes)(
        (key, state) for key, state in states.items() if state is not ABSENT
    )
    return found if found or isinstance(thing, dict) else ABSENT


def _is_value(thing: Any, memory: list[np.ndarray]) -> bool:
    """Returns whether a thing is a number, a string, an array that is not live, or a list of such things."""
    if isinstance(thing, np.ndarray):
        return thing.dtype != object and not any(is_part(thing, rows) for rows in memory)
    if isinstance(thing, SEVERAL):
        return all(_is_value(inner, memory) for inner in thing)
    return isinstance(thing, PLAIN)


def _put(target: Any, states: Mapping[Any, Any], where: str) -> None:
    """Sets attributes or entries of an object; an array of the same shape and type keeps its memory.

    Raises:
        ModelError: the object lacks a part that is an object.
    """
    held = container(target)
    for key, state in states.items():
        name = f"{where}.{key}".lstrip(".")
        present = held[key] if isinstance(held, list) else held.get(key)
        if isinstance(present, RandomStreams):
            present.entropies[:] = state["entropies"]
            for generator, own in zip(present.generators, state["generators"], strict=True):
                generator.bit_generator.state = own
        elif isinstance(present, np.random.Generator):
            present.bit_generator.state = state["bit_generator"]
        elif isinstance(state, Attributes):
            if present is None:
                raise ModelError(f"restore: {name}: got the state of an object, allowed is None as in this environment")
            _put(present, state, name)
        elif isinstance(state, dict):
            held[key] = {} if present is None else present
            _put(held[key], state, name)
        elif isinstance(present, np.ndarray) and isinstance(state, np.ndarray) and _fits(present, state):
            present[...] = state
        else:
            held[key] = copy.deepcopy(state)


def _fits(present: np.ndarray, state: np.ndarray) -> bool:
    """Returns whether an array can take the values of another one."""
    return (present.shape, present.dtype) == (state.shape, state.dtype) and present.flags.writeable
