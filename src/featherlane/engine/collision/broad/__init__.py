"""Broad phase: finds near pairs of geoms by bounding boxes, a bounding-box tree, and lists of neighbours."""
