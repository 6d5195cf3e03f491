"""Dual solvers, with forces as the unknowns: projected Gauss-Seidel, and the no-slip solver (`noslip`)."""
