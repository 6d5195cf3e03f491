"""Repairs impossible, zero and missing masses and inertias in a URDF, and lists those that MuJoCo reads otherwise.

Inertia: the moments of a mass distribution satisfy A + B >= C.  Others are replaced by the nearest that do, in the
Frobenius norm of the tensor; the principal axes remain.  MuJoCo's `balanceinertia` replaces all three by their mean.
Missing values: a mass without inertia gets that of its collision shapes (`shape_inertias.py`), or without shapes that
of a solid sphere of DENSITY, as does an inertia without mass.  A moving link without both has those of its collision
geometry (computed by MuJoCo, with the same density), or without geometry those of a sphere of SMALLEST.
Links that are fixed to each other are one group.  In a group with mass, a link without `<inertial>` has mass 0, as in
the URDF specification; MuJoCo computes its mass from collision geometry.  An inertia of mass 0 counts, too; MuJoCo
ignores it when it merges the group.
Source: the set of tensors is invariant under rotations, so the projection of a tensor is that of its eigenvalues
    (Lewis, Group invariance and convex matrix analysis, 1996).  URDF specification, `<inertial>`: "defaults to a zero
    mass and zero inertia".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.parsers.expat import ExpatError

import numpy as np

from featherlane.engine.model.inertias import MINVAL
from featherlane.engine.model.ordered_sums import matrix_product
from featherlane.engine.model.reader import mujoco_module
from featherlane.engine.model.shape_inertias import shape_inertia
from featherlane.engine.model.xml_edits import Edits, Node, start_tag, tree

DENSITY = 1000.0  # kg/m^3, also MuJoCo's density of geoms
SMALLEST = 1e-3  # kg
LEAST = 1e-14  # kg m^2, MuJoCo's smallest moment of an inertia that is not 0
LIGHT = 1e-12  # kg, a mass with which MuJoCo does not ignore an inertia
MARGIN = 1e-9  # relative: added to projected moments, so that their rounding does not violate A + B >= C
FROM_GEOMETRY = re.compile(r"<compiler\b[^<>]*\binertiafromgeom\s*=\s*[\"'](?:true|false)")  # a choice of the author
ABSENT = f"no <inertial>, so that MuJoCo computes the mass from collision geometry at {DENSITY:g} kg/m^3"
DIAGONAL, PRODUCTS = ("ixx", "iyy", "izz"), ("ixy", "ixz", "iyz")


@dataclass(eq=False)
class Inertial:
    """Holds mass [kg] and inertia tensor [kg m^2] of a link; None: missing.

    Attributes:
        given: whether the link has an element `<inertial>`.
        computed: whether MuJoCo computes them from collision geometry if they are not given.
        changed: whether they differ from the element.
    """

    link: Node
    label: str
    given: bool
    computed: bool
    mass: float | None = None
    tensor: np.ndarray | None = None
    changed: bool = False


def nearest_moments(moments: np.ndarray) -> np.ndarray:
    """Returns the nearest moments (3,) with A + B >= C in each order, in the Euclidean norm.

    For a <= b <= c with a + b < c, this is the projection to the plane a + b = c, or to its edge a = 0, b = c.
    """
    order = np.argsort(moments)
    a, b, c = np.asarray(moments, float)[order]
    lacking = max(c - a - b, 0.0) / 3.0
    found = np.array([a + lacking, b + lacking, c - lacking])
    if found[0] < 0.0:
        mean = max(b + c, 0.0) / 2.0
        found = np.array([0.0, mean, mean])
    result = np.empty(3)
    result[order] = found
    return result


def nearest_inertia(tensor: np.ndarray) -> np.ndarray:
    """Returns the nearest inertia tensor (3, 3) in the Frobenius norm, with the same principal axes."""
    moments, axes = np.linalg.eigh(tensor)
    found = nearest_moments(moments)
    margin = max(MARGIN * found.max(), 2.0 * LEAST) if found.any() else 0.0
    return matrix_product(axes * (found + margin), axes.T)


def _moments(tensor: np.ndarray) -> np.ndarray:
    """Returns ascending moments as MuJoCo's compiler computes them."""
    values = np.zeros(3)
    mujoco_module().mju_eig3(values, np.zeros(9), np.zeros(4), np.ravel(tensor))
    return np.sort(values)


def _sphere_inertia(mass: float) -> np.ndarray:
    """Returns the inertia of a solid sphere, 2/5 m r^2."""
    return 0.4 * mass * (0.75 * mass / (np.pi * DENSITY)) ** (2.0 / 3.0) * np.eye(3)


def _sphere_mass(moment: float) -> float:
    """Returns the mass of the solid sphere with a moment of inertia."""
    return float((moment / _sphere_inertia(1.0)[0, 0]) ** 0.6)


def repair_inertials(edits: Edits, robot: Node) -> None:
    """Repairs inertias, and masses and inertias of moving links and of incomplete elements."""
    found = _read_inertials(edits, robot)
    for each in found.values():
        _project(edits, each)
        _complete(edits, each)
    for group in _moving_groups(robot, found):
        _repair_group(edits, group)
    for each in found.values():
        if each.changed:
            _write_inertial(edits, each)


def _read_inertials(edits: Edits, robot: Node) -> dict[str, Inertial]:
    """Returns the inertials of links by name, except those with words that are no numbers."""
    found = {}
    for link in robot.children:
        name = link.attributes.get("name", "")
        if link.tag == "link" and name not in found:
            inertial = _read_inertial(edits, link, f"link {name!r}")
            if inertial is not None:
                found[name] = inertial
    return found


def _read_inertial(edits: Edits, link: Node, label: str) -> Inertial | None:
    """Returns the inertial of a link; None if it has a word that is no number.  Missing products of inertia are 0."""
    element = link.child("inertial")
    found = Inertial(link, label, element is not None, link.child("collision") is not None)
    mass, inertia = (element.child("mass"), element.child("inertia")) if element else (None, None)
    if mass is not None:
        found.mass = mass.number("value")
        if "value" in mass.attributes and (found.mass is None or not np.isfinite(found.mass)):
            return None
    if inertia is not None and all(name in inertia.attributes for name in DIAGONAL):
        given = [inertia.number(name) if name in inertia.attributes else 0.0 for name in (*DIAGONAL, *PRODUCTS)]
        if not all(number is not None and np.isfinite(number) for number in given):
            return None
        xx, yy, zz, xy, xz, yz = given
        found.tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float)
        missing = [name for name in PRODUCTS if name not in inertia.attributes]
        if missing:
            edits.lines.append(f"{label}: <inertia> without {', '.join(missing)}, which are 0")
            found.changed = True
    return found


def _project(edits: Edits, each: Inertial) -> None:
    """Projects an impossible inertia."""
    if each.tensor is None or not each.tensor.any():
        return
    a, b, c = _moments(each.tensor)
    if a >= LEAST and a + b >= c:
        return
    each.tensor, each.changed = nearest_inertia(each.tensor), True
    new = ", ".join(f"{moment:.9g}" for moment in np.linalg.eigvalsh(each.tensor))
    rule = "A + B >= C" if a + b < c else f"A >= {LEAST:g}"
    edits.lines.append(
        f"{each.label}: moments of inertia {a:.9g}, {b:.9g}, {c:.9g} violate {rule}; the nearest are {new}"
    )


def _complete(edits: Edits, each: Inertial) -> None:
    """Completes an `<inertial>` that lacks mass or inertia, and removes one that lacks both."""
    if not each.given or (each.mass is not None and each.mass >= 0.0 and each.tensor is not None):
        return
    if each.mass is not None and each.mass < 0.0:
        edits.lines.append(f"{each.label}: mass {each.mass:g} is negative, ignored")
        each.mass = None
    if each.mass == 0.0 and each.tensor is None:
        each.tensor = np.zeros((3, 3))
        edits.lines.append(f"{each.label}: mass 0 without inertia, which is 0")
    elif each.mass or (each.tensor is not None and each.tensor.any()):
        _complete_one(edits, each)
    else:
        each.mass = each.tensor = None
        edits.lines.append(f"{each.label}: <inertial> without mass and inertia is removed")
    each.changed = True


def _complete_one(edits: Edits, each: Inertial) -> None:
    """Computes the inertia from the mass and the collision shapes, or one of both from the other as a solid sphere."""
    rule = f"that of a solid sphere of {DENSITY:g} kg/m^3"
    if each.mass:
        unit = shape_inertia(each.link)
        each.tensor = _sphere_inertia(each.mass) if unit is None else each.mass * unit
        new = ", ".join(f"{moment:.3g}" for moment in each.tensor.diagonal())
        rule = rule if unit is None else "that of its collision geometry"
        edits.lines.append(f"{each.label}: mass {each.mass:g} without inertia; it is {rule}, {new}")
    elif each.tensor is not None:
        each.mass = _sphere_mass(np.trace(each.tensor) / 3.0)
        edits.lines.append(f"{each.label}: inertia without mass; it is {rule}, {each.mass:.3g}")
    each.changed = True


def _moving_groups(robot: Node, found: dict[str, Inertial]) -> Iterator[list[Inertial]]:
    """Yields the links that fixed joints connect to each link of a moving joint, that link first."""
    ends = []
    for joint in robot.children:
        parent, child = (joint.child("parent"), joint.child("child")) if joint.tag == "joint" else (None, None)
        if parent and child:
            ends.append(
                (parent.attributes.get("link"), child.attributes.get("link"), joint.attributes.get("type") == "fixed")
            )
    for _, top, is_fixed in ends:
        group = [top] if top in found and not is_fixed else []
        for name in group:  # grows while it is read
            group += [c for p, c, fixed in ends if fixed and p == name and c in found and c not in group]
        if group:
            yield [found[name] for name in group]


def _repair_group(edits: Edits, group: list[Inertial]) -> None:
    """Repairs links that move as one: one without mass or inertia, and parts that MuJoCo would read otherwise."""
    absent, given = _without_inertial(group)
    if _moves(given):
        for each in absent:
            each.mass, each.tensor, each.changed = 0.0, np.zeros((3, 3)), True
            edits.lines.append(f"{each.label}: no <inertial>; the mass is 0, MuJoCo uses its collision geometry")
        for each in _ignored(group):
            each.mass, each.changed = LIGHT, True
            edits.lines.append(f"{each.label}: mass 0 with inertia, which MuJoCo ignores; the mass is {LIGHT:g} kg")
    elif not absent:  # else MuJoCo computes them
        _give_mass(edits, group)


def _without_inertial(group: list[Inertial]) -> tuple[list[Inertial], list[Inertial]]:
    """Returns links whose mass and inertia MuJoCo computes from collision geometry, and the others."""
    absent = [each for each in group if each.computed and each.mass is None and each.tensor is None]
    return absent, [each for each in group if each not in absent]


def _moves(group: list[Inertial]) -> bool:
    """Returns whether the sum of masses and inertias suffices for a moving body."""
    tensor = sum((each.tensor for each in group if each.tensor is not None), np.zeros((3, 3)))
    return sum(each.mass or 0.0 for each in group) >= MINVAL and bool(_moments(tensor)[0] >= MINVAL)


def _ignored(group: list[Inertial]) -> list[Inertial]:
    """Returns links fixed to the first whose inertia MuJoCo ignores, as their mass is 0."""
    return [each for each in group[1:] if each.mass == 0.0 and each.tensor is not None and each.tensor.any()]


def _give_mass(edits: Edits, group: list[Inertial]) -> None:
    """Repairs links that move as one and lack mass or inertia."""
    heavy = [each for each in group if (each.mass or 0.0) >= MINVAL]
    turning = [each for each in group if each.tensor is not None and each.tensor.any()]
    if heavy or turning:
        _complete_one(edits, (heavy or turning)[0])
    elif any(each.computed for each in group):
        for each in group:
            if each.computed:
                each.mass, each.tensor, each.changed = None, None, True
                edits.lines.append(f"{each.label}: no mass; it is that of its collision geometry at {DENSITY:g} kg/m^3")
    else:
        group[0].mass, group[0].tensor, group[0].changed = SMALLEST, _sphere_inertia(SMALLEST), True
        edits.lines.append(f"{group[0].label}: a moving link without mass; it is {SMALLEST:g} kg")


def misread_inertials(text: str) -> list[str]:
    """Returns lines about links whose mass or inertia MuJoCo reads otherwise than the URDF specification."""
    edits = Edits(text.encode())
    try:
        robot = tree(edits.text)
    except ExpatError:
        return []
    found = _read_inertials(edits, robot)
    losses: dict[str, list[str]] = {}
    for group in _moving_groups(robot, found) if FROM_GEOMETRY.search(text) is None else ():
        absent, given = _without_inertial(group)
        moves = _moves(given)
        for each in absent:
            losses.setdefault(f"{ABSENT}; 0 with repair=True (--repair)" if moves else ABSENT, []).append(each.label)
        for each in _ignored(group) if moves else ():
            losses.setdefault("<inertia> is ignored, as the mass is 0; not with repair=True", []).append(each.label)
    return [f"{', '.join(labels)}: {loss}" for loss, labels in losses.items()]


def _write_inertial(edits: Edits, each: Inertial) -> None:
    """Writes the `<inertial>` of a link, with the origin that it had."""
    element, new = each.link.child("inertial"), ""
    if each.mass is not None and each.tensor is not None:
        origin = element.child("origin") if element else None
        (xx, xy, xz), (_, yy, yz), (*_, zz) = each.tensor.tolist()
        values = zip((*DIAGONAL, *PRODUCTS), map(repr, (xx, yy, zz, xy, xz, yz)), strict=True)
        parts = [start_tag("origin", origin.attributes) + "/>"] if origin else []
        parts += [start_tag("mass", {"value": repr(each.mass)}) + "/>", start_tag("inertia", dict(values)) + "/>"]
        new = f"<inertial>{''.join(parts)}</inertial>"
    if element is not None:
        edits.replace(element, new)
    else:
        edits.insert(each.link, new)
