"""Ctrl-C: whenever it comes, it leaves all worlds of a call at the same step, and the batch as good as before."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

import featherlane as fl
from featherlane.simulation.tile import work

# a process that tells when it computes, is interrupted, and compares what is left with steps of another batch
PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import featherlane as fl

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs behind it ignore the signal
model, nthread, how, recorded = fl.load({model!r}), {nthread}, {how!r}, {recorded}
if how == "actuator":
    fl.set_user_actuator(model, 0, gain=lambda m, d, i: 3.0)
n, total, h = {nworld}, 10**7, model.opt.timestep
rng = np.random.default_rng(0)
start = rng.normal(0, 0.1, (n, model.nv))
ids = np.arange(0, n, 2) if how == "ids" else np.arange(n)


def made():
    batch = fl.Batch(model, n, nthread=nthread, record_bad=recorded)
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
for wait in (0.001, 0.02, 0.3):
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
"""
ACTUATED = """<mujoco><worldbody><body><joint name="j" damping="1"/><geom size=".1"/></body></worldbody>
<actuator><general joint="j" gaintype="user"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    "how, nthread, recorded",
    [
        ("step", 1, 0),
        ("step", 2, 0),
        ("step", 2, 5),
        ("ids", 2, 0),
        ("rollout", 1, 0),
        ("rollout", 2, 3),
        ("actuator", 2, 0),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="no process can send itself SIGINT there")
def test_an_interrupt_leaves_all_worlds_at_the_same_step(how, nthread, recorded):
    model = ACTUATED if how == "actuator" else "quadruped"
    code = PROGRAM.format(model=model, nthread=nthread, how=how, recorded=recorded, nworld=41)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert any(int(line) for line in done.stdout.split())


@pytest.mark.parametrize("nthread", [1, 3])
def test_an_interrupt_at_any_tile_finishes_the_call(nthread, monkeypatch):
    """Raised where Python would: before and after the loop in C, and while other threads are waited for."""
    model = fl.load("quadruped")
    truth, when = fl.Batch(model, 100, nthread), iter(range(100))
    truth.step(4)
    run, finish = work.Work._run, work.Work.finish

    def interrupted(function, before):
        def replaced(self, *thread):
            k = next(when) if not thread or thread == (0,) else 99
            if before and k < 3:
                raise KeyboardInterrupt
            function(self, *thread)
            if not before and k < 3:
                raise KeyboardInterrupt

        return replaced

    functions = {"finish": finish} | ({"_run": run} if nthread > 1 else {})  # one thread has no queue
    for name, function in functions.items():
        for before in (True, False):
            when = iter(range(100))
            batch = fl.Batch(model, 100, nthread)
            with monkeypatch.context() as patch:
                patch.setattr(work.Work, name, interrupted(function, before))
                with pytest.raises(KeyboardInterrupt):
                    batch.step(4)
            assert batch.qpos.tobytes() == truth.qpos.tobytes() and (batch.time == truth.time).all()


def test_a_long_call_is_the_same_in_pieces(monkeypatch):
    model = fl.load("humanoid")
    control = np.random.default_rng(0).uniform(-1, 1, (5, 30, model.nu))
    found = []
    for at_once in (10**9, 1, 20, 70):
        monkeypatch.setattr("featherlane.simulation.batch.running.AT_ONCE", at_once)
        monkeypatch.setattr("featherlane.simulation.batch.call.PIECE_SECONDS", 1e-3)
        batch = fl.Batch(model, 5)
        batch.qpos[:, 2] -= 0.25
        out = batch.rollout(30, control, ("qpos", "sensordata", "ctrl"))
        batch.step(30)
        found.append(b"".join(a.tobytes() for a in (*out.values(), *batch.checkpoint().values())))
    assert all(one == found[0] for one in found[1:])


def test_a_function_that_fails_is_told_as_ever():
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
