"""Vectors, quaternions, spatial motions and forces, and inertias, as kernels over values.

Vectors are tuples of values.  Quaternions are (w, x, y, z), matrices are nine values by rows, spatial vectors put
rotation first and refer to world axes at one point (the kinematic tree's centre of mass, where nothing else is said).
"""
