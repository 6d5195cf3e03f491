"""The contact model lcp with tree-based broad phase: every body keeps its contacts."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import broad_phase

SHAPES = {"sphere": 'size=".1"', "box": 'type="box" size=".1 .08 .1"', "capsule": 'type="capsule" size=".1 .05"'}


def row(shape: str, n: int, limit: int, monkeypatch):
    """Returns n bodies in a row on a floor; pairs come from a list up to a limit, from a tree above it."""
    monkeypatch.setattr(broad_phase, "CROWD_PAIRS", limit)
    tilt = 90 if shape == "capsule" else 0
    bodies = "".join(
        f'<body pos="{0.4 * i} 0 .099" euler="0 {tilt} 0"><freejoint/><geom {SHAPES[shape]}/></body>' for i in range(n)
    )
    model = fl.load(
        f'<mujoco><worldbody><geom type="plane" size="9 9 1" zaxis="0 .02 1"/>{bodies}</worldbody></mujoco>'
    )
    model.opt.contact_model = "lcp"
    return model


def final_state(model, nstep: int = 20):
    data = fl.Data(model)
    fl.step(model, data, nstep)
    return data.qpos.copy(), data.qvel.copy(), data.qfrc_constraint.copy()


@pytest.mark.parametrize("shape", SHAPES)
def test_many_geoms_move_bitwise_equally_with_box_tree_and_pair_list(shape, monkeypatch):
    listed, crowd = row(shape, 7, 10**9, monkeypatch), row(shape, 7, 0, monkeypatch)
    assert listed.ncrowd == 0 and crowd.ncrowd == 7
    for a, b in zip(final_state(listed), final_state(crowd), strict=True):
        np.testing.assert_array_equal(a, b)


def test_each_of_many_spheres_is_held_by_the_floor(monkeypatch):
    n = 160
    model = row("sphere", n, broad_phase.CROWD_PAIRS, monkeypatch)
    assert model.ncrowd == n
    data = fl.Data(model)
    fl.step(model, data)
    assert data.ncon == n
    assert np.count_nonzero(data.con_D[:n]) == n
