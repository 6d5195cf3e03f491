"""Draws the pictures of the page Muscles into docs/images: `python docs/images/muscles.py`; ten seconds.

Everything drawn is computed by the engine: forces and activations of a muscle, moment arms and activations of the arm
of `examples/static_optimization.py`.  Needs `pip install '.[jit,plot]'`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike

import featherlane as fl

IMAGES = Path(__file__).parent
EXAMPLES = IMAGES.parents[1] / "examples"
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#888888")
# a muscle on a slide joint: the joint's position is the muscle's length in multiples of the optimal length
FIBRE = """<mujoco><option timestep="0.001" gravity="0 0 0"/>
  <worldbody><body><joint name="length" type="slide"/><geom size="0.1" mass="1e4"/></body></worldbody>
  <actuator><muscle joint="length" force="1" range="0.75 1.05" lengthrange="0.75 1.05"/></actuator></mujoco>"""
PULSE, END = 0.1, 0.3  # s


def fibre_forces(length: ArrayLike = 1.0, velocity: ArrayLike = 0.0, activation: float = 1.0) -> np.ndarray:
    """Returns the pull of the muscle by its largest isometric force, of worlds with these lengths and velocities."""
    length, velocity = np.broadcast_arrays(length, velocity)
    batch = fl.Batch(fl.load(FIBRE), len(length))
    batch.qpos[:, 0], batch.qvel[:, 0], batch.act[:] = length, velocity, activation
    force = batch.bind("actuator_force")
    batch.forward()
    return -force[:, 0]


def muscle_curves() -> None:
    """Force by length, force by velocity, and the activation of a pulse of excitation."""
    figure, (by_length, by_velocity, by_time) = plt.subplots(1, 3, figsize=(10.5, 3), layout="constrained")
    length, velocity = np.linspace(0.45, 1.7, 251), np.linspace(-1.6, 1.0, 251)
    passive = fibre_forces(length, activation=0.0)
    for a in (1.0, 0.5):
        active = fibre_forces(length, activation=a) - passive
        by_length.plot(length, active, color=COLOURS[0], alpha=a, label=f"active, activation {a:g}")
        force = fibre_forces(velocity=1.5 * velocity, activation=a)  # the parameter vmax is 1.5
        by_velocity.plot(velocity, force, color=COLOURS[0], alpha=a, label=f"activation {a:g}")
    by_length.plot(length, passive, color=COLOURS[1], label="passive")
    by_length.set(xlabel="length / optimal length", ylabel="force / largest isometric force", ylim=(0, 1.5))
    by_velocity.set(xlabel="velocity / largest shortening velocity", ylim=(0, 1.5))
    data = fl.Data(fl.load(FIBRE))
    times = np.arange(round(END / data.model.opt.timestep)) * data.model.opt.timestep
    excitation = (times < PULSE).astype(float)[:, None]
    activation = data.rollout(len(times), excitation, record="act")["act"]
    by_time.step(times, excitation, where="post", color=COLOURS[5], label="excitation")
    by_time.plot(times, np.append(0.0, activation[:-1]), color=COLOURS[0], label="activation")  # before each step
    by_time.set(xlabel="time [s]")
    for axes in (by_length, by_velocity, by_time):
        axes.legend(fontsize=8)
    figure.savefig(IMAGES / "muscle_curves.png", dpi=80)


def static_optimization() -> None:
    """Moment arms of the example's arm at the elbow, and its activations in the reaching motion."""
    sys.path.insert(0, str(EXAMPLES))
    import static_optimization as example

    model = fl.load(example.ARM)
    figure, (arms, activations) = plt.subplots(1, 2, figsize=(10.5, 3.2), layout="constrained")
    angle = np.linspace(*model.joint("elbow").range, 200)
    batch = fl.Batch(model, len(angle))
    batch.qpos[:, 1] = angle
    for i, row in enumerate(np.moveaxis(batch.moment_arms()[:, :, 1], 1, 0)):
        if row.any():
            arms.plot(np.rad2deg(angle), -1e3 * row, color=COLOURS[i], label=model.actuator(i).name)
    arms.set(xlabel="angle of the elbow [degrees]", ylabel="minus moment arm at the elbow [mm]")
    times = np.linspace(0, 0.4, 101)
    batch = fl.Batch(model, len(times))
    batch.qpos, batch.qvel, qacc = example.reach(times, (0.0, 0.3), (0.9, 1.6))
    for i, row in enumerate(example.activations(batch, qacc).T):
        activations.plot(times, row, color=COLOURS[i], label=model.actuator(i).name)
    activations.set(xlabel="time [s]", ylabel="activation")
    for axes in (arms, activations):
        axes.legend(fontsize=8)
    figure.savefig(IMAGES / "static_optimization.png", dpi=80)


if __name__ == "__main__":
    muscle_curves()
    static_optimization()
