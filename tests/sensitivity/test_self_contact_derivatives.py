"""Derivatives where two bodies of one tree touch: DoFs that move both bodies turn the tangents of their contact.

Tangents follow the world's axes.  So a rotation of both bodies changes the friction of a pyramid, and of a cone with
unequal coefficients.
"""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from fuzz.columns import Columns
from fuzz.derivatives import check_accelerations, check_inverse, check_rollout, check_steps

# the base turns about two axes, or about three; its child and a grandchild touch, and so do both children
TREE = """<mujoco><option timestep=".002"/><worldbody><body>{base}<geom size=".08" contype="0" conaffinity="0"/>
  <body name="left" pos=".075 -.186 -.096"><joint axis="0 1 .2"/><geom name="left" type="capsule" size=".13 .12"
    quat=".775 .195 -.31 .513" condim="{condim}"/><site name="here" pos=".1 0 0"/></body>
  <body pos=".17 -.21 .17"><joint axis="1 0 0"/><geom name="right" size=".1475" condim="{condim}"/>
    <body pos=".13 .06 -.29"><joint axis="0 .3 1"/><geom name="far" size=".11" condim="{condim}"/></body></body>
</body></worldbody>{pairs}<sensor><accelerometer site="here"/><torque site="here"/></sensor></mujoco>"""
PAIRS = """<contact><pair geom1="left" geom2="right" condim="{0}" friction=".9 .3 .02 .004 .001"/>
<pair geom1="left" geom2="far" condim="{0}" friction=".2 .7 .02 .004 .001"/></contact>"""
BASES = {
    "hinges": '<joint axis="0 .3 1"/><joint axis="1 0 0"/>',
    "ball": '<joint type="ball"/>',
    "free": "<freejoint/>",
}
LAWS = {
    "pyramidal": {"cone": "pyramidal"},
    "elliptic": {"cone": "elliptic"},
    "coulomb": {"contact_model": "coulomb", "tolerance": 1e-14, "iterations": 300},
    "noslip": {"cone": "pyramidal", "noslip_iterations": 4, "noslip_tolerance": 0.0},
    "noslip with cones": {"cone": "elliptic", "noslip_iterations": 4, "noslip_tolerance": 0.0},
    "lcp": {"contact_model": "lcp", "cfm": 1e-3},
    "discrete": {"cone": "pyramidal", "integrator": "discrete"},
    "implicit": {"cone": "pyramidal", "integrator": "implicit"},
    "rk4": {"cone": "pyramidal", "integrator": "rk4"},
}


def scene(law: str, condim: int, unequal: bool, base: str = "hinges") -> tuple[fl.Model, fl.Data, fl.Data]:
    """Returns model, a state in which bodies of the tree slide on each other, and the state after a step."""
    model = fl.load(TREE.format(base=BASES[base], condim=condim, pairs=PAIRS.format(condim) if unequal else ""))
    model.opt.tolerance, model.opt.iterations = 0.0, 200
    for name, value in LAWS[law].items():
        setattr(model.opt, name, value)
    data = fl.Data(model)
    data.qvel = 0.6 * np.sin(1.0 + np.arange(model.nv))
    fl.step(model, data, 3)
    probe = data.copy()
    fl.step(model, probe)
    assert probe.ncon >= 2
    return model, data, probe


@pytest.mark.ci
@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("law", ["pyramidal", "elliptic", "coulomb", "noslip", "lcp"])
def test_all_derivatives_of_touching_siblings_equal_differences(law, condim, unequal, rng):
    model, data, probe = scene(law, condim, unequal)
    columns = Columns()
    check_steps(model, data, probe, columns)
    check_accelerations(model, data, probe, columns)
    check_inverse(model, data, columns)
    check_rollout(model, data, columns, rng)
    assert columns.compared > 4 * columns.skipped


@pytest.mark.ci
@pytest.mark.parametrize("law", ["noslip with cones", "discrete", "implicit", "rk4"])
@pytest.mark.parametrize("base", BASES)
def test_derivatives_of_steps_by_other_integrators_equal_differences(law, base):
    model, data, probe = scene(law, 3, True, base)
    columns = Columns()
    check_steps(model, data, probe, columns)
    assert columns.compared > 4 * columns.skipped


TURNED = """<mujoco><worldbody><body><joint axis="0 0 1"/><geom size=".08" contype="0" conaffinity="0" mass="1"/>
<body pos=".075 -.186 -.096"><joint/><geom type="capsule" size=".13 .12" quat=".775 .195 -.31 .513"/></body>
<body pos=".17 -.21 .17"><joint/><geom size=".1475"/></body></body></worldbody></mujoco>"""


def test_a_turn_of_the_whole_scene_changes_the_friction_of_a_pyramid_but_not_of_an_isotropic_cone():
    """The first hinge is vertical: its angle turns everything but the world's axes."""
    model, turned = fl.load(TURNED), {}
    model.opt.tolerance = 0.0
    for cone in ("pyramidal", "elliptic"):
        model.opt.cone = cone
        data = fl.Data(model)
        data.qvel[:] = 0.1, -0.1, 0.6
        data.step(12)
        turned[cone] = np.abs(fl.linearize(model, data).A[model.nv :, 0]).max()
    assert turned["elliptic"] < 1e-9
    assert turned["pyramidal"] > 0.1


def test_one_world_and_a_batch_of_self_contacts_have_equal_bits():
    model, data, _ = scene("pyramidal", 6, True, "free")
    batch = fl.Batch(model, 9)
    rng = np.random.default_rng(5)
    batch.qpos[...], batch.qvel[...] = data.qpos, data.qvel + 0.1 * rng.standard_normal((9, model.nv))
    batch.qpos[4, :3] += 5.0
    together = fl.linearize(model, batch)
    for w in range(9):
        assert fl.linearize(model, batch.get_data(w)).A.tobytes() == together.A[w].tobytes()
