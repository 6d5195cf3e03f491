"""The benchmark of a recorded arm, on synthetic recordings: reading, filters, identification, consistency, example."""

import importlib
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl

ROOT = Path(__file__).parents[1]
LINKS = [  # mass, half length, axis
    (7.0, 0.10, "0 0 1"),
    (9.0, 0.25, "0 1 0"),
    (4.0, 0.20, "0 1 0"),
    (2.0, 0.08, "0 1 0"),
    (1.8, 0.08, "0 0 1"),
    (0.5, 0.05, "0 1 0"),
]
ROUNDING = 1e-9


@pytest.fixture(scope="module")
def benchmark():
    """Returns a function that imports a module of the benchmark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module


def urdf():
    """Returns the URDF of an arm with six links."""
    text = '<link name="link0"/>'
    for k, (mass, half, axis) in enumerate(LINKS, 1):
        wide, narrow = mass * half**2 / 2.5, mass * half**2 / 8
        height = 2 * LINKS[k - 2][1] if k > 1 else 0.1
        text += f"""<joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/><child link="link{k}"/>
          <origin xyz="0.02 0.03 {height}" rpy="0 {0.3 * k} 0"/><axis xyz="{axis}"/>
          <limit lower="-6.3" upper="6.3" effort="300" velocity="3"/></joint>
          <link name="link{k}"><inertial><mass value="{mass}"/><origin xyz="0.01 0.02 {half}"/>
          <inertia ixx="{wide}" iyy="{wide}" izz="{narrow}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    return f'<robot name="arm">{text}</robot>'


def truth(arm, model):
    """Returns consistent parameters that differ from those of the URDF."""
    body = fl.query.inertial_parameters(model, fl.Data(model))[1:]
    unknowns = arm.logarithms(arm.Parameters(body, *np.full((3, 6), 1.0), np.zeros(6)))
    moved = unknowns + np.random.default_rng(0).normal(0.0, 0.2, len(unknowns))
    friction = [1.0, 1.2, 0.8, 0.3, 0.3, 0.2], [9.0, 8.0, 5.0, 2.0, 2.0, 1.5], [12.0, 10.0, 6.0, 2.0, 1.5, 1.0]
    own = [np.array(values) for values in friction]
    return arm.Parameters(arm.parameters(arm.from_logarithms(moved)[0]).body, *own, 0.1 * own[0])


def motion(seed, seconds=12.0):
    """Returns times, positions, velocities and accelerations of a sum of sines."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, seconds, 0.01)
    w = 2.0 * np.pi * np.array([0.1, 0.23, 0.37, 0.61])
    size, phase = rng.normal(0.0, 0.5, (4, 6)) / (1.0 + w[:, None]), rng.uniform(0.0, 6.3, (4, 6))
    x = np.multiply.outer(t, w)[..., None] + phase
    return t, *(
        (size * w[:, None] ** k * f(x)).sum(1) for k, f in ((0, np.sin), (1, np.cos), (2, lambda y: -np.sin(y)))
    )


def torques(arm, model, p, q, v, a):
    """Returns torques by MuJoCo's inverse dynamics, with friction."""
    m, spare = model.to_mujoco(), fl.load(model.to_mujoco())
    arm.set_parameters(spare, p._replace(coulomb=np.zeros(6)))
    for name in ("body_mass", "body_ipos", "body_iquat", "body_inertia", "dof_armature"):
        getattr(m, name)[:] = getattr(spare, name)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    d, found = mujoco.MjData(m), []
    for d.qpos[:], d.qvel[:], d.qacc[:] in zip(q, v, a, strict=True):
        mujoco.mj_inverse(m, d)
        found.append(d.qfrc_inverse.copy())
    return np.array(found) + p.coulomb * np.tanh(v / arm.SLOW) + p.viscous * v + p.offset


@pytest.fixture(scope="module")
def folder(benchmark, tmp_path_factory):
    """Writes a synthetic robot and its recordings as the public repository has them; returns its folder."""
    tmp_path = tmp_path_factory.mktemp("clone")
    arm, script = benchmark("arm_recording"), benchmark("recorded_arm")
    for part in (script.URDF.parent, script.DATA / "identification_data", script.DATA / "validation_data"):
        (tmp_path / part).mkdir(parents=True)
    (tmp_path / script.URDF).write_text(urdf())
    model = script.model_of(tmp_path)
    p = truth(arm, model)
    names = [("identification_data", name) for name in script.FIT + script.HELD]
    for seed, (place, name) in enumerate([*names, ("validation_data", script.POINTS)]):
        t, q, v, a = motion(seed)
        current = torques(arm, model, p, q, v, a) / arm.GAINS
        rows = np.concatenate([t[:, None], q, v, current], axis=1)
        np.savetxt(tmp_path / script.DATA / place / f"ur-{name}.csv", rows, delimiter=",")
    fields = {"drvGains": arm.GAINS, "pi_drvs": p.armature, "pi_rgd": p.body[:, [0, 3, 4, 1, 5, 2, 6, 7, 8, 9]]}
    fields["pi_frcn"] = np.stack([p.viscous, p.coulomb, p.offset], axis=1)
    text = (f"{key} = [{' '.join(map(repr, map(float, np.ravel(value))))}]" for key, value in fields.items())
    (tmp_path / "UR10E_parameters.txt").write_text("\n".join(text))
    return tmp_path


def test_the_filter_has_no_phase_and_differentiates(benchmark):
    arm = benchmark("arm_recording")
    t = np.arange(0.0, 10.0, 0.01)
    slow, fast = np.sin(2 * np.pi * 0.5 * t), np.sin(2 * np.pi * 30.0 * t)
    found = arm.low_pass((slow + fast + t)[:, None], 100.0, 8.0)[:, 0]
    inner = slice(100, -100)  # at the ends, the continuation has steps
    assert found[inner] == pytest.approx((slow + t)[inner], abs=2e-3)
    rate = arm.low_pass((slow + fast + t)[:, None], 100.0, 8.0, derivative=1)[:, 0]
    assert rate[inner] == pytest.approx((np.pi * np.cos(np.pi * t) + 1.0)[inner], abs=1e-2)


def test_a_log_is_read_without_rest_and_without_an_incomplete_line(benchmark, tmp_path):
    arm = benchmark("arm_recording")
    t, q, v, _ = motion(0, 3.0)
    v[:40] = 0.0
    rows = np.concatenate([t[:, None], q, v, v], axis=1)
    path = tmp_path / "a.csv"
    np.savetxt(path, rows, delimiter=",")
    path.write_text(path.read_text() + "3.0,1.0,2.0")
    assert len(arm.read(path).q) == pytest.approx(len(t) - 40, abs=2)
    np.savetxt(path, rows[:30], delimiter=",")
    with pytest.raises(ValueError, match="does not move"):
        arm.read(path)
    np.savetxt(path, rows[:, :10], delimiter=",")
    with pytest.raises(ValueError, match="has 10 columns"):
        arm.read(path)


def test_all_unknowns_give_consistent_parameters_with_their_derivative(benchmark):
    arm, rng = benchmark("arm_recording"), np.random.default_rng(0)
    u = rng.normal(0.0, 1.0, 84)
    x, slope = arm.from_logarithms(u)
    p = arm.parameters(x)
    assert np.linalg.eigvalsh(arm.pseudo_inertia(p.body)).min() > 0.0
    assert arm.logarithms(p) == pytest.approx(u, abs=ROUNDING)
    step = rng.normal(0.0, 1.0, 84)
    chord = (arm.from_logarithms(u + 1e-6 * step)[0] - arm.from_logarithms(u - 1e-6 * step)[0]) / 2e-6
    assert slope @ step == pytest.approx(chord, rel=1e-6, abs=1e-6)


def test_a_model_has_the_parameters_that_are_set(benchmark, folder):
    arm, script = benchmark("arm_recording"), benchmark("recorded_arm")
    model = script.model_of(folder)
    p = truth(arm, model)
    arm.set_parameters(model, p)
    assert fl.query.inertial_parameters(model, fl.Data(model))[1:] == pytest.approx(p.body, abs=ROUNDING)
    recording = arm.prepared(np.concatenate([motion(1)[0][:, None], *motion(1)[1:3], motion(1)[2]], axis=1))
    ours, theirs = script.inverse(model, p, recording), script.in_mujoco(model, p, recording)
    assert ours == pytest.approx(theirs, abs=1e-8)


def test_identification_recovers_known_parameters(benchmark, folder):
    arm, script = benchmark("arm_recording"), benchmark("recorded_arm")
    given, model = script.recordings(folder), script.model_of(folder)
    p = truth(arm, model)
    made = script.identify(model, [given[name] for name in script.FIT])
    held = given[script.HELD[0]]
    Y = arm.regressor(model, held)
    errors = {
        name: script.shares(held.measured - Y @ found.vector(), held.measured) for name, found in made.found.items()
    }
    assert errors["nominal, friction fitted"].max() > 10.0
    # what is left is the filter's: it rounds the steps of Coulomb friction
    assert errors["base parameters"].max() < 3.0 and errors["consistent parameters"].max() < 3.5
    whole = made.found["consistent parameters"]
    assert whole.coulomb == pytest.approx(p.coulomb, rel=0.05)
    assert whole.viscous == pytest.approx(p.viscous, rel=0.1)  # what the filter takes from Coulomb friction
    assert np.linalg.eigvalsh(arm.pseudo_inertia(whole.body)).min() > 0.0
    authors, gains = script.published(folder)
    assert authors.vector() == pytest.approx(p.vector(), abs=ROUNDING) and np.array_equal(gains, arm.GAINS)


def test_predictions_of_identified_parameters_are_better(benchmark, folder):
    arm, script = benchmark("arm_recording"), benchmark("recorded_arm")
    given, model = script.recordings(folder), script.model_of(folder)
    p = truth(arm, model)
    nominal = script.identify(model, [given[script.FIT[0]]]).found["nominal, friction and rotors fitted"]
    found = []
    for values in (nominal, p):
        arm.set_parameters(model, values)
        error, change = script.predicted(model, values, given[script.HELD[0]], observed=False)
        found.append(script.shares(error[1], change[1]).mean())
    assert found[1] < 0.5 * found[0]


def test_the_example_identifies_a_synthetic_arm(folder):
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / "identify_arm.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, nominal, friction, identified, *_ = (line.split(":")[1].split()[:6] for line in done.stdout.splitlines())
    worst = [max(map(float, line)) for line in (nominal, friction, identified)]
    assert worst[2] < 5.0 < worst[1] < worst[0]


def test_the_example_without_a_recording_shows_its_usage():
    command = [sys.executable, str(ROOT / "examples" / "identify_arm.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Argument: a clone" in done.stderr
