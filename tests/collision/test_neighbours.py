"""A world's neighbour list, kept for some steps, saves tests of pairs and does not change their results."""

import copy

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.bounding import LISTED, bounding_tests
from featherlane.engine.collision.collision import collision
from featherlane.engine.model.enums import Enable
from featherlane.engine.simulation.step.forward import forward_position
from featherlane.engine.simulation.tile.workspace import Workspace

SHAPES = (
    'type="sphere" size="0.06"',
    'type="capsule" size="0.03 0.08"',
    'type="box" size="0.05 0.07 0.04" pos="0.02 0 0"',
    'type="ellipsoid" size="0.05 0.08 0.04"',
    'type="cylinder" size="0.05 0.05" euler="20 50 0"',
    'type="mesh" mesh="wedge"',
)
BODY = 18
BODIES = "".join(
    f'<body name="b{k}" pos="{0.16 * (k % 4)} {0.16 * (k // 4)} {0.12 + 0.07 * (k % 3)}"><freejoint/>'
    f'<geom name="g{k}" {SHAPES[k % len(SHAPES)]} margin="{0.004 * (k % 2)}"/></body>'
    for k in range(BODY)
)
PILE = f"""<mujoco><option timestep="0.004"/><asset><mesh name="wedge" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .12"/></asset>
<worldbody><geom name="floor" type="plane" size="2 2 .1"/>
<geom name="wall" type="box" size="0.02 1 0.3" pos="-0.1 0 0"/>
<body name="hand" mocap="true" pos="0.2 -0.2 0.1"><geom name="palm" type="box" size="0.1 0.03 0.05"/></body>
{BODIES}</worldbody><contact><pair name="apart" geom1="g0" geom2="g7" margin="0.01"/></contact></mujoco>"""


def pair_of_data(model):
    """Returns a world with a list, and one without."""
    listing, plain = fl.Data(model), fl.Data(model)
    plain.workspace.record.set_size("keeps_list", 0)
    return listing, plain


def same(listing, plain):
    assert listing.ncon == plain.ncon
    for name in ("qpos", "qvel", "qacc"):
        assert np.array_equal(getattr(listing, name), getattr(plain, name))
    assert np.array_equal(listing.contact.dist, plain.contact.dist)


def made_anew(data, run):
    """Returns whether a run rebuilds the list."""
    before = data.workspace.arrays["neighbours.pos"].copy()
    run()
    return not np.array_equal(before, data.workspace.arrays["neighbours.pos"])


def test_a_pile_moves_identically_with_and_without_neighbour_lists(rng):
    model = fl.load(PILE)
    listing, plain = pair_of_data(model)
    contacts = 0
    for k in range(600):
        for data in (listing, plain):
            data.mocap_pos[0] = (0.2 + 0.15 * np.sin(0.02 * k), -0.2 + 0.0005 * k, 0.1)
            fl.step(model, data)
        same(listing, plain)
        contacts += listing.ncon
        if k % 100 == 99:
            qpos = listing.qpos + rng.normal(scale=0.02, size=model.nq)
            listing.qpos = plain.qpos = qpos
    assert contacts > 3000
    assert 0 < listing.workspace.arrays["neighbours.count"][0] - 1 < model.ncand


def test_a_neighbour_list_is_reused_for_several_steps():
    model = fl.load(PILE)
    data = fl.Data(model)
    made = sum(made_anew(data, lambda: fl.step(model, data)) for _ in range(400))
    assert 10 < made < 100
    fl.step(model, data, 1000)
    assert sum(made_anew(data, lambda: fl.step(model, data)) for _ in range(100)) < 10  # all bodies are at rest


def test_a_world_without_the_first_geom_reuses_its_list():
    geoms = '<geom name="first" size="0.05"/><geom name="second" size="0.1"/>'
    hand = f'<body name="hand" mocap="true" pos="0.2 -0.2 1">{geoms}</body>'
    bodies = BODIES.replace('mesh="wedge"', "").replace('type="mesh"', 'type="box" size="0.05 0.03 0.04"')
    ground = '<body mocap="true"><geom name="floor" type="plane" size="2 2 .1"/></body>'
    text = f"<mujoco><worldbody>{hand}{bodies}{ground}</worldbody></mujoco>"
    model = fl.load(text, variants={"hand": ["first", "second"]})
    assert model.collide_geom[0] == model.geom("first").id
    builds = {}
    for variant in ("first", "second"):
        batch = fl.Batch(model, 1, nthread=1)
        batch.set_variant("hand", variant)
        batch.step(400)
        (tile,) = (w for found in batch.runner.plans.workspaces.values() for w in found)
        builds[variant] = 0
        for _ in range(50):
            before = tile.arrays["neighbours.pos"].copy()
            batch.step(2)
            builds[variant] += not np.array_equal(before, tile.arrays["neighbours.pos"])
    # without the first geom the world moves in the same way, and as many lists are built
    assert builds["second"] == builds["first"] < 25


@pytest.mark.parametrize("edit", ["geom_margin", "geom_rbound", "geom_aabb", "geom_pos", "body_pos", "opt_o_margin"])
def test_model_edits_invalidate_the_list(edit):
    """Moves pairs close that were not."""
    model = fl.load(PILE)
    if edit == "opt_o_margin":
        model.opt.enableflags |= Enable.OVERRIDE
    listing, plain = pair_of_data(model)
    for data in (listing, plain):
        fl.step(model, data, 1500)  # now all bodies are at rest, and the list would be valid
    listed = listing.workspace.arrays["neighbours.count"][0]
    if edit == "geom_aabb":
        model.geom_aabb[:, 3:] *= 2.0
    elif edit in ("geom_pos", "body_pos"):
        getattr(model, edit)[1:, 0] += 0.05
    elif edit == "opt_o_margin":
        model.opt.o_margin = 0.3
    else:
        getattr(model, edit)[1:] += 0.3
    fl.step(model, listing)
    fl.step(model, plain)
    same(listing, plain)
    if edit in ("geom_margin", "geom_rbound", "geom_aabb", "opt_o_margin"):
        assert listing.workspace.arrays["neighbours.count"][0] > listed


def test_geoms_within_the_allowed_travel_are_found(rng):
    """Builds a list of still bodies, then moves them as far as it permits: new near pairs are among those listed."""
    model = fl.load(PILE)
    listing, plain = Workspace(model, 1), Workspace(model, 1)
    plain.record.set_size("keeps_list", 0)
    kept = 0
    for _ in range(200):
        qpos = np.array(model.qpos0).reshape(-1, 7)
        qpos[:, :3] = rng.uniform((0, 0, 0), (0.5, 0.4, 0.3), (BODY, 3))
        qpos[:, 3:] = rng.normal(size=(BODY, 4))
        qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
        moved = qpos + np.c_[rng.uniform(-1, 1, (BODY, 3)) * 0.0015, rng.uniform(-1, 1, (BODY, 4)) * 0.003]
        made = None
        for q in (qpos, moved):
            for w in (listing, plain):
                w.arrays["qpos"][:, 0] = q.ravel()
                w.run(forward_position)
                w.run(bounding_tests, LISTED)
            found = [w.arrays["near.cand_near"][: w.arrays["near.count"][0]] for w in (listing, plain)]
            for w in (listing, plain):
                w.run(collision)
            assert set(found[0]) <= set(found[1])
            assert np.array_equal(listing.arrays["ncon"], plain.arrays["ncon"])
            n = int(listing.arrays["ncon"][0, 0])
            assert np.array_equal(listing.arrays["con_dist"][:n], plain.arrays["con_dist"][:n])
            kept += made is not None and np.array_equal(made, listing.arrays["neighbours.pos"])
            made = listing.arrays["neighbours.pos"].copy()
    assert kept > 50


def test_a_copy_builds_its_own_list():
    model = fl.load(PILE)
    data = fl.Data(model)
    fl.step(model, data, 50)
    other = copy.copy(data)
    assert other.workspace.arrays["neighbours.count"][0] == 0
    for _ in range(20):
        fl.step(model, data)
        fl.step(model, other)
        same(data, other)


def test_only_consecutive_steps_reuse_the_list():
    model = fl.load(PILE)
    for nworld in (1, 2, 9):
        batch = fl.Batch(model, nworld, nthread=1)
        batch.step(3)
        # a list changes no result and is not in a public field
        assert all(
            (w.arrays["neighbours.count"][0] > 0) == (nworld == 1)
            for found in batch.runner.plans.workspaces.values()
            for w in found
        )
    assert Workspace.sizes_of(fl.load("<mujoco/>"))["nlisted"] == 0
    assert Workspace.sizes_of(model, width=8)["nlisted"] == 0


def test_a_model_with_different_pairs_gets_a_new_list():
    model, other = fl.load(PILE), fl.load(PILE.replace('geom2="g7"', 'geom2="g8"'))
    listing, plain = pair_of_data(model)
    for m in (model, other, model):
        listing.model = plain.model = m
        for _ in range(5):
            fl.step(m, listing)
            fl.step(m, plain)
            same(listing, plain)
