"""Depth and colour images, and height scans, next to MuJoCo's rays and to a control step, one thread; four minutes.

    python benchmarks/cameras.py --write
    python benchmarks/cameras.py --video --write  # only the images of environments, twenty seconds

A scene of a camera is a model of a wheel, with a floor, a box and a camera; the floor of the robot g1 is a height
field.  A height scan has 187 rays from the trunk of the bundled quadruped on rough ground; a control step is four steps
of all worlds.  An image of an environment has the default size of `TaskEnv.render()`.  The rounds of all sides
alternate; times are medians of processor time.
"""

from __future__ import annotations

import time
from types import MappingProxyType

from report import arguments, markdown, origin, publish, source_of

import mujoco  # isort: skip  (the tests' oracle)
import numpy as np

import featherlane as fl
from featherlane.environments import Task, TaskEnv

SIZE, WORLDS, ROUNDS = 64, 32, 5
WALKERS = 4096
SCENES = {  # model: camera position, axes
    "robosuite/robots/panda/robot": ((1.6, -1.4, 1.3), (0.66, 0.75, 0, -0.38, 0.33, 0.86)),
    "gymnasium_robotics/assets/kitchen_franka/kitchen_assets/kitchen_env_model": (
        (1.6, -1.4, 1.3),
        (0.66, 0.75, 0, -0.38, 0.33, 0.86),
    ),
    "robosuite_models/robots/g1/robot": ((2.5, -2.0, 1.5), (0.62, 0.78, 0, -0.25, 0.2, 0.94)),
    "bundled/humanoid": ((2.5, -2.0, 1.5), (0.62, 0.78, 0, -0.25, 0.2, 0.94)),
}


def add_rough_ground(spec: mujoco.MjSpec, random: np.random.Generator) -> None:
    """Adds a height field of 201 x 201 random heights, 20 m wide."""
    n = 201
    spec.add_hfield(
        name="rough", nrow=n, ncol=n, size=[10, 10, 0.08, 0.1], userdata=random.uniform(0, 1, n * n).tolist()
    )
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="rough")


def scene(name: str) -> fl.Model:
    """Returns the model with a floor, a box and the camera `view`."""
    spec = mujoco.MjSpec.from_file(source_of(name))
    position, axes = SCENES[name]
    spec.worldbody.add_camera(name="view", pos=position, xyaxes=axes, fovy=45)
    if "/g1/" in name:
        add_rough_ground(spec, np.random.default_rng(0))
    else:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2, 2, 0.1], pos=[0, 0, -0.02])
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.03] * 3, pos=[0.5, 0.1, 0.03])
    return fl.load(spec)


def rays(mj, data) -> np.ndarray:
    """Returns the unit directions of the pixels, (n, 3)."""
    at = np.arange(SIZE) + 0.5
    u, v = np.meshgrid(at, at)
    f = 0.5 * SIZE / np.tan(0.5 * np.deg2rad(45))
    way = np.stack([(u - 0.5 * SIZE) / f, (0.5 * SIZE - v) / f, -np.ones_like(u)], -1).reshape(-1, 3)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    return way @ data.cam_xmat[mj.camera("view").id].reshape(3, 3).T


def _medians(calls) -> np.ndarray:
    """Returns the median processor times of alternating calls, after one call of each."""
    times = []
    for _ in range(ROUNDS + 1):
        times.append([])
        for call in calls:
            start = time.process_time()
            call()
            times[-1].append(time.process_time() - start)
    return np.median(times[1:], axis=0)


def measured(name: str) -> list[str]:
    """Returns the row of a scene."""
    model = scene(name)
    mj, n = model.mj_model, SIZE * SIZE
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    way, origin_of_rays = np.ascontiguousarray(rays(mj, data)).ravel(), data.cam_xpos[mj.camera("view").id]
    geom, distance, group = np.zeros(n, np.int32), np.zeros(n), np.array([1, 1, 1, 0, 0, 0], np.uint8)
    batches = [fl.Batch(model, WORLDS, nthread=1, dtype=dtype) for dtype in ("float64", "float32")]

    def theirs() -> None:
        mujoco.mj_multiRay(mj, data, origin_of_rays, way, group, 1, -1, geom, distance, None, n, 1e10)

    depth = [theirs, *(lambda b=b: b.render("view", width=SIZE, height=SIZE) for b in batches)]
    other, double, single = _medians(depth) / (1, WORLDS, WORLDS)
    # apart: after an image in colours, the next calls of this process are slower for some milliseconds
    (coloured,) = _medians([lambda: batches[1].render("view", width=SIZE, height=SIZE, output="rgb")]) / WORLDS
    seen = int((np.unique(geom) >= 0).sum())
    return [
        name.split("/")[-1] if name.startswith(("bundled", "gym")) else name.split("/")[-2],
        f"{model.ngeom} ({seen} seen)",
        *(f"{1e9 * t / n:.0f}" for t in (other, double, single)),
        *(f"{1 / t:.0f}" for t in (double, single, coloured)),
        *(f"{other / t:.1f}" for t in (double, single)),
    ]


# ---- height scans ----------------------------------------------------------------------------------------------------
def walker(ground: str) -> fl.Model:
    """Returns the quadruped, in geom group 1, on a height field or on boxes of random heights, in group 0."""
    spec, random = mujoco.MjSpec.from_file(source_of("bundled/quadruped")), np.random.default_rng(0)
    for geom in spec.geoms:
        geom.group = 1
    spec.geom("floor").pos[2] = -1.0
    if ground == "height field":
        add_rough_ground(spec, random)
    else:
        for i, j in np.ndindex(20, 20):
            place = [0.45 * (i - 9.5), 0.45 * (j - 9.5), random.uniform(0, 0.08) - 0.5]
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.225, 0.225, 0.5], pos=place)
    return fl.load(spec)


def walking(model: fl.Model, dtype: str) -> fl.Batch:
    """Returns worlds that stand at different places."""
    batch, random = fl.Batch(model, WALKERS, nthread=1, dtype=dtype), np.random.default_rng(1)
    batch.reset(keyframe=0)
    batch.qpos[:, :2] = random.uniform(-3, 3, (WALKERS, 2))
    batch.qpos[:, 2] += 0.1
    batch.step(100)
    return batch


def scanned(ground: str, dtype: str) -> list[str]:
    """Returns the row of a height scan."""
    model, pattern = walker(ground), fl.patterns.grid()
    batch, out, group = walking(model, dtype), np.empty((WALKERS, len(pattern)), dtype), (1, 0, 0, 0, 0, 0)
    data, mj = batch.get_data(0), model.mj_model
    one = mujoco.MjData(mj)
    data.to_mujoco(one)
    down, flags, geom = np.array([0.0, 0.0, -1.0]), np.array(group, np.uint8), np.zeros(1, np.int32)
    starts = one.body("trunk").xpos + pattern.origin

    def theirs() -> None:
        for start in starts:
            mujoco.mj_ray(mj, one, start, down, flags, 1, -1, geom, None)

    calls = [
        theirs,
        lambda: batch.step(4),
        lambda: batch.height_scan("trunk", pattern, geomgroup=group, cutoff=20.0, out=out),
    ]
    other, step, scan = _medians(calls) / (1, WALKERS, WALKERS)
    assert np.isfinite(out).all()
    numbers = (f"{1e6 * step:.1f}", f"{1e6 * scan:.1f}", f"{1e9 * scan / len(pattern):.0f}", f"{100 * scan / step:.0f}")
    return [f"{ground}, {dtype}", *numbers, f"{1e6 * other:.0f}"]


# ---- images of environments ------------------------------------------------------------------------------------------
class Shown(Task):
    """A robot in its first keyframe, or in its default state, seen by a camera that follows it."""

    default_camera_config = MappingProxyType({"trackbodyid": 1, "distance": 2.5})

    def __init__(self, model: fl.Model):
        self.model = model

    def observation(self, worlds):
        return worlds.qpos

    def reward(self, worlds, actions, before):
        return np.zeros(worlds.nworld)

    def start(self, worlds, ids, random):
        if worlds.model.nkey:
            worlds.qpos[ids] = worlds.model.key_qpos[0]


def robot_on(ground: str) -> fl.Model:
    """Returns the Go2 on a plane or on a terrain."""
    spec = mujoco.MjSpec.from_file(source_of("robosuite_models/robots/go2/robot"))
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    if ground == "terrain":
        fl.terrain.Terrain(("rough", "stairs")).add_to(spec)
    return fl.load(spec)


def filmed(name: str, model: fl.Model) -> list[str]:
    """Returns the row of a scene: times of an image."""
    size = {"num_envs": 1, "nthread": 1, "render_mode": "rgb_array"}
    envs = [TaskEnv(Shown(model), dtype=dtype, **size) for dtype in ("float64", "float32")]
    for env in envs:
        env.reset()
    times = _medians([env.render for env in envs])
    return [name, str(model.ngeom), *(f"{1e3 * t:.1f}" for t in times)]


def write_video(write: bool) -> None:
    """Measures images of environments."""
    scenes = {"Go2 on a plane": robot_on("plane"), "Go2 on terrain": robot_on("terrain")}
    scenes |= {"humanoid": fl.bundled("humanoid"), "quadruped": fl.bundled("quadruped")}
    rows = [filmed(name, model) for name, model in scenes.items()]
    publish("video", f"{markdown(('scene', 'geoms', 'float64 [ms]', 'float32 [ms]'), rows)}\n\n{origin()}", write)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--video", action="store_true", help="only images of environments")
    asked = parser.parse_args()
    write_video(asked.write)
    if asked.video:
        return
    columns = ("scene", "geoms", "mj_multiRay [ns/ray]", "float64 [ns/ray]", "float32 [ns/ray]")
    columns += (
        "float64 [images/s]",
        "float32 [images/s]",
        "colours, float32 [images/s]",
        "ratio float64",
        "ratio float32",
    )
    table = markdown(columns, [measured(name) for name in SCENES])
    publish("cameras", f"{table}\n\n{origin()}", asked.write)
    columns = (
        "ground",
        "control step [us]",
        "scan [us]",
        "scan [ns/ray]",
        "scan [% of the control step]",
        "mj_ray [us]",
    )
    rows = [scanned(ground, dtype) for ground in ("height field", "400 boxes") for dtype in ("float64", "float32")]
    publish("scans", f"{markdown(columns, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
