"""The Hessian of the primal problem: its pattern, its assembly, and the ways to factor it."""
