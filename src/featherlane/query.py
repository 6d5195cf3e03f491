"""Queries of one world: Jacobians, velocities and forces of points, matrices of its dynamics, rays, distances.

    position, rotation = featherlane.query.jac_site(model, data, "tip")
    hits = featherlane.query.ray(model, data, points, directions)

They answer for the present state, and change no field of `data`.  `contact_force`, `contact_residual` and
`equality_force` evaluate the rows of the last pass.  The methods of `Batch` with the same names answer for all worlds.
"""

from featherlane.engine.simulation.query.contact_parameters import contact_parameters
from featherlane.engine.simulation.query.contact_residual import contact_residual
from featherlane.engine.simulation.query.distance import geom_distance
from featherlane.engine.simulation.query.equality import equality_force
from featherlane.engine.simulation.query.point import (
    angular_momentum_matrix,
    apply_ft,
    contact_force,
    jac,
    jac_body,
    jac_body_com,
    jac_dot,
    jac_geom,
    jac_site,
    jac_subtree_com,
    object_acceleration,
    object_velocity,
)
from featherlane.engine.simulation.query.product import (
    coriolis_matrix,
    full_m,
    inertial_parameters,
    moment_arms,
    mul_m,
    solve_m,
    torque_regressor,
)
from featherlane.engine.simulation.query.ray import ray
from featherlane.engine.simulation.query.tendon_path import tendon_path

__all__ = [  # noqa: RUF022  in groups
    # Jacobians
    "angular_momentum_matrix",
    "jac",
    "jac_body",
    "jac_body_com",
    "jac_dot",
    "jac_geom",
    "jac_site",
    "jac_subtree_com",
    # velocities and forces
    "apply_ft",
    "contact_force",
    "contact_residual",
    "equality_force",
    "object_acceleration",
    "object_velocity",
    # mass matrix, Coriolis matrix, regressor
    "coriolis_matrix",
    "full_m",
    "inertial_parameters",
    "mul_m",
    "solve_m",
    "torque_regressor",
    # actuators
    "moment_arms",
    # geometry
    "contact_parameters",
    "geom_distance",
    "ray",
    "tendon_path",
]
