"""Pairs of shapes that have a special function, mostly a closed form."""
