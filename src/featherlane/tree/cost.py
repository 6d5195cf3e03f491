"""Cost by the tree's shape: D0, D1, D2, and operation counts for factors, products and forward dynamics.

Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.5, table 6.6; sec. 10.3, table 10.1; and Featherstone,
"Efficient factorization of the joint-space inertia matrix for branched kinematic trees", IJRR 24(6), 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from featherlane.tree.parent import check_parents, depth


@dataclass(frozen=True)
class Cost:
    """Counts of operations: square roots, divisions, multiplications, and additions or subtractions."""

    sqrt: int = 0
    div: int = 0
    mul: int = 0
    add: int = 0

    @property
    def flops(self) -> int:
        """Total number of operations, each counted once."""
        return self.sqrt + self.div + self.mul + self.add

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.sqrt + other.sqrt, self.div + other.div, self.mul + other.mul, self.add + other.add)

    def __rmul__(self, times: int) -> Cost:
        return Cost(times * self.sqrt, times * self.div, times * self.mul, times * self.add)


SQRT, DIV, MUL, ADD = Cost(sqrt=1), Cost(div=1), Cost(mul=1), Cost(add=1)
MULADD = MUL + ADD


@dataclass(frozen=True)
class BranchCounts:
    """The numbers that determine all costs, with d_i the depth of DoF i (1 at the base).

    n: DoFs; D0: DoFs not at the base, sum of min(1, d_i - 1); D1 = sum of (d_i - 1), the entries of H below the
    diagonal; D2 = sum of d_i (d_i - 1) / 2, the updates of a factorisation.
    """

    n: int
    D0: int
    D1: int
    D2: int


@dataclass(frozen=True)
class ForwardCosts:
    """Predicted operations of two methods of forward dynamics (`compare_costs`).

    rne, crb, ltdl, solve: the parts of `crb_total`, the O(n d^2) method with H; aba: the O(n) articulated-body method.
    """

    rne: Cost
    crb: Cost
    ltdl: Cost
    solve: Cost
    aba: Cost

    @property
    def crb_total(self) -> Cost:
        """Sum of Newton-Euler bias, composite inertias, factorisation and substitution."""
        return self.rne + self.crb + self.ltdl + self.solve

    @property
    def ratio(self) -> float:
        """Operations of the O(n d^2) method over those of the O(n) one; below 1 the former is cheaper; 1 if n = 0."""
        return self.crb_total.flops / self.aba.flops if self.aba.flops else 1.0


def branch_counts(parents: ArrayLike) -> BranchCounts:
    """Computes n, D0, D1 and D2 of a parent array (n,). Source: Featherstone, sec. 6.5 and 10.3.

    Raises:
        ValueError: an invalid parent.
    """
    return _counts_from_depths(depth(parents))


def _counts_from_depths(depths: np.ndarray) -> BranchCounts:
    above = depths.astype(np.int64) - 1
    return BranchCounts(
        n=int(above.size),
        D0=int(np.count_nonzero(above)),
        D1=int(above.sum()),
        D2=int((above * (above + 1) // 2).sum()),
    )


def cost_table(parents: ArrayLike) -> dict[str, Cost]:
    """Returns the operations of each function of this module on one matrix and one right-hand side.

    Args:
        parents: (n,) parent array.

    Returns:
        Costs by name: "ltl" and "ltdl" (factorisations); "mul" (each of `mul_l`, `mul_lt`) and "solve" (each of
        `solve_l`, `solve_lt`) with suffix "_ltl" or, for a unit factor, "_ltdl"; "mul_h"; "back_ltl" and "back_ltdl",
        the whole of H^-1 b from a factor; and for a dense matrix of the same n "cholesky", "mul_dense" and
        "back_cholesky".

    Raises:
        ValueError: an invalid parent.

    Source: Featherstone, table 6.6. A dense matrix costs what the unbranched tree costs: D1 = (n^2 - n)/2,
    D2 = (n^3 - n)/6.
    """
    tree = branch_counts(parents)
    chain = _counts_from_depths(np.arange(1, tree.n + 1))
    return {
        "ltl": _ltl(tree),
        "ltdl": tree.D1 * DIV + tree.D2 * MULADD,
        "mul_ltl": tree.n * MUL + tree.D1 * MULADD,
        "mul_ltdl": tree.D1 * MULADD,
        "solve_ltl": tree.n * DIV + tree.D1 * MULADD,
        "solve_ltdl": tree.D1 * MULADD,
        "mul_h": tree.n * MUL + 2 * tree.D1 * MULADD,
        "back_ltl": _back_ltl(tree),
        "back_ltdl": tree.n * DIV + 2 * tree.D1 * MULADD,
        "cholesky": _ltl(chain),
        "mul_dense": chain.n * MUL + 2 * chain.D1 * MULADD,
        "back_cholesky": _back_ltl(chain),
    }


def _ltl(counts: BranchCounts) -> Cost:
    return counts.n * SQRT + counts.D1 * DIV + counts.D2 * MULADD


def _back_ltl(counts: BranchCounts) -> Cost:
    return 2 * counts.n * DIV + 2 * counts.D1 * MULADD


def compare_costs(parents: ArrayLike) -> ForwardCosts:
    """Predicts the costs of forward dynamics by RNE + CRB + LTDL and by the articulated-body algorithm.

    Args:
        parents: (n,) expanded parent array.

    Raises:
        ValueError: an invalid parent.

    Source: Featherstone, sec. 10.3, table 10.1, for each kinematic tree of n DoFs, with revolute joints and
    optimised code in link coordinates:
        RNE   (93 n - 69) mul + (81 n - 65) add
        CRB   D0 (32 mul + 43 add) + D1 (20 mul + 12 add), on a chain (10 n^2 + 22 n - 32) mul + (6 n^2 + 37 n - 43) add
        ABA   (224 n - 259) mul + (205 n - 248) add
    They give the ratio 2.6 that the 2005 paper states for a chain of 30 links.
    Differs: summed over separate trees; a tree of one DoF costs RNE and one division in both methods, as the ABA row
    is negative there.

    Note: each DoF counts as a link with a one-DoF joint. This overestimates joints of several DoFs, and code in world
    axes at one origin, which needs no transforms, has lower counts in all rows: a prediction, not a timing.
    """
    parents = check_parents(parents)
    tree, table = branch_counts(parents), cost_table(parents)
    rne, aba = Cost(), Cost()
    for n in _tree_sizes(parents):
        newton_euler = (93 * n - 69) * MUL + (81 * n - 65) * ADD
        rne += newton_euler
        aba += newton_euler + DIV if n == 1 else (224 * n - 259) * MUL + (205 * n - 248) * ADD
    crb = tree.D0 * (32 * MUL + 43 * ADD) + tree.D1 * (20 * MUL + 12 * ADD)
    return ForwardCosts(rne=rne, crb=crb, ltdl=table["ltdl"], solve=table["back_ltdl"], aba=aba)


def _tree_sizes(parents: np.ndarray) -> list[int]:
    """Returns the number of DoFs of each separate tree: a DoF at the base and its descendants."""
    root = np.arange(parents.size)
    for i, parent in enumerate(parents):
        if parent >= 0:
            root[i] = root[parent]
    return np.unique(root, return_counts=True)[1].tolist()


def choose_forward_dynamics(parents: ArrayLike) -> Literal["crb", "aba"]:
    """Returns the cheaper forward dynamics by `compare_costs`: "crb" (RNE + CRB + LTDL) or "aba"; on equality "crb".

    Args:
        parents: (n,) expanded parent array.

    Raises:
        ValueError: an invalid parent.
    """
    costs = compare_costs(parents)
    return "crb" if costs.crb_total.flops <= costs.aba.flops else "aba"
