"""Branch-induced sparsity: factors, products and costs for any matrix with the pattern of a kinematic tree.

NumPy only, and independent of models: a tree is a *parent array*, `parents[i] < i`, with -1 for a DoF attached to the
base (0-based, as MuJoCo's `dof_parentid`); `from_book` converts the 1-based arrays of the literature.  Matrices are
dense `(..., n, n)` arrays, of which only the tree's pattern on and below the diagonal is read or written.

Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.4-6.5, tables 6.3-6.6, and sec. 10.3.
"""

from featherlane.tree.cost import (
    BranchCounts,
    Cost,
    ForwardCosts,
    branch_counts,
    choose_forward_dynamics,
    compare_costs,
    cost_table,
)
from featherlane.tree.factor import ltdl, ltl
from featherlane.tree.inertia import inertia_from_inverse_dynamics
from featherlane.tree.operation import mul_h, mul_l, mul_lt, solve, solve_l, solve_lt
from featherlane.tree.parent import (
    check_parents,
    check_sparsity,
    depth,
    expand_parents,
    from_book,
    sparsity,
    subtree,
    support,
    to_book,
)

__all__ = [  # noqa: RUF022  in groups
    # parent arrays
    "check_parents",
    "depth",
    "expand_parents",
    "from_book",
    "subtree",
    "support",
    "to_book",
    # sparsity patterns
    "check_sparsity",
    "sparsity",
    # factorizations and products
    "ltdl",
    "ltl",
    "mul_h",
    "mul_l",
    "mul_lt",
    "solve",
    "solve_l",
    "solve_lt",
    # inertia matrix
    "inertia_from_inverse_dynamics",
    # operation counts
    "BranchCounts",
    "Cost",
    "ForwardCosts",
    "branch_counts",
    "choose_forward_dynamics",
    "compare_costs",
    "cost_table",
]
