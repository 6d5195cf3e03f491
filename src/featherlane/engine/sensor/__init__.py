"""Sensors: frames of objects, cameras, momenta, forces between bodies, and all sensor types.

The modules are

    frame, camera, momentum   positions and motion of objects; cameras; momenta of subtrees
    wrench                    accelerations of bodies, forces on them and between them
    table                     all sensor types: their stage and their kernel
    position, velocity, acceleration   sensors of each stage
    rangefinder, distance, inside, touch, contact, limit   sensor types with longer kernels
    publish                   cutoff, sampling and delay: from the current values to sensordata
    measure                   the stages that a step calls

A position sensor reads only positions.  A velocity sensor also reads velocities; an acceleration sensor also reads
constrained accelerations and forces.  Contacts and limits are read while the rows of their worlds are in the
tile.  Source: MuJoCo's documentation, XML reference, sensor.
"""
