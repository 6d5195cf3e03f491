"""What the README shows runs as written."""

import re
from pathlib import Path

import pytest

import feature_table
from featherlane.model.features import refused_kinds

README = (Path(__file__).parents[1] / "README.md").read_text()
EXAMPLE = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]


def test_the_example_runs(capsys):
    exec(compile(EXAMPLE, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_the_example_is_about_ten_lines():
    assert len(EXAMPLE.strip().splitlines()) <= 12


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:|#)([^)]+)\)", README))
def test_links_lead_to_files(target):
    assert (Path(__file__).parents[1] / target).exists()


def test_every_kind_has_a_test_or_a_refusal():
    """Else `python docs/features.py` writes the table anew."""
    assert feature_table.section(README) == feature_table.table(feature_table.marks(), refused_kinds())
