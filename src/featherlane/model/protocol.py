"""`ModelFields`: what the rules about a model's numbers and options read of it; `Model` implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ModelFields(Protocol):
    """Fields of a model by name, each also in `__dict__`, where reading it does not count as an edit."""

    def __getattr__(self, name: str) -> Any: ...

    def names(self, kind: str) -> list[str]: ...

    def size_values(self) -> dict[str, int]: ...

    def check_edits(self) -> None: ...

    def take_constants(self, values: Mapping[str, Any]) -> None: ...
