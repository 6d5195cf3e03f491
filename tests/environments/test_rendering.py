"""Pictures of worlds, by casting rays."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.wrappers import vector as wrappers

import featherlane as fl
import featherlane.environments as environments
from featherlane.environments.rendering import Painting
from sampling import every

pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass:UserWarning", "ignore:.*Overwriting:UserWarning")


def drawn(n, **settings):
    env = environments.make_vec("Ant-v5", n, nthread=1, render_mode="rgb_array", width=64, height=48, **settings)
    env.reset(seed=0)
    return env


def picture(model, qpos):
    """Returns a picture of a model alone."""
    alone = fl.Batch(model, 1)
    alone.qpos[0] = qpos
    return alone.render(0, width=64, height=48, output="rgb").rgb[0]


def test_each_world_has_its_own_image():
    env = drawn(3, render_worlds=2)
    first = env.render()
    assert [picture.shape for picture in first] == [(48, 64, 3)] * 3
    assert (first[0] != first[1]).any() and not first[2].any()
    for _ in range(5):
        env.step(np.ones(env.action_space.shape))
    second = env.render()
    assert all((one != other).any() for one, other in zip(first[:2], second[:2], strict=True))
    env.close()


SCENE = """<mujoco><worldbody><camera name="look" pos="0 -2 1" xyaxes="1 0 0 0 .3 1"/><light pos="0 0 3"/>
<geom type="plane" size="1 1 .1"/><body pos="0 0 .4"><joint axis="0 1 0"/><geom type="box" size=".1 .2 .3"/>
<site pos="0 0 .5" size=".1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    "field",
    every(4, [None, "body_pos", "body_quat", "geom_size", "cam_pos", "geom_pos", "geom_rgba", "jnt_pos"]),
)
def test_each_world_is_rendered_with_its_own_model(field):
    """The picture equals a renderer of the world's model; the first case edits the model of all worlds."""
    batch = fl.Batch(fl.load(SCENE), 2)
    painting = Painting(SimpleNamespace(camera_name="look", width=64, height=48), "rgb_array", 2)
    batch.qpos[:] = 0.5
    before = painting.pictures(batch)
    changed = batch.model.geom_size if field is None else batch.expand(field)[1]
    changed[-1] = (0.8, 0.6, 0.0, 0.0) if field == "body_quat" else changed[-1] + 0.1
    pictures = painting.pictures(batch)
    for world in range(2):
        own = batch.get_model(world)
        np.testing.assert_array_equal(pictures[world], picture(own, batch.qpos[world]))
    assert (pictures[1] != before[1]).any()
    painting.close()


def test_worlds_of_several_models_are_rendered_with_their_models():
    wide = fl.load(SCENE.replace(".1 .2 .3", ".4 .2 .3"))
    batch = fl.MixedBatch([(fl.load(SCENE), 1), (wide, 3)])
    painting = Painting(SimpleNamespace(camera_name="look", width=64, height=48), "rgb_array", 3)
    pictures = painting.pictures(batch)
    assert len(pictures) == 4 and not pictures[3].any()
    np.testing.assert_array_equal(pictures[1], pictures[2])
    for world in (0, 2):
        alone = picture(batch.get_model(world), batch.qpos[world, : batch.models[0].nq])
        np.testing.assert_array_equal(pictures[world], alone)
    assert (pictures[0] != pictures[1]).any()
    painting.close()


def test_a_single_world_is_rendered_as_in_the_vector():
    one = gym.make("featherlane/Ant-v5", render_mode="rgb_array", width=64, height=48)
    one.reset(seed=0)
    vector = drawn(2)
    vector.reset(seed=0)
    np.testing.assert_array_equal(one.render(), vector.render()[0])
    one.close(), vector.close()


def test_the_default_camera_follows_the_model():
    """The camera follows a runner, as with Gymnasium's renderer."""
    pictures = []
    for settings in ({}, {"camera_name": "track"}, {"camera_id": -1}):
        env = drawn(1, **settings)
        env.batch.qpos[:, 0] += 3.0
        pictures.append(env.render()[0])
        env.close()
    np.testing.assert_array_equal(pictures[0], pictures[1])
    assert (pictures[0] != pictures[2]).any()


def test_gymnasium_records_a_video(tmp_path):
    pytest.importorskip("moviepy")
    env = wrappers.RecordVideo(drawn(2), str(tmp_path), step_trigger=lambda step: step == 0, video_length=8)
    env.reset(seed=0)
    for _ in range(12):
        env.step(env.action_space.sample())
    env.close()
    (video,) = tmp_path.glob("*.mp4")
    assert video.stat().st_size > 1000


def test_without_a_render_mode_there_is_no_image():
    env = environments.make_vec("Ant-v5", 1, nthread=1)
    assert env.render() is None and env.render_mode is None


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"camera_name": "behind"}, "behind"),
        ({"camera_id": 7}, "camera_id:"),
        ({"camera_id": 0, "camera_name": "track"}, "camera_id, camera_name:"),
    ],
)
def test_invalid_cameras_are_refused(settings, told):
    with pytest.raises(fl.ModelError, match=told):
        drawn(1, **settings).render()


def test_visual_flags_select_mujocos_renderer():
    """With the flags of a wireframe the picture differs; without them it is that of `Batch.render`."""
    pytest.importorskip("OpenGL")
    env = drawn(1, camera_name="track")
    plain = env.render()[0]
    np.testing.assert_array_equal(plain, env.batch.render("track", width=64, height=48, output="rgb").rgb[0])
    env.close()
    env = drawn(1, visual_options={int(mujoco.mjtVisFlag.mjVIS_STATIC): False})
    try:
        flagged = env.render()[0]
    except fl.InstallationError as error:
        pytest.skip(f"OpenGL is not available: {error}")
    env.close()
    assert flagged.shape == plain.shape and (flagged != plain).mean() > 0.1


@pytest.mark.parametrize("count", [0, 1.5, True])
def test_an_invalid_number_of_rendered_worlds_is_refused(count):
    with pytest.raises(fl.ModelError):
        environments.make_vec("Ant-v5", 1, render_worlds=count)
