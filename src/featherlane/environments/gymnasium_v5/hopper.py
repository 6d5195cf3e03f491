"""Hopper-v5: a planar one-legged robot hops along x."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import is_between
from featherlane.environments.gymnasium_v5.planar_walker import PlanarWalker, side_view
from featherlane.lanes import Kernel, kernel, true_mask


@dataclass(kw_only=True)
class Hopper(PlanarWalker):
    """Rewards hopping forward; state values out of range also terminate the episode."""

    xml_file: str = "hopper.xml"
    default_camera_config: Mapping[str, Any] | None = field(default_factory=lambda: side_view(3.0))
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)

    name = "Hopper-v5"
    reward_threshold = 3800.0

    def healthy(self, worlds: Batch) -> np.ndarray:
        """Returns which worlds are upright, high enough and have all state values in range, (n,) bool."""
        low, high = self.healthy_state_range
        numbers = is_between(low, worlds.qpos[:, 2:], high).all(axis=1) & is_between(low, worlds.qvel, high).all(axis=1)
        return super().healthy(worlds) & numbers

    def compiled_limits(self, worlds: Batch) -> Kernel:
        (low, high), nq, nv = self.healthy_state_range, worlds.model.nq, worlds.model.nv

        @kernel
        def within(d):
            """Returns the mask of worlds with positions from the third on, and velocities, between low and high."""
            good = true_mask(d)
            for k in range(2, nq):
                good = good & is_between(low, d.qpos[k], high)
            for k in range(nv):
                good = good & is_between(low, d.qvel[k], high)
            return good

        return within
