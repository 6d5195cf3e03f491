"""Swings up an acrobot by iLQR: derivatives of all time steps in one call, line search in one batch.

Source: Tassa, Erez and Todorov, Synthesis and stabilization of complex behaviors through online trajectory
optimization, IROS 2012; here all step lengths and dampings are tried in one batch.
"""

import sys

import numpy as np

import featherlane as fl

ACROBOT = """<mujoco><option timestep="0.01" integrator="implicitfast"/>
  <default><geom type="capsule" size="0.02" contype="0" conaffinity="0"/><joint axis="0 1 0" damping="0.01"/></default>
  <worldbody><body pos="0 0 1.2"><joint name="shoulder"/><geom fromto="0 0 0 0 0 -0.5"/>
    <body pos="0 0 -0.5"><joint name="elbow"/><geom fromto="0 0 0 0 0 -0.5"/></body></body></worldbody>
  <actuator><motor joint="elbow" ctrllimited="true" ctrlrange="-12 12"/></actuator></mujoco>"""
UPRIGHT = np.array([np.pi, 0.0, 0.0, 0.0])
LENGTHS, DAMPINGS = 0.5 ** np.arange(6), 10.0 ** np.arange(-6, 2)
LENGTH, DAMPING = (
    np.tile(LENGTHS, len(DAMPINGS))[:, None],
    np.repeat(np.arange(len(DAMPINGS)), len(LENGTHS)),
)


def backward(A, B, x, u, weight, effort):
    """Return gains k (T, n, nu), K (T, n, nu, nx) of u + k + K dx for n dampings, by the Riccati recursion.

    The cost is half the sum of weight x^2, weight (T + 1, nx), and effort u^2; x (T + 1, nx) is the error.
    """
    (T, nx, nu), n = B.shape, len(DAMPINGS)
    k, K = np.empty((T, n, nu, 1)), np.empty((T, n, nu, nx))
    slope, curve = (
        np.tile((weight[T] * x[T])[:, None], (n, 1, 1)),
        np.tile(np.diag(weight[T]), (n, 1, 1)),
    )
    for t in reversed(range(T)):
        At, Bt, damped = A[t].T, B[t].T, curve + DAMPINGS[:, None, None] * np.eye(nx)
        qx, qu = (
            (weight[t] * x[t])[:, None] + At @ slope,
            effort * u[t][:, None] + Bt @ slope,
        )
        qxx, qxu = np.diag(weight[t]) + At @ curve @ A[t], At @ curve @ B[t]
        quu = effort * np.eye(nu) + Bt @ curve @ B[t]
        gains = np.linalg.solve(
            effort * np.eye(nu) + Bt @ damped @ B[t],
            np.dstack([qu, Bt @ damped @ A[t]]),
        )
        k[t], K[t] = -gains[..., :1], -gains[..., 1:]
        Kt = K[t].swapaxes(1, 2)
        slope = qx + qxu @ k[t] + Kt @ (qu + quu @ k[t])
        curve = qxx / 2 + qxu @ K[t] + Kt @ quu @ K[t] / 2
        # exactly symmetric; otherwise rounding errors grow
        curve = curve + curve.swapaxes(1, 2)
    return k[..., 0], K


def ilqr(model, start, u, goal, weight, effort, rounds=60):
    """Return optimal controls u (T, nu) and states (T + 1, nq + nv), gains K (T, nu, nx), and costs.

    For models with slide and hinge joints only, whose states may be subtracted.
    """
    (T, nu), nq, n = u.shape, model.nq, len(LENGTH)
    path, trial, costs = fl.Batch(model, T), fl.Batch(model, n), []

    def run(u, k, K, x):
        """Return states (T + 1, n, nq + nv), controls (T, n, nu) and costs of all trials."""
        states, controls = np.empty((T + 1, n, 2 * nq)), np.empty((T, n, nu))
        trial.reset()
        trial.qpos[:], trial.qvel[:] = start[:nq], start[nq:]
        for t in range(T):
            states[t] = np.hstack([trial.qpos, trial.qvel])
            controls[t] = (
                u[t]
                + LENGTH * k[t, DAMPING]
                + np.einsum("nij,nj->ni", K[t, DAMPING], states[t] - x[t])
            )
            trial.ctrl = controls[t] = np.clip(controls[t], *model.actuator_ctrlrange.T)
            trial.step()
        states[T] = np.hstack([trial.qpos, trial.qvel])
        cost = (weight[:, None] * (states - goal) ** 2).sum(axis=(0, 2)) + effort * (
            controls**2
        ).sum(axis=(0, 2))
        return states, controls, cost / 2

    idle = np.zeros((T, len(DAMPINGS), nu)), np.zeros((T, len(DAMPINGS), nu, 2 * nq))
    found = run(u, *idle, np.tile(start, (T, 1)))
    for _ in range(rounds):
        best = found[2].argmin()
        x, u, cost = found[0][:, best], found[1][:, best], found[2][best]
        costs.append(cost)
        if len(costs) > 1 and costs[-2] - cost < 1e-3 * cost:
            break
        # each time step is a world
        path.qpos[:], path.qvel[:], path.ctrl[:] = (x[:-1, :nq], x[:-1, nq:], u)
        step = fl.linearize(model, path)
        k, K = backward(step.A, step.B, x - goal, u, weight, effort)
        found = run(u, k, K, x)
    return x, u, K[:, 0], np.array(costs)


def main(nworld=32, seconds=3.0):
    model = fl.load(ACROBOT)
    T = round(seconds / model.opt.timestep)
    weight = np.tile([0.0, 0.01, 0.01, 0.01], (T + 1, 1))
    weight[T] = 1e4, 1e4, 1e3, 1e3
    start, swing = (
        np.zeros(4),
        0.3 * np.sin(2 * np.pi * 0.9 * model.opt.timestep * np.arange(T))[:, None],
    )
    x, u, K, costs = ilqr(model, start, swing, UPRIGHT, weight, effort=0.05)
    print(
        f"{len(costs)} iterations: cost {costs[0]:.0f} to {costs[-1]:.1f}; final error {np.round(x[-1] - UPRIGHT, 3)}"
    )
    assert abs(x[-1] - UPRIGHT).max() < 0.05

    # the gains of the swing also work for other masses; then the gains of the upright state hold the acrobots
    upright = fl.Data(model)
    upright.qpos = UPRIGHT[:2]
    step = fl.linearize(model, upright)
    A, B, still = (
        np.tile(step.A, (1000, 1, 1)),
        np.tile(step.B, (1000, 1, 1)),
        np.zeros((1001, 4)),
    )
    regulator = backward(A, B, still, still[1:, :1], still + 1.0, effort=100.0)[1][0, 0]
    batch = fl.Batch(model, nworld)
    scale = np.random.default_rng(0).uniform(0.98, 1.02, (nworld, 2))
    batch.expand("body_mass")[:, 1:] *= scale
    batch.expand("body_inertia")[:, 1:] *= scale[..., None]
    batch.set_const()

    def control(batch, t):
        state = np.hstack([batch.qpos, batch.qvel])
        wanted = (
            u[t] + (state - x[t]) @ K[t].T if t < T else (state - UPRIGHT) @ regulator.T
        )
        return np.clip(wanted, *model.actuator_ctrlrange.T)

    angles = batch.rollout(2 * T, control, "qpos")["qpos"]
    off = np.rad2deg(abs(angles - UPRIGHT[:2]).max(axis=2))
    up, after = off[:, T - 1].max(), off[:, -1].max()
    print(
        f"{nworld} acrobots with mass errors up to 2 %: {up:.1f} degrees after the swing, then at most {after:.2f}"
    )
    assert up < 5.0 and after < 0.5
    return model, x, angles


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
