"""Lists what makes a URDF invalid and is not repaired, with element, value and allowed values.

MuJoCo's error names the line of the first problem, but often not the element.
Source: URDF specification (http://wiki.ros.org/urdf/XML).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.dom.minidom import Element

from featherlane.engine.model.repair import COUNTS, NUMERIC, SIZES
from featherlane.engine.model.urdf import child_of, elements
from featherlane.engine.model.xml_edits import floats

TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")


def urdf_problems(text: str) -> list[str]:
    """Returns a line for each problem; none if the text is not URDF."""
    links = [link.getAttribute("name") for link in elements(text, "link")]
    joints = elements(text, "joint")
    numbers = [line for part in (*elements(text, "link"), *joints) for line in _numbers(part, part)]
    return [*_repeated(links, joints), *_joint_problems(joints, set(links)), *_loops(joints), *numbers]


def _repeated(links: list[str], joints: list[Element]) -> Iterator[str]:
    """Yields links of equal names, and links with several parents."""
    for name, number in Counter(links).items():
        if not name:
            yield f"<link> without name ({number}), allowed are links with distinct names"
        elif number > 1:
            yield f"link {name!r}: {number} links have this name, allowed are distinct names"
    parents: dict[str, list[str]] = {}
    for joint in joints:
        if (child := _end(joint, "child")) is not None:
            parents.setdefault(child, []).append(joint.getAttribute("name"))
    for name, given in parents.items():
        if len(given) > 1:
            shown = ", ".join(map(repr, given))
            yield f"link {name!r}: is the child of joints {shown}, allowed is one (loops need an equality of MJCF)"


def _joint_problems(joints: list[Element], links: set[str]) -> Iterator[str]:
    """Yields joints without name, of an unknown type, or without parent or child."""
    for joint in joints:
        name, kind = joint.getAttribute("name"), joint.getAttribute("type")
        if not name:
            yield f"<joint> from {_end(joint, 'parent')!r} to {_end(joint, 'child')!r} without name"
        if kind not in TYPES:
            yield f"joint {name!r}: got type {kind!r}, allowed are {', '.join(TYPES)}"
        for tag in ("parent", "child"):
            end = _end(joint, tag)
            if end is None:
                yield f"joint {name!r}: <{tag} link=...> is missing"
            elif end not in links:
                yield f"joint {name!r}: <{tag}> is {end!r}, which is no link of the file"


def _loops(joints: list[Element]) -> Iterator[str]:
    """Yields links that are their own ancestors."""
    parent = {_end(joint, "child"): _end(joint, "parent") for joint in joints}
    for name in parent:
        above, seen = parent[name], set()
        while above is not None and above != name and above not in seen:
            seen.add(above)
            above = parent.get(above)
        if name is not None and above == name:
            yield f"link {name!r}: is its own ancestor, allowed is a tree"
            return


def _numbers(part: Element, element: Element) -> Iterator[str]:
    """Yields attributes in an element of a link or joint that are not the expected numbers."""
    label = f"{part.tagName} {part.getAttribute('name')!r}: <{element.tagName}>"
    for name, given in element.attributes.items() if element.tagName in NUMERIC else ():
        if name not in COUNTS:
            continue
        numbers, many = floats(given), "a number" if COUNTS[name] == 1 else f"{COUNTS[name]} numbers"
        if numbers is None or len(numbers) != COUNTS[name]:
            yield f"{label} {name}={given!r}, allowed is {many}"
        elif name in SIZES and min(numbers) <= 0:
            yield f"{label} {name}={given!r}, allowed is {many} > 0"
    for child in (node for node in element.childNodes if node.nodeType == node.ELEMENT_NODE):
        yield from _numbers(part, child)


def _end(joint: Element, tag: str) -> str | None:
    """Returns the link at an end of a joint, None if it is missing."""
    end = child_of(joint, tag)
    return end.getAttribute("link") if end is not None and end.hasAttribute("link") else None
