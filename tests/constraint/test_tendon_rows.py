"""Rows of tendons: friction loss, limits, equalities; solvers over rows of three branches and more."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS, ORDERED, PATHS
from featherlane.engine.solver.island import islands
from oracles.efc import efc
from oracles.rows import assert_rows_equal
from oracles.smooth import WIDTHS, fill, relative
from scenes import constraints
from scenes.states import kicked
from scenes.tendons import scene

SAME = 1e-11  # the same formulas in a different order
SPRINGS = 'stiffness="30 8 5" springlength=".2 .3" damping="2 .5 .3"'
SOLVED = 1e-8  # the bound on qacc; Newton and CG end at 1e-13 here
EXACT = "<option tolerance='0' iterations='{}' ls_iterations='50' jacobian='dense' solver='{}'>{}</option>"
ROWS = (
    'limited="true" range=".3 .5" margin=".1" frictionloss="1" solreflimit=".05 1.2" solimplimit=".7 .9 .2 .4 3"'
    ' solreffriction=".03 .9" solimpfriction=".8 .9 .1 .5 2"'
)
EQUALITIES = """<equality><tendon tendon1="muscle" tendon2="over" polycoef=".1 .5 .2 -.1 .3" solref=".1 1"/>
  <tendon tendon1="three" solref=".1 1"/><joint joint1="pole" joint2="hip" solref=".1 1"/>
  <tendon tendon1="four" tendon2="round" solref=".1 1"/><tendon tendon1="world" solref=".1 1"/></equality>"""


def worlds(xml, rng, width):
    """Returns a workspace after forward in random states, and MuJoCo's data of each."""
    model = fl.load(xml)
    ws, found = Workspace(model, width), []
    for k in range(width):
        qpos, qvel = kicked(model, rng, 0.4)
        fill(ws, k, qpos=qpos, qvel=qvel)
        found.append(constraints.forward(model.mj_model, qpos, qvel))
    ws.run(forward)
    return ws, found


def options(solver="Newton", flags="", iterations=100):
    return EXACT.format(iterations, solver, flags)


@pytest.mark.covers("tendon constraint", lambda: [scene(tail=EQUALITIES, every=ROWS)])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("flags", ["", '<flag diagexact="enable"/>', '<flag refsafe="disable"/>'])
def test_rows_equal_mujoco(rng, width, flags):
    for tail, every in ((EQUALITIES, ROWS), (EQUALITIES, ""), ("", ROWS)):
        ws, found = worlds(scene(options(flags=flags), tail, every=every), rng, width)
        for k, data in enumerate(found):
            assert relative(ws.arrays["qacc"][:, k], data.qacc) <= SOLVED
            ws.arrays["qacc"][:, k] = data.qacc
        assert_rows_equal(ws, found)


@pytest.mark.parametrize("flags", ["", '<flag diagexact="enable"/>'])
@pytest.mark.parametrize("solver", ["Newton", "PGS"])
def test_rows_at_the_end_of_the_step_equal_mujoco(rng, solver, flags):
    """Tested under the integrator discrete, whose metric includes tendons."""
    option = options(solver, flags, 500).replace("<option", "<option integrator='discrete'")
    for tail, every in ((EQUALITIES, SPRINGS), ("", f"{SPRINGS} {ROWS}")):
        ws, found = worlds(scene(option, tail, every=every), rng, 8)
        for k, data in enumerate(found):
            assert relative(ws.arrays["qacc"][:, k], data.qacc) <= SOLVED
            rows = efc(ws.model, ws.arrays, k)
            for name in ("type", "id", "D", "aref", "pos"):
                assert relative(getattr(rows, name), getattr(data, f"efc_{name}")) <= SAME, name


@pytest.mark.parametrize("flag", ["frictionloss", "limit", "equality", "constraint"])
def test_a_flag_switches_off_rows_of_tendons(rng, flag):
    xml = scene(options(flags=f'<flag {flag}="disable"/>'), EQUALITIES, every=ROWS)
    ws, found = worlds(xml, rng, 8)
    for k, data in enumerate(found):
        assert relative(ws.arrays["qacc"][:, k], data.qacc) <= SOLVED


@pytest.mark.parametrize(
    ("solver", "iterations", "tail"),
    [("Newton", 100, EQUALITIES), ("CG", 200, EQUALITIES), ("PGS", 500, ""), ("PGS", 500, "noslip")],
)
def test_every_solver_finds_the_acceleration_of_mujoco(rng, solver, iterations, tail):
    option = options(solver, iterations=iterations)
    if tail == "noslip":
        option, tail = option.replace("<option", "<option noslip_iterations='30'"), ""
    ws, found = worlds(scene(option, tail, every=ROWS), rng, 8)
    for k, data in enumerate(found):
        assert relative(ws.arrays["qacc"][:, k], data.qacc) <= SOLVED


# ---- several branches ------------------------------------------------------------------------------------------------
def over_trees(n, reach=3, every='limited="true" range="0 .01"', tendons=None):
    """Returns n free bodies, each with a hinged arm, and tendons past `reach` of them in a row."""
    body = '<body pos="{0} {1} {2}"><freejoint/><geom size=".1"/><body pos="0 .2 0"><joint axis="0 0 1"/>'
    body += '<geom size=".05" pos=".1 0 0"/><site name="s{3}" pos=".1 .05 .02"/></body></body>'
    bodies = "".join(body.format(i % 4, i // 4 % 4, i // 16, i) for i in range(n))
    paths = tendons or [range(i, i + reach) for i in range(n - reach + 1)]
    sites = ["".join(f'<site site="s{i}"/>' for i in path) for path in paths]
    rows = "".join(f"<spatial {every}>{path}</spatial>" for path in sites)
    head = "<default><geom contype='0' conaffinity='0'/></default>"
    return f"<mujoco>{options()}{head}<worldbody>{bodies}</worldbody><tendon>{rows}</tendon></mujoco>"


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_tendon_over_several_trees_couples_every_two(rng, width, count):
    """Newton needs few steps to reach rounding only with all entries of H = M + J^T D J."""
    ws, found = worlds(over_trees(count, count), rng, width)
    a = ws.arrays
    assert a["hessian.pattern"][0] in (BLOCKS, PATHS)
    assert a["hessian.ncoupling"][0] == count * (count - 1) // 2
    for k, data in enumerate(found):
        assert relative(a["qacc"][:, k], data.qacc) <= SOLVED
        assert a["solver_niter"][0, k] <= 4


def test_a_row_over_branches_of_one_tree_couples_every_two(rng):
    """A fixed tendon spans three fingers and the palm, and one spans two dofs of a finger."""
    fingers = "".join(
        f'<body pos="{i} 0 1"><joint name="a{i}" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>'
        f'<body pos="0 .3 0"><joint name="b{i}" axis="1 0 0"/><geom size=".1" pos=".1 .1 0"/></body></body>'
        for i in range(3)
    )
    joints = "".join(f'<joint joint="{name}" coef="{c}"/>' for c, name in enumerate("b0 a1 b1 b2 palm".split(), 1))
    xml = f"""<mujoco>{options()}<worldbody><body><joint name="palm" axis="0 0 1"/><geom size=".2"/>{fingers}</body>
      </worldbody><tendon><fixed limited="true" range="0 .01" frictionloss=".3">{joints}</fixed>
      <fixed limited="true" range="0 .01"><joint joint="a0" coef="1"/><joint joint="b0" coef="1"/></fixed></tendon>
      <default><geom contype="0" conaffinity="0"/></default></mujoco>"""
    ws, found = worlds(xml, rng, 8)
    for k, data in enumerate(found):
        assert relative(ws.arrays["qacc"][:, k], data.qacc) <= SOLVED


def test_tendon_couplings_of_a_pile_have_their_own_elimination_order(rng):
    """Tendons past four of 48 trees in arbitrary order: block rows without fill-in have all entries."""
    paths = [rng.permutation(48)[:4] for _ in range(40)]
    ws, found = worlds(over_trees(48, tendons=paths), rng, 1)
    assert ws.arrays["hessian.pattern"][0] == ORDERED
    assert relative(ws.arrays["qacc"][:, 0], found[0].qacc) <= SOLVED
    assert ws.arrays["solver_niter"][0, 0] <= 6


def test_islands_reach_over_all_trees_of_a_tendon(rng):
    ws, found = worlds(over_trees(9, tendons=[(0, 4, 7), (1, 2), (5, 8, 2, 3)]), rng, 8)
    ws.run(islands)
    for k, data in enumerate(found):
        assert ws.arrays["nisland"][0, k] == data.nisland > 1
        np.testing.assert_array_equal(ws.arrays["tree_island"][:9, k], data.tree_island)


def test_a_world_is_bitwise_equal_in_any_batch(rng):
    xml = scene(options(), EQUALITIES, every=ROWS)
    ws, _ = worlds(xml, rng, 8)
    for k in range(8):
        alone = Workspace(ws.model, 1)
        fill(alone, 0, qpos=ws.arrays["qpos"][:, k], qvel=ws.arrays["qvel"][:, k])
        alone.run(forward)
        np.testing.assert_array_equal(alone.arrays["qacc"][:, 0], ws.arrays["qacc"][:, k])


def test_friction_loss_holds_a_tendon_up_to_its_force():
    """A mass on a tendon over a fixed post: it hangs still if the loss exceeds its weight, else it falls."""
    for loss, falls in ((12.0, 0.0), (5.0, 4.81)):
        model = fl.load(
            f"""<mujoco><option gravity="0 0 -9.81" timestep="1e-3"/><worldbody><site name="a" pos="0 0 1"/><body>
            <joint type="slide" axis="0 0 1"/><geom size=".1" mass="1"/><site name="b"/></body></worldbody><tendon>
            <spatial frictionloss="{loss}" solimpfriction=".9999 .9999 .001 .5 2"><site site="a"/><site site="b"/>
            </spatial></tendon></mujoco>"""
        )
        data = fl.Data(model)
        fl.forward(model, data)
        assert abs(data.qacc[0] + falls) <= 1e-2


def test_kinds_of_rows_are_counted():
    model = fl.load(scene("", EQUALITIES, every=ROWS))
    data, reference = fl.Data(model), mujoco.MjData(model.mj_model)
    fl.forward(model, data)
    mujoco.mj_forward(model.mj_model, reference)
    assert (data.ne, data.nf, data.nl) == (reference.ne, reference.nf, reference.nl)
    np.testing.assert_array_equal(data.efc_type, reference.efc_type)
    np.testing.assert_array_equal(data.efc_id, reference.efc_id)
