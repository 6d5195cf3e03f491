"""`Batch`: many worlds of one model, stepped side by side in the lanes of the processor.

What lasts is a row per world for each state field, `(nworld, n)` in C order.  A thread takes W worlds, moves their rows
into its workspace, steps there while they are in cache, and writes them back.  Which worlds share a tile never shows in
a result, so worlds with alike contacts are put together for speed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.errors import ModelError, near, warn_of_bad_numbers
from featherlane.lanes import Kernel, processor
from featherlane.model.assign import numbers
from featherlane.model.enums import SENS_E_KINETIC, SENS_E_POTENTIAL, Disable
from featherlane.model.model import Model
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.batch.recorder import Recorder
from featherlane.simulation.batch.worlds import COUNTS, EVOLVING, LASTING, MOCAP, REPORTS, SLEEP_ROWS, Worlds, count
from featherlane.simulation.query.distance import Distances, Pairs
from featherlane.simulation.query.inverse import Accelerations
from featherlane.simulation.query.question import Question
from featherlane.simulation.query.ray import Hits, Rays
from featherlane.simulation.steps import check_inverse
from featherlane.simulation.tile.calls import fields_called_for
from featherlane.simulation.tile.fields import DATA, STATUS, WANTED
from featherlane.simulation.tile.transfer import Plan, Transfer
from featherlane.simulation.tile.work import Work
from featherlane.simulation.tile.workspace import ModelRows, Workspace
from featherlane.simulation.user.control import control_function
from featherlane.simulation.user.function import UserFunction
from featherlane.simulation.user.sensor import fields_read, fill, plain_sensors
from featherlane.simulation.world.data import Data

BAD = STATUS.index("bad_number")
MOST_THREADS = 1024  # each has memory of its own
PIECE_SECONDS = 0.2  # how long an interrupt waits, about
AT_ONCE = 1000  # steps of worlds that run at once before anybody knows how long they take
NAMED = 8  # worlds that a warning names


class Batch(Worlds):
    """nworld worlds of one model.

    Args:
        model: the model; edits take effect at the next call.
        nworld: number of worlds, at least 1.
        nthread: threads, 0 for one for each core.
        dtype: float64 or float32, of the state and of all arithmetic.
        given_contacts: how many contacts `give_contacts` may give to a world, at most.
        record_bad: steps that are kept of each world, so that one that goes wrong can be replayed; 0: none.

    State fields are live arrays: `batch.qpos` (nworld, nq), `qvel`, `act`, `ctrl`, `time` (nworld,), `qacc_warmstart`,
    `qfrc_applied`, `xfrc_applied`, `mocap_pos`, `mocap_quat`, `eq_active`.  Derived fields are bound
    (`bind`) and refreshed by every call that computes them.

    Attributes:
        status: worlds' counts of `contacts_full`, `rows_full`, `bad_number`, `not_converged` and `bad_control`, each
            (nworld,).
        nbad: times each world was reset for bad numbers, (nworld,); the first time is told by a `BadNumberWarning`.
        ncon, solver_niter, solver_residual, solver_gap: of each world's last step, (nworld,).
        failures: with record_bad, a list of `Failure`: steps in which a count of `status` grew, each with the world's
            last states and inputs, which replay to the same bits.  It keeps of each world the first of each cause, and
            64 in all, the oldest; what is taken out makes room (`batch.failures.clear()`).

    Raises:
        TypeError: `model` is no Model.
        ModelError: nworld, nthread, given_contacts or record_bad out of range, an unknown dtype.
    """

    nthread: int
    width: int
    _workspaces: dict[int, list[Workspace]]
    _shared: dict[int, ModelRows]
    _plans: dict[tuple[bool, bool, int], Plan]
    _controls: dict[Kernel, UserFunction]
    _told: bool
    _recorder: Recorder | None
    _at_once: int  # steps of worlds that take PIECE_SECONDS, about
    failures: list[Failure]
    _pool: ThreadPoolExecutor | None
    _lock: threading.Lock
    _pid: int

    def __init__(
        self,
        model: Model,
        nworld: int,
        nthread: int = 0,
        dtype: DTypeLike = "float64",
        given_contacts: int = 0,
        record_bad: int = 0,
    ):
        super().__init__(model, nworld, dtype, given_contacts)
        if count("nthread", nthread, 0) > MOST_THREADS:
            raise ModelError(f"nthread: got {nthread}, allowed is a whole number to {MOST_THREADS}, 0 for all cores")
        self.__dict__["nthread"] = int(nthread) or _cores()
        if count("record_bad", record_bad, 0):
            self.__dict__["_recorder"] = Recorder(self.nworld, int(record_bad))
        self._start()

    def _start(self):
        """What a process or a copy has to make anew: threads, workspaces, the lock."""
        own = self.__dict__
        own.setdefault("_told", False)  # of bad numbers
        own.setdefault("_recorder", None)
        own.setdefault("_at_once", AT_ONCE)
        own["width"] = processor.tile_width(self.dtype)
        own["_lock"], own["_pid"], own["_pool"] = threading.Lock(), os.getpid(), None
        own["_workspaces"], own["_shared"], own["_plans"], own["_controls"] = {}, {}, {}, {}

    def _rows_changed(self) -> None:
        self.__dict__["_plans"] = {}

    def _expansion_changed(self) -> None:
        own = self.__dict__
        own["_workspaces"], own["_shared"], own["_plans"] = {}, {}, {}

    def _worlds_set(self, worlds) -> None:
        recorder = self.__dict__.get("_recorder")
        if recorder is not None:
            recorder.forget(worlds)

    def _found_failures(self) -> list[Failure]:
        if self._recorder is None:
            raise AttributeError(
                "batch has no failures: featherlane.Batch(..., record_bad=n) keeps n steps of each world"
            )
        return self._recorder.failures

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, ids=None) -> None:
        """Advance worlds by nstep time steps.

        An interrupt (Ctrl-C) leaves all worlds of the call at the same step: it is raised when they are, about a fifth
        of a second later at most, or a step of all of them where one takes longer.  `time` says how far they came, and
        the batch goes on from there to the same bits.

        Args:
            nstep: time steps, at least 1.
            ids: the worlds, by number or as a mask; None for all.

        Raises:
            ModelError: nstep below 1, ids out of range or repeated.
            RuntimeError: another thread is in a call of this batch.
        """
        self._run(count("nstep", nstep, 1), self._ids(ids), None)

    def forward(self, ids=None) -> None:
        """Compute all derived fields of the present state, without a step."""
        self._run(0, self._ids(ids), None)

    def reset(self, ids=None, keyframe: int | str | np.ndarray = -1) -> None:
        """Worlds to the model's defaults, or to keyframes; bound outputs follow.

        Args:
            ids: the worlds; None for all.
            keyframe: a keyframe's name or number for all of them, or one number each; -1 for the defaults.

        Raises:
            ModelError: no such keyframe.
        """
        chosen = self._ids(ids)
        keys = self._keyframes(keyframe, len(chosen))
        with self._entered():
            self._set_defaults(chosen)
            for k in np.unique(keys[keys >= 0]):
                at, model = chosen[keys == k], self.model
                self._arrays["time"][at] = model.key_time[k]
                for name in ("qpos", "qvel", "act", "ctrl", "plastic"):
                    self._arrays[name][at] = getattr(model, f"key_{name}")[k]
                for name, key in (("mocap_pos", "key_mpos"), ("mocap_quat", "key_mquat")):
                    shape = self._arrays[name].shape[1:]
                    self._arrays[name][at] = getattr(model, key)[k].reshape(shape)
        if self._bound:
            self.forward(chosen)

    def rollout(self, nstep: int, control=None, record=("qpos",), ids=None, out=None) -> dict[str, np.ndarray]:
        """Advance worlds by nstep steps and record fields after each.

        An interrupt leaves worlds as one of `step` does; what was recorded until then is in `out`.

        Args:
            nstep: time steps, at least 1.
            control: (n, nstep, nu) controls for the n worlds of the call, or (nstep, nu) for all of them; a function
                `control(batch, step)`, called between steps, that gives what broadcasts to (n, nu); a kernel
                `control(m, d)`, compiled and called within each step, once positions and velocities are known, which
                sets `d.ctrl` (or `d.qfrc_applied`, `d.xfrc_applied`); or None to leave `ctrl` as it is.
            record: names of state or derived fields.
            ids: the worlds; None for all.
            out: arrays to record into, by name, of the shapes and dtype returned; missing ones are made.

        Returns:
            name -> (n, nstep, ...).  State is that after the step, derived fields those of the state before it.

        Raises:
            ModelError: shapes, names or counts that do not fit; a kernel that cannot be compiled, or fails in a trial
                call, see `set_user_actuator`.
            InstallationError: a kernel is given and there is no compiler.

        Source: MuJoCo mjcb_control (a kernel; under RK4 it is called in each of the four stages, as there).
        """
        nstep, chosen = count("nstep", nstep, 1), self._ids(ids)
        n, names = len(chosen), _field_names("record", record)
        if not isinstance(out, Mapping | None):
            raise ModelError(f"out: got {type(out).__name__}, allowed is a dict of arrays by name")
        result = self._recordings(names, (n, nstep), out or {})
        transfers = {"control": [], "record": [Transfer(name, rows) for name, rows in result.items()]}
        kernel = None
        if isinstance(control, Kernel):
            kernel, control = self._control_kernel(control), None
            transfers["store"] = [Transfer(name, self._rows_of(name)) for name in kernel.sets()]
        elif callable(control):
            return self._driven(control, nstep, chosen, result)
        if control is not None:
            control = self._control(control, (n, nstep, self.model.nu))
            transfers["control"].append(Transfer("ctrl", control))
        reads = self._reads(names, (n, nstep))
        transfers["record"] += [Transfer(name, array) for name, array in reads.items()]
        self._run(nstep, chosen, transfers, kernel)
        if "sensordata" in names and plain_sensors(self.model):
            fill(self.model, result["sensordata"], lambda name: reads[name])
        if control is not None:
            self._arrays["ctrl"][chosen] = control[:, -1]
        return result

    def _recordings(self, names: list[str], lead: tuple[int, int], out) -> dict[str, np.ndarray]:
        """Arrays to record into, checked where they are given."""
        spare, result = sorted(set(out) - set(names)), {}
        if spare:
            raise ModelError(f"out: {spare[0]!r} is not recorded{near(spare[0], names)}")
        for name in names:
            self._check_bindable("record", name)
            shape = (*lead, *DATA[name].dims(self._sizes))
            given = out.get(name)
            result[name] = np.empty(shape, self.dtype) if given is None else self._recordable(name, given, shape)
        return result

    def _driven(self, control, nstep: int, chosen: np.ndarray, result) -> dict[str, np.ndarray]:
        """A rollout of one step after the other, with controls that a function computes between them."""
        shape = (len(chosen), self.model.nu)
        for k in range(nstep):
            given = control(self, k)
            try:
                values = np.broadcast_to(np.asarray(given, self.dtype), shape)
            except (TypeError, ValueError):
                what = f"shape {np.shape(given)}" if isinstance(given, np.ndarray) else type(given).__name__
                raise ModelError(f"control: step {k} gave {what}, allowed is what broadcasts to {shape}") from None
            for name, rows in self.rollout(1, values[:, None], list(result), chosen).items():
                result[name][:, k] = rows[:, 0]
        return result

    def _control_kernel(self, control: Kernel) -> UserFunction:
        """The kernel, checked when it is first used with the model as it is now."""
        known = self._controls.get(control)
        if known is None:
            known = self._controls[control] = control_function(self.model, control)
        return known

    def _rows_of(self, name: str) -> np.ndarray:
        """The rows of an input, made where nobody has asked for them yet."""
        getattr(self, name)
        return self._arrays[name]

    def _reads(self, names, lead: tuple[int, int]) -> dict[str, np.ndarray]:
        """Arrays for what the user's sensors read in a rollout that records sensordata."""
        read = fields_read(self.model) - {"sensordata"} if "sensordata" in names else set()
        return {name: np.empty((*lead, *DATA[name].dims(self._sizes)), self.dtype) for name in read}

    def _control(self, control, shape) -> np.ndarray:
        """Controls of a rollout, checked: of each world, or the same for all."""
        given = numbers("control", control, f"are numbers {shape} or {shape[1:]}")
        if given.shape not in (shape, shape[1:]):
            raise ModelError(f"control: got shape {given.shape}, allowed is {shape} or {shape[1:]}")
        return np.ascontiguousarray(np.broadcast_to(given, shape), self.dtype)

    def _recordable(self, name: str, given, shape) -> np.ndarray:
        """An array to record into, checked."""
        allowed = f"allowed is a writable C-order array of {self.dtype} {shape}"
        if not isinstance(given, np.ndarray):
            raise ModelError(f"out[{name!r}]: got {type(given).__name__}, {allowed}")
        fits = given.shape == shape and given.dtype == self.dtype
        if not (fits and given.flags.c_contiguous and given.flags.writeable):
            raise ModelError(f"out[{name!r}]: got {given.dtype} {given.shape}, {allowed}")
        return given

    def inverse(self, qacc: ArrayLike | None = None, ids=None) -> np.ndarray:
        """Inverse dynamics: the external force that gives each world an acceleration in its present state.

        Args:
            qacc: what broadcasts to (n, nv) [m/s^2, rad/s^2] for the n worlds of the call; None for the accelerations
                of forward dynamics, so that the result is what is applied and what actuators give.
            ids: the worlds; None for all.

        Returns:
            qfrc_inverse (n, nv) [N, N m], as `fl.inverse` has it.  State and bound outputs stay as they are.

        Raises:
            ModelError: a shape that does not fit, numbers that are none; as `fl.inverse` does.
        """
        check_inverse(self.model)
        chosen = self._ids(ids)
        return self._ask(Accelerations(self.model, len(chosen), self.dtype, qacc), chosen)

    def ray(
        self,
        point: ArrayLike,
        direction: ArrayLike,
        geomgroup: ArrayLike | None = None,
        flg_static: bool = True,
        bodyexclude: ArrayLike | str | None = -1,
        cutoff: float = np.inf,
        ids=None,
    ) -> Hits:
        """Where rays meet the first surface of a geom, in each world's present state.

        Args:
            point: where rays start [m]: what broadcasts to (n, nray, 3) for the n worlds of the call, (nray, 3) for the
                same rays in every world, (3,) for one.
            direction: where they go, of any length; alike.
            geomgroup: six flags, which groups of geoms are seen; None for all.
            flg_static: whether geoms that are welded to the world are seen.
            bodyexclude: a body whose geoms are not seen, by name or number, or numbers (n, nray); -1 for none.
            cutoff: surfaces from this distance on are not seen [m].
            ids: the worlds; None for all.

        Returns:
            `Hits`: distance (n, nray) in lengths of the direction, geom (n, nray), outward normal (n, nray, 3); -1, -1
            and zeros for a ray that meets nothing.  State and bound outputs stay as they are.

        Raises:
            ModelError, UnknownNameError: as `fl.ray` does.
        """
        chosen = self._ids(ids)
        rays = Rays(self.model, len(chosen), self.dtype, point, direction, geomgroup, flg_static, bodyexclude, cutoff)
        return self._ask(rays, chosen)

    def geom_distance(self, geom1: ArrayLike, geom2: ArrayLike, distmax: float = np.inf, ids=None) -> Distances:
        """Signed distances of pairs of geoms and their nearest points, in each world's present state.

        Args:
            geom1, geom2: geoms by name or number: one, or arrays that broadcast to (n, npair) for the n worlds of the
                call, (npair,) for the same pairs in every world.
            distmax: distances from this on are not looked for [m].
            ids: the worlds; None for all.

        Returns:
            `Distances`: distance (n, npair) [m] and fromto (n, npair, 6) [m]; distmax and zeros for a pair that is
            farther apart.  State and bound outputs stay as they are.

        Raises:
            ModelError, UnknownNameError: as `fl.geom_distance` does.
        """
        chosen = self._ids(ids)
        return self._ask(Pairs(self.model, len(chosen), self.dtype, geom1, geom2, distmax), chosen)

    def _ask(self, question: Question, chosen: np.ndarray):
        """The answer of the chosen worlds in their present states, which stay as they are."""
        if len(chosen):
            with self._entered():
                workspaces = self._prepare()
                for workspace in workspaces:
                    question.enter(workspace)
                transfers = {"load": self._load(question.reads), **question.transfers()}
                plan = Plan(workspaces, transfers, self.nworld, self._wanted(set()), question.loop)
                self._begun(plan, question.number, chosen).finish()
        return question.answer()

    def _run(self, nstep: int, chosen: np.ndarray, extra, control: UserFunction | None = None) -> None:
        """Steps of the chosen worlds, or one forward pass; with a control kernel that each step calls."""
        if not len(chosen):
            return
        with self._entered():
            self._keep_sleep()
            if "sensordata" in self._bound:
                for name in fields_read(self.model) - {"sensordata"}:
                    self.bind(name)
            if nstep == 0 or (self._recorder is None and nstep * len(chosen) <= self._at_once):
                interrupt = self._advance(nstep, chosen, extra, control)
                if interrupt is not None:
                    raise interrupt
            else:
                self._advance_in_pieces(nstep, chosen, extra, control)
        if nstep and not self._told and self._arrays["warning"][:, BAD].any():
            self._tell_of_bad()

    def _advance_in_pieces(self, nstep: int, chosen: np.ndarray, extra, control: UserFunction | None) -> None:
        """The steps of a long call, or of one that is recorded; between pieces all worlds are at the same step."""
        recorder, done = self._recorder, 0
        while done < nstep:
            n = self._piece(nstep - done, len(chosen)) if recorder is None else recorder.piece(nstep - done, self)
            part, start = _part(extra, done, n, nstep), time.perf_counter()
            if recorder is not None:
                recorder.before(self, chosen, (part or {}).get("control", []), control.function if control else None)
            try:
                interrupt = self._advance(n, chosen, part, control)
                if recorder is not None:
                    recorder.after(self, chosen, n)
            except BaseException:
                self._worlds_set(chosen)
                raise
            if interrupt is not None:
                raise interrupt
            done += n
            seconds = time.perf_counter() - start
            self.__dict__["_at_once"] = max(1, int(n * len(chosen) * PIECE_SECONDS / max(seconds, 1e-9)))

    def _piece(self, nstep: int, nworld: int) -> int:
        """How many of nstep steps some worlds take at once."""
        return min(nstep, max(1, self._at_once // nworld))

    def _advance(self, nstep: int, chosen: np.ndarray, extra, control) -> KeyboardInterrupt | None:
        """All worlds of a call take nstep steps, or a forward pass, whatever comes in between.

        Returns:
            The interrupt that came, to be raised when all is in order.
        """
        bad, works, driven, interrupt = self._arrays["nbad"][chosen, 0], [], [], None
        try:
            for width, part in self._parts(chosen):
                workspaces = self._prepare(width)
                if control:
                    driven += workspaces
                    _set_control(workspaces, control)
                works.append(self._begun(self._plan(nstep, extra, width, control), nstep, chosen, part))
            # what follows may be interrupted anywhere, and done again
            while True:
                try:
                    for work in works:
                        work.finish()
                    self._after(chosen, bad)
                    return interrupt
                except KeyboardInterrupt as error:
                    interrupt = error
        finally:
            _set_control(driven, None)

    def _after(self, chosen: np.ndarray, bad: np.ndarray) -> None:
        """What follows the steps of a call: sensors of the user, and inputs of worlds that were reset."""
        if "sensordata" in self._bound and plain_sensors(self.model):
            self._measure(chosen)
        fresh = chosen[self._arrays["nbad"][chosen, 0] > bad]
        if len(fresh):
            self._drop_inputs(fresh)

    def _tell_of_bad(self) -> None:
        """Warn of worlds whose numbers turned bad, once."""
        self.__dict__["_told"] = True
        worlds = np.flatnonzero(self._arrays["warning"][:, BAD])
        more = f" and {len(worlds) - NAMED} more" * (len(worlds) > NAMED)
        who = f"world {worlds[0]}" if len(worlds) == 1 else f"worlds {', '.join(map(str, worlds[:NAMED]))}{more} each"
        warn_of_bad_numbers(who, not self.model.opt_disableflags & Disable.AUTORESET, "batch", 3)

    def _measure(self, chosen: np.ndarray) -> None:
        """The user's sensors, in the rows of the chosen worlds."""
        if not self.model.opt_disableflags & Disable.SENSOR:
            values = self._bound["sensordata"][chosen]
            fill(self.model, values, lambda name: getattr(self, name)[chosen])
            self._bound["sensordata"][chosen] = values

    def _parts(self, chosen: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Widths of tiles, and the worlds that step in them.

        A pile of bodies has few couplings in common with other piles: side by side most lanes would be empty, and it is
        2.3 times as fast alone.  (Kernels for one world are there in float64 only.)
        """
        piled = self._arrays["ordered"][chosen, 0] > 0
        if not piled.any() or self.width == 1 or self.dtype != np.float64:
            return [(self.width, chosen)]
        parts = [(self.width, chosen[~piled]), (1, chosen[piled])]
        return [(width, part) for width, part in parts if len(part)]

    def _begun(self, plan: Plan, nstep: int, chosen: np.ndarray, part: np.ndarray | None = None) -> Work:
        """A plan that is ready to loop over its tiles."""
        plan.workspaces[0].calls.require(plan.loop)
        order = self._arrange(chosen if part is None else part, plan.width)
        plan.begin(nstep, order, self._places(chosen, order) if plan.has_places else order)
        return Work(plan, -(-len(order) // plan.width), self.nthread, self._threads)

    def _places(self, chosen: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Where worlds stand in the list of a call, which may name all of them in an order of its own."""
        if len(chosen) == self.nworld and (chosen[1:] > chosen[:-1]).all():
            return order
        return np.argsort(chosen)[np.searchsorted(np.sort(chosen), order)]

    def _entered(self):
        return _Entry(self)

    def _threads(self) -> ThreadPoolExecutor:
        pool = self._pool
        if pool is None:
            pool = self.__dict__["_pool"] = ThreadPoolExecutor(self.nthread, thread_name_prefix="featherlane")
        return pool

    def _prepare(self, width: int | None = None) -> list[Workspace]:
        """Workspaces for the fields as they are asked for now, with the model as it is now; one for each thread."""
        width = width or self.width
        if width not in self._workspaces:
            shared = ModelRows(self.model, width, self.dtype)
            names = list(self._expanded)
            self._shared[width] = shared
            self._workspaces[width] = [
                Workspace(self.model, width, self.dtype, shared.own(names) if names else shared, self.ngiven)
                for _ in range(self.nthread)
            ]
        shared = self._shared[width]
        shared.refresh()
        self._check_edits()
        for w in self._workspaces[width]:
            if w.rows is not shared:
                w.rows.refresh_sizes()
            w.calls.connect()
        return self._workspaces[width]

    def _arrange(self, chosen: np.ndarray, width: int) -> np.ndarray:
        """Worlds in the order in which they fill tiles: those that touched alike in their last step together."""
        if len(chosen) <= width:
            return chosen
        return np.ascontiguousarray(chosen[np.lexsort(self._arrays["signature"][chosen].T[::-1])])

    def _plan(self, nstep: int, extra, width: int, control: UserFunction | None = None) -> Plan:
        """The transfers of a call; those of plain steps and forward passes are kept until the fields change."""
        forward, recorder = nstep == 0, self._recorder if nstep > 1 else None
        key = forward, recorder is not None, width
        if extra is None and key in self._plans:
            return self._plans[key]
        load = self._load((*LASTING, *COUNTS))
        # a world that is reset has its mocap bodies moved, and knows best where to
        kept = [n for n in (*EVOLVING, *SLEEP_ROWS, *MOCAP) if n in self._arrays and not forward]
        store = [Transfer(n, self._arrays[n]) for n in (*kept, *REPORTS)]
        store += [Transfer(n, a) for n, a in self._bound.items()]
        asked = set(self._bound) | {t.field for t in (extra or {}).get("record", ())}
        wanted = self._wanted(asked | (control.fields if control else set()))
        record = (extra or {}).get("record", []) + (recorder.written(self) if recorder else [])
        store += (extra or {}).get("store", [])
        transfers = {"control": (extra or {}).get("control", []), "record": record, "load": load, "store": store}
        plan = Plan(self._workspaces[width], transfers, self.nworld, wanted)
        if extra is None:
            self._plans[key] = plan
        return plan

    def _wanted(self, asked: set[str]) -> dict[str, int]:
        """What a step computes for the outputs that are asked for, and for histories of sensors, which are state."""
        sensors = "sensordata" in asked or bool((self.model.sensor_history[:, 0] > 0).any())
        asked = asked | fields_called_for(self.model, sensors)
        by_sensors = sensors and bool(np.isin(self.model.sensor_type, (SENS_E_POTENTIAL, SENS_E_KINETIC)).any())
        wanted = {size: not asked.isdisjoint(names) for size, names in WANTED.items()}
        wanted |= {"want_sensors": sensors, "want_frames": sensors or wanted["want_frames"]}
        wanted["want_all"] |= by_sensors
        return {name: int(value) for name, value in wanted.items()}

    def _load(self, names) -> list[Transfer]:
        """Transfers of fields that the batch keeps, and of the model's that differ by world, into tiles."""
        load = [Transfer(n, self._arrays[n]) for n in names if n in self._arrays]
        return load + [Transfer(n, a, True) for n, a in self._expanded.items()]

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def __getstate__(self):
        made_anew = ("_lock", "_pid", "_pool", "_workspaces", "_plans", "_shared", "_controls", "width")
        return {k: v for k, v in self.__dict__.items() if k not in made_anew}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._start()

    def get_data(self, world: int):
        """One world as an `fl.Data` in float64, forward computed."""
        w = self._world(world)
        data = Data(self.get_model(world), self.ngiven)
        for name in LASTING:
            if name in self._arrays:
                data.workspace.arrays[name][: self._arrays[name][w].size, 0] = self._arrays[name][w].reshape(-1)
        data.forward()
        return data

    def __repr__(self) -> str:
        return f"Batch({self.model!r}, nworld={self.nworld}, nthread={self.nthread}, dtype={self.dtype.name})"


class _Entry:
    """One call at a time: a second thread is told, a fork starts its own threads."""

    def __init__(self, batch: Batch):
        self.batch = batch

    def __enter__(self):
        if self.batch._pid != os.getpid():
            self.batch._start()
        if not self.batch._lock.acquire(blocking=False):
            raise RuntimeError("another thread is in a call of this batch; give each thread a batch of its own")

    def __exit__(self, *error):
        self.batch._lock.release()


def _set_control(workspaces: list[Workspace], control: UserFunction | None) -> None:
    """Let steps call a control kernel, or none."""
    for w in workspaces:
        w.record.set_size("user_control", w.calls.address(control) if control else 0)


def _part(extra, start: int, n: int, nstep: int):
    """The transfers of n steps of a call of nstep steps."""
    if extra is None or n == nstep:
        return extra
    per_step = {
        kind: [t._replace(array=t.array[:, start : start + n]) for t in extra.get(kind, ())]
        for kind in ("control", "record")
    }
    return extra | per_step


def _field_names(call: str, given) -> list[str]:
    """Names of fields, one or several."""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"{call}: got {name!r}, allowed are names of fields")
    return names


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
