"""Models to mutate, as trees of XML elements: bundled, from wheels, random, and the scenes of the tests.

File names become absolute paths, includes are expanded, and elements that only affect colours are removed.
"""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import numpy as np

import featherlane as fl
from bits import models
from oracles import smooth
from robots import wheels
from scenes import actuators, equalities, fluids, joints, lcp, pid_plugins, sensors, sleep, tendons

DRAWN = 40  # trees of each kind
HEAVY = 1 << 17  # bytes of a model and its meshes above which it is rarely sampled
BRANCHES = (*actuators.ACTUATORS, *actuators.OTHERS)
COLOURS = ("texture", "skin", "visual")


class Source(NamedTuple):
    """Holds a model: its name, its text, and the bytes of its files."""

    name: str
    text: str
    size: int


def flat(path: Path) -> tuple[ET.Element, int]:
    """Returns a model's elements with expanded includes and absolute paths, and the bytes of its files.

    Raises:
        ET.ParseError, OSError: a file is missing or not valid XML.
    """
    root = ET.parse(path).getroot()
    _include(root, path.parent)
    folders = {"mesh": "", "hfield": "", "model": "", "asset": ""}
    for compiler in root.iter("compiler"):
        for name in ("mesh", "asset"):
            folders[name] = compiler.attrib.pop(f"{name}dir", folders[name])
        compiler.attrib.pop("texturedir", None)
    folders["hfield"] = folders["mesh"] = folders["mesh"] or folders["asset"]
    size = 0
    for kind in ("mesh", "hfield", "model"):
        for element in root.iter(kind):
            if "file" in element.attrib:
                file = path.parent / folders[kind] / element.attrib["file"]
                if "name" not in element.attrib:
                    element.attrib["name"] = file.stem
                element.attrib["file"] = str(file)
                size += file.stat().st_size if file.exists() else 0
    _without_colours(root)
    return root, size


def _include(element: ET.Element, folder: Path) -> None:
    """Replaces each include by the elements of its file."""
    for i in reversed(range(len(element))):
        child = element[i]
        if child.tag == "include":
            inner = ET.parse(folder / child.attrib["file"]).getroot()
            _include(inner, folder)
            element[i : i + 1] = list(inner)
        else:
            _include(child, folder)


def _without_colours(element: ET.Element) -> None:
    for child in list(element):
        if child.tag in COLOURS:
            element.remove(child)
        else:
            _without_colours(child)
    if element.tag == "material":
        element.attrib.pop("texture", None)
        element[:] = []


def scenes() -> dict[str, str]:
    """Returns models of the tests, and random ones."""
    found = {"all_joints": joints.XML, "smooth": smooth.XML, "lcp": lcp.SCENE}
    found |= {f"actuators/{name}": actuators.scene(name) for name in BRANCHES}
    found |= {
        "equalities": equalities.EQUALITIES,
        "welded": equalities.WELDED,
        "tendons": tendons.scene(),
    }
    found |= {f"sensors/{name}": sensors.group_scene(name) for name in sensors.GROUPS}
    found |= {f"fluid/{name}": fluids.scene(name) for name in fluids.MEDIA}
    found |= {f"sleep/{name}": scene for name, (scene, _, _) in sleep.SCENES.items()}
    found |= {f"tree/{seed}": models.tree(seed) for seed in range(DRAWN)}
    found |= {f"random/{seed}": smooth.random_tree(np.random.default_rng(seed), 2 + seed % 9) for seed in range(DRAWN)}
    found |= {f"shapes/{ground}": models.shapes(ground) for ground in models.GROUNDS}
    found["plugins"] = pid_plugins.scene(*pid_plugins.CASES)
    found |= {"aligned": models.aligned(), "heap": models.heap(), "rafts": models.rafts(3, 20)}
    for name in "CHAIN YIELDING ADHESIVE BELTS MECHANISM SPECIAL".split():
        found[name.lower()] = getattr(models, name)
    return found


@functools.cache
def sources(offline: bool = False) -> tuple[Source, ...]:
    """Returns all models, in an order that is the same everywhere; without the wheels if `offline` is set."""
    found = []
    for name in fl.bundled_names():
        path = Path(fl.__path__[0], "engine", "model", "bundled", f"{name}.xml")
        root, size = flat(path)
        found.append(_source(f"bundled/{name}", root, size))
    for name, text in scenes().items():
        found.append(_source(f"tests/{name}", ET.fromstring(text), 0))
    for wheel in () if offline else wheels.WHEELS:
        for name in wheels.models_in(wheel):
            try:
                root, size = flat(wheels.model_path(name))
            except (ET.ParseError, OSError):
                continue  # part of another model
            if root.tag == "mujoco":
                found.append(_source(name, root, size))
    return tuple(found)


def _source(name: str, root: ET.Element, size: int) -> Source:
    text = ET.tostring(root, encoding="unicode")
    return Source(name, text, size + len(text))


def weights(found: tuple[Source, ...]) -> np.ndarray:
    """Returns how often each model is sampled: large ones rarely."""
    weight = np.array([1.0 / (1.0 + source.size / HEAVY) for source in found])
    return weight / weight.sum()
