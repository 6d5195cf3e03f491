"""A pile: each world's Hessian is factored separately, by minimum degree, in panels."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian.factorizations.minimum_degree import WORD_BITS, count_in_model_order, order_trees
from featherlane.engine.solver.hessian.factorizations.panel import (
    allocate_panels,
    expand_panels,
    factor_panels,
    reduce_panels,
)

ROUNDING = 1e-13  # of a solve whose matrix has a condition number of some hundreds
FREE = '<body><freejoint/><geom size="0.1"/></body>'
# trees of 6, 4, 1 and 9 dofs
OTHERS = """
<body><joint/><geom size="0.1"/><body><joint type="ball"/><geom size="0.1"/></body></body>
<body><joint type="slide"/><geom size="0.1"/></body>
<body><freejoint/><geom size="0.1"/><body><joint type="ball"/><geom size="0.1"/></body></body>
"""


def trees(count):
    return fl.load(f"<mujoco><worldbody>{FREE * count}{OTHERS}</worldbody></mujoco>")


def coupled(ntree, rng, reach):
    """Returns pairs of near points among ntree in a box: the graph of a pile."""
    x = rng.uniform(0, ntree ** (1 / 3), (ntree, 3))
    apart = np.linalg.norm(x[:, None] - x[None], axis=2)
    return [(t, u) for t in range(ntree) for u in range(t) if apart[t, u] < reach]


def dofs(model, t):
    return np.arange(model.tree_dofadr[t], model.tree_dofadr[t] + model.tree_dofnum[t])


def hessian(model, pairs, rng):
    H = np.eye(model.nv)
    for pair in pairs:
        J = np.zeros((4, model.nv))
        for t in pair:
            J[:, dofs(model, t)] = rng.standard_normal((4, model.tree_dofnum[t]))
        H += J.T @ J
    return H


def enter_graph(workspace, pairs):
    words = workspace.sizes["ngraphword"]
    graph = workspace.arrays["graph.bits"]
    graph[...] = 0
    for t, u in pairs:
        graph[t * words + u // WORD_BITS] |= 1 << (u % WORD_BITS)
        graph[u * words + t // WORD_BITS] |= 1 << (t % WORD_BITS)


def enter_panels(model, a, H):
    """Stores H in the panels, by their places."""
    for t in range(model.ntree):
        width, own = a["panel.width"][t], dofs(model, t)[::-1]
        rows = np.zeros((len(own), width))
        rows[:, : len(own)] = H[np.ix_(own, own)]
        for e in range(a["graph.rowadr"][t], a["graph.rowadr"][t] + a["graph.rownnz"][t]):
            other = dofs(model, a["graph.col"][e])[::-1]
            rows[:, a["graph.colstart"][e] :][:, : len(other)] = H[np.ix_(own, other)]
        eights = rows.reshape(len(own), -1, 8).transpose(1, 0, 2)
        a["panel.values"][a["panel.adr"][t] :][: rows.size] = eights.ravel()


@pytest.mark.parametrize("count", [5, 21, 90])
def test_panels_solve_like_a_dense_matrix(count):
    rng, model = np.random.default_rng(count), trees(count)
    pairs, b = coupled(model.ntree, rng, 1.1), rng.standard_normal(model.nv)
    H, workspace = hessian(model, pairs, rng), Workspace(model, 1)
    a = workspace.arrays
    a["panel.values"][...] = np.nan  # nothing of an earlier world remains
    enter_graph(workspace, pairs)
    workspace.run(order_trees)
    workspace.run(allocate_panels)
    enter_panels(model, a, H)
    tree = model.dof_treeid
    at = a["panel.start"][tree] + model.tree_dofadr[tree] + model.tree_dofnum[tree] - 1 - np.arange(model.nv)
    a["panel.x"][at] = b
    workspace.run(factor_panels)
    workspace.run(expand_panels)
    x, first = np.linalg.solve(H, b), a["panel.x"][at].copy()
    assert np.abs(first - x).max() <= ROUNDING * np.linalg.cond(H) * np.abs(x).max()
    a["panel.x"][at] = b
    workspace.run(reduce_panels)
    workspace.run(expand_panels)
    assert np.array_equal(a["panel.x"][at], first)


def fill(model, order, pairs):
    """Returns the couplings of a factor whose trees are eliminated in an order, by sets."""
    near = {t: set() for t in range(model.ntree)}
    for t, u in pairs:
        near[t].add(u)
        near[u].add(t)
    rows = {}
    for t in order:
        rows[t] = near.pop(t)
        for u in rows[t]:
            near[u] |= rows[t]
            near[u] -= {t, u}
    return rows


def test_an_order_holds_every_tree_once_with_the_fill_in_that_it_makes():
    rng, model = np.random.default_rng(1), trees(90)
    pairs, workspace = coupled(model.ntree, rng, 1.1), Workspace(model, 1)
    enter_graph(workspace, pairs)
    workspace.run(order_trees)
    workspace.run(allocate_panels)
    a = workspace.arrays
    order = a["graph.order"][: model.ntree]
    assert sorted(order) == list(range(model.ntree))
    rows = fill(model, order, pairs)
    for t in range(model.ntree):
        listed = a["graph.col"][a["graph.rowadr"][t] :][: a["graph.rownnz"][t]]
        assert set(listed) == rows[t]
        assert list(listed) == sorted(listed, key=list(order).index)
    natural = fill(model, range(model.ntree - 1, -1, -1), pairs)
    assert sum(map(len, rows.values())) < 0.8 * sum(map(len, natural.values()))

    enter_graph(workspace, pairs)
    workspace.run(count_in_model_order)
    size = model.tree_dofnum
    cost = sum(0.5 * size[t] * (size[t] + sum(size[u] for u in row)) ** 2 for t, row in natural.items() if row)
    assert a["panel.cost"][0] == cost


def test_chains_are_ordered_without_fill_in():
    model = trees(20)
    pairs, workspace = [(t, t - 1) for t in range(1, model.ntree)], Workspace(model, 1)
    enter_graph(workspace, pairs)
    workspace.run(order_trees)
    workspace.run(allocate_panels)
    assert workspace.arrays["graph.rownnz"][: model.ntree].sum() == len(pairs)


# ---- in a step -----------------------------------------------------------------------------------------------------
def heap(count=60):
    """Returns balls in a narrow bin, close to rest after a second."""
    walls = "".join(
        f'<geom type="plane" size="1 1 1" pos="{-0.16 * x} {-0.16 * y} 0" zaxis="{x} {y} 0"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    balls = "".join(
        f'<body pos="{0.09 * (k % 3) - 0.08} {0.09 * (k // 3 % 3) - 0.09} {0.06 + 0.1 * (k // 9)}">'
        '<freejoint/><geom size="0.045"/></body>'
        for k in range(count)
    )
    return f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{walls}{balls}</worldbody></mujoco>'


@pytest.fixture(scope="module")
def heaps():
    """Returns the model, and states of nine heaps that fell independently."""
    mj = mujoco.MjModel.from_xml_string(heap())
    mj.opt.tolerance, found = 1e-8, []
    for world in range(9):
        data = mujoco.MjData(mj)
        data.qvel[:] = 0.1 * np.random.default_rng(world).standard_normal(mj.nv)
        mujoco.mj_step(mj, data, 250)
        found.append((data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()))
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0.0, 100, 100
    return fl.load(mj), mj, [np.array(x) for x in zip(*found, strict=True)]


def enter(worlds, states):
    for name, value in zip(("qpos", "qvel", "qacc_warmstart"), states, strict=True):
        getattr(worlds, name)[...] = value


def test_ordered_heaps_have_the_accelerations_of_mujoco(heaps):
    model, mj, states = heaps
    data, expected = fl.Data(model), mujoco.MjData(mj)
    for world in range(2):
        for one in (data, expected):
            enter(one, [x[world] for x in states])
        fl.forward(model, data)
        mujoco.mj_forward(mj, expected)
        assert data.ordered == 1.0
        assert np.abs(data.qacc - expected.qacc).max() < 1e-8 * np.abs(expected.qacc).max()


ARM = '<body pos="{0} {1} 0"><joint axis="{1} {0} 0.3"/><geom size="0.05"/></body>'


def test_heaps_of_branching_trees_have_the_accelerations_of_mujoco():
    """Trees of four blocks: a body touching an arm's end is also coupled to the trunk."""
    arms = "".join(ARM.format(x, y) for x, y in ((0.1, 0), (-0.05, 0.09), (-0.05, -0.09)))
    tripods = "".join(
        f'<body pos="{0.16 * (k % 3)} {0.16 * (k // 3 % 3)} {0.1 + 0.12 * (k // 9)}">'
        f'<freejoint/><geom size="0.05"/>{arms}</body>'
        for k in range(36)
    )
    xml = f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{tripods}</worldbody></mujoco>'
    mj = mujoco.MjModel.from_xml_string(xml)
    expected = mujoco.MjData(mj)
    mujoco.mj_step(mj, expected, 100)
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0.0, 100, 100
    model = fl.load(mj)
    data = fl.Data(model)
    enter(data, (expected.qpos, expected.qvel, expected.qacc_warmstart))
    fl.forward(model, data)
    mujoco.mj_forward(mj, expected)
    assert data.ordered == 1.0 and data.status["not_converged"] == 0
    assert np.abs(data.qacc - expected.qacc).max() < 1e-8 * np.abs(expected.qacc).max()


def test_heaps_are_bitwise_equal_in_a_tile_alone_and_in_a_batch(heaps):
    model, _, states = heaps
    tile = Workspace(model, 8)
    for name, value in zip(("qpos", "qvel", "qacc_warmstart"), states, strict=True):
        tile.arrays[name][: value.shape[1]] = value[:8].T
    tile.run(forward)
    batch = fl.Batch(model, 9, nthread=1)
    enter(batch, states)
    batch.bind("qacc")
    batch.forward()  # in lanes
    assert (batch.ordered > 0).all()
    together = batch.bind("qacc").copy()
    batch.forward()  # one by one
    assert np.array_equal(batch.bind("qacc"), together)
    assert np.array_equal(tile.arrays["qacc"][: model.nv].T, together[:8])
    data = fl.Data(model)
    for world in (0, 8):
        enter(data, [x[world] for x in states])
        fl.forward(model, data)
        assert np.array_equal(data.qacc, together[world])


def test_a_tile_of_heaps_and_scattered_balls_is_split(heaps):
    model, _, states = heaps
    states = [x.copy() for x in states]
    states[0][4] = model.qpos0  # not yet fallen: no couplings
    states[1][4] = states[2][4] = 0.0
    batch = fl.Batch(model, 9, nthread=1)
    enter(batch, states)
    batch.bind("qacc")
    batch.forward()
    assert batch.ordered[4] == 0.0 and batch.ordered[3] == 1.0
    data = fl.Data(model)
    for world in (3, 4):
        enter(data, [x[world] for x in states])
        fl.forward(model, data)
        assert np.array_equal(data.qacc, batch.bind("qacc")[world])


def test_recorded_rollouts_keep_their_places(heaps):
    model, _, states = heaps
    batch = fl.Batch(model, 9, nthread=2)
    enter(batch, states)
    batch.forward()
    first = batch.rollout(2, record=("qpos",), ids=[7, 2, 5])["qpos"]
    enter(batch, states)
    every = batch.rollout(2, record=("qpos",))["qpos"]
    assert np.array_equal(first, every[[7, 2, 5]])
