"""Failed steps: what a batch records of them, and that their replay is bitwise identical."""

from __future__ import annotations

import copy
import importlib
import itertools
import pickle
import threading

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch.arrays import LASTING, ON_DEMAND
from featherlane.engine.simulation.batch.failure import SEVERITY
from featherlane.engine.simulation.batch.recorder import MOST_FAILURES
from featherlane.engine.simulation.tile.fields import STATUS
from scenes.states import kicked

pytestmark = pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")

N, KEPT = 11, 6
VICTIM = 7
SCENE = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="hand" mocap="true" pos="1 0 1"><geom type="sphere" size=".1" contype="0" conaffinity="0"/></body>
    <body pos="0 0 .4"><freejoint/><geom type="box" size=".1 .2 .1"/>
      <body pos="0 .2 0"><joint name="arm" range="-60 60" limited="true"/>
        <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/></body></body>
    <body name="held" pos="1 0 .8"><freejoint/><geom type="sphere" size=".1"/></body>
  </worldbody>
  <equality><connect name="grip" body1="hand" body2="held" anchor="0 0 -.2"/></equality>
  <actuator><general joint="arm" dyntype="filter" dynprm=".05" gainprm="5"/></actuator>
</mujoco>"""
DELAYED = SCENE.replace('dyntype="filter"', 'dyntype="filter" delay=".02" nsample="8"')
SOFT = [("convex", solver, cone) for solver in ("Newton", "CG", "PGS") for cone in ("pyramidal", "elliptic")]
HARD = [("lcp", solver, "pyramidal") for solver in ("dantzig", "pgs", "apgd")]


def lasting(world, w=None):
    """Returns the bits of a world's persistent arrays: of a `Data`, or of row w of a batch."""
    if isinstance(world, fl.Data):
        return {n: np.ravel(getattr(world, n)).tobytes() for n in LASTING if np.size(getattr(world, n))}
    return {n: a[w].tobytes() for n, a in world.checkpoint().items() if n in LASTING and a[w].size}


def assert_equal(found, expected):
    """Compares the bits of persistent arrays; a batch has no rows of unbound fields."""
    for name in found.keys() & expected.keys():
        assert found[name] == expected[name], name
    for name in (found.keys() ^ expected.keys()) & set(ON_DEMAND):
        assert not any(found.get(name, b"") + expected.get(name, b"")), name


def replayed(failure):
    """Returns the bits of the persistent arrays after a replay."""
    found = lasting(failure.replay_batch(), 0)
    if failure.dtype == np.float64:
        assert_equal(lasting(failure.replay()), found)
    return found


def drawn(model, rng, away=0.05, **settings):
    """Returns worlds in different states, some of them in contact."""
    batch = fl.Batch(model, N, record_failures=KEPT, **settings)
    for w in range(N):
        batch.qpos[w], batch.qvel[w] = kicked(model, rng, away)
    return batch


def run(batch, rng, nstep, spoil=None):
    """Steps with random controls; returns the bits after each failed step, by world and step."""
    after = {}
    for k in range(nstep):
        batch.ctrl = rng.uniform(-1, 1, batch.ctrl.shape)
        if spoil is not None:
            spoil(batch, k)
        known = len(batch.failures)
        batch.step()
        for failure in batch.failures[known:]:
            assert failure.step == k
            after[failure.world, failure.step] = lasting(batch, failure.world)
    return after


def options(model, contact_model, solver, cone):
    model.opt.contact_model, model.opt.cone = contact_model, cone
    setattr(model.opt, "lcp_solver" if contact_model == "lcp" else "solver", solver)


# ---- equal bits ------------------------------------------------------------------------------------------------------


def spoiled(name, value, at=9):
    """Returns a function that writes a value into a field of one world, once."""

    def spoil(batch, k):
        if k == at:
            getattr(batch, name).reshape(N, -1)[VICTIM, -1] = value

    return spoil


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("contact_model, solver, cone", [*SOFT, *HARD])
def test_a_failed_world_replays_bitwise_equally(contact_model, solver, cone, dtype, rng):
    model = fl.load(DELAYED)
    options(model, contact_model, solver, cone)
    batch = drawn(model, rng, dtype=dtype)
    after = run(batch, rng, 14, spoiled("qvel", np.nan))
    failure = next(f for f in batch.failures if f.cause == "non_finite")
    assert (failure.world, failure.step, failure.nstep, failure.dtype) == (VICTIM, 9, KEPT, dtype)
    assert failure.time == pytest.approx(9 * 0.005)
    assert_equal(replayed(failure), after[VICTIM, 9])
    before = failure.replay(-1)
    assert np.isnan(before.qvel).any() and before.status["non_finite"] == 0
    before.forward()
    assert np.isnan(before.qacc).any()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "field, value, cause",
    [
        ("ctrl", np.nan, "bad_control"),
        ("xfrc_applied", np.inf, "non_finite"),
        ("qfrc_applied", 1e300, "non_finite"),
        ("mocap_pos", np.nan, "non_finite"),
        ("act", -np.inf, "non_finite"),
        ("qpos", 1e12, "non_finite"),
        ("time", np.nan, "non_finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_every_kind_of_non_finite_value_is_replayed(field, value, cause, dtype, rng):
    batch = drawn(fl.load(SCENE), rng, dtype=dtype)
    batch.xfrc_applied[:, -1] = rng.normal(size=(N, 6))
    after = run(batch, rng, 14, spoiled(field, value))
    (failure,) = (f for f in batch.failures if f.cause == cause)
    assert (failure.world, failure.step, failure.nstep) == (VICTIM, 9, KEPT)
    assert_equal(replayed(failure), after[VICTIM, 9])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["humanoid", "quadruped_elliptic", "hand", "box_stack", "pile"])
def test_unconverged_steps_are_replayed_bitwise_equally(name, dtype, rng):
    model = fl.bundled(name)
    model.opt.iterations, model.opt.tolerance = 1, 1e-14
    batch = drawn(model, rng, 0.005 if name == "pile" else 0.05, dtype=dtype)
    after = run(batch, rng, 12, lambda batch, k: k % 4 or batch.failures.clear())
    assert any(f.nstep == KEPT for f in batch.failures if "not_converged" in f.causes)
    for failure in batch.failures:
        assert_equal(replayed(failure), after[failure.world, failure.step])
        if dtype == "float64":
            assert failure.replay().status[failure.cause] > 0


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast", "discrete"])
def test_failures_replay_under_every_integrator(integrator, rng):
    model = fl.load(SCENE)
    model.opt.integrator, model.opt.iterations, model.opt.tolerance = integrator, 1, 1e-14
    batch = drawn(model, rng)
    after = run(batch, rng, 14, spoiled("qvel", np.nan))
    assert {f.cause for f in batch.failures} >= {"non_finite"}
    for failure in batch.failures:
        assert_equal(replayed(failure), after[failure.world, failure.step])


def test_a_failure_contains_the_model_of_its_world(rng):
    model = fl.load(SCENE)
    batch = drawn(model, rng)
    batch.expand("body_mass")[:] *= rng.uniform(0.5, 2, (N, 1))
    batch.expand("opt.gravity")[:] += rng.normal(size=(N, 3))
    batch.set_const()
    after = run(batch, rng, 14, spoiled("qvel", np.nan))
    failure = batch.failures[0]
    np.testing.assert_array_equal(failure.model.body_mass, batch.expanded("body_mass")[VICTIM])
    np.testing.assert_array_equal(failure.model.opt.gravity, batch.expanded("opt.gravity")[VICTIM])
    assert_equal(replayed(failure), after[VICTIM, 9])


def test_sleeping_worlds_replay(rng):
    model = fl.bundled("box_stack")
    model.opt.enableflags = "sleep"
    batch = fl.Batch(model, 4, record_failures=KEPT)
    while not (batch.tree_asleep >= 0).any():
        batch.step(50)
    batch.qfrc_applied[1, 2] = np.nan
    batch.step(3)
    failure = batch.failures[0]
    assert (failure.world, failure.cause) == (1, "non_finite") and (failure.states["tree_asleep"] >= 0).any()
    twin = fl.Batch(model, 4)
    twin.restore(batch.checkpoint())
    assert_equal(replayed(failure), lasting(replay_of_twin(failure), 0))


def replay_of_twin(failure):
    """Returns the failure, stepped alone from its last kept state."""
    alone = copy.deepcopy(failure)
    # also drops the recorded edits of the dropped steps: no public attribute holds them
    alone.states, alone._edits = {name: rows[-1:] for name, rows in failure.states.items()}, None
    return alone.replay_batch()


def test_user_contacts_replay(rng):
    model = fl.load(SCENE)
    batch = drawn(model, rng, given_contacts=2)
    batch.give_contacts([-0.01], [[0, 0, 0.3]], [[0, 0, 1]], body=[[0, 2]])
    after = run(batch, rng, 14, spoiled("qvel", np.nan))
    assert any("given_present" in f.states for f in batch.failures)
    for failure in batch.failures:
        assert_equal(replayed(failure), after[failure.world, failure.step])


# ---- calls of several steps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nstep", [1, 2, 5, 30])
def test_failures_do_not_depend_on_how_many_steps_a_call_takes(nstep, rng, monkeypatch):
    monkeypatch.setattr(importlib.import_module("featherlane.engine.simulation.batch.recorder"), "PIECE_STEPS", 7)
    model = fl.load(SCENE)
    model.opt.iterations, model.opt.tolerance = 1, 1e-14
    batch = drawn(model, rng, nthread=2)
    batch.qpos[:, 2] = 0.3 + 0.02 * np.arange(N)
    batch.qpos[1:6, 0], batch.qvel[1:6, 0] = 1e10 - 2.5e7 * np.arange(1, 6), 1e9  # out of bounds after 5 steps, 10, ...
    batch.ctrl = rng.uniform(-1, 1, (N, 1))
    single = copy.deepcopy(batch)
    truth = {}
    for _ in range(30):
        known = len(single.failures)
        single.step()
        truth |= {(f.world, f.step): lasting(single, f.world) for f in single.failures[known:]}
    for _ in range(30 // nstep):
        batch.step(nstep)
    expected = {(f.world, f.step): f for f in single.failures}
    assert len(expected) > 4 and {f.cause for f in batch.failures} == {"not_converged", "non_finite"}
    assert {(f.world, f.step, f.causes) for f in batch.failures} == {
        (f.world, f.step, f.causes) for f in expected.values()
    }
    assert lasting(batch, 0) == lasting(single, 0)
    for failure in batch.failures:
        other = expected[failure.world, failure.step]
        assert failure.states.keys() == other.states.keys() and failure.nstep == other.nstep
        for name, rows in failure.states.items():
            assert rows.tobytes() == other.states[name].tobytes(), name
        assert_equal(replayed(failure), truth[failure.world, failure.step])


def test_a_second_failure_in_a_call_starts_at_the_reset(rng):
    """The world is reset in the first step of the call; a later step gets a non-finite control."""
    model = fl.load(SCENE)
    batch = drawn(model, rng)
    control = rng.uniform(-1, 1, (N, 12, 1))
    control[VICTIM, 8] = np.nan
    batch.step(4)
    batch.qvel[VICTIM] = np.nan
    batch.xfrc_applied[VICTIM, 2, 0] = 3.0
    out = batch.rollout(12, control, ("qpos", "qvel", "act"))
    first, second = (f for f in batch.failures if f.world == VICTIM)
    assert (first.cause, first.step, second.cause, second.step) == ("non_finite", 4, "bad_control", 12)
    assert first.nstep == 5 and second.nstep == KEPT
    long = copy.deepcopy(batch)
    assert not second.states["xfrc_applied"].any()
    for failure, k in ((first, 0), (second, 8)):
        data = failure.replay()
        for name, rows in out.items():
            assert getattr(data, name).tobytes() == rows[VICTIM, k].tobytes(), name
    assert len(long.failures) == len(batch.failures)


@pytest.mark.slow  # compiles a step with bounds checks
def test_a_replay_with_checked_kernels_has_the_same_bits(rng):
    batch = drawn(fl.load(SCENE), rng)
    batch.step(3)
    batch.qvel[VICTIM] = np.nan
    batch.step()
    failure = batch.failures[0]
    plain = lasting(failure.replay())
    checked = failure.replay(checked=True)
    assert checked.workspace.checked
    assert_equal(lasting(checked), plain)
    assert not failure.replay().workspace.checked
    with pytest.raises(fl.ModelError, match="checked"):
        failure.replay(checked="yes")


def test_the_window_after_a_reset_is_short(rng):
    model = fl.load(SCENE)
    batch = drawn(model, rng)
    batch.qvel[VICTIM] = np.nan
    control = np.zeros((N, 12, 1))
    control[VICTIM, 3] = np.nan
    batch.rollout(12, control)
    second = next(f for f in batch.failures if f.cause == "bad_control")
    assert second.nstep == 3 and second.states["time"][0, 0] == pytest.approx(0.005)
    batch.failures.clear()
    batch.step(10)
    batch.reset([VICTIM])
    batch.step(2)
    batch.qvel[VICTIM] = np.nan
    batch.step()
    assert batch.failures[0].nstep == 3 and batch.failures[0].states["time"][0, 0] == 0.0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_controls_of_rollouts_are_replayed(dtype, rng):
    model = fl.load(SCENE)
    batch, ids = drawn(model, rng, dtype=dtype), rng.permutation(N)[:6]
    w = int(ids[2])
    control = rng.uniform(-1, 1, (6, 20, 1))
    control[2, 15] = np.nan
    out = batch.rollout(20, control, ("qpos", "act"), ids=ids)
    (failure,) = (f for f in batch.failures if f.cause == "bad_control")
    assert (failure.world, failure.step) == (w, 15)
    np.testing.assert_array_equal(failure.states["ctrl"], control[2, 10:16].astype(dtype))
    world = failure.replay_batch()
    for name, rows in out.items():
        assert getattr(world, name)[0].tobytes() == rows[2, 15].tobytes(), name


@fl.kernel
def push(m, d):
    """Computes controls that depend on the state, and so on the stage of RK4."""
    d.ctrl[0] = -3.0 * d.qpos[7] - d.qvel[6]
    d.qfrc_applied[0] = 0.1 * d.qvel[0]


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_kernels_that_control_are_replayed(integrator, rng, tmp_path):
    model = fl.load(SCENE)
    model.opt.integrator = integrator
    batch = drawn(model, rng)
    batch.rollout(7, push)
    batch.qvel[VICTIM, 0] = 3e10
    out = batch.rollout(3, push, ("qpos", "qvel"))
    failure = batch.failures[0]
    assert failure.control is push and failure.nstep == KEPT
    assert failure.replay().qvel.tobytes() == out["qvel"][VICTIM, 0].tobytes()
    before = failure.replay(-2)
    assert before.ctrl[0] == failure.states["ctrl"][-2, 0]
    failure.save(tmp_path / "failure.npz")
    read = fl.load_failure(tmp_path / "failure.npz")
    with pytest.raises(fl.ModelError, match="control"):
        read.replay()
    read.control = push
    assert read.replay().qvel.tobytes() == out["qvel"][VICTIM, 0].tobytes()


def test_partially_stepped_worlds_have_separate_windows(rng):
    batch = drawn(fl.load(SCENE), rng)
    for k in range(12):
        batch.step(ids=np.arange(N) % 2 == k % 2)
    batch.qvel[[2, 3]] = np.nan
    batch.step(2, ids=[3])
    batch.step(ids=[2, 3])
    by_world = {f.world: f for f in batch.failures}
    assert {w: (f.step, f.nstep) for w, f in by_world.items()} == {2: (6, KEPT), 3: (6, KEPT)}
    for failure in by_world.values():
        assert (np.diff(failure.states["time"][:, 0]) > 0.004).all()


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_nothing_is_recorded_by_default():
    batch = fl.Batch(fl.bundled("cartpole"), 3)
    with pytest.raises(fl.errors.UnknownAttributeError, match="record_failures"):
        batch.failures  # noqa: B018
    with pytest.raises(fl.ModelError):
        fl.Batch(fl.bundled("cartpole"), 3, record_failures=-1)


def test_recording_changes_no_bit(rng):
    model = fl.bundled("humanoid")
    control = rng.uniform(-1, 1, (N, 9, model.nu))
    batches = [fl.Batch(model, N, record_failures=n) for n in (0, 1, 40)]
    for batch in batches:
        batch.qpos[:, 2] -= 0.3
        batch.step(), batch.step(100), batch.rollout(9, control)
    for batch in batches[1:]:
        assert batch.checkpoint().keys() == batches[0].checkpoint().keys()
        for name, rows in batch.checkpoint().items():
            assert rows.tobytes() == batches[0].checkpoint()[name].tobytes(), name


def test_the_first_failure_of_each_world_and_cause_is_kept_until_removed(rng):
    batch = drawn(fl.load(SCENE), rng)
    for _ in range(3):
        batch.ctrl[3] = np.nan
        batch.step()
        batch.qvel[3] = np.nan
        batch.step()
    kept = [(f.world, f.cause) for f in batch.failures]
    assert kept.count((3, "non_finite")) == kept.count((3, "bad_control")) == 1
    batch.failures.clear()
    batch.qvel[3] = np.nan
    batch.step()
    assert [(f.world, f.cause) for f in batch.failures] == [(3, "non_finite")]


def test_the_number_of_failures_is_bounded():
    batch = fl.Batch(fl.bundled("cartpole"), 3 * MOST_FAILURES, record_failures=2)
    batch.qvel[:] = np.nan
    batch.step(2)
    assert [f.world for f in batch.failures] == list(range(MOST_FAILURES))
    batch.failures[:] = batch.failures[2:]
    batch.qvel[:] = np.nan
    batch.step()
    assert [f.world for f in batch.failures[-2:]] == [0, 1]


def test_several_causes_are_one_failure_named_after_the_most_severe(rng):
    model = fl.bundled("humanoid")
    model.opt.iterations, model.opt.tolerance = 1, 1e-14
    batch = fl.Batch(model, 2, record_failures=3)
    batch.ctrl[1] = np.nan
    batch.qpos[:, 2] -= 0.3
    batch.step()
    assert set(SEVERITY) == set(STATUS)
    assert set(batch.failures[1].causes) == {"bad_control", "not_converged"}
    assert repr(batch.failures[1]) == "Failure(world=1, step=0, time=0, cause='bad_control')"


def test_states_that_the_user_writes_between_steps_are_replayed(rng):
    batch = drawn(fl.load(SCENE), rng)

    def spoil(batch, k):
        if k == 7:
            batch.qpos[:, 0] += 1.0
        spoiled("qvel", np.nan)(batch, k)

    after = run(batch, rng, 12, spoil)
    failure = next(f for f in batch.failures if f.cause == "non_finite")
    assert_equal(replayed(failure), after[VICTIM, 9])


@pytest.mark.parametrize(
    "edit",
    [
        lambda b: b.model.opt.__setattr__("gravity", (0, 0, -1)),
        lambda b: b.model.body_mass.__imul__(2),
        lambda b: b.expand("body_mass").__imul__(2),
        lambda b: b.model.opt.__setattr__("integrator", "implicit"),
    ],
)
def test_the_window_starts_after_an_edit_of_the_model(edit, rng):
    batch = drawn(fl.load(SCENE), rng)
    batch.step(5)
    edit(batch)
    batch.step(2)
    batch.qvel[VICTIM] = np.nan
    batch.step()
    failure = next(f for f in batch.failures if f.cause == "non_finite")
    assert failure.nstep == 3
    kept = lasting(batch, VICTIM)
    batch.model.body_mass[:] *= 3
    assert_equal(replayed(failure), kept)


def test_an_edited_failure_replays_with_the_edit(rng):
    model = fl.bundled("humanoid")
    model.opt.iterations, model.opt.tolerance = 1, 1e-10
    batch = drawn(model, rng)
    run(batch, rng, 30)
    failure = next(f for f in batch.failures if f.nstep == KEPT)
    assert failure.replay().status["not_converged"]
    failure.model.opt.iterations = 100
    assert not failure.replay().status["not_converged"]
    assert batch.model.opt.iterations == 1


@pytest.mark.parametrize("stop", [KEPT + 1, -KEPT - 1, 1.5, "2", True])
def test_a_replay_stops_at_given_steps(stop, rng):
    batch = drawn(fl.load(SCENE), rng)
    run(batch, rng, 12, spoiled("qvel", np.nan))
    with pytest.raises(fl.ModelError):
        batch.failures[0].replay(stop)


def test_a_replay_stops_at_each_recorded_state(rng):
    batch = drawn(fl.load(SCENE), rng)
    run(batch, rng, 12, spoiled("qvel", np.nan))
    failure = batch.failures[0]
    for k in (3, 0, KEPT - 1, 2):
        for name in ("qpos", "qvel", "act", "time", "ctrl", "qacc_warmstart"):
            assert np.ravel(getattr(failure.replay(k), name)).tobytes() == failure.states[name][k].tobytes()
    assert failure.data is failure.replay(0)


# ---- keeping ---------------------------------------------------------------------------------------------------------


def test_failures_pass_through_copies_pickles_and_checkpoints(rng):
    batch = drawn(fl.load(SCENE), rng)
    after = run(batch, rng, 12, spoiled("qvel", np.nan))
    number = len(batch.failures)
    for other in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        assert [repr(f) for f in other.failures] == [repr(f) for f in batch.failures]
        assert_equal(replayed(other.failures[0]), after[VICTIM, 9])
        other.failures.clear()
        other.step(2)
        other.qvel[2] = np.nan
        other.step()
        assert (other.failures[0].step, other.failures[0].nstep) == (14, 3)
    assert len(batch.failures) == number
    batch.failures.clear()
    batch.restore(batch.checkpoint())
    batch.step(2)
    batch.qvel[2] = np.nan
    batch.step()
    assert batch.failures[0].nstep == 3
    single = pickle.loads(pickle.dumps(batch.failures[0]))
    assert_equal(replayed(single), replayed(batch.failures[0]))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_file_holds_a_failure(dtype, rng, tmp_path):
    model = fl.load(SCENE)
    model.opt.contact_model = "lcp"
    model.geom_restitution[1] = 0.5
    batch = drawn(model, rng, dtype=dtype)
    batch.expand("body_mass")[:] *= rng.uniform(0.5, 2, (N, 1))

    def spoil(batch, k):
        if k == 7:
            batch.qpos[:, 0] += 1.0
        spoiled("qvel", np.nan)(batch, k)

    after = run(batch, rng, 12, spoil)
    failure = batch.failures[0]
    failure.save(tmp_path / "failure.npz")
    read = fl.load_failure(tmp_path / "failure.npz")
    assert repr(read) == repr(failure) and read.causes == failure.causes and read.dtype == dtype
    assert read.model.opt.contact_model == "lcp" and read.model.names("body") == model.names("body")
    assert_equal(replayed(read), after[VICTIM, 9])
    assert [p.name for p in tmp_path.iterdir()] == ["failure.npz"]


def test_links_and_meshes_pass_through_a_file(rng, tmp_path):
    links = fl.Link("hinge", "left", "right", name="pin", anchor=(0.5, 0, 0), axis=(0, 0, 1))
    xml = """<mujoco><asset><mesh name="rock" vertex="0 0 0 .2 0 0 0 .2 0 0 0 .2"/></asset><worldbody>
    <body name="left"><freejoint/><geom type="mesh" mesh="rock"/></body>
    <body name="right" pos="1 0 0"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    batch = fl.Batch(fl.load(xml, links=links), 2, record_failures=3)
    batch.step(4)
    batch.qvel[1] = np.nan
    batch.step()
    batch.failures[0].save(tmp_path / "failure.npz")
    read = fl.load_failure(str(tmp_path / "failure.npz"))
    assert read.model.names("link") == ["pin"]
    assert_equal(replayed(read), replayed(batch.failures[0]))


def test_an_invalid_failure_file_is_refused(tmp_path, rng):
    text, other = tmp_path / "text.npz", tmp_path / "other.npz"
    text.write_text("no archive")
    np.savez(other, a=np.zeros(3))
    for path, told in (
        (text, "not a file of a failure"),
        (other, "not a file of a failure"),
        (tmp_path / "no.npz", "file not found"),
    ):
        with pytest.raises(fl.ModelError, match=told):
            fl.load_failure(path)
    batch = drawn(fl.load(SCENE), rng)
    run(batch, rng, 12, spoiled("qvel", np.nan))
    with pytest.raises(fl.ModelError):
        batch.failures[0].save(tmp_path / "failure.zip")
    with pytest.raises(fl.ModelError):
        batch.failures[0].save(tmp_path / "nowhere" / "failure.npz")
    batch.failures[0].save(text)
    held = dict(np.load(text))
    np.savez(text, **held | {"layout": "another"})
    with pytest.raises(fl.ModelError, match="another version"):
        fl.load_failure(text)


@pytest.mark.parametrize("name", ["humanoid", "hand", "pile"])
def test_tables_are_rebuilt_and_not_read_from_a_file(name, tmp_path):
    model = fl.bundled(name)
    model.opt.iterations, model.actuator_ctrllimited = 7, False
    failure = failed(model)
    failure.save(tmp_path / "failure.npz")
    held = np.load(tmp_path / "failure.npz")
    assert not {"int_buffer", "sizes"} & {*held}
    read = fl.load_failure(tmp_path / "failure.npz").model
    for buffer in ("real_buffer", "int_buffer", "scalar_buffer"):
        assert getattr(read, buffer).tobytes() == getattr(failure.model, buffer).tobytes()
    assert read.size_values() == failure.model.size_values()


def failed(model):
    """Returns a failure of a world that got a NaN."""
    batch = fl.Batch(model, 2, record_failures=3, given_contacts=1)
    batch.qvel[1] = np.nan
    batch.step()
    return batch.failures[0]


CRAFTED = {
    "state.warning": ("state.user_actuator", np.zeros((1, 3))),  # an address, which is not part of any state
    "state.qpos": ("state.qpos", np.zeros((1, 999))),
    "options": ("options", np.full(30, 99)),
    "real_buffer": ("real_buffer", np.zeros(3)),
    "model.actuator_ctrllimited": ("model.actuator_ctrllimited", np.full(1, 7)),
    "own": ("own.cand_geom1", np.zeros(3)),
    "given_contacts": ("given_contacts", np.array(10**9)),
    "causes": ("causes", np.array(["x"])),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_crafted_arrays_of_a_file_are_refused(case, tmp_path):
    path = tmp_path / "failure.npz"
    failed(fl.load(SCENE)).save(path)
    name, value = CRAFTED[case]
    np.savez(path, **dict(np.load(path)) | {name: value})
    with pytest.raises(fl.ModelError):
        fl.load_failure(path)


@pytest.mark.parametrize(
    "table, value", [("body_dofnum", 2**31 - 1), ("dof_treeid", 10**6), ("jnt_qposadr", 2**31 - 1)]
)
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.filterwarnings("ignore:MuJoCo. Invalid model")
def test_tables_of_mujocos_model_in_a_file_are_checked(table, value, tmp_path):
    path, mj_model = tmp_path / "failure.npz", fl.load(SCENE).mj_model
    failed(fl.load(SCENE)).save(path)
    getattr(mj_model, table)[-1] = value
    mjb = np.zeros((mujoco.mj_sizeModel(mj_model), 1), np.uint8)
    mujoco.mj_saveModel(mj_model, None, mjb)
    np.savez(path, **dict(np.load(path)) | {"mjb": mjb[:, 0]})
    with pytest.raises(fl.ModelError):
        fl.load_failure(path)


def test_batches_in_threads_record_separately(rng):
    model = fl.load(SCENE)
    batches = [drawn(model, np.random.default_rng(k), nthread=2) for k in range(4)]

    def work(k):
        batches[k].step(9)
        batches[k].qvel[k] = np.nan
        batches[k].step(4)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, batch in enumerate(batches):
        bad = [f for f in batch.failures if f.cause == "non_finite"]
        assert [(f.world, f.step, f.nstep) for f in bad] == [(k, 9, KEPT)]


def test_failures_do_not_depend_on_the_thread_count(rng):
    found = []
    for nthread, size in itertools.product((1, 2), (N, 40)):
        model = fl.bundled("humanoid")
        model.opt.iterations, model.opt.tolerance = 1, 1e-14
        batch = fl.Batch(model, size, nthread=nthread, record_failures=3)
        batch.qpos[:, 2] -= 0.02 * (np.arange(size) % N)
        batch.step(5)
        found.append([repr(f) for f in batch.failures if f.world < N])
    assert found[0] and all(x == found[0] for x in found[1:])
