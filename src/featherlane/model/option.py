"""`model.opt`: the physics options, checked as they are set and live in the model's record.

Numbers are read and written under MuJoCo's names; enumerations take MuJoCo's enums, their numbers or plain names
(`"rk4"`).  Options of MuJoCo's that cannot affect what is computed here are passed through to the MjModel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np

from featherlane.errors import ModelError, UnknownAttributeError, UnsupportedFeatureError, near
from featherlane.model.arguments import one_of
from featherlane.model.assignment import converted
from featherlane.model.enums import (
    EQ_TENDON,
    Cone,
    ContactModel,
    Disable,
    Enable,
    ForwardDynamics,
    Gyroscopic,
    Integrator,
    LcpCone,
    LcpFriction,
    LcpSolver,
    Rotation,
    Softness,
    Solver,
    whole_number,
)
from featherlane.model.integrator import SCHEMES, Scheme
from featherlane.model.protocol import ModelFields
from featherlane.model.solver import SOLVERS, ConvexSolver

SUPPORTED_CONES = tuple(Cone)
SUPPORTED_FORWARD_DYNAMICS = tuple(ForwardDynamics)
SUPPORTED_ENABLE = Enable(sum(Enable)) & ~Enable.SPECULATIVE
LCP_REFUSED = Enable.FWDINV | Enable.INVDISCRETE | Enable.SLEEP  # flags that do not go with the contact model lcp

# options that MuJoCo does not have
OWN_OPTIONS = frozenset(
    "forward_dynamics contact_model lcp_solver lcp_iterations lcp_friction lcp_cone lcp_tolerance lcp_relaxation"
    " softness erp cfm contact_max_vel contact_min_depth gyroscopic rotation".split()
)

# MuJoCo's options that can have no effect on what is computed
PASSED_THROUGH = (
    "jacobian", "ccd_tolerance", "ccd_iterations", "sdf_initpoints", "sdf_iterations",
)  # fmt: skip


def _real(name: str, value: Any) -> float:
    try:
        if isinstance(value, str | bytes | bool | np.bool_) or np.ndim(value):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"option {name}: got {value!r}, allowed is a number") from None
    if not np.isfinite(number):
        raise ModelError(f"option {name}: got {number}, allowed is a finite number")
    return number


def _number_that(allowed: str, holds: Callable[[float], bool]) -> Callable[[str, Any], float]:
    """Returns a check for a finite number; `allowed` ends its message."""

    def check(name: str, value: Any) -> float:
        number = _real(name, value)
        if not holds(number):
            raise ModelError(f"option {name}: got {number}, allowed {allowed}")
        return number

    return check


_positive = _number_that("is a number > 0", lambda x: x > 0)
_not_negative = _number_that("is a number >= 0", lambda x: x >= 0)
_fraction = _number_that("are numbers from 0 to 1", lambda x: 0 <= x <= 1)
_relaxation = _number_that("are numbers between 0 and 2", lambda x: 0 < x < 2)


def _speed(name: str, value: Any) -> float:
    """A number >= 0; infinity: no limit."""
    if isinstance(value, float) and value == float("inf"):
        return value
    return _not_negative(name, value)


def _index(name: str, value: Any) -> int:
    """An integer, also one that comes as MuJoCo's enum or as NumPy's."""
    number = whole_number(value)
    if number is None:
        raise ModelError(f"option {name}: got {value!r}, allowed is an integer")
    return number


def _count(name: str, value: Any) -> int:
    number = _index(name, value)
    if not 0 <= number < 2**31:
        raise ModelError(f"option {name}: got {number}, allowed is an integer >= 0")
    return number


def _choice(kind: type[IntEnum], supported: tuple[IntEnum, ...]) -> Callable[[str, Any], int]:
    """A check for an enumeration: a name, a number or MuJoCo's enum, and supported."""
    names = {member.name.lower(): member for member in kind}
    allowed = ", ".join(repr(member.name.lower()) for member in supported)

    def check(name: str, value: Any) -> int:
        if isinstance(value, str):
            if value.lower() not in names:
                raise ModelError(f"option {name}: got {value!r}, allowed are {allowed}{near(value.lower(), names)}")
            member = names[value.lower()]
        else:
            number = _index(name, value)
            if number not in list(kind):
                raise ModelError(f"option {name}: got {number}, allowed are {allowed}")
            member = kind(number)
        if member not in supported:
            raise UnsupportedFeatureError([f"option {name}: {member.name.lower()!r}, allowed are {allowed}"])
        return int(member)

    return check


def _registered(table: Mapping[int, Scheme | ConvexSolver]) -> Callable[[str, Any], int]:
    """A check for what is registered in a table, by name or number."""

    def check(name: str, value: Any) -> int:
        numbers = {entry.name: number for number, entry in table.items()}
        allowed = ", ".join(map(repr, numbers))
        if isinstance(value, str):
            if value.lower() not in numbers:
                raise ModelError(f"option {name}: got {value!r}, allowed are {allowed}{near(value.lower(), numbers)}")
            return numbers[value.lower()]
        number = _index(name, value)
        if number not in table:
            raise ModelError(f"option {name}: got {number}, allowed are {allowed}")
        return number

    return check


def _named(kind: type[IntEnum]) -> Callable[[int], int]:
    """MuJoCo's numbers by their names, others as they are."""
    return lambda number: kind(number) if number in set(kind) else number


def _bits(name: str, value: Any, kind: type[IntFlag], mujocos: str) -> int:
    """Flags as bits, MuJoCo's enum, a name, names with commas between, or a collection of these."""
    if isinstance(value, str):
        value = value.replace("|", ",").split(",")
    if isinstance(value, list | tuple | set | frozenset):
        bits = 0
        for flag in value:
            bits |= _flag(name, flag, kind) if isinstance(flag, str) else _bits(name, flag, kind, mujocos)
        return bits
    bits, every = _count(name, value), sum(kind)
    if bits & ~every:
        raise ModelError(f"option {name}: got bits {bits:#x}, allowed are those of {mujocos}, {every:#x}")
    return bits


def _flag(name: str, text: str, kind: type[IntFlag]) -> int:
    """One flag by its name in MJCF."""
    names = {str(flag.name).lower(): int(flag) for flag in kind}
    given = text.strip().lower()
    return names[one_of(f"option {name}", given, names)]


def _disable_bits(name: str, value: Any) -> int:
    return _bits(name, value, Disable, "mjtDisableBit")


def _enable_bits(name: str, value: Any) -> int:
    bits = _bits(name, value, Enable, "mjtEnableBit")
    if bits & ~SUPPORTED_ENABLE:
        flags = [str(flag.name).lower() for flag in Enable if flag & bits & ~SUPPORTED_ENABLE]
        raise UnsupportedFeatureError([f"option {name}: {flag!r}" for flag in flags])
    return bits


def _word(member: IntEnum | IntFlag) -> str:
    """A choice or a flag as MJCF spells it."""
    return str(member.name).lower()


# where a setting is kept
OPTION_OF: dict[type, str] = {
    ContactModel: "contact_model",
    Gyroscopic: "gyroscopic",
    Integrator: "integrator",
    LcpCone: "lcp_cone",
    LcpSolver: "lcp_solver",
    Rotation: "rotation",
    Disable: "disableflags",
    Enable: "enableflags",
}

# Settings that do not go together, and what the error says.  A setting is a choice, a flag that is set, or a number
# that is not 0: an option, or how many elements of a kind the model has.
CLASHES: tuple[tuple[tuple[IntEnum | IntFlag | str, ...], str], ...] = (
    # as in MuJoCo, whose trees fall asleep by islands
    ((Enable.SLEEP, "tendon_equalities"), "flag: sleep with equalities of tendons, allowed are the other types"),
    ((Enable.SLEEP, Integrator.RK4), "flag: sleep with the integrator rk4, allowed are the others"),
    (
        (Enable.SLEEP, Integrator.DISCRETE, Disable.ISLAND),
        "flag: sleep with the integrator discrete and the flag island off, allowed is island on",
    ),
    # the step of ODE is semi-implicit Euler, its forces follow from no acceleration, and its bodies do not sleep
    *(
        ((ContactModel.LCP, other), f"contact_model 'lcp' with the integrator {_word(other)!r}, allowed is 'euler'")
        for other in Integrator
        if other != Integrator.EULER
    ),
    *(
        ((ContactModel.LCP, flag), f"contact_model 'lcp' with the flag {_word(flag)}, allowed is to have it off")
        for flag in LCP_REFUSED
    ),
    (
        (ContactModel.LCP, "noslip_iterations"),
        "contact_model 'lcp' with noslip_iterations, allowed is 0: its friction does not slip",
    ),
    # pivoting has bounds on single rows, not on the two rows of friction together
    (
        (ContactModel.LCP, LcpSolver.DANTZIG, LcpCone.CONE),
        "lcp_cone 'cone' with lcp_solver 'dantzig', allowed are lcp_solver 'pgs' and 'apgd' (set it first), or lcp_cone"
        " 'pyramid'",
    ),
    # links are rows of the LCP
    ((ContactModel.CONVEX, "nlink"), "contact_model 'convex' in a model with links, allowed is 'lcp'"),
    # four linear steps do not make one of the fourth order
    (
        (Rotation.INFINITESIMAL, Integrator.RK4),
        "rotation 'infinitesimal' with the integrator rk4, allowed is 'finite'",
    ),
    # the implicit torque is of the first order, and four stages with it do not make a step of the fourth
    (
        (Gyroscopic.IMPLICIT, Integrator.RK4),
        "gyroscopic 'implicit' with the integrator rk4, allowed are 'explicit' and 'off'",
    ),
    (
        ("implicit_bodies", Integrator.RK4),
        "body_gyroscopic 1 (implicit) with the integrator rk4, allowed are 0 (explicit), 2 (off) and -1 (the option)",
    ),
)


def _option(setting: IntEnum | IntFlag | str) -> str:
    """The option, or the count of elements, that a setting is of."""
    return setting if isinstance(setting, str) else OPTION_OF[type(setting)]


def _holds(setting: IntEnum | IntFlag | str, value: int) -> bool:
    """Does the value of its option have that setting?"""
    if isinstance(setting, str):
        return value != 0
    return bool(value & setting) if isinstance(setting, IntFlag) else value == setting


def clashes(values: Mapping[str, int], option: str = "") -> list[str]:
    """Which settings do not go together.

    Args:
        values: options, `nlink`, `tendon_equalities` and `implicit_bodies`; what is not in it is taken to be 0.
        option: tell of its settings alone; empty: of all.
    """
    return [
        f"option {says}"
        for settings, says in CLASHES
        if option in ("", *map(_option, settings)) and all(_holds(s, values.get(_option(s), 0)) for s in settings)
    ]


def tendon_equalities(eq_type: np.ndarray) -> int:
    """How many equality constraints are of tendons."""
    return int(np.count_nonzero(np.asarray(eq_type) == EQ_TENDON))


class _Number:
    """An option that is one real of the record."""

    def __init__(self, check: Callable[[str, Any], float], doc: str):
        self.check, self.__doc__ = check, doc

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, opt, owner=None):
        return self if opt is None else float(opt._model.__dict__[f"opt_{self.name}"][0])

    def __set__(self, opt, value):
        opt._model.__dict__[f"opt_{self.name}"][0] = self.check(self.name, value)


class _Vector:
    """An option that is a row of reals: reads as a live array, assignment copies."""

    def __init__(self, doc: str):
        self.__doc__ = doc

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, opt, owner=None):
        return self if opt is None else getattr(opt._model, f"opt_{self.name}")

    def __set__(self, opt, value):
        target = opt._model.__dict__[f"opt_{self.name}"]
        target[...] = self.check(self.name, value, target.shape, target)

    @staticmethod
    def check(name: str, value: Any, shape: tuple[int, ...], present=()) -> np.ndarray:
        """Exactly as many numbers as the option has: one would otherwise stand for all.

        An error shows what to type: zeros where 0 was given, else the present numbers.
        """
        try:
            array = converted(value)
        except ValueError:
            array = np.zeros(0)
        if array.shape != shape or array.dtype.kind not in "iuf":
            zero = isinstance(value, int | float) and value == 0
            example = ", ".join(f"{x:g}" for x in (np.zeros(shape) if zero else present))
            allowed = f"{shape[0]} numbers, as in {name} = {example}"
            raise ModelError(f"option {name}: got {value!r}, allowed are {allowed}")
        if not np.isfinite(array).all():
            raise ModelError(f"option {name}: got {value!r}, allowed are finite numbers")
        return array


class _Integer:
    """An option that is a size of the record, shared by all worlds."""

    def __init__(self, check: Callable[[str, Any], int], doc: str, kind: Callable[[int], int] = int):
        self.check, self.kind, self.__doc__ = check, kind, doc

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, opt, owner=None):
        return self if opt is None else self.kind(opt._model.size_values()[f"opt_{self.name}"])

    def __set__(self, opt, value):
        number = self.check(self.name, value)
        self.refuse(opt, number)
        opt._model.take_constants({f"opt_{self.name}": number})

    def refuse(self, opt, number: int) -> None:
        """Refuse what does not go with the other settings of the model."""
        model = opt._model
        values = {name.removeprefix("opt_"): value for name, value in model.size_values().items()}
        values["tendon_equalities"] = tendon_equalities(model.eq_type)
        values["implicit_bodies"] = int(np.count_nonzero(model.__dict__["body_gyroscopic"] == Gyroscopic.IMPLICIT))
        problems = clashes(values | {self.name: number}, self.name)
        if problems:
            raise UnsupportedFeatureError(problems)


class _ContactModelChoice(_Integer):
    """The contact model; reads as its name."""

    def __get__(self, opt, owner=None):
        return self if opt is None else ContactModel(super().__get__(opt)).name.lower()

    def refuse(self, opt, number: int) -> None:
        super().refuse(opt, number)
        opt._model.check_edits()


FILTERPARENT = "option disableflags: filterparent is fixed when the model is loaded; set it in the XML"


class _DisableFlags(_Integer):
    """Disable bits: the filter of parents made the candidate pairs and is fixed with them."""

    def refuse(self, opt, number: int) -> None:
        if (number ^ opt.disableflags) & Disable.FILTERPARENT:
            raise ModelError(FILTERPARENT)
        super().refuse(opt, number)


class Option:
    """The physics options of a model; edits take effect at the next step."""

    __slots__ = ("_model",)

    timestep = _Number(_positive, "Time step [s], > 0.")
    impratio = _Number(_positive, "Ratio of frictional to normal contact impedance, > 0.")
    tolerance = _Number(_not_negative, "The solver stops at a scaled improvement or gradient below this.")
    ls_tolerance = _Number(_not_negative, "The line search stops at a relative slope below this.")
    density = _Number(_not_negative, "Density of the medium [kg/m^3]; 0: there is none.")
    viscosity = _Number(_not_negative, "Viscosity of the medium [Pa s].")
    gravity = _Vector("Gravitational acceleration (3,) [m/s^2].")
    wind = _Vector("Velocity of the medium (3,) [m/s].")
    magnetic = _Vector("Magnetic flux (3,) [T], which magnetometers measure.")
    o_margin = _Number(_real, "Margin of all contacts [m], where the flag override is on.")
    o_solref = _Vector("Reference of all contacts (2,), where the flag override is on.")
    o_solimp = _Vector("Impedance of all contacts (5,), where the flag override is on.")
    o_friction = _Vector("Friction of all contacts (5,), where the flag override is on.")
    contact_model = _ContactModelChoice(
        _choice(ContactModel, tuple(ContactModel)),
        "How contacts become forces: convex (MuJoCo's regularised model) or lcp (ODE's).",
        ContactModel,
    )
    integrator = _Integer(_registered(SCHEMES), "How a step is taken.", _named(Integrator))
    cone = _Integer(_choice(Cone, SUPPORTED_CONES), "Friction cone: pyramidal or elliptic.", Cone)
    solver = _Integer(_registered(SOLVERS), "convex: newton, cg (primal) or pgs (dual).", _named(Solver))
    iterations = _Integer(_count, "Most iterations of the solver.")
    noslip_iterations = _Integer(_count, "Most sweeps of the pass against slip after the solver; 0: none.")
    sleep_tolerance = _Number(_real, "A tree whose velocities are below this may fall asleep [m/s].")
    noslip_tolerance = _Number(_not_negative, "The pass against slip stops at a scaled improvement below this.")
    ls_iterations = _Integer(_count, "Most iterations of the line search.")
    disableflags = _DisableFlags(_disable_bits, "Flags that are off: bits of mjtDisableBit, or their names.", Disable)
    enableflags = _Integer(_enable_bits, "Flags that are on: bits of mjtEnableBit, or their names.", Enable)
    forward_dynamics = _Integer(
        _choice(ForwardDynamics, SUPPORTED_FORWARD_DYNAMICS),
        "auto (by counted cost), crb (factor of M) or aba (articulated bodies; with tendons as crb).",
        ForwardDynamics,
    )
    disableactuator = _Integer(_count, "Bits of the actuator groups that are off.")
    lcp_solver = _Integer(_choice(LcpSolver, tuple(LcpSolver)), "lcp: dantzig (exact), pgs or apgd.", LcpSolver)
    lcp_iterations = _Integer(_count, "lcp: most iterations of pgs and apgd, and passes of consistent friction.")
    lcp_friction = _Integer(
        _choice(LcpFriction, tuple(LcpFriction)),
        "lcp: dantzig's friction limits are frozen (ODE's) or consistent with the final normals.",
        LcpFriction,
    )
    lcp_cone = _Integer(_choice(LcpCone, tuple(LcpCone)), "lcp: friction cone, pyramid or (pgs, apgd) cone.", LcpCone)
    lcp_tolerance = _Number(_not_negative, "lcp: pgs and apgd stop at a residual below this.")
    lcp_relaxation = _Number(_relaxation, "lcp: over-relaxation of pgs, between 0 and 2.")
    softness = _Integer(_choice(Softness, tuple(Softness)), "lcp: rows are soft by erp (and cfm) or solref.", Softness)
    erp = _Number(_fraction, "lcp: part of a position error that a step removes, 0 to 1.")
    cfm = _Number(_not_negative, "lcp: velocity that a unit force of a row lets through [m/(s N)], >= 0.")
    contact_max_vel = _Number(_speed, "lcp: largest velocity at which contacts are pushed apart [m/s].")
    contact_min_depth = _Number(_not_negative, "lcp: penetration that is left alone [m].")
    gyroscopic = _Integer(
        _choice(Gyroscopic, tuple(Gyroscopic)),
        "Gyroscopic torque of free bodies: explicit (MuJoCo's), implicit (ODE's) or off.",
        Gyroscopic,
    )
    rotation = _Integer(
        _choice(Rotation, tuple(Rotation)), "Orientations turn by finite or infinitesimal steps.", Rotation
    )

    def __init__(self, model: ModelFields):
        object.__setattr__(self, "_model", model)

    def __getattr__(self, name: str):
        if name in PASSED_THROUGH:
            return getattr(self._model.mj_model.opt, name)
        raise UnknownAttributeError(f"no option {name!r}{near(name, dir(self))}")

    def __setattr__(self, name: str, value: Any):
        if name in PASSED_THROUGH:
            check = _not_negative if name == "ccd_tolerance" else _count
            setattr(self._model.mj_model.opt, name, check(name, value))
        elif hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:
            raise UnknownAttributeError(f"no option {name!r}{near(name, dir(self))}")

    def __dir__(self):
        return [*(n for n in vars(type(self)) if not n.startswith("_")), *PASSED_THROUGH]

    def __repr__(self) -> str:
        sizes = self._model.size_values()
        integrator, solver = SCHEMES[sizes["opt_integrator"]].name, SOLVERS[sizes["opt_solver"]].name
        return (
            f"Option(timestep={self.timestep:g}, integrator={integrator}, "
            f"solver={solver}, cone={Cone(self.cone).name.lower()}, "
            f"contact_model={self.contact_model})"
        )


def set_integers(model: ModelFields, values: Mapping[str, int]) -> None:
    """Set integer options together: only what they are in the end has to go together.

    Args:
        model: the model, which is changed.
        values: number by name of the field, `opt_integrator`, ...

    Raises:
        ModelError: a number that an option does not take, with what is allowed.
        UnsupportedFeatureError: settings that do not go together.
    """
    found = {name.removeprefix("opt_"): value for name, value in values.items()}
    found = {name: vars(Option)[name].check(name, value) for name, value in found.items()}
    if (found.get("disableflags", model.opt_disableflags) ^ model.opt_disableflags) & Disable.FILTERPARENT:
        raise ModelError(FILTERPARENT)
    problems = clashes(found | {"nlink": model.nlink, "tendon_equalities": tendon_equalities(model.eq_type)})
    if problems:
        raise UnsupportedFeatureError(problems)
    model.take_constants({f"opt_{name}": value for name, value in found.items()})


def check_options(opt) -> None:
    """Refuse option values that no setter takes; what is not supported is for `features.unsupported` to say.

    Args:
        opt: an mjOption, or anything with its attributes.

    Raises:
        ModelError: with the option's name, its value and what is allowed.
    """
    for name, option in vars(Option).items():
        if name in OWN_OPTIONS:
            continue  # not MuJoCo's
        with suppress(UnsupportedFeatureError):
            if isinstance(option, _Vector):
                option.check(name, getattr(opt, name), np.shape(getattr(opt, name)))
            elif isinstance(option, _Number | _Integer):
                option.check(name, getattr(opt, name))
