"""benchmarks/published.py: starts of worlds, parts of a run, quoted speeds, the grasp's schedule and its limit."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import featherlane as fl
from pages import links

ROOT = Path(__file__).parents[1]
ARM = """
<mujoco>
  <option timestep=".01"/>
  <worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" mass="1"/></body></worldbody>
  <actuator><motor joint="j" ctrlrange="-1 3" ctrllimited="true"/></actuator>
  <keyframe><key qpos=".5" ctrl="2"/></keyframe>
</mujoco>
"""
MESH = """
<mujoco>
  <asset><mesh name="hull" file="absent.stl"/></asset>
  <worldbody>
    <body name="b">
      <freejoint/>{inertial}<geom type="mesh" mesh="hull" {geom}/><geom name="ball" size=".1" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""
DRAWN = 'contype="0" conaffinity="0"'


@pytest.fixture
def benchmark(monkeypatch):
    """Returns a function that imports a module of benchmarks/."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    importlib.import_module("report")
    return importlib.import_module


def arm(published, **start):
    """Returns the driven worlds of a case with the arm, and its MuJoCo model."""
    mj = mujoco.MjModel.from_xml_string(ARM)
    case = published.Case("arm", lambda: mj, published.Start(**start), "A", None)
    return published.Worlds(case, mj, fl.Batch(fl.load(mj), 3, nthread=1), 3), mj


def test_worlds_begin_as_published(benchmark):
    published = benchmark("published")
    worlds, mj = arm(published, speed=0.01)
    assert np.array_equal(worlds.batch.qvel, 0.01 * np.random.RandomState(42).randn(3, mj.nv))
    assert not np.any(worlds.batch.ctrl) and not np.any(worlds.batch.qpos)
    worlds, _ = arm(published, keyframe=True)
    assert np.all(worlds.batch.qpos == 0.5) and np.all(worlds.batch.ctrl == 2.0)


def test_worlds_begin_again(benchmark):
    worlds, _ = arm(benchmark("published"), keyframe=True, again=4)
    for _ in range(2):
        assert worlds.advance(4) >= 0.0
        alone = fl.Batch(worlds.batch.model, 3, nthread=1)
        alone.qpos[:], alone.ctrl[:] = 0.5, 2.0
        alone.step(4)
        assert np.array_equal(worlds.batch.qpos, alone.qpos)


def test_noise_stays_in_the_range_and_returns_to_its_middle(benchmark):
    worlds, mj = arm(benchmark("published"), keyframe=True, noise=50.0, rate=0.1)
    found = []
    for _ in range(50):
        worlds.advance(1)
        found.append(np.array(worlds.batch.ctrl))
    assert np.min(found) == -1.0 and np.max(found) == 3.0  # the range of the actuator
    calm, _ = arm(benchmark("published"), keyframe=True, noise=1e-9, rate=0.1)
    calm.advance(10)
    assert np.allclose(calm.batch.ctrl, 1.0 + np.exp(-10 * mj.opt.timestep / 0.1), atol=1e-6)


@pytest.mark.parametrize("steps, rounds", [(1000, 7), (5, 8), (1, 1)])
def test_the_parts_of_a_run_are_all_its_steps(benchmark, steps, rounds):
    published = benchmark("published")
    found = published.parts(published.Start(steps=steps), rounds)
    assert sum(found) == steps and len(found) == min(steps, rounds) and max(found) - min(found) <= 1
    assert published.parts(published.Start(steps=60, again=20), rounds) == [20, 20, 20]


def test_a_race_measures_all_sides(benchmark):
    published = benchmark("published")
    mj = mujoco.MjModel.from_xml_string(ARM)
    case = published.Case("arm", lambda: mj, published.Start(speed=0.01, warm=2, steps=6), "A", 1000.0)
    dofs, speeds, faster = published.race(case, worlds=8, rounds=2)
    assert dofs == 1 and speeds.keys() == {"MuJoCo", "float64", "float32"} and min(speeds.values()) > 0.0
    assert faster.least <= faster.median <= faster.greatest


def test_published_speeds_have_a_source_with_machine_and_date(benchmark, subtests):
    published = benchmark("published")
    keys = [*(case.source for case in published.CASES), *(key for key, _ in published.ENVPOOL_ROWS)]
    assert set(keys) == published.SOURCES_BY_KEY.keys()
    for key, source in published.SOURCES_BY_KEY.items():
        with subtests.test(source=key):
            assert re.search(r"\(https://\S+\)", source.publication) and re.match(r"20\d\d", source.date)
            assert source.machine and source.precision and source.definition
    for line in published.sources().splitlines()[2:]:
        assert line.count("|") == len(published.SOURCES) + 1


def test_the_cores_that_equal_a_speed_are_derived_from_its_row(benchmark):
    """The published speed divided by the speed of a core, in the precision of the publication."""
    published, report, plots = benchmark("published"), benchmark("report"), benchmark("plots")
    columns, rows = plots.tables(report.section("published"))[0]
    assert tuple(columns) == published.COLUMNS and len(rows) == len(published.CASES) + len(published.ENVPOOL_ROWS)
    for row in rows:
        cells = dict(zip(columns, row, strict=True))
        if cells["published [1000/s]"]:
            precision = published.SOURCES_BY_KEY[cells["by"]].precision
            core = float(cells[f"{precision}, a core [1000/s]"].replace(",", ""))
            quoted = float(cells["published [1000/s]"].replace(",", ""))
            assert float(cells["cores that equal it"]) == pytest.approx(quoted / core, rel=0.05, abs=0.06)


def test_the_page_about_gpus_has_the_present_tables(benchmark, monkeypatch):
    """If it fails, run `python benchmarks/published.py --only gpu --write`."""
    published, report = benchmark("published"), benchmark("report")
    assert published.uses() == links.rows(report.section("gpu"))
    assert len({use.user for use in published.USES}) == 4
    table = "| a | b | c |\n| --- | --- | --- |\n| x | 1 | 2 |\n| x | 2 | 3 |\n"
    monkeypatch.setattr(published, "section", lambda name: table)
    use = published.Use("user", "q", "speed", "x, 2", "c", "us", "nothing")
    assert use.cells() == ["user", "[q](speed.md)", "3 us", "nothing"]
    for wrong in ({"row": "x"}, {"row": "y"}, {"column": "d"}):
        with pytest.raises(LookupError, match="columns a, b, c"):
            published.Use(**{**use.__dict__, **wrong}).cells()


def test_meshes_that_only_draw_are_left_out(benchmark, tmp_path):
    primitive_scene = benchmark("contact_problems.primitive_scene").primitive_scene
    path = tmp_path / "scene.xml"
    path.write_text(MESH.format(inertial="", geom=f'{DRAWN} mass="0"'))
    model = primitive_scene(path).compile()
    assert (model.nmesh, model.ngeom, model.body_mass[1]) == (0, 1, 1.0)
    path.write_text(MESH.format(inertial='<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>', geom=DRAWN))
    assert primitive_scene(path).compile().body_mass[1] == 2.0
    path.write_text(MESH.format(inertial="", geom=DRAWN))
    with pytest.raises(ValueError, match="body 'b' has the inertia of the mesh 'hull'"):
        primitive_scene(path)
    path.write_text(MESH.format(inertial="", geom='mass="0"'))
    with pytest.raises(ValueError, match="the mesh 'hull' of body 'b' collides"):
        primitive_scene(path)


def test_the_limit_of_a_grasp_is_that_of_a_lever(benchmark):
    """Two contacts at e - a and e + a: the nearer one carries m g (1 + e / a) / 2, so the limit is 1 + e / a."""
    limit = benchmark("contact_problems.grasp").limit
    assert limit(np.array([[0.0, 0.0]]), np.array([3.0])) == pytest.approx(1.0)
    for e, a in ((0.004, 0.01), (-0.004, 0.01), (0.001, 0.02)):
        points = np.array([[e - a, 0.0], [e + a, 0.0]])
        assert limit(points, np.array([2.0, 2.0])) == pytest.approx(1.0 + abs(e) / a, rel=1e-3)
    square = np.array([[-0.01, -0.01], [-0.01, 0.01], [0.01, -0.01], [0.01, 0.01]])
    assert limit(square, np.ones(4)) == pytest.approx(1.0)


def test_the_grasp_follows_its_schedule(benchmark):
    grasp = benchmark("contact_problems.grasp")
    poses = {"home": [0.0, 0.04], "grasp": [2.0, 0.04], "lift": [1.0, 0.0]}
    mj = SimpleNamespace(key=lambda name: SimpleNamespace(ctrl=np.array(poses[name])))
    found = [grasp.targets(mj, time).tolist() for time in (0.0, 0.5, 1.5, 2.5, 3.5, 4.0, 9.0)]
    wanted = [[0.0, 0.04], [0.5, 0.04], [1.5, 0.04], [2.0, 0.02], [1.5, 0.0], [1.0, 0.0], [1.0, 0.0]]
    assert np.allclose(found, wanted)


def test_the_forces_of_the_fingers_are_read_from_the_sensors(benchmark):
    grasp = benchmark("contact_problems.grasp")
    slot = np.zeros(grasp.SLOT)
    slot[0], slot[1:4], slot[11:14], slot[14:17] = 1.0, (5.0, 0.3, 0.2), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    sensors = {
        name: SimpleNamespace(adr=[k * 2 * grasp.SLOT], dim=[2 * grasp.SLOT]) for k, name in enumerate(grasp.FINGERS)
    }
    data = np.concatenate([slot, np.zeros(grasp.SLOT), slot, np.zeros(grasp.SLOT)])
    run = SimpleNamespace(mj=SimpleNamespace(sensor=sensors.__getitem__), data=SimpleNamespace(sensordata=data))
    assert grasp.forces(run) == pytest.approx((10.0, 0.6))  # the second tangent is horizontal
    run.data.sensordata = np.zeros_like(data)
    assert grasp.forces(run) == (0.0, 0.0)


def test_published_sinks_are_dropped_above_five_millimetres(benchmark):
    grasp = benchmark("contact_problems.grasp")
    assert grasp.shown(11.3) == "11.3, dropped" and grasp.shown(0.25) == "0.25, held"
    assert all(len(values) == len(grasp.FACTORS) - 1 for values in grasp.PUBLISHED.values())
