"""Errors of URDF files that are not repaired name the element, its value and what is allowed."""

import pytest

import featherlane as fl
from featherlane.engine.model.urdf_problems import urdf_problems

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
FIXED = '<joint name="k" type="fixed"><parent link="{}"/><child link="{}"/></joint>'
ROBOT = """<robot name="r"><link name="a"/><link name="b">{link}</link>
<joint name="j" type="{kind}"><parent link="a"/><child link="b"/></joint>{rest}</robot>"""
BALL = '<collision><origin xyz="{}"/><geometry><sphere radius="{}"/></geometry></collision>'


def urdf(link="", kind="continuous", rest=""):
    return ROBOT.format(link=MASS + link, kind=kind, rest=rest)


PROBLEMS = [
    (urdf(kind="hinge"), "joint 'j': got type 'hinge', allowed are revolute, continuous,"),
    (urdf(rest='<link name="b"/>'), "link 'b': 2 links have this name"),
    (urdf(rest="<link/>"), "<link> without name"),
    (
        urdf(rest='<link name="c"/>' + FIXED.format("c", "b")),
        "link 'b': is the child of joints 'j', 'k', allowed is one",
    ),
    (urdf(rest=FIXED.format("b", "a")), "is its own ancestor, allowed is a tree"),
    (urdf(rest='<joint name="k" type="fixed"><parent link="a"/></joint>'), "joint 'k': <child link=...> is missing"),
    (
        urdf(rest='<link name="c"/>' + FIXED.format("a", "c").replace(' name="k"', "")),
        "<joint> from 'a' to 'c' without",
    ),
    (urdf(BALL.format("0 0", 1)), "link 'b': <origin> xyz='0 0', allowed is 3 numbers"),
    (urdf(BALL.format("0 0 x", 1)), "link 'b': <origin> xyz='0 0 x', allowed is 3 numbers"),
    (urdf(BALL.format("0 0 0", -1)), "link 'b': <sphere> radius='-1', allowed is a number > 0"),
]


@pytest.mark.parametrize(("text", "line"), PROBLEMS)
def test_a_problem_is_named_with_and_without_repair(text, line):
    for repair in (False, True):
        with pytest.raises(fl.ModelError) as caught:
            fl.load(text, repair=repair)
        assert line in str(caught.value)


@pytest.mark.parametrize("text", [urdf(), urdf(BALL.format("0 0 0", 1)), "<mujoco/>", "<robot"])
def test_other_sources_have_no_problems(text):
    assert urdf_problems(text) == []
