"""`featherlane sweep FILE`: the same as the function, from a file; every error is one message."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane import distributed as fd
from featherlane.apps.cli import run_command
from featherlane.apps.cli.exit import BAD_WORLDS, INTERRUPTED

WHOLE = """
model = "scene.xml"
samples = 3
seed = 4
[options]
timestep = 0.004
gravity = [0, 0, -1.6]
[parameters]
"geom_friction[ball, 0]" = { grid = [0.4, 1.2] }
"body_mass[ball] + body_inertia[ball]" = { uniform = [0.5, 2.0], apply = "scale" }
"qvel" = { normal = [0.0, 0.2], each = true }
"opt.solver" = { choice = ["newton", "cg"] }
"qpos[2]" = { drawn = "own.py:height" }
"opt.tolerance" = { log_uniform = [1e-9, 1e-8] }
[rollout]
seconds = 0.04
control = "random"
keyframe = "fast"
dtype = "float32"
[reduce]
place = "final qpos[0]"
"""
SCENE = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><body name="ball" pos="0 0 .2"><freejoint/>
<geom name="ball" size=".1"/></body></worldbody>
<keyframe><key name="fast" qvel="1 0 0 0 0 0"/></keyframe></mujoco>"""
OWN = """
import featherlane as fl
def height(rng):
    return rng.uniform(0.2, 0.3)
def reduce(recorded):
    return {"place": recorded["qpos"][-1, 0]}
def push(batch, step):
    return 0.0
@fl.kernel
def kernel(m, d):
    d.qfrc_applied[0] = 1.0
"""
SHORT = 'model = "pendulum"\n[rollout]\nsteps = 2\n[reduce]\nx = "final qpos[0]"\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scene.xml").write_text(SCENE)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "sweep.toml").write_text(WHOLE)
    return tmp_path


def swept(*arguments):
    return run_command(["sweep", *map(str, arguments)])


def test_a_sweep_file_gives_the_results_of_the_function(folder, capfd):
    assert swept(folder / "sweep.toml", "--out", folder / "run", "--chunk", "4", "--json") == 0
    shown = json.loads(capfd.readouterr().out)
    model = fl.load(SCENE)
    model.opt.timestep, model.opt.gravity = 0.004, (0, 0, -1.6)
    found = fd.sweep(
        model,
        {
            "geom_friction[ball, 0]": fd.grid([0.4, 1.2]),
            "body_mass[ball] + body_inertia[ball]": fd.uniform(0.5, 2.0, apply="scale"),
            "qvel": fd.normal(0.0, 0.2, each=True),
            "opt.solver": fd.choice(["newton", "cg"]),
            "qpos[2]": fd.drawn(lambda rng: rng.uniform(0.2, 0.3)),
            "opt.tolerance": fd.log_uniform(1e-9, 1e-8),
        },
        {"nstep": 10, "control": "random", "keyframe": "fast", "dtype": "float32"},
        reduce={"place": "final qpos[0]"},
        nsample=3,
        seed=4,
        progress=False,
    )
    told = fd.load_sweep(folder / "run")
    for name, column in found.columns.items():
        np.testing.assert_array_equal(column, told.columns[name], err_msg=name)
    assert shown["samples"] == 6 and shown["results"]["place"]["mean"] == pytest.approx(found.results["place"].mean())
    assert shown["parameters"]["opt.solver"] == {"names": ["cg", "newton"]}
    assert str(folder / "run/result.npz") in shown["files"]


def test_the_summary_names_results_and_parameters(folder, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # long paths do not wrap
    assert swept(folder / "sweep.toml", "--out", folder / "run") == 0
    shown = capfd.readouterr().out
    for text in (
        "Results of 6 samples",
        "place",
        "geom_friction[ball, 0]",
        "0.4 to 1.2",
        "no warnings",
        "result.npz",
    ):
        assert text in shown


def test_the_file_of_the_page_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs/distributed.md").read_text()
    found = re.search(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    text = found[1].replace("samples = 100", "samples = 2").replace("seconds = 2.0", "seconds = 0.02")
    (tmp_path / "friction.toml").write_text(text)
    (tmp_path / "start.py").write_text("def height(rng):\n    return rng.uniform(0.9, 1.0)\n")
    assert swept(tmp_path / "friction.toml", "--out", tmp_path / "run") == 0
    told = fd.load_sweep(tmp_path / "run")
    assert len(told) == 6 and told.results["height"].min() > 0.8


@pytest.mark.parametrize("control", ['"zero"', '"own.py:push"', '"own.py:kernel"', '"tape.npy"'])
def test_controls_and_reductions_of_files(folder, control):
    np.save(folder / "tape.npy", np.zeros((2, 0)))
    text = 'model = "scene.xml"\nreduce = "own.py:reduce"\n[parameters]\n"qvel[0]" = [0.0, 1.0]\n'
    (folder / "sweep.toml").write_text(text + f"[rollout]\nsteps = 2\nrecord = ['qpos']\ncontrol = {control}\n")
    assert swept(folder / "sweep.toml", "--out", folder / "run") == 0
    assert len(fd.load_sweep(folder / "run")) == 2


def test_a_run_resumes_only_with_the_resume_option(folder, capfd):
    arguments = folder / "sweep.toml", "--out", folder / "run"
    assert swept(*arguments, "--resume") == 0  # a run without a directory starts: a queue may restart it
    assert swept(*arguments) == 2
    assert "contains a run; continue it with --resume" in capfd.readouterr().err
    assert swept(*arguments, "--resume") == 0
    (folder / "sweep.toml").write_text(WHOLE.replace("seed = 4", "seed = 5"))
    assert swept(*arguments, "--resume") == 2
    assert "contains a run with another seed" in capfd.readouterr().err
    assert swept(folder / "sweep.toml", "--resume") == 2
    assert "resume: requires --out" in capfd.readouterr().err


def test_non_finite_samples_have_a_separate_exit_code(folder, capfd):
    (folder / "sweep.toml").write_text(SHORT + '[parameters]\n"qvel[0]" = [0.0, 1e9]\n[options]\ntimestep = 20\n')
    assert swept(folder / "sweep.toml") == BAD_WORLDS
    shown = capfd.readouterr()
    assert "values became non-finite or out of range in 1 of 2 samples: 1" in shown.err and "non finite" in shown.out


PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from featherlane.apps.cli import run_command
import featherlane.distributed.sweeps.run_directory as runs
write = runs.RunDirectory.write_chunk
def told(self, *arguments):
    write(self, *arguments)
    print("kept", flush=True)
runs.RunDirectory.write_chunk = told
sys.exit(run_command(["sweep", sys.argv[1], "--out", sys.argv[2], "--chunk", "8"]))
"""


def test_ctrl_c_prints_the_progress(folder):
    text = SHORT.replace("pendulum", "humanoid").replace("steps = 2", "steps = 2000")
    text = "samples = 9999\n" + text
    (folder / "sweep.toml").write_text(text)
    command = [sys.executable, "-c", PROGRAM, str(folder / "sweep.toml"), str(folder / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "kept\n"
    process.send_signal(signal.SIGINT)
    shown = process.communicate(timeout=60)[1]
    assert process.returncode == INTERRUPTED
    assert "interrupted after" in shown and "continue with --resume" in shown and "Traceback" not in shown
    assert len(fd.load_sweep(folder / "run")) >= 8


WRONG = {
    "nothing": ("", "the entry model is missing; allowed entries are model, samples"),
    "no TOML": ("model = ", r"sweep.toml: Invalid value"),
    "an unknown entry": (SHORT + "[parameter]\n", "the file: got 'parameter', allowed are .*did you mean 'parameters'"),
    "no model": (SHORT.replace('"pendulum"', '"pendulun"'), "pendulun"),
    "a number for a model": (
        SHORT.replace('"pendulum"', "3"),
        "model: got 3, allowed is the name of a bundled model or a path",
    ),
    "an unknown option": (
        SHORT + "[options]\ntimestpe = 1\n",
        "unknown option 'timestpe'; did you mean 'timestep'",
    ),
    "no table": ("options = 3\n" + SHORT, "options: got 3, allowed is a table"),
    "two distributions": (SHORT + "[parameters]\nqvel = {uniform=[0, 1], normal=[0, 1]}\n", "allowed is one of grid"),
    "an unknown one": (SHORT + "[parameters]\nqvel = {unifrom=[0, 1]}\n", "'unifrom', allowed are .*'uniform'"),
    "one number of two": (
        SHORT + "[parameters]\nqvel = {uniform=[1]}\n",
        r"uniform: got \[1\], allowed are two",
    ),
    "each of a grid": (
        SHORT + "[parameters]\nqvel = {grid=[1], each=true}\n",
        "got each with grid, allowed with choice, uniform",
    ),
    "a wrong apply": (SHORT + "[parameters]\nqvel = {grid=[1], apply='x'}\n", "parameter 'qvel': apply: got 'x'"),
    "an unknown field": (SHORT + "[parameters]\nqvell = [1]\n", "unknown field 'qvell'"),
    "steps and seconds": (
        SHORT.replace("steps = 2", "steps = 2\nseconds = 1"),
        "got both or neither of steps and seconds",
    ),
    "no seconds": (SHORT.replace("steps = 2", "seconds = -1"), "seconds: got -1"),
    "endless seconds": (SHORT.replace("steps = 2", "seconds = inf"), "seconds: got inf"),
    "an unknown rollout": (SHORT.replace("steps", "step"), "rollout: got 'step', allowed are steps"),
    "no control": (SHORT.replace("steps = 2", "steps = 2\ncontrol = 'x'"), "control: got 'x'"),
    "a number for controls": (SHORT.replace("steps = 2", "steps = 2\ncontrol = 3"), "control: got 3"),
    "no file": (SHORT.replace("steps = 2", "steps = 2\ncontrol = 'x.npy'"), "x.npy: file not found"),
    "no program": (SHORT.replace("steps = 2", "steps = 2\ncontrol = 'x.py:f'"), "x.py: file not found"),
    "no function": (
        SHORT.replace("steps = 2", "steps = 2\ncontrol = 'own.py:reduec'"),
        "own.py: does not define a function reduec; did you mean 'reduce'",
    ),
    "a program that fails": (
        SHORT.replace("steps = 2", "steps = 2\ncontrol = 'bad.py:f'"),
        "ZeroDivisionError",
    ),
    "no name": (SHORT.replace("steps = 2", "steps = 2\ncontrol = 'own.py'"), "allowed is FILE.py:NAME"),
    "samples": ("samples = 0\n" + SHORT, "nsample: got 0"),
    "a reduction": (SHORT.replace("final", "last"), "reduce: x: got 'last qpos"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_one_message(folder, capfd, case):
    text, message = WRONG[case]
    (folder / "bad.py").write_text("1 / 0")
    (folder / "sweep.toml").write_text(text)
    assert swept(folder / "sweep.toml", "--out", folder / "run") == 2
    shown = capfd.readouterr().err
    assert shown.startswith("featherlane: ") and "Traceback" not in shown and re.search(message, shown), shown
    assert not (folder / "run").exists()


def test_a_nested_file_and_a_failing_sampling_function_are_one_message(folder, capfd):
    (folder / "drawn.py").write_text("def drawn(a, b):\n    return a")
    drawn = 'model = "pendulum"\nrollout.steps = 1\nreduce.x = "final qpos[0]"\n'
    drawn += 'parameters.qvel = { drawn = "drawn.py:drawn" }'
    for text, message in {"a = " + "[" * 5000: "recursion", drawn: "parameter 'qvel': TypeError: drawn"}.items():
        (folder / "wrong.toml").write_text(text)
        assert swept(folder / "wrong.toml") == 2
        assert message in capfd.readouterr().err


def test_an_invalid_sweep_file_is_one_message(folder, capfd):
    (folder / "binary.toml").write_bytes(b"\xff\xfe\x00")
    wrong = {
        "no.toml": "no such file",
        "binary.toml": "cannot be read as text",
        ".": "directory",
        "/dev/zero": "longer",
    }
    for name, message in wrong.items():
        assert swept(folder / name) == 2
        assert message in capfd.readouterr().err
