"""Worlds of different models in one batch: each equals its result in a separate batch."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import featherlane as fl

MODELS = {"quadruped": 11, "humanoid": 5, "hand": 9, "cartpole": 3, "arm": 1}
FIELDS = ("qpos", "qvel", "time", "qacc_warmstart", "xpos", "sensordata", "ncon", "solver_residual", "solver_niter")


@pytest.fixture(scope="module")
def models():
    return [(fl.bundled(name), n) for name, n in MODELS.items()]


def moved(batch):
    """Gives worlds different velocities and controls."""
    rng = np.random.default_rng(3)
    batch.qvel[...] = rng.normal(size=batch.qvel.shape)
    batch.ctrl[...] = rng.uniform(-1, 1, batch.ctrl.shape)
    for name in ("xpos", "sensordata"):
        batch.bind(name)
    return batch


def pairs(models, **more):
    """Returns a mixed batch, and separate batches."""
    mixed = fl.MixedBatch(models, **more)
    alone = [moved(fl.Batch(model, n, **more)) for model, n in models]
    for group in mixed.groups:
        moved(group)
    return mixed, alone


def part(mixed, k, name):
    """Returns the part of a padded field that belongs to group k."""
    rows = getattr(mixed, name)[mixed.starts[k] : mixed.starts[k + 1]]
    return rows[(..., *(slice(n) for n in getattr(mixed.groups[k], name).shape[1:]))]


@pytest.mark.parametrize("nthread", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_worlds_are_bitwise_equal_to_separate_batches(models, dtype, nthread):
    mixed, alone = pairs(models, dtype=dtype, nthread=nthread)
    for nstep in (1, 20):
        mixed.step(nstep)
        for k, batch in enumerate(alone):
            batch.step(nstep)
            for name in FIELDS:
                np.testing.assert_array_equal(part(mixed, k, name), getattr(batch, name), name)


def test_an_output_that_a_group_did_not_keep_is_refused(models):
    mixed = fl.MixedBatch(models)
    with pytest.raises(fl.ModelError):
        mixed.cvel  # noqa: B018
    mixed.step(2)
    mixed.groups[0].bind("xpos")
    with pytest.raises(fl.ModelError):
        mixed.xpos  # noqa: B018
    assert np.array_equal(np.isnan(mixed.bind("xpos")), mixed.mask("xpos"))
    mixed.forward()
    assert np.isfinite(mixed.xpos).all() and mixed.xpos.any()


def test_groups_of_one_model_and_a_single_group_work(models):
    model = models[0][0]
    mixed = fl.MixedBatch([(model, 3), (model, 2)])
    alone = fl.Batch(model, 5)
    for batch in (mixed, alone):
        batch.qvel[:, 0] = np.arange(5)
        batch.step(10)
    np.testing.assert_array_equal(mixed.qpos, alone.qpos)
    single = fl.MixedBatch([(model, 5)])
    single.qvel = alone.qvel
    assert single.qvel.shape == alone.qvel.shape


def test_padding_is_zero_and_marked_by_the_mask(models):
    mixed, _ = pairs(models)
    mixed.step(3)
    for name in ("qpos", "xpos", "ctrl", "time"):
        mask, rows = mixed.mask(name), np.asarray(getattr(mixed, name)).reshape(mixed.mask(name).shape)
        assert (rows[~mask] == 0.0).all()
        sizes = [np.prod(getattr(group, name).shape[1:], dtype=int) for group in mixed.groups]
        assert (mask.reshape(mixed.nworld, -1).sum(1) == np.repeat(sizes, list(MODELS.values()))).all()


def test_only_the_chosen_worlds_step(models):
    mixed, alone = pairs(models)
    ids = np.array([0, 3, 12, 20, 28])
    mixed.step(4, ids=ids)
    np.testing.assert_array_equal(np.flatnonzero(mixed.time > 0), ids)
    alone[1].step(4, ids=[1])
    np.testing.assert_array_equal(part(mixed, 1, "qpos"), alone[1].qpos)


def test_a_rollout_is_that_of_each_batch(models):
    mixed, alone = pairs(models)
    rng = np.random.default_rng(0)
    control = rng.uniform(-1, 1, (mixed.nworld, 6, mixed.ctrl.shape[1]))
    out = mixed.rollout(6, control, ("qpos", "sensordata", "xpos"))
    for k, batch in enumerate(alone):
        a, b = mixed.starts[k], mixed.starts[k + 1]
        expected = batch.rollout(6, control[a:b, :, : batch.model.nu], tuple(out))
        for name, rows in expected.items():
            got = out[name][a:b][(..., *(slice(n) for n in rows.shape[2:]))]
            np.testing.assert_array_equal(got, rows)
        np.testing.assert_array_equal(part(mixed, k, "ctrl"), batch.ctrl)


def test_controls_can_be_a_shared_array_a_function_or_a_kernel(models):
    def zero(m, d):
        for i in range(m.nu):
            d.ctrl[i] = 0.0 * d.qpos[0]

    shared, given, called, compiled = (fl.MixedBatch(models) for _ in range(4))
    width = shared.ctrl.shape[1]
    a = shared.rollout(5, np.zeros((5, width)))["qpos"]
    b = given.rollout(5, np.zeros((given.nworld, 5, width)))["qpos"]
    seen = []
    c = called.rollout(5, lambda batch, step: seen.append(step) or 0.0)["qpos"]
    d = compiled.rollout(5, fl.kernel(zero))["qpos"]
    for other in (b, c, d):
        np.testing.assert_array_equal(a, other)
    assert seen == list(range(5))


def test_a_rollout_of_some_worlds(models):
    mixed, alone = pairs(models)
    ids = np.array([2, 10, 11, 15, 27])
    out = mixed.rollout(3, None, ("qpos",), ids=ids)["qpos"]
    expected = alone[1].rollout(3, None, ("qpos",), ids=[0, 4])["qpos"]
    np.testing.assert_array_equal(out[2:4, :, : expected.shape[2]], expected)
    with pytest.raises(fl.ModelError):
        mixed.rollout(3, ids=[5, 2])


def test_it_continues_from_a_checkpoint_a_pickle_or_a_copy(models):
    mixed, _ = pairs(models)
    mixed.step(5)
    kept, pickled = mixed.checkpoint(), pickle.loads(pickle.dumps(mixed))
    mixed.step(5)
    pickled.step(5)
    np.testing.assert_array_equal(mixed.qpos, pickled.qpos)
    pickled.qpos[0, 0] = 7.0
    assert pickled.groups[0].qpos[0, 0] == 7.0
    expected = mixed.qpos.copy()
    mixed.restore(kept)
    mixed.step(5)
    np.testing.assert_array_equal(mixed.qpos, expected)


def test_a_checkpoint_that_does_not_fit_changes_nothing(models):
    mixed, _ = pairs(models)
    kept, before = mixed.checkpoint(), mixed.qpos.copy()
    mixed.step(2)
    after = mixed.qpos.copy()
    assert (after != before).any()
    with pytest.raises(fl.ModelError, match=r"group 1: .*qpos"):
        mixed.restore(kept | {"1.qpos": np.zeros((5, 3))})
    with pytest.raises(fl.ModelError, match=r"9\.qpos"):
        mixed.restore(kept | {"9.qpos": np.zeros((5, 3))})
    np.testing.assert_array_equal(mixed.qpos, after)


def test_a_non_finite_world_is_reported_by_number_and_does_not_affect_others(models):
    mixed, alone = pairs(models, record_failures=4)
    mixed.groups[2].qvel[3] = np.nan
    world = mixed.starts[2] + 3
    with pytest.warns(fl.NonFiniteWarning, match=f"world {world} "):
        mixed.step(5)
    assert list(np.flatnonzero(mixed.nreset)) == [world] == list(np.flatnonzero(mixed.status["non_finite"]))
    alone[1].step(5)
    np.testing.assert_array_equal(part(mixed, 1, "qpos"), alone[1].qpos)
    (failure,) = mixed.failures
    assert failure.world == world
    assert mixed.groups[2].failures[0].world == 3


def test_resets_accept_keyframes_common_to_all_models(models):
    mixed, _ = pairs(models)
    mixed.step(5)
    mixed.reset(ids=np.arange(20))
    assert (mixed.time[:20] == 0.0).all() and (mixed.time[20:] > 0.0).all()
    before = mixed.qpos.copy()
    with pytest.raises(fl.ModelError):
        mixed.reset(keyframe="nowhere")
    np.testing.assert_array_equal(mixed.qpos, before)


def test_each_world_takes_its_own_keyframe():
    model = fl.bundled("quadruped")
    mixed = fl.MixedBatch([(fl.bundled("arm"), 2), (model, 3)])
    mixed.reset(ids=[1, 2, 4], keyframe=[-1, 0, -1])
    np.testing.assert_array_equal(mixed.groups[1].qpos[0], model.key_qpos[0])
    np.testing.assert_array_equal(mixed.groups[1].qpos[2], model.qpos0)


def test_fields_of_models_differ_by_world(models):
    mixed, _ = pairs(models)
    mixed.expand("body_mass")[...] *= 1.5
    mixed.set_const()
    mixed.step(2)
    heavy = fl.Batch(models[1][0], 5)
    heavy.expand("body_mass")[...] *= 1.5
    heavy.set_const()
    moved(heavy).step(2)
    np.testing.assert_array_equal(part(mixed, 1, "qpos"), heavy.qpos)
    assert mixed.get_model(12).body_mass[1] == 1.5 * models[1][0].body_mass[1]
    np.testing.assert_array_equal(mixed.get_data(12).qpos, part(mixed, 1, "qpos")[1])


@pytest.mark.parametrize("name, value", [("qpos", np.zeros((2, 2))), ("ctrl", "x"), ("qvel", [1j])])
def test_an_invalid_assignment_changes_nothing(models, name, value):
    mixed, _ = pairs(models)
    before = getattr(mixed, name).copy()
    with pytest.raises(fl.ModelError):
        setattr(mixed, name, value)
    np.testing.assert_array_equal(getattr(mixed, name), before)


@pytest.mark.parametrize(
    "models, error",
    [(None, TypeError), ([], fl.ModelError), ([("humanoid", 3)], TypeError), (3, TypeError)],
)
def test_an_invalid_list_of_models_is_refused(models, error):
    with pytest.raises(error, match="pairs"):
        fl.MixedBatch(models)


def test_wrong_names_and_numbers_are_refused(models):
    mixed, _ = pairs(models)
    with pytest.raises(fl.ModelError):
        fl.MixedBatch([(models[0][0], 0)])
    with pytest.raises(fl.errors.UnknownAttributeError):
        _ = mixed.qposs
    with pytest.raises(fl.errors.UnknownAttributeError):
        mixed.xpos = 0.0
    for call in (lambda: mixed.mask("nothing"), lambda: mixed.bind("nothing"), lambda: mixed.step(0)):
        with pytest.raises(fl.ModelError):
            call()
    with pytest.raises(fl.ModelError):
        mixed.get_data(1000)
    with pytest.raises(fl.ModelError):
        mixed.rollout(2, np.zeros((3, 3)))
    with pytest.raises(fl.ModelError):
        mixed.rollout(2, record="")
    for worlds in (mixed, mixed.groups[0]):
        with pytest.raises(fl.ModelError):
            worlds.reset(forward=np.zeros(0))
    with pytest.raises(fl.ModelError):
        mixed.rollout(2, lambda batch, step: np.zeros(3))


def test_an_edit_of_a_model_is_checked_before_any_world_moves(models):
    model = fl.bundled("arm")
    mixed = fl.MixedBatch([models[0], (model, 2)])
    model.body_mass[1] = -1.0
    with pytest.raises(fl.ModelError):
        mixed.step()
    assert (mixed.time == 0.0).all()


@pytest.mark.parametrize("again", [lambda batch: batch, copy.copy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_the_array_of_expand_acts_on_all_groups(again):
    """One padded array, whose parts are the arrays of the groups, also after copies."""
    models = fl.load("quadruped"), fl.load("cartpole")
    mixed = fl.MixedBatch([(models[0], 2), (models[1], 3)])
    mass, gravity = mixed.expand("body_mass"), mixed.expand("opt.gravity")
    assert mass.shape == (5, models[0].nbody) and gravity.shape == (5, 3)
    assert mixed.mask("body_mass").sum(axis=1).tolist() == [models[0].nbody] * 2 + [models[1].nbody] * 3
    mass[1:4] *= 2.0
    mixed = again(mixed)
    mass = mixed.expand("body_mass")
    mass[4] *= 3.0
    assert all(np.shares_memory(mass, group.expand("body_mass")) for group in mixed.groups)
    mixed.set_const()
    mixed.step(20)
    for group, (model, scale) in zip(mixed.groups, [(models[0], [1, 2]), (models[1], [2, 2, 3])], strict=True):
        alone = fl.Batch(model, len(scale))
        alone.expand("body_mass")[...] *= np.array(scale)[:, None]
        alone.expand("opt.gravity")
        alone.set_const()
        alone.step(20)
        np.testing.assert_array_equal(group.qpos, alone.qpos)


def test_edits_of_a_padded_array_are_checked_in_each_call():
    mixed = fl.MixedBatch([(fl.load("cartpole"), 1), (fl.load("quadruped"), 1)])
    mass = mixed.expand("body_mass")
    mixed.step(2)
    mass[1, 1] = -1.0
    with pytest.raises(fl.ModelError, match="body_mass"):
        mixed.step()


def test_a_padded_array_without_references_is_not_checked_again():
    batch = fl.MixedBatch([(fl.bundled("cartpole"), 2), (fl.bundled("arm"), 1)])
    held = batch.expand("body_mass")
    row = held[1:]
    del held
    batch.step()
    assert all("body_mass" in group.arrays.expanded.edited for group in batch.groups), "a user holds a part"
    del row
    batch.step()
    assert not any(group.arrays.expanded.edited for group in batch.groups)
    batch.expand("body_mass")[2, 1] = np.nan
    with pytest.raises(fl.ModelError, match="body_mass"):
        batch.step()
