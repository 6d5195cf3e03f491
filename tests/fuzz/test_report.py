"""Tools of the fuzzers: a crash and a hang are findings, budgets end, and the repeating command is printed."""

import os
import signal
import time

from fuzz.report import Report, budget, numbered
from fuzz.workers import enter, outcomes

SHORT = 2.0  # s


def work(case: int) -> tuple[str, str]:
    """Runs cases that pass, crash, hang and crash in MuJoCo."""
    enter("mujoco" if case == 3 else f"step {case}")
    if case in (1, 3):
        os.kill(os.getpid(), signal.SIGSEGV)
    if case == 2:
        time.sleep(60)
    return "good", ""


def test_a_crash_and_a_hang_are_findings_and_the_run_continues():
    found = {outcome.case: outcome for outcome in outcomes(work, range(8), SHORT, count=2)}
    assert sorted(found) == list(range(8))
    assert found[1].verdict == "finding" and "SIGSEGV" in found[1].text and "step 1" in found[1].text
    assert found[2].verdict == "finding" and found[2].text.startswith("hang")
    assert found[3].verdict == "MuJoCo's own"
    assert all(found[k].verdict == "good" for k in (0, 4, 5, 6, 7))


def test_a_budget_is_of_cases_or_of_seconds(monkeypatch):
    assert list(numbered("3", first=5)) == [5, 6, 7]
    start = time.monotonic()
    for _ in numbered("0.1s"):
        pass
    assert time.monotonic() >= start + 0.1
    assert budget(7) == "7"
    monkeypatch.setenv("FEATHERLANE_FUZZ", "60s")
    assert budget(7) == "60s"


def test_a_report_contains_the_command_that_repeats_a_finding():
    report = Report("models", seed=4)
    report.meet(7, "finding", "it leaks")
    report.meet(8, "equal", "a note")
    assert "python tests/fuzz models --seed 4 --case 7" in str(report) and "it leaks" in str(report)
    assert report.counts == {"finding": 1, "equal": 1}
