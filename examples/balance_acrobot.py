"""Balances an acrobot (two links, one motor at the elbow) by a regulator from the exact derivatives of a step."""

import sys

import numpy as np

import featherlane as fl

ACROBOT = """<mujoco><option timestep="0.005" integrator="implicitfast"/>
  <default><geom type="capsule" size="0.02"/></default>
  <worldbody><body pos="0 0 1.2"><joint name="shoulder" axis="0 1 0" damping="0.01"/><geom fromto="0 0 0 0 0 0.5"/>
    <body pos="0 0 0.5"><joint name="elbow" axis="0 1 0" damping="0.01"/><geom fromto="0 0 0 0 0 0.5"/></body></body>
  </worldbody><actuator><motor joint="elbow" ctrllimited="true" ctrlrange="-10 10"/></actuator></mujoco>"""
COST, EFFORT = np.diag([1.0, 1.0, 0.1, 0.1]), np.array([[0.1]])


def regulator(A, B, rounds=3000):
    """Return K of u = -K x, which minimizes the sum of x^T COST x + u^T EFFORT u, by iterating the Riccati equation."""
    P = COST
    for _ in range(rounds):
        K = np.linalg.solve(EFFORT + B.T @ P @ B, B.T @ P @ A)
        P = COST + A.T @ P @ (A - B @ K)
    return K


def main(nworld=64, seconds=8.0):
    model = fl.load(ACROBOT)
    # the derivatives of the upright state are exact
    step = fl.linearize(model, fl.Data(model))
    K = regulator(step.A, step.B)
    falls, stands = (
        abs(np.linalg.eigvals(step.A)).max(),
        abs(np.linalg.eigvals(step.A - step.B @ K)).max(),
    )
    print(
        f"a step multiplies a deviation by {falls:.4f}, with the regulator by {stands:.4f}"
    )
    assert falls > 1.0 > stands

    # links and initial states differ by world: one call computes a regulator for each world
    batch, rng = fl.Batch(model, nworld), np.random.default_rng(0)
    scale = rng.uniform(0.8, 1.2, (nworld, 2))
    batch.expand("body_mass")[:, 1:] *= scale
    batch.expand("body_inertia")[:, 1:] *= scale[..., None]
    batch.set_const()
    steps = fl.linearize(model, batch)
    K = np.array([regulator(A, B) for A, B in zip(steps.A, steps.B, strict=True)])
    batch.qpos[:] = rng.uniform(-0.01, 0.01, (nworld, 2))

    def control(batch, step):
        return -np.einsum("wij,wj->wi", K, np.concatenate([batch.qpos, batch.qvel], 1))

    batch.rollout(round(seconds / model.opt.timestep), control, ())
    print(
        f"{nworld} acrobots after {seconds:g} s: deviation of at most {np.rad2deg(abs(batch.qpos).max()):.4f} degrees"
    )
    assert abs(batch.qpos).max() < 1e-3


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
