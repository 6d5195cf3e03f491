"""Computes the inertia of the collision shapes of a URDF's link, for a link with mass and without inertia.

Source: parallel axis theorem; moments of solid boxes, spheres and cylinders (Featherstone, Rigid Body Dynamics
    Algorithms, 2008, sec. 2.13).
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.model.ordered_sums import matrix_product
from featherlane.engine.model.urdf_reader import rotation
from featherlane.engine.model.xml_edits import Node


def shape_inertia(link: Node) -> np.ndarray | None:
    """Returns the inertia tensor (3, 3) of the collision shapes per unit mass [m^2].

    It is about their centre of mass, in the axes of the link's `<inertial>`.  None: a shape is not a box, sphere or
    cylinder, or an attribute is invalid, or there is no shape.
    """
    parts = [_part(node) for node in link.children if node.tag == "collision"]
    found = [part for part in parts if part is not None and part[0] > 0.0]
    if not found or len(found) < len(parts):
        return None
    volumes, places = np.array([part[0] for part in found]), np.array([part[1] for part in found])
    share = volumes / volumes.sum()
    centre, result = (share[:, None] * places).sum(0), np.zeros((3, 3))
    for weight, place, (_, _, tensor) in zip(share, places, found, strict=True):
        arm = place - centre
        result += weight * (tensor + (arm * arm).sum() * np.eye(3) - arm[:, None] * arm)
    frame = _frame(link.child("inertial"))
    return None if frame is None else matrix_product(matrix_product(frame[1].T, result), frame[1])


def _part(collision: Node) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Returns volume, place and tensor about the centre per unit mass of a shape, in the link's axes."""
    geometry, frame = collision.child("geometry"), _frame(collision)
    if geometry is None or not geometry.children or frame is None:
        return None
    shape = geometry.children[0]
    sizes = [_numbers(shape, name) for name in ("size", "radius", "length")]
    match shape.tag, *map(len, sizes):
        case "box", 3, 0, 0:
            a, b, c = sizes[0]
            volume, moments = a * b * c, np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 12.0
        case "sphere", 0, 1, 0:
            (r,) = sizes[1]
            volume, moments = 4.0 / 3.0 * np.pi * r * r * r, np.full(3, 0.4 * r * r)
        case "cylinder", 0, 1, 1:
            (r,), (h,) = sizes[1:]
            across = (3.0 * r * r + h * h) / 12.0
            volume, moments = np.pi * r * r * h, np.array([across, across, 0.5 * r * r])
        case _:
            return None
    return volume, frame[0], matrix_product(frame[1] * moments, frame[1].T)


def _frame(node: Node | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns position and rotation matrix of an element's `<origin>`; None if it is invalid."""
    origin = node.child("origin") if node is not None else None
    xyz, rpy = (_numbers(origin, name) or [0.0] * 3 for name in ("xyz", "rpy"))
    return (np.array(xyz), rotation(*rpy)) if len(xyz) == len(rpy) == 3 else None


def _numbers(node: Node | None, name: str) -> list[float]:
    """Returns the numbers of an attribute; none if it is missing or invalid."""
    try:
        found = [float(word) for word in node.attributes.get(name, "").split()] if node is not None else []
    except ValueError:
        return []
    return found if np.isfinite(found).all() else []
