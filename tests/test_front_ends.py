"""Front ends import public names only; tests/data/front_ends.txt lists the remaining exceptions."""

from featherlane import extension
from measure import front_ends

WRITE = "python tests/measure/front_ends.py --write removes exceptions that are no longer needed"


def test_front_ends_import_public_names_only(subtests):
    allowed, found = set(front_ends.EXCEPTIONS.read_text().splitlines()), set(front_ends.lines())
    for front_end in front_ends.FRONT_ENDS:
        own = {line.partition(": ")[2] for line in found - allowed if line.startswith(f"{front_end}: ")}
        with subtests.test(front_end=front_end):
            assert not own, f"{front_end} imports names that are not public: {', '.join(sorted(own))}"
    assert not allowed - found, f"needless exceptions: {sorted(allowed - found)}; {WRITE}"


def test_the_count_finds_private_and_unlisted_names(tmp_path):
    path = tmp_path / "front_end.py"
    path.write_text(
        "import numpy\n"
        "import featherlane.engine.model\n"
        "from featherlane import Batch, missing\n"
        "from featherlane.engine.model.model import peek\n"
        "from featherlane.errors import ModelError, shortened\n"
        "from featherlane.apps.viewer import view\n"
    )
    expected = ["engine.model", "missing", "engine.model.model.peek", "errors.shortened"]
    assert list(front_ends.unlisted_imports(path)) == expected


def test_front_ends_use_each_name_of_extension():
    names = set(extension.__all__)
    assert not names - front_ends.used_of_extension(), "move these to the code that they serve"
    assert len(names) <= 62, "a name that one front end needs is a method, or belongs to that front end"
