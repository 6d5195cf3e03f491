"""Elimination order with little fill-in: minimum degree on the graph of a world's trees.

Nodes are kinematic trees, edges are the couplings of one world.  The node with the fewest neighbours is eliminated
first; its neighbours at that time are its row of the factor, and become neighbours of each other.  A node's neighbours
are stored as bits of a few words.
Source: A. George and J. W. H. Liu, "The evolution of the minimum degree ordering algorithm", SIAM Review 31 (1989).
"""

from featherlane.prelude import *

WORD_BITS = 62  # of a signed 64-bit number


@kernel
def low_bit(x):
    """Returns the number of the lowest set bit of a word."""
    return count_ones((x & -x) - 1)


@kernel
def clear_graph(m, d):
    """Clears the graph: no tree is coupled to another one."""
    for k in range(d.ngraph * d.ngraphword):
        d.graph.bits[k] = 0


@kernel
def couple_trees(m, d, t, u):
    """Couples trees t and u."""
    a, b = t * d.ngraphword + u // WORD_BITS, u * d.ngraphword + t // WORD_BITS
    one = d.graph.bits[a] * 0 + 1
    d.graph.bits[a] = d.graph.bits[a] | (one << (u % WORD_BITS))
    d.graph.bits[b] = d.graph.bits[b] | (one << (t % WORD_BITS))


@kernel
def degree(d1, t):
    """Returns the number of neighbours of tree t."""
    n, a = 0, t * d1.ngraphword
    for w in range(d1.ngraphword):
        n += count_ones(d1.graph.bits[a + w])
    return n


@kernel
def enlist(d1, t, n):
    """Inserts tree t at the head of the list of trees with n neighbours."""
    head = d1.graph.head[n]
    d1.graph.degree[t] = n
    d1.graph.prev[t] = -1
    d1.graph.next[t] = head
    if head >= 0:
        d1.graph.prev[head] = t
    d1.graph.head[n] = t


@kernel
def delist(d1, t):
    """Removes tree t from the list of its degree."""
    before, behind = d1.graph.prev[t], d1.graph.next[t]
    if before >= 0:
        d1.graph.next[before] = behind
    else:
        d1.graph.head[d1.graph.degree[t]] = behind
    if behind >= 0:
        d1.graph.prev[behind] = before


@kernel
def merge_neighbours(d1, t, u):
    """Adds the neighbours of t to those of u, and removes t."""
    a, b = t * d1.ngraphword, u * d1.ngraphword
    for x in range(d1.ngraphword):
        d1.graph.bits[b + x] = d1.graph.bits[b + x] | d1.graph.bits[a + x]
    one = d1.graph.bits[a] * 0 + 1
    c, e = b + t // WORD_BITS, b + u // WORD_BITS
    d1.graph.bits[c] = d1.graph.bits[c] & ~(one << (t % WORD_BITS))
    d1.graph.bits[e] = d1.graph.bits[e] & ~(one << (u % WORD_BITS))


@kernel
def eliminate_tree(d1, t):
    """Makes t's neighbours neighbours of each other, and removes t from them; returns the lowest of their degrees."""
    a, lowest = t * d1.ngraphword, d1.ngraph
    for w in range(d1.ngraphword):
        left = d1.graph.bits[a + w]
        while left != 0:
            u = w * WORD_BITS + low_bit(left)
            left = left & (left - 1)
            merge_neighbours(d1, t, u)
            delist(d1, u)
            n = degree(d1, u)
            enlist(d1, u, n)
            lowest = n if n < lowest else lowest
    return lowest


@stage
def order_trees(m1, d1):
    """Computes graph.order: trees by elimination; graph.place: the place of each; graph: the rows of the factor.

    Reads:  graph.bits (ngraph, ngraphword).
    Writes: graph.*, graph.place (ngraph,).
    Cost:   O(entries of the factor times words of a row).
    """
    for n in range(d1.ngraph):
        d1.graph.head[n] = -1
    for t in range(d1.ngraph):
        enlist(d1, t, degree(d1, t))
    lowest = 0
    for k in range(d1.ngraph):
        while d1.graph.head[lowest] < 0:
            lowest += 1
        t = d1.graph.head[lowest]
        delist(d1, t)
        d1.graph.order[k] = t
        d1.graph.place[t] = k
        least = eliminate_tree(d1, t)
        lowest = least if least < lowest else lowest


@kernel
def row_width(m1, d1, t, end):
    """Returns the number of dofs of tree t and of its neighbours before tree `end`."""
    n, a = m1.tree_dofnum[t], t * d1.ngraphword
    for w in range(d1.ngraphword):
        left = d1.graph.bits[a + w]
        while left != 0:
            u = w * WORD_BITS + low_bit(left)
            left = left & (left - 1)
            if u < end:
                n += m1.tree_dofnum[u]
    return n


@stage
def count_in_model_order(m1, d1):
    """Computes panel.cost: multiplications of a factor in the model's order, from the last tree; and without fill-in.

    Rows of trees without couplings to later trees are not counted: no order changes them.
    Reads:  graph.bits (ngraph, ngraphword).   Writes: panel.cost (2,); graph.bits, which it overwrites.
    """
    total, plain = 0.0, 0.0
    for t in range(d1.ngraph):
        size, n = m1.tree_dofnum[t], row_width(m1, d1, t, t)
        if n > size:
            plain = plain + 0.5 * size * n * n
    for k in range(d1.ngraph):
        t = d1.ngraph - 1 - k
        size, n, a = m1.tree_dofnum[t], row_width(m1, d1, t, t), t * d1.ngraphword
        for w in range(d1.ngraphword):
            left = d1.graph.bits[a + w]
            while left != 0:
                u = w * WORD_BITS + low_bit(left)
                left = left & (left - 1)
                merge_neighbours(d1, t, u)
        if n > size:
            total = total + 0.5 * size * n * n
    d1.panel.cost[0] = total
    d1.panel.cost[1] = plain
