"""Describes the broad-phase tests of a model, which pairs of geoms pass before contact points are computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.apps.cli.output import name_value_table, table
from featherlane.engine.model.broad_phase import broad_phase
from featherlane.engine.model.hull import hulls
from featherlane.engine.model.pair import FIRST_SCALAR, NO_FUNCTION
from featherlane.enums import MESH

SHOWN = 12  # most hulls that are listed, the largest


def count_bounding_tests(mj, found: dict[str, np.ndarray]) -> dict[str, Any]:
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


def print_bounding_tests(screen, d: dict[str, Any]) -> None:
    """Prints the tests; prints nothing for a model without pairs."""
    if not d["spheres"]:
        return
    boxes, tree = d["body_boxes"], d["tree"]
    lines = {"candidates": f"{d['listed']} pairs of geoms"}
    if boxes["pairs_of_bodies"]:
        lines["boxes of bodies"] = f"{boxes['pairs_of_bodies']} pairs of bodies, with {boxes['pairs']} pairs of geoms"
    if tree["geoms"]:
        lines["bounding volume tree"] = f"{tree['geoms']} geoms, instead of {tree['pairs']} pairs"
    lines["bounding spheres"] = (
        f"{d['spheres']} pairs of geoms; contacts of {d['closed_form']} are computed in closed form"
    )
    if d["turned_boxes"]:
        lines["oriented boxes"] = f"{d['turned_boxes']} pairs of geoms; contacts are computed iteratively"
    screen.print(name_value_table("Broad-phase tests", lines))
    if d["hulls"]:
        rows = [[hull["mesh"], hull["geoms"], hull["vertices"], hull["faces"]] for hull in d["hulls"][:SHOWN]]
        more = len(d["hulls"]) - SHOWN
        title = (
            f"Largest colliding convex hulls; {more} smaller hulls are not listed"
            if more > 0
            else "Colliding convex hulls"
        )
        screen.print(table(title, ["mesh", "geoms", "vertices", "faces"], rows))
