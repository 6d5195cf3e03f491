"""Collision: from the frames of geoms to contact points.

primitive   closed forms for a pair of shapes: distance, point, normal
frame       a normal completed to a frame
mixing      parameters of a contact from those of its two geoms
support, gjk, epa, polish   any two convex shapes: distance or depth, normal, nearest points
feature, manifold, convex   and their contact points
distance    signed distance of two geoms, for queries
collision   the pass: which pairs are near, which points touch, where they are stored
contact     what Python sees of them
"""
