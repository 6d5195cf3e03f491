"""Trajectories of a scene under the MuJoCo that is imported; `python unisim_trajectories.py SCENE KEYFRAME FILE`."""

import sys

import mujoco
import numpy as np

WORLDS, STEPS = 6, 120


def trajectories(scene: str, keyframe: str) -> np.ndarray:
    """Returns states (STEPS, WORLDS, nq + nv) from near a keyframe, with random controls near it, at tolerance 0."""
    model, rng = mujoco.MjModel.from_xml_path(scene), np.random.default_rng(0)
    model.opt.tolerance, data, key = 0.0, mujoco.MjData(model), model.keyframe(keyframe).id
    qpos, qvel = np.tile(model.key_qpos[key], (WORLDS, 1)), rng.normal(0, 0.1, (WORLDS, model.nv))
    qpos[:, 7:] += rng.normal(0, 0.05, qpos[:, 7:].shape)
    control = model.key_ctrl[key] + rng.normal(0, 0.2, (STEPS, WORLDS, model.nu))
    found = np.zeros((STEPS, WORLDS, model.nq + model.nv))
    for w in range(WORLDS):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = qpos[w], qvel[w]
        for k in range(STEPS):
            data.ctrl[:] = control[k, w]
            mujoco.mj_step(model, data)
            found[k, w] = np.concatenate([data.qpos, data.qvel])
    return found


if __name__ == "__main__":
    np.save(sys.argv[3], trajectories(*sys.argv[1:3]))
