"""The examples of docs/training.md#adapters-for-learning-libraries run as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
EXAMPLES = dict(re.findall(r"^### ([^\n]+)\n\n```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))
LIBRARIES = {
    "Gymnasium": "gymnasium",
    "PyTorch": "torch",
    "Stable-Baselines3": "stable_baselines3",
    "rsl_rl": "rsl_rl",
    "skrl": "skrl",
    "TorchRL": "torchrl",
    "RLlib": "ray.rllib",
}
MOST_LINES = 25  # of at most 88 characters
pytestmark = pytest.mark.filterwarnings("ignore")


def test_each_library_has_an_example():
    assert list(EXAMPLES) == list(LIBRARIES)
    assert max(len(example.strip().splitlines()) for example in EXAMPLES.values()) <= MOST_LINES


@pytest.mark.parametrize(
    "library", [pytest.param(name, marks=[pytest.mark.slow] * (name == "RLlib")) for name in LIBRARIES]
)
def test_it_runs(library, tmp_path, monkeypatch):
    pytest.importorskip(LIBRARIES[library])
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[library], library, "exec"), {})
