"""Springs, dampers and gravity compensation against MuJoCo: polynomials on every kind of joint, under every flag."""

from __future__ import annotations

import mujoco
import pytest

import featherlane as fl
from featherlane.engine.dynamics.passive.forces import passive
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth

ORACLE = 1e-11  # relative: sums in a different order, and a quaternion's logarithm
FIELDS = ("qfrc_spring", "qfrc_damper", "qfrc_gravcomp", "qfrc_passive")
XML = """
<mujoco><option timestep=".01"><flag {flags}/></option><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body gravcomp=".3"><joint name="free" type="free" stiffness="3 -1 .5" damping=".3 .2 .1"/>
    <geom type="box" size=".1 .2 .3" pos=".02 .01 0"/>
    <body gravcomp="1.5"><joint name="ball" type="ball" stiffness="-2 1 .5" damping="-.1 .2 .05"/>
      <geom type="box" size=".1 .2 .1" pos=".2 0 0"/>
      <body pos=".3 0 0"><joint name="slide" type="slide" axis="1 1 0" stiffness="0 3 -.5" damping="0 .2 .3"
          springref=".1" actuatorgravcomp="true"/>
        <joint name="hinge" axis="0 1 1" stiffness="0 0 2" damping="0 0 .5" springref="20"/>
        <joint name="plain" axis="1 0 0"/>
        <geom type="capsule" size=".05 .1" pos="0 .1 0"/></body></body></body>
</worldbody><actuator><motor joint="slide" damping=".3 .1 .2" gear="2"/></actuator></mujoco>
"""
FLAGS = (
    "",
    'spring="disable"',
    'damper="disable"',
    'gravity="disable"',
    'spring="disable" damper="disable"',
)


@pytest.mark.covers("passive force", lambda: [XML.format(flags="")])
@pytest.mark.parametrize("width", smooth.WIDTHS)
@pytest.mark.parametrize("flags", FLAGS)
def test_passive_forces_equal_mujoco(rng, flags, width):
    model = fl.load(XML.format(flags=flags))
    mj, tile = model.to_mujoco(), Workspace(model, width)
    states = [smooth.random_state(model, rng) for _ in range(width)]
    for k, state in enumerate(states):
        smooth.fill(tile, k, **state)
    smooth.forward(tile)
    tile.run(passive)
    for k, state in enumerate(states):
        data = mujoco.MjData(mj)
        for name, value in state.items():
            getattr(data, name)[...] = value
        mujoco.mj_forward(mj, data)
        for name in FIELDS:
            assert smooth.relative(tile.arrays[name][: model.nv, k], getattr(data, name)) < ORACLE, name
    assert data.qfrc_gravcomp.any() == ("gravity" not in flags and flags.count("disable") < 2)
