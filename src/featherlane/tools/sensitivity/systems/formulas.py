"""Stages that differentiate the residual by formulas, in a tile of worlds; columns/formulas.py has the columns.

`serves` (served.py) decides for a model as a whole, `_parameters_serve` for each world; otherwise the residual is
differenced (differences.py).  `differences_lag` decides whether the integrator's correction p is differenced.

report[KNOWN]: 1 if all rates of a world have formulas, 0 if not, -1 if the world must run alone to decide;
report[NEAREST]: distance to the next change of the active set; report[FITS]: 1 if the world was solved with all its
contacts and rows.
rate_steps: 1 if derivatives of the next state are requested; differences_p: 1 if the call provides dp in rest_p.  Of
contact_moves.py: slot_known (1: all displaced poses have the world's contacts, 0: one vanishes, -1: no memory for
them), slot_jumps (1: a contact's point jumps), slot_near (1: another contact is near), STEP (displacement of these
poses [m, rad]).  taken_off: acceleration that the integrator or the no-slip solver subtracts, qacc - a*.
A stage `..._of_tile` works on one tile of worlds.  The transfers of its record b copy worlds and columns into the tile
and results out of it; b.nstep is the number of columns.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.impedance import shortest_timeconst
from featherlane.engine.constraint.surface import has_static_friction
from featherlane.engine.dynamics.actuator.adhesion import has_adhesion
from featherlane.engine.dynamics.actuator.transmission import drives_joint
from featherlane.engine.dynamics.inertia.articulated import needs_inertia
from featherlane.engine.dynamics.inertia.joint_space import crb
from featherlane.engine.dynamics.passive.fluid import fluid_worlds
from featherlane.engine.dynamics.sparse.tree_factor import PANEL
from featherlane.engine.dynamics.tendon.force import tendon_armature, tendon_damping
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records, write_rows
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.engine.solver.hessian.equation import factor_hessian, leaves_out
from featherlane.tools.sensitivity.columns.formulas import clear_rates, rates_column
from featherlane.tools.sensitivity.columns.system import System, columns_of
from featherlane.tools.sensitivity.rates.applied_rates import find_applied
from featherlane.tools.sensitivity.rates.contact_moves import STEP, contact_moves
from featherlane.tools.sensitivity.rates.contact_rates import contact_laws
from featherlane.tools.sensitivity.rates.dof_rates import dof_rates
from featherlane.tools.sensitivity.rates.fluid_rates import fluid_rates
from featherlane.tools.sensitivity.rates.lift_rates import prepare_lift
from featherlane.tools.sensitivity.rates.records import FITS, KNOWN, NEAREST, RATES
from featherlane.tools.sensitivity.rates.smooth_rates import inward_pass, outward_pass
from featherlane.tools.sensitivity.rates.tendon_rates import tendon_rates
from featherlane.tools.sensitivity.systems.noslip_rates import correct_columns, prepare_noslip
from featherlane.tools.sensitivity.systems.panel import put_column, solve_panel, step_panel, take_column
from featherlane.tools.sensitivity.systems.solution import accelerate_state, is_damped
from featherlane.tools.sensitivity.systems.tangent import store_next_velocity


@kernel
def _adds_inertia(m):
    """Returns the mask of worlds in which some tendon has armature, an inertia that belongs to no body."""
    found = timestep(m) < 0.0  # false in all worlds: time steps are positive
    for i in range(m.ntendon):
        found = found | not_(tendon_armature(m, i) == 0.0)
    return found


@kernel
def _correction_varies(m):
    """Returns the mask of worlds in which the K of implicitfast depends on position or velocity.

    It does in a fluid, or with a tendon's damping by polynomials.
    """
    found = fluid_worlds(m)
    for i in range(m.ntendon):
        _, c, e = tendon_damping(m, i)  # force v (b + c |v| + e v^2)
        found = found | (c != 0.0) | (e != 0.0)
    return found


@kernel
def _is_clamped(m):
    """Returns whether some joint limits actuator forces and some actuator does not act on a slide or hinge.

    The limit clamps the sum of all actuator forces on the joint.  The share of such an actuator has no formula.
    """
    has_limit, has_other = 0, 0
    for j in range(m.njnt):
        has_limit = 1 if m.jnt_actfrclimited[j] else has_limit
    for i in range(m.nactuator):
        on_scalar = drives_joint(m, i) and is_scalar(m.jnt_type[m.actuator_trnid[i, 0]])
        has_other = has_other if on_scalar else 1
    return has_limit and has_other


@kernel
def _parameters_serve(m, d, p):
    """Returns the mask of worlds whose parameters have formulas.

    Formulas exclude
        worlds with adhesion, or with a tendon that has armature (`_adds_inertia`);
        models with clamped joints (`_is_clamped`);
        under implicitfast, worlds with a variable matrix K (`_correction_varies`), unless p is differenced
            (differences_p);
        worlds with surface velocities;
        under Coulomb's law, worlds with static friction.
    """
    known = not_(has_adhesion(m, d) | _adds_inertia(m))
    if _is_clamped(m):
        known = false_mask(d)
    if m.opt_integrator == IMPLICITFAST and not p.differences_p:
        known = known & not_(_correction_varies(m))
    if m.flg_surfacevel:  # the model may have surface velocities
        known = known & not_(has_nonzero(m.geom_surfacevel, 6 * m.ngeom))  # six values for each geom
    if m.opt_contact_model == COULOMB:
        known = known & not_(has_static_friction(m))
    return known


@stage(p=RATES)
def prepare_rates(m, d, p):
    """Prepares the columns, after `accelerate_state`; report[KNOWN]: worlds in which all rates have formulas.

    Reads:  what `accelerate_state` writes.
    Writes: report; body_*, dof_*, geom_*, row_*, slip_*, slot_*, ten_*, npushed; crb, crb_rate.
    Scratch: crb_drag, cfrc_fluid, qfrc_fluid, cvel, cacc, cfrc, con_wrench.
    """
    served = _parameters_serve(m, d, p)
    contact_moves(m, d, p)  # slot_known, slot_jumps, slot_near, slot_moves
    keeps_contacts = p.slot_known[0] > 0.0  # at all displaced poses
    has_moves = keeps_contacts & not_(p.slot_jumps[0] > 0.0)  # worlds with valid slot_moves
    # served and has_moves: report[FITS], 1 if the world was solved with all rows; -1 (run alone) without memory for the
    # contacts of a displaced pose; else 0
    p.report[KNOWN] = where(served & has_moves, p.report[FITS], where(p.slot_known[0] < 0.0, -1.0, 0.0))
    # a world whose displaced poses do not have the same contacts is at most STEP from a change
    same_contacts = keeps_contacts & not_(p.slot_near[0] > 0.0)
    p.report[NEAREST] = where(same_contacts, p.report[NEAREST], fmin(p.report[NEAREST], STEP))
    # composite inertias, which `accelerate_state` computes only for models that need M
    if not needs_inertia(m, d):
        crb(m, d)
    prepare_noslip(m, d, p)
    # the integrator's a*; if only accelerations are requested, the no-slip solver's acceleration, in dual.start
    final_acceleration = d.qacc_step if p.rate_steps or m.opt_noslip_iterations == 0 else d.dual.start
    for i in range(m.nv):
        p.taken_off[i] = d.qacc[i] - final_acceleration[i]
    outward_pass(m, d, p, p.taken_off)  # motions and forces of bodies
    if d.ncon_slot[0] > 0:
        contact_laws(m, d, p, shortest_timeconst(m))  # subtracts contact forces from the bodies' forces
    inward_pass(m, d, p)  # sums over outer bodies
    # what the terms of each column need: dof_*, body_*, ten_*, row_*
    dof_rates(m, d, p)
    prepare_lift(m, d, p)
    fluid_rates(m, d, p)
    find_applied(m, d, p)
    tendon_rates(m, d, p)


@kernel
def begin_step(m, d, p):
    """Computes accelerations, the next velocity, and what all columns share: rates and the factor of the Hessian.

    Writes: next_qvel; what `accelerate_state` and `prepare_rates` write.
    Returns the mask of worlds in which the integrator's matrix K is not M (`is_damped`).
    """
    accelerate_state(m, d, p)
    store_next_velocity(m, d, p, d.qacc_step)
    if d.con_overflow[0] == 0:  # the contacts fit into the tile
        prepare_rates(m, d, p)
        factor_hessian(m, d)
    return is_damped(m, d)


@kernel
def _residual(m, d, p, s):
    """dg, dp, dact <- the rates by coordinate p.at, which is the same in all lanes."""
    at = whole(read_lane(p.at, 0, 0))  # the coordinate as an int
    rates_column(m, d, p, at)


_columns = columns_of(System(residual=_residual))


@stage(p=RATES)
def formula_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the residual by formulas, column by column; all lanes of a tile have the same coordinate.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; dg, dp, dact, report; body_*, dof_*, geom_*, row_*, slot_*, ten_* and
            all else of p; what `base_tiles` writes; act, which keeps its values.
    Scratch: con_wrench, crb_rate, crb_drag, cfrc_fluid, qfrc_fluid, cvel, cacc, cfrc, qvec.
    """
    accelerate_state(m, d, p)
    if d.con_overflow[0] == 0:
        prepare_rates(m, d, p)
        # reads p.at and p.rest_p of each column; shared: unused without a next state
        _columns(m, d, b, p, thread, tile, shared=0)
    else:
        p.report[KNOWN] = 0.0
        write_records(b, thread, tile, s=0)  # the report


formula_columns = in_each_tile("formula_columns", formula_columns_of_tile)


@stage(p=RATES)
def formula_steps_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the acceleration and of the next state by formulas, four columns at a time (panel.py).

    The columns are those of all coordinates, in their order.
    Models with the recursive solver are excluded, because its factors share memory with these formulas' forces.
    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; report, dg, dp, dact, da, dq, dv; body_*, dof_*, geom_*, panel_*,
            row_*, slot_*, ten_* and all else of p; what `base_tiles` writes; qfrc_smooth; act, which keeps its values.
    Scratch: con_wrench, crb_rate, crb_drag, cfrc_fluid, qfrc_fluid, cvel, cacc, cfrc, qvec, primal.*.
    """
    damped = begin_step(m, d, p)
    # numbers of transfers of b: loads come first, then controls, then outputs, the last of which is the report
    first_output, report = b.nload + b.ncontrol, b.nload + b.ncontrol + b.nrecord - 1
    if d.con_overflow[0] == 0:
        # a Hessian that was decomposed into parts leaves entries out
        p.report[KNOWN] = where(leaves_out(d), fmin(p.report[KNOWN], 0.0), p.report[KNOWN])
        for first in range(0, b.nstep, PANEL):
            # columns of this panel; the last one may have fewer
            n = min(PANEL, b.nstep - first)
            for c in range(n):
                copy_step_inputs(b, thread, tile, first + c)  # p.rest_p
                rates_column(m, d, p, first + c)  # dg, dp, dact; column s belongs to coordinate s
                put_column(m, d, p, c, first + c)
            for c in range(n, PANEL):  # unused columns of the panel are 0
                clear_rates(m, p)
                put_column(m, d, p, c, at=-1)
            solve_panel(m, d, p)
            if m.opt_noslip_iterations > 0:
                correct_columns(m, d, p)
            step_panel(m, d, p, damped)  # damped: worlds where K is not M
            for c in range(n):
                take_column(m, d, p, c, damped)  # da, dq, dv, dact
                for k in range(first_output, report):
                    write_rows(b, b.call_position, thread, tile, k, first + c)
    else:
        p.report[KNOWN] = 0.0
    write_rows(b, b.call_position, thread, tile, report, s=0)


formula_steps = in_each_tile("formula_steps", formula_steps_of_tile)
