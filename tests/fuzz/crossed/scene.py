"""The model that features build: elements by section, lookups of what exists, states, controls and edits."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SECTIONS = ("option", "asset", "worldbody", "contact", "tendon", "equality", "actuator", "sensor")
SIZES = {
    "sphere": 'type="sphere" size=".1"',
    "capsule": 'type="capsule" size=".06 .08"',
    "box": 'type="box" size=".08 .1 .12"',
    "ellipsoid": 'type="ellipsoid" size=".12 .09 .07"',
    "cylinder": 'type="cylinder" size=".09 .08"',
    "mesh": 'type="mesh" mesh="lump"',
    "cube": 'type="mesh" mesh="cube"',
}
HALF = {"sphere": 0.1, "capsule": 0.14, "box": 0.12, "ellipsoid": 0.07, "cylinder": 0.08, "mesh": 0.2, "cube": 0.1}


class Random:
    """Returns random values; numbers as text."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, low: float = -1.0, high: float = 1.0, count: int = 1) -> str:
        return " ".join(f"{x:.4g}" for x in self.rng.uniform(low, high, count))

    def among(self, options):
        """Returns a random one of several; None if there is none."""
        options = list(options)
        return options[int(self.rng.integers(len(options)))] if options else None

    def some(self, options, part: float = 0.6) -> list:
        """Returns a random part, at least one if there is any."""
        options = list(options)
        kept = [option for option in options if self.rng.random() < part]
        return kept or options[:1]

    def chance(self, part: float) -> bool:
        """Returns True in this fraction of the cases."""
        return bool(self.rng.random() < part)


class Edit(NamedTuple):
    """Holds a change of a field of the compiled model: its name, and a function from its array to another one."""

    field: str
    change: Callable[[np.ndarray], np.ndarray]


class Scene:
    """Holds a model while features are added.

    Attributes:
        root: the MJCF tree.
        edits: changes of the compiled model's real fields.
        starts: functions that change the initial state of an MjData, of (mj, data).
        drives: functions that set inputs of a step, of (mj, inputs, k), where `inputs` is a dict of arrays.
        calls: functions that change options of a compiled model, ours or MuJoCo's, of (model,).
        steps: compared steps.
        ends: sites at which a tendon ends on the surface of its wrapping geom.
    """

    def __init__(self):
        self.root = ET.fromstring(
            "<mujoco><compiler autolimits='true'/>" + "".join(f"<{s}/>" for s in SECTIONS) + "</mujoco>"
        )
        ET.SubElement(self.root.find("option"), "flag")
        self.edits: list[Edit] = []
        self.starts, self.drives, self.calls = [], [], []
        self.ends: list[str] = []
        self.trees, self.steps, self.count = 0, 4, 0

    def add(self, section: str, text: str) -> ET.Element:
        """Appends elements to a section or below an element; returns the last one."""
        parent = self.root.find(section) if isinstance(section, str) else section
        elements = list(ET.fromstring(f"<x>{text}</x>"))
        parent.extend(elements)
        return elements[-1]

    def option(self, **values) -> None:
        self.root.find("option").attrib.update({k: str(v) for k, v in values.items()})

    def flag(self, **values) -> None:
        self.root.find("option/flag").attrib.update(values)

    def name(self, stem: str) -> str:
        """Returns a new name."""
        self.count += 1
        return f"{stem}{self.count}"

    # ---- what exists -------------------------------------------------------------------------------------------------
    def all(self, tag: str) -> list[ET.Element]:
        return [element for element in self.root.find("worldbody").iter(tag)]

    def names(self, tag: str) -> list[str]:
        return [element.get("name") for element in self.all(tag) if element.get("name")]

    def joints(self, *kinds: str) -> list[ET.Element]:
        """Returns the joints of these types, all if none is given."""
        return [j for j in self.all("joint") if not kinds or j.get("type", "hinge") in kinds]

    def scalar(self) -> list[str]:
        return [joint.get("name") for joint in self.joints("hinge", "slide")]

    def tendons(self, kind: str = "*") -> list[ET.Element]:
        return list(self.root.find("tendon").findall(kind))

    def section(self, name: str) -> list[ET.Element]:
        return list(self.root.find(name))

    def shapes(self) -> list[ET.Element]:
        """Returns the geoms of bodies and the ground that can collide."""
        return [g for g in self.all("geom") if g.get("contype") != "0" and g.get("name")]

    def movable(self) -> list[str]:
        """Returns the geoms of bodies that can move."""
        found = []

        def visit(body, moves):
            moves = moves or body.find("joint") is not None or body.find("freejoint") is not None
            if moves:
                found.extend(g.get("name") for g in body.findall("geom") if g.get("contype") != "0" and g.get("name"))
            for child in body.findall("body"):
                visit(child, moves)

        visit(self.root.find("worldbody"), False)
        return found

    def asset(self, name: str, text: str) -> None:
        """Adds an asset once."""
        if name not in [e.get("name") for e in self.root.find("asset")]:
            self.add("asset", text)

    def meshes(self) -> None:
        corners = ".2 0 0 -.15 .05 0 0 .18 .02 .03 -.17 0 0 .02 .2 .02 0 -.16 .1 .1 .1 -.1 .1 -.1 .1 -.1 .1 .1 .08 -.12"
        self.asset("lump", f'<mesh name="lump" vertex="{corners}"/>')
        cube = "-1 -1 -1 1 -1 -1 1 1 -1 1 1 1 1 -1 1 -1 1 -1 -1 1 1 -1 -1 1"
        self.asset("cube", f'<mesh name="cube" vertex="{cube}" scale=".1 .1 .1"/>')

    def text(self) -> str:
        root = ET.fromstring(ET.tostring(self.root))
        for section in list(root):
            if section.tag != "option" and not len(section) and not section.attrib:
                root.remove(section)
        ET.indent(root, "  ")
        return ET.tostring(root, encoding="unicode")
