"""Balances a pole by a linear-quadratic regulator, from derivatives of a step, in disturbed worlds."""

import sys

import numpy as np

import featherlane as fl

COST = np.diag([1.0, 10.0, 0.1, 0.1])  # of cart [m], pole [rad], and their velocities
EFFORT = np.array([[1.0]])  # of the motor's control, -1 to 1


def regulator(A, B, rounds=2000):
    """Return K of u = -K x, which minimizes the sum of x^T COST x + u^T EFFORT u, by iterating the Riccati equation."""
    P = COST
    for _ in range(rounds):
        K = np.linalg.solve(EFFORT + B.T @ P @ B, B.T @ P @ A)
        P = COST + A.T @ P @ (A - B @ K)
    return K


def main(nworld=100, seconds=10.0):
    model = fl.bundled("cartpole")
    upright = fl.Data(model)
    A, B = fl.linearize(model, upright, method="finite_difference")[:2]
    K = regulator(A, B)
    print(
        "without control: |eigenvalues| =",
        np.round(np.sort(abs(np.linalg.eigvals(A))), 3),
    )
    print(
        "regulator",
        np.round(K[0], 2),
        "|eigenvalues| =",
        np.round(np.sort(abs(np.linalg.eigvals(A - B @ K))), 3),
    )
    assert max(abs(np.linalg.eigvals(A))) > 1.0 > max(abs(np.linalg.eigvals(A - B @ K)))

    # dry friction has no derivative at rest: with it, the gains are those of a sticking cart
    model.joint("slider").frictionloss = 0.05
    stuck = regulator(*fl.linearize(model, upright, method="finite_difference")[:2])
    free = regulator(
        *fl.linearize(model, upright, frictionloss=False, method="finite_difference")[
            :2
        ]
    )
    print(
        f"with friction: gain of the cart's velocity {stuck[0, 2]:.0f}, without its derivative {free[0, 2]:.1f}"
    )
    assert abs(stuck - K).max() > 100.0 and abs(free - K).max() < 1e-6

    # each world has a different initial state and rail, and the same regulator
    rng, batch = np.random.default_rng(0), fl.Batch(model, nworld)
    batch.qpos[:] = rng.uniform(-1, 1, (nworld, 2)) * [0.5, 0.3]
    batch.expand("dof_frictionloss")[:, 0] = rng.uniform(0.0, 0.2, nworld)

    def control(batch, step):
        return np.clip(-np.concatenate([batch.qpos, batch.qvel], 1) @ K.T, -1, 1)

    batch.rollout(round(seconds / model.opt.timestep), control, ())
    print(
        f"{nworld} poles after {seconds:g} s: at most {np.rad2deg(abs(batch.qpos[:, 1]).max()):.2f} degrees of tilt"
    )
    assert abs(batch.qpos[:, 1]).max() < 0.02 and abs(batch.qpos[:, 0]).max() < 0.2


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
