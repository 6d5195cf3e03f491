"""The registry of checks: each under its name, with its severity and why it matters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from featherlane.doctor.finding import SEVERITIES, Sign
from featherlane.errors import FeatherlaneError

if TYPE_CHECKING:
    from featherlane.doctor.patient import Patient

Look = Callable[["Patient"], Iterable[Sign]]


class Check(NamedTuple):
    """One check.

    Attributes:
        name: in lower case with hyphens.
        severity: of all its findings.
        why: why what it finds matters: one sentence.
        look: yields a `Sign` for each element that shows it.
    """

    name: str
    severity: str
    why: str
    look: Look

    @property
    def physics(self) -> str:
        """What the check looks for, and the threshold: its docstring in one line."""
        return " ".join((inspect.getdoc(self.look) or "").split())

    @property
    def subject(self) -> str:
        """The file that it stands in."""
        return self.look.__module__.rpartition(".")[2]


CHECKS: dict[str, Check] = {}


def check(name: str, severity: str, why: str) -> Callable[[Look], Look]:
    """Register a check under a name."""
    if name in CHECKS or severity not in SEVERITIES:
        raise FeatherlaneError(f"check {name!r}: a second one of this name, or no severity {severity!r}")

    def register(look: Look) -> Look:
        CHECKS[name] = Check(name, severity, why, look)
        return look

    return register
