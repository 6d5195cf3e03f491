"""The Hessian of the primal problem: sparsity pattern, assembly, and factorizations."""
