"""Entries of the Hessian: their places in the sparsity pattern, and their assembly from rows."""
