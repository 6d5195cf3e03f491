"""Repairs of URDF files: each has an effect on the model and a line; valid files remain unchanged."""

import copy
import pickle
import warnings

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherlane as fl
from featherlane.engine.model.inertias import ROUNDED
from featherlane.engine.model.repair import repaired
from featherlane.engine.model.repair_inertias import DENSITY, SMALLEST, nearest_inertia, nearest_moments

pytestmark = pytest.mark.filterwarnings("ignore:.*links without a body")
ROUNDING = 1e-12  # of sums of a few numbers near 1
MASS, INERTIA = '<mass value="1"/>', '<inertia ixx="1" iyy="2" izz="2.5" ixy="0.2" ixz="-0.1" iyz="0.3"/>'
INERTIAL = f'<inertial><origin xyz="0.1 0 0.2" rpy="0.3 0 0"/>{MASS}{INERTIA}</inertial>'
BALL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
LIMIT = '<axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="3"/>'
ROBOT = """<?xml version="1.0"?>
<!-- a > b, "é" -->
<robot name="r" ><link name="a"/><link name='b'  >{link}</link>
<joint name="j" type="{kind}"><parent link="a"/><child link="b"/>{joint}</joint>{rest}
</robot>"""
SPHERE_MOMENT = 0.4 * (0.75 / (np.pi * DENSITY)) ** (2 / 3)  # of 1 kg


def urdf(link=INERTIAL, kind="revolute", joint=LIMIT, rest=""):
    return ROBOT.format(link=link, kind=kind, joint=joint, rest=rest)


def diagonal(xx, yy, zz):
    return f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'


def loaded(text, number=1):
    """Returns the repaired model, after checks of its warning and its lines; a second repair changes nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fl.load(text, repair=True)
    notes = [str(warning.message) for warning in caught if "repaired" in str(warning.message)]
    assert len(notes) == 1 and all(line in notes[0] for line in model.repairs)
    assert len(model.repairs) == number, model.repairs
    new, lines = repaired(text)
    assert lines == model.repairs and repaired(new) == (new, [])
    return model


# ---- valid files -----------------------------------------------------------------------------------------------------
FIXED = '<link name="c">{}</link><joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint>'
VALID = {
    "plain": urdf(),
    "flat": urdf(f"<inertial>{MASS}{diagonal(1, 1, 2)}</inertial>"),
    "geometry": urdf(BALL),
    "massless base": urdf(rest=FIXED.format(f'<inertial><mass value="0"/>{diagonal(0, 0, 0)}</inertial>')),
    "carried": urdf("", rest=FIXED.format(INERTIAL)),
    "endless": urdf(kind="continuous", joint='<limit effort="1" velocity="2"/>'),
    "xacro": urdf(INERTIAL.replace('"1"', '"${m}"')),
    "MJCF": "<mujoco><worldbody/></mujoco>",
    "not XML": "<robot><link",
    "ignored": urdf(rest='<gazebo><origin xyz="1,2"/></gazebo>'),
}


@pytest.mark.parametrize("name", VALID)
def test_valid_files_keep_their_bytes(name):
    for text in (VALID[name], VALID[name].replace("\n", "\r\n")):
        assert repaired(text) == (text, [])


def test_a_valid_model_has_no_repairs():
    model = fl.load(urdf(), repair=True)
    assert model.repairs == fl.load(urdf()).repairs == fl.bundled("arm").repairs == []


def test_only_the_named_element_changes():
    text = urdf(joint='<axis xyz="0, 0, 1"/><limit upper="1" lower="0"/>')
    for start in ("", "\n\n", "\ufeff"):
        assert repaired(start + text)[0] == start + text.replace("0, 0, 1", "0 0 1")


# ---- masses and inertias ---------------------------------------------------------------------------------------------
def test_an_impossible_inertia_becomes_the_nearest_possible():
    text = urdf(f"<inertial>{MASS}{diagonal(1, 1, 2.0001)}</inertial>")
    model = loaded(text)
    third = 1e-4 / 3
    assert sorted(model.body_inertia[1]) == pytest.approx([1 + third, 1 + third, 2 + 2 * third], rel=1e-8)
    assert model.body_mass[1] == 1
    assert model.repairs[0].startswith("link 'b': moments of inertia 1, 1, 2.0001 violate A + B >= C")


def test_principal_axes_and_frame_remain():
    text = urdf(INERTIAL.replace("2.5", "4"))
    model, spec = loaded(text), fl.load(urdf())
    assert model.body_ipos[1] == pytest.approx(spec.body_ipos[1])
    moments = nearest_moments(np.linalg.eigvalsh([[1, 0.2, -0.1], [0.2, 2, 0.3], [-0.1, 0.3, 4]]))
    assert sorted(model.body_inertia[1]) == pytest.approx(sorted(moments), rel=1e-8)


def test_negative_moments_become_positive():
    model = loaded(urdf(f"<inertial>{MASS}{diagonal(-1, 1, 1)}</inertial>"))
    assert sorted(model.body_inertia[1]) == pytest.approx([0, 1, 1], abs=1e-8)
    rod = loaded(urdf(f"<inertial>{MASS}{diagonal(0, 1, 1)}</inertial>"))
    assert sorted(rod.body_inertia[1]) == pytest.approx([0, 1, 1], abs=1e-8)


def test_missing_products_of_inertia_are_zero():
    text = f'<inertial>{MASS}<inertia ixx="1" iyy="2" izz="2.5" ixz="0.1"/></inertial>'
    model = loaded(urdf(text))
    expected = fl.load(urdf(text.replace('ixz="0.1"', 'ixy="0" ixz="0.1" iyz="0"')))
    assert model.body_inertia[1].tolist() == expected.body_inertia[1].tolist()
    assert "without ixy, iyz" in model.repairs[0]


@pytest.mark.parametrize("inertia", ["", diagonal(0, 0, 0), '<inertia ixx="1"/>'])
def test_a_mass_without_inertia_is_a_sphere(inertia):
    model = loaded(urdf(f"<inertial>{MASS}{inertia}</inertial>"))
    assert model.body_mass[1] == 1 and model.body_inertia[1] == pytest.approx([SPHERE_MOMENT] * 3)


SHAPES = ['<box size="0.1 0.2 0.4"/>', '<sphere radius="0.1"/>', '<cylinder radius="0.1" length="0.5"/>']


def collisions(*shapes):
    return "".join(
        f'<collision><origin xyz="{k} 0 {0.1 * k}" rpy="0.3 {k} 0.2"/><geometry>{shape}</geometry></collision>'
        for k, shape in enumerate(shapes)
    )


@pytest.mark.parametrize("shapes", [SHAPES, *[[shape] for shape in SHAPES]])
def test_a_mass_without_inertia_has_that_of_its_shapes(shapes):
    whole = fl.load(urdf(collisions(*shapes)))  # MuJoCo's inertia at DENSITY
    place = '<origin xyz="0.1 0 0.2" rpy="0.4 0.1 1"/>'
    model = loaded(urdf(f'<inertial>{place}<mass value="3"/></inertial>{collisions(*shapes)}'))
    assert model.body_mass[1] == 3 and model.body_ipos[1] == pytest.approx([0.1, 0, 0.2])
    assert model.body_inertia[1] == pytest.approx(whole.body_inertia[1] * 3 / whole.body_mass[1], rel=1e-6)
    np.testing.assert_allclose(principal(model), principal(whole), atol=1e-8)


def principal(model):
    """Returns the inertia tensor of the first body per unit mass, in the axes of the body."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[1])
    turn = turn.reshape(3, 3)
    return turn @ np.diag(model.body_inertia[1] / model.body_mass[1]) @ turn.T


@pytest.mark.parametrize("mass", ["", '<mass value="0"/>', "<mass/>"])
def test_an_inertia_without_mass_is_a_sphere(mass):
    model = loaded(urdf(f"<inertial>{mass}{diagonal(*[8 * SPHERE_MOMENT] * 3)}</inertial>"))
    assert model.body_mass[1] == pytest.approx(8**0.6)


def test_negative_definite_inertias_count_as_missing():
    model = loaded(urdf(f"<inertial>{MASS}{diagonal(-1, -2, -1)}</inertial>"), 2)
    assert model.body_inertia[1] == pytest.approx([SPHERE_MOMENT] * 3)


def test_a_negative_mass_is_ignored():
    assert loaded(urdf(f'<inertial><mass value="-2"/>{diagonal(1, 1, 1)}</inertial>'), 2).body_mass[1] > 0


@pytest.mark.parametrize(
    ("inertial", "number"),
    [("<inertial/>", 1), (f'<inertial><mass value="0"/>{diagonal(0, 0, 0)}</inertial>', 1),
     ('<inertial><mass value="0"/></inertial>', 2)],
)  # fmt: skip
def test_a_link_without_mass_has_that_of_its_collision_geometry(inertial, number):
    model, expected = loaded(urdf(inertial + BALL), number), fl.load(urdf(BALL))
    assert model.body_mass[1] == expected.body_mass[1] == pytest.approx(DENSITY * 4 / 3 * np.pi * 1e-3)
    assert model.body_inertia[1].tolist() == expected.body_inertia[1].tolist()


@pytest.mark.parametrize(("link", "number"), [("", 1), ("<visual/>", 2), ("<inertial/>", 2), ("<collision/>", 2)])
def test_a_moving_link_without_anything_has_the_smallest_mass(link, number):
    model = loaded(urdf(link), number)
    assert model.body_mass[1] == SMALLEST
    assert model.body_inertia[1] == pytest.approx([SPHERE_MOMENT * SMALLEST ** (5 / 3)] * 3)


def test_an_empty_link_tag_and_a_link_that_another_carries():
    text = urdf().replace(f"<link name='b'  >{INERTIAL}</link>", '<link name="b"/>')
    assert loaded(text).body_mass[1] == SMALLEST
    carried = f'<inertial><origin xyz="0 0 1"/><mass value="2"/>{diagonal(0, 0, 0)}</inertial>'
    model = loaded(urdf("", rest=FIXED.format(carried)))
    assert model.body_mass[1] == 2 and "link 'c'" in model.repairs[0]


def plate(mass, moment):
    inertia = diagonal(moment, moment, moment)
    return FIXED.format(f'<inertial><origin xyz="0 0 1"/><mass value="{mass}"/>{inertia}</inertial>')


def test_a_carried_link_without_inertial_has_no_mass():
    text = urdf(rest=FIXED.format(BALL))
    model = loaded(text)
    assert model.body_mass[1] == 1 and model.dropped == [] and "link 'c': no <inertial>" in model.repairs[0]
    for name in ("body_ipos", "body_inertia"):
        np.testing.assert_array_equal(getattr(model, name), getattr(fl.load(urdf()), name))
    with pytest.warns(UserWarning, match=r"link 'c': no <inertial>.*repair=True"):
        assert fl.load(text).body_mass[1] > 5


def test_a_moving_link_without_inertial_has_the_mass_of_its_geometry():
    for repair in (False, True):
        with pytest.warns(UserWarning, match=r"link 'b': no <inertial>, so that MuJoCo computes the mass"):
            model = fl.load(urdf(BALL), repair=repair)
        assert model.body_mass[1] > 4 and model.repairs == []
    text = urdf(BALL).replace("<link", '<mujoco><compiler inertiafromgeom="true"/></mujoco><link', 1)
    assert fl.load(text).dropped == []


def test_an_inertia_of_mass_zero_counts():
    round_link = f"<inertial>{MASS}{diagonal(1, 1, 1)}</inertial>"
    text = urdf(round_link, rest=plate(0, 0.5))
    model = loaded(text)
    assert model.body_mass[1] == pytest.approx(1) and model.body_inertia[1] == pytest.approx([1.5] * 3)
    assert model.body_ipos[1] == pytest.approx([0, 0, 0], abs=1e-9)
    with pytest.warns(UserWarning, match=r"link 'c': <inertia> is ignored, as the mass is 0"):
        assert fl.load(text).body_inertia[1] == pytest.approx([1] * 3)


# ---- other elements --------------------------------------------------------------------------------------------------
def test_misprinted_numbers():
    model = loaded(urdf(joint='<origin xyz="1, 2,3"/><axis xyz="0 0 1."/><limit lower="-1.57." upper="1"/>'), 2)
    assert model.jnt_range[0].tolist() == [-1.57, 1] and model.body_pos[1].tolist() == [1, 2, 3]
    for wrong in ("1,5", "1 2", "x", "${a}"):  # a decimal comma is no separator
        assert repaired(urdf(joint=f'<limit lower="{wrong}" upper="9"/>'))[1] == []


def test_the_first_of_repeated_elements_is_used():
    other = INERTIAL.replace('value="1"', 'value="3"')
    model = loaded(urdf(INERTIAL + other, joint=LIMIT + '<axis xyz="1 0 0"/>'), 2)
    assert model.body_mass[1] == 1 and model.jnt_axis[0].tolist() == [0, 0, 1]


def test_too_many_numbers():
    model = loaded(urdf(joint=LIMIT + '<origin xyz="1 2 3 4" rpy="0 0 0 0"/>'), 2)
    assert model.body_pos[1].tolist() == [1, 2, 3]


@pytest.mark.parametrize("shape", ['<plane normal="0 0 1"/>', '<cone radius="1"/>', "<mesh/>", '<mesh filename=""/>'])
def test_other_shapes_are_removed(shape):
    text = urdf(INERTIAL + BALL.replace('<sphere radius="0.1"/>', shape) + BALL)
    assert loaded(text).ngeom == 1 and repaired(text)[0] == urdf(INERTIAL + BALL)


@pytest.mark.parametrize(
    "shape", ['<sphere radius="{}"/>', '<box size="0.2 {} 1"/>', '<cylinder radius="1" length="{}"/>']
)
def test_sizes_of_zero_that_collide_become_small(shape):
    model, expected = loaded(urdf(INERTIAL + BALL.replace('<sphere radius="0.1"/>', shape.format(0)))), 1e-4
    assert min(size for size in model.geom_size[0] if size) == pytest.approx(expected / (1 if "sphere" in shape else 2))


def test_axes_without_direction():
    for axis in ('<axis xyz="0 0.0 0"/>', "<axis/>", '<axis xzy="0 0 1"/>'):
        model = loaded(urdf(joint=axis + '<limit lower="-1" upper="1"/>'))
        assert model.jnt_axis[0].tolist() == [1, 0, 0] and "joint 'j': <axis>" in model.repairs[0]
    fixed = urdf(kind="fixed", joint='<axis xyz="0 0 0"/>')
    assert repaired(fixed) == (fixed, [])


@pytest.mark.parametrize(("parent", "child", "height"), [("world", "a", 2.0), ("b", "tool", 0.0)])
def test_links_that_only_joints_name_are_added(parent, child, height):
    joint = (
        f'<joint name="k" type="fixed"><origin xyz="0 0 2"/><parent link="{parent}"/><child link="{child}"/></joint>'
    )
    model = loaded(urdf(rest=joint))
    assert model.body_pos[1][2] == height and "'k'" in model.repairs[0]
    with pytest.raises(fl.ModelError, match=r"joint 'k': <\w+> '\w+' is no link"):
        fl.load(urdf(rest=joint))


def test_invalid_visuals_are_not_needed():
    text = urdf(INERTIAL + '<visual><origin xyz="0 0"/><geometry><sphere radius="1"/></geometry></visual>')
    assert repaired(text) == (text, []) and fl.load(text).body_mass[1] == 1  # MuJoCo skips visuals
    text = text.replace("<link", '<mujoco><compiler discardvisual="false"/></mujoco><link', 1)
    with pytest.warns(UserWarning, match="one is invalid: .*'xyz'"):
        model = fl.load(text, repair=True)
    assert model.body_mass[1] == 1 and len(model.repairs) == 1
    with pytest.raises(fl.ModelError, match="link 'b': <origin> xyz='0 0', allowed is 3 numbers"):
        fl.load(text)


VISUAL = "<visual><geometry>{}</geometry></visual>"


@pytest.mark.parametrize("shape", ["", '<sphere radius="0"/>', '<box size="0 0. 0"/>'])
def test_visuals_without_size_are_removed(shape):
    kept = VISUAL.format('<sphere radius="1"/>')
    text = urdf(INERTIAL + VISUAL.format(shape) + kept)
    loaded(text)
    assert repaired(text)[0] == urdf(INERTIAL + kept)


def test_limits_in_the_wrong_order_are_swapped():
    model = loaded(urdf(joint='<limit lower="2" upper="-1" effort="3"/>'))
    (finding,) = fl.diagnose(model, ["urdf-repaired"])
    assert "swapped" in finding.seen
    assert model.jnt_range[0].tolist() == [-1, 2] and model.dropped == []


@pytest.mark.parametrize("kind", ["continuous", "spherical"])
def test_limits_of_unlimited_joints_are_removed(kind):
    model = loaded(urdf(kind=kind))
    assert not model.jnt_limited.any() and kind in model.repairs[0]


def test_an_error_without_repair_names_element_value_rule_and_argument():
    for text in (
        urdf(f"<inertial>{MASS}{diagonal(1, 1, 2.0001)}</inertial>"),
        urdf(joint='<limit lower="-1.57." upper="1"/>'),
    ):
        with pytest.raises(fl.ModelError, match=r"repair=True \(--repair\)") as caught:
            fl.load(text)
        assert repaired(text)[1][0] in str(caught.value)
    with pytest.raises(fl.ModelError) as caught:
        fl.load(urdf(joint='<axis xyz="x"/>'), repair=True)
    assert "repair" not in str(caught.value)


def test_repairs_are_kept_by_copies_and_variants():
    text = urdf(joint='<limit lower="2" upper="-1"/>')
    model = loaded(text)
    assert copy.deepcopy(model).repairs == pickle.loads(pickle.dumps(model)).repairs == model.repairs
    with pytest.warns(UserWarning, match="swapped"):
        variants = fl.load(text, repair=True, variants={"mass": {"light": lambda spec: None}})
    assert variants.repairs == model.repairs


# ---- projection ------------------------------------------------------------------------------------------------------
NUMBERS = st.lists(st.floats(-2, 5), min_size=3, max_size=3).map(np.array)
SECOND_MOMENTS = st.lists(st.lists(st.floats(0, 4), min_size=3, max_size=3), min_size=20, max_size=20).map(np.array)


@given(NUMBERS, SECOND_MOMENTS)
@settings(max_examples=200, deadline=None)
def test_projected_moments_are_the_nearest(moments, candidates):
    found = nearest_moments(moments)
    assert (found.sum() - 2 * found >= -ROUNDING).all()  # A + B >= C in each order
    np.testing.assert_allclose(nearest_moments(found), found, atol=ROUNDING)
    # law of projections to a convex cone: the residual is normal to the result and leans away from the cone
    assert abs((moments - found) @ found) <= 100 * ROUNDING
    possible = candidates.sum(1, keepdims=True) - candidates  # moments of a mass distribution with these second moments
    assert ((possible - found) @ (moments - found) <= 100 * ROUNDING).all()
    assert (np.linalg.norm(possible - moments, axis=1) >= np.linalg.norm(found - moments) - ROUNDING).all()


@given(st.lists(st.floats(-1, 1), min_size=9, max_size=9), SECOND_MOMENTS)
@settings(max_examples=100, deadline=None)
def test_projected_tensors_are_the_nearest(numbers, candidates):
    root = np.reshape(numbers, (3, 3))
    tensor = root + root.T
    found = nearest_inertia(tensor)
    a, b, c = np.linalg.eigvalsh(found)
    assert (a > 0 and a + b > c) or not found.any()
    np.testing.assert_allclose(nearest_inertia(found), found, atol=1e-8)  # up to the margin
    np.testing.assert_allclose(found @ tensor, tensor @ found, atol=ROUNDING)  # equal principal axes
    for row in candidates:
        axes = np.linalg.qr(np.diag(row) + root)[0]
        possible = (axes * (row.sum() - row)) @ axes.T
        assert np.linalg.norm(possible - tensor) >= np.linalg.norm(found - tensor) - 1e-7


@given(st.floats(1e-7, 1e2), st.lists(st.floats(-1, 1), min_size=9, max_size=9))
@settings(max_examples=50, deadline=None)
def test_repaired_inertias_are_accepted_at_each_scale(scale, numbers):
    root = np.reshape(numbers, (3, 3))
    (xx, xy, xz), (_, yy, yz), (*_, zz) = (scale * (root + root.T)).tolist()
    values = f'ixx="{xx!r}" iyy="{yy!r}" izz="{zz!r}" ixy="{xy!r}" ixz="{xz!r}" iyz="{yz!r}"'
    text = urdf(f"<inertial>{MASS}<inertia {values}/></inertial>")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fl.load(text, repair=True)
    a, b, c = sorted(model.body_inertia[1])
    assert a > 0 and a + b >= c * (1 - ROUNDED)
