"""URDF: what MuJoCo's reader passes over without a word, so that a loader can name it.

MuJoCo 4 reads links (inertial, collision, visual), joints (origin, axis, dynamics, limit, and mimic as an equality
between two scalar joints), materials, and its own `<mujoco>` section.  Everything else in the file is skipped.
Looks (visuals, textures) are not listed here: they cannot change the motion.
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
    """Elements and attributes of a URDF that MuJoCo ignores silently.

    Args:
        text: a URDF document.

    Returns:
        Lines such as `joint 'knee': <calibration> is ignored`, one per kind of loss, in the order of the document;
        empty for a document that is not XML (MuJoCo's parser says why) or not URDF.
    """
    found: dict[str, list[str]] = {}
    for element in _elements(text):
        for loss in _losses(element):
            found.setdefault(loss, []).append(_label(element))
    return [f"{', '.join(labels)}: {loss}" for loss, labels in found.items()]


def link_names(text: str) -> list[str]:
    """Names of a URDF's links, in the order of the document; none of a document that is no URDF."""
    return [element.getAttribute("name") for element in _elements(text) if element.tagName == "link"]


def _elements(text: str) -> list[Element]:
    """The children of the robot; none of a document that is no URDF."""
    try:
        # without namespaces: extensions in the wild use prefixes that nothing declares
        robot = expatbuilder.parseString(text, namespaces=False).documentElement
    except ExpatError:
        return []
    return list(_children(robot)) if robot is not None and robot.tagName == "robot" else []


def _losses(element: Element) -> Iterator[str]:
    """What is ignored of a child of the robot."""
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
                yield "<limit> with only one of lower and upper: the joint has no limits"


def _children(element: Element) -> Iterator[Element]:
    return (node for node in element.childNodes if node.nodeType == node.ELEMENT_NODE)


def _label(element: Element) -> str:
    name = element.getAttribute("name")
    return f"{element.tagName} {name!r}" if name else f"<{element.tagName}>"
