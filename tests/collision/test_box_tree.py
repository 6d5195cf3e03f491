"""Pairs from a tree: the same contacts in the same order as from the list of all pairs."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.broad.box_tree import FEW_MOVABLE
from featherlane.engine.model import broad_phase
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace

SHAPES = ('type="sphere" size="{0:.3f}"', 'type="capsule" size="{1:.3f} {0:.3f}"')


def heap(rng, n, extra="", flags=""):
    """Returns n bodies of one to three geoms in a box that they half fill, some of them linked, over a floor."""
    bodies = []
    for i in range(n):
        x, y, z = rng.uniform(-0.5, 0.5, 3) * n ** (1 / 3) * 0.4
        geoms = ""
        for _ in range(rng.integers(1, 4)):
            r, w = rng.uniform(0.05, 0.25), rng.uniform(0.02, 0.1)
            shape, bits = SHAPES[rng.integers(2)].format(r, w), rng.integers(1, 4)
            margin = rng.choice([0.0, 0.03])
            place = " ".join(f"{c:.3f}" for c in rng.uniform(-0.2, 0.2, 3))
            geoms += f'<geom {shape} pos="{place}" contype="{bits}" margin="{margin}" name="g{i}_{len(geoms)}"/>'
        child = '<body pos="0.1 0 0"><joint/><geom size="0.1"/></body>' if i % 5 == 0 else ""
        bodies.append(f'<body name="b{i}" pos="{x:.3f} {y:.3f} {z:.3f}"><freejoint/>{geoms}{child}</body>')
    return f"""<mujoco><option>{flags}</option><worldbody><geom type="plane" size="1 1 1" pos="0 0 -0.3"/>
        <geom size="0.3"/>{"".join(bodies)}</worldbody>{extra}</mujoco>"""


def contacts_of(xml, limit, monkeypatch, width=8):
    """Returns contacts of some worlds with displaced bodies."""
    monkeypatch.setattr(broad_phase, "CROWD_PAIRS", limit)
    model = fl.load(xml)
    ws, rng = Workspace(model, width), np.random.default_rng(1)
    ws.arrays["qpos"][...] += rng.uniform(-0.05, 0.05, ws.arrays["qpos"].shape)
    ws.run(forward)
    count = int(ws.arrays["ncon_slot"][0])
    names = ("con_geom", "con_pair", "con_dim", "con_present", "con_dist", "con_pos", "con_frame", "con_includemargin")
    out = {name: ws.view(name)[:count].copy() for name in names}
    return model, out | {"qacc": ws.arrays["qacc"].copy(), "overflow": int(ws.arrays["warning"][0].sum())}


EXTRAS = {
    "plain": "",
    "excludes": "<contact>"
    + "".join(f'<exclude body1="b{i}" body2="b{j}"/>' for i in range(0, 12) for j in range(12, 24))
    + "</contact>",
    "pairs": '<contact><pair geom1="g3_0" geom2="g1_0" margin="0.2" condim="1"/>'
    '<pair geom1="g2_0" geom2="g7_0" margin="2" gap="0.5"/></contact>',
}


@pytest.mark.parametrize("flags", ["", '<flag midphase="disable"/>', '<flag filterparent="disable"/>'])
@pytest.mark.parametrize("extra", EXTRAS)
def test_box_tree_finds_the_pairs_of_the_list(extra, flags, monkeypatch):
    xml = heap(np.random.default_rng(0), 30, EXTRAS[extra], flags)
    listed, expected = contacts_of(xml, 10**9, monkeypatch)
    crowd, got = contacts_of(xml, 0, monkeypatch)
    assert listed.ncrowd == 0
    assert crowd.ncrowd > 40
    assert len(expected["con_dist"]) > 100
    assert expected["overflow"] == got["overflow"] == 0
    for name, value in expected.items():
        assert np.array_equal(got[name], value), name


def rough_ground(n, flags=""):
    """Returns 10 free bodies that fall onto n boxes of the world."""
    rng = np.random.default_rng(3)
    boxes = "".join(
        f'<geom type="box" size="{x:.3f} {y:.3f} {z:.3f}" pos="{0.4 * (i % 15) - 3:.3f} {0.4 * (i // 15) - 3:.3f} 0"/>'
        for i, (x, y, z) in enumerate(rng.uniform(0.1, 0.3, (n, 3)))
    )
    bodies = "".join(
        f'<body pos="{0.3 * i - 1.5:.3f} {0.1 * i - 1.5:.3f} 0.22"><freejoint/><geom size=".1"/>'
        '<geom type="capsule" size=".05 .1" pos="0 .1 0"/></body>'
        for i in range(10)
    )
    return f"<mujoco><option>{flags}</option><worldbody>{boxes}{bodies}</worldbody></mujoco>"


@pytest.mark.parametrize("n", [100, 225])  # more and fewer than one in FEW_MOVABLE geoms can move
@pytest.mark.parametrize("width", [1, 8])
def test_a_tree_of_fixed_geoms_finds_what_the_list_finds(n, width, monkeypatch):
    _, expected = contacts_of(rough_ground(n), 10**9, monkeypatch, width)
    crowd, got = contacts_of(rough_ground(n), 0, monkeypatch, width)
    assert crowd.ncrowd == n + 20 and (crowd.ncrowd > 20 * FEW_MOVABLE) == (n == 225)
    assert len(expected["con_dist"]) >= 20
    for name, value in expected.items():
        assert np.array_equal(got[name], value), name


def test_the_tree_of_fixed_geoms_is_built_again_if_they_are_moved_or_other_geoms_join(monkeypatch):
    monkeypatch.setattr(broad_phase, "CROWD_PAIRS", 0)
    model = fl.load(rough_ground(225, '<flag sleep="disable"/>'))
    batch = fl.Batch(model, 8, nthread=1)
    height = batch.expand("geom_pos")
    height[:, :225, 2] += 0.02 * np.arange(8)[:, None]  # each world has other ground
    for step in range(12):
        if step in (4, 8):
            model.opt.enableflags ^= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        if step == 6:
            height[3, :225, 2] += 0.01
        before = batch.get_state()
        batch.step()
        for w in (0, 3, 7):
            alone = fl.Data(batch.get_model(w))
            if model.opt.enableflags == 0:
                alone.set_state(before[w])
                alone.step()
                assert np.array_equal(alone.qpos, batch.qpos[w]), (step, w)
    assert batch.ncon.min() > 0


def test_a_non_finite_world_does_not_affect_other_worlds(monkeypatch):
    monkeypatch.setattr(broad_phase, "CROWD_PAIRS", 0)
    model = fl.load(heap(np.random.default_rng(2), 12))
    alone, shared = Workspace(model, 1), Workspace(model, 8)
    shared.arrays["qpos"][:, 3] = np.nan
    shared.arrays["qpos"][2, 4] = np.inf
    for ws in (alone, shared):
        ws.run(forward)
    assert np.array_equal(shared.arrays["qacc"][:, 0], alone.arrays["qacc"][:, 0])
    assert np.array_equal(shared.arrays["qacc"][:, 7], alone.arrays["qacc"][:, 0])


def test_body_boxes_reject_no_contact(monkeypatch):
    xml = heap(np.random.default_rng(3), 20)
    monkeypatch.setattr(broad_phase, "GROUP_SIZE", 10**9)
    single, expected = contacts_of(xml, 10**9, monkeypatch)
    monkeypatch.setattr(broad_phase, "GROUP_SIZE", 0)
    grouped, got = contacts_of(xml, 10**9, monkeypatch)
    assert single.ngroup == 0
    assert 0 < grouped.ngroup < grouped.ncand
    for name, value in expected.items():
        assert np.array_equal(got[name], value), name


def test_a_thousand_bodies_touch_as_in_mujoco():
    n, rng = 10, np.random.default_rng(0)
    places = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3) * 0.21 + [0, 0, 0.1]
    places += rng.uniform(-0.02, 0.02, places.shape)
    bodies = "".join(f'<body pos="{x:.4f} {y:.4f} {z:.4f}"><freejoint/><geom size="0.1"/></body>' for x, y, z in places)
    xml = f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{bodies}</worldbody></mujoco>'
    model = fl.load(xml)
    assert model.ncrowd == n**3
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    fl.stages.collision(model, data)
    mj = mujoco.MjModel.from_xml_string(xml)
    oracle = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, oracle)
    mujoco.mj_collision(mj, oracle)
    assert oracle.ncon > 300
    assert np.array_equal(data.contact.geom, oracle.contact.geom)
    assert np.allclose(data.contact.dist, oracle.contact.dist, atol=1e-12)


def listing_and_plain(model):
    """Returns a world that keeps a list of the tree's pairs, and one that does not."""
    listing, plain = fl.Data(model), fl.Data(model)
    plain.workspace.record.set_size("keeps_list", 0)
    return listing, plain


def test_a_heap_moves_identically_with_and_without_a_list_of_the_pairs_of_its_tree(monkeypatch, rng):
    monkeypatch.setattr(broad_phase, "CROWD_PAIRS", 0)
    model = fl.load(heap(np.random.default_rng(4), 25, EXTRAS["pairs"]))
    listing, plain = listing_and_plain(model)
    nlist, box = (listing.workspace.arrays[name] for name in ("crowd.nlist", "crowd.listed_box"))
    made, contacts = 0, 0
    for k in range(200):
        before = box.copy()
        for data in (listing, plain):
            data.step()
        made += not np.array_equal(before, box)
        contacts += listing.ncon
        assert nlist[0] > 1
        assert np.array_equal(listing.contact.geom, plain.contact.geom)
        for name in ("qpos", "qvel", "qacc"):
            assert np.array_equal(getattr(listing, name), getattr(plain, name))
        if k in (60, 120):  # geoms jump, and grow
            listing.qpos = plain.qpos = listing.qpos + rng.normal(scale=0.05, size=model.nq)
            model.geom_margin[k // 3] += 0.05
    assert contacts > 1000
    assert 3 <= made < 150
    assert plain.workspace.arrays["crowd.nlist"][0] == 0


@pytest.mark.parametrize("room", [3, 40])
def test_pairs_that_do_not_fit_are_the_same_with_and_without_a_list(room, monkeypatch):
    monkeypatch.setattr(broad_phase, "CROWD_PAIRS", 0)
    model = fl.load(heap(np.random.default_rng(4), 25))
    listing, plain = listing_and_plain(model)
    for data in (listing, plain):
        data.mute()
        data.workspace.record.set_size("nnear", room)
    for _ in range(10):
        for data in (listing, plain):
            data.step()
        assert np.array_equal(listing.qacc, plain.qacc)
    assert listing.workspace.arrays["crowd.nlist"][0] == -1
