"""Reads a live robosuite environment: model, controllers, observables, goal and sampled initial states.

Nothing here holds the environment afterwards; all results are numbers, arrays and functions of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from featherlane import Batch, Model, controllers, load
from featherlane.environments.robosuite.contacts import Contacts
from featherlane.environments.robosuite.observations import Delayed, Observable, of_robot
from featherlane.environments.robosuite.rewards import Goal
from featherlane.errors import ModelError, near
from featherlane.extension import private, required, unsupported

TRIED = ("1.5.2",)  # versions of robosuite
WHAT = "a task of robosuite"
ROBOTS = "Panda, Sawyer, IIWA, Jaco, Kinova3, UR5e, XArm7, Baxter"
FIXED = {  # options that a batch sets itself
    "has_renderer": False,
    "has_offscreen_renderer": False,
    "use_camera_obs": False,
    "hard_reset": False,
    "ignore_done": True,
}
REFUSED = (  # options without a counterpart
    "render_camera", "render_collision_mesh", "render_visual_mesh", "render_gpu_device_id", "renderer",
    "renderer_config", "lite_physics", "camera_segmentations",
)  # fmt: skip
VISUAL = ("mesh_", "tex_", "skin_", "hfield_", "mat_", "cam_", "light_", "key_", "vis_")  # prefixes of fields
STATE = ("qpos", "qvel", "qacc_warmstart")


class PartMaker(NamedTuple):
    """Makes a part of the controller of a batch.

    Attributes:
        make: function of the batch.
        rows: values of the part's arrays, the same in all worlds.
    """

    make: Callable[[Batch], Any]
    rows: Mapping[str, np.ndarray]


class Observed(NamedTuple):
    """An observable.

    Attributes:
        name, modality: as in robosuite; the modality is the group in which observables are concatenated.
        function: see `observations`.
    """

    name: str
    modality: str
    function: Observable


@dataclass
class Source:
    """What a batch needs of a robosuite environment.

    Attributes:
        model: the model.
        frame_skip: time steps of an action.
        parts: makers of the parts of the controller, by name, in the order of an action.
        goal: rewards and successes.
        contacts: groups of geoms whose contacts the goal needs.
        observed: observables in robosuite's order.
        delayed: poses that have a memory.
        starts: initial states, name -> (k, ...): state fields; fields of the model that a reset changes; "touch": the
            contacts of the groups; "used": the number of the object that is used, in tasks with one of several objects.
        alternatives: in tasks with one of several objects, of each observable of an object: its number, and
            the place among its observables, by name.
    """

    model: Model
    frame_skip: int
    parts: dict[str, PartMaker]
    goal: Goal
    contacts: Contacts
    observed: list[Observed]
    delayed: list[Delayed]
    starts: dict[str, np.ndarray]
    alternatives: dict[str, tuple[int, int]]


def read(task: str, goal_type: type[Goal], settings: Mapping[str, Any], pool: int) -> Source:
    """Makes an environment, and reads what a batch needs of it.

    Args:
        task: name of the environment in robosuite.
        goal_type: what it rewards.
        settings: keyword arguments of the environment.
        pool: initial states to sample.

    Raises:
        InstallationError: robosuite is missing, or its version was not tried.
        ModelError: an option, robot, controller, gripper or observable that is not supported.
    """
    env = opened(task, settings)
    contacts = Contacts()
    goal = goal_type(env, contacts)
    starts = sampled(env, contacts, pool)
    model = load(mujoco_model(env))
    contacts.prepare(model)
    parts = {}
    for k, robot in enumerate(env.robots):
        parts |= {f"robot{k}_{name}": maker for name, maker in parts_of(robot).items()}
    observed, alternatives = observables(env, goal, model)
    owners = {id(f): f for f in (getattr(each.function, "__self__", None) for each in observed)}
    return Source(
        model, frame_skip(env), parts, goal, contacts, observed,
        [each for each in owners.values() if isinstance(each, Delayed)], starts, alternatives,
    )  # fmt: skip


def opened(task: str, settings: Mapping[str, Any]) -> Any:
    """Returns a robosuite environment without renderers, after a reset; raises the errors of `read`."""
    robosuite = required("robosuite", WHAT)
    if robosuite.__version__ not in TRIED:
        raise unsupported("robosuite", f"{WHAT} requires one of the versions {', '.join(TRIED)}")
    for name in settings:
        if name in REFUSED or name in FIXED:
            raise ModelError(f"{task}: got the option {name!r}, allowed are options without rendering and hard resets")
    configs = settings.get("controller_configs")
    for config in configs if isinstance(configs, list | tuple) else [configs]:
        check_controllers(config or {})
    made = robosuite.environments.base.REGISTERED_ENVS[task]
    try:
        env = made(**FIXED, **settings)
    except (TypeError, AssertionError, ValueError, KeyError, AttributeError) as error:
        named = ", ".join(settings)
        raise ModelError(f"{task}: robosuite refuses the options {named}: {error or type(error).__name__}") from error
    env.reset()
    for robot in env.robots:
        if type(robot).__name__ != "FixedBaseRobot":
            raise ModelError(f"robots: got {robot.name!r}, allowed are arms on a fixed base: {ROBOTS}")
    return env


def check_controllers(config: Mapping[str, Any]) -> None:
    """Raises an error for a configuration with another composite controller, or another controller of an arm."""
    kind = config.get("type", "BASIC")
    if kind != "BASIC":
        raise ModelError(f"controller_configs: got the type {kind!r}, allowed is 'BASIC'")
    for name, part in config.get("body_parts", {}).items():
        if name in ("right", "left") and part.get("type") not in ARMS:
            raise ModelError(
                f"controller_configs: the part {name!r} has the controller {part.get('type')!r}, allowed are "
                f"{', '.join(ARMS)}"
            )


def mujoco_model(env: Any) -> Any:
    """Returns the `MjModel` of an environment."""
    return private("robosuite", env.sim.model, "_model")


def frame_skip(env: Any) -> int:
    """Returns the time steps of an action.

    Raises:
        ModelError: a period that is no multiple of the time step; robosuite would sample observables at varying times.
    """
    steps = env.control_timestep / env.model_timestep
    if abs(steps - round(steps)) > 1e-9:
        raise ModelError(
            f"control_freq: got {env.control_freq} Hz, allowed are frequencies whose period is a multiple of the time "
            f"step {env.model_timestep} s"
        )
    return round(steps)


# ---- controllers -----------------------------------------------------------------------------------------------------
def parts_of(robot: Any) -> dict[str, PartMaker]:
    """Returns the makers of a robot's parts, in the order of its actions."""
    found = {}
    for name, part in robot.part_controllers.items():
        arm = name.removesuffix("_gripper")
        if name != arm:
            if len(robot.gripper[arm].actuators):  # others have no actions and no actuators
                found[name] = gripper_part(robot.gripper[arm], part)
            continue
        actuators = list(robot.robot_model.arm_actuators)
        half = len(actuators) // len(robot.arms)
        actuators = actuators[:half] if arm == "right" else actuators[half:]
        for option in ("interpolator", "interpolator_pos", "interpolator_ori"):
            if getattr(part, option, None) is not None:
                raise ModelError(f"{robot.name}: the part {name!r} has an {option}, allowed is 'interpolation': null")
        found[name] = arm_part(part, actuators)
    return found


def actions_of(part: Any) -> controllers.Actions:
    """Returns how a part reads actions."""
    settings: dict[str, Any] = {"single_precision_rotations": True}
    for name in ("impedance_mode", "input_type"):
        if hasattr(part, name):
            settings[name] = getattr(part, name)
    if hasattr(part, "kp_min"):
        settings["kp_limits"] = part.kp_min, part.kp_max
        settings["damping_ratio_limits"] = part.damping_ratio_min, part.damping_ratio_max
    outputs = {"output_min": part.output_min, "output_max": part.output_max}
    return controllers.Actions(input_min=part.input_min, input_max=part.input_max, **outputs, **settings)


def operational_space(part: Any) -> dict[str, Any]:
    """Returns the settings of OSC_POSE and OSC_POSITION.

    Raises:
        ModelError: limits of positions or orientations, which robosuite does not implement.
    """
    if part.position_limits is not None or np.any(part.orientation_limits):
        raise ModelError("controller_configs: got position_limits or orientation_limits, allowed is null")
    return {
        "site": part.ref_name, "orientation": True if part.use_ori else "held", "decoupled": bool(part.uncoupling),
        "base": f"{part.naming_prefix}{part.part_name}_center" if part.input_ref_frame == "base" else None,
    }  # fmt: skip


def of_joints(name: str, part: Any) -> dict[str, Any]:
    """Returns the settings of JOINT_POSITION and JOINT_TORQUE; `name`: of their limits."""
    ends = getattr(part, name)
    return {"compensated": bool(part.use_torque_compensation), name: None if ends is None else tuple(ends)}


# the controllers of arms: their class, and a function of robosuite's part that returns its settings
ARMS: dict[str, tuple[Any, Callable[[Any], dict[str, Any]]]] = {
    "OSC_POSE": (controllers.OperationalSpace, operational_space),
    "OSC_POSITION": (controllers.OperationalSpace, operational_space),
    "JOINT_POSITION": (controllers.JointPosition, partial(of_joints, "position_limits")),
    "JOINT_TORQUE": (controllers.JointTorque, partial(of_joints, "torque_limits")),
}


def arm_part(part: Any, actuators: list[str]) -> PartMaker:
    """Returns the maker of an arm."""
    kind, settings = ARMS[part.name]
    gains = {"stiffness": "kp", "damping": "kd"} if hasattr(part, "kp") else {}
    make = partial(kind, actuators=actuators, actions=actions_of(part), **settings(part))
    return PartMaker(make, {name: np.array(getattr(part, given)) for name, given in gains.items()})


def gripper_part(gripper: Any, part: Any) -> PartMaker:
    """Returns the maker of a gripper, whose mapping of actions is found by calls of its `format_action`.

    Raises:
        ModelError: a mapping that `controllers.Gripper` does not have.
    """
    k, name = gripper.dof, type(gripper).__name__
    law = None
    if type(part).__name__ == "SimpleGripController":
        base = called(gripper, np.zeros((1, k)))[0]
        response = np.array([called(gripper, row[None])[0] for row in np.eye(k)]) - base
        columns = np.argmax(np.abs(response), axis=0)
        gain = response[columns, np.arange(len(base))]
        speed = float(np.abs(gain).max(initial=0.0)) or 1.0
        tried = np.random.default_rng(0).uniform(-1.0, 1.0, (40, k))
        expected = called(gripper, tried)
        for rate, binary in ((speed, True), (speed, False), (None, False)):
            closing, signs = closings(tried, rate, binary), gain / (rate or 1.0)
            if np.allclose(base + signs * closing[:, columns], expected, rtol=0.0, atol=1e-12):
                law = {"speed": rate, "binary": binary, "directions": signs, "columns": columns.tolist()}
                break
    if law is None:
        raise ModelError(
            f"gripper {name!r}: its controller {part.name} or its mapping of actions is not supported; allowed are "
            f"grippers with the controller GRIP that integrate actions or their signs, or copy actions"
        )
    half, middle = (part.actuator_max - part.actuator_min) / 2.0, (part.actuator_max + part.actuator_min) / 2.0
    if not part.use_action_scaling:
        half, middle = np.ones_like(half), np.zeros_like(middle)
    make = partial(controllers.Gripper, actuators=list(gripper.actuators), **law)
    return PartMaker(make, {"gain": law["directions"] * half, "offset": middle + half * base})


def closings(actions: np.ndarray, speed: float | None, binary: bool) -> np.ndarray:
    """Returns the closings of a `controllers.Gripper` after each of some actions (t, k), from 0."""
    found, last = [], np.zeros(actions.shape[1])
    for action in actions:
        change = np.sign(action) if binary else action
        last = action if speed is None else np.clip(last + speed * change, -1.0, 1.0)
        found.append(last)
    return np.array(found)


def called(gripper: Any, actions: np.ndarray) -> np.ndarray:
    """Returns the results of a gripper's `format_action` for a sequence of actions, from its initial state."""
    before, gripper.current_action = gripper.current_action, np.zeros(gripper.dof)
    found = np.array([np.array(gripper.format_action(action), float) for action in actions])
    gripper.current_action = before
    return found


# ---- observables and states ------------------------------------------------------------------------------------------
def observables(env: Any, goal: Goal, model: Model) -> tuple[list[Observed], dict[str, tuple[int, int]]]:
    """Returns the observables of an environment in its order, and the `alternatives` of `Source`.

    Raises:
        ModelError: an observable that is not in the tables.
    """
    known = goal.observables(env)
    for robot in env.robots:
        known |= of_robot(robot, model)
    sensors = getattr(env, "nut_id_to_sensors", None) or getattr(env, "object_id_to_sensors", None) or {}
    sensors = sensors if getattr(env, "single_object_mode", 0) == 1 else {}
    alternatives = {name: (k, i) for k, names in sensors.items() for i, name in enumerate(names)}
    found = []
    for name, each in private("robosuite", env, "_observables").items():
        if not ((each.is_enabled() and each.is_active()) or name in alternatives):
            continue
        if name not in known:
            raise ModelError(f"observable {name!r} is not supported, allowed are {', '.join(known)}{near(name, known)}")
        found.append(Observed(name, each.modality, known[name]))
    return found, alternatives


def sampled(env: Any, contacts: Contacts, count: int) -> dict[str, np.ndarray]:
    """Returns initial states that robosuite's resets sample: the `starts` of `Source`."""
    model, data = mujoco_model(env), private("robosuite", env.sim.data, "_data")
    reals = [name for name in dir(model) if not name.startswith((*VISUAL, "_")) and not name.endswith("rgba")]
    reals = [name for name in reals if getattr(getattr(model, name), "dtype", None) == np.float64]
    states: dict[str, list[np.ndarray]] = {name: [] for name in (*STATE, "touch", *reals)}
    used = []
    for _ in range(count):
        env.reset()
        for name in STATE:
            states[name].append(np.array(getattr(data, name)))
        states["touch"].append(contacts.present(env))
        for name in reals:
            values, kept = getattr(model, name), states[name]
            kept.append(kept[-1] if kept and np.array_equal(kept[-1], values) else np.array(values))
        used.append(getattr(env, "nut_id", getattr(env, "object_id", 0)))
    varying = [name for name in reals if any(each is not states[name][0] for each in states[name])]
    starts = {name: np.array(states[name]) for name in (*STATE, "touch", *varying)}
    return starts | {"used": np.array(used)}
