"""Wrong arguments give a result or one clear error: a sample of all public calls; the budget is adjustable."""

import pytest

import featherlane as fl
from fuzz import arguments
from fuzz.report import budget, seed
from sampling import every

SAMPLE, EXAMPLES = 6, 8  # sites, calls of each
CASES = 2500  # of EXAMPLES calls each: 100,000


@pytest.fixture(scope="module")
def found():
    return arguments.sites()


def test_every_public_call_takes_its_valid_arguments(found):
    assert arguments.refused(found) == []


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning", "ignore::featherlane.CapacityWarning")
@pytest.mark.parametrize("kind", every(2, ["", "data.", "batch.", "opt.", "lcp.", "tree."]))
def test_a_sample_of_wrong_arguments_raises_one_clear_error(found, kind, rng):
    names = [name for name in sorted(found) if name.startswith(kind) and ("." in name) == ("." in kind)]
    for name in rng.choice(names, SAMPLE, replace=False):
        assert arguments.trial(found[name], int(rng.integers(1 << 30)), EXAMPLES)[1] == ""


def test_an_environment_of_another_model_has_its_own_action_space(found):
    pytest.importorskip("gymnasium")
    world = arguments.World()
    for model in (fl.bundled("pendulum"), world.m.mj_model):  # that has an actuator without its function
        arguments.attempt(world, found["BatchEnv"], {"model": model})


@pytest.mark.slow
def test_wrong_arguments_raise_one_clear_error():
    report = arguments.run(budget(CASES), seed())
    print(report)
    assert not report.findings, str(report)
