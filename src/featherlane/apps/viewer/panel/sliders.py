"""Folders of sliders: positions of joints, and controls of actuators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from featherlane.apps.viewer.markup import Prose, labels
from featherlane.apps.viewer.panel.controls import Controls, change
from featherlane.enums import HINGE, SLIDE

MOST_SLIDERS = 60
STEPS = 1000  # steps of a slider


class Sliders:
    """A folder of sliders that set values of the selected worlds, and follow the values of the selected world.

    Args:
        name: name of the handles, and of the folder.
        labels: labels of the values.
        ranges: (k, 2) ranges of the sliders.
        read: function that returns the values of a world, of which `places` (k,) are shown.
        write: function that sets values by place; `write(places, values)`.
        rest: (k,) values that the button `reset` sets.
    """

    def __init__(
        self,
        controls: Controls,
        name: str,
        labels: Sequence[str],
        ranges: np.ndarray,
        read: Callable[[], np.ndarray],
        write: Callable[[Sequence[int], Sequence[float]], None],
        rest: np.ndarray,
        reset: str,
    ):
        self.controls, self.read, self.ranges, self._sliders = controls, read, ranges[:MOST_SLIDERS], []
        with controls.folder(f"{name.capitalize()}s"):
            controls.button(f"reset {name}s", reset, lambda: write(range(len(rest)), rest.tolist()))
            for k, (low, high) in enumerate(self.ranges.tolist()):
                start = float(np.clip(read()[k], low, high))
                slider = controls.gui.add_slider(labels[k], low, high, (high - low) / STEPS or 1.0, start)
                controls.on(f"{name} {k}", slider, lambda value, k=k: write([k], [value]))
                self._sliders.append(slider)
            if len(ranges) > MOST_SLIDERS:
                Prose(controls.gui, "The first {} of {}.", MOST_SLIDERS, len(ranges))
        controls.shows(self.refresh)

    def refresh(self) -> None:
        """Moves the sliders to the values of the selected world."""
        values = np.clip(np.nan_to_num(self.read()[: len(self._sliders)]), *self.ranges.T)
        for slider, value in zip(self._sliders, values.tolist(), strict=True):
            change(slider, "value", value)


def actuator_sliders(controls: Controls) -> Sliders:
    """Creates sliders for controls; those without a range are from -1 to 1."""
    model, session = controls.model, controls.session
    limited = np.asarray(model.actuator_ctrllimited, bool)[:, None]

    def write(places: Sequence[int], values: Sequence[float]) -> None:
        for place, value in zip(places, values, strict=True):
            session.set_control(place, value, controls.edited())

    return Sliders(
        controls,
        "actuator",
        control_names(model),
        np.where(limited, model.actuator_ctrlrange, (-1.0, 1.0)),
        lambda: session.batch.ctrl[controls.world()],
        write,
        np.zeros(model.nu),
        "Set all to zero",
    )


def joint_sliders(controls: Controls) -> Sliders:
    """Creates sliders for hinges and slides; those without a range turn by pi, or move by 1 m, to each side."""
    model, session = controls.model, controls.session
    joints = np.flatnonzero((model.jnt_type == HINGE) | (model.jnt_type == SLIDE))
    places, limited = model.jnt_qposadr[joints], np.asarray(model.jnt_limited, bool)[joints, None]
    rest = model.qpos0[places]
    free = np.where(model.jnt_type[joints] == HINGE, np.pi, 1.0)[:, None] * (-1.0, 1.0) + rest[:, None]
    names = labels(model.names("joint"))
    return Sliders(
        controls,
        "joint",
        [names[joint] for joint in joints],
        np.where(limited, model.jnt_range[joints], free),
        lambda: session.batch.qpos[controls.world(), places],
        lambda k, values: session.pose(joints[list(k)], values, controls.edited()),
        rest,
        "Reset the joints",
    )


def control_names(model) -> list[str]:
    """Returns a name for each control: its actuator, with a number if the actuator has several."""
    out = [""] * model.nu
    for k, name in enumerate(model.names("actuator")):
        first, number = int(model.actuator_ctrladr[k]), int(model.actuator_ctrlnum[k])
        for i in range(number):
            out[first + i] = f"{name or k}" + f" {i}" * (number > 1)
    return out
