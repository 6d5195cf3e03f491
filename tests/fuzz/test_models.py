"""Mutated models load or are refused by name, and step as in MuJoCo: a sample, and as many as one likes."""

import pytest

from fuzz import models
from fuzz.report import budget, seed

SAMPLE, CASES = 40, 100_000


def test_a_sample_of_mutated_models_loads_or_is_refused_and_steps_as_in_mujoco():
    report = models.run(str(SAMPLE), offline=True, count=1)
    assert not report.findings, str(report)
    assert report.equal() > SAMPLE // 10


@pytest.mark.slow
def test_mutated_models_load_or_are_refused_and_step_as_in_mujoco(real_model):
    real_model("gymnasium/ant")  # skips offline
    report = models.run(budget(CASES), seed())
    print(report)
    assert not report.findings, str(report)
