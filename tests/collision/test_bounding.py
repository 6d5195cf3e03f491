"""The bounding tests alone: a tile lists the pairs that one of its worlds lists, and touching pairs pass all tests."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.bounding import BOXES, LISTED, SPHERES, bounding_tests
from featherlane.engine.collision.collision import collision
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.simulation.step.forward import forward_position
from featherlane.engine.simulation.tile.workspace import Workspace

W = 8
CHAINS = "".join(
    f"""<body pos="{0.3 * k} 0 .2"><freejoint/>
    <geom type="ellipsoid" size=".1 .05 .07"/><geom size=".05" pos="0 0 .1"/>
    <body pos=".1 0 0"><joint type="ball"/>
    <geom type="cylinder" size=".05 .1"/><geom type="box" size=".05 .02 .1"/></body></body>"""
    for k in range(3)
)
BOXED = f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{CHAINS}</worldbody></mujoco>'
BALLS = "".join(f'<body pos="{0.15 * k} 0 .1"><freejoint/><geom size=".1"/></body>' for k in range(160))
CROWD = f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{BALLS}</worldbody></mujoco>'


def at(model, qpos) -> Workspace:
    """Returns a tile in these positions, with its contacts; it has no neighbour list, which would save tests."""
    workspace = Workspace(model, len(qpos))
    workspace.record.set_size("keeps_list", 0)
    workspace.arrays["qpos"][: model.nq] = qpos.T
    workspace.run(forward_position)
    workspace.run(collision)
    return workspace


def left(workspace, last) -> set[int]:
    """Returns the pairs that pass the tests up to a given one: candidates, or keys with a tree."""
    workspace.run(bounding_tests, last)
    arrays = workspace.arrays
    pairs = arrays["near.key" if workspace.model.ncrowd else "near.cand_near"][: arrays["near.count"][0]].tolist()
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


@pytest.mark.parametrize("scene", ["hand", BOXED, CROWD], ids=["hand", "boxed", "crowd"])
def test_pairs_of_a_tile_are_the_union_of_its_worlds(scene, rng):
    model = fl.load(resolve_name(scene))
    qpos = model.qpos0 + 0.1 * rng.standard_normal((W, model.nq))
    together, alone = at(model, qpos), [at(model, q[None]) for q in qpos]
    sets = {last: [left(world, last) for world in alone] for last in (LISTED, SPHERES, BOXES)}
    for last, worlds in sets.items():
        assert left(together, last) == set().union(*worlds)
    assert any(sets[SPHERES])
    for listed, near, sought in zip(*sets.values(), strict=True):
        assert sought <= near <= listed
    assert sets[SPHERES] != sets[BOXES] or model.ncrowd


def test_touching_pairs_pass_all_bounding_tests(rng):
    model = fl.load(BOXED)
    for _ in range(20):
        workspace = at(model, (model.qpos0 + 0.1 * rng.standard_normal(model.nq))[None])
        touching = set(workspace.arrays["con_cand"][: workspace.arrays["ncon_slot"][0]].tolist())
        assert touching <= left(workspace, BOXES)


def test_no_pair_is_tested_with_user_contacts_only(rng):
    model = fl.load(BOXED)
    workspace = at(model, model.qpos0[None])
    assert left(workspace, SPHERES)
    workspace.arrays["given_replace"][...] = 1.0
    workspace.run(collision)
    assert not left(workspace, LISTED)
    np.testing.assert_array_equal(workspace.arrays["ncon"], 0.0)
