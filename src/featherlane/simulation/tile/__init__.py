"""The memory of a tile: its fields, its records, and how rows of worlds come and go."""
