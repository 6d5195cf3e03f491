"""Mutated models load or raise an error by name, and step as in MuJoCo: a sample; the budget is adjustable."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from fuzz import models
from fuzz.report import budget, seed

SAMPLE, CASES = 40, 100_000
MECHANISM = """
<mujoco><worldbody>
  <body pos="{0} 0 0"><joint name="turn" axis="0 1 0"/><joint name="push" type="slide" range="0 1" margin="{1}"/>
    <geom size=".1" pos=".1 .2 .3" mass="7"/></body>
</worldbody><actuator>
  <dcmotor joint="push" motorconst=".6" inductance=".006" resistance="{2}" saturation=".2 0"/>
</actuator></mujoco>
"""


def judged(place=0, margin=0, resistance=1, act=0.0) -> str:
    """Returns the verdict on the mechanism in one state."""
    mj = mujoco.MjModel.from_xml_string(MECHANISM.format(place, margin, resistance))
    models.exact(mj)
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = 0.3, 1.0, act, 1.0
    state = {name: np.array(getattr(data, name))[()] for name in models.INPUTS}
    return models.compare(mj, fl.load(mj), "state", state, np.random.default_rng(0))[0]


def test_comparisons_use_rounding_tolerances():
    assert judged() == "equal, free"


@pytest.mark.parametrize("numbers", [{"margin": 1e30}, {"place": 7e30}])
def test_extreme_rows_and_rounded_positions_are_classified_as_extreme(numbers):
    assert judged(**numbers) == "extreme"


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
@pytest.mark.parametrize("numbers", [{"act": 1e12}, {"resistance": 1e30, "act": 1.0}])
def test_a_non_finite_activation_is_classified_as_unstable(numbers):
    assert judged(**numbers) == "unstable in MuJoCo"


def test_a_diverging_current_in_mujoco_is_reported():
    assert judged(resistance=1e14, act=1e-3) == "a current that follows at once"


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
