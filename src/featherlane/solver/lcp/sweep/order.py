"""Order in which a sweep visits rows: by row number, or as in ODE's QuickStep.

QuickStep visits rows without findex first, then those of friction.  At sweeps 8, 16, ... all rows are shuffled by a
generator whose state is `lcp.seed`.  The order is the same in all worlds of a tile.
Source: ODE 0.16 dWorldQuickStep, dRandInt (checked against the library for bounds up to 2^16 and beyond).
"""

from featherlane.prelude import *

PERIOD = 8  # sweeps between two shuffles
MULTIPLIER, INCREMENT, MASK = 1664525, 1013904223, (1 << 32) - 1


@kernel
def random_below(r, n):
    """Returns an integer below n from 32 random bits: high bits are folded onto the few low ones that n needs."""
    if n > 1 << 16:
        v = (r * n) >> 32
    elif n > 1 << 8:
        v = (((r ^ (r >> 16)) & 0xFFFF) * n) >> 16
    else:
        r = r ^ (r >> 16)
        r = r ^ (r >> 8)
        if n > 16:
            v = ((r & 0xFF) * n) >> 8
        else:
            r = r ^ (r >> 4)
            if n > 4:
                v = ((r & 0xF) * n) >> 4
            else:
                r = r ^ (r >> 2)
                if n > 2:
                    v = ((r & 3) * n) >> 2
                else:
                    v = (r ^ (r >> 1)) & 1 & (n >> 1)
    return v


@kernel
def start_order(p, quickstep):
    """Sets the order by row number, or friction behind all others; returns how many."""
    n, at = p.lcp.n[0], 0
    for i in range(n):
        if quickstep == 0 or p.lcp.findex[i] < 0:
            p.lcp.order[at] = i
            at += 1
    if quickstep != 0:
        for i in range(n):
            if p.lcp.findex[i] >= 0:
                p.lcp.order[at] = i
                at += 1
    return n


@kernel
def shuffle_order(p, sweep):
    """Shuffles all rows at every eighth sweep except the first one."""
    if sweep % PERIOD == 0 and sweep > 0:
        for k in range(1, p.lcp.n[0]):
            seed = (p.lcp.seed[0] * MULTIPLIER + INCREMENT) & MASK
            p.lcp.seed[0] = seed
            j = random_below(seed, k + 1)
            i = p.lcp.order[k]
            p.lcp.order[k] = p.lcp.order[j]
            p.lcp.order[j] = i
