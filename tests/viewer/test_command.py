"""`featherlane view` without a browser: errors before anything is served, and its end."""

import os
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

pytest.importorskip("viser")

from featherlane.apps.cli import run_command

SECONDS = 60.0
CLOTH = """<mujoco><worldbody><flexcomp name="curtain" type="grid" count="4 4 1" spacing=".1 .1 .1" dim="2"/>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "out.npz"
    assert run_command(["simulate", "pendulum", "--seconds", "0.2", "--worlds", "2", "--out", str(path), "--json"]) == 0
    return path


@pytest.mark.parametrize(
    "words, says",
    [
        (["nosuch"], "no bundled model and no file 'nosuch'"),
        (["nosuch.npz"], "nosuch.npz: file not found"),
        (["pendulum", "--worlds", "0"], "worlds: got 0"),
        (["pendulum", "--drawn", "0"], "drawn: got 0"),
        (["pendulum", "--threads", "-1"], "threads: got -1"),
        (["pendulum", "--port", "99999"], "port: got 99999"),
        (["pendulum", "--host", "8.8.8.8"], "host: got '8.8.8.8'"),
        (["pendulum", "--no-token", "--host", "0.0.0.0"], "token: got none with host"),
        (["pendulum", "--set", "timestep=-1"], "timestep"),
        (["pendulum", "--set", "bogus=1"], "unknown option 'bogus'"),
        (["pendulum", "--keyframe", "bogus"], "keyframe: got 'bogus'"),
        (["pendulum", "--model", "humanoid"], "allowed only with a recording"),
        (["{out}", "--model", "humanoid"], "allowed with the model"),
        (["{out}", "--model", "nosuch"], "no bundled model"),
        (["{out}", "--worlds", "3"], "not allowed with a recording"),
        (["{out}", "--keyframe", "0"], "not allowed with a recording"),
        (["{wrong}"], "cannot be read as a recording"),
        (["{other}"], "not a recording, time, qpos"),
        (["{lost}"], "its model 'gone.xml' cannot be loaded"),
    ],
)
def test_invalid_commands_are_refused(words, says, recording, tmp_path, capsys):
    (tmp_path / "wrong.npz").write_text("nonsense")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.savez(tmp_path / "lost.npz", time=np.zeros((1, 2)), qpos=np.zeros((1, 2, 1)), model=np.array("gone.xml"))
    places = {name: tmp_path / f"{name}.npz" for name in ("wrong", "other", "lost")} | {"out": recording}
    assert run_command(["view", *(word.format(**places) for word in words), "--no-browser"]) == 2
    out, err = capsys.readouterr()
    assert says in err and out == ""


@pytest.mark.parametrize(
    "words, code", [(["pendulum", "--worlds", "3", "--no-token"], 0), (["{out}"], 0), (["{cloth}"], 2)]
)
def test_it_is_served_until_ctrl_c(words, code, recording, tmp_path):
    (tmp_path / "cloth.xml").write_text(CLOTH)
    words = [word.format(out=recording, cloth=tmp_path / "cloth.xml") for word in words]
    process = subprocess.Popen(
        [sys.executable, "-m", "featherlane", "view", *words, "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"SSH_CONNECTION": "here"},
    )  # fmt: skip
    url = process.stdout.readline().split()[0]
    assert process.stdout.readline().startswith("to open it from another machine: ssh -L")
    assert url.endswith("/") and ("--no-token" in words) == (url.count("/") == 3)
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert ("flex 'curtain': deformable body" in err) == (code == 2) and "Traceback" not in err
