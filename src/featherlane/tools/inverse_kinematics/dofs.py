"""Defines which DoFs move in inverse kinematics, and which equality constraints depend on them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from featherlane.engine.constraint.equality import fastened_body
from featherlane.engine.constraint.tendon import equality_dofs
from featherlane.engine.model.enums import DISABLE_CONSTRAINT, DISABLE_EQUALITY, EQ_JOINT, EQ_TENDON
from featherlane.engine.model.joint import DOFS
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of
from featherlane.errors import ModelError


def equalities_of(model: Model) -> np.ndarray:
    """Returns the equality constraints that the options of the model do not disable."""
    off = model.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_EQUALITY)
    return np.arange(0 if off else model.neq)


class Dofs:
    """Holds the DoFs that move, and what depends on them.

    Args:
        model: the model.
        body: (ntarget,) bodies of the targets.
        active: numbers of the active equality constraints.
        dofs: numbers of DoFs, ascending; None: all that move a target, and those that constraints couple with
            them.

    Attributes:
        dof: (ndof,) the DoFs, ascending.
        joint: (njoint,) joints with these DoFs, ascending.
        equality: (nequality,) the active constraints that depend on these DoFs.
        tables: ints by field of the record.

    Raises:
        ModelError, UnknownNameError: as `ik` does.
    """

    def __init__(self, model: Model, body: np.ndarray, active: np.ndarray, dofs: np.ndarray | None):
        paths = [_path(model, b) for b in body.tolist()]
        moves = np.array([_moved(model, path) for path in paths])
        couples = np.array([_coupled(model, e) for e in active.tolist()]).reshape(len(active), model.nv)
        self.dof = _closure(moves, couples) if dofs is None else dofs
        if not moves[:, self.dof].any():
            what = "no dof" if not self.dof.size else "dofs that move none of them"
            raise ModelError(f"dofs: got {what}, allowed are those that move an object of the targets")
        depends = couples[:, self.dof].any(axis=1)
        self.equality = active[depends]
        paths += [_path(model, b) for e in self.equality.tolist() for b in _fastened(model, e)]
        joint_of_dof = np.repeat(np.arange(model.njnt), np.array(DOFS)[model.jnt_type])
        self.joint = np.unique(joint_of_dof[self.dof])
        self.tables = {
            "dof": self.dof,
            "dof_joint": joint_of_dof[self.dof],
            "joint": self.joint,
            "frame": np.array(sorted(set().union(*paths))),
            "equality": self.equality,
            "moves": np.concatenate([moves, couples[depends]])[:, self.dof].astype(np.int32),
        }


def _path(model: Model, b: int) -> set[int]:
    """Returns a body and its ancestors, without the world."""
    found = set()
    while b > 0:
        found.add(b)
        b = int(model.body_parentid[b])
    return found


def _moved(model: Model, path: set[int]) -> np.ndarray:
    """Returns 1 for the DoFs of the bodies of a path, (nv,)."""
    moves = np.zeros(model.nv, int)
    for b in path:
        first = int(model.body_dofadr[b])
        moves[first : first + int(model.body_dofnum[b])] = 1
    return moves


def _fastened(model: Model, e: int) -> list[int]:
    """Returns the two bodies of a connect or weld, none for other constraints."""
    return [] if model.eq_type[e] in (EQ_JOINT, EQ_TENDON) else [int(fastened_body(model, e, k)) for k in range(2)]


def _coupled(model: Model, e: int) -> np.ndarray:
    """Returns numbers (nv,) that are not 0 for the DoFs on which the error of constraint e depends."""
    if bodies := _fastened(model, e):
        first, second = (_moved(model, _path(model, b)) for b in bodies)
        return first - second
    couples = np.zeros(model.nv, int)
    if model.eq_type[e] == EQ_JOINT:
        couples[[model.jnt_dofadr[j] for j in (model.eq_obj1id[e], model.eq_obj2id[e]) if j >= 0]] = 1
    else:
        couples[list(equality_dofs(model, e))] = 1
    return couples


def _closure(moves: np.ndarray, couples: np.ndarray) -> np.ndarray:
    """Returns the DoFs that move a target, and all that constraints couple with them, ascending."""
    found, number = (moves != 0).any(axis=0), -1
    while number != found.sum():
        number = found.sum()
        found |= (couples[couples[:, found].any(axis=1)] != 0).any(axis=0)
    return np.flatnonzero(found)


def chosen_dofs(model: Model, dofs: Iterable[str | int]) -> np.ndarray:
    """Returns the numbers of DoFs given by names of joints or numbers of DoFs, ascending, each once."""
    allowed = f"are names of joints and numbers of dofs from 0 to {model.nv - 1}"
    names = [dofs] if isinstance(dofs, str) else dofs
    if not isinstance(names, Iterable):
        raise ModelError(f"dofs: got {type(dofs).__name__}, allowed {allowed}")
    found: set[int] = set()
    for x in names:
        if isinstance(x, str):
            j = index_of(model, "joint", x)
            first = int(model.jnt_dofadr[j])
            found.update(range(first, first + DOFS[model.jnt_type[j]]))
        elif isinstance(x, int | np.integer) and not isinstance(x, bool) and 0 <= x < model.nv:
            found.add(int(x))
        else:
            raise ModelError(f"dofs: got {x!r}, allowed {allowed}")
    return np.array(sorted(found), int)
