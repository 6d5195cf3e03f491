"""Every model of seven wheels that MuJoCo loads: it loads here, and its steps are finite."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl
from oracles import parity
from oracles.parity import SINGULAR
from pages import links
from robots import wheels
from robots.models import ROBOTS, survey

NSTEP, SHORT = 1000, 100
SAMPLE = {
    "mjx": "barkour_v0/assets/barkour_v0_mjx convex sensor/sensor shadow_hand/scene_right tendon/tendon",
    "metaworld": "objects/assembly_peg objects/buttonbox objects/mug objects/puck sawyer_xyz/sawyer_soccer",
}
# objects on tables: boxes, cylinders and meshes that come to rest in four seconds
RESTING = tuple(
    f"metaworld/objects/{name}"
    for name in "assembly_peg block block_cyl box club hammer mug peg_block peg_insert plug puck stick".split()
)
STILL, SAME_PLACE, SAME_FORCE = 1e-3, 1e-5, 1e-2  # [m/s, rad/s], [m], relative
SMALL = ("trossen_arm_sim/scene_empty",)  # packages below 1 MB
# number of models of a wheel that MuJoCo loads
LOADED = {"gymnasium_robotics": 33, "robosuite": 52, "mjx": 36, "metaworld": 84, "myosuite": 63}
LOADED |= {"robosuite_models": 23, "gym_aloha": 4}


def checked(real_model, names, nstep: int):
    """Returns the survey of these models without known failures; skips offline."""
    for wheel in {name.split("/")[0] for name in names}:
        real_model(next(name for name in names if name.startswith(wheel)))
    found = survey(names, nstep, print)
    assert found.bad == {}
    return found


@pytest.mark.parametrize("wheel", SAMPLE)
def test_a_sample_of_real_models_steps_without_non_finite_worlds(wheel, real_model):
    found = checked(real_model, [f"{wheel}/{name}" for name in SAMPLE[wheel].split()], SHORT)
    assert not found.unreadable and not found.left_out


@pytest.mark.slow
@pytest.mark.parametrize("wheel", ROBOTS)
def test_all_real_models_load_and_step_without_non_finite_worlds(wheel, real_model):
    real_model(f"{wheel}/")
    names = wheels.models_in(wheel)
    found = checked(real_model, [name for name in names if name not in SINGULAR], NSTEP)
    assert not found.left_out
    assert len(found.good) == LOADED[wheel] - len(SINGULAR & {*names})
    assert max(found.good.values()) > 0


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in SMALL else pytest.mark.slow)
        for name in (*wheels.HELD_OUT_MODELS, *wheels.SECOND_HELD_OUT_MODELS)
    ],
)
def test_robots_named_before_their_first_timing_follow_the_rule_and_equal_mujoco(name, real_model):
    found = checked(real_model, [name], SHORT)
    assert name in found.good
    assert not parity.compare(name, 24, real_model).beyond()
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    scalar = np.isin(mj.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE))
    assert scalar.sum() >= 6 and mj.nu >= 6


@pytest.mark.slow
@pytest.mark.parametrize("name", wheels.MUSCLE_MODELS)
def test_musculoskeletal_models_equal_mujoco(name, real_model):
    mj = parity.oracle(name, real_model)
    met = parity.states(mj, 24, np.random.default_rng(0))
    worst = parity.compare_model(mj, name, 24, met)
    assert not worst.beyond() and worst.nefc > 1000
    assert mj.nu >= 126 and np.mean([state["act"] for state in met]) > 0.2
    assert max(np.abs(state["qpos"] - mj.qpos0).max() for state in met) > 0.5


@pytest.mark.parametrize(
    ("heading", "chosen"),
    [("held-out robots", wheels.HELD_OUT_WHEELS), ("second held-out set", wheels.SECOND_HELD_OUT_WHEELS)],
)
def test_the_page_of_robots_names_the_same_packages_and_files(heading, chosen):
    page = (Path(__file__).parents[1] / "docs" / "performance-goals.md").read_text()
    rows = links.rows(page.partition(f"## Selection of the {heading}\n")[2])
    named = {(row[0], row[1], row[2].split("`")[1]) for row in rows if row[3]}
    assert named == {(w.project, w.version, f"{w.folder}/{w.models[0]}.xml") for w in chosen.values()}
    assert len(named) == 10


@pytest.mark.parametrize("name", RESTING)
def test_rest_poses_of_objects_equal_mujoco(name, real_model):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    model, reference = fl.load(mj), mujoco.MjData(mj)
    data = fl.Data(model)
    mujoco.mj_step(mj, reference, 2 * NSTEP)
    fl.step(model, data, 2 * NSTEP)
    assert data.ncon > 0 and max(np.abs(data.qvel).max(), np.abs(reference.qvel).max()) < STILL
    np.testing.assert_allclose(data.xpos, reference.xpos, rtol=0, atol=SAME_PLACE)
    force = reference.qfrc_constraint
    np.testing.assert_allclose(data.qfrc_constraint, force, rtol=0, atol=SAME_FORCE * max(1.0, np.abs(force).max()))
