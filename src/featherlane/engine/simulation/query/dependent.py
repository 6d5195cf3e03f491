"""Computes the fields of the model that depend on other fields, in each world: `Batch.set_const`.

All belong to the reference position qpos0, except `tendon_lengthspring`, which belongs to qpos_spring.  A model field
is constant while a stage runs, so the stage writes the new values to the record p, in fields with the same names.
`body_subtreemass` is an input here, because centres of mass depend on it.
Source: MuJoCo mj_setConst.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.transmission import transmission
from featherlane.engine.dynamics.body.com import com_pos
from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.dynamics.body.object_motion import motion_at
from featherlane.engine.dynamics.inertia.joint_space import armature, crb, factor_m, inertia_rows, solve_columns
from featherlane.engine.dynamics.sparse.half_solve import half_solve_column
from featherlane.engine.dynamics.sparse.tree_factor import reduce_chain
from featherlane.engine.dynamics.tendon.length import tendon
from featherlane.engine.lanes import Layout
from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.model import Model
from featherlane.engine.model.set_const import DEPENDENT_REALS
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import over_tiles
from featherlane.engine.spatial.types import Motion, Range, Vec3, Vec4

SIZES = {
    "nv": "dofs", "nbody": "bodies", "ngeom": "geoms", "ntendon": "tendons", "nout": "outputs of actuators",
    "neq": "equality constraints", "ncam": "cameras",
}  # fmt: skip
_scratch = Declare("dependent_fields", "scratch")
FLUID = "geom_fluid"
ELSEWHERE = ("body_subtreemass", FLUID)  # dependent fields that are not computed here
CONSTANTS = Layout(
    "Constants",
    (
        *(size(name, doc) for name, doc in SIZES.items()),
        *(replace(MODEL[n], stage="dependent_fields", role="scratch") for n in DEPENDENT_REALS if n not in ELSEWHERE),
        _scratch.real("column", "nv", "1", "a column x, for x^T M^-1 x"),
        _scratch.rows(Vec4, "panel", "nv", "1, m", "moments of four outputs of actuators, by DoF"),
        _scratch.real("scale", "nv", "1", "D^-1/2"),
        _scratch.rows(Motion, "jac", "nv", "1, m", "Jacobian of a body's centre of mass, by DoF that moves the body"),
        _scratch.real("extent", "nbody", "m", "length associated with each body"),
    ),
)
SMALLEST = 1e-5  # of a body's length [m]


# ---- inertia ---------------------------------------------------------------------------------------------------------
@kernel
def reference_inertia(m, d, p):
    """Computes M in qpos0, its factor, and dof_M0: M's diagonal without the armature of tendons.

    Rows of simple DoFs have M_ii = dof_M0[i] only, which is computed here; others are those of `crb`.
    """
    crb(m, d)
    for i in range(m.nv):
        b, S = m.dof_bodyid[i], d.cdof[i]
        I = d.crb[b] if m.body_lastchild[b] > 0 else d.cinert[b]
        p.dof_M0[i] = dot(S, I @ S) + armature(m, i)
        if m.dof_simplenum[i] > 0:
            d.M[m.M_rowadr[i]] = p.dof_M0[i]
    factor_m(m, d)


@kernel
def chain_length(m, i):
    """Returns how many DoFs move with DoF i: its ancestors and itself; simple DoFs have only those of their body."""
    return m.M_rownnz[i] if m.dof_simplenum[i] == 0 else i + 1 - m.body_dofadr[m.dof_bodyid[i]]


@kernel
def chain_dof(m, i, n, p):
    """Returns the p-th of the n DoFs that move with DoF i, ascending; those of a simple body are successive."""
    return m.M_colind[m.M_rowadr[i] + p] if m.dof_simplenum[i] == 0 else i + 1 - n + p


@kernel
def body_inverse_weight(m, d, p, b):
    """Returns the mean diagonal of J M^-1 J^T at the centre of mass of a body: of its linear and its angular part.

    Only the columns of DoFs that move the body are computed.
    """
    last = m.body_lastdof[b]
    n = chain_length(m, last)
    for k in range(n):
        i = chain_dof(m, last, n, k)
        p.jac[k] = motion_at(m, d, d.cdof[i], m.dof_bodyid[i], d.xipos[b])
    reduce_chain(inertia_rows(m), L=d.qLD, x=p.jac, i=last)
    linear, angular = 0.0, 0.0
    for k in range(n):
        inverse, J = d.qLDiagInv[chain_dof(m, last, n, k)], p.jac[k]
        linear = fma(inverse, dot(J.linear, J.linear), linear)
        angular = fma(inverse, dot(J.angular, J.angular), angular)
    return linear / 3.0, angular / 3.0


@kernel
def store_body_weights(m, d, p):
    """body_invweight0 <- inverse weights of the bodies; of a simple body on slides from its mass."""
    for b in range(m.nbody):
        if m.body_lastdof[b] < 0:  # fixed, or a mocap body
            p.body_invweight0[b] = (0.0, 0.0)
        elif m.body_simple[b] == 2:
            p.body_invweight0[b] = (1.0 / fmax(m.body_mass[b], MINVAL), 0.0)
        else:
            p.body_invweight0[b] = body_inverse_weight(m, d, p, b)


@kernel
def mean_dof_weight(m, d, p, first, count):
    """Returns the mean of (M^-1)_ii = |D^-1/2 L^-T e_i|^2 of `count` DoFs i from `first` on."""
    total = 0.0
    for i in range(first, first + count):
        n = m.M_rownnz[i]
        clear(p.column, n)
        p.column[n - 1] = 1.0
        reduce_chain(inertia_rows(m), L=d.qLD, x=p.column, i=i)
        weight = 0.0
        for k in range(n):
            y = p.column[k] * p.scale[m.M_colind[m.M_rowadr[i] + k]]
            weight = fma(y, y, weight)
        total = total + weight
    return total / count


@kernel
def store_dof_weights(m, d, p):
    """dof_invweight0 <- inverse weights: the translations of a joint share their mean, as do its rotations."""
    for i in range(m.nv):
        p.scale[i] = sqrt(d.qLDiagInv[i])
    for j in range(m.njnt):
        i, kind, b = m.jnt_dofadr[j], m.jnt_type[j], m.jnt_bodyid[j]
        if is_free_joint(kind):
            weight = mean_dof_weight(m, d, p, i, 3)
            for k in range(3):
                p.dof_invweight0[i + k] = weight
            i += 3
        if has_quaternion(kind):
            weight = mean_dof_weight(m, d, p, i, 3)
            for k in range(3):
                p.dof_invweight0[i + k] = weight
        elif m.body_simple[b] == 2:
            p.dof_invweight0[i] = 1.0 / fmax(m.body_mass[b], MINVAL)
        else:
            p.dof_invweight0[i] = mean_dof_weight(m, d, p, i, 1)


@kernel
def store_tendons(m, d, p):
    """tendon_length0 and tendon_invweight0 <- lengths, and J M^-1 J^T = |D^-1/2 L^-T J^T|^2 of their Jacobians."""
    for t in range(m.ntendon):
        clear(p.column, m.nv)
        for e in tendon_entries(m, t):
            p.column[m.ten_J_colind[e]] = d.ten_J[e]
        half_solve_column(inertia_rows(m), d.qLD, d.qLDiagInv, p.column)
        weight = 0.0
        for i in range(m.nv):
            weight = fma(p.column[i], p.column[i], weight)
        p.tendon_length0[t], p.tendon_invweight0[t] = d.ten_length[t], weight


@kernel
def store_accelerations(m, d, p, first):
    """actuator_acc0 <- |M^-1 moment^T| of the outputs from `first` on, whose moments are in the panel."""
    solve_columns(m, d.qLD, d.qLDiagInv, p.panel)
    total = zeros(4)
    for k in range(m.nv):
        x = p.panel[k]
        total = tuple(fma(x[c], x[c], total[c]) for c in range(4))
    for c in unrolled(range(4)):
        if first + c < m.nout:
            p.actuator_acc0[first + c] = sqrt(total[c])


@kernel
def store_outputs(m, d, p):
    """actuator_length0 and actuator_acc0 <- lengths, and |M^-1 moment^T|; contacts have no moment here."""
    for i in range(m.nactuator):
        for o in range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i]):
            c = o % 4
            if c == 0:
                for k in range(m.nv):
                    p.panel[k] = zeros(4)
            p.actuator_length0[o] = 0.0
            if m.actuator_trntype[i] != TRN_BODY:
                p.actuator_length0[o] = d.actuator_length[o]
                for e in moment_entries(m, o):
                    flat(p.panel)[4 * m.moment_colind[e] + c] = d.actuator_moment[e]
            if c == 3 or o == m.nout - 1:
                store_accelerations(m, d, p, first=o - c)


# ---- geometry --------------------------------------------------------------------------------------------------------
@kernel
def store_volumes(m, p):
    """geom_rbound and geom_aabb <- bounding spheres and boxes, from the sizes of primitive shapes."""
    for g in range(m.ngeom):
        kind, size = m.geom_type[g], m.geom_size[g]
        x, y, z = size
        radius, half, is_sized = m.geom_rbound[g], size, 1
        if kind == SPHERE:
            radius, half = x, Vec3(x, x, x)
        elif kind == CAPSULE:
            radius, half = x + y, Vec3(x, x, x + y)
        elif kind == CYLINDER:
            radius, half = sqrt(fma(x, x, y * y)), Vec3(x, x, y)
        elif kind == ELLIPSOID:
            radius = fmax(fmax(x, y), z)
        elif kind == BOX:
            radius = sqrt(dot(size, size))
        else:
            is_sized = 0
        p.geom_rbound[g], p.geom_aabb[g] = radius, m.geom_aabb[g]
        if is_sized:
            p.geom_aabb[g] = join(zeros(3), half)


@kernel
def store_lengths(m, d, p):
    """dof_length <- 1 of a translation; of a rotation the length of its body.

    This length is the largest distance from the body's centre of mass to a joint that it has in common with its parent
    or a child, or to the far side of the bounding sphere of one of its geoms.
    """
    clear(p.extent, m.nbody)
    for j in range(m.njnt):
        b = m.jnt_bodyid[j]
        for end in unrolled(range(2)):
            body = b if end == 0 else m.body_parentid[b]
            p.extent[body] = fmax(p.extent[body], norm3(d.xipos[body] - d.xanchor[j]))
    for g in range(m.ngeom):
        b, radius = m.geom_bodyid[g], p.geom_rbound[g]
        reach = where(radius > 0.0, radius + norm3(d.xipos[b] - d.geom_xpos[g]), 0.0)
        p.extent[b] = fmax(p.extent[b], reach)
    for i in range(m.nv):
        j = m.dof_jntid[i]
        kind, first = m.jnt_type[j], m.jnt_dofadr[j]
        p.dof_length[i] = 1.0
        if not is_translation(kind, i - first):
            p.dof_length[i] = fmax(p.extent[m.dof_bodyid[i]], SMALLEST)


@kernel
def store_cameras(m, d, p):
    """cam_* <- pose of each camera as if it were fixed to its body, relative to this body or a subtree's com."""
    for i in range(m.ncam):
        camera = m.camera[i]
        b, target = camera.bodyid, camera.targetbodyid
        offset = d.xmat[b] @ camera.pos
        p.cam_pos0[i] = offset
        p.cam_poscom0[i] = d.xpos[b] + offset - d.subtree_com[target if target >= 0 else b]
        p.cam_mat0[i] = (d.xquat[b] @ camera.quat).matrix


@kernel
def store_equalities(m, d, p):
    """eq_data <- the second anchor of a connect of bodies; the relative pose in qpos0 of a weld of bodies without one.

    eq_data[11] of a weld is nonzero if its source specifies no relative pose.  All other data are kept.
    """
    copy(p.eq_data, m.eq_data, 12 * m.neq)
    for e in range(m.neq):
        kind, of_bodies = m.eq_type[e], m.eq_objtype[e] == OBJ_BODY
        k, b1, b2 = 12 * e, m.eq_obj1id[e], m.eq_obj2id[e]
        if kind == EQ_CONNECT and of_bodies:
            anchor = d.xpos[b1] + d.xmat[b1] @ Vec3(m.eq_data[k : k + 3])
            p.eq_data[k + 3 : k + 6] = d.xmat[b2].T @ (anchor - d.xpos[b2])
        elif kind == EQ_WELD and of_bodies:
            anchor = d.xpos[b2] + d.xmat[b2] @ Vec3(m.eq_data[k : k + 3])
            in_first = d.xmat[b1].T @ (anchor - d.xpos[b1])
            is_missing = m.eq_data[k + 11] != 0.0
            p.eq_data[k + 3 : k + 6] = where(is_missing, in_first, Vec3(m.eq_data[k + 3 : k + 6]))
            q, q_now = Quat(m.eq_data[k + 6 : k + 10]), d.xquat[b1].T @ d.xquat[b2]
            p.eq_data[k + 6 : k + 10] = where(is_missing, q_now, q)


@kernel
def store_springs(m, d, p):
    """tendon_lengthspring <- the length in qpos_spring of tendons whose rest lengths are both -1."""
    for t in range(m.ntendon):
        rest, length = m.tendon_lengthspring[t], d.ten_length[t]
        is_missing = (rest[0] == -1.0) & (rest[1] == -1.0)
        p.tendon_lengthspring[t] = where(is_missing, Range(length, length), rest)


@kernel
def move_to(m, d, q):
    """Computes frames, centres of mass and tendons in the position q; mocap bodies are where the model places them."""
    copy(d.qpos, q, m.nq)
    for b in range(1, m.nbody):
        if m.body_mocapid[b] >= 0:
            d.mocap_pos[m.body_mocapid[b]], d.mocap_quat[m.body_mocapid[b]] = m.body_pos[b], m.body_quat[b]
    kinematics(m, d)
    frames(m, d)
    com_pos(m, d)
    tendon(m, d)


@stage(p=CONSTANTS)
def dependent_fields(m, d, p):
    """Computes the dependent fields in qpos0, and rest lengths of tendons in qpos_spring.

    Source: MuJoCo mj_setConst.
    Reads:  the model, body_subtreemass included.
    Writes: *; qpos, mocap_pos, mocap_quat; what `kinematics`, `frames`, `com_pos`, `tendon`, `crb`, `factor_m`
            and `transmission` write.
    Cost:   O((nbody + nv) depth^2 + nout nv depth).
    """
    move_to(m, d, m.qpos0)
    transmission(m, d)
    reference_inertia(m, d, p)
    store_body_weights(m, d, p)
    store_dof_weights(m, d, p)
    store_tendons(m, d, p)
    store_outputs(m, d, p)
    store_volumes(m, p)
    store_lengths(m, d, p)
    store_cameras(m, d, p)
    store_equalities(m, d, p)
    if m.ntendon > 0:
        move_to(m, d, m.qpos_spring)
    store_springs(m, d, p)


@over_tiles(p=CONSTANTS)
def dependent_tiles(m, d, b, p, thread, tile):
    """Computes the dependent fields of the worlds of a tile.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and what `dependent_fields` writes.
    """
    dependent_fields(m, d, p)
    write_records(b, thread, tile, s=0)


class DependentFields(Query):
    """Holds rows of the dependent fields.

    Args:
        model: the model.
        nworld: worlds.

    Attributes:
        rows: (nworld, n) the fields of each world, one after the other, and those in ELSEWHERE that others set.
        places: by field, the columns in `rows` and the shape.
    """

    loop, number, reads, is_kept = dependent_tiles, 1, ("mocap_pos", "mocap_quat"), True

    def __init__(self, model: Model, nworld: int):
        self.places: dict[str, tuple[slice, tuple[int, ...]]] = {}
        n = 0
        for name in (field.name for field in MODEL.stored if field.name in DEPENDENT_REALS and field.name != FLUID):
            own = model.__dict__[name]
            self.places[name] = slice(n, n + own.size), own.shape
            n += own.size
        self.rows = np.zeros((nworld, n))
        self.taken = {name: rows[:, None] for name, rows in self.by_field(self.rows).items() if name in CONSTANTS}

    def by_field(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Returns views (n, ...) of the fields of rows with the columns of `rows`."""
        return {name: rows[:, at].reshape(len(rows), *shape) for name, (at, shape) in self.places.items()}

    def answer(self) -> np.ndarray:
        return self.rows
