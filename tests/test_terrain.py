"""Terrain: shapes of the kinds, periodic tiles, collision geometry, and what is refused."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.terrain import KINDS, Terrain

ROUNDED = 1e-12
FLOOR = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/><geom name="block" type="box" size="1 1 1"
pos="0 0 9"/></worldbody></mujoco>"""
ALL = tuple(KINDS)
SINGLE = 1e-6  # [m], of float32 samples of heights below 0.3 m, and of the ray's distance of 3 m in float64
RADIUS = 0.01  # [m]
BALL = f'<body name="ball"><freejoint/><geom size="{RADIUS}"/></body></worldbody>'


def heights(kind, level=0, levels=1, height=1.0, **settings):
    """Returns the heights of a tile of one kind without its rim, (n, n)."""
    ground = Terrain((kind,), height, levels=levels, rim=0.0, **settings)
    n = ground.samples.shape[1]
    return ground.samples[level * n : (level + 1) * n]


def test_tiles_are_periodic():
    ground, random = Terrain(ALL, 0.2, 3), np.random.default_rng(0)
    half = ground.side / 2
    for centre in ground.centres:
        along, across = centre + random.uniform(-half, half, (20, 2)), random.uniform(-1, 1, 20)
        x, y = centre[0] - half + across, centre[1] - half + across
        np.testing.assert_allclose(
            ground.height_at(x, along[:, 1]), ground.height_at(x + 2 * half, along[:, 1]), atol=ROUNDED
        )
        np.testing.assert_allclose(
            ground.height_at(along[:, 0], y), ground.height_at(along[:, 0], y + 2 * half), atol=ROUNDED
        )
    assert 0.0 <= ground.samples.min() <= ground.samples.max() <= 0.2
    assert len(ground.centres) == len(KINDS) * ground.levels


@pytest.mark.parametrize("settings", [{}, {"side": 4.0, "rim": 0.7, "cell": 0.05, "levels": 2}])
def test_heights_equal_those_of_rays(settings, n=400):
    """At random points; also those of MuJoCo's rays, whose height field has float32 samples."""
    ground, random = Terrain(ALL, 0.3, **settings), np.random.default_rng(0)
    spec = mujoco.MjSpec.from_string(FLOOR)
    ground.add_to(spec)
    model = fl.load(spec)
    batch, mj = fl.Batch(model, 1), model.to_mujoco()
    data, geom = mujoco.MjData(mj), np.zeros(1, np.int32)
    batch.forward()
    mujoco.mj_forward(mj, data)
    at = np.append(random.uniform(-ground.half, ground.half, (n, 2)), np.full((n, 1), 3.0), 1)
    found = ground.height_at(at[:, 0], at[:, 1])
    hits = batch.ray(at, (0.0, 0.0, -1.0))
    assert (hits.geom == 0).all()
    assert np.abs(3.0 - hits.distance[0] - found).max() < SINGLE
    theirs = [mujoco.mj_ray(mj, data, p, [0.0, 0.0, -1.0], None, 1, -1, geom) for p in at]
    assert np.abs(3.0 - np.array(theirs) - found).max() < SINGLE


def test_a_ball_touches_the_ground_at_the_height_of_its_triangle():
    """A small sphere on the ground touches it, and does not a little above it."""
    heights = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    ground = Terrain((lambda n, cell, difficulty, random: heights,), 0.2, side=4.0, cell=1.0, levels=1, rim=0.0)
    spec = mujoco.MjSpec.from_string(FLOOR.replace("</worldbody>", BALL))
    ground.add_to(spec)
    x, y = np.meshgrid(np.linspace(-0.45, 1.45, 5), np.linspace(-1.45, 0.45, 5))
    slope = np.hypot(0.2, 0.2)  # the steepest triangle: 0.2 m along each axis
    for above, touches in ((-1e-3, True), (2 * RADIUS * slope**2 + 1e-3, False)):
        batch = fl.Batch(fl.load(spec), x.size)
        batch.qpos[:, :2] = np.stack([x.ravel(), y.ravel()], 1)
        batch.qpos[:, 2] = ground.height_at(x.ravel(), y.ravel()) + RADIUS + above
        assert ((batch.contacts("ball").found > 0) == touches).all()


def test_heights_beyond_the_field_and_of_nan():
    ground = Terrain(("rough", "stairs"), 0.3)
    x, y = ground.half
    found = ground.height_at(np.array([x, x + 9.0, np.inf, -np.inf, np.nan, 0.0]), np.array([y, y, y, -y, 0.0, np.nan]))
    first, last = ground.samples[0, 0], ground.samples[-1, -1]
    np.testing.assert_array_equal(found, [last, last, last, first, np.nan, np.nan])


def test_each_kind_has_its_height_in_the_highest_level():
    ground = Terrain(("rough", "stairs"), {"rough": 0.1, "stairs": 0.6}, levels=3, rim=0.0)
    n, tiles = round(ground.side / ground.cell), {}
    for k, kind in enumerate(ground.kinds):
        for level in range(3):
            x, y = ground.centres[ground.tile(kind, level)] + ground.half
            corner = np.round(np.array([y, x]) / ground.cell - n / 2).astype(int)
            tiles[k, level] = ground.samples[corner[0] : corner[0] + n, corner[1] : corner[1] + n]
            assert np.ptp(tiles[k, level]) == pytest.approx((0.1, 0.6)[k] * (level + 1) / 3)
    assert ground.height == 0.6


def test_slopes_and_stairs_are_pyramids_with_a_platform():
    slope, stairs = heights("slopes"), heights("stairs")
    row = slope[40]
    assert row[0] == 0.0 and (row[30:51] == 1.0).all() and row[29] < 1.0
    np.testing.assert_allclose(np.diff(row[:31]), 1 / 30)
    assert (slope == slope.T).all() and (slope[1:] == slope[:0:-1]).all()
    np.testing.assert_allclose(np.unique(stairs), np.arange(7) / 6)
    assert (np.flatnonzero(np.diff(stairs[40]))[:6] == [4, 9, 14, 19, 24, 29]).all(), "steps of half a metre"


def test_the_gaps_of_stepping_stones_grow_with_the_level():
    for level, gap in enumerate([1, 2, 3, 4]):
        tile = heights("stones", level, 4)
        assert set(np.unique(tile)) == {0.0, 1.0}, "the full height in all levels"
        assert (tile[5] == ([0] * gap + [1] * (10 - gap)) * 8).all()


def test_steps_have_sides_of_half_a_metre_and_waves_two_periods():
    steps, waves = heights("steps"), heights("waves")
    assert (np.diff(steps[0]) != 0).sum() == 15 and (steps[:5] == steps[0]).all() and (steps[5] != steps[0]).any()
    np.testing.assert_allclose(waves[:40], waves[40:], atol=ROUNDED)
    assert not heights("flat").any() and 0.3 < heights("rough").std() * 2 < 1.0


def test_seeds_repeat_and_differ():
    assert (heights("rough", seed=1) == heights("rough", seed=1)).all()
    assert (heights("rough", seed=1) != heights("rough", seed=2)).any()


def test_functions_are_kinds():
    def ridge(n, cell, difficulty, random):
        z = np.zeros((n, n))
        z[:, n // 2] = difficulty
        return z

    ground = Terrain((ridge, "flat"), 0.5, levels=2)
    assert ground.kinds == ("ridge", "flat")
    for level, height in enumerate([0.125, 0.5]):  # half the height times half the difficulty
        x, y = ground.centres[ground.tile("ridge", level)]
        assert ground.height_at(np.array(x), np.array(y)) == pytest.approx(height)


def test_tiles_are_numbered_by_kind_and_level():
    ground = Terrain(("flat", "rough", "stairs"), levels=4)
    assert ground.tile("rough", 2) == 6 and ground.tile([0, 2], [3, 1]).tolist() == [3, 9]
    (a, b), (c, d) = ground.centres[[ground.tile("rough", 2), ground.tile("rough", 3)]]
    assert a == c and d - b == pytest.approx(11.0), "levels along y, kinds along x"


def test_positions_are_put_back_to_the_same_ground():
    ground = Terrain(("rough", "steps"))
    tile = np.array([0, 5, 7])
    at = ground.centres[tile] + [[4.1, -4.2], [3.9, 0.0], [-4.4, 4.3]]
    before = ground.height_at(*at.T)
    ground.put_back(at, tile)
    np.testing.assert_allclose(at - ground.centres[tile], [[-3.9, 3.8], [3.9, 0.0], [3.6, -3.7]])
    np.testing.assert_allclose(ground.height_at(*at.T), before, atol=ROUNDED)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Terrain(()), "kinds: got "),
        (lambda: Terrain(("rough", "rough")), "kinds: got "),
        (lambda: Terrain(("rogh",)), "kinds: got 'rogh', allowed are flat, rough, .*did you mean|kinds: got 'rogh'"),
        (lambda: Terrain(3), "kinds: got int"),
        (lambda: Terrain((lambda n, cell, difficulty, random: np.ones(n),)), "kinds: <lambda>: got float64"),
        (
            lambda: Terrain((lambda n, cell, difficulty, random: np.full((n, n), 1.5),)),
            "allowed are numbers from 0 to 1",
        ),
        (lambda: Terrain(("rough",), -1.0), "height: got -1.0"),
        (lambda: Terrain(("rough",), {"stairs": 1.0}), "height: got heights of stairs, allowed are those of rough"),
        (lambda: Terrain(("rough",), {"rough": -1.0}), r"height\['rough'\]: got -1.0"),
        (lambda: Terrain(("rough",), levels=0), "levels: got 0"),
        (lambda: Terrain(("rough",), cell=0.0), "cell: got 0.0"),
        (lambda: Terrain(("rough",), side=0.2), "side: got 0.2"),
        (lambda: Terrain(("rough",), seed=-1), "seed: got -1"),
        (lambda: Terrain(("rough",)).tile("stairs", 0), "kind: got 'stairs', allowed are rough"),
        (lambda: Terrain(("rough",)).tile(0, 4), "level: got 4, allowed are whole numbers from 0 to 3"),
        (lambda: Terrain(("rough",)).height_at("a", 0.0), "x: got str, allowed are positions"),
        (lambda: Terrain(("rough",)).height_at(np.zeros(2), np.zeros(3)), r"x, y: got the shapes \(2,\) and \(3,\)"),
        (lambda: Terrain(("rough",)).put_back([[0.0, 0.0]], [0]), "at: got list, allowed is a writable array"),
        (lambda: Terrain(("rough",)).put_back(np.zeros((2, 3)), [0, 0]), r"at: got float64 \(2, 3\)"),
        (lambda: Terrain(("rough",)).put_back(np.zeros((2, 2)), [0, 4]), r"tile: got \[0 4\], allowed are 2 whole"),
        (lambda: Terrain(("rough",)).put_back(np.zeros((2, 2)), [0]), "tile: got "),
        (lambda: Terrain(("rough",)).add_to(mujoco.MjSpec.from_string(FLOOR), "ground"), "geom: got 'ground'.*'floor'"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(fl.ModelError, match=message):
        call()


def test_a_second_terrain_is_refused():
    spec = mujoco.MjSpec.from_string(FLOOR)
    Terrain(("flat",)).add_to(spec)
    with pytest.raises(fl.ModelError, match="height field 'terrain'"):
        Terrain(("flat",)).add_to(spec, "block")
