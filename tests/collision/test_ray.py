"""Rays: by hand, against MuJoCo, and independent of the batch."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.poses import random_quat

# rounding of a few sums of values near 10; a grazing hit or an ellipsoid's normal loses one to three digits
TOLERANCE = 1e-10
SINGLE = 1e-4  # float32, at distances near 10

SHAPES = {
    "plane": 'type="plane" size="3 2 1"',
    "height field": 'type="hfield" hfield="rough"',
    "sphere": 'size=".6"',
    "capsule": 'type="capsule" size=".3 .6"',
    "ellipsoid": 'type="ellipsoid" size=".3 .6 .5"',
    "cylinder": 'type="cylinder" size=".5 .4"',
    "box": 'type="box" size=".5 .4 .7"',
    "mesh": 'type="mesh" mesh="ball"',
}
ASSETS = """
<asset>
  <mesh name="ball" builtin="sphere" params="2" scale=".7 .5 .6"/>
  <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
  <hfield name="rough" nrow="9" ncol="7" size="2 3 1 .5"/>
  <hfield name="flat" nrow="3" ncol="3" size="1 1 2 .5"/>
  <material name="glass" rgba="1 1 1 0"/>
  <material name="steel" rgba="1 1 1 1"/>
</asset>
"""


def scene(*geoms: str, free: bool = True):
    """Returns a model of one geom on each body; nothing collides."""
    joint = "<freejoint/>" if free else ""
    inertia = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    bodies = "".join(
        f'<body name="b{k}" mocap="true"><geom contype="0" conaffinity="0" {geom}/></body>'
        if "plane" in geom or "hfield" in geom
        else f'<body name="b{k}">{joint}{inertia if free else ""}<geom contype="0" conaffinity="0" {geom}/></body>'
        for k, geom in enumerate(geoms)
    )
    mj = mujoco.MjModel.from_xml_string(f"<mujoco>{ASSETS}<worldbody>{bodies}</worldbody></mujoco>")
    rng = np.random.default_rng(1)
    rough = slice(mj.hfield_adr[0], mj.hfield_adr[0] + 63)
    mj.hfield_data[rough] = rng.uniform(size=63)
    mj.hfield_data[mj.hfield_adr[1] :] = 0.5
    return fl.load(mj)


def randomize(state, rng, spread=1.5):
    """Sets random poses of free and mocap bodies, in the arrays of a `Data` or a `Batch`."""
    for q in (state.qpos.reshape(-1, 7),):
        q[:, :3] = spread * rng.standard_normal((len(q), 3))
        q[:, 3:] = random_quat(rng, len(q))
    state.mocap_pos[...] = spread * rng.standard_normal(state.mocap_pos.shape)
    state.mocap_quat[...] = random_quat(rng, state.mocap_quat.size // 4).reshape(state.mocap_quat.shape)


def oracle(model, data, point, direction, group=None, static=True, exclude=-1):
    """Returns MuJoCo's rays over the same frames."""
    mj = model.to_mujoco()
    theirs = mujoco.MjData(mj)
    mujoco.mj_forward(mj, theirs)
    theirs.geom_xpos[:], theirs.geom_xmat[:] = data.geom_xpos, data.geom_xmat
    geom, normal = np.zeros(1, np.int32), np.zeros(3)
    out = []
    for p, v in zip(point, direction, strict=True):
        distance = mujoco.mj_ray(mj, theirs, p, v, group, static, exclude, geom, normal)
        out.append((distance, geom[0], normal.copy()))
    return tuple(np.array(column) for column in zip(*out, strict=True))


def same(hits, theirs):
    """Asserts equal hits; normals to the accuracy of a grazing hit."""
    np.testing.assert_array_equal(hits.geom, theirs[1])
    np.testing.assert_allclose(hits.distance, theirs[0], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(hits.normal, theirs[2], rtol=0, atol=TOLERANCE)


def world(model):
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    return data


# ---- by hand --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shape, point, direction, distance, normal",
    [
        ("plane", (0, 0, 2), (0, 0, -1), 2, (0, 0, 1)),
        ("plane", (2.9, 1.9, 2), (0, 0, -1), 2, (0, 0, 1)),
        ("plane", (3.1, 0, 2), (0, 0, -1), -1, (0, 0, 0)),
        ("plane", (0, 0, -2), (0, 0, 1), -1, (0, 0, 0)),
        ("plane", (0, 0, 2), (1, 0, 0), -1, (0, 0, 0)),
        ("sphere", (2, 0, 0), (-1, 0, 0), 1.4, (1, 0, 0)),
        ("sphere", (2, 0, 0), (-2, 0, 0), 0.7, (1, 0, 0)),
        ("sphere", (0, 0, 0), (0, 1, 0), 0.6, (0, 1, 0)),
        ("sphere", (2, 0, 0), (1, 0, 0), -1, (0, 0, 0)),
        ("capsule", (2, 0, 0.5), (-1, 0, 0), 1.7, (1, 0, 0)),
        ("capsule", (0, 0, 2), (0, 0, -1), 1.1, (0, 0, 1)),
        ("capsule", (0, 0, 0), (0, 0, -1), 0.9, (0, 0, -1)),
        ("capsule", (0, 0, 0), (0, 1, 0), 0.3, (0, 1, 0)),
        ("ellipsoid", (0, 2, 0), (0, -1, 0), 1.4, (0, 1, 0)),
        ("ellipsoid", (0, 0, 0), (0, 0, 1), 0.5, (0, 0, 1)),
        ("cylinder", (2, 0, 0), (-1, 0, 0), 1.5, (1, 0, 0)),
        ("cylinder", (0.2, 0, 2), (0, 0, -1), 1.6, (0, 0, 1)),
        ("cylinder", (0.2, 0, 0), (0, 0, -1), 0.4, (0, 0, -1)),
        ("cylinder", (0.6, 0, 2), (0, 0, -1), -1, (0, 0, 0)),
        ("box", (2, 0.1, 0), (-1, 0, 0), 1.5, (1, 0, 0)),
        ("box", (0, 0.1, 0), (0, 1, 0), 0.3, (0, 1, 0)),
        ("box", (2, 0.5, 0), (-1, 0, 0), -1, (0, 0, 0)),
    ],
)
def test_ray_distances_equal_hand_computed_values(shape, point, direction, distance, normal):
    model = scene(SHAPES[shape], free=False)
    hit = fl.query.ray(model, world(model), point, direction)
    np.testing.assert_allclose(hit.distance, distance, rtol=0, atol=1e-14)
    np.testing.assert_allclose(hit.normal, normal, rtol=0, atol=1e-14)
    assert hit.geom == (-1 if distance < 0 else 0)


def test_rays_hit_mesh_triangles_from_both_sides():
    model = scene('type="mesh" mesh="wedge"', free=False)
    data = world(model)
    # the mesh frame is its inertia's: the corners are where the geom places them
    mj = model.mj_model
    R, corners = data.geom_xmat[0].reshape(3, 3), mj.mesh_vert[mj.mesh_vertadr[1] :].astype(float)
    a, b, c, top = corners @ R.T + data.geom_xpos[0]
    foot, centre = (a + b + c) / 3, (a + b + c + top) / 4
    for start in (centre, 2 * foot - centre):
        hit = fl.query.ray(model, data, start, foot - start)
        np.testing.assert_allclose(hit.distance, 1.0, rtol=0, atol=1e-12)
        assert np.dot(hit.normal, foot - centre) > 0


def test_no_ray_passes_between_adjacent_triangles(rng):
    model = scene(SHAPES["mesh"], free=False)
    data = world(model)
    mj = model.mj_model
    corner = mj.mesh_vert.astype(float) @ data.geom_xmat[0].reshape(3, 3).T
    first = corner[mj.mesh_face[: mj.mesh_facenum[0]]]
    # from inside through corners and along edges: the surface is closed, so every ray hits it
    weights = rng.uniform(size=(len(first), 1))
    targets = np.concatenate([first[:, 0], weights * first[:, 0] + (1 - weights) * first[:, 1]])
    assert (fl.query.ray(model, data, (0, 0, 0), targets).geom == 0).all()


def test_height_field_has_a_surface_walls_and_a_base():
    model = scene('type="hfield" hfield="flat"', free=False)
    data = world(model)
    points = [
        (0.1, 0.2, 3),
        (0.1, 0.2, -3),
        (3, 0.1, 0.5),
        (-3, 0.1, 0.5),
        (0.1, 3, 0.5),
        (3, 0.1, 1.5),
        (3, 0.1, -0.2),
    ]
    directions = [(0, 0, -1), (0, 0, 1), (-1, 0, 0), (1, 0, 0), (0, -1, 0), (-1, 0, 0), (-1, 0, 0)]
    hits = fl.query.ray(model, data, points, directions)
    np.testing.assert_allclose(hits.distance, [2, 2.5, 2, 2, 2, -1, 2], rtol=0, atol=1e-14)
    expected = [(0, 0, 1), (0, 0, -1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, 0, 0), (1, 0, 0)]
    np.testing.assert_allclose(hits.normal, expected, rtol=0, atol=1e-14)


def test_height_field_edits_take_effect_immediately():
    model = scene('type="hfield" hfield="flat"', free=False)
    data = world(model)
    assert fl.query.ray(model, data, (0.1, 0.2, 5), (0, 0, -1)).distance == 4
    model.hfield_data[model.hfield_adr[1] :] = 1.0
    assert fl.query.ray(model, data, (0.1, 0.2, 5), (0, 0, -1)).distance == 3


# ---- against MuJoCo -------------------------------------------------------------------------------------
def rays(rng, n, data):
    """Returns random rays; a third start inside a geom, a third point at one."""
    point, direction = 2 * rng.standard_normal((n, 3)), rng.standard_normal((n, 3))
    centre = data.geom_xpos[rng.integers(len(data.geom_xpos), size=n)]
    kind = rng.integers(3, size=n)[:, None]
    point = np.where(kind == 0, centre + 0.1 * rng.standard_normal((n, 3)), point)
    return point, np.where(kind == 1, centre + 0.3 * rng.standard_normal((n, 3)) - point, direction)


@pytest.mark.parametrize("shape", SHAPES)
def test_rays_on_one_shape_equal_mujoco(shape, rng):
    model = scene(SHAPES[shape])
    data = fl.Data(model)
    for _ in range(20):
        randomize(data, rng)
        fl.stages.kinematics(model, data)
        point, direction = rays(rng, 50, data)
        same(fl.query.ray(model, data, point, direction), oracle(model, data, point, direction))


@pytest.mark.parametrize("count", [20, pytest.param(2000, marks=pytest.mark.slow)])
def test_rays_on_all_shapes_equal_mujoco(count, rng):
    model = scene(*SHAPES.values())
    data = fl.Data(model)
    for _ in range(count):
        randomize(data, rng)
        fl.stages.kinematics(model, data)
        point, direction = rays(rng, 100, data)
        same(fl.query.ray(model, data, point, direction), oracle(model, data, point, direction))


def test_axis_parallel_rays_equal_mujoco(rng):
    model = scene(*SHAPES.values())
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    grid = np.linspace(-1.05, 1.05, 12)  # away from edges, where rounding decides
    x, y = (a.ravel() for a in np.meshgrid(grid, grid))
    for axis in range(3):
        point = np.roll(np.stack([x, y, np.full(x.size, 4.0)], axis=1), axis, axis=1)
        direction = np.roll(np.broadcast_to((0.0, 0.0, -2.0), point.shape), axis, axis=1)
        same(fl.query.ray(model, data, point, direction), oracle(model, data, point, direction))


def test_rays_from_one_point_equal_mj_multi_ray(rng):
    model = scene(*SHAPES.values())
    data, mj = fl.Data(model), model.to_mujoco()
    theirs = mujoco.MjData(mj)
    randomize(data, rng)
    theirs.qpos[:], theirs.mocap_pos[:], theirs.mocap_quat[:] = data.qpos, data.mocap_pos, data.mocap_quat
    mujoco.mj_forward(mj, theirs)
    fl.stages.kinematics(model, data)
    n = 500
    direction = rng.standard_normal((n, 3))
    geom, distance, normal = np.zeros(n, np.int32), np.zeros(n), np.zeros(3 * n)
    mujoco.mj_multiRay(
        mj, theirs, (4.0, 0.5, 1.0), direction.ravel(), None, True, -1, geom, distance, normal, n, mujoco.mjMAXVAL
    )
    same(fl.query.ray(model, data, (4.0, 0.5, 1.0), direction), (distance, geom, normal.reshape(n, 3)))


def test_many_rays_are_bitwise_equal_to_single_rays(rng):
    model = scene(*SHAPES.values())
    data = fl.Data(model)
    for size in (0.3, 0.9):
        model.geom_size[2, 0] = size  # an edit reaches every tile
        randomize(data, rng)
        fl.stages.kinematics(model, data)
        point, direction = rays(rng, 101, data)
        many = fl.query.ray(model, data, point, direction)
        for k in range(101):
            one = fl.query.ray(model, data, point[k], direction[k])
            for name, rows in many._asdict().items():
                np.testing.assert_array_equal(rows[k], getattr(one, name))


# ---- visible geoms --------------------------------------------------------------------------------------
ROW = (
    'size=".1" pos="1 0 0" group="0"',
    'size=".1" pos="2 0 0" group="2"',
    'size=".1" pos="3 0 0" group="5" rgba="1 1 1 0"',
    'size=".1" pos="4 0 0" group="5" material="glass"',
    'size=".1" pos="5 0 0" group="5" material="steel" rgba="1 1 1 0"',
)


@pytest.mark.parametrize(
    "options, geom",
    [
        ({}, 0),
        ({"geomgroup": (0, 0, 1, 0, 0, 1)}, 1),
        ({"geomgroup": (0, 0, 0, 0, 0, 1)}, 4),
        ({"geomgroup": (0, 0, 0, 1, 1, 0)}, -1),
        ({"bodyexclude": 1}, 1),
        ({"bodyexclude": "b0"}, 1),
        ({"bodyexclude": None}, 0),
        ({"cutoff": 0.8}, -1),
        ({"cutoff": 1.0}, 0),
        ({"geoms": [4, 1]}, 1),
        ({"geoms": 4}, 4),
        ({"geoms": [2, 3]}, -1),
        ({"geoms": [0, 4], "geomgroup": (0, 0, 0, 0, 0, 1)}, 4),
    ],
)
def test_groups_bodies_geoms_and_cutoff_filter_hits(options, geom):
    model = scene(*ROW)
    data = world(model)
    assert fl.query.ray(model, data, (0, 0, 0), (3, 0, 0), **options).geom == geom
    assert fl.Batch(model, 1, nthread=1).ray((0, 0, 0), (3, 0, 0), **options).geom == geom
    if not {"cutoff", "geoms"} & options.keys() and not isinstance(options.get("bodyexclude", 0), str | None):
        group = np.array(options.get("geomgroup", np.ones(6)), np.uint8)
        theirs = oracle(model, data, [(0, 0, 0)], [(3, 0, 0)], group, True, options.get("bodyexclude", -1))
        assert theirs[1][0] == geom


def test_static_geoms_are_left_out_on_request():
    model = fl.load('<mujoco><worldbody><geom size=".1" pos="1 0 0"/><body pos="2 0 0"><freejoint/><geom size=".1"/>'
                    '</body><body pos=".5 0 0"><geom size=".1"/></body></worldbody></mujoco>')  # fmt: skip
    data = world(model)
    assert fl.query.ray(model, data, (0, 0, 0), (1, 0, 0)).geom == 2
    assert fl.query.ray(model, data, (0, 0, 0), (1, 0, 0), flg_static=False).geom == 1


def test_each_ray_can_exclude_a_different_body():
    model = scene(*ROW)
    hits = fl.query.ray(model, world(model), (0, 0, 0), [(1, 0, 0)] * 3, bodyexclude=[-1, 1, 2])
    assert hits.geom.tolist() == [0, 1, 0]


def test_shapes_of_results():
    model = scene(*ROW)
    data = world(model)
    one = fl.query.ray(model, data, (0, 0, 0), (1, 0, 0))
    assert np.ndim(one.distance) == np.ndim(one.geom) == 0 and one.normal.shape == (3,)
    many = fl.query.ray(model, data, np.zeros((4, 1, 3)), np.ones((5, 3)))
    assert many.distance.shape == (4, 5) and many.geom.dtype == np.int32 and many.normal.shape == (4, 5, 3)
    assert fl.query.ray(model, data, np.zeros((0, 3)), (1, 0, 0)).distance.shape == (0,)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"point": (0, 0)}, "point:"),
        ({"point": "here"}, "point:"),
        ({"direction": (0, 0, 0)}, "direction:"),
        ({"direction": (0, np.nan, 0)}, "direction:"),
        ({"direction": (0, 1e300, 0)}, "length inf"),
        ({"point": (0, np.inf, 0)}, "point:"),
        ({"point": np.zeros((2, 3)), "direction": np.ones((3, 3))}, "do not broadcast"),
        ({"geomgroup": (1, 0)}, "geomgroup"),
        ({"geomgroup": [0.5] * 6}, "geomgroup"),
        ({"bodyexclude": 99}, "bodyexclude:"),
        ({"bodyexclude": [1, 2]}, "bodyexclude:"),
        ({"geoms": [0, 5]}, "geoms:"),
        ({"geoms": [0.0]}, "geoms:"),
        ({"cutoff": -1}, "cutoff"),
        ({"cutoff": np.nan}, "cutoff"),
        ({"cutoff": 1j}, "cutoff"),
        ({"point": np.array([1j, 0, 0])}, "point:"),
        ({"direction": np.array([1, 0, 0], "m8[s]")}, "direction:"),
        ({"point": np.ma.array([9.0, 0, 0], mask=[1, 0, 0])}, "point:"),
        ({"direction": [np.ma.ones(3), np.ones(3)]}, "direction:"),
        ({"bodyexclude": np.ma.array([1], mask=[1])}, "bodyexclude:"),
    ],
)
def test_invalid_input_is_named(arguments, message):
    model = scene(*ROW)
    given = {"point": (0, 0, 0), "direction": (1, 0, 0)} | arguments
    with pytest.raises(fl.ModelError, match=message):
        fl.query.ray(model, world(model), **given)
    with pytest.raises(fl.ModelError):
        fl.Batch(model, 3).ray(**given)


FIELD = """<mujoco><asset><mesh name="tetrahedron" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
<geom name="wall" type="box" size=".1 1 1" pos="3 0 0"/><body name="b">
<geom name="field" type="sdf" mesh="tetrahedron" contype="0" conaffinity="0" group="3" {}/></body>
<body pos="-2 .2 .2"><site name="s" zaxis="1 0 0"/></body></worldbody>
<sensor><rangefinder name="r" site="s"/><framepos name="p" objtype="body" objname="b"/></sensor></mujoco>"""


def test_rays_refuse_signed_distance_fields_without_octree_by_name():
    mj = mujoco.MjModel.from_xml_string(FIELD.format(""))
    mj.mesh_octadr[0], mj.mesh_octnum[0] = -1, 0
    model = fl.load(mj)
    data, batch = world(model), fl.Batch(model, 2)
    for refused in (
        lambda: fl.query.ray(model, data, (-2, 0.2, 0.2), (1, 0, 0)),
        lambda: batch.ray((-2, 0.2, 0.2), (1, 0, 0)),
        lambda: data.sensor("r").data,
        lambda: batch.bind("sensordata"),
    ):
        with pytest.raises(fl.UnsupportedFeatureError, match="field"):
            refused()
    assert data.sensor("p").data.shape == (3,)
    assert fl.query.ray(model, data, (-2, 0.2, 0.2), (1, 0, 0), geomgroup=[1, 1, 1, 0, 1, 1]).distance == 4.9
    unseen = fl.load(FIELD.format('rgba="1 1 1 0"'))
    data = fl.Data(unseen)
    fl.forward(unseen, data)
    assert data.sensor("r").data == 4.9


# ---- batches --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("nthread", [1, 2])
def test_rays_in_a_batch_are_bitwise_equal_to_single_worlds(nthread, rng):
    model = scene(*SHAPES.values())
    batch, data = fl.Batch(model, 11, nthread), fl.Data(model)
    randomize(batch, rng)
    point, direction = 2 * rng.standard_normal((11, 40, 3)), rng.standard_normal((40, 3))
    exclude = rng.integers(-1, model.nbody, (11, 40))
    hits = batch.ray(point, direction, bodyexclude=exclude)
    chosen = batch.ray(point[[7, 2]], direction, bodyexclude=exclude[[7, 2]], ids=[7, 2])
    for name, rows in hits._asdict().items():
        np.testing.assert_array_equal(getattr(chosen, name), rows[[7, 2]])
    for w in range(11):
        data.qpos, data.mocap_pos, data.mocap_quat = batch.qpos[w], batch.mocap_pos[w], batch.mocap_quat[w]
        fl.stages.kinematics(model, data)
        alone = fl.query.ray(model, data, point[w], direction, bodyexclude=exclude[w])
        for name, rows in hits._asdict().items():
            np.testing.assert_array_equal(rows[w], getattr(alone, name))


def test_batch_rays_broadcast_and_do_not_change_the_worlds(rng):
    model = scene(*SHAPES.values())
    batch = fl.Batch(model, 5)
    randomize(batch, rng)
    before, bound = copy.deepcopy(batch.checkpoint()), batch.bind("geom_xpos").copy()
    one = batch.ray((3, 0, 0), (-1, 0, 0))
    assert [rows.shape for rows in one] == [(5,), (5,), (5, 3)]
    listed = batch.ray([(3, 0, 0)], (-1, 0, 0))
    assert [rows.shape for rows in listed] == [(5, 1), (5, 1), (5, 1, 3)]
    assert all((a == b[:, 0]).all() for a, b in zip(one, listed, strict=True))
    assert batch.ray(np.zeros((4, 3)), (-1, 0, 0)).normal.shape == (5, 4, 3)
    with pytest.raises(fl.ModelError):
        batch.ray(np.zeros((4, 2, 3)), (-1, 0, 0))
    np.testing.assert_array_equal(batch.geom_xpos, bound)
    for name, rows in batch.checkpoint().items():
        np.testing.assert_array_equal(rows, before[name])


def test_batch_takes_sizes_that_differ_by_world():
    model = scene(SHAPES["sphere"])
    batch = fl.Batch(model, 3)
    batch.expand("geom_size")[:, 0, 0] = 0.1, 0.2, 0.3
    np.testing.assert_allclose(batch.ray((1, 0, 0), (-1, 0, 0)).distance, [0.9, 0.8, 0.7], rtol=0, atol=1e-15)


def test_single_precision_is_near(rng):
    model = scene(*SHAPES.values())
    double, single = fl.Batch(model, 9), fl.Batch(model, 9, dtype="float32")
    randomize(double, rng)
    for name in ("qpos", "mocap_pos", "mocap_quat"):
        setattr(single, name, getattr(double, name).astype(np.float32))
    point, direction = 2 * rng.standard_normal((9, 50, 3)), rng.standard_normal((50, 3))
    a, b = double.ray(point, direction), single.ray(point, direction)
    assert b.distance.dtype == np.float32
    same_geom = a.geom == b.geom
    assert same_geom.mean() > 0.99
    assert np.median(np.abs(a.distance - b.distance)[same_geom]) < SINGLE
