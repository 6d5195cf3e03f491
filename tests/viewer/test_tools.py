"""Joint sliders, the inspector, cameras, keys and reloading of a page, without a browser."""

import numpy as np
import pytest

import featherlane as fl

pytest.importorskip("viser")

from featherlane.apps.viewer import view as view_module
from featherlane.apps.viewer.inspection import lines, names
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
