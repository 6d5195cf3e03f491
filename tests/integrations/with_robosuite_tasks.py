"""Tasks of robosuite in batches, against robosuite; robosuite 1.5.2 needs MuJoCo 3.9 or older.

`test_other_mujoco.py` runs this file in a separate process.
"""

from __future__ import annotations

import copy
import functools
import logging
import os
import pickle
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import gymnasium
import mujoco
import numpy as np
import pytest
import robosuite
from robosuite.controllers import load_composite_controller_config
from robosuite.environments.manipulation.wipe import DEFAULT_WIPE_CONFIG
from robosuite.models.grippers import GRIPPER_MAPPING
from robosuite.utils.binding_utils import MjRenderContextOffscreen
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from featherlane.enums import FREE, SLIDE
from featherlane.environments import TaskEnv, make_vec
from featherlane.environments import robosuite as ours
from featherlane.errors import InstallationError, ModelError, UnknownNameError
from pages import blocks

N, STEPS, STATES = 2, 4, 80  # worlds, actions, random states
SAME = 1e-9  # of one action, from equal states with converged solvers
# MuJoCo 3 finds one contact of a mesh where Featherlane finds up to four: objects of PickPlace move otherwise
TOLERANCES = {"TwoArmTransport": 1e-5} | dict.fromkeys(("PickPlace", "PickPlaceSingle", "PickPlaceMilk"), 1e-3)
TOLERANCES |= dict.fromkeys(("PickPlaceCan", "PickPlaceCereal", "PickPlaceBread"), 1e-3)
SINGLE = 2e-6  # of observables that robosuite computes in float32
BUFFER = 1e-4  # of depths [relative]: OpenGL stores them in float32, less exactly at distances far above the near plane
PARKED = 5.0  # [m] objects that are not used lie in each other, 10 m away
FLOAT32 = ("_quat_site", "eef_quat", "_to_robot0_eef_pos", "_to_robot0_eef_quat", "-state")
FLOAT32 += tuple(f"{name}_quat" for name in ("base", "frame", "tool", "payload", "trash", "lid_handle"))
UNUSED = ("WipingGripper",)  # without actuators
logging.disable(logging.WARNING)


def converged(option):
    option.tolerance, option.iterations = 0.0, 100


class Pairs:
    """Worlds of a task, each next to a live environment of robosuite with the same state."""

    def __init__(self, name, n=N, robots=None, **settings):
        robots = robots or (["Panda", "Panda"] if name.startswith("TwoArm") else "Panda")
        given = {key: settings[key] for key in settings if key != "options"} | settings.get("options", {})
        self.env = TaskEnv(getattr(ours, name)(robots=robots, pool=n, **settings), n, nthread=1)
        self.live = [
            robosuite.make(name, robots=robots, seed=0, **ours.source.FIXED, **copy.deepcopy(given)) for _ in range(n)
        ]
        for w, live in enumerate(self.live):
            converged(live.sim.model._model.opt)
            for _ in range(w):
                live.reset()  # other initial states of the same model
        self.env.reset(seed=0)
        converged(self.env.batch.model.opt)
        self.start()

    def start(self):
        """Gives the worlds the initial states of the live environments; returns both observations."""
        task, batch = self.env.task, self.env.batch
        expected = []
        for w, live in enumerate(self.live):
            expected.append(live.reset())
            for robot in live.robots:
                for part in robot.part_controllers.values():
                    part.update(force=True)  # robosuite's first torques use the inertia of an open gripper
            for name, rows in task.edited.items():
                rows[w] = getattr(live.sim.model._model, name).reshape(rows[w].shape)
            task.source.goal.touch[w] = task.source.contacts.present(live)
            task.source.goal.used[w] = getattr(live, "nut_id", getattr(live, "object_id", 0))
        self.copy()
        ids = np.arange(len(self.live))
        task.parts.reset(ids)
        batch.forward()
        task.started(batch, ids)
        return self.env._observations.observe(), expected

    def copy(self):
        """Copies the states of the live environments."""
        for w, live in enumerate(self.live):
            for name in ("qpos", "qvel", "qacc_warmstart"):
                getattr(self.env.batch, name)[w] = getattr(live.sim.data._data, name)

    def step(self, actions):
        """Returns observations, rewards and successes of both."""
        found = self.env.step(actions)
        results = [live.step(action) for live, action in zip(self.live, actions, strict=True)]
        return found[0], found[1], self.env.task.success, results

    def actions(self, count, seed=0):
        low, high = self.live[0].action_spec
        rng = np.random.default_rng(seed)
        return rng.uniform(low, high, (count, len(self.live), len(low)))


def used(live):
    """Returns which positions belong to robots and objects that are used, (nq,) bool."""
    model, chosen = live.sim.model._model, np.ones(len(live.sim.data.qpos), bool)
    for first in model.jnt_qposadr[model.jnt_type == FREE]:
        chosen[first : first + 7] = np.abs(live.sim.data.qpos[first]) < PARKED
    return chosen


def same_observations(found, expected, tolerance=SAME, without=()):
    """Compares observations by name; scalars of robosuite have one column.  `without`: parts of names to pass over."""
    for w, one in enumerate(expected):
        for name, values in one.items():
            if any(part in name for part in without):
                continue
            close = max(SINGLE, tolerance) if any(part in name for part in FLOAT32) else tolerance
            np.testing.assert_allclose(found[name][w], np.atleast_1d(values), rtol=close, atol=close, err_msg=name)


def compare(name, steps=STEPS, tolerance=SAME, **settings):
    """Compares actions from equal states; `tolerance`: of objects that are used, and of what depends on them."""
    pairs = Pairs(name, **settings)
    same_observations(*pairs.start())
    for action in pairs.actions(steps):
        found, rewards, success, results = pairs.step(action)
        for w, live in enumerate(pairs.live):
            qpos, ours, arms = live.sim.data.qpos, pairs.env.batch.qpos[w], jointed(live)
            np.testing.assert_allclose(ours[arms], qpos[arms], rtol=0, atol=SAME)
            np.testing.assert_allclose(ours[used(live)], qpos[used(live)], rtol=0, atol=tolerance)
            assert rewards[w] == pytest.approx(results[w][1], rel=tolerance, abs=tolerance)
            assert success[w] == bool(live._check_success())
        same_observations(found, [result[0] for result in results], 1e4 * tolerance)
        pairs.copy()
    return pairs


def jointed(live):
    """Returns which positions are of hinges and slides, (nq,) bool."""
    model, chosen = live.sim.model._model, np.zeros(len(live.sim.data.qpos), bool)
    chosen[model.jnt_qposadr[model.jnt_type >= SLIDE]] = True
    return chosen


NAMES = [task.name.removeprefix("robosuite.") for task in ours.TASKS]
SPARSE = ("ToolHang", "TwoArmTransport")  # without a shaped reward
NEVER = SPARSE  # no random state succeeds


@pytest.mark.parametrize("name", NAMES)
def test_actions_from_equal_states_have_equal_results(name):
    compare(name, tolerance=TOLERANCES.get(name, SAME), reward_shaping=name not in SPARSE)


@pytest.mark.parametrize("name", ["Lift", "Door", "Stack"])
def test_most_of_200_random_actions_agree(name):
    """The others have contact between fingers, or of meshes of the arm."""
    pairs, same = Pairs(name), []
    pairs.start()
    for action in pairs.actions(200):
        pairs.step(action)
        for w, live in enumerate(pairs.live):
            same.append(np.abs(pairs.env.batch.qpos[w] - live.sim.data.qpos)[jointed(live)].max() < SAME)
        pairs.copy()
    assert np.mean(same) > 0.9


def half_length(model, data, geom, direction):
    """Returns how far a cylinder, box or mesh reaches from the origin in a direction [m]: its support function."""
    local, size = data.geom_xmat[geom].reshape(3, 3).T @ direction, model.geom_size[geom]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CYLINDER:
        reach = size[0] * np.hypot(local[0], local[1]) + size[1] * abs(local[2])
    else:
        assert model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX
        reach = np.abs(local) @ size
    return reach + data.geom_xpos[geom] @ direction


def least_penetration(model, data, first, second, start):
    """Returns the least penetration of two geoms [m] near a direction, and its direction, by a search of directions."""
    depth = lambda n: half_length(model, data, first, n) + half_length(model, data, second, -n)  # noqa: E731
    for size in (1e-2, 1e-4, 1e-6):
        tangents = np.linalg.svd(start[None])[2][1:]
        turned = lambda x, a=start, t=tangents: (a + x @ t) / np.linalg.norm(a + x @ t)  # noqa: E731
        corners = np.array([[0.0, 0.0], [size, 0.0], [0.0, size]])
        options = {"initial_simplex": corners, "xatol": 1e-12, "fatol": 1e-18, "maxiter": 1000}
        found = minimize(lambda x, turned=turned: depth(turned(x)), np.zeros(2), method="Nelder-Mead", options=options)
        start = turned(found.x)
    return depth(start), start


def test_differences_of_cylinders_are_those_of_mujocos_penetration():
    """Compares the depths of the pedestal in the hole with an independent minimum; MuJoCo's tolerance is 1e-6 m."""
    pairs = Pairs("TwoArmPegInHole", n=1)
    live, rng, errors = pairs.live[0], np.random.default_rng(0), []
    model, data = live.sim.model._model, live.sim.data._data
    for _ in range(60):
        live.step(rng.uniform(*live.action_spec))
        live.sim.forward()
        pairs.copy()
        found = pairs.env.batch.contacts(output=("geom", "dist", "normal"))
        assert found.found[0] == data.ncon
        for k in range(data.ncon):
            geoms = found.geom[0, k]
            if set(model.geom_type[geoms]) == {mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_BOX}:
                depth, normal = least_penetration(model, data, *geoms, found.normal[0, k])
                (same,) = [c for c in range(data.ncon) if set(data.contact.geom[c]) == set(geoms)]
                theirs = data.contact.frame[same, :3] * np.sign(data.contact.frame[same, :3] @ normal)
                errors.append((-found.dist[0, k] - depth, -data.contact.dist[same] - depth))
                errors[-1] += tuple(np.linalg.norm(n - normal) for n in (found.normal[0, k], theirs))
    ours, mujocos, normals, mujocos_normals = np.abs(errors).T
    assert ours.max() < 1e-13 and normals.max() < 1e-6
    assert 1e-8 < mujocos.max() < 2e-6 and 1e-5 < mujocos_normals.max() < 1e-2


def test_rewards_that_are_not_shaped_need_no_contacts_of_fingers():
    pairs = compare("NutAssembly", reward_shaping=False)
    assert not pairs.env.task.source.contacts.names


@pytest.mark.parametrize("kind", ["OSC_POSITION", "JOINT_POSITION", "JOINT_TORQUE"])
def test_controllers_are_those_of_the_configuration(kind):
    config = load_composite_controller_config(robot="Panda")
    part = config["body_parts"]["right"]
    limits = [0.1] * 7 if kind.startswith("JOINT") else [0.05] * 3
    part.update(type=kind, output_max=limits, output_min=[-each for each in limits], qpos_limits=None)
    compare("Lift", controller_configs=config)


def test_impedance_and_options_are_those_of_the_configuration():
    config = load_composite_controller_config(robot="Sawyer")
    config["body_parts"]["right"].update(impedance_mode="variable", input_ref_frame="world", uncouple_pos_ori=False)
    pairs = compare("Door", robots="Sawyer", controller_configs=config, control_freq=10, options={"use_latch": False})
    assert pairs.env.frame_skip == 50 and "handle_qpos" not in pairs.env.single_observation_space


@pytest.mark.parametrize("robot", ["UR5e", "IIWA", "Kinova3", "XArm7"])
def test_other_robots(robot):
    """MuJoCo 3 finds fewer contacts between the meshes of their own grippers."""
    compare("Stack", robots=robot, steps=2, gripper_types="PandaGripper")


@pytest.mark.parametrize("gripper", sorted(name for name in GRIPPER_MAPPING if name and name not in UNUSED))
def test_grippers_have_the_same_controls(gripper):
    pairs = Pairs("Lift", n=1, gripper_types=gripper)
    pairs.start()
    for action in pairs.actions(6):
        pairs.step(action)
        np.testing.assert_allclose(pairs.env.batch.ctrl[0, 7:], pairs.live[0].sim.data.ctrl[7:], rtol=0, atol=1e-12)
        pairs.copy()


def test_robots_with_meshes_or_two_arms():
    compare("TwoArmLift", robots="Baxter", steps=2)
    compare("Stack", robots="Jaco", steps=2)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Wipe"])  # whose rewards depend on the last action
def test_rewards_successes_and_observations_of_any_state_are_equal(name):
    pairs = Pairs(name, n=1, reward_shaping=name not in SPARSE)
    pairs.start()
    live, env = pairs.live[0], pairs.env
    task, batch, rng = env.task, env.batch, np.random.default_rng(5)
    rewards, first = [], np.arange(1)
    for _ in range(STATES):
        scatter(live, rng)
        pairs.copy()
        batch.forward()
        task.source.goal.touch[:] = task.source.contacts.of(batch, None)
        expected = live.reward(None), bool(live._check_success())
        assert task.reward(batch, None, None)[0] == pytest.approx(expected[0], rel=SAME, abs=SAME)
        assert task.success[0] == expected[1]
        task.proceed(batch, first, env.random)
        seen = live._get_observations(force_update=True)
        same_observations(env._observations.observe(), [seen], without=("joint_acc", "proprio-state"))
        rewards.append((round(expected[0], 6), expected[1]))
    assert len({reward for reward, _ in rewards}) > 1 or name in NEVER
    assert any(success for _, success in rewards) or name in (*NEVER, "TwoArmPegInHole")


def scatter(live, rng):
    """Moves robots, fingers and objects at random, some objects to places that matter: sites, bodies, grippers."""
    model, data = live.sim.model._model, live.sim.data._data
    live.start_qpos = qpos = getattr(live, "start_qpos", data.qpos.copy())
    data.qpos[:], data.qvel[:] = qpos, 0.1 * rng.normal(size=model.nv)
    moving = model.jnt_qposadr[model.jnt_type >= SLIDE]
    data.qpos[moving] += rng.normal(0, rng.choice([0.0, 0.1, 0.5]), len(moving))
    live.sim.forward()
    places, targets = np.concatenate([data.xpos, data.site_xpos, data.geom_xpos]), targets_of(live)
    together = rng.random() < 0.1
    for k, joint in enumerate(np.flatnonzero(model.jnt_type == FREE)):
        first, kind = model.jnt_qposadr[joint], 2 if together else rng.integers(0, 4)
        if kind == 0 or abs(data.qpos[first]) > PARKED or (kind == 2 and k >= len(targets)):
            continue
        grips = [site for robot in live.robots for site in robot.eef_site_id.values()]
        place = data.site_xpos[rng.choice(grips)] if kind == 1 else targets[k] if kind == 2 else rng.choice(places)
        data.qpos[first : first + 3] = place + rng.normal(0, 0.01, 3) + [0, 0, rng.choice([0.01, 0.05])]
        if rng.integers(0, 2) and kind != 2:
            data.qpos[first + 3 : first + 7] += rng.normal(0, 0.3, 4)
            data.qpos[first + 3 : first + 7] /= np.linalg.norm(data.qpos[first + 3 : first + 7])
    live.sim.forward()


def targets_of(live):
    """Returns where the first objects belong, (k, 3) [m]."""
    if hasattr(live, "target_bin_placements"):
        return live.target_bin_placements
    if hasattr(live, "transport"):
        return np.array([live.transport.target_bin_pos, live.transport.trash_bin_pos]) + [0, 0, 0.02]
    model = live.sim.model._model
    return live.sim.data.xpos[[k for k in range(model.nbody) if model.body(k).name in ("peg1", "peg2")]]


# ---- Wipe ------------------------------------------------------------------------------------------------------------
def pairs_of_wipe(**config):
    return Pairs("Wipe", reward_shaping=True, options={"task_config": DEFAULT_WIPE_CONFIG | config})


def wiping(live, rng):
    """Returns an action that moves the tool to the nearest marker, and presses it on the table."""
    markers, action = live.model.mujoco_arena.markers, rng.uniform(-0.1, 0.1, 6)
    left = [live.sim.model.body_name2id(marker.root_body) for marker in markers if marker not in live.wiped_markers]
    if left:
        offsets = live.sim.data.body_xpos[left] - live._get_eef_xpos("right")
        nearest = offsets[np.argmin(np.linalg.norm(offsets, axis=1))]
        action[:3] += [15.0, 15.0, 12.0] * nearest - [0.0, 0.0, 0.25]
    return np.clip(action, -1.0, 1.0)


@pytest.mark.parametrize(
    "config",
    [
        {"num_markers": 12, "line_width": 0.08, "ee_accel_penalty": 0.3},
        {"num_markers": 6, "use_condensed_obj_obs": False, "pressure_threshold_max": 5.0, "two_clusters": True},
    ],
)
def test_markers_are_wiped(config):
    """Compares 200 actions, or those before the end of an episode."""
    pairs, rng = pairs_of_wipe(**config), np.random.default_rng(0)
    same_observations(*pairs.start())
    goal, task, batch = pairs.env.task.source.goal, pairs.env.task, pairs.env.batch
    for _ in range(200):
        found, rewards, success, results = pairs.step(np.array([wiping(live, rng) for live in pairs.live]))
        ended = task.terminated(batch)
        for w, live in enumerate(pairs.live):
            np.testing.assert_allclose(batch.qpos[w], live.sim.data.qpos, rtol=0, atol=SAME)
            assert rewards[w] == pytest.approx(results[w][1], rel=SAME, abs=SAME)
            assert (success[w], ended[w]) == (live._check_success(), live._check_terminated())
            wiped = [marker in live.wiped_markers for marker in live.model.mujoco_arena.markers]
            np.testing.assert_array_equal(goal.wiped[w], wiped)
            assert batch.ncon[w] == live.sim.data.ncon
        same_observations(found, [result[0] for result in results], 1e4 * SAME)
        if ended.any():
            break
        pairs.copy()
    assert success.any() and goal.places[0, goal.dirt[0], 2] == -0.02 * goal.wiped[0, 0]
    pairs.env.step(np.zeros((N, 6)))  # resets the worlds whose episodes ended
    assert not goal.wiped[ended].any() and (goal.places[ended][:, goal.dirt] == 0.0).all()


@pytest.mark.parametrize("unsafe", ["limit", "collision"])
def test_an_unsafe_arm_ends_the_episode(unsafe):
    pairs = pairs_of_wipe()
    task, batch, goal = pairs.env.task, pairs.env.batch, pairs.env.task.source.goal
    for live in pairs.live:
        live.sim.data.qpos[5 if unsafe == "limit" else 1] = 3.7 if unsafe == "limit" else 1.6
        live.sim.forward()
    pairs.copy()
    batch.forward()
    goal.touch[:] = task.source.contacts.of(batch, None)
    goal.after(batch, np.arange(N))
    rewards = task.reward(batch, None, None)
    for w, live in enumerate(pairs.live):
        assert rewards[w] == pytest.approx(live.reward(None)) and rewards[w] < 0.0
        assert task.terminated(batch)[w] == live._check_terminated() == True  # noqa: E712
        assert goal.touch[w, goal.collision] == (unsafe == "collision")


def test_early_terminations_and_messages_of_wipe_are_options():
    assert pairs_of_wipe(early_terminations=False).env.task.terminated(None) is None
    with pytest.raises(ModelError, match="Wipe: got get_info=True in task_config, allowed is False"):
        pairs_of_wipe(get_info=True)


def test_resets_are_those_of_robosuite():
    """The places of markers follow from the seed, so that their distribution is robosuite's."""
    env = made("Wipe")
    live = robosuite.make("Wipe", robots="Panda", seed=0, **ours.source.FIXED)
    live.reset()
    starts = env.task.source.starts
    for k in range(4):
        live.reset()
        np.testing.assert_array_equal(starts["body_pos"][k], live.sim.model.body_pos)
        np.testing.assert_array_equal(starts["qpos"][k], live.sim.data.qpos)
    dirt = starts["body_pos"][:, env.task.source.goal.markers]
    assert len(np.unique(dirt[:, 0], axis=0)) == 4


# ---- environments ----------------------------------------------------------------------------------------------------
def made(name="Lift", n=3, **settings):
    return make_vec(f"robosuite.{name}", n, pool=4, nthread=1, **settings)


def test_the_page_runs_as_written(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "integrations" / "robosuite.md"
    blocks.run(page.read_text(), tmp_path)


def test_worlds_are_reproducible_in_any_batch():
    few, many = made("NutAssemblySquare", 2), made("NutAssemblySquare", 5)
    for env in (few, many):
        env.reset(seed=3)
    for action in np.random.default_rng(0).uniform(-1, 1, (3, 5, 7)):
        one, other = few.step(action[:2]), many.step(action)
        for name, values in one[0].items():
            np.testing.assert_array_equal(values, other[0][name][:2], err_msg=name)
        np.testing.assert_array_equal(one[1], other[1][:2])


def test_episodes_are_truncated_and_begin_in_states_of_the_pool():
    env = made("Door", horizon=2, info=True, dtype="float32")
    env.reset(seed=0)
    starts = env.task.source.starts
    assert "body_pos" in starts and len(np.unique(starts["body_pos"].reshape(4, -1), axis=0)) == 4
    for k in range(1, 4):
        observations, _, terminated, truncated, infos = env.step(np.zeros((3, 7)))
        assert truncated.all() == (k == 2) and not terminated.any()
        assert observations["door_pos"].dtype == np.float32 and not np.any(infos.get("success"))
    places = starts["body_pos"].astype(np.float32)
    assert all((places == each).all(axis=(1, 2)).any() for each in env.task.edited["body_pos"])
    np.testing.assert_array_equal(env.task.parts.parts["robot0_right_gripper"].closing, 0.0)


def test_a_checkpoint_continues_bitwise():
    env = made("Stack")
    env.reset(seed=1)
    actions = np.random.default_rng(0).uniform(-1, 1, (4, 3, 7))
    env.step(actions[0])
    kept = env.checkpoint()
    first = [env.step(action) for action in actions[1:]]
    env.restore(kept)
    for action, expected in zip(actions[1:], first, strict=True):
        found = env.step(action)
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_array_equal(found[0]["object-state"], expected[0]["object-state"])


@pytest.mark.parametrize("copied", [pickle, cloudpickle, copy.deepcopy], ids=["pickle", "cloudpickle", "deepcopy"])
def test_copies_continue_bitwise(copied):
    env = made("Wipe", 2)
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (4, 2, 6))
    env.step(actions[0])
    other = copied(env) if callable(copied) else copied.loads(copied.dumps(env))
    for action in actions[1:]:
        found, expected = other.step(action), env.step(action)
        np.testing.assert_array_equal(found[1], expected[1])
        for name, values in expected[0].items():
            np.testing.assert_array_equal(found[0][name], values, err_msg=name)
    other.reset(seed=1)
    assert (env.batch.qpos != other.batch.qpos).any()  # they share nothing


def test_gymnasium_runs_environments_in_processes():
    make = functools.partial(gymnasium.make, "featherlane.environments:featherlane/robosuite.Lift", pool=2)
    envs = gymnasium.vector.AsyncVectorEnv([make, make], context="spawn")
    first = envs.reset(seed=[0, 0])[0]
    second, rewards, *_ = envs.step(np.zeros((2, 7), np.float32))
    envs.close()
    for name, values in (first | second).items():
        np.testing.assert_array_equal(values[0], values[1], err_msg=name)
    assert rewards.shape == (2,) and (first["robot0_joint_vel"] != second["robot0_joint_vel"]).any()


CAMERAS = {"camera_names": ["agentview", "robot0_eye_in_hand"], "camera_heights": [24, 48], "camera_widths": 32}


def test_images_of_cameras_are_observed():
    env = made(n=2, **CAMERAS, camera_depths=[True, False])
    images = env.reset(seed=0)[0]
    assert [name for name in images if name.endswith(("_image", "_depth", "/rgb"))] == [
        "agentview_image", "agentview_depth", "robot0_eye_in_hand_image",
    ]  # fmt: skip
    for name, height in (("agentview_image", 24), ("robot0_eye_in_hand_image", 48)):
        assert images[name].shape == (2, height, 32, 3) and images[name].std() > 5
        assert images[name].flags.c_contiguous and images[name].dtype == np.uint8
    depth = images["agentview_depth"]
    assert depth.shape == (2, 24, 32, 1) and depth.dtype == np.float32 and 0.0 <= depth.min() < depth.max() <= 1.0
    model, distance = env.batch.model.mj_model, env.batch.render(env.task.cameras[0]).depth[:, ::-1, :, None]
    far, near = model.vis.map.zfar * model.stat.extent, model.vis.map.znear * model.stat.extent
    # that of robosuite.utils.camera_utils.get_real_depth_map, whose module requires h5py
    np.testing.assert_allclose(near / (1.0 - depth.astype(float) * (1.0 - near / far)), distance, rtol=1e-3)
    with pytest.raises(UnknownNameError, match="nowhere"):
        made(camera_names="nowhere")
    with pytest.raises(ModelError, match="camera_heights: got 2 values, allowed are one or 1"):
        made(camera_names="agentview", camera_heights=[24, 48])


@pytest.mark.parametrize("convention", ["opengl", "opencv"])
def test_rows_of_images_follow_robosuites_convention(convention, monkeypatch):
    expected = made(n=1, **CAMERAS).reset(seed=0)[0]["agentview_image"][:, ::-1]
    monkeypatch.setattr("robosuite.macros.IMAGE_CONVENTION", convention)
    found = made(n=1, **CAMERAS).reset(seed=0)[0]["agentview_image"]
    np.testing.assert_array_equal(found, expected if convention == "opencv" else expected[:, ::-1])


@pytest.mark.skipif(os.environ.get("MUJOCO_GL") != "egl", reason="needs MUJOCO_GL=egl")
def test_images_are_like_those_of_robosuite():
    """robosuite's other renderer has other lights and edges; a wrong order of rows differs five times as much."""
    live = robosuite.make(
        "Lift", robots="Panda", seed=0, hard_reset=False, ignore_done=True, has_renderer=False, camera_depths=True,
        **CAMERAS,
    )  # fmt: skip
    env = made(n=1, **CAMERAS, camera_depths=True)
    env.reset(seed=0)
    batch = env.batch
    expected = live.reset()
    batch.qpos[0] = live.sim.data.qpos
    for name, rows in env.task.edited.items():
        rows[0] = getattr(live.sim.model._model, name).reshape(rows[0].shape)
    found = env._observations.observe()
    for name in ("agentview_image", "robot0_eye_in_hand_image", "agentview_depth", "robot0_eye_in_hand_depth"):
        assert found[name][0].shape == expected[name].shape and found[name].dtype == expected[name].dtype
        apart = [np.abs(found[name][0].astype(float) - rows).mean() for rows in (expected[name], expected[name][::-1])]
        assert apart[0] < 0.2 * apart[1], name


@pytest.mark.skipif(os.environ.get("MUJOCO_GL") != "egl", reason="needs MUJOCO_GL=egl")
@pytest.mark.parametrize("camera", CAMERAS["camera_names"])
def test_depths_are_those_of_robosuite_at_the_centers_of_pixels(camera):
    """With several samples in a pixel, MuJoCo has the depth of the first one, not of the pixel's center."""
    pairs = Pairs("Lift", n=1, **CAMERAS, camera_depths=True)
    (live,), (found, _) = pairs.live, pairs.start()
    model, (height, width, _) = live.sim.model._model, found[f"{camera}_depth"][0].shape

    context = MjRenderContextOffscreen(live.sim, device_id=-1, max_width=width, max_height=height)
    context.vopt.geomgroup[0] = 0

    def depths(samples):
        model.vis.quality.offsamples = samples
        context.con.free()
        context._set_mujoco_context_and_buffers()
        context.render(width, height, camera_id=model.camera(camera).id)
        depth = context.read_pixels(width, height, depth=True)[1]
        return near / (1.0 - depth.astype(float) * (1.0 - near / far))

    near, far = (model.stat.extent * end for end in (model.vis.map.znear, model.vis.map.zfar))
    ours_depth = near / (1.0 - found[f"{camera}_depth"][0, :, :, 0].astype(float) * (1.0 - near / far))
    np.testing.assert_allclose(depths(0), ours_depth, rtol=BUFFER)
    assert np.median(np.abs(depths(4) / ours_depth - 1.0)) > 10 * BUFFER


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {"renderer": "mujoco"}}, "the option 'renderer', allowed are options without rendering"),
        ({"options": {"wind": 3}}, "robosuite refuses the options .*wind"),
        ({"robots": "PandaOmron"}, "robots: got 'PandaOmron', allowed are arms on a fixed base: Panda,"),
        ({"controller_configs": {"type": "WHOLE_BODY_IK"}}, "got the type 'WHOLE_BODY_IK', allowed is 'BASIC'"),
        ({"control_freq": 40}, "control_freq: got 40 Hz, allowed are frequencies"),
        ({"pool": 0}, "pool"),
        ({"controllers": 3}, "unknown keyword argument 'controllers'"),
    ],
)
def test_unsupported_options_are_named(settings, message):
    with pytest.raises(ModelError, match=message):
        make_vec("robosuite.Lift", 2, **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "IK_POSE"}, "the part 'right' has the controller 'IK_POSE', allowed are OSC_POSE, OSC_POSITION"),
        ({"interpolation": "linear"}, "allowed is 'interpolation': null"),
        ({"position_limits": [[-1] * 3, [1] * 3]}, "position_limits"),
    ],
)
def test_unsupported_controllers_are_named(change, message):
    config = load_composite_controller_config(robot="Panda")
    config["body_parts"]["right"].update(change)
    with pytest.raises(ModelError, match=message):
        made(controller_configs=config)


@pytest.mark.parametrize("name", SPARSE)
def test_a_missing_shaped_reward_is_named(name):
    with pytest.raises(ModelError, match=f"{name}: got reward_shaping=True, allowed is False"):
        made(name, reward_shaping=True)


def test_an_untried_version_names_the_tried_ones(monkeypatch):
    monkeypatch.setattr(robosuite, "__version__", "1.5.9")
    with pytest.raises(InstallationError, match=r"requires one of the versions 1\.5\.2"):
        made()


# ---- successes that random states do not reach -----------------------------------------------------------------------
def written(live):
    """Returns the fields of worlds, one row each, as a goal reads them, as views of a live environment's data."""
    data = live.sim.data._data
    names = ("xpos", "xmat", "site_xpos", "geom_xpos")
    return SimpleNamespace(nworld=1, **{name: getattr(data, name)[None] for name in names})


@pytest.mark.parametrize("shaping", [False, True])
def test_a_peg_in_its_hole_is_rewarded(shaping):
    pairs, rng, successes = Pairs("TwoArmPegInHole", n=1, reward_shaping=shaping), np.random.default_rng(0), []
    goal, live = pairs.env.task.source.goal, pairs.live[0]
    fields = written(live)
    for _ in range(200):
        vectors = rng.normal(0, 0.2, (2, 3))
        hole, turn = Rotation.from_rotvec([vectors[0], 0.5 * vectors[1]])
        peg = hole * turn
        fields.xmat[0, goal.hole], fields.xmat[0, goal.peg] = hole.as_matrix().ravel(), peg.as_matrix().ravel()
        fields.xpos[0, goal.hole] = rng.normal(0, 1, 3)
        centre = fields.xpos[0, goal.hole] + hole.apply([0.1, 0, 0])
        fields.xpos[0, goal.peg] = centre - peg.apply([0, 0, rng.uniform(-0.2, 0.2)]) + rng.normal(0, 0.03, 3)
        reward, success = goal(fields, goal.touch)
        scaled = reward[0] / goal.scale
        assert (scaled, success[0]) == (pytest.approx(live.reward(None), rel=SAME), live._check_success())
        successes.append(bool(success[0]))
    assert 20 < sum(successes) < 180


def test_a_tool_on_its_frame_is_rewarded(monkeypatch):
    pairs, rng, outcomes = Pairs("ToolHang", n=1), np.random.default_rng(0), []
    goal, live = pairs.env.task.source.goal, pairs.live[0]
    fields, touch = written(live), goal.touch
    hole = live.tool.contact_geoms

    def touches(sim, first, second):
        return bool(touch[0, goal.robot if second == hole else goal.hook])

    monkeypatch.setattr("robosuite.environments.manipulation.tool_hang.check_contact", touches)
    sites, geoms = goal.sites, goal.geoms
    at = lambda *x: np.array(x) + rng.normal(0, 0.002, 3)  # noqa: E731
    for k in range(400):
        touch[0] = rng.random(touch.shape[1]) < 0.8
        touch[0, goal.robot] = rng.random() < 0.2
        along, around = rng.uniform(0.0, 0.3, 2)
        site, geom = fields.site_xpos[0], fields.geom_xpos[0]
        geom[geoms["stand_base"]], site[sites["stand_mount_site"]] = at(0, 0, 0), at(0.03 * rng.normal(), 0, 0.2)
        site[sites[goal.tip]] = site[sites["frame_mount_site"]] = at(0, 0, rng.uniform(0.02, 0.06))
        site[sites["frame_intersection_site"]] = at(0, 0, 0.4)
        for i, place in enumerate([(0.02, 0), (0, 0.02), (-0.02, 0), (0, -0.02)]):
            geom[geoms[f"stand_wall_{i}"]] = at(*place, 0.1)
        site[sites["frame_hang_site"]] = at(0.2, 0, 0.4)
        middle = at(0.2 - along, 0, 0.4)
        site[sites["tool_hole1_center"]] = middle
        geom[geoms["tool_hole1_hc_0"]] = middle + [0, 0, 0.02]
        geom[geoms[f"tool_hole1_hc_{goal.opposite}"]] = middle - [0, 0, 0.02 - 0.1 * around * (k % 3 == 0)]
        _, success = goal(fields, touch)
        assert bool(success[0]) == bool(live._check_success())
        assert goal.assembled(fields, {})[0, 0] == live._check_frame_assembled()
        assert goal.hanging(fields, {})[0, 0] == live._check_tool_on_frame()
        outcomes.append(bool(success[0]))
    assert 20 < sum(outcomes) < 380
