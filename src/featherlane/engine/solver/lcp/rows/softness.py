"""Softness of an LCP row: the part of its error that a step removes (ERP), and its compliance (CFM).

    J v' + cfm x = -erp / h r          a spring k = erp / (h cfm) and a damper (1 - erp) / cfm, at the end of the step

`opt.softness = "solref"` takes them from MuJoCo's row, x = -(B v + K d r + J a) / R with R = (1 - d) / d A: its spring
K d / R and its damper B / R at the end of the step give

    erp = h K d / (h K d + B),      cfm = R / (h K d + B).

Symbols: r: position error [m, rad];  d: impedance;  K, B: stiffness and damping of solref;  A: inverse inertia of the
    row;  D = 1 / R.
Source: ODE manual, sec. "Soft constraint: CFM and ERP"; MuJoCo documentation, Computation, "Constraint model".
Note:   the term 1 / R that MuJoCo's row adds to the inertia does not exist here.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.impedance import MINVAL, impedance, reference, shortest_timeconst


@kernel
def own_or_model_value(own, model_value):
    """Returns `own`, the parameter of an element, or the model's value if `own` is negative."""
    return where(own < 0.0, model_value, own)


@kernel
def softness_of_reference(m, solref, solimp, r, R):
    """Returns (erp, cfm) of a row with error r and regularisation R [1/kg]: (h K d, R) / (h K d + B)."""
    h = timestep(m)
    K, B = reference(solref, solimp, shortest_timeconst(m))
    hKd = h * K * impedance(solimp, r)
    total = fmax(hKd + B, MINVAL)
    return hKd / total, R / total


@kernel
def softness(m, own_erp, own_cfm, solref, solimp, r, D):
    """Returns (erp, cfm) of a row with error r, by solref, solimp and R = 1 / D if `opt.softness` is "solref".

    Else it returns (own_erp, own_cfm), each replaced by the model's value if it is negative.
    """
    if m.opt_softness == BY_SOLREF:
        erp, cfm = softness_of_reference(m, solref, solimp, r, 1.0 / fmax(D, MINVAL))
    else:
        erp, cfm = own_or_model_value(own_erp, m.opt_erp[0]), own_or_model_value(own_cfm, m.opt_cfm[0])
    return erp, cfm


@kernel
def loss_cfm(m, solref, solimp, D):
    """Returns cfm of a friction-loss row: the model's, or R / B with R = 1 / D, since the row has no spring."""
    cfm = m.opt_cfm[0]
    if m.opt_softness == BY_SOLREF:
        _, B = reference(solref, solimp, shortest_timeconst(m))
        cfm = 1.0 / fmax(fmax(D, MINVAL) * B, MINVAL)
    return cfm
