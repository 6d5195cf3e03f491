"""A finding of a check: an element, the observation, the reason why it matters, and advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

ERROR = "error"  # the model cannot be computed, or its state becomes non-finite
WARNING = "warning"  # the model runs, but probably not as intended
NOTE = "note"  # useful to know; many good models have some
SEVERITIES = (ERROR, WARNING, NOTE)


class Sign(NamedTuple):
    """An element that a check reports.

    Attributes:
        kind: kind of the element as in `Model.names` (`body`, `joint`, ...), or `equality`, `option`, `model`.
        id: number of the element; name of an option; -1 for the model.
        seen: observation, with units.
        advice: suggested change.
        severity: severity of this finding; empty for that of the check.
    """

    kind: str
    id: int | str
    seen: str
    advice: str
    severity: str = ""


@dataclass(frozen=True)
class Finding:
    """An error, warning or note about one element.

    Attributes:
        check: name of the check, as in docs/diagnostics.md.
        severity: `error`, `warning` or `note`.
        kind: kind of the element: `body`, `joint`, `geom`, ..., `option` or `model`.
        id: number of the element among its kind; name of an option; -1 for the model.
        element: the element in the format of messages: `body 'torso'`, `geom #3 of body 'torso'`.
        seen: observation, with units.
        why: why it matters.
        advice: suggested change.
    """

    check: str
    severity: str
    kind: str
    id: int | str
    element: str
    seen: str
    why: str
    advice: str

    def plain(self) -> dict[str, Any]:
        """Returns the attributes by name."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.severity}: {self.element}: {self.seen} ({self.check}). {self.advice}"
