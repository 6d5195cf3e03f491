"""`Batch`: worlds of one model, spread over the NUMA nodes of many machines.

    batch = fl.distributed.Batch(model, 100_000, nodes="10.0.0.1:6379")
    batch.qvel = np.zeros((100_000, model.nv))
    out = batch.rollout(100, control=control, record=("qpos",))

What a local batch shows as live arrays lies on other machines here: a name gathers a copy, an assignment scatters.
Calls that give nothing do not wait for what they ask for.
A world's bits do not depend on where it is, nor on whether a worker was lost on the way and its worlds stepped again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.distributed.edits import Fields, ModelEdits
from featherlane.distributed.given import Given
from featherlane.distributed.recording import Recorded
from featherlane.distributed.ship import packed
from featherlane.distributed.worker import Left
from featherlane.errors import ModelError, UnknownAttributeError, near
from featherlane.lanes import Kernel
from featherlane.model.arguments import count, instance, one_of
from featherlane.model.assignment import assign, flag, is_mixed, reals, regular
from featherlane.model.limits import check_field
from featherlane.model.model import Model
from featherlane.simulation.batch.arrays import LASTING, REPORTS, STATE, keyframe_numbers, not_kept
from featherlane.simulation.batch.batch import Batch as Local
from featherlane.simulation.batch.expanded import dependent
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.batch.reduction import EDGES, Histogram, Reduction, check_rollout, checked, merged
from featherlane.simulation.tile.fields import DATA, STATUS
from featherlane.simulation.tile.workspace import Workspace
from featherlane.simulation.world.recordings import (
    BINDABLE,
    check_bindable,
    control_of_step,
    controls_of_rollout,
    field_names,
    recordings,
)


class Batch(Given):
    """nworld worlds of one model on several workers; a context that ends them.

    Args:
        model: the model; edits take effect at the next call.
        nworld: number of worlds, at least 1.
        nodes: None for this process alone, without Ray; a number of workers, on the Ray that this process is connected
            to, or on one that is started on this machine; the address of a cluster, "HOST:PORT" or "auto", or a
            `Cluster`: a worker for each NUMA node of its nodes.
        nthread: threads of each worker, 0 for one for each core that it has.
        dtype: float64 or float32.
        given_contacts, record_bad: as of `featherlane.Batch`.
        checkpoint_every: steps after which a worker's worlds are kept anew.  What was asked since then, with its
            inputs, is asked again when the worker is lost.
        checkpoint_folder: a folder that all nodes see, into which workers write; None: what is kept travels to this
            machine, into Ray's object store.
        timeout: how long a cluster, and room on it, may keep us waiting [s].

    State fields and outputs are gathered when they are named, `batch.qpos` (nworld, nq), as copies that cannot be
    written to; `batch.qpos = x` and `set` scatter.  `step`, `forward`, `reset` and `set` return while workers are at
    it; what goes wrong there is raised by the next call that waits: any that gives something, `wait`, and the end of
    the context.  All worlds are then as before the piece that failed (a short call is one), and nothing is done of
    what was asked after it.

    Attributes:
        nworld, dtype, model: as given.
        starts: (nworker + 1,) the first world of each worker, and nworld.
        threads: of each worker.
        losses: how often each worker was lost.
        status, nbad, ncon, solver_niter, failures, ...: as of `featherlane.Batch`.

    Raises:
        TypeError: `model` is no Model.
        InstallationError: Ray is missing; versions differ between nodes.
        ModelError: numbers out of range; no cluster answers; no room, no memory; a model that cannot be shipped.
    """

    def __init__(
        self,
        model: Model,
        nworld: int,
        nodes: Any = None,
        nthread: int = 0,
        dtype: DTypeLike = "float64",
        given_contacts: int = 0,
        record_bad: int = 0,
        checkpoint_every: int = 1000,
        checkpoint_folder: str | Path | None = None,
        timeout: float = 60.0,
    ):
        one = Local(model, 1, nthread, dtype, given_contacts, record_bad)  # checks what all have in common
        super().__init__(one, nworld, nodes, nthread, record_bad, checkpoint_every, checkpoint_folder, timeout)
        own = self.__dict__
        own["_edits"] = ModelEdits(model, not self.is_remote)
        own["_fields"] = Fields(model, self.nworld, self.dtype, self._fetch)
        own["_bound"], own["_computed"] = set(), False

    # ---- fields ------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise UnknownAttributeError(f"batch has no {name!r}")
        if name in BINDABLE:
            return self.get(name)
        raise UnknownAttributeError(f"batch has no {name!r}{near(name, BINDABLE)}")

    def __setattr__(self, name: str, value) -> None:
        if name not in STATE:
            raise UnknownAttributeError(f"{name} cannot be set (state fields are {', '.join(STATE)})")
        self.set(name, value)

    def get(self, name: str, ids=None) -> np.ndarray:
        """A field of some worlds, gathered.

        Args:
            name: a state field or a derived field, which is bound.
            ids: the worlds; None for all.

        Returns:
            (n, ...) copy, not to be written to.

        Raises:
            ModelError: no such field; an output that was not bound before the last call.
        """
        self._check_kept(name)
        return self._gathered(name, self._ids(ids))

    def _gathered(self, name: str, chosen: np.ndarray) -> np.ndarray:
        """Rows of a field, which is bound."""
        self._bind(name)
        out = np.empty((len(chosen), *self._shape(name)), self._one.bind(name).dtype)
        for part, result in self._ask_parts(chosen, lambda part: [("get", ((name,), part.ids))]):
            out[part.at] = result[name]
        out.flags.writeable = False
        return out

    def set(self, name: str, value: ArrayLike, ids=None) -> None:
        """Set a state field of some worlds.

        Args:
            name: a state field.
            value: what broadcasts to (n, ...) for the n worlds.
            ids: the worlds; None for all.

        Raises:
            ModelError: no state field, or a shape or kind of number that does not fit; nothing is set then.
        """
        one_of("set", name, STATE)
        chosen = self._ids(ids)
        rows = np.empty((len(chosen), *self._shape(name)), DATA[name].stored_as(self.dtype))
        assign(name, rows, value, mixed=is_mixed(name))
        self._post_parts(chosen, lambda part: [("set", (name, rows[part.at], part.ids))])

    def _shape(self, name: str) -> tuple[int, ...]:
        return getattr(self._one, name).shape[1:]

    def bind(self, name: str) -> np.ndarray:
        """Have an output computed by each call from now on, as `featherlane.Batch.bind`; returns a copy as of `get`."""
        return self._gathered(name, np.arange(self.nworld))

    def _check_kept(self, name: str) -> None:
        """Refuse to read an output whose values the last call did not keep."""
        check_bindable(self.model, "bind", name)
        if self._computed and name not in self._bound and name not in (*LASTING, *REPORTS):
            raise not_kept(name)

    def _bind(self, name: str) -> None:
        """Tell workers of an output that nobody has asked for before."""
        check_bindable(self.model, "bind", name)
        if name not in STATE and name not in REPORTS and name not in self._bound:
            self._one.bind(name)
            self._run_all(lambda k: [("bind", (name,))])
            self._bound.add(name)

    def expand(self, name: str) -> np.ndarray:
        """Give a real model field its own values in each world, as `featherlane.Batch.expand` does.

        Returns:
            (nworld, ...) live array on this side: what is written to it is scattered by the next call.

        Raises:
            ModelError: no such real field.
        """
        self._one.expand(name)  # or its error
        return self._fields.lend(name.replace("opt.", "opt_"))

    def set_const(self, ids=None) -> None:
        """Recompute, world by world, the model fields that depend on expanded ones; they become per-world."""
        chosen = self._ids(ids)
        self._one.set_const([])
        ids_of = {part.worker: part.ids for part in self._spread.parts(chosen)}
        none = np.zeros(0, np.int64)

        def body(held) -> None:
            self._tell_edits()
            self._settle()
            self._fields.disown(dependent(self.model, self._one.expanded_fields))
            # who have none of the worlds get rows of these fields, too: all worlds are alike in what differs
            self._answers(self._everyone(), lambda part: [("set_const", (ids_of.get(part.worker, none),))], True)
            self._fields.renew(self._fetched)

        self._run(body)

    def _fetch(self, name: str) -> np.ndarray:
        """Rows of a model field that workers have."""
        return self._run(lambda held: self._fetched(name))

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, ids=None) -> None:
        """Advance worlds, as `featherlane.Batch.step`; the last steps, about a second, may be under way afterwards.

        An interrupt (Ctrl-C) leaves all worlds of the call at the same step, and is raised when they are there.  A
        second one is raised at once; worlds are where the last complete piece of this call ended.

        Raises:
            RuntimeError: another thread is in a call of this batch; a worker was lost too often.
            Exception: what went wrong in a call before, which did not wait.
        """
        nstep, chosen = count("nstep", nstep, 1), self._ids(ids)
        self._advance(nstep, chosen, lambda part, start, n: [("step", (n, part.ids))])

    def forward(self, ids=None) -> None:
        """Compute all derived fields of the present state, without a step."""
        self.__dict__["_computed"] = True
        self._tell_posted(self._ids(ids), lambda part: [("forward", (part.ids,))])

    def reset(self, ids=None, keyframe: int | str | np.ndarray = -1, forward: bool = True) -> None:
        """Worlds to the model's defaults, or to keyframes, as `featherlane.Batch.reset`."""
        chosen, forward = self._ids(ids), flag("forward", forward)
        self.__dict__["_computed"] |= forward
        keys = keyframe_numbers(self.model, keyframe, len(chosen))
        keys = np.full(len(chosen), -1) if not len(keys) else np.array(keys)
        self._tell_posted(chosen, lambda part: [("reset", (part.ids, keys[part.at], forward))])

    def rollout(
        self, nstep: int, control=None, record=("qpos",), ids=None, out=None, reduce: Reduction | None = None
    ) -> Any:
        """Advance worlds and record fields after each step, as `featherlane.Batch.rollout`.

        Args:
            nstep, record, ids: as there.
            control: as there; a function is called here between steps, a kernel is shipped.
            out: as there; "refs" leaves recordings where they are.
            reduce: as there; computed where the worlds are.

        Returns:
            As there; with out="refs" a list of `Recorded`, parts of worlds and steps, which `gathered` puts together.

        Raises:
            ModelError, InstallationError: as there; a kernel that cannot be shipped.
            RuntimeError: as `step`.
        """
        nstep, chosen, names = count("nstep", nstep, 1), self._ids(ids), field_names("record", record)
        for name in names:
            check_bindable(self.model, "record", name)
        if not isinstance(out, Mapping | None) and not (isinstance(out, str) and out == "refs"):
            given = repr(out) if isinstance(out, str) else type(out).__name__
            raise ModelError(f"out: got {given}, allowed is 'refs' or a dict of arrays by name")
        how = check_rollout(reduce, {} if isinstance(out, str) else out, len(chosen))
        if callable(control) and not isinstance(control, Kernel):
            return self._driven(nstep, control, names, chosen, out, how)
        controls = self._control(control, (len(chosen), nstep, self.model.nu))
        if out == "refs":
            return self._left(nstep, controls, names, chosen)
        if how is not None:
            return self._reduced(nstep, controls, names, chosen, how)
        result = self._recordings(names, (len(chosen), nstep), out)

        def take(part, start: int, n: int, rows: dict[str, np.ndarray]) -> None:
            for name in names:
                result[name][part.at, start : start + n] = rows[name]

        self._roll(nstep, controls, names, chosen, take)
        return result

    def _recordings(self, names: list[str], lead: tuple[int, int], out) -> dict[str, np.ndarray]:
        """Arrays to record into, checked where they are given."""
        sizes = Workspace.sizes_of(self.model, self._one.ngiven)
        return recordings(names, lead, out, lambda name: DATA[name].dims(sizes), self.dtype)

    def _control(self, control, shape: tuple[int, ...]) -> Any:
        """Controls of a rollout: an array for all its worlds, a packed kernel, or None."""
        if isinstance(control, Kernel):
            self._one.runner.control_kernel(control)  # or its error
            return packed("control", control) if self.is_remote else control
        if control is None:
            return None
        return np.asarray(controls_of_rollout(control, shape), self.dtype)

    def _roll(self, nstep: int, controls, names, chosen, take, how=None, stays: bool = False) -> None:
        """Pieces of a rollout; `take` gets what each worker recorded."""

        def orders(part, start: int, n: int):
            own = controls
            if isinstance(controls, np.ndarray):
                own = np.ascontiguousarray(controls[part.at, start : start + n])
            return [("rollout", (n, own, tuple(names), part.ids, how))]

        rows = [getattr(self._one, name) for name in (*names, "ctrl")]
        self._advance(nstep, chosen, orders, take, sum(a.nbytes for a in rows), stays)

    def _left(self, nstep: int, controls, names, chosen) -> list[Recorded]:
        """A rollout whose recordings stay where they are."""
        found: list[Recorded] = []

        def take(part, start: int, n: int, left) -> None:
            where = left if isinstance(left, Left) else (left, None)
            found.append(Recorded(chosen[part.at], start, n, *where))

        self._roll(nstep, controls, names, chosen, take, stays=True)
        return found

    def _reduced(self, nstep: int, controls, names, chosen, how: Reduction) -> dict[str, np.ndarray]:
        """A rollout of which workers keep what a reduction leaves."""
        pieces: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        self._roll(nstep, controls, names, chosen, lambda part, start, n, rows: pieces[start].append(rows), how)
        return {
            name: np.concatenate([merged(how, [rows[name] for rows in pieces[start]]) for start in sorted(pieces)])
            for name in names
        }

    def _driven(self, nstep: int, control, names, chosen, out, how) -> Any:
        """A rollout of one step after the other, with controls that a function computes here between them."""
        results = []
        for k in range(nstep):
            values = control_of_step(control(self, k), k, (len(chosen), self.model.nu), self.dtype)
            results.append(self.rollout(1, values[:, None], names, chosen, "refs" if out == "refs" else None, how))
        if out == "refs":
            return [part._replace(start=k) for k, parts in enumerate(results) for part in parts]
        axis = 0 if how is not None else 1
        whole = {name: np.concatenate([one[name] for one in results], axis) for name in names}
        if out is None:
            return whole
        given = self._recordings(names, (len(chosen), nstep), out)
        for name in names:
            given[name][...] = whole[name]
        return given

    # ---- reductions --------------------------------------------------------------------------------------------------
    def reduce(self, how: Reduction, name: str, ids=None) -> np.ndarray:
        """A reduction of a field over worlds, computed where they are.

        Args:
            how: `mean`, `sum`, `min`, `max`, or a `Histogram`.
            name: a field, as of `get`.
            ids: the worlds, one at least; None for all.

        Returns:
            (...) float64 sums and means, (..., nbin) int64 counts, else in the batch's dtype.  Its bits do not depend
            on where worlds are.

        Raises:
            ModelError: no such reduction or field, no world.
        """
        kind, chosen = checked(how), self._ids(ids)
        if not len(chosen):
            raise ModelError("ids: a reduction needs one world at least")
        self._check_kept(name)
        self._bind(name)
        answers = self._ask_parts(chosen, lambda part: [("reduce", (kind, name, part.ids))])
        return merged(kind, [result for _, result in answers])

    def mean(self, name: str, ids=None) -> np.ndarray:
        """The mean of a field over worlds, (...); see `reduce`."""
        return self.reduce("mean", name, ids)

    def max(self, name: str, ids=None) -> np.ndarray:
        """The largest values of a field over worlds, (...); see `reduce`."""
        return self.reduce("max", name, ids)

    def min(self, name: str, ids=None) -> np.ndarray:
        """The smallest values of a field over worlds, (...); see `reduce`."""
        return self.reduce("min", name, ids)

    def histogram(self, name: str, edges: ArrayLike, ids=None) -> np.ndarray:
        """How many worlds have values between edges.

        Args:
            name: a field.
            edges: (nbin + 1,) ascending, in the field's unit.
            ids: the worlds; None for all.

        Returns:
            (..., nbin) int64 for each number of the field.

        Raises:
            ModelError: edges that do not ascend; as `reduce`.
        """
        values = reals("edges", edges, EDGES)
        return self.reduce(Histogram(tuple(np.atleast_1d(values).tolist())), name, ids)

    def call(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function finds out about the worlds of each worker.

        Args:
            function: `function(batch)` of a `featherlane.Batch` with a worker's worlds, which it leaves as they are.

        Returns:
            Its results, in the order of the workers' worlds (`starts`).

        Raises:
            ModelError: it cannot be shipped.
        """
        if not callable(function):
            raise ModelError(f"function: got {type(function).__name__}, allowed is a function of a batch")
        shipped = packed("function", function) if self.is_remote else function
        return [result for _, result in self._run_all(lambda k: [("call", (shipped,))], changes=False, edits=True)]

    # ---- what happened -----------------------------------------------------------------------------------------------
    @property
    def status(self) -> dict[str, np.ndarray]:
        """Counts since the last reset of each world, by name, each (nworld,) int64."""
        counts = self.get("warning")
        return {name: counts[:, k].astype(np.int64) for k, name in enumerate(STATUS)}

    @property
    def failures(self) -> list[Failure]:
        """With record_bad, what went wrong, as of `featherlane.Batch`; worlds are numbered among all."""
        found = []
        for k, own in enumerate(self.call(_failures)):
            for failure in own:
                failure.world += int(self.starts[k])
                found.append(failure)
        return sorted(found, key=lambda failure: (failure.step, failure.world))

    def get_data(self, world: int):
        """One world as an `fl.Data` in float64, forward computed."""
        return self._of_world("get_data", world)

    def get_model(self, world: int) -> Model:
        """One world's model: a copy with its expanded fields."""
        return self._of_world("get_model", world)

    def _of_world(self, method: str, world: int) -> Any:
        count("world", world, 0, self.nworld - 1)
        [part] = self._spread.parts(np.array([world]))
        own = 0 if part.ids is None else int(part.ids[0])
        [(_, result)] = self._ask_parts(np.array([world]), lambda part: [(method, (own,))], edits=True)
        return result

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        """Copies of all that lasts, as of `featherlane.Batch`, which takes it over just as this does."""
        names: dict[str, None] = {}
        for _, found in self._run_all(lambda k: [("kept_names", ())], changes=False, edits=True):
            names |= dict.fromkeys(found)
        answers = self._run_all(lambda k: [("checkpoint", (tuple(names),))])
        return {name: np.concatenate([kept[name] for _, kept in answers]) for name in names}

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Take over a checkpoint, of this or of a local batch; the worlds go on bit for bit.

        Raises:
            ModelError: a field is missing, or of another shape or dtype; nothing is taken over then.
        """
        instance("restore", kept, Mapping, "what checkpoint() gave")
        values = {key: regular(f"restore: {key}", kept[key]) for key in kept}
        for key, value in values.items():
            if value.shape[:1] != (self.nworld,):
                raise ModelError(f"restore: {key}: got shape {value.shape}, allowed are rows of {self.nworld} worlds")
        self._one.restore({key: value[:1] for key, value in values.items()})
        for key, value in values.items():
            if key.startswith("model."):
                check_field(self.model, key.removeprefix("model."), value, worlds=True)
        names, everyone = tuple(values), list(self._spread.parts(np.arange(self.nworld)))
        fields = {key.removeprefix("model."): value for key, value in values.items() if key.startswith("model.")}

        def body(held) -> None:
            self._tell_edits()
            self._settle()
            rows = {name: self.model.__dict__[name] for name in self._fields.names} | fields
            self._fields.disown(rows)
            self._answers(everyone, lambda part: [("restore", (names, *(values[key][part.at] for key in names)))], True)
            for name, value in rows.items():
                self._fields.taken(name, value)

        self._run(body)
        self._tell_of_bad()


def _failures(batch) -> list[Failure]:
    return batch.failures
