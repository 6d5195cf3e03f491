"""Defines `WorldFields`: the fields of a batch's worlds: state, outputs, model fields by world, given contacts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.assignment import assign, flag, is_mixed
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import NamedAccess
from featherlane.engine.model.variant import group_of, values_of
from featherlane.engine.simulation.batch.arrays import LASTING, ON_DEMAND, SLEEP_ROWS, STATE, WorldArrays, not_kept
from featherlane.engine.simulation.batch.expanded import Entries, Expanded, dependent
from featherlane.engine.simulation.batch.groups import GroupedWorlds
from featherlane.engine.simulation.batch.runner import Runner
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.contacts import Contacts, takes_contacts
from featherlane.engine.simulation.world.recordings import BINDABLE, WHOLE, check_bindable, integers
from featherlane.engine.simulation.world.user_contacts import given_fields
from featherlane.errors import ModelError, UnknownAttributeError, near, page


class WorldFields(GroupedWorlds, NamedAccess):
    """Gives access to the arrays of a batch's worlds by name."""

    layout = DATA
    world_axes = 1
    model: Model
    ngiven: int  # contacts that the caller may give to a world
    arrays: WorldArrays  # internal
    runner: Runner  # internal

    def __getattr__(self, name: str) -> Any:
        arrays = self.__dict__.get("arrays")
        if arrays is not None and name in WHOLE:
            return self._count(name)
        if arrays is not None and (name in arrays.rows or name in ON_DEMAND or name in SLEEP_ROWS):
            # stored as an ordinary attribute from now on, which is read twenty times as fast
            self.__dict__[name] = shown = DATA[name].public(arrays.lasting(name))
            return shown
        if name in BINDABLE:
            check_bindable(self.model, "bind", name)
            self._check_kept(name)
            return self._bind(name)
        if name == "failures":
            message = "batch has no failures: they are recorded with featherlane.Batch(..., record_failures=n)"
            raise UnknownAttributeError(message)
        raise UnknownAttributeError(f"batch has no attribute {name!r}{near(name, BINDABLE)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in STATE:
            assign(name, getattr(self, name), value, mixed=is_mixed(name))
        elif name in DATA or name in self.__dict__ or hasattr(type(self), name):
            raise UnknownAttributeError(
                f"{name} is computed and cannot be set, allowed are the state fields {', '.join(STATE)}"
            )
        else:
            raise UnknownAttributeError(f"batch has no field {name!r} to set{near(name, STATE)}")

    def __dir__(self):
        return sorted({*super().__dir__(), *BINDABLE})

    def bind(self, name: str) -> np.ndarray:
        check_bindable(self.model, "bind", name)
        if name in WHOLE and name in self.arrays.rows:
            view = DATA[name].public(self.arrays.rows[name]).view()
            view.flags.writeable = False
            return view
        if name in LASTING or name in self.arrays.rows:
            return getattr(self, name)
        return self._bind(name)

    def _bind(self, name: str) -> np.ndarray:
        """Returns a live array over an output."""
        array = self.arrays.output(name)
        if name in self.__dict__:
            return self.__dict__[name]
        view = DATA[name].public(array).view()
        view.flags.writeable = False
        # reading all sensors raises an error that names the unsupported ones; counts are read as integers
        if name != "sensordata" and name not in WHOLE:
            self.__dict__[name] = view
        return view

    def _count(self, name: str) -> np.ndarray:
        """Returns a count of each world, (nworld,) int64."""
        rows = self.arrays.rows.get(name)
        if rows is None:
            self._check_kept(name)
            rows = self.arrays.bound[name]
            if np.isnan(rows).any():
                raise not_kept(name)
        return integers(DATA[name].public(rows))

    def _check_kept(self, name: str) -> None:
        """Raises an error if calls do not keep the values of an output."""
        if name not in self.arrays.bound:
            raise not_kept(name)

    def writable(self, name: str) -> np.ndarray:
        """Returns a writable array of an output of the last call; written values last until the next call.

        Raises:
            ModelError: it is not bound.
        """
        getattr(self, name)
        return self.arrays.bound[name]

    def sensor_values(self, sensor: int) -> np.ndarray:
        """Returns `sensordata`, to read one sensor; binds it, also if the model has other, unsupported sensors.

        Raises:
            UnsupportedFeatureError: the sensor is not computed.
        """
        from featherlane.engine.model.features import refuse_sensors

        refuse_sensors(self.model, [sensor])
        return self._bind("sensordata")

    # ---- model fields by world ---------------------------------------------------------------------------------------
    def expand(self, name: str) -> np.ndarray:
        key = str(name).replace("opt.", "opt_")
        if key in MODEL and MODEL[key].kind != "real":
            raise ModelError(
                f"expand: got {name!r}, which all worlds share; allowed are fields of the kind real: {page('fields')}"
            )
        if key not in MODEL:
            allowed = [f.name for f in MODEL.fields if f.kind == "real"]
            raise ModelError(f"expand: {name!r} is not a real field of the model{near(key, allowed)}")
        hold((self.runner.turn,), self.arrays.expand, key)
        return self.arrays.expanded.lend(key)

    def expanded(self, name: str) -> np.ndarray | None:
        """Returns the per-world values of a model field, or None if all worlds share the model's."""
        key = str(name).replace("opt.", "opt_")
        return self.arrays.expanded.lend(key) if key in self.arrays.expanded else None

    def variant_values(self, geom: str, variant: str, inertia: bool = True) -> dict[str, Entries]:
        """Returns the entries that `set_variant` sets, by field: flat indices and values."""
        return values_of(self.model.variants, geom, variant, flag("inertia", inertia))

    @property
    def dependent_fields(self) -> list[str]:
        """Returns the model fields that depend on expanded ones, which `set_const` recomputes."""
        return [*dependent(self.model, self.arrays.expanded)]

    def get_variant(self, geom: str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the variant that worlds have in a group of `fl.load(..., variants=...)`, as `set_variant` sets it.

        Args:
            geom: name of the group.
            ids: the worlds; None for all.

        Returns:
            (n,) names for the n worlds of the call.  A world whose fields were edited has the most similar variant.

        Raises:
            UnknownNameError: the model has no such group.
            ModelError: ids out of range or repeated.
        """
        chosen, group = self._ids(ids), group_of(self.model.variants, "get_variant", geom)

        found = group.nearest(lambda name: self.arrays.expanded.own(name, chosen), len(chosen))
        return np.array(list(group))[found]

    # ---- given contacts ----------------------------------------------------------------------------------------------
    @takes_contacts
    def give_contacts(
        self,
        contacts: Contacts,
        *,
        replace: ArrayLike = False,
        count: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> None:
        """Gives each world user-defined contacts, in addition to detected contacts or in place of them.

        Works as `Data.give_contacts`, with a leading axis of worlds.  Arrays broadcast to (nworld, n, ...), so an array
        (n, ...) gives the same contacts to all worlds.  Contacts are stored per world: a reset clears them, and a
        checkpoint contains them.  Worlds whose contacts join different bodies may share a tile.

        Args:
            contacts: a `featherlane.Contacts`; or its fields as keyword arguments.
            replace: () or (nworld,): whether contact detection is skipped in the world.
            count: (nworld,) number of contacts that each world uses, the first ones of its row; None: all n.
            ids: the worlds, by number or as a mask, to which contacts are given; None for all.

        Raises:
            ModelError: as in `Data.give_contacts`; `Batch(..., given_contacts=n)` sets the capacity.
        """
        chosen = self._ids(ids)
        rows = self.given_rows(contacts, replace=replace, count=count, ids=chosen, expanded=self.arrays.expanded)
        for name, value in rows.items():
            self.arrays.rows[name][chosen] = value

    def given_rows(
        self,
        contacts: Contacts,
        *,
        replace: ArrayLike,
        count: ArrayLike | None,
        ids: np.ndarray,
        expanded: Expanded,
    ) -> dict[str, np.ndarray]:
        """Returns what `give_contacts` would store in worlds of another batch of this model.

        Args:
            contacts, replace, count: as for `give_contacts`.
            ids: (n,) the worlds.
            expanded: per-world model fields of that batch.

        Returns:
            field -> (n, ...) rows in this batch's dtype.

        Raises:
            ModelError: as in `give_contacts`.
        """

        adhesive = expanded.in_use().get("flg_adhesion", self.model.flg_adhesion)
        own = lambda name: expanded.own(name, ids)  # noqa: E731
        rows = given_fields(self.model, self.ngiven, len(ids), own, adhesive, replace, count, contacts)
        return {name: value.astype(self.dtype) for name, value in rows.items()}

    def clear_given_contacts(self, ids: ArrayLike | None = None) -> None:
        """Removes given contacts from these worlds and detects contacts again."""
        if self.ngiven:
            for name in ("given_present", "given_replace"):
                self.arrays.rows[name][self._ids(ids)] = 0

    # ---- memory ------------------------------------------------------------------------------------------------------
    @property
    def rows(self) -> Mapping[str, np.ndarray]:
        """Returns persistent arrays (state, inputs in use, reports) by field, (nworld, ...); writes are unchecked."""
        return MappingProxyType(self.arrays.rows)

    @property
    def bound(self) -> Mapping[str, np.ndarray]:
        """Returns the memory of the bound outputs by field, (nworld, ...)."""
        return MappingProxyType(self.arrays.bound)

    @property
    def expanded_fields(self) -> Mapping[str, np.ndarray]:
        """Returns the memory of per-world model fields, (nworld, ...); `expanded` returns arrays with checks."""
        return MappingProxyType(self.arrays.expanded)

    def row_memory(self, name: str) -> np.ndarray:
        """Returns the memory of a state field, allocated at the first use."""
        return self.arrays.lasting(name)

    def is_left_out(self, name: str) -> bool:
        return isinstance(name, str) and name in ON_DEMAND and name not in self.arrays.rows

    @property
    def pair_memory(self) -> np.ndarray:
        """Returns each world's cached data of candidate pairs, (nworld, n); it saves time, and changes no result."""
        return self.runner.plans.pair_memory()
