"""A changed force law is differentiated without a second edit; a law that does not belong to its energy is detected.

A law is changed as an edit of its source changes it, for all kernels that call it.  Kernels run uncompiled.
"""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.constraint import impedance
from featherlane.engine.dynamics.actuator import activation
from featherlane.engine.dynamics.body import force_laws
from featherlane.engine.dynamics.passive import forces
from featherlane.engine.dynamics.tendon import force as tendon
from featherlane.engine.lanes import jvp
from featherlane.engine.lanes.record import python_record
from featherlane.engine.simulation.world.data import ready

XML = """<mujoco><option timestep="0.01" gravity="0 0 0" integrator="{integrator}" tolerance="0" iterations="200"/>
<worldbody><body><joint name="a" axis="0 1 0" stiffness="3" springref="20" damping="1 2"/>
<geom size=".1" pos=".3 0 0"/><body pos=".5 0 0">
<joint name="b" axis="0 1 0" stiffness="2 1 .5" limited="true" range="-10 10"/>
<geom size=".1" pos=".3 0 0"/></body></body>
<body pos="0 2 0"><joint name="ball" type="ball" stiffness="2 1"/><geom size=".1" pos="0 0 -.3"/></body></worldbody>
<tendon><fixed name="t" stiffness="4 2" damping="1 .5" springlength="0 0.1"><joint joint="a" coef="1"/>
<joint joint="b" coef="-.5"/></fixed></tendon>
<actuator><general joint="a" dyntype="filter" dynprm=".05" gainprm="2"/></actuator></mujoco>"""
CLOSE = 1e-6  # of central differences with displacements of 1e-6, relative to the largest entry
LAWS = {  # name: kernel of a force; f becomes f - f^3 / 20
    "spring of a joint": forces.joint_spring_force,
    "damper of a joint": forces.dof_damper_force,
    "spring of a tendon": tendon.spring_force,
    "damper of a tendon": tendon.damper_force,
    "any spring": force_laws.spring_law,
    "spring of a ball": force_laws.vector_spring_law,
    "impedance of a row": impedance.impedance,
    "activation": activation.activation_rate,
}


@pytest.fixture
def uncompiled(monkeypatch):
    monkeypatch.setenv("FEATHERLANE_MODE", "python")


def change(monkeypatch, kernel):
    """Replaces the force f of a kernel by f - f^3 / 20, of a vector by f (1 - |f|^2 / 20)."""
    law = kernel.function

    def changed(*arguments):
        f = law(*arguments)
        if isinstance(f, tuple):
            return (1.0 - 0.05 * (f.x * f.x + f.y * f.y + f.z * f.z)) * f
        return f - 0.05 * f * f * f

    monkeypatch.setattr(kernel, "function", changed)


def moving(integrator):
    """Returns (model, data) of a world in motion beyond the limit of its second joint."""
    model = fl.load(XML.format(integrator=integrator))
    data = fl.Data(model)
    data.qpos[:2], data.qvel = (0.3, -0.4), (0.5, 0.7, 0.3, -0.2, 0.4)
    data.qpos[2:] = np.array([0.9, 0.3, -0.2, 0.1]) / np.linalg.norm([0.9, 0.3, -0.2, 0.1])
    data.ctrl, data.act = 0.7, 0.2
    return model, data


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize("name", LAWS)
def test_linearize_follows_a_changed_law(uncompiled, monkeypatch, name, integrator):
    model, data = moving(integrator)
    before = fl.linearize(model, data)
    change(monkeypatch, LAWS[name])
    found = fl.linearize(model, data)
    expected = fl.linearize(model, data, method="finite_difference")
    assert np.abs(found.A - before.A).max() > 10.0 * CLOSE
    for one in ("A", "B"):
        scale = np.abs(getattr(expected, one)).max()
        np.testing.assert_allclose(getattr(found, one), getattr(expected, one), rtol=0, atol=CLOSE * scale)


# ---- energy ----------------------------------------------------------------------------------------------------------
ENERGIES = {  # name: energy, force, the coordinate, and the law whose change is detected
    "joints": (forces.joint_spring_energy, forces.joint_spring_force, "qpos", forces.joint_spring_force),
    "joints, shared law": (forces.joint_spring_energy, forces.joint_spring_force, "qpos", force_laws.spring_law),
    "tendons": (tendon.tendon_spring_energy, tendon.spring_force, "ten_length", tendon.spring_force),
}


def records(model, data):
    fl.forward(model, data)
    workspace = ready(model, data).workspace
    return python_record(workspace.rows.record), python_record(workspace.record)


@pytest.mark.parametrize("name", ENERGIES)
def test_force_of_a_spring_is_minus_the_derivative_of_its_energy(monkeypatch, name):
    energy, force, coordinate, law = ENERGIES[name]
    m, d = records(*moving("Euler"))

    def mismatch():
        return abs(jvp(energy, coordinate)(m, d, 0)[1] + force(m, d, 0))

    assert mismatch() < 1e-14
    change(monkeypatch, law)
    assert mismatch() > 1e-5


def power(model, data):
    """Returns (rate of the potential energy along qvel, minus the power of gravity and springs)."""
    eps, energies = 1e-5, []
    for sign in (1.0, -1.0):
        moved = data.copy()
        moved.qpos = fl.integrate_pos(model, data.qpos, data.qvel, sign * eps)
        fl.forward(model, moved)
        fl.stages.energy(model, moved)
        energies.append(moved.energy[0])
    v, still = data.qvel.copy(), data.copy()
    still.qvel[:] = 0.0
    fl.forward(model, still)
    return (energies[0] - energies[1]) / (2.0 * eps), -(still.qfrc_spring - still.qfrc_bias) @ v


@pytest.mark.parametrize("law", [None, tendon.spring_force, force_laws.vector_spring_law])
def test_potential_energy_belongs_to_gravity_and_springs(uncompiled, monkeypatch, law):
    model, data = moving("Euler")
    model.opt.gravity = 1.0, 2.0, -9.81
    if law is not None:
        change(monkeypatch, law)
    rate, expected = power(model, data)
    assert (abs(rate - expected) < 1e-8) == (law is None)
