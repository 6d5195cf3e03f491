"""The public functions of one world against MuJoCo's; the list of public names and their documentation."""

import ast
import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation import stages as made
from featherlane.engine.simulation.docstring import sections
from featherlane.engine.simulation.tile import library
from featherlane.engine.simulation.tile.fields import DATA
from scenes.joints import XML
from scenes.states import kicked

CLOSE = {"rtol": 1e-10, "atol": 1e-11}  # a few operations on values of order 1 to 100
MODULES = (fl, fl.stages, fl.query, fl.registration, fl.results)
PUBLIC = {name: getattr(module, name) for module in MODULES for name in module.__all__}
FUNCTIONS = sorted(name for name, value in PUBLIC.items() if inspect.isfunction(value))
NO_PHYSICS = {
    "bundled",
    "bundled_names",
    "diagnose",
    "export_html",
    "freeze",
    "kernel",
    "load",
    "load_failure",
    "set_const",
    "show_config",
    "thaw",
    "variants",
    "view",
}


@pytest.fixture(scope="module")
def model():
    return fl.load(XML)


@pytest.fixture
def both(model, rng):
    """Returns our `Data` and MuJoCo's in one random state, with controls and forces; only MuJoCo's after forward."""
    data, reference = fl.Data(model), mujoco.MjData(model.mj_model)
    reference.qpos, reference.qvel = kicked(model, rng)
    reference.qpos[2] += 3.0  # clear of the floor
    reference.ctrl, reference.xfrc_applied[1:] = 0.4, rng.standard_normal((model.nbody - 1, 6))
    reference.qfrc_applied = rng.standard_normal(model.nv)
    for name in ("qpos", "qvel", "ctrl", "xfrc_applied", "qfrc_applied"):
        setattr(data, name, getattr(reference, name))
    mujoco.mj_forward(model.mj_model, reference)
    return data, reference


def test_fields_computed_stage_by_stage_equal_mujoco(model, both):
    data, reference = both
    stages = {
        fl.stages.kinematics: "xpos xquat xmat xipos xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat",
        fl.stages.com_pos: "ximat subtree_com cinert cdof",
        fl.stages.crb: "crb M",
        fl.stages.factor_m: "qLDiagInv",
        fl.stages.transmission: "actuator_length",
        fl.stages.com_vel: "cvel cdof_dot",
        fl.stages.rne: "qfrc_bias",
        fl.stages.passive: "qfrc_spring qfrc_damper qfrc_gravcomp qfrc_fluid qfrc_passive",
        fl.stages.actuation: "actuator_velocity actuator_force qfrc_actuator",
        fl.stages.smooth_acceleration: "qfrc_smooth qacc_smooth",
    }
    for stage, names in stages.items():
        stage(model, data)
        for name in names.split():
            ours, theirs = getattr(data, name), getattr(reference, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=name)


def test_single_stages_and_a_step_are_bitwise_equal(model, both):
    data, _ = both
    whole = fl.Data(model)
    for name in ("qpos", "qvel", "ctrl", "xfrc_applied", "qfrc_applied"):
        setattr(whole, name, getattr(data, name))
    fl.forward(model, whole)
    fl.stages.forward_position(model, data)
    fl.stages.forward_velocity(model, data)
    fl.stages.actuation(model, data)
    fl.stages.smooth_acceleration(model, data)
    fl.stages.collision(model, data)
    fl.stages.make_constraint(model, data)
    fl.stages.solve(model, data)
    np.testing.assert_array_equal(data.qacc, whole.qacc)
    fl.stages.euler(model, data)
    fl.step(model, whole)
    np.testing.assert_array_equal(data.qpos, whole.qpos)


@pytest.mark.parametrize("integrator, function", [("rk4", "runge_kutta"), ("implicitfast", "implicitfast")])
def test_a_step_is_forward_and_an_integrator(both, integrator, function):
    data, model = both[0], fl.load(XML)
    model.opt.integrator = integrator
    other = fl.Data(model)
    other.qpos, other.qvel = data.qpos, data.qvel
    whole = fl.Data(model)
    whole.qpos, whole.qvel = data.qpos, data.qvel
    fl.forward(model, other)
    PUBLIC[function](model, other)
    fl.step(model, whole)
    np.testing.assert_array_equal(other.qpos, whole.qpos)
    assert other.time == whole.time == pytest.approx(model.opt.timestep)


@pytest.mark.parametrize("integrator", ["euler", "implicit", "implicitfast"])
def test_runge_kutta_runs_for_any_integrator_of_the_model(both, integrator):
    data, model = both[0], fl.load(XML)
    ends = []
    for named in (integrator, "rk4"):
        model.opt.integrator = named
        other = fl.Data(model)
        other.qpos, other.qvel = data.qpos, data.qvel
        fl.forward(model, other)
        fl.stages.runge_kutta(model, other)
        ends.append(other.qpos.copy())
    np.testing.assert_array_equal(*ends)


def test_many_steps_are_steps_one_after_another(model, both):
    data, _ = both
    other = fl.Data(model)
    other.qpos, other.qvel, other.ctrl = data.qpos, data.qvel, data.ctrl
    data.xfrc_applied = data.qfrc_applied = 0.0
    fl.step(model, data, nstep=np.int64(7))
    for _ in range(7):
        fl.step(model, other)
    np.testing.assert_array_equal(data.qpos, other.qpos)


@pytest.mark.parametrize("nstep", [0, -1, 1.5, "2", None])
def test_a_wrong_number_of_steps_is_refused(model, both, nstep):
    with pytest.raises(fl.ModelError):
        fl.step(model, both[0], nstep)


def test_products_with_the_inertia_matrix(model, both, rng):
    data, reference = both
    fl.stages.forward_position(model, data)
    M = fl.query.full_m(model, data)
    expected = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model.mj_model, reference, expected)
    np.testing.assert_allclose(M, expected, **CLOSE)
    x = rng.standard_normal((2, 3, model.nv))
    np.testing.assert_allclose(fl.query.mul_m(model, data, x), x @ M, **CLOSE)
    y = fl.query.solve_m(model, data, x)
    assert y.shape == x.shape
    np.testing.assert_allclose(y @ M, x, rtol=1e-8, atol=1e-8)
    half = fl.stages.half_solve(model, data, x)
    np.testing.assert_allclose((half**2).sum(-1), (x * y).sum(-1), rtol=1e-8)
    np.testing.assert_array_equal(fl.query.solve_m(model, data, x[0, 1]), y[0, 1])


@pytest.mark.parametrize("function", [fl.query.mul_m, fl.query.solve_m, fl.stages.half_solve])
def test_vectors_of_another_length_are_refused(model, both, function):
    with pytest.raises(fl.ModelError):
        function(model, both[0], np.zeros((3, 1)))
    assert function(model, both[0], np.zeros((0, model.nv))).shape == (0, model.nv)


@pytest.mark.parametrize("flg_acc", [False, True])
def test_newton_euler(model, both, flg_acc):
    data, reference = both
    fl.forward(model, data)
    data.qacc = reference.qacc
    expected = np.zeros(model.nv)
    mujoco.mj_rne(model.mj_model, reference, flg_acc, expected)
    np.testing.assert_allclose(fl.stages.rne(model, data, flg_acc), expected, rtol=1e-9, atol=1e-9)


def test_inverse_after_forward_recovers_the_forces(model, both):
    data, _ = both
    fl.forward(model, data)
    data.qacc = data.qacc_smooth
    applied = data.qfrc_smooth + data.qfrc_bias - data.qfrc_passive
    np.testing.assert_allclose(fl.stages.inverse_smooth(model, data), applied, rtol=1e-8, atol=1e-8)


def test_articulated_bodies_agree_with_the_factored_inertia(model, both):
    data, _ = both
    fl.forward(model, data)
    expected = data.qacc_smooth.copy()
    data.qacc_smooth = 0.0
    fl.stages.aba(model, data)
    np.testing.assert_allclose(data.qacc_smooth, expected, rtol=1e-8, atol=1e-8)


def test_energy(model, both):
    data, reference = both
    fl.forward(model, data)
    fl.stages.energy(model, data)
    mujoco.mj_energyPos(model.mj_model, reference)
    mujoco.mj_energyVel(model.mj_model, reference)
    np.testing.assert_allclose(data.energy, reference.energy, **CLOSE)


@pytest.mark.parametrize(
    "ours, theirs, kind",
    [
        (fl.query.jac_body, mujoco.mj_jacBody, "body"),
        (fl.query.jac_body_com, mujoco.mj_jacBodyCom, "body"),
        (fl.query.jac_geom, mujoco.mj_jacGeom, "geom"),
        (fl.query.jac_site, mujoco.mj_jacSite, "site"),
    ],
)
def test_jacobians(model, both, ours, theirs, kind):
    data, reference = both
    fl.stages.forward_position(model, data)
    for i, name in enumerate(model.names(kind)):
        expected = np.zeros((2, 3, model.nv))
        theirs(model.mj_model, reference, *expected, i)
        np.testing.assert_allclose(ours(model, data, i), expected, err_msg=name, **CLOSE)
        if name:
            np.testing.assert_array_equal(ours(model, data, name), ours(model, data, i))
    with pytest.raises(fl.UnknownNameError):
        ours(model, data, "nowhere")


def test_jacobians_of_points_and_subtrees(model, both):
    data, reference = both
    fl.stages.forward_position(model, data)
    point, hand, expected = np.array([0.3, -0.2, 1.0]), model.body("hand").id, np.zeros((2, 3, model.nv))
    mujoco.mj_jac(model.mj_model, reference, *expected, point, hand)
    np.testing.assert_allclose(fl.query.jac(model, data, point, "hand"), expected, **CLOSE)
    mujoco.mj_jacSubtreeCom(model.mj_model, reference, expected[0], 1)
    np.testing.assert_allclose(fl.query.jac_subtree_com(model, data, "torso"), expected[0], **CLOSE)
    with pytest.raises(fl.ModelError):
        fl.query.jac(model, data, [0.0, 1.0], "hand")


def test_forces_at_points(model, both, rng):
    data, reference = both
    fl.stages.forward_position(model, data)
    force, torque, point = rng.standard_normal((3, 3))
    expected = np.zeros(model.nv)
    hand = model.body("hand").id
    mujoco.mj_applyFT(model.mj_model, reference, force, torque, point, hand, expected)
    np.testing.assert_allclose(fl.query.apply_ft(model, data, force, torque, point, "hand"), expected, **CLOSE)


@pytest.mark.parametrize("kind", ["body", "xbody", "geom", "site"])
@pytest.mark.parametrize("local", [False, True])
def test_velocities_of_objects(model, both, kind, local):
    data, reference = both
    fl.forward(model, data)
    expected = np.zeros(6)
    for i in range(len(model.names(kind.removeprefix("x")))):
        objtype = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        mujoco.mj_objectVelocity(model.mj_model, reference, objtype, i, expected, local)
        np.testing.assert_allclose(fl.query.object_velocity(model, data, (kind, i), local=local), expected, **CLOSE)


def test_an_unknown_kind_of_object_is_reported(model, both):
    with pytest.raises(fl.ModelError, match="object: got 'joint', allowed are body"):
        fl.query.object_velocity(model, both[0], ("joint", 0))


# ---- the package -----------------------------------------------------------------------------------------------------


def test_the_public_list_is_complete_and_has_no_duplicate():
    assert len(set(fl.__all__)) == len(fl.__all__)
    public = {name for name, value in vars(fl).items() if not name.startswith("_") and not inspect.ismodule(value)}
    modules = {name for name in fl.__all__ if inspect.ismodule(getattr(fl, name))}
    assert public | modules == set(fl.__all__)


def test_public_functions_are_documented(subtests):
    for name in FUNCTIONS:
        with subtests.test(name=name):
            function = PUBLIC[name]
            doc = inspect.getdoc(function)
            assert doc and len(doc.splitlines()[0]) <= 120
            assert name in NO_PHYSICS or "Source:" in doc
            bare = ("x", "point", "force", "torque", "source", "options", "function")
            assert all(p.annotation is not p.empty or p.name in bare
                       for p in inspect.signature(function).parameters.values())  # fmt: skip


def made_of_stages():
    """Returns the public functions of simulation/stages.py by name."""
    functions = {name: f for name, f in vars(made).items() if inspect.isfunction(f) and not name.startswith("_")}
    return {name: f for name, f in functions.items() if f.__module__ == made.__name__}


def test_the_stub_declares_the_public_stage_functions():
    """Names, signatures and docstrings are the same: type checkers and editors see the functions that run."""
    stub = ast.parse(Path(made.__file__).with_suffix(".pyi").read_text()).body
    declared = {node.name: node for node in stub if isinstance(node, ast.FunctionDef)}
    assert declared.keys() == made_of_stages().keys()
    for name, function in made_of_stages().items():
        node, signature = declared[name], inspect.signature(function)
        assert PUBLIC[name] is function and function.__name__ == name
        assert {a.arg: ast.unparse(a.annotation) for a in node.args.args} == {
            p.name: p.annotation for p in signature.parameters.values()
        }
        assert ast.unparse(node.returns) == signature.return_annotation
        assert inspect.cleandoc(ast.get_docstring(node)) == inspect.cleandoc(function.__doc__)


def test_public_stage_functions_have_the_docstrings_of_their_stages(subtests):
    """Also the statements common to all of them; outputs have their declared shapes."""
    for name in made_of_stages():
        with subtests.test(name=name):
            stage = library.stages()["solve_constraint" if name == "solve" else name]
            doc = PUBLIC[name].__doc__
            assert doc.startswith(sections(stage.function)[""])
            for label in ("Reads", "Writes", "Source", "Args", "Raises"):
                assert f"\n{label}:" in doc
            assert max(map(len, doc.splitlines())) <= 120
            for field in re.findall(r"\b\w+\b", sections(stage.function)["Writes"]):
                if field in DATA and DATA[field].role == "output" and DATA[field].shape != (1,):
                    assert f"{field} ({DATA[field].shape[0]}," in " ".join(doc.split())


def test_functions_are_called_by_the_names_of_packages():
    from featherlane.engine.collision.contact import contacts

    assert inspect.isfunction(fl.stages.collision) and inspect.isfunction(contacts)
    assert {"collision", "step", "solve_m"} <= set(library.stages())


def test_an_unknown_name_suggests_a_near_one():
    with pytest.raises(fl.errors.UnknownAttributeError, match="'step'"):
        fl.stepp  # noqa: B018


def test_configuration_lists_how_kernels_run(capsys):
    fl.show_config()
    printed = capsys.readouterr().out
    for word in ("featherlane", "kernels", "cpu", "widths", "cache", "numpy", "mujoco", "llvmlite"):
        assert any(line.startswith(word) for line in printed.splitlines()), word
    assert mujoco.__version__ in printed and np.__version__ in printed


def test_import_loads_neither_mujoco_nor_a_compiler():
    heavy = "mujoco llvmlite gymnasium typer rich".split()
    code = f"import sys, featherlane; print(*sorted(set({heavy}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=900)
    assert done.stdout.strip() == ""


SENSORS = """<mujoco><worldbody><body><freejoint/><geom size="0.1"/><site name="tip"/></body></worldbody>
<sensor><user name="acc" dim="3"/></sensor></mujoco>"""


@pytest.mark.parametrize(
    "read",
    [
        lambda model: fl.Data(model).sensordata,
        lambda model: fl.Data(model).sensor("acc").data,
        lambda model: fl.Batch(model, 2).sensordata,
        lambda model: fl.Batch(model, 2).bind("sensordata"),
        lambda model: fl.Batch(model, 2).rollout(1, record=("sensordata",)),
    ],
)
def test_results_of_sensors_that_are_not_computed_raise_with_their_names(read):
    model = fl.load(SENSORS)
    with pytest.raises(fl.UnsupportedFeatureError, match="acc"):
        read(model)


def public_functions():
    """Yields all public functions by their full names."""
    for prefix, module in {"fl": fl, "query": fl.query, "tree": fl.tree, "lcp": fl.lcp}.items():
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield f"{prefix}.{name}", getattr(module, name)


def returned(kind):
    """Yields the classes in an annotation."""
    for part in typing.get_args(kind):
        yield from returned(part)
    if inspect.isclass(kind):
        yield kind


def public_calls():
    """Yields all public functions, methods and properties of public classes by their full names; not of kernels."""
    for module in (*MODULES, fl.lcp, fl.tree, fl.distributed):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
            for inner in dir(thing) if inspect.isclass(thing) else ():
                member = inspect.getattr_static(thing, inner)
                function = member.fget if isinstance(member, property) else member
                if not inner.startswith("_") and inspect.isfunction(function) and "featherlane" in function.__module__:
                    yield f"{module.__name__}.{name}.{inner}", function


def test_types_of_results_are_public_and_documented(subtests):
    modules = (*MODULES, fl.lcp, fl.tree, fl.distributed, fl.lanes)
    things = [getattr(module, name) for module in modules for name in module.__all__]
    public = {thing for thing in things if inspect.isclass(thing)}
    for name, function in public_calls():
        with subtests.test(name=name):
            hints = typing.get_type_hints(function)
            assert "return" in hints
            ours = {kind for kind in returned(hints["return"]) if kind.__module__.startswith("featherlane")}
            assert ours <= public and all(inspect.getdoc(kind) for kind in ours)


def test_results_with_arrays_document_their_shapes(subtests):
    for name in fl.results.__all__:
        kind = getattr(fl.results, name)
        for field in getattr(kind, "_fields", ()):
            if "ndarray" in str(kind.__annotations__[field]):
                with subtests.test(name=f"{name}.{field}"):
                    assert re.search(rf"\b{field}: .*\(", kind.__doc__)


def test_signatures_can_be_read(subtests):
    for name, function in list(public_functions()):
        with subtests.test(name=name):
            for parameter in inspect.signature(function).parameters.values():
                assert len(str(parameter)) < 80 and "numpy._typing" not in str(parameter), str(parameter)


def test_energy_after_a_step_needs_current_frames(rng):
    """As documented: the error of a pendulum's energy is of the order of the step's error, not of the step."""
    model = fl.bundled("pendulum")
    data = fl.Data(model)
    data.qpos, data.qvel = 1.0, 3.0
    fl.step(model, data)
    fl.stages.energy(model, data)
    mixed = data.energy.copy()
    fl.stages.forward_position(model, data)
    fl.stages.energy(model, data)
    again = fl.Data(model)
    again.qpos, again.qvel = data.qpos, data.qvel
    fl.forward(model, again)
    fl.stages.energy(model, again)
    np.testing.assert_allclose(data.energy, again.energy, **CLOSE)
    assert abs(mixed[0] - data.energy[0]) > 1e-4 * abs(data.energy[0])
