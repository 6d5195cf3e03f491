"""The engine: fields, models and kernels, and the steps of worlds.  Private: its names may change in any release.

Packages, each of which imports only those before it:

    libraries           optional libraries
    lanes               the kernel language, its compiler, and memory for W worlds
    spatial             vectors, rotations and spatial algebra
    model               fields of a model, loading, options
    dynamics            kinematics, inertia, forces of joints, tendons and actuators, integrators
    collision           contacts, rays, signed distances
    constraint          rows of the constraints
    solver              the convex, the LCP and the Coulomb solvers
    sensor              sensors
    simulation          steps, one world, batches, queries
"""
