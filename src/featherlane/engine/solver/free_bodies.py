"""Free bodies without contacts or other rows: under `discrete` their accelerations include gyroscopic derivatives.

`has_metric(m)`: whether the model uses the integrator `discrete`, which solves in a metric in place of M, with an
entry for each actuator that has rates (`actuator_metric`).
Rows: con_* of contacts, on the bodies con_carrier; row_* on the dofs row_dof, row_dofnum of them from row_dofadr on.
D = 0 in worlds without the row.
`fold_rows(scalar, contact)`: kernel (m, d, unused, x) that runs both kernels for all rows; here x has no meaning.
`solve_untouched_bodies` solves (Mhat + h d(bias) / d qvel) qacc = f0, with f0 of `metric_force` the force without
constraints, for the untouched trees whose only joint is free.
dof_touched[i], at the first dof i of a tree: 1 if a row or such an actuator acts on the tree.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.fold import fold_rows
from featherlane.engine.constraint.general import row_entries
from featherlane.engine.dynamics.actuator.control import is_disabled
from featherlane.engine.dynamics.inertia.metric import metric, metric_force
from featherlane.engine.dynamics.integrator.discrete import actuator_metric, has_actuator_metric
from featherlane.engine.dynamics.integrator.free_body import solve_untouched_bodies
from featherlane.engine.model.integrator import has_metric


@kernel
def _touch_tree(m, d, b, mask):
    """Sets dof_touched = 1 at the first dof of the tree of body b, in worlds of the mask."""
    if m.body_treeid[b] >= 0:  # else the body is fixed to the world
        i = m.tree_dofadr[m.body_treeid[b]]
        d.dof_touched[i] = where(mask & (d.active[0] > 0.0), 1.0, d.dof_touched[i])


@kernel
def _touch_by_row(m, d, k, unused, touched):
    """Marks the trees that scalar row k acts on; returns `touched`, which `fold_rows` passes on."""
    for e in row_entries(d, k):
        _touch_tree(m, d, m.dof_bodyid[d.row_dof[e]], d.row_D[k] > 0.0)
    return touched


@kernel
def _touch_by_contact(m, d, k, unused, touched):
    """Marks the trees that contact k acts on; returns `touched`, which `fold_rows` passes on."""
    for side in range(2):
        _touch_tree(m, d, d.con_carrier[k, side], d.con_D[k] > 0.0)
    return touched


_touch_by_rows = fold_rows(_touch_by_row, _touch_by_contact)


@kernel
def mark_touched(m, d):
    """Sets dof_touched at the first dof of each tree: 1 if a row, or an actuator with rates, acts on the tree, else 0.

    Only active worlds change: a part of a split tile keeps the marks of the worlds in other parts.
    """
    if has_metric(m):
        for i in range(m.nv):
            d.dof_touched[i] = where(d.active[0] > 0.0, 0.0, d.dof_touched[i])
        _touch_by_rows(m, d, 0, 0)
        if has_actuator_metric(m):
            for i in range(m.nactuator):
                if not is_disabled(m, i):
                    _touch_by_actuator(m, d, i, actuator_metric(m, d, i) > 0.0)


@kernel
def _touch_by_actuator(m, d, i, acts):
    """Marks the trees that actuator i acts on, in worlds in which it acts."""
    # an output of the actuator has one row of moment arms, whose dofs are moment_colind
    for o in actuator_outputs(m, i):
        for e in moment_entries(m, o):
            _touch_tree(m, d, m.dof_bodyid[m.moment_colind[e]], acts)


@stage
def accelerate_untouched_bodies(m, d):
    """Under `discrete`, computes qacc of each free body that nothing touches, with its gyroscopic derivatives.

    Source: MuJoCo 4, chapter Computation, "Discrete-time"; an experiment with 4.0.1 showed that rows and actuators
        with rates remove these derivatives.
    Reads:  Mhat (nC,), qfrc_step (nv,), dof_touched.
    Writes: qacc.
    Scratch: block, block_*.
    """
    if has_metric(m):
        # metric: Mhat, to which the gyroscopic derivatives are added;  metric_force: force without constraints
        solve_untouched_bodies(m, d, metric(m, d), metric_force(m, d), d.qacc)
