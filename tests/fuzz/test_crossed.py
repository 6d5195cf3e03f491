"""Crossed features step as in MuJoCo: a sample; the budget is adjustable."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from fuzz import crossed
from fuzz.crossed import bits, judge
from fuzz.report import budget, seed
from sampling import in_ci

SAMPLE, CASES = 25, 5_000
PAIR = [("lone", 1), ("straight_tendon", 2), ("tendon_damping", 3), ("integrator_implicitfast", 4)]


def test_each_feature_is_sampled_and_builds_a_model():
    names, compiled = set(), 0
    for case in range(300):
        chosen = crossed.features(0, case)
        names |= {name for name, _ in chosen}
        try:
            mujoco.MjModel.from_xml_string(crossed.build(chosen).text())
            compiled += 1
        except ValueError:
            continue
    assert compiled > 280
    assert len(names) > 0.9 * len(crossed.FEATURES)


def test_a_difference_is_a_finding_with_the_features_that_it_needs(monkeypatch):
    """A step that omits a force whose cause is one feature."""
    step = fl.step

    def without_damping(model, data, *args):
        damping = model.dof_damping.copy()
        model.dof_damping[:] = 0.0
        step(model, data, *args)
        model.dof_damping[:] = damping

    chosen = [("hinge", 1), ("ground", 2), ("joint_damping", 3), ("applied_forces", 4)]
    assert crossed.examine(0, 0, chosen)[0].startswith("equal")
    monkeypatch.setattr(fl, "step", without_damping)
    verdict, finding = crossed.examine(0, 0, chosen)
    assert verdict == "finding"
    assert "joint_damping" in dict(crossed.minimized(0, 0, chosen, finding))
    assert "ground" not in dict(crossed.minimized(0, 0, chosen, finding))


def test_a_skipped_majority_fails():
    report = crossed.Report(crossed.NAME)
    for verdict in ("equal, free", "extreme", "extreme"):
        report.meet(0, verdict)
    assert crossed.share(report) == pytest.approx(1 / 3)


def test_equal_worlds_alone_and_in_a_batch_pass():
    scene = crossed.build([("chain", 1), ("ground", 2)])
    mj, model = judge.compiled(scene, scene.text(), "loaded")
    rng = np.random.default_rng(0)
    bits.check_bits(mj, model, scene, judge.start(mj, scene, rng), rng)


@pytest.mark.parametrize("cases", [in_ci(SAMPLE), pytest.param(CASES, marks=pytest.mark.slow)])
def test_crossed_features_step_as_in_mujoco(cases):
    report = crossed.run(str(cases) if cases == SAMPLE else budget(cases), seed())
    print(report)
    assert not report.findings, str(report)
    assert crossed.share(report) > crossed.LEAST
