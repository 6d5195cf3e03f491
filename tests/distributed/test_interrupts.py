"""An exception at any bytecode of a call leaves the worlds at the end of a piece, and the batch usable.

Workers here are objects of this process that answer immediately.  Their worlds are a few numbers, which depend on the
order of all requests.
"""

import copy
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.distributed import Batch, calls
from featherlane.distributed.machine import this_machine
from featherlane.distributed.node import Place
from featherlane.distributed.pool import Started
from featherlane.distributed.restarts import Restarts

ray = pytest.importorskip("ray")
N = 4
FOLDER = Path(calls.__file__).parent
TRACED = {str(FOLDER / f"{name}.py") for name in "batch calls edits interrupt pieces request restarts worker".split()}
PIECE, EVERY = 2, 5  # steps of a piece, and between checkpoints
MODEL = fl.bundled("pendulum")
MACHINE = this_machine()
START = fl.Batch(MODEL, N, 1).checkpoint()
COMPUTED = "body_subtreemass"  # by set_const


# ---- a stand-in for Ray ----------------------------------------------------------------------------------------------
class Reference(list):
    """Stands for Ray's reference: a list with the value."""


class Worlds:
    """Holds worlds of a worker; `alive` and `do` are those of an actor."""

    def __init__(self):
        self.alive, self.do, self.rows, self.fields = True, self, {}, {}

    def options(self, num_returns):
        return self

    def remote(self, orders, *arrays):
        result = None
        for name, arguments in orders if self.alive else ():
            given = (arrays[a.index] if isinstance(a, Place) else a for a in arguments)
            result = getattr(self, name)(*(a[0] if isinstance(a, Reference) else a for a in given))
        return Reference([result] if self.alive else [])

    def make(self, model, spec):
        self.n = spec.nworld
        self.rows, self.fields = {name: np.zeros((self.n, 1)) for name in ("qpos", "qvel", "ctrl")}, {}

    def take(self, spec, kept):
        self.n, self.rows, self.fields = copy.deepcopy(kept)

    def keep(self, folder, name):
        return copy.deepcopy((self.n, self.rows, self.fields))

    def set(self, name, rows, ids):
        self.rows[name][... if ids is None else ids] = rows

    def expand(self, name, rows):
        self.fields[name] = rows.copy()

    def expanded(self, names):
        shared = {name: np.broadcast_to(MODEL.__dict__[name], (self.n, *MODEL.__dict__[name].shape)) for name in names}
        return {name: np.array(self.fields.get(name, shared[name])) for name in names}

    def set_const(self, ids):
        self.fields[COMPUTED] = 3.0 * self.expanded(["body_mass"])["body_mass"] + self.rows["qpos"]

    def reset(self, ids, keyframe, forward):
        for rows in self.rows.values():
            rows[... if ids is None else ids] = 0.0

    def step(self, nstep, ids, stage=""):
        own, added = ... if ids is None else ids, sum(rows.sum(1, keepdims=True) for rows in self.fields.values())
        for _ in range(nstep):
            self.rows["qvel"][own] = (0.9 * self.rows["qvel"] + self.rows["ctrl"] + added)[own]
            self.rows["qpos"][own] += np.sin(self.rows["qvel"][own])

    def rollout(self, nstep, control, record, ids, how):
        self.step(nstep, ids=ids)
        return {name: np.repeat(self.rows[name][:, None], nstep, 1) for name in record}

    def restore(self, names, *arrays):
        given = dict(zip(names, arrays, strict=True))
        self.rows = {name: given[name].copy() for name in self.rows}
        names, self.fields = list(self.fields), {}
        self.fields = self.expanded(names)  # as in the model

    def get(self, names, ids):
        return {name: self.rows[name].copy() for name in names}

    def state(self):
        return self.keep(None, "")

    def model(self, packet):
        pass

    def nothing(self):
        pass


class Ray:
    """Stands for the module `ray`."""

    exceptions = ray.exceptions

    def put(self, thing):
        return Reference([thing])

    def get(self, wanted):
        if not isinstance(wanted, Reference):
            return [self.get(one) for one in wanted]
        if not wanted:
            raise ray.exceptions.ActorDiedError
        return (0.0, ((), 0), ((), 0), None), wanted[0]

    def kill(self, actor, no_restart):
        actor.alive = False

    def is_initialized(self):
        return True


class Pool:
    """Returns places for two workers."""

    def __init__(self, *given):
        self.threads, self.where = [1, 1], [self.start(0), self.start(1)]

    def start(self, k, is_anywhere=False):
        return Started(Worlds(), MACHINE, 0, ())

    def start_all(self):
        return self.where

    def close(self):
        pass


class Cluster:
    ray = Ray()

    def close(self):
        pass


@pytest.fixture(scope="module")
def batch():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "Pool", Pool)
        patch.setattr(calls, "_cluster_of", lambda *given: (Cluster(), 2))
        patch.setattr(Batch, "_learn", lambda self, steps, seconds: None)
        patch.setattr(Restarts, "lost", lambda self: 0.0)  # any number of losses
        made = Batch(MODEL, N, 2, nthread=1, checkpoint_every=EVERY)
        made.__dict__["_at_once"] = PIECE * N
        yield made


# ---- interrupts ------------------------------------------------------------------------------------------------------
def interrupted():
    raise KeyboardInterrupt


def bytecodes(call, at=None, interrupt=interrupted):
    """Counts the bytecodes of the distributed calls' modules; interrupts before one of them."""
    number = 0

    def trace(frame, event, arg):
        nonlocal number
        if frame.f_code.co_filename not in TRACED:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            number += 1
            if number == at:
                interrupt()
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        assert at is not None
    finally:
        sys.settrace(None)
    return number


def begin(batch):
    """Sets the same state each time: steps are in progress and an assignment waits."""
    batch.reset()
    batch.expand("body_mass")[:] = MODEL.body_mass * np.linspace(1, 2, N)[:, None]
    batch.expand(COMPUTED)[:] = MODEL.body_subtreemass
    batch.qvel = np.linspace(-3, 3, N)[:, None]
    batch.step(4)
    batch.ctrl = 0.1


def state(batch):
    """Returns all of the worlds, and a computed field as stored on this side."""
    if not batch.is_remote:
        return {name: rows.tobytes() for name, rows in batch.checkpoint().items() if name != "signature"}
    found = []
    # only the stand-ins for Ray's workers answer this request
    for _, (n, rows, fields) in batch._ask(batch._everyone(), lambda part: [("state", ())], edits=True):
        found += [n, *(values.tobytes() for own in (rows, fields) for _, values in sorted(own.items()))]
    return *found, batch.expand(COMPUTED).tobytes()


def edit(batch):
    batch.expand("body_mass")[:] = 0.5
    batch.step(2)


def lose(batch):
    batch._workers[1].actor.alive = False  # the stand-in for an actor, defined above
    batch.step(2)
    batch.wait()


def two_steps(batch):
    batch.step(2)


# a call, and the steps other than start and end at which it may stop
CALLS = {
    "steps": (lambda b: b.step(6), [two_steps, lambda b: b.step(4)]),
    "an edit and steps": (edit, [lambda b: b.expand("body_mass").fill(0.5)]),
    "an assignment": (lambda b: setattr(b, "qvel", 2.0), []),
    "a reset": (lambda b: b.reset([1, 3]), []),
    "a rollout": (lambda b: b.rollout(4, record=("qpos", "qvel")), [two_steps]),
    "a read": (lambda b: b.qpos, []),
    "a wait": (lambda b: b.wait(), []),
    "a recomputation": (lambda b: b.set_const([0, 2]), []),
    "a restoration": (lambda b: b.restore(START | {"qpos": START["qpos"] + 0.3}), []),
    "a loss": (lose, [two_steps]),
}


def states(batch, name):
    """Yields the states before the call, where it may stop, and after it."""
    call, partly = CALLS[name]
    for part in (lambda b: None, *partly, call):
        begin(batch)
        part(batch)
        yield state(batch)


def points(batch, call, number):
    """Returns equally spaced bytecodes of a call."""
    begin(batch)
    total = bytecodes(lambda: call(batch))
    return range(1, total + 1, max(1, total // number))


def check_interrupts(batch, name, number, interrupt):
    """Interrupts a call at each of so many bytecodes."""
    call = CALLS[name][0]
    _, allowed = (list(states(batch, name)) for _ in range(2))  # at first, fields are not expanded
    for at in points(batch, call, number):
        begin(batch)
        interrupt(call, at)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)  # no handler delays it
        assert state(batch) in allowed, at
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [20, pytest.param(100_000, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_stops_at_the_end_of_a_piece(batch, name, number):
    check_interrupts(batch, name, number, lambda call, at: bytecodes(lambda: call(batch), at))


@pytest.mark.parametrize("name", [name for name in CALLS if name != "a loss"])
def test_a_call_without_ray_can_be_interrupted_at_a_bytecode(name):
    batch = Batch(MODEL, N, None, nthread=1)
    check_interrupts(batch, name, 20, lambda call, at: bytecodes(lambda: call(batch), at))


@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.slow)], ids=["some", "many"])
@pytest.mark.parametrize("name", CALLS)
def test_the_recovery_can_be_interrupted_again(batch, name, number, monkeypatch):
    def interrupt(call, at):
        with monkeypatch.context() as patch:
            patch.setitem(batch.__dict__, "_recover", lambda: None)  # as if it had ended before its first bytecode
            bytecodes(lambda: call(batch), at)
        for again in range(1, 3000, 3000 // number):
            bytecodes(batch.wait, again)

    check_interrupts(batch, name, number, interrupt)


@pytest.mark.parametrize("number", [10, pytest.param(300, marks=pytest.mark.slow)], ids=["some", "many"])
def test_ctrl_c_waits_for_the_current_piece_and_loses_no_call(batch, number):
    def interrupt(call, at):
        bytecodes(lambda: call(batch), at, lambda: signal.raise_signal(signal.SIGINT))

    check_interrupts(batch, "steps", number, interrupt)
