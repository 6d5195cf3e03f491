"""Lists the fields of a tile of worlds, in the order in which they become valid.

Each package declares the fields of its kernels in a `fields.py`.  This list determines allocation, the record that
kernels read, the arrays of `fl.Data`, and the reference page.  The fields' roles determine which are reset, copied,
stored, shown and readable in user callbacks.  Names are MuJoCo's if the meaning is MuJoCo's.
"""

from featherlane.engine.collision import fields as collision
from featherlane.engine.constraint import fields as constraint
from featherlane.engine.dynamics import fields as state
from featherlane.engine.dynamics.actuator import fields as actuator
from featherlane.engine.dynamics.body import fields as body
from featherlane.engine.dynamics.inertia import fields as inertia
from featherlane.engine.dynamics.integrator import fields as integrator
from featherlane.engine.dynamics.passive import fields as passive
from featherlane.engine.dynamics.tendon import fields as tendon
from featherlane.engine.lanes.layout import Layout
from featherlane.engine.model.status import STATUS as STATUS  # the entries of `warning`
from featherlane.engine.sensor import fields as sensor
from featherlane.engine.simulation.step import fields as step
from featherlane.engine.solver import fields as solver
from featherlane.engine.solver.dual import fields as dual
from featherlane.engine.solver.hessian import fields as hessian
from featherlane.engine.solver.lcp import fields as lcp
from featherlane.engine.solver.lcp import island_fields
from featherlane.engine.solver.lcp.rows import fields as lcp_rows
from featherlane.engine.solver.primal import fields as primal
from featherlane.engine.solver.rows import fields as rows

FIELD_MODULES = (state, step, body, inertia, tendon, actuator, passive, integrator, collision, constraint)
FIELD_MODULES += (solver, rows, hessian, primal, dual, lcp_rows, lcp, island_fields, sensor)

OBJECTS = {"contact": "con_", "row": "row_", "actuator": "actuator_", "tendon": "ten_"}
OBJECTS |= {"geom": "geom_", "site": "site_"}
DATA = Layout("Data", tuple(field for module in FIELD_MODULES for field in module.FIELDS), OBJECTS)

# all that holds addresses outside the record: arrays of the role, and sizes, which have no role; 0 between two calls
ADDRESSES = (*DATA.of("address"), "user_control", "control_record")

# the fields that a step computes if a size is not 0
_SHOWN = [DATA[name] for name in DATA.that("shown")]
WANTED = {size: frozenset(DATA.conditional(size)) for f in _SHOWN for size in f.condition.split() if size in DATA}
