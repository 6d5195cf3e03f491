"""Questions about a state: rays, distances, Jacobians, products."""
