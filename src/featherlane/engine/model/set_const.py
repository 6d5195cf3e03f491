"""Recomputes fields that depend on other fields by MuJoCo: inverse weights, subtree masses, bounding volumes.

MuJoCo's mj_setConst computes them; its results are copied back.  The list contains the fields that it writes
(MJSETCONST_ARRAYS in mjxmacro.h), except those that the layout lacks.  Statistics are not in it: only MuJoCo's
compiler sets them.

A larger geom only collides correctly if its bounding sphere and box are updated: after an edit of `geom_size`,
set_const computes `geom_rbound` and `geom_aabb`.  Masses and inertias do not change.  A mesh has no sizes: its
`geom_size` only reports its extent, and editing it has no effect.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane.engine.model.fields import DEPENDENT_INTS, EDITABLE_INTS, MODEL
from featherlane.engine.model.in_use import DECIDING, in_use
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.model.mujoco_arrays import is_mujocos, read_field, write_field
from featherlane.engine.model.mujoco_versions import update_bounding_volumes
from featherlane.engine.model.reader import heard
from featherlane.errors import ModelError, near

DEPENDENT_REALS = tuple(
    "body_subtreemass body_invweight0 dof_length dof_invweight0 dof_M0 actuator_acc0 actuator_length0 geom_rbound"
    " geom_aabb eq_data geom_fluid tendon_length0 tendon_invweight0 tendon_lengthspring cam_pos0 cam_poscom0"
    " cam_mat0".split()
)
# partly user-defined: the second anchor and the relative pose are derived from the rest, as is the added mass; -1
# stands for a tendon's length
BOTH = frozenset(("eq_data", "geom_fluid", "tendon_lengthspring"))
# of meshes they are compiled, and differ by variant
VOLUMES = frozenset(("geom_rbound", "geom_aabb"))


def _run(mj_model, mj_data) -> None:
    """Runs MuJoCo's mj_setConst; converts its failures to ModelError."""
    import mujoco

    try:
        with heard():
            mujoco.mj_setConst(mj_model, mj_data)
    except mujoco.FatalError as error:
        raise ModelError(f"set_const: {error}") from None


def recompile_constants(model: Model) -> None:
    """Recomputes the fields that depend on edited ones by MuJoCo; see `set_const` in simulation/batch/constants.py."""
    import mujoco

    check_model(model)
    model.check_edits()
    sizes = np.array(read_field(model.mj_model, "geom_size"))
    model.write_to(model.mj_model)
    _run(model.mj_model, mujoco.MjData(model.mj_model))
    update_bounding_volumes(model.mj_model, sizes)
    model.take_constants({name: read_field(model.mj_model, name) for name in DEPENDENT_REALS + DEPENDENT_INTS})


class Constants:
    """Computes dependent fields for many sets of overrides of one model; keeps its MjModel and MjData between calls.

    An MjModel is copied once, because it holds meshes and textures.  Later calls copy the fields that were edited.
    """

    def __init__(self, model: Model):
        import mujoco

        self._source = model.mj_model
        self._mj_model = copy.copy(self._source)
        self._mj_data = mujoco.MjData(self._mj_model)
        self._seen: tuple[Any, ...] = ()
        self._lock = threading.Lock()  # batches of one model share it
        self._refresh(model)

    def is_of(self, model: Model) -> bool:
        """Returns whether this is a copy of the model's MjModel."""
        return self._source is model.mj_model

    def _refresh(self, model: Model) -> None:
        """Copies edits of the model since the last call."""
        own = model.__dict__
        seen = own["revision"], own["real_buffer"].tobytes(), *(own[name].tobytes() for name in sorted(EDITABLE_INTS))
        if seen == self._seen:
            return
        model.write_to(self._mj_model)
        self._base = {f.name: own[f.name].copy() for f in MODEL.fields if f.kind == "real"}
        self._changed, self._seen = set(DEPENDENT_REALS), seen
        # sizes for which the bounding volumes were computed
        self._sizes = np.array(read_field(self._source, "geom_size"))

    def of(self, model: Model, values: Mapping[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
        """Returns the dependent fields of n worlds of the model, (n, ...) by name.

        Args:
            values: real fields that differ by world, (n, ...) by name; equal worlds are computed once.
        """
        found: dict[bytes, dict[str, np.ndarray]] = {}
        with self._lock:
            self._refresh(model)
            keys = [b"".join(rows[w].tobytes() for rows in values.values()) for w in range(n)]
            for w, key in enumerate(keys):
                if key not in found:
                    found[key] = self({name: rows[w] for name, rows in values.items()})
        return {name: np.stack([found[key][name] for key in keys]) for name in DEPENDENT_REALS}

    def __call__(self, overrides: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the dependent fields of a world.

        Args:
            overrides: real fields of this world by name, each with the field's shape.
        """
        for name in overrides:
            if name not in self._base:
                raise ModelError(f"set_const: {name!r} is not a real field of the model{near(name, self._base)}")
        overrides = {name: value for name, value in overrides.items() if is_mujocos(MODEL[name])}
        for name in sorted(self._changed - set(overrides)):
            write_field(self._mj_model, name, self._base[name])
        for name, value in overrides.items():
            write_field(self._mj_model, name, value)
        for kind in ("body", "geom", "site"):  # a result does not depend on which worlds were computed before
            getattr(self._mj_model, f"{kind}_sameframe")[:] = 0
        self._changed = set(overrides) | set(DEPENDENT_REALS)
        _run(self._mj_model, self._mj_data)
        update_bounding_volumes(self._mj_model, self._sizes)
        return {
            name: np.array(read_field(self._mj_model, name), dtype=np.float64).reshape(self._base[name].shape)
            for name in DEPENDENT_REALS
        }


def model_of_world(model: Model, fields: Mapping[str, np.ndarray]) -> Model:
    """Returns a copy of a model with the fields of one world."""
    model = model.world_copy()
    for name, value in fields.items():
        model.__dict__[name][...] = value
    if not fields.keys().isdisjoint(DECIDING):
        model.take_constants(in_use(model))
    return model
