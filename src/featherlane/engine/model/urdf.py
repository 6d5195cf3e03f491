"""Lists URDF elements that MuJoCo's reader ignores without a warning, so that a loader can name them.

MuJoCo 4 reads links (inertial, collision, visual), joints (origin, axis, dynamics, limit, and mimic as an equality
between two scalar joints), materials, and its own `<mujoco>` section.  Everything else in the file is skipped.
Visual elements (visuals, textures, materials) are not listed: they cannot change the motion.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from xml.dom import expatbuilder
from xml.dom.minidom import Element
from xml.parsers.expat import ExpatError

READ = {
    "robot": {"link", "joint", "material", "mujoco"},
    "link": {"inertial", "visual", "collision"},
    "joint": {"origin", "parent", "child", "axis", "dynamics", "limit", "mimic"},
    "mujoco": {"compiler", "option", "size"},
}
NESTED = {"inertial": {"origin", "mass", "inertia"}, "collision": {"origin", "geometry", "material"}}
READ_ATTRIBUTES = {"dynamics": {"damping", "friction"}, "limit": {"lower", "upper", "effort"}}
SCALAR = ("revolute", "continuous", "prismatic")
LIMITED = ("revolute", "prismatic")


def dropped_elements(text: str, velocities: Collection[str] = ()) -> list[str]:
    """Returns elements and attributes of a URDF that MuJoCo ignores without a warning.

    Args:
        text: the URDF.
        velocities: joints whose velocity limits are read.

    Returns:
        Lines such as `joint 'knee': <calibration> is ignored`, one per kind of loss, in document order;
        empty if the text is not XML (MuJoCo's parser reports the reason) or not URDF.
    """
    found: dict[str, dict[str, None]] = {}
    scalar = {joint.getAttribute("name") for joint in elements(text, "joint") if joint.getAttribute("type") in SCALAR}
    for element in elements(text):
        for loss in _losses(element, scalar, velocities):
            found.setdefault(loss, {})[_label(element)] = None
    lines = [f"{', '.join(labels)}: {loss}" for loss, labels in found.items()]
    first, *others = root_links(text) or [""]
    return lines + [
        f"link {name!r}: no joint has it as its child; it is fixed to the world, as {first!r}" for name in others
    ]


def link_names(text: str) -> list[str]:
    """Returns the names of a URDF's links, in document order; empty if the text is not URDF."""
    return [link.getAttribute("name") for link in elements(text, "link")]


def root_links(text: str) -> list[str]:
    """Returns the names of links that are no child of a joint, in document order; a valid URDF has one."""
    ends = [child_of(joint, "child") for joint in elements(text, "joint")]
    children = {end.getAttribute("link") for end in ends if end is not None}
    return [name for name in link_names(text) if name not in children]


def elements(text: str, tag: str = "") -> list[Element]:
    """Returns the children of the robot, of one kind if a tag is given; empty if the text is not URDF."""
    return [element for element in _parsed(text) if tag in ("", element.tagName)]


@functools.lru_cache(maxsize=2)  # a load reads the same text several times
def _parsed(text: str) -> tuple[Element, ...]:
    """Returns the children of the robot, which must not be changed; none if the text is not URDF."""
    try:
        # published files have empty lines before the declaration, and undeclared prefixes of namespaces
        robot = expatbuilder.parseString(text.lstrip(), namespaces=False).documentElement
    except ExpatError:
        return ()
    return tuple(_children(robot)) if robot is not None and robot.tagName == "robot" else ()


def child_of(element: Element, tag: str) -> Element | None:
    """Returns the first child with a tag, None without one."""
    return next((child for child in _children(element) if child.tagName == tag), None)


def _losses(element: Element, scalar: set[str], velocities: Collection[str]) -> Iterator[str]:
    """Yields the ignored parts of a child of the robot; `scalar` has the names of joints that can be mimicked."""
    if element.tagName.startswith("xacro:"):
        yield "is ignored: expand xacro files first, with `xacro FILE > robot.urdf`"
        return
    if element.tagName not in READ["robot"]:
        inside = ", ".join(dict.fromkeys(child.tagName for child in _children(element)))
        yield f"is ignored ({inside})" if element.tagName == "gazebo" and inside else "is ignored"
        return
    if element.tagName not in READ:
        return
    limit = {*READ_ATTRIBUTES["limit"], *(["velocity"] if element.getAttribute("name") in velocities else [])}
    for child in _children(element):
        tag = child.tagName
        if tag not in READ[element.tagName]:
            yield f"<{tag}> is ignored"
        elif tag == "mimic":
            if element.getAttribute("type") not in SCALAR or child.getAttribute("joint") not in scalar:
                yield "<mimic> is ignored: it needs a revolute, continuous or prismatic joint"
        elif tag in NESTED:
            unread = [part.tagName for part in _children(child) if part.tagName not in NESTED[tag]]
            if unread:
                yield f"{', '.join(f'<{part}>' for part in dict.fromkeys(unread))} in <{tag}> is ignored"
        elif tag in READ_ATTRIBUTES:
            known = limit if tag == "limit" else READ_ATTRIBUTES[tag]
            unread = [name for name in dict(child.attributes.items()) if name not in known]
            if unread:
                yield f"<{tag}> {', '.join(unread)} is ignored"
    if element.tagName == "joint" and element.getAttribute("type") in LIMITED:
        yield from _lost_limit(child_of(element, "limit"))


def _lost_limit(limit: Element | None) -> Iterator[str]:
    """Yields why a revolute or prismatic joint has no limits; nothing if it has them."""
    given = [limit.getAttribute(name) for name in ("lower", "upper")] if limit is not None else ["", ""]
    if not all(given):
        lost = "with only one of lower and upper is ignored" if any(given) else "lower and upper are missing"
        yield f"<limit> {lost}: the joint has no limits"
        return
    try:
        lower, upper = map(float, given)
    except ValueError:  # MuJoCo's reader reports it
        return
    if lower >= upper:
        yield f"<limit> with lower {given[0]} and upper {given[1]} is ignored: the joint has no limits"


def _children(element: Element) -> Iterator[Element]:
    return (node for node in element.childNodes if node.nodeType == node.ELEMENT_NODE)


def _label(element: Element) -> str:
    name = element.getAttribute("name") or element.getAttribute("reference")
    return f"{element.tagName} {name!r}" if name else f"<{element.tagName}>"
