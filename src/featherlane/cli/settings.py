"""Options of a model from the command line: `--set contact_model=lcp --set timestep=0.001 --set gravity=0,0,-1.6`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from featherlane.errors import ModelError, near

if TYPE_CHECKING:
    from featherlane.model.model import Model


def set_options(model: Model, settings: Iterable[str]) -> None:
    """Set options of `model.opt`, one by one in the order given.

    Args:
        model: the model.
        settings: texts NAME=VALUE; a value is a number, numbers with commas, or a name.

    Raises:
        ModelError: a text without `=`, an unknown option, a value that the option does not take.
        UnsupportedFeatureError: an option that does not go with the others.
    """
    for text in settings:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise ModelError(f"set: got {text!r}, allowed is NAME=VALUE, as in timestep=0.001")
        set_option(model, name, _value(value), "set")


def set_option(model: Model, name: str, value: Any, what: str = "options") -> None:
    """Set one option of `model.opt`.

    Args:
        model: the model.
        name: the option.
        value: what it takes.
        what: who asks, for messages.

    Raises:
        ModelError: an unknown option, a value that the option does not take.
        UnsupportedFeatureError: an option that does not go with the others.
    """
    known = [option for option in dir(model.opt) if not option.startswith("_")]
    if name not in known:
        raise ModelError(f"{what}: no option {name!r}{near(name, known)}")
    setattr(model.opt, name, value)


def _value(text: str) -> Any:
    """A whole number, a number, a tuple of numbers, or the text itself."""
    for kind in (int, float, lambda t: tuple(map(float, t.split(",")))):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
