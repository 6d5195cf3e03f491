"""Judges a step that differs from MuJoCo's: each excuse measures, in this step, that the difference has its cause.

A step starts at MuJoCo's state, so that no difference of earlier steps is judged.  First, rounding: MuJoCo's step
changes by as much if state and model are perturbed in their last digits.  Else a judge of the particular cause has to
agree with our step: MuJoCo on a model without the cause, or from another first iterate.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any, NamedTuple

import mujoco
import numpy as np

import featherlane as fl
from fuzz import models
from fuzz.crossed.comparison import DISCRETE, RK4, ROWS, SIZES, SLEEP, SOLUTION, Different, differences
from fuzz.crossed.scene import Scene
from fuzz.workers import enter
from oracles.contact_parity import given

EQUAL, TIED = 1e-8, 1e2
SHAKES = 4
OUTSIDE = 1e-13  # of a radius, by which an end is moved off its surface
FLAT = 1e-6  # error of an acceleration whose cost is the least to rounding, about the root of 2e-16
UNMOVED = 1e-12  # largest entry of a Jacobian that is rounding error
NEWTON = mujoco.mjtSolver.mjSOL_NEWTON


class Step(NamedTuple):
    """Holds a step: both models, MuJoCo's data and state before it, both results, relative errors, counts."""

    mj: mujoco.MjModel
    model: fl.Model
    scene: Scene
    first: mujoco.MjData
    before: dict[str, np.ndarray]
    data: fl.Data
    theirs: mujoco.MjData
    errors: dict[str, float]
    status: dict[str, int]


def judged(step: Step, k: int) -> str:
    """Returns the excuse of a difference; raises if there is none."""
    reason = "rounding"
    if step.scene.ends:
        step, reason = moved_outside(step), "a tendon end on a surface"
    wrong = not_rounding(step)
    if not wrong:
        return reason
    for reason, explains in EXCUSES.items():
        if explains(step, wrong):
            return reason
    worst = sorted(wrong.items(), key=lambda x: -x[1])[:6]
    text = ", ".join(f"{name} {error:.1e}" for name, error in worst)
    status = " ".join(f"{name}={number}" for name, number in step.status.items() if number)
    raise Different(
        next(name for name in step.errors if name in wrong),
        f"step {k}: {text}; {step.theirs.nefc} rows, {step.theirs.ncon} contacts, {status or 'no status'}",
    )


# ---- other steps from the same state ---------------------------------------------------------------------------------
def their_step(step: Step, mj, **values) -> mujoco.MjData:
    """Returns MuJoCo's data after the step of a model, from another state."""
    data = copy.copy(step.first)
    put(data, values)
    enter("mujoco step")
    mujoco.mj_step(mj, data)
    return data


def our_step(model, before, theirs=None) -> fl.Data:
    """Returns our data after a step from a state, maybe with MuJoCo's contacts."""
    data = fl.Data(model, given_contacts=max(theirs.ncon, 1) if theirs else 0)
    put(data, before)
    if theirs:
        data.give_contacts(**given(theirs), adhesion=np.array(theirs.contact.adhesion), replace=True)
    enter("step")
    fl.step(model, data)
    return data


def put(data, values) -> None:
    for name, value in values.items():
        if np.size(value):
            setattr(data, name, value)


@contextlib.contextmanager
def with_options(model, **options):
    """Sets options of a model for a while."""
    kept = {name: getattr(model.opt, name) for name in options}
    try:
        for name, value in options.items():
            setattr(model.opt, name, value)
        yield model
    finally:
        for name, value in kept.items():
            setattr(model.opt, name, value)


@contextlib.contextmanager
def under(step: Step, **options: Any):
    """Yields the step under other options, with MuJoCo's contacts."""
    mj = copy.copy(step.mj)
    with with_options(mj, **options), with_options(step.model, **options):
        theirs = their_step(step, mj)
        data = our_step(step.model, step.before, theirs)
        errors = differences(mj, data, theirs)
        yield step._replace(mj=mj, theirs=theirs, data=data, errors=errors, status=dict(data.status))


def with_other_options(step: Step, **options: Any) -> dict[str, float]:
    """Returns the errors of the step under other options, of those that rounding does not explain."""
    with under(step, **options) as other:
        return not_rounding(other)


# ---- rounding --------------------------------------------------------------------------------------------------------
def not_rounding(step: Step) -> dict[str, float]:
    """Returns the errors that rounding does not explain."""
    wrong = {name: error for name, error in step.errors.items() if error > EQUAL}
    if wrong:
        moves, forces = sensitivity(step), rounding_of_forces(step)
        wrong = {n: e for n, e in wrong.items() if e > EQUAL + TIED * moves[n] + forces.get(n, 0.0)}
    return wrong


def sensitivity(step: Step) -> dict[str, float]:
    """Returns the largest change of MuJoCo's fields if state and model are perturbed in their last digits."""
    rng, worst = np.random.default_rng(0), {}
    for _ in range(SHAKES):
        other, values = copy.copy(step.mj), {}
        for name in models.SHAKEN:
            field = getattr(other, name)
            field *= 1 + models.ROUNDED * rng.standard_normal(field.shape)
        for name in () if step.mj.opt.enableflags & SLEEP else ("qpos", "qvel"):
            noise = models.ROUNDED * rng.standard_normal((2, *step.before[name].shape))
            values[name] = step.before[name] * (1 + noise[0]) + noise[1]
        for name, change in differences(step.mj, their_step(step, other, **values), step.theirs).items():
            worst[name] = max(worst.get(name, 0.0), change)
    return worst


def rounding_of_forces(step: Step) -> dict[str, float]:
    """Returns the relative rounding errors of the sum J' f, and of what it changes, if large forces cancel each other.

    Rows have D = 1e15 if a body has no inverse weight.  The error of MuJoCo's equation of motion is added.
    """
    mj, theirs = step.mj, step.theirs
    if not theirs.nefc:
        return {}
    J, f, inverse = np.abs(jacobian(mj, theirs)), np.abs(theirs.efc_force), np.zeros((mj.nv, mj.nv))
    eps, h = theirs.nefc * np.finfo(float).eps, mj.opt.timestep
    mujoco.mj_solveM(mj, theirs, inverse, np.eye(mj.nv))
    change = np.abs(inverse) @ (J.T @ f)
    sizes = {"qfrc_constraint": J.T @ f, "qacc": change, "qvel": h * change, "qpos": h * h * change}
    # terms of f = -D (J a - aref), where aref = -K (difference of numbers of size 1) of a weld that cannot turn
    row = theirs.efc_D * (J @ np.abs(theirs.qacc) + np.abs(theirs.efc_aref) + theirs.efc_KBIP[:, 0])
    row[theirs.efc_D < models.UNMOVED] = 0.0
    sizes["sensordata"] = np.array([f.sum(), row.max(), change.max()])
    if mj.opt.integrator not in (DISCRETE, RK4) and not mj.opt.enableflags & SLEEP:
        missing = np.abs(residual(mj, theirs)) / eps
        gap = np.abs(inverse) @ missing
        for name, x in {"qfrc_constraint": missing, "qacc": gap, "qvel": h * gap, "qpos": h * h * gap}.items():
            sizes[name] = sizes[name] + x
    return {name: eps * x.max() / max(1.0, np.abs(getattr(theirs, name)).max(initial=0)) for name, x in sizes.items()}


def residual(mj, theirs) -> np.ndarray:
    """Returns M qacc - qfrc_smooth - qfrc_constraint of MuJoCo: the error of its equation of motion."""
    force = np.zeros(mj.nv)
    mujoco.mj_mulM(mj, theirs, force, theirs.qacc)
    return force - theirs.qfrc_smooth - theirs.qfrc_constraint


def jacobian(mj, theirs) -> np.ndarray:
    """Returns MuJoCo's constraint Jacobian as a dense matrix."""
    J = np.zeros((theirs.nefc, mj.nv))
    if mujoco.mj_isSparse(mj):
        mujoco.mju_sparse2dense(J, theirs.efc_J, theirs.efc_J_rownnz, theirs.efc_J_rowadr, theirs.efc_J_colind)
    else:
        J[:] = np.reshape(theirs.efc_J[: J.size], J.shape)
    return J


# ---- excuses ---------------------------------------------------------------------------------------------------------
def moved_outside(step: Step) -> Step:
    """Returns the step with MuJoCo's of a model whose tendon ends are slightly outside of the surfaces they are on.

    On a surface, rounding decides whether MuJoCo's tendon is straight.
    """
    mj = copy.copy(step.mj)
    for name in step.scene.ends:
        mj.site(name).pos *= 1.0 + OUTSIDE
    theirs = their_step(step, mj)
    return step._replace(mj=mj, theirs=theirs, errors=differences(mj, step.data, theirs))


def are_of_solution(step: Step, wrong) -> bool:
    """Returns whether only results of a factorization or the solver differ; by RK4 all fields of its last stage do."""
    return step.mj.opt.integrator == RK4 or set(wrong) <= SOLUTION


def is_singular(step: Step, wrong) -> bool:
    """Returns whether MuJoCo reports a singular inertia, and only results of a factorization differ."""
    return warned(step, "INERTIA") > 0 and are_of_solution(step, wrong)


def warned(step: Step, name: str) -> int:
    """Returns how often MuJoCo warned in this step."""
    k = int(getattr(mujoco.mjtWarning, f"mjWARN_{name}"))
    return step.theirs.warning[k].number - step.first.warning[k].number


def without_rigid_equalities(step: Step, wrong) -> bool:
    """Returns whether our step is MuJoCo's without the equalities within one rigid body.

    Rounding decides whether MuJoCo's Jacobian is 0, and a row of rounding errors acts on the motion.
    """
    rigid = equalities_within_rigid_bodies(step.mj)
    if not rigid:
        return False
    active = np.array(step.before["eq_active"])
    active[rigid] = 0
    errors = differences(step.mj, step.data, their_step(step, step.mj, eq_active=active))
    return all(errors[name] <= EQUAL for name in errors if name not in (*ROWS, *SIZES))


def equalities_within_rigid_bodies(mj) -> list[int]:
    """Returns the connects and welds whose ends are on bodies that are welded to each other."""
    out = []
    for i in np.flatnonzero(mj.eq_type <= int(mujoco.mjtEq.mjEQ_WELD)):
        ends = [mj.eq_obj1id[i], mj.eq_obj2id[i]]
        if mj.eq_objtype[i] == int(mujoco.mjtObj.mjOBJ_SITE):
            ends = mj.site_bodyid[ends]
        if mj.body_weldid[ends[0]] == mj.body_weldid[ends[1]]:
            out.append(int(i))
    return out


def moves_nothing(step: Step, wrong) -> bool:
    """Returns whether, under `discrete`, the moment of an actuator is rounding error.

    This decides whether it couples its DoFs.
    """
    if step.mj.opt.integrator != DISCRETE or not are_of_solution(step, wrong):
        return False
    rows = zip(step.theirs.moment_rowadr, step.theirs.moment_rownnz, strict=True)
    sizes = [np.abs(step.theirs.actuator_moment[a : a + n]).max(initial=0.0) for a, n in rows]
    return any(0.0 < size < UNMOVED for size in sizes)


def slips(step: Step, wrong) -> bool:
    """Returns whether only the no-slip solver differs, where MuJoCo's is known to."""
    mj = step.mj
    known = mj.opt.integrator == DISCRETE or models.slips_along_a_line(mj, step.theirs)
    if not mj.opt.noslip_iterations or not known or not are_of_solution(step, wrong):
        return False
    return not with_other_options(step, noslip_iterations=0)


def is_better(step: Step, wrong) -> bool:
    """Returns whether our acceleration has a lower cost, and MuJoCo's step from it is our step."""
    mj, theirs = step.mj, step.theirs
    other_cost = mj.opt.noslip_iterations or mj.opt.integrator in (DISCRETE, RK4)
    if not are_of_solution(step, wrong) or not theirs.nefc or other_cost:
        return False
    a, b = (models.cost(mj, theirs, np.array(one.qacc)) for one in (step.data, theirs))
    if not a < b:
        return False
    errors = differences(mj, step.data, their_step(step, mj, qacc_warmstart=np.array(step.data.qacc)))
    return all(errors[name] <= EQUAL for name in wrong)


def is_unconverged(step: Step, wrong) -> bool:
    """Returns whether CG or PGS reports that it is not converged, or its cost is flat, and Newton's steps are equal."""
    if step.mj.opt.solver == NEWTON or not are_of_solution(step, wrong):
        return False
    if not step.status["not_converged"] and max(wrong.values()) > FLAT:
        return False
    return not with_other_options(step, solver=int(NEWTON), iterations=100)


def is_solved(step: Step, wrong) -> bool:
    """Returns whether our step by CG or PGS is MuJoCo's by Newton's method."""
    if step.mj.opt.solver == NEWTON or not are_of_solution(step, wrong):
        return False
    with with_options(copy.copy(step.mj), solver=int(NEWTON), iterations=100) as other:
        errors = differences(step.mj, step.data, their_step(step, other))
    return all(errors[name] <= FLAT for name in wrong)


EXCUSES = {
    "singular inertia in MuJoCo": is_singular,
    "an equality within a rigid body": without_rigid_equalities,
    "an actuator that moves nothing": moves_nothing,
    "the no-slip solver of MuJoCo": slips,
    "CG or PGS not converged in MuJoCo": is_solved,
    "Newton not converged in MuJoCo": is_better,
    "not converged": is_unconverged,
}
