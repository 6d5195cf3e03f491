"""The benchmark of real tosses, on synthetic ones: reading, errors, evolution, identification, gradients, example."""

import importlib
import io
import pickle
import subprocess
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl

ROOT = Path(__file__).parents[1]
TRUE = {"friction": 0.25, "inertia [kg m2]": 0.0011}
SAMPLES = 45


@pytest.fixture
def benchmark(monkeypatch):
    """Returns a function that imports a module of the benchmark."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


def synthetic(tosses, n=6, **options):
    """Returns states (n, SAMPLES, 13) of simulated tosses with the parameters TRUE."""
    rng = np.random.default_rng(1)
    model = tosses.prepared({"contact_model": "convex"} | options)
    batch = fl.Batch(model, n)
    tosses.apply(batch, {name: np.full(n, value) for name, value in TRUE.items()})
    q = rng.standard_normal((n, 4))
    batch.qpos[:, :3], batch.qpos[:, 3:] = [0.0, 0.0, 0.12], q / np.linalg.norm(q, axis=1, keepdims=True)
    batch.qvel[:] = np.concatenate([rng.normal([0.8, 0.0, -0.5], 0.2, (n, 3)), rng.normal(0.0, 4.0, (n, 3))], axis=1)
    out = batch.rollout(SAMPLES, record=("qpos", "qvel"))
    return np.concatenate([out["qpos"], out["qvel"]], axis=2)


def write(path, states):
    """Writes tosses as one file."""
    columns = np.split(np.concatenate(states), [3, 7, 10], axis=1)
    names = "position", "quaternion", "velocity", "angular_velocity"
    start = np.cumsum([0, *map(len, states)])
    np.savez(path, start=start, **dict(zip(names, columns, strict=True)))


def test_a_file_of_tosses_is_read_from_the_second_sample(benchmark, tmp_path):
    recording = benchmark("toss_recording")
    states = [np.arange(13.0 * n).reshape(n, 13) for n in (3, 5)]
    write(tmp_path / "tosses.npz", states)
    found = recording.load(str(tmp_path / "tosses.npz"))
    assert list(found.length) == [2, 4] and found.pose.shape == (2, 4, 7)
    assert np.array_equal(found.pose[1], states[1][1:, :7]) and np.isnan(found.pose[0, 2:]).all()
    assert np.array_equal(found.velocity[0], states[0][1, 7:])
    part = found.part([1], 3)
    assert part.pose.shape == (1, 3, 7) and list(part.length) == [3]


def test_a_file_that_is_no_recording_is_refused(benchmark, tmp_path):
    recording = benchmark("toss_recording")
    np.savez(tmp_path / "a.npz", start=[0, 3])
    with pytest.raises(ValueError, match="no array position, quaternion, velocity, angular_velocity"):
        recording.load(str(tmp_path / "a.npz"))
    state = np.ones((4, 13))
    state[2, 0] = np.nan
    write(tmp_path / "b.npz", [np.ones((4, 13)), state])
    with pytest.raises(ValueError, match="toss 1 has 4 samples, or a sample that is not finite"):
        recording.load(str(tmp_path / "b.npz"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"no file data/tosses_processed/N\.pt"):
        recording.load(str(tmp_path / "empty"))


def legacy(monkeypatch, values):
    """Returns a float32 array as a file of PyTorch's format before 1.6, written without PyTorch."""
    package, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2(*_):
        raise AssertionError("only its name is read")

    class FloatStorage:
        pass

    class Tensor:
        def __reduce__(self):
            stride = [s // 4 for s in values.strides]
            return _rebuild_tensor_v2, (Storage(), 0, values.shape, tuple(stride), False, OrderedDict())

    class Storage:
        pass

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return ("storage", FloatStorage, "0", "cpu", values.size, None) if isinstance(obj, Storage) else None

    for owner, thing, name in ((utils, _rebuild_tensor_v2, "torch._utils"), (package, FloatStorage, "torch")):
        setattr(owner, thing.__name__, thing)
        thing.__module__, thing.__qualname__ = name, thing.__name__
        monkeypatch.setitem(sys.modules, name, owner)
    stream = io.BytesIO()
    for part in (1, 2, {"little_endian": True}, Tensor(), ["0"]):
        Pickler(stream, 2).dump(part)
    return stream.getvalue() + np.int64(values.size).tobytes() + values.tobytes()


def test_public_files_are_read_without_pytorch(benchmark, tmp_path, monkeypatch):
    recording = benchmark("toss_recording")
    tensor = np.arange(1.0, 1 + 5 * 19, dtype=np.float32).reshape(1, 5, 19)
    data = legacy(monkeypatch, tensor)
    assert np.array_equal(recording.read_tensor(data), tensor)
    (tmp_path / "0.pt").write_bytes(data)
    state = recording.states(str(tmp_path))[0]
    assert state.shape == (5, 13) and state[0, 0] == pytest.approx(recording.HALF) and state[0, 3] == 4.0
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("contact-nets-main/data/tosses_processed/0.pt", data)
    assert np.array_equal(recording.states(str(tmp_path / "a.zip"))[0], state)


def test_a_file_that_would_run_code_is_refused(benchmark):
    recording = benchmark("toss_recording")
    stream = io.BytesIO()
    for part in (1, 2, 3, print):
        pickle.dump(part, stream, 2)
    with pytest.raises(ValueError, match="holds a tensor"):
        recording.read_tensor(stream.getvalue())


def test_errors_are_shares_of_the_width_and_degrees(benchmark):
    recording = benchmark("toss_recording")
    pose = np.zeros((1, 4, 7))
    pose[..., 3] = 1.0
    real = recording.Recording(pose, np.zeros((1, 6)), np.array([3]))
    moved = pose.copy()
    moved[0, :, 0] = [0.0, 0.1048, 0.2096, np.nan]
    moved[0, 2, 3:] = -np.cos(np.radians(30)), 0.0, np.sin(np.radians(30)), 0.0
    found = recording.errors(real, moved[None])
    assert found.position[0, 0] == pytest.approx(1.0) and found.rotation[0, 0] == pytest.approx(20.0)
    assert found.last[0, 0] == pytest.approx(60.0)
    assert found.loss[0] == pytest.approx(1.0 / 0.12 + 20.0 / 16.0)


def test_halves_have_each_toss_once(benchmark):
    fit, held = benchmark("toss_recording").halves(11)
    assert sorted([*fit, *held]) == list(range(11)) and len(fit) == 5


def test_the_evolution_strategy_finds_the_minimum_of_an_ellipsoid(benchmark):
    evolve = benchmark("toss_recording").evolve
    aim, scale = np.arange(4.0), np.array([1.0, 10.0, 100.0, 1000.0])

    def loss(x):
        found = ((x - aim) ** 2 * scale).sum(1)
        return np.where(x[:, 0] > 1.5, np.nan, found)  # a candidate that is not finite is the worst

    assert evolve(loss, 4, population=12, generations=90) == pytest.approx(aim, abs=0.02)


def test_friction_and_inertia_are_identified(benchmark):
    tosses, recording = benchmark("tosses"), benchmark("toss_recording")
    states = synthetic(tosses)
    real = recording.Recording(states[:, :, :7], states[:, 0, 7:], np.full(len(states), SAMPLES))
    variant = tosses.Variant({"contact_model": "convex"}, {name: tosses.SHAPE[name] for name in TRUE})
    model = tosses.prepared(variant.options)
    assert tosses.judge(model, real, TRUE).position.max() < 1e-6
    found, seconds, cpu = tosses.identify(variant, real, generations=12, population=10)
    assert found == pytest.approx(TRUE, rel=0.03) and seconds > 0 and cpu > 0
    assert tosses.judge(model, real, found).loss < 0.2 * tosses.judge(model, real).loss


def test_every_unknown_changes_the_motion(benchmark, subtests):
    tosses, recording = benchmark("tosses"), benchmark("toss_recording")
    states = synthetic(tosses)
    real = recording.Recording(states[:, :, :7], states[:, 0, 7:], np.full(len(states), SAMPLES))
    for variant in tosses.VARIANTS.values():
        model = tosses.prepared(variant.options)
        guess = {name: np.repeat(unknown.value(np.zeros(1)), 2) for name, unknown in variant.unknowns.items()}
        for name, unknown in variant.unknowns.items():
            with subtests.test(variant=variant.options, unknown=name):
                values = guess | {name: unknown.value(np.array([0.0, 0.5]))}
                pose = tosses.simulate(model, real, values)
                assert np.abs(pose[0] - pose[1]).max() > 1e-6


def test_mujoco_moves_as_the_convex_model(benchmark):
    tosses, recording = benchmark("tosses"), benchmark("toss_recording")
    states = synthetic(tosses)
    real = recording.Recording(states[:, :20, :7], states[:, 0, 7:], np.full(len(states), 20))
    values = {name: unknown.first for name, unknown in tosses.VARIANTS["convex"].unknowns.items()}
    ours = tosses.judge(tosses.prepared({"contact_model": "convex"}), real, values)
    assert tosses.in_mujoco(real, values).position == pytest.approx(ours.position, rel=1e-4, abs=1e-9)


def test_the_gradient_of_short_parts_is_that_of_finite_differences(benchmark):
    tosses, recording = benchmark("tosses"), benchmark("toss_recording")
    gradients = benchmark("toss_gradients")
    states = synthetic(tosses)
    real = recording.Recording(states[:, :, :7], states[:, 0, 7:], np.full(len(states), SAMPLES))
    part = gradients.segments(real, 8, 6)
    model = tosses.prepared({"contact_model": "convex"})
    model.opt.tolerance = 0.0
    problem, values = gradients.Problem(model, part), gradients.first(len(part.pose))
    _, slope = problem.gradient(values)
    for k in range(values.shape[1]):
        up, down = values.copy(), values.copy()
        up[:, k] *= np.exp(1e-5)
        down[:, k] *= np.exp(-1e-5)
        chord = (problem.loss(up) - problem.loss(down)) / 2e-5
        close = np.abs(slope[:, k] - chord) < 0.03 * np.abs(chord) + 1e-11  # a part may switch within the difference
        assert close.mean() > 0.85


def test_the_example_identifies_a_synthetic_toss(benchmark, tmp_path):
    tosses = benchmark("tosses")
    write(tmp_path / "tosses.npz", synthetic(tosses))
    command = [sys.executable, str(ROOT / "examples" / "identify_toss.py"), str(tmp_path / "tosses.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after, friction, *_ = done.stdout.splitlines()
    assert float(after.split()[1]) < 0.3 * float(before.split()[1])
    assert float(friction.split()[-1]) == pytest.approx(TRUE["friction"], rel=0.1)


def test_the_example_without_a_recording_shows_its_usage():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "identify_toss.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "Argument: a .npz file" in done.stderr
