"""`to_mujoco` and `from_mujoco` of a `Data` and a `Batch`, against MuJoCo's own passes and steps."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.extension import read_fields
from scenes import sleep, touching

ROUNDING = 1e-9  # relative; values that are computed again, such as R of a row
STEP = 1e-10  # two engines, one step of converged solvers
# fields of MjData that `to_mujoco` does not write (docs/integrations/mujoco_data.md), or that are compared below
LEFT = set(
    """
    efc_J efc_J_colind efc_J_rowadr efc_J_rownnz efc_J_rowsuper efc_state nJ parena maxuse_arena maxuse_con maxuse_efc
    maxuse_stack solver_nnz solver_niter solver_fwdinv qH qHDiagInv qLU qDeriv xiquat geom_xquat site_xquat light_xpos
    light_xdir userdata ten_wrapadr ten_wrapnum wrap_obj wrap_xpos bvh_active contact model pbase pstack signature
    narena nbuffer nplugin body_awake_ind parent_awake_ind dof_awake_ind efc_Y efc_Y_colind efc_Y_rowadr efc_Y_rownnz
    efc_AR efc_AR_colind efc_AR_rowadr efc_AR_rownnz nA nY solver warning timer threadpool
""".split()
)
DUAL = {"iacc", "iacc_smooth", "iefc_aref", "iefc_force", "iefc_state", "ifrc_constraint", "ifrc_smooth"}


def scene(cone: str, option: str) -> str:
    return touching.XML.format(cone=cone).replace('jacobian="dense"', option)


SCENES = {
    f"{cone}-{kind}": scene(cone, option)
    for cone in ("elliptic", "pyramidal")
    for kind, option in {
        "dense": 'jacobian="dense"',
        "sparse": 'jacobian="sparse"',
        "pgs": 'solver="PGS"',
        "noslip": 'noslip_iterations="5"',
        "islands off": 'jacobian="dense"><flag island="disable"/></option><option',
    }.items()
}
BUNDLED = ("humanoid", "quadruped", "hand", "box_stack", "arm", "slider_crank")


def moved(model, nstep=60, seed=0):
    """Returns MuJoCo's data after some steps under random controls, with forces of the user."""
    mj, rng = model.mj_model, np.random.default_rng(seed)
    theirs = mujoco.MjData(mj)
    if mj.nkey:
        mujoco.mj_resetDataKeyframe(mj, theirs, 0)
    for _ in range(nstep):
        theirs.ctrl[:] = rng.uniform(-0.3, 0.3, mj.nu)
        mujoco.mj_step(mj, theirs)
    theirs.qfrc_applied[:] = 0.01
    return theirs


def differences(found, expected, left=LEFT):
    """Returns names of the fields of two MjData that differ, contacts included."""
    wrong = []
    names = [n for n in dir(expected) if not n.startswith("_") and n not in left and not n.startswith("efm_")]
    for a, b, prefix, fields in (
        (found, expected, "", names),
        (found.contact, expected.contact, "contact.", [n for n in dir(expected.contact) if n not in ("H",)]),
    ):
        for name in fields:
            x, y = getattr(a, name), getattr(b, name)
            if isinstance(y, np.ndarray):
                same = x.shape == y.shape and np.allclose(x, y, rtol=ROUNDING, atol=ROUNDING)
            else:
                same = x == y or not isinstance(y, int | float)
            wrong += [] if same else [prefix + name]
    return wrong


def same_rows(found, expected):
    """Compares Jacobians, stored in any form, and the states of rows."""
    mj = expected.model
    vector = np.random.default_rng(1).standard_normal(mj.nv)
    products = [np.zeros(expected.nefc) for _ in range(2)]
    for out, data in zip(products, (found, expected), strict=True):
        mujoco.mj_mulJacVec(mj, data, out, vector)
    np.testing.assert_allclose(*products, rtol=ROUNDING, atol=ROUNDING)
    if expected.nisland and mj.opt.solver != mujoco.mjtSolver.mjSOL_PGS and not mj.opt.noslip_iterations:
        np.testing.assert_array_equal(found.efc_state, expected.iefc_state[expected.map_efc2iefc])


FASTENED = """<mujoco>
  <worldbody>
    <body name="a" pos="0 0 1"> <freejoint/> <geom size=".1"/> </body>
    <body name="b" pos=".3 0 1"> <freejoint/> <geom size=".1"/> </body>
    <body name="c" pos=".6 0 1"> <joint axis="0 1 0"/> <geom size=".1" pos="0 0 .2"/> </body>
  </worldbody>
  <equality>
    <weld body1="a" body2="b"/> <connect body1="a" body2="c" anchor="0 0 .1"/>
  </equality>
</mujoco>"""


@pytest.mark.parametrize("after", ["mj_step", "mj_forward"])
@pytest.mark.parametrize("name", [*SCENES, *BUNDLED])
def test_a_round_trip_keeps_all_fields(name, after):
    model = fl.bundled(name) if name in BUNDLED else fl.load(SCENES[name])
    mj, theirs = model.mj_model, moved(model)
    if after == "mj_forward":
        mujoco.mj_forward(mj, theirs)
    data, found = fl.Data(model), mujoco.MjData(mj)
    data.from_mujoco(theirs)
    data.to_mujoco(found)
    dual = "pgs" in name or "noslip" in name  # MuJoCo does not write these for solvers in forces
    assert differences(found, theirs, LEFT | DUAL if dual else LEFT) == []
    same_rows(found, theirs)


@pytest.mark.parametrize("name", ["elliptic-dense", "pyramidal-sparse", "quadruped"])
def test_contacts_and_rows_of_mujoco_are_read(name):
    model = fl.bundled(name) if name in BUNDLED else fl.load(SCENES[name])
    theirs, data = moved(model), fl.Data(model)
    data.from_mujoco(theirs)
    assert (data.ncon, data.nefc, data.ne, data.nf, data.nl) == (
        theirs.ncon,
        theirs.nefc,
        theirs.ne,
        theirs.nf,
        theirs.nl,
    )
    for column in ("type", "id", "pos", "D", "aref", "force", "vel", "KBIP", "frictionloss"):
        expected = getattr(theirs, f"efc_{column}")
        np.testing.assert_allclose(getattr(data, f"efc_{column}"), expected, rtol=ROUNDING, atol=ROUNDING)
    for column in ("dist", "pos", "frame", "friction", "geom", "dim", "efc_address"):
        np.testing.assert_allclose(getattr(data.contact, column), getattr(theirs.contact, column), rtol=0, atol=0)
    wrench = np.zeros(6)
    for i in range(theirs.ncon):
        mujoco.mj_contactForce(model.mj_model, theirs, i, wrench)
        np.testing.assert_allclose(fl.query.contact_force(model, data, i), wrench, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("name", ["elliptic-dense", "pyramidal-sparse", "islands", "quadruped", "arm", "humanoid"])
def test_each_engine_continues_the_other_one(name):
    model = fl.bundled(name) if name in BUNDLED else fl.load(SCENES.get(name, SCENES["elliptic-islands off"]))
    mj, theirs = model.mj_model, moved(model)
    data = fl.Data(model)
    data.from_mujoco(theirs)
    data.step(5), mujoco.mj_step(mj, theirs, 5)
    np.testing.assert_allclose(data.qpos, theirs.qpos, rtol=0, atol=STEP)
    found = mujoco.MjData(mj)
    data.to_mujoco(found)
    data.step(5), mujoco.mj_step(mj, found, 5)
    np.testing.assert_allclose(found.qpos, data.qpos, rtol=0, atol=STEP)
    np.testing.assert_allclose(found.sensordata, data.workspace.view("sensordata"), rtol=STEP, atol=STEP)
    assert found.time == data.time


def test_forces_of_fastenings_of_mujoco_are_those_of_its_rows():
    """The three rows of a connect and the six of a weld are one constraint, whatever zeros their Jacobians have."""
    model = fl.load(FASTENED)
    theirs = model.to_mujoco()
    mj_data = mujoco.MjData(theirs)
    mj_data.qpos[0] += 0.01
    mj_data.qvel[:] = 0.1
    mujoco.mj_forward(theirs, mj_data)
    mujoco.mj_rnePostConstraint(theirs, mj_data)
    data = fl.Data(model)
    data.from_mujoco(mj_data)
    fl.stages.rne_post_constraint(model, data)
    np.testing.assert_allclose(data.cfrc_ext, mj_data.cfrc_ext, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(data.cfrc_int, mj_data.cfrc_int, rtol=1e-12, atol=1e-11)


def test_a_step_after_from_mujoco_is_the_step_after_set_state_bit_for_bit():
    model = fl.bundled("humanoid")
    theirs, bits = moved(model), fl.State.INTEGRATION
    vector = np.zeros(fl.state_size(model, bits))
    mujoco.mj_getState(model.mj_model, theirs, vector, int(bits))
    copied, stated = fl.Data(model), fl.Data(model)
    copied.step(30)  # memory of other contacts does not matter
    copied.from_mujoco(theirs), stated.set_state(vector)
    copied.step(), stated.step()
    np.testing.assert_array_equal(copied.qpos, stated.qpos)


def test_forward_is_that_of_mujoco():
    model = fl.load(SCENES["elliptic-dense"])
    theirs, data, found = moved(model), fl.Data(model), mujoco.MjData(model.mj_model)
    mujoco.mj_forward(model.mj_model, theirs)
    data.from_mujoco(theirs, "qpos qvel act time ctrl qfrc_applied qacc_warmstart".split())
    data.forward()
    data.to_mujoco(found)
    assert differences(found, theirs, LEFT | {"cacc", "cfrc_ext", "cfrc_int"}) == []  # lazily evaluated


def test_shared_arrays_copy_fields_of_both():
    model = fl.bundled("quadruped")
    data, mj_data = fl.Data(model), mujoco.MjData(model.mj_model)
    data.step(3)
    for ours, theirs in data.shared_arrays(mj_data, ("time", "qpos", "xmat")):
        theirs[:] = ours
    assert np.array_equal(mj_data.qpos, data.qpos) and np.array_equal(mj_data.xmat.ravel(), data.xmat.ravel())
    assert mj_data.time == 0.0 and not mj_data.qvel.any()
    with pytest.raises(fl.ModelError, match="shared_arrays"):
        data.shared_arrays(mj_data, ("qpos", "qpso"))


def test_fields_of_an_mjmodel_are_read_by_name():
    mj_model = mujoco.MjModel.from_xml_string("<mujoco><option timestep='.5'/></mujoco>")
    values = read_fields(mj_model)
    assert values["opt_timestep"] == 0.5 and "body_mass" in values
    values["opt_gravity"][2] = -1.0
    assert mj_model.opt.gravity[2] == -1.0


def test_energies_and_flags_of_lazy_fields():
    xml = SCENES["elliptic-dense"].replace("<worldbody>", '<option><flag energy="enable"/></option><worldbody>', 1)
    model = fl.load(xml)
    data, found = fl.Data(model), mujoco.MjData(model.mj_model)
    data.forward()
    data.to_mujoco(found)
    assert (found.flg_energypos, found.flg_energyvel, found.flg_rnepost) == (True, True, False)
    np.testing.assert_array_equal(found.energy, data.energy)
    assert found.energy[0] != 0.0


def test_sleeping_trees_stay_asleep():
    model = fl.load(sleep.scene(sleep.STACK + sleep.BALL))
    mj = model.mj_model
    theirs, data, found = mujoco.MjData(mj), fl.Data(model), mujoco.MjData(mj)
    mujoco.mj_step(mj, theirs, 300)
    assert (theirs.tree_asleep >= 0).any()
    data.from_mujoco(theirs)
    data.to_mujoco(found)
    np.testing.assert_array_equal(
        found.body_awake_ind[: found.nbody_awake], theirs.body_awake_ind[: theirs.nbody_awake]
    )
    for world in (theirs, data, found):  # the ball hits the stack
        world.qvel[18:24] = 3, 0, 0, 0, 30, 0
    for _ in range(20):
        mujoco.mj_step(mj, theirs), mujoco.mj_step(mj, found), data.step()
    np.testing.assert_array_equal(found.qpos, theirs.qpos)
    np.testing.assert_array_equal(data.tree_asleep, theirs.tree_asleep)


def test_counts_of_status_are_warnings():
    model = fl.bundled("cartpole")
    data, found = fl.Data(model), mujoco.MjData(model.mj_model)
    qpos, qvel, qacc, ctrl = (
        int(getattr(mujoco.mjtWarning, f"mjWARN_BAD{n}")) for n in ("QPOS", "QVEL", "QACC", "CTRL")
    )
    found.warning.number[[qpos, ctrl]] = 2, 3
    data.from_mujoco(found)
    assert (data.status["non_finite"], data.status["bad_control"]) == (2, 3)
    data.mute()
    data.qpos[0] = np.nan
    data.step()
    data.to_mujoco(found)
    assert data.status["non_finite"] == 3
    np.testing.assert_array_equal(found.warning.number[[qpos, qvel, qacc, ctrl]], [0, 0, 3, data.status["bad_control"]])


@pytest.mark.parametrize("dtype, tolerance", [("float64", STEP), ("float32", 1e-5)])
def test_a_world_of_a_batch_is_copied(dtype, tolerance):
    model = fl.bundled("quadruped")
    mj, theirs = model.mj_model, moved(model)
    theirs.xfrc_applied[1, 2] = 0.1
    batch, found = fl.Batch(model, 3, dtype=dtype), mujoco.MjData(mj)
    xpos = batch.bind("xpos")
    batch.from_mujoco(1, theirs)
    np.testing.assert_allclose(xpos[1], theirs.xpos, rtol=0, atol=tolerance)
    batch.to_mujoco(1, found)
    np.testing.assert_allclose(found.qpos, theirs.qpos, rtol=0, atol=tolerance)
    batch.step(), mujoco.mj_step(mj, found), mujoco.mj_step(mj, theirs)
    for other in (batch.qpos[1], found.qpos):
        np.testing.assert_allclose(other, theirs.qpos, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(batch.qpos[0], batch.qpos[2])
    assert batch.qpos[0][0] != batch.qpos[1][0]


# ---- errors ----------------------------------------------------------------------------------------------------------
def snapshot(mj_data):
    return mj_data.qpos.copy(), mj_data.ncon, mj_data.nefc, mj_data.efc_force.copy(), mj_data.time


def unchanged(mj_data, kept):
    return all(np.array_equal(a, b) for a, b in zip(snapshot(mj_data), kept, strict=True))


def test_other_sizes_are_named_and_nothing_is_written():
    model, other = fl.bundled("humanoid"), fl.bundled("quadruped")
    theirs, data, batch = moved(other), fl.Data(model), fl.Batch(model, 2)
    data.step(20)
    kept, before = snapshot(theirs), data.get_state()
    for call in (data.to_mujoco, data.from_mujoco, lambda d: batch.to_mujoco(0, d), lambda d: batch.from_mujoco(0, d)):
        with pytest.raises(fl.ModelError, match=rf"nq is {other.nq}, of the model {model.nq}"):
            call(theirs)
    assert unchanged(theirs, kept) and np.array_equal(data.get_state(), before)


def test_an_arena_that_is_too_small_is_reported_and_nothing_is_written():
    xml = '<mujoco><size memory="{}"/><worldbody><geom type="plane" size="9 9 1"/>{}</worldbody></mujoco>'
    body = "<body pos='{} 0 .049'><freejoint/><geom type='box' size='.05 .05 .05'/></body>"
    bodies = "".join(body.format(0.2 * k) for k in range(40))
    model, small = fl.load(xml.format("-1", bodies)), mujoco.MjModel.from_xml_string(xml.format("60K", bodies))
    data, theirs = fl.Data(model), mujoco.MjData(small)
    data.step()
    kept = snapshot(theirs)
    with pytest.raises(fl.ModelError, match=r"160 contacts.*memory"):
        data.to_mujoco(theirs)
    assert unchanged(theirs, kept)


def test_contacts_given_by_bodies_are_refused():
    model = fl.bundled("box_stack")
    data, theirs = fl.Data(model, given_contacts=1), mujoco.MjData(model.mj_model)
    data.give_contacts([-0.001], [[0, 0, 0.1]], [[0, 0, 1]], body=[[0, 1]])
    data.forward()
    with pytest.raises(fl.ModelError, match="bodies"):
        data.to_mujoco(theirs)
    assert theirs.ncon == 0


def test_sensors_that_are_not_computed_keep_the_values_of_mujoco():
    model = fl.load("""<mujoco><worldbody><body><joint type="slide"/><geom name="g" size=".1"/><site name="s" size="1"/>
      </body></worldbody><sensor><insidesite site="s" objtype="geom" objname="g" enclosed="true"/></sensor></mujoco>""")
    theirs, data = mujoco.MjData(model.mj_model), fl.Data(model)
    theirs.sensordata[:] = 7.0
    data.to_mujoco(theirs)
    assert theirs.sensordata[0] == 7.0
    with pytest.raises(fl.UnsupportedFeatureError, match="insidesite"):
        data.to_mujoco(theirs, ("qpos", "sensordata"))


def test_wrong_arguments():
    data = fl.Data(fl.bundled("cartpole"))
    theirs = mujoco.MjData(data.model.mj_model)
    with pytest.raises(TypeError, match=r"mujoco\.MjData"):
        data.to_mujoco(data)  # type: ignore[arg-type]
    with pytest.raises(fl.ModelError, match="did you mean 'qpos'"):
        data.from_mujoco(theirs, ("qpoz",))
    with pytest.raises(fl.ModelError, match="world"):
        fl.Batch(data.model, 2).from_mujoco(2, theirs)


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_the_derivative_by_velocity_is_written(integrator):
    model = fl.bundled("humanoid")
    model.opt.integrator = integrator
    model.mj_model.opt.integrator = int(model.opt.integrator)
    data, expected, written = fl.Data(model), mujoco.MjData(model.mj_model), mujoco.MjData(model.mj_model)
    data.qvel = expected.qvel[:] = np.linspace(-1, 1, model.nv)
    fl.step(model, data)
    mujoco.mj_step(model.mj_model, expected)
    data.to_mujoco(written)
    assert np.abs(expected.qDeriv).max() > 1
    np.testing.assert_allclose(written.qDeriv, expected.qDeriv, atol=1e-12)
    data.from_mujoco(expected)
    np.testing.assert_array_equal(data.qDeriv, expected.qDeriv)


@pytest.mark.parametrize("record", [True, False])
def test_the_iterations_of_the_solver_are_written(record):
    model = fl.bundled("humanoid")
    model.opt.solver = "cg"
    data, written = fl.Data(model), mujoco.MjData(model.mj_model)
    data.record_solver = record
    data.qpos[2] = 0.0
    data.forward()
    written.solver[0].nactive = 7
    data.to_mujoco(written)
    n = data.solver_niter
    assert n > 3 and written.solver_niter[0] == n
    gradient = [written.solver[k].gradient for k in range(n)]
    if record:
        np.testing.assert_array_equal(gradient, data.solver_history.gradient[1:])
        np.testing.assert_array_equal(
            [written.solver[k].improvement for k in range(n)], data.solver_history.improvement[1:]
        )
    else:
        assert gradient == [0.0] * (n - 1) + [data.solver_residual]
    assert written.solver[0].nactive == 0
