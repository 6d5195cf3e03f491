"""Every check reports a small model with its fault, names the element, and reports nothing on a corrected model."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.doctor.diagnose import all_checks
from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import SEVERITIES
from featherlane.apps.doctor.trials import Trial
from featherlane.apps.doctor.unused import BY_ERP, CONVEX_OPTIONS, LCP_ONLY
from sampling import in_ci
from scenes.faulty_models import (
    APART,
    ARM,
    BALL,
    INERTIAL,
    LIMITED,
    LINKS,
    LOOP,
    SERVO,
    TOUCH,
    TWO_BALLS,
    chain,
    crowd,
    sphere_mesh,
)

SOFT = ("geom_solref", "geom_solimp", "jnt_solref", "jnt_solimp", "eq_solref", "eq_solimp")
UNREAD = """<mujoco><option timestep=".005"/><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 .1"><freejoint/><geom size=".1"/></body>
  <body pos="2 0 1"><joint range="-30 30" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
  <body pos="4 0 1"><joint name="a"/><geom size=".1" pos=".2 0 0"/></body>
  <body pos="6 0 1"><joint name="b"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
  <equality><joint joint1="a" joint2="b"/></equality></mujoco>"""


class Case(NamedTuple):
    """Describes a fault.

    Attributes:
        check: the check that finds it.
        element: the element that is named.
        healthy: a model without it.
        changes: pairs (old, new) of text; or an edit of the model, or the object with the fault.
    """

    check: str
    element: str
    healthy: str
    changes: tuple | Callable | str


# a knob that turns on a table: about its centre unless it is eccentric
KNOB = """<mujoco><worldbody><geom name="table" type="box" size=".1 .1 .1" pos="0 -.14 0"/>
  <body><joint axis="1 0 0" damping=".01"/><geom name="knob" size=".05" pos="0 0 .01"/></body></worldbody></mujoco>"""


# fields that flags, types and the maximum of friction switch off
EDITED = """<mujoco><worldbody><geom name="floor" type="plane" size="3 3 1" friction="1 .005 .0001"/>
  <body name="box" pos="0 0 .1"><freejoint/>
    <geom name="box" type="box" size=".1 .1 .1" friction=".5 .005 .0001"/></body>
  <body pos="1 0 1"><joint name="hinge" damping=".1"/><joint name="stop" type="slide" range="-1 1" limited="true"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body>
  <body name="cart" pos="9 9 9"><joint type="slide"/><geom size=".1"/></body></worldbody>
  <tendon><fixed name="cord"><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator><motor name="motor" joint="hinge"/><position name="servo" joint="stop" kp="10" kv="1" ctrlrange="-1 1"/>
  </actuator></mujoco>"""


def edit(field: str, place, value) -> Callable:
    def change(model):
        getattr(model, field)[place] = value

    return change


def hard(model, softness: str = "erp") -> None:
    """Sets the contact model lcp."""
    model.opt.contact_model, model.opt.softness = "lcp", softness


def coulomb(model) -> None:
    """Sets the contact model coulomb."""
    model.opt.contact_model = "coulomb"


CASES = [
    Case("edit-unread", "joint 'hinge'", EDITED, edit("jnt_range", 1, (-0.1, 0.1))),
    Case("edit-unread", "joint 'hinge'", EDITED, edit("jnt_actfrcrange", 1, (-0.1, 0.1))),
    Case("edit-unread", "joint 'hinge'", EDITED, edit("dof_solref", 6, (0.1, 1.0))),
    Case("edit-unread", "tendon 'cord'", EDITED, edit("tendon_range", 0, (-0.1, 0.1))),
    Case("edit-unread", "actuator 'motor'", EDITED, edit("actuator_ctrlrange", 0, (-0.1, 0.1))),
    Case("edit-unread", "actuator 'motor'", EDITED, edit("actuator_forcerange", 0, (-0.1, 0.1))),
    Case("edit-unread", "actuator 'motor'", EDITED, edit("actuator_biasprm", (0, 1), -50.0)),
    Case("edit-unread", "actuator 'motor'", EDITED, edit("actuator_gainprm", (0, 1), -50.0)),
    Case("edit-unread", "actuator 'servo'", EDITED, edit("actuator_dynprm", (1, 0), 0.5)),
    Case("edit-mixed-out", "geom 'box'", EDITED, edit("geom_friction", (1, 0), 0.1)),
    Case("edit-mixed-out", "geom 'box'", EDITED, edit("geom_friction", (1, 2), 0.01)),
    Case("edit-mixed-out", "geom 'box'", EDITED, edit("geom_solmix", 1, 5.0)),
    Case("mass-without-inertia", "body 'box'", EDITED, edit("body_mass", 1, 2.0)),
    Case("inertia-impossible", "body 'link'", INERTIAL, edit("body_inertia", 1, (0.004, 0.004, 0.01))),
    Case("inertia-large", "body 'link'", INERTIAL, ((".01 .01 .01", ".1 .1 .1"),)),
    Case("inertia-small", "body 'link'", INERTIAL, ((".01 .01 .01", "1e-7 1e-7 1e-7"),)),
    Case("density", "body 'ball'", BALL, (('density="1000"', 'density="1e6"'),)),
    Case("density", "body 'ball'", BALL, (('density="1000"', 'density=".1"'),)),
    Case("centre-outside", "body 'link'", INERTIAL, (('pos="0 0 0"', 'pos="0 0 .2"'),)),
    Case("frame-off-centre", "body 'ball'", BALL, (('size=".1"', 'size=".02" pos=".1 0 0"'),)),
    Case(
        "mass-ratio",
        "body 'low'",
        TWO_BALLS,
        (('size=".1" density="1000"/></body>\n<body', 'size=".1" density=".5"/></body>\n<body'),),
    ),
    Case(
        "inertia-singular",
        "joint 'knee'",
        ARM,
        (
            ('name="lower" pos="0 0 -.5"', 'name="lower"'),
            ('fromto="0 0 0 0 0 -.5"/><site', 'fromto="0 0 0 0 0 -.5" mass="1e-9"/><site'),
        ),
    ),
    Case(
        "dofs-redundant",
        "joint 'knee'",
        ARM,
        (('<joint name="knee"', '<joint name="same" axis="0 1 0"/><joint name="knee"'),),
    ),
    Case("constants-stale", "body 'link'", INERTIAL, edit("body_mass", 1, 2.0)),
    Case("step-unstable", "actuator 'drive'", SERVO, (('kp="10"', 'kp="1e6"'),)),
    Case("step-unstable", "actuator 'drive'", SERVO, (('kv="2"', 'kv="1e3"'),)),
    Case(
        "step-unstable",
        "joint 'knee'",
        ARM,
        (('name="knee" axis="0 1 0"', 'name="knee" axis="0 1 0" stiffness="1e5"'),),
    ),
    Case("step-coarse", "joint 'pin'", ARM, (('stiffness="0"', 'stiffness="1.5e5"'),)),
    Case("servo-rings", "actuator 'drive'", SERVO, (('kv="2"', 'kv="0"'), ('damping="1"', 'damping="0"'))),
    Case("rate-negative", "joint 'knee'", ARM, (('range="-90 90" damping="1"/>', 'range="-90 90" damping="-1"/>'),)),
    Case(
        "rate-negative",
        "actuator 'drive'",
        SERVO,
        (("<position", "<general biastype='affine' biasprm='0 0 2'"), ('kp="10" kv="2"', "")),
    ),
    Case("row-unstable", "equality 'shut'", LOOP, (('body2="b"', 'body2="b" solref="-2e6 -10"'),)),
    Case("row-unstable", "geom 'skin'", BALL, (('name="skin"', 'name="skin" solref=".004 .2"'),)),
    Case("row-softer", "geom 'skin'", BALL, (('name="skin"', 'name="skin" solref=".001 1"'),)),
    Case("row-contradicts", "geom 'skin'", BALL, (('name="skin"', 'name="skin" solref="-100 1"'),)),
    Case("impedance-clipped", "geom 'skin'", BALL, (('name="skin"', 'name="skin" solimp=".95 .9 .001"'),)),
    Case("start-jumps", "joint 'knee'", SERVO, (('kp="10"', 'kp="1e5"'), ('qpos=".5 .5"', 'qpos="0 .5"'))),
    Case("overlap", "geom 'skin'", BALL, (('pos="0 0 .1"', 'pos="0 0 .05"'),)),
    Case("loop-open", "equality 'shut'", LOOP, (('body2="b"', 'body2="b" relpose=".9 0 0 1 0 0 0"'),)),
    Case("beyond-range", "joint 'knee'", ARM, (('qpos=".5 .5"', 'qpos=".5 2.5"'),)),
    Case("control-beyond-range", "actuator 'drive'", ARM, (('ctrl=".5"', 'ctrl="5"'),)),
    Case(
        "range-in-degrees",
        "joint 'pin'",
        ARM,
        (('name="pin" axis="0 1 0" range="-90 90"', 'name="pin" axis="0 1 0" range="-5156 5156"'),),
    ),
    Case(
        "range-in-degrees",
        "joint 'pin'",
        ARM,
        (('range="-90 90"', 'range="-1.57 1.57"'), ('qpos=".5 .5"', 'qpos="0 0"')),
    ),
    Case(
        "range-empty",
        "joint 'knee'",
        ARM,
        (('range="-90 90" damping="1"/>', 'range="0 1e-6"/>'), ('qpos=".5 .5"', 'qpos=".5 0"')),
    ),
    Case("falls-forever", "body 'ball'", BALL, (('<geom name="floor" type="plane" size="5 5 1"/>', ""),)),
    Case("falls-forever", "body 'ball'", BALL, (('name="floor"', 'contype="2" conaffinity="2"'),)),
    Case("actuator-idle", "actuator 'drive'", ARM, (('gear="1"', 'gear="0"'),)),
    Case("actuator-idle", "actuator 'drive'", LIMITED, edit("actuator_forcerange", 0, 0)),
    Case("actuator-idle", "actuator 'drive'", SERVO, (('kp="10" kv="2"', 'kp="0" kv="0"'),)),
    Case("actuator-idle", "actuator 'drive'", ARM, edit("actuator_ctrlrange", 0, 0)),
    Case("actuator-idle", "actuator 'drive'", LIMITED, edit("jnt_actfrcrange", 0, 0)),
    Case(
        "actuator-off",
        "actuator 'drive'",
        ARM,
        (('gear="1"', 'gear="1" group="1"'), ("<option", '<option actuatorgroupdisable="1"')),
    ),
    Case("actuator-violent", "actuator 'drive'", ARM, (('gear="1"', 'gear="1e5"'),)),
    Case("sensor-idle", "sensor 'felt'", TOUCH, (('<geom name="sole" size=".1"/>', '<body><geom size=".1"/></body>'),)),
    Case(
        "sensor-idle",
        "sensor 'speed'",
        ARM,
        (('<site name="tip" pos="0 0 -.5"/>', ""), ("<worldbody>", '<worldbody><site name="tip"/>')),
    ),
    Case("sensor-idle", "sensor 'gap'", APART, (('cutoff="2"', ""),)),
    Case("sensor-not-computed", "sensor 'mine'", ARM, (("<sensor>", '<sensor><user name="mine" dim="1"/>'),)),
    Case("mask-alone", "geom 'side'", APART, (('name="side"', 'name="side" contype="4" conaffinity="4"'),)),
    Case(
        "physics-off",
        "option contact",
        BALL,
        (
            ("<option", '<option gravity="0 0 0"'),
            ("<worldbody>", '<option><flag contact="disable"/></option><worldbody>'),
        ),
    ),
    Case(
        "friction-none",
        "geom 'skin'",
        BALL,
        (('name="skin"', 'name="skin" condim="6" friction="1 0 0"'), ('name="floor"', 'name="floor" friction="1 0 0"')),
    ),
    Case("friction-large", "geom 'skin'", BALL, (('name="skin"', 'name="skin" friction="50"'),)),
    Case("impratio", "option impratio", BALL, (("<option", '<option impratio="10"'),)),
    Case("contact-unyielding", "geom 'knob'", KNOB, (('pos="0 0 .01"', 'pos="0 0 0"'),)),
    Case("tunnels", "geom 'side'", APART, (('size=".05 .05 .05"', 'size=".05 .05 .001"'),)),
    Case(
        "far-from-origin", "geom 'skin'", BALL, (('pos="0 0 .1"', 'pos="4000 0 .1"'), ('size="5 5 1"', 'size="0 0 1"'))
    ),
    Case("gravity-unit", "option gravity", BALL, (("<option", '<option gravity="0 0 -9810"'),)),
    Case("pairs-many", "the model", crowd(3, 'size=".1"'), crowd(120, 'size=".1"')),
    Case(
        "pairs-convex", "the model", crowd(3, 'size=".1 .2" type="cylinder"'), crowd(20, 'size=".1 .2" type="cylinder"')
    ),
    Case("mesh-detailed", "geom 'skin'", sphere_mesh(100), sphere_mesh(1500)),
    Case("heights-many", "the model", crowd(60, 'size=".1"'), ((' contype="0" conaffinity="0"', ""),)),
    Case("inertia-dense", "body 'root'", chain(*[10] * (LINKS // 10)), chain(LINKS)),
    Case("rk4-contacts", "option integrator", BALL, (("<option", '<option integrator="RK4"'),)),
    Case("iterations-few", "option iterations", BALL, (("<option", '<option iterations="1"'),)),
    Case("option-unused", "option ccd_iterations", BALL, (("<option", '<option ccd_iterations="100"'),)),
    *(
        Case("unused-by-convex", "geom 'skin'", BALL, edit(f"geom_{name}", 1, value))
        for name, value in (
            ("restitution", 0.7),
            ("friction_static", 1.2),
            ("slip", (0, 0.1)),
            ("frictionforce", 1),
            ("cfm", 0.1),
            ("erp", 0.5),
            ("fdir", (1, 0, 0)),
        )
    ),
    Case("unused-by-convex", "joint 'knee'", ARM, edit("jnt_stop_bounce", 1, 0.5)),
    Case("unused-by-convex", "joint 'pin'", ARM, edit("jnt_motor_force", 0, 2.0)),
    Case("unused-by-convex", "option erp", ARM, edit("opt_erp", ..., 0.5)),
    Case("unused-by-convex", "option lcp_solver", ARM, lambda m: setattr(m.opt, "lcp_solver", "pgs")),
    Case("unused-by-convex", "geom 'skin'", BALL, lambda m: (coulomb(m), edit("geom_slip", 1, (0, 0.1))(m))),
    Case("unused-by-lcp", "geom 'skin'", BALL, lambda m: (hard(m), edit("geom_solref", 1, (0.1, 1))(m))),
    Case("unused-by-lcp", "joint 'knee'", ARM, lambda m: (hard(m), edit("jnt_solimp", (1, 1), 0.9)(m))),
    Case("unused-by-lcp", "option cone", BALL, lambda m: (hard(m), setattr(m.opt, "cone", "elliptic"))),
    Case("unused-by-lcp", "geom 'skin'", BALL, lambda m: (hard(m, "solref"), edit("geom_erp", 1, 0.5)(m))),
    Case("sleep", "option sleep", BALL, (("<worldbody>", '<option><flag sleep="enable"/></option><worldbody>'),)),
    Case(
        "autoreset-off",
        "option autoreset",
        BALL,
        (("<worldbody>", '<option><flag autoreset="disable"/></option><worldbody>'),),
    ),
    Case(
        "not-computed",
        "option flag",
        BALL,
        (("<worldbody>", '<option integrator="RK4"><flag sleep="enable"/></option><worldbody>'),),
    ),
    Case("impossible-number", "body_mass of body 'ball'", BALL, edit("body_mass", 1, -1)),
    Case("function-missing", "actuator 'drive'", ARM, (("<motor", "<general gaintype='user'"),)),
    Case("trial-bad", "the model", SERVO, (('kp="10"', 'kp="1e6"'), ('kv="2"', 'kv="0"'))),
    Case(
        "trial-not-converged",
        "option iterations",
        TWO_BALLS,
        (("<worldbody>", '<option iterations="1" solver="PGS"/><worldbody>'),),
    ),
]


def faulty(case: Case):
    """Returns the model with the fault."""
    if callable(case.changes):
        model = fl.load(case.healthy)
        case.changes(model)
        return model
    if isinstance(case.changes, str):
        return case.changes
    text = case.healthy
    for old, new in case.changes:
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("case", CASES, ids=[f"{case.check}-{case.element}" for case in CASES])
@pytest.mark.filterwarnings("ignore:body_inertia of body 'link'")
def test_a_check_fires_on_the_faulty_model_only(case):
    found = fl.diagnose(faulty(case), [case.check])
    assert case.element in [finding.element for finding in found]
    assert all(finding.check == case.check and finding.seen and finding.advice for finding in found)
    assert fl.diagnose(case.healthy, [case.check]) == []


UNUSED = {
    "convex": [(name, "unused-by-convex") for name in LCP_ONLY],
    "erp": [(name, "unused-by-lcp") for name in (*(f"opt_{name}" for name in CONVEX_OPTIONS), *SOFT)],
    "solref": [(name, "unused-by-lcp") for name in BY_ERP],
}
# names and switches, and values that differ from every default
VALUES = {"opt_lcp_solver": "apgd", "opt_lcp_friction": "consistent", "opt_lcp_cone": "cone", "opt_softness": "solref",
          "opt_solver": "cg", "opt_cone": "elliptic", "geom_frictionforce": 1, "opt_lcp_iterations": 7,
          "opt_iterations": 7, "opt_ls_iterations": 7}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "name", "check"), [(model, *case) for model, cases in UNUSED.items() for case in cases]
)
def test_removing_elements_reported_without_effect_keeps_the_motion_bitwise_equal(model, name, check):
    """A ball slides, a joint is at its stop, an equality is violated."""
    moved = fl.load(UNREAD)
    if model != "convex":
        hard(moved, model)
    motions = []
    for changed in (False, True):
        if changed:
            other = 0.4 if name.startswith("opt_") else np.full(np.shape(getattr(moved, name)), 0.4)
            setattr(moved, name, VALUES.get(name, other))
        data = fl.Data(moved)
        data.qpos[7:], data.qvel[:3] = (0.7, 0.2, 0.1), (1, 0.5, -1)
        fl.step(moved, data, 20)
        motions.append(data.qpos.tobytes() + data.qvel.tobytes())
        assert bool([f for f in fl.diagnose(moved, [check]) if name.partition("_")[2] in str(f)]) == changed
    assert motions[0] == motions[1]


def test_edits_with_an_effect_are_no_findings():
    """In a world of a batch, in which the same fields of other elements, or larger values, act."""
    batch = fl.Batch(fl.load(EDITED), 2)
    acting = [("jnt_range", 2, (-0.1, 0.1)), ("actuator_ctrlrange", 1, (-0.1, 0.1)), ("actuator_gainprm", (0, 0), 2.0)]
    acting += [("actuator_biasprm", (1, 1), -9.0), ("geom_friction", (1, 0), 2.0)]
    acting += [("geom_solref", (1, 0), 0.05), ("body_mass", 3, 2.0)]  # the cart only slides
    for name, at, value in acting:
        batch.expand(name)[(1, *np.atleast_1d(at))] = value
    for name in ("body_mass", "body_inertia"):
        batch.expand(name)[1, 1] *= 1.5
    batch.set_const()
    checks = ["edit-unread", "edit-mixed-out", "mass-without-inertia"]
    assert fl.diagnose(batch.get_model(1), checks) == []
    batch.expand("jnt_range")[1, 1] = (-0.2, 0.2)
    (finding,) = fl.diagnose(batch.get_model(1), checks)
    assert finding.element == "joint 'hinge'" and fl.diagnose(batch.get_model(0), checks) == []


def test_every_check_has_a_case():
    elsewhere = {"start-bad", "trial-full", "urdf-dropped", "urdf-repaired", "urdf-fused", "numbers-overflow"}
    elsewhere |= {"trial-sinks", "trial-loop-opens", "trial-restless", "trial-energy"}  # test_trials.py
    assert {case.check for case in CASES} | elsewhere == set(all_checks())


def test_a_start_with_a_non_finite_acceleration_is_an_error():
    model = fl.load(ARM)
    model.body_mass[1:], model.body_inertia[1:] = 0, 0
    assert {finding.severity for finding in fl.diagnose(model, ["start-bad"])} == {"error"}


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_a_check_whose_numbers_overflow_is_a_finding(integrator):
    model = fl.load(SERVO)
    model.opt.timestep, model.opt.integrator = 1e300, integrator
    found = fl.diagnose(model, ["step-unstable", "row-unstable"])
    assert {finding.check for finding in found} >= {"numbers-overflow"}
    assert any(finding.seen.startswith("step-unstable: ") for finding in found)


def test_a_full_buffer_in_the_trial_is_a_warning(monkeypatch):
    counts = dict.fromkeys(
        ("contacts_full", "rows_full", "non_finite", "not_converged", "bad_control", "singular_inertia"), 0
    )
    monkeypatch.setattr(ExaminedModel, "trials", [Trial("qpos0", -1, counts | {"rows_full": 7}, np.inf)])
    (finding,) = fl.diagnose(ARM, ["trial-full"])
    assert finding.seen == "rows_full in 7 of 500 steps from qpos0"


def test_unread_urdf_elements_are_warnings():
    text = '<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"'
    text += ' iyz="0"/></inertial></link><transmission name="lost"/></robot>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fl.diagnose(text, ["urdf-dropped"])
    assert len(found) == 1 and "transmission" in found[0].seen


def test_contacts_within_the_step_are_no_overlaps():
    key = '<keyframe><key qpos="0 0 3 1 0 0 0" qvel="0 0 -4000 0 0 0"/></keyframe></mujoco>'
    swept = BALL.replace("<worldbody>", '<option><flag speculative="enable"/></option><worldbody>')
    assert fl.diagnose(swept.replace("</mujoco>", key), ["overlap"]) == []


def test_small_geoms_do_not_tunnel_with_the_flag_speculative():
    thin = APART.replace('size=".05 .05 .05"', 'size=".05 .05 .001"')
    swept = thin.replace("<worldbody>", '<option><flag speculative="enable"/></option><worldbody>', 1)
    assert fl.diagnose(thin, ["tunnels"]) and not fl.diagnose(swept, ["tunnels"])


def test_the_reasons_of_a_refused_model_are_findings():
    refused = BALL.replace("<worldbody>", '<option integrator="RK4"><flag sleep="enable"/></option><worldbody>')
    (finding,) = fl.diagnose(refused)
    assert (finding.check, finding.severity) == ("not-computed", "error") and "sleep" in finding.seen


@pytest.mark.parametrize("name", [in_ci(name) if name == "chain" else name for name in fl.bundled_names()])
def test_bundled_models_have_nothing_worse_than_notes(name):
    assert not [finding for finding in fl.diagnose(name) if finding.severity != "note"]


def test_findings_are_sorted_by_severity_and_the_model_is_unchanged():
    model = fl.load(faulty(next(case for case in CASES if case.check == "trial-bad")))
    before = model.real_buffer.copy(), dict(model.size_values())
    ranks = [SEVERITIES.index(finding.severity) for finding in fl.diagnose(model)]
    assert ranks and ranks == sorted(ranks)
    assert np.array_equal(before[0], model.real_buffer) and before[1] == model.size_values()


def test_an_unknown_check_is_refused():
    with pytest.raises(fl.ModelError):
        fl.diagnose(BALL, ["overlaps"])


def test_a_text_with_an_impossible_number_is_a_finding():
    text = '<mujoco><worldbody><body><joint name="j" frictionloss="-1"/><geom size=".1"/></body></worldbody></mujoco>'
    found = fl.diagnose(text)
    assert [each.severity for each in found] == ["error"] and "dof_frictionloss[0] of joint 'j'" in str(found[0])
