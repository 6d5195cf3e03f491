"""Interrupts of calls: some of each kind; the budget is adjustable."""

import sys

import pytest

from fuzz import interrupts
from fuzz.report import budget

SAMPLE = 60


@pytest.mark.skipif(sys.platform == "win32", reason="no timers there that send signals")
@pytest.mark.parametrize("number", [SAMPLE, pytest.param(interrupts.NUMBER, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_a_call_complete_or_not_started(number):
    names = [name for name in interrupts.PROGRAMS if name != "ray" or number != SAMPLE]  # Ray takes 10 s to start
    report = interrupts.run(number if number == SAMPLE else int(budget(number)), names)
    print(report)
    assert not report.findings, str(report)
