"""The scenes whose bits are recorded."""

from __future__ import annotations

import functools

import featherlane as fl
from bits_motion import FEW, Motion

LARGE = {"chain", "pile", "pyramid", "stacks", "rope"}  # hundreds of dofs


def bundled(name: str) -> Motion:
    """A bundled model, thrown so that it soon touches something."""
    model = functools.partial(fl.load, name)
    if name in LARGE:
        return Motion(model, 6, position=0.02, velocity=0.5, worlds=FEW)
    return Motion(model, 40, position=0.1, drop=0.5 if name in ("humanoid", "quadruped") else 0.0)


MOTIONS = {name: bundled(name) for name in fl.bundled_names()}
SCENES = {name: motion.scene(name) for name, motion in MOTIONS.items()}
