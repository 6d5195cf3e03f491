"""Smoke tests of benchmarks/urdf.py: which files count as present, programs that crash, and what differs."""

import copy
import importlib
import re
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ROBOT = """<robot name="r"><link name="a"><!-- <mesh filename="comment.stl"/> -->
<visual><geometry><mesh filename="drawn.dae"/></geometry></visual>
<collision><geometry><mesh scale="1 1 1" filename="{}"/></geometry></collision></link></robot>"""
JOINT = {"name": "j", "anchor": [0, 0, 1], "mass": 2.0, "com": [0, 0, 1], "limits": [-1, 1], "damping": 0.5}
JOINT |= {"inertia": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}


@pytest.fixture
def module(monkeypatch):
    """Returns a function that imports a module of the script by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"urdf_sets.{name}")


@pytest.mark.parametrize(
    ("name", "content", "is_present"),
    [("m.stl", "solid", True), ("m.stl", "version https://git-lfs.github.com/spec/v1\n", False),
     ("n.stl", "solid", False), ("package://named/urdf/m.stl", "", True),
     ("package://folder/urdf/m.stl", "", True),
     ("package://other/m.stl", "", False)],
)  # fmt: skip
def test_a_file_is_present_if_its_collision_meshes_are(module, tmp_path, name, content, is_present):
    folder = tmp_path / "folder" / "urdf"
    folder.mkdir(parents=True)
    (folder.parent / "package.xml").write_text("<package><name>named</name></package>")
    (folder / "m.stl").write_text(content)
    (folder / "robot.URDF").write_text(ROBOT.format(name))
    (folder / "left_out.urdf").write_text(ROBOT.format(name))
    (robot,) = module("files").robots(tmp_path, re.compile("left"))
    assert (robot.missing == []) == is_present and robot.suffixes == {".stl"}
    assert list(robot.packages) == [folder.parent] * ("package" in name and is_present)


def test_a_crashed_program_is_started_again(module):
    code = "import sys, os\nfor line in sys.stdin: os._exit(1) if '1' in line else print('{\"x\": 2}', flush=True)"
    program = module("programs").Program([sys.executable, "-c", code])
    try:
        assert [program.ask({"k": k}) for k in (0, 1, 0)] == [{"x": 2}, {"error": "the process crashed"}, {"x": 2}]
    finally:
        program.stop()


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [("anchor", [0, 0, 1.1], ()), ("axis", [0, 1, 0], ()), ("mass", 2.1, "link 'b': ..."),
     ("com", [0.1, 0, 1], "link 'b': ..."), ("inertia", [[1, 0.1, 0], [0.1, 1, 0], [0, 0, 1]], "link 'b': ..."),
     ("limits", None, "joint 'j': ..."), ("damping", 0, "joint 'j': ...")],
)  # fmt: skip
def test_differences_are_found_unless_they_are_reported(module, name, value, reported):
    differences = module("comparison").differences
    reference = {"joints": [JOINT | {"columns": [[0, 0, 0, 0, 0, 1]], "links": ["b"]}]}
    ours = {"joints": [JOINT | {"kind": "hinge", "axis": [0, 0, 1]}], "repairs": [], "dropped": []}
    assert differences(ours, reference) == []
    changed = copy.deepcopy(ours)
    changed["joints"][0][name] = value
    (line,) = differences(changed, reference)
    assert line.startswith("joint 'j': ")
    assert differences(changed | {"repairs": [reported] if reported else []}, reference) == ([] if reported else [line])
