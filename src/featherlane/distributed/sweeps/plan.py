"""The plan of a sweep: the parameter values of each sample, and the rollout of all samples.

A plan contains all that a process needs to compute any samples, and can be serialized.  Results of a sample depend only
on the plan and the sample's number.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from featherlane import Batch, Model
from featherlane.apps.measure.controls import HOLD, control_range
from featherlane.distributed.sweeps.reduction import Function, Named
from featherlane.distributed.sweeps.target import INDEPENDENT, Part, Target, parse_target
from featherlane.distributed.sweeps.values import LISTED, Source, Streams, parameter_source
from featherlane.errors import ArgumentTypeError, ModelError, near
from featherlane.extension import (
    DATA,
    MODEL,
    as_real_array,
    assign,
    check_finite,
    described,
    instance,
    one_of,
    whole_argument,
)

ROLLOUT = ("nstep", "control", "record", "keyframe", "dtype")
MOST_SAMPLES = 10**9
EXAMPLE = "{'height': 'final qpos[2]'}"
BLOCK = 1024  # number of samples that are checked at once
MOST_CORNERS = 8  # largest number of parameters whose extreme values are combined
RANDOM = "random"


@dataclass(frozen=True, eq=False)
class Rollout:
    """The rollout of every sample: the arguments of `Batch.rollout`, and the initial state."""

    nstep: int
    control: Any = None
    record: tuple[str, ...] = ("qpos",)
    keyframe: int | str = -1
    dtype: str = "float64"


@dataclass(eq=False)
class Plan:
    """A checked sweep.

    Attributes:
        targets: targets of the parameters, by path.
        sources: values of the parameters, by path.
        draws: number of samples at each point of the grids and lists.
        nsample: total number of samples.
        names: names of the results of `reduce`, once they are known.
        batches: batches of this process, by model and number of threads.
    """

    model: Model
    targets: dict[str, Target]
    sources: dict[str, Source]
    rollout: Rollout
    reduce: Function
    seed: int
    draws: int
    nsample: int
    names: tuple[str, ...] | None = None
    batches: dict[tuple[int, int], Any] = field(default_factory=dict)
    _variants: dict[tuple, Model] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"batches": {}, "_variants": {}}

    # ---- samples -----------------------------------------------------------------------------------------------------
    def values(self, samples: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the parameter values of samples, (n, ...) for each parameter.

        Raises:
            ModelError: a function returned a value that does not fit.
        """
        places = self._places(samples)
        return {path: self._drawn(path, samples, places) for path in self.targets}

    def _drawn(self, path: str, samples: np.ndarray, places: dict[str, np.ndarray]) -> np.ndarray:
        source, shape = self.sources[path], self.targets[path].shape
        if source.kind in LISTED:
            return source.listed[places[path]]
        streams = Streams(self.seed, path)
        drawn = [source.draw(streams.of(i), shape) for i in samples.tolist()]
        if source.kind != "drawn":
            return np.array(drawn, source.listed.dtype if source.kind == "choice" else np.float64)
        for i, value in zip(samples, drawn, strict=True):
            _check_drawn(f"parameter {path!r}: sample {i}", value, shape)
        return np.array(drawn, np.float64)

    def _places(self, samples: np.ndarray) -> dict[str, np.ndarray]:
        """Computes indices into lists and grids: lists vary together and fastest, then the last grid."""
        rest, places = samples // self.draws, {}
        lists = [path for path, source in self.sources.items() if source.kind == "values"]
        if lists:
            n = len(self.sources[lists[0]].listed)
            places |= dict.fromkeys(lists, rest % n)
            rest = rest // n
        for path in reversed([path for path, source in self.sources.items() if source.kind == "grid"]):
            n = len(self.sources[path].listed)
            places[path] = rest % n
            rest = rest // n
        return places

    def controls(self, model: Model, samples: np.ndarray) -> Any:
        """Returns the argument `control` of `Batch.rollout` for these samples."""
        given = self.rollout.control
        if isinstance(given, np.ndarray) and given.ndim == 3:
            return given[samples]
        if not (isinstance(given, str) and given == RANDOM):
            return given
        bounds, nstep = control_range(model), self.rollout.nstep
        hold = max(1, round(HOLD / self.model.opt.timestep))
        held = -(-nstep // hold)
        streams = Streams(self.seed, "control")
        unit = np.array([streams.of(i).random((held, len(bounds))) for i in samples.tolist()])
        return np.repeat(bounds[:, 0] + unit * (bounds[:, 1] - bounds[:, 0]), hold, axis=1)[:, :nstep]

    # ---- variants ----------------------------------------------------------------------------------------------------
    def variants(self, values: Mapping[str, np.ndarray]) -> list[tuple[Model, np.ndarray]]:
        """Returns the models of samples with these values, and the samples of each model."""
        paths = [path for path, target in self.targets.items() if target.parts[0].owner == "variant"]
        n = len(next(iter(values.values()))) if values else 0
        if not paths:
            return [(self.model, np.arange(n))]
        groups: dict[tuple, list[int]] = {}
        for k in range(n):
            groups.setdefault(tuple(values[path][k].item() for path in paths), []).append(k)
        return [(self._variant(key, paths), np.array(members)) for key, members in groups.items()]

    def _variant(self, key: tuple, paths: list[str]) -> Model:
        if key not in self._variants:
            model = copy.deepcopy(self.model)
            for path, value in zip(paths, key, strict=True):
                for part in self.targets[path].parts:
                    _set_variant(model, path, part, value)
            self._variants[key] = model
        return self._variants[key]

    # ---- checks ------------------------------------------------------------------------------------------------------
    def check(self) -> None:
        """Raises an error for a value of any sample that a field cannot hold.

        Raises:
            ModelError: with the sample, the element, the value and the allowed range.
        """
        if self._is_surely_held():
            return
        for start in range(0, self.nsample, BLOCK):
            samples = np.arange(start, min(start + BLOCK, self.nsample))
            values = self.values(samples)
            self.variants(values)
            for name in self.fields("model"):
                own = np.asarray(getattr(self.model, name))
                rows = np.broadcast_to(own, (len(samples), *own.shape)).astype(self._stored_as(name))
                self.enter(name, rows, values)
                try:
                    self.model.check_values(name, rows, worlds=True)
                except ModelError:
                    self._refuse(name, samples, rows)
            for path, target in self.targets.items():
                if target.parts[0].owner == "state" and not np.isfinite(values[path]).all():
                    wrong = np.argwhere(~np.isfinite(values[path]))[0]
                    raise ModelError(
                        f"parameter {path!r}: sample {samples[wrong[0]]}: got {values[path][tuple(wrong)]}, "
                        "allowed are finite numbers"
                    )

    def _is_surely_held(self) -> bool:
        """Returns whether fields can hold all values that may be sampled.

        If limits and values are independent per number, checking all combinations of the least and the greatest value
        of each parameter is sufficient: `enter` is monotonic in each value, also in floating-point arithmetic.
        """
        ends = {path: self.sources[path].bounds(target.shape) for path, target in self.targets.items()}
        owners = {part.owner for target in self.targets.values() for part in target.parts}
        if "variant" in owners or len(ends) > MOST_CORNERS or None in ends.values():
            return False
        corners = np.array(list(itertools.product((0, 1), repeat=len(ends))))
        values = {path: np.stack(both)[corners[:, k]] for k, (path, both) in enumerate(ends.items()) if both}
        with np.errstate(all="ignore"):
            for name in self.fields("model"):
                own = np.asarray(getattr(self.model, name))
                rows = np.broadcast_to(own, (len(corners), *own.shape)).astype(self._stored_as(name))
                self.enter(name, rows, values)
                if not self.model.holds_between(name, rows):
                    return False
        state = [path for path, target in self.targets.items() if target.parts[0].owner == "state"]
        return all(np.isfinite(values[path]).all() for path in state)

    def _stored_as(self, name: str) -> np.dtype:
        """Returns the dtype of a model field's rows."""
        return MODEL[name].stored_as(np.dtype(self.rollout.dtype))

    def _refuse(self, name: str, samples: np.ndarray, rows: np.ndarray) -> None:
        for sample, row in zip(samples, rows, strict=True):
            try:
                self.model.check_values(name, row)
            except ModelError as error:
                raise ModelError(f"parameters: sample {sample}: {error}") from None

    # ---- fields ------------------------------------------------------------------------------------------------------
    def fields(self, owner: str) -> list[str]:
        """Returns the swept fields of the model or of the state."""
        return list(dict.fromkeys(p.field for t in self.targets.values() for p in t.parts if p.owner == owner))

    def needs_constants(self) -> bool:
        """Returns whether derived constants depend on a swept field."""
        return any(not INDEPENDENT.fullmatch(name) for name in self.fields("model"))

    def enter(self, name: str, rows: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """Writes the values of samples into the rows (n, ...) of a field."""
        for path, target in self.targets.items():
            for part in target.parts:
                if part.field == name and part.owner != "variant":
                    at = (slice(None), *part.index)
                    value = _spread(values[path], rows[at].shape[1:])
                    apply = self.sources[path].apply
                    rows[at] = value if apply == "set" else rows[at] * value if apply == "scale" else rows[at] + value


def make_plan(model: Model, parameters: Any, rollout: Any, reduce: Any, seed: Any, draws: Any) -> Plan:
    """Creates the plan of a sweep and checks everything that does not require a run.

    Raises:
        TypeError: `model` is not a `Model`.
        ModelError: an argument is invalid; the message names it.
    """
    instance("model", model, Model, "a Model (created by featherlane.load)", ArgumentTypeError)
    model.check_edits()
    instance("parameters", parameters, Mapping, "a dict of values by field")
    targets = {path: parse_target(model, path) for path in parameters}
    sources = {path: parameter_source(path, given) for path, given in parameters.items()}
    for path, target in targets.items():
        _check_source(target, sources[path])
    draws = whole_argument("nsample", draws, 1)
    points = _points(sources)
    if points * draws > MOST_SAMPLES:
        raise ModelError(
            f"parameters: got {points} points with {draws} samples each, allowed are at most {MOST_SAMPLES} samples"
        )
    kept = _kept(model, reduce)
    run = _rollout(model, rollout, kept, points * draws)
    plan = Plan(
        copy.deepcopy(model), targets, sources, run, kept, whole_argument("seed", seed, 0), draws, points * draws
    )
    plan.check()
    return plan


def _kept(model: Model, given: Any) -> Function:
    """Returns the function that reduces the recordings of a sample."""
    if isinstance(given, Mapping) and given:
        return Named(model, given)
    if callable(given):
        return cast(Function, given)
    shown = "an empty dict" if isinstance(given, Mapping) else type(given).__name__
    raise ModelError(f"reduce: got {shown}, allowed is a function, or a dict of reductions such as {EXAMPLE}")


def _points(sources: Mapping[str, Source]) -> int:
    """Counts the points of all grids and lists."""
    lengths = {path: len(source.listed) for path, source in sources.items() if source.kind == "values"}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{path!r} {n}" for path, n in lengths.items())
        raise ModelError(
            f"parameters: got lists of different lengths ({given}), allowed is one length; use grid "
            f"to combine all values"
        )
    grids = [len(source.listed) for source in sources.values() if source.kind == "grid"]
    return int(np.prod([*grids, *set(lengths.values())], dtype=object))


def _check_source(target: Target, source: Source) -> None:
    """Raises an error for values whose shape or kind does not fit the target."""
    what, shape = f"parameter {target.path!r}", target.shape
    if target.parts[0].owner == "variant":
        if source.kind not in (*LISTED, "choice") or source.apply != "set" or source.listed.ndim != 1:
            raise ModelError(f"{what}: allowed for an option or an integer is a list, grid or choice of single values")
        return
    listed = source.options and source.kind in (*LISTED, "choice")
    if listed and source.listed.dtype.kind == "U":
        raise ModelError(f"{what}: got names, allowed are numbers")
    given = source.listed.shape[1:] if listed else ()
    for part in target.parts:
        if not _fits(shape if source.each else given, part.shape):
            raise ModelError(
                f"{what}: got values of shape {shape if source.each else given}, allowed is () or {part.shape}"
            )
        single = part.whole and not source.each and given[-1:] != part.shape[-1:]
        if single and source.apply == "set" and source.kind != "drawn":
            raise ModelError(
                f"{what}: got one number for {part.shape[-1]} numbers with different meanings; allowed "
                f"are single entries such as {part.field}[:, 0], values of shape {part.shape[-1:]}, or apply='scale'"
            )


def _fits(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Returns whether a value broadcasts over entries, from the last axis or from the first."""
    if len(given) > len(shape):
        return False
    last = shape[len(shape) - len(given) :]
    return all(a in (1, b) for a, b in zip(given, last, strict=True)) or given == shape[: len(given)]


def _spread(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Adds axes to values (n, ...) so that they broadcast to (n, *shape)."""
    given = value.shape[1:]
    missing = (1,) * (len(shape) - len(given))
    last = shape[len(missing) :]
    if all(a in (1, b) for a, b in zip(given, last, strict=True)):
        return value.reshape(len(value), *missing, *given)
    return value.reshape(len(value), *given, *missing)


def _check_drawn(what: str, value: Any, shape: tuple[int, ...]) -> None:
    given = np.asarray(value)
    if given.dtype.kind not in "biuf" or not _fits(given.shape, shape):
        raise ModelError(f"{what}: the function returned {described(value)}, allowed is a number or an array {shape}")
    if np.isnan(given).any():
        raise ModelError(f"{what}: the function returned NaN, allowed are numbers")


def _set_variant(model: Model, path: str, part: Part, value: Any) -> None:
    """Sets an option or an integer field of a variant."""
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    try:
        if part.field.startswith("opt_"):
            setattr(model.opt, part.field.removeprefix("opt_"), value)
        else:
            assign(part.field, getattr(model, part.field), value, part.index or ...)
    except ModelError as error:
        raise ModelError(f"parameter {path!r}: {error}") from None


def _rollout(model: Model, given: Any, reduce: Function, nsample: int) -> Rollout:
    """Checks and returns the options of a rollout."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        given = {"nstep": given}
    given = instance("rollout", given, Mapping, "a dict such as {'nstep': 100, 'record': ('qpos',)}")
    for name in given:
        one_of("rollout", name, ROLLOUT)
    nstep = whole_argument("rollout: nstep", given.get("nstep"), 1)
    if isinstance(reduce, Named):
        if "record" in given:
            raise ModelError(
                "rollout: record is not allowed with a dict of reductions, which determines the recorded fields"
            )
        record = reduce.record
    else:
        names = given.get("record", ("qpos",))
        record = (names,) if isinstance(names, str) else tuple(instance("record", names, Iterable, "names of fields"))
        for name in record:
            if name not in (known := DATA.that("shown")):
                raise ModelError(f"record: unknown field {name!r}{near(str(name), known)}")
    keyframe = given.get("keyframe", -1)
    if isinstance(keyframe, str):
        keyframe = model.keyframe(keyframe).id
    elif not (isinstance(keyframe, int | np.integer) and -1 <= keyframe < model.nkey) or isinstance(keyframe, bool):
        raise ModelError(f"rollout: keyframe: got {keyframe!r}, allowed are -1 to {model.nkey - 1}, or a name")
    dtype = Batch(model, 1, 1, dtype=given.get("dtype", "float64")).dtype.name
    return Rollout(nstep, _control(model, given.get("control"), nstep, nsample), record, int(keyframe), dtype)


def _control(model: Model, given: Any, nstep: int, nsample: int) -> Any:
    """Returns None, "random", a kernel, a function, or an array."""
    if given is None or callable(given) or (isinstance(given, str) and given == RANDOM):
        return given
    if isinstance(given, str):
        raise ModelError(f"rollout: control: got {given!r}, allowed are 'random', numbers, a kernel and a function")
    allowed = ((nstep, model.nu), (nsample, nstep, model.nu))
    array = as_real_array("rollout: control", given, f"are numbers {allowed[0]} or {allowed[1]}")
    if array.shape not in allowed:
        raise ModelError(f"rollout: control: got shape {array.shape}, allowed is {allowed[0]} or {allowed[1]}")
    check_finite("rollout: control", array)
    return np.array(array, np.float64)
