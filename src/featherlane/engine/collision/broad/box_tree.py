"""Finds the near pairs of many geoms with a tree of bounding boxes, one world at a time.

If a model has too many pairs to list them at load time (a thousand free bodies have half a million), its bounded geoms
form a crowd.  Each step and world runs three phases:

order    sort the centres of the boxes along a space-filling curve (Morton's): neighbours in space are near in the list
build    build a complete binary tree over that list: node k holds the boxes of nodes 2k and 2k + 1
find     traverse pairs of nodes with overlapping boxes, from the root paired with itself down to pairs of leaves

If few geoms can move (a robot on rough ground), the tree holds the others alone.  It is kept for the next steps and
worlds as long as their boxes are the same, and each movable geom searches it.  The pairs are the same.

A world that is alone in its tile and continues its trajectory keeps a list of the pairs of enlarged boxes,
crowd.listed_box, and tests only these pairs as long as each geom's box is within its enlarged one.  The pairs are the
same again, because they are sorted.  crowd.pad is the enlargement of a box on each side.

The cost is O(n log n) plus the pairs, for geoms of any sizes.  The pairs of all worlds are merged and sorted
by a key that gives them MuJoCo's order:

    key = (body1 * nbody + body2) * K + rank,     K = npair + ngeom^2,
    rank = index of the explicit pair, or npair + geom1 * ngeom + geom2.

m1 and d1 are the model and the data of one world.  crowd_geom[i] is the geom with index i in the crowd, which has
ncrowd geoms.
An entry of crowd.listed is a pair of such indices, i << INDEX_BITS | j; crowd.nlist is 1 + their number, 0 without a
list, and -1 if the pairs did not fit.
The boxes of the current world are crowd.leaf_box[i], i the index in the crowd.  crowd.leaf_awake[i] is 1
for a geom that is awake (`load_awake`), or, without sleep, that can move (`mark_movable`).
Leaf i of `leaves`, a power of two, is node leaves + i.  A leaf is a position on the curve.  Its key is
(position on the curve) << INDEX_BITS | (index in the crowd).
An empty box has the bounds EMPTY to -EMPTY.
crowd.leaf_key holds the keys of the leaves, crowd.node_box the boxes of the nodes, and crowd.node_stack the nodes or
pairs of nodes that remain to be visited.  crowd.fixed is 1 if the tree holds the geoms that cannot move, with the boxes
crowd.fixed_box.  m.excluded_body and m.named_geom are the sorted pairs of bodies that are excluded, and of geoms that
have an explicit pair (m.pair_geom1, m.pair_geom2); m.filter_parent and m.sorted_by_type are options of the model.
Source: C. Lauterbach et al., "Fast BVH construction on GPUs" (2009), for the curve; the implicit tree is Featherlane's.
Sweep-and-prune is not used: on one axis it finds n^1.5 pairs in a flat crowd.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.bounds import EMPTY, boxes_overlap, empty_bounds, union_of
from featherlane.engine.dynamics.awake import sleeping
from featherlane.engine.lanes.sort import drop_repeats, sort, sort_digits

CELL_BITS = 10  # cells of the curve along each axis: 2^10
INDEX_BITS = 21  # geoms of a crowd: fewer than 2^21
FEW_MOVABLE = 8  # if fewer than one in 8 geoms can move, each of them searches a tree of the others


# ---- keys ----------------------------------------------------------------------------------------------------
@kernel
def pair_key(m, pair_id, geom1, geom2):
    """Returns the sort key of a pair of geoms.

    Keys ascend by the numbers of the bodies.  Of two bodies, explicit pairs come first, then pairs of geoms by number.
    geom1, geom2: ordered by type.   pair_id: index of the explicit pair, or -1.
    """
    body1, body2 = m.geom_bodyid[geom1], m.geom_bodyid[geom2]
    # the key has the lower body first; if pairs are not sorted by type, the geom of this body is geom1
    if body1 > body2:
        body1, body2 = body2, body1
        if not m.sorted_by_type:
            geom1, geom2 = geom2, geom1
    rank = pair_id if pair_id >= 0 else m.npair + geom1 * m.ngeom + geom2
    return (body1 * m.nbody + body2) * (m.npair + m.ngeom * m.ngeom) + rank


@kernel
def pair_of(m, key):
    """Returns (pair_id, geom1, geom2) of the pair with this key (`pair_key`), the geoms ordered by type."""
    rank = key % (m.npair + m.ngeom * m.ngeom)
    if rank < m.npair:
        pair_id, geom1, geom2 = rank, m.pair_geom1[rank], m.pair_geom2[rank]
    else:
        pair_id = -1
        geom1 = (rank - m.npair) // m.ngeom
        geom2 = (rank - m.npair) % m.ngeom
    if m.geom_type[geom1] > m.geom_type[geom2]:
        geom1, geom2 = geom2, geom1
    return pair_id, geom1, geom2


@kernel
def add_key(d, key):
    """Records the key of a near pair; sets con_overflow if the buffer is full.   Writes: near.key, near.count."""
    n = d.near.count[0]
    if n < d.nnear:
        d.near.key[n] = key
        d.near.count[0] = n + 1
    else:
        d.con_overflow[0] = 1


# ---- filters of candidate pairs, as in model/candidates.py --------------------------------------
@kernel
def is_listed(pairs, n, a, b):
    """Returns whether (a, b) is one of n sorted pairs (pairs[2 k], pairs[2 k + 1]), by bisection."""
    low = 0
    high = n
    while low < high:
        middle = (low + high) // 2
        if pairs[2 * middle] < a or (pairs[2 * middle] == a and pairs[2 * middle + 1] < b):
            low = middle + 1
        else:
            high = middle
    return low < n and pairs[2 * low] == a and pairs[2 * low + 1] == b


@kernel
def bodies_may_touch(m, a, b):
    """Returns whether bodies a and b are not welded together, at least one can move, and neither is the other's parent.

    Parent and child are excluded only with the option filter_parent, and never if the parent is the world.
    """
    # the body that stands for all bodies welded to it; 0: the world
    weld_a, weld_b = m.body_weldid[a], m.body_weldid[b]
    allowed = weld_a != weld_b and (m.body_dofnum[weld_a] > 0 or m.body_dofnum[weld_b] > 0)
    if allowed and m.filter_parent and weld_a != 0 and weld_b != 0:
        allowed = weld_a != m.body_weldid[m.body_parentid[weld_b]] and weld_b != m.body_weldid[m.body_parentid[weld_a]]
    return allowed


@kernel
def may_touch(m, g, h):
    """Returns whether geoms g and h pass the filters of candidate pairs.

    The filters are contype and conaffinity, welded and parent bodies, and excluded body pairs.  Two geoms with an
    explicit pair do not pass either.
    """
    types_match = (m.geom_contype[g] & m.geom_conaffinity[h]) | (m.geom_contype[h] & m.geom_conaffinity[g])
    a, b = m.geom_bodyid[g], m.geom_bodyid[h]
    # each pair in the lists has the lower index first
    if a > b:
        a, b = b, a
    if g > h:
        g, h = h, g
    return (
        types_match != 0
        and bodies_may_touch(m, a, b)
        and not is_listed(m.excluded_body, m.nexcluded, a, b)
        and not is_listed(m.named_geom, m.nnamed, g, h)
    )


# ---- the tree of one world ------------------------------------------------------------------------------------------
@kernel
def spread_bits(i):
    """Returns i, below 2^21, with two zero bits inserted before each bit (Morton code of one axis)."""
    # each line halves the groups of adjacent bits: it moves the upper half of a group up, by two bits for each bit of
    # the lower half
    i = (i | (i << 32)) & 0x1F00000000FFFF
    i = (i | (i << 16)) & 0x1F0000FF0000FF
    i = (i | (i << 8)) & 0x100F00F00F00F00F
    i = (i | (i << 4)) & 0x10C30C30C30C30C3
    return (i | (i << 2)) & 0x1249249249249249


@kernel
def order_leaves(m1, d1, box):
    """Sorts the crowd's geoms along the curve by the centres of their boxes.   Writes: crowd.leaf_key.

    box: bounds of the geoms, by index in the crowd.
    """
    for k in unrolled(range(3)):
        low, high = EMPTY, -EMPTY
        for i in range(m1.ncrowd):
            x = box[i][k] + box[i][3 + k]  # twice the centre
            low, high = fmin(x, low), fmax(x, high)
        scale = ((1 << CELL_BITS) - 1) / fmax(high - low, 1e-30)  # cells per metre; no division by 0
        for i in range(m1.ncrowd):
            x = box[i][k] + box[i][3 + k]
            # the bits of the three axes alternate: those of axis k are bits k, k + 3, k + 6, ...
            cell = spread_bits(whole(clip((x - low) * scale, 0.0, (1 << CELL_BITS) - 1))) << k
            d1.crowd.leaf_key[i] = cell << INDEX_BITS if k == 0 else d1.crowd.leaf_key[i] | (cell << INDEX_BITS)
    for i in range(m1.ncrowd):
        d1.crowd.leaf_key[i] = d1.crowd.leaf_key[i] | i  # the index in the crowd
    # radix sort by the bits of the position on the curve; leaf_room and digit_count are scratch arrays
    sort_digits(
        d1.crowd.leaf_key, d1.crowd.leaf_room, d1.crowd.digit_count, m1.ncrowd, INDEX_BITS, INDEX_BITS + 3 * CELL_BITS
    )


@kernel
def index_of_leaf(d, i):
    """Returns the index in the crowd of leaf i."""
    return d.crowd.leaf_key[i] & ((1 << INDEX_BITS) - 1)


@kernel
def build_tree(m1, d1, box, leaves, fixed):
    """Writes crowd.node_box: node k has the bounds of nodes 2k and 2k + 1, and leaf i is node leaves + i.

    Args:
        box: bounds of the geoms, by index in the crowd.
        leaves: number of leaves, a power of two; leaves without a geom are empty.
        fixed: 1 leaves out the geoms that crowd.leaf_awake marks.
    """
    for i in range(leaves):
        held = i < m1.ncrowd and (fixed == 0 or not is_awake(d1, i))
        d1.crowd.node_box[leaves + i] = box[index_of_leaf(d1, i)] if held else empty_bounds()
    # from the last inner node to the root, so that both children have their boxes
    for i in range(1, leaves):
        node = leaves - i
        d1.crowd.node_box[node] = union_of(d1.crowd.node_box[2 * node], d1.crowd.node_box[2 * node + 1])


@kernel
def push_node_pair(d, top, a, b, height):
    """Pushes nodes a and b of equal height on the stack if their boxes overlap; returns the new top.

    An entry of crowd.node_stack is (a, b, height above the leaves).
    """
    if boxes_overlap(d.crowd.node_box[a], d.crowd.node_box[b]):
        d.crowd.node_stack[3 * top], d.crowd.node_stack[3 * top + 1], d.crowd.node_stack[3 * top + 2] = a, b, height
        top += 1
    return top


@kernel
def add_leaf_pair(m, d, i, j):
    """Records the geoms of leaves i and j if their pair passes the filters."""
    add_pair(m, d, index_of_leaf(d, i), index_of_leaf(d, j))


@kernel
def add_pair(m, d, i, j):
    """Records the pair of geoms i and j of the crowd in near.key if it passes the filters of `may_touch`.

    i, j: indices in the crowd.  The geoms of a pair are ordered by type, and those of equal type by body.
    """
    geom1, geom2 = m.crowd_geom[i], m.crowd_geom[j]
    if may_touch(m, geom1, geom2):
        type1, type2 = m.geom_type[geom1], m.geom_type[geom2]
        if type1 > type2 or (type1 == type2 and m.geom_bodyid[geom1] > m.geom_bodyid[geom2]):
            geom1, geom2 = geom2, geom1
        add_key(d, pair_key(m, -1, geom1, geom2))  # -1: not an explicit pair


@kernel
def list_leaf_pair(d, i, j):
    """Appends the geoms of leaves i and j to crowd.listed; crowd.nlist becomes -1 if they do not fit."""
    n = d.crowd.nlist[0]
    if n > d.nnear:
        d.crowd.nlist[0] = -1
    elif n > 0:
        d.crowd.listed[n - 1] = (index_of_leaf(d, i) << INDEX_BITS) | index_of_leaf(d, j)
        d.crowd.nlist[0] = n + 1


@kernel
def find_pairs(m1, d1, leaves, depth, listing):
    """Records all pairs of leaves with overlapping boxes, by descending from the root paired with itself.

    Both nodes of a pair have the same height above the leaves, and a pair is replaced by the pairs of its children.
    depth: height of the root.   listing: 1 appends the pairs to crowd.listed, 0 records those that pass the filters.
    Scratch: crowd.node_stack.
    """
    # an entry of the stack has three values: both nodes, and their height above the leaves.   top: number of entries
    d1.crowd.node_stack[0], d1.crowd.node_stack[1] = 1, 1
    d1.crowd.node_stack[2] = depth
    top = 1
    while top > 0:
        top -= 1
        a, b, height = d1.crowd.node_stack[3 * top], d1.crowd.node_stack[3 * top + 1], d1.crowd.node_stack[3 * top + 2]
        if height > 0:
            top = push_node_pair(d1, top, 2 * a, 2 * b, height - 1)
            top = push_node_pair(d1, top, 2 * a, 2 * b + 1, height - 1)
            top = push_node_pair(d1, top, 2 * a + 1, 2 * b + 1, height - 1)
            if a != b:  # for a = b, this is the pair (2 a, 2 b + 1) again
                top = push_node_pair(d1, top, 2 * a + 1, 2 * b, height - 1)
        elif a != b:
            if listing:
                list_leaf_pair(d1, a - leaves, b - leaves)
            else:
                add_leaf_pair(m1, d1, a - leaves, b - leaves)


@kernel
def is_crowd_list_valid(m1, d1):
    """Returns whether a list exists, and each geom's box is within its enlarged box."""
    valid = d1.crowd.nlist[0] > 0
    for i in range(m1.ncrowd):
        box, wide = d1.crowd.leaf_box[i], d1.crowd.listed_box[i]
        for k in unrolled(range(3)):
            valid = valid & (box[k] >= wide[k]) & (box[3 + k] <= wide[3 + k])
    return valid


@kernel
def list_pairs(m1, d1, leaves, depth):
    """Lists the pairs of geoms whose boxes, enlarged by crowd.pad, overlap.

    Writes: crowd.listed, crowd.nlist, crowd.listed_box.
    """
    for i in range(m1.ncrowd):
        box, pad = d1.crowd.leaf_box[i], d1.crowd.pad[i]
        d1.crowd.listed_box[i] = join(box.low - Vec3(pad, pad, pad), box.high + Vec3(pad, pad, pad))
    order_leaves(m1, d1, d1.crowd.listed_box)
    build_tree(m1, d1, d1.crowd.listed_box, leaves, fixed=0)
    d1.crowd.nlist[0] = 1
    find_pairs(m1, d1, leaves, depth, listing=1)


@kernel
def find_listed_pairs(m1, d1):
    """Records the listed pairs whose boxes overlap now; returns 0, and records none, if near.key cannot hold them."""
    before, overflow = d1.near.count[0], d1.con_overflow[0]
    for p in range(d1.crowd.nlist[0] - 1):
        i, j = d1.crowd.listed[p] >> INDEX_BITS, d1.crowd.listed[p] & ((1 << INDEX_BITS) - 1)
        if boxes_overlap(d1.crowd.leaf_box[i], d1.crowd.leaf_box[j]):
            add_pair(m1, d1, i, j)
    fit = d1.con_overflow[0] == overflow
    if not fit:
        d1.near.count[0], d1.con_overflow[0] = before, overflow
    return fit


@kernel
def is_awake(d, i):
    """Returns whether the geom of leaf i is awake in the current world."""
    return d.crowd.leaf_awake[index_of_leaf(d, i)] != 0


@kernel
def find_pairs_of_awake(m1, d1, leaves):
    """Records the pairs of leaves with overlapping boxes and at least one awake geom.

    Each awake leaf i searches the tree from the root.
    """
    for i in range(m1.ncrowd):
        if is_awake(d1, i):
            d1.crowd.node_stack[0] = 1
            top = 1
            while top > 0:
                top -= 1
                node = d1.crowd.node_stack[top]
                if boxes_overlap(d1.crowd.node_box[node], d1.crowd.node_box[leaves + i]):
                    if node < leaves:
                        d1.crowd.node_stack[top] = 2 * node
                        d1.crowd.node_stack[top + 1] = 2 * node + 1
                        top += 2
                    # node is leaf j = node - leaves; of two awake leaves, the lower one records the pair
                    elif node - leaves > i or (node - leaves < i and not is_awake(d1, node - leaves)):
                        add_leaf_pair(m1, d1, i, node - leaves)


@kernel
def mark_movable(m1, d1):
    """Sets crowd.leaf_awake to 1 for geoms that can move, else to 0; returns the number of geoms that can move."""
    count = 0
    for i in range(m1.ncrowd):
        weld = m1.body_weldid[m1.geom_bodyid[m1.crowd_geom[i]]]
        d1.crowd.leaf_awake[i] = 1 if m1.body_dofnum[weld] > 0 else 0
        count += d1.crowd.leaf_awake[i]
    return count


@kernel
def keep_fixed_boxes(m1, d1):
    """Stores the boxes of the geoms that cannot move in crowd.fixed_box.

    Returns 1 if a tree of these geoms with these boxes exists, else 0.
    """
    is_kept = d1.crowd.fixed[0]  # 1: crowd.node_box is a tree of the geoms that cannot move
    for i in range(m1.ncrowd):
        if d1.crowd.leaf_awake[i] == 0:
            box, old_box = d1.crowd.leaf_box[i], d1.crowd.fixed_box[i]
            d1.crowd.fixed_box[i] = box
            for k in unrolled(range(6)):
                if box[k] != old_box[k]:
                    is_kept = 0
    return is_kept


@kernel
def find_pairs_of_movable(m1, d1, leaves):
    """Records the overlapping pairs of movable geoms, and of a movable geom and one in the tree, which cannot move."""
    for i in range(m1.ncrowd):
        if d1.crowd.leaf_awake[i] != 0:
            for j in range(i + 1, m1.ncrowd):
                if d1.crowd.leaf_awake[j] != 0 and boxes_overlap(d1.crowd.leaf_box[i], d1.crowd.leaf_box[j]):
                    add_pair(m1, d1, i, j)
            d1.crowd.node_stack[0] = 1
            top = 1
            while top > 0:
                top -= 1
                node = d1.crowd.node_stack[top]
                if boxes_overlap(d1.crowd.node_box[node], d1.crowd.leaf_box[i]):
                    if node < leaves:
                        d1.crowd.node_stack[top] = 2 * node
                        d1.crowd.node_stack[top + 1] = 2 * node + 1
                        top += 2
                    else:
                        add_pair(m1, d1, i, index_of_leaf(d1, node - leaves))


@stage
def crowd_pairs(m1, d1, keeps):
    """Appends the keys of the crowd's pairs that are near in one world.

    With sleep enabled, at least one geom of each pair must be awake.
    keeps: 1 uses and keeps the list of pairs (`list_pairs`), which needs crowd.pad.
    Reads:  crowd.leaf_box (ncrowd, 6), crowd.leaf_awake, crowd.pad.
    Writes: near.*, con_overflow; crowd.*.
    Cost:   O(n log n + pairs); with few movable geoms O(n), mostly the comparison of n boxes with those of the tree.
    """
    depth = 0
    while 1 << depth < m1.ncrowd:
        depth += 1
    leaves = 1 << depth
    if not sleeping(m1) and mark_movable(m1, d1) * FEW_MOVABLE < m1.ncrowd:
        # the tree of the geoms that cannot move is kept from step to step
        if not keep_fixed_boxes(m1, d1):
            order_leaves(m1, d1, d1.crowd.fixed_box)
            build_tree(m1, d1, d1.crowd.fixed_box, leaves, fixed=1)
            d1.crowd.fixed[0] = 1
        find_pairs_of_movable(m1, d1, leaves)
    else:
        done = False
        if keeps:
            if d1.crowd.nlist[0] >= 0 and not is_crowd_list_valid(m1, d1):
                list_pairs(m1, d1, leaves, depth)
            if d1.crowd.nlist[0] > 0:
                done = find_listed_pairs(m1, d1)
        # in this order, pairs that do not fit are dropped the same way with and without a list
        if not done:
            order_leaves(m1, d1, d1.crowd.leaf_box)
            build_tree(m1, d1, d1.crowd.leaf_box, leaves, fixed=0)
            d1.crowd.fixed[0] = 0
            if sleeping(m1):
                find_pairs_of_awake(m1, d1, leaves)
            else:
                find_pairs(m1, d1, leaves, depth, listing=0)


@kernel
def load_awake(m, d, lane):
    """Sets crowd.leaf_awake to 1 for geoms that are awake in one world, else to 0; returns their number."""
    count = 0
    for i in range(m.ncrowd):
        d.crowd.leaf_awake[i] = 1 if has(d.body_awake[m.geom_bodyid[m.crowd_geom[i]]] > 0.0, lane) else 0
        count += d.crowd.leaf_awake[i]
    return count


@stage
def unite_pairs(m1, d1):
    """Sorts the keys of all worlds in ascending order and removes duplicates.

    Reads:  near.key (nnear,), near.count.
    Writes: near.key, near.count.
    Scratch: near.room.
    """
    sort(d1.near.key, d1.near.room, d1.near.count[0])
    # drop_repeats returns the number of keys that remain
    d1.near.count[0] = drop_repeats(d1.near.key, d1.near.count[0])
