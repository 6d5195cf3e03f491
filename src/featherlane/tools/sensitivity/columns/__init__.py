"""Columns of derivatives: seeds of coordinates, displaced or differentiated by formulas."""
