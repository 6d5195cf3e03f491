"""Prints incompatible changes of public names since a commit, the last release by default.

    python tests/measure/api.py [COMMIT]

Public are the names in `__all__` of MODULES, and attributes of public classes without an underscore.  Compared are
names, parameters, return types and base classes in the source (Griffe, extra `lint`); nothing is imported.  A change
whose name no entry of [Unreleased] in CHANGELOG.md mentions is marked, and makes the exit status 1.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import griffe

ROOT = Path(__file__).parents[2]
PACKAGE = "featherlane"
PARTS = (
    "errors results query patterns controllers policies terrain stages registration environments distributed lcp tree "
    "lanes"
)
MODULES = (PACKAGE, *(f"{PACKAGE}.{part}" for part in PARTS.split()))


class Change(NamedTuple):
    """An incompatible change: its kind, the public name, and what differs."""

    kind: str
    name: str
    detail: str

    def is_in(self, entries: str) -> bool:
        """Returns whether text names the changed object or, for a method, its class."""
        words = self.name.removesuffix(".__init__").split(".")
        return re.search(rf"\b{re.escape(words[-1])}\b", entries) is not None


def loaded(source: Path) -> griffe.Module:
    """Returns the package in a folder of sources, unimported."""
    return griffe.load(PACKAGE, search_paths=[source], allow_inspection=False, resolve_aliases=True)


class Public(NamedTuple):
    """A public name, and whether it is a class, whose attributes are public, too."""

    name: str
    is_class: bool


def public_names(package: griffe.Module) -> dict[str, Public]:
    """Returns public names by the path where they are exported, and by the path where they are defined."""
    found: dict[str, Public] = {}
    for path in MODULES:
        try:
            module = package[path.partition(".")[2]] if "." in path else package
        except KeyError:
            continue  # a module that the other version has
        for name in map(str, module.exports or ()):
            member = module.members.get(name)
            try:
                target = member.final_target if isinstance(member, griffe.Alias) else member
            except (griffe.AliasResolutionError, griffe.CyclicAliasError):
                target = None  # from another package
            public = Public(f"{path}.{name}", target is not None and target.is_class)
            found[public.name] = public
            if target is not None and not target.is_module:
                found.setdefault(target.canonical_path, public)
    return found


def changes(old: griffe.Module, new: griffe.Module) -> Iterator[Change]:
    """Yields the incompatible changes of public names."""
    names = public_names(new) | public_names(old)
    for breakage in griffe.find_breaking_changes(old, new):
        path, rest = breakage.obj.path, []
        while path and path not in names:
            path, _, last = path.rpartition(".")
            rest.insert(0, last)
        if not path or (rest and not names[path].is_class):
            continue
        if not any(part.startswith("_") and part != "__init__" for part in rest):
            detail = str(getattr(breakage.old_value, "name", breakage.old_value)).partition("\n")[0]
            yield Change(breakage.kind.value, ".".join([names[path].name, *rest]), detail)


def of_commit(commit: str, folder: Path) -> Path:
    """Writes the sources of a commit into a folder, and returns their place.

    Raises:
        SystemExit: Git does not have the commit.
    """
    done = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"commit {commit}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def last_release() -> str:
    """Returns the tag of the last release; empty if there is none."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def unreleased() -> str:
    """Returns the entries of [Unreleased] in CHANGELOG.md."""
    text = (ROOT / "CHANGELOG.md").read_text()
    return re.split(r"^## ", text.partition("## [Unreleased]")[2], flags=re.MULTILINE)[0]


def report(found: list[Change], entries: str) -> tuple[list[str], int]:
    """Returns one line for each change, and the number of those that the entries do not mention."""
    lines, missing = [], 0
    for change in sorted(set(found), key=lambda change: (change.name, change)):
        is_listed = change.is_in(entries)
        missing += not is_listed
        mark = "" if is_listed else "  (not in CHANGELOG.md)"
        lines.append(f"{change.name}: {change.kind} ({change.detail}){mark}")
    return lines, missing


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 2
    commit = arguments[0] if arguments else last_release()
    if not commit:
        print("no release yet: no tag v*")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = list(changes(loaded(of_commit(commit, Path(folder))), loaded(ROOT / "src")))
    lines, missing = report(found, unreleased())
    print("\n".join([*lines, f"{len(lines)} incompatible changes since {commit}, {missing} not in CHANGELOG.md"]))
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
