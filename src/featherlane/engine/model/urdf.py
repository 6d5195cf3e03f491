"""Lists URDF elements that MuJoCo's reader ignores without a warning, so that a loader can name them.

MuJoCo 4 reads links (inertial, collision, visual), joints (origin, axis, dynamics, limit, and mimic as an equality
between two scalar joints), materials, and its own `<mujoco>` section.  Everything else in the file is skipped.
Visual elements (visuals, textures) are not listed: they cannot change the motion.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.dom import expatbuilder
from xml.dom.minidom import Element
from xml.parsers.expat import ExpatError

READ = {
    "robot": {"link", "joint", "material", "mujoco"},
    "link": {"inertial", "visual", "collision"},
    "joint": {"origin", "parent", "child", "axis", "dynamics", "limit", "mimic"},
    "mujoco": {"compiler", "option", "size"},
}
READ_ATTRIBUTES = {"dynamics": {"damping", "friction"}, "limit": {"lower", "upper", "effort"}}
SCALAR = ("revolute", "continuous", "prismatic")


def dropped_elements(text: str) -> list[str]:
    """Returns elements and attributes of a URDF that MuJoCo ignores without a warning.

    Returns:
        Lines such as `joint 'knee': <calibration> is ignored`, one per kind of loss, in document order;
        empty if the text is not XML (MuJoCo's parser reports the reason) or not URDF.
    """
    found: dict[str, list[str]] = {}
    for element in _elements(text):
        for loss in _losses(element):
            found.setdefault(loss, []).append(_label(element))
    return [f"{', '.join(labels)}: {loss}" for loss, labels in found.items()]


def link_names(text: str) -> list[str]:
    """Returns the names of a URDF's links, in document order; empty if the text is not URDF."""
    return [element.getAttribute("name") for element in _elements(text) if element.tagName == "link"]


def _elements(text: str) -> list[Element]:
    """Returns the children of the robot; empty if the text is not URDF."""
    try:
        # namespaces are removed: published files use undeclared prefixes
        robot = expatbuilder.parseString(text, namespaces=False).documentElement
    except ExpatError:
        return []
    return list(_children(robot)) if robot is not None and robot.tagName == "robot" else []


def _losses(element: Element) -> Iterator[str]:
    """Yields the ignored parts of a child of the robot."""
    if element.tagName.startswith("xacro:"):
        yield "is ignored: expand xacro files first, with `xacro FILE > robot.urdf`"
        return
    if element.tagName not in READ["robot"]:
        yield "is ignored"
        return
    if element.tagName not in READ:
        return
    for child in _children(element):
        tag = child.tagName
        if tag not in READ[element.tagName]:
            yield f"<{tag}> is ignored"
        elif tag == "mimic" and element.getAttribute("type") not in SCALAR:
            yield "<mimic> is ignored: it needs a revolute, continuous or prismatic joint"
        elif tag in READ_ATTRIBUTES:
            unread = [name for name in dict(child.attributes.items()) if name not in READ_ATTRIBUTES[tag]]
            if unread:
                yield f"<{tag}> {', '.join(unread)} is ignored"
            if tag == "limit" and child.hasAttribute("lower") != child.hasAttribute("upper"):
                yield "<limit> with only one of lower and upper is ignored: the joint has no limits"


def _children(element: Element) -> Iterator[Element]:
    return (node for node in element.childNodes if node.nodeType == node.ELEMENT_NODE)


def _label(element: Element) -> str:
    name = element.getAttribute("name")
    return f"{element.tagName} {name!r}" if name else f"<{element.tagName}>"
