"""Softness of an LCP row: the part of its error that a step removes (ERP), and its compliance (CFM).

    J v' + cfm x = -erp / h r          a spring k = erp / (h cfm) and a damper (1 - erp) / cfm, at the end of the step

`opt.softness = "solref"` takes them from MuJoCo's row, x = -(B v + K d r + J a) / R with R = (1 - d) / d A: its spring
K d / R and its damper B / R at the end of the step give

    erp = h K d / (h K d + B),      cfm = R / (h K d + B).

Source: ODE manual, sec. "Soft constraint: CFM and ERP"; MuJoCo documentation, Computation, "Constraint model".
Note:   the term 1 / R that MuJoCo's row adds to the inertia does not exist here.
"""

from featherlane.prelude import *
from featherlane.constraint.impedance import MINVAL, impedance, reference, shortest_timeconst


@kernel
def own_or(own, common):
    """Returns a parameter of one element, or the model's if it is negative."""
    return where(own < 0.0, common, own)


@kernel
def by_reference(m, solref, solimp, r, R):
    """Returns (erp, cfm) = (k, R) / (k + B) of a row with error r and regularisation R [1/kg], k = h K d."""
    h = timestep(m)
    K, B = reference(solref, solimp, shortest_timeconst(m))
    k = h * K * impedance(solimp, r)
    s = fmax(k + B, MINVAL)
    return k / s, R / s


@kernel
def softness(m, erp, cfm, solref, solimp, r, D):
    """Returns (erp, cfm) of a row: its own (negative: the model's), or by its solref and solimp with R = 1 / D."""
    if m.opt_softness == BY_SOLREF:
        E, C = by_reference(m, solref, solimp, r, 1.0 / fmax(D, MINVAL))
    else:
        E, C = own_or(erp, m.opt_erp[0]), own_or(cfm, m.opt_cfm[0])
    return E, C


@kernel
def loss_softness(m, solref, solimp, D):
    """Returns cfm of a friction-loss row, which has no error and thus no spring: R / B with R = 1 / D."""
    C = m.opt_cfm[0]
    if m.opt_softness == BY_SOLREF:
        _, B = reference(solref, solimp, shortest_timeconst(m))
        C = 1.0 / fmax(fmax(D, MINVAL) * B, MINVAL)
    return C
