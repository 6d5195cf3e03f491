"""Checks rest and energy in a trial: bodies that should lie still, and motion whose energy nothing supplies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import WARNING, Sign
from featherlane.apps.doctor.motion import MOST_TRIED, reason, time_constant
from featherlane.apps.doctor.registry import check
from featherlane.apps.doctor.remedies import Remedy, option, soften_contacts, tried
from featherlane.apps.doctor.rows import growth, row_stiffness
from featherlane.apps.doctor.trials import Trial
from featherlane.enums import FREE, ContactModel

PLACE = 0.1  # of the reach: a body that moved less stayed in its place
UNREST = 0.01  # of the speed of a fall by the reach
DRIFT = 0.02  # of the largest kinetic energy
NEGLIGIBLE = 1e-4  # of the energy that lifts the body by its reach
FACE = 3  # contacts on which a body can stand
SOFT = 0.02  # s: the default time constant
RINGING = 0.1  # damping ratio below which a contact rings


# ---- rest ----------------------------------------------------------------------------------------------------------
def unrest(examined: ExaminedModel, trial: Trial) -> dict[int, tuple[float, float]]:
    """Returns (angular speed [rad/s], speed [m/s]) of free bodies that touch, stay in their place and do not rest."""
    m, found = examined.model, {}
    gravity = float(np.linalg.norm(m.opt.gravity))
    for b in _free_bodies(examined):
        reach = float(examined.reach[b])
        if not trial.end or not reach or not gravity or not _stays(examined, trial, b):
            continue
        spin = float(np.sqrt(np.mean([np.square(s.cvel[b, :3]).sum() for s in trial.end])))
        pace = float(np.sqrt(np.mean([np.square(s.cvel[b, 3:]).sum() for s in trial.end])))
        if max(spin * reach, pace) > UNREST * np.sqrt(2 * gravity * reach):
            found[b] = spin, pace
    return found


def _free_bodies(examined: ExaminedModel) -> list[int]:
    """Returns single free bodies, without other joints."""
    m = examined.model
    bodies = m.jnt_bodyid[m.jnt_type == FREE]
    return [int(b) for b in bodies if m.tree_dofnum[m.body_treeid[b]] == 6 and m.body_mass[b] > mujoco.mjMINVAL]


def _stays(examined: ExaminedModel, trial: Trial, b: int) -> bool:
    """Returns whether a body starts at rest, touches at the end, and stays in its place, as bodies it touches."""
    m, first = examined.model, trial.samples[0]
    dofs = examined.dofs_of_tree(int(m.body_treeid[b]))
    if first.qvel[dofs].any() or any(s.driven[dofs].any() for s in trial.samples):
        return False
    if not all(s.held[dofs].any() for s in trial.end):
        return False
    limit, neighbours = PLACE * examined.reach[b], {b}
    for sample in trial.end:
        bodies = m.body_weldid[m.geom_bodyid[sample.geom]]
        neighbours.update(map(int, bodies[(bodies == m.body_weldid[b]).any(axis=1)].ravel()))
    at = sorted(neighbours)
    return all((np.linalg.norm(s.xipos[at] - first.xipos[at], axis=1) < limit).all() for s in trial.samples)


@check("trial-restless", WARNING, "the body rocks, spins or vibrates although it should lie still")
def restless(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds free bodies that start at rest, stay within a tenth of their reach and touch something, but still move at
    the end of a trial: faster than 1 % of the speed of a fall by their reach.  The cause is dropped contacts, a mass
    ratio, an unstable or underdamped solref, fewer than three contacts, or a soft solref.  The advice was tried in
    another trial."""
    known: set[int] = set()
    for trial in examined.trials:
        moving = {b: speeds for b, speeds in unrest(examined, trial).items() if b not in known}
        for k, (b, (spin, pace)) in enumerate(moving.items()):
            known.add(b)
            seen = f"rotates at {spin:.3g} rad/s and moves at {pace:.3g} m/s at the end of a trial from {trial.start}, "
            seen += f"without leaving its place; {_cause_of_unrest(examined, trial, b)}"
            advice = tried(examined, trial, _calming(examined, trial, b), partial(_rests, b)) if k < MOST_TRIED else ""
            full = any(trial.counts[name] for name in ("contacts_full", "rows_full"))
            if full:
                advice = "see trial-full: contacts or rows are dropped, which causes such motion"
            yield Sign("body", b, seen, advice or "examine its contacts (data.contact) in this state")


def _rests(b: int, examined: ExaminedModel, trial: Trial) -> bool:
    return _stays(examined, trial, b) and b not in unrest(examined, trial)


class _Contacts(NamedTuple):
    """The contacts of a body over the end of a trial.

    Attributes:
        geoms: geoms in contact.
        numbers: number of contacts in each sample.
        force: largest force [N].
        solref: (n, 2) of all contacts.
    """

    geoms: np.ndarray
    numbers: list[int]
    force: float
    solref: np.ndarray


def _contacts_of(examined: ExaminedModel, trial: Trial, b: int) -> _Contacts:
    m, weld = examined.model, examined.model.body_weldid
    own = [(weld[m.geom_bodyid[sample.geom]] == weld[b]).any(axis=1) for sample in trial.end]
    geoms, forces, solref = (
        np.concatenate([getattr(sample, name)[of] for sample, of in zip(trial.end, own, strict=True)])
        for name in ("geom", "force", "solref")
    )
    found = np.unique(geoms)
    return _Contacts(found[found >= 0], [int(of.sum()) for of in own], float(forces.max(initial=0.0)), solref)


def _cause_of_unrest(examined: ExaminedModel, trial: Trial, b: int) -> str:
    """Returns the cause of a restless body, the first of those that the check lists."""
    contacts = _contacts_of(examined, trial, b)
    inverse = float(examined.model.body_invweight0[b, 0])
    solrefs = np.unique(contacts.solref, axis=0)
    time = min((time_constant(examined, solref) for solref in solrefs), default=SOFT)
    found = reason(examined, trial, contacts.force, inverse, time)
    if found.startswith(("contacts", "mass")):
        return found
    stiffness = [row_stiffness(examined, solref, False) for solref in solrefs]
    factor = max((growth(examined, K, B) for K, B in stiffness), default=0.0)
    if examined.model.opt_contact_model != ContactModel.LCP and factor > 1:
        return f"each step multiplies errors of its contact by {factor:.3g}"
    damping = min((B / (2 * np.sqrt(K)) for K, B in stiffness if K > 0), default=1.0)
    if examined.model.opt_contact_model != ContactModel.LCP and damping < RINGING:
        return f"its contact has a damping ratio of {damping:.3g}"
    if min(contacts.numbers) < FACE:
        return f"it stands on {min(contacts.numbers)} to {max(contacts.numbers)} contacts"
    return found


def _calming(examined: ExaminedModel, trial: Trial, b: int) -> list[Remedy]:
    """Returns changes that may calm a body."""
    geoms = _contacts_of(examined, trial, b).geoms
    time = max(SOFT, 4 * examined.h)
    softer = Remedy(f"set solref of its geoms to {time:g} 1", lambda m: soften_contacts(geoms, m, (time, 1.0), None))
    steps = [option("timestep", examined.h / n) for n in (2, 4)]
    return [softer, *steps, option("contact_model", "lcp"), option("cone", "elliptic")]


# ---- energy --------------------------------------------------------------------------------------------------------
def energy_of_flight(examined: ExaminedModel, trial: Trial) -> dict[int, tuple[float, float]]:
    """Returns (largest kinetic energy, rise of the energy) [J] of free bodies while only gravity acts on them."""
    m, found = examined.model, {}
    for b in _free_bodies(examined):
        dofs, energies = examined.dofs_of_tree(int(m.body_treeid[b])), []
        bodies = np.flatnonzero(m.body_treeid == m.body_treeid[b])
        for sample in trial.samples:
            if sample.held[dofs].any() or sample.driven[dofs].any():
                break
            lifted = -float((m.body_mass[bodies] * (sample.xipos[bodies] @ m.opt.gravity)).sum())
            energies.append((float(sample.kinetic[bodies].sum()), lifted))
        if len(energies) > 1:
            kinetic = max(k for k, _ in energies)
            rise = max(k + p for k, p in energies) - sum(energies[0])
            if rise > DRIFT * kinetic and rise > NEGLIGIBLE * _lifting(examined, bodies):
                found[b] = kinetic, rise
    return found


def _lifting(examined: ExaminedModel, bodies: np.ndarray) -> float:
    """Returns the energy that lifts bodies by the mean body size [J]."""
    m = examined.model
    return float(m.body_mass[bodies].sum() * np.linalg.norm(m.opt.gravity) * examined.size)


def energy_rise(examined: ExaminedModel, trial: Trial) -> tuple[float, float]:
    """Returns (rise of the total energy, largest kinetic energy) [J] of a trial; (0, 0) if something supplies energy.

    Actuators, motors and moving surfaces, wind, gravity compensation, equalities and contacts supply energy, and a
    user callback may.
    """
    m = examined.model
    supplied = m.nmocap or m.flg_surfacevel or m.body_gravcomp.any() or m.opt.wind.any() or m.jnt_motor_force.any()
    if supplied or any(s.held.any() or s.driven.any() for s in trial.samples) or len(trial.samples) < 2:
        return 0.0, 0.0
    energies = [sum(s.energy) for s in trial.samples]
    return max(energies) - energies[0], max(s.energy[1] for s in trial.samples)


def _grows(examined: ExaminedModel, trial: Trial) -> bool:
    rise, kinetic = energy_rise(examined, trial)
    return rise > max(DRIFT * kinetic, NEGLIGIBLE * _lifting(examined, np.arange(examined.model.nbody)))


@check("trial-energy", WARNING, "nothing supplies the energy: it is an error of the time integration")
def growing_energy(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds free bodies in flight, and models without constraints and actuators, whose energy rises in a trial by more
    than 2 % of the largest kinetic energy.  The cause of a free body is a frame off its centre of mass (not with rk4),
    or a spin too fast for the step.  The advice was tried in another trial."""
    known: set[int] = set()
    for trial in examined.trials:
        bodies = {b: energies for b, energies in energy_of_flight(examined, trial).items() if b not in known}
        for k, (b, (kinetic, rise)) in enumerate(bodies.items()):
            known.add(b)
            seen = (
                f"its energy rises by {rise:.3g} J in free flight in a trial from {trial.start}, {rise / kinetic:.0%} "
            )
            seen += f"of the largest kinetic energy; {_cause_of_growth(examined, trial, b)}"
            cured = partial(_keeps_energy, b)
            advice = tried(examined, trial, _conserving(examined), cured) if k < MOST_TRIED else ""
            yield Sign("body", b, seen, advice or "reduce the time step")
        if not bodies and not known and _grows(examined, trial):
            rise, kinetic = energy_rise(examined, trial)
            seen = (
                f"its energy rises by {rise:.3g} J in a trial from {trial.start}, {rise / kinetic:.0%} of the largest "
            )
            seen += "kinetic energy; the step is too large for the velocities"
            advice = tried(examined, trial, _conserving(examined), lambda e, t: not _grows(e, t))
            yield Sign("model", -1, seen, advice or "reduce the time step")
            known.add(-1)


def _keeps_energy(b: int, examined: ExaminedModel, trial: Trial) -> bool:
    return b not in energy_of_flight(examined, trial)


def _cause_of_growth(examined: ExaminedModel, trial: Trial, b: int) -> str:
    """Returns the cause: an offset of the frame, with the change of the energy that it explains, or the spin alone."""
    m, d = examined.model, examined.start.data
    offset = float(np.linalg.norm(d["xipos"][b] - d["xpos"][b]))
    spin = float(np.linalg.norm(trial.samples[0].cvel[b, :3]))
    gyration = float(np.sqrt(m.body_inertia[b].sum() / (3 * m.body_mass[b])))
    if examined.h * spin * offset > 1e-3 * gyration:
        return f"its frame is {offset:.3g} m from its centre of mass, and it spins at {spin:.3g} rad/s"
    return f"it turns by {examined.h * spin:.2g} rad per step"


def _conserving(examined: ExaminedModel) -> list[Remedy]:
    """Returns changes that may keep the energy."""
    found = [option("integrator", "rk4"), option("integrator", "implicit")]
    return [*found, *(option("timestep", examined.h / n) for n in (4, 16))]
