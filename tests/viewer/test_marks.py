"""Marks: their positions and sizes, against the fields that they show."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.viewer.appearance import Looks
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.instances import GREY, hues, paint
from featherlane.apps.viewer.mark_layers import MARKS, per_newton
from featherlane.apps.viewer.marks import Marks
from featherlane.engine.spatial.rotation import to_world
from featherlane.extension import batch_of

EXACT = 1e-5  # marks are sent as float32
BRICK = '<mujoco><worldbody><body pos="1 2 3" euler="10 20 30"><freejoint/><geom type="box" size=".1 .2 .3"/></body>'
BRICK += '<body pos="0 0 9"><freejoint/><geom size=".1" pos="0 0 1"/></body></worldbody></mujoco>'


class Drawn(Marks):
    """Records what a layer draws, by part, instead of drawing it."""

    def __init__(self, model, layer, size=0.2, extent=2.0):
        super().__init__(None, layer, MARKS[layer], model, Looks(model.mj_model), size, extent)
        self.layer, self.parts = layer, {}

    def draw(self, part, at, scale, colours, quat=(1, 0, 0, 0), opacity=None):
        at = np.reshape(at, (-1, 3))
        n = len(at)
        colours = np.broadcast_to(colours, (n, 3))
        self.parts[part] = at, np.broadcast_to(quat, (n, 4)), np.broadcast_to(scale, (n, 3)), colours

    def label(self, texts, at):
        self.parts["label"] = texts, at

    def of(self, worlds):
        """Returns the parts of the present state of a `Data` or a `Batch`."""
        batch = worlds if isinstance(worlds, fl.Batch) else batch_of(worlds)
        frame = Frame.of(batch, None, {self.layer})
        self.show(frame, np.zeros((len(frame.worlds), 3)))
        return self.parts


def standing(name="humanoid", steps=100):
    model = fl.bundled(name)
    data = fl.Data(model)
    for _ in range(steps):
        fl.step(model, data)
    fl.forward(model, data)
    return model, data


def test_centres_of_bodies_and_of_trees_equal_those_of_forward():
    model, data = standing()
    parts = Drawn(model, "mass centres").of(data)
    assert np.allclose(parts["sphere"][0], data.xipos[1:], atol=EXACT)
    assert np.allclose(parts["sphere 1"][0], data.subtree_com[1], atol=EXACT)


def test_centres_follow_the_masses_of_each_world():
    model = fl.bundled("humanoid")
    batch = fl.Batch(model, 3)
    batch.expand("body_mass")[1, 4:] *= 3.0
    batch.set_const()
    com = batch.bind("subtree_com")
    batch.forward()
    parts = Drawn(model, "mass centres").of(batch)
    assert np.allclose(parts["sphere 1"][0], com[:, 1], atol=EXACT)
    assert np.abs(com[1, 1] - com[0, 1]).max() > 1e-3


def test_the_box_of_equal_inertia_of_a_box_is_the_box():
    model = fl.load(BRICK)
    data = fl.Data(model)
    fl.forward(model, data)
    at, quat, half, _ = Drawn(model, "inertias").of(data)["box"]
    corner = to_world(quat[0], half[0] * np.eye(3))
    exact = data.geom_xmat[0].reshape(3, 3).T * np.array([[0.1], [0.2], [0.3]])
    # order and signs of principal axes are arbitrary
    for axis in exact:
        assert min(np.abs(np.abs(corner @ axis) / (axis @ axis) - 1)) < EXACT
    assert np.allclose(at, data.xipos[1:], atol=EXACT)


def test_joint_arrows_are_at_anchors_along_axes():
    model, data = standing("arm", 3)
    parts = Drawn(model, "joints").of(data)
    at, quat, scale, _ = parts["tube"]
    assert np.allclose(to_world(quat, np.array((0.0, 0.0, 1.0))), data.xaxis, atol=EXACT)
    assert np.allclose(at - to_world(quat, scale * (0, 0, 1)), data.xanchor, atol=EXACT)
    assert len(parts["sphere"][0]) == len(parts["box"][0]) == 0


def test_free_and_ball_joints_have_separate_marks():
    text = BRICK.replace("<freejoint/>", '<joint type="ball"/>', 1)
    model = fl.load(text)
    data = fl.Data(model)
    fl.forward(model, data)
    parts = Drawn(model, "joints").of(data)
    assert parts["sphere"][0].tolist() == [[1, 2, 3]] and parts["box"][0].tolist() == [[0, 0, 9]]


def test_axes_of_bodies_are_the_columns_of_their_frames():
    model, data = standing()
    at, quat, scale, colours = Drawn(model, "bodies").of(data)["tube"]
    along = to_world(quat, np.array((0.0, 0.0, 1.0))).reshape(-1, 3, 3)
    assert np.allclose(along, data.xmat[1:].reshape(-1, 3, 3).transpose(0, 2, 1), atol=EXACT)
    foot = at - to_world(quat, scale * (0, 0, 1))
    assert np.allclose(foot.reshape(-1, 3, 3), data.xpos[1:, None], atol=EXACT)
    assert colours[:3].tolist() == np.eye(3).tolist()


def test_discs_and_arrows_are_at_contacts():
    model, data = standing()
    contact = data.contact
    at, quat, _, _ = Drawn(model, "contacts").of(data)["cylinder"]
    assert len(contact) > 2 and np.allclose(at, contact.pos, atol=EXACT)
    normal = contact.frame.reshape(-1, 3, 3)[:, 0]
    assert np.allclose(to_world(quat, np.array((0.0, 0.0, 1.0))), normal, atol=EXACT)
    marks = Drawn(model, "forces")
    tip, quat, scale, _ = marks.of(data)["cone"]
    force = (tip + to_world(quat, scale * (0, 0, 1)) - contact.pos) / per_newton(marks)
    assert np.allclose(force, Frame.of(batch_of(data), None, {"forces"}).touches.force, atol=1e-3)
    weight = 9.81 * model.body_mass.sum()
    assert per_newton(marks) * weight == pytest.approx(2.0)


def test_a_model_without_weight_has_arrows_of_no_length():
    model = fl.load('<mujoco><worldbody><geom size=".1"/></worldbody></mujoco>')
    assert per_newton(Drawn(model, "forces")) == 0


def test_island_colors_differ_and_sleeping_trees_are_grey():
    colours = hues(np.arange(12))
    apart = np.abs(colours[:, None] - colours).max(2) + 9 * np.eye(12)
    assert apart.min() > 0.1
    model = fl.load(BRICK)
    frame = Frame.of(fl.Batch(model, 1))
    assert paint(model, frame, True, True) is None
    frame.fields["tree_island"], frame.asleep = np.array([[0, -1]]), np.array([[False, True]])
    found = paint(model, frame, True, True)
    assert found.bodies.tolist() == [[False, True, True]]
    assert np.array_equal(found.colours[0, 1], colours[0]) and tuple(found.colours[0, 2]) == GREY
    assert paint(model, frame, True, False).bodies.tolist() == [[False, False, True]]
    assert paint(model, frame, False, True).bodies.tolist() == [[False, True, False]]
