"""Compares the steps of one model with MuJoCo's, and a world in a batch with the same world alone."""

from __future__ import annotations

import contextlib
import copy

import mujoco
import numpy as np

import featherlane as fl
from fuzz import models
from fuzz.crossed import settings
from fuzz.crossed.scene import Scene
from fuzz.models import Finding
from fuzz.workers import enter
from oracles.contact_parity import given
from oracles.parity import CCD, relative

EQUAL, TIED = 1e-8, 1e3
SHAKES = 3
STATE = "time qpos qvel act history plastic".split()
INPUTS = "ctrl mocap_pos mocap_quat eq_active qfrc_applied xfrc_applied".split()
START = [*STATE, *INPUTS, "qacc_warmstart"]
SMOOTH = (
    "qfrc_bias qfrc_passive qfrc_spring qfrc_damper qfrc_gravcomp qfrc_fluid qfrc_actuator actuator_force act_dot"
    " actuator_length actuator_velocity ten_length ten_velocity qacc_smooth xpos xquat xipos subtree_com cvel cinert"
    " geom_xpos site_xpos"
).split()
SOLVED = "qacc qfrc_constraint sensordata energy".split()
ROWS = "efc_D efc_aref efc_pos efc_margin efc_frictionloss".split()
SIZES = "ncon nefc ne nf nl".split()
NEWTON, CG, PGS = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtSolver.mjSOL_CG, mujoco.mjtSolver.mjSOL_PGS
ITERATIONS = {NEWTON: 100, CG: 1000, PGS: 3000}
RK4, DISCRETE = mujoco.mjtIntegrator.mjINT_RK4, mujoco.mjtIntegrator.mjINT_DISCRETE
ENERGY = mujoco.mjtEnableBit.mjENBL_ENERGY
CONSTANTS = {"body_mass", "body_inertia", "dof_armature", "actuator_armature"}  # M of simple bodies is a constant
# ints of MuJoCo's model that only mj_setConst updates; ours follow an edit
SWITCHED = {"body_gravcomp", "geom_adhesion", "geom_surfacevel", "actuator_damping", "actuator_armature"}
DISTANCES = [int(getattr(mujoco.mjtSensor, f"mjSENS_GEOM{what}")) for what in ("DIST", "NORMAL", "FROMTO")]
NEAR, BOX = 0.01, mujoco.mjtGeom.mjGEOM_BOX  # m
SLEEP = mujoco.mjtEnableBit.mjENBL_SLEEP


class Skip(Exception):
    """Ends a case without a comparison, or early; its text is the verdict."""


class Different(Finding):
    """Reports a quantity that differs from MuJoCo's: `kind` identifies it while features are dropped."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


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
        i = body.id
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


def put(data, values) -> None:
    for name, value in values.items():
        if np.size(value):
            setattr(data, name, value)


# ---- steps -----------------------------------------------------------------------------------------------------------
def trajectory(mj, scene, state):
    """Yields MuJoCo's state before each step, and its data after it."""
    data = mujoco.MjData(mj)
    put(data, state)
    for k in range(scene.steps):
        put(data, inputs(mj, scene, state, k))
        before = {name: np.array(getattr(data, name))[()] for name in START}
        enter("mujoco step")
        mujoco.mj_step(mj, data)
        yield before, data


def check_steps(mj, model, scene, state) -> str:
    """Compares all steps; returns a verdict."""
    verdict, data = "equal", fl.Data(model)
    put(data, state)
    for k, (before, theirs) in enumerate(trajectory(mj, scene, state)):
        if data.ngiven:
            data = fl.Data(model)
            put(data, before)
        put(data, {name: before[name] for name in INPUTS})
        enter("step")
        fl.step(model, data)
        check_valid(mj, data, theirs, k)
        if not same_contacts(mj, model, before, data, theirs):
            if mj.opt.integrator == RK4:  # the stages differ
                raise Skip("other contact points, RK4")
            data, verdict = with_contacts(model, before, theirs), "equal, other contact points"
        errors = differences(mj, data, theirs)
        if max(errors.values(), default=0.0) > EQUAL:
            kind = judged(mj, scene, state, k, data, theirs, errors)
            if kind:
                return kind
    rows = "contacts" if theirs.ncon else "rows" if theirs.nefc else "free"
    return f"{verdict}, {rows}"


def same_contacts(mj, model, before, data, theirs) -> bool:
    """Returns whether contacts are the same: of the state before the step, and of the last stage of RK4."""
    if mj.opt.integrator == RK4:
        first, forward = fl.Data(model), mujoco.MjData(mj)
        put(first, before)
        put(forward, before)
        fl.forward(model, first)
        mujoco.mj_forward(mj, forward)
        if not models.same_contacts(mj, first, forward):
            return False
        if mj.opt.solver != NEWTON:  # the stages differ if the solver did not converge
            with contextlib.suppress(models.Deeper):
                return models.same_contacts(mj, data, theirs)
            raise Skip("other contact points, RK4")
    return models.same_contacts(mj, data, theirs)


def check_valid(mj, data, theirs, k) -> None:
    """Ends the case if MuJoCo's state is invalid; ours must report it."""
    numbers = {mujoco.mjtWarning(w).name: theirs.warning[w].number for w in range(mujoco.mjtWarning.mjNWARNING)}
    bad = any(numbers[f"mjWARN_BAD{what}"] for what in ("QPOS", "QVEL", "QACC"))
    if numbers["mjWARN_CNSTRFULL"] or numbers["mjWARN_CONTACTFULL"]:
        raise Skip("full in MuJoCo")
    if bad or not np.isfinite(theirs.qacc).all():
        raise Skip("unstable in MuJoCo")
    if max(np.abs(getattr(theirs, name)).max(initial=0.0) for name in ("qacc", "qvel")) > 1e7:
        raise Skip("extreme")
    if np.abs(theirs.act).max(initial=0.0) > mujoco.mjMAXVAL:
        raise Skip("extreme")  # out of range here only (docs/migration.md)
    if numbered_inertia(theirs) and mj.opt.integrator != DISCRETE:  # whose metric may be regular
        if not data.status["singular_inertia"]:
            raise Different("singular", f"step {k}: MuJoCo's inertia matrix is singular, ours is not counted")
        if data.status["non_finite"]:
            raise Skip("singular inertia in MuJoCo")  # quotients of rounding errors
    if data.status["non_finite"]:
        raise Different("non_finite", f"step {k}: non-finite where MuJoCo is not, {dict(data.status)}")
    for full in ("contacts_full", "rows_full"):
        if data.status[full]:
            raise Different(full, f"step {k}: MuJoCo has {theirs.ncon} contacts, ours {data.ncon}")
    for name in ("qpos", "qvel", "qacc", "act", "sensordata", "qfrc_constraint"):
        if not np.isfinite(getattr(data, name)).all() and np.isfinite(getattr(theirs, name)).all():
            raise Different("non_finite", f"step {k}: {name} is not finite, without a status")


def with_contacts(model, before, theirs):
    """Returns a world after the step with MuJoCo's contacts."""
    if model.opt.enableflags & int(SLEEP):
        raise Skip("other contact points, sleep")
    contacts = given(theirs) | {"adhesion": np.array(theirs.contact.adhesion)}
    data = fl.Data(model, given_contacts=max(theirs.ncon, 1))
    put(data, before)
    try:
        data.give_contacts(**contacts, replace=True)
        fl.step(model, data)
    except fl.ModelError as error:
        raise Skip("contacts not taken") from error
    return data


def compared(mj, theirs) -> list[str]:
    """Returns the compared fields; legitimate differences are left out (docs/limits.md)."""
    fields = [*STATE, *SIZES, *SMOOTH, *SOLVED, *ROWS]
    if mj.opt.integrator == DISCRETE:
        fields.remove("qacc_smooth")  # couplings are rows
        for name in ("qfrc_constraint", "nefc", "ne", "nf", *ROWS):
            fields.remove(name)
    if mj.opt.enableflags & SLEEP and (theirs.tree_asleep >= 0).any():
        return ["time", "qpos", "qvel", "tree_asleep"]
    if mj.opt.enableflags & SLEEP:
        fields.append("tree_asleep")
    if mj.opt.integrator == RK4 and mj.nplastic:
        fields.remove("ten_length")  # MuJoCo's is that at the start of the step, all else that of the last stage
    if mj.opt.integrator == RK4 and (mj.actuator_dyntype == mujoco.mjtDyn.mjDYN_DCMOTOR).any():
        fields.remove("actuator_velocity")  # the same
    if not mj.opt.enableflags & ENERGY or energy_sensors(mj).size:
        fields.remove("energy")  # MuJoCo computes it now and then; with flag and sensor, of the step before
    no_sensors = mj.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR
    if np.any(mj.sensor_history[:, 0]) and (no_sensors or overlapping_distances(mj, theirs)):
        fields.remove("history")
    return fields


def energy_sensors(mj) -> np.ndarray:
    """Returns the addresses of the values of energy sensors."""
    kinds = (int(mujoco.mjtSensor.mjSENS_E_POTENTIAL), int(mujoco.mjtSensor.mjSENS_E_KINETIC))
    return mj.sensor_adr[np.isin(mj.sensor_type, kinds)]


def overlapping_distances(mj, theirs) -> list[int]:
    """Returns the addresses of distance sensors of overlapping geoms: MuJoCo's is not always the least overlap.

    Two boxes can have several pairs of nearest points.
    """
    out = []
    for i in np.flatnonzero(np.isin(mj.sensor_type, DISTANCES)):
        geoms = mj.sensor_objid[i], mj.sensor_refid[i]
        several = mj.sensor_type[i] == DISTANCES[-1] and (mj.geom_type[list(geoms)] == int(BOX)).all()
        if several or mujoco.mj_geomDistance(mj, theirs, *geoms, 1.0, None) < NEAR:
            out += range(mj.sensor_adr[i], mj.sensor_adr[i] + mj.sensor_dim[i])
    return out


def differences(mj, data, theirs) -> dict[str, float]:
    """Returns the relative error of each compared field."""
    out = {}
    for name in compared(mj, theirs):
        a = getattr(data, name)
        b = getattr(theirs, name)
        if name == "sensordata":
            left_out = [*overlapping_distances(mj, theirs)]
            left_out += [*energy_sensors(mj)] if mj.opt.enableflags & ENERGY else []
            a, b = (np.delete(x, left_out) for x in (a, b))
        out[name] = relative(np.asarray(a, float), np.asarray(b, float))
    return out


def within_a_rigid_body(mj) -> bool:
    """Returns whether a connect or weld has both ends on bodies that are welded to each other."""
    for i in np.flatnonzero(mj.eq_type <= int(mujoco.mjtEq.mjEQ_WELD)):
        ends = mj.eq_obj1id[i], mj.eq_obj2id[i]
        if mj.eq_objtype[i] == int(mujoco.mjtObj.mjOBJ_SITE):
            ends = mj.site_bodyid[list(ends)]
        if mj.body_weldid[ends[0]] == mj.body_weldid[ends[1]]:
            return True
    return False


def judged(mj, scene, state, k, data, theirs, errors) -> str:
    """Returns a verdict if the difference has a known reason, "" if rounding explains it for now; else raises."""
    if numbered_inertia(theirs):
        raise Skip("singular inertia in MuJoCo")
    moves = moved(mj, scene, state, k)
    rounding = 1e2 * models.rounding_of_factor(mj, theirs)
    wrong = {n: e for n, e in errors.items() if e > EQUAL + TIED * moves.get(n, 0.0) + rounding}
    if not wrong:
        return "tied"
    if scene.notes:
        return min(scene.notes)
    if theirs.nefc and theirs.efc_D.max() > models.UNMOVED:
        return "a row that moves nothing"
    if within_a_rigid_body(mj):
        return "an equality within a rigid body"  # rounding decides whether MuJoCo's Jacobian is 0
    if models.is_instant(mj):
        return "a current that follows at once"
    if mj.neq and models.slides_behind_balls(mj):
        return "a slide behind a ball"
    if mj.opt.integrator == DISCRETE and moves_nothing(mj, theirs):
        return "an actuator that moves nothing"  # rounding decides whether it couples its DoFs
    if mj.opt.noslip_iterations and mj.opt.integrator == DISCRETE:
        return "no slip in a coupled metric"
    if models.slips_along_a_line(mj, theirs):
        return "no slip along a line"
    unsolved = set(wrong) <= {
        "qacc",
        "qfrc_constraint",
        "qpos",
        "qvel",
        "sensordata",
        "act",
        "history",
        "cvel",
        "energy",
    }
    if unsolved and theirs.nefc and not mj.opt.noslip_iterations and mj.opt.integrator not in (DISCRETE, RK4):
        # the rows are equal: which acceleration is nearer to the optimum?
        a, b = (models.cost(mj, theirs, np.array(one.qacc)) for one in (data, theirs))
        if a <= b + 1e-9 * abs(b) and b > a:
            return "not converged in MuJoCo"
        if data.status["not_converged"] and mj.opt.solver != NEWTON:
            return "not converged"
    worst = ", ".join(
        f"{n} {e:.1e} ({moves.get(n, 0.0):.0e})" for n, e in sorted(wrong.items(), key=lambda x: -x[1])[:6]
    )
    first = next(n for n in errors if n in wrong)
    raise Different(
        f"{first}", f"step {k}: {worst}; {theirs.nefc} rows, {theirs.ncon} contacts, {dict_of(data.status)}"
    )


def moves_nothing(mj, theirs) -> bool:
    """Returns whether the moment of an actuator is zero but for rounding."""
    rows = zip(theirs.moment_rowadr, theirs.moment_rownnz, strict=True) if hasattr(theirs, "moment_rowadr") else ()
    return any(np.abs(theirs.actuator_moment[a : a + n]).max(initial=0.0) < 1e-12 for a, n in rows)


def dict_of(status) -> str:
    return " ".join(f"{name}={number}" for name, number in status.items() if number) or "no status"


def numbered_inertia(theirs) -> bool:
    return bool(theirs.warning[int(mujoco.mjtWarning.mjWARN_INERTIA)].number)


def moved(mj, scene, state, k) -> dict[str, float]:
    """Returns the change of MuJoCo's fields after step k if all inputs are perturbed in their last digits."""
    rng, worst, truth = np.random.default_rng(0), {}, _after(mj, scene, state, k)
    for _ in range(SHAKES):
        other, shaken = copy.copy(mj), dict(state)
        for name in models.SHAKEN:
            field = getattr(other, name)
            field *= 1 + models.ROUNDED * rng.standard_normal(field.shape)
        for name in ("qpos", "qvel"):
            noise = models.ROUNDED * rng.standard_normal((2, *state[name].shape))
            shaken[name] = state[name] * (1 + noise[0]) + noise[1]
        after = _after(other, scene, shaken, k)
        for name in compared(mj, truth):
            change = relative(np.asarray(getattr(after, name), float), np.asarray(getattr(truth, name), float))
            worst[name] = max(worst.get(name, 0.0), change)
    return worst


def _after(mj, scene, state, k):
    for step, (_, data) in enumerate(trajectory(mj, scene, state)):
        if step == k:
            return data
    raise AssertionError
