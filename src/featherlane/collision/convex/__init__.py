"""Any two convex shapes: how far apart or how deep, and in which points they touch."""
