"""Draws the pictures of examples that control: control_NAME.png, by the examples themselves; a minute.

Needs `pip install '.[view,plot]'`; headless machines draw through EGL: `MUJOCO_GL=egl python docs/images/control.py`.
Names of pictures as arguments draw these alone.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import mujoco
import numpy as np
from matplotlib.collections import LineCollection
from PIL import Image

import featherlane as fl
from featherlane.tools.renderer import PICTURES, Painter, prepare_rendering

FOLDER, EXAMPLES = Path(__file__).parent, Path(__file__).parents[2] / "examples"
COLOURS, DOTS = 128, 100  # colours keep a file below 150 kB; dots per inch


def example(name: str):
    """What an example returns."""
    return importlib.import_module(name).main()


def dull(model):
    """The model with shadows as far as one sees, and a floor that does not shine."""
    mj = model.to_mujoco()
    mj.vis.map.shadowclip, mj.vis.quality.shadowsize = 8.0, 8192
    mj.mat_reflectance[:] = 0.0
    return fl.load(mj)


def balance_humanoid() -> None:
    """Above with the regulator, below without."""
    model, qpos, _ = example("balance_humanoid")
    second, rows = round(1 / model.opt.timestep), []
    look = {"distance": 2.9, "azimuth": 115, "elevation": -8, "lookat": [0, 0, 0.85]}
    with Painter(dull(model), look, (224, 288)) as painter:
        for world, times in ((0, (0.0, 2.15, 4.15, 6.15, 9.15)), (1, (0.0, 0.4, 0.6, 0.8, 1.2))):
            rows.append(np.hstack([painter.picture(qpos[world, round(t * second)]).copy() for t in times]))
    picture = Image.fromarray(np.vstack(rows)).quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    picture.save(FOLDER / "control_balance_humanoid.png", optimize=True)


def sticks(axes, model, positions, times, shades) -> None:
    """Capsules seen from the side (x, z), one colour for each of the positions (n, nq)."""
    batch = fl.Batch(model, len(positions))
    batch.qpos[:] = positions
    centre, frame = batch.bind("geom_xpos"), batch.bind("geom_xmat")
    batch.forward()
    capsules = np.flatnonzero(model.geom_type == int(mujoco.mjtGeom.mjGEOM_CAPSULE))
    half = frame.reshape(len(positions), model.ngeom, 3, 3)[..., 2][:, capsules] * model.geom_size[capsules, 1, None]
    ends = np.stack([centre[:, capsules] - half, centre[:, capsules] + half], axis=2)[..., [0, 2]]
    for lines, shade in zip(ends, shades(times), strict=True):
        axes.add_collection(LineCollection(list(lines), colors=[shade], linewidths=2.0, capstyle="round"))
    axes.set(aspect="equal", xlabel="x [m]", ylabel="z [m]")


def swing_up() -> None:
    """Three seconds, one after the other."""
    model, x, _ = example("swing_up")
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), sharey=True, layout="constrained")
    for k, panel in enumerate(axes):
        part = x[100 * k : 100 * k + 101 : 4, :2]
        sticks(panel, model, part, np.linspace(0.1, 0.95, len(part)), plt.cm.viridis_r)
        panel.set(title=f"{k} to {k + 1} s", xlim=(-0.9, 0.9), ylim=(0.1, 2.3), ylabel="z [m]" if k == 0 else "")
    figure.savefig(FOLDER / "control_swing_up.png", dpi=DOTS)


def hop() -> None:
    """The hopper on its way, and where its foot is."""
    model, x, _ = example("hop")
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    part = x[::8, : model.nq]
    sticks(axes, model, part, np.linspace(0.1, 0.95, len(part)), plt.cm.viridis_r)
    batch = fl.Batch(model, len(x))
    batch.qpos[:] = x[:, : model.nq]
    centre = batch.bind("geom_xpos")
    batch.forward()
    foot = centre[:, model.geom("foot").id]
    axes.plot(foot[:, 0], foot[:, 2] - 0.04, color="C1", linewidth=1.5, label="sole of the foot")
    axes.axhline(0.0, color="0.3")
    axes.set(ylim=(-0.05, 1.25), xlim=(-0.4, 2.0))
    axes.legend()
    figure.savefig(FOLDER / "control_hop.png", dpi=DOTS)


def identify() -> None:
    """Draws the recorded motion, and motions of the identified model and of the first guess."""
    model, recorded, (guess, found) = example("identify")
    time = model.opt.timestep * np.arange(len(recorded))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for panel, first, unit, names in (
        (axes[0], 0, "angle [rad]", ("shoulder", "elbow")),
        (axes[1], 2, "position of the puck [m]", ("x", "y")),
    ):
        for k, name in enumerate(names):
            column, color = first + k, f"C{k}"
            panel.plot(time[::4], recorded[::4, column], ".", color=color, markersize=7)
            panel.plot(time, found[:, column], color=color, linewidth=1.2)
            panel.plot(time, guess[:, column], "--", color=color, linewidth=1.2)
            panel.annotate(
                name, (time[-1], found[-1, column]), (6, 0), textcoords="offset points", color=color, va="center"
            )
        panel.set(xlabel="time [s]", ylabel=unit, xlim=(-0.02, 1.3 * time[-1]))
    kinds = (("recorded", "", "."), ("identified", "-", ""), ("first guess", "--", ""))
    figure.legend(
        [plt.Line2D([], [], color="0.3", linestyle=line, marker=marker, markersize=7) for _, line, marker in kinds],
        [label for label, *_ in kinds],
        loc="outside lower center",  # below the panels: it covers no curve
        ncols=3,
        frameon=False,
    )
    figure.savefig(FOLDER / "control_identify.png", dpi=DOTS)


def throw_cube() -> None:
    """How far the puck goes by the speed of the throw, and the slope that each throw's derivatives say."""
    throws = importlib.import_module("throw_cube")
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
    titles = "convex, felt from 2 cm on", "lcp: hard", "convex, felt from 50 cm on"
    for panel, title, given in zip(axes, titles, (("convex", 0.02), ("lcp", 0.001), ("convex", 0.5)), strict=True):
        model, speed = throws.load(*given), np.linspace(1.2, 2.8, 161)
        panel.plot(speed, throws.throw(model, np.stack([speed, 0 * speed + 0.5], 1)), "C0")
        for v in np.linspace(1.31, 2.71, 8):
            distance, slope = throws.slope(model, np.array([v, 0.5]))
            part = np.array([-0.08, 0.08])
            panel.plot(v + part, distance + slope[0] * part, "C1", linewidth=2.5)
            panel.plot(v, distance, "o", color="C1", markersize=4)
        panel.axhline(throws.MARK, color="0.6", linewidth=0.8, linestyle="--")
        panel.set(title=title, xlabel="speed of the throw [m/s]", ylim=(-0.05, 0.75))
    axes[0].set_ylabel("the puck goes [m]")
    figure.savefig(FOLDER / "control_throw_cube.png", dpi=DOTS)


def five_quadrupeds() -> None:
    """Each robot on its way, at three moments."""
    five, path = example("five_quadrupeds")
    columns = []
    for world, (model, _) in enumerate(five.models):
        column = []
        for k in (50, 53, 56):
            qpos = path[k, world, : model.nq]
            look = {"distance": 1.6, "azimuth": 120, "elevation": -14, "lookat": [*qpos[:2], 0.22]}
            with Painter(dull(model), look, (224, 176)) as painter:
                column.append(painter.picture(qpos).copy())
        columns.append(np.vstack(column))
    picture = Image.fromarray(np.hstack(columns)).quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    picture.save(FOLDER / "control_five_quadrupeds.png", optimize=True)


PICTURES_OF = {f.__name__: f for f in (balance_humanoid, swing_up, hop, identify, throw_cube, five_quadrupeds)}

if __name__ == "__main__":
    prepare_rendering(PICTURES)
    sys.path.insert(0, str(EXAMPLES))
    for name in sys.argv[1:] or PICTURES_OF:
        PICTURES_OF[name]()
