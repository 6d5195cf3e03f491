"""Remedies for findings of a trial: the advice is the first one that removes the finding in another trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from featherlane import Model
from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.trials import Trial, run_trials
from featherlane.enums import Enable
from featherlane.errors import FeatherlaneError

SAFE = 2.0  # smallest time constant that refsafe allows, in steps
STIFF = 0.99, 0.999  # dmin, dmax of a stiff impedance


class Remedy(NamedTuple):
    """A change of the model and its text."""

    advice: str
    change: Callable[[Model], None]


def set_options(model: Model, **options: float | str) -> None:
    """Sets options of a model."""
    for name, value in options.items():
        setattr(model.opt, name, value)


def option(name: str, value: float | str, why: str = "") -> Remedy:
    """Returns the remedy of one option."""
    shown = f'"{value}"' if isinstance(value, str) else f"{value:.2g}"
    return Remedy(f"set {name} to {shown}{why}", partial(set_options, **{name: value}))


def stiffer(
    examined: ExaminedModel, where: str, time: float, set_softness: Callable[[Model, tuple, tuple | None], None]
) -> list[Remedy]:
    """Returns remedies that stiffen rows: a smaller time constant, a larger impedance, the LCP contact model.

    Args:
        where: the elements whose solref is set.
        time: wanted time constant [s].
        set_softness: writes (solref, (dmin, dmax) or None) to a model.
    """
    least, lcp = SAFE * examined.h, option("contact_model", "lcp", ", whose rows do not yield")
    time = float(f"{time:.2g}")
    found = [Remedy(f"set solref of {where} to {time:g} 1", lambda m: set_softness(m, (time, 1.0), None))]
    if time < least:
        found = []
    bounded = max(time, float(f"{least:.2g}"))
    text = f"set solref of {where} to {bounded:g} 1 and solimp to {STIFF[0]:g} {STIFF[1]:g}"
    found.append(Remedy(text, lambda m: set_softness(m, (bounded, 1.0), STIFF)))

    def finer(model: Model) -> None:
        set_softness(model, (time, 1.0), None)
        set_options(model, timestep=time / SAFE)

    return [*found, lcp, Remedy(f"set timestep to {time / SAFE:.2g} and solref of {where} to {time:g} 1", finer)]


def soften_contacts(geoms: Iterable[int], model: Model, solref: tuple, solimp: tuple | None) -> None:
    """Writes the solref, and dmin and dmax, of geoms and of the explicit pairs among them."""
    geoms = list(geoms)
    if model.opt_enableflags & Enable.OVERRIDE:
        model.opt_o_solref[:] = solref
        if solimp:
            model.opt_o_solimp[:2] = solimp
        return
    pairs = np.flatnonzero(np.isin(model.pair_geom1, geoms) & np.isin(model.pair_geom2, geoms))
    for kind, at in (("geom", geoms), ("pair", pairs)):
        getattr(model, f"{kind}_solref")[at] = solref
        if solimp:
            getattr(model, f"{kind}_solimp")[at, :2] = solimp


def soften_equality(e: int, model: Model, solref: tuple, solimp: tuple | None) -> None:
    """Writes the solref, and dmin and dmax, of an equality."""
    model.eq_solref[e] = solref
    if solimp:
        model.eq_solimp[e, :2] = solimp


def tried(
    examined: ExaminedModel, trial: Trial, remedies: Iterable[Remedy], cured: Callable[[ExaminedModel, Trial], bool]
) -> str:
    """Returns the advice of the first remedy that removes the finding in a trial; empty if none does."""
    for remedy in remedies:
        try:
            changed = examined.changed(remedy.change)
            (again,) = run_trials(changed.model, [(trial.start, trial.keyframe)])
        except FeatherlaneError:
            continue  # the model does not allow the change
        if again.end and cured(changed, again):
            return f"{remedy.advice}: a trial with this change is free of this finding"
    return ""
