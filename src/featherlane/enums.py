"""MuJoCo's enumerations: types of joints, geoms and sensors, flags, options; with its numbers.

    wheels = model.geom_type == featherlane.enums.CYLINDER
    model.opt.disableflags |= featherlane.enums.Disable.CONTACT

A constant has MuJoCo's name without `mjJNT_`, `mjGEOM_` or `mj`: HINGE, SPHERE, EQ_WELD, SENS_GYRO.
"""

from featherlane.engine.model.enums import (
    BALL,
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    FREE,
    HFIELD,
    HINGE,
    MESH,
    NGROUP,
    PLANE,
    SDF,
    SLIDE,
    SPHERE,
    WRAP_CYLINDER,
    WRAP_JOINT,
    WRAP_PULLEY,
    WRAP_SITE,
    WRAP_SPHERE,
    Cone,
    ContactModel,
    Disable,
    Enable,
    ForwardDynamics,
    Gyroscopic,
    Integrator,
    LcpCone,
    LcpFriction,
    LcpSolver,
    Rotation,
    Softness,
    Solver,
    State,
)

__all__ = [  # noqa: RUF022  in groups
    # joints
    "BALL",
    "FREE",
    "HINGE",
    "SLIDE",
    # geoms
    "BOX",
    "CAPSULE",
    "CYLINDER",
    "ELLIPSOID",
    "HFIELD",
    "MESH",
    "PLANE",
    "SDF",
    "SPHERE",
    # elements of the paths of tendons
    "WRAP_CYLINDER",
    "WRAP_JOINT",
    "WRAP_PULLEY",
    "WRAP_SITE",
    "WRAP_SPHERE",
    # number of groups of geoms, sites and tendons
    "NGROUP",
    # flags
    "Disable",
    "Enable",
    "State",
    # options
    "Cone",
    "ContactModel",
    "ForwardDynamics",
    "Gyroscopic",
    "Integrator",
    "LcpCone",
    "LcpFriction",
    "LcpSolver",
    "Rotation",
    "Softness",
    "Solver",
]
