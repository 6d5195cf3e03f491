"""Simulates rigid-body dynamics in many parallel worlds, one world per lane of the processor's vector unit.

    model = featherlane.load("humanoid")          a path, MJCF or URDF text, a bundled model, an MjModel, an MjSpec
    data = featherlane.Data(model)                one world; featherlane.step(model, data)
    batch = featherlane.Batch(model, nworld=256)  many worlds; batch.step(), batch.rollout(...)

Names, layouts and units are MuJoCo's (SI); algorithms and symbols are Featherstone's.  `__all__` lists the public API.
"""

from importlib import import_module as _import_module

from featherlane import lanes, lcp, stages, tree
from featherlane.configuration import package_version as _package_version
from featherlane.configuration import show_config
from featherlane.doctor import Finding, diagnose
from featherlane.errors import (
    FeatherlaneError,
    InstallationError,
    ModelError,
    NonFiniteWarning,
    UnknownNameError,
    UnsupportedFeatureError,
)
from featherlane.errors import UnknownAttributeError as _UnknownAttributeError
from featherlane.errors import near as _near
from featherlane.lanes import kernel
from featherlane.lanes.choice import mark_complete as _fill_tables
from featherlane.model import Link, Model, bundled_names, load, set_const, set_length_range
from featherlane.model.enums import State
from featherlane.model.variants import Variants, variants
from featherlane.registration import Registration, RegistrationStatus, register_points
from featherlane.sensitivity.adjoint.rollout import rollout_gradient
from featherlane.sensitivity.derivative.exact import acceleration_derivatives, linearize
from featherlane.sensitivity.derivative.inverse import inverse_derivatives
from featherlane.sensitivity.derivative.rnea import rnea_derivatives
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.batch.load_failure import load_failure
from featherlane.simulation.batch.mixed import MixedBatch
from featherlane.simulation.batch.noise import add_sensor_noise
from featherlane.simulation.batch.protocol import Worlds
from featherlane.simulation.query.control_history import init_ctrl_history, read_ctrl
from featherlane.simulation.query.distance import geom_distance
from featherlane.simulation.query.point import (
    apply_ft,
    contact_force,
    jac,
    jac_body,
    jac_body_com,
    jac_geom,
    jac_site,
    jac_subtree_com,
    object_velocity,
)
from featherlane.simulation.query.position import differentiate_pos, integrate_pos, normalize_quat
from featherlane.simulation.query.product import full_m, mul_m, solve_m
from featherlane.simulation.query.ray import ray
from featherlane.simulation.query.tendon_path import tendon_path
from featherlane.simulation.states import get_state, set_keyframe, set_state
from featherlane.simulation.steps import (
    forward,
    inverse,
    reset_data,
    reset_data_keyframe,
)
from featherlane.simulation.user.actuator import set_user_actuator
from featherlane.simulation.user.sensor import set_user_sensor
from featherlane.simulation.world.contacts import Contacts
from featherlane.simulation.world.data import Data, step
from featherlane.simulation.world.state import state_size
from featherlane.viewer.view import View, view

__version__: str

__all__ = [  # noqa: RUF022  in groups
    # main classes
    "Batch",
    "Contacts",
    "Data",
    "Link",
    "MixedBatch",
    "Model",
    "Finding",
    "bundled_names",
    "diagnose",
    "lcp",
    "load",
    "set_const",
    "set_length_range",
    "Variants",
    "Worlds",
    "variants",
    "show_config",
    "stages",
    "tree",
    # errors and warnings
    "NonFiniteWarning",
    "FeatherlaneError",
    "InstallationError",
    "ModelError",
    "UnknownNameError",
    "UnsupportedFeatureError",
    # whole steps of one world
    "forward",
    "reset_data",
    "reset_data_keyframe",
    "step",
    # states
    "State",
    "differentiate_pos",
    "get_state",
    "integrate_pos",
    "normalize_quat",
    "set_keyframe",
    "set_state",
    "state_size",
    # unsuccessful steps
    "Failure",
    "load_failure",
    # histories of controls (delays)
    "init_ctrl_history",
    "read_ctrl",
    # inverse dynamics
    "inverse",
    # derivatives
    "linearize",
    "acceleration_derivatives",
    "inverse_derivatives",
    "rnea_derivatives",
    "rollout_gradient",
    # mass matrix
    "full_m",
    "mul_m",
    "solve_m",
    # Jacobians, points and contact forces
    "apply_ft",
    "contact_force",
    "jac",
    "jac_body",
    "jac_body_com",
    "jac_geom",
    "jac_site",
    "jac_subtree_com",
    "object_velocity",
    # sensors
    "add_sensor_noise",
    "set_user_sensor",
    # user callbacks
    "kernel",
    "lanes",
    "set_user_actuator",
    # viewer in the browser
    "View",
    "view",
    # queries
    "geom_distance",
    "ray",
    "tendon_path",
    # registration of point sets
    "Registration",
    "RegistrationStatus",
    "register_points",
]

_WITHIN = ("distributed",)  # submodules that are imported on first access

_fill_tables()  # registrations after this line come from users


def __getattr__(name: str):
    if name == "__version__":
        return _package_version("featherlane")
    if name in _WITHIN:
        return _import_module(f"featherlane.{name}")
    raise _UnknownAttributeError(f"featherlane has no {name!r}{_near(name, __all__)}")
