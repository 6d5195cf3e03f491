"""Plans of a batch's calls: which are reused by the next call, and which tiles they form."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch.plans import ROWS_KEPT, Plans
from featherlane.engine.simulation.tile.team import Team

N = 5


@pytest.fixture
def plans():
    found = Plans(fl.Batch(fl.bundled("cartpole"), N, nthread=1).arrays, Team(1))
    found.prepare(found.width)
    return found


def test_a_plain_plan_lasts_until_the_rows_of_the_worlds_change(plans):
    make = lambda nstep: plans.step_plan(nstep, plans.width, {}, {}, None)  # noqa: E731
    first = make(1)
    assert make(7) is first
    assert make(0) is not first, "a forward pass stores other rows"
    plans.arrays.expand("body_mass")
    plans.prepare(plans.width)
    assert make(1) is not first
    assert "body_mass" in {t.field for t in make(1).transfers["load"]}


def test_a_plan_is_reused_for_small_rows_in_the_same_memory_only(plans):
    def planned(rows):
        return plans.step_plan(rows.shape[1], plans.width, {"ctrl": rows}, {}, None)

    rows = np.zeros((N, 3, plans.model.nu))
    first = planned(rows)
    assert planned(rows) is first
    assert planned(rows.copy()) is not first
    large = np.zeros((N, ROWS_KEPT // (N * 8) + 1, plans.model.nu))
    assert planned(large) is not planned(large)


def test_a_plan_is_reused_for_the_same_control_and_numbers_only():
    @fl.kernel
    def drive(m, d, p):
        """Sets the first control."""
        d.ctrl[0] = p.given[0]

    @fl.kernel
    def brake(m, d, p):
        """Sets the opposite control."""
        d.ctrl[0] = -p.given[0]

    batch = fl.Batch(fl.bundled("cartpole"), N, nthread=1)
    plans, forms = batch.runner.plans, [fl.Controller(batch, f, given=1) for f in (drive, drive, brake)]
    used = []
    for form, value in ((0, 0.3), (0, 0.5), (1, 0.7), (2, 0.9)):
        forms[form].given[:] = value
        batch.rollout(2, forms[form], ())
        np.testing.assert_array_equal(batch.ctrl, -value if form == 2 else value)
        used.append(plans._rows_plan[1])
    assert used[0] is used[1]
    assert len({id(plan) for plan in used[1:]}) == 3


def test_parts_and_places_cover_each_chosen_world_once(plans):
    chosen = np.array([4, 0, 3])
    assert np.array_equal(np.concatenate([part for _, part in plans.parts(chosen)]), chosen)
    assert plans.parts(np.array([2]))[0][0] == 1, "a world without others steps in a tile of one world"
    plan = plans.step_plan(1, plans.width, {"ctrl": np.zeros((3, 1, plans.model.nu))}, {}, None)
    _, ntile = plans.begun(plan, 1, chosen, np.array([0, 3]))
    assert ntile == 1
    assert chosen[plan.place[:2]].tolist() == plan.order[:2].tolist() == [0, 3]
