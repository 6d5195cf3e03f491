"""Draws images of cameras: cameras.png (depth, segmentation and colours of 16 worlds) and cameras.gif; half a minute.

Needs matplotlib and Pillow; the images are `batch.render`'s, so no graphics library is needed:
`python docs/images/cameras.py`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

import featherlane as fl

FOLDER, SIDE, WORLDS, GAP = Path(__file__).parent, 64, 16, 8  # pixels
FRAMES, STEPS, RATE, COLOURS = 40, 6, 20, 64  # frames, time steps between them, frames a second
SHOWN = 14  # frame of the picture
NEAREST, FARTHEST, FIELD = 2.0, 4.5, 34.0  # depths of the lightest and the darkest colour [m], field of view [deg]


def falling() -> tuple[fl.Batch, fl.Camera]:
    """Returns humanoids whose colours and initial velocities differ, and a camera."""
    model, random = fl.bundled("humanoid"), np.random.default_rng(2)
    model.cam_fovy[:] = FIELD
    batch = fl.Batch(model, WORLDS)
    batch.qvel[:] = random.normal(0.0, 0.8, batch.qvel.shape)
    batch.ctrl[:] = random.uniform(-0.7, 0.7, batch.ctrl.shape)
    colours = np.tile(random.uniform(0.25, 0.95, (WORLDS, 1, 3)), (1, model.ngeom, 1))
    colours[:, np.flatnonzero(model.geom_bodyid == 0)] = (0.75, 0.76, 0.8)
    return batch, fl.Camera("front", width=SIDE, height=SIDE, output=("depth", "segmentation", "rgb"), geom_rgb=colours)


def mosaic(images: np.ndarray) -> np.ndarray:
    """Returns images (16, height, width, 3) as four rows of four."""
    n = round(WORLDS**0.5)
    rows = images.reshape(n, n, SIDE, SIDE, 3).transpose(0, 2, 1, 3, 4)
    return rows.reshape(n * SIDE, n * SIDE, 3)


def coloured(found: fl.results.Images) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns depth, segmentation and colours as mosaics (256, 256, 3) uint8."""
    assert found.depth is not None and found.segmentation is not None and found.rgb is not None
    depth = np.clip((FARTHEST - found.depth) / (FARTHEST - NEAREST), 0.0, 1.0)
    palette = np.vstack([matplotlib.colormaps["tab20"](np.arange(64) % 20)[:, :3], (1.0, 1.0, 1.0)])
    shades = matplotlib.colormaps["magma"](depth)[..., :3], palette[found.segmentation]
    return *(mosaic((255 * part).astype(np.uint8)) for part in shades), mosaic(found.rgb)


def side_by_side(mosaics) -> Image.Image:
    """Returns mosaics next to each other, with white gaps."""
    gap = np.full((mosaics[0].shape[0], GAP, 3), 255, np.uint8)
    parts = [part for each in mosaics for part in (each, gap)][:-1]
    return Image.fromarray(np.concatenate(parts, axis=1))


def main() -> None:
    batch, camera = falling()
    frames = []
    for k in range(FRAMES):
        found = coloured(batch.render(camera))
        frames.append(side_by_side(found).quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE))
        if k == SHOWN:
            side_by_side(found).quantize(256, dither=Image.Dither.NONE).save(FOLDER / "cameras.png", optimize=True)
        batch.step(STEPS)
    frames[0].save(
        FOLDER / "cameras.gif", save_all=True, append_images=frames[1:], duration=1000 // RATE, loop=0, optimize=True
    )


if __name__ == "__main__":
    main()
