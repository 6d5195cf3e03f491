"""Matrices on a tree: L^T D L, substitution, products, outer products."""
