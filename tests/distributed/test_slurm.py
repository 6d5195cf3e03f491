"""The recipe of the page on planning, unchanged, with two programs that replace SLURM's."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from featherlane import distributed as fd

pytest.importorskip("ray")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/distributed.md").read_text()
SWEEP = 'model = "double_pendulum"\nsamples = 30\n[parameters]\nqvel = { normal = [0, 1], each = true }\n'
SWEEP += '[rollout]\nsteps = 5\n[reduce]\nx = "final qpos[0]"\n'
# srun runs the command here, for any node
PROGRAMS = {
    "scontrol": 'echo "127.0.0.1"',
    "srun": 'while [[ "$1" == --* ]]; do shift; done; exec "$@"',
    "ray": 'exec "$PYTHON" -m ray.scripts.scripts "$@"',
    "featherlane": 'exec "$PYTHON" -m featherlane "$@"',
}


def script() -> str:
    found = re.search(r"^```sh\n(#!/bin/bash\n.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1].replace("source ~/featherlane/bin/activate", "true")


def test_the_recipe_is_a_script():
    subprocess.run(["bash", "-n"], input=script(), text=True, check=True, timeout=900)
    options = re.findall(r"^#SBATCH (.*)$", script(), re.MULTILINE)
    assert {word.partition("=")[0] for line in options for word in line.split()} == {
        "--nodes", "--ntasks-per-node", "--cpus-per-task", "--time", "--signal", "--array",
    }  # fmt: skip


@pytest.mark.slow
def test_the_recipe_runs_a_sweep(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    (tmp_path / "job.sh").write_text(script())
    (tmp_path / "friction.toml").write_text(SWEEP)
    env = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": sys.executable, "SLURM_JOB_NODELIST": "here",
        "SLURM_JOB_ID": str(os.getpid()), "SLURM_CPUS_PER_TASK": "2", "HOME": str(tmp_path),
    }  # fmt: skip
    with (tmp_path / "log").open("w") as log:
        job = subprocess.Popen(
            ["bash", "job.sh"], cwd=tmp_path, env=env, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = job.wait(timeout=240)
        finally:
            os.killpg(job.pid, signal.SIGTERM)  # SLURM kills the job's remaining processes: here Ray's head
    assert code == 0, (tmp_path / "log").read_text()
    assert len(fd.load_sweep(tmp_path / "friction")) == 30
