"""The public functions of `stages.py`, for type checkers and editors: `python docs/stages.py`."""

from featherlane.engine.model.model import Model
from featherlane.engine.simulation.world.data import Data

def frames(model: Model, data: Data) -> None:
    """Computes the frames of all geoms and sites from those of their bodies; `forward` includes it.

    Reads: xpos, xquat, xmat.
    Writes: geom_xpos (ngeom, 3) [m], site_xpos (nsite, 3) [m], geom_xmat (ngeom, 9), site_xmat (nsite, 9).
    Frame: world.
    Source: MuJoCo mj_kinematics.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def com_pos(model: Model, data: Data) -> None:
    """Computes the centres of mass of all subtrees, body inertias and motion axes.

    Reads: xipos, xquat, xmat, xanchor, xaxis.
    Writes: subtree_com (nbody, 3) [m], ximat (nbody, 9), cinert (nbody, 10) [kg m^2, kg m, kg], cdof (nv, 6) [1, m].
    Frame: world axes; cinert and cdof at the tree's com, rotation first.
    Cost: O(nbody + nv).
    Source: MuJoCo mj_comPos; Featherstone eq. 2.63 for the inertias.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def cameras(model: Model, data: Data) -> None:
    """Computes the frames of all cameras: fixed to a body, following it in world axes, or looking at another body.

    `forward` includes this stage.

    Reads: xpos, xquat, xmat, subtree_com.
    Writes: cam_xpos (ncam, 3) [m], cam_xmat (ncam, 9).
    Frame: world.
    Source: MuJoCo mj_camlight (cameras alone).

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def tendon(model: Model, data: Data) -> None:
    """Computes the lengths of tendons and their Jacobian, the derivative of each length's rate by each DoF.

    Fixed tendons are sums of joint coordinates, spatial ones the shortest paths along sites and around geoms. Row i of
    the Jacobian is stored from `model.ten_J_rowadr[i]` on, its DoFs in `model.ten_J_colind`.

    Reads: qpos, site_xpos, geom_xpos, geom_xmat, subtree_com, cdof.
    Writes: ten_length (ntendon,) [m], ten_J (nJten,) [1, m].
    Scratch: cfrc.
    Frame: world axes at the tree's com.
    Cost: O(elements of the paths + nJten).
    Source: MuJoCo mj_tendon (its wrap_xpos, the path for rendering, is computed on request: see `tendon_path`).

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def crb(model: Model, data: Data) -> None:
    """Computes composite-rigid-body inertias and the joint-space inertia matrix.

    I^c_i = I_i + sum over children I^c_j; M_ij = S_j^T I^c_i S_i for each ancestor DoF j of i. If a body is simple its
    rows are the constants dof_M0. Armature of tendons is added on M's pattern: M += J^T a J. M is the lower triangle by
    rows on the tree's pattern (`model.M_rowadr`, `M_rownnz`, `M_colind`); `full_m` shows it dense.

    Reads: cinert (nbody, 10) [kg m^2, kg m, kg], cdof (nv, 6), ten_J (nJten,).
    Writes: crb (nbody, 10) [kg m^2, kg m, kg], M (nC,) [kg, kg m, kg m^2].
    Frame: world axes at the tree's com, rotation first.
    Cost: O(nv * depth).
    Source: Featherstone sec. 6.2, eq. 6.13-6.14; MuJoCo mj_makeM.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def factor_m(model: Model, data: Data) -> None:
    """Factors M = L^T D L on the pattern of the tree, without fill.

    Reads: M (nC,).
    Writes: qLD (nC,): L below the diagonal, D on it; qLDiagInv (nv,) [1/(kg m^2)] = 1 / D.
    Cost: O(nv * depth^2).
    Source: Featherstone sec. 6.5, table 6.3; MuJoCo mj_factorM.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def forward_velocity(model: Model, data: Data) -> None:
    """Computes what depends on position and velocity: velocities of bodies, bias and passive forces.

    Reads: qpos, qvel, qfrc_adhesion, and what `forward_position` wrote.
    Writes: cvel (nbody, 6) [rad/s, m/s], qfrc_bias (nv,) [N, N m], ten_velocity (ntendon,) [m/s]; what `passive`
        writes; cdof_dot (nv, 6) [1/s, m/s] if every field is computed, as for one world.
    Scratch: cacc, cfrc.
    Source: MuJoCo mj_fwdVelocity (actuator velocities are written by `actuation`).

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def com_vel(model: Model, data: Data) -> None:
    """Computes body velocities and the rates of the motion axes.

    v_i = v_lambda(i) + S_i qvel_i; dS/dt = v x S with the velocity before the joint. The three axes of a ball share the
    velocity before it; the translations of a free joint keep world axes, so their rate is zero.

    Reads: qvel, cdof.
    Writes: cvel (nbody, 6) [rad/s, m/s], cdof_dot (nv, 6) [1/s, m/s].
    Frame: world axes at the tree's com, rotation first.
    Cost: O(nv).
    Source: MuJoCo mj_comVel; Featherstone eq. 5.14.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def subtree_vel(model: Model, data: Data) -> None:
    """Computes the velocity of each subtree's centre of mass, and the subtree's angular momentum about it.

    L_i = sum over the bodies b below: I_b w_b + (c_b - c_i) x m_b (v_b - v_i), accumulated from the leaves. A step runs
    this stage if a sensor of the model needs it, a batch also if a result is bound.

    Reads: cvel, xipos, xquat, subtree_com.
    Writes: subtree_linvel (nbody, 3) [m/s], subtree_angmom (nbody, 3) [kg m^2/s].
    Frame: world.
    Cost: O(nbody).
    Source: MuJoCo mj_subtreeVel.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def actuation(model: Model, data: Data) -> None:
    """Computes actuator velocities, rates of activations, actuator forces, and the forces on the DoFs.

    force = gain(l, l') u + bias(l, l'), where u is a control or an activation. The sum on a tendon is clamped to its
    actfrcrange, each force to forcerange; qfrc_actuator = moment^T force (+ gravity compensation if it counts as
    actuation), clamped to the joint's actfrcrange. If a control is NaN or beyond 1e10, all controls of that world count
    as 0 and badctrl is 1.

    Reads: ctrl, act, history, time, qvel, actuator_length, actuator_moment, qfrc_gravcomp.
    Writes: actuator_velocity (nout,) [m/s, rad/s], actuator_force (nout,) [N, N m], act_dot (na,) [1/s], qfrc_actuator
        (nv,) [N, N m], badctrl, warning (6,) (bad control), tendon_actuatorfrc (ntendon,) [N].
    Scratch: actuator_input (nu,), user_term.
    Note: without actuators, or with actuation disabled, gravity compensation through actuators is 0, too, and act_dot
        is unchanged.
    Source: MuJoCo mj_fwdActuation.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def smooth_acceleration(model: Model, data: Data) -> None:
    """Computes all forces except constraint forces, and the resulting acceleration.

    qfrc_smooth = passive - bias + applied + actuator + J^T xfrc_applied; qacc_smooth = M^-1 qfrc_smooth, by the factor
    of M or by articulated bodies. With the integrator `discrete`, qacc_smooth is the unconstrained step. With the
    contact model lcp, qfrc_smooth includes the forces of motors at a stop (dynamics/body/motor.py).

    Reads: qfrc_passive, qfrc_bias, qfrc_applied, qfrc_actuator, xfrc_applied, qLD, qLDiagInv.
    Writes: qfrc_smooth (nv,) [N, N m], qacc_smooth (nv,) [m/s^2, rad/s^2], warning (6,) (singular inertia); with
        discrete Mhat, qH, qHDiagInv, qfrc_step and actuator_rate (nactuator, 2) [N/m, N s/m].
    Scratch: cacc, cfrc, crb_drag, aba_inertia, aba_axis.
    Cost: O(nv * depth).
    Source: MuJoCo mj_fwdAcceleration.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def energy(model: Model, data: Data) -> None:
    """Computes the potential energy, -sum m_b g . x_b + that of springs, and the kinetic energy, 1/2 v^T M v.

    A step also computes them if the flag `energy` is on or a sensor reads them, for the state before the step.

    Reads: xipos, qpos, qvel, plastic, ten_length, M.
    Writes: energy (2,) [J].
    Note: frames and M are those of the last forward pass, qvel and joint springs are the current ones. After `step` the
        frames are those of the old position: the sum would combine it with the new velocity and drift by a term of the
        order of the timestep. Call `forward_position` (or `forward`) first for the energy of the new state.
    Source: MuJoCo mj_energyPos, mj_energyVel.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def rne_post_constraint(model: Model, data: Data) -> None:
    """Computes accelerations of all bodies, external forces on them, and forces between each body and its parent.

    Runs `external_forces`, then `interaction_forces`. A step runs it if a sensor of the model needs it, a batch also if
    a result is bound.

    Reads: all that `forward` wrote.
    Writes: cacc (nbody, 6) [rad/s^2, m/s^2], gravity included as acceleration upwards; cfrc_ext (nbody, 6) [N m, N],
        cfrc_int (nbody, 6) [N m, N].
    Frame: world axes at the tree's com, rotation first.
    Source: MuJoCo mj_rnePostConstraint.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def rne_vel(model: Model, data: Data) -> None:
    """Computes the velocity derivative of Coriolis and centrifugal forces: qDeriv <- d C(q, v) / d qvel.

    D_jk and D_kj are defined in dynamics/body/rne_derivative.py, for each DoF j on the path from the root to DoF k.
    qDeriv is sparse, by rows (`model.D_rowadr`, `D_rownnz`, `D_colind`): row i holds the ancestors of dof i, itself and
    its descendants.

    Reads: qvel, cvel, cdof, cinert, crb.
    Writes: qDeriv (nD,) [N s/m, N m s/rad]; as scratch crb_rate, cdof_rate.
    Frame: world axes at the tree's com.
    Cost: O(nv * depth).
    Source: Singh, Russell, Wensing, IEEE RA-L 7, 2022; MuJoCo mjd_rne_vel (which carries the Jacobian of every body,
        O(nv^2)).

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def passive_vel(model: Model, data: Data) -> None:
    """Computes the velocity derivatives of damping: qDeriv <- d qfrc_passive / d qvel.

    The damping force of a dof is -v (b + c |v| + e v^2) with its velocity v and its damping coefficients b, c, e. The
    derivative -(b + 2 c |v| + 3 e v^2) is on the diagonal. A tendon adds J^T (the same of its rate) J with its Jacobian
    J, and a fluid its own derivatives.

    Reads: qvel, ten_J, ten_velocity; in a fluid cvel, cdof and the frames of bodies.
    Writes: qDeriv (nD,) [N s/m, N m s/rad].
    Scratch: in a fluid crb_drag.
    Cost: O(nD).
    Source: MuJoCo mjd_passive_vel.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def actuator_vel(model: Model, data: Data) -> None:
    """Computes the velocity derivatives of actuators: qDeriv <- d qfrc_actuator / d qvel.

    moment^T (gain's rate * control + bias's rate) moment. An actuator whose force is clamped, or the sum on its joint,
    contributes nothing.

    Reads: actuator_moment, and what `actuation` wrote.
    Writes: qDeriv (nD,) [N s/m, N m s/rad]; actuator_rate (nactuator, 2) [N/m, N s/m].
    Source: MuJoCo mjd_actuator_vel.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def smooth_vel(model: Model, data: Data) -> None:
    """Computes the velocity derivatives of all smooth forces, for the integrator `implicit`.

    qDeriv <- d (qfrc_actuator + qfrc_passive - qfrc_bias) / d qvel. An implicit gyroscopic torque (gyroscopic.py)
    counts as constant.

    Reads: what `rne_vel`, `passive_vel` and `actuator_vel` read.
    Writes: qDeriv (nD,) [N s/m, N m s/rad].
    Scratch: crb_rate, cdof_rate, crb_drag, actuator_rate.
    Cost: O(nv * depth).
    Source: MuJoCo mjd_smooth_vel with flg_bias = 1.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def forward_constraint(model: Model, data: Data) -> None:
    """Computes contacts, rows and the constrained acceleration.

    Runs `collision`, `make_constraint`, `solve_constraint` and the sensors that read contacts and limits. If the
    contact slots of a tile overflow, it is solved in parts.

    Reads: what `forward_position`, `forward_velocity`, `actuation` and `smooth_acceleration` wrote; qacc_warmstart.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m]; what `collision`, `make_constraint`,
        `solve_constraint` and `sensor_rows` write; on request, or if trees may sleep, what `islands` writes; con_fresh
        <- 0: the next step finds its contacts again; warning (6,), found_bad, found_pair (contacts full).
    Source: MuJoCo mj_fwdConstraint, with collisions.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def make_constraint(model: Model, data: Data) -> None:
    """Computes the constraint rows: equalities, friction loss, limits, contacts.

    `data.nefc` is their number, and `data.efc_J`, `data.efc_D`, ... return them in MuJoCo's order. With the integrator
    `discrete` they are computed in its metric.

    Reads: qpos, qvel, eq_active, what `forward_position` and `com_vel` wrote, the contacts of `collision`.
    Writes: nrow, ndofrow, row_* (nrowmax,): all rows except those of contacts; con_D, con_Dt, con_slip, con_damping,
        con_frictiondamping, con_stiffpos (nconmax,); dof_touched.
    Source: MuJoCo mj_makeConstraint, mj_referenceConstraint; chapter Computation, sec. "Constraint model".

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def solve(model: Model, data: Data) -> None:
    """Computes the constrained acceleration with the solver that the options select.

    The contact model convex uses Newton's method, CG or PGS (`opt.solver`), and the no-slip solver if it is enabled.
    The contact model lcp uses the solver `opt.lcp_solver`. With the integrator `discrete` the problem is solved in its
    metric.

    Reads: qacc_smooth, qfrc_smooth, qacc_warmstart, M and its factor, cvel, the rows of `make_constraint`.
    Writes: qacc (nv,) [m/s^2, rad/s^2], qfrc_constraint (nv,) [N, N m], row_force, con_force; solver_niter;
        solver_residual, the norm of the scaled gradient, or of the LCP's complementarity, at the end; solver_gap;
        warning (6,) (not converged); stat_* if each iteration is recorded.
    Source: MuJoCo mj_fwdConstraint; chapter Computation, sec. "Solver". Open Dynamics Engine, for the model lcp.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def islands(model: Model, data: Data) -> None:
    """Computes constraint islands of the present rows: trees that contacts, limits and other rows connect.

    Each pass lowers labels toward the smallest tree number in the island, until none changes; islands are numbered by
    their first trees.

    Reads: all rows.
    Writes: nisland, tree_island (ntree,), dof_island (nv,), -1 where no row acts on the tree.
    Cost: O(rows) a pass; two passes if rows are sorted by tree, at most ntree.
    Source: MuJoCo's documentation, "Computation", sec. "Constraint islands".

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def implicitfast(model: Model, data: Data) -> None:
    """Integrates implicitly in the velocity, without the derivatives of Coriolis forces: (M - h D) qacc* = M qacc.

    D: derivatives of damping and of unsaturated actuator forces, on the pattern of M. A separate free body gets its
    gyroscopic derivatives back, by a separate 6 x 6 solve. If D is diagonal the model may use articulated bodies.

    Reads: qvel, qpos, act_dot, M, qfrc_smooth, qfrc_constraint, ctrl, actuator_force, qfrc_actuator, xmat, xpos,
        cinert.
    Writes: qvel (nv,) [m/s, rad/s], qpos (nq,) [m, rad, quaternion], time [s], act (na,), history (nhistory,), plastic
        (nplastic,) [m, rad, quaternion], qacc_warmstart (nv,) [m/s^2, rad/s^2]; qacc_step (nv,) [m/s^2, rad/s^2], qH,
        qHDiagInv, actuator_rate (nactuator, 2) [N/m, N s/m]; scratch memory: crb_drag, block, block_*, qvec, aba_*,
        cacc (nbody, 6) [rad/s^2, m/s^2], cfrc (nbody, 6) [N m, N]; qDeriv (nD,) [N s/m, N m s/rad] on request and for
        separate free bodies.
    Cost: O(nv * depth^2).
    Source: MuJoCo mj_implicit with the integrator implicitfast; chapter Computation, gyroscopic derivatives for free
        bodies.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """

def implicit(model: Model, data: Data) -> None:
    """Integrates implicitly in the velocity with all derivatives of smooth forces: (M - h D) qacc* = M qacc.

    D = d (qfrc_actuator + qfrc_passive - qfrc_bias) / d qvel, including Coriolis forces, is stored in qDeriv by
    `smooth_vel`, the factors of M - h D in qLU.

    Reads: qvel, qpos, act_dot, M, qfrc_smooth, qfrc_constraint and what `smooth_vel` reads.
    Writes: qvel (nv,) [m/s, rad/s], qpos (nq,) [m, rad, quaternion], time [s], act (na,), history (nhistory,), plastic
        (nplastic,) [m, rad, quaternion], qacc_warmstart (nv,) [m/s^2, rad/s^2]; qDeriv (nD,) [N s/m, N m s/rad], qLU
        (nD,), qHDiagInv, qacc_step (nv,) [m/s^2, rad/s^2]; what `smooth_vel` writes.
    Cost: O(nv * depth^2).
    Source: MuJoCo mj_implicit with the integrator implicit; chapter Computation, integrators.

    Args:
        model: the model.
        data: the world; its fields are read and written.

    Raises:
        TypeError: `data` is no Data, or `model` no Model.
        ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
        RuntimeError: another thread is in a call of this data.
    """
