"""Checks for slow models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from featherlane.doctor.examined_model import ExaminedModel
from featherlane.doctor.finding import NOTE, Sign
from featherlane.doctor.registry import check
from featherlane.model.enums import HFIELD, LCP, NEWTON
from featherlane.model.integrator import accelerations
from featherlane.model.pair import CONVEX, HEIGHTS
from featherlane.tree import branch_counts

LISTED = 5000  # pairs: 15 us per step at 3 ns each, a sixth of a humanoid's step
FEW_CONVEX = 100  # pairs of convex shapes
DETAILED = 1000  # vertices of a hull
LARGE = 100  # dofs
DENSE = 0.5  # fraction of nonzero entries of M
FEW_HEIGHTS = 50
FEWEST = 10  # iterations of Newton: the default is 100, and 3 are typical


def pairs_by(examined: ExaminedModel, function: int) -> int:
    """Counts the pairs of geoms that use this function of the narrow phase."""
    m = examined.model
    types = np.sort(m.geom_type[examined.pairs], axis=1).reshape(-1, 2)
    return int((m.pair_function[types[:, 0], types[:, 1]] == function).sum())


@check("pairs-many", NOTE, "each pair is tested in each step, at about 3 ns in one world and 1 ns in a batch")
def many_pairs(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds models with more than 5,000 pairs of geoms that may collide."""
    n = len(examined.pairs)
    if n > LISTED:
        crowd = f"; a tree finds those of {examined.model.ncrowd} geoms" if examined.model.ncrowd else ""
        advice = "contype and conaffinity, <exclude>, or explicit <pair>s leave out what never meets"
        yield Sign("model", -1, f"{n} pairs of geoms may touch{crowd}", advice)


@check("pairs-convex", NOTE, "these pairs are tested one world at a time by iteration: microseconds each")
def convex_pairs(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds models with more than 100 pairs of convex shapes without a formula (meshes, ellipsoids, cylinders)."""
    n = pairs_by(examined, CONVEX)
    if n > FEW_CONVEX:
        yield Sign("model", -1, f"{n} pairs of convex shapes", "capsules and boxes in place of meshes, or fewer pairs")


@check("mesh-detailed", NOTE, "support points and contact faces are searched among the hull's vertices")
def detailed(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds colliding meshes whose convex hull has more than 1,000 vertices."""
    m = examined.model
    for g in np.unique(examined.pairs):
        mesh = int(m.geom_dataid[g])
        if mesh >= 0 and m.geom_type[g] != HFIELD and m.hull_vertnum[mesh] > DETAILED:
            seen = f"its hull has {m.hull_vertnum[mesh]} vertices"
            yield Sign("geom", int(g), seen, "maxhullvert on the mesh, or a coarser collision mesh")


@check("heights-many", NOTE, "each such pair tests every prism of the height field below the geom")
def many_height_fields(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds models with more than 50 pairs with height fields."""
    n = pairs_by(examined, HEIGHTS)
    if n > FEW_HEIGHTS:
        yield Sign("model", -1, f"{n} pairs with height fields", "let feet alone touch them")


@check("inertia-dense", NOTE, "factoring M and the Hessian costs the cube of the DoFs; a branched tree costs far less")
def dense(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds trees with at least 100 DoFs whose mass matrix is more than half nonzero: one long chain."""
    m = examined.model
    for tree in range(m.ntree):
        at = examined.dofs_of_tree(tree)
        n = at.stop - at.start
        if n < LARGE:
            continue
        parents = np.maximum(m.dof_parentid[at] - at.start, -1)
        filled = (n + 2 * branch_counts(parents).D1) / n**2
        if filled > DENSE:
            seen = f"a tree of {n} dofs with {filled:.0%} of its inertia filled"
            advice = "root the tree in its middle, or close the loop of two halves by an equality"
            yield Sign("body", int(m.tree_bodyadr[tree]), seen, advice)


@check("rk4-contacts", NOTE, "a step costs four times as much and is not fourth order when contacts switch")
def rk4_with_contacts(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds the integrator RK4 in a model with pairs that may collide."""
    m = examined.model
    if accelerations(m) > 1 and len(examined.pairs):
        seen = f"rk4 with {len(examined.pairs)} pairs that may touch"
        yield Sign("option", "integrator", seen, 'integrator="implicitfast", and half the timestep if need be')


@check("iterations-few", NOTE, "steps that need more iterations end unconverged and are counted in `not_converged`")
def few_iterations(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds an iteration limit below 10 with Newton, the default solver, which usually takes three."""
    m = examined.model
    if m.opt_contact_model != LCP and m.opt_solver == NEWTON and m.opt_iterations < FEWEST:
        seen = f"at most {m.opt_iterations} of newton"
        yield Sign("option", "iterations", seen, "100: iterations that are not needed are not taken")
