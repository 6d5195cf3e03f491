"""Reads URDF files with Pinocchio; `urdf.py` runs this program in an environment with the package `pin` only.

For each line `{"path": ...}` it prints a line of JSON: the moving joints of the robot in its initial pose.  Links that
are fixed to a joint's link count as parts of it.
"""

import contextlib
import json
import os
import sys

import numpy as np
import pinocchio as pin


def robot(path: str) -> dict:
    """Returns the joints of a URDF file, in the world frame at the neutral configuration."""
    model = pin.buildModelFromUrdf(path)
    data = model.createData()
    q = pin.neutral(model)
    pin.computeJointJacobians(model, data, q)
    links = {}
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY:
            links.setdefault(frame.parentJoint, []).append(frame.name)
    joints = []
    for k in range(1, model.njoints):
        joint, place = model.joints[k], data.oMi[k]
        columns = pin.getJointJacobian(model, data, k, pin.LOCAL_WORLD_ALIGNED)[:, joint.idx_v : joint.idx_v + joint.nv]
        inertia = place.act(model.inertias[k])
        limits = None
        if joint.nq == joint.nv == 1:
            limits = [model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]]
        joints.append(
            {
                "name": model.names[k],
                "links": links.get(k, []),
                "anchor": place.translation.tolist(),
                "columns": columns.T.tolist(),
                "mass": inertia.mass,
                "com": inertia.lever.tolist(),
                "inertia": np.asarray(inertia.inertia).tolist(),
                "limits": limits,
                "damping": model.damping[joint.idx_v],
            }
        )
    return {"joints": joints, "base_links": links.get(0, [])}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # urdfdom prints to the standard output
    for line in sys.stdin:
        try:
            answer = robot(json.loads(line)["path"])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
