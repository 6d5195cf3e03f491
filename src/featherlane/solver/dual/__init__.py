"""Solvers in forces: projected Gauss-Seidel, and the pass against slip."""
