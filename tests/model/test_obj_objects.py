"""OBJ files of several objects are read whole: mass, rays, collision shapes and distances are those of one object."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.mesh_files import reduced
from featherlane.engine.model.obj_objects import number_of_objects, one_object

CORNERS = [(x, y, z) for x in (0, 0.1) for y in (0, 0.1) for z in (0, 0.1)]
SQUARES = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]


def cube(number, shift):
    """Returns vertices and faces of a cube of 0.1 m, shifted along x, whose vertices follow those of other cubes."""
    vertices = "".join(f"v {x + shift} {y} {z}\n" for x, y, z in CORNERS)
    faces = ["f " + " ".join(str(i + 8 * number) for i in square) + "\n" for square in SQUARES]
    return vertices, "".join(faces), faces


V0, F0, LIST0 = cube(0, 0.0)
V1, F1, _ = cube(1, 0.5)
WHOLE = V0 + V1 + F0 + F1
SEVERAL = {
    "objects": f"o a\n{V0}{F0}o b\n{V1}{F1}",
    "groups": f"g a\r\n{V0}{F0}  g b c\r\n{V1}{F1}",
    "both": f"o a\ng\n{V0}{F0}g b\no c\n{V1}{F1}",
    "lid": f"o lid\n{V0}{LIST0[0]}o rest\n{''.join(LIST0[1:])}{V1}{F1}",  # the first object has no volume
    "relative": f"o a\n{V0}{F0}o b\n{V1}" + "".join("f " + " ".join(str(i - 9) for i in s) + "\n" for s in SQUARES),
}
SCENE = """<mujoco><asset><mesh name="m" file="{}" inertia="exact"/></asset><worldbody>
<geom type="plane" size="1 1 1" pos="0 0 -1"/><body name="b"><freejoint/>
<geom name="m" type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def loaded(content, **given):
    with pytest.warns(UserWarning, match=r"first object .* mesh 'm' \([23] objects\)") as caught:
        model = fl.load(SCENE.format("m.obj"), assets={"m.obj": content}, **given)
    assert len(caught) == 1
    return model


@pytest.mark.parametrize("kind", SEVERAL)
def test_a_file_of_several_objects_gives_the_model_of_one_object(kind):
    model = loaded(SEVERAL[kind])
    whole = fl.load(SCENE.format("m.obj"), assets={"m.obj": WHOLE})
    assert model.body_mass[1] == pytest.approx(2.0, rel=1e-6)
    np.testing.assert_allclose(model.mj_model.mesh_vert, whole.mj_model.mesh_vert, rtol=0, atol=1e-7)
    for name in ("body_mass", "body_ipos", "body_inertia", "geom_size"):
        np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=1e-6, atol=1e-9)
    data = fl.Data(model)
    fl.forward(model, data)
    for x in (0.05, 0.55):
        distance = fl.query.ray(model, data, np.array([x, 0.05, 1.0]), np.array([0.0, 0.0, -1.0]))[0]
        assert distance == pytest.approx(0.9, abs=1e-6)


def test_convex_parts_and_signed_distances_have_all_objects():
    assert len(loaded(SEVERAL["objects"], collision="sdf").mj_model.mesh_face) == 24
    pytest.importorskip("coacd")
    assert len(loaded(SEVERAL["objects"], convex_decomposition="coacd").decompositions[0].parts) == 2


def test_one_object_and_materials_are_left_to_mujoco(recwarn):
    for content in (
        f"o a\n{WHOLE}",
        f"g a\ng b\n{WHOLE}",
        f"{V0}{V1}usemtl a\n{F0}usemtl b\n{F1}",
        "# o\no a\n" + WHOLE,
    ):
        assert number_of_objects(content.encode()) == 1
        model = fl.load(SCENE.format("m.obj"), assets={"m.obj": content})
        assert model.body_mass[1] == pytest.approx(2.0, rel=1e-6)
    assert not recwarn.list


def test_lines_of_objects_end_at_any_kind_of_line_end():
    for end in (b"\n", b"\r\n", b"\r"):
        content = end.join([b"o a", b"f 1 2 3", b" g b", b"f 1 2 4", b"off", b"g", b""])
        assert number_of_objects(content) == 2
        assert one_object(content).split() == b"f 1 2 3 f 1 2 4 off g".split()


@pytest.fixture
def folder(tmp_path):
    """Returns a folder with files of equal names: `a/m.obj` has two objects, `b/M.obj` and `m.obj` have one."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "m.obj").write_text(SEVERAL["objects"])
    (tmp_path / "b" / "M.obj").write_text(V0 + F0)
    (tmp_path / "m.obj").write_text(V1.replace("0.6", "0.7") + F0)
    return tmp_path


FILES = """<mujoco><compiler meshdir="{}"/><default><mesh inertia="exact"/></default><asset>
<mesh name="one" file="{}b/M.obj"/><mesh name="two" file="{}a/./m.obj"/>
<mesh name="three" file="{}m.obj"/></asset><worldbody><body><freejoint/><geom type="mesh" mesh="one"/></body><body>
<freejoint/><geom type="mesh" mesh="two"/></body><body><freejoint/><geom type="mesh" mesh="three"/></body></worldbody>
</mujoco>"""


@pytest.mark.parametrize("prefix", ["", "a/../", "./"])
def test_files_of_equal_names_in_other_folders_stay_apart(folder, prefix):
    file = folder / "robot.xml"
    file.write_text(FILES.format(".", prefix, prefix, prefix))
    for source in (file, mujoco.MjSpec.from_file(str(file))):
        with pytest.warns(UserWarning, match="objects"):
            assert fl.load(source).body_mass[1:] == pytest.approx([1.0, 2.0, 2.0], rel=1e-5)


def test_a_given_specification_is_not_changed(folder):
    spec = mujoco.MjSpec.from_string(SCENE.format(folder / "a" / "m.obj"))
    with pytest.warns(UserWarning, match="objects"):
        assert fl.load(spec).body_mass[1] == pytest.approx(2.0, rel=1e-6)
    assert not spec.assets and spec.meshes[0].file == str(folder / "a" / "m.obj")


def test_meshes_of_attached_models_are_read_whole(folder):
    (folder / "a" / "part.xml").write_text(SCENE.format("m.obj"))
    text = """<mujoco><asset><model name="part" file="a/part.xml"/></asset><worldbody>
    <attach model="part" body="b" prefix="p_"/></worldbody></mujoco>"""
    (folder / "robot.xml").write_text(text)
    spec = mujoco.MjSpec()
    spec.attach(mujoco.MjSpec.from_file(str(folder / "a" / "part.xml")), prefix="p_", frame=spec.worldbody.add_frame())
    for source in (folder / "robot.xml", spec):
        with pytest.warns(UserWarning, match="mesh 'p_m'"):
            assert fl.load(source).body_mass[1] == pytest.approx(2.0, rel=1e-6)


def test_variants_and_copies_of_a_model_read_all_objects(folder):
    text = FILES.format(folder, "", "", "").replace(
        '<geom type="mesh" mesh="one"/>', '<geom name="g" type="mesh" mesh="one"/>'
    )
    with pytest.warns(UserWarning, match="objects"):
        model = fl.load(text, variants={"g": ["one", "two"]})
    batch = fl.Batch(model, 2)
    batch.set_variant("g", "two", ids=[1])
    batch.forward()
    assert batch.get_data(1).model.body_mass[1] == pytest.approx(2.0, rel=1e-6)
    with pytest.warns(UserWarning, match="objects"):
        found = fl.variants(text, [1, 2], lambda spec, number: None)
    assert found.models[1][0].body_mass[2] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/a/b/../c.obj", "/a/c.obj"), ("./a//b\\c", "a//b/c"), ("../../a", "../../a"), ("/./a", "/a"), ("a/..", "")],
)
def test_paths_are_reduced_as_mujoco_does(path, expected):
    assert reduced(path) == expected
