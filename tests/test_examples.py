"""Every example runs as a program with small sizes and prints something; `ppo` has separate tests."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sampling import every

EXAMPLES = Path(__file__).parents[1] / "examples"
ARGUMENTS = {
    "bad_world": ["100"],
    "balance_acrobot": ["8"],
    "balance_humanoid": ["16"],
    "balance_pole": ["20", "5"],
    "batch_rollout": ["16", "5"],
    "end_effector": ["1.5"],
    "first_steps": ["0.5"],
    "five_quadrupeds": ["12"],
    "hop": [],
    "identify": [],
    "inverse_kinematics": ["16"],
    "jacobian": ["20"],
    "jamming_rod": [],
    "linked_bodies": ["1"],
    "mppi": ["40"],
    "muscle_arm": [],
    "nut_and_bolt": ["2"],
    "piston_engine": ["2"],
    "randomize_masses": ["16", "20"],
    "register_points": ["50"],
    "slide_shapes": ["1", "300"],
    "static_optimization": ["21"],
    "suction_gripper": [],
    "swing_up": [],
    "sweep_friction": ["48", "150"],
    "tendon_finger": [],
    "throw_cube": [],
    "tree_factorization": [],
    "user_actuator": [],
    "vector_env": ["16", "20"],
}
ELSEWHERE = {"identify_arm", "identify_toss", "ppo", "sim_to_real", "vision_reach"}  # have separate tests
LONGER = {
    "balance_humanoid",
    "five_quadrupeds",
    "hop",
    "identify",
    "static_optimization",
    "swing_up",
    "throw_cube",
}  # control problems solved from model to result
# examples that start Ray, and their other imports
BY_RAY = {
    "rllib_halfcheetah": (["2", "1", "4", "16"], "ray.rllib", "torch"),
    "tune_balance": (["4", "16", "60"], "ray.tune"),
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef
MOST_SECONDS = 300  # s, timeout of an example that hangs


def test_all_examples_are_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*ARGUMENTS, *BY_RAY, *ELSEWHERE}


@pytest.mark.parametrize("name", every(6, ARGUMENTS))
def test_the_example_runs(name, tmp_path):
    assert ran(name, ARGUMENTS[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_RAY)
def test_the_example_runs_by_ray(name, tmp_path):
    arguments, *needed = BY_RAY[name]
    for module in needed:
        pytest.importorskip(module, exc_type=ImportError)  # Ray may be installed without its optional libraries
    shown = ran(name, arguments, tmp_path)
    assert "update 2: 128 steps" in shown if name == "rllib_halfcheetah" else "poles stay up" in shown


def ran(name, arguments, folder):
    """Returns the example's output; its files go to the folder."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=MOST_SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and "nan" not in done.stdout
    return done.stdout


@pytest.mark.ci
def test_an_arm_learns_from_depth_images(tmp_path):
    pytest.importorskip("torch")
    shown = ran("vision_reach", ["16", "12"], tmp_path)
    assert "before training: " in shown and "after training: " in shown


@pytest.mark.ci
def test_a_robot_from_pypi_walks_in_mujoco_with_an_exported_policy(tmp_path):
    for module in ("torch", "rsl_rl", "onnxscript", "onnxruntime"):
        pytest.importorskip(module)
    if importlib.util.find_spec("robosuite_models") is None:  # its import requires robosuite
        pytest.skip("robosuite-models is not installed")
    shown = ran("sim_to_real", ["16", "1", "2"], tmp_path)
    found = re.findall(r"^in_mujoco \((\S+), .*\): \[ *(\S+) .*\], 0.00 falls$", shown, re.MULTILINE)
    assert [float(asked) for asked, _ in found] == [0.8, -0.4, 0.0, 0.0], shown
    assert float(found[0][1]) > 0.2 and float(found[1][1]) < -0.1, shown  # the gait of an untrained policy
    assert (tmp_path / "runs" / "go2" / "policy.onnx").exists()


def test_the_program_of_the_sim_to_real_page_is_short():
    text = (EXAMPLES / "sim_to_real.py").read_text()
    strings = [node.body[0] for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED) and node.body]
    documented = {
        line
        for node in strings
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    code = [line for k, line in enumerate(text.splitlines(), 1) if k not in documented and line.strip()]
    assert sum(not line.lstrip().startswith("#") for line in code) <= 120


@pytest.mark.ci
def test_a_sweep_is_plotted(tmp_path):
    shown = ran("sweep_friction", ARGUMENTS["sweep_friction"], tmp_path)
    assert "48 humanoids" not in shown and "correlation of distance with friction -0." in shown
    assert (tmp_path / "sweep_friction.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [*ARGUMENTS, *BY_RAY])
def test_the_example_is_short(name):
    # lines of at most 88 characters
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < (160 if name in LONGER else 90)
