"""The report of incompatible changes lists those of public names, and marks those without an entry in the changelog."""

import pytest

pytest.importorskip("griffe", exc_type=ImportError)  # extra `lint`
from measure import api

OLD = {
    "__init__": 'from featherlane.inner import Thing, move, turn\n__all__ = ["Thing", "move", "turn", "query"]\n',
    "inner": """class Thing:
    def public(self, a, b=1): ...
    def _private(self, a): ...
def move(a, b): ...
def turn(a): ...
def internal(a): ...
""",
    "query": '__all__ = ["ray"]\ndef ray(a): ...\ndef hidden(a): ...\n',
}
NEW = {
    "__init__": 'from featherlane.inner import Thing, move\n__all__ = ["Thing", "move", "query"]\n',
    "inner": """class Thing:
    def public(self, a): ...
def move(a, b, *, c=0): ...
""",
    "query": '__all__ = ["ray"]\ndef ray(a, b): ...\n',
}


@pytest.fixture
def found(tmp_path):
    versions = []
    for name, files in (("old", OLD), ("new", NEW)):
        package = tmp_path / name / "featherlane"
        package.mkdir(parents=True)
        for stem, text in files.items():
            (package / f"{stem}.py").write_text(text)
        versions.append(api.loaded(tmp_path / name))
    return list(api.changes(*versions))


def test_only_changes_of_public_names_are_reported(found):
    assert {change.name for change in found} == {
        "featherlane.Thing.public",
        "featherlane.query.ray",
        "featherlane.turn",
    }


def test_changes_that_the_changelog_does_not_mention_are_marked(found):
    lines, missing = api.report(found, "- `turn` is `rotate`, and `Thing.public` has no `b`.")
    assert missing == 1 and [line.partition(":")[0] for line in lines if "not in" in line] == ["featherlane.query.ray"]
