"""Mutated models against MuJoCo: each loads or raises an error by name, and steps as MuJoCo where MuJoCo works.

Compared are two states of each model, at rest with a kick and after some steps of MuJoCo.  From each, forward
dynamics and one step by Newton to tolerance 0.  A result is equal if it differs from MuJoCo's by no more than EQUAL,
relative to the larger of 1 and its largest magnitude, and tied if by at most TIED times the change of MuJoCo's own
result when state, masses and contacts are perturbed in their last digits.  Otherwise it passes if the cost that
Newton minimizes, by MuJoCo's own rows, is not above that of MuJoCo's acceleration.

Contacts of the general method may be other points (contact_parity.py): then their depth is compared, and the step with
MuJoCo's contacts.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import re
import traceback
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np

import featherlane as fl
from fuzz.corpus import sources, weights
from fuzz.mutation import Pool, mutant
from fuzz.report import Report, numbered
from fuzz.workers import enter, outcomes
from oracles.contact_parity import GRAZING, HFIELD, _by_pair, depth_error, given, pierced, split, touching
from oracles.parity import CCD, relative

NAME = "models"
EQUAL, TIED, DEPTH = 1e-8, 1e3, 1e-5
ROUNDED = 1e-13  # relative size of a perturbation in the last digits
TIMEOUT = 60.0  # s
MOST = 400  # DoFs, and bodies, of a stepped mutant
UNMOVED = 1e13  # kg: 1 / R of a row whose J M^-1 J^T is below 1e-15
ALMOST = 1.0 - 1e-6  # times the largest valid value
LATEST = 1e10  # s: a later time is out of range here
EXTREME = 1e14  # kg m^2, N, N m: not compared above this (MuJoCo's noslip tests for a cost increase of 1e-10)
SINGULAR = 1e-10  # determinant below which MuJoCo does not solve
STEPS = 30  # maximum number of steps to the second state
INPUTS = "time qpos qvel act history plastic ctrl mocap_pos mocap_quat qacc_warmstart".split()
SHAKEN = (
    "body_mass body_inertia body_ipos body_pos geom_pos geom_size dof_armature geom_friction jnt_axis jnt_stiffness"
    " dof_damping actuator_gainprm geom_solref"
).split()
RESULTS = ("qacc_smooth", "qacc")
WRONG = [mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC]
FULL = ("contacts_full", "rows_full")


class Finding(Exception):
    """Reports a violation found in a case."""


@functools.cache
def pool(offline: bool) -> Pool:
    return Pool([ET.fromstring(source.text) for source in sources(offline)])


def build(seed: int, case: int, offline: bool = False) -> tuple[str, str, list[str], np.random.Generator]:
    """Returns the source's name, the mutant's text, the mutations, and the generator for further values."""
    rng = np.random.default_rng([seed, case])
    found = sources(offline)
    source = found[int(rng.choice(len(found), p=weights(found)))]
    text, done = mutant(source.text, pool(offline), rng)
    return source.name, text, done, rng


# ---- loading ---------------------------------------------------------------------------------------------------------
def load(text: str, rng) -> tuple[str, str, mujoco.MjModel | None, fl.Model | None]:
    """Returns a verdict if the model raises an error, else MuJoCo's model and ours."""
    enter("mujoco compile")
    try:
        mj = mujoco.MjModel.from_xml_string(text)
    except (ValueError, mujoco.FatalError) as error:
        mj, refusal = None, str(error)
    if mj is not None and max(mj.nv, mj.nbody) > MOST:
        return "too large", "", None, None
    enter("load")
    try:
        model = fl.load(text if mj is None or rng.random() < 0.1 else mj)
    except fl.UnsupportedFeatureError as error:
        if not all(":" in line for line in error.features):
            _unclear(error)
        return "unsupported", "", None, None
    except fl.ModelError as error:
        if mj is None:
            return "unreadable", "", None, None
        return (
            "refused",
            shape(str(error)),
            None,
            None if re.search(r"['#\[]|option|size", str(error)) else _unclear(error),
        )
    except Exception as error:
        raise Finding(f"load: {type(error).__name__}: {error}") from error
    if mj is None:
        raise Finding(f"loads what MuJoCo refuses: {refusal}")
    return "", "", mj, model


def place(error: Exception) -> str:
    """Returns the innermost lines of our code that raised an error."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "fuzz" in f.filename or "featherlane" in f.filename
    ]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-4:]))


def _unclear(error):
    raise Finding(f"load names no element: {error}")


def shape(message: str) -> str:
    """Returns a message without its names and numbers."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|#\d+", "_", message.splitlines()[0])
    return re.sub(r"[-+]?\d[\d.e+-]*|nan|inf", "0", text)[:150]


# ---- steps -----------------------------------------------------------------------------------------------------------
def exact(mj) -> None:
    """Sets Newton with the smallest tolerance."""
    mj.opt.solver, mj.opt.jacobian = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtJacobian.mjJAC_DENSE
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0.0, 100, 100
    mj.opt.noslip_tolerance, mj.opt.ls_tolerance = 0.0, 0.01
    mj.opt.ccd_tolerance, mj.opt.ccd_iterations = CCD


def states(mj, rng):
    """Yields a kicked state, and one after some steps: their names and values."""
    data = mujoco.MjData(mj)
    data.qvel[:] = rng.standard_normal(mj.nv)
    with np.errstate(all="ignore"):
        mujoco.mj_integratePos(mj, data.qpos, 0.05 * rng.standard_normal(mj.nv), 1.0)
    yield "kicked", {name: np.array(getattr(data, name))[()] for name in INPUTS}
    data = mujoco.MjData(mj)
    enter("mujoco drive")
    for _ in range(int(rng.integers(1, STEPS)) if mj.nv < 60 else 3):
        data.ctrl[:] = rng.uniform(-1, 1, mj.nu)
        mujoco.mj_step(mj, data)
    yield "driven", {name: np.array(getattr(data, name))[()] for name in INPUTS}


def put(data, state) -> None:
    for name, value in state.items():
        setattr(data, name, value)


def is_well(data: mujoco.MjData) -> bool:
    """Returns whether MuJoCo found no non-finite value and no singular inertia."""
    if data.warning[int(mujoco.mjtWarning.mjWARN_INERTIA)].number:
        return False
    finite = all(np.isfinite(getattr(data, name)).all() for name in ("qpos", "qvel", "act", *RESULTS))
    return finite and not any(data.warning[int(number)].number for number in WRONG)


def is_good(data: mujoco.MjData) -> bool:
    """Returns whether a step uses the state: values beyond mjMAXVAL are out of range, activations for ours only."""
    return all(np.abs(getattr(data, name)).max(initial=0.0) <= mujoco.mjMAXVAL for name in ("qpos", "qvel", "act"))


def finds_other_points(mj, theirs) -> bool:
    """Returns whether later stages of a Runge-Kutta step have contacts of the general method: other points."""
    contacts = touching(theirs.contact)
    return mj.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4 and len(split(mj, contacts, False)[1]["dist"]) > 0


def is_instant(mj) -> bool:
    """Returns whether a DC motor's current is faster than mjMINVAL: MuJoCo's diverges (docs/migration.md)."""
    time_constant = mj.actuator_dynprm[mj.actuator_dyntype == mujoco.mjtDyn.mjDYN_DCMOTOR, 0]
    return bool(((time_constant > 0.0) & (time_constant < mujoco.mjMINVAL)).any())


def slides_behind_balls(mj) -> bool:
    """Returns whether a body has a slide after a ball: MuJoCo's rate of such a Jacobian differs (docs/migration.md)."""
    balls, slides = (mj.jnt_type == int(kind) for kind in (mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_SLIDE))
    return bool((balls[:-1] & slides[1:] & (mj.jnt_bodyid[:-1] == mj.jnt_bodyid[1:])).any())


def slips_along_a_line(mj, theirs) -> bool:
    """Returns whether a cone's friction acts along fewer directions than its dimension: MuJoCo's noslip skips it."""
    if not mj.opt.noslip_iterations or mj.opt.cone != mujoco.mjtCone.mjCONE_ELLIPTIC or not theirs.nefc:
        return False
    J, M = np.reshape(theirs.efc_J, (-1, mj.nv))[: theirs.nefc], np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, theirs, M)
    for contact in theirs.contact:
        rows = J[contact.efc_address + 1 : contact.efc_address + contact.dim]
        if contact.efc_address >= 0 and len(rows) > 1 and np.linalg.det(rows @ np.linalg.solve(M, rows.T)) < SINGULAR:
            return True
    return False


def truth(mj, state):
    """Returns MuJoCo's forward pass, and its next state."""
    enter("mujoco step")
    forward, after = mujoco.MjData(mj), mujoco.MjData(mj)
    for data in (forward, after):
        put(data, state)
    mujoco.mj_forward(mj, forward)
    mujoco.mj_step(mj, after)
    return forward, after


def moved(mj, state, rng):
    """Returns the change of MuJoCo's results when all inputs are perturbed in their last digits."""
    worst = dict.fromkeys((*RESULTS, "qpos", "qvel"), 0.0)
    forward, after = truth(mj, state)
    for _ in range(4):
        other = copy.copy(mj)
        fields = (
            "body_mass body_inertia body_ipos body_pos geom_pos geom_size dof_armature geom_friction jnt_axis".split()
        )
        for name in (*fields, "jnt_stiffness", "dof_damping", "actuator_gainprm", "geom_solref"):
            field = getattr(other, name)
            field *= 1 + ROUNDED * rng.standard_normal(field.shape)
        shaken = dict(state)
        for name in ("qpos", "qvel"):
            value = state[name]
            shaken[name] = value * (1 + ROUNDED * rng.standard_normal(value.shape)) + ROUNDED * rng.standard_normal(
                value.shape
            )
        forward2, after2 = truth(other, shaken)
        for name in RESULTS:
            worst[name] = max(worst[name], relative(getattr(forward2, name), getattr(forward, name)))
        for name in ("qpos", "qvel"):
            worst[name] = max(worst[name], relative(getattr(after2, name), getattr(after, name)))
    return worst


def cost(mj, forward, qacc) -> float:
    """Returns the cost that Newton minimizes, by MuJoCo's rows, at an acceleration."""
    offset = qacc - forward.qacc_smooth
    product = np.zeros(mj.nv)
    mujoco.mj_mulM(mj, forward, product, offset)
    constraint = np.zeros(1)
    if forward.nefc:
        jar = np.zeros(forward.nefc)
        mujoco.mj_mulJacVec(mj, forward, jar, np.ascontiguousarray(qacc))
        mujoco.mj_constraintUpdate(mj, forward, jar - forward.efc_aref, constraint, 0)
    return 0.5 * float(offset @ product) + float(constraint[0])


def ours(model, state, contacts=None):
    """Returns our forward pass, and the state after a step."""
    enter("step")
    forward, after = (fl.Data(model, given_contacts=len(contacts["dist"]) if contacts else 0) for _ in range(2))
    for data in (forward, after):
        put(data, state)
        if contacts:
            data.give_contacts(**contacts, replace=True)
    fl.forward(model, forward)
    fl.step(model, after)
    return forward, after


def check_finite(data: fl.Data, mj_finite: bool, what: str) -> None:
    """Asserts finite values, unless a status is set."""
    if data.status["non_finite"]:
        return
    for name in ("qpos", "qvel", "act", "qacc", "qfrc_constraint", "xpos", "solver_residual", "sensordata"):
        if name == "sensordata" and not mj_finite:
            continue
        try:
            value = np.asarray(getattr(data, name))
        except fl.UnsupportedFeatureError:
            continue
        if not np.isfinite(value).all():
            raise Finding(f"{what}: {name} has {value[~np.isfinite(value)][:1]} without a status")


def same_contacts(mj, mine, theirs) -> bool:
    """Returns whether contacts agree; if not, their depths must."""
    a, b = touching(mine.contact), touching(theirs.contact)
    errors = [relative(a[name], b[name]) for name in ("geom", "dist", "pos", "frame")]
    grazing = any(
        (np.abs(c.dist - c.includemargin) <= GRAZING * np.maximum(1, np.abs(c.dist))).any()
        for c in (mine.contact, theirs.contact)
    )
    if not max(errors) <= 1e-10:
        a, b = (without_heights(mj, contacts) for contacts in (a, b))
        exact = pierced(mj, a, b)
        (closed, general), (closed2, general2) = (split(mj, contacts, False, exact) for contacts in (a, b))
        size = max([1.0, *np.abs(a["pos"]).ravel(), *np.abs(b["dist"]).ravel()])
        for kind, error in (
            ("of closed forms", nearest_error(closed, closed2)),
            ("of convex shapes", depth_error(mj, theirs, general, general2)),
        ):
            if not error <= DEPTH * size:
                raise Deeper(f"contacts {kind}: depth differs by 1e{np.log10(error / size):.0f}")
    return not grazing and max(errors) <= 1e-12


def without_heights(mj, contacts):
    """Returns contacts except those with height fields, whose cells MuJoCo tests one by one (docs/accuracy.md)."""
    keep = np.array([HFIELD not in mj.geom_type[pair] for pair in contacts["geom"]], bool)
    return {name: rows[keep] for name, rows in contacts.items()}


def nearest_error(mine, theirs) -> float:
    """Returns the difference [m] of the deepest contacts of pairs."""
    a, b = _by_pair(mine), _by_pair(theirs)
    return max((abs(a.get(pair, (0.0,))[0] - b.get(pair, (0.0,))[0]) for pair in a.keys() | b.keys()), default=0.0)


def rounding_of_factor(mj, theirs) -> float:
    """Returns the relative difference of solutions with M due to rounding: eps cond(M)."""
    M = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, theirs, M)
    values = np.linalg.eigvalsh(M)
    return float(np.finfo(float).eps * values[-1] / values[0]) if values[0] > 0.0 else 1.0


class Deeper(Finding):
    """Raises for contacts of another depth than MuJoCo's."""


def compare(mj, model, name: str, state, rng) -> tuple[str, str]:
    """Compares one state; returns a verdict."""
    theirs, after = truth(mj, state)
    well = all(is_well(data) and is_good(data) for data in (theirs, after))
    sizes = [np.abs(getattr(theirs, name)).max(initial=0.0) for name in ("qfrc_bias", "M", "crb", "efc_force")]
    largest = max(np.abs(getattr(theirs, name)).max(initial=0.0) for name in ("mocap_pos", "qacc", "efc_aref"))
    if max(sizes) > EXTREME or after.time > LATEST or largest >= ALMOST * mujoco.mjMAXVAL:
        return "extreme", ""  # rounding of such values is above all others, or decides whether they are in range
    mine, next_ = ours(model, state)
    check_finite(mine, np.isfinite(theirs.sensordata).all(), f"{name}: forward")
    if not np.isfinite(next_.qpos).all() or not np.isfinite(next_.qvel).all():
        fl.step(model, next_)  # a step's result is checked at the start of the next one
    check_finite(next_, np.isfinite(theirs.sensordata).all(), f"{name}: step")
    if not well:
        return "unstable in MuJoCo", ""
    if any(mine.status[full] for full in FULL) or any(theirs.warning[k].number for k in (1, 2)):
        return "full", ""
    note = ""
    try:
        same = same_contacts(mj, mine, theirs)
    except Deeper as error:
        same, note = False, str(error)
    if not same:
        contacts = given(theirs) | {"adhesion": np.array(theirs.contact.adhesion)}
        try:
            mine, next_ = ours(model, state, contacts)
        except fl.ModelError as error:
            if theirs.ncon:
                return "contacts not taken", shape(str(error))
    if next_.status["non_finite"] or mine.status["non_finite"]:
        raise Finding(f"{name}: bad number where MuJoCo has none (max |qacc| {np.abs(theirs.qacc).max(initial=0):.1e})")
    compared = RESULTS[1:] if mj.opt.integrator == mujoco.mjtIntegrator.mjINT_DISCRETE else RESULTS
    errors = {field: relative(getattr(mine, field), getattr(theirs, field)) for field in compared}
    errors |= {field: relative(getattr(next_, field), getattr(after, field)) for field in ("qpos", "qvel")}
    kind = "contacts" if theirs.ncon else "rows" if theirs.nefc else "free"
    if max(errors.values()) <= EQUAL:
        return f"equal, {kind}", note
    moves, rounding = moved(mj, state, rng), rounding_of_factor(mj, theirs)
    allowed = {field: EQUAL + TIED * moves[field] + rounding for field in errors}
    if all(error <= allowed[field] for field, error in errors.items()):
        return f"tied, {kind}", note
    if theirs.nefc and theirs.efc_D.max() > UNMOVED:
        return "a row that moves nothing", ""  # its force is a quotient of rounding errors
    if finds_other_points(mj, theirs) and all(errors[field] <= allowed[field] for field in compared):
        return "other points in stages", ""
    if is_instant(mj):
        return "a current that follows at once", ""
    if slips_along_a_line(mj, theirs):
        return "no slip along a line", ""  # docs/migration.md
    if mj.neq and slides_behind_balls(mj):
        return "a slide behind a ball", ""
    if mj.opt.noslip_iterations and compared is not RESULTS and relative(mine.qacc_smooth, theirs.qacc_smooth) > EQUAL:
        return "no slip in a coupled metric", ""  # docs/migration.md
    if errors.get("qacc_smooth", 0.0) <= allowed.get("qacc_smooth", 0.0):
        if mine.status["not_converged"] or next_.status["not_converged"]:
            return f"not converged, {kind}", ""
        if not mj.opt.noslip_iterations and theirs.nefc and mj.opt.integrator != mujoco.mjtIntegrator.mjINT_DISCRETE:
            a, b = (cost(mj, theirs, np.array(data.qacc)) for data in (mine, theirs))
            if a <= b + 1e-9 * abs(b):
                return f"as good, {kind}", note
    worst = ", ".join(f"{field} {error:.1e} (moves {moves[field]:.1e})" for field, error in errors.items())
    raise Finding(f"{name}, {kind}: differs: {worst}; {mj.ntendon} tendons, {mj.nu} controls, {theirs.nefc} rows{note}")


def other_ways(mj, text: str, rng) -> None:
    """Takes a few steps of the model, one world by the LCP, worlds in float32: no crash, no unreported NaN."""
    enter("other ways")
    model = fl.load(mj)
    if rng.random() < 0.5:
        try:
            model.opt.contact_model = "lcp"
        except fl.UnsupportedFeatureError:
            return
        if rng.random() < 0.5:
            model.opt.lcp_solver = ("pgs", "apgd")[int(rng.integers(2))]
    data = fl.Data(model)
    fl.step(model, data, 5)
    fl.forward(model, data)
    check_finite(data, False, f"5 steps, {model.opt.contact_model}")
    batch = fl.Batch(model, 3, nthread=1, dtype=("float32", "float64")[int(rng.integers(2))])
    batch.ctrl[:] = rng.uniform(-1, 1, batch.ctrl.shape)
    batch.step(3)
    batch.forward()
    bad = batch.status["non_finite"] > 0
    for name in ("qpos", "qvel", "act"):
        if not np.isfinite(getattr(batch, name)[~bad]).all():
            raise Finding(f"batch {batch.dtype} {model.opt.contact_model}: {name} is not finite, without a status")


# ---- a case ----------------------------------------------------------------------------------------------------------
def check(seed: int, case: int, offline: bool = False) -> tuple[str, str]:
    """Runs a case; returns a verdict and a text."""
    warnings.simplefilter("ignore")
    source, text, done, rng = build(seed, case, offline)
    try:
        return _checked(text, rng)
    except Finding as finding:
        return "finding", f"{finding} [{source}: {'; '.join(done)}]"
    except (MemoryError, fl.ModelError) as error:
        return "refused later", f"{type(error).__name__}: {shape(str(error) or 'no message')}"
    except mujoco.FatalError:
        return "unstable in MuJoCo", ""
    except Exception as error:
        return "finding", f"{type(error).__name__}: {error} at {place(error)} [{source}: {'; '.join(done)}]"


def _checked(text: str, rng) -> tuple[str, str]:
    verdict, note, mj, model = load(text, rng)
    if verdict or not mj.nv:
        if model is not None:
            fl.step(model, fl.Data(model))
        return verdict or "no dofs", note
    other_ways(mj, text, rng)
    mj = copy.copy(mj)
    exact(mj)
    model, found = fl.load(mj), []
    for name, state in states(mj, rng):
        found.append(compare(mj, model, name, state, rng))
    return found[-1][0], "; ".join(sorted({text for _, text in found if text}))


def run(limit: str, seed: int = 0, first: int = 0, offline: bool = False, count: int | None = None) -> Report:
    """Runs cases until the budget is spent, in separate processes."""
    report = Report(NAME, seed)
    pool(offline)
    warm()
    keys = {} if count is None else {"count": count}
    with contextlib.suppress(KeyboardInterrupt):
        for case, verdict, text in outcomes(
            lambda case: check(seed, case, offline), numbered(limit, first), TIMEOUT, **keys
        ):
            report.meet(case, verdict, text)
            tell(report)
    return report


def warm() -> None:
    """Loads the kernels before processes are forked, so that each has them."""
    for lcp in (False, True):
        model = fl.bundled("humanoid")
        if lcp:
            model.opt.contact_model = "lcp"
        data = fl.Data(model)
        fl.step(model, data)
        for dtype in ("float32", "float64"):
            batch = fl.Batch(model, 3, nthread=1, dtype=dtype)
            batch.step()
    fl.forward(model, data)


def tell(report: Report) -> None:
    """Prints progress every thousand cases."""
    total = sum(report.counts.values())
    if total % 1000 == 0:
        print(f"{NAME}: {total} cases, {len(report.findings)} findings", flush=True)


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog=f"python tests/fuzz {NAME}", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="one case, in this process")
    parser.add_argument("--budget", default="1000", help="cases, or seconds as in 60s")
    parser.add_argument("--first", type=int, default=0, help="the first case's number")
    parser.add_argument("--show", action="store_true", help="print the mutant")
    given = parser.parse_args(arguments)
    if given.case is None:
        report = run(given.budget, given.seed, given.first)
        print(report)
        return len(report.findings) > 0
    if given.show:
        print(build(given.seed, given.case)[1])
    print(*check(given.seed, given.case))
    return 0
