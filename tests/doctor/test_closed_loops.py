"""Modes of closed loops: those of the doctor are those of the engine, and its advice stabilizes the step."""

import re

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.modes import systems
from featherlane.apps.doctor.springs import HALVINGS
from scenes.closed_loops import CONNECT, COUPLED, FOUR_BAR, JOINT, STIFF, stewart

CLOSE = 1e-5  # of differences over 1e-6 in finite differences
FAST = 10.0  # m/s: faster than a fall of a second, which a soft connect resembles at first
SETTLED = 1e-3  # m/s: the platform stands; a diverging one is reset
LOOPS = {
    "connect": COUPLED.format(equality=CONNECT.format(STIFF), kv=50),
    "joint": COUPLED.format(equality=JOINT.format(""), kv=500),
    "four-bar": FOUR_BAR.format(kv=20),
}
SOLVERS = ["euler", "implicit", "implicitfast", "rk4", "discrete", "erp", "solref"]


def solved_by(text: str, solver: str) -> fl.Model:
    """Returns the model with an integrator, or with the LCP contact model and its softness."""
    model = fl.load(text)
    if solver in ("erp", "solref"):
        model.opt.contact_model, model.opt.softness = "lcp", solver
    else:
        model.opt.integrator = solver
    return model


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_modes_of_closed_loops_equal_those_of_the_engines_derivative(name, solver):
    model = solved_by(LOOPS[name], solver)
    model.opt.tolerance, model.opt.gravity = 0, (0, 0, 0)
    ((_, system),) = systems(ExaminedModel(model))
    theirs = np.abs(np.linalg.eigvals(fl.linearize(model, fl.Data(model), method="finite_difference")[0]))
    np.testing.assert_allclose(np.sort(system.factors), np.sort(theirs), rtol=CLOSE, atol=CLOSE)


def diverges(model: fl.Model) -> bool:
    """Returns whether the motion of a second from a small push is reset or grows."""
    data = fl.Data(model)
    data.qvel[:] = 1e-3
    fl.step(model, data, round(1 / model.opt.timestep))
    return data.nreset > 0 or bool(np.abs(data.qvel).max() > FAST)


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "discrete"])
@pytest.mark.parametrize("kv", [50, 500])
@pytest.mark.parametrize("equality", [CONNECT.format(STIFF), JOINT.format(STIFF), CONNECT.format("")])
def test_only_loops_that_diverge_are_reported(equality, kv, integrator):
    model = solved_by(COUPLED.format(equality=equality, kv=kv), integrator.lower())
    assert bool(fl.diagnose(model, ["step-unstable"])) == diverges(model)


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_stewart_platform_is_stable_unless_its_step_diverges():
    for integrator in ("Euler", "implicitfast", "discrete"):
        model = fl.load(stewart(integrator))
        assert bool(fl.diagnose(model, ["step-unstable"])) == diverges(model), integrator
    data = fl.Data(fl.load(stewart("discrete")))
    data.step(2000)
    assert np.abs(data.qvel).max() < SETTLED and data.nreset == 0


UNSTABLE = {
    "connect": COUPLED.format(equality=CONNECT.format(STIFF), kv=500).replace(
        "<option", '<option integrator="implicitfast"'
    ),
    "joint": COUPLED.format(equality=JOINT.format(""), kv=500),
    "four-bar": FOUR_BAR.format(kv=2000),
}


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
@pytest.mark.parametrize("name", UNSTABLE)
def test_each_advice_stabilizes_a_closed_loop(name):
    model = fl.load(UNSTABLE[name])
    (finding,) = fl.diagnose(model, ["step-unstable"])
    assert finding.element == "actuator 'servo'" and diverges(model)
    words = re.fullmatch(
        r'use a timestep of at most (\S+) s, or a smaller kv, or more armature, or integrator="(\w+)"', finding.advice
    )
    assert words[2] == "discrete"
    for change in ("timestep", "kv", "armature", "integrator"):
        changed = fl.load(UNSTABLE[name])
        for _ in range(HALVINGS):
            if change == "timestep":
                changed.opt.timestep = float(words[1])
            elif change == "integrator":
                changed.opt.integrator = words[2]
            elif change == "kv":
                changed.actuator_biasprm[0, 2] /= 2
            else:
                changed.dof_armature[0] = 2 * changed.dof_armature[0] + 0.1
                fl.set_const(changed)
            if change in ("timestep", "integrator") or not fl.diagnose(changed, ["step-unstable"]):
                break
        assert not fl.diagnose(changed, ["step-unstable"]) and not diverges(changed), change


def test_unstable_rows_are_not_blamed_on_a_damper_of_their_loop():
    text = COUPLED.format(equality=CONNECT.format('solref="-5e6 -10"'), kv=50)
    found = fl.diagnose(text, ["step-unstable", "row-unstable"])
    assert [finding.element for finding in found] == ["equality #0"]
