"""Observations of the worlds of a task: groups of named parts, noise and images, and their spaces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np

from featherlane.environments.images import ObservedImages
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.task import Task
from featherlane.errors import ModelError, near
from featherlane.extension import as_real_array, instance, one_of

ONE_THREAD = 10_000  # length of vectors up to which BLAS uses one thread; more threads take 6 ms of processor time
STATE = "state"  # name of the observed numbers without groups, next to images


class Observations:
    """Computes the observations of all worlds.

    Args:
        task, batch, random: those of the environment.
        copy: True: each observation is a new array.  False: two buffers in turn.

    Attributes:
        task, batch, random: as above.
        images: images of the task's cameras; None: no cameras.
        grouped: whether the task returns groups of parts.
        noisy: whether the task defines `observation_noise`.
        noise: noise of the last observations by group.
        space: space of a world's observation.

    Raises:
        ModelError: functions of the task that return other types, names or shapes; a group without parts; later also
            other names or shapes than in the first call, or NaN.
    """

    def __init__(self, task: Task, batch: Any, random: RandomStreams, copy: bool):
        self.task, self.batch, self.random = task, batch, random
        images = ObservedImages(batch, task.cameras, task._image_forms)
        self.images = images if images.cameras else None
        values = task.observation(batch)
        check_names(values)
        groups = grouped(values)
        self.grouped = "" not in groups
        for group, parts in groups.items():
            if not parts and (self.grouped or self.images is None):
                raise ModelError(f"observation: got no parts{f' in group {group!r}' * bool(group)}, allowed are some")
        self.groups: dict[str, dict[str, slice]] = {name: {} for name in groups}  # columns of each part
        self._forms: dict[str, tuple[list[str], list[int]]] = {}  # names and widths of the first call, by group
        columns = self._parts(values)
        for group, parts in groups.items() if columns else ():
            ends = np.cumsum([part.shape[1] for part in columns[group or STATE]]).tolist()
            places = zip(parts, [0, *ends], ends, strict=False)
            self.groups[group] = {"": slice(0, ends[-1])} | {name: slice(a, b) for name, a, b in places}
        shapes = {name: (batch.nworld, sum(part.shape[1] for part in parts)) for name, parts in columns.items()}
        self._buffers = [
            {name: np.empty(shape, batch.dtype) for name, shape in shapes.items()} for _ in range(0 if copy else 2)
        ]
        self.noisy = getattr(task.observation_noise, "__func__", None) is not Task.observation_noise
        self.noise = {name: np.zeros(shape, batch.dtype) for name, shape in shapes.items() if self.noisy}
        if self.noisy:
            self._sample_noise(np.zeros(0, np.int64))  # checks names and widths, and samples nothing
        spaces = {name: gym.spaces.Box(-np.inf, np.inf, shape[1:], batch.dtype) for name, shape in shapes.items()}
        pictures = self.images.spaces() if self.images else {}
        if clash := sorted(spaces.keys() & pictures):
            raise ModelError(f"observation: got the group {clash[0]!r}, allowed are names that no image has")
        self.space = gym.spaces.Dict(spaces | pictures) if self.grouped or self.images else spaces[STATE]

    def observe(self, ids: np.ndarray | None = None, out: Any = None, lost: np.ndarray | None = None) -> Any:
        """Returns the observations of all worlds, (n, k), or a dict of arrays by group and image.

        Args:
            ids: worlds that moved or were reset since the last call; None for all.  The other worlds keep their noise,
                and with `out` their images.
            out: observations to overwrite; None: new ones, or the next buffer.
            lost: (n,) bool, worlds without a valid state, which may observe NaN; None for no world.

        Raises:
            ModelError: another result than in the first call, or NaN.
        """
        groups = self._parts(self.task.observation(self.batch))
        if self.noisy:
            self._sample_noise(np.arange(self.batch.nworld) if ids is None else ids)
        into = out if isinstance(out, dict) else {STATE: out}
        if out is None and self._buffers:
            self._buffers.reverse()
            into = self._buffers[0]
        found = {name: self._joined(name, parts, into.get(name)) for name, parts in groups.items()}
        for name, rows in found.items():
            # a sum of squares is NaN only if a number is; `isnan` of all takes 0.6 us more
            if np.isnan(rows).any() if rows.size > ONE_THREAD else math.isnan(np.vdot(rows, rows)):
                self._check_numbers(name, rows, lost)
        if not self.images:
            return found if self.grouped else found[STATE]
        if out is None:
            return found | self.images.of()
        for name, images in self.images.of(ids).items():
            out[name][slice(None) if ids is None else ids] = images
        return out | found

    @property
    def width(self) -> int:
        """Returns the length of an observation without groups and images."""
        return self.groups[""][""].stop

    def numbers(self) -> np.ndarray:
        """Returns the present observations without groups and images in a new array (n, k)."""
        return self._joined(STATE, self._parts(self.task.observation(self.batch))[STATE], None)

    def _parts(self, values: Any) -> dict[str, list[np.ndarray]]:
        """Returns the parts (n, k) of each group of the task's result; without groups, the group is `STATE`."""
        groups, found = grouped(values) if self.grouped else {"": named(values)}, {}
        if self.grouped and groups.keys() != self.groups.keys():
            given = "no groups" if "" in groups else f"the groups {', '.join(map(str, groups))}"
            raise ModelError(f"observation: got {given}, allowed are {', '.join(self.groups)} as in the first call")
        for group, parts in groups.items():
            columns = [self._columns(group, name, part) for name, part in parts.items()]
            form = [*parts], [part.shape[1] for part in columns]
            if self._forms.setdefault(group, form) != form:
                given, first = map(columns_of, (form, self._forms[group]))
                what = entitled("observation", group, "")
                raise ModelError(f"{what}: got {given}, allowed are {first}, as in the first call")
            if columns:
                found[group or STATE] = columns
        return found

    def _columns(self, group: str, name: str, values: Any) -> np.ndarray:
        """Checks a part of the observation and returns it as (n, k)."""
        n = self.batch.nworld
        if is_numbers(values) and values.ndim == 2 and len(values) == n:
            return values
        what, allowed = entitled("observation", group, name), f"is an array ({n}, k) of numbers"
        part = as_real_array(what, values, allowed)
        if part.ndim < 2 or len(part) != n or (part.ndim > 2 and not name):
            raise ModelError(f"{what}: got shape {part.shape}, allowed {allowed}")
        return part.reshape(n, -1)

    def _joined(self, name: str, parts: list[np.ndarray], out: np.ndarray | None) -> np.ndarray:
        """Returns the parts of a group in one array (n, k), with noise."""
        if len(parts) == 1 and out is None:
            rows = parts[0].astype(self.batch.dtype)
        elif out is None:
            rows = np.concatenate(parts, axis=1, dtype=self.batch.dtype, casting="unsafe")
        else:
            rows = np.concatenate(parts, axis=1, out=out, casting="unsafe")
        if self.noisy:
            rows += self.noise[name]
        return rows

    def _check_numbers(self, name: str, rows: np.ndarray, lost: np.ndarray | None) -> None:
        """Raises an error for NaN in the observation (n, k) of a group, except in the worlds `lost`."""
        found = np.argwhere(np.isnan(rows) if lost is None else np.isnan(rows) & ~lost[:, None])
        if len(found):
            (world, column), group = found[0].tolist(), name if self.grouped else ""
            inside = ((part, at) for part, at in self.groups[group].items() if part and at.start <= column < at.stop)
            part, at = next(inside, ("", slice(0, 0)))
            by_noise = self.noisy and np.isnan(self.noise[name][world, column])
            what = entitled("observation_noise" if by_noise else "observation", group, part)
            raise ModelError(f"{what}: got NaN in world {world}, column {column - at.start}, allowed are numbers")

    def _sample_noise(self, ids: np.ndarray) -> None:
        """Samples the noise of the worlds `ids`.

        Raises:
            ModelError: an unknown group or part, or an array of another shape.
        """
        for rows in self.noise.values():
            rows[ids] = 0.0
        given: Any = self.task.observation_noise(self.batch, ids, self.random)
        if self.grouped:
            instance("observation_noise", given, Mapping, f"a dict by group: {', '.join(self.groups)}")
        for group, values in given.items() if self.grouped else [("", given)]:
            columns = self.groups[one_of("observation_noise: group", group, self.groups)]
            rows = self.noise[group or STATE]
            for name, part in named(values).items():
                if name not in columns:
                    names = ", ".join(each for each in columns if each)
                    allowed = f"are {names}" if names else "is an array, because the observation has no parts"
                    raise ModelError(
                        f"observation_noise: part: got {name!r}, allowed {allowed}{near(str(name), columns)}"
                    )
                at = columns[name]
                shape = (len(ids), at.stop - at.start)
                what, allowed = (
                    entitled("observation_noise", group, name),
                    f"{shape}, a row for each of the worlds `ids`",
                )
                noise = as_real_array(what, part, f"is an array {allowed}")
                if noise.ndim < 2 or (len(noise), int(np.prod(noise.shape[1:]))) != shape:
                    raise ModelError(f"{what}: got shape {noise.shape}, allowed is {allowed}")
                rows[ids, at] = noise.reshape(shape)


def is_numbers(value: Any) -> bool:
    """Returns whether the value is an array of real numbers that needs no conversion."""
    return type(value) is np.ndarray and value.dtype.kind in "biuf"


@lru_cache(1000)  # of names, which are the same in each step
def entitled(method: str, group: str, part: str) -> str:
    """Returns the title of a part, of a group, or of the whole result of a method, for errors."""
    names = "/".join(name for name in (group, part) if name)
    return f"{method} {names!r}" if names else method


def columns_of(form: tuple[list[str], list[int]]) -> str:
    """Returns the text for the parts of a group, given by their names and widths."""
    parts = zip(*form, strict=True)
    return ", ".join(f"{repr(name) if name else 'an array'} ({k} columns)" for name, k in parts)


def named(values: Any) -> Mapping[str, Any]:
    """Returns parts by name; an array is the part ""."""
    return values if type(values) is dict or isinstance(values, Mapping) else {"": values}


def check_names(values: Any) -> None:
    """Raises an error for names of groups or parts that are no strings, or empty."""
    for name, inner in values.items() if isinstance(values, Mapping) else ():
        if not isinstance(name, str) or not name:
            raise ModelError(f"observation: got the name {name!r}, allowed are strings that are not empty")
        check_names(inner)


def grouped(values: Any) -> Mapping[str, Mapping[str, Any]]:
    """Returns the parts of an observation by group; without groups they are in the group "".

    Raises:
        ModelError: groups (dicts of parts) and parts.
    """
    parts = named(values)
    others = [name for name, part in parts.items() if not isinstance(part, Mapping)]
    if len(others) == len(parts):
        return {"": parts}
    if others:
        raise ModelError(f"observation: got groups and the part {others[0]!r}, allowed are groups only or parts only")
    return parts
