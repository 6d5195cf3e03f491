"""Given contacts of a distributed batch: checked and completed here, stored by the workers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherlane.distributed.calls import Calls
from featherlane.model.in_use import DECIDING, in_use
from featherlane.model.model import peek
from featherlane.simulation.world.contacts import Contacts, takes_contacts
from featherlane.simulation.world.user_contacts import given_fields


class Given(Calls):
    """Sends given contacts to workers."""

    @takes_contacts
    def give_contacts(
        self,
        contacts: Contacts,
        *,
        replace: ArrayLike = False,
        count: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> None:
        """Gives each world user-defined contacts; arguments and errors are those of `featherlane.Batch`."""
        chosen = self._ids(ids)

        def values(name: str) -> np.ndarray:
            rows = self._fields.rows(name)
            return peek(self.model, name)[None] if rows is None else rows[chosen]

        own = {name: own for name in DECIDING if (own := self._fields.rows(name)) is not None}
        adhesive = in_use(self.model, own)["flg_adhesion"] if own else self.model.flg_adhesion
        rows = given_fields(self.model, self._one.ngiven, len(chosen), values, adhesive, replace, count, contacts)
        rows = {name: value.astype(self.dtype) for name, value in rows.items()}
        names = tuple(rows)
        self._post_parts(chosen, lambda part: [("given", (names, part.ids, *(rows[name][part.at] for name in names)))])

    def clear_given_contacts(self, ids: ArrayLike | None = None) -> None:
        """Removes the given contacts of these worlds and enables contact detection."""
        if self._one.ngiven:
            self._post_parts(self._ids(ids), lambda part: [("clear_given_contacts", (part.ids,))])
