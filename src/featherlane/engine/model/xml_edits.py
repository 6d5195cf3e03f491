"""Edits elements of XML text; all other bytes remain unchanged."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from xml.parsers.expat import ParserCreate

START_TAG = re.compile(rb"""<[^"'>]*(?:(?:"[^"]*"|'[^']*')[^"'>]*)*>""")


@dataclass(eq=False)
class Node:
    """Holds an element, and the bytes that it has in the text: from `start` to `end`, its start tag to `inside`."""

    tag: str
    attributes: dict[str, str]
    start: int
    inside: int
    end: int = 0
    children: list[Node] = field(default_factory=list)

    def child(self, tag: str) -> Node | None:
        """Returns the first child with a tag, None without one."""
        return next((child for child in self.children if child.tag == tag), None)

    def number(self, name: str) -> float | None:
        """Returns the number in an attribute; None if it is missing or invalid, which MuJoCo's reader reports."""
        try:
            return float(self.attributes[name])
        except (KeyError, ValueError):
            return None


def floats(text: str) -> list[float] | None:
    """Returns the numbers in a text, None if another word is in it."""
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return None


class Edits:
    """Collects edits of a text, and a line that describes each."""

    def __init__(self, text: bytes):
        self.text, self.lines = text, []
        self.edits: dict[tuple[int, int], str] = {}  # new text by range of bytes

    def replace(self, node: Node, new: str = "") -> None:
        """Replaces an element by a text."""
        self.edits[node.start, node.end] = new

    def drop(self, parent: Node, node: Node) -> None:
        """Removes an element from the text and from the tree."""
        self.replace(node)
        parent.children.remove(node)

    def rewrite(self, node: Node) -> None:
        """Replaces the start tag of an element by one with its present attributes."""
        ending = "/>" if _is_empty(self.text, node) else ">"
        self.edits[node.start, node.inside] = start_tag(node.tag, node.attributes) + ending

    def insert(self, node: Node, new: str) -> None:
        """Inserts a text as the first child of an element."""
        if _is_empty(self.text, node):
            self.edits[node.inside - 2, node.inside] = f">{new}</{node.tag}>"
        else:
            self.edits[node.inside, node.inside] = new

    def result(self) -> str:
        """Returns the text with all edits; those inside of a replaced element have no effect."""
        parts, place = [], 0
        # at one place, insertions precede the others, and longer edits precede those inside of them
        for start, end in sorted(self.edits, key=lambda edit: (edit[0], edit[0] != edit[1], -edit[1])):
            if start >= place:
                parts += [self.text[place:start], self.edits[start, end].encode()]
                place = end
        return b"".join([*parts, self.text[place:]]).decode()


def tree(text: bytes) -> Node:
    """Returns the root element of XML text in UTF-8.

    Raises:
        ExpatError: the text is not XML.
    """
    first = max(text.find(b"<"), 0)  # published files have empty lines before the declaration
    parser = ParserCreate("utf-8")  # namespaces are not checked: published files use undeclared prefixes
    document = Node("", {}, 0, 0)
    path = [document]

    def start(tag: str, attributes: dict[str, str]) -> None:
        place = first + parser.CurrentByteIndex
        found = START_TAG.match(text, place)
        path[-1].children.append(Node(tag, attributes, place, found.end() if found is not None else place))
        path.append(path[-1].children[-1])

    def end(tag: str) -> None:
        node, place = path.pop(), first + parser.CurrentByteIndex
        node.end = node.inside if _is_empty(text, node) else text.index(b">", place) + 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(text[first:], True)
    return document.children[0]


def _is_empty(text: bytes, node: Node) -> bool:
    """Returns whether an element is one tag, `<a/>`."""
    return text.startswith(b"/>", node.inside - 2)


def start_tag(tag: str, attributes: dict[str, str]) -> str:
    """Returns the text of a start tag without its end."""
    return f"<{tag}" + "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
