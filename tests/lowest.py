"""Prints constraints that select the lowest allowed version of each dependency of some extras.

    python tests/lowest.py test dm-control > lowest.txt
    pip install --constraint lowest.txt '.[test,dm-control]'

`.ci/lowest` installs and tests these versions.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def requirements(extras: Iterable[str]) -> list[Requirement]:
    """Returns the dependencies of the package and of extras, with those of the extras that they name."""
    found = [Requirement(text) for text in PROJECT["dependencies"]]
    pending, known = list(extras), set()
    while pending:
        extra = pending.pop()
        if extra in known:
            continue
        known.add(extra)
        for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
            if canonicalize_name(requirement.name) == PROJECT["name"]:
                pending.extend(requirement.extras)
            else:
                found.append(requirement)
    return found


def lowest(requirement: Requirement) -> Version:
    """Returns the lower bound of a requirement.

    Raises:
        ValueError: the requirement has no lower bound, or several.
    """
    bounds = [each.version for each in requirement.specifier if each.operator in (">=", "==", "~=")]
    if len(bounds) != 1:
        raise ValueError(f"{requirement}: has {len(bounds)} lower bounds, allowed is 1")
    return Version(bounds[0])


def constraints(extras: Iterable[str]) -> list[str]:
    """Returns one constraint for each dependency: its highest lower bound among the extras."""
    bounds: dict[str, Version] = {}
    for requirement in requirements(extras):
        name = canonicalize_name(requirement.name)
        bounds[name] = max(lowest(requirement), bounds.get(name, Version("0")))
    return [f"{name}=={bound}" for name, bound in sorted(bounds.items())]


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(PROJECT["optional-dependencies"])
    if unknown:
        sys.exit(f"unknown extras: {', '.join(sorted(unknown))}; known: {', '.join(PROJECT['optional-dependencies'])}")
    print("\n".join(constraints(sys.argv[1:])))
