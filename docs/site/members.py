"""Members of classes and enumerations, as the reference shows them."""

from __future__ import annotations

import enum
import inspect

import featherlane as fl

# members that other modules of the package use, and no user needs: of all classes, or of one
INTERNAL = set(
    "bound check_edits check_values contact_slots contents dependent_fields expanded_fields forward_bound given_rows "
    "holds_between is_busy is_left_out keyframe_numbers move_into mute pair_memory query renew row_memory rows "
    "sense sensor_values shared_arrays size_values take_constants take_over variant_values watch world_copy "
    "world_shape writable write_to Model.compiled".split()
)
# members of classes by subject
GROUPS = {
    fl.Batch: {
        "simulation": "step rollout forward inverse reset",
        "state": "get_state set_state checkpoint restore copy",
        "fields": "bind expand expanded get present_fields set_const set_variant get_variant",
        "access by name": "actuator body camera equality geom joint link sensor site tendon",
        "contacts": "contacts net_contact_force give_contacts clear_given_contacts geom_distance",
        "sensing": "render scan height_scan ray",
        "kinematics and dynamics": (
            "equality_force "
            "jac jac_body jac_dot jac_site jac_subtree_com angular_momentum_matrix full_m coriolis_matrix "
            "moment_arms torque_regressor inertial_parameters object_acceleration object_velocity tendon_arcs"
        ),
        "status": "status count_of",
        "models": "groups models",
        "one world, MuJoCo": "get_data get_model from_mujoco to_mujoco",
    },
    fl.distributed.Batch: {
        "simulation": "step rollout forward reset",
        "state": "get_state set_state checkpoint restore",
        "fields": "bind expand get set set_const set_variant",
        "contacts": "give_contacts clear_given_contacts",
        "sensing": "render scan height_scan",
        "reductions": "reduce",
        "status": "status count_of failures",
        "workers": "call close",
        "models": "models",
        "one world": "get_data get_model",
    },
}


def members(cls: type) -> list[tuple[str, object]]:
    """What a class of this package shows, its own and what it has from classes of this package.

    A task shows the methods to which it gives a docstring, because its bases have entries.
    """
    found: dict[str, object] = {}
    is_task = "featherlane.environments.task.Task" in [f"{base.__module__}.{base.__name__}" for base in cls.__mro__]
    for base in [cls] if is_task else reversed(cls.__mro__):
        if base.__module__.startswith("featherlane"):
            for name, member in vars(base).items():
                if (
                    name.startswith("_")
                    or {name, f"{cls.__name__}.{name}"} & INTERNAL
                    or (is_task and not member.__doc__)
                ):
                    continue
                if inspect.isfunction(member) or isinstance(member, property):
                    found[name] = member
    return sorted(found.items())


def grouped(cls: type) -> dict[str, list[tuple[str, object]]]:
    """Returns the members of a class under the titles of their groups; a class without groups has one, untitled."""
    found = dict(members(cls))
    if cls not in GROUPS:
        return {"": list(found.items())}
    listed = {title: [(name, found.pop(name)) for name in names.split()] for title, names in GROUPS[cls].items()}
    if found:
        raise LookupError(f"members of {cls.__name__} in no group: {sorted(found)}")
    return listed


def enum_members(cls: type[enum.Enum]) -> list[str]:
    """Returns the members of an enumeration as a table."""
    return ["| member | value |", "| --- | ---: |", *(f"| `{m.name}` | {m.value} |" for m in cls), ""]
