"""Numbers of the contact model lcp that users write into a model's elements: which ones can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.errors import ModelError

if TYPE_CHECKING:
    from featherlane.model.model import Model

KINDS = {"geom": "geom", "jnt": "joint", "eq": "equality", "link": "link"}  # prefix of a field -> kind of the element
FRACTIONS = ("geom_erp", "jnt_stop_erp", "eq_erp", "link_erp", "link_stop_erp")
SOFTNESS = ("geom_cfm", "jnt_stop_cfm", "jnt_motor_cfm", "eq_cfm", "link_cfm", "link_stop_cfm", "link_motor_cfm")
POSITIVE = (
    *("geom_restitution", "geom_restitution_vel", "geom_slip"),
    *("jnt_motor_force", "jnt_stop_bounce", "link_motor_force", "link_stop_bounce"),
)
FINITE = ("geom_fdir", "jnt_motor_vel", "jnt_motor_fudge", "link_motor_vel", "link_motor_fudge")


def check_surfaces(model: Model) -> None:
    """Refuse an ERP above 1, a negative friction, restitution or force, and what is not finite.

    A negative ERP or CFM stands for the option's.

    Raises:
        ModelError: with the field, the element, what was given and what is allowed.
    """
    for name in (*FRACTIONS, *SOFTNESS, *POSITIVE, *FINITE):
        value = getattr(model, name)
        wrong, allowed = ~np.isfinite(value), "finite numbers"
        if name in FRACTIONS:
            wrong, allowed = wrong | (value > 1.0), "numbers up to 1, negative: the option's"
        elif name in POSITIVE:
            # a motor may be as strong as it likes
            wrong = np.isnan(value) | (value < 0.0) if name.endswith("force") else wrong | (value < 0.0)
            allowed = "numbers from 0"
        if wrong.any():
            i = int(np.argwhere(wrong)[0][0])
            raise ModelError(f"{name} of {_label(model, name, i)}: got {value[i]}, allowed are {allowed}")


def _label(model: Model, field: str, i: int) -> str:
    """The kind and name of an element, or its number."""
    kind = KINDS[field.partition("_")[0]]
    name = model.mj_model.eq(i).name if kind == "equality" else model.names(kind)[i]
    return f"{kind} {name!r}" if name else f"{kind} #{i}"
