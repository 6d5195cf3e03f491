"""Iterative methods for LCPs in lanes: projected Gauss-Seidel, APGD and NNCG."""
