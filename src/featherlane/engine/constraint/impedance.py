"""Impedance and reference acceleration of a row: MuJoCo's soft constraint model.

A row has the reference acceleration a_ref = -B v - K d (r - margin); its regularisation R determines how closely:

    d = impedance(|r - margin|) in (0, 1),    R = (1 - d) / d A,    D = 1 / R

where A is an estimate of J M^-1 J^T that does not depend on the state.
Source: MuJoCo's documentation, "Computation", sec. "Constraint model"; "Modeling", sec. "Solver parameters".
"""

from featherlane.engine.prelude import *
from featherlane.engine.model.integrator import has_metric

MINIMP, MAXIMP = 0.0001, 0.9999  # the range of d, and of the midpoint of its spline
MINVAL = 1e-15  # lower bound of R, of widths and of denominators
DEFAULT_TIMECONST, DEFAULT_DAMPRATIO = 0.02, 1.0  # replace a solref whose two signs differ

STICK = 1e5  # friction under Coulomb's law: its impedance, over the inverse mass that it moves
UNBOUNDED = 1e30  # N: stands for no upper bound of a force; finite, so that its product with 0 is not NaN


@kernel
def impedance(solimp, r):
    """Returns d(r): from dmin at r = 0 to dmax at |r| = width, along a spline of two powers that meet at the midpoint.

    With x = |r| / width:  y = mid (x / mid)^p up to x = mid, beyond it 1 - (1 - mid) ((1 - x) / (1 - mid))^p.
    Without a width d is constant, (dmin + dmax) / 2.

    Args:
        solimp: dmin, dmax, width, midpoint, power.
        r: position error less the margin.
    """
    dmin, dmax = clip(solimp[0], MINIMP, MAXIMP), clip(solimp[1], MINIMP, MAXIMP)
    mid = clip(solimp[3], MINIMP, MAXIMP)
    p = fmax(solimp[4], 1.0)
    x = fabs(r) / fmax(solimp[2], MINVAL)

    # the halves of the spline are point-symmetric: y = w (u / w)^p with u = x, w = mid below the midpoint,
    # and 1 - y = w (u / w)^p with u = 1 - x, w = 1 - mid above it
    lower = x <= mid
    from_end = where(lower, x, fmax(1.0 - x, 0.0))
    half_width = where(lower, mid, 1.0 - mid)
    ratio = from_end / half_width
    y = from_end * ratio  # for p = 2: w (u / w)^2.  p = 1 is set below: y = x
    needs_pow = not_((p == 1.0) | (p == 2.0))
    if any_(needs_pow):
        y = where(needs_pow, half_width * pow_(ratio, p), y)
    y = where(p == 1.0, x, where(lower, y, 1.0 - y))

    # y rises from 0 to 1: d = dmin + y (dmax - dmin)
    d = where(x >= 1.0, dmax, fma(y, dmax - dmin, dmin))
    return where(solimp[2] <= MINVAL, 0.5 * (dmin + dmax), d)


@kernel
def shortest_timeconst(m):
    """Returns the least time constant of a reference [s]: two time steps; 0 without `refsafe` and under `discrete`."""
    if m.opt_disableflags & DISABLE_REFSAFE or has_metric(m):
        return 0.0
    return 2.0 * timestep(m)


@kernel
def reference(solref, solimp, shortest):
    """Returns (K, B): stiffness [1/s^2] and damping [1/s] of a_ref = -B v - K d (r - margin).

    solref is (time constant, damping ratio), both positive, or (-stiffness, -damping).  Both are scaled by dmax, so the
    specified behaviour holds at the largest impedance:
        K = 1 / (dmax time ratio)^2, B = 2 / (dmax time),    or    K = stiffness / dmax^2, B = damping / dmax.
    shortest: least time constant [s].
    """
    dmax = clip(solimp[1], MINIMP, MAXIMP)
    positive = solref[0] > 0.0
    # values of different signs are replaced by the defaults
    mixed = (positive & (solref[1] <= 0.0)) | (not_(positive) & (solref[1] > 0.0))
    first, second = where(mixed, DEFAULT_TIMECONST, solref[0]), where(mixed, DEFAULT_DAMPRATIO, solref[1])
    is_standard = first > 0.0  # (time constant, damping ratio), else (-stiffness, -damping)
    first = where(is_standard, fmax(first, shortest), first)

    scaled_time = dmax * first
    inverse_root = dmax * first * second  # 1 / sqrt(K)
    K = where(is_standard, 1.0, -first) / fmax(where(is_standard, inverse_root * inverse_root, dmax * dmax), MINVAL)
    B = where(is_standard, 2.0, -second) / fmax(where(is_standard, scaled_time, dmax), MINVAL)
    return K, B


@kernel
def friction_reference(solref, B, solimp, shortest):
    """Returns the damping [1/s] of an elliptic contact's friction rows: from their solref, or the normal row's B.

    Zeros and values of different signs count as no solref.  shortest: least time constant [s].
    """
    mixed = ((solref[0] > 0.0) & (solref[1] <= 0.0)) | (not_(solref[0] > 0.0) & (solref[1] > 0.0))
    specified = not_(mixed) & ((solref[0] != 0.0) | (solref[1] != 0.0))
    _, damping = reference(solref, solimp, shortest)
    return where(specified, damping, B)


@kernel
def inverse_regularisation(d, A):
    """Returns D = 1 / R with R = (1 - d) / d A, at least MINVAL; d: impedance, A: estimate of J M^-1 J^T."""
    return d / fmax((1.0 - d) * A, MINVAL * d)
