"""Tasks of dm_control's suite, and `use`, against dm_control; needs dm_control and a MuJoCo that it works with, 3.17.

`test_other_mujoco.py` runs this file in a separate process.
"""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from dm_control import composer, suite
from dm_control.rl import control
from dm_control.suite.wrappers import action_scale

import featherlane as fl
from featherlane.environments.dm_control import TASKS
from featherlane.integrations.dm_control import PhysicsStep, use
from pages import blocks

N = 3
NAMES = [task.name.removeprefix("dm_control.") for task in TASKS]
SAME = 1e-9  # relative, of converged solvers
FIRST = 1e-13  # of initial observations
SETTLED = 1e-7  # of states that dm_control's initialization reaches by 200 time steps
pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass:UserWarning")


class SameNumbers(np.random.RandomState):
    """Samples from a Generator, as a world of an environment with the same seed does."""

    def __new__(cls, seed):
        return super().__new__(cls)

    def __init__(self, seed):
        super().__init__(0)
        self.generator = np.random.default_rng(seed)

    def uniform(self, low=0.0, high=1.0, size=None):
        shape = np.broadcast_shapes(np.shape(low), np.shape(high)) if size is None else size
        return self.generator.random(shape or None) * np.subtract(high, low) + low

    def rand(self, *shape):
        return self.generator.random(shape or None)

    def randn(self, *shape):
        return self.generator.standard_normal(shape or None)

    def choice(self, values, p):
        return values[np.searchsorted(np.cumsum(p), self.generator.random(), side="right")]


def ours(name, n=N, **settings):
    return gym.make_vec(f"featherlane/dm_control.{name}", num_envs=n, nthread=1, **settings)


def theirs(name, seed):
    """Returns dm_control's environment, which samples as a world with this seed, with a converged solver."""
    env = suite.load(*name.split("-"), task_kwargs={"random": SameNumbers(seed)})
    env.physics.model.opt.tolerance, env.physics.model.opt.iterations = 0.0, 100
    return env


def exact(env):
    env.batch.model.opt.tolerance, env.batch.model.opt.iterations = 0.0, 100


def flat(observation):
    return np.concatenate([np.ravel(part) for part in observation.values()])


def actions(env, count, seed=0):
    space = env.single_action_space
    return np.random.default_rng(seed).uniform(space.low, space.high, (count, env.num_envs, *space.shape))


def set_state(env, world, physics):
    """Copies state and edited fields of the model into a world."""
    for field in ("qpos", "qvel", "qacc_warmstart"):
        getattr(env.batch, field)[world] = getattr(physics.data, field)
    for field, values in env.batch.expanded_fields.items():
        values[world] = getattr(physics.model, field).reshape(values[world].shape)


def test_the_page_runs_as_written(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "integrations" / "dm_control.md"
    blocks.run(page.read_text(), tmp_path)


def test_every_benchmarking_task_exists():
    assert sorted(NAMES) == sorted("-".join(pair) for pair in suite.BENCHMARKING)


@pytest.mark.parametrize("name", NAMES)
def test_spaces_and_times_are_those_of_dm_control(name):
    env, reference = ours(name), theirs(name, 0)
    spec = reference.action_spec()
    np.testing.assert_array_equal(env.single_action_space.low, spec.minimum.astype(np.float32))
    np.testing.assert_array_equal(env.single_action_space.high, spec.maximum.astype(np.float32))
    size = sum(int(np.prod(part.shape)) for part in reference.observation_spec().values())
    assert env.single_observation_space.shape == (size,)
    assert env.frame_skip == reference._n_sub_steps
    assert env.max_episode_steps == int(np.ceil(reference._step_limit))
    assert env.dt == pytest.approx(reference.control_timestep())


@pytest.mark.parametrize("name", NAMES)
def test_initial_states_are_those_of_dm_control_from_the_same_random_numbers(name):
    env = ours(name, autoreset_mode="Disabled")
    exact(env)
    tolerance_of_first = SETTLED if name == "cheetah-run" else FIRST
    references = [theirs(name, 7 + w) for w in range(N)]
    seen, _ = env.reset(seed=7)
    for _ in range(4):  # later episodes continue the random streams
        for w, reference in enumerate(references):
            expected = flat(reference.reset().observation)
            np.testing.assert_allclose(seen[w], expected, rtol=tolerance_of_first, atol=tolerance_of_first)
            assert reference.physics.data.time == env.batch.time[w] == 0.0
        seen, _ = env.reset()


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_dm_control_from_its_own_states(name, steps=50):
    env = ours(name, autoreset_mode="Disabled")
    exact(env)
    env.reset(seed=0)
    references = [theirs(name, w) for w in range(N)]
    for reference in references:
        reference.reset()
    references[0].physics.reset()  # this world starts from the default posture, with higher rewards in most tasks
    for action in actions(env, steps):
        for w, reference in enumerate(references):
            set_state(env, w, reference.physics)
        seen, rewards, terminated, truncated, _ = env.step(action)
        for w, reference in enumerate(references):
            expected = reference.step(action[w])
            np.testing.assert_allclose(seen[w], flat(expected.observation), rtol=SAME, atol=SAME)
            assert rewards[w] == pytest.approx(expected.reward, rel=SAME, abs=SAME)
            assert not terminated[w] and not truncated[w] and not expected.last()


# ---- the engine swap -------------------------------------------------------------------------------------------------
def swapped(name, seed=3, **settings):
    """Returns an environment with dm_control's dynamics and one with Featherlane's, with converged solvers."""
    pair = [suite.load(*name.split("-"), task_kwargs={"random": seed}, environment_kwargs=settings) for _ in range(2)]
    for env in pair:
        env.physics.model.opt.tolerance, env.physics.model.opt.iterations = 0.0, 100
    return pair[0], use(pair[1])


def same_state(theirs, ours):
    """Copies the state of an environment into another one, with the fields that follow from it."""
    for field in ("qpos", "qvel", "qacc_warmstart"):
        getattr(ours.physics.data, field)[:] = getattr(theirs.physics.data, field)


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_steps_with_featherlane(name):
    theirs, ours = swapped(name)
    theirs.reset(), ours.reset()
    spec, rng = theirs.action_spec(), np.random.default_rng(0)
    for _ in range(30):
        action = rng.uniform(spec.minimum, spec.maximum)
        same_state(theirs, ours)
        expected, found = theirs.step(action), ours.step(action)
        np.testing.assert_allclose(flat(found.observation), flat(expected.observation), rtol=SAME, atol=SAME)
        assert found.reward == pytest.approx(expected.reward, rel=SAME, abs=SAME)
    same_data(theirs.physics, ours.physics)


def same_data(theirs, ours):
    """Compares the fields of two physics, the contacts and the clock included."""
    assert ours.data.ncon == theirs.data.ncon and ours.data.time == theirs.data.time
    for field in ("qacc", "qfrc_constraint", "qfrc_bias", "xpos", "site_xpos", "cvel", "actuator_force", "sensordata"):
        expected, found = getattr(theirs.data, field), getattr(ours.data, field)
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(found, expected, rtol=SAME, atol=SAME * scale, err_msg=field)


def test_fields_lag_without_the_legacy_step():
    theirs, ours = swapped("walker-walk", legacy_step=False)
    theirs.reset(), ours.reset()
    for _ in range(5):
        same_state(theirs, ours)
        theirs.step(np.full(6, 0.3)), ours.step(np.full(6, 0.3))
        same_data(theirs.physics, ours.physics)


def test_named_access_and_edits_of_the_model_take_effect():
    theirs, ours = swapped("walker-walk")
    for env in (theirs, ours):
        env.reset()
        env.physics.named.model.body_mass["torso"] *= 3.0
        env.physics.named.model.dof_damping["right_knee"] = 5.0
        env.physics.model.opt.gravity[2] = -4.0
    theirs.physics.forward()  # the first time step of dm_control uses the fields of the last forward pass
    same_state(theirs, ours)
    theirs.step(np.zeros(6)), ours.step(np.zeros(6))
    assert ours.physics.named.data.xpos["torso", "z"] == pytest.approx(theirs.physics.named.data.xpos["torso", "z"])
    same_data(theirs.physics, ours.physics)
    with ours.physics.model.disable("gravity"), theirs.physics.model.disable("gravity"):
        theirs.physics.forward()
        same_state(theirs, ours)
        theirs.step(np.zeros(6)), ours.step(np.zeros(6))
    same_data(theirs.physics, ours.physics)


def test_applied_forces_are_read():
    theirs, ours = swapped("hopper-stand")
    for env in (theirs, ours):
        env.reset()
        env.physics.named.data.xfrc_applied["torso", 2] = 30.0
    same_state(theirs, ours)
    theirs.step(np.zeros(4)), ours.step(np.zeros(4))
    same_data(theirs.physics, ours.physics)


def test_a_diverged_state_raises_the_error_of_dm_control():
    _, ours = swapped("walker-walk")
    ours.reset()
    ours.physics.data.qvel[0] = np.nan
    with pytest.raises(control.PhysicsError):
        ours.step(np.zeros(6))


def test_a_bad_control_raises_the_error_of_dm_control():
    messages = []
    for env in swapped("cheetah-run"):
        env.reset()
        with pytest.raises(control.PhysicsError, match="mjWARN_BADCTRL") as raised:
            env.step(np.full(6, np.nan))
        counts = np.array([warning.number for warning in env.physics.data.warning])
        messages.append((str(raised.value), counts.tolist()))
    assert messages[0] == messages[1]


def test_a_wrapped_environment_is_accepted():
    env = use(action_scale.Wrapper(suite.load("cartpole", "swingup"), minimum=-2.0, maximum=2.0))
    env.reset()
    env.step(np.array([2.0]))
    assert env.physics.data.ctrl[0] == 1.0 and isinstance(env.physics.step, PhysicsStep)


def test_dynamics_of_dm_control_can_be_restored():
    theirs, ours = swapped("cartpole-swingup")
    del ours.physics.step
    theirs.reset(), ours.reset()
    np.testing.assert_array_equal(flat(theirs.step(np.ones(1)).observation), flat(ours.step(np.ones(1)).observation))


def test_a_physics_that_loads_another_model_is_followed():
    _, ours = swapped("pendulum-swingup")
    ours.reset()
    text, assets = suite.cartpole.get_model_and_assets()
    ours.physics.reload_from_xml_string(text, assets)
    ours.physics.data.ctrl[:] = 1.0
    ours.physics.step()
    assert ours.physics.data.qvel[0] > 0.0


def test_wrong_environments_are_refused():
    with pytest.raises(fl.errors.ArgumentTypeError, match="object"):
        use(object())

    class Task(composer.NullTask):
        pass

    arena = composer.Arena()
    with pytest.raises(fl.errors.ArgumentTypeError, match="composer"):
        use(composer.Environment(Task(arena)))


def test_an_unsupported_model_is_reported_before_anything_is_replaced():
    env = suite.load("pendulum", "swingup")
    text = """<mujoco><worldbody><flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01">
        </flexcomp></worldbody></mujoco>"""
    env.physics.reload_from_xml_string(text)
    with pytest.raises(fl.UnsupportedFeatureError):
        use(env)
    assert "step" not in vars(env.physics)


def test_another_version_of_dm_control_is_named(monkeypatch):
    env = suite.load("pendulum", "swingup")
    monkeypatch.delattr(control.Physics, "legacy_step")
    vars(env.physics).pop("legacy_step", None)
    with pytest.raises(fl.InstallationError, match=r"1\.0\.50"):
        use(env)
