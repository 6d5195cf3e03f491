"""Height fields: contacts by hand, against planes and brute force, and bodies that fall, slide and rest on them."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

import featherlane as fl
from sampling import in_ci
from scenes.poses import collide, frames, random_quat

SHAPES = {
    "sphere": 'size=".3"',
    "capsule": 'type="capsule" size=".15 .3"',
    "ellipsoid": 'type="ellipsoid" size=".3 .2 .4"',
    "cylinder": 'type="cylinder" size=".2 .3"',
    "box": 'type="box" size=".3 .2 .25"',
    "mesh": 'type="mesh" mesh="tip"',
}
SCENE = """
<mujoco>
  <option ccd_tolerance="1e-12" ccd_iterations="200"/>
  <asset>
    <hfield name="ground" nrow="{nrow}" ncol="{ncol}" size="1.2 1 .5 .3"/>
    <mesh name="tip" vertex="0 0 0  .5 0 0  0 .5 0  0 0 .5  .3 .3 .3"/>
  </asset>
  <worldbody>
    <body mocap="true"><geom type="hfield" hfield="ground" margin="{margin}" gap="{gap}"/></body>
    <body><joint type="free" damping="{damping}"/><geom {shape}/></body>
  </worldbody>
</mujoco>
"""


def ground(shape, heights=None, margin=0.0, gap=0.0, damping=0.0, seed=1):
    """Returns a model of a shape over a height field: a random one, or these heights."""
    if heights is None:
        heights = np.random.default_rng(seed).uniform(size=(9, 11))
    heights = np.asarray(heights, float)
    nrow, ncol = heights.shape
    text = SCENE.format(shape=shape, nrow=nrow, ncol=ncol, margin=margin, gap=gap, damping=damping)
    mj = mujoco.MjModel.from_xml_string(text)
    mj.hfield_data[:] = heights.ravel()
    return fl.load(mj)


def poses(rng, n, low=0.1, high=0.8, wide=1.3):
    """Returns the field anywhere, the shape above, at its border, or outside: positions (n, 2, 3), quats (n, 2, 4)."""
    quat = random_quat(rng, 2 * n).reshape(n, 2, 4)
    pos, R = rng.standard_normal((n, 2, 3)), np.zeros((n, 9))
    for k in range(n):
        mujoco.mju_quat2Mat(R[k], quat[k, 0])
    local = np.concatenate([rng.uniform(-wide, wide, (n, 2)), rng.uniform(low, high, (n, 1))], axis=1)
    pos[:, 1] = pos[:, 0] + np.einsum("nij,nj->ni", R.reshape(n, 3, 3), local)
    return pos, quat


def touch(model, pos, quat=(1, 0, 0, 0)):
    """Returns contacts of the shape at one pose, the field at the origin."""
    x, R = frames(model, [[(0, 0, 0), pos]], [[(1, 0, 0, 0), quat]])
    return collide(model, x, R, 1)[0]


# ---- by hand ------------------------------------------------------------------------------------------------
FLAT = np.full((3, 3), 0.5)  # 0.25 m high


@pytest.mark.parametrize("shape, height", [("sphere", 0.3), ("capsule", 0.45), ("box", 0.25), ("ellipsoid", 0.4)])
def test_flat_field_is_a_floor(shape, height):
    model = ground(SHAPES[shape], FLAT)
    assert len(touch(model, (0.3, 0.1, 0.25 + height + 0.001))) == 0
    found = touch(model, (0.3, 0.1, 0.25 + height - 0.001))
    at_floor = np.abs(found.frame[:, 2] - 1) < 1e-6
    assert at_floor.any()
    np.testing.assert_allclose(found.dist[at_floor], -0.001, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.pos[at_floor, 2], 0.2495, rtol=0, atol=1e-6)


def test_margin_and_gap_count_points_that_do_not_touch():
    for margin, gap in ((0.05, 0.0), (0.0, 0.05), (0.02, 0.03)):
        model = ground(SHAPES["sphere"], FLAT, margin, gap)
        (point,) = touch(model, (0.3, 0.1, 0.25 + 0.349))
        np.testing.assert_allclose(point.dist, 0.049, rtol=0, atol=1e-12)
        assert point.includemargin == margin
        assert len(touch(model, (0.3, 0.1, 0.25 + 0.351))) == 0


def test_field_of_height_zero_is_its_base():
    model = ground(SHAPES["sphere"], np.zeros((2, 2)))
    found = touch(model, (0.3, 0.1, 0.29))
    np.testing.assert_allclose(found.dist.min(), -0.01, rtol=0, atol=1e-12)


def test_height_field_walls_push_bodies_next_to_the_field():
    model = ground(SHAPES["sphere"], FLAT)
    found = touch(model, (1.49, 0.2, 0.0))
    k = np.argmin(found.dist)
    np.testing.assert_allclose(found.dist[k], -0.01, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.frame[k, :3], (1, 0, 0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("pos", [(3, 0, 0.2), (0, -2, 0.2), (0, 0, 2), (0, 0, -2), (1e6, 0, 0)])
@pytest.mark.parametrize("shape", SHAPES)
def test_distant_shapes_have_no_contacts(shape, pos):
    assert len(touch(ground(SHAPES[shape], FLAT), pos)) == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_below_the_base_is_outside(shape):
    model = ground(SHAPES[shape], FLAT)
    assert len(touch(model, (0.1, 0.2, -1.2))) == 0
    found = touch(model, (0.1, 0.2, -0.5))
    assert (found.dist < 0).all() and len(found) > 0


def test_dropped_contacts_are_counted_and_the_pair_is_named():
    peaks = (np.indices((30, 30)) % 2).min(axis=0)  # 15 x 15 peaks
    text = SCENE.format(shape='name="slab" type="box" size=".9 .9 .1"', nrow=30, ncol=30, margin=0, gap=0, damping=0)
    mj = mujoco.MjModel.from_xml_string(text)
    mj.hfield_data[:] = peaks.ravel()
    model = fl.load(mj)
    data, batch = fl.Data(model), fl.Batch(model, 9)
    data.qpos[2] = batch.qpos[:, 2] = 0.599
    batch.qpos[::2, 2] = 2.0
    with pytest.warns(fl.CapacityWarning, match="contacts of geom #0 and geom 'slab' than the 50 of one pair"):
        fl.forward(model, data)
    assert data.ncon == 50 and data.status["contacts_full"] == 1
    with pytest.warns(fl.CapacityWarning):
        batch.forward()
    np.testing.assert_array_equal(batch.status["contacts_full"], np.arange(9) % 2)


def test_a_non_finite_pose_has_no_contacts():
    model = ground(SHAPES["box"], FLAT)
    x, R = frames(model, [[(0, 0, 0), (0, 0, 0.4)]], [[(1, 0, 0, 0), (1, 0, 0, 0)]])
    for rows, value in itertools.product((x, R), (np.nan, np.inf)):
        kept = rows.copy()
        rows[:, 1] = value
        assert len(collide(model, x, R, 1)[0]) <= 50
        rows[...] = kept


# ---- against planes ------------------------------------------------------------------------------------------
PLANE = 1e-9  # of positions, normals and depths: the field rounds its corners, the plane its axis
PLANE_SCENE = """
<mujoco><asset><mesh name="tip" vertex="0 0 0  .5 0 0  0 .5 0  0 0 .5  .3 .3 .3"/></asset>
<worldbody><body mocap="true"><geom type="plane" size="1 1 1" margin="{margin}"/></body>
  <body><freejoint/><geom {shape}/></body></worldbody></mujoco>
"""


def slope(n, rise):
    """Returns heights (n, n) that rise from 1/4 along x and y, exact in float32; rise: 0 or 1."""
    y, x = np.mgrid[0:n, 0:n]
    return 0.25 + rise * (x + y / 2) / 64


@pytest.mark.parametrize("rise", [0, 1])
@pytest.mark.parametrize("n", [2, 9, 25])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_flat_field_has_the_contacts_of_a_plane(shape, n, rise, rng):
    """Covers every cell size, level and tilted, with and without a margin; of aligned and of random shapes."""
    many = 12
    for margin in (0.0, 0.1):
        field = ground(SHAPES[shape], slope(n, rise), margin)
        plane = fl.load(PLANE_SCENE.format(margin=margin, shape=SHAPES[shape]))
        # of the surface: the slope times the elevation 0.5, per cell
        normal = np.array([-rise * (n - 1) / 128 / 2.4, -rise * (n - 1) / 256 / 2, 1])
        middle, normal = 0.125 + rise * (n - 1) / 128 * 0.75, normal / np.linalg.norm(normal)
        tilt = np.zeros(4)
        mujoco.mju_quatZ2Vec(tilt, normal)
        quat = random_quat(rng, many)
        quat[:4] = 1, 0, 0, 0
        pos = np.column_stack([rng.uniform(-0.4, 0.4, (many, 2)), np.zeros(many)])
        pos[:, 2] = middle - (pos[:, :2] @ normal[:2]) / normal[2]
        pos += rng.uniform(-0.05, 0.4, (many, 1)) * normal
        at_field = frames(field, [[(0, 0, 0), p] for p in pos], [[(1, 0, 0, 0), q] for q in quat])
        at_plane = frames(plane, [[(0, 0, middle), p] for p in pos], [[tilt, q] for q in quat])
        for ours, theirs in zip(collide(field, *at_field, 8), collide(plane, *at_plane, 8), strict=True):
            assert len(ours) == len(theirs)
            for point in theirs:
                error = np.abs(ours.pos - point.pos).max(axis=1) + np.abs(ours.dist - point.dist)
                error += np.abs(ours.frame - point.frame).max(axis=1)
                assert error.min() < PLANE


def test_corners_whose_feet_are_beside_the_box_touch_a_slope():
    """The feet of two deep corners are in a row of cells that is not under the box."""
    field = ground(SHAPES["box"], slope(25, 1))
    # the corners are 1 mm beyond a row of samples; the surface rises by 0.047 per m along y, and by 0.078 along x
    found = touch(field, (0.013, 0.201 - 5 / 12, 0.125 + 0.1875))
    assert len(found) == 4 and (found.dist < -0.05).all()


FLAT_BODY = """
<mujoco><option timestep=".002"/><asset><hfield name="ground" nrow="{n}" ncol="{n}" size="2 2 .1 .1"/>
<mesh name="brick" vertex="-.1 -.06 -.05  .1 -.06 -.05  .1 .06 -.05  -.1 .06 -.05
  -.1 -.06 .05  .1 -.06 .05  .1 .06 .05  -.1 .06 .05"/>
</asset><worldbody><geom {ground} condim="{condim}" solref="{solref}"/><body><freejoint/>
<geom {shape} mass="{mass}" condim="{condim}" solref="{solref}"/></body></worldbody></mujoco>
"""


def on_ground(shape, n, model="convex", condim=3, solref=".02 1", mass=1.0):
    """Returns a model of a body on a flat field of n x n samples, or on a plane for n = 0."""
    kind = 'type="hfield" hfield="ground"' if n else 'type="plane" size="1 1 1"'
    text = FLAT_BODY.format(n=n or 2, ground=kind, shape=shape, condim=condim, solref=solref, mass=mass)
    loaded = fl.load(text)
    loaded.opt.contact_model = model
    return loaded


SLIDERS = ('type="box" size=".1 .06 .05"', 'type="cylinder" size=".05 .1" euler="0 90 0"')
SLIDERS += ('type="capsule" size=".05 .1" euler="0 90 0"', 'type="mesh" mesh="brick"')
STRAIGHT, STRAIGHT_SINGLE = 1e-6, 1e-3  # m, m/s


@pytest.mark.parametrize("model", ["convex", "coulomb", "lcp"])
def test_bodies_slide_straight_on_a_flat_field(model):
    for shape, n in itertools.product(SLIDERS, (3, 101)):
        for precision, straight in ((np.float64, STRAIGHT), (np.float32, STRAIGHT_SINGLE)):
            batch = fl.Batch(on_ground(shape, n, model, condim=1), 1, dtype=precision)
            batch.qpos[:, :3], batch.qvel[:, :2] = (-0.513, 0.027, 0.05), (1.0, 0.3)
            batch.step(nstep=250)
            np.testing.assert_allclose(batch.qvel[0, :2], (1.0, 0.3), rtol=0, atol=straight)
            assert batch.ncon[0] == (4 if "box" in shape or "mesh" in shape else 2)


@pytest.mark.parametrize("model", ["convex", "coulomb", "lcp"])
def test_balls_that_land_on_a_flat_field_go_straight_up(model, rng):
    places = 200
    for n, speed in itertools.product((2, 41), (2.0, 3.0)):
        batch = fl.Batch(on_ground('size=".03"', n, model), places)
        batch.qpos[:, :2] = rng.uniform(-0.8, 0.8, (places, 2))
        batch.qpos[:, 2], batch.qvel[:, 2] = 0.031, -speed
        for _ in range(50):
            batch.step()
            assert np.abs(batch.qvel[:, :2]).max() < STRAIGHT


def test_a_bouncing_ball_has_the_energy_of_one_on_a_plane():
    energy = []
    for n in (0, 2, 41):
        model = on_ground('size=".05"', n, solref="-50000 0")
        data = fl.Data(model)
        data.qpos[:3] = 0.013, 0.027, 0.3
        seen = []
        for _ in range(500):
            fl.step(model, data)
            seen.append(9.81 * data.qpos[2] + 0.5 * data.qvel[:3] @ data.qvel[:3])
        energy.append(seen)
    np.testing.assert_allclose(energy[1:], [energy[0]] * 2, rtol=1e-6)


@pytest.mark.parametrize("model", ["convex", "coulomb", "lcp"])
@pytest.mark.parametrize("n", [3, 201])
def test_a_box_rests_on_a_flat_field(model, n):
    loaded = on_ground('type="box" size=".12 .06 .02"', n, model, mass=50.0)
    data = fl.Data(loaded)
    data.qpos[:3] = 0.013, 0.017, 0.0199
    fl.step(loaded, data, 500)
    assert data.ncon == 4 and np.abs(data.qvel).max() < 1e-7
    force = sum(fl.query.contact_force(loaded, data, i)[0] for i in range(4))
    np.testing.assert_allclose(force, 490.5, rtol=1e-6)


@pytest.mark.parametrize("model", ["convex", "coulomb", "lcp"])
@pytest.mark.parametrize("n", [3, 201])
def test_a_fast_thin_plate_does_not_fall_through(model, n):
    loaded = on_ground('type="box" size=".1 .1 .001"', n, model)
    data = fl.Data(loaded)
    data.qpos[:3], data.qvel[2] = (0.013, 0.027, 0.011), -10.0
    fl.step(loaded, data, 1000)
    np.testing.assert_allclose(data.qpos[2], 0.001, rtol=0, atol=2e-4)
    assert np.abs(data.qvel).max() < 1e-3


LEG = """<body pos="{x} {y} 0" euler="0 30 0"><joint axis="0 1 0" damping="1" stiffness="80"/>
<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2" mass=".8"/><body pos="0 0 -.2" euler="0 -60 0">
<joint axis="0 1 0" damping="1" stiffness="80"/><geom type="capsule" size=".012" fromto="0 0 0 0 0 -.18" mass=".2"/>
<geom size=".022" pos="0 0 -.2" mass=".06"/></body></body>"""
LEGS = "".join(LEG.format(x=x, y=y) for x in (0.18, -0.18) for y in (0.1, -0.1))


def test_a_quadruped_stands_on_flat_fields_as_on_a_plane():
    stands = []
    for n in (0, 3, 41, 201):
        kind = 'type="hfield" hfield="ground"' if n else 'type="plane" size="1 1 1"'
        model = fl.load(f"""<mujoco>
          <asset><hfield name="ground" nrow="{n or 2}" ncol="{n or 2}" size="2 2 .1 .1"/></asset>
          <worldbody><geom {kind}/>
            <body pos=".013 .027 .4"><freejoint/><geom type="box" size=".2 .08 .05" mass="5"/>{LEGS}</body>
          </worldbody></mujoco>""")
        data = fl.Data(model)
        fl.step(model, data, 1500)
        stands.append((data.ncon, data.qpos.copy(), data.qvel.copy(), data.qfrc_constraint.copy()))
    for ncon, *state in stands[1:]:
        assert ncon == stands[0][0] == 4
        for ours, theirs in zip(state, stands[0][1:], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=STRAIGHT)


# ---- against brute force -------------------------------------------------------------------------------------
EXACT = 1e-7  # m of the distance; the search of this file ends at 1e-9 m
# vertices of the mesh in the geom's frame, whose origin is the mesh's centre of mass
TIP = mujoco.MjModel.from_xml_string(
    SCENE.format(shape=SHAPES["mesh"], nrow=2, ncol=2, margin=0, gap=0, damping=0)
).mesh_vert.astype(float)


def support(shape, size):
    """Returns (the farthest point of a shape's core along u, as a function, and the radius around the core)."""
    corners = {"sphere": np.zeros((1, 3)), "capsule": np.outer((-1, 1), (0, 0, size[1])), "mesh": TIP}
    corners["box"] = np.array(list(itertools.product((-1, 1), repeat=3))) * size
    if shape in corners:
        points = corners[shape]
        return (lambda u: points[np.argmax(points @ u)]), size[0] if shape in ("sphere", "capsule") else 0.0
    if shape == "ellipsoid":
        return (lambda u: size * size * u / np.linalg.norm(size * u)), 0.0
    return (lambda u: np.array([*size[0] * u[:2] / np.hypot(*u[:2]), np.copysign(size[1], u[2])])), 0.0


def least_norm(farthest):
    """Returns the least norm in a convex set up to 1e-9, or a smaller one than 1e-3: Wolfe's algorithm.

    farthest: the set's farthest point along u, as a function.
    """
    x = farthest(np.array([0.3, 0.2, 1.0]))
    points, weights = [x], np.ones(1)
    for _ in range(200):
        point = farthest(-x)
        # the least norm is at least x . point / |x|
        if x @ x - x @ point <= 1e-9 * np.linalg.norm(x) or x @ x < 1e-6:
            break
        points.append(point)
        weights = np.append(weights, 0.0)
        while True:
            matrix = np.array(points).T
            system = np.block([[matrix.T @ matrix, np.ones((len(points), 1))], [np.ones((1, len(points))), 0]])
            affine = np.linalg.lstsq(system, [0.0] * len(points) + [1.0], rcond=1e-15)[0][:-1]
            negative = affine <= 1e-14
            if not negative.any():
                weights = affine
                break
            part = (weights[negative] / np.maximum(weights[negative] - affine[negative], 1e-300)).min()
            weights = weights + min(part, 1.0) * (affine - weights)
            kept = weights > 1e-14
            if kept.all():
                kept[np.argmin(weights)] = False
            points, weights = [p for p, k in zip(points, kept, strict=True) if k], weights[kept] / weights[kept].sum()
        x = np.array(points).T @ weights
    return np.linalg.norm(x)


def exact_distance(model, data, shape):
    """Returns the distance of a shape's core from the field, and the radius around the core."""
    farthest, radius = support(shape, model.geom_size[1])
    pos, R = data.geom_xpos[1], data.geom_xmat[1].reshape(3, 3)
    extents = [pos + R @ farthest(R.T @ (sign * axis)) for sign in (-1, 1) for axis in np.eye(3)]
    low, high = (np.array([extents[3 * s + k][k] for k in range(3)]) for s in (0, 1))
    found = []
    for prism in prisms(model):
        gap = np.maximum(0, np.maximum(prism.min(axis=0) - high, low - prism.max(axis=0)))
        found.append((np.linalg.norm(gap), prism))
    least = np.inf
    for bound, prism in sorted(found, key=lambda pair: pair[0]):
        if bound >= least:
            break
        least = min(least, least_norm(lambda u, p=prism: pos + R @ farthest(R.T @ u) - p[np.argmin(p @ u)]))
    return least, radius


def lands(name):
    """Returns heights (9, 11) of a ridge, a valley, stairs, or random ground."""
    x = np.mgrid[0:9, 0:11][1]
    known = {"ridge": 1 - np.abs(x - 5) / 5, "valley": np.abs(x - 5) / 5, "stairs": np.floor(x / 3) / 4}
    return known.get(name, np.random.default_rng(1).uniform(size=(9, 11)))


@pytest.mark.parametrize("land", ["ridge", "valley", "stairs", "random"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_distances_are_exact(shape, land, count, rng):
    """The nearest contact within a margin has the distance of `geom_distance`, also next to the field."""
    model = ground(SHAPES[shape], lands(land), margin=0.4)
    data = fl.Data(model)
    compared = 0
    while compared < count:
        data.qpos[:] = *rng.uniform((-1.3, -1.1, 0.2), (1.3, 1.1, 1.0)), *random_quat(rng, 1)[0]
        fl.forward(model, data)
        core, radius = exact_distance(model, data, shape)
        if core > 1e-3:
            compared += 1
            found = fl.query.geom_distance(model, data, 0, 1, 3.0)[0]
            np.testing.assert_allclose(found, core - radius, rtol=0, atol=EXACT)
            unlimited = fl.query.geom_distance(model, data, 0, 1)[0]
            np.testing.assert_allclose(unlimited, found, rtol=0, atol=1e-12)
            if core - radius < 0.4:
                np.testing.assert_allclose(data.contact.dist.min(), found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_in_the_ground_has_a_contact_in_it(shape, count):
    """Also if only ridges and peaks are in the shape, and none of them along a direction between its sides."""
    model, rng = ground(SHAPES[shape]), np.random.default_rng(3)
    data = fl.Data(model)
    for _ in range(count):
        data.qpos[:] = *rng.uniform((-1.0, -0.8, 0.2), (1.0, 0.8, 0.7)), *random_quat(rng, 1)[0]
        fl.forward(model, data)
        if not (data.contact.dist < 0.0).any():
            core, radius = exact_distance(model, data, shape)
            assert core > max(radius, 1e-5)  # m: `least_norm` is 0 in an overlap, up to rounding


@pytest.mark.parametrize("land", ["ridge", "valley", "random"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_nearest_contact_has_the_distance_of_the_geoms(shape, land, rng):
    """Also of ridges whose heights float32 rounds: their lines do not depend on the margin."""
    model = ground(SHAPES[shape], lands(land), margin=0.4)
    data = fl.Data(model)
    for _ in range(100):
        data.qpos[:] = *rng.uniform((-1.3, -1.1, 0.2), (1.3, 1.1, 1.0)), *random_quat(rng, 1)[0]
        fl.forward(model, data)
        found = fl.query.geom_distance(model, data, 0, 1, 3.0)[0]
        if 0.0 < found < 0.4:
            np.testing.assert_allclose(data.contact.dist.min(), found, rtol=0, atol=1e-12)


def prisms(model):
    """Yields corners (6, 3) of all prisms, sorted as their contacts."""
    nrow, ncol = model.hfield_nrow[0], model.hfield_ncol[0]
    sx, sy, top, base = model.hfield_size[0]
    z = top * model.hfield_data.reshape(nrow, ncol)

    def corners(samples):
        xy = [(sx * (2 * c / (ncol - 1) - 1), sy * (2 * r / (nrow - 1) - 1)) for r, c in samples]
        return np.array([(*p, h) for p, (r, c) in zip(xy, samples, strict=True) for h in (-base, z[r, c])])

    for r, c in itertools.product(range(nrow - 1), range(ncol - 1)):
        yield corners([(r + 1, c), (r, c), (r + 1, c + 1)])
        yield corners([(r, c), (r + 1, c + 1), (r, c + 1)])


# ---- ridges and valleys --------------------------------------------------------------------------------------
ROOF = 0.5 - np.abs(np.mgrid[0:9, 0:11][1] - 5) / 16  # exact in float32; slopes of 1 / 32 per 0.24 m


def test_a_box_on_a_roof_touches_the_ridge_in_two_points():
    found = touch(ground(SHAPES["box"], ROOF), (0.0, 0.1, 0.25 + 0.249))
    np.testing.assert_allclose(sorted(found.pos[:, 1]), (-0.1, 0.3), rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.dist, -0.001, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.frame[:, :3], [(0, 0, 1)] * 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("axis, ys", [("x", [0.1]), ("y", [-0.2, 0.4])])
def test_a_capsule_on_a_roof_touches_the_ridge_once_across_and_twice_along(axis, ys):
    half = np.sqrt(0.5)
    quat = (half, 0, half, 0) if axis == "x" else (half, half, 0, 0)
    found = touch(ground(SHAPES["capsule"], ROOF), (0.02 * (axis == "x"), 0.1, 0.25 + 0.149), quat)
    np.testing.assert_allclose(sorted(found.pos[:, 1]), ys, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.pos[:, 0], 0.0, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.dist, -0.001, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.frame[:, :3], [(0, 0, 1)] * len(ys), rtol=0, atol=1e-12)


def test_a_ball_in_a_valley_touches_both_sides():
    found = touch(ground(SHAPES["sphere"], 0.5 - ROOF), (0.0, 0.11, 0.3 * np.hypot(1, 1 / 7.68) - 0.001))
    assert len(found) == 2
    normal = np.array([1, 0, 7.68]) / np.hypot(1, 7.68)
    np.testing.assert_allclose(sorted(found.frame[:, 0]), (-normal[0], normal[0]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.dist, -0.001 * normal[2], rtol=0, atol=1e-12)


def test_a_box_next_to_a_step_is_not_thrown_up():
    """Its corner is deep below the upper tread, and 1 mm beyond the foot of the riser."""
    heights = np.where(np.mgrid[0:9, 0:11][1] >= 6, 1.0, 0.0)
    found = touch(ground(SHAPES["box"], heights), (-0.299, 0.05, 0.2499))
    assert len(found) >= 4 and found.dist.min() > -0.001


def test_a_peak_that_passed_through_a_plate_holds_it():
    heights = np.zeros((9, 11))
    heights[4, 5] = 1.0
    found = touch(ground('type="box" size=".3 .3 .001"', heights), (0.0, 0.0, 0.48))
    np.testing.assert_allclose(found.frame[:, :3], [(0, 0, 1)], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.dist, -0.021, rtol=0, atol=1e-9)


def test_results_do_not_depend_on_the_tile(rng):
    for shape in SHAPES.values():
        model = ground(shape)
        x, R = frames(model, *poses(rng, 16))
        for one, eight in zip(collide(model, x, R, 1), collide(model, x, R, 8), strict=True):
            np.testing.assert_array_equal(one.tobytes(), eight.tobytes())


def test_height_edits_take_effect_immediately():
    model = ground(SHAPES["sphere"], FLAT)
    data, batch = fl.Data(model), fl.Batch(model, 9)
    data.qpos[:3] = batch.qpos[:, :3] = 0.3, 0.1, 0.25 + 0.31
    fl.forward(model, data)
    batch.forward()
    assert data.ncon == 0 and (batch.ncon == 0).all()
    model.hfield_data[:] = 0.54
    fl.forward(model, data)
    batch.forward()
    np.testing.assert_allclose(data.contact.dist.min(), -0.01, rtol=0, atol=1e-12)
    assert (batch.ncon == data.ncon).all()


# ---- arbitrary poses -----------------------------------------------------------------------------------------
def check(points, room):
    """Asserts finite numbers, unit normals, and at most as many points as the capacity."""
    assert len(points) <= room
    assert np.isfinite(points.dist).all() and np.isfinite(points.pos).all()
    np.testing.assert_allclose(np.linalg.norm(points.frame[:, :3], axis=1), 1.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [in_ci(64), pytest.param(25_600, marks=pytest.mark.slow)])
def test_no_pose_yields_non_finite_values(shape, count, rng, monkeypatch):
    """Covers, with bounds checks, all kinds of height fields, shapes of all scales, centres on samples and borders."""
    monkeypatch.setenv("FEATHERLANE_MODE", "checked")
    many = 64
    for _ in range(count // many):
        nrow, ncol = rng.integers(2, 12, 2)
        kind = rng.integers(4)
        heights = [rng.uniform, rng.integers, np.zeros, np.ones][kind]
        shape_of = {"size": (nrow, ncol)} if kind < 2 else {"shape": (nrow, ncol)}
        heights = heights(0, 2, **shape_of) if kind == 1 else heights(**shape_of)
        model = ground(SHAPES[shape], np.clip(heights, 0, 1), rng.choice([0, 1e-9, 0.1]))
        scale = 10.0 ** rng.uniform(-4, 1)
        model.geom_size[1] *= scale
        model.geom_rbound[1] *= scale
        pos = rng.uniform(-1.5, 1.5, (many, 2, 3))
        pos[:, 0] = 0
        pos[::4, 1, 0] = rng.choice([-1.2, 0, 1.2], pos[::4, 1, 0].shape)
        pos[1::4, 1, 1] = rng.choice([-1, 0, 1], pos[1::4, 1, 1].shape)
        quat = random_quat(rng, 2 * many).reshape(many, 2, 4)
        quat[:, 0] = 1, 0, 0, 0
        quat[::3, 1] = 1, 0, 0, 0
        for points in collide(model, *frames(model, pos, quat), 8):
            check(points, 50)
