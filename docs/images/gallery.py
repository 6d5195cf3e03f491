"""Draws the pictures of docs/gallery.md: gallery_NAME.png, each after some seconds of simulation; a minute.

Needs `pip install '.[view]'`; headless machines draw through EGL: `MUJOCO_GL=egl python docs/images/gallery.py`.  Names
of pictures as arguments draw these alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

import featherlane as fl
from featherlane.tools.renderer import PICTURES, Painter, prepare_rendering

SIZE, COLOURS = (480, 360), 128  # pixels; colours keep a file below 150 kB
FOLDER = Path(__file__).parent


class Picture(NamedTuple):
    """What is drawn.

    Attributes:
        model: name of a bundled model.
        seconds: of simulation.
        camera: attributes of the free camera.
        control: a control by time and model, (nu,).
        options: of the model, names and values.
        keyframe: where it begins.
    """

    model: str
    seconds: float
    camera: dict
    control: Callable[[float, fl.Model], np.ndarray] | None = None
    options: tuple = ()
    keyframe: int | None = None


def wave(t, model):
    """Each actuator a little later than the one before."""
    return 0.6 * np.sin(2 * t + 0.5 * np.arange(model.nu))


SCENES = {
    "quadruped": Picture("quadruped", 1.0, {"distance": 1.3, "azimuth": 130, "elevation": -18}, keyframe=0),
    "humanoid": Picture("humanoid", 0.62, {"distance": 2.6, "azimuth": 150, "elevation": -12}, wave),
    "hand": Picture("hand", 2.0, {"distance": 0.36, "azimuth": 150, "elevation": -15}),
    "arm": Picture("arm", 2.0, {"distance": 1.6, "azimuth": 130, "elevation": -15}, wave),
    "pyramid": Picture("pyramid", 1.0, {"distance": 2.4, "azimuth": 75, "elevation": -15}),
    "pile": Picture("pile", 4.0, {"distance": 1.7, "azimuth": 60, "elevation": -25}),
    "rope": Picture("rope", 1.1, {"distance": 3.0, "azimuth": 90, "elevation": -5}),
    "slider_crank": Picture("slider_crank", 0.6, {"distance": 1.9, "azimuth": 90, "elevation": -10}, wave),
    "tower": Picture(
        "box_stack", 5.0, {"distance": 1.9, "azimuth": 60, "elevation": -8}, options=(("contact_model", "lcp"),)
    ),
}


def draw(name: str, scene: Picture) -> None:
    """Simulate and draw."""
    mj = fl.bundled(scene.model).to_mujoco()
    mj.vis.map.shadowclip, mj.vis.quality.shadowsize = 8.0, 8192  # shadows as far as one sees
    mj.mat_reflectance[:] = 0.0
    model = fl.load(mj)
    for option, value in scene.options:
        setattr(model.opt, option, value)
    data = fl.Data(model)
    if scene.keyframe is not None:
        data.reset(keyframe=scene.keyframe)
    while data.time < scene.seconds:
        if scene.control:
            data.ctrl = np.clip(scene.control(data.time, model), *model.actuator_ctrlrange.T)
        fl.step(model, data)
    look = scene.camera | {"lookat": data.subtree_com[0]}
    with Painter(model, look, SIZE) as painter:
        picture = Image.fromarray(painter.picture(data.qpos))
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(FOLDER / f"gallery_{name}.png", optimize=True)


if __name__ == "__main__":
    prepare_rendering(PICTURES)
    for name in sys.argv[1:] or SCENES:
        draw(name, SCENES[name])
