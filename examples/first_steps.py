"""Steps one world of a robot, and prints its position and contacts."""

import sys

import numpy as np

import featherlane as fl


def main(seconds=1.0):
    # fl.load takes a path, MJCF or URDF text, a mujoco.MjModel or a mujoco.MjSpec
    model = fl.bundled("quadruped")
    data = fl.Data(model)
    print(f"{model.nv} degrees of freedom, {model.nu} actuators, {model.nbody} bodies")

    # fields are live arrays under MuJoCo's names; assigning copies into them
    data.reset(keyframe="home")
    data.qpos[2] += 0.1
    for _ in range(round(seconds / model.opt.timestep)):
        fl.step(model, data)

    print(
        f"after {data.time:.2f} s the trunk is at {np.round(data.body('trunk').xpos, 3)}"
    )
    for contact in data.contact:
        names = [model.geom(g).name for g in (contact.geom1, contact.geom2)]
        print(
            f"  {names[0]} touches {names[1]} at {np.round(contact.pos, 3)}, {-1000 * contact.dist:.2f} mm deep"
        )
    print(
        f"solver: {data.solver_niter} iterations, residual {data.solver_residual:.1e}; status {data.status}"
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
