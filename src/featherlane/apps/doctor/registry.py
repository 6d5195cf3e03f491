"""The registry of checks: each has a name, a severity and a reason why it matters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from featherlane.apps.doctor.finding import SEVERITIES, Finding, Sign
from featherlane.errors import FeatherlaneError

if TYPE_CHECKING:
    from featherlane.apps.doctor.examined_model import ExaminedModel

Look = Callable[["ExaminedModel"], Iterable[Sign]]


class Check(NamedTuple):
    """A registered check.

    Attributes:
        name: name in lower case with hyphens.
        severity: severity of its findings, unless a sign has another.
        why: one sentence on why its findings matter.
        look: function that yields a `Sign` for each affected element.
    """

    name: str
    severity: str
    why: str
    look: Look

    def finding(self, sign: Sign, element: str) -> Finding:
        """Returns a finding of this check about an element."""
        severity = sign.severity or self.severity
        return Finding(self.name, severity, sign.kind, sign.id, element, sign.seen, self.why, sign.advice)

    @property
    def physics(self) -> str:
        """Returns the physics and the threshold of the check: its docstring in one line."""
        return " ".join((inspect.getdoc(self.look) or "").split())

    @property
    def subject(self) -> str:
        """Returns the name of the check's module."""
        return self.look.__module__.rpartition(".")[2]


CHECKS: dict[str, Check] = {}


def check(name: str, severity: str, why: str) -> Callable[[Look], Look]:
    """Registers a check under a name."""
    if name in CHECKS or severity not in SEVERITIES:
        raise FeatherlaneError(
            f"check {name!r}: the name is registered already, or the severity {severity!r} is unknown"
        )

    def register(look: Look) -> Look:
        CHECKS[name] = Check(name, severity, why, look)
        return look

    return register
