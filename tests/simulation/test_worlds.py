"""`Worlds`: the same program on a batch, on a batch of several models, and on a batch distributed over workers."""

import inspect

import numpy as np
import pytest

import featherlane as fl

NWORLD = 6
CLASSES = {"batch": fl.Batch, "mixed": fl.MixedBatch, "distributed": fl.distributed.Batch}
METHODS = [name for name, _ in inspect.getmembers(fl.Worlds, inspect.isfunction) if not name.startswith("_")]
DECLARED = [name for name in METHODS if inspect.getsource(getattr(fl.Worlds, name)).rstrip().endswith(('"""', "..."))]


def made(kind: str, model: fl.Model) -> fl.Worlds:
    """Returns six worlds of a model; the mixed ones in two groups."""
    if kind == "mixed":
        return fl.MixedBatch([(model, 2), (model, NWORLD - 2)], record_failures=2)
    return CLASSES[kind](model, NWORLD, record_failures=2)


def parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("kind", CLASSES)
def test_each_kind_implements_the_methods_of_worlds_with_their_signatures(kind):
    cls = CLASSES[kind]
    assert len(DECLARED) > 10
    assert not [name for name in DECLARED if getattr(cls, name) is getattr(fl.Worlds, name)]
    wrong = {
        name: (parameters(getattr(fl.Worlds, name)), parameters(getattr(cls, name)))
        for name in METHODS
        if parameters(getattr(fl.Worlds, name)) != parameters(getattr(cls, name))
    }
    assert not wrong
    worlds = made(kind, fl.bundled("cartpole"))
    assert isinstance(worlds, fl.Worlds)
    assert all(hasattr(worlds, name) for name in ("nworld", "dtype", "status", "failures"))


@pytest.mark.parametrize("kind", CLASSES)
def test_a_member_that_all_kinds_have_is_documented_once(kind):
    """Other members, properties included, have separate docstrings."""
    for name, member in vars(CLASSES[kind]).items():
        if isinstance(member, property) or (inspect.isfunction(member) and not name.startswith("_")):
            assert inspect.getdoc(member), name
            assert member.__doc__ is None or not hasattr(fl.Worlds, name), name


def test_a_copy_of_a_mixed_batch_is_independent():
    model = fl.bundled("cartpole")
    mixed = fl.MixedBatch([(model, 2), (fl.bundled("arm"), 1)])
    kept = mixed.qpos.copy()
    copied = mixed.copy()
    copied.qvel = np.full(copied.qvel.shape, 0.1)
    copied.step(3)
    np.testing.assert_array_equal(mixed.qpos, kept)
    assert copied.models == mixed.models and (copied.qpos != kept).any()


def program(worlds: fl.Worlds) -> dict[str, np.ndarray]:
    """Runs every operation that a program can do with worlds, and returns the results."""
    found = {}
    worlds.qvel = np.linspace(0.0, 1.0, worlds.nworld)[:, None]
    worlds.bind("xpos")
    worlds.step(3, ids=[0, 4, 5])
    kept = worlds.checkpoint()
    found["xpos"] = np.array(worlds.xpos)
    found["state"] = worlds.get_state()
    worlds.set_state(0.5 * found["state"])
    found["half"] = worlds.get_state(fl.State.QPOS)
    worlds.set_state(found["state"])
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
    found["counted"] = worlds.count_of("non_finite", "bad_control")
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


@pytest.mark.parametrize("kind", CLASSES)
def test_get_returns_copies_of_some_worlds(kind):
    worlds = made(kind, fl.bundled("cartpole"))
    worlds.qpos = np.arange(2.0 * NWORLD).reshape(NWORLD, 2)
    rows = worlds.get("qpos", ids=[1, 4])
    np.testing.assert_array_equal(rows, [[2.0, 3.0], [8.0, 9.0]])
    assert not rows.flags.writeable and worlds.get("time").shape == (NWORLD,)
    for name in ("qpo", "xpos"):  # unknown, not bound
        with pytest.raises(fl.ModelError, match=name):
            worlds.get(name)
