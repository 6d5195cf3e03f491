"""Fields that differ by world act as in a separate model, whatever the shared model has there."""

from __future__ import annotations

import re

import numpy as np
import pytest

import featherlane as fl
from featherlane.model.fields import MODEL
from featherlane.model.set_const import DEPENDENT_REALS
from scenes import expandable

REALS = [field.name for field in MODEL.fields if field.kind == "real"]
OUTPUTS = ("qpos", "qvel", "act", "plastic", "history", "sensordata", "qacc", "qfrc_passive", "qfrc_actuator")
NSTEP = 3
# fields that change no output of so few steps: of what is looked for, of sleep, of what a broad phase leaves out
NOWHERE = r"opt_(ls|sleep)_tolerance|stat_meaninertia|dof_length|geom_aabb|pair_gap|actuator_length0|sensor_noise"
WITHOUT_EFFECT = {
    "convex": rf"{NOWHERE}|opt_(lcp_\w+|erp|cfm|contact_\w+)|jnt_(motor|stop)_\w+|eq_(erp|cfm)"
    r"|geom_(erp|cfm|restitution\w*|slip|fdir)",
    "lcp": rf"{NOWHERE}|opt_(impratio|tolerance|noslip_tolerance|o_\w+)|\w+_sol\w+|\w+_invweight0|jnt_motor_fudge",
}


def moved(batch) -> dict[str, np.ndarray]:
    """State and outputs after some steps from the batch's default state."""
    model = batch.model
    outputs = {name: getattr(batch, name) for name in OUTPUTS}
    batch.reset()
    batch.qvel, batch.ctrl = 2.0 * np.cos(np.arange(model.nv)), 0.4
    batch.step(NSTEP)
    return outputs


def edit(model, name, value) -> None:
    """Set a field, and what follows from it."""
    getattr(model, name)[...] = value
    if name not in DEPENDENT_REALS:
        fl.set_const(model)


@pytest.mark.parametrize("contact_model", ("convex", "lcp"))
@pytest.mark.parametrize("name", REALS)
def test_a_world_moves_as_a_model_with_its_field(name, contact_model):
    model = expandable.load(name, contact_model)
    values = expandable.two_values(model, name)
    alone = []
    for value in values:
        edit(model, name, value)
        alone.append(moved(fl.Batch(model, 1)))
    acts = any(not np.array_equal(alone[0][output], alone[1][output]) for output in OUTPUTS)
    assert acts == (re.fullmatch(WITHOUT_EFFECT[contact_model], name) is None)
    for shared in values:
        edit(model, name, shared)
        batch = fl.Batch(model, 2)
        batch.expand(name)[:] = values
        if name not in DEPENDENT_REALS:
            batch.set_const()
        together = moved(batch)
        for world, expected in enumerate(alone):
            for output, rows in expected.items():
                np.testing.assert_array_equal(together[output][world], rows[0], err_msg=f"{output} of world {world}")
