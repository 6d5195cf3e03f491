"""Constraint solvers, from rows to accelerations: the convex problem, primal and dual, and the boxed LCP."""
