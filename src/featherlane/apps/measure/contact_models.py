"""Compares the same motion under each contact model and solver.

All runs start from one state and take the same steps with the same controls.  The same quantities are measured for all:
the solver's residual, the depth of overlap, the sliding speed of loaded contacts at the end of the step, the error of
equality constraints, the energy, and the time of a step.  Options that conflict with a contact model are changed for it
and reported.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featherlane import Data, Model, load, step
from featherlane.apps.measure.controls import Random
from featherlane.apps.measure.solvers import SOLVERS as CONVEX_SOLVERS
from featherlane.apps.measure.solvers import check_names
from featherlane.enums import EQUALITY, Enable
from featherlane.errors import ModelError
from featherlane.extension import check_counts
from featherlane.stages import energy, forward_position

SOLVERS = {
    "convex": CONVEX_SOLVERS,
    "lcp": ("dantzig", "pgs", "apgd"),
    "coulomb": ("newton",),
}
OPTION = {"convex": "solver", "lcp": "lcp_solver", "coulomb": "solver"}
INTEGRATORS = {"lcp": ("euler",), "coulomb": ("euler", "implicit", "implicitfast")}  # others become euler
OFF = Enable.FWDINV | Enable.INVDISCRETE | Enable.SLEEP  # flags that lcp does not support
SETTLE = 0.25  # simulated time before the common state [s]
Curves = dict[tuple[str, str], dict[str, np.ndarray]]  # per contact model and solver, by quantity: (steps,)
PRESSING = 1e-6  # relative to the model's weight: a contact with a smaller normal force is unloaded


@dataclass
class Contest:
    """Arguments of the comparison.

    Attributes:
        solvers: names of solvers; each runs under every contact model that supports it.
        iterations: iteration limit of each solver; None for the model's.
    """

    source: str
    contacts: tuple[str, ...]
    solvers: tuple[str, ...]
    steps: int = 400
    iterations: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Raises ModelError for invalid arguments."""
        every = tuple(dict.fromkeys(name for names in SOLVERS.values() for name in names))
        check_names("contact", self.contacts, SOLVERS)
        check_names("solvers", self.solvers, every)
        for name in self.solvers:
            if not any(name in SOLVERS[contact] for contact in self.contacts):
                raise ModelError(
                    f"solvers: got {name!r}, which does not belong to the contact models {', '.join(self.contacts)}"
                )
        check_counts(self, {"steps": 1, "iterations": 1})

    def entries(self) -> list[tuple[str, str]]:
        """Returns (contact model, solver) of each run."""
        return [(c, s) for c in self.contacts for s in SOLVERS[c] if s in self.solvers]


@dataclass
class Trace:
    """Measurements of one run, one number per step."""

    residual: list[float] = field(default_factory=list)
    penetration: list[float] = field(default_factory=list)
    slip: list[float] = field(default_factory=list)
    drift: list[float] = field(default_factory=list)
    energy: list[float] = field(default_factory=list)
    iterations: list[float] = field(default_factory=list)
    microseconds: list[float] = field(default_factory=list)
    position: list[np.ndarray] = field(default_factory=list)
    resets: int = 0

    def plain(self) -> dict[str, Any]:
        """Returns medians and largest values, and the change of energy from start to end."""
        return {
            "residual": {"median": np.median(self.residual), "max": max(self.residual)},
            "penetration": {"median": np.median(self.penetration), "max": max(self.penetration)},
            "slip": {"median": np.median(self.slip), "max": max(self.slip)},
            "drift": {"median": np.median(self.drift), "max": max(self.drift)},
            "energy_change": self.energy[-1] - self.energy[0],
            "iterations": {"mean": np.mean(self.iterations), "max": max(self.iterations)},
            "microseconds": {"median": np.median(self.microseconds)},
            "resets": self.resets,
        }


def compare_motions(request: Contest, through: Callable[[list], Iterable] = iter) -> tuple[dict[str, Any], Curves]:
    """Steps one state under each contact model with each of its solvers.

    Args:
        through: wraps the iterable of (contact model, solver), for example to report progress.

    Returns:
        The measurements as plain values, and curves over time of each run.

    Raises:
        ModelError: the model cannot be loaded.
        UnsupportedFeatureError: the model has unsupported features.
    """
    loaded = load(request.source)
    models, changed = {}, {}
    for contact in request.contacts:
        models[contact], changed[contact] = _prepared(loaded, contact)
    model = models[request.contacts[0]]
    state, traces = _settled(model, request), {}
    for entry in through(request.entries()):
        traces[entry] = _run(models[entry[0]], state, request, *entry)
    result = {
        "model": model.source,
        "timestep": model.opt.timestep,
        "steps": request.steps,
        "changed": changed,
        "runs": [{"contact": c, "solver": s, **trace.plain()} for (c, s), trace in traces.items()],
    }
    return result, _curves(model, traces)


def _prepared(model: Model, contact: str) -> tuple[Model, list[str]]:
    """Returns a copy of the model under a contact model, and the options that were changed for it."""
    copied, changed = copy.copy(model), []
    opt = copied.opt
    if contact in INTEGRATORS:
        if opt.integrator.name.lower() not in INTEGRATORS[contact]:
            changed.append(f"integrator {opt.integrator.name.lower()} -> euler")
            opt.integrator = "euler"
        if opt.noslip_iterations:
            changed.append("noslip_iterations -> 0")
            opt.noslip_iterations = 0
        refused = opt.enableflags & (OFF if contact == "lcp" else 0)
        if refused:
            changed.append(f"flags off: {', '.join(str(flag.name).lower() for flag in refused)}")
            opt.enableflags &= ~refused
    if contact == "coulomb":
        opt.solver = "newton"
    opt.contact_model = contact
    return copied, changed


def _settled(model: Model, request: Contest) -> dict[str, np.ndarray]:
    """Computes the common state: some time under random control with the first contact model."""
    data, controls = Data(model), Random(model, request.seed, model.opt.timestep)
    for k in range(round(SETTLE / model.opt.timestep)):
        controls.steer(data, k)
        step(model, data)
    return {name: getattr(data, name).copy() for name in ("qpos", "qvel", "act")}


def _run(model: Model, state, request: Contest, contact: str, solver: str) -> Trace:
    """Takes all steps under one contact model with one solver."""
    setattr(model.opt, OPTION[contact], solver)
    if request.iterations is not None:
        setattr(model.opt, "lcp_iterations" if contact == "lcp" else "iterations", request.iterations)
    data, trace, moves = Data(model), Trace(), _moves(model)
    for name, value in state.items():
        getattr(data, name)[...] = value
    controls = Random(model, request.seed + 1, model.opt.timestep)
    for k in range(request.steps):
        controls.steer(data, k)
        start = time.perf_counter()
        step(model, data)
        trace.microseconds.append(1e6 * (time.perf_counter() - start))
        trace.residual.append(float(data.solver_residual))
        trace.iterations.append(float(data.solver_niter))
        trace.position.append(data.xipos.copy())
        depth, slip = _contacts(model, data, moves)
        trace.penetration.append(depth)
        trace.slip.append(slip)
        trace.drift.append(loop_error(data))
        forward_position(model, data)  # the step's contact frames belong to the position before it
        energy(model, data)
        trace.energy.append(float(data.energy.sum()))
    trace.resets = int(data.nreset)
    return trace


def _contacts(model: Model, data: Data, moves: np.ndarray) -> tuple[float, float]:
    """Computes the deepest overlap [m], and the mean sliding speed [m/s] of loaded contacts after the step.

    Args:
        data: the world after a step, with contacts and forces of the step, and velocities at its end.
        moves: (nbody, nv) whether a DoF moves a body.
    """
    slots = np.flatnonzero(data.con_present[: data.ncon_slot] > 0.0)
    here = slots
    if model.opt.enableflags & Enable.SPECULATIVE:  # the others are within the step: their distances are synthetic
        here = slots[data.con_speculative[slots] == 0.0]
    depth = float(np.maximum(-data.con_dist[here], 0.0).max(initial=0.0))
    weight = float(model.body_mass.sum() * np.linalg.norm(model.opt.gravity))
    pressing = slots[data.con_force[slots, 0] > PRESSING * weight]
    if not len(pressing):
        return depth, 0.0
    motion = moves @ (data.cdof * data.qvel[:, None])  # of the bodies, at the centres of mass of their trees
    pos, velocity = data.con_pos[pressing], np.zeros((len(pressing), 3))
    for sign, bodies in zip((-1.0, 1.0), data.con_carrier[pressing].T, strict=True):
        arm = pos - data.subtree_com[model.body_rootid[bodies]]
        velocity += sign * (motion[bodies, 3:] + np.cross(motion[bodies, :3], arm))
    tangents = data.con_frame[pressing].reshape(-1, 3, 3)[:, 1:]
    return depth, float(np.linalg.norm(np.einsum("ktc,kc->kt", tangents, velocity), axis=1).mean())


def _moves(model: Model) -> np.ndarray:
    """Computes (nbody, nv): whether a DoF moves a body."""
    out = np.zeros((model.nbody, model.nv))
    for body, last in enumerate(model.body_lastdof):
        if last >= 0:
            out[body, model.chain_colind[model.chain_rowadr[last] :][: model.chain_rownnz[last]]] = 1.0
    return out


def loop_error(data: Data) -> float:
    """Computes the largest error of an equality constraint [m, rad]."""
    n = data.nrow
    equalities = (data.row_type[:n] == EQUALITY) & (data.row_present[:n] > 0.0)
    return float(np.abs(data.row_pos[:n][equalities]).max(initial=0.0))


def _curves(model: Model, traces: dict[tuple[str, str], Trace]) -> Curves:
    """Returns the curves of each run: the coordinate that moves most in the first run, and all nonzero quantities."""
    first = np.array(next(iter(traces.values())).position)
    body, axis = np.unravel_index(np.argmax(np.ptp(first, axis=0)), first.shape[1:])
    name = model.names("body")[body] or f"body {body}"
    curves = {
        entry: {
            f"{'xyz'[axis]} of {name} [m]": np.array(trace.position)[:, body, axis],
            "energy [J]": np.array(trace.energy),
            "largest penetration [m]": np.array(trace.penetration),
            "slip of contacts with normal force [m/s]": np.array(trace.slip),
            "constraint error of loops [m, rad]": np.array(trace.drift),
        }
        for entry, trace in traces.items()
    }
    shown = [what for what in next(iter(curves.values())) if any(c[what].any() for c in curves.values())]
    return {entry: {what: quantities[what] for what in shown} for entry, quantities in curves.items()}
