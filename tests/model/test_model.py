"""The host's model: live fields, checked options, access by name, copies."""

import copy
import importlib
import pickle

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes.layout import Field, Layout
from featherlane.engine.model import MODEL, load
from featherlane.engine.model.names import KINDS, NamedAccess
from featherlane.errors import ModelError, UnknownNameError
from scenes import joints


@pytest.fixture
def model():
    return load(joints.XML)


REALS = [f.name for f in MODEL.fields if f.kind == "real"]


def test_fields_are_views_of_one_buffer_in_layout_order(model):
    model.real_buffer[:] = np.arange(model.real_buffer.size)
    flat = np.concatenate([getattr(model, name).ravel() for name in REALS])
    assert np.array_equal(flat, np.arange(model.real_buffer.size))


def test_every_field_has_its_declared_shape(model):
    for field in MODEL.fields:
        value = getattr(model, field.name)
        if field.kind == "size":
            assert isinstance(value, int)
        else:
            assert value.shape == field.dims(model.size_values())
            assert model.rows[field.name].shape == (field.count(model.size_values()),)


def test_assignment_broadcasts_into_the_same_array(model):
    before = model.body_inertia
    model.body_inertia = [1, 2, 3]
    assert model.body_inertia is before
    assert np.array_equal(before, np.tile([1.0, 2.0, 3.0], (model.nbody, 1)))


@pytest.mark.parametrize("value", [[1, 2], "heavy", np.ones((2, 2))])
def test_assignment_of_a_wrong_shape_or_type_names_the_allowed_one(model, value):
    with pytest.raises(ModelError, match=r"body_mass: got .*broadcasts to \(7,\)"):
        model.body_mass = value


def test_an_unknown_name_raises_with_near_names(model):
    with pytest.raises(AttributeError, match="did you mean 'body_mass'"):
        model.body_mas = 1
    with pytest.raises(fl.errors.UnknownAttributeError):
        model.body_mas  # noqa: B018
    with pytest.raises(fl.errors.UnknownAttributeError, match="mat_rgba"):
        model.mat_rgba  # noqa: B018


@pytest.mark.parametrize("name", ["nv", "geom_type", "cand_geom1", "jnt_limited"])
def test_inputs_of_derived_fields_are_read_only(model, name):
    with pytest.raises(ModelError):
        setattr(model, name, 1)


def test_a_write_to_an_element_of_a_fixed_field_is_refused_with_the_reason(model):
    writes = {
        "item": lambda table: table.__setitem__(0, 0),
        "slice": lambda table: table[1:].__setitem__(0, 0),
        "in place": lambda table: table.__iadd__(1),
        "ufunc.at": lambda table: np.add.at(table, [0], 1),
    }
    for name, write in writes.items():
        with pytest.raises(ModelError, match=r"geom_contype is fixed when the model is loaded; change it in the XML"):
            write(model.geom_contype)
            pytest.fail(name)
    with pytest.raises(ModelError, match="type cannot be set: geom_type is fixed"):
        model.geom(0).type = 1
    twice = 2 * model.geom_contype
    copied = model.geom_contype.copy()
    copied[0] = twice[0] = 9
    assert type(twice) is np.ndarray and model.geom_contype[0] != 9


def test_index_tables_cannot_be_made_writable(model):
    tables = [a for name, a in model.rows.items() if MODEL[name].kind != "real"]
    for table in (model.int_buffer, model.scalar_buffer, model.geom_bodyid, *tables):
        assert not table.flags.writeable
        with pytest.raises(ValueError):
            table.flags.writeable = True


def test_flags_are_live_booleans(model):
    assert model.jnt_limited.dtype == bool
    model.actuator_ctrllimited[1] = True
    assert np.array_equal(model.rows["actuator_ctrllimited"], [1, 1, 0])
    model.actuator_ctrllimited = False
    assert not model.rows["actuator_ctrllimited"].any()


@pytest.mark.parametrize("value", ["rk4", "RK4", 1, mujoco.mjtIntegrator.mjINT_RK4, np.int32(1)])
def test_integrators_are_given_by_name_number_or_mujoco_enum(model, value):
    model.opt.integrator = value
    assert model.opt.integrator == 1 == model.opt_integrator == model.size_values()["opt_integrator"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timestep", 0),
        ("timestep", -1.0),
        ("timestep", float("nan")),
        ("tolerance", -1e-9),
        ("tolerance", "small"),
        ("impratio", 0),
        ("iterations", -1),
        ("iterations", 2.5),
        ("integrator", "rk5"),
        ("integrator", 17),
        ("gravity", [0, 0]),
        ("gravity", [0, 0, np.inf]),
        ("contact_model", "soft"),
        ("disableflags", 1 << 25),
        ("disableflags", mujoco.mjtDisableBit.mjDSBL_FILTERPARENT),
        ("density", -1.0),
        ("viscosity", -1e-3),
        ("viscosity", float("nan")),
    ],
)
def test_options_refuse_wrong_values(model, name, value):
    before = getattr(model.opt, name)
    with pytest.raises(ModelError):
        setattr(model.opt, name, value)
    assert np.array_equal(getattr(model.opt, name), before)


def test_an_unknown_option_raises_attribute_error(model):
    with pytest.raises(fl.errors.UnknownAttributeError):
        model.opt.timestp = 0.1


def test_option_edits_reach_the_record(model):
    revision = model.revision
    model.opt.timestep = 0.5
    model.opt_tolerance = 1e-3
    model.opt.gravity[2] = -1
    model.opt.iterations = 7
    assert model.opt_timestep[0] == 0.5 and model.opt.tolerance == 1e-3 and model.opt_gravity[2] == -1
    assert model.size_values()["opt_iterations"] == 7
    assert model.revision > revision


def test_named_objects_show_their_rows(model):
    [adr], [dof] = model.joint("shoulder").qposadr, model.joint("shoulder").dofadr
    assert np.array_equal(model.joint("shoulder").qpos0, model.qpos0[adr : adr + 4])
    assert np.array_equal(model.joint("shoulder").damping, model.dof_damping[dof : dof + 3])
    assert model.body("hand").mass == model.body_mass[model.body("hand").id]
    assert model.body("hand").name == "hand"
    assert np.array_equal(model.joint("wrist").range, [-0.5, 0.7])
    assert model.actuator("kick").gear[0] == 30
    assert np.array_equal(model.actuator(1).forcerange, [-5, 5])
    assert model.keyframe("up").time == 2
    assert model.pair("clash").dim == 3


def test_an_ambiguous_prefix_selects_the_first_field(model):
    joint = model.joint("wrist")
    joint.dof_solref = [0.5, 0.5]
    assert not np.array_equal(joint.solref, [0.5, 0.5])
    assert np.array_equal(model.dof_solref[joint.dofadr[0]], [0.5, 0.5])


def test_named_objects_write_through(model):
    model.body("hand").mass = 9
    model.joint("root").armature = [1, 2, 3, 4, 5, 6]
    assert model.body_mass[model.body("hand").id] == 9
    assert np.array_equal(model.dof_armature[:6], [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"link"}))
def test_names_equal_mujoco(model, kind):
    accessor = {"joint": "jnt", "camera": "cam", "keyframe": "key"}.get(kind, kind)
    count = getattr(model.mj_model, KINDS[kind].count)
    assert model.names(kind) == [getattr(model.mj_model, accessor)(i).name for i in range(count)]


def test_unknown_objects_are_key_errors_with_near_names(model):
    with pytest.raises(UnknownNameError, match="unknown body 'tors'; did you mean 'torso'"):
        model.body("tors")
    with pytest.raises(UnknownNameError):
        model.body(-1)
    with pytest.raises(UnknownNameError):
        model.actuator("")
    with pytest.raises(fl.errors.UnknownAttributeError):
        model.body("torso").maas  # noqa: B018


class Worlds(NamedAccess):
    """Returns data of two worlds in the layout of a batch."""

    layout = Layout("Data", (Field("qpos", "real", ("nq",)), Field("xpos", "real", ("nbody", 3))))
    world_axes = 1

    def __init__(self, model):
        self.model = model
        self.qpos = np.arange(2.0 * model.nq).reshape(2, model.nq)
        self.xpos = np.zeros((2, model.nbody, 3))


def test_named_objects_of_many_worlds_keep_the_world_axis(model):
    worlds = Worlds(model)
    worlds.body("hand").xpos = [[1, 2, 3], [4, 5, 6]]
    assert np.array_equal(worlds.xpos[:, model.body("hand").id], [[1, 2, 3], [4, 5, 6]])
    assert np.array_equal(worlds.joint("root").qpos, worlds.qpos[:, :7])


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_equal_and_independent(model, duplicate):
    model.body_mass[1] = 5
    model.opt.iterations = 3
    twin = duplicate(model)
    assert np.array_equal(twin.real_buffer, model.real_buffer) and np.array_equal(twin.int_buffer, model.int_buffer)
    twin.body_mass[1] = 6
    twin.opt.timestep = 1
    twin.opt.iterations = 4
    twin.actuator_ctrllimited = False
    assert model.body_mass[1] == 5 and model.opt.timestep == 0.004 and model.opt.iterations == 3
    assert model.actuator_ctrllimited.any() and twin.body("hand").id == model.body("hand").id
    assert np.shares_memory(twin.body_mass, twin.real_buffer)


@pytest.mark.parametrize("name", ["geom_pos", "geom_quat", "site_pos", "site_quat", "body_ipos", "body_iquat"])
def test_to_mujoco_moves_frames_that_coincided(name):
    """MuJoCo's kinematics skips offsets that are zero at compile time."""
    model = load(
        "<mujoco><worldbody><body><joint pos='0 0 .1'/><geom type='box' size='.1 .2 .3'/><site/></body>"
        "</worldbody></mujoco>"
    )
    getattr(model, name)[-1] = (0.8, 0.6, 0.0, 0.0) if "quat" in name else (0.1, 0.2, 0.3)
    ours, theirs = fl.Data(model), mujoco.MjData(model.to_mujoco())
    fl.forward(model, ours)
    mujoco.mj_forward(model.to_mujoco(), theirs)
    frame = {"body_ipos": "xipos", "body_iquat": "ximat"}.get(name, f"{name[:4]}_x{'pos' if 'pos' in name else 'mat'}")
    np.testing.assert_allclose(getattr(ours, frame), getattr(theirs, frame).reshape(getattr(ours, frame).shape))


def test_to_mujoco_holds_all_edits_and_leaves_the_original(model):
    model.body_mass *= 2
    model.opt.timestep = 0.01
    model.opt.integrator = "implicitfast"
    model.actuator_forcelimited[0] = True
    mj = model.to_mujoco()
    assert np.array_equal(mj.body_mass, model.body_mass)
    assert mj.opt.timestep == 0.01 and mj.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert mj.actuator_forcelimited[0]
    assert model.mj_model.opt.timestep == 0.004


def test_keyframes_are_live(model):
    assert model.nkey == 2 and model.key_qvel[1, 0] == 1
    model.key_ctrl[0] = 0.5
    assert np.array_equal(model.keyframe("up").ctrl, [0.5, 0.5, 0.5])


def test_statistics(model):
    assert model.stat.meaninertia == model.mj_model.stat.meaninertia
    model.stat.meaninertia = 3
    assert model.stat_meaninertia[0] == 3
    with pytest.raises(ModelError):
        model.stat.meaninertia = 0


def test_repr_is_one_line(model):
    assert repr(model) == f"Model('XML text', nq=15, nv=13, nu=3, nbody=7, ngeom=6, ncand={model.ncand})"
    assert "\n" not in repr(model.opt) + repr(model.body(1))


@pytest.mark.parametrize("owner", ["model", "data", "batch"])
def test_access_by_name_does_not_search_near_names(owner, monkeypatch):
    """The search takes milliseconds; it runs for missing names only."""
    model = fl.bundled("arm")
    owners = {"model": model, "data": fl.Data(model), "batch": fl.Batch(model, 2)}
    for place in ("model.model", "model.names", "simulation.world.data_fields", "simulation.batch.world_fields"):
        module = importlib.import_module(f"featherlane.engine.{place}")
        monkeypatch.setattr(module, "near", lambda *_: pytest.fail("near names were looked for"), raising=False)
    view = owners[owner].body("hand")
    assert view.name == "hand"
    assert (view.mass if owner == "model" else owners[owner].joint("hand_roll").qpos) is not None


def test_a_copy_checks_only_changed_fields(monkeypatch):
    monkeypatch.setattr(
        "featherlane.errors.get_close_matches", lambda *given, **more: pytest.fail("names are compared")
    )
    model = fl.bundled("arm")
    for owner in (model, fl.Data(model), fl.Batch(model, 1)):
        assert not hasattr(owner, "__array_struct__")
    other = copy.deepcopy(model)
    assert not np.shares_memory(other.real_buffer, model.real_buffer)
    other.__dict__["body_mass"][2] = -1.0  # written as the engine writes, not through the live array
    with pytest.raises(fl.ModelError):
        fl.Data(other)
    fl.Data(model)
    model.body_mass[2] = -1.0
    with pytest.raises(fl.ModelError):
        fl.Data(copy.deepcopy(model))


@pytest.mark.parametrize("owner", ["model", "data"])
def test_named_objects_have_mujocos_shapes(model, owner):
    """A single number has the shape (1,): it is live, too."""
    mj = model.to_mujoco()
    ours, theirs = (model, mj) if owner == "model" else (fl.Data(model), mujoco.MjData(mj))
    compared = set()
    for kind in ("body", "joint", "geom", "site", "actuator", "sensor", "tendon", "camera"):
        for i in range(getattr(mj, {"joint": "njnt", "camera": "ncam", "actuator": "nactuator"}.get(kind, f"n{kind}"))):
            own, expected = getattr(ours, kind)(i), getattr(theirs, kind)(i)
            for name in set(dir(own)) & set(dir(expected)) - {
                "id",
                "name",
                "bodyid",
            }:  # a joint has two fields `bodyid`
                assert np.shape(getattr(own, name)) == np.shape(getattr(expected, name)), (kind, name)
                compared.add(name)
    assert len(compared) > 15


def test_single_numbers_of_named_objects_are_live(model):
    data, batch = fl.Data(model), fl.Batch(model, 3)
    data.actuator(0).ctrl[:] = 0.5
    assert data.ctrl[0] == 0.5
    batch.actuator(0).ctrl[:] = [[1.0], [2.0], [3.0]]
    assert batch.ctrl[:, 0].tolist() == [1.0, 2.0, 3.0]
    model.body(1).mass[:] = 7.0
    assert model.body_mass[1] == 7.0
