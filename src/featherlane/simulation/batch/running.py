"""How calls of a batch run: threads, workspaces, plans of what goes into tiles, pieces that an interrupt waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from featherlane.errors import warn_of_bad_numbers
from featherlane.lanes import Kernel, processor
from featherlane.lanes.cores import cores
from featherlane.lanes.record import aligned
from featherlane.model.arguments import count
from featherlane.model.enums import SENS_E_KINETIC, SENS_E_POTENTIAL, Disable
from featherlane.model.fields import MODEL
from featherlane.model.model import Model
from featherlane.model.status import BAD_NUMBER
from featherlane.simulation.batch.call import AT_ONCE, Share, run
from featherlane.simulation.batch.order import TileOrder
from featherlane.simulation.batch.recorder import Recorder
from featherlane.simulation.batch.worlds import (
    COUNTS,
    DROPPED,
    EVOLVING,
    LASTING,
    MOCAP,
    REPORTS,
    SLEEP_ROWS,
    WorldRows,
)
from featherlane.simulation.query.question import Question
from featherlane.simulation.tile.calls import fields_called_for
from featherlane.simulation.tile.fields import WANTED
from featherlane.simulation.tile.team import Team
from featherlane.simulation.tile.transfer import Plan, Transfer, transfers
from featherlane.simulation.tile.turn import Turn, hold
from featherlane.simulation.tile.work import work
from featherlane.simulation.tile.workspace import ModelRows, Workspace
from featherlane.simulation.user.function import UserFunction
from featherlane.simulation.user.sensor import fields_read, fill, plain_sensors

MOST_THREADS = 1024  # each has memory of its own
NAMED = 8  # worlds that a warning names


class Running(WorldRows):
    """Worlds that go through tiles, one call at a time; the arguments are those of `Batch`."""

    nthread: int
    width: int
    _workspaces: dict[int, list[Workspace]]
    _shared: dict[int, ModelRows]
    _plans: dict[tuple[bool, bool, int], Plan]
    _orders: dict[int, TileOrder]
    _controls: dict[Kernel, UserFunction]
    _told: bool
    _recorder: Recorder | None
    _at_once: int  # steps of worlds that take PIECE_SECONDS, about
    _team: Team
    _turn: Turn
    _memory: np.ndarray | None
    _watcher: Callable[[], None] | None  # called when all worlds of a call are at the same step again

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
        self.__dict__["nthread"] = count("nthread", nthread, 0, MOST_THREADS) or cores()
        if count("record_bad", record_bad, 0):
            self.__dict__["_recorder"] = Recorder(self.nworld, int(record_bad))
        self._start()

    def _start(self):
        """Creates what a copy does not share: threads, workspaces, the turn."""
        own = self.__dict__
        own.setdefault("_told", False)  # of bad numbers
        own.setdefault("_recorder", None)
        own.setdefault("_at_once", AT_ONCE)
        own["width"], own["_watcher"] = processor.tile_width(self.dtype), None
        own["_turn"], own["_team"] = Turn("batch"), Team(self.nthread)
        own["_memory"] = None
        own["_workspaces"], own["_shared"], own["_plans"], own["_controls"] = {}, {}, {}, {}
        own["_orders"] = {}

    def _rows_changed(self) -> None:
        super()._rows_changed()
        self.__dict__["_plans"] = {}

    def _expansion_changed(self) -> None:
        own = self.__dict__
        own["_workspaces"], own["_shared"], own["_plans"] = {}, {}, {}

    def _worlds_set(self, worlds) -> None:
        recorder = self.__dict__.get("_recorder")
        if recorder is not None:
            recorder.forget(worlds)

    # ---- for programs that show or run a batch of a user -------------------------------------------------------------
    @property
    def is_busy(self) -> bool:
        """Is a call under way?"""
        return self._turn.is_held

    def mute(self) -> None:
        """Emits no BadNumberWarning from now on: the caller reports what `status` counts."""
        self.__dict__["_told"] = True

    def watch(self, function: Callable[[], None] | None) -> None:
        """Calls a function at the end of each call, in the thread of that call; None for no function."""
        self.__dict__["_watcher"] = function

    @property
    def pair_memory(self) -> np.ndarray:
        """What each world remembers of its pairs, (nworld, n); it saves time, and changes no result."""
        return self._remembered()

    # ---- a call ------------------------------------------------------------------------------------------------------
    def query(self, question: Question, chosen: np.ndarray) -> Any:
        """Returns the answer to a question about the present states of worlds, which stay as they are.

        Args:
            question: of `featherlane.simulation.query`, for as many worlds.
            chosen: (n,) numbers of the worlds.
        """
        if len(chosen):
            hold((self._turn,), self._compute, question, chosen)
        return question.answer()

    def _compute(self, question: Question, chosen: np.ndarray) -> None:
        """Let tiles answer a question."""
        workspaces = self._prepare()
        for workspace in workspaces:
            question.enter(workspace)
        kinds = {"load": self._load(question.reads), "control": transfers(question.loop, question.brought())}
        kinds["record"] = transfers(question.loop, question.taken())
        plan = Plan(workspaces, kinds, self.nworld, self._wanted(set()), question.loop)
        work([self._begun(plan, question.number, chosen)], self._team)

    def _run(self, nstep: int, chosen: np.ndarray, extra, control: UserFunction | None = None) -> None:
        """Steps of the chosen worlds, or one forward pass; with a control kernel that each step calls."""
        if not len(chosen):
            return
        run(self, nstep, [Share(self, chosen, extra, control)])
        if nstep:
            self._tell_of_bad()

    def _ready(self) -> None:
        """Rows of what a call may need."""
        self._keep_sleep()
        if "sensordata" in self._bound:
            for name in fields_read(self.model) - {"sensordata"}:
                self.bind(name)
        self.__dict__["_computed"] = True

    def _begin(self, nstep: int, chosen: np.ndarray, extra, control: UserFunction | None) -> list[tuple[Plan, int]]:
        """Plans that are ready to loop over their tiles, and how many there are of each."""
        begun = []
        for width, part in self._parts(chosen):
            workspaces = self._prepare(width)
            begun.append(self._begun(self._plan(nstep, extra, width, control), nstep, chosen, part))
            for w in workspaces if control else ():
                w.record.set_size("user_control", w.calls.address(control))
        return begun

    def _after(self, chosen: np.ndarray) -> None:
        """Evaluates user-defined sensors in plain Python and notifies the watcher, after the steps of a call."""
        if "sensordata" in self._bound and plain_sensors(self.model):
            self._measure(chosen)
        if self._watcher is not None:
            self._watcher()

    def _tell_of_bad(self, first: int = 0) -> None:
        """Warn of worlds whose numbers turned bad, once; they are numbered from `first` on."""
        if self._told or not self._arrays["warning"][:, BAD_NUMBER].any():
            return
        self.__dict__["_told"] = True
        worlds = first + np.flatnonzero(self._arrays["warning"][:, BAD_NUMBER])
        reset = bool(self._arrays["nbad"].any())
        more = f" and {len(worlds) - NAMED} more" * (len(worlds) > NAMED)
        who = f"world {worlds[0]}" if len(worlds) == 1 else f"worlds {', '.join(map(str, worlds[:NAMED]))}{more} each"
        warn_of_bad_numbers(who, reset, "batch", 3)

    def _measure(self, chosen: np.ndarray) -> None:
        """The user's sensors, in the rows of the chosen worlds."""
        if not self.model.opt_disableflags & Disable.SENSOR:
            values = self._bound["sensordata"][chosen]
            cutoffs = self._expanded.shared_or_own("sensor_cutoff", chosen)
            fill(self.model, values, lambda name: getattr(self, name)[chosen], cutoffs)
            self._bound["sensordata"][chosen] = values

    def _parts(self, chosen: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Widths of tiles, and the worlds that step in them.

        A pile of bodies has few couplings in common with other piles: side by side most lanes would be empty, and it is
        2.3 times as fast alone.  So is, 1.2 to 1.4 times, a world without mates in its tile.  (Kernels for one world
        are there in float64 only.)
        """
        if self.width == 1 or self.dtype != np.float64:
            return [(self.width, chosen)]
        alone = self._arrays["ordered"][chosen, 0] > 0
        if np.count_nonzero(~alone) % self.width == 1:
            alone[np.flatnonzero(~alone)[-1]] = True
        parts = [(self.width, chosen[~alone]), (1, chosen[alone])]
        return [(width, part) for width, part in parts if len(part)]

    def _begun(self, plan: Plan, nstep: int, chosen: np.ndarray, part: np.ndarray | None = None) -> tuple[Plan, int]:
        """A plan that is ready to loop over its tiles, and how many there are."""
        plan.workspaces[0].calls.require(plan.loop)
        order = self._arrange(chosen if part is None else part, plan.width, nstep)
        plan.begin(nstep, order, self._places(chosen, order) if plan.has_places else order)
        return plan, -(-len(order) // plan.width)

    def _places(self, chosen: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Where worlds stand in the list of a call, which may name all of them in an order of its own."""
        if len(chosen) == self.nworld and (chosen[1:] > chosen[:-1]).all():
            return order
        return np.argsort(chosen)[np.searchsorted(np.sort(chosen), order)]

    def _prepare(self, width: int | None = None) -> list[Workspace]:
        """Workspaces for the fields as they are asked for now, with the model as it is now; one for each thread."""
        width, in_use = width or self.width, self._expanded.in_use()
        if width not in self._workspaces:
            shared = self._shared[width] = ModelRows(self.model, width, self.dtype)
            names = list(self._expanded)
            self._workspaces[width] = self._team.build(
                lambda: Workspace(
                    self.model, width, self.dtype, shared.own(names, in_use) if names else shared, self.ngiven
                )
            )
        shared = self._shared[width]
        shared.refresh()
        self._check_edits()
        for w in self._workspaces[width]:
            if w.rows is not shared:
                w.rows.refresh_sizes(in_use)
            w.calls.connect()
        return self._workspaces[width]

    def _arrange(self, chosen: np.ndarray, width: int, nstep: int) -> np.ndarray:
        """Worlds in the order in which they fill tiles: those that touched alike in their last step together."""
        if width == 1 or len(chosen) <= width:
            return chosen
        signature = self._arrays["signature"]
        if width not in self._orders:
            self._orders[width] = TileOrder(self.nworld, signature.shape[1], width)
        return self._orders[width].of(chosen, signature, nstep)

    def _plan(self, nstep: int, extra, width: int, control: UserFunction | None = None) -> Plan:
        """The transfers of a call; those of plain steps and forward passes are kept until the fields change."""
        forward, recorder = nstep == 0, self._recorder if nstep > 1 else None
        key = forward, recorder is not None, width
        if extra is None and key in self._plans:
            return self._plans[key]
        load = self._load((*LASTING, *COUNTS))
        # inputs are stored, too: a rollout sets controls, and a world that the engine resets clears its inputs
        lasts = (*EVOLVING, *SLEEP_ROWS, *MOCAP, *DROPPED)
        kept = [n for n in lasts if n in self._arrays and not forward]
        store = [Transfer(n, self._arrays[n]) for n in (*kept, *REPORTS)]
        store += [Transfer(n, a) for n, a in self._bound.items()]
        asked = set(self._bound) | {t.field for t in (extra or {}).get("record", ())}
        wanted = self._wanted(asked | (control.fields if control else set()))
        record = (extra or {}).get("record", []) + (recorder.written(self) if recorder else [])
        store += (extra or {}).get("store", [])
        transfers = {"control": (extra or {}).get("control", []), "record": record, "load": load, "store": store}
        plan = Plan(self._workspaces[width], transfers, self.nworld, wanted, memory=self._remembered())
        if extra is None:
            self._plans[key] = plan
        return plan

    def _remembered(self) -> np.ndarray:
        memory = self._memory
        if memory is None:
            memory = aligned((self.nworld, Workspace.sizes_of(self.model, self.ngiven, self.width)["nmemory"]))
            self.__dict__["_memory"] = memory
        return memory

    def _wanted(self, asked: set[str]) -> dict[str, int]:
        return sizes_wanted(self.model, self.nworld, asked)

    def _load(self, names) -> list[Transfer]:
        """Transfers of fields that the batch keeps, and of the model's that differ by world, into tiles."""
        load = [Transfer(n, self._arrays[n]) for n in names if n in self._arrays]
        return load + [Transfer(n, a, MODEL) for n, a in self._expanded.items()]

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def __getstate__(self):
        made_anew = ("_turn", "_team", "_workspaces", "_plans", "_shared", "_controls", "_memory", "width")
        made_anew += ("_watcher", "_row_views", "_orders")
        views = self._arrays.keys() | self._bound.keys()
        kept = {k: v for k, v in self.__dict__.items() if k not in made_anew and k not in views}
        return kept | {"_room": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._start()


def sizes_wanted(model: Model, nworld: int, asked: Set[str] = frozenset()) -> dict[str, int]:
    """Returns what a step computes, as sizes of its record: outputs that are read, and histories of sensors (state)."""
    sensors = "sensordata" in asked or bool((model.sensor_history[:, 0] > 0).any())
    asked = asked | fields_called_for(model, sensors)
    by_sensors = sensors and bool(np.isin(model.sensor_type, (SENS_E_POTENTIAL, SENS_E_KINETIC)).any())
    wanted = {size: not asked.isdisjoint(names) for size, names in WANTED.items()}
    wanted |= {"want_sensors": sensors, "want_frames": sensors or wanted["want_frames"]}
    wanted["want_all"] |= by_sensors
    wanted["keeps_list"] = nworld == 1
    # `_begin` sets the address of a control
    return {name: int(value) for name, value in wanted.items()} | {"user_control": 0}


def tiles(batch: Running) -> list[tuple[int, np.ndarray]]:
    """Returns the widths of a batch's tiles, each with the worlds in the order in which they fill such tiles."""
    return [(width, batch._arrange(part, width, 0)) for width, part in batch._parts(np.arange(batch.nworld))]


def begun_rollout(batch: Running, control: np.ndarray, record: Mapping[str, np.ndarray]) -> Plan:
    """Returns the plan of a rollout of all worlds, begun, for a caller that runs its loop over the tiles.

    Args:
        batch: the worlds.
        control: (nworld, nstep, nu) controls.
        record: field -> (nworld, nstep, n) array to record into.
    """
    every, nstep = np.arange(batch.nworld), control.shape[1]
    recorded = [Transfer(name, rows) for name, rows in record.items() if rows.size]
    batch._prepare(batch.width)
    plan = batch._plan(nstep, {"control": [Transfer("ctrl", control)], "record": recorded}, batch.width)
    plan.workspaces[0].calls.require(plan.loop)
    plan.begin(nstep, every, every)
    return plan
