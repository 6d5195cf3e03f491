"""Order in which a sweep visits the blocks of the dual problem: sequential, and shuffled in each fourth sweep.

With one fixed order, errors circulate in a stack of boxes, and momentum amplifies them.  Shuffled in every sweep,
stiff problems (a hand around a ball) end far from the optimum, and after 50 sweeps a humanoid on the ground is further
from it than in one order.  Shuffled in each fourth sweep, each of them does as well as in its better order.

The order must not depend on the other worlds of the tile, so it is not random.  A block's position is a hash of its
properties (its row's kind and object, its contact's bodies, geoms and point) and of the sweep's
number.  Blocks with the same hash stay in their order.  Blocks are the scalar rows, then the contacts; dual.ndual is
their number.
row_type, row_id: kind of a scalar row and its object.  con_geom: the contact's two geoms, -1 for none; con_carrier:
their bodies; con_point: number of the contact among those of its pair.
Source: MuJoCo shuffles its blocks in each sweep, since 3.8.1; the scrambling is by Lehmer's generators, see
P. L'Ecuyer, Efficient and portable combined random number generators, 1988.
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes.sort import sort

P1, A1 = 2147483647, 48271  # moduli and multipliers; products of numbers below them fit 62 bits
P2, A2 = 2147483399, 40692
CONTACT = 1000  # kind of a contact; differs from all values of row_type
PERIOD = 4  # sweeps from one shuffled sweep to the next


@kernel
def mix_hash(h, x):
    """Returns hash h combined with another integer x: two steps of Lehmer's generators, with an xor between."""
    h = (h * A1 + x + 1) % P1
    return (h ^ (h >> 13)) * A2 % P2


@kernel
def block_hash(d, q, sweep):
    """Returns the hash, below 2^31, by which a shuffled sweep sorts block q: of its properties and of `sweep`."""
    contact_start = d.nrow[0]  # first block of contacts
    h = mix_hash(1, sweep)
    if q < contact_start:
        h = mix_hash(mix_hash(h, d.row_type[q]), d.row_id[q])
    else:
        k = q - contact_start
        c = d.contact[k]
        h = mix_hash(mix_hash(h, CONTACT), c.point)
        for side in range(2):
            h = mix_hash(mix_hash(h, c.carrier[side]), c.geom[side] + 1)  # + 1: not negative
    return h


@kernel
def is_scrambled(sweep):
    """Checks whether this sweep uses a shuffled order."""
    return sweep % PERIOD == PERIOD - 1


@kernel
def order_blocks(d, sweep):
    """Stores the blocks in dual.visit_key, in the order of a shuffled sweep: the lower 31 bits of a key are a block."""
    n = d.dual.ndual[0]
    for q in range(n):
        d.dual.visit_key[q] = (block_hash(d, q, sweep) << 31) | q
    sort(d.dual.visit_key, d.dual.visit_room, n)


@kernel
def visited_block(d, sweep, position):
    """Returns the block that a sweep visits at that position of its order: the lower 31 bits of its key if shuffled."""
    return d.dual.visit_key[position] & ((1 << 31) - 1) if is_scrambled(sweep) else position
