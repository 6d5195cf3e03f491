"""A quadruped from PyPI learns to walk; the exported policy then walks in MuJoCo.

    pip install 'featherlane[jit,rsl-rl]' onnx onnxscript onnxruntime
    pip install --no-deps robosuite-models==1.0.0    # the robot
    python examples/sim_to_real.py                   # 1024 worlds, 300 updates
    python examples/sim_to_real.py 64 2 1            # worlds, updates, seconds of a test

docs/sim-to-real.md explains the steps.  The policy is written to runs/go2/policy.onnx.
"""

import sys
from importlib.util import find_spec

import mujoco
import numpy as np
import onnxruntime
import torch
from mujoco import mjtObj, mjtSensor
from rsl_rl.runners import OnPolicyRunner

from featherlane.environments import QuadrupedRough, TaskEnv
from featherlane.environments.adapters import rsl_rl

PACKAGE = find_spec("robosuite_models").submodule_search_locations[0]
# of the feet FR, FL, RR, RL: sign of the phase in a trot, position of the hip
TROT = np.array([1, -1, -1, 1])
HIPS = np.array([[0.19, -0.14], [0.19, 0.14], [-0.19, -0.14], [-0.19, 0.14]])  # [m]
NOISE = {"gyro": (0.2, 3), "up": (0.05, 3), "angles": (0.02, 12), "rates": (0.15, 12)}
WEIGHTS = {k: 0.02 * w for k, w in QuadrupedRough.default_weights.items()}
WEIGHTS |= {"velocity": 0.04, "turn": 0.02, "gait": 0.02, "jerk": -2e-4}
NET = {"class_name": "MLPModel", "hidden_dims": [128, 128], "obs_normalization": True}
NORMAL = {"class_name": "GaussianDistribution", "init_std": 0.5}
SETTINGS = {"num_steps_per_env": 24, "save_interval": 100, "critic": NET}
SETTINGS |= {"actor": NET | {"distribution_cfg": NORMAL}}
SETTINGS |= {"obs_groups": {"actor": ["actor"], "critic": ["critic"]}}
SETTINGS |= {"algorithm": {"class_name": "PPO", "entropy_coef": 0.003, "gamma": 0.97}}


def clock(time, command):
    """Returns sine and cosine of the gait's phase, (n, 2), or zero for standing."""
    phase = np.stack([np.sin(4 * np.pi * time), np.cos(4 * np.pi * time)], axis=1)
    return phase * command.any(axis=1)[:, None]


def pose(rest, time, command, action):
    """Returns angles of the servos, (n, 12): a trot with the command, and the action."""
    sine, cosine = clock(time, command).T[:, :, None] * TROT  # (n, 4) each
    stride, up = 0.6 * cosine, 0.2 * np.maximum(sine, 0.0)  # [rad s/m], [rad]
    ahead = stride * (command[:, :1] - command[:, 2:] * HIPS[:, 1])
    aside = -stride * (command[:, 1:2] + command[:, 2:] * HIPS[:, 0])
    trot = np.stack([aside, ahead + up, -2 * up], axis=2).reshape(-1, 12)
    return rest[7:] + trot + 0.3 * action


def observed(sensors, rest, time, command, action):
    """Returns what the policy observes, (n, 47) in parts."""
    gyro, up, angles, rates = np.split(sensors, [3, 6, 18], axis=1)
    found = {"gyro": gyro, "up": up, "angles": angles - rest[7:], "rates": 0.1 * rates}
    return found | {"command": command, "clock": clock(time, command), "action": action}


class Walk(QuadrupedRough):
    """The robot tracks velocity commands on rough ground, despite pushes."""

    robot, feet = f"{PACKAGE}/assets/robots/go2/robot.xml", ("FR", "FL", "RR", "RL")
    fields, default_weights = ("sensordata", "site_xpos", "actuator_force"), WEIGHTS

    def shape_model(self, spec):
        spec.option.timestep, spec.option.gravity[2] = 0.02 / self.frame_skip, -9.81
        # pyramidal cones, implicitfast
        spec.option.cone, spec.option.impratio, spec.option.integrator = 0, 1, 3
        spec.worldbody.add_geom(name="floor", type=0, size=(0, 0, 1))  # a plane
        super().shape_model(spec)  # terrain in place of the plane
        for foot in map(spec.geom, self.feet):  # spheres of 22 mm
            foot.parent.add_site(name=foot.name, pos=foot.pos - [0, 0, 0.022])
        for motor in spec.actuators:
            motor.forcerange = motor.ctrlrange
            motor.ctrlrange = spec.joint(motor.target).range
            motor.set_to_position(kp=60, kv=0.5)  # [N m/rad, N m s/rad]
        joints = [(mjtObj.mjOBJ_JOINT, motor.target) for motor in spec.actuators]
        made = [(mjtSensor.mjSENS_GYRO, mjtObj.mjOBJ_SITE, "imu")]
        made += [(mjtSensor.mjSENS_FRAMEZAXIS, mjtObj.mjOBJ_BODY, "world")]
        made += [(mjtSensor.mjSENS_JOINTPOS, *joint) for joint in joints]
        made += [(mjtSensor.mjSENS_JOINTVEL, *joint) for joint in joints]
        for kind, obj, of in made:
            spec.add_sensor(type=kind, objtype=obj, objname=of, delay=0.01, nsample=6)
        spec.sensors[1].reftype, spec.sensors[1].refname = mjtObj.mjOBJ_SITE, "imu"

    def targets(self, worlds, ids):
        return pose(self.rest, worlds.time[ids], self.command[ids], self.action[ids])

    def observation(self, worlds):
        now = self.rest, worlds.time, self.command, self.action
        actor = observed(worlds.sensordata, *now)
        return {"actor": actor, "critic": super().observation(worlds) | actor}

    def observation_noise(self, worlds, ids, random):
        return {"actor": {k: s * random.normal(ids, n) for k, (s, n) in NOISE.items()}}

    def gait(self, worlds):
        x, y, z = worlds.site_xpos[:, self.soles].transpose(2, 0, 1)
        lift = np.maximum(clock(worlds.time, self.command)[:, :1] * TROT, 0.0)
        error = z - self.height_at(x, y) - 0.07 * lift
        return super().gait(worlds) | {"gait": np.exp(-200 * (error**2).sum(axis=1))}


def in_featherlane(policy, command, seconds, worlds=64):
    """Returns mean velocities (3,) and falls per robot, on rough ground with pushes."""
    forward, sideways, turn = zip(command, command, strict=True)
    task = Walk(frame_skip=4, forward=forward, sideways=sideways, turn=turn, standing=0)
    env = TaskEnv(task, worlds, dtype="float32")
    (seen, _), found, falls = env.reset(seed=7), [], 0.0
    for _ in range(round(seconds / env.dt)):
        seen, _, fallen, _, _ = env.step(policy(seen["actor"]))
        found.append(seen["critic"][:, [0, 1, 5]].mean(axis=0))
        falls += fallen.mean()
    return np.mean(found, axis=0), falls


def in_mujoco(policy, command, seconds):
    """Returns mean velocities (3,) and falls on flat ground, with steps of 2 ms."""
    model = Walk(frame_skip=10, delay=(0.01, 0.01), terrain=()).model.to_mujoco()
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    data, random, found = mujoco.MjData(model), np.random.default_rng(0), []
    mujoco.mj_resetDataKeyframe(model, data, 0)
    rest, command, action = data.qpos.copy(), np.array([command]), np.zeros((1, 12))
    while data.time < seconds and data.qpos[2] > 0.15:
        now = rest, np.array([data.time]), command
        parts = observed(data.sensordata[None], *now, action)
        action = np.clip(policy(np.concatenate([*parts.values()], axis=1)), -1, 1)
        data.ctrl = pose(*now, action)[0]
        mujoco.mj_step(model, data, nstep=10)
        velocity = data.body("body").xmat.reshape(3, 3).T @ data.qvel[:3]
        found.append([*velocity[:2], data.qvel[5]])
        # a push every 4 s
        data.qvel[:2] += (len(found) % 200 == 0) * random.uniform(-0.5, 0.5, 2)
    return np.mean(found, axis=0), float(data.time < seconds)


def main(worlds=1024, updates=300, seconds=20, folder="runs/go2"):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    env = rsl_rl.make(Walk(frame_skip=4), int(worlds), seed=1, dtype="float32")
    runner = OnPolicyRunner(env, SETTINGS, folder)
    runner.learn(int(updates), init_at_random_ep_len=True)
    runner.export_policy_to_onnx(folder)
    session = onnxruntime.InferenceSession(f"{folder}/policy.onnx")

    def policy(rows):  # the file computes one row at a time
        rows = np.asarray(rows, np.float32)[:, None]
        return np.concatenate([session.run(None, {"obs": row})[0] for row in rows])

    for command in (0.8, 0, 0), (-0.4, 0, 0), (0, 0.3, 0), (0, 0, 0.8):  # [m/s, rad/s]
        for run in in_featherlane, in_mujoco:
            velocity, falls = run(policy, command, float(seconds))
            print(f"{run.__name__} {command}: {velocity.round(2)}, {falls:.2f} falls")


if __name__ == "__main__":
    main(*sys.argv[1:])
