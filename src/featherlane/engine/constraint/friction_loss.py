"""Parameters of friction-loss rows: dry friction of DoFs and tendons, with a force between -loss and loss.

    a_ref = -B v,    R = (1 - d) / d A          as every row of MuJoCo's model: the row creeps by f R / B
    a_ref = -v / h,  R = A / STICK              under Coulomb's law: rigid, as friction of its contacts

d: impedance; A: estimate of J M^-1 J^T; D = 1 / R; STICK: stiffness over the inverse mass (impedance.py).
Source: MuJoCo's documentation, "Computation", sec. "Constraint model", for the first.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.end_of_step import reference_at_end
from featherlane.engine.constraint.impedance import MINVAL, STICK, impedance, inverse_regularisation, reference
from featherlane.engine.model.enums import COULOMB


@kernel
def loss_damping(m, solref, solimp, shortest):
    """Returns B [1/s] of a friction-loss row with these solver parameters.

    Under Coulomb's law it is 1 / h, so that the row stops in one step if its force suffices.
    shortest: least time constant [s], of `shortest_timeconst`.
    """
    _, B = reference(solref, solimp, shortest)
    return 1.0 / timestep(m) if m.opt_contact_model == COULOMB else B


@kernel
def loss_parameters(m, solref, solimp, shortest, A):
    """Returns (D, B) of a friction-loss row; under Coulomb's law both are independent of solref and solimp.

    A: estimate of J M^-1 J^T; shortest: least time constant [s], of `shortest_timeconst`.
    """
    B = loss_damping(m, solref, solimp, shortest)
    imp = impedance(solimp, 0.0)
    # under `discrete`: at the end of the step;  K = 0: the row has no position error, hence no stiffness
    _, B, imp = reference_at_end(m, K=0.0, B=B, imp=imp)
    D = inverse_regularisation(imp, A)
    if m.opt_contact_model == COULOMB:
        D = STICK / fmax(A, MINVAL)
    return D, B
