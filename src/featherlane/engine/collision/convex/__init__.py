"""Any two convex shapes: distance, penetration depth and contact points."""
