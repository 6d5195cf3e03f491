"""Fields of passive forces: springs, dampers, gravity compensation, fluid forces, adhesion."""

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.spatial.types import Force

_passive_output = Declare("passive", "output")
_passive_output_conditional = Declare("passive", "output", condition="want_all")
_scratch = Declare("passive", "scratch")
_room = Declare("smooth_vel", "room")

FIELDS = (
    _passive_output.real("qfrc_spring", "nv", "N, N m", "joint spring force"),
    _passive_output.real("qfrc_damper", "nv", "N, N m", "joint damper force"),
    _passive_output.real("qfrc_gravcomp", "nv", "N, N m", "gravity compensation"),
    _passive_output_conditional.real("qfrc_fluid", "nv", "N, N m", "fluid force"),
    _passive_output.real("qfrc_adhesion", "nv", "N, N m", "force of adhesive contacts"),
    _passive_output.real("qfrc_passive", "nv", "N, N m", "total passive force"),
    _scratch.rows(Force, "cfrc_fluid", "nbody", "N m, N", "composite: wrench of the fluid, at the tree's com"),
    _room.rows(
        Force, "crb_drag", "nbody 6", "N s/m, N m s/rad", "composite: derivative of the fluid wrench by the velocity"
    ),
)
