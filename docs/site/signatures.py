"""Signatures of functions and classes, as the reference shows them."""

from __future__ import annotations

import enum
import inspect
import re

from featherlane.engine.lanes import Kernel


def plain(thing):
    """The function behind a kernel or a stage."""
    made = inspect.getattr_static(thing, "function", None) if isinstance(thing, Kernel) else None
    return made if inspect.isfunction(made) else inspect.unwrap(thing) if callable(thing) else thing


class Shown:
    """An annotation or a default that a signature shows as this text."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def annotation(given):
    """Returns an annotation as it is shown: names without quotes, also those that are not defined yet."""
    if given is inspect.Signature.empty:
        return given
    text = given if isinstance(given, str) else inspect.formatannotation(given)
    return Shown(re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", text))


def shown_signature(thing) -> inspect.Signature:
    """Returns a signature whose annotations and defaults are those of the source; text in defaults keeps its quotes.

    Raises:
        TypeError, ValueError: the object has no signature.
    """
    made = inspect.signature(plain(thing))
    shown = []
    for parameter in made.parameters.values():
        default = parameter.default
        if isinstance(default, enum.Enum):
            default = Shown(f"{type(default).__name__}.{default.name}")
        elif inspect.isroutine(default):
            default = Shown(default.__name__)
        shown.append(parameter.replace(annotation=annotation(parameter.annotation), default=default))
    return made.replace(parameters=shown, return_annotation=annotation(made.return_annotation))


def signature(name: str, thing) -> str:
    """Returns how something is called."""
    try:
        text = str(shown_signature(thing))
    except (TypeError, ValueError):
        return name
    text = f"{name}{text.replace('self, ', '').replace('(self)', '()')}"
    if len(text) <= 88:
        return text
    return re.sub(r", (?=\*?\*?\w+(?::|=|,|\)))", ",\n    ", text.replace("(", "(\n    ", 1))
