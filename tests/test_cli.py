"""The command line: printed and written output, and one message with exit code 2 for each error."""

import errno
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from io import StringIO
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
from rich.console import Console

import featherlane as fl
from featherlane.apps import video
from featherlane.apps.cli import run_command
from featherlane.apps.cli.controls import Zero, control_source
from featherlane.apps.cli.exit import BAD_WORLDS
from featherlane.apps.cli.output import FILE_WIDTH, console, model_label, progress, table
from featherlane.apps.cli.plot import draw_convergence, draw_motions
from featherlane.apps.cli.recording import LARGEST, frame_bytes, frame_interval
from featherlane.apps.cli.settings import set_options
from featherlane.apps.measure.contact_models import SOLVERS, Contest, _contacts, _moves, _run
from featherlane.apps.measure.controls import Random
from featherlane.apps.measure.speed_comparison import Ratio, alternate, ratio
from featherlane.engine.model.array_file import read_array, read_arrays, whole_file
from featherlane.engine.model.enums import MESH
from featherlane.tools import renderer
from robots import urdf

UNSUPPORTED = """<mujoco><option integrator="RK4"><flag sleep="enable"/></option><worldbody><body name="a"><joint/>
<geom size="1"/></body><flexcomp name="cloth" type="grid" count="3 3 1" spacing="1 1 1" mass="1" radius=".01">
<edge equality="true"/></flexcomp></worldbody></mujoco>"""
ARM_STEPS = 6


def succeeds(*arguments):
    assert run_command([str(a) for a in arguments]) == 0


def fails(capfd, *arguments):
    """Returns the one error message of a command that cannot run."""
    code = run_command([str(a) for a in arguments])
    shown = capfd.readouterr()
    assert code == 2 and shown.out == ""
    assert shown.err.startswith("featherlane: ") and "Traceback" not in shown.err
    return shown.err


def simulated(capfd, *arguments):
    succeeds("simulate", *arguments, "--json")
    return json.loads(capfd.readouterr().out)


# ---- simulate --------------------------------------------------------------------------------------------


def test_simulate_reports_speed_and_convergence(capfd):
    succeeds("simulate", "cartpole", "--seconds", "0.05", "--worlds", "3")
    shown = capfd.readouterr().out
    for name in (
        "world-steps/s",
        "real-time factor",
        "contacts",
        "solver residual",
        "kinetic energy",
        "no warnings",
    ):
        assert name in shown


def test_simulate_prints_json(capfd):
    result = simulated(capfd, "cartpole", "--seconds", "0.05", "--worlds", "3", "--dtype", "float32", "--threads", "1")
    assert (result["worlds"], result["dtype"], result["threads"]) == (3, "float32", 1)
    assert result["steps"] == round(0.05 / result["timestep"])
    assert result["world_steps_per_second"] > 0 and not any(result["status"].values())


def test_a_falling_humanoid_loses_height_and_comes_to_rest(capfd):
    story = simulated(capfd, "humanoid")["world_0"]
    assert story[0]["height"] > 0.9 and story[-1]["height"] < 0.2
    assert max(row["kinetic"] for row in story) > 10 and story[-1]["kinetic"] < 0.01


def test_a_recording_holds_every_world_from_the_start_to_the_end(tmp_path, capfd):
    file = tmp_path / "run.npz"
    simulated(capfd, "arm", "--worlds", "2", "--seconds", "0.1", "--controls", "random", "--fps", "100", "--out", file)
    model = fl.bundled("arm")
    with np.load(file) as kept:
        frames = kept["time"].shape[1]
        assert kept["qpos"].shape == (2, frames, model.nq) and kept["qvel"].shape == (2, frames, model.nv)
        assert kept["ctrl"].shape == (2, frames, model.nu)
        assert kept["status"].shape == (2, frames, len(kept["status_names"])) and not kept["status"].any()
        assert np.allclose(kept["time"][:, 0], 0) and np.allclose(kept["time"][:, -1], 0.1)
        assert np.array_equal(kept["qpos"][0, 0], model.qpos0)
    assert list(tmp_path.iterdir()) == [file]


def test_controls_from_a_file_equal_those_of_a_rollout(tmp_path, capfd, rng):
    model, file = fl.bundled("arm"), tmp_path / "controls.npy"
    control = rng.uniform(-1, 1, (2, ARM_STEPS, model.nu))
    np.save(file, control)
    out = tmp_path / "run.npz"
    result = simulated(capfd, "arm", "--worlds", "2", "--controls", file, "--out", out, "--fps", "1e6")
    expected = fl.Batch(model, 2).rollout(ARM_STEPS, control=control, record=("qpos",))["qpos"]
    assert result["steps"] == ARM_STEPS
    assert np.array_equal(np.load(out)["qpos"][:, 1:], expected)


def test_one_control_sequence_applies_to_all_worlds(tmp_path, capfd, rng):
    nu, file, out = fl.bundled("arm").nu, tmp_path / "controls.npy", tmp_path / "run.npz"
    np.save(file, rng.uniform(-1, 1, (ARM_STEPS, nu)).astype(np.float32))
    simulated(capfd, "arm", "--worlds", "3", "--controls", file, "--out", out)
    qpos = np.load(out)["qpos"]
    assert np.array_equal(qpos[0], qpos[2]) and qpos[0].any()


def test_controls_come_from_a_function_in_a_file(tmp_path, capfd):
    file, out = tmp_path / "servo.py", tmp_path / "run.npz"
    file.write_text("def control(batch, step):\n    return -batch.qvel\n\ndef push(batch, step):\n    return 0.1\n")
    for given in (file, f"{file}:push"):
        simulated(capfd, "arm", "--worlds", "2", "--seconds", "0.05", "--controls", given, "--out", out)
        assert np.isfinite(np.load(out)["qpos"]).all()
    with pytest.raises(fl.ModelError, match="drive"):
        control_source(f"{file}:drive", fl.bundled("arm"), 1, 0)


def test_controls_come_from_a_kernel_in_a_file(tmp_path, capfd):
    plain, kernel, out = tmp_path / "plain.py", tmp_path / "kernel.py", tmp_path / "run.npz"
    plain.write_text("def control(batch, step):\n    return -0.5 * batch.qvel\n")
    kernel.write_text(
        "import featherlane as fl\n\n@fl.kernel\ndef control(m, d):\n"
        "    for k in range(m.nu):\n        d.ctrl[k] = -0.5 * d.qvel[k]\n"
    )
    ends = []
    for given in (plain, kernel):
        simulated(capfd, "arm", "--worlds", "2", "--seconds", "0.05", "--controls", given, "--out", out)
        ends.append(np.load(out)["qpos"])
    assert np.array_equal(*ends)


def test_random_controls_depend_on_seed_and_world_only(tmp_path, capfd):
    runs = {"one": (1, 7), "three": (3, 7), "other": (1, 8)}
    for name, (worlds, seed) in runs.items():
        wanted = ("--worlds", worlds, "--seed", seed, "--out", tmp_path / f"{name}.npz")
        simulated(capfd, "arm", "--seconds", "0.2", "--controls", "random", *wanted)
    qpos = {name: np.load(tmp_path / f"{name}.npz")["qpos"] for name in runs}
    assert np.array_equal(qpos["one"][0], qpos["three"][0])
    assert not np.array_equal(qpos["three"][0], qpos["three"][1])
    assert not np.array_equal(qpos["one"][0], qpos["other"][0])


def test_random_controls_stay_in_the_actuators_ranges(tmp_path, capfd):
    out, model = tmp_path / "run.npz", fl.bundled("arm")
    simulated(capfd, "arm", "--worlds", "16", "--seconds", "0.2", "--controls", "random", "--out", out)
    ctrl = np.load(out)["ctrl"][:, 1:]
    assert (ctrl >= model.actuator_ctrlrange[:, 0]).all() and (ctrl <= model.actuator_ctrlrange[:, 1]).all()
    assert np.ptp(ctrl, axis=(0, 1)).all()


@pytest.mark.parametrize("key", ["squat", "1"])
def test_a_keyframe_is_named_or_numbered(key, tmp_path, capfd):
    out = tmp_path / "run.npz"
    simulated(capfd, "humanoid", "--seconds", "0.01", "--keyframe", key, "--out", out)
    assert np.array_equal(np.load(out)["qpos"][0, 0], fl.bundled("humanoid").key_qpos[1])


def test_recordings_are_thinned_to_fit():
    rows = SimpleNamespace(shape=(4096, 27))
    batch = SimpleNamespace(
        nworld=4096, dtype=np.dtype("float64"), qpos=rows, qvel=rows, ctrl=rows, status=dict.fromkeys("abcdef")
    )
    assert frame_interval(batch, 200, 0.005, None, True) == 8
    every = frame_interval(batch, 20_000, 0.005, None, True)
    assert every > 8 and (20_000 // every + 1) * frame_bytes(batch) <= LARGEST
    assert frame_interval(batch, 20_000, 0.005, None, False) == 8
    assert frame_interval(batch, 20_000, 0.005, 100.0, True) == 2
    assert frame_interval(batch, 20_000, 0.005, 5e-324, True) == 20_000


def test_unread_urdf_elements_are_reported(tmp_path, capfd):
    file = tmp_path / "robot.urdf"
    file.write_text(
        '<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        '<joint name="knee" type="continuous"><parent link="base"/><child link="arm"/><calibration rising="0"/></joint>'
        "</robot>"
    )
    succeeds("simulate", file, "--seconds", "0.01")
    assert "calibration" in capfd.readouterr().err


@pytest.mark.parametrize("command", [("inspect",), ("diagnose",), ("simulate", "--seconds", "0.01")])
@pytest.mark.parametrize("before", [None, "/nowhere"])
def test_package_dirs_are_searched_by_a_command(command, before, tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    if before is not None:
        monkeypatch.setenv("ROS_PACKAGE_PATH", before)
    (tmp_path / "packages" / "robot").mkdir(parents=True)
    (tmp_path / "packages" / "robot" / "m.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
    )
    (tmp_path / "r.URDF").write_text(
        '<robot name="r"><link name="a"/><link name="b"><collision><geometry><mesh filename="package://robot/m.obj"/>'
        '</geometry></collision></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
        "</robot>"
    )
    assert "no package 'robot'" in fails(capfd, *command, tmp_path / "r.URDF")
    succeeds(*command, tmp_path / "r.URDF", "--package-dirs", "/nowhere", "--package-dirs", tmp_path / "packages")
    assert os.environ.get("ROS_PACKAGE_PATH") == before


@pytest.mark.parametrize("command", "simulate sweep view inspect diagnose bench compare convert".split())
def test_each_command_that_loads_a_model_has_package_dirs_and_repair(command, capfd):
    succeeds(command, "--help")
    shown = capfd.readouterr().out
    assert "--package-dirs" in shown and "--repair" in shown


def test_a_command_repairs_a_urdf_and_lists_the_repairs(tmp_path, capfd):
    file = tmp_path / "r.urdf"
    file.write_text(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/></joint></robot>'
    )
    assert "--repair" in fails(capfd, "inspect", file)
    for command in (("inspect",), ("diagnose",), ("simulate", "--seconds", "0.01")):
        succeeds(*command, file, "--repair")
        assert "link 'b': a moving link without mass" in "".join(capfd.readouterr())
    fails(capfd, "inspect", file)


# ---- convert ---------------------------------------------------------------------------------------------


def test_convert_writes_what_was_chosen(tmp_path, capfd):
    source, target = tmp_path / "biped.urdf", tmp_path / "biped.xml"
    source.write_text(urdf.biped())
    chosen = ["--base", "free", "--floor", "--home", "left_knee=0.2", "--home", "right_knee=0.2", "--height", "auto"]
    chosen += ["--actuators", "left_knee=position", "--actuators", "right_knee=velocity"]
    chosen += ["--gains", "left_knee=100,5", "--gains", "right_knee=7"]
    succeeds("convert", source, target, *chosen, "--json")
    shown = json.loads(capfd.readouterr().out)
    assert shown["file"] == str(target) and shown["assets"] == 0
    assert shown["actuators"] == ["left_knee", "right_knee"] and shown["sizes"]["nq"] == 13
    found = fl.load(target)
    expected = fl.load(
        urdf.biped(),
        base="free",
        floor=True,
        height="auto",
        home={"left_knee": 0.2, "right_knee": 0.2},
        actuators={"left_knee": "position", "right_knee": "velocity"},
        gains={"left_knee": (100, 5), "right_knee": 7},
    )
    for name in ("key_qpos", "key_ctrl", "actuator_gainprm", "actuator_biasprm", "body_mass", "qpos0"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12, err_msg=name)
    assert "exists already" in fails(capfd, "convert", source, target)
    succeeds("convert", source, target, "--force", "--height", "2", "--actuators", "position", "--gains", "50,2")
    shown = capfd.readouterr()
    assert "left_hip" in shown.out and "velocity is ignored" in shown.err
    assert (fl.load(target).actuator_gainprm[:, 0] == 50).all()


# ---- freeze, check ---------------------------------------------------------------------------------------


@pytest.mark.ci
@pytest.mark.skipif(sys.platform != "linux", reason="frozen worlds run on Linux")
def test_a_frozen_world_is_written_and_checked(tmp_path, capfd):
    file = tmp_path / "quadruped.flz"
    succeeds("freeze", "quadruped", file, "--keyframe", "0", "--set", "timestep=0.001", "--json")
    written = json.loads(capfd.readouterr().out)
    assert written["bytes"] == file.stat().st_size
    succeeds("check", file, "--trust", written["hash"], "--json")
    checked = json.loads(capfd.readouterr().out)
    assert checked["hash"] == written["hash"] and checked["equal"] is True
    world, model = fl.thaw(file), fl.bundled("quadruped")
    assert world.constant("opt_timestep").tolist() == [0.001]
    np.testing.assert_array_equal(world.qpos, model.key_qpos[0])
    succeeds("check", file)
    assert "every state has the recorded bits" in capfd.readouterr().out
    assert "exists already" in fails(capfd, "freeze", "quadruped", file)
    succeeds("freeze", "quadruped", file, "--force")
    assert written["hash"] not in capfd.readouterr().out
    assert "trusted is" in fails(capfd, "check", file, "--trust", written["hash"])
    assert "allowed is .flz" in fails(capfd, "freeze", "quadruped", tmp_path / "a.zip")
    assert "targets: got 'sparc'" in fails(capfd, "freeze", "quadruped", tmp_path / "a.flz", "--targets", "sparc")
    assert "cannot be read" in fails(capfd, "check", tmp_path / "a.flz")
    succeeds("freeze", "pendulum", file, "--force", "--batch", "--outputs", "xpos", "--queries", "jac,energy")
    assert file.name in capfd.readouterr().out.replace("\n", "")
    assert fl.thaw(file, nworld=3).xpos.shape[0] == 3 and "jac" in fl.thaw(file).query("jac", kind="body", id=1)
    assert "queries: got 'jack'" in fails(capfd, "freeze", "pendulum", tmp_path / "a.flz", "--queries", "jack")


# ---- video -----------------------------------------------------------------------------------------------


def test_video_names_the_extra(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    message = fails(capfd, "simulate", "pendulum", "--video", tmp_path / "fall.mp4")
    assert "imageio" in message and "pip install 'featherlane[view]'" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(any(importlib.util.find_spec(name) is None for name in video.ENCODER), reason="no encoder")
def test_video_has_every_frame_without_opengl(tmp_path):
    """A separate process with an invalid MUJOCO_GL: no graphics library is loaded."""
    file = tmp_path / "fall.mp4"
    command = [sys.executable, "-m", "featherlane", "simulate", "pendulum", "--seconds", "0.2", "--video", str(file)]
    wrong = os.environ | {"MUJOCO_GL": "foo"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, env=wrong)
    import imageio.v2 as imageio

    assert done.returncode == 0 and list(tmp_path.iterdir()) == [file]
    pictures = [np.asarray(picture) for picture in imageio.get_reader(file)]
    assert len(pictures) == 6 and pictures[-1].std() > 5


# ---- inspect ---------------------------------------------------------------------------------------------


def test_inspect_shows_tree_costs_and_pairs(capfd):
    succeeds("inspect", "humanoid")
    shown = capfd.readouterr().out
    for part in ("thigh_left", "hinge knee_left", "D2 954", "plane-capsule", "knee_right", "ltdl", "are supported"):
        assert part in shown


def test_inspect_prints_json(capfd):
    succeeds("inspect", "humanoid", "--json")
    found, model = json.loads(capfd.readouterr().out), fl.bundled("humanoid")
    assert found["sizes"]["nv"] == model.nv == len(found["parents"]) and not found["unsupported"]
    assert sum(types["pairs"] for types in found["candidate_pairs"].values()) == model.ncand
    assert [body["name"] for body in found["bodies"]] == ["world", *model.names("body")[1:]]
    assert found["capacities"]["nconmax"] > 0


def test_inspect_shows_bounding_tests_and_hulls(capfd):
    succeeds("inspect", "hand", "--json")
    found, model = json.loads(capfd.readouterr().out)["bounding_tests"], fl.bundled("hand")
    assert found["listed"] == found["spheres"] == found["turned_boxes"] == model.ncand and not found["closed_form"]
    assert found["body_boxes"]["pairs"] == found["tree"]["pairs"] == 0
    assert sum(hull["geoms"] for hull in found["hulls"]) == (model.geom_type[model.collide_geom] == MESH).sum()
    largest = int(np.argmax(model.hull_vertnum))
    numbers = {"vertices": int(model.hull_vertnum[largest]), "faces": int(model.hull_polynum[largest])}
    assert found["hulls"][0] == {"mesh": "ball", "geoms": 1, **numbers}
    assert [hull["vertices"] for hull in found["hulls"]] == sorted(model.hull_vertnum, reverse=True)
    succeeds("inspect", "hand")
    shown = " ".join(capfd.readouterr().out.split())
    assert "46 pairs of geoms; contacts are computed iteratively" in shown and "Colliding convex hulls" in shown
    assert "boxes of bodies" not in shown and "bounding volume tree" not in shown


def test_inspect_shows_body_boxes_and_the_box_tree(tmp_path, capfd):
    file = tmp_path / "scene.xml"
    ball, bodies = "<geom size='.05' pos='{} 0 0'/>", "<body pos='0 0 {}'><freejoint/>{}</body>"
    for nbody, ngeom, boxes, tree in ((3, 4, (3, 48), (0, 0)), (160, 1, (0, 0), (160, 160 * 159 // 2))):
        geoms = "".join(ball.format(0.1 * k) for k in range(ngeom))
        world = "".join(bodies.format(0.2 * k + 0.05, geoms) for k in range(nbody))
        file.write_text(f"<mujoco><worldbody><geom type='plane' size='5 5 1'/>{world}</worldbody></mujoco>")
        succeeds("inspect", file, "--json")
        found = json.loads(capfd.readouterr().out)["bounding_tests"]
        assert tuple(found["body_boxes"].values()) == boxes and tuple(found["tree"].values()) == tree
        assert found["spheres"] == found["closed_form"] == found["listed"] + tree[1]
        succeeds("inspect", file)
        shown = " ".join(capfd.readouterr().out.split())
        assert ("3 pairs of bodies, with 48 pairs of geoms" in shown) == (boxes[0] > 0)
        assert ("160 geoms, instead of 12720 pairs" in shown) == (tree[0] > 0)


def test_inspect_names_the_targets_of_actuators(tmp_path, capfd):
    file = tmp_path / "robot.xml"
    file.write_text(
        '<mujoco><worldbody><site name="base"/>'
        '<body name="b"><joint name="j"/><geom size=".1"/><site name="tip"/></body></worldbody>'
        '<tendon><fixed name="cord"><joint joint="j" coef="1"/></fixed></tendon>'
        '<actuator><motor joint="j"/><motor tendon="cord"/><motor site="tip"/><motor site="tip" refsite="base"/>'
        '<adhesion body="b" ctrlrange="0 1"/></actuator></mujoco>'
    )
    succeeds("inspect", file, "--json")
    targets = [actuator["target"] for actuator in json.loads(capfd.readouterr().out)["actuators"]]
    assert targets == ["j", "tendon cord", "site tip", "site tip from base", "body b"]


def test_inspect_lists_unsupported_features(tmp_path, capfd):
    file = tmp_path / "robot.xml"
    file.write_text(UNSUPPORTED)
    succeeds("inspect", file)
    shown = capfd.readouterr().out
    assert "cloth" in shown and "sleep" in shown and "needed for the motion" in shown
    message = fails(capfd, "simulate", file)
    assert "cloth" in message and "sleep" in message


@pytest.mark.parametrize("name", fl.bundled_names())
def test_every_bundled_model_can_be_inspected(name, capfd):
    succeeds("inspect", name)


def test_a_model_without_motion_can_be_inspected(tmp_path, capfd):
    file = tmp_path / "still.xml"
    file.write_text("<mujoco/>")
    succeeds("inspect", file)


# ---- options ---------------------------------------------------------------------------------------------
def test_options_are_set_in_the_order_given():
    model = fl.bundled("quadruped")
    texts = (
        "integrator=euler",
        "contact_model=lcp",
        "lcp_solver = pgs",
        "timestep=5e-4",
        "gravity=0,0,-1.6",
        "iterations=7",
    )
    set_options(model, texts)
    assert (model.opt.contact_model, model.opt.lcp_solver.name.lower()) == ("lcp", "pgs")
    assert (model.opt.timestep, model.opt.iterations) == (5e-4, 7)
    np.testing.assert_array_equal(model.opt.gravity, (0.0, 0.0, -1.6))


def test_simulate_runs_under_the_options_that_are_set(capfd):
    slow = simulated(capfd, "box_stack", "--seconds", "0.02", "--set", "contact_model=lcp", "--set", "timestep=0.01")
    assert slow["steps"] == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("timestep", "allowed is NAME=VALUE"),
        ("=1", "allowed is NAME=VALUE"),
        ("time_step=1", "did you mean 'timestep'"),
        ("timestep=-1", "timestep: got -1"),
        ("cfm=soft", "cfm: got 'soft'"),
        ("contact_model=hard", "got 'hard'"),
        ("gravity=1,2", "gravity"),
        ("gravity=3", "allowed are 3 numbers"),
        ("disableflags=contacts", "did you mean 'contact'"),
    ],
)
def test_simulate_refuses_invalid_options(capfd, text, part):
    assert part in fails(capfd, "simulate", "arm", "--set", text)


# ---- compare ---------------------------------------------------------------------------------------------
FEW = ("--states", "2", "--steps", "5")


def test_compare_reports_the_accuracy_of_each_solver(capfd):
    succeeds("compare", "quadruped", *FEW)
    shown = capfd.readouterr().out
    for name in ("newton", "cg", "pgs", "iterations", "residual", "duality gap", "distance"):
        assert name in shown


def test_compare_prints_json(capfd):
    succeeds("compare", "quadruped", *FEW, "--solvers", "pgs,newton", "--iterations", "50", "--json")
    result = json.loads(capfd.readouterr().out)
    assert list(result["solvers"]) == ["pgs", "newton"]
    assert result["states"] == 2 and result["iterations"] == 50
    assert result["solvers"]["newton"]["distance"]["max"] < 1e-9
    assert result["solvers"]["pgs"]["gap"]["max"] >= 0.0


def test_compare_draws_curves_of_convergence(capfd, tmp_path):
    file = tmp_path / "curves.png"
    succeeds("compare", "quadruped", *FEW, "--plot", file)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert str(file) in capfd.readouterr().out.replace("\n", "")


def test_legends_of_plots_cover_no_panel(tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn, save = [], figure.savefig
    monkeypatch.setattr(figure, "savefig", lambda self, *given: (save(self, *given), drawn.append(self)))
    values = np.linspace(1.0, 0.1, 9)
    draw_convergence(tmp_path / "a.png", "title", {name: [(values, values)] for name in ("newton", "cg", "pgs")})
    runs = [("convex", "newton"), ("convex", "pgs"), ("lcp", "dantzig"), ("lcp", "pgs"), ("lcp", "apgd")]
    draw_motions(tmp_path / "b.png", "title", values, {run: {"energy": values, "height": values} for run in runs})
    for one in drawn:
        (legend,) = one.legends
        box = legend.get_window_extent()
        assert len(legend.get_texts()) == len(one.axes[0].get_legend_handles_labels()[1])
        assert not any(axis.get_legend() for axis in one.axes)
        assert box.y0 >= 0.0 and not any(axis.get_tightbbox().overlaps(box) for axis in one.axes)


def test_compare_without_matplotlib_names_the_extra(capfd, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = fails(capfd, "compare", "arm", *FEW, "--plot", tmp_path / "curves.png")
    assert "featherlane[plot]" in message


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--solvers", "newton,sor"), "got 'sor'"),
        (("--solvers", "cg,cg"), "got a name twice"),
        (("--solvers", ","), "got none"),
        (("--states", "0"), "states: got 0"),
        (("--iterations", "0"), "iterations: got 0"),
        (("--plot", "curves.pdf"), "allowed is .png"),
    ],
)
def test_compare_refuses_invalid_requests(capfd, options, part):
    assert part in fails(capfd, "compare", "arm", *options)


def test_compare_needs_a_constraint(capfd):
    assert "has active constraints" in fails(capfd, "compare", "double_pendulum", *FEW)


# ---- compare --contact -----------------------------------------------------------------------------------
SHORT = ("--contact", "convex,lcp,coulomb", "--steps", "12")


def test_compare_steps_a_state_under_every_contact_model(capfd, tmp_path):
    file = tmp_path / "motions.png"
    succeeds("compare", "quadruped", *SHORT, "--plot", file, "--json")
    result = json.loads(capfd.readouterr().out)
    runs = {(r["contact"], r["solver"]): r for r in result["runs"]}
    assert list(runs) == [(c, s) for c, names in SOLVERS.items() for s in names]
    assert result["changed"] == {"convex": [], "lcp": ["integrator implicitfast -> euler"], "coulomb": []}
    assert runs["lcp", "dantzig"]["residual"]["max"] < 1e-10
    energies = [r["energy_change"] for r in runs.values()]
    assert np.ptp(energies) < 0.1 * max(map(abs, energies))  # 12 steps of one motion
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_solver_runs_under_the_contact_models_that_have_it(capfd):
    succeeds("compare", "box_stack", *SHORT, "--solvers", "pgs,dantzig", "--iterations", "7", "--json")
    runs = json.loads(capfd.readouterr().out)["runs"]
    assert [(r["contact"], r["solver"]) for r in runs] == [("convex", "pgs"), ("lcp", "dantzig"), ("lcp", "pgs")]
    assert runs[2]["iterations"]["max"] <= 7


def test_compare_changes_options_that_coulomb_excludes(capfd, tmp_path):
    file = tmp_path / "ball.xml"
    ball = '<body pos="0 0 .1"><freejoint/><geom size=".1"/></body>'
    option = '<option integrator="RK4" solver="CG" noslip_iterations="3"/>'
    file.write_text(f'<mujoco>{option}<worldbody><geom type="plane" size="1 1 1"/>{ball}</worldbody></mujoco>')
    succeeds("compare", file, "--contact", "coulomb", "--steps", "5", "--json")
    result = json.loads(capfd.readouterr().out)
    assert result["changed"] == {"coulomb": ["integrator rk4 -> euler", "noslip_iterations -> 0"]}
    assert [r["solver"] for r in result["runs"]] == ["newton"]


def test_compared_contacts_report_slip_and_overlap():
    box = '<body pos="0 0 .49"><freejoint/><geom type="box" size=".5 .5 .5" condim="1"/></body>'
    model = fl.load(f'<mujoco><worldbody><geom type="plane" size="1 1 1" condim="1"/>{box}</worldbody></mujoco>')
    data = fl.Data(model)
    data.qvel[0] = 3.0
    fl.step(model, data)
    depth, slip = _contacts(model, data, _moves(model))
    np.testing.assert_allclose((depth, slip), (0.01, 3.0), rtol=1e-12)


def test_the_energy_of_a_run_is_that_of_its_states():
    model = fl.bundled("double_pendulum")
    request, state = Contest("double_pendulum", ("convex",), ("newton",), 50), {"qpos": [1.0, 0.5], "qvel": [2.0, 1.0]}
    trace = _run(model, state, request, "convex", "newton")
    data = fl.Data(model)
    data.qpos, data.qvel = state["qpos"], state["qvel"]
    controls = Random(model, 1, model.opt.timestep)
    for k, energy in enumerate(trace.energy):
        controls.steer(data, k)
        fl.step(model, data)
        mj_model = model.to_mujoco()
        reference = mujoco.MjData(mj_model)
        reference.qpos, reference.qvel = data.qpos, data.qvel
        mujoco.mj_forward(mj_model, reference)
        mujoco.mj_energyPos(mj_model, reference)
        mujoco.mj_energyVel(mj_model, reference)
        assert energy == pytest.approx(reference.energy.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--contact", "convex,soft"), "got 'soft'"),
        (("--contact", "lcp,lcp"), "got a name twice"),
        (("--contact", ","), "got none"),
        (("--contact", "convex", "--solvers", "dantzig"), "'dantzig', which does not belong to"),
        (("--contact", "lcp", "--solvers", "sor"), "got 'sor'"),
        (("--contact", "lcp", "--steps", "0"), "steps: got 0"),
        (("--contact", "lcp", "--iterations", "0"), "iterations: got 0"),
        (("--contact", "lcp", "--plot", "motions.pdf"), "allowed is .png"),
    ],
)
def test_compare_refuses_invalid_contact_models(capfd, options, part):
    assert part in fails(capfd, "compare", "arm", *options)


# ---- bench -----------------------------------------------------------------------------------------------

QUICK = ("--worlds", "16", "--rounds", "1", "--seconds", "0.05", "--steps", "2")


def test_bench_prints_ratios_and_stages(capfd):
    succeeds("bench", "cartpole", "pendulum", *QUICK)
    shown = capfd.readouterr().out
    for part in ("cartpole", "pendulum", "ratio", "one world", "kinematics", "processor"):
        assert part in shown


def test_bench_prints_json(capfd):
    succeeds("bench", "arm", *QUICK, "--json", "--no-stages")
    document = json.loads(capfd.readouterr().out)
    (result,) = document["models"]
    assert document["course"]["worlds"] == 16
    for race in ("batch", "one_world"):
        assert result[race]["ratio"]["least"] <= result[race]["ratio"]["median"] <= result[race]["ratio"]["greatest"]
    # both engines did the same work
    assert result["worlds"]["qvel_apart"]["max"] < 1e-6


def test_bench_runs_float32_without_constraints(capfd):
    succeeds("bench", "arm", *QUICK, "--json", "--dtype", "float32", "--smooth")
    (result,) = json.loads(capfd.readouterr().out)["models"]
    assert result["changed"] == ["sensor disabled", "contact disabled", "constraint disabled"]
    assert result["worlds"]["contacts"]["max"] == 0 and result["stage_microseconds"]["step"] > 0


def test_times_of_stages_and_the_rest_are_the_step(capfd):
    succeeds("bench", "arm", *QUICK, "--json")
    (result,) = json.loads(capfd.readouterr().out)["models"]
    times = result["stage_microseconds"]
    step = times.pop("step")
    assert list(times)[-1] == "rest" and sum(times.values()) == pytest.approx(step) and step > 0


def test_bench_reports_how_many_pairs_pass_each_test(capfd):
    succeeds("bench", "hand", "cartpole", *QUICK)
    shown = " ".join(capfd.readouterr().out.split())
    for part in (
        "Geom pairs that",
        "candidate pairs of the model",
        "46.00",
        "oriented boxes overlap: iterative search",
    ):
        assert shown.count(part) == 1  # a cartpole has no pairs
    assert "boxes of bodies" not in shown and "tree" not in shown  # these tests are not made
    succeeds("bench", "hand", *QUICK, "--json")
    (result,) = json.loads(capfd.readouterr().out)["models"]
    told = result["collision"]
    assert told["pairs"]["listed"] == 46 and set(told["microseconds"]) == {"listing", "turned_boxes", "points"}
    succeeds("bench", "hand", *QUICK, "--json", "--no-stages")
    assert "collision" not in json.loads(capfd.readouterr().out)["models"][0]


def test_bench_prints_the_active_lanes_of_solver_iterations(capfd):
    succeeds("bench", "hand", *QUICK)
    shown = " ".join(capfd.readouterr().out.split())
    assert shown.count("iterations of a world") == 1 and shown.count("active lanes in these tiles") == 1


def test_bench_of_less_than_a_tile_has_no_stages(capfd):
    succeeds("bench", "pendulum", *QUICK, "--worlds", "3")
    assert "kinematics" not in capfd.readouterr().out


def test_rounds_alternate_and_warm_up_does_not_count():
    order = []

    def side(name, seconds):
        def once():
            order.append(name)
            return seconds

        return once

    times = alternate({"a": side("a", 1.0), "b": side("b", 2.0)}, 3, lambda: None)
    assert order == list("abbaabbaab") and len(times["a"]) == 3
    assert ratio(times["b"], times["a"]) == Ratio(2.0, 2.0, 2.0)


# ---- compile, version ------------------------------------------------------------------------------------


def test_compile_fills_the_cache_once(tmp_path, capfd, monkeypatch):
    pytest.importorskip("llvmlite")
    from featherlane.engine.simulation.tile import library

    one = {"passive": library.stages()["passive"]}
    monkeypatch.setattr(importlib.import_module("featherlane.engine.simulation.tile.precompile"), "stages", lambda: one)
    monkeypatch.setenv("FEATHERLANE_CACHE", str(tmp_path))
    wanted = ("compile", "--dtype", "float64", "--processes", "1", "--force", "--json")
    succeeds(*wanted)
    first = json.loads(capfd.readouterr().out)
    assert (first["compiled"], first["cached"]) == (2, 0) and len(list(tmp_path.glob("*.o"))) == 2
    succeeds(*wanted)
    assert json.loads(capfd.readouterr().out)["compiled"] == 0


def test_version_shows_the_configuration(capfd):
    succeeds("--version")
    shown = capfd.readouterr().out
    assert "featherlane" in shown and "kernels" in shown and "cpu" in shown


@pytest.mark.parametrize("command", [(), ("simulate",), ("inspect",), ("bench",), ("compare",), ("compile",)])
def test_help_is_printed(command, capfd):
    succeeds(*command, "--help")
    assert "--help" in capfd.readouterr().out


# ---- screens -------------------------------------------------------------------------------------------------


def test_help_keeps_the_names_of_extras(capfd):
    for command, extra in (("simulate", "view"), ("compare", "plot")):
        succeeds(command, "--help")
        assert f"pip install 'featherlane[{extra}]'" in " ".join(capfd.readouterr().out.split())


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize(
    "command",
    [("inspect", "humanoid"), ("compare", "quadruped", "--states", "2", "--steps", "5"), ("bench", "arm", "--quick")],
    ids=lambda command: command[0],
)
def test_tables_are_complete_and_as_wide_as_the_terminal(command, columns, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    succeeds(*(word for given in command for word in (QUICK if given == "--quick" else (given,))))
    shown = capfd.readouterr().out
    assert "…" not in shown
    assert max(len(line.rstrip()) for line in shown.splitlines() if line[:1] in "┃│┏┌") <= columns


def test_numbers_stay_whole_in_a_narrow_table(capfd):
    numbers = ["4.321e+105 (9.9e+300)", "1,234,567,890"]
    for width in (30, 60, 90):
        Console(width=width).print(table("Title", ["a long heading of words", "b"], [numbers]))
        shown = capfd.readouterr().out
        for word in (*" ".join(numbers).split(), "heading", "words"):
            assert word in shown


def test_output_to_a_pipe_is_wide(capfd, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console().width == FILE_WIDTH
    monkeypatch.setenv("COLUMNS", "wide")
    assert console().width == FILE_WIDTH
    monkeypatch.setenv("COLUMNS", "3")
    assert console().width == 40


def test_a_long_name_leaves_room_for_the_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    screen = StringIO()
    bar = progress(False)
    bar.live.console = Console(file=screen, width=80, force_terminal=True)
    bar.add_task("/a/very/long/" + 20 * "path/" + "[of]/scene.xml: settling", total=5)
    bar.live.console.print(bar.get_renderable())
    lines = [line for line in screen.getvalue().splitlines() if line.strip()]
    assert len(lines) == 1 and "0/5" in lines[0]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("arm", "arm"),
        ("/a/bundled/arm.xml", "arm"),
        ("/a/unitree_g1/scene.xml", "unitree_g1"),
        ("/a/unitree_g1/SCENE.XML", "unitree_g1"),
        ("/a/shadow_hand/scene_left.xml", "shadow_hand/scene_left"),
        ("/a/spot/robot.urdf", "spot"),
        ("MjModel", "MjModel"),
    ],
)
def test_model_labels_are_distinct(source, name):
    assert model_label(source) == name


def test_a_scene_in_this_folder_has_the_folders_name(tmp_path, monkeypatch, capfd):
    folder = tmp_path / "walker"
    folder.mkdir()
    (folder / "scene.xml").write_text("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
    monkeypatch.chdir(folder)
    assert model_label("scene.xml") == "walker"
    succeeds("bench", "scene.xml", *QUICK)
    shown = capfd.readouterr().out
    assert "walker" in shown and "scene.xml" not in shown


def test_inspect_shows_the_memory_of_contacts_and_rows(capfd):
    succeeds("inspect", "quadruped")
    shown = " ".join(capfd.readouterr().out.split())
    assert " contacts, " in shown and "nHblock" not in shown and "npanel" not in shown
    succeeds("inspect", "quadruped", "--json")
    assert list(json.loads(capfd.readouterr().out)["capacities"]) == ["nconmax", "nrowmax"]


# ---- errors while a command runs --------------------------------------------------------------------------------
LOOSE = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
<actuator><motor joint="j" gear="1e6"/></actuator></mujoco>"""


def test_non_finite_worlds_are_named_and_set_the_exit_code(tmp_path, capfd):
    file, push = tmp_path / "loose.xml", tmp_path / "push.py"
    file.write_text(LOOSE)
    push.write_text("import numpy as np\n\ndef control(batch, step):\n    return [[0.0], [1e9], [0.0], [1e9]]\n")
    command = ("simulate", file, "--worlds", "4", "--seconds", "0.02", "--controls", push)
    assert run_command([str(word) for word in command]) == BAD_WORLDS == 3
    shown = capfd.readouterr()
    assert "non finite" in shown.out
    assert shown.err == "featherlane: values became non-finite or larger than 1e10 in 2 of 4 worlds: 1, 3\n"
    assert run_command([*map(str, command), "--json"]) == BAD_WORLDS
    assert json.loads(capfd.readouterr().out)["bad_worlds"] == [1, 3]


def test_failures_are_written_next_to_the_recording(tmp_path, capfd):
    file, push, out = tmp_path / "loose.xml", tmp_path / "push.py", tmp_path / "run.npz"
    file.write_text(LOOSE)
    push.write_text("def control(batch, step):\n    return [[0.0], [1e9 * (step == 3)]]\n")
    stale, other = tmp_path / "run.failure-0-12.npz", tmp_path / "run.failure-mine-12.npz"
    for path in (stale, other):
        path.write_text("from an earlier run")
    words = ["--worlds", "2", "--seconds", "0.02", "--controls", push, "--out", out]
    command = ["simulate", *map(str, [file, *words])]
    assert run_command([*command, "--record-failures", "3"]) == BAD_WORLDS
    assert "run.failure-1-3.npz" in capfd.readouterr().out.replace("\n", "")
    assert {p.name for p in tmp_path.glob("run.*")} == {"run.npz", "run.failure-1-3.npz", other.name}
    failure = fl.load_failure(tmp_path / "run.failure-1-3.npz")
    assert (failure.world, failure.step, failure.cause, failure.nstep) == (1, 3, "non_finite", 3)
    before = failure.replay(-1)
    before.forward()
    assert before.ctrl == 1e9 and abs(before.qacc[0]) > 1e10
    assert failure.replay().time == pytest.approx(0.002) and failure.data.qvel == 0.0
    assert run_command([*command, "--record-failures", "0", "--json"]) == BAD_WORLDS
    assert json.loads(capfd.readouterr().out)["files"]["failures"] == []
    assert not list(tmp_path.glob("run.failure-?-*.npz"))
    assert "record-failures: got -1" in fails(capfd, *command, "--record-failures", "-1")


def test_ctrl_c_prints_progress_and_keeps_the_recording(tmp_path, capfd, monkeypatch):
    out, calls, advance = tmp_path / "run.npz", [], Zero.advance

    def interrupted(self, batch, start, nstep):
        calls.append(start)
        if len(calls) == 4:
            raise KeyboardInterrupt
        advance(self, batch, start, nstep)

    monkeypatch.setattr(Zero, "advance", interrupted)
    assert run_command(["simulate", "arm", "--worlds", "2", "--seconds", "1", "--out", str(out)]) == 130
    told = capfd.readouterr()
    assert told.out == "" and told.err.startswith(
        "featherlane: interrupted after 30 of 250 steps, 0.12 of 1 s simulated"
    )
    with np.load(out) as kept:
        assert kept["qpos"].shape[1] == kept["status"].shape[1] == 4 and str(out) in told.err
        np.testing.assert_allclose(kept["time"][0], [0, 0.04, 0.08, 0.12])
    calls.clear()
    assert run_command(["simulate", "arm", "--seconds", "1"]) == 130
    assert "interrupted after 30 of 250" in capfd.readouterr().err


def test_an_unknown_mujoco_gl_is_refused(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "foo")
    with pytest.raises(fl.InstallationError, match="MUJOCO_GL: got 'foo', allowed are "):
        renderer.prepare_rendering()


def test_a_failing_mujoco_gl_is_named():
    code = "from featherlane.apps.cli import main; main(['simulate', 'pendulum', '--seconds', '0.01'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"MUJOCO_GL": "foo"},
        timeout=900,
    )
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr  # not every MuJoCo checks it on import
    if done.returncode:
        assert "MUJOCO_GL is 'foo'" in done.stderr and "pip" not in done.stderr


# ---- wrong arguments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("simulate", "humnoid"), "did you mean 'humanoid'"),
        (("simulate", "no/such.xml"), "no such file"),
        (("simulate", "."), "is a folder"),
        (("inspect", "no/such.urdf"), "no such file"),
        (("bench", "no/such.xml"), "no such file"),
        (("simulate", "arm", "--worlds", "0"), "worlds: got 0"),
        (("simulate", "arm", "--worlds", "-3"), "worlds: got -3"),
        (("simulate", "arm", "--worlds", "many"), "--worlds"),
        (("simulate", "arm", "--worlds", "1000000000000000"), ""),
        (("simulate", "arm", "--seconds", "0"), "seconds: got 0"),
        (("simulate", "arm", "--seconds", "nan"), "seconds: got nan"),
        (("simulate", "arm", "--seconds", "1e300"), "allowed are at most 1e+12 steps"),
        (("simulate", "arm", "--set", "timestep=1e-40"), "allowed are at most 1e+12 steps"),
        (("simulate", "arm", "--threads", "100000"), "nthread: got 100000"),
        (("simulate", ""), "got an empty text"),
        (("simulate", "arm", "--fps", "-1"), "fps: got -1"),
        (("simulate", "arm", "--threads", "-1"), "threads: got -1"),
        (("simulate", "arm", "--seed", "-1"), "seed: got -1"),
        (("simulate", "arm", "--dtype", "float16"), "--dtype"),
        (("simulate", "arm", "--keyframe", "handstand"), "keyframe: got 'handstand'"),
        (("simulate", "arm", "--camera", "nowhere"), "camera: got 'nowhere'"),
        (("simulate", "arm", "--controls", "wild"), "allowed are zero, random"),
        (("simulate", "arm", "--controls", "missing.npy"), "file not found"),
        (("simulate", "arm", "--out", "run.txt"), "allowed is .npz"),
        (("simulate", "arm", "--out", "no/folder/run.npz"), "does not exist"),
        (("simulate", "arm", "--video", "run.avi"), "allowed is .mp4"),
        (("simulate", "arm", "--nonsense"), "--nonsense"),
        (("simulate",), "simulate --help"),
        (("bench", "arm", "--rounds", "0"), "rounds: got 0"),
        (("bench", "arm", "--worlds", "0"), "worlds: got 0"),
        (("bench", "arm", "--seconds", "-1"), "seconds: got -1"),
        (("bench", "arm", "--against", "everyone"), "--against"),
        (("compile", "--processes", "-1"), "processes: got -1"),
        (("convert", "arm", "arm.urdf"), "allowed is a name that ends with .xml"),
        (("convert", "arm", "no/arm.xml"), "no such folder"),
        (("convert", "no/such.urdf", "arm.xml"), "no such file"),
        (("convert", "arm", "arm.xml", "--base", "floating"), "--base"),
        (("convert", "arm", "arm.xml", "--height", "low"), "height: got 'low', allowed is a number"),
        (("convert", "arm", "arm.xml", "--home", "0.3"), "home: got '0.3', allowed is JOINT=VALUE"),
        (("convert", "arm", "arm.xml", "--home", "j=1", "--home", "j=2"), "once for each joint"),
        (("convert", "arm", "arm.xml", "--home", "elbow=far"), "home: joint 'elbow': got 'far', allowed is a number"),
        (("convert", "arm", "arm.xml", "--actuators", "torque"), "actuators: got 'torque'"),
        (("convert", "arm", "arm.xml", "--gains", "3,4"), "gains: allowed only with actuators"),
        (("convert", "arm", "arm.xml", "--gains", "high"), "gains: got 'high', allowed is a number"),
        (("launch",), "launch"),
    ],
    ids=" ".join,
)
def test_invalid_input_is_one_message(arguments, told, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in fails(capfd, *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda nu: np.zeros((2, 5, nu)), "allowed is (steps, "),
        (lambda nu: np.zeros((5, nu + 1)), "allowed is (steps, "),
        (lambda nu: np.zeros(nu), "allowed is (steps, "),
        (lambda nu: np.zeros((0, nu)), "allowed is (steps, "),
        (lambda nu: np.full((5, nu), np.nan), "got nan at (0, 0)"),
        (lambda nu: np.full((5, nu), np.inf), "got inf at (0, 0)"),
        (lambda nu: np.full((5, nu), "push"), "allowed are real numbers"),
        (lambda nu: np.full((5, nu), None), "cannot be read"),
        (lambda nu: np.zeros((1, nu)), "controls for 1 steps"),
    ],
    ids="worlds columns vector empty nan inf text objects short".split(),
)
def test_invalid_controls_are_one_message(make, told, capfd, tmp_path):
    file, out = tmp_path / "controls.npy", tmp_path / "run.npz"
    np.save(file, make(fl.bundled("arm").nu))
    message = fails(capfd, "simulate", "arm", "--seconds", "0.01", "--controls", file, "--out", out)
    assert told in message and str(file) in message and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "text, told",
    [
        ("def control(:", "SyntaxError: .*line 1"),
        ("\nimport no_such_module", r"ModuleNotFoundError: .*\(controls.py, line 2\)"),
        ("raise SystemExit(7)", r"SystemExit: 7 \(controls.py, line 1\)"),
        ("controls = 1", "does not define a function control"),
        ("def control(batch, step):\n    return 1 / 0", r"ZeroDivisionError: .*\(controls.py, line 2\)"),
    ],
    ids="syntax import exit name call".split(),
)
@pytest.mark.parametrize("command", ["simulate", "sweep"])
def test_a_file_of_controls_that_fails_is_one_message(command, text, told, capfd, tmp_path):
    file = tmp_path / "controls.py"
    file.write_text(text)
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        f'model = "cartpole"\n[rollout]\nsteps = 2\ncontrol = "{file}:control"\n[reduce]\nx = "final qpos[0]"'
    )
    options = ["cartpole", "--seconds", "0.01", "--controls", file] if command == "simulate" else [sweep]
    assert re.search(told, fails(capfd, command, *options))


@pytest.mark.parametrize(
    "write, code",
    [
        (lambda: None, 0),
        (lambda: os.fdopen(pipe_without_reader(), "w"), 0),
        (lambda: open("/dev/full", "w"), 2),  # noqa: SIM115
    ],
    ids=["closed", "broken pipe", "full disk"],
)
@pytest.mark.parametrize("options", [(), ("--json",), ("--help",)], ids=["table", "json", "help"])
def test_a_closed_stdout_prints_no_traceback(write, code, options, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdout", write())
    assert run_command(["inspect", "pendulum", *options]) == code
    if sys.stdout is not None:
        sys.stdout.close()  # as at process exit
    assert ("No space left" in capfd.readouterr().err) == (code == 2)


def pipe_without_reader():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize(
    "content",
    [b"PK\x03\x04", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8', (\n", "archive", "deflate"],
    ids=["zip", "header", "archive", "deflate"],
)
def test_a_broken_array_is_a_model_error(content, tmp_path):
    """Readers raise BadZipFile, TokenError, zlib.error and others."""
    file = tmp_path / "array.npy"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        with file.open("wb") as out:
            np.savez_compressed(out, a=np.arange(1000.0))
    if content == "deflate":
        data = bytearray(file.read_bytes())
        data[60:90] = bytes(30)
        file.write_bytes(data)
    with pytest.raises(fl.ModelError, match=r"array\.npy"):
        read_array(file, "array.npy")
    if content != "archive":
        with pytest.raises(fl.ModelError, match=r"array\.npy: is broken"):
            read_arrays(file, "array.npy", "is broken")


def test_a_broken_array_file_is_one_message(capfd, tmp_path):
    file = tmp_path / "controls.npy"
    file.write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr'")
    assert "cannot be read" in fails(capfd, "simulate", "arm", "--controls", file)


def test_malformed_xml_is_reported_with_its_line(capfd, tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text("<mujoco>\n<worldbody>\n<body>\n</mujoco>")
    message = fails(capfd, "simulate", file)
    assert "robot.xml" in message and "line" in message.lower()


def test_a_process_ends_with_code_2_and_no_traceback():
    command = [sys.executable, "-m", "featherlane", "simulate", "humnoid"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.startswith("featherlane: ") and done.stderr.count("\n") == 1


def test_a_file_is_complete_or_absent(tmp_path):
    target = tmp_path / f"{'run' * 80}.npz"  # a name so long that a suffix would exceed the file system's limit
    target.write_text("old")
    with pytest.raises(RuntimeError), whole_file(target) as part:
        part.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]
    with whole_file(target) as part:
        part.write_text("new")
    assert target.read_text() == "new" and list(tmp_path.iterdir()) == [target]


def test_a_refused_write_names_the_target_and_not_its_temporary_file(tmp_path):
    target = tmp_path / "run.npz"
    for cause in (OSError(errno.ENOSPC, "No space left on device"), tmp_path / "other.txt"):
        with pytest.raises(OSError) as refused, whole_file(target) as part:
            if isinstance(cause, OSError):
                raise cause
            cause.read_text()
        assert str(refused.value).endswith(f": {str(target if isinstance(cause, OSError) else cause)!r}")
    with pytest.raises(OSError) as refused, whole_file(target) as part:
        (part / "folder").write_text("")
    assert refused.value.filename == str(target)


# ---- diagnose --------------------------------------------------------------------------------------------


SICK = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>{}</worldbody></mujoco>"""
BURIED = '<body name="b{0}" pos="{0} 0 .02"><freejoint/><geom name="g{0}" size=".1"/></body>'


def test_diagnose_finds_nothing_in_a_healthy_model(capfd):
    succeeds("diagnose", "humanoid")
    assert capfd.readouterr().out == "humanoid: no findings\n"


def test_diagnose_lists_a_few_elements_of_each_check_or_all(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "buried.xml"
    file.write_text(SICK.format("".join(BURIED.format(k) for k in range(7))))
    for arguments, listed in (((), 4), (("--all",), 7)):
        succeeds("diagnose", file, *arguments)
        shown = capfd.readouterr().out
        assert shown.count("geom 'g") == listed and ("and 3 more" in shown) == (listed == 4)
        assert max(map(len, shown.splitlines())) <= 80 and "try: move the geoms apart" in shown


def test_diagnose_prints_json_and_exits_with_2_on_an_error(tmp_path, capfd):
    file = tmp_path / "stiff.xml"
    file.write_text(
        '<mujoco><worldbody><body><joint name="j" stiffness="1e9"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    assert run_command(["diagnose", str(file), "--json"]) == 2
    out, err = capfd.readouterr()
    result = json.loads(out)
    assert result["counts"]["error"] == 1 and err == "featherlane: 1 error in stiff\n"
    (finding,) = [f for f in result["findings"] if f["severity"] == "error"]
    assert (finding["check"], finding["element"], finding["id"]) == ("step-unstable", "joint 'j'", 0)


def test_diagnose_names_unsupported_features(tmp_path, capfd):
    file = tmp_path / "cloth.xml"
    file.write_text(UNSUPPORTED)
    assert run_command(["diagnose", str(file)]) == 2
    shown = capfd.readouterr().out
    assert "flex 'cloth'" in shown and "sleep" in shown
