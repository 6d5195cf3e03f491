"""Checks each statement of docs/diagnostics.md about status codes, residuals and checks."""

import warnings

import numpy as np
import pytest

import featherlane as fl

pytestmark = pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
PRECISIONS = ("float64", "float32")
BEYOND = 2e10  # an out-of-range value that is not NaN
N, BROKEN = 9, 4  # worlds; the non-finite one shares its tile with eight others in float32, with seven in float64
FALLING = '<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
INPUTS = ("qpos", "qvel", "time", "act", "mocap_pos", "mocap_quat", "eq_active")
EVERYTHING = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><body name="hand" mocap="true" pos="0 0 2"/>
<body name="arm" pos="0 0 1"><joint name="pin" axis="0 1 0"/>
<geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/></body><body pos="1 0 .1"><freejoint/><geom size=".1"/></body>
</worldbody><equality><joint joint1="pin" active="false"/></equality>
<actuator><general name="drive" joint="pin" dyntype="integrator"/></actuator></mujoco>"""


def pair(dtype="float64", source=EVERYTHING):
    """Returns two batches of the same moving worlds."""
    model = fl.load(source)
    batches = [fl.Batch(model, N, nthread=1, dtype=dtype) for _ in range(2)]
    for batch in batches:
        batch.qvel[:] = 0.1 * np.random.default_rng(0).standard_normal(batch.qvel.shape)
        batch.ctrl[:] = np.linspace(-1, 1, N)[:, None]
    return batches


def counts(owner, name):
    return np.asarray(owner.status[name])


# ---- non-finite states ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -BEYOND])
@pytest.mark.parametrize("name", INPUTS)
def test_a_non_finite_state_is_reset_and_counted_without_affecting_other_worlds(name, value, dtype):
    broken, sound = pair(dtype)
    getattr(broken, name)[BROKEN] = value
    for batch in (broken, sound):
        batch.step(3)
    others = np.arange(N) != BROKEN
    assert counts(broken, "non_finite")[BROKEN] == 1 and broken.nreset[BROKEN] == 1
    assert not counts(broken, "non_finite")[others].any() and not broken.nreset[others].any()
    for field in ("qpos", "qvel", "act", "time", "solver_niter", "solver_residual", "warning"):
        ours, theirs = (getattr(b, field)[others] for b in (broken, sound))
        assert np.array_equal(ours, theirs), field
    fresh = fl.Batch(broken.model, 1, nthread=1, dtype=dtype)
    fresh.step(3)
    assert np.array_equal(fresh.qpos[0], broken.qpos[BROKEN]) and broken.time[BROKEN] == fresh.time[0]
    assert not broken.ctrl[BROKEN].any() and broken.ctrl[others].any()


@pytest.mark.parametrize("name", ["qfrc_applied", "xfrc_applied"])
def test_a_non_finite_force_resets_the_world(name):
    broken, _ = pair()
    getattr(broken, name)[BROKEN] = np.nan
    broken.step(2)
    assert counts(broken, "non_finite")[BROKEN] == 1 and np.isfinite(broken.qpos).all()
    assert not getattr(broken, name)[BROKEN].any()


def test_without_autoreset_a_world_stays_non_finite_and_counts_each_step():
    broken, sound = pair()
    broken.model.opt.disableflags = "autoreset"
    broken.qvel[BROKEN] = np.nan
    for batch in (broken, sound):
        batch.step(3)
    assert counts(broken, "non_finite")[BROKEN] >= 3 and not broken.nreset.any()
    assert np.isnan(broken.qvel[BROKEN]).all()
    assert np.array_equal(*(np.delete(batch.qpos, BROKEN, axis=0) for batch in (broken, sound)))


def test_the_state_after_a_call_is_checked_at_the_next_step():
    batch = fl.Batch(fl.load(FALLING), 1)
    batch.qvel[0, 0], batch.qpos[0, 0] = 9.9e9, 9.999e9
    batch.step(1)
    assert batch.qpos[0, 0] > 1e10 and not counts(batch, "non_finite")[0]
    batch.step(1)
    assert abs(batch.qpos[0, 0]) < 1 and counts(batch, "non_finite")[0] == 1


@pytest.mark.parametrize("name", ["qpos", "qfrc_applied"])
def test_a_forward_pass_counts_and_resets_nothing_and_its_parts_count_nothing(name):
    model = fl.load(FALLING)
    batch, data = fl.Batch(model, 1), fl.Data(model)
    getattr(batch, name)[0, 0] = getattr(data, name)[0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # only steps warn
        batch.forward()
    assert counts(batch, "non_finite")[0] == 1 and np.isnan(getattr(batch, name)[0, 0]) and not batch.nreset[0]
    for part in (
        fl.stages.forward_position,
        fl.stages.forward_velocity,
        fl.stages.smooth_acceleration,
        fl.stages.forward_constraint,
    ):
        part(model, data)
    assert not data.status["non_finite"]
    fl.forward(model, data)
    assert data.status["non_finite"] == 1 and not data.nreset


def test_an_explicit_reset_clears_counts_and_an_automatic_reset_does_not():
    broken, _ = pair()
    broken.qvel[BROKEN] = np.nan
    broken.step(2)
    assert counts(broken, "non_finite")[BROKEN] == 1
    broken.reset(ids=[BROKEN])
    assert not counts(broken, "non_finite").any() and not broken.nreset.any()


def test_non_finite_values_warn_once_per_batch_and_data():
    model = fl.load(FALLING)
    for owner in (fl.Batch(model, 2), fl.Data(model)):
        told = []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                owner.qvel[...] = np.nan
                owner.step(1) if isinstance(owner, fl.Batch) else fl.step(model, owner)
            told.append(len(heard))
        assert told == [1, 0]


# ---- controls ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_non_finite_control_is_counted_once_and_zeroes_all_controls_of_the_world(integrator, dtype):
    broken, sound = pair(dtype)
    broken.model.opt.integrator = sound.model.opt.integrator = integrator
    broken.ctrl[BROKEN], sound.ctrl[BROKEN] = np.nan, 0.0
    for batch in (broken, sound):
        batch.step(5)
    assert counts(broken, "bad_control")[BROKEN] == 5 and not counts(broken, "non_finite").any()
    assert np.array_equal(broken.qpos, sound.qpos)


def test_an_infinite_control_with_a_range_is_clipped_and_not_counted():
    model = fl.bundled("arm")
    batch = fl.Batch(model, 2)
    batch.ctrl[0], batch.ctrl[1] = np.inf, model.actuator_ctrlrange[:, 1]
    batch.step(3)
    assert not counts(batch, "bad_control").any() and np.array_equal(batch.qpos[0], batch.qpos[1])


# ---- the model -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("world", [None, BROKEN])
def test_an_invalid_field_value_is_refused_by_the_next_call(world, dtype):
    broken, _ = pair(dtype)
    field = broken.model.body_mass if world is None else broken.expand("body_mass")[world]
    field[1] = -1.0  # the edit itself raises nothing
    place = "" if world is None else f" in world {world}"
    with pytest.raises(fl.ModelError, match=rf"body_mass of body 'hand'{place}: got -1, allowed are finite numbers"):
        broken.step()
    assert not broken.time.any()


def test_an_invalid_option_is_refused_on_assignment():
    model = fl.bundled("arm")
    with pytest.raises(fl.ModelError):
        model.opt.timestep = -1
    assert model.opt.timestep > 0


# ---- residual, gap, iterations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "cg", "pgs"])
def test_the_residual_is_the_norm_of_the_gradient_over_the_trace_of_the_inertia(solver):
    model = fl.bundled("humanoid")
    model.opt.solver, model.opt.tolerance = solver, 1e-4
    data = fl.Data(model)
    data.qpos[2] -= 0.05
    fl.forward(model, data)
    M = fl.query.full_m(model, data)
    gradient = M @ data.qacc - data.qfrc_smooth - data.qfrc_constraint
    if solver != "pgs":  # its forces do not match its acceleration
        assert data.solver_residual == pytest.approx(np.linalg.norm(gradient) / np.trace(M), rel=1e-6, abs=1e-12)
    assert data.solver_gap >= 0.0 and data.solver_niter >= 1


@pytest.mark.parametrize("solver", ["newton", "cg", "pgs"])
def test_the_gap_bounds_the_cost_above_its_minimum(solver):
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    data.qpos[2] -= 0.05
    data.record_solver = True
    model.opt.tolerance = 0
    fl.forward(model, data)
    least = data.solver_history.cost.min()
    model.opt.solver, model.opt.tolerance, model.opt.iterations = solver, 0, 3
    data.qacc_warmstart = 0
    fl.forward(model, data)
    assert -1e-12 <= data.solver_history.cost[-1] - least <= data.solver_gap * (1 + 1e-6) + 1e-12


def test_a_world_without_rows_has_no_residual():
    data = fl.Data(fl.load(FALLING))
    fl.step(data.model, data)
    assert (data.solver_residual, data.solver_gap, data.solver_niter) == (0.0, 0.0, 0)


def test_iterations_that_run_out_count_as_not_converged_four_times_in_a_step_of_rk4():
    for integrator, most in (("euler", 1), ("rk4", 4)):
        model = fl.bundled("humanoid")
        model.opt.integrator, model.opt.solver, model.opt.iterations, model.opt.tolerance = integrator, "cg", 1, 0
        data = fl.Data(model)
        data.qpos[2] -= 0.05
        fl.step(model, data)
        assert data.status["not_converged"] == most
        fl.forward(model, data)
        assert data.status["not_converged"] == most + 1


def test_the_lcp_counts_steps_above_its_tolerance():
    model = fl.bundled("box_stack")
    model.opt.contact_model, model.opt.lcp_solver, model.opt.lcp_iterations = "lcp", "pgs", 1
    data = fl.Data(model)
    fl.step(model, data)
    assert data.solver_residual > model.opt.lcp_tolerance and data.status["not_converged"] == 1
    assert data.solver_gap == 0.0


def test_an_lcp_without_a_solution_has_a_status_and_a_finite_answer():
    found = fl.lcp.solve(
        np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, 1.0]), lo=np.zeros(2), hi=np.full(2, np.inf)
    )
    assert found.status != 0 and np.isfinite(found.x).all() and found.residual > 1e-6
