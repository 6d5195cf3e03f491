"""Contacts given by the caller: MuJoCo's contacts give MuJoCo's acceleration, and each affects its world only."""

from __future__ import annotations

import copy
import inspect
import pickle

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.frame import frame_of
from featherlane.engine.simulation.tile.fields import DATA
from oracles.parity import BOUNDS, relative

ROBOTS = ("mjx/barkour_v0/assets/barkour_v0_mjx", "mjx/convex", "mjx/shadow_hand/scene_right", "metaworld/objects/box")
# from a wheel of 200 MB
HANDS = ("fourier_left_hand", "inspire_left_hand", "panda_gripper", "rethink_gripper")
ARMS = ("baxter", "gr1", "sawyer", "spot", "tiago", "ur5e")
MORE_ROBOTS = (
    *(f"robosuite/grippers/{name}" for name in HANDS),
    *(f"robosuite/robots/{name}/robot" for name in ARMS),
)
CONES = {"pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}
PARAMETERS = ("dim", "friction", "solref", "solreffriction", "solimp", "includemargin")
ROOM = 400
SLIDE = 2
SAME_OPTIMUM = 1e-9  # [m/s^2] of one problem solved twice, with its contacts in another order

# two coupled sliders, a ball next to them, and a floor that touches nothing by itself
SCENE = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction="0.7 0.02 0.003"/>
    <body name="left" pos="0 0 1"><joint axis="1 0 0" type="slide"/><joint axis="0 0 1" type="slide"/>
      <geom name="left" size=".1" condim="4" solref=".03 .8" margin="0.01"/>
      <body name="bob" pos="0 0 -.3"><joint axis="0 1 0"/>
        <geom name="bob" size=".1" contype="0" conaffinity="0"/></body>
    </body>
    <body name="ball" pos="1 0 1"><freejoint/><geom name="ball" size=".1" priority="1" friction=".9 .01 .002"/></body>
  </worldbody>
</mujoco>"""
N = 19


def mujocos_contacts(reference) -> dict[str, np.ndarray]:
    """Returns the contacts that MuJoCo found, as `give_contacts` takes them."""
    names = ("dist", "pos", "frame", "geom", *PARAMETERS)
    return {name: np.array(getattr(reference.contact, name)) for name in names}


def poses(mj, count: int, rng):
    """Yields MuJoCo's data in random poses with contacts: joints anywhere in their range."""
    data = mujoco.MjData(mj)
    low, high = np.where(mj.jnt_limited[:, None] != 0, mj.jnt_range, [-1.0, 1.0]).T
    for _ in range(count):
        mujoco.mj_resetData(mj, data)
        for j in range(mj.njnt):
            start = mj.jnt_qposadr[j]
            if mj.jnt_type[j] >= SLIDE:
                data.qpos[start] = rng.uniform(low[j], high[j])
            else:
                data.qpos[start : start + 7] += 0.1 * rng.standard_normal(7)
        mujoco.mj_normalizeQuat(mj, data.qpos)
        data.qvel[:] = 0.5 * rng.standard_normal(mj.nv)
        mujoco.mj_forward(mj, data)
        if 0 < data.ncon <= ROOM:
            yield data


def check_parity(path, cone: str, count: int, rng):
    """Compares with MuJoCo's qacc in random poses: our rows and solver, MuJoCo's contacts; returns the pose count."""
    mj, met = mujoco.MjModel.from_xml_path(str(path)), 0
    mj.opt.cone, mj.opt.jacobian = CONES[cone], mujoco.mjtJacobian.mjJAC_DENSE
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0.0, 100, 100
    blind = copy.copy(mj)
    blind.geom_contype[:] = blind.geom_conaffinity[:] = 0
    model = fl.load(blind)
    data = fl.Data(model, given_contacts=ROOM)
    for reference in poses(mj, count, rng):
        data.reset()
        data.qpos, data.qvel = reference.qpos, reference.qvel
        data.give_contacts(**mujocos_contacts(reference))
        fl.forward(model, data)
        assert data.ncon == reference.ncon
        assert relative(data.qacc, reference.qacc) < BOUNDS["qacc"]
        met += reference.ncon
    return met


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("name", ROBOTS)
def test_contacts_given_from_mujoco_yield_its_acceleration(name, cone, real_model, rng):
    assert check_parity(real_model(name), cone, 20, rng) > 0


@pytest.mark.slow
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("name", MORE_ROBOTS)
def test_contacts_given_from_mujoco_yield_its_acceleration_on_more_robots(name, cone, real_model, rng):
    assert check_parity(real_model(name), cone, 100, rng) > 0


# ---- one world -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    model = fl.load(SCENE)
    model.opt.tolerance, model.opt.iterations = 0.0, 100
    return model


def touching(model):
    """Returns two contacts as the caller gives them: the ball with the floor, and the bob with the ball."""
    geom = [[model.geom("floor").id, model.geom("ball").id], [model.geom("bob").id, model.geom("ball").id]]
    return {
        "dist": np.array([-0.01, -0.02]),
        "pos": np.array([[1.0, 0, 0.095], [0.5, 0, 0.6]]),
        "frame": np.array([[0, 0, 2.0], [1, 0, -0.5]]),
        "geom": np.array(geom),
    }


def test_user_contacts_act_until_cleared(model):
    data, free = fl.Data(model, given_contacts=4), fl.Data(model)
    fl.forward(model, free)
    data.give_contacts(**touching(model))
    for _ in range(2):
        fl.forward(model, data)
        assert data.ncon == 2
        assert data.qacc[-4] > 1.0  # the ball, from the floor and the bob
    data.clear_given_contacts()
    fl.forward(model, data)
    assert data.ncon == 0
    np.testing.assert_array_equal(data.qacc, free.qacc)


def test_a_given_contact_is_listed_as_it_was_given(model):
    data, what = fl.Data(model, given_contacts=4), touching(model)
    extra = {"dim": [3, 6], "friction": [0.5, 0.6, 0.01, 0.02, 0.03], "solref": [0.01, 0.9], "includemargin": 0.1}
    data.give_contacts(**what, **extra, solimp=[0.8, 0.9, 0.01, 0.4, 3], solreffriction=[[0.02, 1], [0, 0]])
    fl.forward(model, data)
    contact = data.contact
    for name in ("dist", "pos", "geom"):
        np.testing.assert_array_equal(getattr(contact, name), what[name])
    np.testing.assert_allclose(contact.frame[:, :3], [[0, 0, 1], np.array([1, 0, -0.5]) / np.sqrt(1.25)], rtol=1e-15)
    np.testing.assert_array_equal(contact.dim, [3, 6])
    np.testing.assert_array_equal(contact.friction, np.broadcast_to(extra["friction"], (2, 5)))
    np.testing.assert_array_equal(contact.solref, [[0.01, 0.9]] * 2)
    np.testing.assert_array_equal(contact.solreffriction, [[0.02, 1], [0, 0]])
    np.testing.assert_array_equal(contact.includemargin, 0.1)


def test_tangents_of_a_normal_equal_those_of_detected_contacts(model, rng):
    data = fl.Data(model, given_contacts=50)
    normal = rng.standard_normal((50, 3))
    data.give_contacts(np.zeros(50), np.zeros(3), normal, body=[0, 1])
    detected = frame_of(tuple(np.transpose(normal / np.linalg.norm(normal, axis=1)[:, None])))
    np.testing.assert_allclose(data.given_frame, np.transpose(detected), atol=1e-15)


@pytest.mark.parametrize("pair", [("floor", "left"), ("floor", "ball"), ("left", "ball")])
def test_parameters_that_are_not_given_are_mixed_as_mujoco_mixes_them(model, pair):
    mj = model.to_mujoco()
    mj.geom_contype[:] = mj.geom_conaffinity[:] = 1
    geom = sorted((model.geom(name).id for name in pair), key=lambda g: mj.geom_type[g])
    detected, data = fl.Data(fl.load(mj)), fl.Data(model, given_contacts=1)
    data.give_contacts([-0.1], np.zeros(3), [0, 0, 1], geom=geom)
    detected.geom_xpos[:] = np.arange(12).reshape(4, 3)
    detected.geom_xpos[geom] = [[0, 0, 0], [0, 0, 0.01]]
    detected.geom_xmat[:] = np.eye(3).reshape(-1)
    fl.stages.collision(detected.model, detected)
    fl.stages.collision(model, data)
    (one,) = (c for c in detected.contact if sorted(c.geom) == sorted(geom))
    for name in PARAMETERS:
        np.testing.assert_array_equal(getattr(data.contact[0], name), getattr(one, name), name)


def test_contacts_given_by_bodies_and_geoms_are_equal(model):
    by_geom, by_body = (fl.Data(model, given_contacts=2) for _ in range(2))
    what = touching(model)
    by_geom.give_contacts(**what)
    body = model.geom_bodyid[what.pop("geom")]
    fl.forward(model, by_geom)
    by_body.give_contacts(**what, body=body, **{name: getattr(by_geom.contact, name) for name in PARAMETERS})
    fl.forward(model, by_body)
    np.testing.assert_array_equal(by_body.qacc, by_geom.qacc)
    np.testing.assert_array_equal(by_body.contact.geom, -1)


def test_user_contacts_extend_or_replace_detected_ones(model):
    low = {"qpos": [0, -0.6, 0, 1, 0, 0.08, 1, 0, 0, 0]}
    plain, beside, instead = (fl.Data(model, given_contacts=2) for _ in range(3))
    for data in (plain, beside, instead):
        data.qpos = low["qpos"]
    bob = {name: value[1:] for name, value in touching(model).items()}
    fl.forward(model, plain)
    assert plain.ncon == 1
    beside.give_contacts(**bob)
    fl.forward(model, beside)
    np.testing.assert_array_equal(beside.contact.geom[:, 0], [model.geom("bob").id, model.geom("floor").id])
    found = plain.contact[0]
    instead.give_contacts(*([*bob[n], getattr(found, n)] for n in ("dist", "pos")), [[1, 0, -0.5], [0, 0, 1]],
                          geom=[*bob["geom"], found.geom], replace=True)  # fmt: skip
    fl.forward(model, instead)
    np.testing.assert_allclose(instead.qacc, beside.qacc, rtol=1e-12, atol=SAME_OPTIMUM)
    beside.give_contacts(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), geom=np.zeros((0, 2), int), replace=True)
    fl.forward(model, beside)
    assert beside.ncon == 0


def test_disabling_contacts_disables_user_contacts(model):
    model = copy.copy(model)
    data = fl.Data(model, given_contacts=2)
    data.give_contacts(**touching(model))
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT
    fl.forward(model, data)
    assert data.ncon == 0


def test_a_reset_clears_and_copies_keep_user_contacts(model):
    data = fl.Data(model, given_contacts=2)
    data.give_contacts(**touching(model))
    for other in (copy.copy(data), copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
        fl.forward(other.model, other)
        assert other.ncon == 2
    data.reset()
    fl.forward(model, data)
    assert data.ncon == 0


def test_a_contact_of_welded_bodies_has_no_rows(model):
    data = fl.Data(model, given_contacts=1)
    data.give_contacts([-0.1], [0, 0, 0], [0, 0, 1], body=[1, 1])
    fl.forward(model, data)
    assert (data.ncon, data.nefc) == (1, 0)


WRONG = {
    "dist: got a number": {"dist": -0.1},
    "got 3 contacts": {"dist": np.zeros(3)},
    "pos: got shape (4,)": {"pos": np.zeros(4)},
    "pos: got a non-finite number": {"pos": [0, np.nan, 0]},
    "frame: got shape (2, 4)": {"frame": np.zeros((2, 4))},
    "normal of length 0": {"frame": np.zeros(3)},
    "not orthonormal": {"frame": np.ones(9)},
    "right-handed": {"frame": [0, 0, 1, 1, 0, 0, 0, -1, 0]},
    "geom: got 9": {"geom": [0, 9]},
    "geom: got -1": {"geom": [-1, 2]},
    "geom: got float64": {"geom": [0.0, 1.0]},
    "allowed is one of them": {"geom": None},
    "dim: got 2": {"dim": 2},
    "friction: got -1, allowed are numbers from 0": {"friction": [-1, 1, 1, 1, 1]},
    "friction: got shape (3,)": {"friction": [1, 1, 1]},
    "solref: got str": {"solref": "hard"},
}


@pytest.mark.parametrize("message", WRONG)
def test_invalid_contacts_are_refused_and_nothing_changes(model, message):
    data = fl.Data(model, given_contacts=2)
    data.give_contacts(**touching(model))
    before = pickle.dumps(data)
    with pytest.raises(fl.ModelError) as caught:
        data.give_contacts(**{**touching(model), **WRONG[message]})
    assert message in str(caught.value)
    assert pickle.dumps(data) == before


def test_a_contact_structure_equals_separate_arrays(model):
    named = touching(model) | {"friction": [0.4, 0.4, 0.01, 0.001, 0.001], "motion": [0, 0.1, 0]}
    one, other = (fl.Data(model, given_contacts=2) for _ in range(2))
    one.give_contacts(**named, replace=True)
    other.give_contacts(fl.Contacts(**named), replace=True)
    worlds, others = (fl.Batch(model, 2, given_contacts=2) for _ in range(2))
    worlds.give_contacts(**named, count=[1, 2], ids=[1, 0])
    others.give_contacts(fl.Contacts(**named), count=[1, 2], ids=[1, 0])
    for name in DATA.of("given"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        np.testing.assert_array_equal(worlds.checkpoint()[name], others.checkpoint()[name], err_msg=name)
    assert one.given_replace == 1 and worlds.checkpoint()["given_present"].tolist() == [[1, 1], [1, 0]]
    signature = inspect.signature(fl.Batch.give_contacts).parameters
    assert {"self", *inspect.signature(fl.Contacts).parameters, "replace", "count", "ids"} == set(signature)


def test_arguments_that_contacts_do_not_have_are_refused(model):
    data = fl.Data(model, given_contacts=2)
    with pytest.raises(TypeError, match="colour"):
        data.give_contacts(**touching(model), colour=1)
    with pytest.raises(TypeError, match="dist"):
        data.give_contacts(pos=np.zeros(3), frame=np.ones(3))
    with pytest.raises(TypeError, match="dim"):
        data.give_contacts(fl.Contacts(**touching(model)), dim=3)


@pytest.mark.parametrize("given", [-1, 1.5, True, 10**9, "many"])
def test_a_capacity_out_of_range_is_refused(model, given):
    for make in (lambda: fl.Data(model, given_contacts=given), lambda: fl.Batch(model, 2, given_contacts=given)):
        with pytest.raises(fl.ModelError):
            make()


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -1e30, 1e30, 2.5])
def test_invalid_contact_values_cause_no_out_of_bounds_access(model, garbage):
    data = fl.Data(model, given_contacts=2)
    data.give_contacts(**touching(model))
    for name in ("given_body", "given_geom", "given_dim", "given_pos"):
        getattr(data, name)[...] = garbage
        fl.step(model, data)
    assert np.isfinite(data.qpos).all()


# ---- many worlds -----------------------------------------------------------------------------------------------------


def differing(model, rng, n: int = N):
    """Returns contacts of n worlds that join different geoms in different numbers, and their counts."""
    what = {
        "dist": rng.uniform(-0.02, 0.01, (n, 3)),
        "pos": rng.uniform(-1, 1, (n, 3, 3)),
        "frame": rng.standard_normal((n, 3, 3)),
        "geom": np.array([[0, 3], [2, 3], [0, 1]])[rng.integers(0, 3, (n, 3))],
        "dim": rng.choice([1, 3, 4, 6], (n, 3)),
    }
    return what, rng.integers(0, 4, n)


def state(batch):
    return b"".join(getattr(batch, name).tobytes() for name in ("qpos", "qvel", "qacc_warmstart", "ncon"))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_worlds_with_different_user_contacts_are_bitwise_equal_to_single_worlds(model, dtype, rng):
    what, count = differing(model, rng)
    replace = rng.random(N) < 0.5
    batch = fl.Batch(model, N, dtype=dtype, given_contacts=3)
    batch.give_contacts(**what, count=count, replace=replace)
    batch.qvel = qvel = rng.standard_normal((N, model.nv)).astype(dtype)
    batch.step(10)
    assert not batch.status["non_finite"].any()
    np.testing.assert_array_equal(batch.ncon, count)
    for w in range(N):
        alone = fl.Batch(model, 1, dtype=dtype, given_contacts=3)
        alone.give_contacts(**{name: value[w] for name, value in what.items()}, count=count[w], replace=replace[w])
        alone.qvel = qvel[w]
        alone.step(10)
        for name in ("qpos", "qvel", "qacc_warmstart"):
            assert getattr(alone, name)[0].tobytes() == getattr(batch, name)[w].tobytes()


def test_a_batch_agrees_with_data(model, rng):
    what, count = differing(model, rng)
    batch = fl.Batch(model, N, given_contacts=3)
    batch.give_contacts(**what, count=count)
    qacc = batch.bind("qacc")
    batch.forward()
    for w in range(N):
        data = fl.Data(model, given_contacts=3)
        data.give_contacts(**{name: value[w, : count[w]] for name, value in what.items()})
        fl.forward(model, data)
        assert data.qacc.tobytes() == qacc[w].tobytes()
        assert batch.get_data(w).qacc.tobytes() == qacc[w].tobytes()


def test_more_slots_than_a_tile_has_split_it_and_lose_no_contact(model, rng):
    bodies = np.array([[a, b] for a in range(4) for b in range(4) if a != b])
    room = 1024
    batch = fl.Batch(model, 8, nthread=1, given_contacts=room)
    body = bodies[rng.integers(0, len(bodies), (8, room))]
    batch.give_contacts(
        np.full(room, -1e-4), rng.uniform(-1, 1, (room, 3)), rng.standard_normal((8, room, 3)), body=body
    )
    batch.forward()
    np.testing.assert_array_equal(batch.ncon, room)
    assert not batch.status["contacts_full"].any()


def test_contacts_of_chosen_worlds_are_given_reset_and_restored(model, rng):
    what, _ = differing(model, rng)
    batch = fl.Batch(model, N, given_contacts=3)
    some = np.array([3, 11, 7])
    batch.give_contacts(**{name: value[:3] for name, value in what.items()}, ids=some, replace=True)
    batch.forward()
    np.testing.assert_array_equal(batch.ncon, np.where(np.isin(np.arange(N), some), 3, 0))
    kept, twin = batch.checkpoint(), fl.Batch(model, N, given_contacts=3)
    twin.restore(kept)
    others = copy.deepcopy(batch), pickle.loads(pickle.dumps(batch)), twin
    for one in (batch, *others):
        one.step(3)
        assert state(one) == state(batch)
    batch.reset(ids=[11])
    batch.clear_given_contacts(ids=[3])
    batch.forward()
    np.testing.assert_array_equal(np.flatnonzero(batch.ncon), [7])


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_world_reset_for_non_finite_values_has_no_user_contacts(model, rng):
    what, _ = differing(model, rng, 2)
    batch = fl.Batch(model, 2, given_contacts=3)
    batch.give_contacts(**what)
    batch.qvel[1] = np.nan
    batch.step()
    np.testing.assert_array_equal(batch.ncon, [3, 0])
    batch.step()
    np.testing.assert_array_equal(batch.ncon, [3, 0])


def test_expanded_parameters_are_mixed_world_by_world(model):
    batch = fl.Batch(model, 2, given_contacts=1)
    batch.expand("geom_friction")[1] = 5.0
    batch.give_contacts([-0.01], [0, 0, 0], [0, 0, 1], geom=[0, 1])
    np.testing.assert_array_equal(batch.given_friction[:, 0, 0], [1.0, 5.0])


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"count": [1, 2]}, "count: got"),
        ({"count": 9}, "count: got 9, allowed are whole numbers 0 to 2"),
        ({"pos": np.zeros((3, 2, 3))}, "allowed is what broadcasts to (19, 2, 3) or (2, 3)"),
    ],
)
def test_invalid_contacts_of_many_worlds_are_refused(model, wrong, message):
    batch = fl.Batch(model, N, given_contacts=2)
    with pytest.raises(fl.ModelError) as caught:
        batch.give_contacts(**{**touching(model), **wrong})
    assert message in str(caught.value)
