"""Loads URDF files with Featherlane; `urdf.py` runs this program.

For each line `{"path": ..., "package_dirs": [...], "repair": ...}` it prints a line of JSON: the error, or the joints
in the initial pose as `pinocchio_reader.py` prints them, and what was reported.
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import oracle

oracle.use()

import featherlane as fl  # noqa: E402

KINDS = {0: "free", 1: "ball", 2: "slide", 3: "hinge"}


def joints(model) -> list[dict]:
    """Returns the joints of a model in the world frame at `qpos0`, and the body of each."""
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    fl.stages.com_pos(model, data)  # it computes the axes of inertias
    names, parts = model.names("joint"), weld_groups(model)
    result = []
    for j in range(model.njnt):
        mass, com, inertia = whole(model, data, parts[int(model.jnt_bodyid[j])])
        result.append(
            {
                "name": names[j],
                "kind": KINDS[int(model.jnt_type[j])],
                "anchor": data.xanchor[j].tolist(),
                "axis": data.xaxis[j].tolist(),
                "mass": mass,
                "com": com.tolist(),
                "inertia": inertia.tolist(),
                "limits": model.jnt_range[j].tolist() if model.jnt_limited[j] else None,
                "damping": float(model.dof_damping[model.jnt_dofadr[j]]),
            }
        )
    return result


def weld_groups(model) -> dict[int, list[int]]:
    """Returns the bodies that move with each body that has joints."""
    top, groups = {}, {}
    for b in range(1, model.nbody):
        top[b] = b if model.body_jntnum[b] else top.get(int(model.body_parentid[b]), 0)
        groups.setdefault(top[b], []).append(b)
    return groups


def whole(model, data, bodies) -> tuple[float, np.ndarray, np.ndarray]:
    """Returns mass, centre of mass and inertia about it of rigidly connected bodies, in the world frame."""
    masses, places = model.body_mass[bodies], data.xipos[bodies]
    mass = float(masses.sum())
    com = masses @ places / mass if mass > 0 else places[0]
    inertia = np.zeros((3, 3))
    for b, m, place in zip(bodies, masses, places, strict=True):
        turn = np.asarray(data.ximat[b]).reshape(3, 3)
        arm = place - com
        inertia += turn @ np.diag(model.body_inertia[b]) @ turn.T + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return mass, com, inertia


def robot(path: str, package_dirs: list[str], repair: bool) -> dict:
    """Loads a file; returns its joints, the time to load it [s] and what was reported."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fl.load(path, package_dirs=package_dirs, repair=repair)
    seconds = time.perf_counter() - start
    return {
        "joints": joints(model),
        "seconds": seconds,
        "repairs": model.repairs,
        "dropped": model.dropped,
        "warnings": [str(warning.message) for warning in caught],
        "links": len(model.fused) + model.nbody,
        "hulls": int((model.geom_type == 7).sum()),
    }


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = robot(**json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
