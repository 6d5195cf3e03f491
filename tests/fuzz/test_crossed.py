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
# steps with an excuse, by its text: features, and the seed of each
EXCUSED = {
    "a tendon end on a surface": ("hinge winch tendon_springs joint_damping applied_forces", 2),
    "the no-slip solver of MuJoCo": (
        "chain ground straight_tendon tendon_springs joint_damping integrator_discrete noslip",
        1,
    ),
    "not converged": ("chain branches ground joint_damping limits solver_PGS", 7),
}


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
    chosen = [("hinge", 1), ("ground", 2), ("joint_damping", 3), ("applied_forces", 4)]
    assert crossed.examine(0, 0, chosen)[0].startswith("equal")
    drop_damping(monkeypatch)
    verdict, finding = crossed.examine(0, 0, chosen)
    assert verdict == "finding"
    assert "joint_damping" in dict(crossed.minimized(0, 0, chosen, finding))
    assert "ground" not in dict(crossed.minimized(0, 0, chosen, finding))


@pytest.mark.parametrize("excuse", EXCUSED)
def test_an_excused_step_that_omits_a_force_is_a_finding(monkeypatch, excuse):
    names, seed = EXCUSED[excuse]
    chosen = [(name, seed) for name in names.split()]
    assert crossed.examine(0, 0, chosen)[0] == f"excused: {excuse}"
    drop_damping(monkeypatch)
    assert crossed.examine(0, 0, chosen)[0] == "finding"


def drop_damping(monkeypatch):
    """Omits the damping of joints in `fl.step`."""
    step = fl.step

    def without_damping(model, data, *args):
        damping = model.dof_damping.copy()
        model.dof_damping[:] = 0.0
        step(model, data, *args)
        model.dof_damping[:] = damping

    monkeypatch.setattr(fl, "step", without_damping)


def test_a_skipped_majority_fails():
    report = crossed.Report(crossed.NAME)
    for verdict in ("equal, free", "extreme", "extreme"):
        report.meet(0, verdict)
    assert crossed.share(report) == pytest.approx(1 / 3)


def test_excuses_are_counted_and_are_not_compared_cases():
    report = crossed.Report(crossed.NAME)
    for verdict in ("equal, free", "excused: not converged, rounding", "excused: rounding"):
        report.meet(0, verdict)
    assert crossed.share(report) == pytest.approx(1 / 3)
    assert crossed.excused(report) == {"rounding": 2, "not converged": 1}


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
