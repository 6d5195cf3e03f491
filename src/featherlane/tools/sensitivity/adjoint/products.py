"""Propagates costates backwards through tiles of worlds: products with a step's derivatives, which are never formed.

With l' = (l'_q, l'_v, l'_a) by the next state, and  q' = q (+) h v',  v' = v + h a*,  K a* = M a - p,  g(a; x, u) = 0,

    lam = l'_v + h J^T l'_q           by the next velocity, J the right Jacobian of tangent.py
    z = K^-1 h lam,  y = H^-1 M z     (y = H^-1 h lam and no z if the integrator uses the acceleration itself)
    l_c = -y . dg_c + z . dp_c + (the direct derivatives of x' by q, v and activations)

for each coordinate c.  This takes one solve in total, while the derivative itself takes one for each column.  The rates
dg_c, dp_c at fixed acceleration are those of the formulas.

In the record p (COSTATES), by_q, by_v and by_act are l' at first, and l' times the direct derivatives of x' after
`solve_costate`; y and z as above; next_qvel = v', written by `begin_step`; `solved` and `product` are scratch.
report[KNOWN]: 1 if all rates have formulas, 0 if not, -1 if the world must run alone; report[FITS]: 1 if its rows fit;
report[NEAREST]: distance to the next change of the active set.  Coordinates c are positions by dof, then velocities,
activations and controls.  `damped` is the mask of worlds with K other than M, which `begin_step` returns.
`implicit_rates` writes qacc_step = K^-1 x; `substitute` overwrites its argument x with H^-1 x.
A stage `..._of_tile` works on one tile of worlds.  The transfers of its record b copy the states of b.nstep steps into
the tile, the last step first, and results out of it.
Source: implicit function theorem, transposed; Griewank and Walther, Evaluating Derivatives (2008), ch. 15.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.articulated import inertia_times
from featherlane.engine.dynamics.integrator.integrate import is_implicit
from featherlane.engine.lanes.layout import Declare, Layout
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.engine.solver.hessian.equation import leaves_out, substitute
from featherlane.tools.sensitivity.columns.formulas import rates_column
from featherlane.tools.sensitivity.rates.records import FITS, KNOWN, NEAREST, RATES
from featherlane.tools.sensitivity.systems.formulas import begin_step
from featherlane.tools.sensitivity.systems.solution import implicit_rates

_given, _found = Declare("", "given"), Declare("", "output")
COSTATES = Layout(
    "Costates",
    (
        *RATES.fields,
        _given.real("loss_q", "nv", "1/m, 1/rad", "direct derivative of the loss by the position"),
        _given.real("loss_v", "nv", "s/m, s/rad", "direct derivative of the loss by the velocity"),
        _given.real("loss_act", "na", "1", "direct derivative of the loss by the activations"),
        _found.real("by_q", "nv", "1/m, 1/rad", "derivative of the loss by the next, then the current position"),
        _found.real("by_v", "nv", "s/m, s/rad", "derivative of the loss by the next, then the current velocity"),
        _found.real("by_act", "na", "1", "derivative of the loss by the next, then the current activations"),
        _found.real("y", "nv", "1/N, 1/(N m)", "minus the derivative of the loss by the residual g"),
        _found.real("z", "nv", "1/N, 1/(N m)", "derivative of the loss by the integrator's correction p"),
        _found.real("number", "1", "1", "a gradient entry or a report value"),
    ),
)

REPORTS = 2  # values of a step besides its gradients: KNOWN, NEAREST


@kernel
def pull_tangent(m, p):
    """by_q, by_v <- derivatives by q and v', from those by q' = q (+) h v' and v'; transposes tangent.py.

    dq' = exp(-r) dq + h J dv', so by_v += h J^T by_q and by_q <- exp(-r)^T by_q.  Here r = h w' is the rotation of the
    step, and J its right Jacobian; joints without quaternion have exp(-r) = J = 1.
    """
    h = timestep(m)
    for j in range(m.njnt):
        v, kind = m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            p.by_v[v : v + 3] = fma(h, Vec3(p.by_q[v : v + 3]), Vec3(p.by_v[v : v + 3]))
            v += 3  # the rotations follow
        if has_quaternion(kind):
            gradient = Vec3(p.by_q[v : v + 3])
            for c in range(3):
                # dot products with the columns of J and exp(-r) are products with J^T and exp(-r)^T
                p.by_v[v + c] = fma(h, dot(p.dof_tangent[v + c], gradient), p.by_v[v + c])
                p.by_q[v + c] = dot(p.dof_back[v + c], gradient)
        else:
            p.by_v[v] = fma(h, p.by_q[v], p.by_v[v])


@kernel
def solve_costate(m, d, p, damped):
    """y, z <- solutions of the transposed systems; by_q, by_v <- l' times the direct derivatives of x' by q and v.

    damped: mask of worlds where K is not M.
    """
    h = timestep(m)
    pull_tangent(m, p)
    # by_v is lam, the gradient by the next velocity; qacc_step becomes z, which is 0 in worlds where K is M
    for i in range(m.nv):
        p.solved[i] = h * p.by_v[i]
        d.qacc_step[i] = 0.0
    if is_implicit(m):
        for i in range(m.nv):
            d.qfrc_smooth[i] = p.solved[i]
            d.qfrc_constraint[i] = 0.0
        # qacc_step <- z = K^-1 h lam, from the right-hand side qfrc_smooth + qfrc_constraint; where K is M, it is
        # `free`, which is replaced by 0 below
        implicit_rates(m, d, x=d.qfrc_smooth, free=p.solved, damped=damped)
        inertia_times(m, d, d.qacc_step, p.product)  # M z
        for i in range(m.nv):
            p.solved[i] = where(damped, p.product[i], p.solved[i])
            d.qacc_step[i] = where(damped, d.qacc_step[i], 0.0)
    substitute(m, d, p.solved)  # y = H^-1 M z, or H^-1 h lam where K is M
    for i in range(m.nv):
        p.y[i], p.z[i] = p.solved[i], d.qacc_step[i]


@kernel
def coordinate_gradient(m, p, c):
    """Returns l_c = z . dp - y . dg + (direct derivatives of x'), from the rates dg, dp and dact by coordinate c."""
    gradient = 0.0
    for i in range(m.nv):
        gradient = fma(p.z[i], p.dp[i], fma(-p.y[i], p.dg[i], gradient))
    # l' times the direct derivatives of x' by c
    if c < m.nv:
        gradient = gradient + p.by_q[c]
    elif c < 2 * m.nv:
        gradient = gradient + p.by_v[c - m.nv]
    else:
        for a in range(m.na):
            gradient = fma(p.by_act[a], p.dact[a], gradient)
    return gradient


@kernel
def write_result(b, p, thread, tile, k, value):
    """Writes `value` as result k of a tile's worlds."""
    p.number[0] = value  # the only output of the call's transfers
    write_records(b, thread, tile, k)


@stage(p=COSTATES)
def adjoint_steps_of_tile(m, d, b, p, thread, tile):
    """Computes costates before each step of a tile's worlds, and gradients by its controls, from the last step on.

    The call provides for each step the state, the costate after it, and the loss's direct gradient there.  It receives,
    value by value, gradients by positions, velocities, activations and controls, whether formulas apply, and the
    distance to the nearest switch.  The first of these, the costate before the step, lie in the memory from which the
    call provides the costate after the preceding step.
    Reads:  the rows that the transfers of b bring in, among them by_q, by_v, by_act, loss_q, loss_v, loss_act.
    Writes: those that they take back; number, report, by_q, by_v, by_act (costates), y, z, dg, dp, dact, next_qvel;
            body_*, dof_*, geom_*, row_*, slot_*, ten_* and all else of p; what `base_tiles` writes; act, which keeps
            its values.
    Scratch: qacc_step, qfrc_smooth, qfrc_constraint, con_wrench, crb_rate, cvel, cacc, cfrc, qvec, primal.*.
    """
    n = 2 * m.nv + m.na + m.nu
    for s in range(b.nstep):
        k = s * (n + REPORTS)  # number of the step's first result
        copy_step_inputs(b, thread, tile, s)  # the state, by_q, by_v, by_act, loss_q, loss_v, loss_act
        # l' = costate after this step + direct derivative of the loss by the state after this step
        for i in range(m.nv):
            p.by_q[i] = p.by_q[i] + p.loss_q[i]
            p.by_v[i] = p.by_v[i] + p.loss_v[i]
        for a in range(m.na):
            p.by_act[a] = p.by_act[a] + p.loss_act[a]
        damped = begin_step(m, d, p)
        # with con_overflow the contacts do not fit into the tile: the world must run alone (-1)
        if d.con_overflow[0] == 0:
            # -1 (run alone) if the Hessian lacks entries (leaves_out) or not all rows fit: both may fit without the
            # other worlds of the tile
            p.report[KNOWN] = where(leaves_out(d) | (p.report[FITS] == 0.0), -1.0, p.report[KNOWN])
            solve_costate(m, d, p, damped)
            for c in range(n):
                rates_column(m, d, p, c)
                write_result(b, p, thread, tile, k + c, coordinate_gradient(m, p, c))
        else:
            p.report[KNOWN] = -1.0
            p.report[NEAREST] = 0.0
            for c in range(n):
                write_result(b, p, thread, tile, k + c, 0.0)
        known, nearest = p.report[KNOWN], p.report[NEAREST]
        write_result(b, p, thread, tile, k + n, known)
        write_result(b, p, thread, tile, k + n + 1, nearest)


adjoint_steps = in_each_tile("adjoint_steps", adjoint_steps_of_tile)
