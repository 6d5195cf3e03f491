"""Registered solvers: in `solve`, in batches and in steps, against the built-in ones; and what registration refuses."""

import copy
import pickle

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import any_, fabs, fmax, true_mask, where
from featherlane.engine.model.enums import LcpSolver
from featherlane.engine.model.lcp_solver import REGISTERED_SOLVERS
from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.lcp import OptionError, Status
from featherlane.lcp.kernels import add_row_change, compute_w, delassus_row_product, project_box
from featherlane.lcp.solve import METHODS
from scenes.lcp_problems import friction_problem, known_problem

KNOWN = 1e-6  # of the largest x: a residual of 1e-10 and a condition of about 1e4
SAME_STEP = 1e-7  # of the largest velocity: two solvers with a residual of 1e-10 each
XML = """<mujoco><option timestep=".005"/><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
  <body pos="0 .5 .1"><freejoint/><geom size=".1" mass="2" friction=".3"/></body>
</worldbody></mujoco>"""


@fl.kernel
def gauss_seidel(p, iterations):
    """Sweeps over the rows until no row changes; returns the number of sweeps of each world."""
    x, count, live = p.lcp.x, 0.0, true_mask(p)
    compute_w(p)
    for _ in range(iterations):
        if not any_(live):
            break
        change, size = 0.0, 0.0
        for i in range(p.lcp.n[0]):
            w = delassus_row_product(p, x, i) - p.lcp.b[i]
            new = where(live, project_box(p, x, i, x[i] - w / p.lcp.diag[i]), x[i])
            change, size = fmax(change, fabs(new - x[i])), fmax(size, fabs(new))
            add_row_change(p, i, new - x[i])
            x[i] = new
        count = where(live, count + 1.0, count)
        live = live & (change > 1e-13 * size)
    return count


@fl.kernel
def leaves_the_start(p, iterations):
    return 0.0


@fl.kernel
def branches_on_a_value(p, iterations):
    if p.lcp.b[0] > 0.0:
        p.lcp.x[0] = 1.0
    return 1.0


@fl.kernel
def writes_the_problem(p, iterations):
    p.lcp.b[0] = 1.0
    return 1.0


@fl.kernel
def reads_the_state(p, iterations):
    return p.qpos[0]


@fl.kernel
def returns_nothing(p, iterations):
    p.lcp.x[0] = 0.0


@fl.kernel
def reads_row_9(p, iterations):
    p.lcp.x[0] = p.lcp.b[9 * (p.lcp.n[0] - 2)]
    return 1.0


@fl.kernel
def of_the_model(m, d, i):
    return 1.0


@pytest.fixture(autouse=True)
def registered():
    """Registers the solver, and forgets every registration afterwards."""
    fl.lcp.register("gauss_seidel", gauss_seidel, iterations=20_000)
    yield
    METHODS.clear()
    REGISTERED_SOLVERS.clear()


def lcp_model(solver, **options):
    model = fl.load(XML)
    model.opt.contact_model, model.opt.lcp_solver = "lcp", solver
    for name, value in {"lcp_iterations": 5000, "lcp_tolerance": 1e-12, **options}.items():
        setattr(model.opt, name, value)
    return model


def moved(model, steps=50):
    """Returns the velocities of a box and a ball that slide."""
    data = fl.Data(model)
    data.qvel[[0, 7]] = 1.0, 2.0
    fl.step(model, data, nstep=steps)
    return data


@pytest.mark.parametrize("n", [1, 5, 24])
def test_single_problems_have_the_known_solution(n, rng):
    problem, x = known_problem(rng, n)
    found = fl.lcp.solve(problem, method="gauss_seidel", tolerance=1e-6)
    assert found.status == Status.SOLVED and found.iterations > 0
    np.testing.assert_allclose(found.x, x, rtol=0, atol=KNOWN * max(np.abs(x).max(), 1.0))


def test_friction_equals_that_of_pgs(rng):
    problem = friction_problem(rng, 3)
    expected = fl.lcp.solve(problem, method="pgs", iterations=20_000, tolerance=1e-13)
    found = fl.lcp.solve(problem, method="gauss_seidel")
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=KNOWN * np.abs(expected.x).max())


@pytest.mark.parametrize("factored", [False, True])
def test_a_batch_has_the_bits_of_its_parts(factored, rng):
    J, b = rng.standard_normal((21, 6, 9)), rng.standard_normal((21, 6))
    matrices = {"J": J, "Minv": np.eye(9), "cfm": 0.1} if factored else {}
    A = None if factored else J @ np.swapaxes(J, 1, 2) + 0.1 * np.eye(6)

    def solved(k):
        given = {**matrices, "J": J[k]} if factored else {}
        return fl.lcp.solve_batch(None if factored else A[k], b[k], method="gauss_seidel", **given)

    together, apart = solved(slice(None)), [solved(slice(k, k + 1)) for k in range(21)]
    assert together.solved.all()
    np.testing.assert_array_equal(together.x, np.concatenate([s.x for s in apart]))
    np.testing.assert_array_equal(together.iterations, np.concatenate([s.iterations for s in apart]))


def test_a_step_equals_that_of_dantzig_with_consistent_limits():
    expected = moved(lcp_model("dantzig", lcp_friction="consistent"))
    found = moved(lcp_model("gauss_seidel"))
    assert found.solver_niter > 0
    np.testing.assert_allclose(found.qvel, expected.qvel, rtol=0, atol=SAME_STEP * np.abs(expected.qvel).max())


def test_worlds_of_a_batch_equal_single_ones():
    model = lcp_model("gauss_seidel")
    batch, rng = fl.Batch(model, 11), np.random.default_rng(3)
    qvel = rng.standard_normal((11, model.nv))
    batch.qvel = qvel
    batch.step(30)
    for world in range(11):
        data = fl.Data(model)
        data.qvel = qvel[world]
        fl.step(model, data, nstep=30)
        np.testing.assert_array_equal(batch.qpos[world], data.qpos)


def test_its_derivatives_are_those_of_dantzig():
    """The solution is differentiated, whatever computes it: here with consistent limits."""
    pairs = []
    for solver in ("dantzig", "gauss_seidel"):
        model = lcp_model(solver, lcp_friction="consistent")
        data = moved(lcp_model("dantzig", lcp_friction="consistent"), 3)
        own = fl.Data(model)
        own.qpos, own.qvel = data.qpos, data.qvel
        pairs.append(fl.linearize(model, own)[0])
    np.testing.assert_allclose(pairs[0], pairs[1], rtol=0, atol=1e-5 * np.abs(pairs[0]).max())


def test_copies_and_pickles_of_a_model_keep_it():
    model = lcp_model("gauss_seidel")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.opt.lcp_solver == "gauss_seidel"
        np.testing.assert_array_equal(moved(other).qpos, moved(model).qpos)


def test_a_built_in_solver_replaces_it_and_reads_as_before():
    model = lcp_model("gauss_seidel")
    model.opt.lcp_solver = "pgs"
    assert model.opt.lcp_solver == LcpSolver.PGS and model.user_lcp_solver is None


def test_a_second_registration_is_for_new_selections():
    old = lcp_model("gauss_seidel")
    fl.lcp.register("gauss_seidel", leaves_the_start)
    new = lcp_model("gauss_seidel")
    assert np.abs(moved(old).qfrc_constraint).max() > 1.0 and not moved(new).qfrc_constraint.any()
    assert fl.lcp.solve([[1.0]], [1.0], method="gauss_seidel").x == [0.0]


def test_an_unsolved_step_is_counted():
    fl.lcp.register("none", leaves_the_start)
    batch = fl.Batch(lcp_model("none"), 3)
    batch.step(1)
    assert batch.status["not_converged"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(("name", "solver", "error", "says"), [
    ("pgs", gauss_seidel, OptionError, "built-in"),
    ("my solver", gauss_seidel, OptionError, "identifiers"),
    (3, gauss_seidel, OptionError, "identifiers"),
    ("mine", gauss_seidel.function, ArgumentTypeError, "a kernel"),
    ("mine", of_the_model, ModelError, "parameters"),
    ("mine", branches_on_a_value, ModelError, "branches_on_a_value"),
    ("mine", writes_the_problem, ModelError, "writes_the_problem"),
    ("mine", reads_the_state, ModelError, "qpos cannot be read"),
    ("mine", returns_nothing, ModelError, "returns_nothing"),
])  # fmt: skip
def test_registration_refuses(name, solver, error, says):
    with pytest.raises(error, match=says):
        fl.lcp.register(name, solver)
    assert "mine" not in fl.lcp.methods()


def test_negative_iterations_are_refused():
    with pytest.raises(OptionError, match="iterations"):
        fl.lcp.register("mine", gauss_seidel, iterations=-1)


def test_an_index_out_of_range_is_an_error():
    fl.lcp.register("far", reads_row_9)
    with pytest.raises((ModelError, IndexError), match=r"lcp\.b"):
        fl.lcp.solve(np.eye(4), np.ones(4), method="far")
    with pytest.raises((ModelError, IndexError), match=r"lcp\.b"):
        moved(lcp_model("far"))


def test_an_unknown_solver_and_cones_are_refused():
    model = fl.load(XML)
    with pytest.raises(fl.errors.FeatherlaneError, match="gauss_seidel"):
        model.opt.lcp_solver = "gauss_seidal"
    with pytest.raises(fl.UnsupportedFeatureError, match="lcp_cone"):
        lcp_model("gauss_seidel", lcp_cone="cone")
    for value in (3, 7, "registered"):
        with pytest.raises(ModelError, match=r"lcp_solver: got .*, allowed are dantzig, pgs, apgd, gauss_seidel"):
            model.opt.lcp_solver = value
    model.opt.lcp_solver = "PGS"  # built-in names may have capitals, as those of other options
    assert model.opt.lcp_solver == LcpSolver.PGS
