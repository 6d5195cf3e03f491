"""The collision pass: order, independence of the batch, masks, capacity and flags."""

import mujoco
import numpy as np
import pytest

from featherlane.engine.collision.collision import collision, counted_collision
from featherlane.engine.collision.fields import FIELDS
from featherlane.engine.collision.slot import NO_CONTACT
from featherlane.engine.model import load
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.contacts import contacts
from scenes.poses import collide, contacts_of, fill, same_contacts
from scenes.states import kicked

TOLERANCE = 1e-10
# con_speculative is written only with the flag `speculative`
SLOT_FIELDS = [f.name for f in FIELDS if f.kind == "real" and f.role == "slot" and f.name != "con_speculative"]

# all supported shapes over one floor, with several geoms on some bodies
HEAP = """
<mujoco>
  <default><geom margin="0.02" gap="0.01"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <geom type="plane" size="5 5 1" pos="0 0 -0.3" euler="0 20 0"/>
    <body pos="0 0 0.2"><freejoint/>
      <geom type="capsule" size="0.15 0.4"/><geom size="0.2" pos="0 0 0.5" solmix="2"/>
      <geom type="capsule" size="0.1 0.2" pos="0 0.3 0" priority="1"/>
      <body pos="0.5 0 0"><joint type="ball"/><geom type="capsule" size="0.1 0.3" pos="0.3 0 0"/></body>
    </body>
    <body pos="0.3 0.2 0.4"><freejoint/><geom size="0.25"/><geom size="0.2" pos="0.3 0 0" condim="1"/></body>
    <body pos="0 0.4 0.3"><freejoint/><geom type="box" size="0.2 0.1 0.3" contype="2" conaffinity="0"/></body>
    <body pos="-0.3 0 0.4"><freejoint/><geom type="capsule" size="0.2 0.2"/></body>
  </worldbody>
</mujoco>
""".replace('<geom type="plane"', '<geom conaffinity="3" type="plane"')

REAL = ["gymnasium/humanoid", "gymnasium/ant", "gymnasium/walker2d", "gymnasium/half_cheetah", "dm_control/walker"]


def states(mj, rng, n, position=0.3):
    """Returns geom_xpos, geom_xmat and MuJoCo's contacts in n states displaced from the reference."""
    data, out = mujoco.MjData(mj), []
    for _ in range(n):
        data.qpos[:] = kicked(mj, rng, position)[0]
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_collision(mj, data)
        out.append((data.geom_xpos.copy(), data.geom_xmat.copy(), contacts_of(data)))
    xpos, xmat, found = zip(*out, strict=True)
    return np.array(xpos), np.array(xmat), found


def equal_to_mujoco(model, rng, n):
    """Compares the contacts of n states and returns their number."""
    xpos, xmat, theirs = states(model.mj_model, rng, n)
    for width in (1, 8):
        for ours, expected in zip(collide(model, xpos, xmat, width), theirs, strict=True):
            same_contacts(ours, expected, TOLERANCE)
    return sum(len(c["dist"]) for c in theirs)


def test_contacts_of_a_heap_equal_mujoco_in_order(rng):
    assert equal_to_mujoco(load(HEAP), rng, 80) > 800


@pytest.mark.parametrize("name", REAL)
def test_contacts_of_real_models_equal_mujoco_in_order(name, real_model, rng):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    mj.opt.solver, mj.opt.cone = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtCone.mjCONE_PYRAMIDAL
    assert equal_to_mujoco(load(mj), rng, 40) > 20


@pytest.fixture
def heap(rng):
    """Returns a model, eight poses of it, and a tile that holds them."""
    model = load(HEAP)
    xpos, xmat, _ = states(model.mj_model, rng, 8)
    ws = Workspace(model, 8)
    fill(ws, xpos, xmat)
    return model, xpos, xmat, ws


def test_other_worlds_change_no_bit(heap):
    model, xpos, xmat, ws = heap
    ws.run(collision)
    alone = collide(model, xpos, xmat, 1)
    for w in range(8):
        np.testing.assert_array_equal(contacts(model, ws.arrays, w), alone[w])
    assert ws.arrays["ncon"][0].tolist() == [len(c) for c in alone]


def test_absent_contacts_hold_zeros(heap):
    _, _, _, ws = heap
    for name in SLOT_FIELDS:
        ws.arrays[name][...] = np.nan
    ws.run(collision)
    nslot = ws.arrays["ncon_slot"][0]
    absent = ws.arrays["con_present"][:nslot] == 0
    assert 0 < absent.sum() < absent.size
    for name in SLOT_FIELDS:
        value = ws.view(name)[:nslot]
        np.testing.assert_array_equal(np.moveaxis(value, -1, 1)[absent], NO_CONTACT if name == "con_dist" else 0)


def test_slots_are_ordered_and_used_by_at_least_one_world(heap):
    model, _, _, ws = heap
    ws.run(collision)
    nslot = ws.arrays["ncon_slot"][0]
    cand = ws.arrays["con_cand"][:nslot]
    assert np.all(np.diff(cand) >= 0)
    assert np.all(np.bincount(cand, minlength=model.ncand) <= model.cand_npoint)
    assert np.all(ws.arrays["con_present"][:nslot].any(axis=1))


def test_only_active_worlds_have_contacts(heap):
    model, xpos, xmat, ws = heap
    ws.arrays["active"][0] = [1, 0, 1, 1, 0, 0, 1, 0]
    ws.run(collision)
    for w, alone in enumerate(collide(model, xpos, xmat, 1)):
        found = contacts(model, ws.arrays, w)
        if ws.arrays["active"][0, w]:
            np.testing.assert_array_equal(found, alone)
        else:
            assert len(found) == 0


def shrink(ws, nconmax):
    """Reduces the capacity of a tile; memory past its end is marked."""
    ws.record.set_size("nconmax", nconmax)
    for name in SLOT_FIELDS:
        ws.arrays[name][...] = 77
    ws.arrays["con_cand"][...] = 77


def check_untouched(ws, nconmax):
    """Checks that nothing was written past the end."""
    for name in (*SLOT_FIELDS, "con_cand"):
        assert np.all(ws.view(name)[nconmax:] == 77)


def test_a_full_tile_requests_a_split(heap):
    _, _, _, ws = heap
    shrink(ws, 6)
    ws.run(collision)
    assert ws.arrays["con_overflow"][0] == 1 and ws.arrays["ncon_slot"][0] == 6
    assert np.all(ws.arrays["warning"] == 0)
    check_untouched(ws, 6)


def test_contacts_that_fill_the_slots_exactly_do_not_overflow(heap):
    _, _, _, ws = heap
    ws.run(collision)
    nslot = int(ws.arrays["ncon_slot"][0])
    shrink(ws, nslot)
    ws.run(collision)
    assert ws.arrays["con_overflow"][0] == 0 and ws.arrays["ncon_slot"][0] == nslot


@pytest.mark.parametrize("width", [1, 8])
def test_a_single_world_beyond_the_capacity_keeps_its_first_contacts_and_warns(heap, width):
    model, xpos, xmat, _ = heap
    alone = collide(model, xpos, xmat, 1)
    w = int(np.argmax([len(c) for c in alone])) if width == 8 else 0
    ws = Workspace(model, width)
    fill(ws, xpos[:width], xmat[:width])
    ws.arrays["active"][0] = np.arange(width) == w
    shrink(ws, 3)
    ws.run(counted_collision)
    np.testing.assert_array_equal(contacts(model, ws.arrays, w), alone[w][:3])
    assert len(alone[w]) > 3 and ws.arrays["con_overflow"][0] == 0
    assert ws.arrays["warning"][0].tolist() == (np.arange(width) == w).tolist()
    check_untouched(ws, 3)


@pytest.mark.parametrize("flag", ["contact", "constraint"])
def test_flags_switch_contacts_off(heap, flag):
    model, _, _, ws = heap
    ws.run(collision)
    model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag.upper()}")
    ws.run(collision)
    assert ws.arrays["ncon_slot"][0] == 0 and np.all(ws.arrays["ncon"] == 0)


def test_a_model_without_pairs_has_no_contacts():
    model = load("<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>")
    ws = Workspace(model, 1)
    ws.run(collision)
    assert model.ncand == 0 and len(contacts(model, ws.arrays)) == 0


def test_uncompiled_kernels_give_the_same_contacts(heap, monkeypatch):
    model, xpos, xmat, _ = heap
    compiled = collide(model, xpos, xmat, 8)
    monkeypatch.setenv("FEATHERLANE_MODE", "python")
    for ours, expected in zip(collide(model, xpos, xmat, 8), compiled, strict=True):
        same_contacts(ours, {name: expected[name] for name in expected.dtype.names}, TOLERANCE)


def test_single_precision_agrees_to_rounding(heap):
    model, xpos, xmat, _ = heap
    ws = Workspace(model, 16, np.float32)
    fill(ws, xpos, xmat)
    ws.run(collision)
    for w, expected in enumerate(collide(model, xpos, xmat, 8)):
        found = contacts(model, ws.arrays, w)
        np.testing.assert_array_equal(found.geom, expected.geom)
        np.testing.assert_allclose(found.dist, expected.dist, atol=2e-6)
        np.testing.assert_allclose(found.frame, expected.frame, atol=2e-5)
