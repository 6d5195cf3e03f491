"""Derivatives of random trees against differences: A, B, C, D, P, accelerations, inverse dynamics, rollout gradients.

The reference is Richardson's extrapolation of central differences, from two lengths of steps.  A column is compared if
its two references agree; otherwise a contact or a row switches within a step, and the column counts as skipped.  Tried
are three lengths.  A run whose compared share of columns is below `LEAST` fails.
"""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import featherlane as fl
from featherlane.tools.sensitivity.systems.served import serves
from fuzz.columns import LENGTHS, Columns, Finding, Nearby, References, gaps
from fuzz.models import place
from fuzz.report import Report, numbered
from fuzz.trees import Tree
from fuzz.workers import enter, outcomes

NAME = "derivatives"
SWEPT = 5e-3  # that of differences of steps by a sweeping solver, which ends at its tolerance
LAST_DIGITS = (1e-15, 1e-15, 1e-14, 1e-14)
SWITCHES = 1e-4  # relative difference of the references of a step at a switch
STILL = 1e-12  # m: a moment arm that is rounding
ROUNDING = 2e-7  # of accelerations and sensors: rounding errors of their differences over 2e-7
DISPLACED, UNIT_ROUNDOFF = 2e-7, 2.0**-53  # displacement of differenced accelerations
STEPPED = 2e-7  # of velocities: those of differences of steps over 1e-6
PARAMETER = 1e-8  # of velocities: those of differences by parameters of the size 1
LEAST = 0.6  # share of columns that a run compares
TIMEOUT = 120.0  # s
LIGHT = 1e6  # 1/kg, 1/(kg m^2): lighter DoFs make the results ill-conditioned
FAST = 50.0  # m/s, rad/s: faster states are not compared
COPIED = "time qpos qvel act ctrl qfrc_applied xfrc_applied qacc_warmstart history".split()
FIELDS = (
    "body_mass body_inertia body_pos body_ipos geom_friction geom_pos geom_solref geom_solimp dof_damping dof_armature"
    " dof_frictionloss jnt_stiffness jnt_pos opt_gravity opt_wind opt_viscosity opt_impratio pair_friction"
    " tendon_stiffness tendon_damping tendon_frictionloss actuator_gainprm actuator_biasprm actuator_gear site_pos"
    " eq_data"
).split()


# ---- displaced worlds ------------------------------------------------------------------------------------------------
def copies(model: fl.Model, data: fl.Data, n: int) -> fl.Batch:
    """Returns n worlds in the state of `data`."""
    batch = fl.Batch(model, n, nthread=1)
    for name in COPIED:
        value = np.asarray(getattr(data, name))
        if value.size:
            getattr(batch, name)[...] = value
    return batch


def displaced(model: fl.Model, data: fl.Data, steps: np.ndarray, n: int, ncontrol: int = 0) -> fl.Batch:
    """Returns worlds with one coordinate each moved by +-steps: (steps, coordinates, 2) in this order.

    Args:
        steps: displacements.
        n: number of coordinates: positions by dof, velocities, activations, controls, forces.
        ncontrol: number of further pairs of worlds that are not moved.
    """
    nv, total = model.nv, n + ncontrol
    batch = copies(model, data, 2 * len(steps) * total)
    ends, fields = np.cumsum([0, nv, nv, model.na, model.nu, nv]), ("qpos", "qvel", "act", "ctrl", "qfrc_applied")
    for name, first, last in zip(fields, ends, ends[1:], strict=False):
        if first >= n or first == last:
            continue
        moves = np.zeros((len(steps), total, 2, last - first))
        k = np.arange(last - first)
        moves[:, first + k, 0, k], moves[:, first + k, 1, k] = steps[:, None], -steps[:, None]
        moves = moves.reshape(-1, last - first)
        if name == "qpos":
            batch.qpos[...] = fl.integrate_pos(model, np.array(batch.qpos), moves, 1.0)
        else:
            getattr(batch, name)[...] += moves
    return batch


def after(model: fl.Model, batch: fl.Batch, start: np.ndarray) -> np.ndarray:
    """Returns the states (n, nx) of a batch, positions by dof from `start`."""
    turned = fl.differentiate_pos(model, 1.0, np.broadcast_to(start, batch.qpos.shape), batch.qpos)
    return np.concatenate([turned, batch.qvel, batch.act], 1)


def quotients(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Returns (steps, m, n) from the values (worlds, m) of displaced worlds."""
    up, down = np.moveaxis(values.reshape(len(steps), -1, 2, values.shape[-1]), 2, 0)
    return ((up - down) / (2.0 * steps[:, None, None])).swapaxes(1, 2)


def nearby(model: fl.Model, data: fl.Data, derivatives: Callable[[fl.Data], np.ndarray], n: int) -> Nearby:
    """Returns the derivatives near a state, whose first n columns are those of coordinates as in `displaced`."""

    def shaken() -> np.ndarray:
        rng, found = np.random.default_rng(0), []
        for size in LAST_DIGITS:
            other, noise = data.copy(), size * rng.standard_normal((2, model.nv))
            other.qpos[:] = fl.integrate_pos(model, other.qpos, noise[0], 1.0)
            other.qvel[:] += noise[1] * np.abs(other.qvel)
            found.append(derivatives(other))
        return np.array(found)

    def sides(j: int) -> np.ndarray | None:
        if j >= n:
            return None
        batch = displaced(model, data, np.array([LENGTHS[0]]), n)
        return np.array([derivatives(batch.get_data(2 * j + side)) for side in (0, 1)])

    return Nearby(shaken, sides)


# ---- checks ----------------------------------------------------------------------------------------------------------
def blocks(model: fl.Model) -> list[slice]:
    """Returns the rows of positions, velocities and activations."""
    nv = model.nv
    return [slice(0, nv), slice(nv, 2 * nv), slice(2 * nv, 2 * nv + model.na)]


def noise_of_acceleration(model, probe) -> float:
    """Returns the size of rounding errors of a differenced acceleration.

    An acceleration has the rounding error u |M^-1| (|M| |a| + |forces|), Skeel's bound.  Differences over DISPLACED
    divide it by this length.  Formulas have the error ROUNDING of the accelerations.
    """
    noise = ROUNDING * np.abs(probe.qacc).max()
    if model.opt.contact_model == "lcp" or not serves(model):
        probe = probe.copy()
        fl.forward(model, probe)
        M, forces = fl.query.full_m(model, probe), np.zeros(model.nv)
        for name in "qfrc_bias qfrc_passive qfrc_actuator qfrc_applied qfrc_constraint".split():
            forces += np.abs(getattr(probe, name))
        terms = np.abs(M) @ np.abs(probe.qacc) + forces
        noise += UNIT_ROUNDOFF * (np.abs(np.linalg.inv(M)) @ terms).max() / DISPLACED
    return noise


def noise_of_step(model, probe, columns: Columns) -> float:
    """Returns the size of rounding errors of a differenced velocity; steps are differenced if `switching` is NaN."""
    stepped = STEPPED * max(1.0, np.abs(probe.qvel).max()) if np.isnan(columns.switching) else 0.0
    return stepped + model.opt.timestep * noise_of_acceleration(model, probe)


def check_steps(model, data, probe, columns: Columns) -> None:
    """Compares A, B, C and D."""
    enter("linearize")
    sensors = model.nsensordata > 0
    found = fl.linearize(model, data, sensors=sensors)
    columns.switching = float(found.switching)
    n = 2 * model.nv + model.na + model.nu
    others = nearby(model, data, lambda other: matrix(fl.linearize(model, other, sensors=sensors)), n)

    def matrix(found):
        parts = [[found.A, found.B], [found.C, found.D]] if sensors else [[found.A, found.B]]
        return np.concatenate([np.concatenate(part, 1) for part in parts])

    def differences(steps):
        how = {"sensors": sensors, "method": "finite_difference"}
        return [matrix(fl.linearize(model, data, eps=eps, **how)) for eps in steps]

    values, nx = matrix(found), len(found.A)
    references, noise = References(differences), noise_of_step(model, probe, columns)
    columns.compare("A, B", values, references, blocks(model), noise, others)
    if sensors:
        rows = [slice(nx + k, nx + k + 1) for k in range(model.nsensordata)]
        stiff = np.zeros(1)
        if model.opt.contact_model == "convex":  # forces of rows are differences of such terms
            stiff = np.asarray(probe.efc_D) * np.abs(probe.efc_aref)
        largest = max(np.abs(x).max(initial=0.0) for x in (probe.sensordata, probe.qacc, stiff))
        columns.compare("C, D", values, references, rows, ROUNDING * largest, others)


def check_bits(model, data, rng) -> None:
    """Checks that A and B of a world alone, in a batch, and in a batch with a separate field have equal bits."""
    enter("bits")
    alone = fl.linearize(model, data)
    batch = copies(model, data, 3)
    batch.qvel[1:] += rng.standard_normal((2, model.nv))
    batch.qpos[2] = model.qpos0
    for what in ("in a batch", "with a separate field"):
        found = fl.linearize(model, batch)
        for name in ("A", "B", "switching"):
            one, other = np.asarray(getattr(alone, name)), np.asarray(getattr(found, name))[0]
            if one.tobytes() != other.tobytes():
                raise Finding(f"{name} {what} differs by {np.abs(one - other).max():.1e}")
        batch.expand("geom_friction")


def check_accelerations(model, data, probe, columns: Columns) -> None:
    """Compares the derivatives of forward dynamics; some solvers refuse them."""
    enter("acceleration_derivatives")

    def matrix(data):
        found = fl.acceleration_derivatives(model, data)
        return np.concatenate([found.DaDq, found.DaDv, found.DaDact, found.DaDu, found.DaDtau], 1)

    try:
        values = matrix(data)
    except fl.UnsupportedFeatureError:
        return

    def differences(steps):
        batch = displaced(model, data, steps, values.shape[1])
        qacc = batch.bind("qacc")
        batch.forward()
        return quotients(np.array(qacc), steps)

    noise = noise_of_acceleration(model, probe)
    rows, others = [slice(0, model.nv)], nearby(model, data, matrix, values.shape[1])
    columns.compare("accelerations", values, References(differences), rows, noise, others)


def check_inverse(model, data, columns: Columns) -> None:
    """Compares the derivatives of inverse dynamics, where it exists."""
    enter("inverse_derivatives")
    data = data.copy()
    try:
        fl.forward(model, data)
        found = fl.inverse_derivatives(model, data)
    except fl.FeatherlaneError:
        return

    def differences(steps):
        parts = [fl.inverse_derivatives(model, data, method="finite_difference", eps=eps) for eps in steps]
        return [np.concatenate(part).T for part in parts]

    values = np.concatenate(found).T
    if not np.array_equal(values, differences([1e-6])[0]):  # without formulas the result is these differences
        columns.compare("inverse", values, References(differences), [slice(0, model.nv)])


def parameters_of(model, rng) -> list[tuple[str, str, tuple]]:
    """Returns up to three sampled entries, (name, field, index), whose values are not 0."""
    chosen = []
    for field in rng.choice(FIELDS, 6, replace=False):
        value = np.asarray(getattr(model, field))
        large = np.argwhere(np.isfinite(value) & (np.abs(value) > 1e-3))
        if len(large) and value.ndim:
            index = tuple(int(i) for i in large[int(rng.integers(len(large)))])
            chosen.append((f"{field}[{', '.join(map(str, index))}]", str(field), index))
    return chosen[:3]


def check_parameters(model, data, probe, columns: Columns, rng) -> None:
    """Compares P."""
    chosen = parameters_of(model, rng)
    if not chosen:
        return
    enter("parameters")
    names = [name for name, *_ in chosen]

    def matrix(data):
        found = fl.linearize(model, data, parameters=names).P
        return np.stack([found[name] for name in names], 1)

    sizes = np.array([max(abs(float(np.asarray(getattr(model, field))[index])), 1e-2) for _, field, index in chosen])

    def differences(steps):
        batch = copies(model, data, 2 * len(steps) * len(chosen))
        for k, (_, field, index) in enumerate(chosen):
            values = batch.expand(field).reshape(len(steps), len(chosen), 2, *np.shape(getattr(model, field)))
            values[(slice(None), k, 0, *index)] += sizes[k] * steps
            values[(slice(None), k, 1, *index)] -= sizes[k] * steps
        batch.set_const()
        batch.step()
        return quotients(after(model, batch, np.repeat(batch.qpos[1::2], 2, 0)), steps) / sizes

    references, rows = References(differences, tuple(10.0 * eps for eps in LENGTHS)), blocks(model)
    noise = noise_of_step(model, probe, columns) + PARAMETER
    what, others = f"P of {', '.join(names)}", nearby(model, data, matrix, 0)
    columns.compare(what, matrix(data), references, rows, noise / sizes, others)


def check_rollout(model, data, columns: Columns, rng) -> None:
    """Compares the gradient of a rollout."""
    enter("rollout_gradient")
    nstep, nx, nu = int(rng.integers(2, 5)), 2 * model.nv + model.na, model.nu
    control = data.ctrl + 0.01 * rng.standard_normal((nstep, nu))
    bounds = np.where(model.actuator_ctrllimited[:, None] != 0, model.actuator_ctrlrange, [-1e3, 1e3])
    control = np.clip(control, bounds[:, 0] + 0.01, bounds[:, 1] - 0.01)
    end = data.copy()
    for u in control:
        end.ctrl[:] = u
        fl.step(model, end)
    if end.status["non_finite"] or np.abs(end.qvel).max() > FAST:
        return
    weights = rng.standard_normal(nx) / np.r_[np.full(model.nv, model.opt.timestep), np.ones(nx - model.nv)]
    found = fl.rollout_gradient(model, copies(model, data, 1), control, loss_gradient=weights)
    columns.switching = float(found.switching[0])

    def row(data):
        found = fl.rollout_gradient(model, copies(model, data, 1), control, loss_gradient=weights)
        return np.concatenate([found.state[0], found.control[0].ravel()])[None] * free

    def differences(steps):
        n = nx + nstep * nu
        batch = displaced(model, data, steps, nx, nstep * nu)
        controls = np.tile(control, (len(steps), n, 2, 1, 1))
        for k in range(nstep * nu):
            controls[:, nx + k, 0, k // nu, k % nu] += steps
            controls[:, nx + k, 1, k // nu, k % nu] -= steps
        controls = controls.reshape(2 * len(steps) * n, nstep, nu)
        for k in range(nstep):
            batch.ctrl[...] = controls[:, k]
            batch.step()
        return quotients(after(model, batch, end.qpos) @ weights[:, None], steps) * free

    free = np.r_[
        np.ones(nx, bool), np.tile(np.repeat(model.actuator_delay == 0.0, model.actuator_ctrlnum), nstep)
    ]  # delays count as constants
    noise = nstep * noise_of_step(model, end, columns) * np.abs(weights[model.nv :]).sum()
    others = nearby(model, data, row, nx)
    try:
        columns.compare("rollout", row(data), References(differences), [slice(0, 1)], noise, others)
    except Finding:
        if not passes_switch(model, data, control):
            raise
        columns.at_switch += 1


def passes_switch(model, data, control) -> bool:
    """Returns whether the references of a step's derivatives differ: something switches within their lengths.

    `rollout_gradient` may difference contacts over another length, and the references of the rollout have smaller
    displacements of the later positions.
    """
    data, found = data.copy(), []
    for u in control:
        data.ctrl[:] = u

        def differences(steps):
            return [fl.linearize(model, data, eps=eps, method="finite_difference").A for eps in steps]

        found.append(gaps(*next(iter(References(differences))))[0].max())
        fl.step(model, data)
    return max(found) > SWITCHES


# ---- cases -----------------------------------------------------------------------------------------------------------
def build(seed: int, case: int) -> tuple[Tree, np.random.Generator]:
    """Returns the tree of a case, and the generator for further values."""
    rng = np.random.default_rng([seed, case])
    return Tree(rng), rng


def state(model, rng) -> fl.Data:
    """Returns a state of a motion."""
    data = fl.Data(model)
    data.qpos[:] = fl.integrate_pos(model, data.qpos, 0.1 * rng.standard_normal(model.nv), 1.0)
    data.qvel[:] = rng.choice([0.1, 1.0]) * rng.standard_normal(model.nv)
    if rng.random() < 0.2:
        data.qfrc_applied[:], data.xfrc_applied[1:] = rng.normal(size=model.nv), rng.normal(size=(model.nbody - 1, 6))
    bounds = np.where(model.actuator_ctrllimited[:, None] != 0, model.actuator_ctrlrange, [-1.0, 1.0])
    data.ctrl[:] = rng.uniform(*bounds.T)
    data.act[:] = rng.uniform(0.1, 0.9, model.na)  # muscles switch at 0 and at their control
    for _ in range(int(rng.choice([0, 3, 12, 20]))):
        fl.step(model, data)
    return data


def check(seed: int, case: int) -> tuple[str, str]:
    """Runs a case: returns its verdict, and the numbers of columns or the violation."""
    tree, rng = build(seed, case)
    columns = Columns()
    try:
        with np.errstate(all="ignore"):
            return _checked(tree, rng, columns), f"{columns.compared} {columns.skipped}"
    except Finding as error:
        how = " ".join(
            f"{key}={value}" for key, value in tree.options.items() if key not in ("tolerance", "iterations")
        )
        return "finding", f"{error} [{how}]"
    except Exception as error:
        return "finding", f"{type(error).__name__}: {error} at {place(error)}"


def moves_nothing(model, data) -> bool:
    """Returns whether a tendon within a rigid body has its rest length.

    Under `discrete` a deflected tendon couples the dofs of a free body, as in MuJoCo, also without a moment arm.
    Rounding of the constant length then decides whether it is deflected.
    """
    J = np.abs(np.asarray(data.ten_J))
    length, rest = np.asarray(data.ten_length)[:, None], np.asarray(model.tendon_lengthspring)
    at_rest = (np.abs(length - rest) < 1e-12 * length).any(axis=1)
    rows = zip(model.ten_J_rowadr, model.ten_J_rownnz, at_rest, strict=True)
    return any(here and J[first : first + number].max(initial=0.0) < STILL for first, number, here in rows)


def _checked(tree: Tree, rng, columns: Columns) -> str:
    enter("load")
    try:
        model = tree.load()
        data = state(model, rng)
        probe = data.copy()
        fl.step(model, probe)
    except fl.UnsupportedFeatureError:
        return "unsupported"
    except fl.ModelError:
        return "refused"
    if probe.status["non_finite"] or np.abs(probe.qvel).max() > FAST or data.status["non_finite"]:
        return "unstable"
    if model.nv and model.dof_invweight0.max() > LIGHT:
        return "light"
    if probe.status["not_converged"] > data.status["not_converged"]:
        return "unconverged"
    if tree.options.get("integrator") == "discrete" and moves_nothing(model, probe):
        return "a tendon that moves nothing"
    if "lcp_solver" in tree.options:
        columns.equal = SWEPT
    try:
        check_steps(model, data, probe, columns)
    except fl.UnsupportedFeatureError:
        return "refused"
    check_bits(model, data, rng)
    check_accelerations(model, data, probe, columns)
    check_inverse(model, data, columns)
    check_parameters(model, data, probe, columns, rng)
    check_rollout(model, data, columns, rng)
    if columns.at_switch:
        return "at a switch"
    kind = "free"
    if probe.ncon:
        bodies = model.geom_bodyid[np.asarray(probe.contact.geom)]
        tree_of = model.body_treeid[model.body_weldid[bodies]] if hasattr(model, "body_treeid") else bodies * 0
        own = (tree_of[:, 0] == tree_of[:, 1]) & (tree_of[:, 0] >= 0)
        kind = "contacts within a tree" if own.any() else "contacts"
    return f"equal, {kind}" if columns.compared >= columns.skipped else "skipped"


@dataclass
class Coverage(Report):
    """Counts columns in addition to cases.

    Attributes:
        compared, skipped: numbers of columns.
    """

    compared: int = 0
    skipped: int = 0

    def share(self) -> float:
        """Returns the compared share of columns."""
        return self.compared / max(self.compared + self.skipped, 1)

    def __str__(self) -> str:
        return f"{super().__str__()}\n  {self.compared + self.skipped} columns, {self.share():.1%} of them compared"


def run(limit: str, seed: int = 0, first: int = 0, count: int | None = None) -> Coverage:
    """Runs cases until the budget is spent, in separate processes."""
    report = Coverage(NAME, seed)
    warm()
    keys = {} if count is None else {"count": count}
    with contextlib.suppress(KeyboardInterrupt):
        for case, verdict, text in outcomes(lambda case: check(seed, case), numbered(limit, first), TIMEOUT, **keys):
            if re.fullmatch(r"\d+ \d+", text):
                compared, skipped = map(int, text.split())
                report.compared, report.skipped, text = report.compared + compared, report.skipped + skipped, ""
            report.meet(case, verdict, text)
            if sum(report.counts.values()) % 1000 == 0:
                total = f"{sum(report.counts.values())} cases, {len(report.findings)} findings"
                print(f"{NAME}: {total}, {report.share():.1%} of the columns compared", flush=True)
    return report


def warm() -> None:
    """Loads kernels before processes are forked, so that each has them."""
    for case in range(12):
        with contextlib.suppress(Exception):
            check(0, case)


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog=f"python tests/fuzz {NAME}", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="one case, in this process")
    parser.add_argument("--budget", default="1000", help="cases, or seconds as in 60s")
    parser.add_argument("--first", type=int, default=0, help="the first case's number")
    parser.add_argument("--show", action="store_true", help="print the model and its options")
    given = parser.parse_args(arguments)
    if given.case is None:
        report = run(given.budget, given.seed, given.first)
        print(report)
        return len(report.findings) > 0 or report.share() < LEAST
    if given.show:
        tree, _ = build(given.seed, given.case)
        print(tree.text, tree.options, sep="\n")
    print(*check(given.seed, given.case))
    return 0
