"""The memory of a tile: its fields, its records, how rows of worlds come and go, and the loop over tiles."""
