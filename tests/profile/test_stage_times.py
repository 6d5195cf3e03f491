"""Timed stages are those of the batch's step, without the overhead of calls."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.measure.speed_comparison import Course, Lineup
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.simulation.step import forward
from featherlane.tools.profile import stage_times as stage_times_module
from featherlane.tools.profile.stage_times import STEPS, LeastTimes, stages_of_step, tiles

FILTER = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .3">
<joint name="knee" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 -.28" size=".03"/></body></worldbody>
<actuator><general joint="knee" dyntype="filter" dynprm=".1" gainprm="3"/></actuator></mujoco>"""
STEPPED = {
    **{name: (name, {}) for name in "arm humanoid cartpole slider_crank hand rope quadruped_elliptic".split()},
    **{name: ("humanoid", {"integrator": name}) for name in ("rk4", "implicit", "implicitfast", "discrete")},
    "lcp": ("box_stack", {"contact_model": "lcp"}),
    "activation": (FILTER, {}),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", STEPPED)
def test_the_stages_that_are_timed_make_the_batchs_step(case, dtype):
    """Several steps, bit for bit: the timed stages are the whole motion."""
    source, options = STEPPED[case]
    width = tile_width(dtype)
    lineup = Lineup(source, Course(worlds=width, settle=0.1, dtype=dtype))
    for name, value in options.items():
        setattr(lineup.model.opt, name, value)
    batch, (tile,) = fl.Batch(lineup.model, width, dtype=dtype), tiles(lineup)
    stages = stages_of_step(lineup.model, tile.workspace)
    names = {stage.name for stage in stages}
    assert {"bias", "com_pos", "solve_constraint"} <= names and not {"rne", "com_vel", "frames"} & names
    lineup.put(batch)
    batch.step(STEPS)
    tile.put(lineup)
    for _ in range(STEPS):
        for stage in stages:
            tile.workspace.bound(stage)()
    for name in ("qpos", "qvel", "act", "qacc_warmstart"):
        rows = tile.workspace.arrays[name][: getattr(batch, name).shape[1]]
        np.testing.assert_array_equal(rows.T, getattr(batch, name)[tile.worlds])


def test_tiles_are_of_worlds_with_similar_contacts():
    """As in a batch that has stepped from the settled states, not the order in which it begins without contacts."""
    lineup, slots = Lineup("quadruped_elliptic", Course(worlds=128, settle=0.5)), {"batch": 0, "by number": 0}
    for k, tile in enumerate(tiles(lineup)):
        by_number = tile._replace(worlds=np.arange(len(tile.worlds)) + k * len(tile.worlds))
        for name, some in {"batch": tile, "by number": by_number}.items():
            some.put(lineup)
            some.workspace.bound(forward.step)()
            slots[name] += int(some.workspace.arrays["ncon_slot"][0])
    assert 0 < slots["batch"] < 0.7 * slots["by number"]


def test_call_overhead_is_subtracted_from_stage_times(monkeypatch):
    """Each part's time is its minimum over calls, on a clock that advances with the stages that ran."""
    now, least = [0.0], LeastTimes(lambda: pass_by(0.5))

    def pass_by(seconds):
        now[0] += seconds

    monkeypatch.setattr(stage_times_module.time, "perf_counter", lambda: now[0])
    for slow in (2.0, 1.0, 3.0):
        for k in range(2):
            least.time("a", k, pass_by, slow + k)
        least.time("b", 1, pass_by, 4.0)
    assert least.seconds() == {"a": {0: 0.5, 1: 1.5}, "b": {1: 3.5}}
