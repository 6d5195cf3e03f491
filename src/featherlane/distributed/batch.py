"""`Batch`: worlds of one model, distributed over the NUMA nodes of many machines.

    batch = fl.distributed.Batch(model, 100_000, nodes="10.0.0.1:6379")
    batch.qvel = np.zeros((100_000, model.nv))
    out = batch.rollout(100, control=control, record=("qpos",))

The arrays of a local batch are remote here: reading an attribute gathers a copy, assigning to it scatters the values.
Calls without a result return before the workers have finished.
Each world's result is bitwise identical on any machine, and also if a worker is lost and its steps are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.distributed.edits import Fields, ModelEdits
from featherlane.distributed.rollouts import Rollouts
from featherlane.distributed.serialization import serialize
from featherlane.distributed.user_contacts import Given
from featherlane.errors import ModelError, UnknownAttributeError, near
from featherlane.model.arguments import instance, one_of, whole_argument
from featherlane.model.assignment import assign, flag, is_mixed, reals, regular
from featherlane.model.limits import check_field
from featherlane.model.model import Model, peek
from featherlane.model.variant import values_of
from featherlane.simulation.batch.arrays import LASTING, REPORTS, STATE, keyframe_numbers, not_kept
from featherlane.simulation.batch.batch import Batch as Local
from featherlane.simulation.batch.expanded import dependent
from featherlane.simulation.batch.failure import Failure, numbered
from featherlane.simulation.batch.reduction import EDGES, Histogram, Reduction, checked, merged
from featherlane.simulation.batch.runner import stage_number
from featherlane.simulation.batch.sensing import SENSED
from featherlane.simulation.tile.fields import DATA
from featherlane.simulation.world.data import Data
from featherlane.simulation.world.recordings import BINDABLE, check_bindable


class Batch(Rollouts, Given):
    """Simulates nworld worlds of one model on several workers; as a context manager it ends the workers.

    Args:
        model: the model; edits take effect at the next call.
        nworld: number of worlds, at least 1.
        nodes: None: this process alone, without Ray.  A number: so many workers, on the Ray that this process is
            connected to, or else on a Ray that is started on this machine.  An address ("HOST:PORT" or "auto") or a
            `Cluster`: one worker per NUMA node of the cluster.
        nthread: threads of each worker; 0 for one per core.
        dtype: float64 or float32.
        given_contacts, record_failures: as in `featherlane.Batch`.
        checkpoint_every: number of steps between checkpoints of a worker's worlds.  After the loss of a worker, the
            requests since its last checkpoint are repeated with their inputs.
        checkpoint_folder: folder for checkpoints, which all nodes share; None to transfer checkpoints to this
            machine, into Ray's object store.
        timeout: longest wait for a cluster, and for free capacity on it [s].

    Reading a state field or an output gathers it from the workers: `batch.qpos` (nworld, nq) is a read-only copy.
    `batch.qpos = x` and `set` send values to the workers.  `step`, `forward`, `reset` and `set` return while the
    workers compute.  Their errors are raised by the next call that waits: a call with a result, `wait`, or the end of
    the context.  All worlds are then in the state before the failed piece (a short call is one piece), and all later
    requests are discarded.

    `step` returns while the last steps (about one second) are running.  A first Ctrl-C is raised once all worlds of the
    call are at the same step.  A second one is raised at once; the worlds are then at the end of the last complete
    piece of this call.  A call raises RuntimeError if a worker was lost too often.

    Attributes:
        nworld, dtype, model: the arguments.
        starts: (nworker + 1,) the first world of each worker, then nworld.
        threads: number of threads of each worker.
        losses: number of losses of each worker.
        status, nreset, ncon, nefc, solver_niter, failures, ...: as in `featherlane.Batch`.

    Raises:
        TypeError: `model` is not a `Model`.
        InstallationError: Ray is missing, or versions differ between nodes.
        ModelError: a number is out of range, no cluster answers, too few cores or memory, an unserializable model.
    """

    def __init__(
        self,
        model: Model,
        nworld: int,
        nodes: Any = None,
        *,
        nthread: int = 0,
        dtype: DTypeLike = "float64",
        given_contacts: int = 0,
        record_failures: int = 0,
        checkpoint_every: int = 1000,
        checkpoint_folder: str | Path | None = None,
        timeout: float = 60.0,
    ):
        one = Local(
            model, 1, nthread, dtype=dtype, given_contacts=given_contacts, record_failures=record_failures
        )  # checks what all have in common
        super().__init__(one, nworld, nodes, nthread, record_failures, checkpoint_every, checkpoint_folder, timeout)
        own = self.__dict__
        own["_edits"] = ModelEdits(model, not self.is_remote)
        own["_fields"] = Fields(model, self.nworld, self.dtype, self._fetch)
        own["_bound"], own["_computed"] = set(), False

    # ---- fields ------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise UnknownAttributeError(f"batch has no attribute {name!r}")
        if name in BINDABLE:
            return self.get(name)
        raise UnknownAttributeError(f"batch has no attribute {name!r}{near(name, BINDABLE)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in STATE:
            raise UnknownAttributeError(f"{name} cannot be set, allowed are the state fields {', '.join(STATE)}")
        self.set(name, value)

    def get(self, name: str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Gathers a field of some worlds.

        Args:
            name: a state field, or an output, which is bound.
            ids: the worlds; None for all.

        Returns:
            (n, ...) read-only copy.

        Raises:
            ModelError: the field does not exist, or the output was not bound before the last call.
        """
        self._check_kept(name)
        return self._gathered(name, self._ids(ids))

    def _gathered(self, name: str, chosen: np.ndarray) -> np.ndarray:
        """Returns rows of a bound field."""
        self._bind(name)
        out = np.empty((len(chosen), *self._shape(name)), self._one.bind(name).dtype)
        for part, result in self._ask(self._spread.parts(chosen), lambda part: [("get", ((name,), part.ids))]):
            out[part.at] = result[name]
        out.flags.writeable = False
        return out

    def set(self, name: str, value: ArrayLike, *, ids: ArrayLike | None = None) -> None:
        """Sets a state field of some worlds.

        Args:
            name: a state field.
            value: array that broadcasts to (n, ...) for the n worlds.
            ids: the worlds; None for all.

        Raises:
            ModelError: the name is not a state field, or the shape or dtype does not fit; nothing is set then.
        """
        one_of("set", name, STATE)
        chosen = self._ids(ids)
        rows = np.empty((len(chosen), *self._shape(name)), DATA[name].stored_as(self.dtype))
        assign(name, rows, value, mixed=is_mixed(name))
        self._post_parts(chosen, lambda part: [("set", (name, rows[part.at], part.ids))])

    def _shape(self, name: str) -> tuple[int, ...]:
        return getattr(self._one, name).shape[1:]

    def bind(self, name: str) -> np.ndarray:
        return self._gathered(name, np.arange(self.nworld))

    def _check_kept(self, name: str) -> None:
        """Raises an error for an output whose values the last call did not keep."""
        check_bindable(self.model, "bind", name)
        if self._computed and name not in self._bound and name not in (*LASTING, *REPORTS):
            raise not_kept(name)

    def _bind(self, name: str) -> None:
        """Informs workers of a newly bound output."""
        check_bindable(self.model, "bind", name)
        if name not in STATE and name not in REPORTS and name not in self._bound:
            self._one.bind(name)
            self._ask(self._everyone(), lambda part: [("bind", (name,))], changes=True)
            self._bound.add(name)

    def expand(self, name: str) -> np.ndarray:
        self._one.expand(name)  # or raises its error
        return self._fields.lend(name.replace("opt.", "opt_"))

    def set_const(self, ids: ArrayLike | None = None) -> None:
        chosen = self._ids(ids)
        self._one.set_const([])
        ids_of = {part.worker: part.ids for part in self._spread.parts(chosen)}
        none = np.zeros(0, np.int64)

        def body(held) -> None:
            self._tell_edits()
            self._settle()
            self._fields.disown(dependent(self.model, self._one.expanded_fields))
            # workers without these worlds need the same per-world fields, too
            self._answers(self._everyone(), lambda part: [("set_const", (ids_of.get(part.worker, none),))], True)
            self._fields.renew(self._fetched)

        self._run(body)

    def set_variant(self, geom: str, variant: str, *, ids: ArrayLike | None = None, inertia: bool = True) -> None:
        chosen = self._ids(ids)
        values = values_of(self.model.variants, geom, variant, flag("inertia", inertia))
        for name, (places, entries) in values.items():
            self.expand(name).reshape(self.nworld, -1)[chosen[:, None], places] = entries
        self.set_const(chosen)

    def _fetch(self, name: str) -> np.ndarray:
        """Returns rows of a model field from the workers."""
        return self._run(lambda held: self._fetched(name))

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, *, ids: ArrayLike | None = None, stage: str | None = None) -> None:
        nstep, chosen = whole_argument("nstep", nstep, 1), self._ids(ids)
        stage_number(stage)  # checks it
        self._advance(nstep, chosen, lambda part, start, n: [("step", (n, part.ids, stage))])

    def forward(self, ids: ArrayLike | None = None) -> None:
        self.__dict__["_computed"] = True
        self._tell_posted(self._ids(ids), lambda part: [("forward", (part.ids,))])

    def reset(
        self, ids: ArrayLike | None = None, *, keyframe: int | str | ArrayLike | None = None, forward: bool = True
    ) -> None:
        chosen, forward = self._ids(ids), flag("forward", forward)
        self.__dict__["_computed"] |= forward
        keys = keyframe_numbers(self.model, keyframe, len(chosen))
        keys = np.full(len(chosen), -1) if not len(keys) else np.array(keys)
        self._tell_posted(chosen, lambda part: [("reset", (part.ids, keys[part.at], forward))])

    # ---- reductions --------------------------------------------------------------------------------------------------
    def reduce(self, how: Reduction, name: str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Reduces a field over worlds; the workers compute it.

        Args:
            how: `mean`, `sum`, `min`, `max`, or a `Histogram`.
            name: a field, as in `get`.
            ids: the worlds, at least one; None for all.

        Returns:
            (...) float64 sums and means, (..., nbin) int64 counts, else in the batch's dtype.  Bitwise independent of
            the distribution of worlds.

        Raises:
            ModelError: the reduction or the field does not exist, or there are no worlds.
        """
        kind, chosen = checked(how), self._ids(ids)
        if not len(chosen):
            raise ModelError("ids: got no world, allowed with a reduction is at least one")
        self._check_kept(name)
        self._bind(name)
        answers = self._ask(self._spread.parts(chosen), lambda part: [("reduce", (kind, name, part.ids))])
        return merged(kind, [result for _, result in answers])

    def mean(self, name: str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Computes the mean of a field over worlds, (...); see `reduce`."""
        return self.reduce("mean", name, ids=ids)

    def max(self, name: str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Computes the largest values of a field over worlds, (...); see `reduce`."""
        return self.reduce("max", name, ids=ids)

    def min(self, name: str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Computes the smallest values of a field over worlds, (...); see `reduce`."""
        return self.reduce("min", name, ids=ids)

    def histogram(self, name: str, edges: ArrayLike, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Counts the worlds with values between edges.

        Args:
            name: a field.
            edges: (nbin + 1,) ascending, in the field's unit.
            ids: the worlds; None for all.

        Returns:
            (..., nbin) int64 counts for each number of the field.

        Raises:
            ModelError: the edges do not ascend; also as `reduce`.
        """
        values = reals("edges", edges, EDGES)
        return self.reduce(Histogram(tuple(np.atleast_1d(values).tolist())), name, ids=ids)

    def call(self, function: Callable[[Any], Any]) -> list[Any]:
        """Calls a function with the worlds of each worker.

        Args:
            function: `function(batch)` of a `featherlane.Batch` with a worker's worlds; it must not change them.

        Returns:
            Its results, ordered by the workers' first worlds (`starts`).

        Raises:
            ModelError: the function cannot be serialized.
        """
        if not callable(function):
            raise ModelError(f"function: got {type(function).__name__}, allowed is a function f(batch)")
        shipped = serialize("function", function) if self.is_remote else function
        return [result for _, result in self._ask(self._everyone(), lambda part: [("call", (shipped,))], edits=True)]

    # ---- cameras and scans -------------------------------------------------------------------------------------------
    def _shares(self, kind: str, request: Callable[[int, int], Any], chosen: np.ndarray) -> tuple[Any, Iterable[tuple]]:
        empty = SENSED[kind](self._one, request(0, 1), np.zeros(0, int))  # checks the arguments
        of = lambda part: request(*self.starts[part.worker : part.worker + 2].tolist())  # noqa: E731
        found = self._ask(self._spread.parts(chosen), lambda part: [("sensed", (kind, of(part), part.ids))], edits=True)
        return empty, ((self.starts[part.worker], part.at, result) for part, result in found)

    # ---- results -----------------------------------------------------------------------------------------------------
    @property
    def failures(self) -> list[Failure]:
        """Returns, with `record_failures`, copies of all failures with world numbers of this batch, by step."""
        return numbered(self.call(attrgetter("failures")), self.starts)

    def get_data(self, world: int) -> Data:
        return self._of_world("get_data", world)

    def get_model(self, world: int) -> Model:
        return self._of_world("get_model", world)

    def _of_world(self, method: str, world: int) -> Any:
        whole_argument("world", world, 0, self.nworld - 1)
        [part] = self._spread.parts(np.array([world]))
        own = 0 if part.ids is None else int(part.ids[0])
        [(_, result)] = self._ask([part], lambda part: [(method, (own,))], edits=True)
        return result

    # ---- checkpoints -------------------------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        names: dict[str, None] = {}
        for _, found in self._ask(self._everyone(), lambda part: [("kept_names", ())], edits=True):
            names |= dict.fromkeys(found)
        answers = self._ask(self._everyone(), lambda part: [("checkpoint", (tuple(names),))], changes=True)
        return {name: np.concatenate([kept[name] for _, kept in answers]) for name in names}

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        instance("restore", kept, Mapping, "the result of checkpoint()")
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
            rows = {name: peek(self.model, name) for name in self._fields.names} | fields
            self._fields.disown(rows)
            self._answers(everyone, lambda part: [("restore", (names, *(values[key][part.at] for key in names)))], True)
            for name, value in rows.items():
                self._fields.taken(name, value)

        self._run(body)
        self._warn_of_failed()
