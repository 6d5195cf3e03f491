"""The Hessian of coupled branches: sparse equals dense, its factor solves, worlds are bitwise independent."""

import mujoco
import numpy as np
import pytest

from featherlane.engine.collision.collision import collision
from featherlane.engine.constraint.row import make_rows
from featherlane.engine.lanes import stage
from featherlane.engine.model import load
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian import capacity
from featherlane.engine.solver.hessian.entries.couplings import DOF_BITS
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS, PATHS, TREE
from featherlane.engine.solver.hessian.equation import assemble_hessian, solve_first
from featherlane.engine.solver.solve import solve
from oracles.efc import efc
from oracles.hessians import columns, curvature, dense_hessian, inertia
from scenes.coupled import mixed, put, states, truth

DENSE = 1e-11  # relative to the largest entry: the sparse Hessian's bound, sums of some hundred products
SOLVED = 1e-9  # relative: rounding times the condition of H, about 1e5
PARITY = 1e-8  # relative: difference of two solvers' steps at tolerance 0


@pytest.fixture(params=["blocks", "paths"])
def room(request, monkeypatch):
    """Sets the capacity for block rows only, or also for rows closed under paths."""
    if request.param == "blocks":
        monkeypatch.setattr(capacity, "PATH_DOFS", 0)
    return request.param


@stage
def hessian_there(m, d):
    """Assembles the Hessian at the solver's final rows."""
    d.primal.live[0] = 1.0
    assemble_hessian(m, d)


@stage
def newton_step(m, d):
    """Computes search <- H^-1 search."""
    d.primal.live[0] = 1.0
    assemble_hessian(m, d)
    solve_first(m, d)


def relative(a, b):
    return np.abs(a - b).max(initial=0) / max(1.0, np.abs(b).max(initial=0))


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize(("cone", "impratio"), [("pyramidal", 1.0), ("elliptic", 2.0)])
def test_sparse_equals_dense(cone, impratio, condim, room, rng):
    mj = mixed(cone, condim, impratio)
    model, kinds = load(mj), set()
    w = Workspace(model, 1)
    for state in states(mj, 8, rng):
        put(w, 0, state)
        w.run(forward)
        rows = efc(model, w.arrays)
        w.run(hessian_there)
        kinds.add(int(w.arrays["hessian.pattern"][0]))
        H = inertia(mj, state) + curvature(model, w, rows)
        assert np.abs(dense_hessian(w) - np.tril(H)).max() < DENSE * np.abs(H).max()
    assert kinds - {TREE} == {BLOCKS if room == "blocks" else PATHS}


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_the_factor_solves(cone, room, rng):
    mj = mixed(cone, 4)
    model, w = load(mj), Workspace(load(mj), 1)
    for state in states(mj, 6, rng):
        put(w, 0, state)
        w.run(forward)
        w.run(hessian_there)
        H = dense_hessian(w)
        H += np.tril(H, -1).T
        x = rng.normal(size=model.nv)
        w.arrays["primal.search"][: model.nv, 0] = H @ x
        w.run(newton_step)
        assert relative(w.arrays["primal.search"][: model.nv, 0], x) < SOLVED


def couple_dofs(w, rows, rng):
    """Replaces the scene's general rows by ones on given dofs: (dofs, J, D) of each."""
    d, made = w.arrays, []
    first = adr = int(d["ndofrow"][0])
    for k, dofs in enumerate(rows, first):
        J, D = rng.normal(size=len(dofs)), rng.uniform(1, 50)
        d["row_dofadr"][k], d["row_dofnum"][k] = adr, len(dofs)
        d["row_dof"][adr : adr + len(dofs)] = dofs
        d["row_J"][adr : adr + len(dofs)] = J[:, None]
        for name, value in (("present", 1), ("D", D), ("lo", -1e30), ("hi", 1e30), ("aref", 2.0)):
            d[f"row_{name}"][k] = value
        d["row_type"][k], d["row_rownum"][k] = 0, 1
        adr += len(dofs)
        made.append((dofs, J, D))
    d["nrow"][0] = first + len(rows)
    return made


@pytest.mark.parametrize("width", [1, 8])
def test_rows_over_several_trees_enter_the_hessian(width, room, rng):
    mj = mixed()
    model = load(mj)
    w = Workspace(model, width)
    tips = model.tree_dofadr + model.tree_dofnum - 1
    rows = [
        [int(tips[0]) - 3, int(tips[0]), int(tips[3])],
        [int(model.tree_dofadr[1]), int(tips[2]) - 1, int(tips[2])],
        [int(tips[1]), int(tips[3]) - 2, int(tips[4])],
    ]
    for state in states(mj, 4, rng):
        for lane in range(width):
            put(w, lane, state)
        w.run(forward)
        w.run(collision)
        w.run(make_rows)
        made = couple_dofs(w, rows, rng)
        w.run(solve)
        w.run(hessian_there)
        d = w.arrays
        assert d["hessian.pattern"][0] in (BLOCKS, PATHS)
        H = dense_hessian(w, width - 1)
        d["row_D"][d["ndofrow"][0] : d["nrow"][0]] = 0.0
        w.run(hessian_there)
        expected = dense_hessian(w, width - 1)
        for dofs, J, D in made:
            expected[np.ix_(dofs, dofs)] += np.tril(D * np.outer(J, J))
        assert np.abs(H - expected).max() < DENSE * np.abs(expected).max()


@pytest.mark.parametrize(("cone", "condim"), [("pyramidal", 3), ("elliptic", 3), ("pyramidal", 6)])
def test_results_are_bitwise_equal_in_any_batch(cone, condim, room, rng):
    mj = mixed(cone, condim, tolerance=1e-10)
    model = load(mj)
    tile, alone, patterns = Workspace(model, 8), Workspace(model, 1), set()
    found = states(mj, 8, rng)
    found[3] = (mj.qpos0 + 0.0, found[3][1])
    found[3][0][model.jnt_qposadr[model.jnt_type == 0] + 2] += np.arange(1, 4)  # a world without contact
    for lane, state in enumerate(found):
        put(tile, lane, state)
    tile.run(forward)
    for lane, state in enumerate(found):
        put(alone, 0, state)
        alone.run(forward)
        patterns.add((int(alone.arrays["hessian.pattern"][0]), int(alone.arrays["hessian.ncoupling"][0])))
        for name in ("qacc", "qfrc_constraint", "solver_niter"):
            assert np.array_equal(alone.arrays[name][:, 0], tile.arrays[name][:, lane]), (name, lane)
    assert len(patterns) > 2 and TREE in {p for p, _ in patterns}


def test_fill_is_exact(rng):
    """The pattern has only entries that elimination of the coupled blocks in their order fills."""
    mj = mixed()
    model, w = load(mj), Workspace(load(mj), 1)
    for state in states(mj, 4, rng):
        put(w, 0, state)
        w.run(forward)
        if w.arrays["hessian.pattern"][0] != BLOCKS:
            continue
        H = np.eye(model.nblock, dtype=bool)
        chain = [set() for _ in range(model.nblock)]
        for b, p in enumerate(model.block_parentid):
            chain[b] = {b} | (chain[p] if p >= 0 else set())
            H[b, list(chain[b])] = True
        for key in w.arrays["hessian.coupling_key"][: w.arrays["hessian.ncoupling"][0]]:
            i, j = model.dof_blockid[list(divmod(key, 1 << DOF_BITS))]
            for a in chain[i]:
                for c in chain[j]:
                    H[max(a, c), min(a, c)] = True
        for b in range(model.nblock - 1, -1, -1):
            above = np.flatnonzero(H[b, :b])
            for c in above:
                H[c, above[above <= c]] = True
        for i in range(model.nv):
            blocks = np.unique(model.dof_blockid[columns(w, i)])
            assert np.array_equal(blocks, np.flatnonzero(H[model.dof_blockid[i]]))


PILE = "".join(
    f'<body pos="{0.05 * (i % 3)} {0.04 * (i % 2)} {0.05 + 0.04 * i}"><freejoint/><geom size="0.05"/></body>'
    for i in range(64)
)
STACK = "".join(
    f'<body pos="0 0 {0.0499 + 0.0998 * i}"><freejoint/><geom type="box" size="0.05 0.05 0.05"/></body>'
    for i in range(64)
)


@pytest.mark.parametrize("bodies", [PILE, STACK], ids=["spheres", "boxes"])
def test_piles_equal_mujoco(bodies, rng):
    mj = mujoco.MjModel.from_xml_string(
        '<mujoco><option tolerance="0" iterations="100" ls_iterations="100"/>'
        f'<worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>'
    )
    model, w = load(mj), Workspace(load(mj), 1)
    for _ in range(3):
        state = (mj.qpos0.copy(), rng.normal(0, 0.05, mj.nv))
        put(w, 0, state)
        w.run(forward)
        expected = truth(mj, state)
        assert w.arrays["ncon"][0, 0] == expected.ncon > 64
        assert relative(w.arrays["qacc"][: model.nv, 0], expected.qacc) < PARITY


LINKED = """<mujoco><option tolerance="0" iterations="100" ls_iterations="100" jacobian="dense"/>
  <default><geom size="0.06"/></default><worldbody><geom type="plane" size="5 5 1"/>
  <body name="a" pos="0 0 0.3"><freejoint/><geom/>
    <body name="leg" pos="0.2 0 0"><joint axis="0 1 0"/><geom/></body></body>
  <body name="b" pos="0.3 0 0.3"><freejoint/><geom/></body>
  <body pos="0.3 0.12 0.05"><freejoint/><geom/></body>
  <body name="d" pos="0.3 0.22 0.05"><freejoint/><geom/></body>
  <body pos="0 0.5 0.3"><joint axis="0 1 0"/><geom pos="0.1 0 0"/>
    <body name="f" pos="0.2 0 0"><joint name="j2" axis="0 1 0"/><geom pos="0.1 0 0"/></body></body>
  <body pos="0 0.8 0.3"><joint name="j3" axis="0 1 0"/><geom pos="0.1 0 0"/></body>
</worldbody><equality><weld body1="leg" body2="b"/><connect body1="b" body2="d" anchor="0 0 0.1"/>
  <joint joint1="j2" joint2="j3" polycoef="0.1 0.5 0 0 0"/><connect body1="a" body2="f" anchor="0.1 0.1 0"/>
</equality></mujoco>"""


def test_equalities_between_trees_equal_mujoco(room, rng):
    mj = mujoco.MjModel.from_xml_string(LINKED)
    model, w = load(mj), Workspace(load(mj), 1)
    for state in states(mj, 6, rng, 0.1):
        put(w, 0, state)
        w.run(forward)
        assert w.arrays["hessian.pattern"][0] in (BLOCKS, PATHS)
        assert relative(w.arrays["qacc"][: model.nv, 0], truth(mj, state).qacc) < PARITY
