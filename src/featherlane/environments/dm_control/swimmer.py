"""Swimmer: a chain of links swims to a target in a plane."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from xml.etree.ElementTree import SubElement

import numpy as np

from featherlane import Batch
from featherlane.environments.dm_control.sampling import JointSampler
from featherlane.environments.dm_control.suite_task import SuiteTask, in_frame, lengths, parsed, text
from featherlane.environments.random_streams import RandomStreams

NEAR, NEAR_BOX, FAR_BOX = 0.2, 0.3, 2.0  # probability of a near target; half sides of the target's squares [m]
HEAD_VALUES = 12  # values of the sensors before those of the bodies


@dataclass(kw_only=True)
class Swimmer(SuiteTask):
    """Rewards a small distance of the nose from the target."""

    frame_skip: int = 15

    file = "swimmer.xml"
    fields = ("xmat", "geom_xpos", "sensordata")
    nlink: ClassVar[int]

    def source(self, path: Path) -> str:
        """Returns the model with a chain of links behind the head."""
        root = parsed(path)
        parent = root.find("worldbody/body")
        actuator, sensor = SubElement(root, "actuator"), SubElement(root, "sensor")
        limit = 360.0 / self.nlink
        for k in range(self.nlink - 1):
            parent = SubElement(parent, "body", name=f"segment_{k}", pos="0 .1 0")  # pyright: ignore
            for kind in ("visual", "inertial"):
                SubElement(parent, "geom", {"class": kind, "name": f"{kind}_{k}"})
            SubElement(parent, "site", name=f"site_{k}")
            SubElement(parent, "joint", name=f"joint_{k}", range=f"{-limit} {limit}")
            SubElement(actuator, "motor", name=f"motor_{k}", joint=f"joint_{k}")
            SubElement(sensor, "velocimeter", name=f"velocimeter_{k}", site=f"site_{k}")
            SubElement(sensor, "gyro", name=f"gyro_{k}", site=f"site_{k}")
        for camera in root.iterfind("worldbody/body/camera"):
            if camera.get("mode") == "trackcom":
                at = [float(x) * self.nlink / 6.0 for x in camera.attrib["pos"].split()]
                camera.set("pos", " ".join(map(str, at)))
        return text(root)

    def prepare(self, worlds: Batch) -> None:
        super().prepare(worlds)
        self.joints, model = JointSampler(worlds), worlds.model
        self.head, self.nose, self.target = model.body("head").id, model.geom("nose").id, model.geom("target").id
        self.radius = float(model.geom_size[self.target, 0])
        # along x and y, and about z, of each body
        self.velocities = np.arange(HEAD_VALUES, model.nsensordata).reshape(-1, 6)[:, [0, 1, 5]].reshape(-1)
        self.position = worlds.expand("geom_pos")

    def to_target(self, worlds: Batch) -> np.ndarray:
        """Returns the vector from the nose to the target in the frame of the head, (n, 2) [m]."""
        offset = worlds.geom_xpos[:, self.target] - worlds.geom_xpos[:, self.nose]
        return in_frame(offset[:, None], worlds.xmat[:, self.head])[:, 0, :2]

    def observation(self, worlds: Batch) -> dict[str, np.ndarray]:
        return {
            "joints": worlds.qpos[:, 3:],
            "to_target": self.to_target(worlds),
            "body_velocities": self.sensordata[:, self.velocities],
        }

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        distance = lengths(self.to_target(worlds))
        return self.tolerance(distance, (0.0, self.radius), 5.0 * self.radius, "long_tail")

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.joints.set(worlds, ids, random)
        box = np.where(random.uniform(ids, 0.0, 1.0, 1) < NEAR, NEAR_BOX, FAR_BOX)
        self.position[ids, self.target, :2] = random.uniform(ids, -box, box, 2)


class Swimmer6(Swimmer):
    """Has six links."""

    name, nlink = "dm_control.swimmer-swimmer6", 6


class Swimmer15(Swimmer):
    """Has fifteen links."""

    name, nlink = "dm_control.swimmer-swimmer15", 15
