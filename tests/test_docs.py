"""Pages that are written from the code say what the code says."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_reference_of_fields_is_the_declarations():
    spec = importlib.util.spec_from_file_location("docs_fields", DOCS / "fields.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page(), "run: python docs/fields.py"
