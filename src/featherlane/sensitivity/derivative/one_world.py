"""Derivatives of one world by formulas alone, for calls that differ from an earlier one only in the state.

Memory, tile and plan are kept with the model.  The plan reads the memory of a `Data` and writes into the returned
arrays, without copies and without repeated checks.
All other cases (additional differences, activations, delays, recursion) use `ImplicitWorlds`.
"""

from __future__ import annotations

import numpy as np

from featherlane.dynamics.inertia.articulated import uses_articulated
from featherlane.lanes.record import address
from featherlane.model.enums import LCP, RK4, Enable
from featherlane.model.model import Model, check_model
from featherlane.sensitivity.derivative.columns import KNOWN, NEAREST
from featherlane.sensitivity.derivative.displaced_worlds import KEPT, OwnWorlds, each_step
from featherlane.sensitivity.derivative.formulas import acts_at_once, formula_steps, leaves_rest, serves
from featherlane.simulation.world.data import Data, ready


class OneWorld(OwnWorlds):
    """Holds the memory of one world, and the pass of `formula_steps` through it.

    Args:
        model, source, disabled: as for `OwnWorlds`.
        torques: whether generalized forces are coordinates, too, and rates of the acceleration are requested.

    Attributes:
        revision: of the model at construction; this object is valid for no other revision.
        serves: whether it applies to this model.
    """

    def __init__(self, model: Model, source: Data, torques: bool, disabled: int):
        self.revision, self.serves = model.revision, _serves(model, torques)
        if not self.serves:
            return
        super().__init__(model, source, 0, 1, disabled)
        nv, nu = model.nv, model.nu
        self.shape = (2 * nv + nu + nv, nv) if torques else (2 * nv + nu, 2 * nv)
        parts = {"da": 0} if torques else {"dq": 0, "dv": nv}
        n, out, self.report = self.shape[0], np.zeros((1, *self.shape)), np.zeros(KNOWN + 1)
        taken = {name: out[..., at : at + nv] for name, at in parts.items()}
        taken["report"] = each_step(self.report[None], n)
        brought, memory = {"at": np.arange(float(n)).reshape(1, n, 1)}, self.batch.pair_memory
        sizes = {"rate_rest": 0, "rate_steps": int(not torques)}
        self.plan = plan = self.plan_of(formula_steps, 1, brought, taken, width=1, memory=memory, sizes=sizes)
        plan.begin(n, np.zeros(1, int), np.zeros(1, int))
        self.calls = plan.workspaces[0].calls
        self.names, self.shifts = [t.field for t in plan.transfers["load"]], [8 * at for at in parts.values()]
        self.taken, self.given = plan.addresses("load"), plan.addresses("record")

    def rates(self, data: Data) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns (rates by coordinates (n, 2 nv), or of the acceleration (n, nv); distance to the nearest switch).

        Returns None if the state has parts without formulas.
        """
        rows = data.__dict__.get("_lasting_rows")
        if rows is None:
            arrays = data.workspace.arrays  # they are valid as long as the data
            rows = data.__dict__["_lasting_rows"] = np.array([address(arrays[name]) for name in self.names])
        out = np.empty(self.shape)
        first = address(out)
        self.taken[:] = rows
        for k, shift in enumerate(self.shifts):
            self.given[k] = first + shift
        self.plan.run[0](0, 0, 1)
        self.calls.raise_errors()
        return (out, self.report[NEAREST]) if self.report[KNOWN] > 0.0 else None


def rates_of_one_world(model: Model, data: Data, torques: bool, disabled: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns `OneWorld.rates`, with memory from an earlier call with the model; None if it does not apply.

    Raises:
        ModelError, TypeError: as `ready` does.
    """
    check_model(model)
    own = model.__dict__
    stamp = own["_stamp"]
    if stamp is None or data._stamp is not stamp or data.model is not model:
        ready(model, data)
    # the key of the kept memory
    kind = torques, disabled, data.workspace.sizes["ngiven"]
    idle = own.setdefault("_one_world", {}).setdefault(kind, [])
    try:
        world = idle.pop()
    except IndexError:
        world = OneWorld(model, data, torques, disabled)
    if world.revision != own["revision"]:
        world = OneWorld(model, data, torques, disabled)
    found = world.rates(data) if world.serves else None
    if len(idle) < KEPT:
        idle.append(world)
    return found


def _serves(model: Model, torques: bool) -> bool:
    """Returns whether formulas alone apply to the model, its solver and its integrator."""
    sizes = model.size_values()
    solved = sizes["opt_contact_model"] != LCP and sizes["opt_noslip_iterations"] == 0
    steps = torques or sizes["opt_integrator"] != RK4
    refused = sizes["opt_enableflags"] & int(Enable.SLEEP) or sizes["nminimized"]
    if not (solved and steps and not refused and model.nv > 0 and serves(model)):
        return False
    return not (model.na > 0 or not acts_at_once(model) or leaves_rest(model) or uses_articulated(model))
