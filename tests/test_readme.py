"""What the README shows runs as written."""

import re
from pathlib import Path

import pytest

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
