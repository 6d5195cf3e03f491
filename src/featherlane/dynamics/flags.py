"""MuJoCo's enumerations as kernels read them."""

from __future__ import annotations

from featherlane.lanes import kernel

# mjtJoint
FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3

# mjtDisableBit
DISABLE_CONSTRAINT = 1 << 0
DISABLE_EQUALITY = 1 << 1
DISABLE_FRICTIONLOSS = 1 << 2
DISABLE_LIMIT = 1 << 3
DISABLE_CONTACT = 1 << 4
DISABLE_SPRING = 1 << 5
DISABLE_DAMPER = 1 << 6
DISABLE_GRAVITY = 1 << 7
DISABLE_CLAMPCTRL = 1 << 8
DISABLE_WARMSTART = 1 << 9
DISABLE_ACTUATION = 1 << 11
DISABLE_EULERDAMP = 1 << 15
DISABLE_AUTORESET = 1 << 16
DISABLE_ISLAND = 1 << 18

# mjtEnableBit
ENABLE_OVERRIDE = 1 << 0
ENABLE_FWDINV = 1 << 2
ENABLE_INVDISCRETE = 1 << 3
ENABLE_SLEEP = 1 << 4
ENABLE_DIAGEXACT = 1 << 5

# mjtConstraint
EQUALITY, FRICTION_DOF, LIMIT_JOINT = 0, 1, 3
CONTACT_FRICTIONLESS, CONTACT_PYRAMIDAL, CONTACT_ELLIPTIC = 5, 6, 7

# mjtCone
PYRAMIDAL, ELLIPTIC = 0, 1

# mjtSolver
PGS, CG, NEWTON = 0, 1, 2

# mjtIntegrator
RK4, IMPLICIT, IMPLICITFAST, DISCRETE = 1, 2, 3, 4

# mjtTrn
TRN_JOINT, TRN_JOINTINPARENT, TRN_SLIDERCRANK, TRN_TENDON, TRN_SITE, TRN_BODY, TRN_SO3 = range(7)

# mjtDyn, mjtGain, mjtBias
DYN_NONE, DYN_INTEGRATOR, DYN_FILTER, DYN_FILTEREXACT, DYN_MUSCLE, DYN_DCMOTOR, DYN_PID = range(7)
GAIN_FIXED, GAIN_AFFINE, GAIN_MUSCLE, GAIN_DCMOTOR, GAIN_SO3, GAIN_PID = range(6)
BIAS_NONE, BIAS_AFFINE, BIAS_MUSCLE, BIAS_DCMOTOR, BIAS_SO3 = range(5)

# mjtCtrlInput, mjtCtrlChart
INPUT_POS, INPUT_VEL, INPUT_FF, INPUT_VOLTAGE = 1, 2, 4, 8
CHART_QUAT = 2

# bits of actuator_states, in the order of the activations
SLEW, INTEGRAL, TEMPERATURE, BRISTLE, CURRENT = 1, 2, 4, 8, 16


@kernel
def joint_dofs(kind):
    """Dofs of a joint of that type."""
    return 6 if kind == FREE else 3 if kind == BALL else 1
