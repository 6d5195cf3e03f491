"""Steps of real and bundled models against MuJoCo, from the same states."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from oracles import contact_parity, parity
from robots.models import ROBOTS

# no geoms that can collide, or none within reach
UNTOUCHED = {
    *("gymnasium/inverted_double_pendulum", "gymnasium/inverted_pendulum", "gymnasium/reacher", "dm_control/lqr"),
    *(f"dm_control/{name}" for name in ("acrobot", "ball_in_cup", "cartpole", "finger", "fish")),
    *(f"dm_control/{name}" for name in ("pendulum", "point_mass", "reacher", "swimmer")),
    "gymnasium/swimmer",
    *("bundled/cartpole", "bundled/slider_crank", "bundled/double_pendulum", "bundled/pendulum"),
}
FEW, MANY = 24, 504  # states of a model, in tiles of 8
# contacts of meshes, height fields and cylinders; equalities to mocap bodies; both cones
SAMPLE = (
    *("gymnasium_robotics/assets/fetch/push", "mjx/shadow_hand/scene_right", "mjx/barkour_v0/assets/barkour_v0_mjx"),
    *("metaworld/sawyer_xyz/sawyer_coffee", "robosuite/robots/jaco/robot"),
)
CONES = {"pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}


def check(name, count, path, cone=None):
    worst = parity.compare(name, count, path, cone)
    print(parity.table({name: worst}))
    assert not worst.beyond()
    assert worst.ncon > 0 or name in UNTOUCHED
    assert worst.nefc > worst.ncon or worst.ncon == 0


@pytest.mark.parametrize("name", parity.MODELS)
def test_steps_equal_mujoco(name, real_model):
    check(name, FEW, real_model)


@pytest.mark.parametrize("name", SAMPLE)
def test_steps_of_robots_equal_mujoco(name, real_model):
    assert not parity.compare(name, FEW, real_model).beyond()


@pytest.mark.slow
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("name", [name for name in parity.MODELS if name != "bundled/pyramid"])  # minutes in MuJoCo
def test_many_steps_equal_mujoco(name, cone, real_model):
    check(name, MANY, real_model, CONES[cone])


@pytest.mark.slow
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("wheel", ROBOTS)
def test_steps_of_all_robots_equal_mujoco(wheel, cone, real_model):
    real_model(f"{wheel}/")
    results, left_out = parity.compare_wheel(wheel, 2 * FEW, CONES[cone])
    print(parity.table({wheel: parity.together(results, wheel)}))
    beyond = {name: worst.beyond() for name, worst in results.items() if worst.beyond()}
    assert results and not beyond
    assert all(left_out.values())


def test_a_contact_that_is_not_the_deepest_is_noticed():
    mj = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="cylinder" size="0.2 0.3"/><body pos="0.1 0.05 0.55" euler="30 20 10">
        <freejoint/><geom type="box" size="0.2 0.2 0.2"/></body></worldbody></mujoco>"""
    )
    expected, data = mujoco.MjData(mj), fl.Data(fl.load(mj))
    mujoco.mj_forward(mj, expected)
    fl.forward(data.model, data)
    ours, theirs = (contact_parity.touching(one.contact) for one in (data, expected))
    error = parity.BOUNDS[parity.DEPTH]
    assert contact_parity.depth_error(mj, expected, ours, theirs) < error
    deeper, turned = ours | {"dist": ours["dist"] - 1e-3}, ours | {"frame": ours["frame"].copy()}
    turned["frame"][:, :3] = np.array([0.6, 0.0, 0.8])
    lost = {name: rows[:0] for name, rows in ours.items()}
    for wrong in (deeper, turned, lost):
        assert contact_parity.depth_error(mj, expected, wrong, theirs) > 100 * error
