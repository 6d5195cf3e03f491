"""Draws the README's animation robots.gif: Unitree G1 and Go2, Franka Panda and a Shadow hand; ten minutes.

Needs `pip install '.[view]'`; headless machines draw through EGL: `MUJOCO_GL=egl python docs/images/real_robots.py`.
The models are those of public wheels (`tests/robots/wheels.py`), with a floor and position servos.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mujoco
import numpy as np
from animations import RATE, crowd, grid, save
from PIL import Image, ImageDraw, ImageFont

import featherlane as fl
from featherlane.tools.renderer import PICTURES, prepare_rendering

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from robots.wheels import model_path

SIZE, SECONDS = (360, 220), 2.4
FRAMES = round(SECONDS * RATE)
SKY, LIGHT_TILE, DARK_TILE = (0.93, 0.95, 0.97), (0.80, 0.83, 0.86), (0.74, 0.78, 0.82)
VISUAL = 1  # group of the visual geoms of robosuite's models


def scene(name: str, height: float = 0.0) -> mujoco.MjSpec:
    """Returns a robot above a floor of tiles of 0.5 m; its root is moved up by a height [m]."""
    spec = mujoco.MjSpec.from_file(str(model_path(name)))
    spec.worldbody.first_body().pos[2] += height
    spec.option.gravity, spec.option.integrator = [0.0, 0.0, -9.81], mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    builtin = mujoco.mjtBuiltin
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=builtin.mjBUILTIN_FLAT, rgb1=SKY, width=8, height=8
    )
    tiles = spec.add_texture(name="tiles", type=mujoco.mjtTexture.mjTEXTURE_2D, width=64, height=64)
    tiles.builtin, tiles.rgb1, tiles.rgb2 = builtin.mjBUILTIN_CHECKER, LIGHT_TILE, DARK_TILE
    spec.add_material(name="tiles", textures=["", "tiles"], texrepeat=[1, 1], texuniform=True)
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[20, 20, 0.1], material="tiles")
    spec.worldbody.add_light(type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, dir=[-0.4, 0.3, -1], pos=[2, -2, 5])
    head = spec.visual.headlight
    head.diffuse, head.ambient, head.specular = [0.4] * 3, [0.35] * 3, [0.0] * 3
    return spec


def servos(spec: mujoco.MjSpec, stiffness: float, damping: float, force: float) -> None:
    """Replaces all motors by position servos [N m/rad, N m s/rad, N m] with a rotor inertia of 0.01 kg m^2."""
    for actuator in spec.actuators:
        actuator.set_to_position(kp=stiffness, kv=damping)
        actuator.ctrllimited, actuator.forcelimited = False, True
        actuator.forcerange = [-force, force]
        spec.joint(actuator.target).armature = 0.01


def joints(model: fl.Model) -> list[str]:
    """Returns the names of the joints of the actuators."""
    return [model.joint(int(j)).name for j in model.actuator_trnid[:, 0]]


def path(batch: fl.Batch, control) -> np.ndarray:
    """Returns the positions (frame, world, nq) of an animation; `control(time)` sets the controls before each step."""
    steps, positions = round(1 / RATE / batch.model.opt.timestep), []
    for _ in range(FRAMES):
        positions.append(batch.qpos.copy())
        for _ in range(steps):
            batch.ctrl[:] = control(float(batch.time[0]))
            batch.step()
    return np.array(positions)


def g1() -> tuple[fl.Model, np.ndarray, np.ndarray, dict]:
    """Humanoids stand; each is pushed with a different force, and some fall."""
    spec = scene("robosuite_models/robots/g1/robot", 0.03)
    servos(spec, 500.0, 10.0, 120.0)
    model = fl.load(spec)
    batch = fl.Batch(model, nworld=6)
    bend = {"hip_pitch": -0.25, "knee": 0.5, "ankle_pitch": -0.25, "shoulder_pitch": 0.2, "elbow_pitch": 0.9}
    names = joints(model)
    pose = np.array([next((angle for part, angle in bend.items() if part in name), 0.0) for name in names])
    for name, angle in zip(names, pose, strict=True):
        batch.joint(name).qpos[:] = angle
    push = np.linspace(-100.0, 100.0, batch.nworld)  # [N]
    torso = model.body("torso_link").id

    def control(time: float) -> np.ndarray:
        batch.xfrc_applied[:, torso, 0] = push * (0.5 < time < 0.75)
        return pose

    look = {"lookat": [0, 0, 0.55], "distance": 4.1, "azimuth": 150, "elevation": -14}
    return model, path(batch, control), grid(2, 3, 1.1), look


def go2() -> tuple[fl.Model, np.ndarray, np.ndarray, dict]:
    """Quadrupeds trot at different frequencies, without feedback."""
    spec = scene("robosuite_models/robots/go2/robot")
    servos(spec, 60.0, 2.0, 45.0)
    model = fl.load(spec)
    batch = fl.Batch(model, nworld=6)
    batch.reset(keyframe="home")
    names = joints(model)
    pose = np.array([float(batch.joint(name).qpos[0, 0]) for name in names])
    phase = np.array([0.0 if name[:2] in ("FR", "RL") else np.pi for name in names])
    thighs, calves = (np.array([part in name for name in names]) for part in ("thigh", "calf"))
    rate = np.linspace(1.5, 3.0, batch.nworld)[:, None]  # [1/s]

    def control(time: float) -> np.ndarray:
        swing = 2 * np.pi * rate * time + phase
        lift = np.maximum(np.sin(swing), 0.0)
        thigh = 0.25 * np.cos(swing) + 0.35 * lift
        return pose + np.where(thighs, thigh, 0.0) + np.where(calves, -0.6 * lift, 0.0)

    look = {"lookat": [0.15, 0, 0.2], "distance": 2.7, "azimuth": 145, "elevation": -22}
    return model, path(batch, control), grid(2, 3, 0.85), look


def panda() -> tuple[fl.Model, np.ndarray, np.ndarray, dict]:
    """Arms reach different points, which inverse kinematics converts to joint positions."""
    spec = scene("robosuite/robots/panda/robot")
    servos(spec, 1500.0, 150.0, 90.0)
    for body in spec.bodies[1:]:
        body.gravcomp = 1.0
    model, rng = fl.load(spec), np.random.default_rng(3)
    batch = fl.Batch(model, nworld=6)
    home = np.array([0.0, -0.4, 0.0, -2.2, 0.0, 1.9, 0.8])
    batch.qpos[:] = home
    goals = []
    for _ in range(3):
        angle, radius = rng.uniform(-1.2, 1.2, batch.nworld), rng.uniform(0.4, 0.65, batch.nworld)
        point = np.stack([radius * np.cos(angle), radius * np.sin(angle), rng.uniform(0.15, 0.7, batch.nworld)], axis=1)
        down = point - [0.0, 0.0, 1.0]  # the hand points down
        target = fl.IkTarget("right_hand", position=point, look_at=down, orientation_weight=0.3)
        goals.append(fl.ik(batch, target, posture_weight=1e-3).qpos)
    knots = np.stack([np.broadcast_to(home, goals[0].shape), *goals])

    def control(time: float) -> np.ndarray:
        at = min(time / SECONDS * len(goals), len(goals) - 1e-6)
        k, s = int(at), min(1.0, 1.4 * (at % 1.0))
        return knots[k] + (knots[k + 1] - knots[k]) * (3 - 2 * s) * s * s

    look = {"lookat": [0.2, 0, 0.4], "distance": 3.5, "azimuth": 145, "elevation": -18}
    return model, path(batch, control), grid(2, 3, 1.15), look


def hand() -> tuple[fl.Model, np.ndarray, np.ndarray, dict]:
    """Hands move a cube with different finger motions."""
    spec = scene("mjx/shadow_hand/right_hand", 0.25)
    spec.option.iterations, spec.option.ls_iterations = 100, 50
    cube = spec.worldbody.add_body(name="cube", pos=[0.335, 0.0, 0.33])
    cube.add_freejoint()
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.025] * 3, density=300, rgba=[0.85, 0.35, 0.15, 1], group=2)
    model, rng = fl.load(spec), np.random.default_rng(1)
    batch = fl.Batch(model, nworld=6)
    low, high = model.actuator_ctrlrange.T
    phase, rate = rng.uniform(0, 2 * np.pi, (batch.nworld, model.nu)), rng.uniform(0.6, 1.2, (batch.nworld, 1))
    curl = np.array([name[-1] in "123" and "TH" not in name and "WR" not in name for name in model.names("actuator")])

    def control(time: float) -> np.ndarray:
        share = np.where(curl, 0.25 - 0.2 * np.cos(2 * np.pi * rate * time + 0.3 * phase), 0.5)
        return np.clip(0.0, low, high) + share * curl * np.minimum(high, 1.5)

    look = {"lookat": [0.3, 0, 0.27], "distance": 0.95, "azimuth": 155, "elevation": -32}
    return model, path(batch, control), grid(1, 6, 0.17), look


PANELS = {"Unitree G1": g1, "Unitree Go2": go2, "Franka Panda": panda, "Shadow Hand": hand}


def frames(title: str) -> list[np.ndarray]:
    """Returns the pictures of a panel, drawn in the double size."""
    model, positions, offsets, look = PANELS[title]()
    big = (2 * SIZE[0], 2 * SIZE[1])
    drawn = []
    for frame in crowd(model, positions, offsets, look, big, (VISUAL, 2)):
        picture = Image.fromarray(frame).resize(SIZE, Image.Resampling.LANCZOS)
        label = f"{title}, {len(offsets)} worlds"
        ImageDraw.Draw(picture).text((10, 8), label, fill=(40, 50, 60), font=ImageFont.load_default(15))
        drawn.append(np.asarray(picture))
    return drawn


def main() -> None:
    """Draws the animation."""
    prepare_rendering(PICTURES)
    one, two, three, four = (frames(title) for title in PANELS)
    whole = [
        np.vstack([np.hstack(row) for row in ((a, b), (c, d))])
        for a, b, c, d in zip(one, two, three, four, strict=True)
    ]
    save("robots", [*whole, *[whole[-1]] * (RATE // 2)])


if __name__ == "__main__":
    main()
