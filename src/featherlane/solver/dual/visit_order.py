"""The order in which a sweep visits the blocks of the dual problem: as they come, and scrambled in each fourth sweep.

In one order alone errors travel round and round a stack of boxes, and momentum feeds them; scrambled in every sweep,
stiff problems (a hand about a ball) end far from the optimum, and after 50 sweeps a humanoid on the ground is further
from it than in one order.  Scrambled each fourth time all of them do as well as in their better way.

The order must not depend on which worlds share a tile, so nothing is drawn: a block's place follows from a number that
is made of what the block is (its row's kind and object, its contact's bodies, geoms and point) and of the sweep's
number.  Blocks that share that number stay in their order.
Source: MuJoCo shuffles its blocks in each sweep, since 3.8.1; the scrambling is by Lehmer's generators, see
P. L'Ecuyer, Efficient and portable combined random number generators, 1988.
"""

from featherlane.prelude import *
from featherlane.lanes.sort import sort

P1, A1 = 2147483647, 48271  # moduli and multipliers; products of numbers below them fit 62 bits
P2, A2 = 2147483399, 40692
CONTACT = 1000  # no kind of row
PERIOD = 4  # sweeps


@kernel
def mixed(h, x):
    """Number h with another whole number mixed into it."""
    h = (h * A1 + x + 1) % P1
    return (h ^ (h >> 13)) * A2 % P2


@kernel
def block_number(d, q, sweep):
    """The number, below 2^31, by which block q is sorted."""
    first, joint = d.ndofrow[0], d.ndofrow[0] + d.ngenrow[0]
    h = mixed(1, sweep)
    if q < first:
        h = mixed(mixed(h, d.dofrow_type[q]), d.dofrow_id[q])
    elif q < joint:
        h = mixed(mixed(h, d.genrow_type[q - first]), d.genrow_id[q - first])
    else:
        k = q - joint
        h = mixed(mixed(h, CONTACT), d.con_point[k])
        for side in range(2):
            h = mixed(mixed(h, d.con_carrier[2 * k + side]), d.con_geom[2 * k + side] + 1)
    return h


@kernel
def is_scrambled(sweep):
    """Does this sweep take an order of its own?"""
    return sweep % PERIOD == PERIOD - 1


@kernel
def order_blocks(d, sweep):
    """visit_key <- blocks in the order of a scrambled sweep, each as the lower 31 bits of its key."""
    n = d.dual.ndual[0]
    for q in range(n):
        d.dual.visit_key[q] = (block_number(d, q, sweep) << 31) | q
    sort(d.dual.visit_key, d.dual.visit_room, n)


@kernel
def visited(d, sweep, place):
    """The block that is visited at that place of the order."""
    return d.dual.visit_key[place] & ((1 << 31) - 1) if is_scrambled(sweep) else place
