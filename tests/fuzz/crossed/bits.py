"""Compares a world alone with the same world in a batch, bit by bit."""

from __future__ import annotations

import numpy as np

import featherlane as fl
from fuzz.crossed import judge, settings
from fuzz.crossed.comparison import STATE, Different
from fuzz.workers import enter

BITS = "qacc qacc_smooth qfrc_bias qfrc_passive qfrc_actuator qfrc_constraint actuator_force sensordata".split()
EXPANDED = "body_mass dof_damping geom_friction opt_gravity opt_timestep jnt_stiffness actuator_gear".split()


def check_bits(mj, model, scene, state, rng) -> None:
    """Compares a world alone with the same world in a batch, whose other worlds have other states and parameters."""
    enter("batch")
    count = int(rng.choice((2, 5, 9, 17)))
    place = int(rng.integers(count))
    batch = fl.Batch(model, count, nthread=int(rng.integers(1, 3)))
    alone = fl.Data(model)
    names = [name for name in BITS if np.size(getattr(alone, name))]
    bound = {name: batch.bind(name) for name in names if rng.random() < 0.5}
    others = np.arange(count) != place
    for edit in EXPANDED:
        field = batch.expand(edit) if rng.random() < 0.4 and settings.get(model, edit).size else None
        if field is not None:
            field[others] = field[others] * (1 + 0.1 * rng.random(field[others].shape))
    for name, value in state.items():
        if np.size(value):
            getattr(batch, name)[...] = value
            setattr(alone, name, value)
    batch.qvel[others] += rng.standard_normal((count - 1, mj.nv))
    for k in range(min(scene.steps, 6)):
        values = judge.inputs(mj, scene, state, k)
        judge.put(alone, values)
        for name, value in values.items():
            if value.size:
                getattr(batch, name)[...] = value
        if mj.nu:
            batch.ctrl[others] = rng.uniform(-1, 1, (count - 1, mj.nu))
        batch.step()
        fl.step(model, alone)
        found = {name: (array[place], getattr(alone, name)) for name, array in bound.items()}
        found |= {name: (getattr(batch, name)[place], getattr(alone, name)) for name in STATE if np.size(state[name])}
        for name, (a, b) in found.items():
            if not np.array_equal(np.ravel(a), np.ravel(b), equal_nan=True):
                raise Different(f"bits of {name}", f"step {k}: world {place} of {count} differs from it alone")
