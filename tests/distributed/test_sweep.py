"""Sweeps: each sample equals its result alone, for any chunk, batch or process that computes it."""

import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane import distributed as fd
from featherlane.distributed.sweeps import chunk
from featherlane.distributed.sweeps.plan import Plan, make_plan
from featherlane.distributed.sweeps.target import INDEPENDENT, parse_target
from featherlane.distributed.sweeps.workers import LEAST, next_chunk_size
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.set_const import DEPENDENT_REALS

STEPS = 12
SCENE = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="ball" pos="0 0 .11"><freejoint name="free"/><geom name="ball" size=".1" mass="1"/></body>
<body name="arm" pos="1 0 1"><joint name="hinge" axis="0 1 0" damping=".1"/>
<geom name="rod" type="capsule" size=".03 .2"/>
</body></worldbody><actuator><motor name="motor" joint="hinge" ctrlrange="-2 2"/></actuator>
<keyframe><key name="fast" qvel="1 0 0 0 0 0 0"/></keyframe></mujoco>"""
PARAMETERS = {
    "body_mass[ball] + body_inertia[ball]": fd.uniform(0.5, 2.0, apply="scale"),
    "geom_friction[floor, 0]": fd.grid([0.3, 0.9]),
    "opt.timestep": fd.grid([0.001, 0.002]),
    "opt.solver": fd.choice(["newton", "cg"]),
    "qvel": fd.normal(0.0, 0.2, each=True, apply="add"),
}
ROLLOUT = {"nstep": STEPS, "control": "random", "keyframe": "fast"}
REDUCE = {"place": "final qpos[0]", "swing": "peak qvel[hinge]", "height": "mean xpos[ball, 2]"}


@pytest.fixture(scope="module")
def model():
    return fl.load(SCENE)


def test_the_documented_flags_and_integers_can_be_swept(model):
    page = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| an editable flag or integer"))
    names = re.findall(r"`(\w+)`", row)
    assert len(names) >= 3
    for name in names:
        assert parse_target(fl.bundled("slider_crank"), name).parts[0].owner == "variant"
    with pytest.raises(fl.ModelError):
        parse_target(model, "geom_contype")


def swept(model, **given):
    settings = {"nsample": 7, "seed": 5, "progress": False} | given
    return fd.sweep(model, PARAMETERS, ROLLOUT, reduce=REDUCE, **settings)


def same(a: fd.Sweep, b: fd.Sweep) -> None:
    assert a.columns.keys() == b.columns.keys()
    for name, column in a.columns.items():
        np.testing.assert_array_equal(column, b.columns[name], err_msg=name)


@pytest.fixture(scope="module")
def whole(model):
    return swept(model)


@pytest.mark.parametrize("chunk, nthread", [(1, 1), (3, 2), (5, 1), (28, 2)])
def test_chunks_and_threads_change_no_bit(model, whole, chunk, nthread):
    same(whole, swept(model, chunk=chunk, nthread=nthread))


def test_a_sample_equals_a_single_simulation(model, whole):
    """Sample 9 is computed by hand: a model with its values, a `Data`, its controls."""
    i, own = 9, fl.load(SCENE)
    values = {path: column[i] for path, column in whole.parameters.items()}
    scale = values["body_mass[ball] + body_inertia[ball]"]
    own.body_mass[1] *= scale
    own.body_inertia[1] *= scale
    own.geom_friction[0, 0] = values["geom_friction[floor, 0]"]
    own.opt.timestep = float(values["opt.timestep"])
    own.opt.solver = str(values["opt.solver"])
    fl.set_const(own)
    data = fl.Data(own)
    fl.reset_data_keyframe(own, data, "fast")
    data.qvel += values["qvel"]
    key = np.random.SeedSequence(5, spawn_key=(zlib.crc32(b"control"),)).generate_state(2, np.uint64)
    held = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, i, 0])).random((1, 1))
    data.ctrl = -2.0 + held[0] * 4.0
    speeds, heights = [], []
    for _ in range(STEPS):
        fl.step(own, data)
        speeds.append(data.qvel[6])
        heights.append(data.xpos[1, 2])
    assert whole.results["place"][i] == data.qpos[0]
    assert whole.results["swing"][i] == np.abs(speeds).max()
    assert whole.results["height"][i] == np.mean(heights)


def test_grids_are_nested_loops_with_random_samples_innermost(whole):
    friction, timestep = whole.parameters["geom_friction[floor, 0]"], whole.parameters["opt.timestep"]
    np.testing.assert_array_equal(friction, np.repeat([0.3, 0.9], 14))
    np.testing.assert_array_equal(timestep, np.tile(np.repeat([0.001, 0.002], 7), 2))
    drawn = whole.parameters["body_mass[ball] + body_inertia[ball]"]
    assert len(np.unique(drawn)) == 28 and (drawn >= 0.5).all() and (drawn <= 2.0).all()
    assert {"newton", "cg"} == set(whole.parameters["opt.solver"].tolist())
    assert whole.parameters["qvel"].shape == (28, 7)


def test_a_sample_does_not_depend_on_other_parameters(model, whole):
    """Its random numbers depend only on its name and its number."""
    alone = fd.sweep(model, {"qvel": PARAMETERS["qvel"]}, STEPS, reduce=REDUCE, nsample=4, seed=5, progress=False)
    np.testing.assert_array_equal(alone.parameters["qvel"], whole.parameters["qvel"][:4])
    other = fd.sweep(model, {"qvel": PARAMETERS["qvel"]}, STEPS, reduce=REDUCE, nsample=4, seed=6, progress=False)
    assert (other.parameters["qvel"] != alone.parameters["qvel"]).all()


def test_lists_vary_together(model):
    found = fd.sweep(
        model,
        {
            "body_mass[ball]": [1.0, 2.0, 3.0],
            "qpos[free]": np.eye(3, 7) + [0, 0, 3, 1, 0, 0, 0],
            "qvel[0]": fd.grid([0, 1]),
        },
        {"nstep": 1},
        reduce={"x": "final qpos[0]"},
        progress=False,
    )
    np.testing.assert_array_equal(found.parameters["body_mass[ball]"], [1, 2, 3, 1, 2, 3])
    np.testing.assert_allclose(found.results["x"], [1, 0, 0, 1.002, 0.002, 0.002], atol=1e-12)


def test_a_function_reduces_each_sample_by_itself(model, whole):
    def reduce(recorded):
        assert recorded["qpos"].shape == (STEPS, 8) and not recorded["qpos"].flags.writeable
        return {"place": recorded["qpos"][-1, 0], "swing": np.abs(recorded["qvel"][:, 6]).max()}

    found = fd.sweep(
        model, PARAMETERS, ROLLOUT | {"record": ("qpos", "qvel")}, reduce=reduce, nsample=7, seed=5, progress=False
    )
    np.testing.assert_array_equal(found.results["place"], whole.results["place"])
    np.testing.assert_array_equal(found.results["swing"], whole.results["swing"])


def test_controls_of_numbers_kernels_and_functions(model):
    tape = np.linspace(-1.0, 1.0, STEPS)[:, None]

    @fl.kernel
    def push(m, d):
        d.ctrl[0] = 0.5 * d.qvel[6] + 1.0

    def follow(batch, step):
        return batch.qvel[:, 6:] * 0.5 + 1.0

    def place(control):
        parameters, rollout = {"qvel[hinge]": fd.uniform(-1, 1)}, {"nstep": STEPS, "control": control}
        found = fd.sweep(model, parameters, rollout, reduce={"at": "final qpos[hinge]"}, nsample=6, progress=False)
        return found.results["at"]

    np.testing.assert_array_equal(place(tape), place(np.broadcast_to(tape, (6, STEPS, 1))))
    np.testing.assert_array_equal(place(push), place(follow))
    assert (place(tape) != place(None)).all()


def test_whole_numbers_of_the_model_are_variants(model):
    found = fd.sweep(model, {"opt.iterations": fd.grid([1, 50]), "opt.integrator": fd.grid(["euler", "rk4"])}, 4,
                     reduce={"x": "final qpos[2]"}, progress=False)  # fmt: skip
    assert found.parameters["opt.integrator"].tolist() == ["euler", "rk4"] * 2
    assert len(set(found.results["x"].tolist())) > 1


def test_a_single_number_of_a_world_is_reduced_without_an_index(model):
    reduce = {"end": "final time", "most": "peak ncon"}
    found = fd.sweep(model, {"body_mass[ball]": [1.0, 2.0]}, 3, reduce=reduce, progress=False)
    assert found.results["end"] == pytest.approx(3 * model.opt.timestep)
    assert (found.results["most"] >= 0).all()
    with pytest.raises(fl.ModelError):
        fd.sweep(model, {"body_mass[ball]": [1.0]}, 3, reduce={"end": "final time[0]"}, progress=False)


def test_float32(model):
    found = fd.sweep(model, {"body_mass[ball]": [1.0, 2.0]}, {"nstep": 3, "dtype": "float32"},
                     reduce={"x": "final qpos[2]"}, progress=False)  # fmt: skip
    assert (found.results["x"].astype(np.float32) == found.results["x"]).all()


def test_non_finite_worlds_are_reported_and_their_results_kept(model):
    with pytest.warns(fl.NonFiniteWarning, match="samples 2 had values that are NaN"):
        found = fd.sweep(
            model, {"qvel[0]": [0.0, 1.0, 1e9]}, {"nstep": 30}, reduce={"x": "final qpos[0]"}, progress=False
        )
    assert found.status["non_finite"].tolist() == [0, 0, 1]
    assert found.bad().tolist() == [2] and len(found) == 3 and "3 samples" in repr(found)


def test_non_finite_results_are_reported(model):
    def reduce(recorded):
        return {"x": np.nan if recorded["qpos"][0, 0] > 0.5 else 1.0}

    with pytest.warns(fl.NonFiniteWarning, match="samples 1 had"):
        found = fd.sweep(model, {"qpos[0]": [0.0, 1.0]}, 1, reduce=reduce, progress=False)
    assert np.isnan(found.results["x"][1])
    with pytest.raises(fl.ModelError, match="sample 0: x"):
        fd.sweep(model, {"qpos[0]": [1.0, 0.0]}, 1, reduce=reduce, progress=False)


def test_progress_goes_to_a_function(model):
    seen = []
    swept(model, chunk=10, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 28), (10, 28), (20, 28), (28, 28)]


def test_chunks_grow_while_they_are_short(model, monkeypatch):
    monkeypatch.setattr(chunk, "FIRST", 2)
    sizes = []
    fd.sweep(model, {"qvel[0]": fd.normal(0, 1)}, 1, reduce={"x": "final qpos[0]"}, nsample=30,
             progress=lambda done, total: sizes.append(done))  # fmt: skip
    assert np.diff(sizes).tolist() == [2, 16, 12]
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 8 * 8 * 3)  # bytes for three samples of one step
    sizes.clear()
    fd.sweep(model, {"qvel[0]": fd.normal(0, 1)}, 1, reduce={"x": "final qpos[0]"}, nsample=8,
             progress=lambda done, total: sizes.append(done))  # fmt: skip
    assert np.diff(sizes).tolist() == [2, 3, 3]


KINDS = {
    "uniform": fd.uniform(-0.5, 3.0),
    "log_uniform": fd.log_uniform(0.01, 5.0, each=True),
    "normal": fd.normal(1.0, 0.3, each=True),
    "choice": fd.choice([0.5, 2.0, -1.0], each=True),
    "grid": fd.grid([0.1, 0.7]),
    "drawn": fd.drawn(lambda rng: rng.random()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_lie_within_their_bounds(kind):
    source, shape = KINDS[kind], (4, 3)
    if kind == "drawn":
        assert source.bounds(shape) is None  # unknown
        return
    low, high = source.bounds(shape)
    rng = np.random.default_rng(0)
    drawn = source.listed if kind == "grid" else np.array([source.draw(rng, shape) for _ in range(3000)])
    assert low.shape == np.shape(drawn[0]) and (drawn >= low).all() and (drawn <= high).all()
    if kind != "normal":
        assert low.min() > drawn.min() - 0.1 and high.max() < drawn.max() + 0.1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("field", ["body_mass", "geom_friction[:, 0]", "dof_damping", "qpos[2]", "geom_size[ball, 0]"])
@pytest.mark.parametrize("apply", ["set", "scale", "add"])
def test_guaranteed_bounds_hold_for_every_sample(model, field, apply, dtype, monkeypatch):
    """Errors from the bounds of all values equal errors from checking each value."""
    certain = 0
    for source in KINDS.values():
        for factor in (1.0, 1e300):
            given = source if source.kind == "drawn" else source_with(source, factor, apply)
            parameters = {field: given, "body_mass[arm]": fd.uniform(-1.0, 0.0, apply="add")}
            monkeypatch.setattr(Plan, "_is_surely_held", lambda self: False)
            try:
                with np.errstate(over="ignore"):  # out of float32's range
                    plan = make_plan(model, parameters, {"nstep": 1, "dtype": dtype}, REDUCE, 0, 300)
                is_held = True
            except fl.ModelError:
                is_held = False
                monkeypatch.setattr(Plan, "check", lambda self: None)
                plan = make_plan(model, parameters, {"nstep": 1, "dtype": dtype}, REDUCE, 0, 300)
            monkeypatch.undo()
            is_certain = plan._is_surely_held()  # it only saves time: the result of the check is the same
            assert is_held or not is_certain, (source.kind, factor)
            certain += is_certain
    assert certain or field.startswith(("geom_size", "body_mass"))


def source_with(source, factor, apply):
    """Returns the same kind of values, larger, with a different `apply`."""
    given = [source.listed] if source.kind in ("grid", "choice") else list(source.options)
    if source.kind == "log_uniform":
        given = list(np.exp(given))
    make, own = getattr(fd, source.kind), {} if source.kind == "grid" else {"each": source.each}
    return make(*(np.asarray(g) * factor for g in given), apply=apply, **own)


def test_a_million_samples_are_checked_without_drawing_them(model, monkeypatch):
    monkeypatch.setattr(Plan, "values", lambda self, samples: pytest.fail("drawn"))
    plan = make_plan(model, {"geom_friction[:, 0]": fd.uniform(0.3, 1.0)}, 1, REDUCE, 0, 1_000_000)
    assert plan.nsample == 1_000_000


def test_the_model_stays_as_it_is(model):
    before = model.real_buffer.copy()
    swept(model)
    np.testing.assert_array_equal(before, model.real_buffer)


# ---- errors before anything runs -------------------------------------------------------------------------------------
WRONG = {
    "unknown field": ({"body_masss": [1.0]}, "unknown field 'body_masss' .* did you mean 'body_mass'"),
    "unknown option": ({"opt.timestpe": [1.0]}, "unknown field 'opt.timestpe' .*'opt.timestep'"),
    "unknown name": ({"body_mass[bal]": [1.0]}, "unknown body 'bal'"),
    "out of range": ({"body_mass[9]": [1.0]}, "got 9"),
    "empty range": ({"body_mass[2:1]": [1.0]}, "allowed are entries 0 to 2"),
    "too many indices": ({"body_mass[0, 0]": [1.0]}, "got 2 indices, allowed are 1: body_mass has shape"),
    "name of another axis": ({"geom_friction[0, ball]": [1.0]}, "names are allowed only for the first axis"),
    "no path": ({"body mass": [1.0]}, "got 'body mass'"),
    "no text": ({3: [1.0]}, "got the name 3"),
    "fixed": ({"body_parentid": [1.0]}, "is fixed when the model is loaded"),
    "one number": ({"body_mass[1]": 2.0}, "got 2.0"),
    "a text": ({"body_mass[1]": "abc"}, "allowed are a list"),
    "no values": ({"body_mass[1]": []}, "values:"),
    "NaN": ({"body_mass[1]": [1.0, np.nan]}, "got NaN at"),
    "names for numbers": ({"body_mass[1]": ["a"]}, "got names"),
    "a wrong shape": ({"body_mass[1]": np.ones((4, 2))}, r"got values of shape \(2,\)"),
    "a mixed axis": ({"geom_friction": [1.0]}, "got one number for 3 numbers with different meanings"),
    "lengths": (
        {"body_mass[1]": [1.0, 2.0], "qvel[0]": [1.0]},
        "lists of different lengths .'body_mass.*' 2, 'qvel.*' 1",
    ),
    "a negative mass": ({"body_mass[1]": [1.0, 1.0, -2.0]}, "sample 2: body_mass of body 'ball':"),
    "an infinite state": ({"qvel[0]": [1.0, np.inf]}, "sample 1:"),
    "a wrong option": ({"opt.solver": ["newtn"]}, "parameter 'opt.solver': option solver:"),
    "a distribution of an option": ({"opt.iterations": fd.uniform(1, 3)}, "is a list, grid or choice"),
    "option and field": ({"opt.iterations + body_mass[1]": [1]}, "allowed is one kind"),
    "drawn shape": (
        {"body_mass[1]": fd.drawn(lambda rng: [1, 2])},
        "sample 0: the function returned ",
    ),
    "drawn NaN": ({"body_mass[1]": fd.drawn(lambda rng: np.nan)}, "the function returned NaN"),
    "no dict": ([1.0], "parameters:"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameters_are_refused(model, case, tmp_path):
    parameters, message = WRONG[case]
    with pytest.raises(fl.ModelError, match=message):
        fd.sweep(model, parameters, 1, reduce={"x": "final qpos[0]"}, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


OPTIONS = {
    "rollout": [
        ({"nsteps": 3}, "rollout: got 'nsteps', allowed are nstep, .*; did you mean 'nstep'"),
        ({}, "rollout: nstep:"),
        ({"nstep": 0}, "rollout: nstep:"),
        ("many", "rollout:"),
        ({"nstep": 3, "control": "ramdom"}, "control:"),
        ({"nstep": 3, "control": np.zeros((2, 1))}, "control:"),
        ({"nstep": 3, "control": np.full((3, 1), np.nan)}, "control:"),
        ({"nstep": 3, "keyframe": "slow"}, "unknown keyframe 'slow'"),
        ({"nstep": 3, "keyframe": 4}, "keyframe:"),
        ({"nstep": 3, "dtype": "float16"}, "float16"),
        ({"nstep": 3, "record": ("qpos",)}, "record is not"),
        ({"nstep": 3, "control": lambda batch, step: np.zeros(9)}, "control: got .* in step 0"),
    ],
    "reduce": [
        (None, "reduce:"),
        ({}, "reduce:"),
        ({"x": "last qpos[0]"}, "reduce: x:"),
        ({"x": "final qpoos[0]"}, "reduce: x: unknown field 'qpoos'"),
        ({"x": "final qpos"}, r"selects 8 numbers of an array \(8,\)"),
        ({"a b": "final qpos[0]"}, "reduce:"),
        (lambda recorded: 3.0, "sample 0:"),
        (lambda recorded: {}, "sample 0:"),
        (lambda recorded: {"x": recorded["qpos"]}, "sample 0: x:"),
        (lambda recorded: {"x": "high"}, "sample 0: x:"),
        (lambda recorded: recorded["qvel"], "sample 0: KeyError: 'qvel'"),
        (lambda recorded: recorded["qpos"].fill(0), "sample 0: ValueError: assignment destination is read-only"),
    ],
    "nsample": [(0, "nsample:"), (10**10, "nsample: got"), ("3", "nsample:")],
    "seed": [(-1, "seed:"), (0.5, "seed:")],
    "chunk": [(-1, "chunk:")],
    "nthread": [(-1, "nthread:")],
    "progress": [("yes", "progress:")],
    "out": [(3, "out:"), ("", "out:")],
}


@pytest.mark.parametrize("name, given, message", [(k, *case) for k, cases in OPTIONS.items() for case in cases])
def test_wrong_options_are_refused(model, name, given, message):
    arguments = {"rollout": 1, "reduce": {"x": "final qpos[0]"}, "progress": False} | {name: given}
    with pytest.raises(fl.ModelError, match=message):
        fd.sweep(model, {"qvel[0]": [0.0]}, **arguments)


SOURCES = [
    (lambda: fd.uniform(2, 1), "uniform:"),
    (lambda: fd.uniform(np.nan, 1), "uniform: low:"),
    (lambda: fd.uniform(0, 1, each=1), "each:"),
    (
        lambda: fd.uniform(0, 1, apply="sclae"),
        "apply:",
    ),
    (lambda: fd.log_uniform(0, 1), "log_uniform:"),
    (lambda: fd.normal(0, -1), "normal: deviation:"),
    (lambda: fd.choice([]), "choice: got"),
    (lambda: fd.choice([[1, 2]], each=True), "choice:"),
    (lambda: fd.grid("newton"), "grid: got"),
    (lambda: fd.grid([["a"]]), "grid:"),
    (lambda: fd.grid(["a"], apply="add"), "apply:"),
    (lambda: fd.grid([[1], [1, 2]]), "rows of different lengths"),
    (lambda: fd.values(3), "values:"),
    (lambda: fd.drawn(3), "drawn:"),
]


@pytest.mark.parametrize("make, message", SOURCES)
def test_wrong_values_are_refused(make, message):
    with pytest.raises(fl.ModelError, match=message):
        make()


def test_a_reduction_with_other_names_is_reported_with_its_sample(model):
    def reduce(recorded):
        return {"x": 1.0} if recorded["qpos"][0, 0] < 0.5 else {"y": 1.0}

    with pytest.raises(fl.ModelError, match="sample 1: "):
        fd.sweep(model, {"qpos[0]": [0.0, 1.0]}, 1, reduce=reduce, progress=False)


def test_dependence_on_other_samples_is_found(model):
    def together(batch, step):
        return batch.qvel[:, 6:].sum() + 1.0

    with pytest.raises(fl.ModelError, match="sample 0: at"):
        rollout = {"nstep": 3, "control": together}
        fd.sweep(model, {"qvel[hinge]": [0.5, 1.0, 2.0]}, rollout, reduce={"at": "final qpos[hinge]"}, progress=False)


def test_an_invalid_model_is_refused():
    with pytest.raises(fl.errors.ArgumentTypeError):
        fd.sweep("pendulum", {}, 1, reduce={"x": "final qpos[0]"})


def test_chunk_sizes_amortize_overhead_and_leave_no_worker_idle():
    assert next_chunk_size(10_000, 2, 0.0) == 2500  # unknown: some for each place, and as many again
    assert next_chunk_size(10_000, 2, 1e3) == 2500
    assert next_chunk_size(20, 2, 1e3) == 40  # 1/25 s
    assert next_chunk_size(3, 2, 10.0) == LEAST
    assert next_chunk_size(10**6, 64_000, 1e3) == int(1e3 * (1e3 * 0.5e-3) ** 0.5)  # the driver would be the bottleneck
    assert next_chunk_size(10**9, 640, 1e3) == -(-(10**9) // 1280)


RICH = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/><site name="post" pos="0 0 1"/>
<body name="crate" pos="0 0 .099"><freejoint/><geom name="crate" type="box" size=".1 .1 .1"/></body>
<body name="arm" pos="1 0 1"><joint name="shoulder" axis="0 1 0" range="-1 1" limited="true" stiffness="2"
damping=".1"/><geom name="arm" type="capsule" size=".04 .1"/><site name="hand" pos=".1 0 0"/></body>
<body name="target" mocap="true" pos="2 0 1"><geom name="target" size=".05"/></body></worldbody>
<tendon><spatial name="string" range="0 2" limited="true" stiffness="1" damping=".1"><site site="post"/>
<site site="hand"/></spatial></tendon>
<equality><weld name="held" body1="crate" body2="target" active="false"/></equality>
<contact><pair geom1="crate" geom2="arm"/></contact>
<actuator><position joint="shoulder" kp="5" ctrlrange="-1 1"/><muscle tendon="string" lengthrange=".5 2"/>
</actuator><sensor><jointpos joint="shoulder" noise=".1"/></sensor></mujoco>"""


def test_fields_without_dependents_do_not_change_constants():
    """A sweep of these skips set_const; a sweep of any other field calls it."""
    rich, bits = fl.load(RICH), np.random.default_rng(0)
    fields = [f.name for f in MODEL.fields if f.kind == "real" and rich.__dict__[f.name].size]
    left_out = [name for name in fields if INDEPENDENT.fullmatch(name)]
    assert {"geom_friction", "opt_timestep", "dof_damping", "actuator_gainprm"} <= set(left_out)
    assert not {"body_mass", "geom_size", "qpos0", "tendon_lengthspring", "dof_armature"} & set(left_out)
    plain = fl.Batch(rich, 1)
    plain.expand("opt_density")
    plain.set_const()
    batch = fl.Batch(rich, 1)
    for name in left_out:
        rows = batch.expand(name)
        wider = rows * bits.uniform(1.0, 1.1, rows.shape)
        rows[:] = rows * 1.05 if name.endswith("range") else wider
    batch.set_const()
    for name in DEPENDENT_REALS:
        a, b = batch.expanded(name), plain.expanded(name)
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b, err_msg=name)


def test_inputs_and_mocap_poses_start_at_sampled_values():
    found = fd.sweep(
        fl.load(RICH),
        {"mocap_pos[target, 0]": [2.0, 3.0], "eq_active[0]": [0.0, 1.0], "qfrc_applied[shoulder]": fd.grid([0.0, 5.0])},
        {"nstep": 3},
        reduce={"target": "final xpos[target, 0]", "crate": "final qpos[0]", "speed": "final qvel[shoulder]"},
        progress=False,
        chunk=3,
    )
    assert found.results["target"].tolist() == [2.0, 3.0, 2.0, 3.0]
    assert found.results["crate"][0] == 0.0 and found.results["crate"][1] > 0.0  # the weld pulls it
    assert (found.results["speed"][2:] > found.results["speed"][:2]).all()
