"""Which pairs of geoms are near: bounding boxes, a tree over a crowd, lists of neighbours."""
