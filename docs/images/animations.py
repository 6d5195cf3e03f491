"""Draws the animations of the first pages: quadrupeds.gif, five_robots.gif; two minutes.

`real_robots.py` draws robots.gif.  Needs `pip install '.[view]'`; headless machines draw through EGL:
`MUJOCO_GL=egl python docs/images/animations.py`.  Names of animations as arguments draw these alone.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

import featherlane as fl
from featherlane.tools.renderer import PICTURES, Painter, prepare_rendering

FOLDER, EXAMPLES = Path(__file__).parent, Path(__file__).parents[2] / "examples"
COLOURS, RATE = 128, 15  # colours of a file, frames per second
MOST_BYTES = 1_200_000
FLOOR = 5  # group of the planes


def save(name: str, frames: list[np.ndarray]) -> None:
    """Saves frames (height, width, 3) as a GIF of one palette, which repeats."""
    sample = np.concatenate(frames[:: max(1, len(frames) // 5)])
    palette = Image.fromarray(sample).quantize(COLOURS, Image.Quantize.FASTOCTREE)
    first, *rest = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    path = FOLDER / f"{name}.gif"
    first.save(path, save_all=True, append_images=rest, duration=1000 // RATE, loop=0, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {size // 1000} kB, {len(frames)} frames")
    assert size < MOST_BYTES, "too large for a first page"


def crowd(
    model, positions: np.ndarray, offsets: np.ndarray, camera: dict, size: tuple[int, int], groups: tuple = (0, 1, 2)
) -> list[np.ndarray]:
    """Returns pictures of many worlds on one floor.

    Args:
        model: the model of all worlds.
        positions: (frames, nworld, nq).
        offsets: of the worlds in the plane (nworld, 2) [m].
        camera: attributes of the free camera.
        size: width and height [pixels].
        groups: groups of the geoms that are drawn; planes are always drawn.
    """
    mj = model.to_mujoco()
    mj.geom_group[mj.geom_type == mujoco.mjtGeom.mjGEOM_PLANE] = FLOOR
    mj.vis.global_.offwidth, mj.vis.global_.offheight = size
    mj.vis.map.shadowclip, mj.vis.quality.shadowsize = 7.0, 8192  # shadows of all worlds
    mj.mat_reflectance[:] = 0.0
    data, perturb, look = mujoco.MjData(mj), mujoco.MjvPerturb(), mujoco.MjvCamera()
    floor, robot = mujoco.MjvOption(), mujoco.MjvOption()
    floor.geomgroup[:] = np.arange(6) == FLOOR
    robot.geomgroup[:] = np.isin(np.arange(6), groups)
    for name, value in camera.items():
        if np.ndim(value):
            getattr(look, name)[:] = value
        else:
            setattr(look, name, value)
    frames = []
    with mujoco.Renderer(mj, size[1], size[0], max_geom=2 * len(offsets) * mj.ngeom) as renderer:
        for worlds in positions:
            mujoco.mj_forward(mj, data)
            renderer.update_scene(data, look, floor)
            for qpos, offset in zip(worlds, offsets, strict=True):
                data.qpos[:] = qpos
                mujoco.mj_kinematics(mj, data)
                first = renderer.scene.ngeom
                mujoco.mjv_addGeoms(mj, data, robot, perturb, mujoco.mjtCatBit.mjCAT_ALL, renderer.scene)
                for geom in renderer.scene.geoms[first : renderer.scene.ngeom]:
                    geom.pos[:2] += offset
            frames.append(renderer.render().copy())
    return frames


def grid(rows: int, columns: int, spacing: float) -> np.ndarray:
    """Returns places in the plane (rows * columns, 2), centred."""
    x, y = np.meshgrid(np.arange(rows) - (rows - 1) / 2, np.arange(columns) - (columns - 1) / 2, indexing="ij")
    return spacing * np.stack([x.ravel(), y.ravel()], axis=1)


def quadrupeds() -> None:
    """Quadrupeds fall from different heights, as in the quick start."""
    rows, columns, seconds = 4, 6, 1.6
    model = fl.bundled("quadruped")
    batch, positions = fl.Batch(model, nworld=rows * columns), []
    batch.reset(keyframe="home")
    batch.qpos[:, 2] += np.linspace(0.0, 1.0, batch.nworld).reshape(columns, rows).T.ravel()
    steps = round(1 / RATE / model.opt.timestep)
    for _ in range(round(seconds * RATE)):
        positions.append(batch.qpos.copy())
        batch.step(steps)
    positions += [positions[-1]] * (RATE // 2)
    look = {"lookat": [0, 0, 0.35], "distance": 5.2, "azimuth": 115, "elevation": -18}
    save("quadrupeds", crowd(model, np.array(positions), grid(rows, columns, 0.75), look, (560, 300)))


def five_robots() -> None:
    """One policy walks five quadrupeds (examples/five_quadrupeds.py)."""
    sys.path.insert(0, str(EXAMPLES))
    with contextlib.redirect_stdout(io.StringIO()):
        five, path = importlib.import_module("five_quadrupeds").main()
    strips, (width, height) = [], (128, 160)
    for world, (model, _) in enumerate(five.models):
        mj = model.to_mujoco()
        mj.vis.map.shadowclip, mj.vis.quality.shadowsize = 8.0, 4096
        mj.mat_reflectance[:] = 0.0
        strip = []
        with Painter(fl.load(mj), {"distance": 1.7, "azimuth": 120, "elevation": -14}, (width, height)) as painter:
            for qpos in path[20:62, world, : model.nq]:
                painter.camera.lookat[:] = [*qpos[:2], 0.22]
                strip.append(painter.picture(qpos).copy())
        strips.append(strip)
    save("five_robots", [np.hstack(frames) for frames in zip(*strips, strict=True)])


ANIMATIONS = {f.__name__: f for f in (quadrupeds, five_robots)}

if __name__ == "__main__":
    prepare_rendering(PICTURES)
    for name in sys.argv[1:] or ANIMATIONS:
        ANIMATIONS[name]()
