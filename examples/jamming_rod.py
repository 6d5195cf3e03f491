"""Painleve's rod: a rod is pushed over the ground with one end ahead, and friction increases its normal force.

The contact is a boxed LCP of two rows: the normal, and friction, whose bound is mu times the normal force.
"""

import sys

import numpy as np

import featherlane as fl

LENGTH, MASS, SPEED, TIMESTEP, GRAVITY = 1.0, 1.0, -1.0, 0.001, 9.81


def contact(angle, mu):
    """Return the LCP of the rod's contact in one time step; x is (normal force, friction) [N]."""
    # from the centre to the end on the ground
    arm = -0.5 * LENGTH * np.array([np.cos(angle), np.sin(angle)])
    J = np.array([[0.0, 1.0, arm[0]], [1.0, 0.0, -arm[1]]])
    inertia = MASS * LENGTH**2 / 12
    # velocity after the step without contact
    fall = np.array([SPEED, -GRAVITY * TIMESTEP, 0.0])
    return fl.lcp.Problem.from_jacobian(
        J,
        [1 / MASS, 1 / MASS, 1 / inertia],
        cfm=0.0,
        b=-J @ fall / TIMESTEP,
        lo=[0.0, 0.0],
        hi=[np.inf, mu],
        findex=[-1, 0],
    )


def main(degrees=45):
    angle = np.radians(degrees)
    a, c = contact(angle, 0.0).matrix[0]
    critical = a / abs(c)
    print(
        f"a rod at {degrees} degrees jams at mu = {critical:.3f}; normal force [N] while its end slides:"
    )
    print("  mu   without friction   limits frozen   limits consistent")
    for mu in (0.2, 0.6, 1.0, 1.4, 2.5):
        problem = contact(angle, mu)
        frozen = fl.lcp.solve(problem)
        consistent = fl.lcp.solve(problem, friction="consistent")
        without = problem.b[0] / a
        print(
            f"{mu:4.1f}{without:19.3f}{frozen.x[0]:16.3f}{consistent.x[0]:20.3f}",
            end="",
        )
        if mu < critical:
            np.testing.assert_allclose(
                consistent.x[0], problem.b[0] / (a - mu * abs(c))
            )
            print()
        else:
            assert abs(consistent.x[1]) < mu * consistent.x[0]
            print("   it jams: the end stops within one step")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
