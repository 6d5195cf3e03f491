"""Draws the picture of docs/real-arm.md from the recorded motions of an arm; half a minute.

    python docs/images/real_arm.py PATH

Needs matplotlib.  PATH is a clone of https://github.com/shamilmamedov/dynamic_calibration.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1] / "benchmarks"))
import recorded_arm as arm  # noqa: E402
from arm_recording import RATE, regressor  # noqa: E402

DOTS = 110
SECONDS = 10.0, 24.0
SHOWN = {"nominal, friction fitted": "#e69f00", "consistent parameters": "#0072b2"}
JOINTS = 1, 2, 3


def main(place: str) -> None:
    folder = Path(place)
    given, model = arm.recordings(folder), arm.model_of(folder)
    made = arm.identify(model, [given[name] for name in arm.FIT])
    held = given[arm.HELD[0]]
    Y, time = regressor(model, held), np.arange(len(held.q)) / RATE
    part = (time >= SECONDS[0]) & (time <= SECONDS[1])
    figure, axes = plt.subplots(len(JOINTS), 1, figsize=(8.5, 5.4), layout="constrained", sharex=True)
    for panel, joint in zip(axes, JOINTS, strict=True):
        panel.plot(time[part], held.measured[part, joint], color="0.7", linewidth=2.4, label="recorded")
        for label, color in SHOWN.items():
            found = Y @ made.found[label].vector()
            panel.plot(time[part], found[part, joint], color=color, linewidth=1.1, label=label)
        panel.set(ylabel=f"{arm.JOINT[joint]} [N m]")
    axes[-1].set_xlabel("time [s]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(FOLDER / "real_arm.png", dpi=DOTS)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
