"""Describes the broad-phase tests of a model, which pairs of geoms pass before contact points are computed."""

from __future__ import annotations

from typing import Any

from featherlane.apps.cli.output import name_value_table, table

SHOWN = 12  # most hulls that are listed, the largest


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
