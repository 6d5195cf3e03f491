"""Base class of Hopper and Walker2d: planar legged robots that move forward and stay upright."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import forward_motion, is_between, survive
from featherlane.environments.gymnasium_v5.forward_task import ForwardTask
from featherlane.environments.gymnasium_v5.mujoco_task import HealthyTask
from featherlane.environments.random_streams import RandomStreams
from featherlane.lanes import clip, kernel, true_mask
from featherlane.policies import LaneFunctions

FASTEST = 10.0  # observed velocities are clipped to this [m/s, rad/s]


def side_view(distance: float) -> dict[str, Any]:
    """Returns a camera that follows the thigh at a distance [m]."""
    return {"trackbodyid": 2, "distance": distance, "lookat": np.array((0.0, 0.0, 1.15)), "elevation": -20.0}


@dataclass(kw_only=True)
class PlanarWalker(ForwardTask, HealthyTask):
    """Rewards forward velocity and an upright posture; penalizes controls."""

    frame_skip: int = 4
    ctrl_cost_weight: float = 1e-3
    healthy_z_range: tuple[float, float]
    healthy_angle_range: tuple[float, float]
    reset_noise_scale: float = 5e-3

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {"qpos": worlds.qpos[:, self.hidden :], "qvel": np.clip(worlds.qvel, -FASTEST, FASTEST)}

    def healthy(self, worlds: Batch) -> np.ndarray:
        """Returns which worlds are upright with a height within range, (n,) bool."""
        return is_between(self.healthy_z_range[0], worlds.qpos[:, 1], self.healthy_z_range[1]) & is_between(
            self.healthy_angle_range[0], worlds.qpos[:, 2], self.healthy_angle_range[1]
        )

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        return {**super().reward(worlds, actions, before), "survive": self.survival()}

    def compiled(self, worlds: Batch) -> LaneFunctions:
        hidden = self.hidden
        reward, ends = float(self.healthy_reward), int(self.terminate_when_unhealthy)
        nq, nv, within = worlds.model.nq, worlds.model.nv, self.compiled_limits(worlds)
        remember, score_motion = forward_motion(self, worlds.model.nu, 1)
        (z_low, z_high), (angle_low, angle_high) = self.healthy_z_range, self.healthy_angle_range

        @kernel
        def observe(d, p, at_start):
            """obs <- positions from number `hidden` on, clipped velocities."""
            for k in range(hidden, nq):
                p.obs[k - hidden] = d.qpos[k]
            for k in range(nv):
                p.obs[nq - hidden + k] = clip(d.qvel[k], -FASTEST, FASTEST)

        @kernel
        def score(d, p, at_start):
            """Adds the rewards of `forward_motion` and of healthy worlds, which are upright and within limits."""
            score_motion(d, p, at_start)
            upright = is_between(z_low, d.qpos[1], z_high) & is_between(angle_low, d.qpos[2], angle_high)
            survive(p, upright & within(d), reward, terminates=ends)

        return LaneFunctions(observe, score, remember, 1)

    def compiled_limits(self, worlds: Batch) -> Callable[[Any], Any]:
        """Returns a kernel of d: the mask of worlds within further limits of `healthy`."""
        return true_mask

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=False)

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        height = worlds.qpos[:, 1] - self.init_qpos[1]
        return {"x_position": worlds.qpos[:, 0], "z_distance_from_origin": height}
