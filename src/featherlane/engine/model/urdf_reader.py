"""Completes MuJoCo's reading of a URDF: meshes of equal names, and what versions before 4.0 read differently.

MuJoCo names a mesh by its file without folder and suffix, and reads one file for all meshes of one name and scale.
Before 4.0 it limits continuous joints, before 3.14 it loses the rotation of an inertial frame, before 3.13 it skips
`<mimic>`, and before 3.7 it strips folders from file names; all without a warning.
Source: URDF specification (http://wiki.ros.org/urdf/XML): rpy are fixed-axis angles, R = Rz(y) Ry(p) Rx(r);
    q = multiplier * q_mimicked + offset.  MuJoCo's changelog, 3.7, 3.13, 3.14 and 4.0.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any
from xml.dom.minidom import Element

import numpy as np

from featherlane.engine.model.ordered_sums import matrix_product
from featherlane.engine.model.urdf import SCALAR, child_of, elements
from featherlane.errors import ModelError

MESH_FILE = re.compile(r"""(<mesh\b[^<>]*?\bfilename\s*=\s*)("[^"]*"|'[^']*')""")
STRIPPATH = re.compile(r"<compiler\b[^<>]*\bstrippath\s*=\s*[\"']true")
FREES_CONTINUOUS = (4,)  # since this version MuJoCo ignores limits of continuous joints
ROTATES_INERTIA = (3, 14)  # since this version MuJoCo reads the rpy of an inertial origin
READS_MIMIC = (3, 13)


def with_distinct_names(text: str) -> tuple[str, dict[str, str]]:
    """Returns the text with a distinct mesh name for each file, and the given file names by those in the text."""
    given: dict[str, str] = {}  # name in the text by given name
    stems: set[str] = set()

    def replaced(match: re.Match) -> str:
        file = html.unescape(match[2][1:-1])
        if file not in given:
            stem, dot, suffix = re.split(r"[/\\]", file)[-1].rpartition(".")
            stem = stem if dot else suffix
            names = [stem, *(f"{stem}_{k}" for k in range(1, len(stems) + 1))]
            name = next(name for name in names if name not in stems)
            stems.add(name)
            given[file] = name + (dot + suffix if dot else "")
        return f'{match[1]}"{html.escape(given[file])}"'

    text = MESH_FILE.sub(replaced, text)
    return text, {name: file for file, name in given.items()}


def read_as_newest(spec: Any, text: str, version: tuple[int, ...]) -> None:
    """Changes a URDF's specification to that of MuJoCo 4.0.

    Args:
        spec: the `mujoco.MjSpec`, modified in place.
        text: the URDF.
        version: numbers of MuJoCo's version.

    Raises:
        ModelError: a joint mimics itself.
    """
    mimics = list(_mimics(text))
    for joint, other, *_ in mimics:
        if joint == other:
            raise ModelError(f"joint {joint!r}: got <mimic> of the joint itself, allowed is another joint")
    spec.strippath = STRIPPATH.search(text) is not None
    if version < FREES_CONTINUOUS:
        for joint in elements(text, "joint"):
            if joint.getAttribute("type") == "continuous":
                spec.joint(joint.getAttribute("name")).range = (0.0, 0.0)
    if version < ROTATES_INERTIA:
        for link, turn in _turned_inertias(text):
            body = spec.body(link)
            xx, yy, zz, xy, xz, yz = body.fullinertia
            given = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            inertia = matrix_product(matrix_product(turn, given), turn.T)
            body.fullinertia = inertia[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]
            body.iquat = (1.0, 0.0, 0.0, 0.0)
    if version < READS_MIMIC:
        import mujoco

        for joint, other, offset, multiplier in mimics:
            equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1=joint, name2=other)
            equality.data[:2] = offset, multiplier


def _turned_inertias(text: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yields links whose inertial frame is rotated, and the rotation."""
    for link in elements(text):
        inertial = child_of(link, "inertial") if link.tagName == "link" else None
        origin = child_of(inertial, "origin") if inertial is not None else None
        angles = _numbers(origin, "rpy", 3)
        if any(angles):
            yield link.getAttribute("name"), rotation(*angles)


def _mimics(text: str) -> Iterator[tuple[str, str, float, float]]:
    """Yields joints that follow another, the other, offset and multiplier; those that MuJoCo accepts."""
    kinds = {joint.getAttribute("name"): joint.getAttribute("type") for joint in elements(text, "joint")}
    for joint in elements(text, "joint"):
        mimic = child_of(joint, "mimic")
        name, other = joint.getAttribute("name"), mimic.getAttribute("joint") if mimic is not None else ""
        if kinds[name] in SCALAR and kinds.get(other) in SCALAR:
            offset, multiplier = _numbers(mimic, "offset", 1) or [0.0], _numbers(mimic, "multiplier", 1) or [1.0]
            yield name, other, offset[0], multiplier[0]


def _numbers(element: Element | None, attribute: str, count: int) -> list[float]:
    """Returns the numbers of an attribute; none if it is missing or invalid, which MuJoCo's reader reports."""
    words = element.getAttribute(attribute).split() if element is not None else []
    return [float(word) for word in words] if len(words) == count else []


def rotation(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Returns the rotation matrix of fixed-axis angles [rad]."""
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
