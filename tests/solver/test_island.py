"""Constraint islands: MuJoCo's, and each is solved as if it were alone."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import load
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.island import islands
from oracles.uncompiled import call, record
from scenes.coupled import mixed, put, states, truth

ALONE = 1e-10  # relative: the optimum, solved as two independent problems


def strewn(rng):
    """Returns scattered free spheres: contact chains, pairs, single ones, ones in the air; a pendulum at its limit."""
    places = zip(rng.uniform(0, 1.5, 20), rng.uniform(0, 1, 20), rng.uniform(0.05, 0.6, 20), strict=True)
    spheres = [f'<body pos="{x} {y} {z}"><freejoint/><geom size="0.1"/></body>' for x, y, z in places]
    return ['<body pos="9 9 9"><joint axis="0 1 0" limited="true" range="10 20"/><geom pos="1 0 0"/></body>', *spheres]


def scene(bodies):
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option tolerance="0" iterations="100" ls_iterations="100"/><default><geom size="0.1"/></default>'
        f'<worldbody><geom type="plane" size="5 5 1"/>{"".join(bodies)}</worldbody></mujoco>'
    )


@pytest.mark.parametrize("width", [1, 8])
def test_islands_equal_mujoco(width, rng):
    counts = set()
    for mj, spread in ((mixed(), None), (scene(strewn(rng)), 0.02), (scene(strewn(rng)), 0.2)):
        w, found = Workspace(load(mj), width), states(mj, width, rng, spread)
        for lane, state in enumerate(found):
            put(w, lane, state)
        w.run(forward)
        w.run(islands)
        for lane, state in enumerate(found):
            expected = truth(mj, state)
            counts.add(expected.nisland)
            assert w.arrays["nisland"][0, lane] == expected.nisland
            if expected.nisland:
                np.testing.assert_array_equal(w.arrays["tree_island"][: mj.ntree, lane], expected.tree_island)
                np.testing.assert_array_equal(w.arrays["dof_island"][: mj.nv, lane], expected.dof_island)
    assert max(counts) > 3


def solved(mj, qvel):
    w = Workspace(load(mj), 1)
    put(w, 0, (mj.qpos0, qvel))
    w.run(forward)
    w.run(islands)
    return w.arrays


def test_each_island_moves_independently(rng):
    bodies = strewn(rng)
    mj = scene(bodies)
    qvel = rng.normal(0, 0.3, mj.nv)
    d, sizes = solved(mj, qvel), []
    for island in range(int(d["nisland"][0, 0])):
        trees = np.flatnonzero(d["tree_island"][: mj.ntree, 0] == island)
        dofs = d["dof_island"][: mj.nv, 0] == island
        alone = solved(scene([bodies[t] for t in trees]), qvel[dofs])
        assert alone["nisland"][0, 0] == 1
        difference = np.abs(alone["qacc"][: dofs.sum(), 0] - d["qacc"][: mj.nv, 0][dofs]).max()
        assert difference < ALONE * np.abs(d["qacc"]).max()
        sizes.append(len(trees))
    assert len(sizes) > 2 and max(sizes) > 1


def test_a_data_has_its_islands(rng):
    mj = scene(strewn(rng))
    model = fl.load(mj)
    data = fl.Data(model)
    fl.forward(model, data)
    expected = truth(mj, (mj.qpos0, np.zeros(mj.nv)))
    assert isinstance(data.nisland, int) and data.nisland == expected.nisland
    np.testing.assert_array_equal(data.tree_island, expected.tree_island)
    np.testing.assert_array_equal(data.dof_island, expected.dof_island)


def test_each_pass_computes_islands_that_were_read_or_bound(rng):
    mj = scene(strewn(rng))
    model = fl.load(mj)
    data, late, batch, expected = fl.Data(model), fl.Data(model), fl.Batch(model, 9), mujoco.MjData(mj)
    number, trees, dofs = (batch.bind(name) for name in ("nisland", "tree_island", "dof_island"))
    live, counts = data.tree_island, set()
    for _ in range(40):
        mujoco.mj_step(mj, expected)
        for worlds in (data, late, batch):
            worlds.step()
        counts.add(expected.nisland)
        assert data.nisland == expected.nisland and (number == expected.nisland).all()
        if expected.nisland:
            assert np.array_equal(live, expected.tree_island) and (trees == live).all()
            assert (dofs == expected.dof_island).all()
    assert late.nisland == data.nisland and np.array_equal(late.tree_island, live)
    assert np.array_equal(late.copy().dof_island, data.dof_island) and len(counts) > 1


def random_rows(rng, n=12, count=4, worlds=5):
    """Returns rows of every kind between n trees, present in some worlds, and each world's groups of trees."""
    dof, general = rng.integers(0, n, count), rng.integers(0, n, (count, 3))
    bodies, link = rng.integers(0, n + 1, (count, 2)), rng.integers(0, n + 1, 2)  # body n is the world
    there = (rng.random((3, count, worlds)) < 0.5).astype(float)
    trees = {"dof_treeid": [*range(n)], "body_treeid": [*range(n), -1]}
    m = record(1, ntree=n, nv=n, nlink=1, link_body=link, **trees)
    d = record(
        worlds,
        ncon_slot=[count],
        ndofrow=[count],
        nrow=[2 * count],
        row_present=there[:2].reshape(-1, worlds),
        con_D=there[2],
        row_dofadr=[*range(count), *range(count, 4 * count, 3)],
        row_dofnum=[1] * count + [3] * count,
        row_dof=[*dof, *general.ravel()],
        con_carrier=bodies.ravel(),
        nisland=np.zeros((1, worlds)),
        tree_island=np.zeros((n, worlds)),
        dof_island=np.zeros((n, worlds)),
    )
    rows = zip([*dof[:, None], *general, *bodies], there.reshape(-1, worlds), strict=True)
    rows = [({*map(int, row)} - {n}, present) for row, present in [*rows, (link, np.ones(worlds))]]
    return m, d, [[group for group, present in rows if group and present[lane]] for lane in range(worlds)]


def joined(groups):
    """Merges groups that share a tree; sorts by first tree."""
    found = []
    for group in groups:
        for other in [one for one in found if one & group]:
            found.remove(other)
            group = group | other
        found.append(group)
    return sorted(found, key=min)


@pytest.mark.parametrize("seed", range(6))
def test_islands_are_trees_connected_by_rows(seed):
    """The expected islands are computed uncompiled, from the definition."""
    m, d, groups = random_rows(np.random.default_rng(seed))
    call(islands, m, d)
    for lane, rows in enumerate(groups):
        found = joined(rows)
        expected = [next((k for k, group in enumerate(found) if t in group), -1) for t in range(m.ntree)]
        assert d.nisland.array[0, lane] == len(found)
        np.testing.assert_array_equal(d.tree_island.array[:, lane], expected)
        np.testing.assert_array_equal(d.dof_island.array[:, lane], expected)
