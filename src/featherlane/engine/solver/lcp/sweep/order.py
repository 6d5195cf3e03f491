"""Order in which a sweep visits rows: by row number, or as in ODE's QuickStep.

QuickStep visits rows without findex first, then those of friction.  At sweeps 8, 16, ... all rows are shuffled by a
generator whose state is `lcp.seed`.  There are lcp.n rows; lcp.findex is the normal row of friction, -1: none.  The
order is the same in all worlds of a tile.  p is the record of the problems.
Source: ODE 0.16 dWorldQuickStep, dRandInt (checked against the library for bounds up to 2^16 and beyond).
"""

from featherlane.engine.prelude import *

PERIOD = 8  # sweeps between two shuffles
MULTIPLIER, INCREMENT, MASK = 1664525, 1013904223, (1 << 32) - 1


@kernel
def random_below(bits, n):
    """Returns an integer from 0 to n - 1 from 32 random bits.

    With c random bits, this is (bits * n) >> c.  For a small n, the 32 bits are first folded to c = 16, 8, 4, 2 or 1
    bits: each fold combines the high half with the low half by exclusive or.
    """
    if n > 1 << 16:
        number = (bits * n) >> 32
    elif n > 1 << 8:
        number = (((bits ^ (bits >> 16)) & 0xFFFF) * n) >> 16
    else:
        bits = bits ^ (bits >> 16)
        bits = bits ^ (bits >> 8)
        if n > 16:
            number = ((bits & 0xFF) * n) >> 8
        else:
            bits = bits ^ (bits >> 4)
            if n > 4:
                number = ((bits & 0xF) * n) >> 4
            else:
                bits = bits ^ (bits >> 2)
                if n > 2:
                    number = ((bits & 3) * n) >> 2
                else:
                    # one bit for n = 2; 0 for n = 1, where n >> 1 = 0
                    number = (bits ^ (bits >> 1)) & 1 & (n >> 1)
    return number


@kernel
def start_order(p, quickstep):
    """Sets lcp.order to the row numbers in ascending order; with quickstep = 1, friction rows follow all other rows."""
    n = p.lcp.n[0]
    position = 0
    for i in range(n):
        if quickstep == 0 or p.lcp.findex[i] < 0:
            p.lcp.order[position] = i
            position += 1
    if quickstep != 0:
        for i in range(n):
            if p.lcp.findex[i] >= 0:
                p.lcp.order[position] = i
                position += 1


@kernel
def shuffle_order(p, sweep):
    """Shuffles lcp.order at sweeps 8, 16, ...: the row at each position k is exchanged with that at a random j <= k."""
    if sweep % PERIOD == 0 and sweep > 0:
        for k in range(1, p.lcp.n[0]):
            # the linear congruential generator of ODE; its state lcp.seed advances
            seed = (p.lcp.seed[0] * MULTIPLIER + INCREMENT) & MASK
            p.lcp.seed[0] = seed
            j = random_below(seed, k + 1)
            row = p.lcp.order[k]
            p.lcp.order[k] = p.lcp.order[j]
            p.lcp.order[j] = row
