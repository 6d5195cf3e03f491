"""Repairs a URDF's text where other simulators accept what MuJoCo refuses or ignores; valid elements keep their bytes.

`repair_inertias.py` repairs masses and inertias.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from xml.parsers.expat import ExpatError

from featherlane.engine.model.repair_inertias import DIAGONAL, PRODUCTS, repair_inertials
from featherlane.engine.model.urdf import LIMITED, SCALAR
from featherlane.engine.model.xml_edits import Edits, Node, floats, start_tag, tree

ADVICE = "load it with repair=True (--repair), which makes these changes:"
# how many numbers an attribute has
COUNTS = {
    **dict.fromkeys(("xyz", "rpy", "size", "scale"), 3),
    "rgba": 4,
    **dict.fromkeys("value radius length lower upper effort velocity damping friction multiplier offset".split(), 1),
    **dict.fromkeys((*DIAGONAL, *PRODUCTS), 1),
}
NUMERIC = set("origin axis mass inertia sphere cylinder capsule box mesh limit dynamics mimic color".split())
SHAPES = ("box", "cylinder", "sphere", "capsule", "mesh")
SIZES = ("radius", "length", "size")
POINT = 1e-4  # m, least size of a shape that collides
# children that MuJoCo refuses if they are repeated
SINGLE = {
    "link": {"inertial"},
    "joint": {"origin", "axis", "limit", "dynamics", "mimic"},
    "inertial": {"origin", "mass", "inertia"},
    "visual": {"origin", "geometry", "material"},
    "collision": {"origin", "geometry", "material"},
}
TURNED = (*SCALAR, "planar")  # types of joints with an axis
UNLIMITED = ("continuous", "spherical")
_REPAIR: ContextVar[bool] = ContextVar("repair", default=False)


@contextmanager
def repairing(enabled: bool = True) -> Iterator[None]:
    """Repairs each model that is read in the context, if enabled."""
    before = _REPAIR.set(enabled or _REPAIR.get())
    try:
        yield
    finally:
        _REPAIR.reset(before)


def is_repairing() -> bool:
    """Returns whether a model is repaired when it is read."""
    return _REPAIR.get()


def repaired(text: str) -> tuple[str, list[str]]:
    """Repairs a URDF.

    Returns:
        The text, and a line for each change, with the element, its value and the rule; the same text and no lines if
        nothing is to be repaired, or if the text is not XML or not URDF.
    """
    lines = []
    for repair in (_repair_elements, repair_inertials):
        edits = Edits(text.encode())
        try:
            robot = tree(edits.text)
        except ExpatError:
            return text, []
        if robot.tag != "robot":
            return text, []
        repair(edits, robot)
        text, lines = edits.result(), lines + edits.lines
    return text, lines


def without_visuals(text: str) -> str:
    """Returns a URDF without `<visual>` and materials, which a simulation does not need."""
    edits = Edits(text.encode())
    for node in (robot := tree(edits.text)).children[:]:
        if node.tag == "material":
            edits.drop(robot, node)
        for part in [part for part in node.children if part.tag == "visual"]:
            edits.drop(node, part)
    return edits.result()


# ---- elements --------------------------------------------------------------------------------------------------------
def _repair_elements(edits: Edits, robot: Node) -> None:
    """Repairs all but masses and inertias."""
    for node in robot.children:
        if node.tag in ("link", "joint", "material"):
            label = f"{node.tag} {node.attributes.get('name', '')!r}"
            _drop_repeated(edits, node, label)
            if node.tag == "link":
                _repair_shapes(edits, node, label)
            _repair_numbers(edits, node, label)
            if node.tag == "joint":
                _repair_axis(edits, node, label)
                _repair_limit(edits, node, label)
    _add_links(edits, robot)


def _add_links(edits: Edits, robot: Node) -> None:
    """Adds links that joints refer to and that do not exist."""
    names = {node.attributes.get("name") for node in robot.children if node.tag == "link"}
    added = {}
    for joint in robot.children:
        ends = [end for end in joint.children if joint.tag == "joint" and end.tag in ("parent", "child")]
        for end in ends:
            name = end.attributes.get("link")
            if name and name not in names:
                added.setdefault(name, f"joint {joint.attributes.get('name', '')!r}: <{end.tag}>")
    if added:
        edits.insert(robot, "".join(start_tag("link", {"name": name}) + "/>" for name in added))
    edits.lines += [f"{label} {name!r} is no link of the file, added without mass" for name, label in added.items()]


def _drop_repeated(edits: Edits, node: Node, label: str) -> None:
    """Drops repeated elements."""
    kept = set()
    for child in list(node.children):
        if child.tag in SINGLE.get(node.tag, ()) and child.tag in kept:
            edits.drop(node, child)
            edits.lines.append(f"{label}: repeated <{child.tag}>, the first is used")
        else:
            kept.add(child.tag)
            _drop_repeated(edits, child, label)


def _repair_shapes(edits: Edits, link: Node, label: str) -> None:
    """Drops parts without a shape of URDF and visuals of size 0; enlarges sizes of 0 in collisions."""
    for part in [part for part in link.children if part.tag in ("visual", "collision")]:
        geometry = part.child("geometry")
        shape = next(iter(geometry.children), None) if geometry else None
        if shape is None or shape.tag not in SHAPES or (shape.tag == "mesh" and not shape.attributes.get("filename")):
            edits.drop(link, part)
            lost = "without geometry" if shape is None or shape.tag in SHAPES else f"with <{shape.tag}>, no URDF shape,"
            edits.lines.append(f"{label}: <{part.tag}> {lost} is removed")
            continue
        sizes = {name: shape.attributes[name] for name in SIZES if name in shape.attributes}
        given = " ".join(sizes.values())
        if 0.0 not in (floats(given) or ()):
            continue
        if part.tag == "visual":
            edits.drop(link, part)
            edits.lines.append(f"{label}: <{shape.tag}> of size {given} in <visual> is removed")
        else:
            for name, size in sizes.items():
                shape.attributes[name] = " ".join(word if float(word) else f"{POINT:g}" for word in size.split())
            edits.rewrite(shape)
            edits.lines.append(f"{label}: <{shape.tag}> of size {given} in <collision>; sizes of 0 are {POINT:g} m")


def _repair_axis(edits: Edits, joint: Node, label: str) -> None:
    """Drops an axis without direction; the default of URDF is (1, 0, 0)."""
    axis = joint.child("axis")
    if axis is None:
        return
    given = axis.attributes.get("xyz")
    is_zero = given is not None and (numbers := floats(given)) is not None and not any(numbers)
    if given is None or (is_zero and joint.attributes.get("type") in TURNED):
        edits.drop(joint, axis)
        problem = "has no xyz" if given is None else f"xyz={given!r} has no direction"
        edits.lines.append(f"{label}: <axis> {problem}, that of URDF's default is (1, 0, 0)")


# ---- numbers ---------------------------------------------------------------------------------------------------------
def _repair_numbers(edits: Edits, node: Node, label: str) -> None:
    """Repairs commas between numbers, dots after a number with a decimal point, and too many numbers."""
    for name, given in list(node.attributes.items()) if node.tag in NUMERIC else ():
        new = _meant(given, COUNTS[name]) if name in COUNTS else given
        if new != given:
            node.attributes[name] = new
            edits.rewrite(node)
            expected = "a number" if COUNTS[name] == 1 else f"{COUNTS[name]} numbers"
            edits.lines.append(f"{label}: <{node.tag}> {name}={given!r} is not {expected}, read as {new!r}")
    for child in node.children:
        _repair_numbers(edits, child, label)


def _meant(given: str, count: int) -> str:
    """Returns the `count` numbers that a text means; the text itself if it has them, or does not mean numbers."""
    words = given.split()
    if floats(given) is None:
        words = [word if floats(word) else word.rstrip(".") for word in given.replace(",", " ").split()]
    elif count > 1:
        words = words[:count]
    is_read = len(floats(" ".join(words)) or ()) == count
    return " ".join(words) if is_read and words != given.split() else given


def _repair_limit(edits: Edits, joint: Node, label: str) -> None:
    """Swaps limits in the wrong order, and removes those of joints that have none."""
    limit, kind = joint.child("limit"), joint.attributes.get("type")
    lower, upper = (limit.number("lower"), limit.number("upper")) if limit else (None, None)
    if limit is None or (lower is None and upper is None):
        return
    given = f"{label}: <limit> with lower {limit.attributes.get('lower')} and upper {limit.attributes.get('upper')}"
    if kind in UNLIMITED:
        limit.attributes = {name: value for name, value in limit.attributes.items() if name not in ("lower", "upper")}
        edits.lines.append(f"{given}: a {kind} joint has no limits, removed")
    elif kind in LIMITED and lower is not None and upper is not None and lower > upper:
        limit.attributes |= {"lower": limit.attributes["upper"], "upper": limit.attributes["lower"]}
        edits.lines.append(f"{given}: lower must be <= upper, swapped")
    else:
        return
    edits.rewrite(limit)
