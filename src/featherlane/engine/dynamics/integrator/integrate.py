"""Implements the integrators: semi-implicit Euler, implicit in the velocity, and fourth-order Runge-Kutta.

qvel' = qvel + h qacc*, then qpos' = qpos (+) h qvel', where (+) rotates quaternions by the exponential of the local
rotation.  The integrators differ in qacc*, the field qacc_step.  D denotes the velocity derivative of the forces that
an integrator treats implicitly, B >= 0 the part of -D from joint damping.

m.implicit_diagonal is 1 if D is diagonal in every state without a fluid.  Then articulated bodies can solve with
M - h D: the diagonal of -h D is added to the pivots.  jnt_actuatorid is -1 for a joint to which no actuator adds
armature or damping.
The patterns DIAGONAL and LOWER (that of M) of a matrix are those of sparse/outer.py.

The integrators store the factor of their matrix in qH and qHDiagInv.  Where no factor is needed, qHDiagInv holds the
values that are added to a diagonal.

Imported kernels:

    uses_articulated(m)                whether the model solves by the recursion over articulated bodies
    articulated_solve(m, d, extra, x)  x <- (M + diag(extra))^-1 x by this recursion
    factor_and_solve                   (m, A, L, inverse, x, own_diagonal): L, inverse <- factor of A, x <- A^-1 x
                                       own_diagonal=1: A as it is, own_diagonal=0: with the diagonal in `inverse`
    solve_factored                     (m, L, inverse, x): x <- A^-1 x, with this factor
    damping_coefficients(m, d, i)      (b, c, e) of the damping force -v (b + c |v| + e v^2) of DoF i
    implicit_rate((b, c, e), |v|)      b + 2 c |v| + 3 e v^2, minus the derivative of this force
    has_reflected_terms(m, j)          mask of worlds where an actuator adds armature or damping to joint j
    fluid_worlds(m)                    mask of worlds with a fluid
    fluid_acts(m)                      whether some world has a fluid, and passive forces are enabled

Source: MuJoCo, chapter Computation, numerical integration.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.activation import advance_activations
from featherlane.engine.dynamics.actuator.history import insert_controls
from featherlane.engine.dynamics.actuator.rate import actuator_rates
from featherlane.engine.dynamics.actuator.reflected import damping_coefficients, has_reflected_terms
from featherlane.engine.dynamics.body.force_laws import implicit_rate
from featherlane.engine.dynamics.body.joint import advance_joint
from featherlane.engine.dynamics.body.plastic import yield_springs
from featherlane.engine.dynamics.inertia.articulated import articulated_solve, uses_articulated
from featherlane.engine.dynamics.inertia.joint_space import factor_and_solve, solve_factored
from featherlane.engine.dynamics.integrator.derivative import add_smooth_rates
from featherlane.engine.dynamics.integrator.free_body import has_single_free_body, solve_free_bodies
from featherlane.engine.dynamics.integrator.velocity_derivative import store_rates_without_bias
from featherlane.engine.dynamics.passive.fluid import fluid_worlds
from featherlane.engine.dynamics.passive.fluid_derivative import fluid_acts
from featherlane.engine.dynamics.sparse.outer import DIAGONAL, LOWER


@kernel
def integrate_pos(m, qpos, velocity, start, h, rotation):
    """qpos <- start (+) h velocity; rotation: FINITE or INFINITESIMAL, the update of quaternions (`advance_joint`)."""
    for j in range(m.njnt):
        advance_joint(m, j, qpos, velocity, start, h, rotation)


@kernel
def advance_state(m, d, acceleration):
    """Advances histories, activations, velocity, position with the new velocity, plastic springs, time, warm start.

    acceleration: (nv,) qacc*.   Writes: history, act, qvel, qpos, plastic, time, qacc_warmstart (qacc).
    """
    h = timestep(m)
    insert_controls(m, d)
    advance_activations(m, d, d.act_dot)
    for i in range(m.nv):
        d.qvel[i] = fma(h, acceleration[i], d.qvel[i])
        d.qacc_warmstart[i] = d.qacc[i]
    integrate_pos(m, d.qpos, d.qvel, d.qpos, h, m.opt_rotation)
    yield_springs(m, d, d.ten_length, d.ten_J, d.qvel)
    d.time[0] = d.time[0] + m.opt_timestep[0]


@kernel
def _add_damped(m, i, coefficients, found):
    """Returns `found`, set to 1 in worlds where `euler` damps DoF i: b > 0, c or e is not 0, or actuators add terms.

    coefficients: (b, c, e) of the damping force.
    """
    b, c, e = coefficients
    j = m.dof_jntid[i]
    # selected twice: LLVM makes a branch of a mask that an `if` changes, 2 % of the instructions of one world's `euler`
    found = where((b > 0.0) | (c != 0.0) | (e != 0.0), 1.0, found)
    if m.jnt_actuatorid[j] != -1:
        found = where(has_reflected_terms(m, j), 1.0, found)
    return found


@kernel
def damps_implicitly(m, d):
    """Returns the mask of worlds with a damped DoF: there `euler` uses an acceleration other than qacc."""
    found = 0.0
    for i in range(m.nv):
        found = _add_damped(m, i, damping_coefficients(m, d, i), found)
    return found > 0.0


@kernel
def store_damped_diagonal(m, d, articulated):
    """qHDiagInv <- diagonal of M + h B, or with `articulated` of h B alone; returns the mask of damped worlds.

    B: damping rates b + 2 c |v| + 3 e v^2.
    """
    h = timestep(m)
    found = 0.0
    for i in range(m.nv):
        coefficients = damping_coefficients(m, d, i)
        found = _add_damped(m, i, coefficients, found)
        rate = implicit_rate(coefficients, fabs(d.qvel[i]))
        if articulated:
            d.qHDiagInv[i] = h * rate
        else:
            # M_ii is the last entry of row i
            d.qHDiagInv[i] = fma(h, rate, d.M[m.M_rowadr[i] + m.M_rownnz[i] - 1])
    return found > 0.0


@kernel
def euler_acceleration(m, d, undamped):
    """qacc_step <- (M + h B)^-1 (qfrc_smooth + qfrc_constraint); `undamped` in worlds without implicit damping.

    undamped: (nv,) the acceleration without implicit damping.
    Writes: qacc_step; qH, qHDiagInv: the factor of M + h B, or with articulated bodies the diagonal h B in qHDiagInv.
    """
    copy(d.qacc_step, undamped, m.nv)
    if not (m.opt_disableflags & (DISABLE_EULERDAMP | DISABLE_DAMPER)):
        articulated = uses_articulated(m)
        damped = store_damped_diagonal(m, d, articulated)  # writes qHDiagInv
        if any_(damped):
            for i in range(m.nv):
                d.qacc_step[i] = d.qfrc_smooth[i] + d.qfrc_constraint[i]
            if articulated:
                articulated_solve(m, d, d.qHDiagInv, d.qacc_step)
            else:
                factor_and_solve(m, d.M, d.qH, d.qHDiagInv, d.qacc_step, own_diagonal=0)
            for i in range(m.nv):
                d.qacc_step[i] = where(damped, d.qacc_step[i], undamped[i])


@kernel
def euler_again(m, d, x):
    """qacc_step <- (M + h B)^-1 x, with the factor that `euler_acceleration` left in qH and qHDiagInv.

    Valid only in worlds with damping.
    """
    copy(d.qacc_step, x, m.nv)
    if uses_articulated(m):
        articulated_solve(m, d, d.qHDiagInv, d.qacc_step)
    else:
        solve_factored(m, d.qH, d.qHDiagInv, d.qacc_step)


@stage
def euler(m, d):
    """Integrates with semi-implicit Euler and implicit joint damping: (M + h B) qacc* = M qacc.

    Worlds without damping, or with eulerdamp or dampers disabled, use qacc* = qacc.
    Source: MuJoCo mj_Euler.
    Reads:  qacc, qvel, qpos, act_dot, M, qfrc_smooth, qfrc_constraint.
    Writes: qvel, qpos, time, act, history, plastic, qacc_warmstart; with damping qacc_step, qH, qHDiagInv; scratch
            memory: aba_*, cacc, cfrc.
    Cost:   O(nv * depth^2) with damping.
    """
    euler_acceleration(m, d, d.qacc)
    advance_state(m, d, d.qacc_step)


@kernel
def store_implicit_matrix(m, d):
    """qH <- M - h D, on M's pattern."""
    copy(d.qH, d.M, m.nC)
    add_smooth_rates(m, d, -timestep(m), d.qH, LOWER)


@kernel
def store_implicit_diagonal(m, d):
    """qHDiagInv <- diagonal of -h D, if D has no other entries; no factor needs this buffer here."""
    clear(d.qHDiagInv, m.nv)
    add_smooth_rates(m, d, -timestep(m), d.qHDiagInv, DIAGONAL)


@kernel
def store_implicitfast_rates(m, d):
    """actuator_rate <- slopes of actuators; qDeriv <- D on request, and for separate free bodies."""
    if not (m.opt_disableflags & DISABLE_ACTUATION):
        actuator_rates(m, d)
    if d.want_derivative or has_single_free_body(m):
        store_rates_without_bias(m, d)  # writes qDeriv


@kernel
def _solve_with_fluid(m, d):
    """qacc_step <- (M - h D)^-1 qacc_step: by the factor in worlds with a fluid, by articulated bodies in others.

    Both are computed, because in a fluid D is not diagonal.
    Reads:  qHDiagInv (diagonal of -h D).   Writes: qacc_step; qvec, qH, qHDiagInv.
    """
    has_fluid = fluid_worlds(m)
    copy(d.qvec, d.qacc_step, m.nv)
    articulated_solve(m, d, d.qHDiagInv, d.qvec)
    store_implicit_matrix(m, d)  # writes qH
    factor_and_solve(m, d.qH, d.qH, d.qHDiagInv, d.qacc_step, own_diagonal=1)
    for i in range(m.nv):
        d.qacc_step[i] = where(has_fluid, d.qacc_step[i], d.qvec[i])


@kernel
def implicitfast_reads_inertia(m):
    """Returns whether M is needed: if D is not diagonal, or a fluid makes it so."""
    return m.implicit_diagonal == 0 or fluid_acts(m)


@kernel
def implicitfast_acceleration(m, d):
    """qacc_step <- (M - h D)^-1 (qfrc_smooth + qfrc_constraint), with a separate system for each separate free body.

    - With articulated bodies and a D that is diagonal without a fluid: the recursion, with the diagonal of -h D in
      qHDiagInv; if a fluid acts, `_solve_with_fluid`.
    - Else the factor of M - h D, in qH and qHDiagInv.
    Writes: qacc_step; actuator_rate; qDeriv on request and for separate free bodies; qH, qHDiagInv.
    """
    for i in range(m.nv):
        d.qacc_step[i] = d.qfrc_smooth[i] + d.qfrc_constraint[i]
    store_implicitfast_rates(m, d)  # writes actuator_rate, qDeriv
    if not (uses_articulated(m) and m.implicit_diagonal):
        store_implicit_matrix(m, d)  # writes qH
        factor_and_solve(m, d.qH, d.qH, d.qHDiagInv, d.qacc_step, own_diagonal=1)
    else:
        store_implicit_diagonal(m, d)  # writes qHDiagInv
        if fluid_acts(m):
            _solve_with_fluid(m, d)
        else:
            articulated_solve(m, d, d.qHDiagInv, d.qacc_step)
    solve_free_bodies(m, d)  # replaces their part of qacc_step


@kernel
def implicitfast_again(m, d, x):
    """qacc_step <- (M - h D)^-1 x, after `implicitfast_acceleration` and by its method, with the factor that it left.

    The caller also stores x in qfrc_smooth and 0 in qfrc_constraint, whose sum `solve_free_bodies` reads.
    Reads:  qH, qHDiagInv (left by `implicitfast_acceleration`), actuator_rate, qDeriv.
    """
    copy(d.qacc_step, x, m.nv)
    if not (uses_articulated(m) and m.implicit_diagonal):
        solve_factored(m, d.qH, d.qHDiagInv, d.qacc_step)
    elif fluid_acts(m):
        # _solve_with_fluid reads the diagonal in qHDiagInv, and leaves a factor there
        store_implicit_diagonal(m, d)
        _solve_with_fluid(m, d)
    else:
        articulated_solve(m, d, d.qHDiagInv, d.qacc_step)
    solve_free_bodies(m, d)


@stage
def implicitfast(m, d):
    """Integrates implicitly in the velocity, without the derivatives of Coriolis forces: (M - h D) qacc* = M qacc.

    D: derivatives of damping and of unsaturated actuator forces, on the pattern of M.  A separate free
    body gets its gyroscopic derivatives back, by a separate 6 x 6 solve.  If D is diagonal the model may use
    articulated bodies.
    Source: MuJoCo mj_implicit with the integrator implicitfast; chapter Computation, gyroscopic derivatives for free
            bodies.
    Reads:  qvel, qpos, act_dot, M, qfrc_smooth, qfrc_constraint, ctrl, actuator_force, qfrc_actuator, xmat, xpos,
            cinert.
    Writes: qvel, qpos, time, act, history, plastic, qacc_warmstart; qacc_step, qH, qHDiagInv, actuator_rate; scratch
            memory: crb_drag, block, block_*, qvec, aba_*, cacc, cfrc; qDeriv on request and for separate free bodies.
    Cost:   O(nv * depth^2).
    """
    implicitfast_acceleration(m, d)
    advance_state(m, d, d.qacc_step)


@stage
def advance(m, d):
    """Steps with the given acceleration qacc: semi-implicit Euler without implicit damping.

    Reads:  qacc, qvel, qpos, act_dot.   Writes: qvel, qpos, time, act, history, plastic, qacc_warmstart.
    """
    advance_state(m, d, d.qacc)


@kernel
def semi_implicit(m, d):
    """Applies Euler's step for either contact model; the LCP model (as ODE) has no implicit joint damping."""
    if m.opt_contact_model == LCP:
        advance(m, d)
    else:
        euler(m, d)


@kernel
def is_implicit(m):
    """Returns whether the integrator uses another acceleration than that of forward dynamics."""
    damps = m.opt_integrator == EULER and not (m.opt_disableflags & (DISABLE_EULERDAMP | DISABLE_DAMPER))
    return damps or m.opt_integrator == IMPLICIT or m.opt_integrator == IMPLICITFAST
