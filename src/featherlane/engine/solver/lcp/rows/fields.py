"""Fields that map the rows of a tile to its LCP."""

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.spatial.types import Vec3, Wrench

_slot = Declare("make_lcp", "slot")
_output = Declare("link_forces", "output")
_lcp = Declare("make_lcp", "scratch", record="lcp")

FIELDS = (
    # parameters of contacts
    _slot.real("con_frictionforce", "nconmax", "1", "lcp: 1: sliding friction is a force [N]"),
    _slot.real("con_erp", "nconmax", "1", "lcp: ERP of the normal row"),
    _slot.real("con_cfm", "nconmax", "m/(s N)", "lcp: CFM of the normal row"),
    _slot.real("con_restitution", "nconmax", "1", "lcp, coulomb: coefficient of restitution"),
    _slot.real("con_restitution_vel", "nconmax", "m/s", "lcp, coulomb: approach speed above which restitution acts"),
    _slot.real("con_compliance", "nconmax 2", "m/(s N)", "lcp: CFM of the friction rows (slip)"),
    _slot.rows(Vec3, "con_belt", "nconmax", "m/s", "lcp: surface velocity along normal and tangents"),
    # indices of the rows
    _slot.int("con_lcprow", "nconmax", "1", "lcp: row of the slot's normal; its friction rows follow"),
    _slot.int("row_lcprow", "nrowmax", "1", "lcp: row of the scalar row"),
    _slot.int("link_lcprow", "nlink 2", "1", "lcp: first row of the link; row of its motor or stop, -1: none"),
    _output.rows(Wrench, "link_force", "nlink", "N, N m", "force and torque on the first body at its com"),
    _lcp.real("scale", "nv", "1/sqrt(kg)", "lcp: 1 / sqrt(D) of the factor in qH"),
)
