"""Equality constraints in inverse kinematics: against closed forms, MuJoCo's constraint rows and finite differences."""

from __future__ import annotations

import functools

import mujoco
import numpy as np
import pytest

import featherlane as fl
from bits.queries import FASTENED
from featherlane.results import IkStatus
from oracles.ik_gradient import gradient

TOLERANCE = {"float64": 1e-6, "float32": 1e-4}  # defaults of `fl.ik` [m, rad]
FLAT = {"float64": 1e-4, "float32": 1e-2}  # distance from a minimum at which the gradient counts as zero [rad]
# two links of 0.3 m, the second joint coupled to the first by k = -j: the tip moves on a circle about (0.3, 0, 0)
MIMIC = """
<mujoco><compiler angle="radian"/>
  <worldbody>
    <body name="a"><joint name="j" axis="0 0 1"/><geom size=".02"/>
      <body name="b" pos=".3 0 0"><joint name="k" axis="0 0 1" range="-2.5 2.5"/><geom size=".02"/>
        <site name="tip" pos=".3 0 0"/></body></body>
    <body name="other" pos="0 1 0"><joint name="other" axis="0 0 1"/><geom size=".02"/></body>
  </worldbody>
  <equality><joint joint1="k" joint2="j" polycoef="0 -1 0 0 0"/></equality>
</mujoco>"""
KINDS = ["polynomial", "constant", "connect", "connect of sites", "weld", "weld of sites", "fixed tendon", "tendons"]
ANGLES = (0,)  # constraints of FASTENED whose error is an angle alone


@functools.cache
def only(*kept: int) -> fl.Model:
    """Returns the scene with some of its constraints."""
    spec = mujoco.MjSpec.from_string(FASTENED)
    for k, equality in reversed(list(enumerate(spec.equalities))):
        if k not in kept:
            spec.delete(equality)
    return fl.load(spec.compile())


def positions(model: fl.Model, size: float = 0.3) -> np.ndarray:
    """Returns a random position."""
    return fl.integrate_pos(model, model.qpos0, size * np.random.default_rng(5).standard_normal(model.nv), 1.0)


def rows(model: fl.Model, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns MuJoCo's errors (n,) and Jacobian (n, nv) of the equality rows in a position."""
    data = mujoco.MjData(model.mj_model)
    data.qpos = qpos
    mujoco.mj_forward(model.mj_model, data)
    jacobian = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model.mj_model):
        mujoco.mju_sparse2dense(jacobian, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        jacobian[:] = data.efc_J.reshape(data.nefc, model.nv)
    some = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    return data.efc_pos[some], jacobian[some]


# ---- a coupled joint -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_coupled_joints_meet_their_coupling(dtype):
    batch, near = fl.Batch(fl.load(MIMIC), 3, dtype=dtype), TOLERANCE[dtype]
    batch.qpos = [0.3, 0.2, 0.7]
    reach, beyond = (0.3 * np.cos(0.8) + 0.3, 0.3 * np.sin(0.8), 0), (0.1, 0.4, 0)
    found = fl.ik(batch, fl.IkTarget(("site", "tip"), position=[reach, beyond, reach]), restarts=2)
    assert found.status.tolist() == [IkStatus.REACHED, IkStatus.STATIONARY, IkStatus.REACHED]
    assert np.abs(found.qpos[[0, 2], :2] - (0.8, -0.8)).max() < 10 * near
    # the nearest point of the circle, not a compromise between the target and the coupling
    angle = np.arctan2(0.4, -0.2)
    assert np.abs(found.qpos[1, :2] - (angle, -angle)).max() < FLAT[dtype]
    assert np.abs(found.position_error[1] - (np.hypot(0.2, 0.4) - 0.3)).max() < near
    coupling = np.abs(found.qpos[:, 0] + found.qpos[:, 1])
    assert (coupling <= near).all() and np.abs(found.equality_error[:, 0, 1] - coupling).max() <= 0.1 * near
    assert (found.equality_error[:, 0, 0] == 0).all() and (found.qpos[:, 2] == batch.qpos[:, 2]).all()


def test_constraints_that_are_not_active_or_disabled_have_no_effect():
    model = fl.load(MIMIC)
    free = fl.load(MIMIC.replace("<equality>", '<equality><joint joint1="other" joint2="j" active="false"/>'))
    batch, other = fl.Batch(model, 3), fl.Batch(free, 3)
    target = fl.IkTarget(("site", "tip"), position=(0.1, 0.4, 0))
    batch.eq_active[1] = 0
    other.eq_active[:, 1] = batch.eq_active[:, 0]
    found, same = fl.ik(batch, target, restarts=2), fl.ik(other, target, restarts=2)
    assert found.status.tolist() == [IkStatus.STATIONARY, IkStatus.REACHED, IkStatus.STATIONARY]
    assert (found.equality_error[1] == 0).all() and abs(found.qpos[1, :2].sum()) > 0.1
    assert found.qpos.tobytes() == same.qpos.tobytes()
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    disabled = fl.ik(fl.Batch(model, 1), target, restarts=2)
    assert disabled.status[0] == IkStatus.REACHED and disabled.qpos[0].tobytes() == found.qpos[1].tobytes()


def test_chosen_dofs_keep_the_coupling():
    batch = fl.Batch(fl.load(MIMIC), 1)
    batch.qpos = [0.8, -0.8, 0.0]
    target = fl.IkTarget(("site", "tip"), position=(0.3 * np.cos(0.5) + 0.3, 0.3 * np.sin(0.5), 0))
    held = fl.ik(batch, target, dofs=["j"])
    assert held.status[0] == IkStatus.STATIONARY and np.abs(held.qpos[0] - batch.qpos[0]).max() < 1e-5
    both = fl.ik(batch, target, dofs=["k", "j"])
    assert both.status[0] == IkStatus.REACHED and np.abs(both.qpos[0] - (0.5, -0.5, 0)).max() < 1e-5


def test_a_target_that_only_the_coupled_joint_moves_moves_both():
    model = fl.load(MIMIC.replace('joint1="k" joint2="j"', 'joint1="other" joint2="j"'))
    found = fl.ik(fl.Batch(model, 1), fl.IkTarget("other", orientation=(np.cos(0.2), 0, 0, np.sin(0.2))))
    assert found.status[0] == IkStatus.REACHED and np.abs(found.qpos[0] - (-0.4, 0, 0.4)).max() < 1e-5


def test_limits_hold_for_coupled_joints():
    target = fl.IkTarget(("site", "tip"), position=(0.3 + 0.3 * np.cos(2.8), 0.1, 0))
    found = fl.ik(fl.Batch(fl.load(MIMIC), 1), target, restarts=3)
    assert found.status[0] == IkStatus.STATIONARY
    assert -2.5 <= found.qpos[0, 1] <= 2.5 and abs(found.qpos[0, :2].sum()) <= 1e-6


# ---- every kind ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kept", range(len(KINDS)), ids=KINDS)
def test_gradient_of_constraints_is_that_of_finite_differences(kept):
    model, h = only(kept), 1e-6
    target = fl.IkTarget(("site", "tip"), position=(0.4, 0.2, 0.5))
    qpos = positions(model)
    _, g, _ = gradient(model, target, qpos)
    for dof in range(model.nv):
        costs = [
            gradient(model, target, fl.integrate_pos(model, qpos, s * np.eye(model.nv)[dof], h))[0] for s in (1.0, -1.0)
        ]
        assert abs((costs[1] - costs[0]) / (2 * h) - g[dof]) < 1e-8 * (1 + np.abs(g).max())


@pytest.mark.parametrize("kept", range(len(KINDS)), ids=KINDS)
def test_constraints_are_met_in_mujoco(kept):
    model = only(kept)
    batch = fl.Batch(model, 2)
    batch.qpos = positions(model)
    start = np.abs(rows(model, batch.qpos[0])[0]).max()
    place = batch.get_data(0).site("tip").xpos + (0.02, -0.03, 0.02)
    found = fl.ik(batch, fl.IkTarget(("site", "tip"), position=place))
    assert start > 1e-3 and (found.status == IkStatus.REACHED).all()
    error, jacobian = rows(model, found.qpos[0])
    assert 0 < np.abs(error).max() <= 1e-6
    side = 1 if kept in ANGLES else 0
    assert abs(np.linalg.norm(error[:3]) - found.equality_error[0, 0, side]) < 1e-9
    # J^T J of the constraint: a weld's rotation has the factor torquescale / 2
    factor = np.ones(len(error))
    factor[3:] = 2.0 / (model.eq_data[0, 10] or 1.0)
    A = gradient(model, fl.IkTarget("base", orientation=(1, 0, 0, 0)), found.qpos[0])[2]
    A[3:6, 3:6] -= np.eye(3)
    assert np.allclose(A, (factor[:, None] * jacobian).T @ (factor[:, None] * jacobian), atol=1e-5)


def test_all_constraints_of_a_loop_are_met_at_once():
    model = only(0, 2, 4, 7)
    batch = fl.Batch(model, 4)
    batch.qpos[:] = [fl.integrate_pos(model, positions(model), k * np.ones(model.nv), 0.03) for k in range(4)]
    found = fl.ik(batch, fl.IkTarget(("site", "tip"), position=(0.4, 0.1, 0.3)), restarts=5)
    assert (found.status == IkStatus.REACHED).all()
    assert max(np.abs(rows(model, qpos)[0]).max() for qpos in found.qpos) <= 1e-6
    alone = fl.ik(batch, fl.IkTarget(("site", "tip"), position=(0.4, 0.1, 0.3)), ids=[2], restarts=5)
    assert alone.qpos.tobytes() == found.qpos[[2]].tobytes()


def test_constraints_that_cannot_be_met_have_a_status():
    model = only(3, 5)
    batch = fl.Batch(model, 2)
    batch.expand("site_pos")[1, model.site("post").id] = (0.3, 0.1, 0.3)
    target = fl.IkTarget(("site", "palm"), position=(0.3, 0.1, 0.3))
    found = fl.ik(batch, target, restarts=3)
    # the weld holds the palm at the post, which is at the target in the second world
    assert found.status.tolist() == [IkStatus.STATIONARY, IkStatus.REACHED]
    assert found.equality_error[0].max() < 1e-6
    apart = np.linalg.norm(np.subtract((0.1, 0.5, 0.3), (0.3, 0.1, 0.3)))
    assert found.position_error[0, 0] == pytest.approx(apart, abs=1e-5)


def test_a_weld_without_torquescale_holds_positions_alone():
    model = only(4)
    batch = fl.Batch(model, 2)
    batch.expand("eq_data")[1, 0, 10] = 0.0
    batch.qpos = positions(model)
    found = fl.ik(batch, fl.IkTarget(("site", "palm"), position=(0.2, 0.2, 0.3)))
    assert (found.status == IkStatus.REACHED).all() and found.equality_error[1, 0, 1] == 0
    turned = fl.load(batch.get_model(1).to_mujoco())
    turned.mj_model.eq_data[0, 10] = 1.0
    assert [np.abs(rows(model, q)[0][3:]).max() < 1e-6 for q in found.qpos] == [True, False]
