"""Checks for slow models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import NOTE, Sign
from featherlane.apps.doctor.registry import check
from featherlane.enums import HFIELD, MESH, SPHERE, ContactModel, Integrator, Solver
from featherlane.tree import branch_counts

LISTED = 5000  # pairs: 15 us per step at 3 ns each, a sixth of a humanoid's step
FEW_CONVEX = 100  # pairs of convex shapes
DETAILED = 1000  # vertices of a hull
LARGE = 100  # dofs
DENSE = 0.5  # fraction of nonzero entries of M
FEW_HEIGHTS = 50
FEWEST = 10  # iterations of Newton: the default is 100, and 3 are typical


def pairs_like(examined: ExaminedModel, type1: int, type2: int) -> int:
    """Counts the pairs of geoms that use the function of the narrow phase of these two types, the lower first."""
    m = examined.model
    function = m.pair_function[type1, type2]
    types = np.sort(m.geom_type[examined.pairs], axis=1).reshape(-1, 2)
    return int((m.pair_function[types[:, 0], types[:, 1]] == function).sum())


@check("pairs-many", NOTE, "each pair is tested in each step: about 3 ns in one world, 1 ns in a batch")
def many_pairs(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds models with more than 5,000 pairs of geoms that may collide."""
    n = len(examined.pairs)
    if n > LISTED:
        crowd = (
            f"; those of {examined.model.ncrowd} geoms are found by a bounding volume tree"
            if examined.model.ncrowd
            else ""
        )
        advice = "exclude pairs that never touch by contype and conaffinity, <exclude>, or explicit <pair> elements"
        yield Sign("model", -1, f"{n} candidate pairs of geoms{crowd}", advice)


@check("pairs-convex", NOTE, "these pairs are tested iteratively, one world at a time: microseconds each")
def convex_pairs(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds models with more than 100 pairs of convex shapes without a formula (meshes, ellipsoids, cylinders)."""
    n = pairs_like(examined, MESH, MESH)
    if n > FEW_CONVEX:
        advice = "replace meshes by capsules and boxes, or reduce the number of pairs"
        yield Sign("model", -1, f"{n} pairs of convex shapes", advice)


@check("mesh-detailed", NOTE, "the search for support points and contact faces takes longer with more hull vertices")
def detailed(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds colliding meshes whose convex hull has more than 1,000 vertices."""
    m = examined.model
    for g in np.unique(examined.pairs):
        mesh = int(m.geom_dataid[g])
        if mesh >= 0 and m.geom_type[g] != HFIELD and m.hull_vertnum[mesh] > DETAILED:
            seen = f"its convex hull has {m.hull_vertnum[mesh]} vertices"
            yield Sign("geom", int(g), seen, "set maxhullvert of the mesh, or use a coarser collision mesh")


@check("heights-many", NOTE, "each of these pairs tests every triangle of the height field below the geom")
def many_height_fields(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds models with more than 50 pairs with height fields."""
    n = pairs_like(examined, HFIELD, SPHERE)
    if n > FEW_HEIGHTS:
        advice = "restrict collisions with the height field to the feet"
        yield Sign("model", -1, f"{n} pairs with height fields", advice)


@check(
    "inertia-dense",
    NOTE,
    "the cost of factorizing M and the Hessian grows with the cube of the DoFs; a branched tree costs far less",
)
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
            seen = f"a tree of {n} DoFs whose mass matrix is {filled:.0%} non-zero"
            advice = (
                "choose the root body in the middle of the chain, or split the chain and join the halves by an equality"
            )
            yield Sign("body", int(m.tree_bodyadr[tree]), seen, advice)


@check("rk4-contacts", NOTE, "a step costs four times as much, and is not fourth order if contacts begin or end")
def rk4_with_contacts(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds the integrator RK4 in a model with pairs that may collide."""
    m = examined.model
    if m.opt_integrator == Integrator.RK4 and len(examined.pairs):
        seen = f"rk4 with {len(examined.pairs)} candidate pairs"
        yield Sign("option", "integrator", seen, 'use integrator="implicitfast", and a smaller timestep if necessary')


@check("iterations-few", NOTE, "steps that need more iterations end unconverged and are counted in `not_converged`")
def few_iterations(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds an iteration limit below 10 with Newton, the default solver, which usually takes three."""
    m = examined.model
    if m.opt_contact_model != ContactModel.LCP and m.opt_solver == Solver.NEWTON and m.opt_iterations < FEWEST:
        seen = f"at most {m.opt_iterations} iterations of newton"
        yield Sign("option", "iterations", seen, "set 100: the solver stops earlier when it has converged")
