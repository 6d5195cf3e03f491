"""Computes model-wide properties that kernels branch on, so that unused features have no cost.

They depend on ints that are not editable after loading.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from featherlane.engine.lanes.layout import size
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import CAPSULE, PLANE, SPHERE
from featherlane.engine.model.sensor import SENSORS


@derived(
    size("nbounded", "number of tendons whose sum of actuator forces is clamped"),
    size("all_round", "1: all colliding geoms are planes, spheres or capsules"),
    size("nvariant", "variants of the model's groups; 0: all worlds have the same meshes and geoms"),
    size(
        "sensor_reads",
        "bits of quantities that sensors need: 1 momenta of subtrees, 2 forces between bodies, 4 energies",
    ),
)
def presence(mj, pairs: dict[str, np.ndarray], nvariant: int) -> dict[str, Any]:
    """Returns which computations a step needs for tendons, geoms and sensors."""
    types = mj.geom_type[np.union1d(pairs["cand_geom1"], pairs["cand_geom2"])]
    kinds = {int(kind) for kind in mj.sensor_type}
    return {
        "nbounded": mj.tendon_actfrclimited.sum(),
        "nvariant": nvariant,
        "all_round": np.isin(types, (PLANE, SPHERE, CAPSULE)).all(),
        "sensor_reads": reduce(or_, (SENSORS[kind].reads for kind in kinds & SENSORS.keys()), 0),
    }
