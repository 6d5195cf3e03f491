"""Compares forward and inverse dynamics, and computes the constraint forces and the force of inverse dynamics.

With the flag `fwdinv` each step makes the comparison once the acceleration is known.  It compares the solver's
constraint forces with those that inverse dynamics computes from the acceleration, and the applied force with the
external force of inverse dynamics.  Both differences vanish as the solver converges.
`contacts_and_forces` stores the forces of rows with STORE_FORCES, and keeps those of the solver with KEEP_FORCES.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.awake import clear_asleep, sleeping
from featherlane.engine.dynamics.body.xfrc import add_xfrc
from featherlane.engine.dynamics.inertia.articulated import inertia_times
from featherlane.engine.dynamics.inertia.joint_space import multiply_joint_space
from featherlane.engine.dynamics.integrator.discrete import add_couplings, add_spring_change
from featherlane.engine.dynamics.integrator.free_body import multiply_untouched_bodies
from featherlane.engine.model.integrator import has_metric
from featherlane.engine.sensor.measure import FIRST_PASS, WITHIN
from featherlane.engine.simulation.step.part import KEEP_FORCES, STORE_FORCES, contacts_and_forces
from featherlane.engine.simulation.step.tile_parts import load_counts, restore_counts


@stage
def inverse_constraint(m, d, store):
    """Computes contacts, rows and their forces at the acceleration qacc.

    Args:
        store: 1 also writes the forces of the rows; 0 keeps those of the solver.

    Reads:  qacc, and what `forward_constraint` reads of position and velocity.
    Writes: what `collision`, `make_rows` and `constraint_forces` write; what `sensor_rows` writes; con_fresh <- 0:
            the next step finds its contacts again; dof_touched; warning, found_bad, found_pair (contacts full).
    """
    contacts_and_forces(m, d, STORE_FORCES if store else KEEP_FORCES)


@stage
def inverse_force(m, d):
    """Computes qfrc_inverse = M qacc + C(q, v) - passive - constraint forces.

    Under the integrator discrete, Mhat qacc + h K qvel replaces M qacc.  The force of a sleeping tree is zero.
    Source: Featherstone eq. 5.1; MuJoCo mj_inverse.
    Reads:  qacc, qfrc_bias, qfrc_passive, qfrc_constraint, M; under discrete Mhat, qpos, qvel.
    Writes: qfrc_inverse (nv,) [N, N m].
    Scratch: primal.*, block, block_*, cacc, cfrc.
    """
    # primal.Ma = M qacc, or in `discrete`, which has a metric, Mhat qacc + h K qvel
    if has_metric(m):
        multiply_joint_space(m, d.Mhat, d.qacc, d.primal.Ma)
        multiply_untouched_bodies(m, d, d.Mhat, d.qacc, d.primal.Ma)  # with gyroscopic terms, free bodies without rows
        add_couplings(m, d, d.qacc, d.primal.Ma, diagonal=0)  # terms of Mhat outside M's sparsity pattern
        add_spring_change(m, d, s=1.0, x=d.primal.Ma)  # + h K qvel
    else:
        inertia_times(m, d, d.qacc, d.primal.Ma)
    for i in range(m.nv):
        d.qfrc_inverse[i] = ((d.primal.Ma[i] + d.qfrc_bias[i]) - d.qfrc_passive[i]) - d.qfrc_constraint[i]
    if sleeping(m):
        clear_asleep(m, d, d.qfrc_inverse)


@kernel
def distance(x, y, n):
    """Returns |x - y| of vectors of n entries."""
    square = 0.0
    for i in range(n):
        square = fma(x[i] - y[i], x[i] - y[i], square)
    return sqrt(square)


@stage
def compare_forward_inverse(m, d):
    """Computes the differences between forward and inverse dynamics, after `forward`.

    solver_fwdinv = (|constraint forces of the solver - those of inverse dynamics|,
                     |applied and actuator forces - qfrc_inverse|).
    Source: MuJoCo mj_compareFwdInv.  Deviations: a world without rows is compared, too (MuJoCo returns 0 for it); qacc
        is always the continuous-time acceleration, also under `invdiscrete`.
    Reads:  what forward left.
    Writes: solver_fwdinv (2,) [N, N m], qfrc_inverse; what `inverse_constraint` and `inverse_force` write, but for
            qfrc_constraint and warning, which stay.
    Scratch: in_stage, qfrc_forward, primal.*.
    Note:   Accelerations and forces do not change; J qacc - aref of the rows changes by rounding.
    """
    # the solver's forces: not in qfrc_forward, because the pass below overwrites scratch memory
    copy(d.qfrc_inverse, d.qfrc_constraint, m.nv)
    counts = load_counts(d)
    d.in_stage[0] = WITHIN  # a pass whose results are discarded: no sensors
    inverse_constraint(m, d, store=0)  # qfrc_constraint of inverse dynamics
    d.in_stage[0] = FIRST_PASS
    restore_counts(d, counts, true_mask(d))  # `forward` has already counted contacts and rows that did not fit
    copy(d.qfrc_forward, d.qfrc_inverse, m.nv)
    inverse_force(m, d)  # qfrc_inverse
    # primal.grad = applied and actuator forces
    for i in range(m.nv):
        d.primal.grad[i] = d.qfrc_applied[i] + d.qfrc_actuator[i]
    add_xfrc(m, d, d.primal.grad)
    d.solver_fwdinv[0] = distance(d.qfrc_forward, d.qfrc_constraint, m.nv)
    d.solver_fwdinv[1] = distance(d.primal.grad, d.qfrc_inverse, m.nv)
    copy(d.qfrc_constraint, d.qfrc_forward, m.nv)
