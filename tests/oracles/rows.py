"""Compares rows of a tile with MuJoCo's, for parameters that take every branch of their formulas."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.engine.constraint import make_rows
from featherlane.engine.simulation.world.rows import efc_column
from featherlane.engine.solver.inverse import constraint_forces
from oracles.efc import efc
from scenes.constraints import forward, tile
from scenes.states import kicked

# the same formulas in a different order: a few rounding errors, times K = 1e4 and more in aref
TOLERANCE = 1e-11
COMPARED = "J D R pos margin frictionloss vel aref diagA KBIP force".split()

SOLREFS = [(0.02, 1.0), (0.001, 0.4), (-300.0, -20.0), (-1e4, 0.0), (0.0, 0.0), (0.05, -1.0), (-5.0, 0.5)]
SOLIMPS = [
    (0.9, 0.95, 0.001, 0.5, 2.0),
    (0.2, 0.95, 0.4, 0.3, 1.0),
    (0.1, 0.99, 0.5, 0.2, 2.0),
    (0.3, 0.9, 0.6, 0.7, 3.0),
    (0.9, 0.2, 0.5, 0.4, 2.7),
    (0.5, 0.5, 0.1, 0.5, 2.0),
    (0.3, 0.8, 0.0, 0.5, 2.0),
    (-1.0, 2.0, 0.5, 1.5, 0.5),
    (0.2, 0.9, -1.0, 0.5, 4.0),
    (0.2, 0.9, 0.5, -1.0, 2.0),
    (0.2, 0.9, 0.5, 1.5, 3.0),
]


def edited(xml, **fields):
    """Returns MuJoCo's model of a text, with some fields overwritten."""
    mj = mujoco.MjModel.from_xml_string(xml)
    for name, value in fields.items():
        owner = mj.opt if hasattr(mj.opt, name) else mj
        setattr(owner, name, value) if np.isscalar(value) else getattr(owner, name).__setitem__(..., value)
    return mj


def random_states(mj, rng, n, position=0.3):
    return [forward(mj, *kicked(mj, rng, position)) for _ in range(n)]


def assert_rows_equal(workspace, states):
    """Compares rows, and their forces at MuJoCo's acceleration."""
    workspace.run(constraint_forces, 1)
    for lane, data in enumerate(states):
        rows = efc(workspace.model, workspace.arrays, lane)
        np.testing.assert_array_equal(rows.type, data.efc_type)
        np.testing.assert_array_equal(rows.id, data.efc_id)
        np.testing.assert_array_equal(rows.contact_efc_address, [c.efc_address for c in data.contact])
        assert (rows.ne, rows.nf, rows.nl) == (data.ne, data.nf, data.nl)
        naive = [(name, getattr(rows, name)) for name in COMPARED]
        compiled = [(name, efc_column(workspace, name)) for name in COMPARED] if workspace.width == 1 else []
        for name, given in naive + compiled:
            # MuJoCo leaves unused memory after the last row for contacts that got none
            expected = np.ravel(getattr(data, f"efc_{name}"))[: given.size].reshape(given.shape)
            scale = max(np.abs(expected).max(initial=0.0), 1e-10) if name == "force" else np.abs(expected)
            error = np.abs(given - expected) - TOLERANCE * (scale + (name in ("J", "vel", "aref", "pos", "KBIP")))
            assert (error <= 0).all(), (name, given, expected)


def check(mj, rng, width, position=0.3):
    """Compares rows of random states, all in one tile.  Returns the number of rows."""
    states = random_states(mj, rng, width, position)
    assert_rows_equal(tile(mj, states, make_rows), states)
    return sum(data.nefc for data in states)
