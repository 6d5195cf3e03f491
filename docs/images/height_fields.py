"""Draws contacts with a height field, MuJoCo's and ours: `python docs/images/height_fields.py`; seconds.

A box of 24 cm x 12 cm and 50 kg stands on a flat height field of 2 cm cells for two seconds.
Needs `pip install '.[jit,plot]'`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import mujoco
import numpy as np

import featherlane as fl

IMAGE = Path(__file__).parent / "height_field_contacts.png"
BLUE, ORANGE, GREY = "#1f77b4", "#ff7f0e", "#cccccc"
CELL, HALF = 0.02, (0.12, 0.06)  # m
WEIGHT = 50 * 9.81  # N
SECONDS = 2.0
N = 41  # samples of a row
SCENE = f"""<mujoco><option timestep="0.002"/>
  <asset><hfield name="flat" nrow="{N}" ncol="{N}" size="{CELL * (N - 1) / 2} {CELL * (N - 1) / 2} 0.1 0.1"/></asset>
  <worldbody><geom type="hfield" hfield="flat"/>
    <body pos="0.007 0.004 0.0501"><freejoint/><geom type="box" size="{HALF[0]} {HALF[1]} 0.05" mass="50"/></body>
  </worldbody></mujoco>"""


def theirs(mj: mujoco.MjModel):
    """Returns vertical forces over time [N], and positions and normal forces of the last contacts in MuJoCo."""
    data, forces, wrench = mujoco.MjData(mj), [], np.zeros(6)
    for _ in range(round(SECONDS / mj.opt.timestep)):
        mujoco.mj_step(mj, data)
        forces.append(data.qfrc_constraint[2])
    mujoco.mj_forward(mj, data)
    normal = []
    for k in range(data.ncon):
        mujoco.mj_contactForce(mj, data, k, wrench)
        normal.append(wrench[0])
    return forces, data.contact.pos.copy(), np.array(normal), data.qpos[:2].copy()


def ours(mj: mujoco.MjModel):
    """Returns the same of Featherlane."""
    model = fl.load(mj)
    data, forces = fl.Data(model), []
    for _ in range(round(SECONDS / mj.opt.timestep)):
        data.step()
        forces.append(data.qfrc_constraint[2])
    fl.forward(model, data)
    normal = [fl.query.contact_force(model, data, k)[0] for k in range(data.ncon)]
    return forces, data.contact.pos.copy(), np.array(normal), data.qpos[:2].copy()


def draw_contacts(ax, pos, normal, centre, color):
    """Draws the cells, the box and its contacts, with areas in proportion to their forces."""
    ticks = np.arange(-8, 9) * CELL
    for t in ticks:
        ax.plot([t, t], [-0.1, 0.1], color=GREY, linewidth=0.5, zorder=0)
        ax.plot([-0.16, 0.16], [t, t], color=GREY, linewidth=0.5, zorder=0)
        ax.plot([t - 0.2, t + 0.2], [-0.2, 0.2], color=GREY, linewidth=0.4, zorder=0)
    x, y = centre - HALF
    ax.add_patch(plt.Rectangle((x, y), 2 * HALF[0], 2 * HALF[1], fill=False, edgecolor="0.2", linewidth=1.4))
    ax.scatter(pos[:, 0], pos[:, 1], s=3 + 400 * normal / WEIGHT, color=color, alpha=0.8, zorder=3)
    ax.set(xlim=(-0.15, 0.15), ylim=(-0.09, 0.09), aspect="equal", xlabel="x [m]", ylabel="y [m]")


if __name__ == "__main__":
    mj = mujoco.MjModel.from_xml_string(SCENE)
    figure, axes = plt.subplots(
        1, 3, figsize=(13, 3.4), layout="constrained", gridspec_kw={"width_ratios": [1, 1, 0.8]}
    )
    for ax, name, run, color in (
        (axes[0], f"MuJoCo {mujoco.__version__}", theirs, ORANGE),
        (axes[1], "Featherlane", ours, BLUE),
    ):
        forces, pos, normal, centre = run(mj)
        draw_contacts(ax, pos, normal, centre, color)
        ax.set_title(f"{name}: {len(pos)} contacts")
        axes[2].plot(np.arange(len(forces)) * mj.opt.timestep, forces, color=color, label=name, linewidth=1)
        print(name, len(pos), "contacts, force", min(forces[len(forces) // 2 :]), "to", max(forces[len(forces) // 2 :]))
    axes[2].axhline(WEIGHT, color="0.4", linewidth=0.8, linestyle=":")
    axes[2].set(xlabel="time [s]", ylabel="vertical force [N]", title=f"weight {WEIGHT:.1f} N")
    axes[2].legend()
    figure.savefig(IMAGE, dpi=110)
    print(f"wrote {IMAGE}")
