"""Pairs that pass each test of collision, against MuJoCo's contacts, and against tests by definition."""

import importlib
import itertools

import mujoco
import numpy as np
import pytest

from featherlane.apps.measure.speed_comparison import Course, Lineup
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.enums import MESH, PLANE
from featherlane.engine.model.pair import FIRST_SCALAR, function_tables
from featherlane.tools.profile.pair_tests import Counts, _of_a_pair, count_pairs, pair_tests, ways_of_hulls
from featherlane.tools.profile.stage_times import tiles

WORLDS = 12
ROUND = "".join(f'<geom size=".04" pos="{0.1 * k} 0 0"/>' for k in range(8))
GROUPS = f"""<mujoco><worldbody><geom type="plane" size="5 5 1"/>
{"".join(f'<body pos="0 {0.09 * k} {0.04 + 0.3 * (k == 3)}"><freejoint/>{ROUND}</body>' for k in range(4))}
</worldbody></mujoco>"""
BALL = '<body pos="{} {} .1"><freejoint/><geom size=".1"/></body>'
CROWD = f"""<mujoco><worldbody><geom type="plane" size="5 5 1"/>
{"".join(BALL.format(0.19 * (k % 13), 0.25 * (k // 13)) for k in range(160))}</worldbody></mujoco>"""
SCENES = {"hand": "hand", "humanoid": "humanoid", "groups": GROUPS, "crowd": CROWD}


@pytest.fixture(scope="module", params=SCENES)
def counted(request):
    lineup = Lineup(SCENES[request.param], Course(worlds=WORLDS, settle=0.2))
    return lineup, Counts(*count_pairs(lineup).T)


def placed(lineup):
    """Yields MuJoCo's data in each of the settled states."""
    for qpos in lineup.states["qpos"]:
        data = mujoco.MjData(lineup.mj_model)
        data.qpos[:] = qpos
        mujoco.mj_kinematics(lineup.mj_model, data)
        mujoco.mj_comPos(lineup.mj_model, data)
        mujoco.mj_collision(lineup.mj_model, data)
        yield data


def spheres_near(mj, data, g, h):
    offset = data.geom_xpos[h] - data.geom_xpos[g]
    reach = mj.geom_rbound[g] + mj.geom_rbound[h]
    if mj.geom_type[g] == PLANE:
        return data.geom_xmat[g].reshape(3, 3)[:, 2] @ offset <= reach
    return np.linalg.norm(offset) <= reach


def boxes_near(mj, data, g, h):
    """Returns whether the corners of two rotated boxes overlap along all face normals and edge products."""
    R, S = (data.geom_xmat[k].reshape(3, 3) for k in (g, h))
    corners = []
    for k, T in ((g, R), (h, S)):
        signs = np.array(list(itertools.product((-1, 1), repeat=3)))
        corners.append(data.geom_xpos[k] + (mj.geom_aabb[k, :3] + signs * mj.geom_aabb[k, 3:]) @ T.T)
    edges = [np.cross(a, b) for a in R.T for b in S.T]
    for axis in (*R.T, *S.T, *(e for e in edges if np.linalg.norm(e) > 1e-6)):
        a, b = (c @ axis for c in corners)
        if a.max() < b.min() or b.max() < a.min():
            return False
    return True


def test_touching_pairs_equal_mujoco(counted):
    lineup, counts = counted
    touching = [len({tuple(sorted(pair)) for pair in data.contact.geom}) for data in placed(lineup)]
    np.testing.assert_array_equal(counts.touching, touching)
    assert counts.touching.any()


def test_pairs_that_pass_spheres_and_boxes_equal_those_of_the_definition(counted):
    lineup, counts = counted
    mj, found = lineup.mj_model, candidates(lineup.mj_model)
    pairs, function = list(zip(found["cand_geom1"], found["cand_geom2"], strict=True)), function_tables()[0]
    for w, data in enumerate(placed(lineup)):
        near = [pair for pair in pairs if spheres_near(mj, data, *pair)]
        sought = [pair for pair in near if function[mj.geom_type[pair[0]], mj.geom_type[pair[1]]] >= FIRST_SCALAR]
        if lineup.model.ngroup:
            assert counts.touching[w] <= counts.spheres[w] <= len(near)
        else:
            assert counts.spheres[w] == len(near) and counts.closed_form[w] == len(near) - len(sought)
        left = [pair for pair in sought if mj.geom_type[pair[0]] == PLANE or boxes_near(mj, data, *pair)]
        assert counts.searched_touching[w] <= counts.searched[w] <= len(sought)
        # over planes the height of the box decides
        planes = sum(mj.geom_type[g] == PLANE and mj.geom_type[h] == MESH for g, h in sought)
        assert len(left) - planes <= counts.searched[w] <= len(left)


def test_each_bounding_test_leaves_fewer_pairs(counted):
    lineup, counts = counted
    model = lineup.model
    assert (counts.listed == model.ncand).all() and (counts.body_boxes <= counts.listed).all()
    assert (counts.spheres <= counts.body_boxes + counts.tree).all()
    assert (counts.closed_form + counts.searched <= counts.spheres).all()
    assert (counts.body_boxes < counts.listed).all() == (model.ngroup > 0)
    assert (counts.tree > 0).all() == (model.ncrowd > 0)


def test_the_report_of_a_model():
    lineup, told = Lineup("hand", Course(worlds=16, settle=0.3)), []
    found = pair_tests(lineup, told.append)
    assert told == list(range(1, 17))
    assert set(found["pairs"]) == set(Counts._fields) and found["pairs"]["listed"] == lineup.model.ncand
    assert set(found["microseconds"]) == {"listing", "turned_boxes", "points"}
    assert 0.0 <= found["microseconds_of_a_pair"]["explained"] <= 1.0


def test_hull_pairs_use_one_of_four_methods():
    ways = ways_of_hulls(Lineup("hand", Course(worlds=16, settle=0.3)))
    assert set(ways) == {"apart_as_before", "proved_as_before", "grown_from_before", "searched"}
    assert sum(ways.values()) > 0.0
    assert ways_of_hulls(Lineup("humanoid", Course(worlds=16, settle=0.1))) == {}


def test_a_model_without_pairs_or_contacts_has_an_empty_report():
    assert pair_tests(Lineup("pendulum", Course(worlds=8, settle=0.0))) == {}
    assert pair_tests(Lineup("hand", Course(worlds=8, settle=0.0, smooth=True))) == {}


def test_tiles_with_overflowing_contacts_are_counted_and_not_timed(monkeypatch):
    def cramped(lineup):
        for tile in tiles(lineup):
            tile.workspace.record.set_size("nconmax", 1)
            yield tile

    monkeypatch.setattr(importlib.import_module("featherlane.tools.profile.pair_tests"), "tiles", cramped)
    found = pair_tests(Lineup(GROUPS, Course(worlds=8, settle=0.1)))
    assert found.keys() == {"pairs"} and found["pairs"]["touching"] > 1


def test_times_of_pairs_are_those_that_make_up_the_tiles(rng):
    counts = np.zeros((9, len(Counts._fields)))
    fields = {name: k for k, name in enumerate(Counts._fields)}
    searched, touching, closed = rng.integers(0, 9, (3, 9)).astype(float)
    counts[:, fields["searched"]] = searched + touching
    counts[:, fields["searched_touching"]], counts[:, fields["closed_form"]] = touching, closed
    found = _of_a_pair(list(counts), 0.5 * searched + 3.0 * touching + 0.01 * closed)
    assert found == pytest.approx({"apart": 0.5, "touching": 3.0, "closed_form": 0.01, "explained": 1.0})
    found = _of_a_pair(list(counts), 3.0 * touching - 0.01 * closed)  # no negative time
    assert "closed_form" not in found and found["touching"] == pytest.approx(3.0, rel=0.1)
    assert _of_a_pair(list(np.zeros_like(counts)), np.ones(9)) == {}
