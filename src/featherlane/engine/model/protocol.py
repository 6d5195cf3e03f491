"""Defines `ModelFields`, the model interface used by the checks of values and options; `Model` implements it."""

from __future__ import annotations

from typing import Any, Protocol


class ModelFields(Protocol):
    """Fields of a model by name, each also in `__dict__`, where reading it does not count as an edit."""

    def __getattr__(self, name: str) -> Any: ...
