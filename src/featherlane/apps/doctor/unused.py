"""Fields and options that the chosen contact model does not read.

Defaults are those after loading (`DEFAULTS`), and MuJoCo's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel, kind_of
from featherlane.apps.doctor.finding import NOTE, WARNING, Sign
from featherlane.apps.doctor.registry import check
from featherlane.apps.doctor.rows import DEFAULT_SOLREF, rows
from featherlane.enums import ContactModel, Softness
from featherlane.extension import DEFAULTS

# fields that every contact model reads
SHARED = {"opt_forward_dynamics", "opt_contact_model", "opt_gyroscopic", "opt_rotation", "body_gyroscopic"}
LCP_ONLY = {name: default for name, default in DEFAULTS.items() if name not in SHARED}
# of these, the fields that the contact model coulomb reads, too
BY_COULOMB = {"geom_restitution", "geom_restitution_vel", "geom_friction_static", "geom_stribeck_vel"}
BY_ERP = ("geom_erp", "geom_cfm", "jnt_stop_erp", "jnt_stop_cfm", "eq_erp", "eq_cfm")  # fields of the softness erp
CONVEX_OPTIONS = "solver iterations tolerance ls_iterations ls_tolerance cone impratio noslip_tolerance".split()
DEFAULT_SOLIMP = 0.9, 0.95, 0.001, 0.5, 2.0


def changed(examined: ExaminedModel, names) -> Iterator[tuple[str, int | str, str]]:
    """Yields (kind, id, value) of each element whose LCP fields of these names differ from the default."""
    found: dict[tuple[str, int | str], list[str]] = defaultdict(list)
    for name in names:
        prefix, _, option = name.partition("_")
        if prefix == "opt":
            value = getattr(examined.model.opt, option)
            if value != LCP_ONLY[name]:
                found["option", option].append(str(getattr(value, "name", value)).lower())
            continue
        values = getattr(examined.model, name)
        different = (values != LCP_ONLY[name]).any(axis=tuple(range(1, values.ndim)))
        for i in np.flatnonzero(different):
            numbers = " ".join(f"{x:g}" for x in np.ravel(values[i]))
            found[kind_of(prefix), int(i)].append(f"{name} {numbers}")
    yield from ((kind, ident, ", ".join(what)) for (kind, ident), what in found.items())


@check("unused-by-convex", WARNING, "the convex contact model ignores the setting")
def unused_by_convex(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds LCP settings that differ from the default under the convex contact model: restitution, slip, ERP, CFM,
    direction or force of friction, joint motors and stops, `lcp_` options."""
    chosen = examined.model.opt_contact_model
    lcp_only, shared = (LCP_ONLY.keys() - BY_COULOMB, "lcp"), (BY_COULOMB, "lcp or coulomb")
    for names, words in {
        ContactModel.CONVEX: (lcp_only, shared),
        ContactModel.COULOMB: (lcp_only,),
        ContactModel.LCP: (),
    }[chosen]:
        for kind, ident, what in changed(examined, sorted(names)):
            advice = f"set model.opt.contact_model to {words}, or keep the default value"
            yield Sign(kind, ident, f"{what}: used only by the contact model {words}", advice)


@check("unused-by-lcp", NOTE, "the LCP contact model ignores the setting")
def unused_by_lcp(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds convex settings that differ from MuJoCo's default under the LCP contact model: solver options and, with
    softness erp, `solref` or `solimp`.  With softness solref, finds ERP or CFM of an element."""
    m = examined.model
    if m.opt_contact_model != ContactModel.LCP:
        return
    default = mujoco.MjOption()
    for name in CONVEX_OPTIONS:
        value = getattr(m.opt, name)
        if value != getattr(default, name):
            seen = f"{getattr(value, 'name', value)}".lower()
            advice = "use the options that begin with lcp_"
            yield Sign("option", name, f"{seen}: used only by the contact model convex", advice)
    if m.opt_softness == Softness.SOLREF:
        for kind, ident, what in changed(examined, BY_ERP):
            yield Sign(kind, ident, f"{what}: not used with softness solref", 'set model.opt.softness = "erp"')
        return
    for kind, ident, attribute, solref, solimp in rows(examined):
        if tuple(solref) != DEFAULT_SOLREF or tuple(solimp) != DEFAULT_SOLIMP:
            seen = f"{attribute} {shown(solref)}, {attribute.replace('ref', 'imp', 1)} {shown(solimp)}"
            advice = 'set model.opt.softness = "solref", or set erp and cfm'
            yield Sign(kind, ident, f"{seen}: not used with softness erp, the constraint is rigid", advice)


def shown(numbers: np.ndarray) -> str:
    """Formats numbers separated by spaces."""
    return " ".join(f"{x:g}" for x in numbers)
