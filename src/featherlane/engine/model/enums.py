"""Defines enumerations: MuJoCo's values, as kernels and models store them, and Featherlane's own.

A MuJoCo constant has MuJoCo's name without the `mj` (EQ_WELD is mjEQ_WELD), often also without its prefix (HINGE is
mjJNT_HINGE); `tests/model/test_enums.py` lists the prefixes and compares every value with MuJoCo.  Compiled code and
tables need these constants; other code can use MuJoCo's names.
"""

from __future__ import annotations

import operator
from enum import IntEnum, IntFlag
from typing import Any


def whole_number(value: Any) -> int | None:
    """Returns an int from an integer, a NumPy integer, or a MuJoCo enum member, which has no `__index__`; else None."""
    if isinstance(value, bool):
        return None
    if type(value).__name__.startswith("mjt"):
        return int(value)
    try:
        return operator.index(value)
    except (TypeError, ValueError):
        return None


# ---- options, by name ------------------------------------------------------------------------------------------------
class Integrator(IntEnum):
    """Integration modes (mjtIntegrator)."""

    EULER = 0
    RK4 = 1
    IMPLICIT = 2
    IMPLICITFAST = 3
    DISCRETE = 4


class Cone(IntEnum):
    """Friction cones (mjtCone)."""

    PYRAMIDAL = 0
    ELLIPTIC = 1


class Solver(IntEnum):
    """Constraint solvers (mjtSolver)."""

    PGS = 0
    CG = 1
    NEWTON = 2


class Disable(IntFlag):
    """Disable flags of physics components (mjtDisableBit)."""

    CONSTRAINT = 1 << 0
    EQUALITY = 1 << 1
    FRICTIONLOSS = 1 << 2
    LIMIT = 1 << 3
    CONTACT = 1 << 4
    SPRING = 1 << 5
    DAMPER = 1 << 6
    GRAVITY = 1 << 7
    CLAMPCTRL = 1 << 8
    WARMSTART = 1 << 9
    FILTERPARENT = 1 << 10
    ACTUATION = 1 << 11
    REFSAFE = 1 << 12
    SENSOR = 1 << 13
    MIDPHASE = 1 << 14
    EULERDAMP = 1 << 15
    AUTORESET = 1 << 16
    NATIVECCD = 1 << 17
    ISLAND = 1 << 18
    MULTICCD = 1 << 19


class Enable(IntFlag):
    """Enable flags of physics components (mjtEnableBit)."""

    OVERRIDE = 1 << 0
    ENERGY = 1 << 1
    FWDINV = 1 << 2
    INVDISCRETE = 1 << 3
    SLEEP = 1 << 4
    DIAGEXACT = 1 << 5
    IPC = 1 << 6
    SPECULATIVE = 1 << 7


class State(IntFlag):
    """Components of a state (mjtState), ordered as in the state vector."""

    TIME = 1 << 0
    QPOS = 1 << 1
    QVEL = 1 << 2
    ACT = 1 << 3
    HISTORY = 1 << 4
    WARMSTART = 1 << 5
    CTRL = 1 << 6
    QFRC_APPLIED = 1 << 7
    XFRC_APPLIED = 1 << 8
    EQ_ACTIVE = 1 << 9
    MOCAP_POS = 1 << 10
    MOCAP_QUAT = 1 << 11
    USERDATA = 1 << 12
    PLUGIN = 1 << 13
    PLASTIC = 1 << 14

    PHYSICS = QPOS | QVEL | ACT | HISTORY | PLASTIC
    FULLPHYSICS = TIME | PHYSICS | PLUGIN
    USER = CTRL | QFRC_APPLIED | XFRC_APPLIED | EQ_ACTIVE | MOCAP_POS | MOCAP_QUAT | USERDATA
    INTEGRATION = FULLPHYSICS | WARMSTART | USER


class ForwardDynamics(IntEnum):
    """Algorithms for forward dynamics without constraints; MuJoCo has no such option."""

    AUTO = 0
    CRB = 1
    ABA = 2


class ContactModel(IntEnum):
    """Contact models, which compute forces of contacts and other rows; MuJoCo has no such option."""

    CONVEX = 0
    LCP = 1
    COULOMB = 2


class LcpSolver(IntEnum):
    """Solvers of the LCP; REGISTERED is a solver of `featherlane.lcp.register`, selected by its name."""

    DANTZIG = 0
    PGS = 1
    APGD = 2
    REGISTERED = 3


class LcpFriction(IntEnum):
    """Normal forces in the friction limits of Dantzig's method: those without friction, or the final ones."""

    FROZEN = 0
    CONSISTENT = 1


class LcpCone(IntEnum):
    """Friction cones of the iterative LCP solvers."""

    PYRAMID = 0
    CONE = 1


class Softness(IntEnum):
    """Source of the softness of LCP rows."""

    ERP = 0
    SOLREF = 1


class Gyroscopic(IntEnum):
    """Integration of the gyroscopic torque of free bodies."""

    EXPLICIT = 0
    IMPLICIT = 1
    OFF = 2


class Rotation(IntEnum):
    """Integration of orientations."""

    FINITE = 0
    INFINITESIMAL = 1


# ---- MuJoCo's values, as kernels read them ---------------------------------------------------------------------------
# joints, geoms
FREE, BALL, SLIDE, HINGE = range(4)
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = range(9)
NGEOMTYPES = 9

# rows, and the state of a row: the part of its cost function
EQUALITY, FRICTION_DOF, FRICTION_TENDON, LIMIT_JOINT, LIMIT_TENDON = range(5)
CONTACT_FRICTIONLESS, CONTACT_PYRAMIDAL, CONTACT_ELLIPTIC = range(5, 8)
STATE_SATISFIED, STATE_QUADRATIC, STATE_LINEARNEG, STATE_LINEARPOS, STATE_CONE = range(5)
EQ_CONNECT, EQ_WELD, EQ_JOINT, EQ_TENDON = range(4)

# options
PYRAMIDAL, ELLIPTIC = map(int, Cone)
PGS, CG, NEWTON = map(int, Solver)
EULER, RK4, IMPLICIT, IMPLICITFAST, DISCRETE = map(int, Integrator)
DISABLE_CONSTRAINT, DISABLE_EQUALITY = int(Disable.CONSTRAINT), int(Disable.EQUALITY)
DISABLE_FRICTIONLOSS, DISABLE_LIMIT, DISABLE_CONTACT = map(int, (Disable.FRICTIONLOSS, Disable.LIMIT, Disable.CONTACT))
DISABLE_SPRING, DISABLE_DAMPER, DISABLE_GRAVITY = map(int, (Disable.SPRING, Disable.DAMPER, Disable.GRAVITY))
DISABLE_CLAMPCTRL, DISABLE_WARMSTART = int(Disable.CLAMPCTRL), int(Disable.WARMSTART)
DISABLE_ACTUATION, DISABLE_REFSAFE = int(Disable.ACTUATION), int(Disable.REFSAFE)
DISABLE_SENSOR, DISABLE_EULERDAMP = int(Disable.SENSOR), int(Disable.EULERDAMP)
DISABLE_AUTORESET, DISABLE_ISLAND = int(Disable.AUTORESET), int(Disable.ISLAND)
DISABLE_NATIVECCD, DISABLE_MULTICCD = int(Disable.NATIVECCD), int(Disable.MULTICCD)
ENABLE_OVERRIDE, ENABLE_FWDINV, ENABLE_INVDISCRETE = map(int, (Enable.OVERRIDE, Enable.FWDINV, Enable.INVDISCRETE))
ENABLE_SLEEP, ENABLE_DIAGEXACT, ENABLE_SPECULATIVE = map(int, (Enable.SLEEP, Enable.DIAGEXACT, Enable.SPECULATIVE))

# actuators
TRN_JOINT, TRN_JOINTINPARENT, TRN_SLIDERCRANK, TRN_TENDON, TRN_SITE, TRN_BODY, TRN_SO3 = range(7)
DYN_NONE, DYN_INTEGRATOR, DYN_FILTER, DYN_FILTEREXACT, DYN_MUSCLE, DYN_DCMOTOR, DYN_PID, DYN_USER = range(8)
GAIN_FIXED, GAIN_AFFINE, GAIN_MUSCLE, GAIN_DCMOTOR, GAIN_SO3, GAIN_PID, GAIN_USER = range(7)
BIAS_NONE, BIAS_AFFINE, BIAS_MUSCLE, BIAS_DCMOTOR, BIAS_SO3, BIAS_USER = range(6)
INPUT_POS, INPUT_VEL, INPUT_FF, INPUT_VOLTAGE = 1, 2, 4, 8
CHART_QUAT = 2

# tendons
WRAP_JOINT, WRAP_PULLEY, WRAP_SITE, WRAP_SPHERE, WRAP_CYLINDER = range(1, 6)

# sensors: types, object types and data types
SENS_TOUCH, SENS_ACCELEROMETER, SENS_VELOCIMETER, SENS_GYRO, SENS_FORCE, SENS_TORQUE = range(6)
SENS_MAGNETOMETER, SENS_RANGEFINDER, SENS_CAMPROJECTION = range(6, 9)
SENS_JOINTPOS, SENS_JOINTVEL, SENS_TENDONPOS, SENS_TENDONVEL = range(9, 13)
SENS_ACTUATORPOS, SENS_ACTUATORVEL, SENS_ACTUATORFRC, SENS_JOINTACTFRC, SENS_TENDONACTFRC = range(13, 18)
SENS_BALLQUAT, SENS_BALLANGVEL, SENS_JOINTLIMITPOS, SENS_JOINTLIMITVEL, SENS_JOINTLIMITFRC = range(18, 23)
SENS_TENDONLIMITPOS, SENS_TENDONLIMITVEL, SENS_TENDONLIMITFRC = range(23, 26)
SENS_FRAMEPOS, SENS_FRAMEQUAT, SENS_FRAMEXAXIS, SENS_FRAMEYAXIS, SENS_FRAMEZAXIS = range(26, 31)
SENS_FRAMELINVEL, SENS_FRAMEANGVEL, SENS_FRAMELINACC, SENS_FRAMEANGACC = range(31, 35)
SENS_SUBTREECOM, SENS_SUBTREELINVEL, SENS_SUBTREEANGMOM, SENS_INSIDESITE = range(35, 39)
SENS_GEOMDIST, SENS_GEOMNORMAL, SENS_GEOMFROMTO, SENS_CONTACT = range(39, 43)
SENS_E_POTENTIAL, SENS_E_KINETIC, SENS_CLOCK = range(43, 46)
SENS_TACTILE, SENS_PLUGIN, SENS_USER = 46, 47, 48
OBJ_UNKNOWN, OBJ_BODY, OBJ_XBODY, OBJ_GEOM, OBJ_SITE, OBJ_CAMERA = 0, 1, 2, 5, 6, 7
DATATYPE_REAL, DATATYPE_POSITIVE, DATATYPE_AXIS, DATATYPE_QUATERNION = range(4)
# parameters hold value k of MuJoCo's enumeration as 1 << k
CONDATA_FOUND, CONDATA_FORCE, CONDATA_TORQUE, CONDATA_DIST, CONDATA_POS, CONDATA_NORMAL = (1 << k for k in range(6))
CONDATA_TANGENT, CONDATA_LINVEL, CONDATA_ANGVEL = 1 << 6, 1 << 7, 1 << 8
RAYDATA_DIST, RAYDATA_DIR, RAYDATA_ORIGIN, RAYDATA_POINT, RAYDATA_NORMAL, RAYDATA_DEPTH = (1 << k for k in range(6))

# cameras and lights, sleeping trees, ranges of lengths
CAMLIGHT_TRACK, CAMLIGHT_TRACKCOM, CAMLIGHT_TARGETBODY, CAMLIGHT_TARGETBODYCOM = range(1, 5)
PROJ_PERSPECTIVE = 0
LIGHT_DIRECTIONAL, LIGHT_IMAGE = 1, 3
SLEEP_AUTO_NEVER, SLEEP_AUTO_ALLOWED, SLEEP_NEVER, SLEEP_INIT = 1, 2, 3, 5
LRMODE_ALL = 3

# lengths of rows, and other constants of MuJoCo
NEQDATA, NGROUP = 12, 6
MINAWAKE = 10  # steps below the tolerance before a tree may sleep
MAXCONPAIR = 50  # maximum contact points of one pair of geoms

# ---- MuJoCo's values that are named only in MJCF: reduction of contact sensors, interpolation of histories -----------
REDUCE_NONE, REDUCE_MINDIST, REDUCE_MAXFORCE, REDUCE_NETFORCE = range(4)
INTERP_ZOH, INTERP_LINEAR, INTERP_CUBIC = range(3)

# ---- Featherlane's own -----------------------------------------------------------------------------------------------
AUTO, CRB, ABA = map(int, ForwardDynamics)
CONVEX, LCP, COULOMB = map(int, ContactModel)
DANTZIG, LCP_PGS, APGD, REGISTERED = map(int, LcpSolver)
FROZEN, CONSISTENT = map(int, LcpFriction)
PYRAMID, CONE = map(int, LcpCone)
BY_ERP, BY_SOLREF = map(int, Softness)
GYRO_EXPLICIT, GYRO_IMPLICIT, GYRO_OFF = map(int, Gyroscopic)
FINITE, INFINITESIMAL = map(int, Rotation)
ABSENT_GEOM = -2  # of geom_variant: the world lacks the geom
METRIC = 8  # type of rows that add to the metric of the integrator discrete; MuJoCo has none
SLEW, INTEGRAL, TEMPERATURE, BRISTLE, CURRENT = 1, 2, 4, 8, 16  # bits of actuator_states, ordered as the activations
PID_PLUGIN = 32  # bit of actuator_states: MuJoCo's plugin mujoco.pid computes the force; its integral precedes the slew
