"""Defines `Contacts`: user-defined contacts, the argument of `Data.give_contacts` and `Batch.give_contacts`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from numpy.typing import ArrayLike


@dataclass(eq=False)
class Contacts:
    """Holds the parameters of n contacts for `Data.give_contacts` and `Batch.give_contacts`, which check them.

        contacts = fl.Contacts(dist, pos, frame, geom=geom, friction=friction)
        data.give_contacts(contacts)

    All arrays broadcast over the contacts, in a batch to (nworld, n, ...), so (n, ...) is the same in all worlds.  None
    selects the value that MuJoCo would mix from the two geoms at the time of the call (ignoring explicit pairs), or
    MuJoCo's default if bodies are given.

    Attributes:
        dist: (n,) [m] distance, negative for penetration.
        pos: (n, 3) [m] position, world axes.
        frame: (n, 9) rows normal, tangent, tangent, as in `data.contact.frame`; or (n, 3) normals of any length.  The
            normal points from the first to the second geom or body.
        geom: (n, 2) ids of the touching geoms.
        body: (n, 2) ids of the touching bodies, in place of `geom`.
        dim: (n,) 1, 3, 4 or 6.
        friction: (n, 5) two sliding, spinning, two rolling.
        solref: (n, 2) reference of the normal row.
        solreffriction: (n, 2) elliptic cones: reference of the friction rows; zeros: as the normal's.
        solimp: (n, 5) impedance.
        includemargin: (n,) [m] the contact is active if dist < includemargin.
        adhesion: (n,) [N] largest pulling force of the contact; if it is not 0, the contact is active beyond its
            margin, too, without friction.
        erp, cfm: (n,) [1, m/(s N)] softness of the normal row; negative: the option's.  These and the following
            attributes are used only by the contact model `lcp`, restitution by `coulomb`, too.
        restitution, restitution_vel: (n,) [1, m/s] ratio of separation speed to approach speed, and the speed above
            which it applies.
        slip: (n, 2) [m/(s N)] compliance of the two rows of sliding friction.
        frictionforce: (n,) 1: `friction` bounds sliding friction as a force [N], not as a coefficient.
        motion: (n, 3) [m/s] target velocity of the second body relative to the first, along normal and tangents, as
            of a conveyor belt.
    """

    dist: ArrayLike
    pos: ArrayLike
    frame: ArrayLike
    _: KW_ONLY
    geom: ArrayLike | None = None
    body: ArrayLike | None = None
    dim: ArrayLike | None = None
    friction: ArrayLike | None = None
    solref: ArrayLike | None = None
    solreffriction: ArrayLike | None = None
    solimp: ArrayLike | None = None
    includemargin: ArrayLike | None = None
    adhesion: ArrayLike | None = None
    erp: ArrayLike | None = None
    cfm: ArrayLike | None = None
    restitution: ArrayLike | None = None
    restitution_vel: ArrayLike | None = None
    slip: ArrayLike | None = None
    frictionforce: ArrayLike | None = None
    motion: ArrayLike | None = None


def takes_contacts(method: Callable[..., None]) -> Callable[..., None]:
    """Decorates a method `(self, contacts, *, ...)`: in place of `contacts` it also takes its fields as arguments."""
    this, _, *own = inspect.signature(method).parameters.values()
    names = {p.name for p in own}

    @functools.wraps(method)
    def taking(self, *given, **named):
        if given and isinstance(given[0], Contacts):
            method(self, *given, **named)
        else:
            about = {name: named.pop(name) for name in names & named.keys()}
            method(self, Contacts(*given, **named), **about)

    parameters = [this, *inspect.signature(Contacts).parameters.values(), *own]
    taking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return taking
