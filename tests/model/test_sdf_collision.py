"""`fl.load(..., collision="sdf")`: mesh geoms become signed distance fields; meshes without an inside are named."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.closed_mesh import first_crossing, is_degenerate, is_watertight
from featherlane.engine.model.enums import MESH, SDF
from featherlane.engine.model.sdf_collision import expected_nodes
from scenes.signed_distance import angle

trimesh = pytest.importorskip("trimesh")
VERTICES, FACES = angle()
SCENE = """<mujoco><asset><mesh name="angle" vertex="{vertices}" face="{faces}"/></asset><worldbody>
<geom name="floor" type="plane" size="1 1 1" pos="0 0 -1"/>
<body pos="0 0 .5" euler="10 20 30"><freejoint/><geom name="one" type="mesh" mesh="angle" density="700"/></body>
<body><geom name="two" type="mesh" mesh="angle"/><geom name="ghost" type="mesh" mesh="angle" contype="0"
  conaffinity="0"/></body></worldbody></mujoco>"""


def text(vertices=VERTICES, faces=FACES) -> str:
    if not isinstance(vertices, str):
        vertices = " ".join(f"{x!r}" for x in np.asarray(vertices).ravel().tolist())
        faces = " ".join(map(str, np.asarray(faces).ravel().tolist()))
    return SCENE.format(vertices=vertices, faces=faces)


def kinds(model: fl.Model) -> dict[str, int]:
    return {name: int(model.geom_type[model.geom(name).id]) for name in ("one", "two", "ghost")}


@pytest.mark.parametrize(
    ("collision", "fields"),
    [
        (None, set()),
        ("sdf", {"one", "two"}),
        ({"geoms": ["two", "ghost"]}, {"two", "ghost"}),
        ({"method": "sdf", "geoms": "one", "octree_maxdepth": 3}, {"one"}),
        ({"geoms": []}, set()),
    ],
)
def test_colliding_or_named_meshes_become_fields(collision, fields):
    model = fl.load(text(), collision=collision)
    assert kinds(model) == {name: SDF if name in fields else MESH for name in ("one", "two", "ghost")}
    assert (model.noctree > 0) == bool(fields)


def test_mass_frame_and_mujocos_model_are_those_of_the_source():
    plain, model = fl.load(text()), fl.load(mujoco.MjSpec.from_string(text()), collision="sdf")
    for name in ("body_mass", "body_inertia", "geom_pos", "geom_quat", "geom_size"):
        np.testing.assert_array_equal(getattr(model, name), getattr(plain, name))
    assert model.to_mujoco().geom("one").type == SDF and fl.Batch(model, 2).nworld == 2


def test_the_depth_bounds_the_octree():
    nodes = [fl.load(text(), collision={"octree_maxdepth": depth}).noctree for depth in (2, 4, 5)]
    assert nodes[0] < nodes[1] < nodes[2]
    box = trimesh.creation.icosphere(3)
    for depth in (4, 6):
        spec = mujoco.MjSpec()
        spec.add_mesh(name="ball", uservert=box.vertices.ravel().tolist(), userface=box.faces.ravel().tolist())
        spec.meshes[0].octree_maxdepth = depth
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_SDF, meshname="ball")
        expected = expected_nodes(np.array(box.vertices), np.array(box.faces), depth)
        assert expected == pytest.approx(spec.compile().noct, rel=0.35)


def test_a_ball_between_the_legs_of_an_angle_touches_its_hull_only():
    ball = '<body pos=".28 .28 0"><freejoint/><geom size=".05"/></body></worldbody>'
    xml, ncon = text().replace("</worldbody>", ball), []
    for collision in ("sdf", None):
        data = fl.Data(fl.load(xml, collision=collision))
        data.forward()
        ncon.append(data.ncon)
    assert ncon[0] == 0 and ncon[1] > 0


def test_trimesh_agrees_on_watertightness():
    open_box = trimesh.creation.box((1, 1, 1))
    open_box.update_faces(np.arange(len(open_box.faces)) > 0)
    turned = trimesh.creation.box((1, 1, 1))
    faces = np.array(turned.faces)
    faces[0] = faces[0, ::-1]
    for mesh in (
        trimesh.creation.box((1, 1, 1)),
        trimesh.creation.torus(1, 0.3),
        open_box,
        trimesh.Trimesh(turned.vertices, faces, process=False),
    ):
        closed = bool(mesh.is_watertight and mesh.is_winding_consistent)
        assert is_watertight(np.array(mesh.faces)) == closed


def test_an_unknown_geom_of_a_model_without_geoms_is_named():
    with pytest.raises(fl.ModelError, match="geoms: got 'lid', allowed are mesh geoms: none"):
        fl.load("<mujoco><worldbody/></mujoco>", collision={"geoms": ["lid"]})


@pytest.mark.parametrize("shift", [(0.5, 0.4, 0.3), (0.5, 0.5, 0.0), (0.5, 0.5, 0.5), (0.9, 0.0, 0.2)])
def test_overlapping_boxes_cross(shift):
    box = trimesh.creation.box((1, 1, 1))
    both = trimesh.util.concatenate([box, box.copy().apply_translation(shift)])
    at = first_crossing(np.array(both.vertices), np.array(both.faces))
    assert at is not None and (np.abs(at) <= 1.5).all()


@pytest.mark.parametrize(
    "mesh",
    [
        trimesh.creation.torus(1, 0.3),
        trimesh.creation.icosphere(3),
        trimesh.creation.annulus(0.5, 1, 0.3),
        trimesh.util.concatenate(
            [trimesh.creation.box((1, 1, 1)), trimesh.creation.box((1, 1, 1)).apply_translation((1, 0, 0))]
        ),
        trimesh.util.concatenate(
            [trimesh.creation.box((1, 1, 1)), trimesh.creation.box((1, 1, 1)).apply_translation((2, 0.3, 0.1))]
        ),
    ],
    ids=["torus", "ball", "ring", "touching", "apart"],
)
def test_simple_surfaces_do_not_cross(mesh):
    vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
    assert first_crossing(vertices, faces) is None and not is_degenerate(vertices, faces)
    rough = vertices + 1e-8 * np.random.default_rng(0).standard_normal(vertices.shape)
    assert first_crossing(rough, faces) is None


def test_a_torus_through_itself_crosses():
    mesh = trimesh.creation.torus(1.0, 1.3)
    assert first_crossing(np.array(mesh.vertices), np.array(mesh.faces)) is not None


def invalid_meshes() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns meshes that MuJoCo compiles, by a part of the error."""
    box = trimesh.creation.box((1, 1, 1))
    both = trimesh.util.concatenate([box, box.copy().apply_translation((0.5, 0.4, 0.3))])
    return {
        "'angle': it is not watertight": (box.vertices, box.faces[1:]),
        r"'angle': its surface intersects itself near \(": (both.vertices, both.faces),
    }


@pytest.mark.parametrize("message", invalid_meshes())
def test_meshes_without_an_inside_are_named(message):
    vertices, faces = invalid_meshes()[message]
    with pytest.raises(fl.ModelError, match=message):
        fl.load(text(vertices, faces), collision="sdf")


@pytest.mark.parametrize(
    ("collision", "message"),
    [
        ("hull", "collision: got 'hull'"),
        ({"depth": 3}, "collision: got 'depth'"),
        ({"geoms": ["floor"]}, "geoms: got 'floor', allowed are mesh geoms: ghost, one, two"),
        ({"geoms": [3]}, "geoms: got .3."),
        ({"octree_maxdepth": 0}, "octree_maxdepth: got 0"),
        ({"octree_maxdepth": 2.5}, "octree_maxdepth: got 2.5"),
        ({"octree_maxdepth": 12}, "mesh 'angle': octrees to a depth of 12 need about .* nodes, allowed are"),
    ],
)
def test_invalid_options_are_named(collision, message):
    with pytest.raises(fl.ModelError, match=message):
        fl.load(text(), collision=collision)


def test_other_arguments_that_exclude_fields():
    with pytest.raises(fl.ModelError, match="variants and collision"):
        fl.load(text(), collision="sdf", variants={"one": ["angle"]})
    with pytest.raises(fl.ModelError, match="collision: got an MjModel"):
        fl.load(mujoco.MjModel.from_xml_string(text()), collision="sdf")
