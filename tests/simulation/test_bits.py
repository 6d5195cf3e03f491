"""Short motions of all kinds are bitwise identical to the recorded ones; see tests/bits/hashes.py."""

from __future__ import annotations

import mujoco
import pytest

from bits import hashes
from bits.scenes import SCENES
from sampling import every

RECORD = hashes.recorded()


@pytest.mark.parametrize(
    "name", every(3, [pytest.param(n, marks=pytest.mark.slow) if scene.slow else n for n, scene in SCENES.items()])
)
def test_results_are_bitwise_equal_to_the_recorded_ones(name):
    assert name in RECORD["scenes"], f"{name} is not recorded: python tests/bits record {name!r}"
    expected, found = RECORD["scenes"][name], hashes.hashes(SCENES[name])
    moved = [dtype for dtype in SCENES[name].dtypes if found[dtype] != expected[dtype]]
    if moved and found["inputs"] != expected["inputs"]:
        text = f"{name}: its model or its start is not the recorded one"
        if mujoco.__version__ != RECORD["mujoco"]:
            pytest.skip(f"{text}: MuJoCo is {mujoco.__version__}, then it was {RECORD['mujoco']}")
        pytest.fail(f"{text}, before any step; so are its steps in {', '.join(moved)}{hashes.ADVICE}")
    assert not moved, f"{name}: moved in {', '.join(moved)}, from the same inputs{hashes.ADVICE}"


def test_every_recorded_scene_exists():
    assert set(RECORD["scenes"]) <= set(SCENES), "record the scenes again: python tests/bits record"
