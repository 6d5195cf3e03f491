"""The model under examination: labels of its elements, and its start states, computed once for all checks."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from featherlane import Batch, Data, Model, forward
from featherlane.enums import EQUALITY, FREE, OBJ_SITE, SLIDE, ContactModel, Disable, Enable
from featherlane.errors import CapacityWarning, NonFiniteWarning
from featherlane.query import full_m
from featherlane.stages import crb, frames

MOST_KEYFRAMES = 32  # of a model with a hundred recorded poses, only the first ones are examined
SECONDS, MOST_STEPS = 1.0, 500  # of a trial: the smaller of both
MOST_WORK = 50_000  # steps times DoFs of a trial, with at least 50 steps: seconds on one core
PARTS = 10  # number of parts of the trial, to report the time of a failure


@dataclass
class Start:
    """An initial state, after `forward`.

    Attributes:
        name: `qpos0`, or the keyframe in the format of messages.
        keyframe: number of the keyframe, -1 for none.
        data: copies of fields of `fl.Data` by name.
        contact: contacts, as `data.contact`.
        loops: (equality, position error [m, rad]) of each constraint row of an equality.
        M: (nv, nv) inertia [kg, kg m, kg m^2].
    """

    name: str
    keyframe: int
    data: dict[str, np.ndarray]
    contact: np.recarray
    loops: tuple[np.ndarray, np.ndarray]
    M: np.ndarray


KEPT = (
    "qpos qvel act ctrl qacc xpos xipos geom_xpos geom_xmat ten_length ten_J actuator_length actuator_moment"
).split()


def kind_of(prefix: str) -> str:
    """Returns the kind of element that fields with this prefix describe: `jnt` -> `joint`."""
    return {"jnt": "joint", "eq": "equality"}.get(prefix, prefix)


class ExaminedModel:
    """A model with the derived quantities that checks use.

    Attributes:
        model: a copy of the model, without the flag `sleep`, because sleeping trees would hide defects.
        original: the unchanged model.
        h: time step [s].
        systems: linear systems of the starts, after modes.py has created them.
    """

    def __init__(self, model: Model):
        self.original, self.model = model, copy.copy(model)
        self.model.dropped = model.dropped
        self.model.opt.enableflags = self.model.opt.enableflags & ~Enable.SLEEP
        self.h = self.model.opt.timestep
        self.systems: list[tuple[Start, Any]] = []

    # ---- elements ----------------------------------------------------------------------------------------------------
    def name(self, kind: str, ident: int) -> str:
        """Returns the name of an element, or an empty text."""
        if kind == "equality":
            return self.model.mj_model.eq(ident).name
        return "" if kind in ("option", "model") else self.model.names(kind)[ident]

    def label(self, kind: str, ident: int | str) -> str:
        """Returns the label of an element for messages; an unnamed element has its number and its body."""
        if isinstance(ident, str):
            return f"{kind} {ident}"
        if kind == "model":
            return "the model"
        own = self.name(kind, ident)
        if own:
            return f"{kind} {own!r}"
        owner = {"geom": "geom_bodyid", "joint": "jnt_bodyid", "site": "site_bodyid"}.get(kind)
        body = f" of {self.label('body', int(getattr(self.model, owner)[ident]))}" if owner else ""
        return f"{kind} #{ident}{body}"

    # ---- starts ------------------------------------------------------------------------------------------------------
    @cached_property
    def starts(self) -> list[Start]:
        """Computes qpos0 and the keyframes, without contacts within the step, whose distances are synthetic."""
        data, flags = Data(self.model), self.model.opt.enableflags
        self.model.opt.enableflags = flags & ~Enable.SPECULATIVE
        starts = [self._start(data, k) for k in range(-1, min(self.model.nkey, MOST_KEYFRAMES))]
        self.model.opt.enableflags = flags
        return starts

    @property
    def start(self) -> Start:
        """Returns qpos0."""
        return self.starts[0]

    def _start(self, data: Data, keyframe: int) -> Start:
        m = self.model
        data.reset(keyframe=keyframe)
        forward(m, data)
        frames(m, data)
        crb(m, data)
        n = data.nrow
        rows = np.flatnonzero((data.row_type[:n] == EQUALITY) & (data.row_present[:n] > 0.0))
        return Start(
            name="qpos0" if keyframe < 0 else self.label("keyframe", keyframe),
            keyframe=keyframe,
            data={name: np.array(getattr(data, name)) for name in KEPT},
            contact=data.contact.copy(),
            loops=(data.row_id[rows].copy(), data.row_pos[rows].copy()),
            M=full_m(m, data),
        )

    # ---- trials ------------------------------------------------------------------------------------------------------
    @property
    def trial_steps(self) -> int:
        """Returns the number of steps of a trial."""
        affordable = max(MOST_STEPS // 10, MOST_WORK // max(self.model.nv, 1))
        return max(1, min(MOST_STEPS, affordable, round(SECONDS / self.h)))

    @cached_property
    def trials(self) -> list[tuple[str, dict[str, int], float]]:
        """Runs a trial from each start: (start, status counts, seconds until non-finite or out-of-range values)."""
        batch, done = Batch(self.model, len(self.starts), nthread=1), 0
        batch.reset(keyframe=np.array([start.keyframe for start in self.starts]))
        when = np.full(batch.nworld, np.inf)
        with warnings.catch_warnings():
            for category in (CapacityWarning, NonFiniteWarning):
                warnings.simplefilter("ignore", category)
            for part in np.diff(np.linspace(0, self.trial_steps, PARTS + 1).astype(int)):
                if part:
                    batch.step(int(part))
                    done += int(part)
                    when = np.where((batch.status["non_finite"] > 0) & np.isinf(when), done * self.h, when)
        counts = [{name: int(of[w]) for name, of in batch.status.items()} for w in range(batch.nworld)]
        return [(start.name, counts[w], float(when[w])) for w, start in enumerate(self.starts)]

    # ---- shared by several checks ------------------------------------------------------------------------------------
    @property
    def uses_erp(self) -> bool:
        """Returns whether constraint rows are those of the LCP contact model, with softness by ERP and CFM."""
        return self.model.opt_contact_model == ContactModel.LCP and int(self.model.opt.softness) == 0

    @cached_property
    def moving(self) -> np.ndarray:
        """Returns (nbody,) whether any DoF moves the body."""
        return self.model.body_lastdof >= 0

    def subtree_sum(self, values: np.ndarray) -> np.ndarray:
        """Computes (nbody,) sums of the values over the subtree of each body."""
        result = np.array(values, float)
        for b in range(self.model.nbody - 1, 0, -1):
            result[self.model.body_parentid[b]] += result[b]
        return result

    @cached_property
    def subtree_mass(self) -> np.ndarray:
        """Computes (nbody,) subtree masses [kg] from the present masses."""
        return self.subtree_sum(self.model.body_mass)

    @cached_property
    def size(self) -> float:
        """Computes the mean size of the bodies [m]."""
        return float(self.model.stat.meansize) or 1.0

    @cached_property
    def half_width(self) -> np.ndarray:
        """Computes (ngeom,) smallest half side of each bounding box [m]; 0 for unbounded geoms."""
        return np.where(self.model.geom_rbound > 0, self.model.geom_aabb[:, 3:].min(axis=1, initial=np.inf), 0.0)

    def bodies_of_equality(self, e: int) -> tuple[int, int]:
        """Returns the bodies that a connect or a weld joins."""
        m = self.model
        first, second = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        if m.eq_objtype[e] == OBJ_SITE:
            return int(m.site_bodyid[first]), int(m.site_bodyid[second])
        return first, second

    @cached_property
    def pairs(self) -> np.ndarray:
        """Returns (n, 2) geoms that may collide, including those of the tree; none if flags disable contacts."""
        if Disable(self.model.opt_disableflags) & (Disable.CONTACT | Disable.CONSTRAINT):
            return np.zeros((0, 2), int)
        return self.candidates

    @cached_property
    def candidates(self) -> np.ndarray:
        """Returns (n, 2) geoms that may collide, independent of the flags."""
        return self.model.candidate_pairs()

    def dofs_of_tree(self, tree: int) -> slice:
        """Returns the DoFs of a kinematic tree."""
        first = int(self.model.tree_dofadr[tree])
        return slice(first, first + int(self.model.tree_dofnum[tree]))

    def unit(self, dof: int) -> str:
        """Returns the unit of a DoF's inertia."""
        return "kg" if self.is_linear(dof) else "kg m^2"

    def is_linear(self, dof: int) -> bool:
        """Returns whether the DoF is translational."""
        j = self.model.dof_jntid[dof]
        kind = self.model.jnt_type[j]
        return bool(kind == SLIDE or (kind == FREE and dof - self.model.jnt_dofadr[j] < 3))

    @cached_property
    def inverse_inertia(self) -> np.ndarray:
        """Computes (nv, nv) M^-1 in qpos0 [1/kg, 1/(kg m^2)]; zero in directions without inertia."""
        return self.inverse_of(self.start.M)

    def inverse_of(self, M: np.ndarray) -> np.ndarray:
        """Inverts an inertia tree by tree; zero in directions without inertia."""
        result = np.zeros_like(M)
        for tree in range(self.model.ntree):
            at = self.dofs_of_tree(tree)
            result[at, at] = np.linalg.pinv(np.nan_to_num(M[at, at]), hermitian=True)
        return result
