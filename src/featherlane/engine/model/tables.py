"""Checks the ranges of a model's integer tables, which kernels use as unchecked indices.

MuJoCo checks the references of a model that it reads, but a count near 2^31 overflows its sum, and it does not check
an MjModel that was edited in Python.  So the tables are checked once, when the model is built.
Source: MuJoCo, mj_validateReferences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.engine.model.joint import COORDINATES, DOFS
from featherlane.errors import ModelError

if TYPE_CHECKING:
    from featherlane.engine.model.model import Model

# first entry, number of entries, size of the indexed field
RUNS = tuple(
    tuple(line.split())
    for line in """
    body_jntadr body_jntnum njnt
    body_dofadr body_dofnum nv
    body_geomadr body_geomnum ngeom
    tree_bodyadr tree_bodynum nbody
    tree_dofadr tree_dofnum nv
    M_rowadr M_rownnz nC
    D_rowadr D_rownnz nD
    chain_rowadr chain_rownnz nchain
    block_dofadr block_dofnum nv
    hull_vertadr hull_vertnum nhullvert
    hull_polyadr hull_polynum nhullpoly
    hull_edgeadr hull_edgenum nhulledge
    hull_polyvertadr hull_polyvertnum nhullpolyvert
    hull_outlineadr hull_outlinenum nhulloutline
    hull_mapadr hull_mapnum nhullmap
    hull_flatadr hull_flatnum nhullflat
    tendon_adr tendon_num nwrap
    ten_J_rowadr ten_J_rownnz nJten
    actuator_ctrladr actuator_ctrlnum nu
    actuator_outadr actuator_outnum nout
    actuator_actadr actuator_actnum na
    moment_rowadr moment_rownnz nmoment
    sensor_adr sensor_dim nsensordata""".strip().splitlines()
)

# size, least value, fields whose values are below the size
IDS = (
    ("nbody", 0, "body_parentid body_rootid body_weldid jnt_bodyid dof_bodyid geom_bodyid site_bodyid cam_bodyid"),
    ("nbody", 0, "link_body group_body"),
    ("nbody", -1, "body_lastchild cam_targetbodyid"),
    ("nmocap", -1, "body_mocapid"),
    ("ntree", -1, "body_treeid tendon_treeid"),
    ("ntree", 0, "dof_treeid"),
    ("njnt", 0, "dof_jntid"),
    ("nv", -1, "dof_parentid body_lastdof"),
    ("nv", 0, "M_colind D_colind chain_colind ten_J_colind moment_colind"),
    ("nblock", 0, "dof_blockid"),
    ("nblock", -1, "block_parentid"),
    ("ngeom", 0, "pair_geom1 pair_geom2 cand_geom1 cand_geom2 collide_geom crowd_geom named_geom step_geom"),
    ("npair", -1, "cand_pair"),
    ("ncand", 0, "group_first"),
    ("nsite", 0, "step_site"),
    ("nsite", -1, "wrap_sideid"),
    ("nmesh", -1, "site_dataid"),
    ("nactuator", -2, "jnt_actuatorid tendon_actuatorid"),
    ("nplastic", -1, "jnt_plasticadr tendon_plasticadr"),
    ("nhistory", -1, "actuator_historyadr sensor_historyadr"),
)


def check_tables(model: Model) -> None:
    """Raises an error for tables with indices out of range.

    Raises:
        ModelError: with the table, the position, the given value and the allowed values.
    """
    own, sizes = model.__dict__, model.size_values()
    for size, least, names in IDS:
        for name in names.split():
            table = np.asarray(own[name]).ravel()
            _refuse(name, table, (table < least) | (table >= sizes[size]), f"{least} to {sizes[size] - 1}")
    if not ((model.jnt_type >= 0) & (model.jnt_type < len(DOFS))).all():
        raise ModelError(f"jnt_type: got {model.jnt_type.max()}, allowed are 0 to {len(DOFS) - 1}")
    per_joint = np.array(COORDINATES)[model.jnt_type], np.array(DOFS)[model.jnt_type]
    runs = [(adr, own[adr], own[number], size) for adr, number, size in RUNS]
    runs += [
        ("jnt_qposadr", own["jnt_qposadr"], per_joint[0], "nq"),
        ("jnt_dofadr", own["jnt_dofadr"], per_joint[1], "nv"),
    ]
    runs += [("hfield_adr", own["hfield_adr"], own["hfield_nrow"].astype(np.int64) * own["hfield_ncol"], "nhfielddata")]
    for name, start, number, size in runs:
        start, number = start.astype(np.int64), number.astype(np.int64)
        wrong = (number < 0) | ((number > 0) & ((start < 0) | (start + number > sizes[size])))
        _refuse(name, start, wrong, f"entries below {size} = {sizes[size]}")


def _refuse(name: str, table: np.ndarray, wrong: np.ndarray, allowed: str) -> None:
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ModelError(f"{name}[{at}]: got {table[at]}, allowed are {allowed}")
