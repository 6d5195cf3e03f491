"""`featherlane simulate --nodes`: the recording and the table equal those of one process, for worlds on several."""

import json
import sys

import numpy as np
import pytest

from featherlane.apps.cli import run_command

WORDS = ["simulate", "double_pendulum", "--worlds", "7", "--seconds", "0.2", "--controls", "random", "--threads", "1"]


def simulated(capfd, *words):
    assert run_command([*WORDS, *map(str, words), "--json"]) == 0
    return json.loads(capfd.readouterr().out)


@pytest.mark.ci
def test_reports_and_recordings_of_workers_equal_local_ones(cluster, capfd, tmp_path):
    here = simulated(capfd, "--out", tmp_path / "here.npz")
    there = simulated(capfd, "--out", tmp_path / "there.npz", "--nodes", 2)
    assert (here["workers"], there["workers"], there["threads"]) == (1, 2, 2)
    for name in ("contacts", "solver_iterations", "solver_residual", "energy", "status", "world_0", "bad_worlds"):
        assert here[name] == there[name], name
    with np.load(tmp_path / "here.npz") as a, np.load(tmp_path / "there.npz") as b:
        assert sorted(a) == sorted(b)
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    assert simulated(capfd, "--nodes", cluster.address, "--seconds", "0.05")["steps"] > 0


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("0", "nodes: got 0, allowed is a whole number >= 1"),
        ("nowhere", "address: got 'nowhere'"),
        ("", "address: got ''"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "sweep"])
def test_wrong_nodes_are_one_message(capfd, tmp_path, command, nodes, message):
    (tmp_path / "sweep.toml").write_text('model = "pendulum"\n[rollout]\nsteps = 1\n[reduce]\nx = "final qpos[0]"\n')
    words = WORDS if command == "simulate" else ["sweep", str(tmp_path / "sweep.toml")]
    assert run_command([*words, "--nodes", nodes]) == 2
    shown = capfd.readouterr().err
    assert message in shown and shown.count("\n") == 1


def test_without_ray_one_message_names_the_install_command(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run_command([*WORDS, "--nodes", "2"]) == 2
    assert "pip install 'featherlane[distributed]'" in capfd.readouterr().err
