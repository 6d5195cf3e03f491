"""Draws tasks.png: a quadruped on each kind of ground, with idle servos.

Needs `pip install '.[gym,view]'`; headless machines draw through EGL.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from featherlane.environments import make_vec

KINDS, SIDE, IDLE = ("rough", "waves", "steps"), 384, 25

pictures = []
for kind in KINDS:
    env = make_vec(
        "QuadrupedRough-v0", 1, terrain=kind, terrain_height=0.15, start_noise=0.0, width=SIDE, height=SIDE,
        render_mode="rgb_array",
    )  # fmt: skip
    seed = next(s for s in range(100) if env.reset(seed=s) and env.task.tile[0] == 3)  # the highest
    env.reset(seed=seed)
    for _ in range(IDLE):
        env.step(np.zeros(env.action_space.shape))
    pictures.append(env.render()[0])
    env.close()
Image.fromarray(np.concatenate(pictures, axis=1)).save(Path(__file__).with_suffix(".png"), optimize=True)
