"""Balances a humanoid on one leg: an equilibrium by inverse dynamics, and a regulator from derivatives of a step."""

import sys

import numpy as np

import featherlane as fl

POSE = {
    "hip_x_left": -7,
    "ankle_x_left": 7,
    "hip_y_left": -1.5,
    "ankle_y_left": -1.5,
}  # degrees: over the left foot
POSE |= {
    "hip_y_right": 35,
    "knee_right": 70,
    "hip_x_right": 2,
    "elbow_left": 20,
    "elbow_right": 20,
}
POSE |= {"shoulder_x_left": 25, "shoulder_x_right": 25}
# weights of balance, joint angles, velocities and controls
BALANCE, JOINTS, SPEEDS, EFFORT = (1000.0, 1.0, 0.1, 1.0)


def rest(model, data):
    """Move the pose to the nearest equilibrium; return the controls that hold it.

    Inverse dynamics at rest gives a force for each DoF.  The free root has no motor, so its six forces must be zero.
    Each Newton step is the one of least norm.  Motions along the floor and about its normal change no force: their
    singular values are zero.
    """
    root, still = slice(0, 6), np.zeros(model.nv)
    for _ in range(20):
        data.qacc = still
        fl.inverse(model, data)
        missing = data.qfrc_inverse[root].copy()
        if abs(missing).max() < 1e-6:
            break
        slope = fl.inverse_derivatives(
            model, data, qacc=still, method="finite_difference"
        ).DfDq[root]
        data.qpos = fl.integrate_pos(
            model, data.qpos, -np.linalg.pinv(slope, rcond=1e-4) @ missing, 1.0
        )
    dof = model.jnt_dofadr[model.actuator_trnid[:, 0]]
    return data.qfrc_inverse[dof] / model.actuator_gear[:, 0]


def regulator(A, B, cost, effort):
    """Return K of u = -K x, which minimizes the sum of x^T cost x + u^T effort u, by iterating the Riccati equation."""
    P, K, before = cost, np.zeros(B.T.shape), np.inf
    while abs(K - before).max() > 1e-8 * abs(K).max():
        before, K = K, np.linalg.solve(effort + B.T @ P @ B, B.T @ P @ A)
        P = cost + A.T @ P @ (A - B @ K)
    return K


def main(nworld=32, seconds=10.0, push=15.0):
    model = fl.bundled("humanoid")
    data, nv = fl.Data(model), model.nv
    for name, degrees in POSE.items():
        data.joint(name).qpos = np.deg2rad(degrees)
    fl.forward(model, data)
    # the sole is 0.2 mm deep in the soft floor
    data.qpos[2] -= data.site("sole_left").xpos[2] + 2e-4
    data.ctrl = hold = rest(model, data)
    fl.forward(model, data)
    upright = data.qpos.copy()
    print(f"equilibrium with at most {abs(hold).max():.0%} of a motor's torque")
    assert abs(data.qacc).max() < 1e-6

    step = fl.linearize(model, data)
    balance = (
        fl.query.jac_subtree_com(model, data, "pelvis")
        - fl.query.jac_site(model, data, "sole_left")[0]
    )
    cost = np.zeros((2 * nv, 2 * nv))
    cost[:nv, :nv] = BALANCE * balance.T @ balance + JOINTS * np.diag(
        np.arange(nv) >= 6
    )
    cost[nv:, nv:] = SPEEDS * np.eye(nv)
    K = regulator(step.A, step.B, cost, EFFORT * np.eye(model.nu))
    falls, stands = (
        abs(np.linalg.eigvals(step.A)).max(),
        abs(np.linalg.eigvals(step.A - step.B @ K)).max(),
    )
    print(
        f"largest eigenvalue of a step: {falls:.3f}, with the regulator {stands:.6f} (position on the floor)"
    )

    # random pushes of 0.2 s in each second; half of the worlds have no regulator
    batch, rng, second = (
        fl.Batch(model, nworld),
        np.random.default_rng(0),
        round(1 / model.opt.timestep),
    )
    batch.qpos[:] = upright
    regulated, torso = (np.arange(nworld) % 2 == 0)[:, None], model.body("torso").id

    def control(batch, step):
        if step % second == 0:
            batch.xfrc_applied[:, torso, :2] = rng.uniform(-push, push, (nworld, 2))
        elif step % second == second // 5:
            batch.xfrc_applied[:, torso] = 0.0
        off = np.hstack(
            [fl.differentiate_pos(model, 1.0, upright, batch.qpos), batch.qvel]
        )
        return np.clip(hold - regulated * (off @ K.T), *model.actuator_ctrlrange.T)

    out = batch.rollout(round(seconds * second), control, ("qpos", "subtree_com"))
    height = out["subtree_com"][:, :, 0, 2]
    up = height.min(axis=1) > 0.9
    stand, alone = up[::2].sum(), up[1::2].sum()
    print(
        f"after {seconds:g} s of pushes up to {push:g} N, {stand} of {nworld // 2} stand, without regulator {alone}"
    )
    assert up[::2].all() and not up[1::2].any()
    return model, out["qpos"], height


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
