"""What a check finds: an element, what was seen there, why it matters and what to try."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

ERROR = "error"  # the model cannot be computed, or its numbers turn bad as it stands
WARNING = "warning"  # it runs, and hardly moves as its author meant
NOTE = "note"  # worth knowing; many good models have some
SEVERITIES = (ERROR, WARNING, NOTE)


class Sign(NamedTuple):
    """One element that shows what a check looks for.

    Attributes:
        kind: of the element, as `Model.names` has it (`body`, `joint`, ...), `equality`, `option` or `model`.
        id: number of the element; name of an option; -1 for the model.
        seen: what was found there, with units.
        advice: what to try.
    """

    kind: str
    id: int | str
    seen: str
    advice: str


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing.

    Attributes:
        check: name of the check, as docs/diagnostics.md lists them.
        severity: `error`, `warning` or `note`.
        kind: of the element: `body`, `joint`, `geom`, ..., `option` or `model`.
        id: number of the element among its kind; name of an option; -1 for the model.
        element: the element as messages name it: `body 'torso'`, `geom #3 of body 'torso'`.
        seen: what was found there, with units.
        why: why it matters.
        advice: what to try.
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
        """The attributes by name."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.severity}: {self.element}: {self.seen} ({self.check}). {self.advice}"
