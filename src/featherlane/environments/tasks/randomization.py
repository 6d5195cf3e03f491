"""Domain randomization: model fields that are sampled for each world and episode, from the world's generator.

It prepares a policy for sim-to-real transfer: the masses, frictions and servo gains of a robot are uncertain by more
than a few per cent, and controllers have a delay.
Source: Peng, Andrychowicz, Zaremba, Abbeel, Sim-to-real transfer of robotic control with dynamics randomization, 2018.
"""

from __future__ import annotations

import numpy as np

from featherlane import Batch
from featherlane.environments.random_streams import RandomStreams

SAME = (1.0, 1.0)


class Randomization:
    """Samples model fields for each world; an interval that equals the model's value expands no field.

    Args:
        worlds: the batch, whose fields are expanded.
        mass: factors on the mass and the inertia of each body.
        friction: factor on the sliding friction of all geoms.
        gain: factors on stiffness and damping of each servo.
        delay: delay of all controls [s].
    """

    def __init__(
        self,
        worlds: Batch,
        mass: tuple[float, float],
        friction: tuple[float, float],
        gain: tuple[float, float],
        delay: tuple[float, float],
    ):
        self.worlds, self.model = worlds, worlds.model
        self.mass, self.friction, self.gain, self.delay = mass, friction, gain, delay
        self.names = [
            *(("body_mass", "body_inertia") if mass != SAME else ()),
            *(("geom_friction",) if friction != SAME else ()),
            *(("actuator_gainprm", "actuator_biasprm") if gain != SAME else ()),
            *(("actuator_delay",) if delay != (0.0, 0.0) else ()),
        ]
        for name in self.names:
            worlds.expand(name)

    def draw(self, ids: np.ndarray, random: RandomStreams) -> None:
        """Samples new values in the worlds `ids`."""
        model, worlds = self.model, self.worlds
        if self.mass != SAME:
            factor = random.uniform(ids, *self.mass, model.nbody)
            worlds.expand("body_mass")[ids] = factor * model.body_mass
            worlds.expand("body_inertia")[ids] = factor[:, :, None] * model.body_inertia
        if self.friction != SAME:
            factor = random.uniform(ids, *self.friction, 1)
            worlds.expand("geom_friction")[ids, :, 0] = factor * model.geom_friction[:, 0]
        if self.gain != SAME:
            factor = random.uniform(ids, *self.gain, model.nu)[:, :, None]
            for name in ("actuator_gainprm", "actuator_biasprm"):
                worlds.expand(name)[ids] = factor * getattr(model, name)
        if self.delay != (0.0, 0.0):
            worlds.expand("actuator_delay")[ids] = random.uniform(ids, *self.delay, 1)
        if self.mass != SAME:
            worlds.set_const(ids)
