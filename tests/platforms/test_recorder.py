"""A recorded step is replayed on this system, pointers within the memory of its records included."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import featherlane as fl
from featherlane.engine.lanes import link, processor
from featherlane.engine.lanes.build import shared_object
from featherlane.engine.lanes.kernel import symbol
from featherlane.engine.simulation.tile.library import library, stages

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(bool(link.linking_problem()), reason="needs a C compiler"),
    pytest.mark.skipif(sys.platform == "win32", reason="replay.c is compiled for dlopen"),
]
# the cylinder and the box touch: their pair has a cache, whose address is in the tile's memory
CONVEX_PAIR = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
<body pos="0 0 .3"><freejoint/><geom type="cylinder" size=".2 .3"/></body>
<body pos=".05 0 .795"><freejoint/><geom type="box" size=".2 .2 .2"/></body></worldbody></mujoco>"""


@pytest.fixture
def module(monkeypatch):
    """Returns a module of this folder, by name."""
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module


def replayed(folder: Path, stage, recording: Path) -> list[str]:
    """Returns the lines that the replay of a recording prints."""
    code, program = folder / "kernels.so", folder / "replay"
    code.write_bytes(shared_object(library(), {("f64", 1): [stage]}, processor.cpu_level()))
    subprocess.run([*link.compiler(), "-O1", "-o", program, HERE / "replay.c", "-ldl"], check=True, timeout=60)
    done = subprocess.run([program, code, recording], capture_output=True, text=True, check=False, timeout=60)
    return [*done.stdout.splitlines(), str(done.returncode)]


def test_a_step_with_a_cache_of_pairs_is_replayed(module, tmp_path):
    data, stage, recording = fl.Data(fl.load(CONVEX_PAIR)), stages()["step"], tmp_path / "step.bin"
    data.step(3)
    records = data.workspace.rows.record, data.workspace.record
    assert data.ncon > 4 and records[1].arrays["recall_address"][0] and records[1].arrays["recall.pair"][0]
    name, run = symbol(stage, "f64", 1, False), library().bind(stage, *records)
    recording.write_bytes(module("recorder").file_of([(name, records, (), run)]))
    assert replayed(tmp_path, stage, recording) == [f"{name}: 0 bytes differ", "1 of 1 calls equal", "0"]


def test_the_recorded_steps_are_those_that_other_systems_replay(module, tmp_path):
    recorded = module("recorded_stages")
    recorded.record_steps(tmp_path)
    ((stage, form),) = recorded.wanted()["steps"]
    assert form == ("f64", 1)
    assert replayed(tmp_path, stage, tmp_path / "steps.bin")[-2:] == [
        f"{recorded.STEPS} of {recorded.STEPS} calls equal",
        "0",
    ]
