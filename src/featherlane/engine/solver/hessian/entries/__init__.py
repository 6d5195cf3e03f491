"""Entries of the Hessian: their offsets in the sparsity pattern, and their assembly from rows."""
