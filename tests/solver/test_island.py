"""Constraint islands: MuJoCo's, and each is solved as if it were alone."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.model import load
from featherlane.simulation.step.forward import forward
from featherlane.simulation.tile.workspace import Workspace
from featherlane.solver.island import islands
from oracles.uncompiled import call, record
from scenes.coupled import mixed, put, states, truth

ALONE = 1e-10  # relative: one optimum of two problems that share nothing else


def strewn(rng):
    """Free spheres strewn about: chains of contacts, pairs, lone ones, ones in the air; a pendulum at its limit."""
    places = zip(rng.uniform(0, 1.5, 20), rng.uniform(0, 1, 20), rng.uniform(0.05, 0.6, 20), strict=True)
    spheres = [f'<body pos="{x} {y} {z}"><freejoint/><geom size="0.1"/></body>' for x, y, z in places]
    return ['<body pos="9 9 9"><joint axis="0 1 0" limited="true" range="10 20"/><geom pos="1 0 0"/></body>', *spheres]


def scene(bodies):
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option tolerance="0" iterations="100" ls_iterations="100"/><default><geom size="0.1"/></default>'
        f'<worldbody><geom type="plane" size="5 5 1"/>{"".join(bodies)}</worldbody></mujoco>'
    )


@pytest.mark.parametrize("width", [1, 8])
def test_islands_equal_mujocos(width, rng):
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


def test_each_island_moves_as_if_it_were_alone(rng):
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
    fl.islands(model, data)
    expected = truth(mj, (mj.qpos0, np.zeros(mj.nv)))
    assert isinstance(data.nisland, int) and data.nisland == expected.nisland
    np.testing.assert_array_equal(data.tree_island, expected.tree_island)
    np.testing.assert_array_equal(data.dof_island, expected.dof_island)


@pytest.mark.parametrize("seed", range(6))
def test_labels_are_those_of_union_by_sets(seed):
    """Rows of every kind at random, present in some worlds: uncompiled, from the definition."""
    rng, n, worlds = np.random.default_rng(seed), 12, 5
    count, trees = 4, rng.integers(-1, n, (3, 4, 2))
    dof, general = rng.integers(0, n, count), rng.integers(0, n, (count, 3))
    there = (rng.random((3, count, worlds)) < 0.5).astype(float)
    m = record(
        1,
        ntree=n,
        nv=n,
        nlink=1,
        dof_treeid=[*range(n)],
        body_treeid=[*range(n), -1],
        link_body=[*(trees[2, 0] % (n + 1))],
    )
    d = record(
        worlds,
        ndofrow=[count],
        ngenrow=[count],
        ncon_slot=[count],
        dofrow_dof=dof,
        dofrow_present=there[0],
        genrow_dofadr=[*range(0, 3 * count, 3)],
        genrow_dofnum=[3] * count,
        genrow_dof=general.ravel(),
        genrow_present=there[1],
        con_carrier=(trees[0] % (n + 1)).ravel(),
        con_D=there[2],
        nisland=np.zeros((1, worlds)),
        tree_island=np.zeros((n, worlds)),
        dof_island=np.zeros((n, worlds)),
    )
    call(islands, m, d)
    for lane in range(worlds):
        groups = [{int(i)} for i, present in zip(dof, there[0, :, lane], strict=True) if present]
        groups += [{*map(int, row)} for row, present in zip(general, there[1, :, lane], strict=True) if present]
        groups += [
            {*map(int, pair)} - {n} for pair, on in zip(trees[0] % (n + 1), there[2, :, lane], strict=True) if on
        ]
        groups = [g for g in [*groups, {*map(int, trees[2, 0] % (n + 1))} - {n}] if g]
        merged = []
        for g in groups:
            for other in [x for x in merged if x & g]:
                merged.remove(other)
                g = g | other
            merged.append(g)
        merged.sort(key=min)
        expected = [next((k for k, g in enumerate(merged) if t in g), -1) for t in range(n)]
        assert d.nisland.array[0, lane] == len(merged)
        np.testing.assert_array_equal(d.tree_island.array[:, lane], expected)
        np.testing.assert_array_equal(d.dof_island.array[:, lane], expected)
