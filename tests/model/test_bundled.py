"""The bundled models: sizes, names, supported features only, and stability under random controls in MuJoCo."""

from importlib import resources

import mujoco
import numpy as np
import pytest

from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.features import unsupported
from sampling import in_ci

FOLDER = resources.files("featherlane.engine.model") / "bundled"
# name: nv, nu
MODELS = {
    "pendulum": (1, 1),
    "double_pendulum": (2, 2),
    "cartpole": (2, 1),
    "slider_crank": (3, 1),
    "arm": (7, 7),
    "quadruped": (18, 12),
    "quadruped_elliptic": (18, 12),
    "humanoid": (27, 21),
    "rope": (200, 2),
    "chain": (300, 0),
    "box_stack": (60, 0),
    "pyramid": (330, 0),
    "stacks": (384, 0),
    "pile": (384, 0),
    "hand": (14, 8),
}
SMALL = [name for name in MODELS if name not in ("rope", "chain", "pyramid", "stacks", "pile")]
ELLIPTIC = {"quadruped_elliptic", "box_stack", "pyramid", "hand"}
HOLD = 0.1  # s between two random controls
FASTEST = 200.0  # rad/s: far above the motors' maximum, far below a diverging state


def compiled(name):
    return mujoco.MjModel.from_xml_path(str(FOLDER / f"{name}.xml"))


def shaken(model, seconds, seed):
    """Returns the largest velocity and the warnings under random controls."""
    data, rng, fastest = mujoco.MjData(model), np.random.default_rng(seed), 0.0
    while data.time < seconds:
        data.ctrl[:] = rng.uniform(*model.actuator_ctrlrange.T)
        mujoco.mj_step(model, data, round(HOLD / model.opt.timestep))
        fastest = max(fastest, abs(data.qvel).max())
    return fastest, [int(warning.number) for warning in data.warning]


def test_every_bundled_file_is_listed_here():
    assert {path.name.removesuffix(".xml") for path in FOLDER.iterdir() if path.name.endswith(".xml")} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_sizes_options_and_features(name):
    model = compiled(name)
    assert (model.nv, model.nu) == MODELS[name]
    assert model.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON
    assert (model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC) == (name in ELLIPTIC)
    assert unsupported(model, candidates(model)) == []


@pytest.mark.parametrize("name", MODELS)
def test_bodies_joints_actuators_and_geoms_have_names(name):
    model = compiled(name)
    for kind, count in {
        "body": model.nbody,
        "joint": model.njnt,
        "actuator": model.nactuator,
        "geom": model.ngeom,
    }.items():
        assert all(getattr(model, kind)(i).name for i in range(count)), kind


@pytest.mark.parametrize("name", MODELS)
def test_initial_states_and_keyframes_have_no_overlaps(name):
    model, data = compiled(name), None
    for key in range(-1, model.nkey):
        data = mujoco.MjData(model)
        if key >= 0:
            mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_forward(model, data)
        assert data.ncon == 0 or data.contact.dist.min() > -1e-3


@pytest.mark.parametrize("name", [in_ci(name) if name == "chain" else name for name in MODELS])
def test_stable_under_random_controls(name):
    fastest, warnings = shaken(compiled(name), 4.0 if name in SMALL else 1.0, 0)
    assert fastest < FASTEST
    assert not any(warnings)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_stable_for_a_minute(name):
    fastest, warnings = shaken(compiled(name), 60.0, 1)
    assert fastest < FASTEST
    assert not any(warnings)


def test_humanoid_has_human_dimensions_and_falls_to_rest():
    model = compiled("humanoid")
    assert 65 < model.body_subtreemass[0] < 75
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, round(8.0 / model.opt.timestep))
    assert data.subtree_com[0, 2] < 0.25
    assert abs(data.qvel).max() < 0.1
    assert data.ncon > 4


def test_quadruped_stands_on_its_home_controls():
    model = compiled("quadruped")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, round(3.0 / model.opt.timestep))
    assert data.body("trunk").xpos[2] > 0.25
    assert data.body("trunk").xmat[8] > 0.99


def test_arm_holds_its_home_controls():
    model = compiled("arm")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, round(2.0 / model.opt.timestep))
    np.testing.assert_allclose(data.qpos, model.key_qpos[0], atol=0.02)
