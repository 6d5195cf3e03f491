"""Depth images of a camera, next to MuJoCo's mj_multiRay on the same rays, one thread; two minutes.

    python benchmarks/cameras.py --write

A scene is a model of a wheel, with a floor, a box and a camera.  The rounds of both sides alternate; times are medians
of processor time.
"""

from __future__ import annotations

import time

from report import arguments, markdown, origin, publish, source_of

import mujoco  # isort: skip  (the tests' oracle)
import numpy as np

import featherlane as fl

SIZE, WORLDS, ROUNDS = 64, 32, 5
SCENES = {  # model: camera position, axes
    "robosuite/robots/panda/robot": ((1.6, -1.4, 1.3), (0.66, 0.75, 0, -0.38, 0.33, 0.86)),
    "gymnasium_robotics/assets/kitchen_franka/kitchen_assets/kitchen_env_model": (
        (1.6, -1.4, 1.3),
        (0.66, 0.75, 0, -0.38, 0.33, 0.86),
    ),
    "bundled/humanoid": ((2.5, -2.0, 1.5), (0.62, 0.78, 0, -0.25, 0.2, 0.94)),
}


def scene(name: str) -> fl.Model:
    """Returns the model with a floor, a box and the camera `view`."""
    spec = mujoco.MjSpec.from_file(source_of(name))
    position, axes = SCENES[name]
    spec.worldbody.add_camera(name="view", pos=position, xyaxes=axes, fovy=45)
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

    calls = [theirs, *(lambda b=b: b.camera("view", SIZE, SIZE) for b in batches)]
    for call in calls:
        call()
    times = []
    for _ in range(ROUNDS):
        times.append([])
        for call in calls:
            start = time.process_time()
            call()
            times[-1].append(time.process_time() - start)
    other, double, single = np.median(times, axis=0) / (1, WORLDS, WORLDS)
    seen = int((np.unique(geom) >= 0).sum())
    return [
        name.split("/")[-1] if name.startswith(("bundled", "gym")) else name.split("/")[-2],
        f"{model.ngeom} ({seen} seen)",
        *(f"{1e9 * t / n:.0f}" for t in (other, double, single)),
        *(f"{1 / t:.0f}" for t in (double, single)),
        *(f"{other / t:.1f}" for t in (double, single)),
    ]


def main() -> None:
    asked = arguments(__doc__ or "").parse_args()
    columns = ("scene", "geoms", "mj_multiRay [ns/ray]", "float64 [ns/ray]", "float32 [ns/ray]")
    columns += ("float64 [images/s]", "float32 [images/s]", "ratio float64", "ratio float32")
    table = markdown(columns, [measured(name) for name in SCENES])
    publish("cameras", f"{table}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
