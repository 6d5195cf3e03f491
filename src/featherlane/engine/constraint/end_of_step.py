"""Rows under the integrator `discrete`: their springs and dampers act at the end of the step, in its metric.

A row has the reference -B v' - k r', k = K d, at the end of the step, where v' = v + h a and r' = r + h v'; its
impedance is d.  At the beginning of the step this is equivalent to

    a_ref = -((B + h k) v + k r) / (1 + s),    s = h B + h^2 k,    with the impedance d (1 + s) / (1 + d s).

So R = (1 - d) / d A becomes R / (1 + s), but not below that of the largest impedance.  A is an estimate of
J M^-1 J^T; it is scaled to one of J Mhat^-1 J^T by the ratio of the two for the diagonals of Mhat and M.
`has_metric(m)`: whether the model uses this integrator.  Mhat: its metric, on M's pattern; `exact.diagonal`: the
diagonal of the metric, with the terms of tendons and actuators that Mhat's pattern omits; `add_couplings` adds
these.  `factor(m, A, LD, inverse)` stores L^T D L of A in LD, and 1 / D in `inverse`.
Source: MuJoCo 4, chapter Computation, "Discrete-time" and "Parameters"; the formulas, and the row of a contact that
represents all its rows, were found by experiment with 4.0.1.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.general import row_entries
from featherlane.engine.constraint.impedance import MAXIMP, MINVAL, impedance, reference
from featherlane.engine.dynamics.inertia.joint_space import factor
from featherlane.engine.dynamics.integrator.discrete import add_couplings
from featherlane.engine.dynamics.passive.fluid_derivative import add_fluid_metric, fluid_acts
from featherlane.engine.model.integrator import has_metric


@kernel
def limit_to_step(m, h, solref, imp, authored):
    """Returns (K, B) of a contact or limit; `refsafe` limits the stiffness to what the step can resolve.

    With h^2 K d > 1 a row would separate faster than it approached: K becomes 1 / (h^2 d), and B keeps the damping
    ratio.  B is bounded so that the impedance at the end of the step is at most MAXIMP, that is
    s <= (MAXIMP - d) / (d (1 - MAXIMP)).  A solref that specifies stiffness and damping directly is not changed.
    h: time step [s]; imp: the impedance d; authored: (K, B) of the solref.
    """
    K, B = authored
    if has_metric(m) and not (m.opt_disableflags & DISABLE_REFSAFE):
        # worlds whose solref is (time constant, damping ratio), and too stiff for the step
        too_stiff = ((solref[0] > 0.0) | (solref[1] > 0.0)) & (h * h * K * imp > 1.0)
        largest_K = 1.0 / fmax(h * h * imp, MINVAL)  # h^2 K d = 1
        # s = h B + h^2 K d = h B + 1: the bound of s is one of B
        largest_B = ((MAXIMP - imp) / (imp * (1.0 - MAXIMP)) - 1.0) / h
        # the damping ratio B / (2 sqrt(K)) does not change; K > 0 in worlds that are too stiff
        same_ratio = B * sqrt(largest_K / where(too_stiff, K, 1.0))
        B = where(too_stiff, clip(same_ratio, 0.0, fmax(largest_B, 0.0)), B)
        K = where(too_stiff, largest_K, K)
    return K, B


@kernel
def step_scale(m, K, B, imp):
    """Returns 1 / (1 + s) with s = h B + h^2 K d, the divisor of a_ref in the module's formulas; 1 in continuous time.

    Terms of a_ref that do not depend on the velocity, such as (dJ/dt) v of an equality, have this factor, too.
    imp: the impedance d.
    """
    scale = 1.0
    if has_metric(m):
        h = timestep(m)
        scale = 1.0 / (1.0 + h * fma(h, K * imp, B))
    return scale


@kernel
def reference_at_end(m, K, B, imp):
    """Returns (stiffness, damping, impedance) of a row: a_ref = -damping v - stiffness r, by the module's formulas.

    In continuous time they are (K d, B, d).   imp: the impedance d.
    """
    stiffness, damping = K * imp, B
    if has_metric(m):
        h = timestep(m)
        scale = step_scale(m, K, B, imp)  # 1 / (1 + s)
        damping = fma(h, stiffness, B)  # B + h k, so that s = h damping
        imp = fmin(imp * fma(h, damping, 1.0) / fma(imp, h * damping, 1.0), MAXIMP)  # d (1 + s) / (1 + d s)
        stiffness, damping = stiffness * scale, damping * scale
    return stiffness, damping, imp


@kernel
def limit_reference(m, solref, solimp, r, shortest):
    """Returns (stiffness, damping, impedance) of a limit with the position error r, as `reference_at_end`.

    shortest: least time constant [s], of `shortest_timeconst`.
    """
    imp = impedance(solimp, r)
    K, B = limit_to_step(m, timestep(m), solref, imp, reference(solref, solimp, shortest))
    return reference_at_end(m, K, B, imp)


@kernel
def _diagonal_address(m, i):
    """Returns the address of M_ii."""
    return m.M_rowadr[i] + m.M_rownnz[i] - 1


@kernel
def _add_dof(m, d, i, J, bare, hat):
    """Returns (bare + J^2 / M_ii, hat + J^2 / Mhat_ii); J: the row's Jacobian entry at dof i.

    Reads:  M, exact.diagonal (the diagonal of the metric).
    """
    square = J * J
    return bare + square / d.M[_diagonal_address(m, i)], hat + square / d.exact.diagonal[i]


@kernel
def _inertia_ratio(bare, hat):
    """Returns bare / hat, the factor of D, from the sums of `_add_dof`; 1 if no dof moves the row."""
    moves = (bare > 0.0) & (hat > 0.0)
    return where(moves, bare / where(moves, hat, 1.0), 1.0)


@kernel
def _unit_wrench(m, d, k, b, u):
    """Returns the wrench of a force u at contact k, about the com of the tree of body b."""
    r = d.con_pos[k] - d.subtree_com[m.body_rootid[b]]
    return Force(join(cross(r, u), u))


@kernel
def _contact_ratio(m, d, k):
    """Returns (J diag(M)^-1 J^T) / (J diag(Mhat)^-1 J^T) of contact k's first row, the factor of its D.

    The first row is the normal, or the edge n + mu_1 t_1 of a pyramid.
    Dofs above both bodies move them equally at the contact point: the loop ends at the first common ancestor.
    """
    c = d.contact[k]
    b1, b2 = c.carrier[0], c.carrier[1]
    u = c.frame.rows[0]
    if has_pyramids(m) and c.dim > 1:
        u = u + c.friction[0] * c.frame.rows[1]
    wrench1, wrench2 = _unit_wrench(m, d, k, b1, u), _unit_wrench(m, d, k, b2, u)
    i, j = m.body_lastdof[b1], m.body_lastdof[b2]
    bare, hat = 0.0, 0.0  # sums of J_i^2 / M_ii and J_i^2 / Mhat_ii
    while i != j:  # ascend from the later dof
        if i > j:
            # J of dof i is +-cdof . wrench: only its square is used
            bare, hat = _add_dof(m, d, i, dot(d.cdof[i], wrench1), bare, hat)
            i = m.dof_parentid[i]
        else:
            bare, hat = _add_dof(m, d, j, dot(d.cdof[j], wrench2), bare, hat)
            j = m.dof_parentid[j]
    return _inertia_ratio(bare, hat)


@kernel
def _write_metric_diagonal(m, d):
    """Writes the diagonal of the metric to `exact.diagonal`, including the couplings of tendons and actuators."""
    for i in range(m.nv):
        d.exact.diagonal[i] = d.Mhat[_diagonal_address(m, i)]
    add_couplings(m, d, d.exact.diagonal, d.exact.diagonal, diagonal=1)  # reads no x


@stage
def rescale_rows(m, d):
    """Scales D of every row by the ratio of the metric's diagonal to M's: (J diag(M)^-1 J^T) / (J diag(Mhat)^-1 J^T).

    Rows of type METRIC, which are terms of the metric itself, keep their D.
    Reads:  M (nC,), Mhat (nC,), cdof, subtree_com, the rows.
    Writes: row_D, con_D, con_Dt, con_slip.
    Scratch: exact.diagonal.
    """
    _write_metric_diagonal(m, d)  # exact.diagonal
    for k in range(d.nrow[0]):
        if k < d.ndofrow[0]:  # of a row on one dof i, the ratio is Mhat_ii / M_ii
            i = d.row_dof[k]
            d.row_D[k] = d.row_D[k] * (d.exact.diagonal[i] / d.M[_diagonal_address(m, i)])
        elif d.row_type[k] <= LIMIT_TENDON:  # all types except METRIC
            bare, hat = 0.0, 0.0
            for e in row_entries(d, k):
                bare, hat = _add_dof(m, d, d.row_dof[e], d.row_J[e], bare, hat)
            d.row_D[k] = d.row_D[k] * _inertia_ratio(bare, hat)
    for k in range(d.ncon_slot[0]):
        contact = d.contact[k]
        ratio = where(contact.D > 0.0, _contact_ratio(m, d, k), 1.0)
        contact.D = contact.D * ratio
        contact.Dt = contact.Dt * ratio
        contact.slip = contact.slip * ratio


@stage
def factor_backbone(m, d):
    """Factors the metric without its couplings: the matrix that defines D with the flag `diagexact`, J qH^-1 J^T.

    Off the diagonal the matrix has M and a fluid's drag; its diagonal is that of the metric.  So tendons and actuators
    that couple dofs contribute only their diagonal.
    Reads:  M (nC,), Mhat (nC,); in a fluid cvel, xquat, xpos, xmat, xipos, subtree_com, cdof.
    Writes: qH (nC,), qHDiagInv (nv,).
    Scratch: exact.diagonal, crb_drag.
    """
    # qH = M plus the fluid's part of the metric
    for k in range(m.nC):
        d.qH[k] = d.M[k]
    if fluid_acts(m):
        # qH -= h d qfrc_fluid / d qvel;  dissipative: only drag and resistance, without added mass and lift
        add_fluid_metric(m, d, -timestep(m), dissipative=1, A=d.qH)
    _write_metric_diagonal(m, d)  # exact.diagonal
    for i in range(m.nv):
        d.qH[_diagonal_address(m, i)] = d.exact.diagonal[i]
    factor(m, d.qH, d.qH, d.qHDiagInv)
