"""Defines the roles of user callbacks, and the fields that a callback may read in each role.

A tile's memory holds other worlds' values until a stage has written those of this world.  A callback may therefore read
only fields that are valid when it is called.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.simulation.tile.fields import DATA

# passes that have run when a function is called, in their order
_STATE = ("", "integrate")  # inputs, and the last step
_POSITION = ("kinematics", "com_pos", "frames", "cameras", "crb", "tendon", "transmission")
_VELOCITY = ("com_vel", "rne", "tendon_velocity", "passive")
_CONTROL = ("output_velocities", "limit_controls")
_ACCELERATION = ("actuation", "smooth_acceleration", "solve", "energy", "subtree_vel", "rne_post_constraint")


class Role(NamedTuple):
    """Describes what the engine calls a function for.

    Attributes:
        name: `activation`, `gain`, `bias`, `sensor`, `control` or `lcp_solver`.
        parameters: names of its parameters.
        reads: fields of the tile that are valid when it is called.
        sets: fields of the tile that it sets itself.
        result: the field that its result is written to; empty if it has none.
        address: the field of the model that holds the first row of its result, by element; empty: row 0.
    """

    name: str
    parameters: tuple[str, ...]
    reads: frozenset[str]
    sets: tuple[str, ...] = ()
    result: str = ""
    address: str = ""

    def __reduce__(self):
        return find_role, (self.name,)


def _after(*stages: str) -> frozenset[str]:
    """Returns the fields that a function may read once these stages have run."""
    return frozenset(f.name for f in DATA.fields if f.traits.read and f.stage in stages)


_before = _after(*_STATE, *_POSITION, *_VELOCITY)
_driven = _before | _after(*_CONTROL)
_forced = _driven | _after("activation")
_solved = _forced | _after(*_ACCELERATION) | {"ncon"}  # of the reports only that which inverse dynamics writes, too

CONTROL = Role("control", ("m", "d"), _before, sets=DATA.of("drive"))
ACTIVATION = Role("activation", ("m", "d", "i"), _driven, result="act_dot", address="actuator_actadr")
GAIN = Role("gain", ("m", "d", "i"), _forced, result="user_term")
BIAS = GAIN._replace(name="bias")
SENSOR = Role("sensor", ("m", "d", "i"), _solved, result="sensor_now", address="sensor_adr")

# an LCP solver reads the problem and its own buffers, and sets the solution
_LCP = frozenset(
    f"lcp.{name}" for name in "n dense findex coladr colnum rowadr col parameter Y A cfm diag b lo hi add".split()
)
_LCP_BUFFERS = tuple(f"lcp.{name}" for name in "x w z y g target dx dw best step order".split())
LCP_SOLVER = Role("lcp_solver", ("d", "i"), _LCP | set(_LCP_BUFFERS), sets=_LCP_BUFFERS, result="lcp.niter")

_BY_NAME = {role.name: role for role in (CONTROL, ACTIVATION, GAIN, BIAS, SENSOR, LCP_SOLVER)}


def find_role(name: str) -> Role:
    """Returns the role of that name."""
    return _BY_NAME[name]
