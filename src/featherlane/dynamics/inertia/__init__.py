"""From forces to accelerations: the joint-space inertia matrix, and articulated bodies without it."""
