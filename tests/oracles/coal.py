"""Computes the signed distance of two polytopes by coal, an independent implementation of the same algorithms."""

from __future__ import annotations


def coal_distance(coal, pair) -> float:
    """Returns the distance of the pair's vertices in their poses, at coal's best accuracy."""
    shapes = []
    for side in range(2):
        points = coal.StdVec_Vec3s()
        for v in pair.vertices(side):
            points.append(v)
        shapes.append(coal.ConvexBase.convexHull(points, True, "Qt"))
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    identity = coal.Transform3s.Identity()
    return coal.distance(shapes[0], identity, shapes[1], identity, request, result)
