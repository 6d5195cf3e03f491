"""The model under examination: labels of its elements, and its start states, computed once for all checks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from featherlane import Data, Model, forward
from featherlane.apps.doctor.trials import Trial, run_trials, trial_steps
from featherlane.enums import FREE, OBJ_SITE, SLIDE, ContactModel, Disable, Enable
from featherlane.query import full_m
from featherlane.stages import crb, frames

MOST_KEYFRAMES = 32  # of a model with a hundred recorded poses, only the first ones are examined


@dataclass
class Start:
    """An initial state, after `forward`.

    Attributes:
        name: `qpos0`, or the keyframe in the format of messages.
        keyframe: number of the keyframe, -1 for none.
        data: copies of fields of `fl.Data` by name.
        contact: contacts, as `data.contact`.
        rows: constraint rows of active equalities: MuJoCo's columns `efc_*` by name (J, id, pos, KBIP, D).
        M: (nv, nv) inertia [kg, kg m, kg m^2].
    """

    name: str
    keyframe: int
    data: dict[str, np.ndarray]
    contact: np.recarray
    rows: dict[str, np.ndarray]
    M: np.ndarray


KEPT = (
    "qpos qvel act ctrl qacc xpos xipos geom_xpos geom_xmat ten_length ten_J actuator_length actuator_moment"
).split()


ROW = ("J", "id", "pos", "KBIP", "D")


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

    def changed(self, change: Callable[[Model], None]) -> ExaminedModel:
        """Returns the same model with a change.

        Raises:
            FeatherlaneError: the model does not allow the change.
        """
        model = copy.copy(self.model)
        change(model)
        model.check_edits()
        return ExaminedModel(model)

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
        return Start(
            name="qpos0" if keyframe < 0 else self.label("keyframe", keyframe),
            keyframe=keyframe,
            data={name: np.array(getattr(data, name)) for name in KEPT},
            contact=data.contact.copy(),
            rows=self._rows_of_equalities(data),
            M=full_m(m, data),
        )

    def _rows_of_equalities(self, data: Data) -> dict[str, np.ndarray]:
        """Returns the rows of active equalities: Jacobian, equality, position error, (K, B, impedance, ...), 1 / R.

        They are those of the contact model convex, which has the columns `efc_*`; the other models have equal rows.
        """
        if self.model.neq and self.model.opt_contact_model != ContactModel.CONVEX:
            convex = copy.copy(self.model)
            convex.opt.contact_model = "convex"
            own, data = data, Data(convex)
            for name in ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat", "eq_active"):
                getattr(data, name)[...] = getattr(own, name)
            forward(convex, data)
        if self.model.neq and data.ne:  # rows of equalities come first
            return {name: getattr(data, f"efc_{name}")[: data.ne] for name in ROW}
        none = np.zeros(0)
        return {
            "J": np.zeros((0, self.model.nv)),
            "id": np.zeros(0, int),
            "pos": none,
            "KBIP": np.zeros((0, 4)),
            "D": none,
        }

    # ---- trials ------------------------------------------------------------------------------------------------------
    @property
    def trial_steps(self) -> int:
        """Returns the number of steps of a trial."""
        return trial_steps(self.model)

    @cached_property
    def trials(self) -> list[Trial]:
        """Runs a trial from each start."""
        return run_trials(self.model, [(start.name, start.keyframe) for start in self.starts])

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

    @cached_property
    def thickness(self) -> np.ndarray:
        """Computes (nbody,) half side of the thickest geom of the bodies welded together [m]; 0 without geoms."""
        m, result = self.model, np.zeros(self.model.nbody)
        np.maximum.at(result, m.body_weldid[m.geom_bodyid], self.half_width)
        return result[m.body_weldid]

    @cached_property
    def reach(self) -> np.ndarray:
        """Computes (nbody,) distance of the farthest point of geoms from the body's centre of mass [m] in qpos0."""
        m, d, result = self.model, self.start.data, np.zeros(self.model.nbody)
        for b in range(1, m.nbody):
            geoms = np.flatnonzero((m.body_weldid[m.geom_bodyid] == m.body_weldid[b]) & (m.geom_rbound > 0))
            apart = np.linalg.norm(d["geom_xpos"][geoms] - d["xipos"][b], axis=1) + m.geom_rbound[geoms]
            result[b] = apart.max(initial=0.0)
        return result

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
