"""Forward dynamics: the joint-space inertia matrix, and articulated-body recursions without it."""
