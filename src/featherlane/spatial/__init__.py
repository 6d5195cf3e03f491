"""Kernels on tuples of values: vectors, quaternions, spatial motions and forces, and inertias.

Vectors are tuples.  Quaternions are (w, x, y, z), matrices are nine values by rows.  Spatial vectors put rotation
first and are in world axes at one point (the kinematic tree's centre of mass, unless stated otherwise).
"""
