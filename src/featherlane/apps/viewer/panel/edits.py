"""Folders that act on worlds of the page: forces, joints, controls, options, masses and friction of bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from featherlane.apps.viewer.markup import Prose, labels
from featherlane.apps.viewer.panel.controls import ALL, PICKED, Controls, change
from featherlane.enums import HINGE, SLIDE

DIRECTIONS = {"+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0), "+z": (0, 0, 1), "-z": (0, 0, -1)}
CHOICES = ("contact_model", "solver", "lcp_solver", "integrator", "cone")
NUMBERS = {"timestep": "timestep [s]", "iterations": "iterations", "tolerance": "tolerance"}
MOST_SLIDERS = 60
STEPS = 1000  # steps of a slider


def forces(controls: Controls) -> None:
    """Creates the folder of mouse forces."""
    gui, session, names = controls.gui, controls.session, controls.body_names()

    def push(direction: str) -> None:
        impulse = float(controls.handles["impulse"].value) * np.array(DIRECTIONS[direction], float)
        for world in range(len(session.labels)) or (controls.world(),):
            session.mouse.push(world, controls.body(), impulse)

    with controls.folder("Forces"):
        Prose(gui, "Click a body to select it. Ctrl and drag pulls it with a spring.")
        spring = gui.add_slider("Spring [rad/s]", 2.0, 64.0, 1.0, session.mouse.frequency)
        controls.on("spring", spring, lambda value: setattr(session.mouse, "frequency", float(value)))
        pick = lambda name: controls.page.pick(controls.world(), names.index(name))  # noqa: E731
        body = controls.dropdown("body", "Body", names, names[controls.body()], pick)
        controls.follows(body, lambda: names[controls.body()])
        controls.handles["impulse"] = gui.add_number("Push [N s]", 10.0, min=0.0, step=1.0)
        controls.on("push", gui.add_button_group("", tuple(DIRECTIONS)), push, click=True)


def options(controls: Controls) -> None:
    """Creates the folder of options."""
    session, gui, opt = controls.session, controls.gui, controls.model.opt

    def shown(name: str) -> Any:
        """Returns an option's value in the format of its control."""
        value = getattr(opt, name)
        if name == "gravity":
            return tuple(map(float, value))
        return value.name.lower() if isinstance(value, IntEnum) else value

    def edited(name: str, handle) -> None:
        def set_option(value) -> None:
            session.set_option(name, value)
            controls.sync()

        controls.on(f"option {name}", handle, set_option)
        controls.follows(handle, lambda: shown(name))

    def solvers() -> tuple[str, ...]:
        """Returns the names of the built-in LCP solvers, the registered ones, and the model's."""
        return tuple(dict.fromkeys((*opt.choices("lcp_solver"), shown("lcp_solver"))))

    with controls.folder("Options"):
        for name in CHOICES[bool(session.labels) :]:  # the worlds of a comparison differ in the contact model
            names = solvers() if name == "lcp_solver" else opt.choices(name)
            handle = gui.add_dropdown(name.replace("_", " "), names, initial_value=shown(name))
            if name == "lcp_solver":  # solvers may be registered later
                controls.shows(lambda handle=handle: change(handle, "options", solvers()))
            edited(name, handle)
        for name, label in NUMBERS.items():
            edited(name, gui.add_number(label, shown(name), step=1 if name == "iterations" else None))
        edited("gravity", gui.add_vector3("gravity [m/s^2]", shown("gravity"), step=0.1))


def bodies(controls: Controls) -> None:
    """Creates the folder of the selected body; it also selects the worlds that edits apply to."""
    gui, session = controls.gui, controls.session
    with controls.folder("Bodies"):
        controls.handles["scope"] = gui.add_dropdown("Apply edits to", (ALL, PICKED), initial_value=ALL)
        about = Prose(gui)
        mass, friction = gui.add_number("mass [kg]", 0.0), gui.add_number("friction", 0.0)
    controls.on("mass", mass, lambda value: session.set_mass(controls.body(), value, controls.edited()))
    controls.on("friction", friction, lambda value: session.set_friction(controls.body(), value, controls.edited()))

    def show() -> None:
        body, world = controls.body(), controls.world()
        heavy, slides = session.mass(body, world), session.friction(body, world)
        about.show("<b>{}</b> of world {}", controls.body_names()[body], world)
        mass.value, friction.value = heavy, slides or 0.0
        friction.disabled, mass.disabled = slides is None, not heavy > 0.0

    controls.shows(show)


def sliders(
    controls: Controls,
    name: str,
    labels: Sequence[str],
    ranges: np.ndarray,
    read: Callable[[], np.ndarray],
    write: Callable[[Sequence[int], Sequence[float]], None],
    rest: np.ndarray,
    reset: str,
) -> Callable[[], None]:
    """Creates sliders that set values of the selected worlds, and follow those (k,) that `read` returns.

    Args:
        name: name of the handles, and of the folder.
        write: function that sets values by place; `write(places, values)`.
        rest: (k,) values that the button `reset` sets.

    Returns:
        The function that moves the sliders to the present values.
    """
    made, shown = [], ranges[:MOST_SLIDERS]
    with controls.folder(f"{name.capitalize()}s"):
        controls.button(f"reset {name}s", reset, lambda: write(range(len(rest)), rest.tolist()))
        for k, (low, high) in enumerate(shown.tolist()):
            start = float(np.clip(read()[k], low, high))
            slider = controls.gui.add_slider(labels[k], low, high, (high - low) / STEPS or 1.0, start)
            made.append(controls.on(f"{name} {k}", slider, lambda value, k=k: write([k], [value])))
        if len(ranges) > MOST_SLIDERS:
            Prose(controls.gui, "The first {} of {}.", MOST_SLIDERS, len(ranges))

    def refresh() -> None:
        values = np.clip(np.nan_to_num(read()[: len(made)]), *shown.T)
        for slider, value in zip(made, values.tolist(), strict=True):
            if abs(slider.value - value) > slider.step / 2:  # smaller changes are not visible
                slider.value = value

    controls.shows(refresh)
    return refresh


def actuator_sliders(controls: Controls) -> Callable[[], None]:
    """Creates sliders for controls; those without a range are from -1 to 1."""
    model, session = controls.model, controls.session
    limited, names = np.asarray(model.actuator_ctrllimited, bool)[:, None], []
    for k, (name, number) in enumerate(zip(model.names("actuator"), model.actuator_ctrlnum.tolist(), strict=True)):
        names += [f"{name or k}" + f" {i}" * (number > 1) for i in range(number)]

    def write(places: Sequence[int], values: Sequence[float]) -> None:
        for place, value in zip(places, values, strict=True):
            session.set_control(place, value, controls.edited())

    ranges = np.where(limited, model.actuator_ctrlrange, (-1.0, 1.0))
    read = lambda: session.batch.ctrl[controls.world()]  # noqa: E731
    return sliders(controls, "actuator", names, ranges, read, write, np.zeros(model.nu), "Set all to zero")


def joint_sliders(controls: Controls) -> Callable[[], None]:
    """Creates sliders for hinges and slides; those without a range turn by pi, or move by 1 m, to each side."""
    model, session = controls.model, controls.session
    joints = np.flatnonzero((model.jnt_type == HINGE) | (model.jnt_type == SLIDE))
    places, limited = model.jnt_qposadr[joints], np.asarray(model.jnt_limited, bool)[joints, None]
    rest, names = model.qpos0[places], labels(model.names("joint"))
    free = np.where(model.jnt_type[joints] == HINGE, np.pi, 1.0)[:, None] * (-1.0, 1.0) + rest[:, None]
    return sliders(
        controls,
        "joint",
        [names[joint] for joint in joints],
        np.where(limited, model.jnt_range[joints], free),
        lambda: session.batch.qpos[controls.world(), places],
        lambda k, values: session.pose(joints[list(k)], values, controls.edited()),
        rest,
        "Reset the joints",
    )
