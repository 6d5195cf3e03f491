"""Humanoid-v5: a humanoid walks along x."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Batch
from featherlane.environments.gymnasium_v5.compiled import (
    add_reward,
    controls_squared,
    is_between,
    observe_state,
    sum_of_squares,
    survive,
)
from featherlane.environments.gymnasium_v5.mujoco_task import HealthyTask, MujocoTask, root_position, squares
from featherlane.environments.random_streams import RandomStreams
from featherlane.lanes import Kernel, clip, flat, kernel
from featherlane.policies import LaneFunctions

ROOT = 6  # DoFs of the free joint, which are not actuated


@dataclass(kw_only=True)
class HumanoidTask(MujocoTask):
    """Defines the observation of both humanoid tasks: state, body inertias and velocities, actuator and contact forces.

    Attributes:
        solver: "newton" converges to the minimum; "model" uses the file's solver, PGS.  Its 50 iterations stop
            about 1e-4 away from the minimum, in Gymnasium as here, and take up to four times as long.
    """

    frame_skip: int = 5
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 1e-2
    exclude_current_positions_from_observation: bool = True
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True
    include_cfrc_ext_in_observation: bool = True
    solver: str = "newton"

    info_fields = ("ten_length", "ten_velocity")

    def __post_init__(self) -> None:
        super().__post_init__()
        optional = {
            "cinert": self.include_cinert_in_observation,
            "cvel": self.include_cvel_in_observation,
            "qfrc_actuator": self.include_qfrc_actuator_in_observation,
            "cfrc_ext": self.include_cfrc_ext_in_observation,
        }
        self.included = tuple(name for name, included in optional.items() if included)
        self.fields = tuple(dict.fromkeys((*self.included, "cfrc_ext", "xipos")))

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        if self.solver != "model":
            worlds.model.opt.solver = self.solver

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        hidden = 2 if self.exclude_current_positions_from_observation else 0
        parts, skipped = (
            {"qpos": worlds.qpos[:, hidden:], "qvel": worlds.qvel},
            {"cinert": 10, "cvel": 6, "cfrc_ext": 6},
        )
        for name in self.included:
            values = self.contact_forces(worlds) if name == "cfrc_ext" else getattr(worlds, name)
            # without the world body's values and without the root's DoFs
            parts[name] = values.reshape(worlds.nworld, -1)[:, skipped.get(name, ROOT) :]
        return parts

    def contact_cost(self, worlds: Batch, weight: float, least_and_most: tuple[float, float]) -> np.ndarray:
        """Returns the weighted, clipped sum of squares of all contact forces, (n,)."""
        return np.clip(weight * squares(self.contact_forces(worlds)), *least_and_most)

    def compiled_observation(self, worlds: Batch) -> Kernel:
        """Returns the kernel of the observation."""
        hidden = 2 if self.exclude_current_positions_from_observation else 0
        optional = "cinert", "cvel", "qfrc_actuator", "cfrc_ext"
        cinert, cvel, actuator, external = (int(name in self.included) for name in optional)
        nq, nv, nbody = worlds.model.nq, worlds.model.nv, worlds.model.nbody - 1
        resting = int(self.start_stage(worlds) == "velocity")

        @kernel
        def observe(d, p, at_start):
            """obs <- the parts of `observation`: state, then optional cinert, cvel, qfrc_actuator, cfrc_ext.

            The first row of cinert, cvel and cfrc_ext is that of the world body, and is skipped.  nbody: other bodies.
            hidden: number of positions that are left out; ROOT: DoFs of the root, which have no actuators.
            resting: 1 if actuators have no force at a start; cinert, cvel, actuator, external: 1 if they are included.
            """
            n = observe_state(d, p, hidden, nq, nv)
            if cinert:
                for k in range(10 * nbody):
                    p.obs[n + k] = flat(d.cinert)[10 + k]
                n += 10 * nbody
            if cvel:
                for k in range(6 * nbody):
                    p.obs[n + k] = flat(d.cvel)[6 + k]
                n += 6 * nbody
            if actuator:
                for k in range(nv - ROOT):
                    p.obs[n + k] = 0.0 if at_start * resting else d.qfrc_actuator[ROOT + k]
                n += nv - ROOT
            if external:
                for k in range(6 * nbody):
                    p.obs[n + k] = 0.0 if at_start else flat(d.cfrc_ext)[6 + k]

        return observe

    def start_stage(self, worlds: Batch) -> str:
        """Returns the stage of a start: motors have no force then, and the contact forces are zero as in Gymnasium."""
        model = worlds.model
        motors = not (model.actuator_dyntype.any() or model.actuator_gaintype.any() or model.actuator_biastype.any())
        return "velocity" if motors or "qfrc_actuator" not in self.included else "acceleration"

    def compiled_contact_cost(self, worlds: Batch, weight: float, least_and_most: tuple[float, float]) -> Kernel:
        """Returns the kernel (d, p) of `contact_cost`."""
        factor, n, (least, most) = float(weight), 6 * worlds.model.nbody, least_and_most

        @kernel
        def force(d, p, k):
            """Returns entry k of the contact forces on all bodies."""
            return flat(d.cfrc_ext)[k]

        forces_squared = sum_of_squares(force)

        @kernel
        def cost(d, p):
            """Returns factor times the sum of squares of contact forces, between least and most."""
            return clip(factor * forces_squared(d, p, n), least, most)

        return cost

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.around_start(worlds, ids, random, self.reset_noise_scale, normal=False)


def from_the_side(height: float) -> dict[str, Any]:
    """Returns a camera that follows the torso."""
    return {"trackbodyid": 1, "distance": 4.0, "lookat": np.array((0.0, 0.0, height)), "elevation": -20.0}


@dataclass(kw_only=True)
class Humanoid(HumanoidTask, HealthyTask):
    """Rewards forward velocity and an upright posture; penalizes controls and contact forces."""

    xml_file: str = "humanoid.xml"
    default_camera_config: Mapping[str, Any] | None = field(default_factory=lambda: from_the_side(2.0))
    forward_reward_weight: float = 1.25
    contact_cost_weight: float = 5e-7
    contact_cost_range: tuple[float, float] = (-np.inf, 10.0)
    healthy_reward: float = 5.0
    healthy_z_range: tuple[float, float] = (1.0, 2.0)

    name = "Humanoid-v5"

    def mass_center(self, worlds: Batch) -> np.ndarray:
        """Returns the horizontal position of the centre of mass, (n, 2) [m]."""
        mass = worlds.model.body_mass
        return (worlds.xipos[:, :, :2] * mass[:, None]).sum(axis=1) / mass.sum()

    def before(self, worlds: Batch) -> np.ndarray:
        return self.mass_center(worlds)

    def healthy(self, worlds: Batch) -> np.ndarray:
        """Returns which worlds are upright, (n,) bool."""
        return is_between(self.healthy_z_range[0], worlds.qpos[:, 2], self.healthy_z_range[1])

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        self.velocity = (self.mass_center(worlds) - before) / self.dt
        return {
            "survive": self.survival(),
            "forward": self.forward_reward_weight * self.velocity[:, 0],
            "ctrl": -(self.ctrl_cost_weight * squares(worlds.ctrl)),
            "contact": -self.contact_cost(worlds, self.contact_cost_weight, self.contact_cost_range),
        }

    def compiled(self, worlds: Batch) -> LaneFunctions:
        weight, cost, dt = float(self.forward_reward_weight), float(self.ctrl_cost_weight), self.dt
        reward, ends, (low, high) = float(self.healthy_reward), int(self.terminate_when_unhealthy), self.healthy_z_range
        contact_cost = self.compiled_contact_cost(worlds, self.contact_cost_weight, self.contact_cost_range)
        nu, nbody, mass = worlds.model.nu, worlds.model.nbody, worlds.model.body_mass
        masses, total = tuple(float(x) for x in mass), float(mass.sum())

        @kernel
        def center(d, k):
            """Returns coordinate k of the centre of mass of all bodies."""
            moment = d.xipos[0][k] * masses[0]
            for b in range(1, nbody):
                moment += d.xipos[b][k] * masses[b]
            return moment / total

        @kernel
        def remember(d, p, at_start):
            """p.next <- the horizontal position of the centre of mass."""
            for k in range(2):
                p.next[k] = center(d, k)

        @kernel
        def score(d, p, at_start):
            """reward += that of healthy worlds + weight (velocity along x) - cost |controls|^2 - cost of contacts."""
            survive(p, is_between(low, d.qpos[2], high), reward, terminates=ends)
            add_reward(p, weight * ((center(d, 0) - p.before[0]) / dt))
            add_reward(p, -(cost * controls_squared(d, p, nu)))
            add_reward(p, -contact_cost(d, p))

        return LaneFunctions(self.compiled_observation(worlds), score, remember, 2, self.start_stage(worlds))

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {**root_position(worlds), "tendon_length": worlds.ten_length, "tendon_velocity": worlds.ten_velocity}
