"""UniLab's Go2 on UniSim's backend `mujoco` and on Featherlane, side by side; about five minutes.

    pip install 'featherlane[unilab]' && python benchmarks/integrations_unisim.py --write

All backends take the same random actions in turns, from the same states, on all cores.  A round is some environment
steps.  The measurement runs in a separate process with the installed MuJoCo 3.11, which UniSim needs.

`--train FOLDER` trains on each backend, one after the other, with UniLab's command and a small network (20 minutes).
A training whose log is in the folder is not repeated.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
WORLDS = 1024
ROUNDS, STEPS = 9, 8
SUBSTEPS = 2  # physics steps of an environment step
NAMES = {
    "Go2JoystickFlat": "UniSim's `mujoco`",
    "FeatherlaneGo2JoystickFlat": "Featherlane, float64",
    "Featherlane32Go2JoystickFlat": "Featherlane, float32",
}
TRAINING = "algo.max_iterations=150 algo.num_envs=128 algo.actor.hidden_dims=[128,64] algo.critic.hidden_dims=[128,64]"
LAST = 10  # iterations of which the mean return is shown
TRAINED = ("backend", "return", "simulation [s]", "learning [s]")
COLUMNS = ("backend", "environment steps/s", "ratio (min - max)", "physics steps/s", "ratio")


def environment(name: str, scene: Path):
    """UniLab's environment, and a list of the seconds that each call of its executor takes."""
    from importlib.resources import files

    from hydra import compose, initialize_config_dir
    from unilab.base import registry
    from unilab.base.config_adapter import EnvConfigAdapter

    given = ["task=go2_joystick_flat/mujoco", f"env.scene.model_file={scene}", f"training.task_name={name}"]
    with initialize_config_dir(str(files("unilab") / "conf" / "ppo"), version_base=None):
        cfg = compose("config", overrides=[*given, "+env.seed=7"])
    overrides = EnvConfigAdapter(cfg, root_dir=".").build_task_env_cfg_override()
    env = registry.make(name, sim_backend="mujoco", env_cfg_override=overrides, num_envs=WORLDS)
    env.init_state()
    pool, spent = env.backend._pool, []
    step = pool.step

    def timed(*given, **named):
        start = time.perf_counter()
        step(*given, **named)
        spent.append(time.perf_counter() - start)

    pool.step = timed
    return env, spent


def measured() -> dict[str, list[list[float]]]:
    """Seconds of each round: of environment steps, and of physics."""
    sys.path.insert(0, str(ROOT / "tests"))
    import torch

    import featherlane.integrations.unilab  # noqa: F401
    from scenes.unisim_scenes import copied

    torch.set_num_threads(1)  # threads that wait for each other would measure the load of the machine
    generator = torch.Generator().manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        scene = copied("go2", Path(folder) / "go2")
        envs = {name: environment(name, scene) for name in NAMES}
    found = {name: [] for name in NAMES}
    for k in range(ROUNDS + 1):
        actions = [0.3 * torch.randn(WORLDS, 12, generator=generator) for _ in range(STEPS)]
        for name, (env, spent) in envs.items():
            spent.clear()
            start = time.perf_counter()
            for action in actions:
                env.step(action)
            if k:  # the first round loads kernels
                found[name].append([time.perf_counter() - start, sum(spent)])
    return found


def errors() -> dict[str, float]:
    """Largest differences of 64 states after one environment step, from MuJoCo's at tolerance 0."""
    sys.path.insert(0, str(ROOT / "tests"))
    import mujoco

    import featherlane as fl
    from scenes.unisim_scenes import copied

    n = 64
    with tempfile.TemporaryDirectory() as folder:
        model = mujoco.MjModel.from_xml_path(str(copied("go2", Path(folder) / "go2")))
    model.opt.timestep = 0.01
    rng, data = np.random.default_rng(0), mujoco.MjData(model)
    qpos, qvel = np.tile(model.key_qpos[0], (n, 1)), rng.normal(0, 0.1, (n, model.nv))
    qpos[:, 7:] += rng.normal(0, 0.05, (n, model.nq - 7))

    def theirs(tolerance: float) -> np.ndarray:
        model.opt.tolerance, found = tolerance, []
        for q, v in zip(qpos, qvel, strict=True):
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, model.key_ctrl[0]
            mujoco.mj_step(model, data, SUBSTEPS)
            found.append(np.r_[data.qpos, data.qvel])
        return np.array(found)

    exact, default = theirs(0.0), theirs(1e-8)
    batch = fl.Batch(fl.load(model), n)
    batch.qpos[:], batch.qvel[:], batch.ctrl[:] = qpos, qvel, model.key_ctrl[0]
    batch.step(SUBSTEPS)
    own = np.hstack([batch.qpos, batch.qvel])
    return {"MuJoCo": float(abs(default - exact).max()), "Featherlane": float(abs(own - exact).max())}


def child(what: str) -> dict:
    """What a process with the installed MuJoCo measures."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, __file__, what], env=variables, stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def measured_with(line: str) -> str:
    """The line of the origin with the MuJoCo of the measurement instead of the oracle's."""
    from importlib.metadata import version

    return re.sub(r"MuJoCo [\d.]+,", f"MuJoCo {version('mujoco')},", line)


def train(name: str, folder: Path) -> str:
    """What UniLab's training of a task prints."""
    log = folder / f"{name}.log"
    if not log.exists():
        sys.path.insert(0, str(ROOT / "tests"))
        from scenes.unisim_scenes import copied

        robot = folder / "go2"
        scene = robot / "scene_flat.xml" if robot.exists() else copied("go2", robot)
        command = [str(Path(sys.executable).with_name("train")), "--algo", "ppo", "--task", "go2_joystick_flat"]
        command += ["--sim", "mujoco", f"training.task_name={name}", f"env.scene.model_file={scene}", *TRAINING.split()]
        command += ["algo.seed=1", "training.no_play=true", "training.device=cpu"]
        tasks = {"UNILAB_EXTRA_REGISTRY_PACKAGES": "featherlane.integrations.unilab"}
        variables = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **tasks}
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, check=True, text=True)
        log.write_text(done.stdout)
    return log.read_text()


def trainings(folder: Path) -> list[tuple[str, ...]]:
    """Rows of the trainings: mean return of the last iterations, seconds of simulation and of learning."""
    folder.mkdir(exist_ok=True)
    rows = []
    for name, label in NAMES.items():
        text = train(name, folder)
        values = [
            [float(x) for x in re.findall(rf"{what}: +([-\d.]+)", text)]
            for what in ("Mean reward", "Collection time", "Learning time")
        ]
        mean = np.mean(values[0][-LAST:])
        rows.append((label, f"{mean:.1f}", f"{sum(values[1]):.0f}", f"{sum(values[2]):.0f}"))
    return rows


def main() -> None:
    from report import arguments, markdown, origin, publish

    parser = arguments(__doc__)
    parser.add_argument("--accuracy", action="store_true", help="print errors of one step at the default tolerance")
    parser.add_argument("--train", type=Path, metavar="FOLDER", help="train on each backend")
    chosen = parser.parse_args()
    if chosen.accuracy:
        print(child("accuracy"))
        return
    if chosen.train:
        where = measured_with(origin()).replace(str(chosen.train), "FOLDER")
        text = f"{markdown(TRAINED, trainings(chosen.train))}\n\n{where}"
        publish("unisim-training", text, chosen.write)
        return
    rounds = {name: np.array(values) for name, values in child("speed").items()}
    steps = np.array([WORLDS * STEPS, WORLDS * STEPS * SUBSTEPS])
    reference, rows = rounds["Go2JoystickFlat"], []
    for name, label in NAMES.items():
        rates, ratios = steps / np.median(rounds[name], 0), reference / rounds[name]
        middle, least, greatest = np.median(ratios, 0), ratios.min(0), ratios.max(0)
        spread = f"{middle[0]:.2f} ({least[0]:.2f} - {greatest[0]:.2f})"
        rows.append((label, f"{rates[0]:,.0f}", spread, f"{rates[1]:,.0f}", f"{middle[1]:.2f}"))
    note = f"{WORLDS} environments, one thread for PyTorch."
    publish("unisim", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{measured_with(origin())}", chosen.write)


if __name__ == "__main__":
    if sys.argv[1:] in (["speed"], ["accuracy"]):
        print(json.dumps({"speed": measured, "accuracy": errors}[sys.argv[1]]()))
    else:
        main()
