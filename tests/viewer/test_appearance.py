"""Colours, materials and textures, and the files that carry them to a page."""

import json
import struct

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.viewer import shapes
from featherlane.apps.viewer.appearance import LARGEST, PLAIN, Looks, linear

MODEL = """
<mujoco>
  <asset>
    <texture name="flat" type="2d" builtin="checker" width="{side}" height="{side}" rgb1="1 0 0" rgb2="0 0 1"/>
    <texture name="cube" type="cube" builtin="checker" width="8" height="8" rgb1="1 1 1" rgb2="0 0 0"/>
    <material name="tiles" texture="flat" texrepeat="2 3" texuniform="true" shininess="1"/>
    <material name="tinted" texture="flat" rgba="0 1 0 1" emission=".5" metallic=".25" roughness=".75"/>
    <material name="dice" texture="cube" rgba=".5 1 1 .5"/>
    <material name="red" rgba="1 0 0 1"/>
    <mesh name="bare" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  </asset>
  <worldbody>
    <geom size="1"/>
    <geom size="1" material="red"/>
    <geom size="1" material="red" rgba="0 0 1 1"/>
    <geom type="box" size="1 1 1" material="tiles"/>
    <geom size="1" material="dice"/>
    <geom type="mesh" mesh="bare" material="tiles"/>
    <geom type="box" size="1 1 1" material="tinted"/>
    <site name="s" material="tiles"/>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def looks():
    return Looks(fl.load(MODEL.format(side=8)).mj_model)


def test_a_color_comes_from_the_geom_or_its_material(looks):
    colours = looks.colours("geom")
    assert colours[0].tolist() == [0.5, 0.5, 0.5, 1]
    assert colours[1].tolist() == [1, 0, 0, 1]
    assert colours[2].tolist() == [0, 0, 1, 1]


def test_an_unsupported_texture_is_drawn_in_its_mean_color(looks):
    colours = looks.colours("geom")
    assert colours[4] == pytest.approx((0.25, 0.5, 0.5, 0.5), abs=0.01)  # on a cube
    assert colours[5] == pytest.approx((0.5, 0, 0.5, 1), abs=0.01)  # on a mesh without texture coordinates
    assert looks.colours("site")[0] == pytest.approx((0.5, 0, 0.5, 1), abs=0.01)
    assert colours[3].tolist() == [1, 1, 1, 1]  # drawn: nothing is multiplied


def test_materials_are_reported(looks):
    assert looks.look(0) == PLAIN
    tiles, tinted = looks.look(3), looks.look(6)
    assert (tiles.texture, tiles.repeat, tiles.per_metre, tiles.metallic) == (0, (2, 3), True, 0)
    assert tiles.roughness == pytest.approx(0.3)  # it has emission
    assert (tinted.metallic, tinted.roughness, tinted.emission) == (0.25, 0.75, 0.5)
    assert looks.look(4).texture == looks.look(5).texture == -1


def test_a_large_texture_is_downsampled():
    large = Looks(fl.load(MODEL.format(side=2 * LARGEST + 2)).mj_model)
    picture = large.picture(0)
    assert max(picture.shape[:2]) <= LARGEST
    assert picture.reshape(-1, 3).mean(0) == pytest.approx((127.5, 0, 127.5), abs=1)


def test_light_follows_srgb():
    assert linear(np.array((0.0, 1.0, 2.0, -1.0))).tolist() == [0, 1, 1, 0]
    assert float(linear(np.array(0.5))) == pytest.approx(0.21404, abs=1e-5)
    assert float(linear(np.array(0.04))) == pytest.approx(0.04 / 12.92)


@pytest.mark.parametrize("channels", (1, 3, 4))
def test_a_glb_file_holds_the_mesh_and_its_material(looks, channels):
    mesh, look = shapes.textured(shapes.box(), (2.0, 3.0)), looks.look(6)
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    imageio = pytest.importorskip("imageio.v3")
    file = shapes.glb(mesh, (0.03, 1.0, 0.0, 0.5), look, picture)
    magic, version, total = struct.unpack("<4sII", file[:12])
    assert (magic, version, total) == (b"glTF", 2, len(file))
    length, kind = struct.unpack("<I4s", file[12:20])
    assert kind == b"JSON" and length % 4 == 0
    document, rest = json.loads(file[20 : 20 + length]), file[20 + length :]
    size, kind = struct.unpack("<I4s", rest[:8])
    assert kind == b"BIN\0" and size == len(rest) - 8 == document["buffers"][0]["byteLength"]

    def part(index):
        view = document["bufferViews"][index]
        assert view.get("byteOffset", 0) % 4 == 0
        return rest[8 + view["byteOffset"] :][: view["byteLength"]]

    def array(index):
        accessor = document["accessors"][index]
        columns = {"SCALAR": 1, "VEC2": 2, "VEC3": 3}[accessor["type"]]
        numbers = np.frombuffer(part(accessor["bufferView"]), "<f4" if accessor["componentType"] == 5126 else "<u4")
        assert len(numbers) == columns * accessor["count"]
        return numbers.reshape(-1, columns).squeeze()

    (primitive,) = document["meshes"][0]["primitives"]
    found = {name: array(index) for name, index in primitive["attributes"].items()}
    assert np.array_equal(found["POSITION"], mesh.vertices) and np.array_equal(found["TEXCOORD_0"], mesh.uv)
    assert np.array_equal(found["NORMAL"], shapes.normals(mesh))
    assert np.array_equal(array(primitive["indices"]), mesh.faces.ravel())
    (material,) = document["materials"]
    factors = material["pbrMetallicRoughness"]
    assert factors["baseColorFactor"] == [linear(0.03), 1, 0, 0.5] and material["alphaMode"] == "BLEND"
    assert (factors["metallicFactor"], factors["roughnessFactor"]) == (0.25, 0.75)
    assert material["emissiveFactor"][1] == pytest.approx(0.21404, abs=1e-5)
    assert material["emissiveTexture"] == factors["baseColorTexture"] == {"index": 0}
    (image,) = document["images"]
    read = imageio.imread(part(image["bufferView"]), extension=".png")
    assert np.array_equal(np.reshape(read, picture.shape), picture)
