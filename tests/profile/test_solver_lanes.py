"""Active lanes per solver iteration, against the iterations that a batch reports for each world."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.measure.controls import Random
from featherlane.apps.measure.speed_comparison import Course, Lineup
from featherlane.tools.profile.solver_lanes import STEPS, solver_lanes
from featherlane.tools.profile.stage_times import tiles

WORLDS = 16


@pytest.fixture(scope="module")
def lineup():
    return Lineup("quadruped_elliptic", Course(worlds=WORLDS, settle=0.3, nstep=3))


def steps_of_a_batch(lineup):
    """Returns iterations and contacts of each world and step, (2, STEPS, WORLDS), with new controls every `nstep`."""
    model, found = lineup.model, []
    batch, controls = fl.Batch(model, WORLDS), Random(model, lineup.course.seed + 1, model.opt.timestep)
    lineup.put(batch)
    for k in range(STEPS):
        if k % lineup.course.nstep == 0:
            batch.ctrl = controls.draw(k, WORLDS)
        batch.step()
        found.append((batch.solver_niter.copy(), batch.ncon.copy()))
    return np.array(found).swapaxes(0, 1)


def test_counts_equal_the_iterations_that_a_batch_reports(lineup):
    (niter, ncon), found = steps_of_a_batch(lineup), solver_lanes(lineup)
    of_tiles = [row[tile.worlds].tolist() for tile in tiles(lineup) for row in niter]
    slowest = [max(worlds) for worlds in of_tiles]
    assert found["world"] == pytest.approx(niter.mean())
    assert found["tile"] == pytest.approx(sum(slowest) / len(slowest))
    assert found["lanes_active"] == pytest.approx(niter.sum() / (sum(slowest) * len(of_tiles[0])))
    assert found["contacts"] == pytest.approx(ncon.mean())
    of_tiles_ncon = np.array([row[tile.worlds] for tile in tiles(lineup) for row in ncon])
    assert of_tiles_ncon.max(axis=1).mean() <= found["slots"] < of_tiles_ncon.sum(axis=1).mean()
    assert 0.0 < found["lanes_active"] < 1.0 and len(found["iterations"]) == max(slowest)
    for k, one in enumerate(found["iterations"], 1):
        iterating = [worlds for worlds in of_tiles if max(worlds) >= k]
        active = [sum(n >= k for n in worlds) / len(worlds) for worlds in iterating]
        assert one["tiles"] == pytest.approx(len(iterating) / len(of_tiles))
        assert one["lanes"] == pytest.approx(sum(active) / len(active))


def test_a_model_without_iterations_has_an_empty_report():
    assert solver_lanes(Lineup("pendulum", Course(worlds=8, settle=0.0, smooth=True))) == {}
