"""Trial simulations: each start is simulated with its controls, and samples of the motion are kept.

The samples are ten states over the trial, and ten more over its last tenth, in which a model at rest should not move.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from featherlane import Batch, Data, Model, forward
from featherlane.enums import EQUALITY
from featherlane.errors import CapacityWarning, NonFiniteWarning
from featherlane.query import contact_force
from featherlane.stages import energy

SECONDS, MOST_STEPS = 1.0, 500  # of a trial: the smaller of both
MOST_WORK = 50_000  # steps times DoFs of a trial, with at least 50 steps: seconds on one core
PARTS = 10  # number of parts of the trial
MOST_CONTACTS = 200  # of a sample whose forces are read


@dataclass
class Sample:
    """Holds one state of a trial, after `forward`.

    Attributes:
        time: [s].
        qvel: (nv,).
        xipos: (nbody, 3) centres of mass [m].
        cvel: (nbody, 6) angular velocity [rad/s] and velocity of the centre of mass [m/s].
        geom: (n, 2) geoms of contacts that push, -1 for user-defined bodies.
        depth: (n,) [m].
        force: (n,) normal force [N].
        solref: (n, 2) of contacts.
        equality: (ne,) equality of each row of equalities.
        error: (ne,) its position error [m, rad].
        pull: (ne,) its force [N, N m].
        energy: potential and kinetic energy [J].
        kinetic: (nbody,) kinetic energy of each body [J].
        held: (nv,) whether a constraint acted on the DoF in a step since the last sample.
        driven: (nv,) whether an actuator did.
    """

    time: float
    qvel: np.ndarray
    xipos: np.ndarray
    cvel: np.ndarray
    geom: np.ndarray
    depth: np.ndarray
    force: np.ndarray
    solref: np.ndarray
    equality: np.ndarray
    error: np.ndarray
    pull: np.ndarray
    energy: tuple[float, float]
    kinetic: np.ndarray
    held: np.ndarray
    driven: np.ndarray


@dataclass
class Trial:
    """Holds a trial from one start.

    Attributes:
        start: name of the start.
        keyframe: its number, -1 for qpos0.
        counts: status counts.
        when: time until values were non-finite or out of range [s], infinite if they never were.
        samples: states over the trial, the first at its beginning; none after `when`.
        late: number of samples of the last tenth.
    """

    start: str
    keyframe: int
    counts: dict[str, int]
    when: float
    samples: list[Sample] = field(default_factory=list)
    late: int = PARTS

    @property
    def end(self) -> list[Sample]:
        """Returns the samples of the last tenth; none if the state became non-finite."""
        return [] if np.isfinite(self.when) else self.samples[-self.late :]


def trial_steps(model: Model) -> int:
    """Returns the number of steps of a trial."""
    affordable = max(MOST_STEPS // 10, MOST_WORK // max(model.nv, 1))
    return max(1, min(MOST_STEPS, affordable, round(SECONDS / model.opt.timestep)))


def run_trials(model: Model, starts: list[tuple[str, int]]) -> list[Trial]:
    """Runs a trial from each start, (name, keyframe)."""
    batch, done, steps = Batch(model, len(starts), nthread=1), 0, trial_steps(model)
    for name in ("qfrc_constraint", "qfrc_actuator"):
        batch.bind(name)
    batch.reset(keyframe=np.array([keyframe for _, keyframe in starts]))
    trials = [Trial(name, keyframe, {}, np.inf) for name, keyframe in starts]
    last = round(steps * (PARTS - 1) / PARTS)
    stops = np.unique(np.r_[np.linspace(0, last, PARTS), np.linspace(last, steps, PARTS + 1)].astype(int))
    late = max(int((stops > last).sum()), 1)
    held, driven = (np.zeros((batch.nworld, model.nv), bool) for _ in range(2))
    with warnings.catch_warnings():
        for category in (CapacityWarning, NonFiniteWarning):
            warnings.simplefilter("ignore", category)
        for stop in map(int, stops):
            for _ in range(stop - done):
                batch.step()
                held |= batch.qfrc_constraint != 0
                driven |= batch.qfrc_actuator != 0
            done = stop
            for w, trial in enumerate(trials):
                trial.late = late
                if batch.status["non_finite"][w] and np.isinf(trial.when):
                    trial.when = done * model.opt.timestep
                if np.isinf(trial.when):
                    sample = _sample(batch.get_data(w), done * model.opt.timestep)
                    sample.held |= held[w]
                    sample.driven |= driven[w]
                    trial.samples.append(sample)
            held[:] = driven[:] = False
    for w, trial in enumerate(trials):
        trial.counts = {name: int(of[w]) for name, of in batch.status.items()}
    return trials


def _sample(data: Data, time: float) -> Sample:
    """Computes the sample of a world."""
    m = data.model
    forward(m, data)
    energy(m, data)
    contact = data.contact
    force = np.array([contact_force(m, data, k)[0] for k in range(min(len(contact), MOST_CONTACTS))])
    pushes = np.flatnonzero(force > 0)
    n = data.nrow
    rows = np.flatnonzero((data.row_type[:n] == EQUALITY) & (data.row_present[:n] > 0.0))
    turn, pace = data.cvel[:, :3], data.cvel[:, 3:]
    pace = pace + np.cross(turn, data.xipos - data.subtree_com[m.body_rootid])
    local = np.einsum("bji,bj->bi", data.ximat.reshape(-1, 3, 3), turn)
    return Sample(
        time=time,
        qvel=data.qvel.copy(),
        xipos=data.xipos.copy(),
        cvel=np.hstack([turn, pace]),
        geom=contact.geom[pushes],
        depth=-contact.dist[pushes],
        force=force[pushes],
        solref=contact.solref[pushes],
        equality=data.row_id[rows].copy(),
        error=data.row_pos[rows].copy(),
        pull=data.row_force[rows].copy(),
        energy=(float(data.energy[0]), float(data.energy[1])),
        kinetic=0.5 * (m.body_mass * (pace * pace).sum(axis=1) + (m.body_inertia * local * local).sum(axis=1)),
        held=data.qfrc_constraint != 0,
        driven=data.qfrc_actuator != 0,
    )
