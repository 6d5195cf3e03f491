"""Costs: the table against counted operations of a run, and published comparisons."""

import numpy as np
import pytest
from hypothesis import given, settings

from featherlane import tree
from scenes.parents import counted, parent_arrays, paths_to_base, random_inertia

BOOK = tree.from_book((0, 1, 2, 3, 1, 4, 4, 5))


def chain(n):
    return np.arange(-1, n - 1)


def operations(function, parents, *arrays, **options):
    """Returns the counted cost of a call."""
    tally = {}
    function(counted(arrays[0], tally), parents, *(counted(array, tally) for array in arrays[1:]), **options)
    return tree.Cost(**tally)


@settings(max_examples=30)
@given(parent_arrays(max_size=9))
def test_the_table_equals_the_operations_of_a_run(parents):
    H, y = random_inertia(parents, 1), np.ones(parents.size)
    table, (U, _) = tree.cost_table(parents), tree.ltdl(H, parents)
    L = tree.ltl(H, parents)
    assert operations(tree.ltl, parents, H) == table["ltl"]
    assert operations(tree.ltdl, parents, H) == table["ltdl"]
    assert operations(tree.mul_h, parents, H, y) == table["mul_h"]
    for kind, functions in (("mul", (tree.mul_l, tree.mul_lt)), ("solve", (tree.solve_l, tree.solve_lt))):
        for function in functions:
            assert operations(function, parents, L, y) == table[f"{kind}_ltl"]
            assert operations(function, parents, U, y, unit=True) == table[f"{kind}_ltdl"]
    for name in ("ltl", "ltdl"):
        whole = operations(tree.solve, parents, H, y, factorization=name)
        assert whole == table[name] + table[f"back_{name}"]


@given(parent_arrays())
def test_counts_equal_their_definition(parents):
    depths = [len(path) for path in paths_to_base(parents)]
    counts = tree.branch_counts(parents)
    D0 = sum(min(1, d - 1) for d in depths)
    D1 = sum(d - 1 for d in depths)
    D2 = sum(d * (d - 1) // 2 for d in depths)
    assert counts == tree.BranchCounts(n=parents.size, D0=D0, D1=D1, D2=D2)
    assert np.count_nonzero(np.tril(tree.sparsity(parents), -1)) == D1


def test_counts_of_the_book_s_tree():
    # depths 1 2 3 4 2 5 5 3
    assert tree.branch_counts(BOOK) == tree.BranchCounts(n=8, D0=7, D1=17, D2=34)
    assert tree.cost_table(BOOK)["ltl"] == tree.Cost(sqrt=8, div=17, mul=34, add=34)


@given(parent_arrays())
def test_no_tree_costs_more_than_the_dense_matrix(parents):
    table, dense = tree.cost_table(parents), tree.cost_table(chain(parents.size))
    for sparse, full in (("ltl", "cholesky"), ("mul_h", "mul_dense"), ("back_ltl", "back_cholesky")):
        assert table[sparse].flops <= table[full].flops
        assert dense[sparse] == dense[full] == table[full]


def test_dense_costs_are_the_textbook_s():
    n = 7
    table = tree.cost_table(chain(n))
    assert table["cholesky"] == tree.Cost(sqrt=n, div=n * (n - 1) // 2, mul=(n**3 - n) // 6, add=(n**3 - n) // 6)
    assert table["mul_dense"] == tree.Cost(mul=n * n, add=n * (n - 1))
    assert tree.cost_table([])["cholesky"] == tree.Cost()


def test_a_chain_s_composite_cost_is_the_published_polynomial():
    for n in (1, 2, 30):
        crb = tree.compare_costs(chain(n)).crb
        assert crb == tree.Cost(mul=10 * n * n + 22 * n - 32, add=6 * n * n + 37 * n - 43)


def test_thirty_links_in_a_chain_cost_2_6_times_the_articulated_body_algorithm():
    # Featherstone, IJRR 24(6), 2005, abstract
    assert round(tree.compare_costs(chain(30)).ratio, 1) == 2.6


def test_short_chains_choose_crb_and_long_ones_aba():
    choices = [tree.choose_forward_dynamics(chain(n)) for n in range(31)]
    # n = 7: 2430 against 2496 operations; n = 8: 2995 against 2925
    assert [tree.compare_costs(chain(n)).crb_total.flops for n in (7, 8)] == [2430, 2995]
    assert [tree.compare_costs(chain(n)).aba.flops for n in (7, 8)] == [2496, 2925]
    assert choices == ["crb"] * 8 + ["aba"] * 23


def test_branches_make_crb_cheaper():
    # thirty dofs: five limbs of five on the end of a spine of five
    limbs = np.arange(-1, 29)
    limbs[5::5] = 4
    assert tree.compare_costs(limbs).ratio < 0.6 * tree.compare_costs(chain(30)).ratio


@pytest.mark.parametrize("n", [0, 1, 50])
def test_single_joints_on_the_base_choose_crb(n):
    costs = tree.compare_costs(np.full(n, -1))
    assert costs.crb_total.flops == costs.aba.flops
    assert costs.ratio == 1.0
    assert tree.choose_forward_dynamics(np.full(n, -1)) == "crb"


def test_separate_trees_add_up():
    pair = np.concatenate([chain(6), np.r_[-1, 6:11]])
    one, two = tree.compare_costs(chain(6)), tree.compare_costs(pair)
    assert two.aba == one.aba + one.aba
    assert two.crb_total == one.crb_total + one.crb_total
