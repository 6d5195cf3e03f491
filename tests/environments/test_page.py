"""Every block of the reinforcement learning page before the adapters runs, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text().partition("## Adapters")[0], re.DOTALL)


@pytest.mark.filterwarnings("ignore:.*settotalmass:UserWarning")
def test_the_blocks_run(tmp_path):
    assert len(BLOCKS) == 7
    names: dict = {"__name__": "page"}
    terms: set[str] = set()
    for k, block in enumerate(BLOCKS):
        # kernels are compiled from their source files
        path = tmp_path / f"block_{k}.py"
        path.write_text(block.replace("num_envs=4096", "num_envs=64"))
        exec(compile(path.read_text(), str(path), "exec"), names)
        terms |= set(getattr(names.get("env"), "terms", ()))
    assert names["observations"].shape == (64, 105) and names["observations"].dtype == "float32"
    assert {"up", "effort"} <= terms
