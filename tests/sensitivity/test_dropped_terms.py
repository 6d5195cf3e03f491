"""Each term of the derivatives matters: without it they differ from those of a step."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from sensitivity.test_derivatives import CONTACT
from sensitivity.test_transition import exact

COUNTS = 30 * CONTACT  # smallest contribution of a term
# a sledge that slides on its belly and on a rail, with a ball joint and an arm; an active limit, a motor, a tendon
SLEDGE = """<mujoco><option timestep="0.004" cone="elliptic" integrator="implicitfast" tolerance="0" iterations="100"/>
  <compiler autolimits="true"/><default><geom friction="0.3" solimp="0.6 0.95 0.02"/></default><worldbody>
  <geom type="plane" size="9 9 1"/>
  <geom type="capsule" fromto="-9 0.3 -0.3 9 0.3 -0.3" size="0.3" contype="2" conaffinity="2"/>
  <body name="sledge" pos="0 0 0.099"><freejoint/><geom type="capsule" fromto="-0.2 0 0 0.2 0 -0.02" size="0.08"/>
    <geom size="0.08" pos="0 0.3 -0.02" contype="2" conaffinity="2"/>
    <site name="hook" pos="0.1 0 0.3"/>
    <body pos="0 0 0.15" gravcomp="0.5"><joint type="ball" damping="0.05"/>
      <geom type="capsule" fromto="0 0 0 0.2 0.1 0.1" size="0.03" contype="0" conaffinity="0"/>
      <body name="arm" pos="0.2 0.1 0.1"><joint name="arm" axis="0 1 1" damping="0.1 0.2" stiffness="20"
        range="0.1 1" solimplimit="0.5 0.95 0.3"/><site name="end" pos="0 0.2 0"/>
        <geom type="capsule" fromto="0 0 0 0 0.2 0" size="0.03" contype="0" conaffinity="0"/></body></body></body>
  </worldbody><actuator><position joint="arm" kp="4" kv="0.3"/></actuator>
  <tendon><fixed stiffness="0.3" damping="0.01"><joint joint="arm" coef="1.5"/></fixed></tendon>{more}</mujoco>"""
TIED = """<option density="60"/><equality><joint joint1="arm" polycoef="0.05 0 0 0 0" solref="0.1 1"/>
  <connect body1="arm" body2="sledge" anchor="0.05 0.2 0" solref="0.3 1"/></equality>
  <tendon><spatial stiffness="5" springlength="0"><site site="hook"/><site site="end"/></spatial></tendon>"""
# terms that only the second model has, and the one that is differenced there
MORE = "equalities", "bending tendons", "fastenings", "fluid", "turning in a fluid", "what the integrator takes off"
LESS = ("rate of that damping",)
WEAK = ("impedance of a limit",)  # the ties hold the arm: its limit hardly pushes in the second model


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """Returns errors with and without each term: of the sledge, and of the one whose arm is tied, in a fluid."""
    return {more: measured(SLEDGE.format(more=more), tmp_path_factory.mktemp("terms")) for more in ("", TIED)}


def measured(text: str, folder: Path) -> dict[str, float]:
    """Returns the results of `dropped_terms.py` at a state in which all contacts slide."""
    model = exact(fl.load(text))
    data = fl.Data(model)
    data.qvel[:3], data.qvel[3:] = [1.0, 0.5, 0.0], 0.4
    data.ctrl[:] = 0.3
    for _ in range(200):
        fl.step(model, data, 3)
        pushed = data.ncon and np.abs(data.qfrc_constraint[9]) > 0  # the arm's limit
        fl.forward(model, data)
        force = [fl.query.contact_force(model, data, k)[0] for k in range(data.ncon)]
        pushing = {g for pair, f in zip(data.contact.geom, force, strict=True) for g in pair if f > 1.0}
        if {0, 1} <= pushing and pushed and fl.linearize(model, data).switching > 1e-3:
            break
    else:
        pytest.fail("no state in which all slides")
    coarse, fine = (fl.linearize(model, data, eps=eps, method="finite_difference")[:2] for eps in (2e-6, 1e-6))
    A, B = ((4.0 * x - y) / 3.0 for x, y in zip(fine, coarse, strict=True))
    state = fl.get_state(model, data, fl.State.INTEGRATION)
    np.savez(folder / "given.npz", text=text, state=state, A=A, B=B)
    command = [sys.executable, str(Path(__file__).with_name("dropped_terms.py")), str(folder / "given.npz")]
    path = os.pathsep.join([str(Path(fl.__file__).parents[1]), *sys.path])
    environment = {**os.environ, "FEATHERLANE_MODE": "python", "PYTHONPATH": path}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.ci
def test_with_all_terms_they_equal_those_of_a_step(errors):
    assert errors[""]["nothing"] < CONTACT
    assert errors[TIED]["nothing"] < CONTACT


@pytest.mark.ci
def test_without_a_term_they_are_not(errors):
    for more, found in errors.items():
        absent, weak = (LESS, WEAK) if more else (MORE, ())
        checked = [term for term in found if term not in ("nothing", *absent, *weak)]
        unnoticed = [term for term in checked if not found[term] > COUNTS]
        assert not unnoticed, f"{more}: {unnoticed} of {found}"
        for term in absent:
            assert found[term] == found["nothing"], term
