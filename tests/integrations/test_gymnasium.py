"""`use` steps Gymnasium's environments: results equal MuJoCo's, and existing code keeps working."""

import copy
from pathlib import Path

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.utils.env_checker import check_env

import featherlane as fl
from featherlane.integrations.edits import Memory, fields_read
from featherlane.integrations.gymnasium import HOOK, use
from featherlane.integrations.stepper import Stepper
from pages import blocks

NAMES = """Ant HalfCheetah Hopper Humanoid HumanoidStandup InvertedDoublePendulum InvertedPendulum Pusher Reacher
    Swimmer Walker2d""".split()
STEP = 1e-9  # relative, of one action from equal states with converged solvers
FREE = 1e-8  # of 20 actions from one state; contacts multiply differences by about 10 in 5 actions
STATE = "time qpos qvel act qacc_warmstart".split()
FIELDS = """qpos qvel qacc xpos xquat geom_xpos site_xpos cvel cinert subtree_com cacc cfrc_int cfrc_ext
    qfrc_bias qfrc_passive qfrc_actuator qfrc_constraint actuator_force actuator_length actuator_velocity
    efc_force efc_J efc_pos""".split()
pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass")


def world(env):
    return env.unwrapped


def converged(env):
    """Selects a solver that reaches rounding: PGS, which the humanoids use, stops before."""
    option = world(env).model.opt
    option.solver, option.tolerance, option.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 0.0, 100
    return env


def pair(name, **settings):
    """Returns the environment with MuJoCo's dynamics, and one with Featherlane's."""
    return converged(gym.make(name, **settings)), use(converged(gym.make(name, **settings)))


def same_state(theirs, ours):
    for name in STATE:
        if name == "time":
            ours.time = theirs.time
        else:
            getattr(ours, name)[:] = getattr(theirs, name)


def close(found, expected, bound, what):
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * scale, err_msg=what)


def same_data(theirs, ours, bound=STEP):
    assert ours.ncon == theirs.ncon and ours.nefc == theirs.nefc
    assert ours.time == pytest.approx(theirs.time, rel=1e-14)
    np.testing.assert_array_equal(ours.contact.geom, theirs.contact.geom)
    close(ours.contact.dist, theirs.contact.dist, bound, "dist")
    for name in FIELDS:
        close(getattr(ours, name), getattr(theirs, name), bound, name)


def actions(env, count, seed=0):
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


@pytest.mark.parametrize("name", NAMES)
def test_an_action_from_equal_states_has_equal_results(name):
    theirs, ours = pair(f"{name}-v5")
    first, found = theirs.reset(seed=3)[0], ours.reset(seed=3)[0]
    np.testing.assert_array_equal(found, first)
    for action in actions(theirs, 40):
        same_state(world(theirs).data, world(ours).data)
        expected, found = theirs.step(action), ours.step(action)
        close(found[0], expected[0], STEP, "observation")
        assert found[1] == pytest.approx(expected[1], rel=STEP, abs=STEP)
        assert found[2:4] == expected[2:4] and found[4].keys() == expected[4].keys()
        same_data(world(theirs).data, world(ours).data)
        if expected[2]:
            theirs.reset(seed=4), ours.reset(seed=4)


@pytest.mark.parametrize("name", NAMES)
def test_trajectories_are_equal(name):
    theirs, ours = pair(f"{name}-v5")
    theirs.reset(seed=0), ours.reset(seed=0)
    for action in actions(theirs, 20):
        expected, found = theirs.step(action), ours.step(action)
        close(found[0], expected[0], FREE, "observation")
        if expected[2]:
            break


@pytest.mark.filterwarnings("ignore::UserWarning")  # the checker's advice on spaces
@pytest.mark.parametrize("name", NAMES)
def test_the_environment_checker_passes(name):
    check_env(world(use(gym.make(f"{name}-v5"))), skip_render_check=True)


@pytest.mark.parametrize("integrator", ["EULER", "RK4", "IMPLICIT", "IMPLICITFAST"])
@pytest.mark.parametrize("nstep", [1, 4])
def test_data_equals_that_of_mj_step(integrator, nstep):
    mj = fl.bundled("arm").mj_model
    mj = copy.copy(mj)
    mj.opt.integrator, mj.opt.tolerance = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}"), 0.0
    theirs, ours, stepper = mujoco.MjData(mj), mujoco.MjData(mj), Stepper()
    for step in range(5):
        for d in (theirs, ours):
            d.ctrl[:] = 0.1 * step
            d.xfrc_applied[-1, :3] = 1.0, -2.0, 0.5
        same_state(theirs, ours)
        mujoco.mj_step(mj, theirs, nstep)
        stepper.mj_step(mj, ours, nstep)
        same_data(theirs, ours)
        close(ours.sensordata, theirs.sensordata, STEP, "sensordata")


MUSCLE = """<mujoco><option integrator="RK4"/><worldbody><body pos="0 0 1"><joint name="j" axis="0 1 0" range="-90 90"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/><body pos=".4 0 0"><joint type="ball"/>
    <geom type="capsule" fromto="0 0 0 .3 0 .1" size=".02"/></body></body></worldbody>
    <actuator><muscle joint="j" lengthrange="-2 2"/><general joint="j" dyntype="filter" dynprm=".1"/></actuator>
    </mujoco>"""


def test_runge_kutta_leaves_the_last_stage_as_mujoco_does():
    mj = mujoco.MjModel.from_xml_string(MUSCLE)
    theirs, ours, stepper = mujoco.MjData(mj), mujoco.MjData(mj), Stepper()
    for d in (theirs, ours):
        d.qvel[:], d.ctrl[:] = [1.0, 3.0, -2.0, 0.5], [0.7, -0.4]
    for _ in range(10):
        mujoco.mj_step(mj, theirs, 2)
        stepper.mj_step(mj, ours, 2)
        same_data(theirs, ours)
        close(ours.act_dot, theirs.act_dot, STEP, "act_dot")


def test_both_halves_of_a_step_equal_mujoco():
    mj = copy.copy(fl.bundled("quadruped").mj_model)
    mj.opt.tolerance = 0.0
    theirs, ours, stepper = mujoco.MjData(mj), mujoco.MjData(mj), Stepper()
    for _ in range(100):
        same_state(theirs, ours)
        for d, second in ((theirs, mujoco.mj_step2), (ours, stepper.mj_step2)):
            mujoco.mj_step1(mj, d)
            d.ctrl[:] = 0.3 - 0.1 * d.actuator_length
            second(mj, d)
        same_data(theirs, ours)
    assert ours.ncon


def test_each_step_after_a_refused_edit_is_refused():
    mj = copy.copy(fl.bundled("pendulum").mj_model)
    d, stepper = mujoco.MjData(mj), Stepper()
    stepper.mj_step(mj, d)
    mj.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    for _ in range(2):
        with pytest.raises(fl.UnsupportedFeatureError, match="sleep"):
            stepper.mj_step(mj, d)
    mj.opt.enableflags, mj.opt.timestep = 0, 2.0 * mj.opt.timestep
    before = d.time
    stepper.mj_step(mj, d)
    assert d.time == before + mj.opt.timestep


@pytest.mark.parametrize("noslip", [0, 3])
def test_forces_of_a_dual_solver_are_written(noslip):
    theirs, ours = pair("Ant-v5")
    for env in (theirs, ours):
        option = world(env).model.opt
        option.solver, option.iterations, option.noslip_iterations = mujoco.mjtSolver.mjSOL_PGS, 3000, noslip
        option.noslip_tolerance = 0.0
        env.reset(seed=0)
    for action in actions(theirs, 30):
        theirs.step(action)
    same_state(world(theirs).data, world(ours).data)
    theirs.step(action), ours.step(action)
    assert world(theirs).data.nefc
    for name in ("efc_force", "qfrc_constraint", "cfrc_ext"):
        close(getattr(world(ours).data, name), getattr(world(theirs).data, name), 1e-6, name)  # PGS converges slowly


def test_edits_of_the_model_take_effect():
    theirs, ours = pair("Hopper-v5")
    for env in (theirs, ours):
        env.reset(seed=0)
        m = world(env).model
        m.body_mass[1] *= 2.0
        m.opt.gravity[2] = -3.0
        m.geom_friction[0, 0] = 0.4
        world(env).data.xfrc_applied[1, 0] = 5.0
    for action in actions(theirs, 10):
        theirs.step(action), ours.step(action)
    same_data(world(theirs).data, world(ours).data)
    world(theirs).model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    world(ours).model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    theirs.step(action), ours.step(action)
    same_data(world(theirs).data, world(ours).data)


def test_an_edit_of_each_option_is_found():
    m = gym.make("Hopper-v5").unwrapped.model
    memory, (_, numbers) = Memory(m), fields_read(m)
    names = [name.removeprefix("opt_") for name in numbers if name.startswith("opt_")]
    assert {"timestep", "o_margin", "integrator", "disableflags", "sdf_iterations"} < set(names)
    for name in names:
        before, value = memory.values(), getattr(m.opt, name)
        setattr(m.opt, name, value + 1)
        assert memory.values() != before, name
        setattr(m.opt, name, value)
        assert memory.values() == before, name


def test_a_diverged_state_is_reset_and_counted_as_by_mujoco():
    theirs, ours = pair("HalfCheetah-v5")
    for env in (theirs, ours):
        env.reset(seed=0)
        world(env).data.qvel[0] = np.nan
        world(env).data.xfrc_applied[1, 0] = 1.0
        env.step(np.full(6, 0.5))
    for d in (world(theirs).data, world(ours).data):
        assert sum(w.number for w in d.warning) == 1
        assert not d.xfrc_applied.any() and not d.ctrl.any()
    same_data(world(theirs).data, world(ours).data)


@pytest.mark.parametrize("frames", [1, 5])
@pytest.mark.parametrize("control", [np.nan, 1e12])
@pytest.mark.filterwarnings("ignore:.*The reward is a NaN")
def test_bad_controls_are_counted_as_by_mujoco(frames, control):
    theirs, ours = pair("HalfCheetah-v5", frame_skip=frames)
    for env in (theirs, ours):
        env.reset(seed=0)
        for _ in range(3):
            env.step(np.full(6, control))
    counts = [world(env).data.warning.number for env in (theirs, ours)]
    assert counts[0][mujoco.mjtWarning.mjWARN_BADCTRL] == (3 * frames if np.isnan(control) else 0)  # others are clamped
    np.testing.assert_array_equal(counts[1], counts[0])


def test_without_autoreset_a_diverged_state_is_counted_and_kept():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option><flag autoreset="disable"/></option><worldbody><body><joint name="j"/>
        <geom size=".1" mass="1" pos=".1 0 0"/></body></worldbody><actuator><motor joint="j"/></actuator></mujoco>"""
    )
    counts = []
    for run in (mujoco.mj_step, Stepper().mj_step):
        data = mujoco.MjData(model)
        data.qvel[0], data.ctrl[0] = 1e11, 0.5
        run(model, data)
        assert data.ctrl[0] == 0.5 and abs(data.qvel[0]) > 1e10
        counts.append(data.warning.number.copy())
    assert counts[0][mujoco.mjtWarning.mjWARN_BADQVEL] == 1
    np.testing.assert_array_equal(counts[1], counts[0])


def test_another_model_of_the_environment_is_followed():
    env = use(gym.make("Reacher-v5"))
    env.reset(seed=0)
    inner = world(env)
    inner.model = mujoco.MjModel.from_xml_path(inner.fullpath)
    inner.model.opt.gravity[:] = 0.0
    inner.data = mujoco.MjData(inner.model)
    env.step(env.action_space.sample())
    assert inner.data.time == pytest.approx(inner.dt)


def test_dynamics_of_mujoco_can_be_restored():
    theirs, ours = pair("Swimmer-v5")
    delattr(world(ours), HOOK)
    theirs.reset(seed=0), ours.reset(seed=0)
    action = theirs.action_space.sample()
    np.testing.assert_array_equal(theirs.step(action)[0], ours.step(action)[0])


def test_a_vector_of_environments_steps_with_featherlane():
    made = [lambda: use(gym.make("Hopper-v5"))] * 2
    env = gym.vector.SyncVectorEnv(made)
    env.reset(seed=0)
    assert np.isfinite(env.step(env.action_space.sample())[0]).all()


def test_the_environments_of_the_page_agree(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "integrations" / "gymnasium.md"
    names, _ = blocks.run(page.read_text().replace("num_envs=1024", "num_envs=64"), tmp_path)
    theirs, ours, batch = names["Jump"](), names["env"], names["envs"]
    first = [env.reset(seed=0)[0] for env in (theirs, ours)]
    np.testing.assert_array_equal(first[0], first[1])
    np.testing.assert_allclose(batch.reset(seed=0)[0][0], first[0], rtol=0, atol=1e-15)
    for action in actions(theirs, 60):
        expected, swapped = theirs.step(action), ours.step(action)
        batched = [part[0] for part in batch.step(np.tile(action, (64, 1)))[:3]]
        for found in (swapped, batched):
            np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=FREE)
            assert found[1] == pytest.approx(expected[1], abs=FREE) and found[2] == expected[2]
        if expected[2]:
            break


class Custom(MujocoEnv):
    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, path):
        super().__init__(str(path), 1, gym.spaces.Box(-1, 1, (1,)))


def test_wrong_environments_are_refused(tmp_path):
    with pytest.raises(fl.errors.ArgumentTypeError, match="object"):
        use(object())
    with pytest.raises(fl.errors.ArgumentTypeError, match="CartPole"):
        use(gym.make("CartPole-v1").unwrapped)

    class Overriding(Custom):
        def _step_mujoco_simulation(self, ctrl, n_frames):
            pass

    (tmp_path / "m.xml").write_text("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
    with pytest.raises(fl.errors.ArgumentTypeError, match="Overriding overrides _step_mujoco_simulation"):
        use(Overriding(tmp_path / "m.xml"))


BODY = "<body><joint/><geom size='.1'/></body>"
FLEX = "<flexcomp name='cloth' type='grid' count='3 3 1' spacing='.1 .1 .1' dim='2' radius='.01'/>"
REFUSED = {"cloth": FLEX, "sleep": f"{BODY}</worldbody><option><flag sleep='enable'/></option><worldbody>"}


@pytest.mark.parametrize("element", REFUSED)
def test_an_unsupported_model_is_reported_before_anything_is_replaced(element, tmp_path):
    (tmp_path / "m.xml").write_text(f"<mujoco><worldbody>{REFUSED[element]}</worldbody></mujoco>")
    env = Custom(tmp_path / "m.xml")
    with pytest.raises(fl.UnsupportedFeatureError, match=element):
        use(env)
    assert HOOK not in vars(env)


def test_another_version_of_gymnasium_is_named(monkeypatch):
    env = gym.make("Hopper-v5")
    monkeypatch.delattr(MujocoEnv, HOOK)
    with pytest.raises(fl.InstallationError, match=r"1\.4\.0"):
        use(env)
