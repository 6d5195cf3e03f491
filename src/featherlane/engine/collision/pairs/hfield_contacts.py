"""Collects the contacts of a height field and a convex shape in relief.*, in the frame of the field.

A contact that is found twice, by two triangles or by an edge and its end, is kept once, with the least distance: the
least distance of all contacts is that of the nearest one alone.
If there are more contacts than the capacity nmanifold, the deepest ones are kept, and manifold.full is set.
A shape in a pit may have points in the ground whose feet are on no triangle.  Then it has the *spare* contact: the
point in the ground below the plane of the triangle below which the shape is least deep.  If a ridge or a peak is in
such a shape, but no point of the shape is in the ground, the spare contact is that of the deepest ridge or peak.
For a distance (relief.nearest = 1), only the nearest one is kept, and shapes.limit is reduced to its distance.
d1 is the data of one world; dist, pos and n are the distance, the position and the normal of a contact.
"""

from featherlane.engine.prelude import *

SAME_PLACE = 1e-7  # m positions of one contact
SAME_NORMAL = 1e-5  # rad normals of one contact
NO_SPARE = -1e10  # m relief.spare_low without a spare contact
OF_RIDGE = -1e9  # m relief.spare_low of a ridge or a peak, below that of any point


@kernel
def store_contact(d1, k, dist, pos, n):
    """Stores contact k."""
    d1.relief.dist[k] = dist
    d1.relief.pos[k] = pos
    d1.relief.normal[k] = n


@kernel
def find_contact(d1, pos, n):
    """Returns the index of the contact with this position and this normal, -1 if there is none."""
    found = -1
    for k in range(d1.relief.count[0]):
        move, change = d1.relief.pos[k] - pos, d1.relief.normal[k] - n
        if dot(move, move) < SAME_PLACE * SAME_PLACE and dot(change, change) < SAME_NORMAL * SAME_NORMAL:
            found = k
            break
    return found


@kernel
def shallowest(d1):
    """Returns the contact with the largest distance, the last one of several."""
    last = 0
    for k in range(1, d1.relief.count[0]):
        if d1.relief.dist[k] >= d1.relief.dist[last]:
            last = k
    return last


@kernel
def add_contact(d1, dist, pos, n):
    """Adds a contact to relief.* if its distance is at most shapes.limit.

    It replaces a duplicate, or the shallowest contact of a full list, if its distance is smaller.
    With relief.nearest = 1, it replaces the only contact, and its distance becomes the limit.
    """
    if dist <= d1.shapes.limit[0]:
        if d1.relief.nearest[0] == 1:
            d1.shapes.limit[0] = dist
            store_contact(d1, 0, dist, pos, n)
            d1.relief.count[0] = 1
        else:
            replaced, count = find_contact(d1, pos, n), d1.relief.count[0]
            if replaced < 0 and count < d1.nmanifold:
                store_contact(d1, count, dist, pos, n)
                d1.relief.count[0] = count + 1
            else:
                if replaced < 0:
                    d1.manifold.full[0] = 1
                    replaced = shallowest(d1)
                if dist < d1.relief.dist[replaced]:
                    store_contact(d1, replaced, dist, pos, n)


@kernel
def keep_spare(d1, dist, pos, n, lowest):
    """Keeps the contact of a point in the ground as the spare contact, if it is better than the one kept before.

    The better contact is that of the plane below which the shape is less deep.  Of two points below the same plane, it
    is the deeper one.
    lowest: height of the shape's lowest point over the plane of the contact [m], negative; OF_RIDGE for a ridge.
    """
    lowest_before = d1.relief.spare_low[0]
    if lowest > lowest_before or (lowest == lowest_before and dist < d1.relief.spare_dist[0]):
        d1.relief.spare_low[0] = lowest
        d1.relief.spare_dist[0] = dist
        d1.relief.spare_pos[0] = pos
        d1.relief.spare_normal[0] = n


@kernel
def middle_of_nearest(d1):
    """Returns the middle of the nearest points in convex.*."""
    return 0.5 * (d1.convex.witness[0] + d1.convex.witness[1])


@kernel
def keep_ridge(d1):
    """Keeps the nearest points of the shape and the ground below a ridge or a peak as a spare contact, if they overlap.

    The nearest points are in convex.*; the ground is the prism shapes.prism.  A nearest point at the prism's bottom
    would push the shape down through the field, and is not kept.
    """
    dist = d1.convex.dist[0]
    # vertex 0 of the prism is at its bottom
    if dist < 0.0 and d1.convex.witness[0][2] - d1.shapes.prism[0][2] > SAME_PLACE:
        keep_spare(d1, dist, middle_of_nearest(d1), d1.convex.normal[0], OF_RIDGE)


@kernel
def add_spare(d1):
    """Adds the spare contact if there is one, and none of the contacts is in the ground."""
    touches = False
    for k in range(d1.relief.count[0]):
        touches = touches or d1.relief.dist[k] < 0.0
    if not touches and d1.relief.spare_low[0] > NO_SPARE:
        add_contact(d1, d1.relief.spare_dist[0], d1.relief.spare_pos[0], d1.relief.spare_normal[0])
