"""Collision: from the frames of geoms to contact points.

collision       the pass: which pairs are near, which points touch, where they are stored
broad           which pairs are near: bounding boxes, a tree over a crowd, lists of neighbours
table           the function of each pair of shapes, and the bounding test before it
pairs           pairs of shapes that have a special function: closed forms, height fields
convex          any two convex shapes: distance, depth, contact points, and what a world remembers of them
rays            what a ray meets first; the shapes that have a closed form
narrow, slot    pairs one world after the other; contact points that the worlds of a tile share
mixing, frame   parameters of a contact; its tangents
given, contact  contacts that the caller gives; contacts as Python sees them
bounding        the bounding tests alone, for measurements
distance        signed distance of two geoms
"""
