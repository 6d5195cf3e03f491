"""Objects sent to other processes: kernels completely, others as Ray serializes them; and those that cannot be sent."""

import importlib.util
import subprocess
import sys
import threading

import numpy as np
import pytest

import featherlane as fl
from featherlane.distributed import Batch
from featherlane.distributed.serialization import serialize, unpacked

KERNELS = """
import featherlane as fl

GAIN = 0.25


@fl.kernel
def half(x):
    return 0.5 * x


@fl.kernel
def lean(m, d):
    for i in range(m.nu):
        d.ctrl[i] = half(d.time[0]) + GAIN
"""
PROGRAM = """
import sys
import featherlane as fl
from featherlane.distributed.serialization import unpacked

control = unpacked("control", open(sys.argv[1], "rb").read())
batch = fl.Batch(fl.bundled("humanoid"), 3)
batch.rollout(2, control)
print(batch.ctrl[0, 0].hex())
"""


@pytest.fixture
def model():
    return fl.bundled("humanoid")


def test_a_kernel_is_sent_with_its_source(tmp_path, model):
    pytest.importorskip("ray")
    file, packet = tmp_path / "kernels_of_a_user.py", tmp_path / "kernel"
    file.write_text(KERNELS)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    batch = fl.Batch(model, 3)
    batch.rollout(2, module.lean)
    packet.write_bytes(serialize("control", module.lean))
    file.unlink()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(packet)], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == float(batch.ctrl[0, 0]).hex()


def test_unserializable_objects_are_named(model):
    pytest.importorskip("ray")
    lock = threading.Lock()
    with pytest.raises(fl.ModelError, match="function"):
        serialize("function", lambda batch: lock)


def test_missing_modules_of_a_process_are_named():
    with pytest.raises(fl.ModelError, match=r"no_such_module.*or ship it with connect"):
        unpacked("function", b"cno_such_module\nthing\n.")


@pytest.mark.ci
def test_an_unserializable_function_does_not_stop_workers(model, cluster):
    lock = threading.Lock()
    with Batch(model, 16, 2, nthread=1) as batch:
        with pytest.raises(fl.ModelError, match="function"):
            batch.call(lambda b: lock)
        with pytest.raises(ZeroDivisionError):
            batch.call(lambda b: 1 / 0)
        with pytest.raises(fl.ModelError, match="first world is 0: its arguments or results cannot be pickled"):
            batch.call(lambda b: threading.Lock())  # its result cannot be sent back
        batch.step()
        assert np.allclose(batch.time, model.opt.timestep)
