"""Every round of a comparison starts from the same states."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.measure.speed_comparison import Course, Lineup, Ratio

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILTER = """<mujoco><worldbody><body><joint name="knee"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
<actuator><general joint="knee" dyntype="filter" dynprm=".1"/></actuator></mujoco>"""


@pytest.fixture
def races(monkeypatch):
    """Returns the module benchmarks/races.py."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("races")


def test_activations_are_restored_before_each_round():
    lineup = Lineup(FILTER, Course(worlds=3, settle=0.3))
    batch, ends = fl.Batch(lineup.model, 3), []
    for _ in range(2):
        lineup.put(batch)
        assert batch.act.all()
        batch.step(4)
        ends.append((batch.qvel.copy(), batch.act.copy()))
    np.testing.assert_array_equal(*ends)


def test_ratios_between_settings_are_first_over_second(monkeypatch, races):
    raced = []

    def clocked(prepare, run):
        prepare()
        run()
        return lambda: (2.0, 1.0)[len(raced)]

    def alternated(sides, rounds, told):
        seconds = {}
        for name, once in sides.items():
            seconds[name] = np.full(rounds, once())
            raced.append(name)
        raced.clear()
        return seconds

    monkeypatch.setattr(races, "timed", clocked)
    monkeypatch.setattr(races, "alternate", alternated)
    lineup, twice = Lineup("pendulum", Course(worlds=3, settle=0.0, rounds=2)), Ratio(2.0, 2.0, 2.0)
    assert races.race_precisions(lineup) == races.race_threads(lineup) == races.race_cores(lineup) == twice


@pytest.mark.parametrize(("worlds", "sizes"), [(5, [2, 3]), (1, [1, 1])])
def test_two_cores_share_the_worlds_and_step_all_of_them(worlds, sizes, monkeypatch, races):
    made, ends = [], []

    def batch(*args, **options):
        made.append(fl.Batch(*args, **options))
        return made[-1]

    def alternated(sides, rounds, told):
        for once in sides.values():
            once()
            ends.append(np.concatenate([b.qpos for b in made]))
        return dict.fromkeys(sides, np.ones(rounds))

    monkeypatch.setattr(races, "Batch", batch)
    monkeypatch.setattr(races, "alternate", alternated)
    lineup = Lineup("pendulum", Course(worlds=worlds, settle=0.1, rounds=2))
    made.clear()
    races.race_cores(lineup)
    assert [b.nworld for b in made] == sizes
    whole = fl.Batch(lineup.model, worlds)
    lineup.put(whole)
    whole.step(lineup.course.nstep)
    stepped = np.concatenate([whole.qpos, whole.qpos]) if worlds == 1 else whole.qpos
    np.testing.assert_array_equal(ends[0], stepped)
    np.testing.assert_array_equal(ends[1], stepped)
