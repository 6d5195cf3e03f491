"""Images and scans of mixed and of distributed batches: rows equal those of separate batches, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl

OUTPUTS = ("depth", "segmentation", "normal", "rgb")
NWORLD, FIRST = 7, 3  # worlds, and those of the first group
IDS = [5, 0, 6, 2]
SCENE = """
<mujoco>{push}<worldbody>
  <geom type="plane" size="5 5 1"/><camera name="eye" pos="0 -2 1" xyaxes="1 0 0 0 .4 1"/>{camera}
  <body name="trunk" pos="0 0 .7"><freejoint/><geom type="{shape}" size=".2 .1 .3"/>
    <site name="lidar" pos=".1 0 0"/></body>
</worldbody></mujoco>"""
BOX, BALL = (fl.load(SCENE.format(shape=shape, camera="", push="")) for shape in ("box", "sphere"))
PUSH = '<actuator><motor site="lidar" gear="1 1 0 0 0 0"/></actuator>'
PUSHED = fl.load(SCENE.format(shape="box", camera="", push=PUSH))


def mixed(dtype="float64") -> fl.MixedBatch:
    return fl.MixedBatch([(BOX, FIRST), (BALL, NWORLD - FIRST)], nthread=1, dtype=dtype)


def moved(batch):
    qpos = np.array(batch.qpos)
    qpos[:, :3] += np.random.default_rng(0).uniform(-0.1, 0.1, (NWORLD, 3))
    batch.qpos = qpos
    return batch


def rows_of_groups(batch, of):
    """Returns the results of a function of each group and its worlds among IDS, in the order of IDS."""
    chosen, found = np.array(IDS), {}
    for k, group in enumerate(batch.groups):
        own = chosen[batch.group[chosen] == k]
        found |= dict(zip(own.tolist(), zip(*of(group, own - batch.starts[k]), strict=True), strict=True))
    return [np.stack(rows) for rows in zip(*(found[world] for world in IDS), strict=True)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_images_of_a_mixed_batch_are_those_of_its_groups(dtype):
    batch = moved(mixed(dtype))
    images = batch.render("eye", width=12, height=8, output=OUTPUTS, ids=IDS)
    expected = rows_of_groups(
        batch, lambda group, ids: group.render("eye", width=12, height=8, output=OUTPUTS, ids=ids)
    )
    for rows, own in zip(images, expected, strict=True):
        assert rows.dtype == own.dtype
        np.testing.assert_array_equal(rows, own)
    assert batch.render("eye", width=4, height=3).depth.shape == (NWORLD, 3, 4)
    assert batch.render("eye", width=4, height=3, ids=[]).depth.shape == (0, 3, 4)


def test_scans_of_a_mixed_batch_are_those_of_its_groups():
    batch, pattern = moved(mixed()), fl.patterns.grid((0.6, 0.4), 0.2)
    found = batch.scan(("site", "lidar"), pattern, alignment="yaw", output=("point", "geom"), ids=IDS, bodyexclude=None)
    given = {"alignment": "yaw", "output": ("point", "geom"), "bodyexclude": None}
    points = rows_of_groups(batch, lambda g, ids: [g.scan(("site", "lidar"), pattern, ids=ids, **given).point])
    np.testing.assert_array_equal(found.point, points[0])
    assert found.distance is None and found.geom.dtype == np.int32
    out = np.empty((4, len(pattern)))
    assert batch.height_scan("trunk", pattern, ids=IDS, out=out) is out
    np.testing.assert_array_equal(
        out, rows_of_groups(batch, lambda g, ids: [g.height_scan("trunk", pattern, ids=ids)])[0]
    )


def spread(model) -> fl.distributed.Batch:
    return fl.distributed.Batch(model, NWORLD, nthread=1)


def halves(model) -> fl.MixedBatch:
    return fl.MixedBatch([(model, FIRST), (model, NWORLD - FIRST)], nthread=1)


@pytest.mark.parametrize("kind", [spread, halves])
def test_all_kinds_of_batches_have_equal_images_and_scans(kind):
    local, other = (moved(batch) for batch in (fl.Batch(BOX, NWORLD, nthread=1), kind(BOX)))
    noise = fl.DepthNoise(std=0.1, dropout=0.2, seed=7)
    colours = np.random.default_rng(1).uniform(size=(NWORLD, BOX.ngeom, 3))
    pattern = fl.patterns.grid((0.6, 0.4), 0.2)
    for ids in (None, IDS):
        for camera in (
            fl.Camera("eye", width=12, height=8, output=OUTPUTS, noise=noise, geom_rgb=colours),
            fl.Camera("eye", width=12, height=8, output="depth", noise=fl.DepthNoise(std=0.1, seed=range(NWORLD))),
        ):
            for rows, own in zip(other.render(camera, ids=ids), local.render(camera, ids=ids), strict=True):
                np.testing.assert_array_equal(rows, own)
        scans = [batch.scan("trunk", pattern, output=("distance", "normal"), ids=ids) for batch in (other, local)]
        np.testing.assert_array_equal(scans[0].normal, scans[1].normal)
        heights = [batch.height_scan("trunk", pattern.direction, ids=ids, miss=2.0) for batch in (other, local)]
        np.testing.assert_array_equal(*heights)


@pytest.mark.parametrize("control", ["array", "function"])
@pytest.mark.parametrize("kind", [spread, halves])
def test_images_in_rollouts_are_those_of_separate_calls(kind, control):
    noise = fl.DepthNoise(std=0.1, dropout=0.2, seed=range(NWORLD))
    colours = np.random.default_rng(1).uniform(size=(NWORLD, PUSHED.ngeom, 3))
    camera = fl.Camera("eye", width=12, height=8, output=("depth", "rgb"), noise=noise, geom_rgb=colours)
    forces = np.random.default_rng(2).uniform(-50, 50, (3, 4, 1))
    given = forces if control == "array" else lambda batch, k: forces[:, k]
    for ids in ([0, 2, 5], [1, 3, 4]):
        batch, apart = (moved(kind(PUSHED)) for _ in range(2))
        out = batch.rollout(
            4, given, ("qpos", camera, fl.Camera("eye", width=6, height=4, output="segmentation")), ids=ids
        )
        assert set(out) == {"qpos", "eye/depth", "eye/rgb", "eye/segmentation"}
        for k in range(4):
            state = apart.rollout(1, forces[:, k : k + 1], ids=ids)["qpos"][:, 0]
            images = apart.render(camera, ids=ids)
            np.testing.assert_array_equal(out["qpos"][:, k], state)
            np.testing.assert_array_equal(out["eye/depth"][:, k], images.depth)
            np.testing.assert_array_equal(out["eye/rgb"][:, k], images.rgb)
            segments = apart.render("eye", width=6, height=4, output="segmentation", ids=ids).segmentation
            np.testing.assert_array_equal(out["eye/segmentation"][:, k], segments)
        assert (out["eye/depth"][:, 0] != out["eye/depth"][:, -1]).any() and out["eye/rgb"].any()


def test_recorded_images_of_groups_of_different_models_are_those_of_their_batches():
    batch, camera, depth = (
        moved(mixed()),
        fl.Camera("eye", width=12, height=8, output="depth"),
        np.zeros((NWORLD, 2, 8, 12), np.float32),
    )
    apart = [fl.Batch(group.model, group.nworld, nthread=1) for group in batch.groups]
    for group, own in zip(batch.groups, apart, strict=True):
        own.qpos = group.qpos
    out = batch.rollout(2, record=camera, out={"eye/depth": depth})
    assert out["eye/depth"] is depth
    expected = [own.rollout(2, record=camera)["eye/depth"] for own in apart]
    np.testing.assert_array_equal(depth, np.concatenate(expected))


def test_recorded_images_of_a_distributed_batch_are_those_of_a_batch():
    batch, local, record = (
        moved(spread(BOX)),
        moved(fl.Batch(BOX, NWORLD)),
        ("time", fl.Camera("eye", width=12, height=8)),
    )
    found = batch.rollout(3, record=record)
    for name, rows in local.rollout(3, record=record).items():
        np.testing.assert_array_equal(found[name], rows)


@pytest.mark.parametrize("kind", [spread, halves])
@pytest.mark.parametrize(
    "given, match",
    [
        (
            {"record": (fl.Camera("eye", width=4, height=3), fl.Camera("eye", width=6, height=4))},
            "two images 'eye/depth'",
        ),
        ({"record": ("qpos", fl.Camera("nose", width=6, height=4))}, "unknown camera 'nose'"),
        ({"record": fl.Camera("eye", width=4, height=3, output="rgb", geom_rgb=np.zeros((2, 1, 3)))}, "geom_rgb"),
        ({"record": fl.Camera("eye", width=4, height=3), "reduce": "mean"}, "reduce"),
        ({"record": fl.Camera("eye", width=4, height=3), "out": {"eye/depth": np.zeros(3)}}, r"out\['eye/depth'\]"),
        (
            {"record": fl.Camera("eye", width=4, height=3), "out": {"qpos": np.zeros(3)}},
            "out: got 'qpos', which is not recorded",
        ),
        ({"record": ("qpos", 3)}, "record"),
    ],
)
def test_wrong_recordings_are_refused_before_a_step(kind, given, match):
    batch = kind(BOX)
    with pytest.raises(fl.ModelError, match=match):
        batch.rollout(2, **given)
    assert not batch.time.any()


@pytest.mark.parametrize("kind", [spread, halves])
def test_black_images_are_reported_by_the_number_of_the_world(kind):
    batch = kind(BOX)
    qpos = np.array(batch.qpos)
    qpos[[1, 5], 2] = np.nan
    batch.qpos = qpos
    with pytest.warns(fl.NonFiniteWarning, match="rgb of worlds 1, 5 are black"):
        found = batch.render("eye", width=4, height=3, output="rgb").rgb
    assert not found[[1, 5]].any() and found[[0, 2, 3, 4, 6]].any()


def test_a_group_without_the_camera_is_named_before_anything_is_computed():
    wide = fl.load(SCENE.format(shape="box", camera='<camera name="wide" pos="0 0 9"/>', push=""))
    batch = fl.MixedBatch([(wide, 2), (BALL, 1)])
    assert batch.render("wide", width=4, height=3, ids=[0, 1]).depth.shape == (2, 3, 4)
    with pytest.raises(fl.errors.UnknownNameError, match=r"group 1: .*wide"):
        batch.render("wide", width=4, height=3)
    with pytest.raises(fl.errors.UnknownNameError, match=r"group 1: .*wide"):
        batch.rollout(2, record=("qpos", fl.Camera("wide", width=4, height=3)))
    assert not batch.time.any()
    with pytest.raises(fl.ModelError, match=r"group 0: .*geom_rgb"):
        batch.render(fl.Camera("eye", width=4, height=3, output="rgb", geom_rgb=np.zeros((2, 1, 3))))


@pytest.mark.parametrize("kind", [spread, halves])
def test_wrong_arguments_are_refused(kind):
    batch = kind(BOX)
    for call, match in (
        (lambda: batch.render("eye"), "width"),
        (lambda: batch.render("nosuch", width=4, height=3), "nosuch"),
        (lambda: batch.render("eye", width=4, height=3, output="depht"), "depht"),
        (lambda: batch.render("eye", width=4, height=3, ids=[NWORLD]), "ids"),
        (lambda: batch.render(fl.Camera("eye", width=4, height=3, noise=fl.DepthNoise(seed=[1, 2]))), "seeds"),
        (lambda: batch.scan("trunk", np.zeros((1, 3))), "direction"),
        (lambda: batch.scan("trunk", [[0, 0, -1]], alignment="down"), "alignment"),
        (lambda: batch.height_scan("trunk", [[0, 0, -1]], out=np.zeros((1, 1))), "out"),
        (lambda: batch.height_scan("nosuch", [[0, 0, -1]]), "nosuch"),
    ):
        with pytest.raises(fl.ModelError, match=match):
            call()
