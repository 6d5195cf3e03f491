"""Sweeps friction and mass of a thousand falling humanoids, and plots how far they slide."""

import sys

import numpy as np
from matplotlib.figure import Figure

import featherlane as fl
from featherlane.distributed import sweep, uniform

SPEED = 4.0  # initial forward velocity [m/s]


def slide(recorded):
    """Return the results of one humanoid: distance of its hips [m], and the time at which they stop [s]."""
    place, speed = recorded["qpos"][:, 0], np.abs(recorded["qvel"][:, 0])
    moving = np.flatnonzero(speed > 0.05)
    return {
        "distance": place[-1],
        "until": recorded["time"][moving[-1] if len(moving) else 0],
    }


def draw(result, file):
    """Plot the distance against friction, with the mass as colour."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    friction, mass = (
        result.parameters["geom_friction[:, 0]"],
        result.parameters["body_mass + body_inertia"],
    )
    points = axes.scatter(
        friction, result.results["distance"], c=70 * mass, s=8, cmap="viridis"
    )
    axes.set(
        xlabel="coefficient of friction",
        ylabel="distance of the hips [m]",
        title=f"{len(result)} humanoids",
    )
    figure.colorbar(points, label="mass [kg]")
    figure.savefig(file, dpi=120)


def main(nsample=1000, nstep=600, file="sweep_friction.png", out=None):
    model = fl.bundled("humanoid")
    result = sweep(
        model,
        {
            "geom_friction[:, 0]": uniform(0.05, 1.2),
            "body_mass + body_inertia": uniform(0.7, 1.3, apply="scale"),
            "qvel[0]": [SPEED],
        },
        {"nstep": nstep, "record": ("qpos", "qvel", "time")},
        reduce=slide,
        nsample=nsample,
        out=out,  # with a folder, the same call resumes an interrupted sweep
    )
    friction, distance = (
        result.parameters["geom_friction[:, 0]"],
        result.results["distance"],
    )
    mass = result.parameters["body_mass + body_inertia"]
    for low, high in ((0.05, 0.3), (0.3, 0.7), (0.7, 1.2)):
        chosen = (friction >= low) & (friction < high)
        mean, spread = distance[chosen].mean(), distance[chosen].std()
        shown = f"{chosen.sum():4d} humanoids slide {mean:.2f} m"
        print(
            f"friction {low:.2f} to {high:.2f}: {shown}, standard deviation {spread:.2f} m"
        )
    print(
        f"correlation of distance with friction {np.corrcoef(friction, distance)[0, 1]:+.2f}",
        end=", ",
    )
    print(f"with mass {np.corrcoef(mass, distance)[0, 1]:+.2f}")
    draw(result, file)
    print(f"plot: {file}")


if __name__ == "__main__":
    words = sys.argv[1:]
    main(*map(int, words[:2]), *words[2:])
