"""An array read from an attribute is live or read-only: writing to it acts or raises an error."""

from collections.abc import Iterator

import numpy as np
import pytest

import featherlane as fl


def stepped(kind: str):
    """Returns an object with fields, after a step with contacts."""
    model = fl.load("quadruped")
    if kind == "data":
        data = fl.Data(model)
        data.record_solver = True
        data.reset(keyframe="home")
        data.qpos[2] -= 0.01
        fl.step(model, data)
        assert data.ncon
        return data
    if kind == "model":
        return model
    if kind == "mixed":
        batch = fl.MixedBatch([(model, 1), (fl.load("cartpole"), 2)])
    else:
        batch = (fl.Batch if kind == "batch" else fl.distributed.Batch)(model, 2)
    batch.bind("qacc")
    batch.step()
    return batch


def arrays(owner) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the arrays of the public attributes, by name; those in dicts, too."""
    for name in dir(owner):
        if name.startswith("_"):
            continue
        try:
            value = getattr(owner, name)
        except (AttributeError, fl.FeatherlaneError):
            continue  # another kind of model has it
        for key, array in value.items() if isinstance(value, dict) else [("", value)]:
            if isinstance(array, np.ndarray) and array.size:
                yield f"{name}.{key}", array


@pytest.mark.parametrize("kind", ["model", "data", "batch", "mixed", "distributed"])
def test_no_attribute_is_a_writable_copy(kind):
    owner = stepped(kind)
    first, again = dict(arrays(owner)), dict(arrays(owner))
    assert len(first) > (3 if kind in ("mixed", "distributed") else 20)
    copies = [n for n, a in first.items() if a.flags.writeable and not np.shares_memory(a, again[n])]
    assert not copies


def test_writing_to_a_copy_raises():
    data, batch = stepped("data"), stepped("batch")
    for array in (data.efc_J, data.contact.dist, data.solver_history.cost, batch.status["non_finite"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_counts_are_integers_of_each_kind_of_worlds():
    model = fl.bundled("humanoid")
    data, batch = fl.Data(model), fl.Batch(model, 2, dtype="float32")
    mixed, far = fl.MixedBatch([(model, 1), (fl.bundled("arm"), 1)]), fl.distributed.Batch(model, 2)
    for worlds in (data, batch, mixed, far):
        if worlds is not data:
            worlds.bind("nisland")
        worlds.step(60)
        for name in ("ncon", "nefc", "solver_niter", "nreset", "nisland"):
            count = getattr(worlds, name)
            if worlds is data:
                assert type(count) is int
                continue
            assert count.dtype == np.int64 and not count.flags.writeable, name
            assert worlds.get(name, ids=[1]).dtype == np.int64
    np.testing.assert_array_equal(mixed.ncon[0], data.ncon)
    live, before = batch.bind("ncon"), batch.ncon
    batch.qpos[:, 2] += 5.0
    batch.step(2)
    assert live.dtype == np.float32 and (live == 0.0).all() and (before > 0).all() and not live.flags.writeable


def test_a_count_that_no_call_has_computed_is_an_error():
    batch = fl.Batch(fl.bundled("humanoid"), 2)
    batch.bind("nisland")
    with pytest.raises(fl.ModelError, match="nisland"):
        _ = batch.nisland
