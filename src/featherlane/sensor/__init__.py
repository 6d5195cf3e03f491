"""What a robot would measure: frames of cameras, momenta, forces between bodies, and the values of sensors.

Here is

    frame, camera, momentum   where objects are and how they move; cameras; subtrees
    wrench                    accelerations of bodies, forces on them and between them
    table                     every kind: when it measures, and with which kernel
    position, velocity, acceleration   sensors of each stage
    rangefinder, distance, inside, touch, contact, limit   kinds that take more than a line
    publish                   cutoff, sampling and delay: from the values of a moment to sensordata
    measure                   the contents: what a step calls

A position sensor sees positions alone, a velocity sensor those and velocities, an acceleration sensor everything down
to the acceleration under the constraints; contacts and limits are read while the rows of their worlds stand in the
tile.  Source: MuJoCo's documentation, XML reference, sensor.
"""
