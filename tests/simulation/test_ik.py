"""Inverse kinematics: against MuJoCo's forward kinematics, finite differences and the same method in NumPy."""

from __future__ import annotations

import functools

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.results import IkStatus
from oracles.ik import SiteIk
from oracles.ik_gradient import gradient

TOLERANCE = 1e-6  # default of `fl.ik` in float64 [m, rad]
# all joint types, a branch that moves no target, and limits that are met
SCENE = """
<mujoco><compiler angle="radian"/>
  <worldbody><site name="post" pos="0 0 1"/>
    <body name="base" pos="0 0 .2"><freejoint name="base"/><geom size=".1"/>
      <body name="upper" pos="0 0 .1"><joint name="shoulder" type="ball" range="0 1.2" limited="true" pos="0 0 .02"/>
        <geom name="upper" type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
        <body name="lower" pos=".3 0 0" quat=".9 .1 -.3 .2"><joint name="elbow" axis="0 1 1" range="-2 2" limited="true"
            pos=".01 .02 0"/><joint name="reach" type="slide" axis="1 0 .2" range="-.1 .2" limited="true"/>
          <geom name="lower" type="capsule" size=".02" fromto="0 0 0 .2 0 0" euler=".2 .3 .4"/>
          <site name="tip" pos=".25 .01 .03" quat=".5 .5 -.5 .3"/></body></body>
      <body name="tail" pos="-.1 0 0"><joint name="tail" axis="0 1 0"/><geom size=".03" pos="-.1 0 0"/></body></body>
  </worldbody>
</mujoco>"""


@functools.cache
def arm() -> tuple[fl.Model, np.ndarray, np.ndarray]:
    """Returns the bundled arm, and positions and quaternions of its grip in random postures, within reach."""
    model = fl.bundled("arm")
    mj, rng = model.mj_model, np.random.default_rng(0)
    data, (low, high) = mujoco.MjData(mj), mj.jnt_range.T
    position, quat = np.zeros((24, 3)), np.zeros((24, 4))
    for k in range(24):
        data.qpos = rng.uniform(low, high)
        mujoco.mj_kinematics(mj, data)
        position[k] = data.site("grip").xpos
        mujoco.mju_mat2Quat(quat[k], data.site("grip").xmat)
    return model, position, quat


def grip(k=slice(None), **options) -> fl.IkTarget:
    """Returns the target of the poses k."""
    _, position, quat = arm()
    return fl.IkTarget(("site", "grip"), position=position[k], orientation=quat[k], **options)


def moved(model: fl.Model, qpos: np.ndarray) -> mujoco.MjData:
    """Returns MuJoCo's world in a position."""
    data = mujoco.MjData(model.mj_model)
    data.qpos = qpos
    mujoco.mj_kinematics(model.mj_model, data)
    return data


def errors(data: mujoco.MjData, kind: str, name: str, target: fl.IkTarget, k: int) -> tuple[float, float]:
    """Returns distance and angle of an object to the goals of world k, from MuJoCo's frames."""
    view = getattr(data, kind)(name)
    place, turn = 0.0, 0.0
    if target.position is not None:
        place = float(np.linalg.norm(view.xpos - np.atleast_2d(target.position)[k]))
    R = view.xmat.reshape(3, 3)
    if target.orientation is not None:
        goal = np.empty(9)
        quat = np.array(np.atleast_2d(target.orientation)[k])
        mujoco.mju_quat2Mat(goal, quat / np.linalg.norm(quat))
        turn = float(np.arccos(np.clip((np.trace(R.T @ goal.reshape(3, 3)) - 1) / 2, -1, 1)))
    if target.look_at is not None:
        way = np.atleast_2d(target.look_at)[k] - view.xpos
        axis = R @ np.asarray(target.axis) / np.linalg.norm(target.axis)
        turn = float(np.linalg.norm(np.cross(axis, way / np.linalg.norm(way))))
        assert axis @ way > 0
    return place, turn


def test_poses_are_reached_in_mujoco_within_the_limits():
    model, position, _ = arm()
    found = fl.ik(fl.Batch(model, len(position)), grip(), restarts=10)
    assert (found.status == IkStatus.REACHED).all() and (found.restart > 0).any()
    low, high = model.jnt_range.T
    assert ((found.qpos >= low) & (found.qpos <= high)).all()
    for k, qpos in enumerate(found.qpos):
        place, turn = errors(moved(model, qpos), "site", "grip", grip(), k)
        assert place <= TOLERANCE and turn <= TOLERANCE
        assert abs(place - found.position_error[k, 0]) < 1e-12
        assert abs(turn - found.orientation_error[k, 0]) < 1e-7  # acos near 1


def test_iterations_are_those_of_the_method_in_numpy():
    model, position, quat = arm()
    found, plain = fl.ik(fl.Batch(model, len(position)), grip()), SiteIk(model.mj_model, 0)
    assert len({IkStatus.REACHED, IkStatus.STATIONARY} & set(found.status.tolist())) == 2
    for k, (p, q) in enumerate(zip(position, quat, strict=True)):
        qpos, error, niter, reached = plain.solve(model.qpos0, p, q)
        assert (niter, reached) == (found.niter[k], found.status[k] == IkStatus.REACHED)
        assert np.abs(qpos - found.qpos[k]).max() < 1e-5  # rounding grows where the Jacobian is nearly singular
        assert abs(np.linalg.norm(error[:3]) - found.position_error[k, 0]) < 1e-6


# ---- other objects and joints ----------------------------------------------------------------------------------------
MIXED = {
    "position of a geom": [fl.IkTarget(("geom", "lower"), position=(0.5, 0.3, 0.4))],
    "orientation of a body": [fl.IkTarget("lower", orientation=(0.4, -1.0, 0.2, 0.6))],
    "axis to a point": [fl.IkTarget(("site", "tip"), look_at=(0.2, 0.9, 0.9), axis=(0.0, -2.0, 1.0))],
    "axis to a point, opposite at first": [fl.IkTarget("base", look_at=(0.0, 0.0, -3.0))],
    "several": [
        fl.IkTarget(("site", "tip"), position=(0.22, 0.43, 0.9), look_at=(1.7, 0.22, 0.93), position_weight=3.0),
        fl.IkTarget("base", position=(0.1, 0.2, 0.3)),
        fl.IkTarget("tail", orientation=(0.95, 0.11, 0.24, 0.14), orientation_weight=0.5),
    ],
}


@pytest.mark.parametrize("case", MIXED)
def test_objects_meet_their_goals(case):
    model, targets = fl.load(SCENE), MIXED[case]
    found = fl.ik(fl.Batch(model, 2), targets, restarts=2)
    assert (found.status == IkStatus.REACHED).all(), found
    data = moved(model, found.qpos[0])
    for t, target in enumerate(targets):
        for mine, theirs in zip(
            errors(data, *(target.object if isinstance(target.object, tuple) else ("body", target.object)), target, 0),
            (found.position_error[0, t], found.orientation_error[0, t]),
            strict=True,
        ):
            assert mine <= TOLERANCE + 1e-7 and abs(mine - theirs) < 1e-7
    angle = 2 * np.arccos(abs(found.qpos[0, 7]))
    assert angle <= 1.2 + 1e-9 and (np.abs(np.linalg.norm(found.qpos[:, [3, 4, 5, 6]], axis=1) - 1) < 1e-12).all()


@pytest.mark.parametrize("case", MIXED)
def test_gradient_is_that_of_finite_differences(case):
    model, h = fl.load(SCENE), 1e-6
    rng = np.random.default_rng(3)
    qpos = fl.integrate_pos(model, model.qpos0, 0.4 * rng.standard_normal(model.nv), 1.0)
    _, g, _ = gradient(model, MIXED[case], qpos, 0.3)
    for dof in range(model.nv):
        costs = [
            gradient(model, MIXED[case], fl.integrate_pos(model, qpos, s * np.eye(model.nv)[dof], h), 0.3)[0]
            for s in (1.0, -1.0)
        ]
        assert abs((costs[1] - costs[0]) / (2 * h) - g[dof]) < 1e-8 * (1 + np.abs(g).max())


def test_normal_equations_are_those_of_mujocos_jacobian():
    model = fl.load(SCENE)
    qpos = fl.integrate_pos(model, model.qpos0, np.linspace(-0.5, 0.7, model.nv), 1.0)
    target = fl.IkTarget(("site", "tip"), position=(0.4, 0.2, 0.5), orientation=(1, 0, 0, 0), position_weight=2.0)
    data = moved(model, qpos)
    mujoco.mj_comPos(model.mj_model, data)
    jac = np.zeros((6, model.nv))
    mujoco.mj_jacSite(model.mj_model, data, jac[:3], jac[3:], model.site("tip").id)
    jac[:3] *= 2.0
    assert np.allclose(gradient(model, target, qpos)[2], jac.T @ jac, atol=1e-12)


# ---- options ---------------------------------------------------------------------------------------------------------
def test_chosen_dofs_alone_move():
    model = fl.load(SCENE)
    batch = fl.Batch(model, 1)
    target = fl.IkTarget(("site", "tip"), position=batch.get_data(0).site("tip").xpos + (0.02, -0.03, 0.02))
    found = fl.ik(batch, target, dofs=["elbow", "shoulder", 10])
    assert found.status[0] == IkStatus.REACHED
    assert (found.qpos[0, :7] == model.qpos0[:7]).all() and found.qpos[0, -1] == 0.0
    assert (batch.qpos[0] == model.qpos0).all()


def test_posture_is_kept_as_far_as_the_targets_allow():
    model, position, _ = arm()
    posture = np.array([0.3, 0.6, -0.4, 1.0, 0.2, -0.5, 0.1])
    target = fl.IkTarget(("site", "grip"), position=position)
    plain, kept = (
        fl.ik(fl.Batch(model, len(position)), target, restarts=3, posture=posture, posture_weight=w) for w in (0, 0.03)
    )
    both = (plain.status == 0) & (kept.status == 0)
    away = [np.linalg.norm(found.qpos - posture, axis=1) for found in (plain, kept)]
    assert both.sum() > 20 and np.median(away[1]) < 0.8 * np.median(away[0])
    # the rest of the posture's residual is normal to the motions that keep the target
    free = [
        k
        for k in np.flatnonzero(both)
        if ((kept.qpos[k] > model.jnt_range[:, 0] + 1e-9) & (kept.qpos[k] < model.jnt_range[:, 1] - 1e-9)).all()
    ]
    for k in free:
        data = moved(model, kept.qpos[k])
        mujoco.mj_comPos(model.mj_model, data)
        jac = np.zeros((3, 7))
        mujoco.mj_jacSite(model.mj_model, data, jac, None, 0)
        rest = posture - kept.qpos[k]
        rest -= np.linalg.pinv(jac) @ (jac @ rest)
        assert np.linalg.norm(rest) < 0.02 * (1 + away[1][k])


def test_targets_out_of_reach_have_a_status():
    model, position, _ = arm()
    batch = fl.Batch(model, 3)
    batch.qpos[:, 3] = 1.0
    batch.qpos[2, 0] = np.nan
    far = fl.IkTarget(("site", "grip"), position=[(3.0, 0.0, 0.5), position[0], position[0]])
    found = fl.ik(batch, far)
    assert found.status.tolist() == [IkStatus.STATIONARY, IkStatus.REACHED, IkStatus.NON_FINITE]
    # the arm is stretched towards the target
    data = moved(model, found.qpos[0])
    assert found.position_error[0, 0] == pytest.approx(np.linalg.norm(data.site("grip").xpos - (3.0, 0.0, 0.5)))
    one = fl.IkTarget(("site", "grip"), position=position[0])
    assert fl.ik(batch, one, ids=[1], max_iterations=1).status.tolist() == [IkStatus.ITERATION_LIMIT]
    assert fl.ik(batch, one, ids=[1], max_iterations=1).niter.tolist() == [1]


def test_worlds_may_differ():
    model, position, _ = arm()
    batch = fl.Batch(model, 4)
    batch.expand("site_pos")[:, 0, 2] += [0.0, 0.05, 0.1, 0.15]
    batch.expand("body_pos")[:, 2, 2] += [0.0, 0.01, 0.02, 0.03]
    batch.expand("jnt_range")[3, 1] = (0.2, 0.3)
    found = fl.ik(batch, fl.IkTarget(("site", "grip"), position=position[0]), restarts=5)
    assert (found.status == IkStatus.REACHED).all() and 0.2 <= found.qpos[3, 1] <= 0.3
    for k in range(4):
        place = moved(fl.load(batch.get_model(k).to_mujoco()), found.qpos[k]).site("grip").xpos
        assert np.linalg.norm(place - position[0]) <= TOLERANCE


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_do_not_depend_on_the_other_worlds(dtype):
    model, position, _ = arm()
    n = len(position)
    batch = fl.Batch(model, n, dtype=dtype)
    options = {"restarts": 2, "posture_weight": 0.01, "max_iterations": 30}
    every = fl.ik(batch, grip(), **options)
    assert (every.status == IkStatus.REACHED).sum() > n // 2
    for ids in ([5], [23, 0, 11], np.arange(1, n, 2)):
        some = fl.ik(batch, grip(np.array(ids)), ids=ids, **options)
        for a, b in zip(every, some, strict=True):
            assert a[ids].tobytes() == b.tobytes()
    alone = fl.ik(fl.Batch(model, 1, nthread=1, dtype=dtype), grip(np.array([5])), **options)
    assert alone.qpos.tobytes() == every.qpos[[5]].tobytes()


def test_float32_reaches_its_tolerance():
    model, position, _ = arm()
    found = fl.ik(fl.Batch(model, len(position), dtype="float32"), grip(), restarts=10)
    assert found.qpos.dtype == np.float32 and (found.status == IkStatus.REACHED).all()
    for k, qpos in enumerate(found.qpos):
        assert max(errors(moved(model, qpos), "site", "grip", grip(), k)) <= 1.1e-4


# ---- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "targets, options, text",
    [
        ([], {}, "targets: got none"),
        (fl.IkTarget(("site", "grip")), {}, "targets: got no goal"),
        (fl.IkTarget(("site", "hand of god"), position=(0, 0, 0)), {}, "unknown site"),
        (fl.IkTarget(("joint", "grip"), position=(0, 0, 0)), {}, "targets.object: got 'joint'"),
        (fl.IkTarget(("site", "grip"), position=(0, 0)), {}, r"targets.position: got shape \(2,\)"),
        (
            fl.IkTarget(("site", "grip"), position=np.zeros((5, 3))),
            {},
            r"allowed are finite numbers \(3,\) or \(2, 3\)",
        ),
        (fl.IkTarget(("site", "grip"), position=[(0, 0, 1), (0, np.nan, 1)]), {}, r"targets.position\[1, 1\]: got nan"),
        (
            fl.IkTarget(("site", "grip"), orientation=(0, 0, 0, 0)),
            {},
            "targets.orientation: got a length of 0 in world 0",
        ),
        (fl.IkTarget(("site", "grip"), look_at=(0, 0, 1), axis=(0, 0, 0)), {}, "targets.axis: got a length of 0"),
        (fl.IkTarget(("site", "grip"), look_at=(0, 0, 1), orientation=(1, 0, 0, 0)), {}, "got orientation and look_at"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1), position_weight=0), {}, "targets.position_weight: got 0"),
        (
            [fl.IkTarget(("site", "grip"), position=(0, 0, 1)), fl.IkTarget(("site", "grip"))],
            {},
            r"targets\[1\]: got no goal",
        ),
        (fl.IkTarget(0, position=(0, 0, 1)), {}, "dofs: got no dof"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"dofs": []}, "dofs: got no dof"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"dofs": ["knee"]}, "unknown joint 'knee'"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"dofs": [7]}, "dofs: got 7, allowed are names of joints"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"posture": np.zeros(3)}, "posture: got"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"posture_weight": -1.0}, "posture_weight: got -1.0"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"tolerance": 0.0}, "tolerance: got 0.0"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"restarts": -1}, "restarts: got -1"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"max_iterations": 0}, "max_iterations: got 0"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"limits": 2}, "limits: got 2"),
        (fl.IkTarget(("site", "grip"), position=(0, 0, 1)), {"ids": [2]}, "ids: got 2"),
    ],
)
def test_wrong_arguments_are_named(targets, options, text):
    with pytest.raises(fl.ModelError, match=text):
        fl.ik(fl.Batch(arm()[0], 2), targets, **options)


def test_wrong_types_are_named():
    model, target = arm()[0], fl.IkTarget(("site", "grip"), position=(0, 0, 1))
    with pytest.raises(TypeError, match="batch: got Data, allowed is a Batch"):
        fl.ik(fl.Data(model), target)  # type: ignore[arg-type]
    for wrong in ("grip", 3, [target, "grip"]):
        with pytest.raises(TypeError, match="targets: got"):
            fl.ik(fl.Batch(model, 1), wrong)  # type: ignore[arg-type]
