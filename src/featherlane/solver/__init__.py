"""From rows to accelerations: the convex problem."""
