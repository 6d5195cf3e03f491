"""Derivatives of random trees equal differences: a sample; the budget is adjustable."""

import numpy as np
import pytest

import featherlane as fl
from fuzz import derivatives
from fuzz.columns import Columns, Finding, References
from fuzz.derivatives import LEAST, Coverage
from fuzz.report import budget, seed

SAMPLE, CASES = 12, 5_000
ROWS = [slice(0, 2)]
CHAIN = """<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".1" pos=".3 0 0" mass="{}"/>
<body pos=".5 0 0"><joint axis="0 1 0"/><geom size=".1" pos=".3 0 0" mass="1"/></body></body></worldbody></mujoco>"""
MATRIX = np.array([[1.0, 2.0], [3.0, -1.0]])


def linear(steps):
    """Differences of a linear function."""
    return [MATRIX for _ in steps]


def kinked(steps):
    """Differences of a function whose second column has a kink 2e-6 from the state."""
    return [MATRIX + np.where(eps > 2e-6, 1.0 - 2e-6 / eps, 0.0) * np.array([0.0, 1.0]) for eps in steps]


def test_a_wrong_column_is_a_finding():
    columns = Columns()
    columns.compare("A", MATRIX, References(linear), ROWS)
    assert (columns.compared, columns.skipped) == (2, 0)
    with pytest.raises(Finding, match=r"columns \[1\]"):
        columns.compare("A", MATRIX + [[0.0, 1e-3], [0.0, 0.0]], References(linear), ROWS)


def test_a_column_is_compared_on_the_side_of_a_kink_on_which_the_state_is():
    columns = Columns()
    columns.compare("A", MATRIX, References(kinked), ROWS)
    assert (columns.compared, columns.skipped) == (2, 0)  # 1e-7 does not reach the kink
    columns.compare("A", MATRIX, References(kinked, (1e-6,)), ROWS)
    assert (columns.compared, columns.skipped) == (3, 1)


@pytest.mark.parametrize("contact_model, grows", [("lcp", True), ("convex", False)])
def test_rounding_of_differenced_accelerations_follows_the_condition_of_the_inertia(contact_model, grows):
    noise = []
    for mass in (1.0, 1e-4):
        model = fl.load(CHAIN.format(mass))
        model.opt.contact_model = contact_model
        data = fl.Data(model)
        fl.forward(model, data)
        noise.append(derivatives.noise_of_acceleration(model, data) / np.abs(data.qacc).max())
    assert bool(noise[1] > 2.0 * noise[0]) is grows


@pytest.mark.parametrize("compared, fails", [(9, False), (1, True)])
def test_a_run_that_compares_too_few_columns_fails(compared, fails, monkeypatch):
    monkeypatch.setattr(
        derivatives, "run", lambda *_: Coverage("derivatives", compared=compared, skipped=10 - compared)
    )
    assert bool(derivatives.main(["--budget", "1"])) is fails


@pytest.mark.ci
def test_a_sample_of_derivatives_of_random_trees_equals_differences():
    report = derivatives.run(str(SAMPLE), count=1)
    assert not report.findings, str(report)
    assert report.equal() > SAMPLE // 2 and report.share() > LEAST


@pytest.mark.slow
def test_derivatives_of_random_trees_equal_differences():
    report = derivatives.run(budget(CASES), seed())
    print(report)
    assert not report.findings, str(report)
    assert report.share() > LEAST
