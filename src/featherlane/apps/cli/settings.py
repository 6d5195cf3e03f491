"""Sets model options from the command line: `--set contact_model=lcp --set timestep=0.001 --set gravity=0,0,-1.6`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from featherlane.errors import ModelError, near

if TYPE_CHECKING:
    from featherlane import Model


def set_options(model: Model, settings: Iterable[str]) -> None:
    """Sets options of `model.opt` in the given order.

    Args:
        settings: texts NAME=VALUE; a value is a number, numbers with commas, or a name.

    Raises:
        ModelError: a text has no `=`, the option is unknown, or the value is invalid.
        UnsupportedFeatureError: the option conflicts with other options.
    """
    for text in settings:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise ModelError(f"set: got {text!r}, allowed is NAME=VALUE, for example timestep=0.001")
        set_option(model, name, _value(value), "set")


def set_option(model: Model, name: str, value: Any, what: str = "options") -> None:
    """Sets one option of `model.opt`.

    Args:
        what: source of the option, for error messages.

    Raises:
        ModelError: the option is unknown, or the value is invalid.
        UnsupportedFeatureError: the option conflicts with other options.
    """
    known = [option for option in dir(model.opt) if not option.startswith("_")]
    if name not in known:
        raise ModelError(f"{what}: unknown option {name!r}{near(name, known)}")
    setattr(model.opt, name, value)


def _value(text: str) -> Any:
    """Parses an integer, a number, a tuple of numbers, or returns the text itself."""
    for kind in (int, float, lambda t: tuple(map(float, t.split(",")))):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
