"""Compares the steps of one model with MuJoCo's, and a world in a batch with the same world alone."""

from __future__ import annotations

import contextlib
import copy

import mujoco
import numpy as np

import featherlane as fl
from fuzz import models
from fuzz.crossed import settings
from fuzz.crossed.comparison import DISCRETE, FAR, INPUTS, OVERRIDE, RK4, SLEEP, START, Different, Skip, differences
from fuzz.crossed.excuses import EQUAL, NEWTON, Step, judged, our_step, put, under, warned
from fuzz.crossed.scene import Scene
from fuzz.workers import enter
from oracles.contact_parity import _by_pair, is_general, touching
from oracles.parity import CCD, relative

CG, PGS = mujoco.mjtSolver.mjSOL_CG, mujoco.mjtSolver.mjSOL_PGS
EXTREME = 1e8  # largest acceleration and velocity
EULER = int(mujoco.mjtIntegrator.mjINT_EULER)
ITERATIONS = {NEWTON: 100, CG: 1000, PGS: 3000}
CONSTANTS = {"body_mass", "body_inertia", "dof_armature", "actuator_armature"}  # M of simple bodies is a constant
# ints of MuJoCo's model that only mj_setConst updates; ours follow an edit
SWITCHED = {"body_gravcomp", "geom_adhesion", "geom_surfacevel", "actuator_damping", "actuator_armature"}


def converged(mj) -> None:
    """Sets tolerances of 0 and enough iterations."""
    # under `discrete` MuJoCo's dense rows touch fewer free bodies: those whose Jacobian is not 0 by chance
    sparse = mj.opt.integrator == DISCRETE
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_SPARSE if sparse else mujoco.mjtJacobian.mjJAC_DENSE
    mj.opt.tolerance, mj.opt.ls_tolerance, mj.opt.noslip_tolerance = 0.0, 0.01, 0.0
    mj.opt.iterations, mj.opt.ls_iterations = ITERATIONS[mujoco.mjtSolver(mj.opt.solver)], 100
    mj.opt.ccd_tolerance, mj.opt.ccd_iterations = CCD


def compiled(scene: Scene, text: str, how: str):
    """Returns MuJoCo's model with all edits, and ours, edited before loading (`loaded`) or later (`edited`)."""
    enter("mujoco compile")
    try:
        mj = mujoco.MjModel.from_xml_string(text)
    except (ValueError, mujoco.FatalError) as error:
        raise Skip("not compiled") from error
    converged(mj)
    edited = copy.copy(mj)
    for edit in scene.edits:
        value = settings.get(edited, edit.field)
        if value.size:
            settings.put(edited, edit.field, edit.change(value))
    if {"body_ipos", "body_iquat"} & {edit.field for edit in scene.edits}:
        edited = without_simple_bodies(edited, text)
    for name in ("body_sameframe", "geom_sameframe", "site_sameframe") if scene.edits else ():
        getattr(edited, name)[:] = 0  # MuJoCo ignores a position that was 0 at compilation
    if scene.edits:  # MuJoCo's broad phase keeps the boxes and margins of the compilation
        edited.bvh_aabb[:, 3:] += 1.0
        edited.body_margin[:] += 1.0
    for call in scene.calls:
        call(edited)
    fields = {edit.field for edit in scene.edits}
    switched = fields & SWITCHED
    constants = fields & CONSTANTS or (switched and fields - SWITCHED)  # mj_setConst then computes other constants, too
    if constants or switched:
        mujoco.mj_setConst(edited, mujoco.MjData(edited))
    enter("load")
    try:
        if how == "loaded":
            return edited, fl.load(edited)
        model = fl.load(mj)
        for call in scene.calls:
            call(model)
    except fl.UnsupportedFeatureError as error:
        raise Skip("unsupported") from error
    if how == "expanded" and scene.edits:
        batch = fl.Batch(model, 2, nthread=1)
        for edit in scene.edits:
            if settings.get(model, edit.field).size:
                batch.expand(edit.field)[1] = settings.get(edited, edit.field)
        if constants:
            batch.set_const()
        return edited, batch.get_model(1)
    if how == "edited":
        for edit in scene.edits:
            settings.put(model, edit.field, settings.get(edited, edit.field))
        if constants:
            fl.set_const(model)
    return edited, model


def without_simple_bodies(mj, text: str) -> mujoco.MjModel:
    """Returns MuJoCo's model compiled with the inertial frames of a model: the compiler decides which M is diagonal."""
    spec = mujoco.MjSpec.from_string(text)
    for body in spec.bodies[1:]:
        body.explicitinertial = True
        i = mj.body(body.name).id
        body.mass, body.ipos, body.iquat = mj.body_mass[i], mj.body_ipos[i], mj.body_iquat[i]
        body.inertia, body.fullinertia = mj.body_inertia[i], [np.nan] * 6
    other = spec.compile()
    other.opt = mj.opt
    for name in dir(mj):
        value = getattr(mj, name)
        real = isinstance(value, np.ndarray) and value.dtype == float and name not in ("body_ipos", "body_iquat")
        if real and value.shape == getattr(other, name).shape:
            getattr(other, name)[...] = value
    return other


def start(mj, scene: Scene, rng) -> dict[str, np.ndarray]:
    """Returns the initial state."""
    data = mujoco.MjData(mj)
    data.qvel[:] = rng.standard_normal(mj.nv)
    mujoco.mj_integratePos(mj, data.qpos, 0.05 * rng.standard_normal(mj.nv), 1.0)
    for change in scene.starts:
        change(mj, data)
    return {name: np.array(getattr(data, name))[()] for name in START}


def inputs(mj, scene: Scene, state, k: int) -> dict[str, np.ndarray]:
    """Returns the inputs of step k."""
    values = {name: np.array(state[name]) for name in INPUTS}
    for drive in scene.drives:
        for _ in range(k if "move" in drive.__name__ else 1):
            drive(mj, values, k)
    return values


# ---- steps -----------------------------------------------------------------------------------------------------------
def trajectory(mj, scene, state):
    """Yields MuJoCo's data before each step, its state, and its data after the step."""
    data = mujoco.MjData(mj)
    put(data, state)
    for k in range(scene.steps):
        put(data, inputs(mj, scene, state, k))
        first = copy.copy(data)
        before = {name: np.array(getattr(data, name))[()] for name in START}
        enter("mujoco step")
        mujoco.mj_step(mj, data)
        yield first, before, data


def check_steps(mj, model, scene, state) -> str:
    """Compares all steps, each from MuJoCo's state; returns a verdict."""
    points, excuses, data = "", set(), fl.Data(model)
    put(data, state)
    for k, (first, before, theirs) in enumerate(trajectory(mj, scene, state)):
        if data.ngiven:
            data = fl.Data(model)
        # a write of qpos would wake a tree
        put(data, {name: before[name] for name in (INPUTS if mj.opt.enableflags & SLEEP else START)})
        counted = dict(data.status)
        enter("step")
        fl.step(model, data)
        status = {name: number - counted[name] for name, number in data.status.items()}
        step = Step(mj, model, scene, first, before, data, theirs, {}, status)
        check_valid(step, k)
        if not same_contacts(step, excuses):
            if mj.opt.enableflags & SLEEP:
                raise Skip("other contact points, sleep")
            points = ", other contact points"
            if mj.opt.integrator == RK4:  # the stages differ
                compare_euler(step, k, excuses)
                continue
            data = our_step(model, before, theirs)
            step = step._replace(data=data, status=dict(data.status))
        step = step._replace(errors=differences(mj, data, theirs))
        if max(step.errors.values(), default=0.0) > EQUAL:
            excuses.add(judged(step, k))
            if mj.opt.enableflags & SLEEP:  # the next step does not start at MuJoCo's state
                break
    if excuses:
        return f"excused: {', '.join(sorted(excuses))}"
    rows = "contacts" if theirs.ncon else "rows" if theirs.nefc else "free"
    return f"equal{points}, {rows}"


def compare_euler(step: Step, k: int, excuses: set[str]) -> None:
    """Compares the step by Euler's method instead of RK4, with MuJoCo's contacts."""
    with under(step, integrator=EULER) as other:
        if max(other.errors.values()) > EQUAL:
            excuses.add(judged(other, k))


def same_contacts(step: Step, excuses: set[str]) -> bool:
    """Returns whether contacts are the same: of the state before the step, and of the last stage of RK4."""
    mj, data, theirs = step.mj, step.data, step.theirs
    if mj.opt.integrator == RK4:
        first, forward = fl.Data(step.model), mujoco.MjData(mj)
        put(first, step.before)
        put(forward, step.before)
        fl.forward(step.model, first)
        mujoco.mj_forward(mj, forward)
        if not same_points(mj, first, forward, excuses):
            return False
        if mj.opt.solver != NEWTON or has_other_stages(mj, data, theirs):
            with contextlib.suppress(models.Deeper):
                return models.same_contacts(mj, data, theirs)
            return False
    return same_points(mj, data, theirs, excuses)


def has_other_stages(mj, data, theirs) -> bool:
    """Returns whether the last stage of RK4 has other poses, with contacts that may differ in the stages before.

    Without Newton's method stages differ, too, if the solver did not converge.
    """
    general = any(is_general(mj, pair) for one in (data, theirs) for pair in one.contact.geom)
    return (general or bool(mj.opt.enableflags & OVERRIDE)) and max(
        relative(getattr(data, x), getattr(theirs, x)) for x in ("geom_xpos", "xquat")
    ) > EQUAL


def same_points(mj, data, theirs, excuses: set[str]) -> bool:
    """Returns whether contacts are the same; if their depths differ, MuJoCo's distance of the geoms has to be ours."""
    try:
        return models.same_contacts(mj, data, theirs) and not has_other_gap_points(mj, data, theirs)
    except models.Deeper:
        a, b = (nearest_contacts(mj, one.contact) for one in (data, theirs))
        for pair in a.keys() | b.keys():
            ours, other = a.get(pair), b.get(pair)
            if ours is None or other is None or abs(ours - other) > models.DEPTH:
                distance = mujoco.mj_geomDistance(mj, theirs, *pair, 1.0, None)
                if distance <= 0.0 or ours is None or abs(ours - distance) > EQUAL:
                    raise
        excuses.add("MuJoCo's contact is not at the distance of its geoms")
        return False


def has_other_gap_points(mj, data, theirs) -> bool:
    """Returns whether pairs have another number of contacts in their gap, without a force, or a sensor other ones.

    These are pairs of the general method, and with the flag `override` pairs that are farther apart than `o_margin`.
    """
    ours, other = ([pair for pair in map(tuple, one.contact.geom)] for one in (data, theirs))
    counts = {pair: (ours.count(pair), other.count(pair)) for pair in {*ours, *other}}
    changed = [pair for pair, (a, b) in counts.items() if a != b]
    if not changed and (mj.sensor_type == mujoco.mjtSensor.mjSENS_CONTACT).any():
        points = [one.contact.pos[[is_general(mj, pair) for pair in one.contact.geom]] for one in (data, theirs)]
        return relative(*map(np.asarray, points)) > EQUAL
    return bool(changed) and all(
        (is_general(mj, pair) and min(counts[pair]) > 0) or filtered_by_margin(mj, data, theirs, pair)
        for pair in changed
    )


def filtered_by_margin(mj, data, theirs, pair: tuple[int, int]) -> bool:
    """Returns whether a pair is farther apart than `o_margin`, and our contacts, without a force, are at its distance.

    With the flag `override` MuJoCo's bounding volumes have this margin, without the gap.
    """
    contact = data.contact
    own = (np.asarray(contact.geom) == pair).all(axis=1)
    if not mj.opt.enableflags & OVERRIDE or not own.any():
        return False
    nearest, limit = contact.dist[own].min(), max(mj.opt.o_margin, contact.includemargin[own].max())
    distance = mujoco.mj_geomDistance(mj, theirs, *pair, FAR, None)
    return bool(nearest > limit and abs(distance - nearest) <= EQUAL)


def nearest_contacts(mj, contact) -> dict[tuple[int, int], float]:
    """Returns: pair of geoms, except height fields -> distance of its nearest contact."""
    rows = models.without_heights(mj, touching(contact))
    return {pair: found[0] for pair, found in _by_pair(rows).items()}


def check_valid(step: Step, k: int) -> None:
    """Ends the case if MuJoCo's state is invalid; ours must report it."""
    data, theirs, status = step.data, step.theirs, step.status
    if warned(step, "CNSTRFULL") or warned(step, "CONTACTFULL"):
        raise Skip("full in MuJoCo")
    if any(warned(step, f"BAD{what}") for what in ("QPOS", "QVEL", "QACC")) or not np.isfinite(theirs.qacc).all():
        raise Skip("unstable in MuJoCo")
    if max(np.abs(getattr(theirs, name)).max(initial=0.0) for name in ("qacc", "qvel")) > EXTREME:
        raise Skip("extreme")
    if np.abs(theirs.act).max(initial=0.0) > mujoco.mjMAXVAL:
        raise Skip("extreme")  # out of range here only (docs/migration.md)
    if warned(step, "INERTIA"):
        if not status["singular_inertia"] and step.mj.opt.integrator != DISCRETE:  # whose metric may be regular
            raise Different("singular", f"step {k}: MuJoCo's inertia matrix is singular, ours is not counted")
        lost = (
            status["non_finite"] or not np.isfinite(data.qpos).all()
        )  # by a late stage of RK4: counted in the next step
        if status["singular_inertia"] and lost:
            raise Skip("singular inertia in MuJoCo")  # quotients of rounding errors
    if status["non_finite"]:
        raise Different("non_finite", f"step {k}: non-finite where MuJoCo is not, {status}")
    for full in ("contacts_full", "rows_full"):
        if status[full]:
            raise Different(full, f"step {k}: MuJoCo has {theirs.ncon} contacts, ours {data.ncon}")
    for name in ("qpos", "qvel", "qacc", "act", "sensordata", "qfrc_constraint"):
        if not np.isfinite(getattr(data, name)).all() and np.isfinite(getattr(theirs, name)).all():
            raise Different("non_finite", f"step {k}: {name} is not finite, without a status")
