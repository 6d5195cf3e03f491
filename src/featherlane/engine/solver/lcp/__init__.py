"""The boxed linear complementarity problem, A x = b + w, and its solvers, one file each."""
