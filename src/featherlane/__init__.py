"""Simulates rigid-body dynamics in many parallel worlds, one world per lane of the processor's vector unit.

    model = featherlane.load("robot.xml")         a path, MJCF or URDF text, an MjModel or an MjSpec
    model = featherlane.bundled("humanoid")       a bundled model
    data = featherlane.Data(model)                one world; featherlane.step(model, data)
    batch = featherlane.Batch(model, nworld=256)  many worlds; batch.step(), batch.rollout(...)

Names, layouts and units are MuJoCo's (SI); algorithms and symbols are Featherstone's.  `__all__` lists the public API.
"""

from featherlane import startup as _startup  # noqa: F401  before the imports that take long

# isort: split
from importlib import import_module as _import_module

from featherlane import lanes, lcp, patterns, policies, query, registration, results, stages, tree
from featherlane.configuration import package_version as _package_version
from featherlane.configuration import show_config
from featherlane.doctor import diagnose
from featherlane.errors import (
    CapacityWarning,
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
from featherlane.model import Link, Model, bundled, bundled_names, load, set_const, set_length_range
from featherlane.model.enums import State
from featherlane.model.variants import variants
from featherlane.sensitivity.adjoint.rollout import rollout_gradient
from featherlane.sensitivity.api.exact import acceleration_derivatives, linearize
from featherlane.sensitivity.api.inverse import inverse_derivatives
from featherlane.sensitivity.api.rnea import rnea_derivatives
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.load_failure import load_failure
from featherlane.simulation.batch.mixed import MixedBatch
from featherlane.simulation.batch.noise import add_sensor_noise
from featherlane.simulation.batch.worlds import Worlds
from featherlane.simulation.histories import init_ctrl_history, init_sensor_history, read_ctrl, read_sensor
from featherlane.simulation.integration.integrate import integrate
from featherlane.simulation.inverse_kinematics.ik import ik
from featherlane.simulation.inverse_kinematics.targets import IkTarget
from featherlane.simulation.query.camera import Camera
from featherlane.simulation.query.depth_noise import DepthNoise
from featherlane.simulation.query.position import differentiate_pos, integrate_pos, normalize_quat
from featherlane.simulation.states import get_state, set_keyframe, set_state
from featherlane.simulation.steps import forward, inverse, reset_data, reset_data_keyframe
from featherlane.simulation.user.actuator import set_user_actuator
from featherlane.simulation.user.sensor import set_user_sensor
from featherlane.simulation.world.contacts import Contacts
from featherlane.simulation.world.data import Data, step
from featherlane.simulation.world.state import state_size
from featherlane.viewer.view import view

__version__: str

__all__ = [  # noqa: RUF022  in groups
    # models
    "Link",
    "Model",
    "bundled",
    "bundled_names",
    "load",
    "set_const",
    "set_length_range",
    "variants",
    # worlds
    "Batch",
    "Camera",
    "Contacts",
    "Data",
    "DepthNoise",
    "MixedBatch",
    "Worlds",
    # whole steps of one world
    "forward",
    "integrate",
    "inverse",
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
    # inverse kinematics
    "IkTarget",
    "ik",
    # derivatives
    "acceleration_derivatives",
    "inverse_derivatives",
    "linearize",
    "rnea_derivatives",
    "rollout_gradient",
    # histories of controls and sensors (delays)
    "init_ctrl_history",
    "init_sensor_history",
    "read_ctrl",
    "read_sensor",
    # sensors
    "add_sensor_noise",
    "set_user_sensor",
    # user callbacks
    "kernel",
    "set_user_actuator",
    # diagnostics
    "diagnose",
    "load_failure",
    "show_config",
    # viewer in the browser
    "view",
    # errors and warnings
    "CapacityWarning",
    "FeatherlaneError",
    "InstallationError",
    "ModelError",
    "NonFiniteWarning",
    "UnknownNameError",
    "UnsupportedFeatureError",
    # modules
    "lanes",
    "lcp",
    "patterns",
    "policies",
    "query",
    "registration",
    "results",
    "stages",
    "tree",
]

_WITHIN = ("distributed",)  # submodules that are imported on first access

_fill_tables()  # registrations after this line come from users


def __getattr__(name: str):
    if name == "__version__":
        return _package_version("featherlane")
    if name in _WITHIN:
        return _import_module(f"featherlane.{name}")
    raise _UnknownAttributeError(f"featherlane has no {name!r}{_near(name, __all__)}")
