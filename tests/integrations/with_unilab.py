"""UniLab's tasks on Featherlane: the same environment on both backends, and a training through UniLab's command.

`test_other_mujoco.py` runs this file in a separate process, because unisim-core 2.2 needs MuJoCo 3.11.
"""

import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from unilab.base import registry
from unilab.base.config_adapter import EnvConfigAdapter
from unisim.scene import SceneCfg

from featherlane.integrations import unilab as tasks
from integrations.with_unisim import CLOSE, N, close, pair
from scenes.unisim_scenes import copied

WORLDS = 16
ROBOTS = {"go2": ("base", "home", 0.01), "g1": ("pelvis", "stand", 0.005)}
TASKS = {"Go2JoystickFlat": ("go2", "go2_joystick_flat/mujoco"), "G1WalkFlat": ("g1", "g1_walk_flat/mujoco")}


def environment(name, task, scene):
    """Returns a task's environment as UniLab's training makes it, with a seed."""
    given = [f"task={task}", f"env.scene.model_file={scene}", f"training.task_name={name}", "+env.seed=7"]
    with initialize_config_dir(str(files("unilab") / "conf" / "ppo"), version_base=None):
        cfg = compose("config", overrides=given)
    overrides = EnvConfigAdapter(cfg, root_dir=".").build_task_env_cfg_override()
    return registry.make(name, sim_backend="mujoco", env_cfg_override=overrides, num_envs=WORLDS)


def test_each_task_is_registered_in_both_precisions():
    registry.ensure_registries()
    known = [name for name, found in registry.list_registered_envs().items() if "mujoco" in found["available_backends"]]
    for name in known:
        assert name.startswith("Featherlane") or {f"Featherlane{name}", f"Featherlane32{name}"} <= set(known)
    assert tasks.register() == []


@pytest.mark.parametrize("robot", ROBOTS)
def test_robots_of_unilab_move_as_under_mujoco(robot, tmp_path):
    base, keyframe, sim_dt = ROBOTS[robot]
    scene = SceneCfg(model_file=str(copied(robot, tmp_path / "robot", tolerance=0)))
    backends, rng = pair(scene, base_name=base, sim_dt=sim_dt, body_state_required=True), np.random.default_rng(0)
    model = backends[0].model
    qpos = np.tile(backends[0].get_keyframe_qpos(keyframe), (N, 1))
    qpos[:, 7:] += rng.normal(0, 0.05, qpos[:, 7:].shape)
    qvel = rng.normal(0, 0.1, (N, model.nv))
    for backend in backends:
        backend._host_set_state(np.arange(N), qpos, qvel)
    rest = model.key_ctrl[mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, keyframe)]
    ids = np.arange(1, model.nbody)
    for _ in range(40):
        control = rest + rng.normal(0, 0.2, (N, model.nu))
        for backend in backends:
            backend._host_step(control, 2)
        close(backends)
        tracked = [[x._host_get_body_pos_w(ids), x._host_get_body_ang_vel_w(ids)] for x in backends]
        for reference, found in zip(*tracked, strict=True):
            np.testing.assert_allclose(found, reference, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("prefix", tasks.PREFIXES)
@pytest.mark.parametrize("name", TASKS)
def test_an_environment_has_the_same_observations_and_rewards(name, prefix, tmp_path):
    """UniLab keeps observations in float32, in which both agree, apart from sums of large and small numbers."""
    robot, task = TASKS[name]
    scene, found = copied(robot, tmp_path / "robot", tolerance=0), {}
    for each in (name, prefix + name):
        env, seen = environment(each, task, scene), []
        env.init_state()
        generator = torch.Generator().manual_seed(1)
        for _ in range(30):
            state = env.step(0.3 * torch.randn(WORLDS, env.action_space.shape[-1], generator=generator))
            seen.append((state.obs, state.reward.clone(), state.terminated.clone()))
            seen[-1] = ({key: value.clone() for key, value in state.obs.items()}, *seen[-1][1:])
        found[each] = seen
    tolerance = 1e-3 if prefix == "Featherlane" else 5e-2
    for theirs, own in zip(*found.values(), strict=True):
        for key in theirs[0]:
            torch.testing.assert_close(own[0][key], theirs[0][key], rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(own[1], theirs[1], rtol=tolerance, atol=tolerance)
        assert torch.equal(own[2], theirs[2])


def test_a_training_through_the_command_of_unilab(tmp_path):
    scene = copied("go2", tmp_path / "robot")
    command = [str(Path(sys.executable).with_name("train")), "--algo", "ppo", "--task", "go2_joystick_flat"]
    command += ["--sim", "mujoco", "training.task_name=FeatherlaneGo2JoystickFlat", f"env.scene.model_file={scene}"]
    command += ["algo.max_iterations=2", "algo.num_envs=16", "training.no_play=true", "training.device=cpu"]
    variables = {**os.environ, "UNILAB_EXTRA_REGISTRY_PACKAGES": "featherlane.integrations.unilab"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(re.findall(r"Learning iteration", done.stdout)) == 2
