"""Defines the memory of a tile: its fields, its records, transfers of worlds' rows, and the loop over tiles."""
