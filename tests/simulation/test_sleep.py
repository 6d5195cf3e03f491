"""Sleeping: scenes against MuJoCo, bitwise stillness, independence of the batch, errors."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import broad_phase
from featherlane.engine.model.enums import Enable
from featherlane.engine.model.sleep import AWAKE
from scenes.sleep import SCENES, STACK, TWO, roll, scene, worst_difference

# both solvers converge to rounding, and the error stays small over a hundred steps
POSITION = 1e-11
SAMPLE = (
    "ball into a stack",
    "perturbed",
    "welded while asleep",
    "tied",
    "mocap",
    "policies",
    "joints",
    "actuators",
    "without islands",
    "discrete",
)
WOKEN = {"tied": 2, "ball into a stack": 3, "perturbed": 4, "mocap": 10}  # at least, for meaningful scenes
ROLLING, _, _ = SCENES["ball into a stack"]


def rolled(world, steps, start=0):
    """Steps a world, or a batch of one, through the scene."""
    for i in range(start, start + steps):
        if isinstance(world, fl.Batch):
            for w in range(world.nworld):
                roll(i - 3 * w, _Row(world, w))
            world.step()
        else:
            roll(i, world)
            fl.step(world.model, world)


class _Row:
    """Returns one world of a batch in the form that `roll` takes."""

    def __init__(self, batch, w):
        self.qvel = batch.qvel[w]


# ---- against MuJoCo --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SAMPLE)
def test_trees_sleep_and_wake_as_in_mujoco(name):
    worst, fell, woke = worst_difference(name)
    assert worst < POSITION
    assert woke == WOKEN.get(name, woke)
    assert fell > 0 or name == "without islands"


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in SCENES if n not in SAMPLE])
def test_trees_sleep_and_wake_as_in_mujoco_in_all_scenes(name):
    assert worst_difference(name)[0] < POSITION


# ---- laws ------------------------------------------------------------------------------------------------------------
def test_sleeping_trees_do_not_change():
    model = fl.load(ROLLING)
    data = fl.Data(model)
    rolled(data, 60)
    assert (data.tree_asleep[:3] >= 0).all() and data.tree_asleep[3] >= 0
    q = data.qpos.copy()
    rolled(data, 12, start=60)
    asleep = np.repeat(data.tree_asleep >= 0, 7)
    assert asleep[:21].all() and not asleep[21:].any()
    assert np.array_equal(data.qpos[asleep], q[asleep])
    assert not data.qvel[:18].any() and not data.qacc[:18].any() and not data.qfrc_constraint[:18].any()


def test_actuators_of_sleeping_trees_have_no_force():
    xml, _, _ = SCENES["actuators"]
    model = fl.load(xml)
    data = fl.Data(model)
    fl.step(model, data, 12)
    data.ctrl[:] = 0.5
    fl.step(model, data)
    assert data.tree_asleep[0] >= 0 and data.tree_asleep[1] < 0
    assert data.actuator_force[0] == 0 and data.qfrc_actuator[0] == 0 and data.actuator_force[1] == 0.5


def test_a_sleeping_scene_has_no_contacts_and_its_time_advances():
    model = fl.load(scene(STACK))
    data = fl.Data(model)
    fl.step(model, data, 60)
    before = data.time
    fl.step(model, data, 5)
    assert data.ncon == 0 and data.nefc == 0 and data.solver_niter == 0
    assert data.time == pytest.approx(before + 5 * model.opt.timestep)


def test_worlds_are_bitwise_equal_in_any_batch():
    model, n = fl.load(ROLLING), 9
    batch = fl.Batch(model, n, nthread=1)
    rolled(batch, 95)
    assert len(np.unique(batch.tree_asleep, axis=0)) > 1
    for w in range(n):
        alone = fl.Data(model)
        rolled(alone, 95, start=-3 * w)
        for name in ("qpos", "qvel", "qacc_warmstart", "tree_asleep", "sleep_qpos"):
            assert np.array_equal(getattr(batch, name)[w], getattr(alone, name)), (w, name)


def test_coupled_lengths_do_not_sleep():
    """MuJoCo behaves alike, but there the step raises an error at its end."""
    xml = scene('<body><joint name="j" axis="0 1 0"/><geom size=".1" pos=".2 0 1"/></body>')
    tail = '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
    tail += '<equality><tendon tendon1="t"/></equality>'
    with pytest.raises(fl.UnsupportedFeatureError, match="tendons"):
        fl.load(xml.replace("</mujoco>", f"{tail}</mujoco>"))
    model = fl.load(xml.replace("</mujoco>", f"{tail}</mujoco>").replace('sleep="enable"', ""))
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.enableflags = Enable.SLEEP


def test_single_precision_sleeps_too():
    model = fl.load(scene(STACK))
    model.opt.tolerance = 1e-6
    batch = fl.Batch(model, 3, dtype="float32")
    batch.step(80)
    assert (batch.tree_asleep >= 0).all() and not batch.qvel.any()


def test_without_the_flag_no_bit_changes():
    model = fl.load(scene(STACK))
    model.opt.enableflags = 0
    plain = fl.load(scene(STACK).replace('sleep="enable"', ""))
    ours, other = fl.Data(model), fl.Data(plain)
    fl.step(model, ours, 60)
    fl.step(plain, other, 60)
    assert np.array_equal(ours.qpos, other.qpos) and (ours.tree_asleep == AWAKE).all() and ours.ncon > 0


def test_a_tile_that_is_split_wakes_the_same_trees(monkeypatch):
    from featherlane.engine.simulation.tile import capacity

    model, n = fl.load(ROLLING), 4
    roomy = fl.Batch(model, n, nthread=1)
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", 14)  # one world has 13
    tight = fl.Batch(model, n, nthread=1)
    for batch in (roomy, tight):
        batch.qpos[:, 21] = -0.5 + 0.001 * np.arange(n)
        batch.qpos[:, 0] = 1e-4 * np.arange(n)
        rolled(batch, 100)
    assert np.array_equal(roomy.qpos, tight.qpos) and np.array_equal(roomy.tree_asleep, tight.tree_asleep)


@pytest.mark.parametrize("limit", [3, 4, 6])
def test_a_full_tile_wakes_trees_in_parts(monkeypatch, limit):
    """In each world another ball rolls into a sleeping one: 3 contacts a world, 2 before it wakes, 8 in the tile."""
    from featherlane.engine.simulation.tile import capacity

    n, ball = 4, '<body pos="{} {} .1"><freejoint/><geom size=".1"/></body>'
    model = fl.load(scene("".join(ball.format(x, y) for y in (0.0, -0.5) for x in range(n))))
    asleep, found = fl.Batch(model, n, nthread=1), []
    asleep.step(60)
    assert (asleep.tree_asleep >= 0).all()
    for w in range(n):
        asleep.qvel[w, 6 * (n + w) + 1], asleep.qvel[w, 6 * (n + w) + 3] = 3.0, -30.0
    for room in (capacity.CONTACT_LIMIT, limit):
        monkeypatch.setattr(capacity, "CONTACT_LIMIT", room)
        batch = fl.Batch(model, n, nthread=1)
        batch.restore(asleep.checkpoint())
        batch.step(70)
        found.append((batch.qpos.copy(), batch.tree_asleep.copy()))
        assert not batch.status["contacts_full"].any()
    assert ((found[0][1][:, :n] < 0) == np.eye(n, dtype=bool)).all()
    assert np.array_equal(found[0][0], found[1][0]) and np.array_equal(found[0][1], found[1][1])


def test_many_geoms_sleep_equally_with_box_tree_and_pair_list(monkeypatch):
    ball = '<body pos="{} {} .0998"><freejoint/><geom size=".1"/></body>'
    balls = "".join(ball.format(0.199 * (i % 5), 0.5 * (i // 5)) for i in range(20))  # four rows, touching in each
    found = []
    for limit in (10**9, 0):
        monkeypatch.setattr(broad_phase, "CROWD_PAIRS", limit)
        batch = fl.Batch(fl.load(scene(balls)), 3, nthread=1)
        batch.bind("tree_awake")
        # the last trees of world w are asleep, each alone
        for w in range(3):
            batch.tree_asleep[w, 6 * w + 4 :] = np.arange(6 * w + 4, 20)
        batch.forward()
        found.append((batch.ncon.copy(), batch.bind("tree_awake").copy()))
        batch.step(5)
        found[-1] += (batch.qpos.copy(), batch.tree_asleep.copy())
    for listed, crowd in zip(*found, strict=True):
        assert np.array_equal(listed, crowd)
    awake, contacts = found[0][1], found[0][0]
    assert awake.sum(axis=1).min() < 20 and len(set(contacts)) > 1


# ---- state -----------------------------------------------------------------------------------------------------------
def test_policy_init_sleeps_after_a_reset():
    xml, _, _ = SCENES["policies"]
    model = fl.load(xml)
    data, batch = fl.Data(model), fl.Batch(model, 3)
    start = mujoco.MjData(model.mj_model).tree_asleep
    assert (start[2:] >= 0).all()
    fl.step(model, data, 50)
    batch.step(50)
    data.reset()
    batch.reset()
    assert np.array_equal(data.tree_asleep, start) and (batch.tree_asleep == start).all()


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_non_finite_world_is_reset_asleep():
    xml, _, _ = SCENES["policies"]
    model = fl.load(xml)
    batch = fl.Batch(model, 2)
    batch.step(40)
    batch.qpos[1, 0] = np.nan
    batch.step()
    assert batch.nreset[1] == 1
    assert np.array_equal(batch.tree_asleep[1, 2:], model.tree_asleep0[2:]) and batch.tree_asleep[1, 1] < 0


def test_copies_and_checkpoints_keep_sleeping_trees():
    model = fl.load(ROLLING)
    data, batch = fl.Data(model), fl.Batch(model, 2)
    rolled(data, 60)
    batch.step(60)
    twin, kept = copy.copy(data), batch.checkpoint()
    rolled(data, 40, start=60)
    rolled(twin, 40, start=60)
    assert np.array_equal(data.qpos, twin.qpos) and np.array_equal(data.tree_asleep, twin.tree_asleep)
    batch.qvel[:, 0] = 1.0
    batch.step(3)
    batch.restore(kept)
    assert (batch.tree_asleep >= 0).all() and np.array_equal(batch.get_data(1).tree_asleep, batch.tree_asleep[1])


def test_switching_the_flag_off_wakes():
    model = fl.load(scene(TWO))
    data, batch = fl.Data(model), fl.Batch(model, 2)
    fl.step(model, data, 50)
    batch.step(50)
    assert (data.tree_asleep >= 0).all() and (batch.tree_asleep >= 0).all()
    model.opt.enableflags = 0
    fl.step(model, data)
    batch.step()
    assert (data.tree_asleep == AWAKE).all() and (batch.tree_asleep == AWAKE).all() and data.ncon == 8


def test_the_flag_can_be_switched_on_later():
    model = fl.load(scene(TWO).replace('sleep="enable"', ""))
    batch = fl.Batch(model, 2)
    batch.step(20)
    model.opt.enableflags = Enable.SLEEP
    batch.step(50)
    assert (batch.tree_asleep >= 0).all()


def test_an_overwritten_sleep_cycle_is_harmless():
    model = fl.load(scene(STACK))
    data = fl.Data(model)
    fl.step(model, data, 60)
    data.tree_asleep[:] = 1e9, 2, 1
    data.qvel[0] = 1e-3
    fl.step(model, data, 3)
    assert data.tree_asleep[0] < 0 and np.isfinite(data.qpos).all()


def test_energy_and_inverse_of_a_sleeping_world():
    model = fl.load(scene(STACK, flags='energy="enable" fwdinv="enable"'))
    data, other = fl.Data(model), mujoco.MjData(model.mj_model)
    for _ in range(60):
        fl.step(model, data)
        mujoco.mj_step(model.mj_model, other)
    assert data.energy[0] == pytest.approx(other.energy[0], rel=1e-12) and data.energy[1] == 0
    assert not data.solver_fwdinv.any()
    fl.inverse(model, data)
    assert not data.qfrc_inverse.any()


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wrong", ['integrator="RK4"', 'integrator="discrete"'])
def test_combinations_unsupported_by_mujoco_are_refused(wrong):
    flags = 'island="disable"' if "discrete" in wrong else ""
    with pytest.raises(fl.UnsupportedFeatureError):
        fl.load(scene(TWO, option=wrong, flags=flags))


def test_setting_such_a_combination_is_refused():
    model = fl.load(scene(TWO))
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.integrator = "rk4"
    model.opt.enableflags = 0
    model.opt.integrator = "rk4"
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.enableflags = Enable.SLEEP


def test_derivatives_are_refused():
    model = fl.load(scene(TWO))
    with pytest.raises(fl.UnsupportedFeatureError):
        fl.linearize(model, fl.Data(model), method="finite_difference")


def test_a_tree_with_a_tendon_equality_does_not_start_asleep():
    bodies = """<body name="a" sleep="init"><joint name="p"/><geom size=".1"/></body>"""
    extra = """<tendon><fixed name="t"><joint joint="p" coef="1"/></fixed></tendon>
      <equality><tendon tendon1="t"/></equality>"""
    model = fl.load(f"<mujoco><worldbody>{bodies}</worldbody>{extra}</mujoco>")
    data = fl.Data(model)
    fl.step(model, data)
    assert (data.tree_asleep < 0).all()
