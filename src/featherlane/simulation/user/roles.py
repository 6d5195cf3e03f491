"""What the engine calls functions of the user for, and which fields they may read then.

A tile's memory holds other worlds' numbers until a stage has written this world's: a function reads what is valid when
it is called, and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.simulation.tile.fields import DATA

_INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat", "eq_active")
_POSITION = ("kinematics", "com_pos", "frames", "crb", "factor_m", "tendon", "transmission")
_VELOCITY = ("com_vel", "tendon_velocity", "passive")
_SCRATCH = {"crb", "qLD", "qLDiagInv", "history", "plastic", "cfrc_fluid"}


class Role(NamedTuple):
    """What the engine calls a function for.

    Attributes:
        name: `activation`, `gain`, `bias`, `sensor` or `control`.
        parameters: names of its parameters.
        reads: fields of the tile that are valid when it is called.
        sets: fields of the tile that it sets itself.
        result: the field that its result is written to; empty where it has none.
        address: the field of the model that says at which row, by element; empty: row 0.
    """

    name: str
    parameters: tuple[str, ...]
    reads: frozenset[str]
    sets: tuple[str, ...] = ()
    result: str = ""
    address: str = ""

    def __reduce__(self):
        return named, (self.name,)


_before = {f.name for f in DATA.fields if f.kind == "real" and f.stage in ("integrate", *_POSITION, *_VELOCITY)}
_before |= {*_INPUTS, "cam_xpos", "cam_xmat", "qfrc_bias"}
_driven = _before | {"actuator_velocity", "actuator_input"}
_solved = "actuator_force qfrc_actuator qfrc_smooth qacc_smooth qacc qfrc_constraint ncon".split()
_after = _driven | {"act_dot", *_solved, "energy", "cfrc_int", "cfrc_ext", "cacc", "subtree_linvel", "subtree_angmom"}

CONTROL = Role("control", ("m", "d"), frozenset(_before - _SCRATCH), sets=_INPUTS[:3])
ACTIVATION = Role(
    "activation", ("m", "d", "i"), frozenset(_driven - _SCRATCH), result="act_dot", address="actuator_actadr"
)
GAIN = Role("gain", ("m", "d", "i"), frozenset(_driven - _SCRATCH | {"act_dot"}), result="user_term")
BIAS = GAIN._replace(name="bias")
SENSOR = Role("sensor", ("m", "d", "i"), frozenset(_after - _SCRATCH), result="sensor_now", address="sensor_adr")

_BY_NAME = {role.name: role for role in (CONTROL, ACTIVATION, GAIN, BIAS, SENSOR)}


def named(name: str) -> Role:
    """The role of that name."""
    return _BY_NAME[name]
