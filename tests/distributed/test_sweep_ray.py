"""Sweeps by a real Ray: bitwise identical to a sweep without it, after any loss, and with the same errors."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane import distributed as fd
from featherlane.apps.cli import run_command
from featherlane.apps.cli.exit import INTERRUPTED
from featherlane.distributed.sweeps import workers

ray = pytest.importorskip("ray")
SAMPLES, CHUNK, STEPS = 40, 4, 6
PARAMETERS = {"qvel": fd.normal(0.0, 1.0, each=True), "body_mass[1]": fd.uniform(0.5, 2.0, apply="scale")}
REDUCE = {"angle": "final qpos[0]", "fastest": "peak qvel"}


@pytest.fixture(scope="module", autouse=True)
def running(cluster):
    """Starts the Ray of this folder, which `nodes=2` uses."""


@pytest.fixture(scope="module")
def model():
    return fl.bundled("double_pendulum")


def swept(model, reduce=None, rollout=STEPS, **given):
    settings = {"nsample": SAMPLES, "chunk": CHUNK, "progress": False, "nthread": 1} | given
    return fd.sweep(model, PARAMETERS, rollout, reduce=reduce or REDUCE, **settings)


@pytest.fixture(scope="module")
def whole(model):
    return swept(model)


def same(a, b):
    assert a.columns.keys() == b.columns.keys()
    for name, column in a.columns.items():
        np.testing.assert_array_equal(column, b.columns[name], err_msg=name)


def test_workers_give_bitwise_equal_results(model, whole, tmp_path):
    seen = []
    out = tmp_path / "run"
    found = swept(model, nodes=2, out=out, progress=lambda done, total: seen.append((done, total)))
    same(whole, found)
    same(whole, fd.load_sweep(out))
    assert seen[-1] == (SAMPLES, SAMPLES) and len(seen) == 1 + SAMPLES // CHUNK
    assert ray.is_initialized()  # a Ray that was already running stays


@pytest.mark.ci
def test_a_cluster_is_given_or_named_by_its_address(model, whole, cluster):
    same(whole, swept(model, nodes=cluster.address))
    same(whole, swept(model, nodes=cluster))
    assert ray.is_initialized()


def reduce_and_die(marker, recorded):
    """Kills the computing worker once per existing marker: no marker exists during the trials."""
    if abs(recorded["qvel"][0, 0]) > 1.5:
        for path in sorted(Path(marker).iterdir()):
            try:
                path.unlink()
            except FileNotFoundError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
    return {"angle": recorded["qpos"][-1, 0]}


def test_replaced_workers_give_bitwise_equal_results(model, whole, tmp_path):
    """Kills three of them during the sweep."""
    for k in range(3):
        (tmp_path / str(k)).touch()
    rollout = {"nstep": STEPS, "record": ("qpos", "qvel")}
    assert abs(whole.parameters["qvel"][0, 0]) < 1.5 < np.abs(whole.parameters["qvel"][:, 0]).max()
    found = swept(model, partial(reduce_and_die, str(tmp_path)), rollout, nodes=2)
    np.testing.assert_array_equal(found.results["angle"], whole.results["angle"])
    assert not list(tmp_path.iterdir())


@pytest.mark.ci
def test_a_local_run_resumes_on_workers_and_back(model, whole, tmp_path):
    def stop(at):
        def progress(done, total):
            if done >= at:
                raise KeyboardInterrupt

        return progress

    with pytest.raises(fd.SweepInterrupted, match=f"interrupted after 8 of {SAMPLES} samples"):
        swept(model, out=tmp_path / "run", progress=stop(8))
    with pytest.raises(fd.SweepInterrupted):
        swept(model, out=tmp_path / "run", progress=stop(20), nodes=2)
    assert len(fd.load_sweep(tmp_path / "run")) == 20
    same(whole, swept(model, out=tmp_path / "run"))


@pytest.mark.ci
def test_kernels_and_functions_of_a_script_are_serialized(model, whole):
    strength = 0.5

    @fl.kernel
    def push(m, d):
        d.ctrl[0] = 0.5 * d.qvel[0]

    def follow(batch, step):
        return np.concatenate([strength * batch.qvel[:, :1], np.zeros((batch.nworld, 1))], axis=1)

    for control in (push, follow):
        rollout = {"nstep": STEPS, "control": control, "record": ("qpos",)}
        here = swept(model, lambda recorded: {"angle": recorded["qpos"][-1, 0]}, rollout)
        there = swept(model, lambda recorded: {"angle": recorded["qpos"][-1, 0]}, rollout, nodes=2)
        same(here, there)
        assert (here.results["angle"] != whole.results["angle"]).any()


def test_an_unserializable_function_is_refused_before_the_run(model, tmp_path):
    lock = threading.Lock()

    def reduce(recorded):
        with lock:
            return {"x": 1.0}

    assert len(swept(model, reduce)) == SAMPLES  # here it can be called
    with pytest.raises(fl.ModelError, match="cannot be pickled"):
        swept(model, reduce, nodes=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def only_here(pid, recorded):
    if os.getpid() != pid:
        raise OSError("no such file: /data/here")
    return {"x": 1.0}


def other_there(pid, recorded):
    return {"x": 1.0 if os.getpid() == pid else 2.0}


@pytest.mark.parametrize(
    ("reduce", "message"),
    [
        (only_here, "reduce: sample 0: OSError: no such file: /data/here"),
        (other_there, "sample 0: x:"),
    ],
)
def test_a_function_with_different_results_on_workers_is_detected_before_the_run(model, tmp_path, reduce, message):
    with pytest.raises(fl.ModelError, match=re.escape(message)):
        swept(model, partial(reduce, os.getpid()), nodes=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def divided(recorded):
    return {"x": 1 / int(abs(recorded["qvel"][0, 0]) < 1.5)}


def test_an_error_of_a_later_sample_names_it_and_keeps_finished_chunks(model, tmp_path):
    with pytest.raises(fl.ModelError, match=r"sample \d+: ZeroDivisionError"):
        swept(model, divided, {"nstep": 1, "record": ("qvel",)}, nodes=2, out=tmp_path / "run")
    assert set(fd.load_sweep(tmp_path / "run").results) <= {"x"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": 0}, "nodes:"),
        ({"nodes": True}, "nodes:"),
        ({"nodes": 2.0}, "nodes:"),
        ({"nodes": "nowhere"}, "address:"),
    ],
)
def test_invalid_worker_counts_are_refused(model, given, message):
    with pytest.raises(fl.ModelError, match=message):
        swept(model, **given)


def test_the_command_takes_workers_and_addresses(tmp_path, cluster, capfd):
    text = 'model = "pendulum"\nsamples = 5\n[parameters]\nqvel = { normal = [0, 1] }\n[rollout]\nsteps = 2\n'
    (tmp_path / "sweep.toml").write_text(text + '[reduce]\nx = "final qpos[0]"\n')
    tables, file = [], str(tmp_path / "sweep.toml")
    for k, nodes in enumerate(([], ["--nodes", "2"], ["--nodes", cluster.address])):
        assert run_command(["sweep", file, "--out", str(tmp_path / str(k)), "--threads", "1", *nodes]) == 0
        tables.append(fd.load_sweep(tmp_path / str(k)))
    same(tables[0], tables[1])
    same(tables[0], tables[2])


@pytest.mark.ci
def test_a_cluster_without_free_cores_is_reported(model, cluster, monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.5)

    @ray.remote(num_cpus=cluster.cores)
    class Other:
        def is_there(self):
            return True

    other = Other.remote()
    assert ray.get(other.is_there.remote())
    with pytest.raises(fl.ModelError, match="nodes"):
        swept(model, nodes=2)
    ray.kill(other)
    monkeypatch.undo()
    assert len(swept(model, nodes=2)) == SAMPLES


LONG = 'model = "humanoid"\nsamples = 100000\n[parameters]\nqvel = { normal = [0, 0.1], each = true }\n'
LONG += '[rollout]\nsteps = 400\n[reduce]\nz = "final qpos[2]"\n'


@pytest.mark.slow
def test_ctrl_c_of_a_terminal_ends_a_sweep_and_its_ray(tmp_path):
    """The signal reaches all processes of the terminal's group, including those that Ray started."""
    (tmp_path / "long.toml").write_text(LONG)
    command = [
        sys.executable,
        "-m",
        "featherlane",
        "sweep",
        "long.toml",
        "--out",
        "run",
        "--nodes",
        "2",
        "--chunk",
        "16",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))  # fmt: skip
    try:
        until = time.monotonic() + 240
        while time.monotonic() < until and len(list((tmp_path / "run").glob("chunks/*.npz"))) < 3:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        shown = process.communicate(timeout=120)[1]
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == INTERRUPTED
    assert "interrupted after" in shown and "continue with --resume" in shown and "Traceback" not in shown
    done = fd.load_sweep(tmp_path / "run")
    assert 48 <= len(done) < 100_000 and np.isfinite(done.results["z"]).all()
