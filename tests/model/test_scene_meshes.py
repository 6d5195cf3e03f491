"""COLLADA and glTF meshes: coordinates, mass and hull of boxes in closed form, and errors that name mesh and file."""

import itertools
import json
import sys
from importlib.util import find_spec

import mujoco
import numpy as np
import pytest

import featherlane as fl

SIZE = (0.02, 0.04, 0.06)  # of a box [m]
PLACES = ((0.1, 0.0, 0.0), (0.3, 0.2, 0.4))  # of the first corners of two boxes [m]
QUADS = "0 1 3 2  4 6 7 5  0 4 5 1  2 3 7 6  0 2 6 4  1 5 7 3"
MASS = 2 * 1000 * SIZE[0] * SIZE[1] * SIZE[2]  # density 1000 kg/m^3
ROUND = 1e-6  # vertices are float32
UNREAD = "not read from mesh files: materials and textures of mesh 'm'"
# corners of a box [cm], and one that no face has
CORNERS = " ".join(" ".join(map(str, corner)) for corner in itertools.product((0, 2), (0, 4), (0, 6))) + " 99 99 99"
NODES = """<node><translate>10 0 0</translate>{0}</node>
<node><matrix>1 0 0 30 0 1 0 0 0 0 1 40 0 0 0 1</matrix><node><translate>0 20 0</translate>{0}</node></node>"""
MODEL = """<mujoco><asset><mesh name="m" file="{}" inertia="exact"/></asset><worldbody><body><freejoint/>
<geom name="g" type="mesh" mesh="m"/></body></worldbody></mujoco>"""
COLLADA = pytest.mark.skipif(find_spec("collada") is None, reason="without pycollada")
GLTF = pytest.mark.skipif(find_spec("trimesh") is None, reason="without trimesh")


def dae(up="<up_axis>Y_UP</up_axis>", unit='<unit name="centimeter" meter="0.01"/>', nodes=NODES, more=""):
    """Returns a COLLADA file with two boxes."""
    inputs = '<input semantic="VERTEX" source="#v" offset="0"/>'
    return f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><created>2026-01-01T00:00:00</created><modified>2026-01-01T00:00:00</modified>{unit}{up}</asset>{more}
<library_geometries><geometry id="box"><mesh><source id="p"><float_array id="pa" count="27">{CORNERS}</float_array>
<technique_common><accessor source="#pa" count="9" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<polylist count="6">{inputs}<vcount>4 4 4 4 4 4</vcount><p>{QUADS}</p></polylist></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="s">
{nodes.format('<instance_geometry url="#box"/>')}</visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>""".encode()


def boxes(kind):
    """Returns a glTF file with two boxes, written by trimesh with y up; or all its files, for the kind `gltf`."""
    trimesh = pytest.importorskip("trimesh")
    x, y, z = SIZE
    scene = trimesh.Scene()
    for place in PLACES:
        centre = np.add(place, np.array(SIZE) / 2)
        at = trimesh.transformations.translation_matrix((centre[0], centre[2], -centre[1]))
        scene.add_geometry(trimesh.creation.box((x, z, y)), transform=at)
    return scene.export(file_type=kind)


def vertices(model):
    """Returns the vertices of the first geom in the world, sorted."""
    data = fl.Data(model)
    fl.forward(model, data)
    found = data.geom_xpos[0] + model.mj_model.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T
    return found[np.lexsort(found.round(5).T)]


def check_boxes(model, scale=1.0, exact=True):
    """Compares vertices, hull and, with exact inertia, mass with those of the two boxes."""
    assert not exact or model.body_mass[1] == pytest.approx(MASS * scale**3, rel=1e-5)
    corners = np.array(list(itertools.product(*((0, side) for side in SIZE))))
    expected = scale * np.concatenate([corners + place for place in PLACES])
    np.testing.assert_allclose(vertices(model), expected[np.lexsort(expected.round(5).T)], rtol=0, atol=ROUND)
    # two corners of the boxes are inside the hull
    assert model.mj_model.mesh_graph[0] == 14


@COLLADA
@pytest.mark.parametrize("axis", ["X_UP", "Y_UP", "Z_UP", ""])
def test_unit_and_nodes_of_collada_are_applied_and_its_up_axis_is_ignored(axis, recwarn):
    content = dae(f"<up_axis>{axis}</up_axis>" if axis else "")
    check_boxes(fl.load(MODEL.format("m.DAE"), assets={"m.DAE": content}))
    assert not recwarn.list


@COLLADA
def test_collada_without_a_unit_is_in_metres_and_mirrored_nodes_stay_outward():
    check_boxes(fl.load(MODEL.format("m.dae"), assets={"m.dae": dae(unit="")}), 100.0)
    nodes = "<node><scale>-1 1 1</scale>{0}</node><node><translate>1 0 0</translate>{0}</node>"
    model = fl.load(MODEL.format("m.dae"), assets={"m.dae": dae(nodes=nodes)})
    assert model.body_mass[1] == pytest.approx(MASS, rel=1e-5)
    assert model.body_ipos[1] == pytest.approx([0.005, 0.02, 0.03], abs=ROUND)


@GLTF
def test_gltf_files_are_turned_from_y_up_to_z_up(tmp_path):
    check_boxes(fl.load(MODEL.format("m.glb"), assets={"m.glb": boxes("glb")}))
    for name, content in boxes("gltf").items():
        (tmp_path / name).write_bytes(content)
    check_boxes(fl.load(MODEL.format(tmp_path / "model.gltf")))


URDF = """<robot name="r"><link name="base"/><joint name="j" type="continuous"><parent link="base"/>
<child link="l"/><axis xyz="0 0 1"/></joint><link name="l"><visual><geometry><mesh filename="seen.dae"/></geometry>
</visual><collision name="g"><geometry><mesh filename="package://meshes/m.dae" scale="2 2 2"/></geometry></collision>
</link></robot>"""


@COLLADA
@pytest.mark.filterwarnings("ignore:.*links without a body")
def test_collision_meshes_of_a_urdf_are_read(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "m.dae").write_bytes(dae())
    (tmp_path / "r.urdf").write_text(URDF)
    check_boxes(fl.load(tmp_path / "r.urdf", package_dirs=[tmp_path]), 2.0, exact=False)


@COLLADA
def test_specifications_variants_and_attached_models_are_read(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.dae").write_bytes(dae())
    (tmp_path / "a" / "part.xml").write_text(MODEL.format("m.dae").replace("<body>", '<body name="b">'))
    spec = mujoco.MjSpec.from_file(str(tmp_path / "a" / "part.xml"))
    check_boxes(fl.load(spec))
    assert not spec.assets and not spec.meshes[0].content_type
    check_boxes(fl.load(spec, variants={"g": ["m"]}))
    (tmp_path / "all.xml").write_text("""<mujoco><asset><model name="part" file="a/part.xml"/></asset><worldbody>
    <attach model="part" body="b" prefix="p_"/></worldbody></mujoco>""")
    assert fl.load(tmp_path / "all.xml").body_mass[1] == pytest.approx(MASS, rel=1e-5)


@COLLADA
def test_materials_that_are_not_read_are_named_once():
    # the image and the second material do not exist
    more = """<library_images><image id="i"><init_from>none.png</init_from></image></library_images>
    <library_materials><material id="red"><instance_effect url="#none"/></material></library_materials>"""
    bound = """<instance_geometry url="#box"><bind_material><technique_common><instance_material symbol="s"
    target="#other"/></technique_common></bind_material></instance_geometry>"""
    content = dae(more=more).replace(b'<instance_geometry url="#box"/>', bound.encode())
    with pytest.warns(UserWarning, match=UNREAD) as caught:
        check_boxes(fl.load(MODEL.format("m.dae"), assets={"m.dae": content}))
    assert len(caught) == 1


DAMAGED = {
    "m.dae": (b"<COLLADA", "cannot be read"),
    "n.dae": (dae(nodes="<node/>"), "has no triangles"),
    "m.glb": (b"glTF12345678", "cannot be read"),
    "m.gltf": (json.dumps({"asset": {"version": "2.0"}}).encode(), "has no triangles"),
    "d.gltf": (b'{"extensionsRequired": ["KHR_draco_mesh_compression"]}', "requires KHR_draco_mesh_compression"),
    "b.gltf": (b'{"buffers": [{"uri": "b.bin", "byteLength": 4}]}', "FileNotFoundError: b.bin"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_errors_with_mesh_and_file(name):
    pytest.importorskip("collada" if name.endswith(".dae") else "trimesh")
    content, message = DAMAGED[name]
    with pytest.raises(fl.ModelError, match=f"^mesh 'm': {name}: .*{message}"):
        fl.load(MODEL.format(name), assets={name: content})


def test_a_missing_file_and_a_missing_library_are_errors(monkeypatch):
    with pytest.raises(fl.ModelError, match=r"mesh 'm': none/m\.dae: no such file"):
        fl.load(MODEL.format("none/m.dae"))
    for name, library in (("m.dae", "collada"), ("m.glb", "trimesh")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(
            fl.InstallationError, match=rf"mesh 'm' \({name}\) .*\n  pip install 'featherlane\[meshes\]'"
        ):
            fl.load(MODEL.format(name), assets={name: b""})
