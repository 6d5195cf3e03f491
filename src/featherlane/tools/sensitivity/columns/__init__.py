"""Columns of derivatives: the sum of all rates by a coordinate, or differences of displaced points."""
