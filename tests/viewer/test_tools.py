"""Joint sliders, the inspector, cameras, keys and reloading of a page, without a browser."""

from types import SimpleNamespace

import numpy as np
import pytest

import featherlane as fl

pytest.importorskip("viser")

from featherlane.apps.viewer import page as page_module
from featherlane.apps.viewer import view as view_module
from featherlane.apps.viewer.inspection import lines, names, unlimited_force
from featherlane.apps.viewer.quantities import world_data
from featherlane.apps.viewer.session import Session

ARM = """
<mujoco>
  <worldbody>
    <camera name="side" pos="0 -3 1" xyaxes="1 0 0 0 0 1"/>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" range="-90 90"/>
      <geom name="arm" type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="{mass}"/>
      <body name="hand" pos=".4 0 0"><joint name="wrist" type="slide"/><geom name="ball" size=".05" mass="1"/></body>
    </body>
    <body name="box" pos="1 0 .099"><freejoint/><geom name="cube" type="box" size=".1 .1 .1" mass="2"/></body>
  </worldbody>
  <actuator>
    <position name="servo" joint="shoulder" kp="100" ctrlrange="-3 3" forcerange="-5 5"/>
    <motor name="push" joint="wrist"/>
  </actuator>
</mujoco>
"""
XML = ARM.format(mass=2)


def texts(model, kind, element, **state):
    """Returns what the inspector says about an element."""
    batch = fl.Batch(model, 1)
    for name, value in state.items():
        getattr(batch, name)[...] = value
    return {label: text for label, text in lines(batch.get_data(0), kind, element) if label}, [
        text for label, text in lines(batch.get_data(0), kind, element) if not label
    ]


# ---- inspector -------------------------------------------------------------------------------------------------------
def test_a_saturated_servo_is_explained():
    values, findings = texts(fl.load(XML), "actuator", 0)
    assert values["actuator"] == "servo on joint shoulder"
    assert values["actuator_forcerange"] == "-5, 5 N m"
    ranges = [text for text in findings if text.startswith("Saturated")]
    assert not ranges  # without a target there is no force
    values, findings = texts(fl.load(XML), "actuator", 0, ctrl=[[2.0, 0.0]])
    assert values["actuator_force"] == "5 N m"
    assert "Saturated: the force is at its upper limit. Without it, the force would be 200 N m." in findings
    assert any("Its target 2 rad is outside of the range of the joint." in text for text in findings)
    # gravity of 2 kg at .2 m and 1 kg at .4 m turns the arm down, in the positive direction
    assert "Force that would hold the joint at zero acceleration: -7.848 N m." in findings


def test_a_saturated_servo_keeps_its_model_and_its_world(monkeypatch):
    model = fl.load(XML)
    data = fl.Data(model)
    data.ctrl = 2.0, 0.0
    fl.forward(model, data)
    limits = model.actuator_forcelimited
    limits.flags.writeable = False  # an edit, even for a moment, is an error
    force = data.actuator_force.copy()
    assert unlimited_force(data, 0) == pytest.approx(200.0)
    assert np.array_equal(data.actuator_force, force) and force[0] == 5.0


def test_the_shared_copy_of_a_world_is_that_of_get_data():
    batch = fl.Batch(fl.bundled("humanoid"), 3)
    batch.qvel[:] = np.random.default_rng(1).normal(size=batch.qvel.shape)
    batch.step(60)
    for world in (2, 0):
        for name in ("qacc", "qfrc_constraint", "xpos", "actuator_force"):
            assert np.array_equal(getattr(world_data(batch, world), name), getattr(batch.get_data(world), name))
    batch.expand("body_mass")[1] *= 2
    assert world_data(batch, 1).model.body_mass[1] == 2 * batch.model.body_mass[1]
    model = fl.load(XML)
    given = fl.Batch(model, 1, given_contacts=1)
    given.give_contacts([[-0.001]], [[(1, 0, 0)]], [[(0, 0, 1)]], geom=[[(0, 3)]], replace=True)
    assert world_data(given, 0).contact.pos.tolist() == [[1, 0, 0]]


def test_a_joint_at_its_limit_is_reported():
    state = fl.load(XML).qpos0.copy()
    state[0] = np.pi / 2
    _, findings = texts(fl.load(XML), "joint", 0, qpos=state)
    assert findings == ["The joint is at its upper limit, or beyond it."]


def test_contacts_have_forces_and_names():
    model = fl.load(XML)
    batch = fl.Batch(model, 1)
    batch.step(500)
    cube = [k for k, name in enumerate(names(batch.get_data(0), "contact")) if name == f"{k}: floor - cube"]
    assert len(cube) == 4
    values = dict(line for line in lines(batch.get_data(0), "contact", cube[0]) if line[0])
    assert float(values["normal force"].split()[0]) == pytest.approx(2 * 9.81 / 4, rel=0.02)
    assert lines(batch.get_data(0), "contact", 9) == [("", "this contact is open")]


@pytest.mark.parametrize("kind", ["body", "joint", "geom", "actuator"])
def test_every_element_has_values(kind):
    model = fl.load(XML)
    for element in range(len(model.names(kind))):
        values, _ = texts(model, kind, element)
        assert values[kind] and len(values) > 3
        assert all("nan" not in text for text in values.values())


# ---- panel -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def page():
    with view_module.view(fl.load(XML), port=0, paused=True, nworld=2) as opened:
        yield opened.page


def test_joint_sliders_pose_the_selected_world(page):
    session = page.source
    assert isinstance(session, Session)
    page.ask(lambda: session.pose([0, 1], [0.5, 0.1], np.array([1])))
    assert session.batch.qpos[1, :2].tolist() == [0.5, 0.1] and not session.batch.qpos[0, :2].any()
    page.ask(lambda: page.pick(1, 1))
    page.ask(page.panel.refresh)
    assert page.ask(lambda: page.panel.handles["joint 0"].value) == pytest.approx(0.5, abs=2e-3)
    assert page.panel.handles["joint 0"].max == pytest.approx(np.pi / 2)


def test_cameras_of_the_model_are_choices(page):
    assert page.cameras.choices[-1] == "side"
    page.ask(lambda: page.cameras.choose("side"))
    page.ask(page.draw)
    assert page.cameras.fields == ("cam_xpos", "cam_xmat")


def test_sliders_are_not_sent_for_changes_that_nobody_sees(page):
    handle, sent = page.panel.handles["joint 0"], []
    queue = page.server._websock_server.queue_message  # viser has no public hook for its messages
    page.server._websock_server.queue_message = lambda message: (sent.append(message), queue(message))

    def moved_by(angle):
        page.source.batch.qpos[0, 0] = angle
        sent.clear()
        page.panel.refresh()
        return [message for message in sent if getattr(message, "uuid", None) == handle._impl.uuid]

    assert not page.ask(lambda: moved_by(1e-5)) and handle.value == 0.0
    assert len(page.ask(lambda: moved_by(0.1))) == 1 and handle.value == 0.1
    assert not page.ask(lambda: moved_by(0.1))


def test_a_click_on_a_drawn_contact_selects_it(page):
    page.ask(lambda: page.source.advance(200))
    page.ask(lambda: page.scene.switch("contacts", None, True))
    page.ask(page.draw)
    touches = page.ask(page.frame).touches
    second = np.flatnonzero(touches.world == 1)
    point = touches.pos[second[2]] + page.offsets[1]
    direction = np.array([0.3, 0.4, -1.0])
    page.ask(lambda: page.pick_along(point - 2 * direction, 3 * direction))
    assert page.picked == (1, 3) and page.panel.handles["inspected kind"].value == "contact"
    assert page.panel.handles["inspected"].value == "2: floor - cube"
    page.ask(lambda: page.pick(1, 1))
    page.ask(lambda: page.scene.switch("contacts", None, False))
    above = page.ask(page.frame).pos[1, 3] + page.offsets[1] + (0.0, 0.0, 2.0)
    page.ask(lambda: page.pick_along(above, (0.0, 0.0, -1.0)))
    assert page.picked == (1, 3) and page.panel.handles["inspected"].value == "0: floor - cube"


def test_a_contact_behind_a_body_is_not_selected(page):
    page.ask(lambda: page.source.advance(200))
    page.ask(lambda: page.scene.switch("contacts", None, True))
    page.ask(page.draw)
    at = page.ask(page.frame).pos[0, 3] + page.offsets[0]
    page.ask(lambda: page.pick_along(at + (-0.095, -0.095, 3.0), (0.0, 0.0, -1.0)))
    assert page.picked == (0, 3) and page.panel.handles["inspected kind"].value == "body"


def test_the_video_shows_the_kept_seconds_and_the_page_stays(page, monkeypatch):
    written = []
    monkeypatch.setattr(
        page_module, "write_video", lambda path, *rest: (path.write_bytes(b"film"), written.append(rest))
    )
    session = page.source
    page.ask(lambda: session.advance(100))
    after = session.batch.qpos.copy()
    page.ask(lambda: page.pick(1, 1))
    assert page.ask(lambda: page.video(50.0))() == b"film"
    model, camera, frames, fps = written[0]
    assert (camera, fps, len(frames)) == (-1, 50.0, 11) and model.nq == session.model.nq
    assert np.array_equal(session.batch.qpos, after)
    alone = fl.Data(fl.load(XML))
    for frame in frames:
        assert frame["qpos"] == pytest.approx(alone.qpos, abs=1e-12)
        alone.step(10)
    page.ask(lambda: page.cameras.choose("side"))
    page.ask(lambda: page.video(50.0))()
    assert written[1][1] == 0


def test_the_video_has_the_camera_of_the_first_visitor(page, monkeypatch):
    camera = SimpleNamespace(position=np.array([1.0, -2.0, 3.0]), look_at=np.array([1.0, 2.0, 0.0]), fov=np.pi / 3)
    monkeypatch.setattr("viser.ViserServer.get_clients", lambda self: {0: SimpleNamespace(camera=camera)})
    found = page.cameras.described(np.array([1.0, 0.0, 0.0]), 1)
    azimuth, elevation = np.radians((found["azimuth"], found["elevation"]))
    ahead = np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
    assert found["lookat"] - found["distance"] * ahead == pytest.approx([0.0, -2.0, 3.0])
    assert found["fovy"] == pytest.approx(60.0) and found["lookat"].tolist() == [0.0, 2.0, 0.0]
    monkeypatch.setattr(page.cameras, "choice", "follow the selected body")
    assert page.cameras.described(np.zeros(3), 3)["trackbodyid"] == 3
    fl.Batch(page.source.model, 1).render(fl.Camera(found, width=16, height=16, output="rgb"))


# ---- reload ----------------------------------------------------------------------------------------------------------
def test_a_changed_file_is_loaded_again_and_a_wrong_one_is_reported(tmp_path, monkeypatch):
    from featherlane.apps.viewer import reload

    monkeypatch.setattr(reload, "INTERVAL", 0.0)
    path = tmp_path / "arm.xml"
    path.write_text(XML)
    with view_module.view(str(path), port=0, paused=True) as opened:
        page = opened.page
        assert not page.ask(lambda: page.source.file.changed())
        path.write_text(ARM.format(mass=7))
        assert page.ask(lambda: page.source.file.changed())
        page.ask(page.reload)
        assert page.source.model.body("upper").mass == 7.0
        path.write_text("<mujoco><worldbody><body></mujoco>")
        with pytest.raises(fl.FeatherlaneError):
            page.ask(page.reload)
        assert page.source.model.body("upper").mass == 7.0  # the old model stays


def test_included_files_are_watched(tmp_path, monkeypatch):
    from featherlane.apps.viewer import reload

    monkeypatch.setattr(reload, "INTERVAL", 0.0)
    part = tmp_path / "part.xml"
    part.write_text('<mujocoinclude><body><geom size=".1"/></body></mujocoinclude>')
    path = tmp_path / "scene.xml"
    path.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    file = reload.ModelFile(path, lambda: None)
    assert not file.changed()
    part.write_text('<mujocoinclude><body><geom size=".25"/></body></mujocoinclude> ')
    assert file.changed() and not file.changed()


def test_files_of_a_broken_model_stay_watched(tmp_path, monkeypatch):
    from featherlane.apps.viewer import reload

    monkeypatch.setattr(reload, "INTERVAL", 0.0)
    part, path = tmp_path / "part.xml", tmp_path / "scene.xml"
    part.write_text('<mujocoinclude><body><geom size=".1"/></body></mujocoinclude>')
    path.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    file = reload.ModelFile(path, lambda: None)
    part.write_text("<mujocoinclude><body></mujocoinclude>")
    assert file.changed() and not file.changed()
    part.write_text('<mujocoinclude><body><geom size=".25"/></body></mujocoinclude>')
    assert file.changed()


def test_meshes_of_a_urdf_are_watched(tmp_path, monkeypatch):
    from featherlane.apps.viewer import reload

    monkeypatch.setattr(reload, "INTERVAL", 0.0)
    mesh, path = tmp_path / "part.obj", tmp_path / "robot.urdf"
    mesh.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    shape = '<collision><geometry><mesh filename="part.obj"/></geometry></collision>'
    path.write_text(f'<robot name="r"><link name="base">{shape}</link></robot>')
    file = reload.ModelFile(path, lambda: None)
    assert not file.changed()
    mesh.write_text(mesh.read_text() + "# edited\n")
    assert file.changed() and not file.changed()
