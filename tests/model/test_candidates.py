"""Candidate pairs against the contacts that MuJoCo finds, and each of MuJoCo's filters separately."""

import mujoco
import numpy as np
import pytest

from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.pair import PAIR_FUNCTIONS

MOVING = "gymnasium/ant gymnasium/half_cheetah gymnasium/humanoidstandup gymnasium/walker2d_v5".split()
MOVING += "dm_control/humanoid dm_control/quadruped dm_control/manipulator dm_control/cheetah dm_control/dog".split()
BALL = '<body name="{0}" pos="{1} 0 0"><freejoint/><geom name="{0}" size="0.1" {2}/></body>'


def compiled(bodies, tail="", option=""):
    return mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{bodies}</worldbody>{tail}</mujoco>")


def names(model):
    """Returns candidate pairs as a list of pairs of names."""
    cand = candidates(model)
    geoms = zip(cand["cand_geom1"], cand["cand_geom2"], strict=True)
    return [(model.geom(i).name, model.geom(j).name) for i, j in geoms]


def tangled(model, rng):
    """Returns a random configuration in which limbs and floor overlap."""
    qpos = np.array(model.qpos0)
    for kind, adr in zip(model.jnt_type, model.jnt_qposadr, strict=True):
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            qpos[adr : adr + 3] += rng.uniform((-0.3, -0.3, -1.2), (0.3, 0.3, 0.1))
        if kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            quat = slice(adr + 3, adr + 7) if kind == mujoco.mjtJoint.mjJNT_FREE else slice(adr, adr + 4)
            qpos[quat] = rng.standard_normal(4)
            qpos[quat] /= np.linalg.norm(qpos[quat])
        else:
            qpos[adr] = rng.uniform(-2, 2)
    return qpos


def contacts(model, rng, count):
    """Yields MuJoCo's contacts in random configurations: for each, a list of (geom 1, geom 2)."""
    data = mujoco.MjData(model)
    for _ in range(count):
        data.qpos[:] = tangled(model, rng)
        mujoco.mj_fwdPosition(model, data)
        yield [tuple(map(int, pair)) for pair in data.contact.geom]


@pytest.mark.parametrize("name", MOVING)
def test_contacts_of_mujoco_are_candidates_in_their_order(name, real_model, rng):
    model = mujoco.MjModel.from_xml_path(str(real_model(name)))
    cand = candidates(model)
    rows = zip(cand["cand_geom1"], cand["cand_geom2"], strict=True)
    place = {tuple(map(int, row)): k for k, row in enumerate(rows)}
    found = list(contacts(model, rng, 30))
    assert sum(map(len, found)) > 30
    for listed in found:
        places = [place[contact] for contact in listed]  # a KeyError means a contact of a pair that is not a candidate
        assert places == sorted(places)


@pytest.mark.parametrize("name", MOVING)
def test_no_pair_exceeds_its_maximum_of_points(name, real_model, rng):
    model = mujoco.MjModel.from_xml_path(str(real_model(name)))
    cand = candidates(model)
    most = {(i, j): n for i, j, n in zip(cand["cand_geom1"], cand["cand_geom2"], cand["cand_npoint"], strict=True)}
    for pairs in contacts(model, rng, 30):
        assert all(pairs.count(pair) <= (most[pair] or np.inf) for pair in set(pairs))


def naive(model):
    """Returns the unordered pairs that collide according to MuJoCo's documentation, geom by geom."""
    weld, parent = model.body_weldid, model.body_parentid
    moved = [model.body_dofnum[weld[b]] > 0 for b in model.geom_bodyid]
    excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in model.exclude_signature}
    found = {frozenset(map(int, pair)) for pair in zip(model.pair_geom1, model.pair_geom2, strict=True)}
    for i in range(model.ngeom):
        for j in range(i + 1, model.ngeom):
            a, b = (int(model.geom_bodyid[k]) for k in (i, j))
            wa, wb = weld[a], weld[b]
            related = wa and wb and (wa == weld[parent[wb]] or wb == weld[parent[wa]])
            touch = (
                model.geom_contype[i] & model.geom_conaffinity[j] or model.geom_contype[j] & model.geom_conaffinity[i]
            )
            if wa != wb and (moved[i] or moved[j]) and not related and touch and (min(a, b), max(a, b)) not in excluded:
                found.add(frozenset((i, j)))
    return found


@pytest.mark.parametrize("name", [*MOVING, "dm_control/humanoid_CMU", "dm_control/stacker"])
def test_candidates_equal_the_filters_applied_pair_by_pair(name, real_model):
    model = mujoco.MjModel.from_xml_path(str(real_model(name)))
    cand = candidates(model)
    pairs = [frozenset(map(int, pair)) for pair in zip(cand["cand_geom1"], cand["cand_geom2"], strict=True)]
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == naive(model)


def test_contype_and_conaffinity():
    touch = 'contype="2" conaffinity="0"', 'contype="0" conaffinity="2"', 'contype="0" conaffinity="1"'
    model = compiled(
        "".join(BALL.format(name, k, bits) for k, (name, bits) in enumerate(zip("abc", touch, strict=True)))
    )
    assert names(model) == [("a", "b")]


CHAIN = """
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="a"><joint/><geom name="a" size="0.1"/>
    <body name="fixed"><geom name="fixed" size="0.1"/>
      <body name="b"><joint/><geom name="b" size="0.1"/>
        <body name="c"><joint/><geom name="c" size="0.1"/></body></body></body></body>"""


def test_parents_do_not_touch_children_over_welds():
    assert names(compiled(CHAIN)) == [
        ("floor", "a"),
        ("floor", "fixed"),
        ("floor", "b"),
        ("floor", "c"),
        ("a", "c"),
        ("fixed", "c"),
    ]


def test_filterparent_flag_admits_parents():
    model = compiled(CHAIN, option='<option><flag filterparent="disable"/></option>')
    assert {("a", "b"), ("fixed", "b"), ("b", "c")} < set(names(model))
    assert ("a", "fixed") not in names(model)


def test_geoms_that_no_force_moves_do_not_touch():
    model = compiled(
        '<geom name="floor" type="plane" size="1 1 1"/><geom name="post" size="0.1"/>'
        '<body name="hand" mocap="true"><geom name="hand" size="0.1"/></body>' + BALL.format("ball", 1, ""),
        '<contact><pair geom1="hand" geom2="floor"/></contact>',
    )
    assert names(model) == [("floor", "ball"), ("post", "ball"), ("hand", "ball")]


def test_exclude_removes_bodies_and_pair_overrules_every_filter():
    bodies = BALL.format("a", 0, "") + BALL.format("b", 1, 'contype="0" conaffinity="0"') + BALL.format("c", 2, "")
    exclude = '<exclude body1="a" body2="c"/>'
    assert names(compiled(bodies, f"<contact>{exclude}</contact>")) == []
    pairs = '<pair geom1="c" geom2="a"/><pair geom1="b" geom2="c"/>'
    model = compiled(bodies, f"<contact>{exclude}{pairs}</contact>")
    cand = candidates(model)
    assert [set(pair) for pair in names(model)] == [{"a", "c"}, {"b", "c"}]
    assert list(cand["cand_pair"]) == [0, 1]


def test_explicit_pair_replaces_the_pair_of_the_filters():
    model = compiled(
        BALL.format("a", 0, 'priority="2"') + BALL.format("b", 0.1, ""),
        '<contact><pair geom1="b" geom2="a"/></contact>',
    )
    assert list(candidates(model)["cand_pair"]) == [0]


@pytest.mark.parametrize("flag", ["contact", "constraint"])
def test_run_time_flags_do_not_change_the_candidates(flag):
    bodies = BALL.format("a", 0, "") + BALL.format("b", 1, "")
    assert names(compiled(bodies, option=f'<option><flag {flag}="disable"/></option>')) == [("a", "b")]


@pytest.mark.parametrize("midphase", ["enable", "disable"])
def test_order_within_two_bodies_equals_mujoco(midphase):
    geoms = '<geom type="{0}" size="0.2 0.1 0.1"/><geom size="0.2"/><geom type="{0}" size="0.2 0.1 0.1" pos="0.1 0 0"/>'
    bodies = "".join(f"<body><freejoint/>{geoms.format(kind)}</body>" for kind in ("capsule", "sphere", "capsule"))
    tail = '<contact><pair geom1="late" geom2="early"/></contact>'
    bodies += "".join(f'<body><freejoint/><geom name="{name}" size="0.3"/></body>' for name in ("early", "late"))
    model = compiled(bodies, tail, f'<option><flag midphase="{midphase}"/></option>')
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    listed = list(dict.fromkeys(tuple(map(int, pair)) for pair in data.contact.geom))
    cand = candidates(model)
    assert listed == list(zip(cand["cand_geom1"].tolist(), cand["cand_geom2"].tolist(), strict=True))


def test_pair_functions_and_their_points():
    shapes = {"sphere": "0.1", "capsule": "0.1 0.1", "box": "0.1 0.1 0.1"}
    bodies = '<geom type="plane" size="1 1 1"/>'
    bodies += "".join(
        f'<body><freejoint/><geom type="{k}" size="{s}"/></body>' for k, s in shapes.items() for _ in "ab"
    )
    model = compiled(bodies)
    cand = candidates(model)
    table = {(int(a), int(b)): (ident, most) for ident, a, b, most in PAIR_FUNCTIONS}
    types = zip(model.geom_type[cand["cand_geom1"]], model.geom_type[cand["cand_geom2"]], strict=True)
    expected = [table.get((int(a), int(b)), (-1, 0)) for a, b in types]
    assert list(zip(cand["cand_function"], cand["cand_npoint"], strict=True)) == expected
    assert {ident for ident, _ in expected} == {0, 1, 2, 5, 6, 8, 9, 21, 22}


def test_a_model_without_geoms_has_no_candidates():
    for column in candidates(compiled("")).values():
        assert column.shape == (0,)
        assert column.dtype == np.int32
