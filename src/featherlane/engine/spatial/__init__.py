"""Row types and their kernels: vectors, quaternions, matrices, spatial motions and forces, and inertias.

Quaternions are (w, x, y, z), matrices are nine values by rows.  Spatial vectors put rotation
first and are in world axes at one point (the kinematic tree's centre of mass, unless stated otherwise).
"""
