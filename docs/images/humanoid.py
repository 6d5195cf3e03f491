"""Draws humanoid.png: humanoids in many worlds under different controls; later states are nearer.

Needs `pip install '.[view]'`; headless machines draw through EGL: `MUJOCO_GL=egl python docs/images/humanoid.py`.
"""

from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

import featherlane as fl

COLUMNS, ROWS, SPACING = 9, 6, 1.4  # worlds abreast, moments, m
STEPS, HOLD, STRENGTH = 48, 16, 0.55  # from row to row, of one control, of full range
SIZE = 520, 1120
COLOURS = 256  # keeps the file below 300 kB
TARGET = Path(__file__).with_suffix(".png")


def positions(model) -> np.ndarray:
    """Positions of each row's worlds, (ROWS, COLUMNS, nq)."""
    batch, rng, rows = fl.Batch(model, nworld=COLUMNS), np.random.default_rng(4), []
    for _ in range(ROWS):
        rows.append(batch.qpos.copy())
        for _ in range(STEPS // HOLD):
            batch.ctrl = rng.uniform(-STRENGTH, STRENGTH, batch.ctrl.shape)
            batch.step(HOLD)
    return np.array(rows)


def main() -> None:
    model = fl.bundled("humanoid")
    mj = model.to_mujoco()
    mj.vis.global_.offheight, mj.vis.global_.offwidth = SIZE
    mj.vis.map.shadowclip, mj.vis.quality.shadowsize = 7.0, 8192  # shadows as far as the crowd reaches
    mj.mat_reflectance[:] = 0.0
    data, option, perturb = mujoco.MjData(mj), mujoco.MjvOption(), mujoco.MjvPerturb()
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance, camera.azimuth, camera.elevation = (3.8, -0.1, 0.1), 9.6, 165, -21
    with mujoco.Renderer(mj, *SIZE, max_geom=2 * COLUMNS * ROWS * mj.ngeom) as renderer:
        mujoco.mj_forward(mj, data)
        renderer.update_scene(data, camera, option)
        renderer.scene.ngeom = 1  # the floor
        for row, worlds in enumerate(positions(model)):
            for column, qpos in enumerate(worlds):
                data.qpos[:] = qpos
                data.qpos[0] += row * SPACING
                data.qpos[1] += (column - (COLUMNS - 1) / 2) * SPACING
                mujoco.mj_forward(mj, data)
                mujoco.mjv_addGeoms(mj, data, option, perturb, mujoco.mjtCatBit.mjCAT_DYNAMIC, renderer.scene)
        Image.fromarray(renderer.render()).quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
