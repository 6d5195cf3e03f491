"""A singular inertia is finite, counted and reported, as in MuJoCo, whose pivots are at least 1e-15."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
HINGES = '<body><joint axis="0 1 0"/><joint axis="0 1 0"/><geom size="1" pos=".3 0 0" mass="{mass}"/></body>'
SLIDES = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", ".6 .8 0"))
FLOOR = '<geom type="plane" size="9 9 1" pos="0 0 -.9"/>'
MODEL = '<mujoco><option integrator="{integrator}"/><worldbody>{bodies}</worldbody></mujoco>'
LIGHT, HEAVY = 1.0, 1234.5  # kg; the second leaves a pivot of rounding errors above 1e-15
STEPS = 20

pytestmark = pytest.mark.filterwarnings("ignore:MuJoCo. Inertia matrix is too close to singular")


def model(bodies, integrator="Euler"):
    return fl.load(MODEL.format(bodies=bodies, integrator=integrator))


def stepped(loaded, **options):
    batch = fl.Batch(loaded, 3, **options)
    batch.qvel[:] = 0.1
    batch.step(STEPS)
    return batch


@pytest.mark.parametrize("integrator", [name for name in INTEGRATORS if name != "implicit"])
def test_coincident_hinges_rotate_together_as_in_mujoco(integrator):
    """Rounding decides the share of each hinge."""
    loaded = model(HINGES.format(mass=LIGHT), integrator)
    mj = loaded.to_mujoco()
    theirs, mine = mujoco.MjData(mj), fl.Data(loaded)
    theirs.qvel[:] = mine.qvel[:] = 0.1
    for _ in range(STEPS):
        mujoco.mj_step(mj, theirs)
    mine.step(STEPS)
    assert mine.qvel.sum() == pytest.approx(theirs.qvel.sum(), rel=1e-9)
    assert theirs.warning[mujoco.mjtWarning.mjWARN_INERTIA].number > 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize(
    "bodies", [HINGES.format(mass=LIGHT), HINGES.format(mass=HEAVY) + FLOOR, f"<body>{SLIDES}<geom size='.1'/></body>"]
)
def test_a_singular_inertia_is_finite_and_counted_in_each_step(bodies, integrator, dtype):
    if dtype == "float32" and str(HEAVY) in bodies:
        pytest.skip("a pivot of 1e-5, the rounding of float32, or 1e-15 is not a motion")
    batch = stepped(model(bodies, integrator), dtype=dtype)
    assert np.isfinite(batch.qpos).all() and not batch.nreset.any()
    stages = 4 if integrator == "RK4" else 1
    assert batch.status["singular_inertia"].tolist() == [stages * STEPS] * 3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["humanoid", "hand", "chain", "rope", "arm"])
def test_a_regular_inertia_is_not_counted(name, dtype):
    assert not stepped(fl.bundled(name), dtype=dtype).status["singular_inertia"].any()


def test_only_the_singular_world_of_a_batch_is_counted():
    batch = fl.Batch(model(HINGES.format(mass=LIGHT)), 5)
    armature = batch.expand("dof_armature")
    armature[:] = 0.01
    armature[3] = 0.0
    batch.step(STEPS)
    assert batch.status["singular_inertia"].tolist() == [0, 0, 0, STEPS, 0]


def test_the_count_is_written_to_mujocos_warnings():
    loaded = model(HINGES.format(mass=LIGHT))
    data, found = fl.Data(loaded), mujoco.MjData(loaded.to_mujoco())
    data.step(STEPS)
    data.to_mujoco(found)
    assert found.warning[mujoco.mjtWarning.mjWARN_INERTIA].number == STEPS


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("integrator", [name for name in INTEGRATORS if name != "discrete"])
def test_articulated_bodies_with_coincident_hinges_are_finite_and_counted(integrator, dtype):
    loaded = model(HINGES.format(mass=LIGHT), integrator)
    loaded.opt.forward_dynamics = "aba"
    batch = stepped(loaded, dtype=dtype)
    assert np.isfinite(batch.qvel).all() and not batch.nreset.any()
    stages = 4 if integrator == "RK4" else 1
    assert batch.status["singular_inertia"].tolist() == [stages * STEPS] * 3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["humanoid", "rope"])
def test_articulated_bodies_with_a_regular_inertia_are_not_counted(name, dtype):
    loaded = fl.bundled(name)
    loaded.opt.forward_dynamics = "aba"
    assert not stepped(loaded, dtype=dtype).status["singular_inertia"].any()
