"""A frozen world has the bits of `fl.step`, refuses by name what it cannot do, and opens only files that fit."""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import pickle
import re
import zipfile

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import link, processor
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.errors import UnknownAttributeError

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(processor.host()[0] != "linux", reason="frozen worlds run on Linux"),
    pytest.mark.skipif(bool(link.linking_problem()), reason="needs a C compiler"),
]
STEPS = 200
NATIVE = [level for level in processor.levels_of_architecture() if level in processor.levels()]
CONVEX_PAIR = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
<body pos="0 0 .3"><freejoint/><geom type="cylinder" size=".2 .3"/></body>
<body pos=".05 0 .8"><freejoint/><geom type="box" size=".2 .2 .2"/></body></worldbody></mujoco>"""
LEG = """<mujoco><option integrator="{integrator}"/><worldbody><geom type="plane" size="5 5 .1"/>
<body pos="0 0 .6"><joint name="slide" type="slide" axis="0 0 1" damping="1"/><geom size=".1"/>
<site name="top" pos=".05 0 0"/><body name="leg" pos="0 0 -.1"><joint name="knee" axis="0 1 0" range="-1 1"/>
<geom type="capsule" fromto="0 0 0 0 0 -.45" size=".04"/><site name="foot" pos=".05 0 -.3"/></body></body></worldbody>
<tendon><spatial name="string" limited="true" range="0 .5" stiffness="20"><site site="top"/><site site="foot"/>
</spatial></tendon>
<actuator><muscle name="calf" tendon="string" ctrlrange="0 1"/><motor joint="knee" gear="5"/></actuator>
<sensor><accelerometer name="imu" site="top"/><tendonpos tendon="string"/><touch site="foot"/></sensor></mujoco>"""
ASLEEP = """<mujoco><option><flag sleep="enable"/></option><worldbody><geom type="plane" size="5 5 .1"/>
<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body pos="1 0 .3"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""


def bundled(name: str, **options):
    def load():
        model = fl.bundled(name)
        for option, value in options.items():
            setattr(model.opt, option, value)
        return model

    return load


MODELS = {
    "pendulum": bundled("pendulum"),
    "arm": bundled("arm"),
    "humanoid": bundled("humanoid"),
    "boxes": bundled("box_stack"),
    "boxes, lcp": bundled("box_stack", contact_model="lcp"),
    "boxes, coulomb": bundled("box_stack", contact_model="coulomb"),
    "quadruped, pgs": bundled("quadruped_elliptic", solver="pgs"),
    "slider_crank, implicit": bundled("slider_crank", integrator="implicit"),
    "convex pair": lambda: fl.load(CONVEX_PAIR),
    "muscle, tendon, sensors": lambda: fl.load(LEG.format(integrator="Euler")),
    "muscle, RK4": lambda: fl.load(LEG.format(integrator="RK4")),
    "sleep": lambda: fl.load(ASLEEP),
}


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """A model, the path of its frozen world, and the hash of the file."""
    model, path = fl.bundled("arm"), tmp_path_factory.mktemp("frozen") / "arm.flz"
    return model, path, fl.freeze(model, path)


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    model, path = fl.bundled("box_stack"), tmp_path_factory.mktemp("frozen") / "boxes.flz"
    fl.freeze(model, path)
    return model, path


def different(data: fl.Data, world) -> list[str]:
    """Returns names of fields whose memory differs, without addresses."""
    names = [f.name for f in DATA.fields if f.kind != "size" and f.role != "pointer"]
    pairs = {name: (data.workspace.view(name), getattr(world, name)) for name in names}
    return [name for name, (a, b) in pairs.items() if a.tobytes() != np.asarray(b, a.dtype).tobytes()]


# ---- bits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_all_memory_is_that_of_a_data(name, tmp_path, rng):
    model = MODELS[name]()
    fl.freeze(model, tmp_path / "world.flz")
    world, data = fl.thaw(tmp_path / "world.flz"), fl.Data(model)
    assert not different(data, world)
    for _ in range(STEPS):
        data.ctrl = world.ctrl = rng.uniform(-1, 1, model.nu)
        data.step()
        world.step()
    assert not different(data, world)
    data.forward()
    world.forward()
    data.step(3)
    world.step(3)
    assert not different(data, world)
    np.testing.assert_array_equal(world.get_state(), data.get_state())


@pytest.mark.skipif(len(NATIVE) < 2, reason="this machine has one CPU level")
@pytest.mark.parametrize("name", MODELS)
def test_all_levels_of_this_machine_have_equal_hashes(name, tmp_path):
    """The expected hash is that of the best level."""
    for level in NATIVE:
        fl.freeze(MODELS[name](), tmp_path / f"{level}.flz", targets=[level], width=(1, "batch"))
        for nworld in (None, 11):
            assert fl.thaw(tmp_path / f"{level}.flz", nworld=nworld).self_test(), (level, nworld)


def test_a_reset_world_repeats_its_motion(boxes):
    world = fl.thaw(boxes[1])
    start = world.get_state()
    world.step(50)
    end = world.get_state()
    world.reset()
    np.testing.assert_array_equal(world.get_state(), start)
    assert not world.xpos.any() and world.ncon == 0  # derived fields are zero
    world.step(50)
    np.testing.assert_array_equal(world.get_state(), end)


def test_a_reset_restores_the_state_of_the_given_data(tmp_path):
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    data.step(30)
    fl.freeze(model, tmp_path / "world.flz", data=data)
    world = fl.thaw(tmp_path / "world.flz")
    np.testing.assert_array_equal(world.get_state(), data.get_state())
    world.step(20)
    world.reset()
    world.step(5)
    data.step(5)
    np.testing.assert_array_equal(world.get_state(), data.get_state())


def test_states_are_exchanged_with_a_data(boxes):
    model, path = boxes
    data, world = fl.Data(model), fl.thaw(path)
    data.step(40)
    world.set_state(data.get_state())
    data.step(20)
    world.step(20)
    np.testing.assert_array_equal(world.get_state(), data.get_state())


def test_a_file_keeps_the_values_of_its_day(tmp_path):
    model = fl.bundled("pendulum")
    before = fl.freeze(model, tmp_path / "before.flz")
    model.body_mass[1] *= 2.0
    fl.set_const(model)
    after = fl.freeze(model, tmp_path / "after.flz")
    assert before != after
    first, second = (fl.thaw(tmp_path / f"{name}.flz").constant("body_mass")[1] for name in ("before", "after"))
    assert second == 2.0 * first == model.body_mass[1]


def test_equal_worlds_have_equal_files(arm, tmp_path):
    model, path, digest = arm
    assert fl.freeze(model, tmp_path / "arm.flz") == digest
    assert (tmp_path / "arm.flz").read_bytes() == path.read_bytes()


def test_the_self_test_detects_other_bits(arm, tmp_path):
    """A file whose mass differs in the last bit fits, and fails its self-test."""
    model, path, _ = arm
    assert fl.thaw(path).self_test()
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    mass, image = np.float64(model.body_mass[2]), members["model.bin"]
    assert image.count(mass.tobytes()) >= 1
    members["model.bin"] = image.replace(mass.tobytes(), np.nextafter(mass, 10.0).tobytes())
    manifest = json.loads(members.pop("manifest.json"))
    manifest["files"]["model.bin"] = hashlib.sha256(members["model.bin"]).hexdigest()
    text = json.dumps(manifest, separators=(",", ":")).encode()
    with zipfile.ZipFile(tmp_path / "other.flz", "w") as file:
        for name, content in {"manifest.json": text, **members}.items():
            file.writestr(name, content)
        digest = hashlib.sha256(text).hexdigest()
        file.comment = f"featherlane frozen world, SHA-256 of manifest.json: {digest}".encode()
    world = fl.thaw(tmp_path / "other.flz", trust=digest)
    assert not world.self_test()


def test_a_file_with_other_bits_is_not_written(monkeypatch, tmp_path):
    path = tmp_path / "world.flz"
    path.write_bytes(b"previous")
    module = importlib.import_module("featherlane.engine.simulation.frozen.freeze")
    monkeypatch.setattr(module, "moved", lambda *_: 64 * "0")
    with pytest.raises(fl.ModelError, match="the kernels have other bits than `step`"):
        fl.freeze(fl.bundled("pendulum"), path)
    assert path.read_bytes() == b"previous" and list(tmp_path.iterdir()) == [path]


# ---- fields ----------------------------------------------------------------------------------------------------------
def test_fields_have_the_shapes_and_types_of_a_data(boxes):
    model, path = boxes
    data, world = fl.Data(model), fl.thaw(path)
    data.step(20)
    world.step(20)
    assert (world.nq, world.nbody, world.nconmax) == (model.nq, model.nbody, data.nconmax)
    for name in ("time", "ncon", "nreset", "solver_niter", "qpos", "xmat", "xfrc_applied"):
        ours, theirs = getattr(world, name), getattr(data, name)
        assert type(ours) is type(theirs) and np.shape(ours) == np.shape(theirs), name
        np.testing.assert_array_equal(ours, theirs)
    assert world.status == data.status
    for name in ("body_mass", "geom_size", "opt_gravity", "jnt_type"):
        np.testing.assert_array_equal(world.constant(name), getattr(model, name, model.__dict__[name]))
    assert world.id("body", model.names("body")[2]) == 2


def test_contacts_are_those_of_a_data(boxes):
    model, path = boxes
    data, world = fl.Data(model), fl.thaw(path)
    data.step(60)
    world.step(60)
    assert len(world.contact) == data.ncon > 10
    for name in ("dist", "pos", "frame", "includemargin", "friction", "dim", "geom"):
        np.testing.assert_array_equal(world.contact[name], data.contact[name], err_msg=name)
    forces = [fl.query.contact_force(model, data, k) for k in range(data.ncon)]
    np.testing.assert_array_equal(world.contact.force, forces)


def test_inputs_are_assigned_and_results_are_not(arm):
    world = fl.thaw(arm[1])
    world.ctrl = 0.5
    world.qpos[:] = np.arange(7.0)
    assert world.ctrl.tolist() == [0.5] * 7 and world.get_state()[1:8].tolist() == list(range(7))
    with pytest.raises(UnknownAttributeError, match="xpos of a frozen world is computed"):
        world.xpos = 1.0
    with pytest.raises(ValueError, match="read-only"):
        world.xpos[:] = 1.0
    with pytest.raises(fl.ModelError, match=r"ctrl: got .*, allowed is what broadcasts to \(7,\)"):
        world.ctrl = np.zeros(6)
    with pytest.raises(fl.ModelError, match=r"state: got"):
        world.set_state(np.zeros(3))


def test_an_array_keeps_the_file_open(arm):
    qpos, mass = fl.thaw(arm[1]).qpos, fl.thaw(arm[1]).constant("body_mass")
    gc.collect()
    qpos += 1.0
    assert qpos.tolist() == (arm[0].qpos0 + 1.0).tolist() and mass.tolist() == arm[0].body_mass.tolist()


def test_worlds_of_one_file_are_independent(arm):
    first, second = fl.thaw(arm[1]), fl.thaw(arm[1])
    first.ctrl = 1.0
    first.step(10)
    assert first.time > 0.0 == second.time and not second.qvel.any()


# ---- refusals --------------------------------------------------------------------------------------------------------
def test_what_a_frozen_world_cannot_do_is_refused_by_name(arm):
    model, path, _ = arm
    world = fl.thaw(path)
    with pytest.raises(
        UnknownAttributeError, match=r"cannot do 'give_contacts', allowed are step, forward.*load the mo"
    ):
        world.give_contacts(None)
    with pytest.raises(UnknownAttributeError, match=r"no 'qpoz'; did you mean .*qpos"):
        _ = world.qpoz
    with pytest.raises(UnknownAttributeError, match="no field 'model' to set"):
        world.model = model
    with pytest.raises(fl.UnknownNameError, match="body: got 'wing'"):
        world.id("body", "wing")
    with pytest.raises(fl.UnknownNameError, match="constant: got 'mass'"):
        world.constant("mass")
    with pytest.raises(fl.ModelError, match="nstep: got 0"):
        world.step(0)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(world)
    for call in (fl.step, fl.linearize, fl.forward):
        with pytest.raises(TypeError, match="data: got FrozenWorld"):
            call(model, world)


def test_models_with_callbacks_and_other_sensors_are_refused_by_name(tmp_path):
    text = """<mujoco><worldbody><body name="b"><joint name="j"/><geom size=".1"/></body></worldbody>
    <actuator><general name="spring" joint="j" gaintype="user"/></actuator>
    <sensor><user name="tilt" dim="1"/></sensor></mujoco>"""
    model = fl.load(text)
    fl.set_user_sensor(model, "tilt", lambda model, xmat: xmat[..., 1, 8:], reads=("xmat",))
    fl.set_user_actuator(model, "spring", gain=lambda m, d, i: 1.0)
    with pytest.raises(fl.UnsupportedFeatureError, match="user callbacks cannot be frozen") as caught:
        fl.freeze(model, tmp_path / "world.flz")
    assert len(caught.value.features) == 2 and "'spring'" in caught.value.features[0]
    with pytest.raises(fl.UnsupportedFeatureError, match="tilt"):
        fl.freeze(fl.load(text), tmp_path / "world.flz")
    assert not list(tmp_path.iterdir())


def test_arguments_are_checked(arm, tmp_path):
    model, path, digest = arm
    with pytest.raises(TypeError, match="model: got NoneType"):
        fl.freeze(None, tmp_path / "a.flz")
    with pytest.raises(TypeError, match="data: got int"):
        fl.freeze(model, tmp_path / "a.flz", data=3)
    with pytest.raises(fl.ModelError, match=r"got .*a.zip', allowed is the path of a .flz file"):
        fl.freeze(model, tmp_path / "a.zip")
    with pytest.raises(fl.ModelError, match=r"targets: got 'sparc', allowed are .*aarch64"):
        fl.freeze(model, tmp_path / "a.flz", targets=("sparc",))
    with pytest.raises(TypeError, match="targets: got 'aarch64', allowed is a sequence"):
        fl.freeze(model, tmp_path / "a.flz", targets="aarch64")
    with pytest.raises(fl.ModelError, match="cannot be written"):
        fl.freeze(model, tmp_path / "folder" / "a.flz")
    with pytest.raises(fl.ModelError, match="cannot be read"):
        fl.thaw(tmp_path / "a.flz")
    with pytest.raises(fl.ModelError, match="trust: got 'abc', allowed are 64 hexadecimal digits"):
        fl.thaw(path, trust="abc")
    with pytest.raises(fl.ModelError, match=f"its hash is {digest}, trusted is 0000"):
        fl.thaw(path, trust=64 * "0")
    with pytest.raises(TypeError, match="path: got int"):
        fl.thaw(3)


def test_a_non_finite_state_is_reset_with_one_warning(arm):
    world = fl.thaw(arm[1])
    world.qvel[0] = np.nan
    with pytest.warns(fl.NonFiniteWarning, match="a frozen world had values"):
        world.step()
    assert world.nreset == 1 and world.status["non_finite"] == 1 and np.isfinite(world.qvel).all()


def test_no_other_integer_of_a_record_is_an_address():
    """Fields of the roles `address` and `pointer` are all that a file must leave out or relocate."""
    for model in (fl.bundled("humanoid"), fl.load(CONVEX_PAIR), fl.bundled("pile")):
        data = fl.Data(model)
        data.step(20)
        arrays, rows = data.workspace.arrays, data.workspace.rows.record.arrays
        spans = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in (*arrays.values(), *rows.values())]
        low, high = min(a for a, _ in spans), max(b for _, b in spans)
        found = [
            f.name
            for f in DATA.fields
            if f.kind == "long"
            and f.role not in ("address", "pointer")
            and any(
                first <= n < end
                for n in arrays[f.name][(arrays[f.name] >= low) & (arrays[f.name] < high)].tolist()
                for first, end in spans
            )
        ]
        assert not found


def test_the_file_lists_its_fields(arm):
    with zipfile.ZipFile(arm[1]) as file:
        manifest = file.read("manifest.json").decode()
        loader = file.read("c/featherlane.c").decode()
    assert '"format":1' in manifest and re.search(
        r'"name":"qpos","kind":"real","type":"f8","shape":\[7\],"unit":"m', manifest
    )
    assert "fl_world *fl_open(" in loader
