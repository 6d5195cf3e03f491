"""Draws piles.png: the bundled box_stack, pyramid and hand after a minute.

Needs `pip install '.[view]'`; headless machines draw through EGL: `MUJOCO_GL=egl python docs/images/piles.py`.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

import featherlane as fl

SECONDS, HEIGHT, WIDTH = 60.0, 448, 522

pictures = []
for name in ("box_stack", "pyramid", "hand"):
    model = fl.bundled(name)
    data = fl.Data(model)
    while data.time < SECONDS:
        fl.step(model, data)
    mj = model.to_mujoco()
    shown = mujoco.MjData(mj)
    shown.qpos[:] = data.qpos
    mujoco.mj_forward(mj, shown)
    with mujoco.Renderer(mj, HEIGHT, WIDTH) as renderer:
        renderer.update_scene(shown, camera="front")
        pictures.append(renderer.render().copy())
Image.fromarray(np.concatenate(pictures, axis=1)).save(Path(__file__).with_suffix(".png"), optimize=True)
