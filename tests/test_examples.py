"""Every example runs as a program, on small numbers, and says something; `ppo` has tests of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

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
    "jacobian": ["20"],
    "jamming_rod": [],
    "linked_bodies": ["1"],
    "muscle_arm": [],
    "piston_engine": ["2"],
    "randomize_masses": ["16", "20"],
    "register_points": ["50"],
    "suction_gripper": [],
    "swing_up": [],
    "tendon_finger": [],
    "throw_cube": [],
    "tree_factorization": [],
    "user_actuator": [],
    "vector_env": ["16", "20"],
}
LONGER = {
    "balance_humanoid",
    "five_quadrupeds",
    "hop",
    "identify",
    "swing_up",
    "throw_cube",
}  # those that solve a problem of control from its model to its result


def test_all_examples_are_run():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*ARGUMENTS, "ppo"}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_example_runs(name):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *ARGUMENTS[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and "nan" not in done.stdout


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < (120 if name in LONGER else 80)
