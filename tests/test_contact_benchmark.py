"""Smoke tests of the families of benchmarks/contact.py: short runs against published, analytic or conserved values."""

import importlib
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PUBLISHED = 154.99  # um/s, google-deepmind/mujoco issue 3328
ONE_CONTACT = (
    np.array([[15.0, -1.0, -2.0], [-1.0, 14.0, 1.0], [-2.0, 1.0, 16.0]]),
    np.array([-1.0, 2.0, 3.0]),
    np.array([0.1]),
)


@pytest.fixture
def family(monkeypatch):
    """Returns a function that imports a family by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"contact_problems.{name}")


def test_mujoco_creeps_as_published(family):
    creep = family("creep")
    assert creep.creep("MuJoCo", {}) == pytest.approx(PUBLISHED, abs=0.005)


def test_coulomb_friction_does_not_creep_and_does_not_lift(family, subtests):
    creep = family("creep")
    for name, case in creep.CASES.items():
        with subtests.test(case=name):
            assert abs(creep.creep("coulomb", case, seconds=0.5)) < 1.0
    lift, error, discrete = creep.launch("coulomb", 0.005)
    assert lift < 1e-4 and abs(error) < 0.005 and abs(discrete) < 1e-4


def test_rolling_conserves_energy_in_the_reference(family):
    classic = family("classic")
    state = np.array([0.0, np.sin(0.1), np.cos(0.1), 0.3, -0.2, -5.0])
    states = classic.rk4(classic.rolling_rate, state, 0.2, 400)

    def energy(state):
        n, w = state[:3], state[3:]
        square = classic.AXES**2
        r = np.array([0.0, 0.0, classic.SINK]) - square * n / np.sqrt(n @ (square * n))
        v = np.cross(r, w)
        return 0.5 * w @ classic.INERTIA @ w + 0.5 * v @ v - classic.GRAVITY * r @ n

    assert energy(states[-1]) == pytest.approx(energy(state), rel=1e-9)


@pytest.mark.parametrize("engine", ["MuJoCo", "lcp consistent", "coulomb"])
def test_the_rod_turns_as_its_equation(family, engine):
    classic = family("classic")
    found = classic.rod(engine, 0.5, 0.0005)
    assert found["turn"] == pytest.approx(classic.rod_angle(0.5, 0.1), rel=0.015)


def test_the_paradox_has_a_solution_in_each_step(family):
    found = family("classic").rod("coulomb", 2.0, 0.001)
    assert np.isfinite(found["turn"]) and found["rise"] < 1e-9 and found["unconverged"] == 0


def test_stiff_coulomb_contact_reverses_the_rattleback(family):
    classic = family("classic")
    assert classic.rattleback("coulomb", 0.001)["reversal"] == pytest.approx(classic.rattleback_reference(), rel=0.1)


def test_classic_scenes_keep_their_invariants(family):
    classic = family("classic")
    assert classic.nut("coulomb", 0.001, seconds=0.5)["momentum"] < 1e-2
    assert classic.dominoes("coulomb", 0.004, seconds=0.1)["rise"] < 1e-4
    assert classic.stack("lcp", 0.004, seconds=0.2)["drop"] < 1e-3
    assert classic.four_bar("lcp", 0.001, seconds=0.2)["gap"] < 0.1


def test_simbenchmark_tasks_have_their_closed_solutions(family):
    tasks = family("simbenchmark")
    assert tasks.rolling("lcp pgs, cone", 0.001, seconds=0.2).error < 1e-12
    assert tasks.rolling("coulomb", 0.001, seconds=0.2).error < 1e-4
    assert tasks.bouncing("lcp dantzig", 0.001, seconds=1.5).error < 1e3
    assert tasks.bouncing("coulomb", 0.001, seconds=1.5).error < 1e3
    assert np.isnan(tasks.bouncing("convex", 0.01).error)  # not run
    assert tasks.momentum("lcp dantzig", 0.001, seconds=2.0).error < 1e-3
    assert "4 feet" in tasks.standing("coulomb", 0.005, seconds=2.0).note
    assert tasks.heap("coulomb", 0.01, seconds=0.1).error < 1e-3


def test_dart_fixtures_are_solved(family, subtests):
    lcp = importlib.import_module("featherlane.lcp")
    for name, problem in family("dart").fixtures().items():
        with subtests.test(name=name):
            assert lcp.solve(problem).residual < 1e-9


# ---- FCLib -----------------------------------------------------------------------------------------------------------
def dense_text(W, q, mu) -> str:
    """Returns a problem in Siconos' text format."""
    numbers = [3, len(mu), 0, *W.shape, *W.shape, *W.T.ravel(), *q, *mu]
    return "\n".join(map(str, numbers))


def test_a_folder_of_problems_gives_profiles_and_lists_the_rest(family, tmp_path):
    fclib = family("fclib")
    (tmp_path / "one.dat").write_text(dense_text(*ONE_CONTACT))
    (tmp_path / "cut.dat").write_text("3\n1\n0\n3\n3\n3\n3\n1.0")
    (tmp_path / "other.dat").write_text("a text")
    text = fclib.text(tmp_path)
    assert "2 of 3 files were not read" in text and "- cut.dat: it ends within" in text
    assert "| solve_cone | 100.0 | 100.0 |" in text


def test_blocks_are_read_as_the_dense_matrix(family, tmp_path):
    fclib = family("fclib")
    W, q, mu = ONE_CONTACT
    path = tmp_path / "blocks.dat"
    blocks = [3, 2, 1, 6, 6, 3, 2, 2, 3, 6, 3, 6, 3, 3, 0, 2, 3, 0, 1, 1]
    parts = [(0, W), (1, np.eye(3)), (2, W)]
    lower = [value for k, part in parts for value in (k, *part.T.ravel())]
    path.write_text("\n".join(map(str, [*blocks, *lower, *q, *q, *mu, *mu])))
    with pytest.raises(fclib.Unreadable, match="not symmetric"):
        fclib.read(path)
    parts[1] = (1, np.zeros((3, 3)))
    lower = [value for k, part in parts for value in (k, *part.T.ravel())]
    path.write_text("\n".join(map(str, [*blocks, *lower, *q, *q, *mu, *mu])))
    np.testing.assert_array_equal(fclib.read(path).W, np.kron(np.eye(2), W))


def test_an_fclib_file_is_read(family, tmp_path):
    h5py = pytest.importorskip("h5py")
    fclib = family("fclib")
    W, q, mu = ONE_CONTACT
    path = tmp_path / "one.hdf5"
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_local")
        group["spacedim"] = [3]
        for name, value in {"m": [3], "n": [3], "nz": [-1], "nzmax": [9], "p": [0, 3, 6, 9]}.items():
            group[f"W/{name}"] = value
        group["W/i"], group["W/x"] = np.tile(np.arange(3), 3), W.T.ravel()
        group["vectors/q"], group["vectors/mu"] = q, mu
    np.testing.assert_array_equal(fclib.read(path).W, W)


def test_a_profile_counts_problems_within_factors(family):
    fclib = family("fclib")
    times = np.array([[1.0, 4.0], [3.0, 1.0], [np.inf, 2.0], [np.inf, np.inf]])
    np.testing.assert_allclose(fclib.profile(times)[[0, 2]], [[0.25, 0.5], [0.5, 0.75]])
