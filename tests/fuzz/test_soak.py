"""Memory stays constant for every program: a few thousand steps; the budget is adjustable."""

import pytest

from fuzz import soak
from fuzz.report import budget
from sampling import in_ci

SAMPLE, STEPS = 3000, 1_000_000


@pytest.mark.parametrize("steps", [in_ci(SAMPLE), pytest.param(STEPS, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_steps(steps):
    report = soak.run(str(steps) if steps == SAMPLE else budget(steps))
    print(report)
    assert not report.findings, str(report)
