"""Elimination order with little fill-in: minimum degree on the graph of a world's trees.

Nodes are kinematic trees, edges are the couplings of one world.  The node with the fewest neighbours is eliminated
first; its neighbours at that time are its row of the factor, and become neighbours of each other.
Layout: a node's neighbours are stored as bits of ngraphword words.  Row t of graph.bits begins at t * ngraphword; tree
u is bit u % WORD_BITS of word u // WORD_BITS.  Trees with n neighbours are a doubly linked list: graph.head[n], then
graph.next, and graph.prev backward, -1 at both ends.  graph.degree[t]: number of neighbours;  ngraph: number of trees.
Record d1: the buffers of one world at a time.  tree_dofnum[t]: number of dofs of tree t.
Source: A. George and J. W. H. Liu, "The evolution of the minimum degree ordering algorithm", SIAM Review 31 (1989).
"""

from featherlane.engine.prelude import *

WORD_BITS = 62  # of a signed 64-bit number


@kernel
def lowest_bit(x):
    """Returns the position of the lowest set bit of a word."""
    return count_ones((x & -x) - 1)  # x & -x: its lowest set bit; minus 1: all bits below


@kernel
def clear_graph(m, d):
    """Removes all couplings from the graph."""
    for k in range(d.ngraph * d.ngraphword):
        d.graph.bits[k] = 0


@kernel
def couple_trees(m, d, t, u):
    """Couples trees t and u: sets bit u in the row of t, and bit t in the row of u."""
    word_t, word_u = t * d.ngraphword + u // WORD_BITS, u * d.ngraphword + t // WORD_BITS
    word_of_one = d.graph.bits[word_t] * 0 + 1  # the number 1 with the type of the words
    d.graph.bits[word_t] = d.graph.bits[word_t] | (word_of_one << (u % WORD_BITS))
    d.graph.bits[word_u] = d.graph.bits[word_u] | (word_of_one << (t % WORD_BITS))


@kernel
def count_neighbours(d1, t):
    """Returns the number of neighbours of tree t."""
    n = 0
    row = t * d1.ngraphword
    for w in range(d1.ngraphword):
        n += count_ones(d1.graph.bits[row + w])
    return n


@kernel
def insert_in_degree_list(d1, t, n):
    """Inserts tree t at the head of the list of trees with n neighbours."""
    head = d1.graph.head[n]
    d1.graph.degree[t] = n
    d1.graph.prev[t] = -1
    d1.graph.next[t] = head
    if head >= 0:
        d1.graph.prev[head] = t
    d1.graph.head[n] = t


@kernel
def remove_from_degree_list(d1, t):
    """Removes tree t from the list of trees with its number of neighbours."""
    before, behind = d1.graph.prev[t], d1.graph.next[t]
    if before >= 0:
        d1.graph.next[before] = behind
    else:
        d1.graph.head[d1.graph.degree[t]] = behind
    if behind >= 0:
        d1.graph.prev[behind] = before


@kernel
def merge_neighbours(d1, t, u):
    """Adds the neighbours of t to those of u, and removes t and u itself from them."""
    row_t, row_u = t * d1.ngraphword, u * d1.ngraphword
    for w in range(d1.ngraphword):
        d1.graph.bits[row_u + w] = d1.graph.bits[row_u + w] | d1.graph.bits[row_t + w]
    word_of_one = d1.graph.bits[row_t] * 0 + 1  # the number 1 with the type of the words
    # clear bits t and u in the row of u
    word_of_t, word_of_u = row_u + t // WORD_BITS, row_u + u // WORD_BITS
    d1.graph.bits[word_of_t] = d1.graph.bits[word_of_t] & ~(word_of_one << (t % WORD_BITS))
    d1.graph.bits[word_of_u] = d1.graph.bits[word_of_u] & ~(word_of_one << (u % WORD_BITS))


@kernel
def eliminate_tree(d1, t):
    """Makes t's neighbours neighbours of each other, and removes t from them; returns the lowest of their degrees.

    The degree of a tree is its number of neighbours.  Each neighbour moves to the list of its new degree.
    """
    row = t * d1.ngraphword
    lowest = d1.ngraph
    for w in range(d1.ngraphword):
        bits = d1.graph.bits[row + w]
        while bits != 0:
            u = w * WORD_BITS + lowest_bit(bits)
            bits = bits & (bits - 1)  # clears the lowest bit
            merge_neighbours(d1, t, u)
            remove_from_degree_list(d1, u)
            n = count_neighbours(d1, u)
            insert_in_degree_list(d1, u, n)
            lowest = n if n < lowest else lowest
    return lowest


@stage
def order_trees(m1, d1):
    """Computes the elimination order: graph.order lists the trees, graph.position[t] is the number of tree t in it.

    Afterwards, row t of graph.bits is the row of t in the factor: the neighbours of t when it was eliminated.
    Reads:  graph.bits (ngraph, ngraphword).
    Writes: graph.*, graph.position (ngraph,).
    Cost:   O(entries of the factor times words of a row).
    """
    for n in range(d1.ngraph):
        d1.graph.head[n] = -1
    for t in range(d1.ngraph):
        insert_in_degree_list(d1, t, count_neighbours(d1, t))
    lowest = 0  # no list below this degree has a tree
    for k in range(d1.ngraph):
        while d1.graph.head[lowest] < 0:
            lowest += 1
        t = d1.graph.head[lowest]
        remove_from_degree_list(d1, t)
        d1.graph.order[k] = t
        d1.graph.position[t] = k
        lowest_neighbour = eliminate_tree(d1, t)  # removes t from the rows of its neighbours in graph.bits
        lowest = lowest_neighbour if lowest_neighbour < lowest else lowest


@kernel
def row_width(m1, d1, t):
    """Returns the number of dofs of tree t and of its neighbours u < t."""
    dofs = m1.tree_dofnum[t]
    row = t * d1.ngraphword
    for w in range(t // WORD_BITS + 1):
        bits = d1.graph.bits[row + w]
        while bits != 0:
            u = w * WORD_BITS + lowest_bit(bits)
            bits = bits & (bits - 1)  # clears the lowest bit
            if u < t:
                dofs += m1.tree_dofnum[u]
    return dofs


@stage
def count_in_model_order(m1, d1):
    """Computes panel.cost: the multiplications of a factor in the model's order, and without its fill-in.

    The model's order is from the last tree to the first, so the row of tree t has its neighbours u < t.  Trees without
    such neighbours are not counted.
    Reads:  graph.bits (ngraph, ngraphword).   Writes: panel.cost (2,); graph.bits, which it overwrites.
    """
    # a tree with s dofs and n columns costs s n^2 / 2
    with_fill, without_fill = 0.0, 0.0
    for t in range(d1.ngraph):
        size = m1.tree_dofnum[t]
        n = row_width(m1, d1, t)
        if n > size:  # the tree has a neighbour u < t
            without_fill = without_fill + 0.5 * size * n * n
    for k in range(d1.ngraph):
        t = d1.ngraph - 1 - k  # the model's order: from the last tree
        size = m1.tree_dofnum[t]
        n = row_width(m1, d1, t)
        row = t * d1.ngraphword
        # the neighbours of t become neighbours of each other: fill-in.  Higher ones are eliminated
        for w in range(t // WORD_BITS + 1):
            bits = d1.graph.bits[row + w]
            while bits != 0:
                u = w * WORD_BITS + lowest_bit(bits)
                bits = bits & (bits - 1)  # clears the lowest bit
                merge_neighbours(d1, t, u)
        if n > size:
            with_fill = with_fill + 0.5 * size * n * n
    d1.panel.cost[0] = with_fill
    d1.panel.cost[1] = without_fill
