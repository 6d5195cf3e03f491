"""Bodies: poses, velocities, and the mapping of forces on bodies to the DoFs."""
