"""Lists the fields of a tile of worlds, in the order in which they become valid.

Each package declares the fields of its kernels in a `fields.py`.  This list determines allocation, the record that
kernels read, the arrays of `fl.Data`, and the reference page.  The fields' roles determine which are reset, copied,
stored, shown and readable in user callbacks.  Names are MuJoCo's if the meaning is MuJoCo's.
"""

from featherlane.collision import fields as collision
from featherlane.constraint import fields as constraint
from featherlane.dynamics import fields as state
from featherlane.dynamics.actuator import fields as actuator
from featherlane.dynamics.body import fields as body
from featherlane.dynamics.inertia import fields as inertia
from featherlane.dynamics.integrator import fields as integrator
from featherlane.dynamics.passive import fields as passive
from featherlane.dynamics.tendon import fields as tendon
from featherlane.lanes.layout import Layout
from featherlane.model.status import STATUS as STATUS  # the entries of `warning`
from featherlane.sensor import fields as sensor
from featherlane.simulation.step import fields as step
from featherlane.solver import fields as solver
from featherlane.solver.dual import fields as dual
from featherlane.solver.hessian import fields as hessian
from featherlane.solver.lcp import fields as lcp
from featherlane.solver.lcp import island_fields
from featherlane.solver.lcp.rows import fields as lcp_rows
from featherlane.solver.primal import fields as primal
from featherlane.solver.rows import fields as rows

FIELD_MODULES = (state, step, body, inertia, tendon, actuator, passive, integrator, collision, constraint)
FIELD_MODULES += (solver, rows, hessian, primal, dual, lcp_rows, lcp, island_fields, sensor)

OBJECTS = {"contact": "con_", "row": "row_", "actuator": "actuator_", "tendon": "ten_"}
OBJECTS |= {"geom": "geom_", "site": "site_"}
DATA = Layout("Data", tuple(field for module in FIELD_MODULES for field in module.FIELDS), OBJECTS)

# the fields that a step computes if a size is not 0
_SHOWN = [DATA[name] for name in DATA.that("shown")]
WANTED = {size: frozenset(DATA.conditional(size)) for f in _SHOWN for size in f.condition.split() if size in DATA}
