"""STL files in text give the model of the same binary file."""

import numpy as np
import pytest

import featherlane as fl

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
FACET = "facet normal 0 0 0\n outer loop\n{} endloop\nendfacet\n"
VERTICES = ["".join("  vertex {:.1f} {:e} {}\n".format(*CORNERS[i]) for i in face) for face in FACES]
TEXT = "solid part\n" + "".join(FACET.format(vertices) for vertices in VERTICES) + "endsolid part\n"
SCENE = """<mujoco><asset><mesh name="m" file="m.STL"/></asset><worldbody><body><freejoint/>
<geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def binary(comment):
    """Returns the tetrahedron as a binary file, written row by row."""
    rows = [np.zeros(3, "<f4").tobytes() + CORNERS[face].astype("<f4").tobytes() + b"\0\0" for face in FACES]
    return comment.ljust(80).encode() + np.uint32(len(rows)).tobytes() + b"".join(rows)


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "\n" + TEXT.replace("part", "")])
def test_a_text_is_read_as_the_binary_file(text, tmp_path):
    expected = fl.load(SCENE, assets={"m.STL": binary("")})
    assert expected.body_mass[1] == pytest.approx(1000 / 6, rel=1e-5)
    (tmp_path / "m.STL").write_bytes(text.encode())
    (tmp_path / "scene.xml").write_text(SCENE)
    for model in (fl.load(SCENE, assets={"m.STL": text}), fl.load(tmp_path / "scene.xml")):
        np.testing.assert_array_equal(model.mj_model.mesh_vert, expected.mj_model.mesh_vert)
        assert model.body_inertia.tolist() == expected.body_inertia.tolist()


def test_a_binary_file_may_begin_with_the_same_word():
    assert fl.load(SCENE, assets={"m.STL": binary("solid part")}).body_mass[1] == pytest.approx(1000 / 6, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("solid part\nendsolid", "0 vertices"), (TEXT.replace("vertex", "point", 1), "11 vertices"),
     (TEXT.replace("vertex 1.0", "vertex nan"), "not finite"), (TEXT.replace("vertex 1.0", "vertex x"), "'x'")],
)  # fmt: skip
def test_a_damaged_text_is_an_error_with_mesh_and_file(text, problem):
    with pytest.raises(fl.ModelError, match=rf"mesh 'm': m.STL: cannot be read.*{problem}"):
        fl.load(SCENE, assets={"m.STL": text})
