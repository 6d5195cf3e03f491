"""Three solvers, one problem: they agree with each other and with MuJoCo's, and report their convergence."""

import copy
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.dual import rows as dual_rows

CONVERGED = 1e-10  # relative, pyramids: error after many iterations at tolerance 0
# cones are curved; and if friction of 0.01 occurs next to 0.8 the gradient's rounding is 1e7 times that in qacc
SLOWLY_CONVERGED = 1e-8
PARITY = 1e-8  # relative: two conjugate gradient methods, step by step
# rotational friction has a flat optimum, and MuJoCo stops at a multiplier's change of 1e-10: costs agree to 1e-14
FLAT_PARITY = 1e-5
ROUNDING = 1e-10  # relative to the cost: sums of some hundred products
ITERATIONS = 8000  # of PGS, some 5600 in a state of the hand

# every kind of row on joints: friction loss, limits of hinges, slides and balls, contacts of each dimension
JOINTS = """<mujoco><option timestep="0.004"/><default><joint damping="0.1"/></default><worldbody>
  <geom type="plane" size="5 5 1" condim="{condim}" friction="0.8 0.02 0.01"/>
  <body pos="0 0 0.25"><freejoint/><geom type="box" size="0.2 0.15 0.1" condim="{condim}"/>
    <body pos="0.3 0 0"><joint type="ball" range="0 0.4" limited="true"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0" condim="{condim}"/></body>
    <body pos="-0.2 0 0.1"><joint name="a" axis="0 1 0" range="-0.5 0.5" limited="true" frictionloss="0.4"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 -0.3 0 0" condim="{condim}"/>
      <body pos="-0.3 0 0"><joint name="b" type="slide" axis="1 0 0" range="-0.1 0.1" limited="true" frictionloss="1"/>
        <geom size="0.08" condim="{condim}"/></body></body>
  </body>
  <body pos="0.1 0 0.6"><freejoint/><geom size="0.12" condim="{condim}"/></body>
</worldbody><actuator><motor joint="a" gear="8" ctrlrange="-1 1"/><motor joint="b" gear="20" ctrlrange="-1 1"/>
</actuator></mujoco>"""
SCENES = {
    "humanoid": ("humanoid", "pyramidal"),
    "humanoid_elliptic": ("humanoid", "elliptic"),
    "quadruped": ("quadruped", "pyramidal"),
    "slider_crank": ("slider_crank", "pyramidal"),
    "hand_elliptic": ("hand", "elliptic"),
    **{f"condim{n}": (JOINTS.format(condim=n), "pyramidal") for n in (1, 3, 4, 6)},
    **{f"condim{n}_elliptic": (JOINTS.format(condim=n), "elliptic") for n in (3, 4, 6)},
}
STATE = ("qpos", "qvel", "ctrl")


def motion(model, n, seed=0, apart=40):
    """Returns n states with rows along a motion under random controls, as rows of a tile."""
    rng, data, found = np.random.default_rng(seed), fl.Data(model), []
    for k in range(50 * n * apart):
        if k % 10 == 0:
            data.ctrl = rng.uniform(-1, 1, model.nu)
        fl.step(model, data)
        if k % apart == apart - 1 and data.nefc:
            found.append({name: getattr(data, name).copy() for name in STATE})
        if len(found) == n:
            break
    assert len(found) == n
    return found


def put(w, lane, state):
    """Sets one world of a tile to a state, without warm start."""
    for name, value in state.items():
        w.arrays[name][: value.size, lane] = value
    w.arrays["qacc_warmstart"][:, lane] = 0


@pytest.fixture(scope="module", params=SCENES)
def scene(request):
    """Returns a model with tolerance 0, and states of it."""
    source, cone = SCENES[request.param]
    model = fl.load(resolve_name(source))
    model.opt.cone = cone
    states = motion(model, 8)
    model.opt.tolerance, model.opt.iterations = 0, ITERATIONS
    return model, states


def solved(model, state, solver, **options):
    """Solves a world; returns data with qacc, residual, gap."""
    data = fl.Data(model)
    for name, value in ({"solver": solver} | options).items():
        setattr(model.opt, name, value)
    for name, value in state.items():
        setattr(data, name, value)
    fl.forward(model, data)
    return data


def relative(a, b):
    return np.abs(a - b).max(initial=0) / max(1.0, np.abs(b).max(initial=0))


@pytest.mark.parametrize("solver", ["cg", "pgs"])
def test_a_solver_agrees_with_newton(scene, solver):
    model, states = scene
    hard = model.opt.cone or model.geom_condim.max() > 3
    bound = SLOWLY_CONVERGED if hard else CONVERGED
    for state in states[:4]:
        reference, other = solved(model, state, "newton"), solved(model, state, solver)
        assert relative(other.qacc, reference.qacc) < bound
        assert relative(other.qfrc_constraint, reference.qfrc_constraint) < 100 * bound
        assert relative(other.efc_J.T @ other.efc_force, other.qfrc_constraint) < ROUNDING


@pytest.mark.parametrize("solver", ["cg", "pgs"])
@pytest.mark.parametrize("cone_kind", ["pyramidal", "elliptic"])
def test_a_stack_of_boxes_agrees_with_newton(solver, cone_kind):
    """Gauss-Seidel needs thousands of sweeps: weight moves down the stack by one box per sweep, and back up."""
    model = fl.bundled("box_stack")
    model.opt.cone, (state,) = cone_kind, motion(model, 1)
    model.opt.tolerance, model.opt.iterations = 0, 10 * ITERATIONS
    reference, other = solved(model, state, "newton"), solved(model, state, solver)
    assert relative(other.qacc, reference.qacc) < SLOWLY_CONVERGED


@pytest.mark.parametrize("solver", ["newton", "cg", "pgs"])
@pytest.mark.parametrize("iterations", [2, ITERATIONS])
def test_the_gap_bounds_the_cost_error_and_the_residual_is_the_gradient(scene, solver, iterations):
    model, states = scene
    for state in states[4:6]:
        best = cost_of(solved(model, state, "newton", iterations=ITERATIONS))[0]
        data = solved(model, state, solver, iterations=iterations)
        model.opt.iterations = ITERATIONS
        cost, gradient = cost_of(data)
        scale = 1.0 / np.trace(fl.query.full_m(model, data))
        assert data.solver_gap >= 0.0
        assert scale * (cost - best) <= data.solver_gap * (1 + 1e-9) + ROUNDING * scale * max(abs(cost), 1.0)
        assert data.solver_residual == pytest.approx(scale * np.linalg.norm(gradient), rel=1e-6, abs=1e-10)


def cost_of(data):
    """Returns (cost, gradient) of the primal problem at qacc, from the dense rows: no code of the solvers."""
    names = ("J", "aref", "type", "id", "D", "frictionloss")
    rows = SimpleNamespace(nefc=data.nefc, **{name: getattr(data, f"efc_{name}") for name in names})
    M = fl.query.full_m(data.model, data)
    x, apart = rows.J @ data.qacc - rows.aref, data.qacc - data.qacc_smooth
    cost, force, i = 0.5 * apart @ M @ apart, np.zeros(rows.nefc), 0
    while i < rows.nefc:
        n = 1
        if rows.type[i] == 7:
            contact = data.contact[rows.id[i]]
            n = contact.dim
            mu = contact.friction[: n - 1]
            force[i : i + n], c = cone(x[i : i + n], rows.D[i : i + n], mu)
        else:
            lo = -rows.frictionloss[i] if rows.type[i] == 1 else (-np.inf if rows.type[i] == 0 else 0.0)
            hi = rows.frictionloss[i] if rows.type[i] == 1 else np.inf
            force[i] = np.clip(-rows.D[i] * x[i], lo, hi)
            c = -force[i] * (x[i] + 0.5 * force[i] / rows.D[i])
        cost, i = cost + c, i + n
    return cost, M @ apart - rows.J.T @ force


def cone(x, D, mu):
    """Returns force and cost of an elliptic contact, by MuJoCo's definition in the space of the regular cone."""
    ratio = np.sqrt(D[0] / D[1])  # mu of the regular cone is mu_1 times this
    m = mu[0] * ratio
    scale = np.concatenate([[m], mu])
    y = x * scale
    N, T = y[0], np.linalg.norm(y[1:])
    if m * T <= N:
        return np.zeros_like(x), 0.0
    if m * N + T <= 0.0:
        return -D * x, 0.5 * np.sum(D * x * x)
    Dm = D[0] / (m * m * (1 + m * m))
    s = N - m * T
    f = np.concatenate([[-Dm * s], Dm * s * m * y[1:] / T])
    return f * scale, 0.5 * Dm * s * s


def test_no_random_step_improves_the_cost(scene):
    model, states = scene
    rng = np.random.default_rng(3)
    for solver in ("newton", "cg", "pgs"):
        data = solved(model, states[6], solver)
        best, qacc = cost_of(data)[0], data.qacc.copy()
        for size in (1e-3, 1e-1, 10.0):
            for _ in range(5):
                data.qacc = qacc + size * rng.standard_normal(model.nv)
                assert cost_of(data)[0] >= best - ROUNDING * max(1.0, abs(best))


@pytest.mark.parametrize("solver", ["cg", "pgs"])
@pytest.mark.parametrize("noslip", [0, 3])
def test_a_world_is_bitwise_equal_alone_and_in_a_tile(scene, solver, noslip):
    model, states = scene
    settings = {"solver": solver, "noslip_iterations": noslip, "tolerance": 1e-8, "iterations": 60}
    kept = {name: getattr(model.opt, name) for name in settings}
    for name, value in settings.items():
        setattr(model.opt, name, value)
    alone, tile = Workspace(model, 1), Workspace(model, 8)
    for lane, state in enumerate(states):
        put(tile, lane, state)
    tile.run(forward)
    for lane, state in enumerate(states):
        put(alone, 0, state)
        alone.run(forward)
        for name in ("qacc", "qfrc_constraint", "solver_niter", "solver_residual", "solver_gap"):
            assert alone.arrays[name][:, 0].tobytes() == tile.arrays[name][:, lane].tobytes(), (name, lane)
    for name, value in kept.items():
        setattr(model.opt, name, value)


@pytest.mark.parametrize("solver", ["cg", "pgs"])
def test_float32_stops(solver):
    model = fl.bundled("humanoid")
    states = motion(model, 8)
    model.opt.solver, count = solver, {}
    for dtype in (np.float64, np.float32):
        w = Workspace(model, tile_width(dtype), dtype)
        for lane, state in enumerate(states):
            put(w, lane, state)
        w.run(forward)
        assert not w.arrays["warning"][3, : len(states)].any()
        count[dtype] = w.arrays["solver_niter"][0, : len(states)].sum()
    assert count[np.float32] <= 1.2 * count[np.float64]


# ---- the record, and capacity --------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", ["newton", "cg", "pgs"])
def test_the_history_contains_the_first_and_last_iterates(solver):
    model = fl.bundled("humanoid")
    (state,) = motion(model, 1)
    model.opt.solver = solver
    data = fl.Data(model)
    for name, value in state.items():
        setattr(data, name, value)
    fl.forward(model, data)
    plain = data.qacc.copy()
    with pytest.raises(fl.ModelError, match="record_solver"):
        _ = data.solver_history
    data.record_solver = True
    fl.forward(model, data)
    history = data.solver_history
    np.testing.assert_array_equal(data.qacc, plain)
    assert len(history) == data.solver_niter + 1
    assert history[-1].gradient == pytest.approx(data.solver_residual, rel=1e-9)
    assert history.cost[-1] == history.cost.min()
    if solver != "pgs":
        np.testing.assert_allclose(history.improvement[1:], -np.diff(history.cost), rtol=1e-9, atol=1e-12)
    assert (history.improvement[1:] > 0).all()
    assert history.step[0] == history.improvement[0] == 0


@pytest.mark.parametrize("solver", ["pgs", "apgd"])
@pytest.mark.parametrize("cone", ["pyramid", "cone"])
def test_the_record_of_an_iterative_lcp_solver_holds_the_residual_of_each_iteration(solver, cone):
    model = fl.bundled("box_stack")
    model.opt.contact_model, model.opt.lcp_solver, model.opt.lcp_cone = "lcp", solver, cone
    data = fl.Data(model)
    found = {}
    for record in (False, True):
        data.record_solver = record
        for most in (0, 7, 20):
            model.opt.lcp_iterations = most
            fl.forward(model, data)
            found[record, most] = data.qacc.tobytes(), data.solver_residual
    history = data.solver_history
    assert all(found[False, most] == found[True, most] for most in (0, 7, 20))
    assert len(history) == data.solver_niter + 1 == 21
    for most in (0, 7, 20):  # apgd returns its best iterate
        last = history.residual[most] if solver != "apgd" else history.residual[: most + 1].min()
        assert last == pytest.approx(found[True, most][1], rel=1e-9)
    assert 0 < history.residual[-1] < 0.5 * history.residual[0]


def test_dantzig_has_no_iterates_to_record():
    model = fl.bundled("box_stack")
    model.opt.contact_model = "lcp"
    data = fl.Data(model)
    data.record_solver = True
    fl.forward(model, data)
    with pytest.raises(fl.ModelError, match="dantzig"):
        _ = data.solver_history


def test_a_tile_whose_dual_rows_do_not_fit_is_split(monkeypatch):
    model = fl.bundled("box_stack")
    rng, states = np.random.default_rng(4), []
    for lane in range(8):
        data = fl.Data(model)
        data.qpos[[0, 7]] += rng.normal(0, 0.05, 2)
        data.qpos[2 + 7 * lane] += 0.2
        states.append({name: getattr(data, name).copy() for name in STATE})
    model.opt.solver, model.opt.iterations = "pgs", 20
    tiles = []
    for limit in (dual_rows.DUAL_LIMIT, 40 * 12 * 3):
        monkeypatch.setattr(dual_rows, "DUAL_LIMIT", limit)
        tiles.append(Workspace(model, 8))
        for lane, state in enumerate(states):
            put(tiles[-1], lane, state)
        tiles[-1].run(forward)
    roomy, tight = tiles
    assert dual_entries(roomy) > tight.sizes["ndualYmax"]
    for name in ("qacc", "qfrc_constraint", "solver_niter", "solver_residual", "solver_gap", "warning"):
        assert tight.arrays[name].tobytes() == roomy.arrays[name].tobytes(), name


def dual_entries(w):
    """Returns entries of the rows of all blocks of a tile."""
    a = w.arrays
    joint, n = a["nrow"][0], a["dual.ndual"][0]
    rows = np.append(np.ones(joint, int), a["con_dim"][: a["ncon_slot"][0]])[:n]
    return int((rows * a["dual.dofnum"][:n]).sum())


@pytest.mark.filterwarnings("ignore::featherlane.CapacityWarning")
def test_dual_rows_beyond_the_capacity_are_dropped_and_reported(monkeypatch):
    model = fl.bundled("box_stack")
    monkeypatch.setattr(dual_rows, "DUAL_LIMIT", 100)
    for solver, noslip in (("pgs", 0), ("newton", 3)):
        model.opt.solver, model.opt.noslip_iterations = solver, noslip
        data = fl.Data(model)
        fl.forward(model, data)
        assert 0 < (ndual := data.workspace.view("dual.ndual")[0]) < data.ncon
        assert data.status["rows_full"] == 1
        assert np.isfinite(data.qacc).all()
        assert (data.con_force[ndual : data.ncon_slot] == 0).all() == (solver == "pgs")


# ---- MuJoCo's ------------------------------------------------------------------------------------------------------
def oracle(model, state, solver, iterations, noslip=0):
    """Returns MuJoCo's solution of a state, at tolerance 0 and without islands, without warm start."""
    mj = copy.copy(model.mj_model)
    mj.opt.solver = {"pgs": 0, "cg": 1, "newton": 2}[solver]
    mj.opt.cone, mj.opt.tolerance, mj.opt.noslip_tolerance = int(model.opt.cone), 0, 0
    mj.opt.iterations, mj.opt.ls_iterations, mj.opt.noslip_iterations = iterations, 100, noslip
    mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:], data.ctrl[:] = (state[name] for name in STATE)
    mujoco.mj_forward(mj, data)
    return data


def same_contacts(ours, theirs):
    """Returns whether contacts agree: in a hand, faces are coplanar, and rounding decides their contact points."""
    if ours.model.source.endswith("hand.xml"):
        return ours.ncon == theirs.ncon and np.allclose(ours.contact.pos, theirs.contact.pos, rtol=0, atol=1e-9)
    return True


def test_cg_equals_mujoco(scene):
    model, states = scene
    for state in states[:3]:
        for iterations in (5, 100):
            ours = solved(model, state, "cg", iterations=iterations)
            model.opt.iterations = ITERATIONS
            theirs = oracle(model, state, "cg", iterations)
            assert relative(ours.qacc, theirs.qacc) < PARITY or not same_contacts(ours, theirs)


@pytest.mark.parametrize("warmstart", [True, False])
@pytest.mark.parametrize("solver", ["newton", "cg", "pgs"])
def test_without_iterations_the_start_of_mujoco_is_the_result(scene, solver, warmstart):
    """With the flag warmstart, the cheaper of the last and the unconstrained acceleration."""
    model, states = copy.deepcopy(scene[0]), scene[1]
    model.opt.iterations, model.opt.solver = 0, solver
    if not warmstart:
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
    mj = model.to_mujoco()
    data, expected = fl.Data(model), mujoco.MjData(mj)
    for state in states[:4]:
        for last in (0.0, state["qvel"]):
            for name in STATE:
                getattr(expected, name)[:] = state[name]
                setattr(data, name, state[name])
            expected.qacc_warmstart[:] = last
            data.qacc_warmstart = last
            mujoco.mj_forward(mj, expected)
            fl.forward(model, data)
            if same_contacts(data, expected):
                assert relative(data.qacc, expected.qacc) < PARITY
            assert data.solver_niter == 0
            assert warmstart or relative(data.qacc, data.qacc_smooth) < PARITY


@pytest.mark.parametrize("solver", ["newton", "cg"])
def test_noslip_equals_mujoco(scene, solver):
    model, states = scene
    for state in states[:4]:
        ours = solved(model, state, solver, iterations=100, noslip_iterations=4, noslip_tolerance=0)
        force = ours.efc_force
        model.opt.noslip_iterations, model.opt.iterations = 0, ITERATIONS
        theirs = oracle(model, state, solver, 100, noslip=4)
        if not same_contacts(ours, theirs):
            continue
        bound = FLAT_PARITY if model.opt.cone and model.geom_condim.max() > 4 else PARITY
        assert relative(ours.qacc, theirs.qacc) < bound
        assert relative(force, theirs.efc_force) < 100 * bound


@pytest.mark.parametrize("iterations", [5, 20, 60])
def test_pgs_is_no_worse_than_mujoco_after_equal_iterations(iterations):
    for cone_kind in ("pyramidal", "elliptic"):
        model = fl.bundled("humanoid")
        model.opt.cone = cone_kind
        states, ours, theirs = motion(model, 8), [], []
        model.opt.tolerance = 0
        for state in states:
            data = solved(model, state, "newton", iterations=100)
            best, reference = cost_of(data)[0], max(1.0, abs(cost_of(data)[0]))
            mine = solved(model, state, "pgs", iterations=iterations)
            ours.append((cost_of(mine)[0] - best) / reference)
            data.qacc = oracle(model, state, "pgs", iterations).qacc
            theirs.append((cost_of(data)[0] - best) / reference)
        floor = 1e-12
        assert np.exp(np.mean(np.log(np.maximum(ours, floor)))) <= 1.01 * np.exp(
            np.mean(np.log(np.maximum(theirs, floor)))
        )


# ---- uses of each ----------------------------------------------------------------------------------------------------
BOX_ON_A_SLOPE = """<mujoco><option gravity="2 0 -9.81" cone="{cone}"/><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" friction="0.5"/></body></worldbody></mujoco>"""
# both friction directions move it alike: MuJoCo's no-slip solver skips such a cone (docs/migration.md)
BALL_IN_A_PLANE = """<mujoco><option gravity="2 1 -9.81" cone="{cone}"/><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.1"><joint type="slide" axis="1 0.5 0"/><joint type="slide" axis="0 0 1"/>
    <geom size="0.1" friction="0.5"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("scene", [BOX_ON_A_SLOPE, BALL_IN_A_PLANE])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_noslip_lessens_slip(scene, cone):
    """A body on a slope within its friction cone creeps; the no-slip solver holds it."""
    speed = {}
    for noslip in (0, 20):
        model = fl.load(scene.format(cone=cone))
        model.opt.noslip_iterations = noslip
        data = fl.Data(model)
        for _ in range(500):
            fl.step(model, data)
        speed[noslip] = abs(data.qvel[0])
    assert speed[0] > 1e-4
    assert speed[20] < 0.01 * speed[0]


def test_pgs_moves_away_from_the_tip_of_a_cone():
    """A separating contact that slides fast: only friction can hold it, and the cost decreases only along the rim."""
    model = fl.bundled("quadruped")
    model.opt.cone, model.opt.tolerance = "elliptic", 0
    for state in motion(model, 6, apart=30):
        reference, data = solved(model, state, "newton"), solved(model, state, "pgs", iterations=200)
        assert relative(data.qacc, reference.qacc) < SLOWLY_CONVERGED


def test_momentum_restarts_if_the_cost_increases():
    """Without that, a standing humanoid with elliptic contacts keeps a gap of 0.2 after 100 sweeps."""
    model = fl.bundled("humanoid")
    model.opt.cone, model.opt.solver = "elliptic", "pgs"
    data = fl.Data(model)
    for _ in range(100):
        fl.step(model, data)
        assert data.solver_gap < 1e-4
    assert data.status["not_converged"] == 0
