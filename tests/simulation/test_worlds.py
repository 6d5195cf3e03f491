"""`Worlds`: the same program on a batch, on a batch of several models, and on a batch distributed over workers."""

import inspect

import numpy as np
import pytest

import featherlane as fl

NWORLD = 6
CLASSES = {"batch": fl.Batch, "mixed": fl.MixedBatch, "distributed": fl.distributed.Batch}
MEMBERS = [name for name in vars(fl.Worlds) if not name.startswith("_")]
METHODS = [name for name in MEMBERS if inspect.isfunction(vars(fl.Worlds)[name])]


def made(kind: str, model: fl.Model) -> fl.Worlds:
    """Returns six worlds of a model; the mixed ones in two groups."""
    if kind == "mixed":
        return fl.MixedBatch([(model, 2), (model, NWORLD - 2)], record_failures=2)
    return CLASSES[kind](model, NWORLD, record_failures=2)


def parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("kind", CLASSES)
def test_signatures_equal_those_of_the_protocol(kind):
    wrong = {
        name: (parameters(vars(fl.Worlds)[name]), parameters(getattr(CLASSES[kind], name)))
        for name in METHODS
        if parameters(vars(fl.Worlds)[name]) != parameters(getattr(CLASSES[kind], name))
    }
    assert not wrong
    assert all(hasattr(made(kind, fl.bundled("cartpole")), name) for name in MEMBERS)


def program(worlds: fl.Worlds) -> dict[str, np.ndarray]:
    """Runs every operation that a program can do with worlds, and returns the results."""
    found = {}
    worlds.qvel = np.linspace(0.0, 1.0, worlds.nworld)[:, None]
    worlds.bind("xpos")
    worlds.step(3, ids=[0, 4, 5])
    kept = worlds.checkpoint()
    found["xpos"] = np.array(worlds.xpos)
    worlds.step(1, stage="position")
    found["present xpos"] = np.array(worlds.xpos)
    worlds.restore(kept)
    control = np.full((2, worlds.ctrl.shape[1]), 0.1)
    recorded = worlds.rollout(2, control, record=("qpos", "time"), out={"time": np.zeros((worlds.nworld, 2))})
    found |= {f"recorded {name}": rows for name, rows in recorded.items()}
    for how in ("mean", "max", fl.distributed.Histogram((-1.0, 0.0, 1.0))):
        worlds.restore(kept)
        found |= {f"{how} {k}": v for k, v in worlds.rollout(2, control, ("qpos", "ncon"), reduce=how).items()}
    worlds.reset(ids=[1, 4], keyframe=np.array([-1, -1]))
    worlds.forward()
    worlds.expand("body_mass")
    worlds.set_const(ids=[2])
    found["body_mass"] = worlds.get_model(3).body_mass
    found["qpos"] = worlds.get_data(5).qpos
    bad = np.array(worlds.qvel)
    bad[3] = np.nan
    worlds.qvel = bad
    with pytest.warns(fl.NonFiniteWarning, match="world 3 "):
        worlds.step()
        worlds.rollout(1)
    found["bad"] = worlds.status["non_finite"]
    found["failures"] = np.array([failure.world for failure in worlds.failures])
    return found


def test_a_program_gives_bitwise_equal_results_on_each_kind_of_batch():
    model = fl.bundled("cartpole")
    first, *others = (program(made(kind, model)) for kind in CLASSES)
    assert first["failures"].tolist() == [3]
    for other in others:
        assert first.keys() == other.keys()
        for name, value in first.items():
            np.testing.assert_array_equal(other[name], value, name)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_reduction_has_no_arrays_to_record_into_and_a_world_at_least(kind):
    worlds = made(kind, fl.bundled("cartpole"))
    with pytest.raises(fl.ModelError, match="out"):
        worlds.rollout(1, out={}, reduce="mean")
    with pytest.raises(fl.ModelError, match="ids"):
        worlds.rollout(1, ids=[], reduce="mean")
    with pytest.raises(fl.ModelError, match="median"):
        worlds.rollout(1, reduce="median")
