"""Colours of camera images: against formulas in NumPy, and against MuJoCo's OpenGL renderer if one draws."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.renderer import PICTURES, Painter, prepare_rendering

LEVEL = 1  # of 255: rounding of a colour
FLAT = 3  # of 255: OpenGL interpolates light and textures between the corners of a face
SMOOTH = 12  # of 255: OpenGL's spheres, capsules and cylinders are polyhedra
DOWN = '<camera name="down" pos="0 0 3" projection="orthographic" fovy="2"/>'
NO_HEADLIGHT = '<visual><headlight active="0"/></visual>'
SUN = '<light directional="true" pos="0 0 3" dir=".6 0 -.8" diffuse=".7 .6 .5" ambient=".1 .2 .1" specular="0 0 0"/>'
QUAD = """<mesh name="quad" vertex="-1 -1 0 1 -1 0 1 1 0 -1 1 0 0 0 -1" face="0 1 2 0 2 3"
  texcoord="0 0 1 0 1 2 0 2 0 0" inertia="shell"/>"""
SCENE = """
<mujoco>
  <visual><quality offsamples="0" shadowsize="4096"/>
    <headlight ambient=".2 .2 .2" diffuse=".4 .4 .4" specular=".3 .3 .3"/></visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="0 .1 .2" width="32" height="192"/>
    <texture name="flat" type="2d" builtin="gradient" rgb1=".9 .1 .3" rgb2="0 .7 .2" width="64" height="64"/>
    <texture name="cube" type="cube" builtin="gradient" rgb1=".9 .1 .3" rgb2="0 .7 .2" width="64" height="384"/>
    <material name="plain" rgba=".8 .4 .2 1" specular=".2" shininess=".2" emission=".1" reflectance="0"/>
    <material name="flat" texture="flat" texuniform="{uniform}" texrepeat=".8 .6" specular="0" reflectance="0"/>
    <material name="cube" texture="cube" texuniform="{uniform}" specular="0" reflectance="0"/>
    <mesh name="wedge" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3 .3 .3 .1"/>
  </asset>
  <worldbody>
    {light}
    <geom type="plane" size="2 1.5 .1" material="{material}"/>
    <geom type="box" size=".2 .3 .1" pos="-.6 0 .1" euler="0 0 30" material="{material}"/>
    <geom type="sphere" size=".2" pos="0 0 .2" material="{material}"/>
    <geom type="capsule" size=".1 .2" pos="0 .8 .5" euler="60 0 70" material="{material}"/>
    <geom type="ellipsoid" size=".1 .2 .3" pos="-.5 .8 .5" euler="60 0 70" material="{material}"/>
    <body name="moves" pos=".4 .5 .3"><freejoint/><geom type="mesh" mesh="wedge" euler="0 0 60" material="{material}"/>
      {carried}</body>
    <camera name="view" pos="0 -2 2" xyaxes="1 0 0 0 .7 .7" fovy="50"/>
  </worldbody>
</mujoco>"""
POINT = 'diffuse=".8 .8 .8" ambient=".1 .1 .1" specular=".3 .3 .3" cutoff="60" exponent="2" attenuation="1 .05 .02"'
LIGHTS = {
    "headlight": {},
    "directional": {"light": '<light type="directional" pos="1 -1 3" dir="-.3 .3 -1" diffuse=".5 .5 .5"/>'},
    "point": {"light": f'<light pos=".5 -.5 2.5" dir="-.2 .2 -1" {POINT}/>'},
    "target": {"light": f'<light pos=".5 -.5 2.5" mode="targetbody" target="moves" castshadow="false" {POINT}/>'},
    "track": {"carried": f'<light pos="0 0 1.5" dir="-.3 0 -1" mode="track" castshadow="false" {POINT}/>'},
    "carried": {"carried": f'<light pos="0 0 1.5" dir="-.3 0 -1" castshadow="false" {POINT}/>'},
}


def scene(material: str = "plain", uniform: str = "false", light: str = "", carried: str = "") -> str:
    return SCENE.format(material=material, uniform=uniform, light=light, carried=carried)


def image(source: str, camera: str = "down", size: int = 40, dtype: str = "float64") -> np.ndarray:
    """Returns the colours that a camera of one world sees, as integers."""
    return (
        fl.Batch(fl.load(source), 1, dtype=dtype)
        .render(camera, width=size, height=size, output="rgb")
        .rgb[0]
        .astype(int)
    )


def pixel_places(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns x and y [m] of the pixels of the camera `down`."""
    at = (np.arange(size) + 0.5) / size * 2.0 - 1.0
    return np.meshgrid(at, -at)


def interpolated(texture: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Returns colours of a repeated image at places from 0 to 1, bilinear."""
    high, wide = texture.shape[:2]
    x, y = s * wide - 0.5, t * high - 0.5
    c, r = np.floor(x).astype(int), np.floor(y).astype(int)
    fx, fy = (x - c)[..., None], (y - r)[..., None]
    at = lambda row, column: texture[row % high, column % wide].astype(float)  # noqa: E731
    upper, lower = at(r, c) * (1 - fx) + at(r, c + 1) * fx, at(r + 1, c) * (1 - fx) + at(r + 1, c + 1) * fx
    return upper * (1 - fy) + lower * fy


# ---- formulas --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_light_and_shadow_of_a_box_on_a_plane(dtype):
    """Light falls along (.6, 0, -.8): a box of height .4 has a shadow of length .3 beyond its side at x = .2."""
    source = f"""<mujoco>{NO_HEADLIGHT}<worldbody>{SUN}{DOWN}<geom type="plane" size="0 0 1" rgba=".5 1 .8 1"/>
      <geom type="box" size=".2 .3 .2" pos="0 0 .2" rgba="1 .5 .25 1"/></worldbody></mujoco>"""
    found = image(source, dtype=dtype)
    x, y = pixel_places(40)
    box = (abs(x) < 0.2) & (abs(y) < 0.3)
    shadow = (x > 0.2) & (x < 0.5) & (abs(y) < 0.3)
    light = np.array([0.1, 0.2, 0.1]) + 0.8 * np.array([0.7, 0.6, 0.5])
    expected = np.where(box[..., None], (1, 0.5, 0.25), (0.5, 1, 0.8)) * light * ~shadow[..., None] * 255
    np.testing.assert_allclose(found, expected, atol=LEVEL)


def test_diffuse_and_specular_light_of_a_sphere():
    """A light above a sphere: diffuse n.l, specular (n.h)^s, with the eye at infinity above, too."""
    source = """<mujoco><visual><headlight active="0"/></visual><asset>
      <material name="m" rgba=".5 .4 .3 1" specular=".5" shininess=".25" emission=".1"/></asset><worldbody>
      <light directional="true" pos="0 0 3" dir="0 -.6 -.8" diffuse=".6 .6 .6" ambient=".1 .1 .1" specular=".8 .8 .8"
        castshadow="false"/><camera name="down" pos="0 0 3" projection="orthographic" fovy="2"/>
      <geom size=".9" material="m"/></worldbody></mujoco>"""
    x, y = pixel_places(40)
    inside = x * x + y * y < 0.9**2 - 1e-3
    n = np.stack([x, y, np.sqrt(np.maximum(0.81 - x * x - y * y, 0))], -1) / 0.9
    to_light = np.array([0, 0.6, 0.8])
    halfway = (to_light + (0, 0, 1)) / np.linalg.norm(to_light + (0, 0, 1))
    facing = np.maximum(n @ to_light, 0)
    gloss = 0.5 * 0.8 * np.maximum(n @ halfway, 0) ** 32 * (facing > 0)
    matt = (0.1 + 0.1 + 0.6 * facing)[..., None] * (0.5, 0.4, 0.3)
    expected = 255 * np.clip(matt + gloss[..., None], 0, 1)
    np.testing.assert_allclose(image(source)[inside], expected[inside], atol=LEVEL)


@pytest.mark.parametrize("geom", ["plane", "box"])
def test_texture_of_a_plane_and_a_box(geom):
    source = f"""<mujoco><visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual><asset>
      <texture name="t" type="2d" builtin="checker" rgb1="1 .2 0" rgb2="0 .4 .8" width="16" height="12"/>
      <material name="m" texture="t" texrepeat="3 2"/></asset><worldbody>{DOWN}
      <geom type="{geom}" size="1 1 .1" material="m"/></worldbody></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(source)
    x, y = pixel_places(40)
    expected = interpolated(mj.tex_data.reshape(12, 16, 3), 3 * (x + 1) / 2, 2 * (1 - y) / 2)
    np.testing.assert_allclose(image(source), expected, atol=LEVEL)


def test_textures_in_srgb_are_converted_to_linear_values():
    source = """<mujoco><visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual><asset>
      <texture name="t" type="2d" builtin="flat" rgb1="1 .5 .02" width="8" height="8" colorspace="{}"/>
      <material name="m" texture="t"/></asset><worldbody>{}<geom type="plane" size="2 2 1" material="m"/></worldbody>
      </mujoco>"""
    linear, converted = (image(source.format(space, DOWN))[20, 20] for space in ("linear", "sRGB"))
    np.testing.assert_allclose(linear, [255, 127, 5], atol=LEVEL)
    # published values of the conversion: 127 -> 0.2122, 5 -> 0.00152
    np.testing.assert_allclose(converted, [255, 54.1, 0.4], atol=LEVEL)


def test_texture_coordinates_of_a_mesh():
    source = f"""<mujoco><visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual><asset>
      <texture name="t" type="2d" builtin="gradient" rgb1="1 .2 0" rgb2="0 .4 .8" width="32" height="16"/>{QUAD}
      <material name="m" texture="t"/></asset><worldbody>{DOWN}
      <geom type="mesh" mesh="quad" material="m" euler="0 0 90"/></worldbody></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    x, y = pixel_places(40)
    # the corners of the triangles and their texture coordinates, as MuJoCo has compiled them
    corners = data.geom_xpos[0] + mj.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T
    corners, place = corners[mj.mesh_face.ravel(), :2], mj.mesh_texcoord[mj.mesh_facetexcoord.ravel()]
    s_t = np.linalg.lstsq(np.c_[corners, np.ones(len(corners))], place, rcond=None)[0]
    s, t = np.moveaxis(np.stack([x, y, np.ones_like(x)], -1) @ s_t, -1, 0)
    np.testing.assert_allclose(image(source), interpolated(mj.tex_data.reshape(16, 32, 3), s, t), atol=LEVEL)


def test_without_light_and_without_sky():
    source = f"""<mujoco>{NO_HEADLIGHT}<worldbody>{DOWN}<geom type="box" size=".5 .5 .1" rgba="1 .5 .2 1"/></worldbody>
      </mujoco>"""
    found = image(source)
    assert (found[0, 0] == 0).all()
    np.testing.assert_allclose(found[20, 20], 0.3 * 255 * np.array([1, 0.5, 0.2]), atol=LEVEL)


# ---- MuJoCo's renderer -----------------------------------------------------------------------------------------------
def rendered(model: fl.Model, qpos: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    try:
        prepare_rendering(PICTURES)
        with Painter(model, 0, size) as painter:
            return painter.picture(qpos).astype(int)
    except fl.InstallationError as error:
        pytest.skip(f"nothing draws here: {error}")


@pytest.mark.ci
@pytest.mark.parametrize(
    "options",
    [
        *LIGHTS.values(),
        {"material": "flat"},
        {"material": "flat", "uniform": "true"},
        {"material": "cube"},
        {"material": "cube", "uniform": "true"},
    ],
    ids=[*LIGHTS, "flat", "flat uniform", "cube", "cube uniform"],
)
def test_colours_equal_mujocos_renderer(options):
    """Away from silhouettes, edges and shadows' edges, 95 % of the pixels of each geom agree, 80 % of a curved one."""
    model = fl.load(scene(**options))
    batch = fl.Batch(model, 1)
    batch.qpos[0, :3] += (-0.1, 0.2, 0.05)
    ours = batch.render("view", width=192, height=144, output=("rgb", "segmentation", "normal"))
    theirs = rendered(model, batch.qpos[0], (192, 144))
    error = np.abs(ours.rgb[0] - theirs).max(-1)
    seen, normal = ours.segmentation[0], ours.normal[0]
    inner = np.ones(seen.shape, bool)
    for shift in np.ndindex(3, 3):
        moved = tuple(k - 1 for k in shift)
        inner &= np.roll(seen, moved, (0, 1)) == seen
        inner &= (np.roll(normal, moved, (0, 1)) * normal).sum(-1) > np.where(seen < 0, -1, 0.8)
    for geom in range(-1, model.ngeom):
        curved = geom >= 0 and model.geom_type[geom] in (2, 3, 4)
        here = error[inner & (seen == geom)]
        assert len(here) and (here <= (SMOOTH if curved else FLAT)).mean() > (0.8 if curved else 0.95), geom


# ---- rules -----------------------------------------------------------------------------------------------------------
def test_worlds_have_their_own_colours():
    batch = fl.Batch(fl.load(scene()), 3)
    colours = np.random.default_rng(0).uniform(size=(3, batch.model.ngeom, 3))
    found = batch.render(fl.Camera("view", width=24, height=18, output="rgb", geom_rgb=colours), ids=[2, 1]).rgb
    for row, world in enumerate((2, 1)):
        alone = (
            fl.Batch(batch.model, 1)
            .render(fl.Camera("view", width=24, height=18, output="rgb", geom_rgb=colours[world]))
            .rgb
        )
        assert found[row].tobytes() == alone[0].tobytes()
    assert (found[0] != found[1]).any()


def test_edited_colours_and_lights_take_effect():
    batch = fl.Batch(fl.load(scene(material="plain")), 1)
    before = batch.render("view", width=24, height=18, output="rgb").rgb
    batch.model.mj_model.mat_rgba[0, :3] = (0, 0, 1)
    blue = batch.render("view", width=24, height=18, output="rgb").rgb
    batch.model.mj_model.vis.headlight.diffuse[:] = 0
    dark = batch.render("view", width=24, height=18, output="rgb").rgb
    assert (before != blue).any() and blue.sum() > dark.sum()


def test_a_pose_that_is_not_finite_gives_a_black_image_and_a_warning():
    batch = fl.Batch(fl.load(scene()), 3)
    batch.qpos[1, 2] = np.nan
    with pytest.warns(fl.NonFiniteWarning, match="rgb of worlds 1 are black"):
        found = batch.render("view", width=8, height=6, output="rgb").rgb
    assert not found[1].any() and (found[0] == found[2]).all() and found[0].any()


@pytest.mark.parametrize(
    "given, message",
    [
        ({"geom_rgb": np.zeros((2, 3))}, r"geom_rgb: got shape \(2, 3\)"),
        ({"geom_rgb": np.full((6, 3), 1.5)}, "geom_rgb: got a number outside of 0 to 1"),
        ({"geom_rgb": "red"}, "geom_rgb"),
        ({"width": 0}, "width: got 0"),
        ({"output": "colour"}, "output: got 'colour'"),
        ({"noise": 0.1}, "noise: got float"),
    ],
)
def test_wrong_options_are_refused(given, message):
    batch = fl.Batch(fl.load(scene()), 1)
    with pytest.raises(fl.ModelError, match=message):
        batch.render(fl.Camera(**({"camera": "view", "width": 8, "height": 6, "output": "rgb"} | given)))


def test_textures_that_are_missing_or_incomplete_are_refused():
    missing = '<mujoco><asset><texture name="wood" type="2d" file="wood.png"/></asset></mujoco>'
    with pytest.raises(fl.ModelError, match=r"wood\.png"):
        fl.load(missing)
    model = fl.load(scene(material="flat"))
    model.mj_model.tex_nchannel[1] = 9
    with pytest.raises(fl.ModelError, match="texture 'flat': got"):
        fl.Batch(model, 1).render("view", width=8, height=6, output="rgb")
    model = fl.load(scene(material="flat"))
    model.mj_model.mat_texid[1, 1] = 7
    with pytest.raises(fl.ModelError, match="material 'flat': got texture 7, allowed are -1 to 2"):
        fl.Batch(model, 1).render("view", width=8, height=6, output="rgb")


def test_a_model_without_geoms_shows_the_sky():
    found = image(
        """<mujoco><asset><texture type="skybox" builtin="flat" rgb1=".2 .4 .6" rgb2=".2 .4 .6" width="8"
      height="48"/></asset><worldbody><camera name="down" pos="0 0 3"/></worldbody></mujoco>""",
        size=4,
    )
    np.testing.assert_allclose(found, np.broadcast_to((51, 102, 153), found.shape), atol=LEVEL)


def test_worlds_show_their_own_colours():
    """Colours of `expand` equal those given to the camera; those of the model equal those of a model with this XML."""
    batch, rng = fl.Batch(fl.load(scene()), 3), np.random.default_rng(2)
    camera = fl.Camera("view", width=24, height=16, output="rgb")
    rgba = batch.expand("geom_rgba")
    rgba[1:, :, :3] = rng.uniform(0.0, 1.0, rgba[1:, :, :3].shape)
    given = np.array(rgba[..., :3])
    given[0] = (0.8, 0.4, 0.2)  # the material's
    expected = batch.render(fl.Camera("view", width=24, height=16, output="rgb", geom_rgb=given)).rgb
    found = batch.render(camera).rgb
    np.testing.assert_array_equal(found, expected)
    assert (found[1] != found[2]).any()
    np.testing.assert_array_equal(batch.render(camera, ids=[2, 0]).rgb, expected[[2, 0]])
    rgba[1, :, :3] = 7.0  # as bright as 1
    given[1] = 1.0
    expected = batch.render(fl.Camera("view", width=24, height=16, output="rgb", geom_rgb=given)).rgb
    np.testing.assert_array_equal(batch.render(camera).rgb, expected)


def test_images_show_edited_colours_of_the_model():
    plain = '<mujoco><worldbody><geom size="1" rgba="{}"/><camera name="down" pos="0 0 3"/></worldbody></mujoco>'
    model = fl.load(plain.format(".1 .2 .3 1"))
    model.geom_rgba[0, :3] = 0.75, 0.5, 0.25
    found = fl.Batch(model, 1).render("down", width=8, height=8, output="rgb").rgb[0]
    np.testing.assert_array_equal(found, image(plain.format(".75 .5 .25 1"), size=8))


def test_materials_differ_by_world():
    batch = fl.Batch(fl.load(scene()), 2)
    material = batch.expand("geom_material")
    material[1] = -1  # geoms without a colour are grey
    grey = np.tile((0.8, 0.4, 0.2), (2, 6, 1))
    grey[1] = 0.5
    camera = {"width": 8, "height": 6, "output": "rgb"}
    expected = batch.render(fl.Camera("view", **camera, geom_rgb=grey)).rgb
    np.testing.assert_array_equal(batch.render("view", **camera).rgb, expected)
    material[1, 0] = 9
    with pytest.raises(fl.ModelError, match="geom_material: got 9, allowed are -1 to 2"):
        batch.render("view", width=8, height=6, output="rgb")
