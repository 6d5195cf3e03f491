"""`use` on environments of Gymnasium-Robotics and Meta-World, against MuJoCo.

These libraries work with older versions of MuJoCo than the oracle's.  The fixtures adapt what they call, so that the
comparison is with MuJoCo 4.0.1.
"""

from types import SimpleNamespace

import gymnasium as gym
import mujoco
import numpy as np
import pytest

from featherlane.integrations.gymnasium import _world, use

STEP = 1e-9  # relative, of one action from equal states with converged solvers
CURVED = 0.02  # if curved geoms touch, whose contacts have other points and normals (docs/pairs.md)
FORCE = 1e-6  # of contact forces: a difference of qacc times efc_D
STATE = "qpos qvel act qacc_warmstart mocap_pos mocap_quat".split()
ROUND, BOX = (4, 5, 7), (4, 5, 6, 7)  # geom types: ellipsoid, cylinder, mesh; and box
ROBOTICS = """FetchReach-v4 FetchPush-v4 FetchSlide-v4 FetchPickAndPlace-v4 HandReach-v3 HandManipulateBlock-v1
    HandManipulateEgg-v1 HandManipulatePen-v1 HandManipulateBlock_ContinuousTouchSensors-v1 AdroitHandDoor-v1
    AdroitHandHammer-v1 AdroitHandPen-v1 AdroitHandRelocate-v1 FrankaKitchen-v1 PointMaze_UMaze-v3
    AntMaze_UMaze-v5""".split()
FREE = {"HandManipulateBlock_ContinuousTouchSensors-v1", "FrankaKitchen-v1", "AntMaze_UMaze-v5", "FetchReach-v4"}
TOUCHING = {"FetchSlide-v4", "HandManipulateEgg-v1", "push"}  # tasks in which curved geoms touch all the time
META_WORLD = """assembly basketball bin-picking button-press door-lock door-open drawer-close faucet-open hand-insert
    lever-pull peg-insert-side plate-slide push push-back shelf-place sweep window-close""".split()
pytestmark = [
    pytest.mark.ci,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore:.*settotalmass"),
]


def flat(observation):
    parts = observation.values() if isinstance(observation, dict) else ()
    return np.concatenate([flat(part) for part in parts]) if parts else np.ravel(observation)


def converged(env):
    option = _world(env).model.opt
    option.solver, option.tolerance, option.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 0.0, 200
    option.noslip_iterations = 0  # a fixed number of iterations does not converge
    return env


def touches_curved(world):
    """Returns whether a pair of geoms touches whose contacts Featherlane computes by other rules (docs/pairs.md)."""
    kinds = np.sort(world.model.geom_type[world.data.contact.geom], axis=1)
    return any(a in BOX and b in BOX and (a in ROUND or b in ROUND) for a, b in kinds) or any(
        a == 3 and b in ROUND for a, b in kinds
    )


def compare(made, count, seed=0):
    """Compares actions from equal states; returns how many were compared.

    An action is compared more coarsely, and is not counted, if curved geoms touch before or after it.
    """
    theirs, ours = converged(made()), use(converged(made()))
    theirs.reset(seed=seed), ours.reset(seed=seed)
    a, b = _world(theirs), _world(ours)
    theirs.action_space.seed(seed)
    compared = 0
    for _ in range(count):
        for name in STATE:
            getattr(b.data, name)[:] = getattr(a.data, name)
        before, action = touches_curved(a), theirs.action_space.sample()
        expected, found = theirs.step(action), ours.step(action)
        bound = CURVED if before or touches_curved(a) else STEP
        scale = max(1.0, np.abs(flat(expected[0])).max())
        np.testing.assert_allclose(flat(found[0]), flat(expected[0]), rtol=0, atol=bound * scale)
        if bound == STEP:
            compared += 1
            assert found[1] == pytest.approx(expected[1], rel=STEP, abs=STEP)
            assert a.data.nefc == b.data.nefc
            scale = max(1.0, np.abs(a.data.efc_force).max(initial=0.0))
            np.testing.assert_allclose(b.data.efc_force, a.data.efc_force, rtol=0, atol=FORCE * scale)
        if expected[2]:
            theirs.reset(seed=seed), ours.reset(seed=seed)
    return compared


@pytest.fixture
def robotics(monkeypatch):
    """Registers Gymnasium-Robotics, which compares numbers with enumerations as MuJoCo up to 3.11 allowed."""
    module = pytest.importorskip("gymnasium_robotics")
    from gymnasium_robotics.utils import mujoco_utils

    gym.register_envs(module)
    numbers = {
        enum: SimpleNamespace(**{name: int(value) for name, value in getattr(mujoco, enum).__members__.items()})
        for enum in ("mjtJoint", "mjtObj")
    }
    monkeypatch.setattr(mujoco_utils, "mujoco", Adapted(numbers))


class Adapted:
    """The module `mujoco` with other attributes."""

    def __init__(self, attributes):
        vars(self).update(attributes)

    def __getattr__(self, name):
        return getattr(mujoco, name)


@pytest.mark.parametrize("name", ROBOTICS)
def test_gymnasium_robotics(name, robotics):
    assert compare(lambda: gym.make(name), 20) >= (20 if name in FREE else name not in TOUCHING)


def test_settling_at_a_reset_uses_featherlane(robotics):
    env = use(gym.make("HandManipulateBlock-v1"))
    calls, step = [], _world(env)._mujoco.mj_step
    _world(env)._mujoco.mj_step = lambda *args, **settings: (calls.append(1), step(*args, **settings))
    env.reset(seed=0)
    assert len(calls) >= 10


def test_agents_of_mamujoco_share_the_swap(robotics):
    pytest.importorskip("pettingzoo")
    from gymnasium_robotics import mamujoco_v1

    env = use(mamujoco_v1.parallel_env("HalfCheetah", "2x3"))
    env.reset(seed=0)
    env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    assert "_step_mujoco_simulation" in vars(_world(env))


@pytest.fixture
def meta_world(monkeypatch):
    """Imports Meta-World, which writes 11 numbers for a weld; since MuJoCo 3.17 it has 12."""
    pytest.importorskip("metaworld")
    from metaworld.sawyer_xyz_env import SawyerMocapBase

    def reset_mocap_welds(self):
        m = self.model
        m.eq_data[m.eq_type == mujoco.mjtEq.mjEQ_WELD, :11] = [0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 5]

    monkeypatch.setattr(SawyerMocapBase, "reset_mocap_welds", reset_mocap_welds)


@pytest.mark.parametrize("name", META_WORLD)
def test_meta_world(name, meta_world):
    made = lambda: gym.make("Meta-World/MT1", env_name=f"{name}-v3", seed=0)  # noqa: E731
    assert compare(made, 20) >= (name not in TOUCHING)
