"""Calls of public functions with wrong arguments: one clear error for any argument."""

import ast
import builtins
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes.processor import base_of

WRONG = [
    "", "x", "\0", None, -1, 10**9, 1.5, np.nan, [], [1, 2], ["a"], [[1], [2, 3]], {}, object(), b"", True, 1j,
    np.zeros((2, 2)), np.zeros(0),
]  # fmt: skip
UP, DOWN = (0, 0, 1), (0, 0, -1)
CALLS = {
    "load": lambda m, d, b, v: fl.load(v),
    "assets": lambda m, d, b, v: fl.load("<mujoco/>", assets=v),
    "links": lambda m, d, b, v: fl.bundled("box_stack", links=v),
    "Data": lambda m, d, b, v: fl.Data(v),
    "given_contacts": lambda m, d, b, v: fl.Data(m, min(v, 9) if isinstance(v, int) else v),
    "Batch": lambda m, d, b, v: fl.Batch(v, 2),
    "record_failures": lambda m, d, b, v: fl.Batch(m, 2, record_failures=min(v, 9) if isinstance(v, int) else v),
    "load_failure": lambda m, d, b, v: fl.load_failure(v),
    "freeze": lambda m, d, b, v: fl.freeze(m, v),
    "thaw": lambda m, d, b, v: fl.thaw(v),
    "dtype": lambda m, d, b, v: fl.Batch(m, 2, dtype=v),
    "step model": lambda m, d, b, v: fl.step(v, d),
    "step data": lambda m, d, b, v: fl.step(m, v),
    "ids": lambda m, d, b, v: b.step(1, ids=v),
    "reset": lambda m, d, b, v: b.reset(v),
    "keyframe": lambda m, d, b, v: b.reset(keyframe=v),
    "control": lambda m, d, b, v: b.rollout(2, control=v),
    "record": lambda m, d, b, v: b.rollout(2, record=v),
    "out": lambda m, d, b, v: b.rollout(2, out=v),
    "bind": lambda m, d, b, v: b.bind(v),
    "expand": lambda m, d, b, v: b.expand(v),
    "expanded": lambda m, d, b, v: b.expanded(v),
    "get_model": lambda m, d, b, v: b.get_model(v),
    "restore": lambda m, d, b, v: b.restore(v),
    "inverse": lambda m, d, b, v: b.inverse(v),
    "data keyframe": lambda m, d, b, v: d.reset(keyframe=v),
    "body": lambda m, d, b, v: m.body(v),
    "names": lambda m, d, b, v: m.names(v),
    "point": lambda m, d, b, v: fl.query.ray(m, d, v, UP),
    "direction": lambda m, d, b, v: b.ray(UP, v),
    "geomgroup": lambda m, d, b, v: fl.query.ray(m, d, UP, DOWN, geomgroup=v),
    "bodyexclude": lambda m, d, b, v: fl.query.ray(m, d, UP, DOWN, bodyexclude=v),
    "cutoff": lambda m, d, b, v: fl.query.ray(m, d, UP, DOWN, cutoff=v),
    "geoms": lambda m, d, b, v: fl.query.ray(m, d, UP, DOWN, geoms=v),
    "present_fields": lambda m, d, b, v: b.present_fields(v),
    "geom": lambda m, d, b, v: fl.query.geom_distance(m, d, v, 1),
    "distmax": lambda m, d, b, v: fl.query.geom_distance(m, d, 0, 1, v),
    "jac": lambda m, d, b, v: fl.query.jac(m, d, v, 1),
    "jac_geom": lambda m, d, b, v: fl.query.jac_geom(m, d, v),
    "mul_m": lambda m, d, b, v: fl.query.mul_m(m, d, v),
    "solve_m": lambda m, d, b, v: fl.query.solve_m(m, d, v),
    "force": lambda m, d, b, v: fl.query.apply_ft(m, d, v, UP, UP, 1),
    "contact": lambda m, d, b, v: fl.query.contact_force(m, d, v),
    "kind": lambda m, d, b, v: fl.query.object_velocity(m, d, (v, 1)),
    "get_state": lambda m, d, b, v: fl.get_state(m, d, v),
    "set_state": lambda m, d, b, v: fl.set_state(m, d, v, 1),
    "set_keyframe": lambda m, d, b, v: fl.set_keyframe(m, d, v),
    "eps": lambda m, d, b, v: fl.linearize(m, d, eps=v, method="finite_difference"),
    "loss_gradient": lambda m, d, b, v: fl.rollout_gradient(m, b, np.zeros((2, m.nu)), loss_gradient=v),
    "control of a gradient": lambda m, d, b, v: fl.rollout_gradient(m, b, v, loss_gradient=np.ones((3, 2 * m.nv))),
    "interval": lambda m, d, b, v: fl.rollout_gradient(
        m, b, np.zeros((2, m.nu)), loss_gradient=np.ones((3, 2 * m.nv)), parameters=(), interval=v
    ),
    "integrate_pos": lambda m, d, b, v: fl.integrate_pos(m, v, d.qvel, 0.1),
    "integrate_pos dt": lambda m, d, b, v: fl.integrate_pos(m, d.qpos, d.qvel, v),
    "differentiate_pos": lambda m, d, b, v: fl.differentiate_pos(m, 0.1, v, d.qpos),
    "differentiate_pos dt": lambda m, d, b, v: fl.differentiate_pos(m, v, d.qpos, d.qpos),
    "tendon_path": lambda m, d, b, v: fl.query.tendon_path(m, d, v),
    "set_length_range": lambda m, d, b, v: fl.set_length_range(m, v),
    "read_ctrl": lambda m, d, b, v: fl.read_ctrl(m, d, v, 0.0),
    "read_sensor": lambda m, d, b, v: fl.read_sensor(m, d, v, 0.0),
    "rng": lambda m, d, b, v: fl.add_sensor_noise(m, d, v),
    "give_contacts": lambda m, d, b, v: d.give_contacts(v, UP, UP),
    "parents": lambda m, d, b, v: fl.tree.depth(v),
    "A": lambda m, d, b, v: fl.lcp.Problem(v, [1.0], lo=[0.0], hi=[9.0]),
    "method": lambda m, d, b, v: fl.lcp.solve(fl.lcp.Problem(np.eye(1), [1.0], lo=[0.0], hi=[9.0]), method=v),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_one_clear_error(name):
    model = fl.bundled("arm")
    data, batch = fl.Data(model), fl.Batch(model, 3)
    for value in WRONG:
        try:
            CALLS[name](model, data, batch, value)
        except fl.FeatherlaneError as error:
            assert str(error), f"{value!r}: {type(error).__name__}"
    fl.step(model, data)
    batch.step()


NO_MODEL = {
    "set_const": lambda v, m, d: fl.set_const(v),
    "set_length_range": lambda v, m, d: fl.set_length_range(v),
    "integrate_pos": lambda v, m, d: fl.integrate_pos(v, d.qpos, d.qvel, 0.1),
    "differentiate_pos": lambda v, m, d: fl.differentiate_pos(v, 0.1, d.qpos, d.qpos),
    "normalize_quat": lambda v, m, d: fl.normalize_quat(v, d.qpos),
    "state_size": lambda v, m, d: fl.state_size(v, 1),
    "inverse": lambda v, m, d: fl.inverse(v, d),
    "compare_forward_inverse": lambda v, m, d: fl.stages.compare_forward_inverse(v, d),
    "transition_fd": lambda v, m, d: fl.linearize(v, d, method="finite_difference"),
    "transition": lambda v, m, d: fl.linearize(v, d),
    "rollout_gradient": lambda v, m, d: fl.rollout_gradient(v, fl.Batch(m, 1), np.zeros((2, m.nu)), loss_gradient=len),
    "acceleration_derivatives": lambda v, m, d: fl.acceleration_derivatives(v, d),
    "passive": lambda v, m, d: fl.stages.passive(v, d),
    "aba": lambda v, m, d: fl.stages.aba(v, d),
    "euler": lambda v, m, d: fl.stages.euler(v, d),
    "object_velocity": lambda v, m, d: fl.query.object_velocity(v, d, ("body", 1)),
    "set_user_sensor": lambda v, m, d: fl.set_user_sensor(v, 0, None),
    "set_user_actuator": lambda v, m, d: fl.set_user_actuator(v, gain=len),
    "geom_distance": lambda v, m, d: fl.query.geom_distance(v, d, 0, 1),
    "ray": lambda v, m, d: fl.query.ray(v, d, UP, DOWN),
    "tendon_path": lambda v, m, d: fl.query.tendon_path(v, d, 0),
    "add_sensor_noise": lambda v, m, d: fl.add_sensor_noise(v, d),
}


# errors that are also Python errors: name -> (call, that error)
ALSO_PYTHONS = {
    "no attribute of a model": (lambda m, d, b: m.body_mas, AttributeError),
    "no attribute of a data": (lambda m, d, b: d.qpoz, AttributeError),
    "no attribute of a batch": (lambda m, d, b: b.qpoz, AttributeError),
    "no attribute of a body": (lambda m, d, b: m.body(1).maas, AttributeError),
    "no name of the package": (lambda m, d, b: fl.lod, AttributeError),
    "an option that is not there": (lambda m, d, b: setattr(m.opt, "timestp", 1), AttributeError),
    "a computed field": (lambda m, d, b: setattr(d, "con_geom", 1), AttributeError),
    "a failure that is not kept": (lambda m, d, b: b.failures, AttributeError),
    "no model": (lambda m, d, b: fl.Data(3), TypeError),
    "no data": (lambda m, d, b: fl.step(m, 3), TypeError),
    "no batch": (lambda m, d, b: fl.rollout_gradient(m, 3, np.zeros((2, m.nu)), loss_gradient=len), TypeError),
    "no contact": (lambda m, d, b: fl.query.contact_force(m, d, 99), IndexError),
    "no function of a kernel": (lambda m, d, b: fl.kernel(3), TypeError),
    "no precision": (lambda m, d, b: base_of("int"), ValueError),
    "no parents": (lambda m, d, b: fl.tree.depth([5, 5]), ValueError),
    "a singular matrix": (lambda m, d, b: fl.tree.ltl(np.zeros((2, 2)), [-1, 0]), np.linalg.LinAlgError),
    "points": (lambda m, d, b: fl.registration.register_points("x", np.eye(3)), ValueError),
    "a spread batch": (lambda m, d, b: copy.copy(fl.distributed.Batch(m, 2)), TypeError),
    "a surrogate in XML": (lambda m, d, b: fl.load("<mujoco model='\ud800'/>"), ValueError),
    "a surrogate in a path": (lambda m, d, b: fl.load("\udc80.xml"), ValueError),
    "a surrogate in an asset": (lambda m, d, b: fl.load("<mujoco/>", assets={"\udc80": b""}), ValueError),
    "a surrogate in a body of a link": (
        lambda m, d, b: fl.bundled("box_stack", links=fl.Link("ball", "\ud800")),
        ValueError,
    ),
}


@pytest.mark.parametrize("name", ALSO_PYTHONS)
def test_every_refusal_is_a_featherlane_error_and_pythons(name):
    call, kind = ALSO_PYTHONS[name]
    model = fl.bundled("arm")
    with pytest.raises(fl.FeatherlaneError) as error:
        call(model, fl.Data(model), fl.Batch(model, 2))
    assert isinstance(error.value, kind)
    assert pickle.loads(pickle.dumps(error.value)).args == error.value.args


# builtin errors that are never raised to a caller: they are caught internally, or stop the interpreter
INTERNAL = {
    ("engine/lanes/rows.py", "AttributeError"),  # uncompiled kernels raise what Python's tuples do
    ("engine/lanes/rows.py", "TypeError"),
    ("engine/lanes/values.py", "TypeError"),
    ("apps/cli/output.py", "BrokenPipeError"),
    ("engine/simulation/frozen/freeze.py", "AssertionError"),  # of two plans of a batch, which no argument changes
    ("integrations/mujoco_rollout.py", "RuntimeError"),  # the errors of mujoco.rollout
    ("integrations/mujoco_rollout.py", "ValueError"),
    *(
        (f"integrations/{file}.py", name)  # the errors of mujoco.batch
        for file in (
            "mujoco_batch",
            *(f"batch/{part}" for part in ("arguments", "calls", "models", "named", "records")),
        )
        for name in ("ValueError", "IndexError", "AttributeError", "TypeError")
    ),
    ("integrations/mjbatch.py", "ValueError"),  # the errors of mjbatch
    ("integrations/mjbatch.py", "RuntimeError"),
    ("integrations/unisim.py", "NotImplementedError"),  # as of all backends of UniSim
    ("engine/model/assignment.py", "ValueError"),
    ("engine/model/scene_meshes.py", "FileNotFoundError"),  # become ModelErrors with the names of mesh and file
    ("engine/model/scene_meshes.py", "ValueError"),
    ("engine/model/stl_text.py", "ValueError"),  # becomes a ModelError with the name of the source
    ("engine/model/source.py", "ValueError"),  # becomes a ModelError with the name of the source
    ("distributed/interrupt.py", "KeyboardInterrupt"),
    ("distributed/sweeps/run_directory.py", "ValueError"),
    ("engine/model/model.py", "AttributeError"),
    ("engine/model/option.py", "TypeError"),
    ("viewer/session.py", "AssertionError"),
}


def test_only_errors_of_the_package_are_raised():
    found = set()
    for path in Path(fl.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            raised = node.exc if isinstance(node, ast.Raise) else None
            name = getattr(getattr(raised, "func", raised), "id", "")
            if isinstance(getattr(builtins, name, None), type) and name != "SystemExit":
                found.add((str(path.relative_to(fl.__path__[0])), name))
    assert found <= INTERNAL


@pytest.mark.parametrize("name", NO_MODEL)
def test_an_invalid_model_is_reported(name):
    model = fl.bundled("arm")
    for value in (None, 0.0, "arm", model.mj_model):
        with pytest.raises(TypeError, match=r"model: got .*, allowed is a Model"):
            NO_MODEL[name](value, model, fl.Data(model))


CONTACT = dict(dist=[-0.01], pos=[UP], frame=[[0.0, 0.0, 1.0]], body=[[0, 1]])
NAMED = {
    "flg_acc": lambda m, d, b: fl.stages.rne(m, d, np.zeros(2)),
    "local": lambda m, d, b: fl.query.object_velocity(m, d, ("body", 1), local="yes"),
    "uselimit": lambda m, d, b: fl.set_length_range(m, uselimit=[]),
    "centered": lambda m, d, b: fl.linearize(m, d, centered="no", method="finite_difference"),
    "sensors": lambda m, d, b: fl.linearize(m, d, sensors=2, method="finite_difference"),
    "nthread": lambda m, d, b: fl.linearize(m, d, nthread=np.zeros(3), method="finite_difference"),
    "frictionloss": lambda m, d, b: fl.linearize(m, d, frictionloss="no"),
    "eps": lambda m, d, b: fl.linearize(m, d, eps=np.nan, method="finite_difference"),
    "actuation": lambda m, d, b: fl.inverse_derivatives(m, d, actuation=None, method="finite_difference"),
    "qacc": lambda m, d, b: fl.inverse_derivatives(m, d, qacc="x", method="finite_difference"),
    "scale": lambda m, d, b: fl.registration.register_points(np.eye(3), np.eye(3), scale="x"),
    "replace": lambda m, d, b: d.give_contacts(**CONTACT, replace="x"),
    "frame": lambda m, d, b: d.give_contacts(**CONTACT | {"frame": [[1], [2, 3]]}),
    "solref": lambda m, d, b: d.give_contacts(**CONTACT, solref=[["0.02", "1"]]),
    "world": lambda m, d, b: b.get_data([]),
    "nstep": lambda m, d, b: b.step(10**30),
    "nworld": lambda m, d, b: fl.Batch(m, 10**30),
    "actuators": lambda m, d, b: fl.set_user_actuator(m, len, gain=len),
    "tol": lambda m, d, b: PROBLEM.valid([1.0], "x"),
    "bounds": lambda m, d, b: PROBLEM.residual([1.0], 3),
    "x": lambda m, d, b: PROBLEM.bounds([1.0, 2.0]),
    "findex": lambda m, d, b: fl.lcp.Problem(np.eye(1), [1.0], lo=[0.0], hi=[9.0], findex=[[1], [2, 3]]),
    "symmetric": lambda m, d, b: fl.lcp.Problem(np.eye(1), [1.0], lo=[0.0], hi=[9.0], symmetric=np.zeros(2)),
    "b, lo, hi": lambda m, d, b: fl.lcp.solve(PROBLEM, [2.0]),
    "n": lambda m, d, b: fl.lcp.Solver(10**30),
    "problem": lambda m, d, b: fl.lcp.Solver(3).solve(0.0),
    "inverse_dynamics": lambda m, d, b: fl.tree.inertia_from_inverse_dynamics(0.0, 3),
    "b": lambda m, d, b: fl.tree.solve(np.eye(2), [-1, 0], [1.0]),
    "checks": lambda m, d, b: fl.diagnose(m, 3),
    "checks: got np.float64(1.0)": lambda m, d, b: fl.diagnose(m, HUGE),
    "actuators: got ": lambda m, d, b: fl.set_user_actuator(m, np.zeros(()), gain=len),
    "record: got np.float64(1.0)": lambda m, d, b: b.rollout(1, record=HUGE),
    "H": lambda m, d, b: fl.tree.ltl([[1], [2, 3]], [-1, 0]),
    "kind": lambda m, d, b: fl.bundled("box_stack", links=fl.Link(np.zeros(2), 1)),
    "name": lambda m, d, b: fl.bundled("box_stack", links=fl.Link("ball", 1, name=np.zeros(2))),
}
HUGE = np.broadcast_to(1.0, 1 << 40)  # more than available memory
PROBLEM = fl.lcp.Problem(np.eye(1), [1.0], lo=[0.0], hi=[9.0])


@pytest.mark.parametrize("name", NAMED)
def test_a_wrong_argument_is_named(name):
    model = fl.bundled("arm")
    data, batch = fl.Data(model, given_contacts=1), fl.Batch(model, 3)
    with pytest.raises((ValueError, TypeError)) as error:
        NAMED[name](model, data, batch)
    assert name in str(error.value) and "allowed" in str(error.value)


MASKED = np.ma.array([0.0, 99.0], mask=[0, 1])
TAKES_ARRAYS = {
    "ctrl": lambda m, d, b: setattr(b, "ctrl", MASKED),
    "qpos": lambda m, d, b: setattr(d, "qpos", MASKED),
    "ids": lambda m, d, b: b.step(ids=MASKED.astype(int)),
    "control": lambda m, d, b: b.rollout(1, MASKED[None]),
    "control: got": lambda m, d, b: b.rollout(1, lambda batch, step: MASKED),
    "state": lambda m, d, b: fl.set_state(m, b, MASKED, fl.State.QVEL),
    "qacc": lambda m, d, b: b.inverse(MASKED),
    "option gravity": lambda m, d, b: setattr(m.opt, "gravity", np.ma.ones(3)),
    "b": lambda m, d, b: fl.lcp.Problem(np.eye(2), MASKED, lo=[0.0, 0.0], hi=[1.0, 1.0]),
    "a": lambda m, d, b: fl.registration.register_points(np.ma.ones((3, 3)), np.eye(3)),
}


@pytest.mark.parametrize("name", TAKES_ARRAYS)
def test_a_masked_array_is_refused_and_changes_nothing(name):
    model = fl.bundled("cartpole")
    data, batch = fl.Data(model), fl.Batch(model, 2)
    before = batch.checkpoint(), data.qpos.copy()
    with pytest.raises(ValueError, match=rf"^{name}\b.*(asked|array)") as error:
        TAKES_ARRAYS[name](model, data, batch)
    assert isinstance(error.value, fl.FeatherlaneError) or name == "a"
    assert all((batch.checkpoint()[k] == rows).all() for k, rows in before[0].items())
    np.testing.assert_array_equal(data.qpos, before[1])


def test_a_checkpoint_that_is_refused_changes_nothing():
    model = fl.bundled("arm")
    batch = fl.Batch(model, 3)
    kept = batch.checkpoint()
    for name, wrong in (("model.body_mass", np.full((3, model.nbody), -1.0)), ("qpos", np.zeros((3, 1)))):
        with pytest.raises(fl.ModelError, match=name.removeprefix("model.")):
            batch.restore({"model.geom_friction": np.ones((3, model.ngeom, 3)), **kept, name: wrong})
        assert batch.expanded("body_mass") is None and batch.expanded("geom_friction") is None


@pytest.mark.parametrize("name", ["user_actuator", "con_geom", "hessian.colind", "warning"])
def test_indices_and_addresses_of_a_data_cannot_be_written(name):
    model = fl.bundled("arm")
    data = fl.Data(model)
    with pytest.raises(AttributeError, match=f"data.{name} is computed"):
        setattr(data, name, 0)
    assert not getattr(data, name).flags.writeable
    fl.step(model, data)


def test_a_long_value_is_cut_in_every_message():
    model = fl.bundled("arm")
    batch, table = fl.Batch(model, 2), np.arange(900.0).reshape(30, 30)
    for call in (
        lambda: setattr(model.opt, "gravity", table),
        lambda: batch.bind(table),
        lambda: fl.query.geom_distance(model, batch.get_data(0), table, 1),
        lambda: fl.lcp.Problem(np.eye(1), [1.0], lo=0.0, hi=1.0, symmetric=table.tolist()),
    ):
        with pytest.raises(fl.FeatherlaneError) as error:
            call()
        text = str(error.value)
        assert "\n" not in text and len(text) < 250 and "0" in text and "..." in text
        assert str(pickle.loads(pickle.dumps(error.value))) == text


@pytest.mark.parametrize(("given", "typed"), [(0, "0, 0, 0"), (-9.81, "0, 0, -5"), ([0.0], "0, 0, -5")])
def test_a_scalar_for_a_vector_is_refused_with_the_correct_form(given, typed):
    model = fl.bundled("arm")
    model.opt.gravity = 0, 0, -5
    with pytest.raises(fl.ModelError, match=rf"allowed are 3 numbers, for example gravity = {typed}$"):
        model.opt.gravity = given
