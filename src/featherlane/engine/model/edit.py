"""Calls functions of users that edit a `mujoco.MjSpec` before it is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from featherlane.errors import ModelError

Edit = Callable[[Any], Any]


def apply_edit(label: str, edit: Callable[..., Any], spec: Any, *arguments: Any) -> None:
    """Calls edit(spec, *arguments), which changes the specification in place; its result is ignored.

    An error of the function is raised unchanged, with a note that names the call.

    Args:
        label: what is edited, for messages.
        edit: the function.
        spec: a `mujoco.MjSpec`.
        arguments: further arguments of the function.

    Raises:
        ModelError: the function returned another specification, whose changes would be lost.
    """
    try:
        found = edit(spec, *arguments)
    except Exception as error:
        error.add_note(f"{label}: raised while the specification was edited")
        raise
    if isinstance(found, type(spec)) and found is not spec:
        raise ModelError(f"{label}: edit returned another MjSpec, allowed is a function that changes the given one")
