"""Pairs of shapes with functions of their own, most of them in closed form."""
