"""Pairs of shapes with a specialized function, mostly a closed form."""
