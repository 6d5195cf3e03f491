"""Forces of equality constraints by name, under each contact model, of one world and of batches."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

XML = """<mujoco><option timestep=".002"/><worldbody>
<body name="a"><joint name="ha" axis="0 1 0" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body>
<body name="b" pos=".5 0 0"><freejoint/><geom size=".05" mass="2"/></body>
<body name="c" pos="0 1 0"><joint name="hc" type="slide" axis="0 0 1" stiffness="500" damping="20"/>
  <geom size=".05" mass="3"/></body>
<body name="d" pos="0 2 0"><freejoint/><geom size=".05" mass=".5" pos=".1 0 0"/></body>
</worldbody><equality>
<joint name="gear" joint1="hc" joint2="ha" polycoef="0 .5 0 0 0"/>
<connect name="pin" body1="a" body2="b" anchor=".3 0 0"/>
<weld name="glue" body1="d" anchor=".1 2 0"/><connect name="off" body1="b" body2="c" anchor="0 0 0" active="false"/>
</equality></mujoco>"""


def mujocos(model, data, e):
    """Returns MuJoCo's forces of the rows of equality e in the same state."""
    mj = mujoco.MjData(model.mj_model)
    mj.qpos[:], mj.qvel[:] = data.qpos, data.qvel
    mujoco.mj_forward(model.mj_model, mj)
    own = (mj.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY) & (mj.efc_id == e)
    return mj.efc_force[own]


@pytest.fixture(scope="module")
def worlds():
    model = fl.load(XML)
    model.opt.tolerance, model.opt.iterations = 0.0, 200
    model.mj_model.opt.tolerance, model.mj_model.opt.iterations = 0.0, 200
    data = fl.Data(model)
    for _ in range(25):
        fl.step(model, data)
    fl.forward(model, data)
    return model, data


def test_forces_are_mujocos(worlds):
    model, data = worlds
    for name, rows in {"gear": 1, "pin": 3, "glue": 6}.items():
        force = fl.query.equality_force(model, data, name)
        assert force.shape == (rows,) and np.abs(force).max() > 0.1
        np.testing.assert_allclose(force, mujocos(model, data, model.equality(name).id), rtol=1e-6, atol=1e-6)
    assert np.array_equal(fl.query.equality_force(model, data, "off"), np.zeros(3))


@pytest.mark.parametrize("contact_model", ["convex", "coulomb", "lcp"])
def test_a_batch_has_the_forces_of_its_worlds(contact_model):
    model = fl.load(XML)
    model.opt.contact_model = contact_model
    batch = fl.Batch(model, 3)
    batch.equality("pin").active[1] = 0.0
    batch.qvel[2] = 0.1
    batch.step(5)
    for name in model.names("equality"):
        found = batch.equality_force(name)
        for w in range(3):
            data = fl.Data(model)
            data.qpos[:], data.qvel[:], data.eq_active[:] = batch.qpos[w], batch.qvel[w], batch.eq_active[w]
            fl.forward(model, data)
            np.testing.assert_allclose(found[w], fl.query.equality_force(model, data, name), rtol=1e-6, atol=1e-7)
    assert np.array_equal(batch.equality_force("pin", ids=[1]), np.zeros((1, 3)))


def test_the_weld_of_a_resting_body_carries_its_weight(worlds):
    model = fl.load(XML)
    for contact_model in ("convex", "coulomb", "lcp"):
        model.opt.contact_model = contact_model
        data = fl.Data(model)
        for _ in range(2000):
            fl.step(model, data)
        np.testing.assert_allclose(fl.query.equality_force(model, data, "glue")[:3], [0, 0, 0.5 * 9.81], atol=1e-6)


def test_an_unknown_equality_is_refused(worlds):
    model, data = worlds
    with pytest.raises(fl.UnknownNameError, match="unknown equality 'pni'; did you mean 'pin'"):
        fl.query.equality_force(model, data, "pni")
    with pytest.raises(fl.UnknownNameError, match="equality id: got 9, allowed are 0 to 3"):
        fl.Batch(model, 1).equality_force(9)


def test_elements_that_only_mujoco_has_are_found_by_name():
    model = fl.load("""<mujoco><asset><mesh name="tip" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <material name="steel" rgba=".5 .5 .5 1"/></asset>
    <worldbody><light name="sun" diffuse="1 .9 .8"/>
    <body name="a"><freejoint/><geom type="mesh" mesh="tip" material="steel"/></body>
    <body name="b"><freejoint/><geom size=".1"/></body></worldbody>
    <contact><exclude name="apart" body1="a" body2="b"/></contact>
    <custom><numeric name="gait" data="1 2 3"/></custom></mujoco>""")
    np.testing.assert_allclose(model.light("sun").diffuse, [1, 0.9, 0.8], rtol=1e-6)
    np.testing.assert_allclose(model.material("steel").rgba, [0.5, 0.5, 0.5, 1])
    assert np.array_equal(model.numeric("gait").data, [1, 2, 3])
    assert model.mesh("tip").vertnum == 4 and model.exclude("apart").signature == (1 << 16) + 2
    assert [model.names(kind) for kind in ("light", "mesh", "material", "exclude", "numeric")] == [
        ["sun"],
        ["tip"],
        ["steel"],
        ["apart"],
        ["gait"],
    ]
    assert "data" in dir(model.numeric(0)) and "vert" not in model.names("mesh")
    with pytest.raises(fl.UnknownNameError, match="unknown material 'stel'; did you mean 'steel'"):
        model.material("stel")
    with pytest.raises(AttributeError, match="light 'sun' has no 'difuse'; did you mean 'diffuse'"):
        model.light("sun").difuse  # noqa: B018


ROWS = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
<body name="a" pos="0 0 1"><joint name="arm" axis="0 1 0" frictionloss=".2" range="-5 1" limited="true"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body>
<body name="box" pos="2 0 .0999"><freejoint/><geom name="foot" type="box" size=".1 .1 .1" mass="2"/></body>
<body name="hung" pos="0 3 1"><freejoint/><geom name="ball" size=".05" mass="2"/></body></worldbody>
<tendon><fixed name="cable" frictionloss=".1"><joint joint="arm" coef="1"/></fixed></tendon>
<equality><connect name="pin" body1="hung" anchor="0 0 .1"/></equality></mujoco>"""


def test_rows_of_the_lcp_name_their_elements():
    model = fl.load(ROWS, links=[fl.Link("hinge", "hung", "a", anchor=(0, 3, 1), axis=(0, 0, 1), name="hook")])
    data = fl.Data(model)
    data.qpos[0] = 1.01
    fl.step(model, data, 3)
    fl.forward(model, data)
    problem = fl.lcp.Problem.from_data(data)
    elements = problem.elements
    assert len(elements) == problem.n
    assert elements[:3] == [fl.lcp.RowElement("equality", "equality", 0, c, "pin") for c in range(3)]
    links = [e for e in elements if e.kind == "link"]
    assert links == [fl.lcp.RowElement("link", "link", 0, c, "hook") for c in range(5)]
    assert fl.lcp.RowElement("loss", "joint", 0, 0, "arm") in elements
    assert fl.lcp.RowElement("loss", "tendon", 0, 0, "cable") in elements
    assert fl.lcp.RowElement("limit", "joint", 0, 0, "arm") in elements
    x = fl.lcp.solve(problem).x
    pin = [i for i, e in enumerate(elements) if e.name == "pin"]
    np.testing.assert_allclose(x[pin], fl.query.equality_force(model, data, "pin"), atol=1e-8)
    assert data.ncon == 4
    for contact in range(4):
        own = [i for i, e in enumerate(elements) if (e.kind, e.id) == ("contact", contact)]
        assert [elements[i][3:] for i in own] == [(c, "floor, foot") for c in range(3)]
        assert [elements[i].law for i in own] == ["normal", "friction", "friction"]
        np.testing.assert_allclose(x[own], fl.query.contact_force(model, data, contact)[:3], atol=1e-8)
    assert fl.lcp.Problem(np.eye(2), [1, 1], lo=0, hi=1).elements == []
