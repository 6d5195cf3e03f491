"""The doctor's predictions match the engine's steps: growth of modes and of constraint errors."""

import re

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.modes import systems
from featherlane.apps.doctor.rows import growth, row_stiffness

CLOSE = 1e-5  # of differences over 1e-6 in transition_fd
SPRUNG = """<mujoco><option timestep=".004" gravity="0 0 0"/><worldbody>
<body><joint name="a" axis="0 1 0" stiffness="30" damping=".4"/>
<geom type="capsule" size=".05" fromto="0 0 0 0 0 -.4" contype="0"/><body pos="0 0 -.4">
<joint name="b" axis="0 1 0" damping=".2"/><geom type="capsule" size=".04" fromto="0 0 0 0 0 -.3" contype="0"/></body>
</body><body pos="1 0 0"><joint name="c" type="slide" axis="1 0 0"/><geom size=".1" contype="0"/></body></worldbody>
<tendon><fixed name="cord" stiffness="50" damping="3" springlength=".1"><joint joint="b" coef=".2"/>
<joint joint="c" coef="1"/></fixed></tendon><actuator><position joint="a" kp="40" kv="5" gear="1.5"/>
<general joint="c" gaintype="affine" biastype="none" gainprm="0 -20 -7" ctrlrange="0 1"/></actuator>
<keyframe><key ctrl="0 1"/></keyframe></mujoco>"""
EQUALITY = """<mujoco><option timestep=".005" gravity="0 0 0"/><worldbody><body><joint name="x" type="slide"/>
<geom size=".1"/></body></worldbody><equality><joint name="held" joint1="x" solimp=".9 .9 .001" solref="{} {}"/>
</equality></mujoco>"""


@pytest.mark.parametrize("integrator", ["euler", "implicit", "implicitfast", "rk4", "discrete"])
def test_modes_of_a_step_equal_those_of_the_engines_derivative(integrator):
    model = fl.load(SPRUNG)
    model.opt.integrator, model.opt.tolerance = integrator, 0
    examined = ExaminedModel(model)
    (system,) = [system for start, system in systems(examined) if start.keyframe == 0]
    ours = [mode.factor for mode in system.discrete_modes()]
    data = fl.Data(model)
    data.ctrl[1] = 1.0
    theirs = np.abs(np.linalg.eigvals(fl.linearize(model, data, method="finite_difference")[0]))
    np.testing.assert_allclose(sorted(ours), sorted(theirs), rtol=CLOSE)


@pytest.mark.parametrize(
    "solref", [(0.02, 1), (0.01, 0.5), (0.01, 0.36), (0.01, 0.35), (-2e4, -50), (-1e5, -250), (-1, -450)]
)
@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
def test_errors_of_a_row_grow_as_the_engines_do(solref, integrator):
    model = fl.load(EQUALITY.format(*solref))
    model.opt.integrator = integrator
    factor = growth(ExaminedModel(model), *row_stiffness(ExaminedModel(model), model.eq_solref[0], False))
    theirs = np.abs(np.linalg.eigvals(fl.linearize(model, fl.Data(model), method="finite_difference")[0])).max()
    assert factor == pytest.approx(theirs, rel=CLOSE, abs=CLOSE)


def test_the_minimum_damping_ratio_at_two_steps_is_one_over_sqrt_8():
    model = fl.load(EQUALITY.format(0.01, 1))
    for ratio, grows in ((0.99 / np.sqrt(8), True), (1.01 / np.sqrt(8), False)):
        K, B = row_stiffness(ExaminedModel(model), np.array([0.01, ratio]), False)
        assert (growth(ExaminedModel(model), K, B) > 1) == grows


STIFF = {
    "spring": SPRUNG.replace('stiffness="30"', 'stiffness="3e5"'),
    "servo": SPRUNG.replace('kp="40"', 'kp="1e5"'),
    "damper": SPRUNG.replace('kv="5"', 'kv="500"'),
    "tendon": SPRUNG.replace('damping="3"', 'damping="5e3"'),
}


@pytest.mark.parametrize("name", STIFF)
def test_suggested_fixes_stabilize_an_unstable_step(name):
    model = fl.load(STIFF[name])
    found = fl.diagnose(model, ["step-unstable"])
    assert found
    for _ in found:  # the worst first, then the rest
        for finding in fl.diagnose(model, ["step-unstable"]):
            most = re.search(r"timestep of at most (\S+) s", finding.advice)[1]
            model.opt.timestep = min(model.opt.timestep, float(most))
    assert not fl.diagnose(model, ["step-unstable"])
    model.opt.timestep = 0.004
    model.opt.integrator = found[0].advice.rpartition('="')[2].strip('"')
    assert not fl.diagnose(model, ["step-unstable"])


OFFSET = """<mujoco><option timestep="{h}" integrator="{integrator}" gravity="0 0 0"/><worldbody><body name="b">
<freejoint/><inertial pos="{s} 0 0" mass=".1" diaginertia="4e-5 4e-5 4e-5"/></body></worldbody></mujoco>"""


def energy_change(s, h, integrator, spin):
    """Returns the largest relative change of the energy of a body that spins about its centre of mass in one turn."""
    model = fl.load(OFFSET.format(s=s, h=h, integrator=integrator))
    data, energies = fl.Data(model), []
    data.qvel = 0, -s * spin, 0, 0, 0, spin
    for _ in range(round(2 * np.pi / spin / h)):
        fl.step(model, data)
        fl.forward(model, data)
        fl.stages.energy(model, data)
        energies.append(data.energy[1])
    return np.abs(np.array(energies) / (2e-5 * spin * spin) - 1).max()


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast", "discrete"])
@pytest.mark.parametrize(("s", "h"), [(0.1, 0.002), (0.05, 0.002), (0.1, 0.001)])
def test_the_reported_spin_of_an_offset_frame_changes_the_energy_by_one_percent(s, h, integrator):
    (found,) = fl.diagnose(fl.load(OFFSET.format(s=s, h=h, integrator=integrator)), ["frame-off-centre"])
    spin = float(re.search(r"spin of (\S+) rad/s", found.seen)[1])
    assert energy_change(s, h, integrator, spin) == pytest.approx(0.01, rel=0.05)


def test_an_offset_frame_keeps_the_energy_with_the_advice():
    assert not fl.diagnose(fl.load(OFFSET.format(s=0.1, h=0.002, integrator="RK4")), ["frame-off-centre"])
    assert not fl.diagnose(fl.load(OFFSET.format(s=0, h=0.002, integrator="Euler")), ["frame-off-centre"])
    assert energy_change(0.1, 0.002, "RK4", 40.0) < 1e-9
    assert energy_change(0.0, 0.002, "Euler", 40.0) < 1e-12


def test_a_model_without_geoms_is_examined():
    text = "<inertial mass='1' pos='0 0 0' diaginertia='1 1 1'/>"
    assert fl.diagnose(fl.load(f"<mujoco><worldbody><body><joint/>{text}</body></worldbody></mujoco>")) == []
