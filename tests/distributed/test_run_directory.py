"""Run directories: finished work stays, the same call resumes, and any other call raises an error."""

import errno
import json
import os
import signal
import subprocess
import sys

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane import distributed as fd
from featherlane.distributed.sweeps import chunk
from featherlane.distributed.sweeps.run_directory import RunDirectory

PARAMETERS = {"qvel": fd.uniform(-1.0, 1.0, each=True), "body_mass[1]": fd.grid([1.0, 2.0])}
REDUCE = {"angle": "final qpos[0]", "fastest": "peak qvel"}
STEPS = 5


@pytest.fixture(scope="module")
def model():
    return fl.bundled("double_pendulum")


def swept(model, out, parameters=None, **given):
    settings = {"nsample": 8, "chunk": 4, "progress": False, "out": out} | given
    return fd.sweep(model, parameters or PARAMETERS, STEPS, reduce=REDUCE, **settings)


@pytest.fixture(scope="module")
def whole(model):
    return swept(model, None)


def same(a, b):
    assert a.columns.keys() == b.columns.keys()
    for name, column in a.columns.items():
        np.testing.assert_array_equal(column, b.columns[name], err_msg=name)


def stop_after(samples):
    """Returns a progress callback that interrupts after so many samples."""

    def progress(done, total):
        if done >= samples:
            raise KeyboardInterrupt

    return progress


def test_a_folder_can_have_a_name_that_is_not_utf8(model, whole, tmp_path):
    folder = tmp_path / os.fsdecode(b"run-\xff")
    same(whole, swept(model, folder))
    binary = (folder / "model.mjb").read_bytes()
    assert mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": binary}).nq == model.nq


def test_a_run_without_a_manifest_starts_again(model, whole, tmp_path, monkeypatch):
    """As on a full disk: the folder holds the model and no note."""

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("pathlib.Path.write_text", fail)
        with pytest.raises(fl.ModelError, match="No space left on device"):
            swept(model, tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"model.mjb", "chunks"}
    (tmp_path / "run/.model-abcd1234").mkdir()  # after a kill
    same(whole, swept(model, tmp_path / "run"))


def test_a_run_holds_the_model_the_options_and_the_columns(model, whole, tmp_path):
    same(whole, swept(model, tmp_path / "run"))
    note = json.loads((tmp_path / "run/run.json").read_text())
    assert note["seed"] == 0 and note["nsample"] == 16 and note["rollout"]["nstep"] == STEPS
    assert note["parameters"]["body_mass[1]"]["numbers"] == [[1.0, 2.0]] and note["reduce"] == REDUCE
    assert {"featherlane", "kernels", "mujoco", "numpy", "python"} <= note["versions"].keys()
    saved = mujoco.MjModel.from_binary_path(str(tmp_path / "run/model.mjb"))
    np.testing.assert_array_equal(saved.body_mass, model.body_mass)
    assert len(list((tmp_path / "run/chunks").iterdir())) == 4
    same(whole, fd.load_sweep(tmp_path / "run"))
    same(whole, fd.load_sweep(tmp_path / "run/result.npz"))


def test_a_resumed_run_is_bitwise_equal(model, whole, tmp_path, monkeypatch):
    with pytest.raises(fd.SweepInterrupted, match="8 of 16 samples") as stop:
        swept(model, tmp_path / "run", progress=stop_after(8))
    assert (stop.value.done, stop.value.nsample, stop.value.path) == (8, 16, tmp_path / "run")
    assert isinstance(stop.value, KeyboardInterrupt)
    part = fd.load_sweep(tmp_path / "run")
    assert part.samples.tolist() == list(range(8)) and "8 of 16 samples" in repr(part)
    computed = []
    original = chunk.run_chunk
    told = lambda plan, samples, nthread: computed.extend(samples) or original(plan, samples, nthread)  # noqa: E731
    monkeypatch.setattr(chunk, "run_chunk", told)
    same(whole, swept(model, tmp_path / "run", chunk=3))
    assert sorted(computed) == [0, *range(8, 16)]  # the trial, and the remaining files
    computed.clear()
    same(whole, swept(model, tmp_path / "run"))
    assert computed == [0]


def test_missing_chunks_are_computed(model, whole, tmp_path):
    swept(model, tmp_path / "run")
    files = sorted((tmp_path / "run/chunks").iterdir())
    files[0].unlink()
    files[2].unlink()
    same(whole, swept(model, tmp_path / "run", chunk=5))


@pytest.mark.parametrize("damage", ["torn", "empty", "of others", "pickled"])
def test_an_unreadable_chunk_is_reported_and_recomputed(model, whole, tmp_path, damage):
    swept(model, tmp_path / "run")
    victim = sorted((tmp_path / "run/chunks").iterdir())[1]
    if damage == "torn":
        victim.write_bytes(victim.read_bytes()[:-200])
    elif damage == "empty":
        victim.write_bytes(b"")
    elif damage == "pickled":
        np.savez(victim, what=np.array([{}], object))
    else:
        victim.rename(victim.with_name("000000014-000000018.npz"))
        victim = victim.with_name("000000014-000000018.npz")
    with pytest.warns(RuntimeWarning, match=victim.name):
        same(whole, swept(model, tmp_path / "run"))


def reduce_one(recorded):
    return {"angle": recorded["qpos"][-1, 0]}


def reduce_other(recorded):
    return {"angle": recorded["qpos"][-1, 1]}


def test_a_directory_of_a_different_run_is_refused_and_kept(model, tmp_path):
    out, options = tmp_path / "run", {"progress": False, "out": tmp_path / "run", "nsample": 2}
    fd.sweep(model, PARAMETERS, STEPS, reduce=reduce_one, **options)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    other = fl.bundled("double_pendulum")
    other.body_mass[1] *= 2
    edited = fl.bundled("double_pendulum")
    edited.opt.timestep = 0.001
    grids = PARAMETERS | {"body_mass[1]": fd.grid([1.0, 3.0])}
    for arguments, changed, word in [
        ((other, PARAMETERS, STEPS), {"reduce": reduce_one}, "another model"),
        ((edited, PARAMETERS, STEPS), {"reduce": reduce_one}, "another model"),
        ((model, grids, STEPS), {"reduce": reduce_one}, "other parameters"),
        ((model, PARAMETERS, STEPS + 1), {"reduce": reduce_one}, "another rollout"),
        ((model, PARAMETERS, {"nstep": STEPS, "dtype": "float32"}), {"reduce": reduce_one}, "another rollout"),
        ((model, PARAMETERS, STEPS), {"reduce": reduce_other}, "another reduction"),
        ((model, PARAMETERS, STEPS), {"reduce": reduce_one, "seed": 1}, "another seed"),
        ((model, PARAMETERS, STEPS), {"reduce": reduce_one, "nsample": 3}, "another number of samples"),
        ((other, grids, STEPS), {"reduce": reduce_one}, "another model and other parameters"),
    ]:
        with pytest.raises(fl.ModelError, match=f"run: contains a run with {word}; use another folder"):
            fd.sweep(*arguments, **(options | changed))
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    fd.sweep(model, PARAMETERS, STEPS, reduce=reduce_one, **options)


def made(factor):
    return lambda recorded: {"angle": factor * recorded["qpos"][-1, 0]}


def test_the_identity_of_a_function_includes_its_closure(model, tmp_path):
    """The same source with a different captured number is a different reduction."""
    fd.sweep(model, {"qvel[0]": [1.0]}, 1, reduce=made(2.0), out=tmp_path / "run", progress=False)
    fd.sweep(model, {"qvel[0]": [1.0]}, 1, reduce=made(2.0), out=tmp_path / "run", progress=False)
    with pytest.raises(fl.ModelError, match="reduction"):
        fd.sweep(model, {"qvel[0]": [1.0]}, 1, reduce=made(3.0), out=tmp_path / "run", progress=False)


def test_another_version_and_another_format_are_refused(model, tmp_path):
    swept(model, tmp_path / "run")
    note = tmp_path / "run/run.json"
    told = json.loads(note.read_text())
    note.write_text(json.dumps(told | {"versions": told["versions"] | {"kernels": "of others"}}))
    with pytest.raises(fl.ModelError, match="kernels"):
        swept(model, tmp_path / "run")
    note.write_text(json.dumps(told | {"format": 99}))
    with pytest.raises(fl.ModelError, match="format 99"):
        swept(model, tmp_path / "run")
    note.write_text("{")
    with pytest.raises(fl.ModelError, match=r"run\.json"):
        swept(model, tmp_path / "run")
    note.write_text("[]")
    with pytest.raises(fl.ModelError, match=r"run\.json"):
        swept(model, tmp_path / "run")


def test_results_that_differ_from_the_directory_are_refused(model, tmp_path):
    swept(model, tmp_path / "run")
    first = sorted((tmp_path / "run/chunks").iterdir())[0]
    with np.load(first) as file:
        columns = dict(file)
    columns["result:angle"][0] = np.nextafter(columns["result:angle"][0], 9.0)
    np.savez(first, **columns)
    with pytest.raises(fl.ModelError, match="sample 0: angle"):
        swept(model, tmp_path / "run")


def test_directories_without_a_run_are_refused(model, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("done")
    with pytest.raises(fl.ModelError, match="mine: "):
        swept(model, tmp_path / "mine")
    with pytest.raises(fl.ModelError):
        swept(model, tmp_path / "mine/thesis.txt")
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["thesis.txt"]


def test_two_processes_do_not_work_on_one_run(model, tmp_path):
    swept(model, tmp_path / "run", progress=False)
    note = json.loads((tmp_path / "run/run.json").read_text())
    held = RunDirectory(tmp_path / "run", note["parts"], {}, lambda path: None)
    with held.held(), pytest.raises(fl.ModelError, match="another process"):
        swept(model, tmp_path / "run")
    swept(model, tmp_path / "run")


def test_a_failed_trial_creates_no_directory(model, tmp_path):
    with pytest.raises(fl.ModelError, match="ZeroDivisionError"):
        fd.sweep(model, {"qvel[0]": [1.0]}, 1, reduce=lambda r: {"x": 1 / 0}, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_chunks_before_an_error_are_kept(model, tmp_path):
    with pytest.raises(fl.ModelError, match="sample 2: ZeroDivisionError"):
        fd.sweep(model, {"qpos[0]": [1.0, 2.0, 0.0]}, 1, reduce=_divided, out=tmp_path / "run", chunk=1, progress=False)
    assert fd.load_sweep(tmp_path / "run").samples.tolist() == [0, 1]


def test_a_full_disk_is_one_message_and_keeps_finished_chunks(model, whole, tmp_path, monkeypatch):
    savez, written = np.savez, []

    def fill(path, **columns):
        written.append(path)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        savez(path, **columns)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", fill)
        with pytest.raises(fl.ModelError, match=r"-000000012\.npz"):
            swept(model, tmp_path / "run")
    assert len(fd.load_sweep(tmp_path / "run")) == 8
    same(whole, swept(model, tmp_path / "run"))


def _divided(recorded):
    return {"x": 1 / int(recorded["qpos"][0, 0] > 0.5)}


# ---- tables ----------------------------------------------------------------------------------------------------------
def test_a_table_is_saved_and_loaded(whole, tmp_path):
    whole.save(tmp_path / "table.npz")
    found = fd.load_sweep(tmp_path / "table.npz")
    same(whole, found)
    assert found.nsample == 16 and found.samples.tolist() == list(range(16))


def test_parquet_has_a_column_for_each_number(whole, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    whole.save(tmp_path / "table.parquet")
    table = parquet.read_table(tmp_path / "table.parquet")
    assert table.column_names[:4] == ["sample", "parameter:qvel.0", "parameter:qvel.1", "parameter:body_mass[1]"]
    np.testing.assert_array_equal(table["result:angle"].to_numpy(), whole.results["angle"])
    np.testing.assert_array_equal(table["parameter:qvel.1"].to_numpy(), whole.parameters["qvel"][:, 1])
    named = fd.Sweep(np.arange(2), {"parameter:opt.solver": np.array(["newton", "cg"])}, 2)
    named.save(tmp_path / "named.parquet")
    assert parquet.read_table(tmp_path / "named.parquet")["parameter:opt.solver"].to_pylist() == ["newton", "cg"]


def test_parquet_without_its_library_is_one_clear_error(whole, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(fl.InstallationError):
        whole.save(tmp_path / "table.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name, message",
    [("table.csv", r"got \.csv, allowed are \.npz and \.parquet"), ("no/table.npz", "does not exist")],
)
def test_tables_in_wrong_places_are_refused(whole, tmp_path, name, message):
    with pytest.raises(fl.ModelError, match=message):
        whole.save(tmp_path / name)


def test_a_file_that_is_not_a_table_is_refused(tmp_path):
    (tmp_path / "a.npz").write_text("no")
    np.savez(tmp_path / "b.npz", x=np.zeros(3))
    (tmp_path / "folder").mkdir()
    (tmp_path / "noted").mkdir()
    (tmp_path / "noted/run.json").write_text("{}")
    for name, message in [("a.npz", "cannot be read"), ("b.npz", "cannot be read"), ("c.npz", "not found"),
                          ("folder", "not a run directory"), ("noted", "number of samples")]:  # fmt: skip
        with pytest.raises(fl.ModelError, match=message):
            fd.load_sweep(tmp_path / name)


# ---- a real interrupt ------------------------------------------------------------------------------------------------
PROGRAM = """
import os, signal, sys
import featherlane as fl
from featherlane import distributed as fd
signal.signal(signal.SIGINT, signal.default_int_handler)
def tell(done, total):
    print(done, flush=True)
fd.sweep(fl.bundled("humanoid"), {"qvel": fd.normal(0, .1, each=True)}, 2000,
         reduce={"z": "final qpos[2]"}, nsample=10**5, chunk=16, out=sys.argv[1], progress=tell)
"""


def test_ctrl_c_ends_cleanly_and_keeps_finished_chunks(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 16:
            os.kill(process.pid, signal.SIGINT)
            break
    shown = process.communicate(timeout=60)[1]
    assert "SweepInterrupted: interrupted after" in shown
    done = fd.load_sweep(tmp_path / "run")
    assert len(done) >= 16 and len(done) % 16 == 0 and np.isfinite(done.results["z"]).all()
    assert not [path for path in (tmp_path / "run").rglob(".*")]


def test_progress_is_shown_on_terminals_only(model, capfd, monkeypatch):
    swept(model, None, progress=True)
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    swept(model, None, progress=True)
    shown = capfd.readouterr().err
    assert "samples" in shown and "16/16" in shown
