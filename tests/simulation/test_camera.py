"""Images of cameras: against MuJoCo's rays, pixel by pixel, and their rules."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.query.camera import CameraImages

OUTPUTS = ("depth", "segmentation", "normal", "rgb")
SCENE = """
<mujoco>
  <asset><mesh name="wedge" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3 .3 .3 .1"/>
    <hfield name="hills" nrow="4" ncol="5" size=".5 .5 .2 .1"
      elevation="0 1 2 1 0 1 3 2 2 1 0 2 1 3 0 1 0 2 1 1"/></asset>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <geom type="box" size=".2 .1 .3" pos="0 .5 .3" euler="10 20 30"/>
    <geom type="capsule" size=".1 .2" pos=".5 0 .4" euler="50 20 0"/>
    <geom type="ellipsoid" size=".1 .2 .3" pos="-.5 0 .4"/>
    <geom type="cylinder" size=".1 .2" pos="-.2 -.3 .3" euler="30 0 0"/>
    <geom type="hfield" hfield="hills" pos=".8 .8 .1"/>
    <body name="free" pos="0 0 .7"><freejoint/><geom type="mesh" mesh="wedge"/><geom size=".05" pos=".3 0 0" group="3"/>
      <camera name="follows" mode="track" pos="0 -1.5 .5" xyaxes="1 0 0 0 .3 1"/></body>
    <camera name="fixed" pos="0 -2 1.2" xyaxes="1 0 0 0 .4 1" fovy="50"/>
    <camera name="parallel" pos=".013 -2 1.207" xyaxes="1 0 0 0 .4 1" projection="orthographic" fovy="2"/>
    <camera name="looks" mode="targetbody" target="free" pos="1.5 -1 .5" fovy="70"/>
    <camera name="lens" pos="0 -2 1.2" xyaxes="1 0 0 0 .4 1" sensorsize=".02 .015" focal=".02 .022"
      principal=".002 -.001" resolution="40 30"/>
  </worldbody>
</mujoco>"""
ROOM = """
<mujoco><worldbody>
  <geom name="wall" type="box" size=".1 2 2" pos="2 0 0"/>
  <body><freejoint/><geom name="head" type="{shape}" size=".2 .2 .2"/>
    <camera name="eye" xyaxes="0 -1 0 0 0 1" fovy="60"/></body>
</worldbody></mujoco>"""


def worlds(dtype: str = "float64") -> fl.Batch:
    """Returns three worlds with the free body at different poses."""
    batch = fl.Batch(fl.load(SCENE), 3, dtype=dtype)
    batch.qpos[1, :3] += (0.1, 0.2, 0.1)
    batch.qpos[2, 3:] = np.array([0.8, 0.2, 0.5, 0.1]) / np.linalg.norm([0.8, 0.2, 0.5, 0.1])
    return batch


def pixel_rays(mj, data, camera: int, width: int, height: int):
    """Returns origins, unit directions (height, width, 3) and the axis, by MuJoCo's renderer (getFrustum)."""
    R, pos = data.cam_xmat[camera].reshape(3, 3), data.cam_xpos[camera]
    u, v = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    if mj.cam_projection[camera]:
        half = 0.5 * mj.cam_fovy[camera]
        offset = np.stack([(2 * u - width) / height * half, (height - 2 * v) / height * half, 0 * u], -1)
        direction = np.broadcast_to([0.0, 0.0, -1.0], offset.shape)
        return pos + offset @ R.T, direction @ R.T, -R[:, 2]
    if mj.cam_sensorsize[camera].any():
        size, (fx, fy, cx, cy) = mj.cam_sensorsize[camera].astype(float), mj.cam_intrinsic[camera].astype(float)
        fx, fy = fx / size[0] * width, fy / size[1] * height
        x, y = (u - width * (0.5 - cx / size[0])) / fx, (height * (0.5 + cy / size[1]) - v) / fy
    else:
        f = 0.5 * height / np.tan(0.5 * np.deg2rad(mj.cam_fovy[camera]))
        x, y = (u - 0.5 * width) / f, (0.5 * height - v) / f
    direction = np.stack([x, y, -np.ones_like(x)], -1)
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    return np.broadcast_to(pos, direction.shape), direction @ R.T, -R[:, 2]


def mujoco_images(batch: fl.Batch, world: int, camera: str, width: int, height: int):
    """Returns depth (NaN without a hit) and segmentation by MuJoCo's mj_ray."""
    mj = batch.model.mj_model
    data = mujoco.MjData(mj)
    data.qpos = batch.qpos[world]
    mujoco.mj_forward(mj, data)
    origin, direction, axis = pixel_rays(mj, data, mj.camera(camera).id, width, height)
    depth, seen = np.full((height, width), np.nan), np.full((height, width), -1)
    group, geom = np.array([1, 1, 1, 0, 0, 0], np.uint8), np.zeros(1, np.int32)
    for at in np.ndindex(height, width):
        distance = mujoco.mj_ray(mj, data, origin[at], direction[at], group, 1, -1, geom, None)
        if distance >= 0:
            depth[at], seen[at] = distance * (direction[at] @ axis), geom[0]
    return depth, seen


@pytest.mark.parametrize("camera", ["fixed", "parallel", "looks", "follows", "lens"])
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 1e-5)])
def test_depth_and_segmentation_equal_mujocos_rays(camera, dtype, tolerance):
    batch, size = worlds(dtype), (23, 30)
    index, clip = batch.model.camera(camera).id, (0.0, 100.0)
    view = (1, 1, 1, 0, 0, 0), clip, None
    query = CameraImages(batch.model, 3, dtype, batch.runner.plans.width, index, size, OUTPUTS[:3], view)
    found = batch.query(query, np.arange(3))
    for w in range(3):
        depth, seen = mujoco_images(batch, w, camera, 30, 23)
        same = found["segmentation"][w] == seen
        # in float32 rays along an edge may pass it on the other side
        assert same.all() if dtype == "float64" else same.mean() > 0.99
        hit = same & (seen >= 0)
        np.testing.assert_allclose(found["depth"][w][hit], depth[hit], rtol=tolerance, atol=tolerance)
        assert (found["depth"][w][seen < 0] == clip[1]).all()


def test_public_images_have_their_types_and_shapes():
    batch = worlds()
    images = batch.render("fixed", width=30, height=23, output=OUTPUTS, ids=[2, 0])
    assert images.depth.dtype == np.float32 and images.depth.shape == (2, 23, 30)
    assert images.segmentation.dtype == np.int32 and images.normal.shape == (2, 23, 30, 3)
    lengths = np.linalg.norm(images.normal, axis=-1)
    np.testing.assert_allclose(lengths, images.segmentation >= 0, atol=1e-6)
    assert batch.render("fixed", width=30, height=23).segmentation is None
    every = batch.render("fixed", width=30, height=23, output=OUTPUTS)
    assert (every.depth[[2, 0]] == images.depth).all() and (every.depth[0] != every.depth[2]).any()


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (64, 1), (17, 33)])
def test_a_pixel_does_not_depend_on_the_other_pixels(size):
    """Pixels of a column through the centre: an image of another width has the same ones."""
    batch, (width, height) = worlds(), size
    one = batch.render("fixed", width=width, height=height, output=OUTPUTS)
    wide = batch.render("fixed", width=width + 10, height=height, output=OUTPUTS)
    for a, b in zip(one, wide, strict=True):
        np.testing.assert_allclose(a, b[:, :, 5 : 5 + width], rtol=1e-6, atol=1e-6)


def test_a_world_has_equal_bits_in_any_batch():
    batch = worlds()
    together = batch.render("looks", width=16, height=12, output=OUTPUTS)
    for w in range(3):
        alone = fl.Batch(batch.model, 1)
        alone.qpos[0] = batch.qpos[w]
        for a, b in zip(together, alone.render("looks", width=16, height=12, output=OUTPUTS), strict=True):
            assert a[w].tobytes() == b[0].tobytes()


@pytest.mark.parametrize("shape", ["sphere", "box", "ellipsoid", "cylinder", "capsule"])
def test_a_camera_inside_a_geom_sees_what_is_outside(shape):
    model = fl.load(ROOM.format(shape=shape))
    images = fl.Batch(model, 1).render("eye", width=8, height=8, output=("depth", "segmentation"))
    assert (images.segmentation == model.geom("wall").id).all()
    np.testing.assert_allclose(images.depth, 1.9, rtol=1e-6)


def test_near_and_far_planes_groups_and_transparent_geoms():
    batch = worlds()
    full = batch.render("fixed", width=20, height=15, output=("depth", "segmentation"))
    far = batch.render("fixed", width=20, height=15, output=("depth", "segmentation"), far=2.0)
    beyond = full.depth >= 2.0
    assert (far.segmentation[beyond] == -1).all() and (far.depth[beyond] == 2.0).all()
    assert (far.depth[~beyond] == full.depth[~beyond]).all() and beyond.any()
    near = batch.render("fixed", width=20, height=15, near=1.8).depth
    assert near.min() >= 1.8
    everything = batch.render("fixed", width=64, height=48, output="segmentation", geomgroup=None).segmentation
    ball = np.flatnonzero(batch.model.geom_group == 3)[0]
    assert (
        ball in everything
        and ball not in batch.render("fixed", width=64, height=48, output="segmentation").segmentation
    )


def test_worlds_have_their_own_cameras_and_geoms():
    batch = worlds()
    batch.expand("cam_fovy")[1] = 20.0
    batch.expand("geom_pos")[2, 1, 2] += 0.2
    found = batch.render("fixed", width=20, height=15, output="segmentation").segmentation
    plain = worlds().render("fixed", width=20, height=15, output="segmentation").segmentation
    assert (found[0] == plain[0]).all() and (found[1] != plain[1]).any() and (found[2] != plain[2]).any()


@pytest.mark.parametrize("where", [0, 4])
def test_a_pose_that_is_not_finite_gives_a_depth_that_is_not_a_number(where):
    batch = worlds()
    batch.qpos[1, where] = np.nan
    images = batch.render("fixed", width=6, height=5, output=("depth", "segmentation"))
    assert np.isnan(images.depth[1]).all() and np.isfinite(images.depth[[0, 2]]).all()


@pytest.mark.parametrize(
    "given, error, message",
    [
        ({"camera": "nose"}, fl.UnknownNameError, "unknown camera 'nose'"),
        ({"output": "colour"}, fl.ModelError, "output: got 'colour', allowed are depth, segmentation, normal, rgb"),
        ({"output": ()}, fl.ModelError, "output: got no name"),
        ({"width": 0}, fl.ModelError, "width: got 0"),
        ({"height": 2.5}, fl.ModelError, "height: got 2.5"),
        ({"near": 3.0, "far": 2.0}, fl.ModelError, "near, far: got 3 and 2"),
        ({"far": np.nan}, fl.ModelError, "far"),
        ({"geomgroup": (1, 0)}, fl.ModelError, "geomgroup"),
        ({"ids": [3]}, fl.ModelError, "3"),
    ],
)
def test_wrong_arguments_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        worlds().render(**({"camera": "fixed", "width": 8, "height": 6} | given))


# ---- free camera -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"lookat": (0.1, 0.2, 0.5), "distance": 2.0, "azimuth": 30.0, "elevation": -20.0},
        {"trackbodyid": "free", "distance": 1.5, "azimuth": -100.0},
    ],
)
def test_a_free_camera_is_mujocos(given):
    """The image equals that of a camera of the model with the pose that MuJoCo's visualizer computes."""
    batch = worlds()
    batch.step(3)
    mj, data, names = batch.model.to_mujoco(), None, dict(given)
    images = batch.render(names, width=20, height=16, output=OUTPUTS)
    for world in range(3):
        data = mujoco.MjData(mj)
        batch.to_mujoco(world, data)
        mujoco.mj_forward(mj, data)
        camera, scene = mujoco.MjvCamera(), mujoco.MjvScene(mj, 100)
        mujoco.mjv_defaultFreeCamera(mj, camera)
        for name, value in given.items():
            if name == "trackbodyid":
                camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, mj.body(value).id
                camera.lookat[:] = data.subtree_com[camera.trackbodyid]  # without smoothing
            elif name == "lookat":
                camera.lookat[:] = value
            else:
                setattr(camera, name, value)
        mujoco.mjv_updateScene(mj, data, mujoco.MjvOption(), None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
        pos = np.mean([eye.pos for eye in scene.camera], axis=0)
        forward, up = (np.array(getattr(scene.camera[0], name), float) for name in ("forward", "up"))
        right = np.cross(forward, up)
        numbers = " ".join(f"{x:.17g}" for x in (*right, *up))
        text = f'<camera name="seen" pos="{pos[0]} {pos[1]} {pos[2]}" xyaxes="{numbers}" fovy="{mj.vis.global_.fovy}"/>'
        alone = fl.Batch(fl.load(SCENE.replace("</worldbody>", text + "</worldbody>")), 1)
        alone.qpos[0] = batch.qpos[world]
        expected = alone.render("seen", width=20, height=16, output=OUTPUTS)
        assert (images.segmentation[world] == expected.segmentation[0]).mean() > 0.98, "silhouettes may differ"
        same = images.segmentation[world] == expected.segmentation[0]
        np.testing.assert_allclose(images.depth[world][same], expected.depth[0][same], rtol=1e-4)


def test_a_free_camera_needs_no_camera_of_the_model():
    model = fl.load('<mujoco><worldbody><geom type="plane" size="1 1 1"/></worldbody></mujoco>')
    for dtype in ("float32", "float64"):
        view = fl.Camera({"lookat": (0, 0, 0), "distance": 2.0, "elevation": -90.0}, width=5, height=5, output="depth")
        depth = fl.Batch(model, 2, dtype=dtype).render(view).depth
        np.testing.assert_allclose(depth, 2.0, rtol=1e-6)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"lokat": (0, 0, 0)}, "camera: got 'lokat', allowed are lookat"),
        ({"lookat": (0, 0)}, "camera: lookat"),
        ({"distance": -1.0}, "camera: distance: got -1.0"),
        ({"fovy": 180.5}, "camera: fovy: got 180.5"),
        ({"azimuth": np.nan}, "camera: azimuth: got nan"),
        ({"trackbodyid": "nobody"}, "nobody"),
    ],
)
def test_a_wrong_free_camera_is_refused(given, message):
    with pytest.raises(fl.ModelError, match=message):
        worlds().render(given, width=4, height=4)
