"""Folders that edit the model: its options, and the masses and friction of bodies."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from featherlane.apps.viewer.markup import Prose
from featherlane.apps.viewer.panel.controls import ALL, PICKED, Controls
from featherlane.enums import Cone, ContactModel, Integrator, Solver


class Options:
    """The folder of options."""

    def __init__(self, controls: Controls):
        self.controls, gui = controls, controls.gui
        choices = {
            "contact_model": _names_of(ContactModel),
            "solver": _names_of(Solver),
            "lcp_solver": self._lcp_solvers(),
            "integrator": _names_of(Integrator),
            "cone": _names_of(Cone),
        }
        if controls.session.labels:
            del choices["contact_model"]  # the worlds differ in it
        with controls.folder("Options"):
            for name, options in choices.items():
                label = name.replace("_", " ")
                handle = gui.add_dropdown(label, options, initial_value=self._option(name))
                self._edited(name, handle)
                if name == "lcp_solver":
                    controls.shows(lambda handle=handle: self._show_lcp_solvers(handle))
            self._edited("timestep", gui.add_number("timestep [s]", self._option("timestep")))
            self._edited("iterations", gui.add_number("iterations", self._option("iterations"), step=1))
            self._edited("tolerance", gui.add_number("tolerance", self._option("tolerance")))
            self._edited("gravity", gui.add_vector3("gravity [m/s^2]", self._option("gravity"), step=0.1))

    def _edited(self, name: str, handle) -> None:
        def set_option(value) -> None:
            self.controls.session.set_option(name, value)
            self.controls.sync()

        self.controls.on(f"option {name}", handle, set_option)
        self.controls.follows(handle, lambda: self._option(name))

    def _lcp_solvers(self) -> tuple[str, ...]:
        """Returns the names of the built-in LCP solvers, the registered ones, and the model's."""
        names = self.controls.model.opt.choices("lcp_solver")
        return tuple(dict.fromkeys((*names, self._option("lcp_solver"))))

    def _show_lcp_solvers(self, handle: Any) -> None:
        """Lists solvers that were registered meanwhile."""
        if tuple(handle.options) != (names := self._lcp_solvers()):
            handle.options = names

    def _option(self, name: str) -> Any:
        """Returns an option's value in the format of its control."""
        value = getattr(self.controls.model.opt, name)
        if name == "gravity":
            return tuple(map(float, value))
        if isinstance(value, IntEnum):
            return value.name.lower()
        return value


class Bodies:
    """The folder of the selected body; it also selects the worlds that edits apply to."""

    def __init__(self, controls: Controls):
        self.controls, gui, source = controls, controls.gui, controls.session
        with controls.folder("Bodies"):
            controls.handles["scope"] = gui.add_dropdown("Apply edits to", (ALL, PICKED), initial_value=ALL)
            self._about = Prose(gui)
            self._mass, self._friction = gui.add_number("mass [kg]", 0.0), gui.add_number("friction", 0.0)
        controls.on("mass", self._mass, lambda value: source.set_mass(controls.body(), value, controls.edited()))
        controls.on(
            "friction", self._friction, lambda value: source.set_friction(controls.body(), value, controls.edited())
        )
        controls.shows(self._show)

    def _show(self) -> None:
        source, body, world = self.controls.session, self.controls.body(), self.controls.world()
        slides = source.friction(body, world)
        self._about.show("<b>{}</b> of world {}", self.controls.body_names()[body], world)
        self._mass.value, self._friction.value = source.mass(body, world), slides or 0.0
        self._friction.disabled, self._mass.disabled = slides is None, not source.mass(body, world) > 0.0


def _names_of(kind: type[IntEnum]) -> tuple[str, ...]:
    return tuple(member.name.lower() for member in kind)
