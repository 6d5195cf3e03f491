"""Moving surfaces of resting geoms: against MuJoCo, and the motion of a box on a belt."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth

EXACT = 1e-9  # relative: both solvers converge to rounding, the gradient near 1e-13
BELT = """
<mujoco>
  <option cone="{cone}" tolerance="0"/>
  <default><geom condim="{dim}" friction="1 .02 .003"/></default>
  <worldbody>
    <geom type="plane" size="5 5 .1" surfacevel="1 .2 .5 .3 .1 2"/>
    <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" surfacevel=".2 1 -.5 .3 -.1 .4"/></body>
    <body pos=".05 0 .295"><freejoint/><geom size=".1" surfacevel="0 0 0 1 2 3"/></body>
    <body pos="1 0 .1"><freejoint/><geom type="capsule" size=".1 .2" euler="90 20 0"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("dim", [3, 4, 6])
def test_accelerations_and_rows_equal_mujoco(dim, cone, rng):
    model = fl.load(BELT.format(dim=dim, cone=cone))
    mj, tile = model.to_mujoco(), Workspace(model, 8)
    met = []
    for lane in range(8):
        qpos = model.qpos0 + 0.005 * rng.standard_normal(model.nq)
        met.append({"qpos": fl.normalize_quat(model, qpos), "qvel": 0.3 * rng.standard_normal(model.nv)})
        smooth.fill(tile, lane, **met[-1])
    tile.run(forward)
    for lane, state in enumerate(met):
        expected, alone = mujoco.MjData(mj), fl.Data(model)
        for data in (expected, alone):
            data.qpos[:], data.qvel[:] = state["qpos"], state["qvel"]
        mujoco.mj_forward(mj, expected)
        fl.forward(model, alone)
        assert expected.ncon > 0
        assert smooth.relative(tile.arrays["qacc"][:, lane], expected.qacc) < EXACT
        assert tile.arrays["qacc"][:, lane].tobytes() == alone.qacc.tobytes()
        for name in ("efc_vel", "efc_aref"):
            assert smooth.relative(getattr(alone, name), getattr(expected, name)) < EXACT, name


def test_a_moving_surface_transports_a_box():
    """Once friction has acted long enough, 0.5 m/s at 0.5 g, its speed is the belt's, which no dof has."""
    model = fl.load(
        '<mujoco><worldbody><geom type="plane" size="9 9 1" surfacevel=".5 0 0 0 0 0" friction=".5"/>'
        '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" friction=".5"/></body></worldbody></mujoco>'
    )
    data = fl.Data(model)
    fl.step(model, data, 200)
    assert data.qvel[0] == pytest.approx(0.5, abs=2e-3)  # error from soft friction
    assert np.abs(data.qvel[1:]).max() < 1e-2
    assert data.time == pytest.approx(0.4)
