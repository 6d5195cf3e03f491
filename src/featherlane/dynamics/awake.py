"""Which trees are awake, as masks that every pass may ask for: a tree that sleeps has no contacts, rows or forces.

The masks are made by simulation/step/wake.py, and exist where the flag `sleep` is on: ask `sleeping(m)` first.
Source: MuJoCo 4, chapter Simulation, "Sleeping islands".
"""

from featherlane.prelude import *


@kernel
def sleeping(m):
    """Is the flag `sleep` on?"""
    return m.opt_enableflags & ENABLE_SLEEP != 0


@kernel
def is_mocap(m, b):
    """Does body b move with a mocap body?  Such a body is awake."""
    return m.body_mocapid[m.body_rootid[b]] >= 0


@kernel
def stirs(d, a, b):
    """Is one of two bodies awake in any world of the tile?"""
    return d.body_stirs[a] != 0 or d.body_stirs[b] != 0


@kernel
def pair_awake(d, a, b):
    """Mask: is one of two bodies awake?  Others do not touch: both sleep, or one of them does and one is static."""
    return (d.body_awake[a] > 0.0) | (d.body_awake[b] > 0.0)


@kernel
def tree_awake(d, t):
    """Mask: is tree t awake?"""
    return d.tree_awake[t] > 0.0


@kernel
def tendon_awake(m, d, i):
    """Mask: is one of the trees along tendon i awake?  Those of a tendon past more than two never sleep."""
    mask = d.active[0] >= 0.0
    if m.tendon_treenum[i] == 1:
        mask = tree_awake(d, m.tendon_treeid[2 * i])
    elif m.tendon_treenum[i] == 2:
        mask = tree_awake(d, m.tendon_treeid[2 * i]) | tree_awake(d, m.tendon_treeid[2 * i + 1])
    return mask


@kernel
def held_awake(m, d, b1, b2):
    """Mask: is one of two bodies that a constraint fastens awake?"""
    t1, t2 = m.body_treeid[b1], m.body_treeid[b2]
    mask = d.active[0] < 0.0
    if t1 >= 0:
        mask = mask | (d.tree_awake[t1] > 0.0)
    if t2 >= 0:
        mask = mask | (d.tree_awake[t2] > 0.0)
    if (t1 < 0 and is_mocap(m, b1)) or (t2 < 0 and is_mocap(m, b2)):
        mask = d.active[0] >= 0.0
    return mask


@kernel
def clear_asleep(m, d, x):
    """x_i <- 0 at the dofs of trees that sleep."""
    for t in range(m.ntree):
        asleep = d.tree_awake[t] == 0.0
        if any_(asleep):
            for i in range(m.tree_dofadr[t], m.tree_dofadr[t] + m.tree_dofnum[t]):
                x[i] = where(asleep, 0.0, x[i])
