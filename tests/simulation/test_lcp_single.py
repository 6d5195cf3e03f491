"""The contact model lcp in float32: effects that rounding of rows and coordinates must not have."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from scenes.lcp import lcp_model

SPEED = 2e-3  # [m/s] g h is 5e-2: no corner falls; the rest is rounding of 10 m over h, and its square root
TOWER = """<mujoco><option timestep=".005"/><worldbody><geom type="plane" pos="0 0 {z}" size="5 5 1"/>{boxes}
</worldbody></mujoco>"""
BOX = '<body pos="0 0 {z}"><freejoint/><geom type="box" size=".1 .1 .1" density="500"/></body>'


def test_rows_that_depend_on_each_other_but_for_rounding_share_their_force():
    """Pivots of 1e-7 are rounding in float32: used as pivots they gave accelerations of 1e10, and resets."""
    batch = fl.Batch(lcp_model(), 16, dtype="float32")
    batch.qvel[:] = 0.3 * np.random.default_rng(0).standard_normal(batch.qvel.shape)
    batch.step(200)
    assert not batch.nreset.any()
    assert batch.status["not_converged"].sum() < 0.01 * 16 * 200
    assert np.abs(batch.qvel).max() < 20.0


@pytest.mark.parametrize("height", [0.0, 3.3, 10.3, 100.3])
def test_a_tower_stands_far_from_the_origin(height):
    boxes = "".join(BOX.format(z=height + 0.1 + 0.2 * k) for k in range(4))
    model = fl.load(TOWER.format(z=height, boxes=boxes))
    model.opt.contact_model = "lcp"
    batch, fastest = fl.Batch(model, 1, dtype="float32"), 0.0
    for _ in range(200):
        batch.step()
        assert batch.ncon[0] == 16
        fastest = max(fastest, np.abs(batch.qvel).max())
    assert fastest < SPEED
