"""Images in rollouts, and noise of depth images."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl

EYE = fl.Camera("front", width=12, height=8, output=("depth", "rgb"))
NOISY = fl.DepthNoise(std=0.01, growth=0.002, quantization=0.001, dropout=0.1, fill=0.0, seed=7)


def humanoids(n: int = 3) -> fl.Batch:
    batch = fl.Batch(fl.bundled("humanoid"), n)
    batch.qpos[:, 2] += 0.1 * np.arange(n)
    return batch


# ---- rollouts -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["array", "shared", "dict", "function"])
def test_a_rollout_records_images_of_the_states_after_its_steps(form):
    batch, other = humanoids(), humanoids()
    control = np.random.default_rng(1).uniform(-1, 1, (3, 4, batch.model.nu))
    control[:] = control[:1] if form == "shared" else control
    given = {"array": control, "shared": control[0], "dict": {"ctrl": control}, "function": lambda b, k: control[:, k]}
    out = batch.rollout(4, given[form], ("qpos", EYE, fl.Camera("front", width=6, height=4, output="segmentation")))
    assert out["front/depth"].shape == (3, 4, 8, 12) and out["front/rgb"].shape == (3, 4, 8, 12, 3)
    assert out["front/segmentation"].shape == (3, 4, 4, 6) and len(out) == 4
    plain = other.rollout(4, control)
    assert out["qpos"].tobytes() == plain["qpos"].tobytes() and (batch.qvel == other.qvel).all()
    last = batch.render(EYE)
    assert (out["front/depth"][:, -1] == last.depth).all() and (out["front/rgb"][:, -1] == last.rgb).all()
    assert (out["front/depth"][:, 0] != last.depth).any()


def test_a_rollout_records_images_alone_into_given_arrays():
    batch, rgb = humanoids(), np.zeros((2, 2, 8, 12, 3), np.uint8)
    out = batch.rollout(2, record=EYE, ids=[2, 0], out={"front/rgb": rgb})
    assert list(out) == ["front/depth", "front/rgb"] and out["front/rgb"] is rgb and rgb.any()
    assert batch.time.tolist() == [2 * 0.005, 0.0, 2 * 0.005]


@pytest.mark.parametrize(
    "given, error, message",
    [
        ({"record": (EYE, fl.Camera("front", width=6, height=4))}, fl.ModelError, "two images 'front/depth'"),
        ({"record": ("qpos", fl.Camera("nose", width=6, height=4))}, fl.UnknownNameError, "unknown camera 'nose'"),
        (
            {"record": fl.Camera("front", width=6, height=4, output="rgb", geom_rgb=np.zeros((2, 1, 3)))},
            fl.ModelError,
            "geom_rgb",
        ),
        ({"record": EYE, "reduce": "mean"}, fl.ModelError, "reduce"),
        ({"record": EYE, "out": {"front/rgb": np.zeros(3)}}, fl.ModelError, r"out\['front/rgb'\]"),
        ({"record": EYE, "out": {"qpos": np.zeros(3)}}, fl.ModelError, "out: got 'qpos', which is not recorded"),
        ({"record": EYE, "control": np.zeros((1, 21))}, fl.ModelError, "control: got shape"),
        ({"record": ("qpos", 3)}, fl.ModelError, "record"),
    ],
)
def test_wrong_recordings_are_refused_before_a_step(given, error, message):
    batch = humanoids()
    with pytest.raises(error, match=message):
        batch.rollout(2, **given)
    assert not batch.time.any()


# ---- noise ----------------------------------------------------------------------------------------------------------
def test_noise_has_the_given_deviation_step_and_dropout():
    batch = humanoids(8)
    clean = batch.render("front", width=64, height=48)
    std = batch.render(fl.Camera("front", width=64, height=48, noise=fl.DepthNoise(std=0.01))).depth - clean.depth
    far = clean.depth == clean.depth.max()
    assert far.any() and not std[far].any()
    assert abs(std[~far].std() - 0.01) < 5e-4 and abs(std[~far].mean()) < 5e-4
    grown = batch.render(fl.Camera("front", width=64, height=48, noise=fl.DepthNoise(growth=0.01))).depth - clean.depth
    assert abs((grown[~far] / clean.depth[~far] ** 2).std() - 0.01) < 5e-4
    rounded = batch.render(fl.Camera("front", width=64, height=48, noise=fl.DepthNoise(quantization=0.25))).depth
    np.testing.assert_array_equal(rounded[~far] % 0.25, 0)
    dropped = batch.render(fl.Camera("front", width=64, height=48, noise=fl.DepthNoise(dropout=0.2, fill=0.5))).depth
    assert abs((dropped == 0.5).mean() - 0.2) < 0.02 and (dropped[dropped != 0.5] == clean.depth[dropped != 0.5]).all()


def test_noise_of_a_world_depends_on_its_seed_and_its_time_only():
    batch, camera = humanoids(), fl.Camera("front", width=12, height=8, noise=NOISY)
    together = batch.render(camera).depth
    for world in range(3):
        alone = fl.Batch(batch.model, 1)
        alone.qpos[0] = batch.qpos[world]
        noise = fl.DepthNoise(std=0.01, growth=0.002, quantization=0.001, dropout=0.1, seed=[7 + world])
        assert (
            alone.render(fl.Camera("front", width=12, height=8, noise=noise)).depth[0].tobytes()
            == together[world].tobytes()
        )
    assert (batch.render(camera, ids=[2]).depth[0] == together[2]).all()
    batch.time[:] += 0.1
    assert (batch.render(camera).depth != together).any()


def test_noise_leaves_worlds_without_a_finite_pose():
    batch = humanoids()
    batch.qpos[1, 0] = np.nan
    depth = batch.render(fl.Camera("front", width=12, height=8, noise=NOISY)).depth
    assert np.isnan(depth[1]).all() and np.isfinite(depth[[0, 2]]).all()


@pytest.mark.parametrize(
    "given, message",
    [
        ({"std": -1.0}, "std: got -1.0"),
        ({"dropout": 1.5}, "dropout: got 1.5"),
        ({"quantization": np.nan}, "quantization"),
        ({"seed": -1}, "seed: got -1"),
        ({"seed": 0.5}, "seed: got 0.5"),
        ({"seed": [1, 2]}, "seed: got 2 seeds, allowed is one for each of the 3 worlds"),
    ],
)
def test_wrong_noise_is_refused(given, message):
    with pytest.raises(fl.ModelError, match=message):
        humanoids().render(fl.Camera("front", width=12, height=8, noise=fl.DepthNoise(**given)))
