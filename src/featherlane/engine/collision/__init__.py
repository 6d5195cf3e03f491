"""Collision: from the frames of geoms to contact points.

collision       the collision stage: broad phase, narrow phase, and storage of contacts in slots
broad           broad phase: bounding boxes, a bounding-box tree for models of many geoms, lists of neighbours
table           the function of each pair of shape types, and the bounding test that precedes it
pairs           pairs of shapes that have a specialized function: closed forms, height fields
convex          any two convex shapes: distance, depth, contact points, and the cache that each world keeps of them
rays            ray casting: the nearest surface that a ray hits; shapes that have a closed form
narrow, slot    pairs computed one world at a time; contact points that the worlds of a tile share
mixing, frame   contact parameters; contact tangents
user_contacts   user-defined contacts
contact         contacts in the Python interface
bounding        the bounding tests as a separate stage, for measurements
distance        signed distance of two geoms
"""
