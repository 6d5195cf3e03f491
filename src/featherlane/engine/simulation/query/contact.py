"""Lists contacts and forces of equalities in the worlds of a batch: checks arguments and shapes results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.collision.collision import collision
from featherlane.engine.collision.motion import sweeping
from featherlane.engine.dynamics.body.com import com_pos, com_vel
from featherlane.engine.dynamics.body.kinematics import collision_frames, kinematics
from featherlane.engine.lanes import Field, Layout
from featherlane.engine.lanes.record import address
from featherlane.engine.model.arguments import several_of
from featherlane.engine.model.model import Model
from featherlane.engine.sensor.contact import CONDATA_GEOM, Selection, write_world_contacts
from featherlane.engine.simulation.query.objects import Object, object_of
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.step.part import SOLVE, rows_and_forces
from featherlane.engine.simulation.step.tile_parts import by_halves
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import over_tiles
from featherlane.errors import ModelError

REDUCTIONS = {"none": REDUCE_NONE, "mindist": REDUCE_MINDIST, "maxforce": REDUCE_MAXFORCE, "netforce": REDUCE_NETFORCE}
BY_FORCE = (REDUCE_MAXFORCE, REDUCE_NETFORCE)
# outputs in the order in which kernels write them: bit, numbers of a contact
OUTPUTS = {
    "force": (CONDATA_FORCE, 3),
    "torque": (CONDATA_TORQUE, 3),
    "dist": (CONDATA_DIST, 1),
    "pos": (CONDATA_POS, 3),
    "normal": (CONDATA_NORMAL, 3),
    "tangent": (CONDATA_TANGENT, 3),
    "linvel": (CONDATA_LINVEL, 3),
    "angvel": (CONDATA_ANGVEL, 3),
    "geom": (CONDATA_GEOM, 2),
}
FORCES = {"force", "torque"}  # outputs that need the solver
MOTION = CONDATA_LINVEL | CONDATA_ANGVEL  # fields that need velocities of bodies
TANGENTS = {"tangent", "linvel", "angvel"}  # outputs along the tangents, which the rows of the LCP model may turn
SIDES = {"geom": ("geom", OBJ_GEOM), "body": ("body", OBJ_BODY), "subtree": ("body", OBJ_XBODY)}
Side = Object | None  # a body, a kind of `SIDES` and a name or number, or None for any
MARGIN = 4  # contacts beyond the present number for which a first call has memory


class ContactLists(NamedTuple):
    """Holds contacts of n worlds, padded to the same number k; None for what was not requested.

    With a list of f selections, all arrays have the shape (n, f, ...).  Forces and velocities are in the axes of the
    contact: its normal and two tangents.

    Attributes:
        found: (n,) int32, number of matching contacts; only the first k are listed.
        force: (n, k, 3) [N] that acts on the second object.
        torque: (n, k, 3) [N m].
        dist: (n, k) [m], negative for penetration.
        pos: (n, k, 3) [m] in world axes.
        normal: (n, k, 3) from the first to the second object, in world axes.
        tangent: (n, k, 3) first tangent, in world axes.
        linvel: (n, k, 3) [m/s] of the second object relative to the first.
        angvel: (n, k, 3) [rad/s] likewise.
        geom: (n, k, 2) int32, geoms of the first and the second object; -1: none.
    """

    found: np.ndarray
    force: np.ndarray | None
    torque: np.ndarray | None
    dist: np.ndarray | None
    pos: np.ndarray | None
    normal: np.ndarray | None
    tangent: np.ndarray | None
    linvel: np.ndarray | None
    angvel: np.ndarray | None
    geom: np.ndarray | None


# ---- kernels ---------------------------------------------------------------------------------------------------------
CONTACTS = Layout(
    "ContactLists",
    (
        Field("nselection", "size", doc="selections"),
        Field("nlisted", "size", doc="numbers of a selection's list"),
        Field("fields", "size", doc="bits of CONDATA_*"),
        Field("reduce", "size", doc="REDUCE_*"),
        Field("selections", "size", doc="address of kinds and indices of the two objects of each selection"),
        Field("listed", "real", ("nselection", "nlisted"), "", "fields of each contact", "contact_tiles", "scratch"),
        Field("nequality", "size", doc="equalities whose forces are written"),
        Field("equalities", "size", doc="address of their numbers"),
        Field("eq_force", "real", ("nequality", 6), "N, N m", "forces of their rows", "contact_tiles", "scratch"),
    ),
)
NOTHING = {f.name: 0 for f in CONTACTS.fields if f.kind == "size"}  # no selection and no equality


@kernel
def list_contacts(m, d, b, p):
    """Writes p.listed, the lists of the active worlds, whose contacts are in the tile.

    p: the record CONTACTS, with nselection selections of contacts, nlisted numbers per list.
    """
    active = d.active[0] > 0.0
    for k in range(p.nselection):
        # four numbers per selection, in memory at p.selections: kind and index of the first, then the second object
        numbers = tuple(whole(read_lane(doubles(b, p.selections), 4 * k + i, 0)) for i in range(4))
        selection = Selection(numbers[0], numbers[1], numbers[2], numbers[3], fields=p.fields, reduce=p.reduce)
        for lane in range(width(d)):
            if has(active, lane):
                # writes p.listed, from nlisted k on
                write_world_contacts(m, d, selection, p.listed, (p.nlisted * k, p.nlisted), lane)


@kernel
def list_equality_forces(m, d, b, p):
    """Writes p.eq_force, the forces of the rows of the chosen equalities, zeros where an equality has no row."""
    for i in range(p.nequality):
        e = whole(read_lane(doubles(b, p.equalities), i, 0))  # equality i of the query is the model's equality e
        for r in range(6):
            p.eq_force[i, r] = 0.0
        r = 0  # number of e's rows so far
        for k in range(d.nrow[0]):
            row = d.row[k]
            if row.type == EQUALITY and row.id == e:
                p.eq_force[i, r] = where(row.present != 0.0, row.force, 0.0)
                r += 1


@by_halves
def list_parts(m, d, records):
    """Solves one part of a tile again, and writes its lists if it fits; records: (b, p), transfers and CONTACTS."""
    b, p = records
    collision(m, d)
    if d.con_overflow[0] == 0:
        rows_and_forces(m, d, SOLVE)  # sets con_overflow if the rows do not fit
    if d.con_overflow[0] == 0:
        list_contacts(m, d, b, p)
        list_equality_forces(m, d, b, p)


@over_tiles(p=CONTACTS)
def contact_tiles(m, d, b, p, thread, tile):
    """Computes forward dynamics of the worlds of a tile; lists their contacts and the forces of equalities.

    Reads:  the rows that the transfers of b bring in; the memory at p.selections and p.equalities.
    Writes: those that they take back; active, recall_address, tree_settled, lane_active, warning, found_bad,
            found_pair, qfrc_constraint, dof_touched, listed, eq_force, and all else of this thread's workspace.
    """
    d.lane_active[0] = 0.0
    forward(m, d)
    # `forward` solves a tile in parts, and sets lane_active, if the contacts of all worlds do not fit into its slots
    if any_(d.lane_active[0] > 0.0):
        list_parts(m, d, (b, p))
    else:
        list_contacts(m, d, b, p)
        list_equality_forces(m, d, b, p)
    write_records(b, thread, tile, s=0)


@by_halves
def list_parts_of_positions(m, d, records):
    """Finds the contacts of one part of a tile again, and lists them if they fit; records: as for `list_parts`."""
    b, p = records
    collision(m, d)
    if d.con_overflow[0] == 0:
        list_contacts(m, d, b, p)


@over_tiles(p=CONTACTS)
def position_contact_tiles(m, d, b, p, thread, tile):
    """Lists the contacts of the worlds of a tile without their forces: without constraint rows and accelerations.

    The listed fields have the bits of `contact_tiles`.
    Reads:  the rows that the transfers of b bring in; the memory at p.selections.
    Writes: those that they take back; active, recall_address, tree_settled, lane_active, warning, listed, and all else
            of this thread's workspace.
    """
    kinematics(m, d)
    collision_frames(m, d)
    if p.fields & MOTION or sweeping(m):
        com_pos(m, d)  # cdof
        com_vel(m, d)
    collision(m, d)
    if d.con_overflow[0]:
        list_parts_of_positions(m, d, (b, p))
    else:
        list_contacts(m, d, b, p)
    write_records(b, thread, tile, s=0)


# ---- arguments -------------------------------------------------------------------------------------------------------
def side_of(model: Model, name: str, given: Side) -> tuple[int, int]:
    """Returns kind, as mjtObj, and index of one side of contacts; (0, -1) for any."""
    return (OBJ_UNKNOWN, -1) if given is None else object_of(model, given, name, SIDES, OBJ_BODY)


def selections_of(model: Model, first: Any, second: Any) -> tuple[np.ndarray, bool]:
    """Returns (f, 4) kinds and indices of the objects of f selections, and whether a single one is given."""
    sides, single = {"first": first, "second": second}, not isinstance(first, list) and not isinstance(second, list)
    listed = {name: given if isinstance(given, list) else [given] for name, given in sides.items()}
    n = max(map(len, listed.values()))
    rows = np.empty((n, 4))
    for k, (name, given) in enumerate(listed.items()):
        if len(given) not in (1, n) or not given:
            sizes = " and ".join(str(len(g)) for g in listed.values())
            raise ModelError(f"first, second: got {sizes} objects, allowed are lists of one length, or one object")
        rows[:, 2 * k : 2 * k + 2] = [side_of(model, name, one) for one in given]
    return rows, single


def contact_outputs(output: str | Sequence[str]) -> tuple[str, ...]:
    """Returns names of outputs, checked, in the order in which kernels write them."""
    names = several_of("output", output, ("found", *OUTPUTS))
    return tuple(name for name in OUTPUTS if name in names)


def needs_forces(model: Model, outputs: Sequence[str], reduce: int) -> bool:
    """Returns whether a list of contacts needs forward dynamics, which also wake trees under the flag `sleep`."""
    listed, by_force = FORCES.union(TANGENTS if model.opt.contact_model == "lcp" else ()), reduce in BY_FORCE
    return by_force or bool(listed.intersection(outputs)) or model.opt.enableflags & ENABLE_SLEEP != 0


class ContactQuery(Query):
    """Holds selections of contacts as kernels take them, and the rows of their lists.

    The answer is the number of contacts (n, f), and the outputs by name, (n, f, num, ...).

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        selections: (f, 4) of `selections_of`.
        outputs: of `contact_outputs`.
        num: contacts to list of each selection.
        reduce: of `REDUCTIONS`.
    """

    number = 1
    reads = (*DATA.that("lasts"), *DATA.of("count"))

    def __init__(self, model: Model, nworld: int, dtype, selections, outputs: Sequence[str], num: int, reduce: int):
        self.loop = contact_tiles if needs_forces(model, outputs, reduce) else position_contact_tiles
        self.selections, self.outputs, self.num = np.ascontiguousarray(selections), outputs, num
        fields, self.size = CONDATA_FOUND, 1
        for name in outputs:
            fields, self.size = fields | OUTPUTS[name][0], self.size + OUTPUTS[name][1]
        self.sizes = NOTHING | {
            "nselection": len(selections),
            "nlisted": num * self.size,
            "fields": fields,
            "reduce": reduce,
            "selections": address(self.selections),
        }
        self.taken = {"listed": np.zeros((nworld, 1, len(selections), num * self.size), dtype)}

    def answer(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        n, _, f, _ = self.taken["listed"].shape
        listed = self.taken["listed"].reshape(n, f, self.num, self.size)
        found, parts, at = listed[:, :, 0, 0].astype(np.int32), {}, 1
        for name in self.outputs:
            width = OUTPUTS[name][1]
            parts[name] = listed[..., at] if width == 1 else listed[..., at : at + width]
            at += width
        if "geom" in parts:
            listed = np.arange(self.num) < found[..., None]
            parts["geom"] = np.where(listed[..., None], parts["geom"], -1).astype(np.int32)
        return found, parts
