"""Provides masks of awake trees for all stages: a sleeping tree has no contacts, rows or forces.

simulation/step/wake.py computes the masks tree_awake, body_awake (1 or 0 per world), and body_any_awake (an int: awake
in any world of the tile).  They exist only if the flag `sleep` is on: check `sleeping(m)` first.
Source: MuJoCo 4, chapter Simulation, "Sleeping islands".
"""

from featherlane.engine.prelude import *


@kernel
def sleeping(m):
    """Returns whether the flag `sleep` is on."""
    return m.opt_enableflags & ENABLE_SLEEP != 0


@kernel
def is_mocap(m, b):
    """Returns whether body b moves with a mocap body; such a body is awake."""
    return m.body_mocapid[m.body_rootid[b]] >= 0


@kernel
def pair_awake(d, b1, b2):
    """Returns the mask of worlds where body b1 or b2 is awake; other pairs, both asleep or static, have no contacts."""
    return (d.body_awake[b1] > 0.0) | (d.body_awake[b2] > 0.0)


@kernel
def tree_awake(d, t):
    """Returns the mask of worlds where tree t is awake."""
    return d.tree_awake[t] > 0.0


@kernel
def tendon_awake(m, d, i):
    """Returns the mask of worlds where a tree along tendon i is awake; all if it is along no tree or more than two.

    treenum: number of trees along the tendon;  treeid: the first two of them.
    """
    tendon = m.tendon[i]
    mask = true_mask(d)
    if tendon.treenum == 1:
        mask = tree_awake(d, tendon.treeid[0])
    elif tendon.treenum == 2:
        mask = tree_awake(d, tendon.treeid[0]) | tree_awake(d, tendon.treeid[1])
    return mask


@kernel
def held_awake(m, d, b1, b2):
    """Returns the mask of worlds where body b1 or b2, joined by a constraint, is awake.

    A body without a tree (treeid -1) is a mocap body, which is awake, or static, which is not.
    """
    mask = false_mask(d)
    for b in (b1, b2):
        if m.body_treeid[b] >= 0:
            mask = mask | tree_awake(d, m.body_treeid[b])
        elif is_mocap(m, b):
            mask = true_mask(d)
    return mask


@kernel
def either_asleep(d, t1, t2):
    """Returns the mask of worlds where tree t1 or t2 sleeps; -1 is no tree."""
    mask = false_mask(d)
    for t in (t1, t2):
        if t >= 0:
            mask = mask | (d.tree_awake[t] == 0.0)
    return mask


@kernel
def clear_asleep(m, d, x):
    """x_i <- 0 at the DoFs of sleeping trees; x is (nv,)."""
    for t in range(m.ntree):
        asleep = d.tree_awake[t] == 0.0
        if any_(asleep):
            for i in tree_dofs(m, t):
                x[i] = where(asleep, 0.0, x[i])
