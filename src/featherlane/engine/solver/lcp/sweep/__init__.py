"""Iterative methods for LCPs in lanes: projected Gauss-Seidel and APGD."""
