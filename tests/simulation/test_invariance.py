"""A world's bits and reports do not depend on the batch: a case of each rule, and sampled cases (invariance.py)."""

from __future__ import annotations

import os

import numpy as np
import pytest

import featherlane as fl
from bits.invariance import Case, Report, look_at, models, of_wheels, search
from featherlane.engine.solver.primal.problem import step_along

SCENE = '<mujoco><option {}><flag {}/></option><worldbody><geom type="plane" size="5 5 1"/>{}</worldbody>{}</mujoco>'
FLYING = """
<body pos="0 0 2" euler="20 30 40"><freejoint/><geom type="box" size=".1 .2 .3" euler="10 20 30"/>
  <body pos=".3 0 -.2"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".05"/></body></body>"""
DOZING = """
<body name="box" pos="0 0 .0998"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="arm" pos="1 0 1" sleep="allowed"><joint name="hinge" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/></body>"""
MOTOR = """
<actuator><motor name="motor" joint="hinge" ctrlrange="-1 1"/></actuator>
<sensor><actuatorfrc actuator="motor"/></sensor>"""
BOXES = """
<body name="a" pos="0 0 .099"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="b" pos=".3 0 .099"><freejoint/><geom type="box" size=".1 .1 .1"/></body>"""
LINK = fl.Link("hinge", "a", "b", anchor=(0.15, 0, 0.1), axis=(0, 1, 0))
OWN = {  # models that are not bundled
    "linked": lambda: fl.load(SCENE.format("", "", BOXES, ""), links=[LINK]),
    "dozing": lambda: fl.load(SCENE.format("", 'sleep="enable"', BOXES, "")),
}
REPORTS = ("ncon", "solver_niter", "solver_residual", "solver_gap", "nreset")
FIELDS = ("time", "qpos", "qvel", "qacc_warmstart", "qacc", "qfrc_constraint", *REPORTS)
SECONDS, SEED = (
    float(os.environ.get("FEATHERLANE_FUZZ_SECONDS", "120")),
    int(os.environ.get("FEATHERLANE_FUZZ_SEED", "0")),
)
SAMPLE = (  # possible properties of a sampled case: solvers, a split tile, per-world models
    ("humanoid", {"solver": "newton", "cone": "elliptic"}, "float64", (), 0),
    ("humanoid", {"solver": "cg"}, "float32", ("body_mass", "geom_friction"), 6),
    ("box_stack", {"solver": "pgs", "noslip_iterations": 3}, "float64", (), 6),
    ("arm", {"integrator": "implicit", "solver": "pgs"}, "float64", ("jnt_range", "dof_frictionloss"), 0),
    ("box_stack", {"contact_model": "lcp", "lcp_solver": "apgd"}, "float64", ("opt_gravity",), 0),
    ("slider_crank", {"contact_model": "lcp", "lcp_solver": "pgs"}, "float64", (), 0),
    ("linked", {"contact_model": "lcp"}, "float64", (), 8),
    ("dozing", {}, "float64", (), 5),
)


def beside(model, states, nstep: int, dtype: str = "float64", **changes) -> dict[str, np.ndarray]:
    """Returns world 0 after some steps of a batch whose worlds start in these states."""
    batch = fl.Batch(model, len(states), nthread=1, dtype=dtype)
    for name in FIELDS:
        batch.bind(name)
    for w, state in enumerate(states):
        for name, value in state.items():
            getattr(batch, name)[w] = value
    batch.step(nstep)
    return {name: getattr(batch, name)[0].copy() for name in FIELDS} | {n: c[0] for n, c in batch.status.items()}


def assert_alone(model, state, mate, nstep: int, dtype: str = "float64") -> None:
    """A world next to another one is bitwise identical to simulating it alone."""
    alone, accompanied = (beside(model, worlds, nstep, dtype) for worlds in ([state], [state, mate]))
    for name, value in alone.items():
        assert np.asarray(value).tobytes() == np.asarray(accompanied[name]).tobytes(), name


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("solver", ["newton", "cg", "pgs"])
def test_a_world_without_contacts_solves_nothing_next_to_worlds_with_contacts(solver, dtype):
    model = fl.load(SCENE.format("", "", FLYING, ""))
    model.opt.solver = solver
    low = model.qpos0 - 1.7 * (np.arange(model.nq) == 2)
    for nstep in (5, 60):
        assert_alone(model, {"qvel": np.full(model.nv, 1e-8)}, {"qpos": low}, nstep, dtype)


@pytest.mark.parametrize("solver", ["dantzig", "pgs", "apgd"])
def test_a_world_without_rows_counts_no_sweeps_of_other_worlds(solver):
    model = fl.load(SCENE.format("", "", FLYING, ""))
    model.opt.contact_model, model.opt.lcp_solver = "lcp", solver
    assert_alone(model, {}, {"qpos": model.qpos0 - 1.7 * (np.arange(model.nq) == 2)}, 5)


def test_a_converged_world_does_not_move_along_an_infinite_direction():
    ended, point = np.array([0.0, 1.0]), np.array([-0.0, 4.0])
    with np.errstate(invalid="ignore"):
        found = step_along(ended, np.array([np.inf, 2.0]), point)
    assert found.tobytes() == np.array([-0.0, 6.0]).tobytes()


def test_the_gap_does_not_depend_on_requested_outputs():
    model = fl.bundled("chain")
    model.opt.solver = "newton"
    data, batch = fl.Data(model), fl.Batch(model, 1)
    for world in (data, batch):
        world.qpos[...] = model.qpos0 + 0.5 * np.sin(np.arange(model.nq))
    for _ in range(6):
        fl.step(model, data)
        batch.step()
        assert data.qvel.tobytes() == batch.qvel[0].tobytes()
        assert data.solver_gap == batch.solver_gap[0]
    assert data.solver_gap > 0.0


def test_a_friction_direction_does_not_require_geom_frames():
    """A rotating ball: a step without bound frames once computed only the z axis of its geom."""
    ball = '<body pos="0 0 .1" euler="20 30 40"><freejoint/><geom size=".1"/></body>'
    model = fl.load(SCENE.format("", "", ball, ""))
    model.opt.contact_model = "lcp"
    model.geom_fdir[1], model.geom_slip[1] = (1.0, 0.5, 0.2), (0.3, 0.0)
    plain, framed, data = fl.Batch(model, 1), fl.Batch(model, 1), fl.Data(model)
    framed.bind("geom_xmat")
    for world in (plain, framed, data):
        world.qvel[...] = (1.0, 0.3, 0.0, 4.0, 5.0, 6.0)
    for _ in range(5):
        plain.step()
        framed.step()
        fl.step(model, data)
    assert plain.ncon[0] == 1
    assert plain.qvel.tobytes() == framed.qvel.tobytes() == data.qvel.tobytes()


@pytest.mark.parametrize(
    "contact_model, field, value",
    [
        ("convex", "geom_surfacevel", 0.3),
        ("convex", "geom_adhesion", 5.0),
        ("convex", "body_gravcomp", 0.5),
        ("lcp", "geom_adhesion", 5.0),
    ],
)
def test_derivatives_do_not_depend_on_features_of_other_worlds(contact_model, field, value):
    """Formulas apply to a world whether or not another world of its batch has a feature without formulas."""
    model = fl.load(SCENE.format("", "", DOZING.replace("<joint", '<joint actuatorgravcomp="true"'), MOTOR))
    model.opt.contact_model = contact_model
    both, alone = fl.Batch(model, 2), fl.Batch(model, 1)
    both.expand(field)[1] = value
    both.qvel, alone.qvel = 0.1, 0.1
    functions = [fl.linearize] if contact_model == "lcp" else [fl.linearize, fl.inverse_derivatives]
    for function in functions:
        together, single = function(model, both), function(model, alone)
        for name in together._fields[:2]:
            assert getattr(together, name)[0].tobytes() == getattr(single, name)[0].tobytes(), name


def test_the_sign_of_a_zero_anchor_does_not_depend_on_other_worlds():
    """A joint at its body's origin, next to a world with an offset: the anchor is the body's position, -0 included."""
    model = fl.load(SCENE.format("", "", '<body><joint axis="0 1 0"/><geom size=".1"/></body>', ""))
    both, alone = fl.Batch(model, 2), fl.Batch(model, 1)
    for batch in (both, alone):
        batch.bind("xanchor")
        batch.expand("body_pos")[:, 1] = -0.0
        batch.expand("jnt_pos")[1:] = 0.1
        batch.forward()
    assert both.xanchor[0].tobytes() == alone.xanchor[0].tobytes()


def test_derivatives_do_not_depend_on_the_tile_before():
    """A world with a fluid next to one with adhesion: differences once read the adhesion of an earlier tile."""
    model = fl.load(SCENE.format("", "", BOXES, ""))
    both, alone = fl.Batch(model, 2, nthread=1), fl.Batch(model, 1)
    both.expand("geom_adhesion")[1] = 50.0
    for batch in (both, alone):
        batch.expand("opt_density")[0] = 3.0
        batch.qvel = 0.1 * np.arange(1.0, 1.0 + model.nv)
    for function in (fl.inverse_derivatives, fl.linearize):
        together, single = function(model, both), function(model, alone)
        for name in together._fields[:2]:
            assert getattr(together, name)[0].tobytes() == getattr(single, name)[0].tobytes(), name


def test_a_sleeping_world_counts_non_finite_controls_in_any_batch():
    model = fl.load(SCENE.format("", 'sleep="enable"', DOZING, MOTOR))
    alone, accompanied = fl.Batch(model, 1), fl.Batch(model, 2)
    data = fl.Data(model)
    accompanied.qvel[1] = 1.0
    for ctrl in (0.0, 0.3, np.nan):
        data.ctrl, alone.ctrl, accompanied.ctrl = ctrl, ctrl, ctrl
        for batch in (alone, accompanied):
            batch.bind("actuator_input")
            batch.step(40)
        fl.step(model, data, 40)
        assert data.status["bad_control"] == alone.status["bad_control"][0] == accompanied.status["bad_control"][0]
        assert data.actuator_input == alone.actuator_input[0] == accompanied.actuator_input[0]
    assert (alone.tree_asleep >= 0).all()
    assert (accompanied.tree_asleep[1] < 0).any()
    assert data.status["bad_control"] == 40


@pytest.mark.parametrize("name, options, dtype, expand, slots", SAMPLE)
def test_worlds_are_bitwise_equal_in_any_batch(name, options, dtype, expand, slots):
    report = Report()
    load = OWN.get(name, lambda: fl.bundled(name))
    look_at(Case(name, load, tuple(options.items()), dtype, expand, 3, slots), report, batches=5)
    assert not report.found, str(report)
    assert report.fields > 5_000


@pytest.mark.slow
def test_sampled_worlds_do_not_depend_on_their_batch():
    """Samples cases for FEATHERLANE_FUZZ_SECONDS, seed FEATHERLANE_FUZZ_SEED and up, over all models of the wheels."""
    report = search(SECONDS, SEED, models(of_wheels()))
    print(report)
    assert not report.found, str(report)
