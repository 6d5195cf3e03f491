"""Ctrl-C at any time: it leaves all worlds of a call at the same step, and the batch stays usable."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch import runner
from featherlane.engine.simulation.tile.call_lock import Turn, hold
from sampling import in_ci

# a process that reports when it computes, is interrupted, and compares the result with steps of another batch
PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import featherlane as fl
from featherlane.engine.model.bundle import resolve_name

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs behind it ignore the signal
model, nthread, how, recorded = fl.load(resolve_name({model!r})), {nthread}, {how!r}, {recorded}
if how == "actuator":
    fl.set_user_actuator(model, 0, gain=lambda m, d, i: 3.0)
n, total, h = {nworld}, 10**7, model.opt.timestep
rng = np.random.default_rng(0)
start = rng.normal(0, 0.1, (n, model.nv))
ids = np.arange(0, n, 2) if how == "ids" else np.arange(n)


def made():
    batch = fl.Batch(model, n, nthread=nthread, record_failures=recorded)
    batch.qvel[:] = start
    batch.ctrl[:] = 0.1
    return batch


def run(batch):
    if how == "rollout":
        batch.rollout(20000, np.full((20000, model.nu), 0.1), ())
    else:
        batch.step(total, ids=ids)


warm = made()
warm.step(2), warm.step(ids=ids)
waits = [0.001, 0.02, 0.3]
for wait in waits:
    batch, at = made(), time.perf_counter()
    timer = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        run(batch)
    except KeyboardInterrupt:
        pass
    else:
        sys.exit("not interrupted")
    timer.join()
    steps = np.rint(batch.time / h).astype(int)
    assert (steps[ids] == steps[ids[0]]).all(), steps
    assert not steps[np.setdiff1d(np.arange(n), ids)].any()
    twin = made()
    if steps[ids[0]]:
        twin.step(int(steps[ids[0]]), ids=ids)
    for name in ("time", "qpos", "qvel", "qacc_warmstart"):
        assert getattr(batch, name).tobytes() == getattr(twin, name).tobytes(), name
    batch.step(3)  # and goes on
    twin.step(3)
    assert batch.qpos.tobytes() == twin.qpos.tobytes()
    print(steps[ids[0]], flush=True)
    if wait == waits[-1] and steps[ids[0]] == 0 and wait < 10.0:
        waits.append(4.0 * wait)  # a busy machine may have taken no step
"""
ACTUATED = """<mujoco><worldbody><body><joint name="j" damping="1"/><geom size=".1"/></body></worldbody>
<actuator><general joint="j" gaintype="user"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    "how, nthread, recorded",
    [
        in_ci("step", 1, 0),
        in_ci("step", 2, 0),
        ("step", 2, 5),
        in_ci("ids", 2, 0),
        in_ci("rollout", 1, 0),
        ("rollout", 2, 3),
        in_ci("actuator", 2, 0),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="no process can send itself SIGINT there")
def test_an_interrupt_leaves_all_worlds_at_the_same_step(how, nthread, recorded):
    model = ACTUATED if how == "actuator" else "quadruped"
    code = PROGRAM.format(model=model, nthread=nthread, how=how, recorded=recorded, nworld=41)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert any(int(line) for line in done.stdout.split())


def interrupted(call, k: int = 0) -> int:
    """Raises KeyboardInterrupt before bytecode k of a call; returns the number of bytecodes until then."""
    count = 0

    def within(frame, event, arg):
        nonlocal count
        if event == "opcode":
            count += 1
            if count == k:
                sys.settrace(None)
                raise KeyboardInterrupt
        return within

    def into(frame, event, arg):
        frame.f_trace_opcodes = True
        return within

    sys.settrace(into)
    try:
        call()
    except KeyboardInterrupt:
        assert count == k
    finally:
        sys.settrace(None)
    return count


def bits(kept: dict[str, np.ndarray]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in kept.items()}


MADE = {
    "batch": lambda nthread: fl.Batch(fl.bundled("cartpole"), 11, nthread),
    "recorded": lambda nthread: fl.Batch(fl.bundled("cartpole"), 11, nthread, record_failures=3),
    "mixed": lambda nthread: fl.MixedBatch([(fl.bundled("cartpole"), 3), (fl.bundled("pendulum"), 9)], nthread),
}
CALLS = {
    "step": lambda batch: batch.step(2),
    "some worlds": lambda batch: batch.step(ids=[1, 2]),
    "forward": lambda batch: batch.forward(),
    "reset": lambda batch: batch.reset([0, 2]),
    "rollout": lambda batch: batch.rollout(2, np.full((2, batch.ctrl.shape[1]), 0.3)),
}


@pytest.mark.parametrize(
    "made, nthread, what",
    [
        *(("batch", 1, what) for what in CALLS),
        *((made, 2, what) for made in ("batch", "mixed") for what in ("step", "rollout")),
        ("recorded", 2, "step"),
    ],
)
# an interrupt within a garbage collection of the test libraries is unraisable
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_before_any_bytecode_leaves_a_call_complete_or_not_started(made, nthread, what):
    batch, call = MADE[made](nthread), CALLS[what]
    batch.ctrl[:] = 0.1
    batch.step(5)
    call(batch)  # plans and threads are created
    start = batch.checkpoint()

    def end(*calls):
        batch.restore(start)
        for one in calls:
            one(batch)
        return bits(batch.checkpoint())

    before, after = end(), end(call)
    later = {done: end(*[call] * done, CALLS["step"]) for done in (False, True)}
    number, found = interrupted(lambda: call(batch)), []
    for k in range(1, number + 1, 1 + number // 700):
        batch.restore(start)
        interrupted(lambda: call(batch), k)
        now = bits(batch.checkpoint())
        assert now in (before, after), k
        found.append(now == after)
        batch.step(2)
        assert bits(batch.checkpoint()) == later[found[-1]], k
    assert True in found
    other = threading.Thread(target=batch.step)  # no lock of the library is held, either
    other.start()
    other.join(60)
    assert not other.is_alive()


@pytest.mark.parametrize("what", ["step", "forward", "reset_data", "runge_kutta"])
# an interrupt within a garbage collection of the test libraries is unraisable
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_before_any_bytecode_releases_the_data(what):
    model, function = fl.bundled("cartpole"), getattr(fl, what, None) or getattr(fl.stages, what)
    data, found = fl.Data(model), set()
    names = ("qpos", "qvel", "qacc", "qacc_warmstart")

    def state():
        return b"".join(getattr(data, name).tobytes() for name in names)

    data.qpos[:] = 0.2
    fl.step(model, data, 5)
    fl.forward(model, data)
    start, before = {name: getattr(data, name).copy() for name in names}, state()
    function(model, data)
    after, number = state(), interrupted(lambda: function(model, data))
    for k in (*range(1, number, 1 + number // 300), number):  # the last one follows all work
        for name, value in start.items():
            getattr(data, name)[:] = value
        interrupted(lambda: function(model, data), k)
        found.add(state())
        function(model, data)  # no error
    assert found == {before, after}


def test_an_interrupted_change_of_the_model_leaves_no_call_of_either():
    def switched():
        data.model = other
        fl.forward(other, data)

    model, other = fl.bundled("cartpole"), fl.bundled("cartpole")
    other.opt.gravity = (0.0, 0.0, -3.0)
    data = fl.Data(model)
    data.qpos[:] = 0.2
    fl.forward(model, data)
    expected = data.qacc.tobytes()
    number = interrupted(switched)
    assert data.qacc.tobytes() != expected
    for k in range(1, number + 1, 1 + number // 200):
        data.model = model
        fl.forward(model, data)
        interrupted(switched, k)
        data.model = model
        fl.forward(model, data)
        assert data.model is model and data.qacc.tobytes() == expected, k


@pytest.mark.parametrize("made", ["batch", "mixed"])
def test_controls_after_an_interrupted_rollout_are_the_last_applied(made, monkeypatch):
    monkeypatch.setattr(runner, "PIECE_SECONDS", 0.0)  # one step at a time
    batch, nstep = MADE[made](2), 8
    control = np.linspace(0.1, 0.9, nstep)[:, None] * np.ones(batch.ctrl.shape[1])
    getattr(batch, "groups", [batch])[0].runner.at_once, reached = 1, set()
    batch.rollout(nstep, control, ())
    number = interrupted(lambda: batch.rollout(nstep, control, ()))
    for k in range(1, number, number // 40):
        batch.reset()
        interrupted(lambda: batch.rollout(nstep, control, ()), k)
        done = int(np.rint(batch.time[0] / 0.01))
        assert (batch.ctrl == (control[done - 1] if done else 0.0)).all()
        reached.add(done)
    assert len(reached) > nstep / 2


@pytest.mark.parametrize("what", ["batch", "data"])
def test_a_call_within_a_call_is_refused(what):
    model, within, refused = fl.load(ACTUATED), [], []

    def gain(m, d, i):
        for call in within:
            with pytest.raises(fl.errors.CallError):
                call()
            refused.append(1)
        return 1.0

    fl.set_user_actuator(model, 0, gain=gain)
    batch, data = fl.Batch(model, 4, nthread=2), fl.Data(model)
    call = batch.step if what == "batch" else lambda: fl.step(model, data)
    within.append(call)
    call()
    assert refused
    within.clear()
    call()


def test_a_finished_call_allows_the_next_one():
    turn, inside = Turn("thing"), []

    def nested():
        with pytest.raises(fl.errors.CallError):
            hold([turn], inside.append, 1)
        turn.token.clear()  # as if the call could not return it
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:  # with its frames, as a console keeps them
        hold([turn], nested)
    turn.token.clear()
    assert hold([turn], abs, -3) == 3 and not inside and kept.tb is not None


@pytest.mark.parametrize("enabled", [True, False])
def test_stacks_are_read_without_a_garbage_collection(monkeypatch, enabled):
    seen, read = [], sys._current_frames
    monkeypatch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()) or read())
    if not enabled:
        gc.disable()
    try:
        assert sys._getframe() in list(Turn.stack_frames())
        assert seen == [False] and gc.isenabled() == enabled
    finally:
        gc.enable()


def test_two_threads_are_never_in_a_call_together():
    turn, inside, most, refused = Turn("thing"), [], [], []

    def call():
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    def work():
        for k in range(2000):
            try:
                hold([turn], call)
            except RuntimeError:
                refused.append(1)
            if k % 10 == 0 and not inside:
                turn.token[:1] = []  # as if a call could not return it

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    sys.setswitchinterval(before)
    assert max(most) == 1 and len(most) + len(refused) == 8000 and len(turn.token) <= 1


def test_a_long_call_split_into_pieces_is_bitwise_equal(monkeypatch):
    model = fl.bundled("humanoid")
    control = np.random.default_rng(0).uniform(-1, 1, (5, 30, model.nu))
    found = []
    for at_once in (10**9, 1, 20, 70):
        monkeypatch.setattr(runner, "PIECE_SECONDS", 1e-3)
        batch = fl.Batch(model, 5)
        batch.runner.at_once = at_once
        batch.qpos[:, 2] -= 0.25
        out = batch.rollout(30, control, ("qpos", "sensordata", "ctrl"))
        batch.step(30)
        found.append(b"".join(a.tobytes() for a in (*out.values(), *batch.checkpoint().values())))
    assert all(one == found[0] for one in found[1:])


def test_an_exception_in_a_callback_is_raised_unchanged():
    model = fl.load(ACTUATED)

    calls, handler = [], signal.getsignal(signal.SIGINT)

    def gain(m, d, i):
        calls.append(i)
        if len(calls) == 200:
            raise ValueError("no gain")
        return 1.0

    fl.set_user_actuator(model, 0, gain=gain)
    batch = fl.Batch(model, 20, nthread=2)
    with pytest.raises(ValueError, match="no gain"):
        batch.step(50)
    batch.step()
    assert signal.getsignal(signal.SIGINT) is handler
