"""Folders of forces: dragging and pushing bodies, and sliders for actuators."""

from __future__ import annotations

import numpy as np

from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import Controls

MOST_SLIDERS = 60  # most actuators with sliders
DIRECTIONS = {"+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0), "+z": (0, 0, 1), "-z": (0, 0, -1)}


class Forces:
    """The folder of mouse forces."""

    def __init__(self, controls: Controls):
        self.controls, gui = controls, controls.gui
        with controls.folder("Forces"):
            Prose(gui, "Click a body to select it. Ctrl and drag pulls it with a spring.")
            frequency = controls.session.mouse.frequency
            controls.on("spring", gui.add_slider("Spring [rad/s]", 2.0, 64.0, 1.0, frequency), self._set_spring)
            names = controls.body_names()
            body = gui.add_dropdown("Body", names, initial_value=names[controls.body()])
            controls.on("body", body, lambda value: controls.page.pick(controls.world(), names.index(value)))
            controls.follows(body, lambda: names[controls.body()])
            controls.handles["impulse"] = gui.add_number("Push [N s]", 10.0, min=0.0, step=1.0)
            controls.on("push", gui.add_button_group("", tuple(DIRECTIONS)), self._push, click=True)

    def _set_spring(self, frequency: float) -> None:
        self.controls.session.mouse.frequency = float(frequency)

    def _push(self, direction: str) -> None:
        session = self.controls.session
        impulse = float(self.controls.handles["impulse"].value) * np.array(DIRECTIONS[direction], float)
        for world in range(len(session.labels)) or (self.controls.world(),):
            session.push(world, self.controls.body(), impulse)


class Actuators:
    """The folder of actuators, if the model has any."""

    def __init__(self, controls: Controls):
        self.controls, model, source = controls, controls.model, controls.session
        if not model.nu:
            return
        limited = np.asarray(model.actuator_ctrllimited, bool)[:, None]
        ranges = np.where(limited, model.actuator_ctrlrange, (-1.0, 1.0))
        names = control_names(model)
        with controls.folder("Actuators"):
            controls.button("relax", "Set all to zero", self._relax)
            self._sliders = []
            for k in range(min(model.nu, MOST_SLIDERS)):
                low, high = map(float, ranges[k])
                start = float(np.clip(source.batch.ctrl[0, k], low, high))
                slider = controls.gui.add_slider(names[k], low, high, (high - low) / 200, start)
                controls.on(f"control {k}", slider, lambda value, k=k: source.set_control(k, value, controls.edited()))
                self._sliders.append(slider)
            if model.nu > MOST_SLIDERS:
                Prose(controls.gui, "The first {} of {} actuators.", MOST_SLIDERS, model.nu)
        controls.shows(self._show)

    def _relax(self) -> None:
        for k in range(self.controls.model.nu):
            self.controls.session.set_control(k, 0.0, self.controls.edited())
        self._show()

    def _show(self) -> None:
        control = self.controls.session.batch.ctrl[self.controls.world()]
        for slider, value in zip(self._sliders, control.tolist(), strict=False):
            slider.value = float(np.clip(value, slider.min, slider.max))


def control_names(model) -> list[str]:
    """Returns a name for each control: its actuator, with a number if the actuator has several."""
    out = [""] * model.nu
    for k, name in enumerate(model.names("actuator")):
        first, number = int(model.actuator_ctrladr[k]), int(model.actuator_ctrlnum[k])
        for i in range(number):
            out[first + i] = f"{name or k}" + f" {i}" * (number > 1)
    return out
