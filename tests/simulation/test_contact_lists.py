"""Lists of contacts of many worlds and their forces: against MuJoCo's contacts and its contact sensor."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import REDUCE_MINDIST, REDUCE_NETFORCE, Enable
from featherlane.engine.simulation.query.contact import ContactQuery, contact_tiles, position_contact_tiles
from featherlane.engine.simulation.tile import capacity

SCENE = """
<mujoco><option tolerance="0" iterations="200" {option}/>
<worldbody><geom name="floor" type="plane" size="5 5 1" condim="4"/>
  <body name="crate" pos="0 0 .28"><freejoint/><geom name="crate" type="box" size=".2 .2 .1"/>
    <body name="lid" pos="0 0 .12"><joint type="slide" axis="0 0 1"/>
      <geom name="lid" type="box" size=".1 .1 .02"/></body></body>
  <body name="ball" pos=".05 0 .6"><freejoint/><geom name="ball" size=".1" condim="6"/></body>
  <body name="low" pos="0 0 .1"><freejoint/><geom name="low" type="box" size=".3 .3 .08"/></body>
</worldbody>
<sensor>
  <contact name="crate" geom1="crate" geom2="low" num="3" reduce="mindist"
    data="found force torque dist pos normal tangent"/>
  <contact name="net" body2="crate" num="1" reduce="netforce" data="found force torque pos"/>
  <contact name="most" subtree1="crate" num="2" reduce="maxforce" data="found force"/>
</sensor></mujoco>"""
EXACT = 1e-9  # relative to the largest force; the issue's


def worlds(option: str = "", n: int = 9, flags: int = 0, contact_model: str = "convex", **arguments) -> fl.Batch:
    """Returns worlds with different contacts."""
    model = fl.load(SCENE.format(option=option))
    model.opt.enableflags |= flags
    model.opt.contact_model = contact_model
    if contact_model == "lcp":
        model.geom_fdir[:] = 1.0, 2.0, 0.0  # turns tangents
    batch = fl.Batch(model, n, nthread=1, **arguments)
    random = np.random.default_rng(2)
    batch.qpos[:, 8:10] += random.uniform(-0.35, 0.35, (n, 2))
    batch.qvel[:] = 0.3 * random.normal(size=(n, batch.model.nv))
    batch.step(60)
    return batch


def mujoco_world(batch: fl.Batch, world: int):
    """Returns an MjModel and its MjData in the state of a world."""
    mj = batch.model.mj_model
    data = mujoco.MjData(mj)
    for name in ("qpos", "qvel", "qacc_warmstart"):
        getattr(data, name)[:] = getattr(batch, name)[world]
    mujoco.mj_forward(mj, data)
    return mj, data


@pytest.mark.parametrize("option", ["", 'cone="elliptic"', 'solver="CG"'])
def test_contacts_and_forces_equal_mujocos(option):
    batch = worlds(option)
    names = ("force", "torque", "dist", "pos", "normal", "tangent", "geom")
    found, net = batch.contacts(output=names), batch.net_contact_force(["crate", "low", ("geom", "floor"), "ball"])
    pair = batch.net_contact_force(("geom", "low"), ("geom", "floor"))
    assert len(set(found.found.tolist())) > 1 and found.force.shape[1] == found.found.max()
    for w in (0, 3, 8):
        mj, data = mujoco_world(batch, w)
        n = data.ncon
        assert found.found[w] == n and np.array_equal(found.geom[w, :n], data.contact.geom)
        assert (found.geom[w, n:] == -1).all() and not found.force[w, n:].any()
        np.testing.assert_allclose(found.dist[w, :n], data.contact.dist, atol=1e-12)
        np.testing.assert_allclose(found.pos[w, :n], data.contact.pos, atol=1e-12)
        np.testing.assert_allclose(
            np.hstack([found.normal[w], found.tangent[w]])[:n], data.contact.frame[:, :6], atol=1e-9
        )
        total, between, force = np.zeros((mj.nbody, 3)), np.zeros(3), np.zeros(6)
        largest = max(1.0, np.abs(found.force[w]).max())
        for k in range(n):
            mujoco.mj_contactForce(mj, data, k, force)
            np.testing.assert_allclose(found.force[w, k], force[:3], rtol=0, atol=EXACT * largest)
            np.testing.assert_allclose(found.torque[w, k], force[3:], rtol=0, atol=EXACT * largest)
            push = data.contact.frame[k].reshape(3, 3).T @ force[:3]
            for side, sign in ((0, -1), (1, 1)):
                total[mj.geom_bodyid[data.contact.geom[k, side]]] += sign * push
            geoms = [mj.geom(int(g)).name for g in data.contact.geom[k]]
            between += push * {("floor", "low"): 1, ("low", "floor"): -1}.get(tuple(geoms), 0)
        bodies = [mj.body(name).id for name in ("crate", "low", "world", "ball")]
        np.testing.assert_allclose(net[w], total[bodies], rtol=0, atol=EXACT * largest)
        np.testing.assert_allclose(pair[w], between, rtol=0, atol=EXACT * largest)


def test_selections_equal_mujocos_contact_sensors():
    batch = worlds()
    fields = ("force", "torque", "dist", "pos", "normal", "tangent")
    crate = batch.contacts(("geom", "crate"), ("geom", "low"), output=fields, num=3, reduce="mindist")
    net = batch.contacts(None, "crate", output=("force", "torque", "pos"), reduce="netforce")
    most = batch.contacts(("subtree", "crate"), output="force", num=2, reduce="maxforce")
    for w in range(batch.nworld):
        _, data = mujoco_world(batch, w)
        scale = max(1.0, np.abs(data.sensordata).max())
        for found, name, used in (
            (crate, "crate", fields),
            (net, "net", ("force", "torque", "pos")),
            (most, "most", ["force"]),
        ):
            expected = data.sensor(name).data.reshape(found.force.shape[1], -1)
            columns = [getattr(found, field)[w].reshape(len(expected), -1) for field in used]
            listed = np.arange(len(expected)) < found.found[w]
            got = np.hstack([(listed * found.found[w])[:, None], *columns])
            np.testing.assert_allclose(got, expected, rtol=0, atol=EXACT * scale)


def test_a_world_has_equal_bits_in_any_batch():
    batch = worlds()
    together, some = batch.contacts(num=6), batch.contacts(num=6, ids=[7, 2])
    for a, b in zip(together, some, strict=True):
        assert a is b is None or a[[7, 2]].tobytes() == b.tobytes()


def test_a_tile_whose_contacts_do_not_fit_is_listed_in_parts(monkeypatch):
    whole = worlds(n=8)
    expected = whole.contacts(num=8)
    most = int(expected.found.max())
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", most)
    for output in (("geom", "dist", "pos", "normal", "force"), ("geom", "dist", "pos", "normal")):
        parts = fl.Batch(fl.load(SCENE.format(option="")), 8, nthread=1)
        parts.restore(whole.checkpoint())
        found = parts.contacts(output=output, num=8)
        for name in ("found", *output):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()
        # set by parts alone
        assert all(w.arrays["lane_active"].any() for w in parts.runner.plans.workspaces[parts.width])


def test_relative_velocities_and_lists_of_selections():
    batch = worlds()
    both = batch.contacts([("geom", "crate"), "ball"], [None, "world"], output=("linvel", "angvel", "force"), num=2)
    alone = batch.contacts(("geom", "crate"), None, output=("linvel", "angvel", "force"), num=2)
    assert both.linvel.shape == (9, 2, 2, 3) and both.geom is None
    assert both.found[:, 0].tobytes() == alone.found.tobytes()
    assert both.linvel[:, 0].tobytes() == alone.linvel.tobytes() and np.abs(both.linvel).max() > 0


GEOMETRY = ("dist", "pos", "normal", "tangent", "linvel", "angvel", "geom")


@pytest.mark.parametrize("reduce", ["none", "mindist"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"dtype": "float32"},
        {"option": 'cone="elliptic"><flag contact="enable" override="enable"/></option><option'},
        {"option": 'timestep="0.02"', "flags": Enable.SPECULATIVE},
        {"flags": Enable.SLEEP},
        {"contact_model": "lcp"},
    ],
    ids=str,
)
def test_lists_without_forces_have_the_bits_of_lists_with_forces(settings, reduce):
    batch = worlds(**settings)
    selections = {"first": [None, "crate"], "second": None, "reduce": reduce}
    expected = batch.contacts(output=(*GEOMETRY, "force"), **selections)
    assert expected.found.any() and expected.linvel.any()
    for output in [GEOMETRY, *GEOMETRY]:
        found = batch.contacts(output=output, **selections)
        for name in ("found", *([output] if isinstance(output, str) else output)):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
        assert found.force is None and found.torque is None


def test_lists_of_geoms_run_no_solver():
    model = fl.load(SCENE.format(option=""))
    query = lambda *given: ContactQuery(model, 3, "float64", np.zeros((1, 4)), *given).loop  # noqa: E731
    assert query(("geom", "linvel"), 2, 0) is query((), 1, REDUCE_MINDIST) is position_contact_tiles
    assert query(("geom", "torque"), 2, 0) is query(("pos",), 1, REDUCE_NETFORCE) is contact_tiles
    model.opt.contact_model = "lcp"  # its rows turn tangents
    assert query(("pos", "normal"), 2, 0) is position_contact_tiles
    assert query(("tangent",), 2, 0) is contact_tiles
    model.opt.contact_model, model.opt.enableflags = "convex", Enable.SLEEP  # contacts wake trees
    assert query(("pos", "normal"), 2, 0) is contact_tiles


def test_the_lcp_contact_model_and_worlds_without_contacts():
    model = fl.load(SCENE.format(option=""))
    model.opt.contact_model = "lcp"
    batch = fl.Batch(model, 3, nthread=1)
    batch.step(300)
    weight = model.body_mass[1:].sum() * 9.81
    np.testing.assert_allclose(batch.net_contact_force(("geom", "low"), "world")[:, 2], weight, rtol=0.05)
    batch.reset()
    empty = batch.contacts("ball")
    assert not empty.found.any() and empty.force is not None and empty.force.shape == (3, 0, 3)


def test_the_problem_of_a_step_has_the_steps_solution():
    model = fl.load(SCENE.format(option=""))
    model.opt.contact_model = "lcp"
    data = fl.Data(model)
    fl.step(model, data, 200)
    fl.forward(model, data)
    problem = fl.lcp.Problem.from_data(data)
    solution = fl.lcp.solve(problem)
    # its rows are those of the contacts, each normal followed by its friction
    forces = [f for k in range(data.ncon) for f in fl.query.contact_force(model, data, k)[: data.contact[k].dim]]
    assert problem.n == len(forces)
    np.testing.assert_allclose(solution.x, forces, atol=1e-8 * np.abs(forces).max())
    with pytest.raises(fl.lcp.ProblemError, match="convex"):
        fl.lcp.Problem.from_data(fl.Data(fl.bundled("pendulum")))
    with pytest.raises(TypeError, match="Data"):
        fl.lcp.Problem.from_data(model)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("first", lambda b: b.contacts(("site", 0))),
        ("second", lambda b: b.contacts(None, ("geom",))),
        ("first, second", lambda b: b.contacts(["crate", "ball"], ["low", "low", "low"])),
        ("output", lambda b: b.contacts(output="depth")),
        ("reduce", lambda b: b.contacts(reduce="sum")),
        ("num", lambda b: b.contacts(num=0)),
        ("body", lambda b: b.net_contact_force(None)),
    ],
)
def test_a_wrong_argument_is_named(argument, call):
    with pytest.raises(fl.ModelError, match=argument):
        call(worlds(n=1))


def test_an_unknown_object_is_named():
    with pytest.raises(fl.UnknownNameError, match="crat"):
        worlds(n=1).contacts(("geom", "crat"))
