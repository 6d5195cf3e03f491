"""`featherlane.integrations.mjlab` with mjlab's registered tasks, and against mjlab's simulation of them."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("mjlab")
import mujoco
import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.tasks.registry import load_env_cfg

import featherlane as fl
from featherlane.integrations import mjlab as ours

FLAT = ("Mjlab-Velocity-Flat-Unitree-Go1", "Mjlab-Velocity-Flat-Unitree-G1")


@pytest.fixture(autouse=True)
def mjlabs_simulation_is_restored():
    yield
    ours.stop()


def made(task, num_envs, seed=0, **edits):
    """Returns an environment of a registered task; `edits` are functions of its configuration."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = num_envs, seed
    for edit in edits.values():
        edit(cfg)
    return ManagerBasedRlEnv(cfg, device="cpu")


def run(env, nstep, seed=0):
    """Resets an environment, steps it with random actions, and returns observations and rewards of each step."""
    random = torch.Generator().manual_seed(seed)
    shape = env.num_envs, env.single_action_space.shape[0]
    found = [(env.reset()[0], None)]
    for _ in range(nstep):
        observation, reward, *_ = env.step(2.0 * torch.rand(shape, generator=random) - 1.0)
        found.append((observation, reward.clone()))
    return found


def write_motion(path, nframe=50):
    """Writes a motion file of the G1: it sways in its initial pose, 50 frames a second."""
    from mjlab.asset_zoo.robots import get_g1_robot_cfg

    model = get_g1_robot_cfg().build().spec.compile()
    data, dof = mujoco.MjData(model), model.nv - 6
    start, rows = model.key_qpos[0].copy(), {}
    for k in range(nframe):
        phase, rate = 2.0 * np.pi * k / 50.0, 2.0 * np.pi
        data.qpos = start
        data.qpos[7:] += 0.1 * np.sin(phase)
        data.qvel[:] = 0.0
        data.qvel[6:] = 0.1 * rate * np.cos(phase)
        mujoco.mj_forward(model, data)
        velocity = np.zeros((model.nbody, 6))
        for body in range(model.nbody):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity[body], 0)
        row = {"joint_pos": data.qpos[7:], "joint_vel": data.qvel[6:], "body_pos_w": data.xpos[1:]}
        row |= {"body_quat_w": data.xquat[1:], "body_lin_vel_w": velocity[1:, 3:], "body_ang_vel_w": velocity[1:, :3]}
        for name, value in row.items():
            rows.setdefault(name, []).append(np.array(value))
    assert dof == len(rows["joint_pos"][0])
    np.savez(path, fps=50, **{name: np.stack(values) for name, values in rows.items()})
