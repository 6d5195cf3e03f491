"""Float32 against float64: one step from the same state, and averages over long motions."""

import copy
import pickle

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import parity
from sampling import every

STEP = 1e-4  # of qvel, relative to its largest entry or 1
MEANS = 0.01
# fraction of worlds left out, at most: in a pile of 190 contacts, rounding decides in 5 of 504 whether rows exist
EDGE = 0.01
TOUCH = 5e-7  # relative to the position or 1 m: four float32 rounding errors
FEW, MANY = 32, 504
# M of the rope and of the chain has a condition number of millions: seven digits cannot solve it; the pyramid's
# boxes lie edge on edge, so the seventh digit decides which contacts exist
ILL_CONDITIONED = ("bundled/rope", "bundled/chain", "bundled/pyramid")
WELL_CONDITIONED = tuple(name for name in parity.MODELS if name not in ILL_CONDITIONED)


def batches(name, path, nworld):
    """Returns the same worlds in both precisions, in states exact in float32, with the model's tolerance."""
    mj = parity.oracle(name, path)
    states = parity.states(mj, nworld, np.random.default_rng(0))
    mj.opt.tolerance, mj.opt.ls_iterations = 1e-8, 50
    model = fl.load(mj)
    single, double = fl.Batch(model, nworld, dtype="float32"), fl.Batch(model, nworld)
    for field in parity.INPUTS:
        setattr(single, field, np.array([state[field] for state in states]))
        setattr(double, field, getattr(single, field))
    return single, double


def touching(batch, state):
    """Returns: pair of geoms -> heights above margin of its contacts with rows, relative to the position or 1 m."""
    width, found = tile_width(batch.dtype), {}
    tile = Workspace(batch.model, width, batch.dtype)
    for field, value in state.items():
        tile.arrays[field][: value.size] = np.reshape(value, (-1, 1))
    tile.run(forward)
    count = int(tile.arrays["ncon_slot"][0])
    geom, pos = tile.arrays["con_geom"].reshape(-1, 2), tile.arrays["con_pos"].reshape(-1, 3, width)
    for k in range(count):
        height = float(tile.arrays["con_dist"][k, 0]) - float(tile.arrays["con_includemargin"][k, 0])
        if tile.arrays["con_present"][k, 0] and height < 0.0:
            size = max(1.0, np.abs(pos[k, :, 0]).max())
            found.setdefault(tuple(geom[k]), []).append(height / size)
    return found


def differ_by_rounding(single, double):
    """Returns whether some pair has more contacts in one precision, all extra ones within TOUCH of the margin."""
    more = []
    for pair in single.keys() | double.keys():
        few, many = sorted((single.get(pair, []), double.get(pair, [])), key=len)
        more += sorted(many)[len(few) :]
    return bool(more) and min(more) >= -TOUCH


def check_step(name, path, nworld):
    single, double = batches(name, path, nworld)
    start = {field: np.array(getattr(double, field)) for field in parity.INPUTS}
    for batch in (single, double):
        batch.step()
    assert single.qvel.dtype == np.float32
    scale = np.maximum(1.0, np.abs(double.qvel).max(axis=1, initial=0.0))
    error = np.abs(single.qvel - double.qvel).max(axis=1, initial=0.0) / scale

    # the force jumps when a contact starts: float32 rounding of its distance may decide whether it has rows
    beyond = np.flatnonzero(~(error <= STEP))
    assert len(beyond) <= EDGE * nworld, f"worlds {beyond}"
    for world in beyond:
        touches = [touching(batch, {field: start[field][world] for field in start}) for batch in (single, double)]
        assert differ_by_rounding(*touches), f"world {world}: {error[world]:.1e}"


@pytest.mark.parametrize("name", every(3, WELL_CONDITIONED))
def test_a_float32_step_is_near_the_float64_step(name, real_model):
    check_step(name, real_model, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", WELL_CONDITIONED)
def test_many_float32_steps_are_near_the_float64_steps(name, real_model):
    check_step(name, real_model, MANY)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["dm_control/humanoid", "gymnasium/ant", "gymnasium/half_cheetah", "bundled/quadruped"]
)
def test_means_over_a_thousand_steps_equal_those_of_float64(name, real_model):
    nstep, means = 1000, []
    batches_of = batches(name, real_model, 8)
    model = batches_of[0].model
    control = np.random.default_rng(1).uniform(-0.5, 0.5, (512, nstep, model.nu))
    for small in batches_of:
        batch = fl.Batch(model, 512, dtype=small.dtype)
        out = batch.rollout(nstep, control=control, record=("qfrc_constraint", "energy", "solver_niter"))
        force = np.linalg.norm(out["qfrc_constraint"], axis=2)
        means.append(
            [np.mean(x[:, 200:], dtype=float) for x in (force, *np.moveaxis(out["energy"], 2, 0), out["solver_niter"])]
        )
    np.testing.assert_allclose(means[0], means[1], rtol=MEANS)


# ---- time ------------------------------------------------------------------------------------------------------------
SLIDER = """<mujoco><option timestep="0.01" gravity="0 0 0" integrator="{}"/><worldbody><body><joint type="slide"/>
<geom size=".1" mass="1"/></body></worldbody><actuator><motor joint="joint"/></actuator></mujoco>"""
START = 70000.0  # s: float32 resolves 0.008


@fl.kernel
def swings(m, d):
    """Sets a control of 1 Hz, and a force equal to the time since the start."""
    s, _ = fl.lanes.sincos(6.283185307179586 * d.time[0])
    d.ctrl[0] = s
    d.qfrc_applied[0] = d.time[0] - START


def swung(dtype, integrator):
    batch = fl.Batch(fl.load(SLIDER.format(integrator).replace("<joint ", '<joint name="joint" ')), 3, dtype=dtype)
    batch.time = START
    batch.expand("opt.timestep")[2] = 0.003
    return batch, batch.rollout(50, swings, record=("time", "ctrl", "qfrc_applied", "qvel"))


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_functions_of_time_in_float32_equal_those_of_float64(integrator):
    (single, found), (double, expected) = swung("float32", integrator), swung("float64", integrator)
    assert single.expanded("opt_timestep").dtype == np.float64
    np.testing.assert_array_equal(found["time"], expected["time"])
    np.testing.assert_array_equal(single.time, double.time)
    for name in ("ctrl", "qfrc_applied", "qvel"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6, err_msg=name)


def test_every_copy_of_time_in_float32_is_float64(tmp_path):
    model = fl.load(SLIDER.format("Euler").replace("<joint ", '<joint name="joint" '))
    batch = fl.Batch(model, 3, dtype="float32", record_failures=4)
    batch.time = START
    batch.step(3)
    time = START + 0.01 + 0.01 + 0.01
    kept = batch.checkpoint()
    batch.ctrl[1] = np.nan
    batch.step(2)
    batch.failures[0].save(tmp_path / "bad.npz")
    failure = fl.load_failure(tmp_path / "bad.npz")
    assert failure.dtype == np.float32 and failure.time == time == failure.replay_batch(-1).time[0]
    batch.restore(kept)
    mixed = fl.MixedBatch([(model, 2), (model, 1)], dtype="float32")
    mixed.time[...] = batch.time
    state = fl.get_state(model, batch, fl.State.TIME)
    found = [batch.time, mixed.time, batch.get_data(2).time, state, copy.deepcopy(batch).time]
    found.append(pickle.loads(pickle.dumps(batch)).time)
    assert all((np.asarray(t) == time).all() for t in found)
