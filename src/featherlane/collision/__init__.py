"""Collision: from the frames of geoms to contact points.

The pass, and what holds it together
    collision                   which pairs are near, which points touch, where they are stored: the contents page
    bounds, bounding, crowd     bounding boxes, and how far they go; a tree where pairs are too many to list
    neighbours                  pairs that one world lists for some steps, in place of all
    points, narrow, slot        all worlds at once, or one by one; contact points that worlds share
    mixing, frame, given        parameters of a contact; its tangents; contacts that the caller gives
    contact                     what Python sees of them

Pairs of shapes
    primitive, cylinder, ellipsoid, sphere_box              closed forms over values: all worlds at once
    capsule_box, box_*, plane_mesh                          closed forms that branch: one world at a time
    support, gjk, epa, polish, convex                       any two convex shapes: how far apart, how deep
    facet, proof, recall                                    where they are nearest, and what a world remembers of that
    feature, overlap, manifold                              with which faces and edges they meet, and in which points
    hfield                                                  a height field with any of them

Queries
    distance                                    signed distance of two geoms
    ray, ray_shape, ray_mesh, ray_heights       what a ray meets first
"""
