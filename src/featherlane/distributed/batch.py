"""`Batch`: worlds of one model, distributed over the NUMA nodes of many machines.

    batch = fl.distributed.Batch(model, 100_000, nodes="10.0.0.1:6379")
    batch.qvel = np.zeros((100_000, model.nv))
    out = batch.rollout(100, control=control, record=("qpos",))

The arrays of a local batch are remote here: reading an attribute gathers a copy, assigning to it scatters the values.
Each world's result is bitwise identical on any machine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane import Batch as Local
from featherlane import Contacts, Data, Model
from featherlane.distributed.calls import Calls, Order
from featherlane.distributed.fields import STATE
from featherlane.distributed.serialization import serialize
from featherlane.distributed.world_assignment import Part
from featherlane.errors import ModelError, UnknownAttributeError, near
from featherlane.extension import (
    DATA,
    Histogram,
    Reduction,
    RolloutRequest,
    assign,
    instance,
    is_mixed,
    one_of,
    regular,
    takes_contacts,
    whole_argument,
)
from featherlane.lanes import Kernel
from featherlane.results import Failure

BINDABLE = dict.fromkeys(DATA.that("shown"))


class Batch(Calls):
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
        timeout: longest wait for a cluster, for free cores on it, and for the restart of a worker [s].

    Reading a state field or an output gathers it from the workers: `batch.qpos` (nworld, nq) is a read-only copy.
    `batch.qpos = x` and `set` send values to the workers.

    If a worker is lost, Ray restarts its process, and the call raises `WorkerLostError`, as all later calls do.
    `restore` sets all worlds to a checkpoint, and the batch continues from there.  The same applies to a call that
    fails in one worker, or is interrupted by a second Ctrl-C.  A first Ctrl-C is raised once all worlds of the call
    are at the same step.

    Attributes:
        nworld, dtype, model: the arguments.
        starts: (nworker + 1,) the first world of each worker, then nworld.
        threads: number of threads of each worker.
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
        timeout: float = 60.0,
    ):
        # checks what all have in common
        one = Local(model, 1, nthread, dtype=dtype, given_contacts=given_contacts, record_failures=record_failures)
        super().__init__(one, nworld, nodes, nthread, record_failures, timeout)

    records_whole = False

    @property
    def models(self) -> tuple[Model, ...]:
        return (self.model,)

    # ---- fields ------------------------------------------------------------------------------------------------------
    def world_shape(self, name: str) -> tuple[int, ...]:
        return self._one.world_shape(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in BINDABLE:
            raise UnknownAttributeError(f"batch has no attribute {name!r}{near(name, BINDABLE)}")
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in STATE:
            raise UnknownAttributeError(f"{name} cannot be set, allowed are the state fields {', '.join(STATE)}")
        self.set(name, value)

    def get(self, name: str, *, ids: ArrayLike | None = None) -> np.ndarray:
        own, chosen = self._one.bind(name), self._ids(ids)  # the local batch raises the errors of a name
        out = np.empty((len(chosen), *own.shape[1:]), own.dtype)
        for part, rows in self._ask(self._spread.parts(chosen), lambda p: ("get", {"name": name, "ids": p.ids})):
            out[part.at] = rows
        if DATA[name].dtype == "int64":  # a count
            out = out.astype(np.int64)
        out.flags.writeable = False
        return out

    def bind(self, name: str) -> np.ndarray:
        self._one.bind(name)
        answers = self._ask(self._everyone(), lambda part: ("bind", {"name": name}), True)
        self._bound.add(name)
        rows = np.concatenate([own for _, own in answers])
        rows.flags.writeable = False
        return rows

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
        rows = np.empty((len(chosen), *getattr(self._one, name).shape[1:]), DATA[name].stored_as(self.dtype))
        assign(name, rows, value, mixed=is_mixed(name))
        self._ask(
            self._spread.parts(chosen),
            lambda part: ("set", {"name": name, "rows": rows[part.at], "ids": part.ids}),
            True,
        )

    def expand(self, name: str) -> np.ndarray:
        self._one.expand(name)  # or raises its error
        return self._fields.lend(name.replace("opt.", "opt_"))

    def set_const(self, ids: ArrayLike | None = None) -> None:
        chosen = self._ids(ids)
        self._one.set_const([])
        self._recompute(chosen, self._one.dependent_fields)

    def _recompute(self, chosen: np.ndarray, names: list[str], variant: dict[str, Any] | None = None) -> None:
        """Recomputes dependent fields in the workers, or sets a variant of worlds; takes over these fields."""
        ids_of = {part.worker: part.ids for part in self._spread.parts(chosen)}
        none = np.zeros(0, np.int64)
        # workers without these worlds need the same per-world fields, too
        answers = self._ask(
            self._everyone(),
            lambda part: ("set_const", {"ids": ids_of.get(part.worker, none), "names": names, "variant": variant}),
            changes=True,
        )
        for name in names:
            self._fields.take(name, np.concatenate([own[name] for _, own in answers]))

    def set_variant(self, geom: str, variant: str, *, ids: ArrayLike | None = None, inertia: bool = True) -> None:
        chosen = self._ids(ids)
        names = [*self._one.variant_values(geom, variant, inertia)]
        for name in names:
            self.expand(name)
        self._one.set_const([])
        names += [name for name in self._one.dependent_fields if name not in names]
        self._recompute(chosen, names, {"geom": geom, "variant": variant, "inertia": inertia})

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, *, ids: ArrayLike | None = None, stage: str | None = None) -> None:
        self._one.step(nstep, ids=[], stage=stage)  # checks the arguments
        nstep, chosen = int(nstep), self._ids(ids)
        self._advance(nstep, chosen, lambda part, start, n: ("step", {"nstep": n, "ids": part.ids, "stage": stage}))

    def forward(self, ids: ArrayLike | None = None) -> None:
        self._ask(self._spread.parts(self._ids(ids)), lambda part: ("forward", {"ids": part.ids}), True)

    def reset(
        self, ids: ArrayLike | None = None, *, keyframe: int | str | ArrayLike | None = None, forward: bool = True
    ) -> None:
        self._one.reset([], forward=forward)  # checks the argument
        chosen = self._ids(ids)
        keys = self.model.keyframe_numbers(keyframe, len(chosen))
        keys = np.full(len(chosen), -1) if not len(keys) else np.array(keys)
        self._ask(
            self._spread.parts(chosen),
            lambda part: ("reset", {"ids": part.ids, "keyframe": keys[part.at], "forward": forward}),
            changes=True,
        )

    def _rollout(self, request: RolloutRequest) -> Any:
        if request.is_driven:
            return self._driven(request)
        how, names, result, controls = request.reduction, request.names, request.result, self._controls(request)
        pieces: defaultdict[str, list[np.ndarray]] = defaultdict(list)  # of reduced recordings

        def order(part: Part, start: int, n: int) -> Order:
            own = controls
            if isinstance(controls, dict):
                own = {name: np.ascontiguousarray(rows[part.at, start : start + n]) for name, rows in controls.items()}
            first, last = self.starts[part.worker : part.worker + 2].tolist()
            record = (*names, *(camera.of_worlds(self.nworld, first, last) for camera in request.cameras))
            return "rollout", {"nstep": n, "control": own, "record": record, "ids": part.ids, "reduction": how}

        def take(start: int, n: int, answers: list[tuple[Part, dict[str, Any]]]) -> None:
            for name in names if how is not None else result:
                if how is not None:
                    pieces[name].append(how.merged([rows[name] for _, rows in answers]))
                    continue
                for part, rows in answers:
                    result[name][part.at, start : start + n] = rows[name]

        nbytes = sum(a.itemsize * math.prod(a.shape[2:]) for a in result.values()) + self._one.ctrl.nbytes
        self._advance(request.nstep, request.chosen, order, take, nbytes)
        return result if how is None else {name: np.concatenate(pieces[name]) for name in names}

    def _controls(self, request: RolloutRequest) -> Any:
        """Returns the controls of a rollout: arrays for all its worlds by input, a packed kernel, or None."""
        control = request.control
        if isinstance(control, Kernel):
            self._one.rollout(1, control, (), ids=[])  # or raises its error
            return serialize("control", control) if self.is_remote else control
        return None if control is None else request.inputs()

    def _driven(self, request: RolloutRequest) -> Any:
        """Runs a rollout step by step, with controls that a function computes in this process."""
        how, result, record, steps = request.reduction, request.result, (*request.names, *request.cameras), []
        for k in range(request.nstep):
            found = self.rollout(1, request.control_of(k), record, ids=request.chosen, reduce=how and how.how)
            steps += [found] if how is not None else []
            for name, whole in result.items() if how is None else ():
                whole[:, k] = found[name][:, 0]
        return result if how is None else {name: np.concatenate([one[name] for one in steps]) for name in request.names}

    # ---- reductions and functions ------------------------------------------------------------------------------------
    def reduce(self, how: str | Histogram, name: str, *, ids: ArrayLike | None = None) -> np.ndarray:
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
        kind, chosen = Reduction.of(how), self._ids(ids)
        if not len(chosen):
            raise ModelError("ids: got no world, allowed with a reduction is at least one")
        self._one.bind(name)
        answers = self._ask(
            self._spread.parts(chosen), lambda part: ("reduce", {"reduction": kind, "name": name, "ids": part.ids})
        )
        return kind.merged([result for _, result in answers])

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
        return [result for _, result in self._ask(self._everyone(), lambda part: ("call", {"function": shipped}))]

    def _shares(self, kind: str, request: Callable[[int, int], Any], chosen: np.ndarray) -> tuple[Any, Iterable[tuple]]:
        empty = self._one.sense(kind, request(0, 1), ids=[])  # checks the arguments
        of = lambda part: request(*self.starts[part.worker : part.worker + 2].tolist())  # noqa: E731
        found = self._ask(
            self._spread.parts(chosen), lambda part: ("sensed", {"kind": kind, "request": of(part), "ids": part.ids})
        )
        return empty, ((self.starts[part.worker], part.at, result) for part, result in found)

    # ---- user-defined contacts ---------------------------------------------------------------------------------------
    @takes_contacts
    def give_contacts(
        self,
        contacts: Contacts,
        *,
        replace: ArrayLike = False,
        count: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> None:
        """Gives each world user-defined contacts; arguments and errors are those of `featherlane.Batch`."""
        chosen = self._ids(ids)
        rows = self._one.given_rows(contacts, replace=replace, count=count, ids=chosen, expanded=self._fields)
        self._ask(
            self._spread.parts(chosen),
            lambda part: ("given", {"rows": {name: own[part.at] for name, own in rows.items()}, "ids": part.ids}),
            changes=True,
        )

    def clear_given_contacts(self, ids: ArrayLike | None = None) -> None:
        """Removes the given contacts of these worlds and enables contact detection."""
        if self._one.ngiven:
            parts = self._spread.parts(self._ids(ids))
            self._ask(parts, lambda part: ("clear_given_contacts", {"ids": part.ids}), True)

    # ---- worlds and checkpoints --------------------------------------------------------------------------------------
    @property
    def failures(self) -> list[Failure]:
        """Returns, with `record_failures`, copies of all failures with world numbers of this batch, by step."""
        return Failure.numbered(self.call(attrgetter("failures")), self.starts)

    def get_data(self, world: int) -> Data:
        return self._of_world("get_data", world)

    def get_model(self, world: int) -> Model:
        return self._of_world("get_model", world)

    def _of_world(self, method: str, world: int) -> Any:
        whole_argument("world", world, 0, self.nworld - 1)
        [part] = self._spread.parts(np.array([world]))
        own = 0 if part.ids is None else int(part.ids[0])
        [(_, result)] = self._ask([part], lambda part: (method, {"world": own}))
        return result

    def checkpoint(self) -> dict[str, np.ndarray]:
        names: dict[str, None] = {}
        for _, found in self._ask(self._everyone(), lambda part: ("kept_names", {})):
            names |= dict.fromkeys(found)
        answers = self._ask(self._everyone(), lambda part: ("checkpoint", {"names": tuple(names)}))
        return {name: np.concatenate([kept[name] for _, kept in answers]) for name in names}

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        instance("restore", kept, Mapping, "the result of checkpoint()")
        values = {key: regular(f"restore: {key}", kept[key]) for key in kept}
        for key, value in values.items():
            if value.shape[:1] != (self.nworld,):
                raise ModelError(f"restore: {key}: got shape {value.shape}, allowed are rows of {self.nworld} worlds")
        self._one.restore({key: value[:1] for key, value in values.items()})
        fields = {key.removeprefix("model."): value for key, value in values.items() if key.startswith("model.")}
        for name, value in fields.items():
            self.model.check_values(name, value, worlds=True)

        def body() -> None:
            for name in {**dict.fromkeys(self._fields), **fields}:
                self._fields.lend(name)[...] = fields.get(name, getattr(self.model, name))
            self._send_edits()
            everyone = list(self._spread.parts(np.arange(self.nworld)))
            self._exchange(
                [(p, ("restore", {"kept": {key: value[p.at] for key, value in values.items()}})) for p in everyone]
            )

        self._run(body, repairs=True)
