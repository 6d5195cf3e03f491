"""The self-test of an installation passes here, and fails if a result is wrong."""

import json

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.cli import run_command
from featherlane.apps.doctor import self_test


@pytest.fixture(scope="module")
def outcomes():
    return {outcome.test: outcome for outcome in self_test.self_test()}


@pytest.mark.parametrize("test", self_test.TESTS)
def test_each_test_passes_here(outcomes, test):
    assert outcomes[test].passed, outcomes[test].seen


def test_the_command_prints_a_line_for_each_test(capfd):
    assert run_command(["diagnose", "--self-test"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == len(self_test.TESTS) and all(line.startswith("passed ") for line in lines)


def test_a_failed_test_is_named_and_sets_the_exit_code(monkeypatch, capfd):
    def fails():
        raise ValueError("no kernel")

    monkeypatch.setattr(self_test, "TESTS", {"first": lambda: (True, "fine"), "second": fails})
    assert run_command(["diagnose", "--self-test", "--json"]) == 2
    printed, errors = capfd.readouterr()
    assert json.loads(printed)["tests"][1] == {"test": "second", "passed": False, "seen": "ValueError: no kernel"}
    assert "1 test failed: second" in errors


@pytest.mark.parametrize("arguments", [["diagnose"], ["diagnose", "humanoid", "--self-test"]])
def test_either_a_model_or_the_self_test_is_required(arguments, capfd):
    assert run_command(arguments) == 2
    assert "either a model or --self-test" in capfd.readouterr().err


def test_another_gravity_fails_free_fall_and_the_weight(monkeypatch):
    for name in ("BALL", "BOX"):
        text = getattr(self_test, name).replace("<worldbody>", '<option gravity="0 0 -9.8101"/><worldbody>')
        monkeypatch.setattr(self_test, name, text)
    failed = [outcome.test for outcome in self_test.self_test() if not outcome.passed]
    assert failed == ["free fall against the exact sum", "contact force of a resting box"]


def test_one_wrong_bit_in_a_batch_fails(monkeypatch):
    def off_by_one_bit(batch, *arguments, **options):
        out = rollout(batch, *arguments, **options)
        out["qpos"][7, -1, 0] = np.nextafter(out["qpos"][7, -1, 0], 9.0)
        return out

    rollout = fl.Batch.rollout
    monkeypatch.setattr(fl.Batch, "rollout", off_by_one_bit)
    failed = [outcome for outcome in self_test.self_test() if not outcome.passed]
    assert [outcome.seen for outcome in failed] == ["2 of 5600 values differ"]
