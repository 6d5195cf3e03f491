"""Given contacts of a batch that is spread over workers: checked and completed here, kept where the worlds are."""

from __future__ import annotations

import numpy as np

from featherlane.distributed.calls import Calls
from featherlane.model.set_const import DECIDING, in_use
from featherlane.simulation.world.contacts import Contacts, takes_contacts
from featherlane.simulation.world.given import given_fields


class Given(Calls):
    """How contacts come to workers."""

    @takes_contacts
    def give_contacts(self, contacts: Contacts, *, replace=False, count=None, ids=None) -> None:
        """Give each world contacts of its own, as `featherlane.Batch.give_contacts` does.

        Args:
            contacts: a `featherlane.Contacts`; or what it is made of, with the same names.  Arrays broadcast to
                (nworld, n, ...).
            replace: () or (nworld,): no contacts are detected in this world.
            count: (nworld,) a world's contacts are its first `count`; None: all n.
            ids: the worlds, by number or as a mask, whose contacts are given; None for all.

        Raises:
            ModelError: as `featherlane.Batch.give_contacts`; room is made by `Batch(..., given_contacts=n)`.  Nothing
                is given then.
        """
        chosen = self._ids(ids)

        def values(name: str) -> np.ndarray:
            rows = self._fields.rows(name)
            return self.model.__dict__[name][None] if rows is None else rows[chosen]

        own = {name: own for name in DECIDING if (own := self._fields.rows(name)) is not None}
        adhesive = in_use(self.model, own)["flg_adhesion"] if own else self.model.flg_adhesion
        rows = given_fields(self.model, self._one.ngiven, len(chosen), values, adhesive, replace, count, contacts)
        rows = {name: value.astype(self.dtype) for name, value in rows.items()}
        names = tuple(rows)
        self._post_parts(chosen, lambda part: [("given", (names, part.ids, *(rows[name][part.at] for name in names)))])

    def clear_given_contacts(self, ids=None) -> None:
        """No given contacts in these worlds, and contacts are detected."""
        if self._one.ngiven:
            self._post_parts(self._ids(ids), lambda part: [("clear_given_contacts", (part.ids,))])
