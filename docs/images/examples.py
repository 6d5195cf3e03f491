"""Draws thumbnails of examples: example_NAME.png; two minutes.

A thumbnail shows the state at the end of the example, or a plot.  Other examples have a larger picture of
`docs/images/control.py` or `docs/images/chapters.py` (docs/site/examples.py).

Needs `pip install '.[view,gym,plot,distributed]'`; headless machines draw through EGL: `MUJOCO_GL=egl python
docs/images/examples.py`.  Names of examples as arguments draw these alone.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import featherlane as fl
from featherlane.tools.renderer import PICTURES, Painter, prepare_rendering

FOLDER, EXAMPLES = Path(__file__).parent, Path(__file__).parents[2] / "examples"
SIZE, COLOURS = (320, 240), 64  # pixels; colours keep a file below 20 kB
LIGHT = """
  <visual><headlight ambient=".45 .45 .45" diffuse=".55 .55 .55" specular="0 0 0"/></visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".93 .95 .97" rgb2=".72 .78 .84" width="64" height="384"/>
  </asset>
</mujoco>"""
GREY = (0.5, 0.5, 0.5, 1.0)  # MuJoCo's default colour of a geom
PALETTE = ((0.86, 0.85, 0.82), (0.13, 0.52, 0.53), (0.93, 0.58, 0.18), (0.25, 0.28, 0.36), (0.70, 0.35, 0.32))
# attributes of the free camera, by example; the centre of mass is in the middle of the picture
CAMERAS = {
    "balance_acrobot": {"distance": 1.9, "azimuth": 90, "elevation": -5, "lookat": [0, 0, 1.5]},
    "balance_pole": {"distance": 3.2, "azimuth": 100, "elevation": -8},
    "batch_rollout": {"distance": 2.6, "azimuth": 130, "elevation": -15},
    "end_effector": {"distance": 2.4, "azimuth": 120, "elevation": -15},
    "first_steps": {"distance": 1.3, "azimuth": 130, "elevation": -18},
    "inverse_kinematics": {"distance": 1.9, "azimuth": 130, "elevation": -15},
    "jacobian": {"distance": 1.6, "azimuth": 130, "elevation": -15},
    "linked_bodies": {"distance": 2.6, "azimuth": 90, "elevation": -12},
    "mppi": {"distance": 3.2, "azimuth": 100, "elevation": -8},
    "muscle_arm": {"distance": 1.1, "azimuth": 90, "elevation": -8, "lookat": [0.1, 0, 0.85]},
    "nut_and_bolt": {"distance": 2.7, "azimuth": 125, "elevation": 8, "lookat": [0, 0, 0.62]},
    "piston_engine": {"distance": 0.6, "azimuth": 80, "elevation": -8, "lookat": [-0.06, 0, 0]},
    "randomize_masses": {"distance": 1.3, "azimuth": 130, "elevation": -18},
    "register_points": {"distance": 1.8, "azimuth": 120, "elevation": -20},
    "slide_shapes": {"distance": 2.2, "azimuth": 60, "elevation": -25},
    "suction_gripper": {"distance": 1.9, "azimuth": 70, "elevation": -20},
    "tendon_finger": {"distance": 0.26, "azimuth": 75, "elevation": -15},
    "user_actuator": {"distance": 0.7, "azimuth": 100, "elevation": -12},
}
UNTIL = {"suction_gripper": 2.4, "nut_and_bolt": 2.5}  # time of the picture, instead of the end [s]
# these show this number of worlds in both directions
GRIDS = {"batch_rollout": 2, "inverse_kinematics": 2, "randomize_masses": 2, "slide_shapes": 2}


class Stop(Exception):
    """Ends an example early."""


def run(name: str, until: float = np.inf) -> tuple[list[fl.Model], np.ndarray]:
    """Runs an example, with light for scenes that have none.

    Args:
        name: file name without suffix.
        until: time of the simulation at which the example ends [s].

    Returns:
        The models, one or one of each world, and the positions (n, nq) of the `Data` or `Batch` made last.
    """
    made, real = [], {key: getattr(fl, key) for key in ("Data", "Batch", "load", "step")}

    def recording(key):
        def make(model, *given, **options):
            made.append((model, real[key](model, *given, **options)))
            return made[-1][1]

        return make

    def load(source, *given, **options):
        lit = isinstance(source, str) and "<mujoco" in source and "<light" not in source
        return real["load"](source.replace("</mujoco>", LIGHT) if lit else source, *given, **options)

    def step(model, data, *given):
        if data.time > until:
            raise Stop
        real["step"](model, data, *given)

    fl.Data, fl.Batch, fl.load, fl.step = recording("Data"), recording("Batch"), load, step
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Stop):
            last = importlib.import_module(name).main()
            if not made:  # an example in MuJoCo's terms returns its MjData
                made.append((real["load"](last.model), last))
    finally:
        for key, function in real.items():
            setattr(fl, key, function)
    model, state = made[-1]
    models = [state.get_model(w) for w in range(state.nworld)] if model.nvariant else [model]
    return models, np.atleast_2d(state.qpos).copy()


def colored(model):
    """Returns the model to draw with other colours in place of grey, and with long shadows."""
    mj = model.to_mujoco()
    mj.vis.map.shadowclip, mj.vis.quality.shadowsize = 8.0, 8192
    mj.mat_reflectance[:] = 0.0
    for k in np.flatnonzero((mj.geom_rgba == GREY).all(axis=1) & (mj.geom_matid < 0)):
        mj.geom_rgba[k, :3] = PALETTE[mj.geom_bodyid[k] % len(PALETTE)]
    return SimpleNamespace(to_mujoco=lambda: mj)


def save(picture: np.ndarray, name: str) -> None:
    """Saves a picture (height, width, 3) with few colours."""
    image = Image.fromarray(picture).quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    image.save(FOLDER / f"example_{name}.png", optimize=True)


def scene(name: str) -> None:
    """Draws the last state of an example."""
    models, qpos = run(name, until=UNTIL.get(name, np.inf))
    side = GRIDS.get(name, 1)
    size = SIZE[0] // side, SIZE[1] // side
    pictures = []
    for world in range(side * side):
        model = models[world % len(models)]
        data = fl.Data(model)
        data.qpos = qpos[world]
        data.forward()
        look = {"lookat": data.subtree_com[0].copy()} | CAMERAS[name]
        with Painter(colored(model), look, size) as painter:
            pictures.append(painter.picture(qpos[world]).copy())
    save(np.vstack([np.hstack(pictures[k * side : (k + 1) * side]) for k in range(side)]), name)


def plot(name: str, draw) -> None:
    """Saves a plot as a thumbnail."""
    figure, axes = plt.subplots(figsize=(SIZE[0] / 100, SIZE[1] / 100), layout="constrained")
    with plt.rc_context({"font.size": 8}):
        draw(axes)
    figure.savefig(FOLDER / f"example_{name}.png", dpi=100, pil_kwargs={"optimize": True})
    plt.close(figure)


def bad_world(axes) -> None:
    """Speeds of the worlds by mass; the lightest diverges."""
    example = importlib.import_module("bad_world")
    rng, mass = np.random.default_rng(0), np.concatenate([[0.2], np.linspace(0.7, 2.0, 8)])
    batch = fl.Batch(fl.load(example.SCENE), len(mass), nthread=1)
    batch.expand("body_mass")[:, 1] = mass
    batch.set_const()
    batch.ctrl = rng.uniform(-1, 1, (len(mass), 1))
    speed = np.abs(batch.rollout(20, record="qvel")["qvel"][..., 0])
    axes.semilogy(speed[1:].T, color="0.6", linewidth=1)
    axes.semilogy(speed[0], color="#d55e00", linewidth=2)
    axes.annotate("mass 0.2 kg", (0.08, 0.85), xycoords="axes fraction", color="#d55e00")
    axes.set(xlabel="step", ylabel="speed [m/s]", ylim=(1e-3, None))


def jamming_rod(axes) -> None:
    """Normal force by friction coefficient, until the rod jams."""
    example = importlib.import_module("jamming_rod")
    mu = np.linspace(0.0, 1.6, 60)
    for friction, color in (("frozen", "#0072b2"), ("consistent", "#d55e00")):
        options = {"friction": "consistent"} if friction == "consistent" else {}
        force = [fl.lcp.solve(example.contact(np.radians(45), value), **options).x[0] for value in mu]
        axes.semilogy(mu, force, color=color, label=f"limits {friction}")
    axes.set(xlabel="friction coefficient", ylabel="force [N]", ylim=(3, 150))
    axes.legend(fontsize=7)


def sweep_friction() -> None:
    """The plot of the example, smaller."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        importlib.import_module("sweep_friction").main(file=f"{folder}/plot.png")
        image = Image.open(f"{folder}/plot.png").convert("RGB")
    image.thumbnail(SIZE, Image.Resampling.LANCZOS)
    save(np.asarray(image), "sweep_friction")


def rllib_halfcheetah() -> None:
    """The task in which the example trains."""
    from featherlane.environments import make_vec

    env = make_vec("HalfCheetah-v5", 1, width=SIZE[0], height=SIZE[1], render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(20):
        env.step(np.full(env.action_space.shape, 0.3))
    save(env.render()[0], "rllib_halfcheetah")
    env.close()


def vision_reach() -> None:
    """What the camera sees of ten worlds, in colours and as depths."""
    example = importlib.import_module("vision_reach")
    worlds, side = example.Reaching(10, 0), example.EYE.width
    depth = np.repeat((255 * worlds.images().numpy()).astype(np.uint8)[..., None], 3, axis=-1)
    rgb = worlds.batch.render("eye", width=side, height=side, output="rgb").rgb
    save(np.vstack([np.hstack(part) for part in (rgb[:5], depth[:5], rgb[5:], depth[5:])]), "vision_reach")


def sim_to_real() -> None:
    """The robot trots on rough ground, with an action of zero."""
    from featherlane.environments import TaskEnv

    example = importlib.import_module("sim_to_real")
    env = TaskEnv(example.Walk(frame_skip=4, terrain="steps", forward=(0.8, 0.8), standing=0), 1)
    env.reset(seed=1)
    for _ in range(100):
        env.step(np.zeros(env.action_space.shape))
    look = {"lookat": env.batch.qpos[0, :3].copy(), "distance": 1.7, "azimuth": 130, "elevation": -18}
    with Painter(env.batch.model, look, SIZE) as painter:
        save(painter.picture(env.batch.qpos[0]), "sim_to_real")


def draw(name: str) -> None:
    """Draws one thumbnail."""
    if name in CAMERAS:
        scene(name)
    elif name in PLOTS:
        plot(name, PLOTS[name])
    else:
        OTHERS[name]()


PLOTS = {f.__name__: f for f in (bad_world, jamming_rod)}
OTHERS = {f.__name__: f for f in (sweep_friction, rllib_halfcheetah, vision_reach, sim_to_real)}

if __name__ == "__main__":
    prepare_rendering(PICTURES)
    warnings.simplefilter("ignore", fl.NonFiniteWarning)
    sys.path.insert(0, str(EXAMPLES))
    for name in sys.argv[1:] or (*CAMERAS, *PLOTS, *OTHERS):
        draw(name)
