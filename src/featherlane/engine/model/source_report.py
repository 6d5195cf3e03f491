"""Reports which features of a compiled source are not supported, and which tests its pairs of geoms need."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.broad_phase import broad_phase
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.enums import MESH
from featherlane.engine.model.hull import hulls
from featherlane.engine.model.load import compile_source
from featherlane.engine.model.mujoco_versions import refused
from featherlane.engine.model.pair import FIRST_SCALAR, NO_FUNCTION


class SourceReport(NamedTuple):
    """A compiled source, also one that `featherlane.load` refuses.

    Attributes:
        mj_model: the compiled `mujoco.MjModel`.
        name: name of the source for messages.
        unsupported: features that would change the motion and are not supported, each with the name of its element.
        sensors_not_computed: number of sensors whose values are not computed.
        pairs: `cand_geom1`, `cand_geom2`, `cand_npoint` of the geom pairs that may collide, (n,) int32 each: geoms, and
            the maximum number of contact points.
        bounding_tests: number of geom pairs of each test of the broad phase, in order, and the hulls of meshes.
    """

    mj_model: Any
    name: str
    unsupported: list[str]
    sensors_not_computed: int
    pairs: dict[str, np.ndarray]
    bounding_tests: dict[str, Any]


def source_report(source: Any) -> SourceReport:
    """Compiles a source with MuJoCo, whatever its features, and reports what is supported.

    Args:
        source: as for `featherlane.load`.

    Raises:
        ModelError: the source cannot be found, read or compiled.
        InstallationError: `mujoco` is missing, too old or broken.
    """
    from featherlane.engine.model.features import sensor_support, unsupported  # imports mujoco

    mj, name = compile_source(source)[:2]
    pairs, support = candidates(mj), sensor_support(mj)
    lacking = unsupported(mj, pairs) + refused(mj)
    return SourceReport(mj, name, lacking, support.count(False), pairs, bounding_tests(mj, pairs))


def bounding_tests(mj, found: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns the tests in order with the number of geom pairs of each, and the hulls of the searched pairs.

    Args:
        found: all `candidates` of the model.
    """
    ints = broad_phase(mj, found)
    boxed = ints["group_boxed"] > 0
    in_group = np.diff(np.append(ints["group_first"], len(ints["cand_geom1"])))
    function = found["cand_function"]
    listed = len(ints["cand_geom1"])
    return {
        "listed": listed,
        "body_boxes": {"pairs_of_bodies": int(boxed.sum()), "pairs": int(in_group[boxed].sum())},
        "tree": {"geoms": len(ints["crowd_geom"]), "pairs": len(function) - listed},
        "spheres": len(function),
        "closed_form": int(((function != NO_FUNCTION) & (function < FIRST_SCALAR)).sum()),
        "turned_boxes": int((function >= FIRST_SCALAR).sum()),
        "hulls": _hulls(mj, ints["collide_geom"]),
    }


def _hulls(mj, geoms: np.ndarray) -> list[dict[str, Any]]:
    """Returns the hulls of these geoms, sorted by decreasing number of vertices."""
    meshes = mj.geom_dataid[geoms[mj.geom_type[geoms] == MESH]]
    hull = hulls([mj] * mj.nmesh)
    rows = [
        {
            "mesh": mj.mesh(mesh).name,
            "geoms": int((meshes == mesh).sum()),
            "vertices": int(hull["hull_vertnum"][mesh]),
            "faces": int(hull["hull_polynum"][mesh]),
        }
        for mesh in np.unique(meshes)
    ]
    return sorted(rows, key=lambda row: -row["vertices"])
