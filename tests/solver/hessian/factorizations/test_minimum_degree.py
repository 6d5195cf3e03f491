"""Minimum degree, an order with little fill-in: bits, lists of degrees, and elimination, by sets."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian.factorizations.minimum_degree import (
    WORD_BITS,
    clear_graph,
    count_in_model_order,
    count_neighbours,
    couple_trees,
    lowest_bit,
    order_trees,
)
from oracles.uncompiled import call, record

SIZES = (5, 62, 63, 130)


def graph(n, rng, edges):
    words = -(-n // WORD_BITS)
    tables = {name: np.zeros(n, int) for name in ("degree", "head", "next", "prev", "order", "position")}
    d = record(
        1, ngraph=n, ngraphword=words, graph={"bits": np.full(n * words, 7), **tables}, panel={"cost": np.zeros(2)}
    )
    call(clear_graph, None, d)
    assert not d.graph.bits.array.any()
    pairs = {tuple(sorted(map(int, rng.choice(n, 2, False)))) for _ in range(edges)}
    for t, u in pairs:
        call(couple_trees, None, d, u, t)
    near = [{u for pair in pairs if t in pair for u in pair if u != t} for t in range(n)]
    return record(1, tree_dofnum=rng.integers(1, 8, n)), d, near


def neighbours(d, t):
    words = d.graph.bits.array[t * d.ngraphword : (t + 1) * d.ngraphword]
    return {w * WORD_BITS + b for w, x in enumerate(words) for b in range(WORD_BITS) if int(x) >> b & 1}


@pytest.mark.parametrize("n", SIZES)
def test_the_tree_with_fewest_neighbours_is_eliminated_first(n):
    """Elimination also leaves the tree's row of the factor in the graph: its neighbours at that moment."""
    _, d, near = graph(n, np.random.default_rng(n), 2 * n)
    for t in range(n):
        assert neighbours(d, t) == near[t] and call(count_neighbours, d, t) == len(near[t])
    call(order_trees, None, d)
    order = [*map(int, d.graph.order.array)]
    assert sorted(order) == [*range(n)] and [order[p] for p in d.graph.position.array] == [*range(n)]
    left = {*range(n)}
    for t in order:
        assert len(near[t]) == min(len(near[u]) for u in left)
        assert neighbours(d, t) == near[t] and d.graph.degree[t] == len(near[t])
        left.remove(t)
        for u in near[t]:
            near[u] = (near[u] | near[t]) - {t, u}


@pytest.mark.parametrize("n", SIZES)
def test_the_cost_in_the_models_order_counts_the_fill_in(n):
    m, d, near = graph(n, np.random.default_rng(n), 2 * n)
    size, plain, total = m.tree_dofnum.array, 0.0, 0.0

    def cost(t, row):
        width = size[t] + sum(size[u] for u in row)
        return 0.5 * size[t] * width * width if row else 0.0

    for t in range(n):
        plain += cost(t, {u for u in near[t] if u < t})
    for t in range(n - 1, -1, -1):
        total += cost(t, near[t])
        for u in near[t]:
            near[u] = (near[u] | near[t]) - {t, u}
    call(count_in_model_order, m, d)
    np.testing.assert_allclose(d.panel.cost.array[:, 0], [total, plain], rtol=1e-14)
    assert total >= plain


def test_lowest_bit():
    for x in (1, 2, 3, 1 << 61, (1 << 61) + (1 << 17), 0b1011000, (1 << 62) - 1):
        assert 1 << call(lowest_bit, x) == x & -x
