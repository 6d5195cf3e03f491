"""Lists the element of the model of each row of a world's LCP."""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.model.enums import (
    EQUALITY,
    FRICTION_DOF,
    FRICTION_TENDON,
    LIMIT_JOINT,
)
from featherlane.engine.simulation.world.data import Data


class RowElement(NamedTuple):
    """The element of a row of `Problem.from_data`.

    Attributes:
        law: `equality`, `loss` (dry friction), `limit`, `normal`, `friction`, `link`, or `motor` (motor or stop).
        kind: `equality`, `joint`, `tendon`, `link` or `contact`.
        id: number of the element; of a contact in `data.contact`.
        part: row of the element: 0 to 5 of an equality or link, 0 to 5 of a contact, dof of a joint; else 0.
        name: name of the element; of a contact the two geoms, `floor, foot`; empty without one.
    """

    law: str
    kind: str
    id: int
    part: int
    name: str


def _scalar_row(data: Data, kind: int, ident: int, part: int) -> RowElement:
    """Returns the element of a row of the constraint layer; ident: its equality, dof, joint or tendon."""
    model = data.model
    if kind == EQUALITY:
        return RowElement("equality", "equality", ident, part, model.names("equality")[ident])
    if kind == FRICTION_DOF:
        joint = int(model.dof_jntid[ident])
        return RowElement("loss", "joint", joint, ident - int(model.jnt_dofadr[joint]), model.names("joint")[joint])
    law, element = "loss" if kind == FRICTION_TENDON else "limit", "joint" if kind == LIMIT_JOINT else "tendon"
    return RowElement(law, element, ident, 0, model.names(element)[ident])


def row_elements(data: Data, n: int) -> list[RowElement]:
    """Returns the elements of the n rows of a world's LCP in order."""
    model, arrays = data.model, data.workspace.arrays
    first: dict[int, RowElement] = {}  # elements by the number of their first row
    equality, part = -1, 0
    for k in range(int(arrays["nrow"][0])):
        kind, ident, row = (int(arrays[name][k]) for name in ("row_type", "row_id", "row_lcprow"))
        part = part + 1 if kind == EQUALITY and ident == equality else 0
        equality = ident if kind == EQUALITY else -1
        if row >= 0:
            first[row] = _scalar_row(data, kind, ident, part)
    for k in range(model.nlink):
        for law, row in zip(("link", "motor"), arrays["link_lcprow"][2 * k : 2 * k + 2].ravel(), strict=True):
            if row >= 0:
                first[int(row)] = RowElement(law, "link", k, 0, model.names("link")[k])
    contact, geoms = data.contact, model.names("geom")
    for k, slot in enumerate(data.contact_slots()):
        row = int(arrays["con_lcprow"][slot])
        if data.con_D[slot] > 0.0 and row >= 0:
            name = ", ".join(geoms[g] if g >= 0 else "" for g in contact.geom[k])
            first[row] = RowElement("normal", "contact", k, 0, name)
    found: list[RowElement] = []
    for row in range(n):
        if row in first:
            found.append(first[row])
        else:  # a further row of the element before
            last = found[-1]
            law = "friction" if last.law == "normal" else last.law
            found.append(last._replace(law=law, part=last.part + 1))
    return found
