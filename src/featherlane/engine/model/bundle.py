"""Finds the bundled models: the MJCF files that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from featherlane.errors import ModelError, near

FOLDER = Path(__file__).parent / "bundled"


def bundled_names() -> list[str]:
    """Returns the names of the models that come with the package, for `bundled`."""
    return sorted(path.stem for path in FOLDER.glob("*.xml"))


def bundled_file(name: str) -> Path:
    """Returns the file of a bundled model.

    Raises:
        ModelError: no bundled model has this name.
    """
    names = bundled_names()
    if not isinstance(name, str) or name not in names:
        raise ModelError(f"no bundled model {name!r}{near(name, names)}; bundled are {', '.join(names)}")
    return FOLDER / f"{name}.xml"


def resolve_name(source: Any) -> Any:
    """Returns the file of a bundled model's name, and any other source unchanged.

    A bundled name takes precedence over a file of that name: `./arm` is the file.

    Raises:
        ModelError: the source is a name, but neither of a bundled model nor of a file.
    """
    if not isinstance(source, str) or not source.isprintable() or "<" in source:
        return source
    names = bundled_names()
    if source in names:
        return bundled_file(source)
    path = Path(source)
    if source and not path.suffix and path.name == source and not path.exists():
        raise ModelError(
            f"no bundled model and no file {source!r}{near(source, names)}; bundled are {', '.join(names)}"
        )
    return source
