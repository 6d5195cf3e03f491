"""Draws the pictures of docs/real-impacts.md from the recorded tosses; a minute.

    python benchmarks/tosses.py PATH --parameters results.json
    python docs/images/real_impacts.py PATH results.json

Needs matplotlib.  results.json has the identified parameters.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1] / "benchmarks"))
import tosses  # noqa: E402
from toss_recording import HALF, Recording, errors, halves, load  # noqa: E402

DOTS = 110
BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"
CORNERS = HALF * np.array(list(itertools.product((-1, 1), repeat=3)))
EDGES = [(a, b) for a, b in itertools.combinations(range(8), 2) if np.count_nonzero(CORNERS[a] != CORNERS[b]) == 1]
Results = dict[str, dict]


def corners(pose: np.ndarray) -> np.ndarray:
    """The corners of the cube in the world's frame, (8, 3) [m]."""
    w, v = pose[3], pose[4:]
    t = 2.0 * np.cross(v, CORNERS)
    return pose[:3] + CORNERS + w * t + np.cross(v, t)


def one(values: dict[str, float]) -> dict[str, np.ndarray]:
    """The values of one candidate."""
    return {name: np.array([value]) for name, value in values.items()}


def overlay(held: Recording, results: Results) -> None:
    """The toss of median error among those on the recorded face, and one on another face, seen from the side."""
    model, values = tosses.prepared(tosses.VARIANTS["convex"].options), results["convex"]["parameters"]
    found = tosses.judge(model, held, values)
    order = np.argsort(found.position)
    same = [k for k in order if found.last[k] < 45.0]
    chosen = same[len(same) // 2], next(k for k in order if found.last[k] > 45.0)
    figure, axes = plt.subplots(2, 1, figsize=(8.5, 4.6), layout="constrained")
    for panel, k in zip(axes, chosen, strict=True):
        part = held.part([k])
        pose, real, length = tosses.simulate(model, part, one(values))[0, 0], part.pose[0], part.length[0]
        way = real[length - 1, :2] - real[0, :2]
        way = way / np.linalg.norm(way)
        for sample in np.linspace(0, min(length, 75) - 1, 9).astype(int):
            for path, color, width in ((real, "0.55", 2.6), (pose, BLUE, 1.0)):
                points = corners(path[sample])
                x, z = points[:, :2] @ way, points[:, 2]
                for a, b in EDGES:
                    panel.plot(x[[a, b]], z[[a, b]], color=color, linewidth=width, alpha=0.8)
        panel.axhline(values["height of the board [m]"], color="0.2", linewidth=0.8)
        panel.set(aspect="equal", ylabel="height [m]")
        panel.set_title(
            f"mean errors {100 * found.position[k]:.0f} % of the width, {found.rotation[k]:.0f}°; "
            f"at the end {found.last[k]:.0f}°",
            fontsize=9,
        )
    axes[-1].set_xlabel("along the toss [m]")
    handles = [plt.Line2D([], [], color=c, linewidth=w) for c, w in (("0.55", 2.6), (BLUE, 1.2))]
    figure.legend(handles, ["recorded", "convex, identified"], loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(FOLDER / "real_impacts_toss.png", dpi=DOTS)


def histograms(held: Recording, results: Results) -> None:
    """The errors of the held-out tosses under the contact models."""
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.0), layout="constrained")
    bins = np.linspace(0, 60, 31), np.linspace(0, 90, 31)
    for name, color in zip(tosses.VARIANTS, (BLUE, GREEN, ORANGE, RED), strict=True):
        if name not in results:
            continue
        model = tosses.prepared(tosses.VARIANTS[name].options)
        found = tosses.judge(model, held, results[name]["parameters"])
        for panel, data, edges in zip(axes, (100 * found.position, found.rotation), bins, strict=True):
            panel.hist(np.minimum(data, edges[-1]), edges, histtype="step", color=color, linewidth=1.5, label=name)
    axes[0].set(xlabel="mean position error [% of the width]", ylabel="tosses")
    axes[1].set(xlabel="mean rotation error [°]")
    axes[0].legend(frameon=False)
    figure.savefig(FOLDER / "real_impacts_errors.png", dpi=DOTS)


def landscape(fit: Recording, results: Results) -> None:
    """The error by friction: of one toss, and the mean over tosses, for a short and a long horizon."""
    model, values = tosses.prepared(tosses.VARIANTS["convex"].options), results["convex"]["parameters"]
    friction = np.linspace(0.05, 0.35, 101)
    candidates = {name: np.full(len(friction), value) for name, value in values.items()} | {"friction": friction}
    some = fit.part(np.flatnonzero(fit.length > 81)[:60], 81)
    pose = tosses.simulate(model, some, candidates)
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.0), layout="constrained")
    for samples, color in ((25, GREEN), (80, BLUE)):
        part = Recording(some.pose[:, :samples], some.velocity, np.full(len(some.length), samples))
        found = errors(part, pose[:, :, :samples])
        loss = found.position / 0.12 + found.rotation / 16.0
        jump = np.abs(np.diff(loss, axis=0)).max(0).argmax()
        axes[0].plot(friction, loss[:, jump], color=color, label=f"{samples} samples")
        axes[1].plot(friction, loss.mean(1), color=color, label=f"{samples} samples")
    for panel, title in zip(axes, ("one toss", "mean of 60 tosses"), strict=True):
        panel.set(xlabel="friction", title=title)
        panel.axvline(values["friction"], color="0.6", linewidth=0.8, linestyle="--")
    axes[0].set_ylabel("error (12 % of the width or 16° = 1)")
    axes[0].legend(frameon=False)
    figure.savefig(FOLDER / "real_impacts_loss.png", dpi=DOTS)


def main(place: str, path: str) -> None:
    recording, results = load(place), json.loads(Path(path).read_text())
    fit, held = (recording.part(ids) for ids in halves(len(recording.length)))
    overlay(held, results)
    histograms(held, results)
    landscape(fit, results)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
