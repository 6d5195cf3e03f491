"""Each threshold is as in docs/diagnostics.md: a value slightly below passes, slightly above is reported."""

import pytest

import featherlane as fl
from featherlane.apps.doctor.examined_model import ExaminedModel
from scenes.faulty_models import APART, ARM, BALL, INERTIAL, LOOP, SERVO, TWO_BALLS

# check, model, text replaced by the value in the last two: passes, reported
LIMITS = (
    ("density", BALL, '"1000"', '"24900"', '"25100"'),
    ("density", BALL, '"1000"', '"1.01"', '".99"'),
    ("inertia-large", INERTIAL, ".01 .01 .01", ".026 .026 .026", ".027 .027 .027"),  # 1.5 I = m (2 R)^2, R = 0.1 m
    ("inertia-small", INERTIAL, ".01 .01 .01", "7e-7 7e-7 7e-7", "6e-7 6e-7 6e-7"),  # 1.5 I = m (R / 100)^2
    ("mass-ratio", TWO_BALLS, '"1000"/></body>\n<body', '"1.01"/></body>\n<body', '".99"/></body>\n<body'),
    ("overlap", BALL, 'pos="0 0 .1"', 'pos="0 0 .091"', 'pos="0 0 .089"'),
    ("beyond-range", ARM, 'qpos=".5 .5"', 'qpos=".5 1.72"', 'qpos=".5 1.74"'),  # 1.571 and 5 % of 3.142
    ("range-in-degrees", ARM, 'range="-90 90"', 'range="-719 90"', 'range="-721 90"'),
    ("tunnels", APART, ".05 .05 .05", ".05 .05 .00201", ".05 .05 .00199"),  # in steps of 2 ms
    ("far-from-origin", BALL, 'pos="0 0 .1"', 'pos="830 0 .1"', 'pos="850 0 .1"'),  # 2^-23 x = 1e-4 m
    ("gravity-unit", BALL, "<option", '<option gravity="0 0 -99"', '<option gravity="0 0 -101"'),
    ("friction-large", BALL, 'name="skin"', 'name="skin" friction="9.9"', 'name="skin" friction="10.1"'),
    ("impratio", BALL, "<option", '<option cone="elliptic" impratio="99"', '<option cone="elliptic" impratio="101"'),
    ("iterations-few", BALL, "<option", '<option iterations="10"', '<option iterations="9"'),
    ("row-unstable", BALL, 'name="skin"', 'name="skin" solref=".004 .36"', 'name="skin" solref=".004 .35"'),
    ("row-unstable", BALL, 'name="skin"', 'name="skin" solref="-4e5 -600"', 'name="skin" solref="-4.1e5 -600"'),
    ("row-softer", BALL, 'name="skin"', 'name="skin" solref=".004 1"', 'name="skin" solref=".0039 1"'),
)  # fmt: skip


@pytest.mark.parametrize("check, model, old, silent, found", LIMITS, ids=[f"{c[0]}-{c[4]}" for c in LIMITS])
def test_thresholds_equal_the_documented_ones(check, model, old, silent, found):
    assert not fl.diagnose(model.replace(old, silent), [check])
    assert fl.diagnose(model.replace(old, found), [check])


@pytest.mark.parametrize("ratio", [0.09, 0.11])
def test_a_servo_below_a_damping_ratio_of_0_1_is_reported(ratio):
    free = SERVO.replace('damping="1"', "")
    (finding,) = fl.diagnose(free.replace('kv="2"', 'kv="0"'), ["servo-rings"])
    critical = float(finding.advice.rpartition("kv ")[2])  # of a damping ratio of 1
    assert bool(fl.diagnose(free.replace('kv="2"', f'kv="{ratio * critical}"'), ["servo-rings"])) == (ratio < 0.1)


@pytest.mark.parametrize("part", [0.009, 0.011])
def test_a_loop_open_by_1_percent_of_the_body_size_is_reported(part):
    size = ExaminedModel(fl.load(LOOP)).size
    text = LOOP.replace('body2="b"', f'body2="b" relpose="{1 + part * size} 0 0 1 0 0 0"')
    assert bool(fl.diagnose(text, ["loop-open"])) == (part > 0.01)


def test_a_motor_is_reported_by_its_first_step_from_rest():
    """h^2 F / (I + h d) is the position after one step of Euler with implicit damping."""
    for gear in (3e3, 3e4):
        model = fl.load(ARM.replace('gear="1"', f'gear="{gear}"'))
        model.opt.gravity = (0, 0, 0)
        data = fl.Data(model)
        data.ctrl[:] = 1.0
        fl.step(model, data)
        assert bool(fl.diagnose(model, ["actuator-violent"])) == (abs(data.qpos).max() > 0.1)
