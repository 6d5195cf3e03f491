"""Simulates rigid-body dynamics in many parallel worlds, one world per lane of the processor's vector unit.

    model = featherlane.load("robot.xml")         a path, MJCF or URDF text, an MjModel or an MjSpec
    model = featherlane.bundled("humanoid")       a bundled model
    data = featherlane.Data(model)                one world; featherlane.step(model, data)
    batch = featherlane.Batch(model, nworld=256)  many worlds; batch.step(), batch.rollout(...)

Names, layouts and units are MuJoCo's (SI); algorithms and symbols are Featherstone's.  `__all__` lists the public API.
"""

from featherlane.engine import startup as _startup  # noqa: F401  before the imports that take long

# isort: split
from importlib import import_module as _import_module

from featherlane import (
    controllers,
    enums,
    errors,
    extension,
    lanes,
    lcp,
    patterns,
    policies,
    query,
    registration,
    stages,
    terrain,
    tree,
)
from featherlane.engine.configuration import package_version as _package_version
from featherlane.engine.configuration import show_config
from featherlane.engine.lanes import kernel
from featherlane.engine.lanes.choice import mark_complete as _fill_tables
from featherlane.engine.model import Link, Model, bundled, bundled_names, load, set_length_range
from featherlane.engine.model.enums import State
from featherlane.engine.model.variants import variants
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.constants import set_const
from featherlane.engine.simulation.batch.load_failure import load_failure
from featherlane.engine.simulation.batch.mixed import MixedBatch
from featherlane.engine.simulation.batch.noise import add_sensor_noise
from featherlane.engine.simulation.batch.worlds import Worlds
from featherlane.engine.simulation.frozen.freeze import freeze
from featherlane.engine.simulation.frozen.world import thaw
from featherlane.engine.simulation.query.camera import Camera
from featherlane.engine.simulation.query.depth_noise import DepthNoise
from featherlane.engine.simulation.query.position import differentiate_pos, integrate_pos, normalize_quat
from featherlane.engine.simulation.states import get_state, set_keyframe, set_state
from featherlane.engine.simulation.steps import forward, inverse, reset_data, reset_data_keyframe
from featherlane.engine.simulation.user.actuator import set_user_actuator
from featherlane.engine.simulation.user.control import Controller
from featherlane.engine.simulation.user.sensor import set_user_sensor
from featherlane.engine.simulation.world.contacts import Contacts
from featherlane.engine.simulation.world.data import Data, step
from featherlane.engine.simulation.world.state import state_size
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
from featherlane.tools.histories import init_ctrl_history, init_sensor_history, read_ctrl, read_sensor
from featherlane.tools.integration.integrate import integrate
from featherlane.tools.inverse_kinematics.ik import ik
from featherlane.tools.inverse_kinematics.targets import IkTarget
from featherlane.tools.sensitivity.adjoint.rollout import rollout_gradient
from featherlane.tools.sensitivity.api.exact import acceleration_derivatives, linearize
from featherlane.tools.sensitivity.api.inverse import inverse_derivatives
from featherlane.tools.sensitivity.api.rnea import rnea_derivatives

# isort: split
# front ends, which import the names above from the package
from featherlane import results
from featherlane.apps.doctor import diagnose
from featherlane.apps.viewer.export import export_html
from featherlane.apps.viewer.view import view

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
    "Controller",
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
    # frozen worlds
    "freeze",
    "thaw",
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
    "export_html",
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
    "enums",
    "errors",
    "extension",
    "lanes",
    "lcp",
    "patterns",
    "controllers",
    "policies",
    "query",
    "registration",
    "results",
    "stages",
    "terrain",
    "tree",
]

_WITHIN = ("distributed",)  # submodules that are imported on first access

_fill_tables()  # registrations after this line come from users

for _inner in ("engine", "tools", "apps"):  # private packages, which the imports above made attributes
    del globals()[_inner]


def __getattr__(name: str):
    if name == "__version__":
        return _package_version("featherlane")
    if name in _WITHIN:
        return _import_module(f"featherlane.{name}")
    raise _UnknownAttributeError(f"featherlane has no {name!r}{_near(name, __all__)}")
