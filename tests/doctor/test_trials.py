"""Checks of a trial: what nobody reports is found with its cause, and the advice removes the finding."""

import re

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.predictions import PUSH, REFUTED
from scenes.closed_loops import CONNECT, COUPLED, JOINT
from scenes.faulty_models import BALL, SERVO

CLOSE = 0.02  # relative: between the trial's last tenth and the rest that follows
NEW = ["trial-bad", "trial-sinks", "trial-loop-opens", "trial-restless", "trial-energy"]
STACK = """<mujoco><option timestep=".002"/><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
<body pos="0 0 .05"><freejoint/><geom name="low" type="box" size=".05 .05 .05" mass="1"/></body>
<body pos="0 0 .15"><freejoint/><geom name="high" type="box" size=".05 .05 .05" mass="{}"/></body>
</worldbody></mujoco>"""
SPIN = """<mujoco><option gravity="0 0 0" timestep=".002"/><worldbody><body name="thrown"><freejoint/>
<geom size=".02" pos="{} 0 0" mass=".1"/></body></worldbody>
<keyframe><key qpos="0 0 0 1 0 0 0" qvel="0 {} 0 0 0 40"/></keyframe></mujoco>"""
LINK = '<joint type="ball" damping=".001"/><geom type="capsule" size=".01" fromto="0 0 0 .1 0 0" mass=".05"/>'
ROPE = (
    '<mujoco><option timestep=".002"/><default><geom contype="0" conaffinity="0"/></default><worldbody>'
    + f'<body pos="0 0 3">{LINK}'
    + f'<body pos=".1 0 0">{LINK}' * 19
    + '<body pos=".1 0 0"><geom size=".05" mass=".05"/></body>'
    + "</body>" * 20
    + "</worldbody></mujoco>"
)
# a box on a springy floor: 1 % of an error decays per step
SHAKEN = """<mujoco><option timestep=".002"/><worldbody><geom name="floor" type="plane" size="1 1 .1" {0}/>
<body name="box" pos="0 0 .1"><freejoint/><geom name="side" type="box" size=".1 .1 .1" mass="1" {0}/></body>
</worldbody></mujoco>"""


def apply(model: fl.Model, advice: str) -> None:
    """Makes the advised changes."""
    text = advice.removesuffix(": a trial with this change is free of this finding")
    assert text != advice, f"untried: {advice}"
    for name, value in re.findall(r'(timestep|integrator|contact_model|cone) to "?([\w.-]+)"?', text):
        setattr(model.opt, name, float(value) if name == "timestep" else value)
    for first, second in re.findall(r"set solref of [\w ]+? to (\S+) (\S+)", text) or re.findall(
        r"and solref of [\w ]+? to (\S+) (\S+)", text
    ):
        model.geom_solref[:] = float(first), float(second)
        model.eq_solref[:] = float(first), float(second)
    for low, high in re.findall(r"solimp to (\S+) (\S+)", text):
        model.geom_solimp[:, :2] = float(low), float(high)
        model.eq_solimp[:, :2] = float(low), float(high)


@pytest.mark.parametrize("contact_model", ["convex", "coulomb"])
@pytest.mark.parametrize("mass", [500, 1000, 10000])
def test_a_heavy_box_that_sinks_into_a_light_one_is_reported_with_its_mass_ratio(mass, contact_model):
    model = fl.load(STACK.format(mass))
    model.opt.contact_model = contact_model
    found = fl.diagnose(model, NEW)
    assert {finding.check for finding in found} == {"trial-sinks"}
    assert {finding.element for finding in found} == {"geom 'low'", "geom 'high'"}
    assert all(finding.severity == "warning" and "mass ratio" in finding.seen for finding in found)
    apply(model, found[0].advice)
    assert not [finding for finding in fl.diagnose(model, NEW) if finding.severity != "note"]


def test_the_reported_depth_and_force_are_those_of_the_resting_stack():
    model = fl.load(STACK.format(500))
    finding = next(each for each in fl.diagnose(model, ["trial-sinks"]) if each.element == "geom 'high'")
    depth, force = (float(re.search(text, finding.seen)[1]) for text in (r"^(\S+) mm deep", r"force of (\S+) N"))
    data = fl.Data(model)
    data.step(3000)
    assert depth == pytest.approx(1e3 * (0.1 - (data.qpos[9] - data.qpos[2])), rel=5 * CLOSE)
    assert force == pytest.approx(500 * 9.81 / 4, rel=CLOSE)


@pytest.mark.parametrize("mass, silent", [(45, True), (55, False)])
def test_depths_above_5_percent_of_the_half_side_are_notes(mass, silent):
    """The depth is proportional to the load: 5 % at 50 kg on 1 kg."""
    found = fl.diagnose(STACK.format(mass), NEW)
    assert {(finding.check, finding.severity) for finding in found} == (set() if silent else {("trial-sinks", "note")})
    assert all("mass ratio" in finding.seen for finding in found)


def test_equal_boxes_and_the_lcp_contact_model_do_not_sink():
    assert not fl.diagnose(STACK.format(1), NEW)
    model = fl.load(STACK.format(1000))
    model.opt.contact_model = "lcp"
    assert not fl.diagnose(model, NEW)


def test_a_soft_solref_is_the_cause_of_a_sinking_ball():
    found = fl.diagnose(BALL.replace('name="skin"', 'name="skin" solref=".3 1" priority="1"'), NEW)
    assert [finding.check for finding in found] == ["trial-sinks"]
    assert "time constant of 0.3 s" in found[0].seen
    model = fl.load(BALL.replace('name="skin"', 'name="skin" solref=".3 1" priority="1"'))
    apply(model, found[0].advice)
    assert not fl.diagnose(model, NEW)


def test_dropped_contacts_are_the_cause_of_a_sinking_ball(monkeypatch):
    text = BALL.replace('name="skin"', 'name="skin" solref=".3 1" priority="1"')
    examined = ExaminedModel(fl.load(text))
    examined.trials[0].counts["contacts_full"] = 7
    monkeypatch.setattr(ExaminedModel, "trials", examined.trials)
    assert "dropped in 7 steps" in fl.diagnose(text, ["trial-sinks"])[0].seen


def test_parts_that_overlap_from_the_start_are_reported_once():
    text = BALL.replace('pos="0 0 .1"', 'pos="0 0 .05"').replace("<freejoint/>", '<joint type="hinge" axis="0 0 1"/>')
    assert [finding.check for finding in fl.diagnose(text, ["overlap", *NEW])] == ["overlap"]


@pytest.mark.parametrize("equality", [CONNECT.format(""), JOINT.format("")])
@pytest.mark.parametrize("integrator", ["euler", "discrete"])
def test_a_light_link_that_a_heavy_body_pulls_off_is_reported_with_its_mass_ratio(equality, integrator):
    model = fl.load(COUPLED.format(equality=equality, kv=50))
    model.opt.integrator = integrator
    (finding,) = fl.diagnose(model, NEW)
    assert (finding.check, finding.element, finding.severity) == ("trial-loop-opens", "equality #0", "warning")
    assert "mass ratio" in finding.seen
    apply(model, finding.advice)
    assert not fl.diagnose(model, NEW)


def test_the_error_of_a_tendon_of_hinges_is_an_angle():
    link = '<body pos="0 {} 0"><joint name="{}" axis="0 1 0"/><geom size=".02" pos=".3 0 0" mass="{}" {}/></body>'
    free = 'contype="0" conaffinity="0"'
    tendons = "".join(f'<fixed name="{t}"><joint joint="{j}" coef="1"/></fixed>' for t, j in ("sa", "tb"))
    text = f"""<mujoco><worldbody>{link.format(0, "a", 1, free)}{link.format(1, "b", 1e-3, free)}</worldbody>
    <tendon>{tendons}</tendon><equality><tendon tendon1="s" tendon2="t" solref=".5 1"/></equality>
    <actuator><position joint="b" kp="50" kv="1"/></actuator></mujoco>"""
    (finding,) = fl.diagnose(text, ["trial-loop-opens"])
    assert re.match(r"error of \S+ rad at the end", finding.seen)


def test_a_contradicted_equality_is_reported_without_a_stiffer_row():
    both = '<joint joint1="a" polycoef=".3 0 0 0 0"/><joint joint1="a" polycoef="-.3 0 0 0 0"/>'
    found = fl.diagnose(COUPLED.format(equality=both, kv=50), ["trial-loop-opens"])
    assert len(found) == 2 and all("contradict" in finding.advice for finding in found)


def test_a_spinning_body_off_its_frame_gains_energy_with_the_measured_value():
    (finding,) = fl.diagnose(SPIN.format(0.1, -4), NEW)
    assert (finding.check, finding.element) == ("trial-energy", "body 'thrown'")
    assert "frame is 0.1 m from its centre of mass" in finding.seen and "40 rad/s" in finding.seen
    model = fl.load(SPIN.format(0.1, -4))
    data = fl.Data(model)
    data.reset(keyframe=0)
    energies = []
    for _ in range(500):
        fl.stages.energy(model, fl.forward(model, data) or data)
        energies.append(data.energy[1])
        data.step()
    rise = float(re.search(r"rises by (\S+) J", finding.seen)[1])
    assert rise == pytest.approx(max(energies) - energies[0], rel=0.1)  # of 20 samples
    apply(model, finding.advice)
    assert not fl.diagnose(model, NEW)
    assert not fl.diagnose(SPIN.format(0, 0), NEW)  # the other advice: the frame at the centre of mass


def test_a_whipping_rope_gains_energy_and_the_advice_keeps_it():
    (finding,) = fl.diagnose(ROPE, NEW)
    assert (finding.check, finding.element) == ("trial-energy", "the model")
    model = fl.load(ROPE)
    apply(model, finding.advice)
    assert not fl.diagnose(model, NEW)


def test_falling_and_bouncing_bodies_keep_their_energy():
    high = BALL.replace('pos="0 0 .1"', 'pos="0 0 .5"')
    assert not fl.diagnose(high, NEW)
    assert not fl.diagnose(high.replace('name="skin"', 'name="skin" solref="-2e5 -5" priority="1"'), ["trial-energy"])


def test_a_vibrating_box_is_restless_and_the_advice_calms_it():
    text = SHAKEN.format('solref="-2e5 -10"')
    found = fl.diagnose(text, ["trial-restless"])
    assert [finding.element for finding in found] == ["body 'box'"]
    model = fl.load(text)
    apply(model, found[0].advice)
    assert not fl.diagnose(model, ["trial-restless"])


# a ball that is heavy below and tilted: it rocks for seconds
ROCKING = """<mujoco><option timestep=".002"/><worldbody><geom name="floor" type="plane" size="1 1 .1" condim="1"/>
<body name="doll" pos="0 0 .1" euler="12 0 0"><freejoint/><geom size=".1" mass=".1" condim="1"/>
<geom size=".02" pos="0 0 -.06" mass="1" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
SPRINGY = STACK.format(100).replace('mass="1"', 'mass="1" solref="-2e4 -1" priority="1"')


@pytest.mark.parametrize(
    "text, element, cause",
    [
        (SHAKEN.format('solref="-2e5 -10"'), "body 'box'", r"its contact has a damping ratio of 0\.0112"),
        (ROCKING, "body 'doll'", "it stands on 1 to 1 contacts"),
        (SPRINGY, "body #1", r"mass ratio: its force of \S+ N is \S+ times the weight of the 1 kg"),
    ],
)
def test_the_cause_of_unrest_is_named(text, element, cause):
    found = {each.element: each for each in fl.diagnose(text, ["trial-restless"])}
    assert re.search(f"without leaving its place; {cause}", found[element].seen)


@pytest.mark.parametrize(
    "solref, cause",
    [((-1e6, -50), r"each step multiplies errors of its contact by 1\.5"), ((0.3, 1), "time constant of 0.3 s")],
)
def test_the_solref_of_the_contacts_decides_the_cause_of_unrest(solref, cause, monkeypatch):
    examined = ExaminedModel(fl.load(SPRINGY))
    for sample in examined.trials[0].samples:
        sample.solref[:] = solref
    monkeypatch.setattr(ExaminedModel, "trials", examined.trials)
    found = {each.element: each for each in fl.diagnose(SPRINGY, ["trial-restless"])}
    assert re.search(cause, found["body #2"].seen)


def test_dropped_contacts_are_the_first_cause_of_unrest(monkeypatch):
    examined = ExaminedModel(fl.load(SPRINGY))
    examined.trials[0].counts["contacts_full"] = 7
    monkeypatch.setattr(ExaminedModel, "trials", examined.trials)
    found = fl.diagnose(SPRINGY, ["trial-restless"])
    assert len(found) == 2
    assert all("dropped in 7 steps" in each.seen and "trial-full" in each.advice for each in found)


def test_rolling_sliding_and_falling_bodies_are_not_restless():
    rolling = BALL.replace("<option", '<option gravity="1 0 -9.81"')
    assert not fl.diagnose(rolling, ["trial-restless"])
    sliding = SHAKEN.format('friction="0"').replace("<option", '<option gravity="1 0 -9.81"')
    assert not fl.diagnose(sliding, ["trial-restless"])
    assert not fl.diagnose(SHAKEN.format(""), ["trial-restless"])


# ---- predictions ---------------------------------------------------------------------------------------------------
UNSTABLE = SERVO.replace('kp="10"', 'kp="1e6"')


def test_a_prediction_that_a_clean_trial_refutes_is_a_note():
    (finding,) = fl.diagnose(UNSTABLE, ["step-unstable"])
    assert finding.severity == "error" and REFUTED not in finding.seen
    held = UNSTABLE.replace('damping="1"', 'damping="1" frictionloss="200"')
    (finding,) = fl.diagnose(held, ["step-unstable"])
    assert finding.severity == "note" and REFUTED in finding.seen
    data = fl.Data(fl.load(held))
    data.qvel[:] = PUSH
    data.step(1000)
    assert np.abs(data.qvel).max() < PUSH / 100


def test_an_unstable_row_that_a_softer_floor_calms_is_a_note():
    """The solref of a contact is the mean of both geoms: the box alone would be unstable."""
    (finding,) = fl.diagnose(BALL.replace('name="skin"', 'name="skin" solref=".004 .2"'), ["row-unstable"])
    assert finding.severity == "note" and REFUTED in finding.seen
    for change in ('name="skin" solref=".004 .2" priority="1"', 'name="skin" solref="-2e6 -10" priority="1"'):
        (finding,) = fl.diagnose(BALL.replace('name="skin"', change), ["row-unstable"])
        assert finding.severity == "warning"
