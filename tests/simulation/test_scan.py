"""Height scans and lidars: against mj_ray, ray by ray, and their rules."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane import patterns

rng = np.random.default_rng(0)
HEIGHTS = " ".join(f"{x:.4f}" for x in rng.uniform(0, 1, 30 * 40))
SCENE = f"""
<mujoco>
  <asset><hfield name="hills" nrow="30" ncol="40" size="3 2 .4 .1" elevation="{HEIGHTS}"/>
    <mesh name="wedge" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3 .3 .3 .1"/></asset>
  <worldbody>
    <geom name="hills" type="hfield" hfield="hills" euler="0 0 20"/><geom type="plane" size="0 0 1" pos="0 0 -.05"/>
    <geom type="box" size=".2 .1 .3" pos=".5 .3 .3" euler="10 20 30"/>
    <geom type="capsule" size=".1 .2" pos="-.5 0 .6" euler="50 20 0"/>
    <geom type="mesh" mesh="wedge" pos=".3 -.3 .5"/>
    <body name="trunk" pos="0 0 .8"><freejoint/><geom name="trunk" type="box" size=".2 .1 .05" group="1"/>
      <site name="lidar" pos=".1 0 0" euler="0 30 0"/>
      <body name="leg"><joint/><geom name="leg" size=".1" pos="0 0 -.2" group="1"/></body></body>
  </worldbody>
</mujoco>"""
MODEL = fl.load(SCENE)
GROUND = (1, 0, 0, 0, 0, 0)  # groups of geoms without the robot
TOLERANCE = {"float64": 1e-9, "float32": 1e-5}  # the issue's, relative beyond 1 m
# from above, from the side, and from inside of the ground through its surface and its walls
PATTERNS = {
    "grid": patterns.grid(),
    "wide grid": patterns.grid((6.5, 4.5), 0.4),
    "lidar": patterns.lidar(6, (-60.0, 20.0), resolution=8.0),
    "up": patterns.grid(height=-1.0, direction=(0.1, 0.2, 1.0)),
    "inside": patterns.grid((5.0, 3.7), 0.3, direction=(0.3, 1.0, 0.1), height=-0.7),
    "lone ray": np.array([[0.2, 0.1, -1.0]]),
}


def worlds(dtype: str = "float64", n: int = 3) -> fl.Batch:
    """Returns worlds with the trunk at different poses."""
    batch, random = fl.Batch(MODEL, n, nthread=1, dtype=dtype), np.random.default_rng(1)
    batch.qpos[:, :2] = random.uniform(-1, 1, (n, 2))
    quat = random.normal(size=(n, 4)) * 0.15 + (1, 0, 0, 0)
    batch.qpos[:, 3:7] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
    return batch


def rotation(R: np.ndarray, alignment: str) -> np.ndarray:
    """Returns the rotation of a pattern, by Isaac Lab's convention: the yaw of the frame's x axis."""
    if alignment == "base":
        return R
    yaw = np.arctan2(R[1, 0], R[0, 0]) if alignment == "yaw" else 0.0
    return np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])


def mujoco_rays(batch: fl.Batch, world: int, frame, pattern, alignment: str, group=None):
    """Returns (distance, geom, normal, height of the frame above the hit) of each ray by mj_ray."""
    mj = batch.model.mj_model
    data = mujoco.MjData(mj)
    data.qpos = batch.qpos[world]
    mujoco.mj_forward(mj, data)
    at = data.site("lidar") if isinstance(frame, tuple) else data.body(frame)
    R = rotation(at.xmat.reshape(3, 3), alignment)
    pattern = pattern if isinstance(pattern, patterns.RayPattern) else patterns.RayPattern(np.zeros(3), pattern)
    found, geom, normal = [], np.zeros(1, np.int32), np.zeros(3)
    for origin, direction in zip(at.xpos + pattern.origin @ R.T, pattern.direction @ R.T, strict=True):
        x = mujoco.mj_ray(mj, data, origin, direction, group, 1, mj.body("trunk").id, geom, normal)
        height = at.xpos[2] - origin[2] - x * direction[2]
        found.append((x, geom[0], normal * (x >= 0), height))
    return (np.array(column) for column in zip(*found, strict=True))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PATTERNS)
def test_rays_equal_mujocos(name, dtype):
    batch, pattern, alignment = worlds(dtype), PATTERNS[name], {"lidar": "base", "up": "world"}.get(name, "yaw")
    frame, tolerance = ("site", "lidar") if name == "lidar" else "trunk", TOLERANCE[dtype]
    found = batch.scan(frame, pattern, alignment=alignment, output=("distance", "geom", "normal", "point"))
    for w in range(batch.nworld):
        distance, geom, normal, _ = mujoco_rays(batch, w, frame, pattern, alignment)
        same = (found.geom[w] == geom) & (np.abs(found.normal[w] - normal).max(axis=1) < 1e-3)
        # in float32 rays along an edge may pass it on the other side
        assert same.all() if dtype == "float64" else same.mean() > 0.95
        np.testing.assert_allclose(found.distance[w][same], distance[same], rtol=tolerance, atol=tolerance)


def test_height_scan_equals_mujocos_rays_and_passes_through_the_robots_body():
    batch, pattern = worlds(), PATTERNS["grid"]
    heights = batch.height_scan("trunk", pattern)
    for w in range(batch.nworld):
        np.testing.assert_allclose(heights[w], list(mujoco_rays(batch, w, "trunk", pattern, "yaw"))[3], atol=1e-9)
    below = batch.height_scan("trunk", pattern, geomgroup=GROUND)
    assert (below >= heights).all() and (below > heights).any()  # the leg is not below any more


@pytest.mark.parametrize("width", [1, 7, 8, 17])
def test_a_ray_does_not_depend_on_the_other_rays(width):
    batch, ways = worlds(), PATTERNS["lidar"].direction[: 2 * width]
    full = batch.scan("trunk", ways).distance
    for first in (0, width):
        part = batch.scan("trunk", ways[first : first + width]).distance
        assert part.tobytes() == full[:, first : first + width].tobytes()


def test_a_world_has_equal_bits_in_any_batch_and_order():
    batch, outputs = worlds(n=5), ("distance", "geom", "normal", "point")
    together = batch.scan("trunk", PATTERNS["inside"], output=outputs)
    some = batch.scan("trunk", PATTERNS["inside"], output=outputs, ids=[3, 1])
    for a, b in zip(together, some, strict=True):
        assert a[[3, 1]].tobytes() == b.tobytes()


def test_misses_distances_and_arrays_of_the_caller():
    batch, pattern = worlds(), PATTERNS["grid"]
    batch.qpos[0, 2] = 30.0
    out = np.empty((3, len(pattern)))
    assert batch.height_scan("trunk", pattern, cutoff=5.0, geomgroup=GROUND, out=out) is out
    assert (out[0] == 5.0).all() and (out[1:] < 2.0).all()
    assert (batch.height_scan("trunk", pattern, cutoff=5.0, geomgroup=GROUND, miss=-7.0)[0] == -7.0).all()
    assert np.isinf(batch.height_scan("trunk", np.array([[0.0, 0.0, 1.0]]), geomgroup=GROUND)[0]).all()
    found = batch.scan("trunk", pattern, cutoff=5.0, geomgroup=GROUND, output=("distance", "geom", "normal"))
    assert (found.distance[0] == -1).all() and (found.geom[0] == -1).all() and not found.normal[0].any()
    assert found.point is None


def test_a_pose_that_is_not_finite_is_reported():
    batch = worlds()
    batch.qpos[1, 0] = np.nan
    assert np.isnan(batch.height_scan("trunk", PATTERNS["grid"])).all(axis=1).tolist() == [False, True, False]
    assert np.isnan(batch.scan("trunk", PATTERNS["lidar"]).distance).all(axis=1).tolist() == [False, True, False]


def test_an_expanded_position_acts_by_world():
    batch = fl.Batch(MODEL, 2, nthread=1)
    before = batch.height_scan("trunk", patterns.grid((0.2, 0.2)), geomgroup=GROUND)
    batch.expand("geom_pos")[1, MODEL.geom("hills").id, 2] -= 0.25
    after = batch.height_scan("trunk", patterns.grid((0.2, 0.2)), geomgroup=GROUND)
    assert after[0].tobytes() == before[0].tobytes()
    np.testing.assert_allclose(after[1], before[1] + 0.25, atol=1e-12)


def test_patterns_have_the_order_of_their_libraries():
    xy, yx = patterns.grid((0.2, 0.1), 0.1), patterns.grid((0.2, 0.1), 0.1, order="yx")
    np.testing.assert_allclose(xy.origin[:, 0], [-0.1, 0, 0.1, -0.1, 0, 0.1], atol=1e-15)
    np.testing.assert_allclose(yx.origin[:, 1], [-0.05, 0.05] * 3, atol=1e-15)
    assert len(patterns.grid()) == 187
    ring = patterns.ring((0.1, 0.2), samples=4)
    assert len(ring) == 9 and np.allclose(np.linalg.norm(ring.origin, axis=1), [0, *[0.1] * 4, *[0.2] * 4])
    lidar = patterns.lidar(2, (-10.0, 10.0), resolution=90.0)
    up = np.sin(np.deg2rad(10.0))
    assert len(lidar) == 8 and np.allclose(lidar.direction[[0, 4], 2], [-up, up])
    half = patterns.lidar([0.0], horizontal=(-90.0, 90.0), resolution=90.0)
    np.testing.assert_allclose(half.direction, [[0, -1, 0], [1, 0, 0], [0, 1, 0]], atol=1e-15)
    np.testing.assert_allclose(patterns.directions([0, 90], [0, 0]).direction, [[1, 0, 0], [0, 0, 1]], atol=1e-15)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("alignment", lambda b: b.scan("trunk", PATTERNS["grid"], alignment="pitch")),
        ("output", lambda b: b.scan("trunk", PATTERNS["grid"], output="depth")),
        ("output", lambda b: b.scan("trunk", PATTERNS["grid"], output=())),
        ("direction", lambda b: b.scan("trunk", np.zeros((2, 3)))),
        ("direction", lambda b: b.scan("trunk", np.zeros((0, 3)))),
        ("direction", lambda b: b.scan("trunk", np.full((2, 3), np.nan))),
        ("body", lambda b: b.scan(("light", 0), PATTERNS["grid"])),
        ("body", lambda b: b.scan(("site",), PATTERNS["grid"])),
        ("cutoff", lambda b: b.scan("trunk", PATTERNS["grid"], cutoff=-1.0)),
        ("geomgroup", lambda b: b.scan("trunk", PATTERNS["grid"], geomgroup=(1, 2))),
        ("miss", lambda b: b.height_scan("trunk", PATTERNS["grid"], miss="far")),
        ("out", lambda b: b.height_scan("trunk", PATTERNS["grid"], out=np.empty((3, 5)))),
        ("resolution", lambda b: patterns.grid(resolution=0.0)),
        ("size", lambda b: patterns.grid(size=(-1.0, 1.0))),
        ("order", lambda b: patterns.grid(order="zx")),
        ("radius", lambda b: patterns.ring(radius=-1.0)),
        ("samples", lambda b: patterns.ring(samples=0)),
        ("channels", lambda b: patterns.lidar(0)),
        ("horizontal", lambda b: patterns.lidar(horizontal=(10.0, -10.0))),
        ("elevation", lambda b: patterns.directions([1.0, 2.0], [1.0, 2.0, 3.0])),
    ],
)
def test_a_wrong_argument_is_named(argument, call):
    with pytest.raises(fl.ModelError, match=argument):
        call(worlds())


def test_an_unknown_body_is_named():
    with pytest.raises(fl.UnknownNameError, match="trnk"):
        worlds().scan("trnk", PATTERNS["grid"])
    with pytest.raises(fl.UnknownNameError, match="nobody"):
        worlds().scan("trunk", PATTERNS["grid"], bodyexclude="nobody")


def boxes(n: int = 12) -> str:
    """Returns MJCF of fixed boxes of random heights, some of them rotated, as terrains have."""
    random, found = np.random.default_rng(4), []
    for i, j in np.ndindex(n, n):
        turn = random.uniform(-60, 60, 3) if (i + j) % 5 == 0 else (0, 0, 0)
        x, y, z, size = (
            0.4 * (i - n / 2),
            0.4 * (j - n / 2),
            random.uniform(0, 0.2) - 0.5,
            "2 .1 .1" if i == j == 0 else ".2 .2 .5",
        )
        found.append(f'<geom type="box" size="{size}" pos="{x} {y} {z}" euler="{turn[0]} {turn[1]} {turn[2]}"/>')
    return SCENE.replace("<worldbody>", f"<worldbody>{''.join(found)}")


@pytest.mark.parametrize("name", ["wide grid", "lidar", "up", "inside"])
@pytest.mark.parametrize("cutoff", [np.inf, 1.1])
def test_rays_among_many_fixed_geoms_equal_those_that_test_all(name, cutoff):
    """Fixed geoms are found in cells of a grid, unless a field that places them is expanded."""
    model, pattern = fl.load(boxes()), PATTERNS[name]
    batch, outputs = fl.Batch(model, 3, nthread=1), ("distance", "geom", "normal", "point")
    batch.qpos[:] = worlds().qpos
    found = batch.scan("trunk", pattern, alignment="yaw", output=outputs, cutoff=cutoff)
    batch.expand("geom_pos")
    for a, b in zip(found, batch.scan("trunk", pattern, alignment="yaw", output=outputs, cutoff=cutoff), strict=True):
        assert a.tobytes() == b.tobytes()
    distance, geom, _, _ = mujoco_rays(batch, 2, "trunk", pattern, "yaw")
    hit = (distance >= 0) & (distance < cutoff)
    assert np.array_equal(found.geom[2], np.where(hit, geom, -1))
    np.testing.assert_allclose(found.distance[2], np.where(hit, distance, -1), atol=1e-9)
