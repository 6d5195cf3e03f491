"""`model.opt`: the physics options, checked when they are set and live in the model's record.

Values are read and written under MuJoCo's names; enumerations accept MuJoCo's enums, their numbers or plain names
(`"rk4"`).  MuJoCo options without an effect on the computation are passed through to the MjModel.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np

from featherlane.engine.model.arguments import MOST, is_real, one_of, whole_argument
from featherlane.engine.model.assignment import converted
from featherlane.engine.model.enums import (
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
from featherlane.engine.model.fields import DEFAULTS
from featherlane.engine.model.integrator import SCHEMES, Scheme
from featherlane.engine.model.lcp_solver import REGISTERED_SOLVERS
from featherlane.engine.model.limits import FINITE, LIMITS, Limit
from featherlane.engine.model.protocol import ModelFields
from featherlane.engine.model.solver import SOLVERS, ConvexSolver
from featherlane.errors import ModelError, UnknownAttributeError, UnsupportedFeatureError, near

LCP_REFUSED = Enable.FWDINV | Enable.INVDISCRETE | Enable.SLEEP  # flags that the contact model lcp does not support

# MuJoCo's options without an effect on the computation
PASSED_THROUGH = ("jacobian", "ccd_iterations")


def _word(member: IntEnum | IntFlag) -> str:
    """Returns a choice or a flag in MJCF's spelling."""
    return str(member.name).lower()


# the option of each setting
OPTION_OF: dict[type, str] = {
    ContactModel: "contact_model",
    Gyroscopic: "gyroscopic",
    Integrator: "integrator",
    LcpCone: "lcp_cone",
    LcpFriction: "lcp_friction",
    LcpSolver: "lcp_solver",
    Rotation: "rotation",
    Solver: "solver",
    Disable: "disableflags",
    Enable: "enableflags",
}

MOST_OF_SDF = 10_000  # 1e4 points with 1e4 iterations: 1e8 evaluations of a field for one pair of geoms
# Incompatible settings: each one of the first list with each one of the others, and what is allowed.  A setting is a
# choice, a flag that is set, or a nonzero number: an option, or the count of elements of a kind in the model.
COMBINATIONS: tuple[tuple[Any, ...], ...] = (
    # as in MuJoCo, where islands of trees fall asleep
    ([Enable.SLEEP], ["tendon_equalities"], "are other equalities"),
    ([Enable.SLEEP], [Integrator.RK4], "are the other integrators"),
    ([Enable.SLEEP], [Integrator.DISCRETE], [Disable.ISLAND], "is island enabled"),
    # ODE's step is semi-implicit Euler, its forces are not derived from an acceleration, and its bodies do not sleep
    ([ContactModel.LCP], [other for other in Integrator if other != Integrator.EULER], "is 'euler'"),
    ([ContactModel.LCP], LCP_REFUSED, "is disabling it"),
    ([ContactModel.LCP], ["noslip_iterations"], "is 0 (its friction has no creep)"),
    # these solvers support bounds on single rows, not on the two friction rows jointly
    (
        *([ContactModel.LCP], [LcpSolver.DANTZIG, LcpSolver.REGISTERED], [LcpCone.CONE]),
        "are lcp_solver 'pgs' and 'apgd' (set the solver first), or lcp_cone 'pyramid'",
    ),
    # links are rows of the LCP
    ([ContactModel.CONVEX, ContactModel.COULOMB], ["nlink"], "is 'lcp'"),
    # Coulomb's law has a Newton solver, on elliptic cones whatever the option cone
    ([ContactModel.COULOMB], [Solver.CG, Solver.PGS], "is 'newton'"),
    ([ContactModel.COULOMB], [Integrator.RK4, Integrator.DISCRETE], "are 'euler', 'implicit' and 'implicitfast'"),
    ([ContactModel.COULOMB], ["noslip_iterations"], "is 0: its friction does not creep"),
    # RK4 with linear rotation updates in its four stages is not fourth order
    ([Rotation.INFINITESIMAL], [Integrator.RK4], "is 'finite'"),
    # the implicit torque is first order; RK4 with it in four stages is not fourth order
    ([Gyroscopic.IMPLICIT], [Integrator.RK4], "are 'explicit' and 'off'"),
    (["implicit_bodies"], [Integrator.RK4], "are 0 (explicit), 2 (off) and -1 (the option)"),
)
COUNTED = {"nlink": "links", "tendon_equalities": "equalities of tendons"}
COUNTED |= {"implicit_bodies": "body_gyroscopic 1 (implicit)", "noslip_iterations": "noslip_iterations"}


def _described(setting: IntEnum | IntFlag | str) -> str:
    """Returns the text of a setting: `the integrator 'rk4'`, `the flag sleep`, `links`."""
    if isinstance(setting, str):
        return COUNTED[setting]
    if isinstance(setting, IntFlag):
        return f"the flag {_word(setting)}{' disabled' if isinstance(setting, Disable) else ''}"
    return f"the {OPTION_OF[type(setting)]} {_word(setting)!r}"


def _message(settings: tuple[IntEnum | IntFlag | str, ...], allowed: str) -> str:
    """Returns the error text of settings together."""
    first, *others = map(_described, settings)
    first = first.removeprefix("the ").replace("flag ", "flag: ")
    return f"{first} with {' and '.join(others)}, allowed {allowed}"


# all incompatible settings, and the error text of each
CLASHES = [(s, _message(s, allowed)) for *each, allowed in COMBINATIONS for s in itertools.product(*each)]


def _option(setting: IntEnum | IntFlag | str) -> str:
    """Returns the option, or the count of elements, that a setting belongs to."""
    return setting if isinstance(setting, str) else OPTION_OF[type(setting)]


def _holds(setting: IntEnum | IntFlag | str, value: int) -> bool:
    """Returns whether the option's value has that setting."""
    if isinstance(setting, str):
        return value != 0
    return bool(value & setting) if isinstance(setting, IntFlag) else value == setting


def clashes(values: Mapping[str, int], option: str = "") -> list[str]:
    """Lists the incompatible settings.

    Args:
        values: options, `nlink`, `tendon_equalities` and `implicit_bodies`; missing entries count as 0.
        option: only report this option's settings; empty: all.
    """
    return [
        f"option {says}"
        for settings, says in CLASHES
        if option in ("", *map(_option, settings)) and all(_holds(s, values.get(_option(s), 0)) for s in settings)
    ]


def tendon_equalities(eq_type: np.ndarray) -> int:
    """Returns the number of equality constraints of tendons."""
    return int(np.count_nonzero(np.asarray(eq_type) == EQ_TENDON))


def _count(name: str, value: Any, most: int = MOST) -> int:
    whole = whole_number(value)  # accepts MuJoCo's enums
    return whole_argument(f"option {name}", value if whole is None else whole, 0, most)


def _real(name: str, value: Any, limit: Limit) -> float:
    given: Any = value.item() if isinstance(value, np.generic | np.ndarray) and not value.ndim else value
    if not is_real(given) or not limit.low <= given <= limit.high:
        raise ModelError(f"option {name}: got {given!r}, allowed are {limit.words}")
    return float(given)


class _Option:
    """Base class of the option descriptors."""

    name: str

    def __init__(self, doc: str):
        self.__doc__ = doc

    def __set_name__(self, owner, name: str):
        self.name = name

    def check(self, value: Any) -> Any:
        """Returns the stored form of a value, or raises an error."""


class _Number(_Option):
    """An option that is one real of the record, within its field's limits."""

    def __get__(self, opt: Any, owner: Any = None) -> Any:
        return self if opt is None else float(opt._model.__dict__[f"opt_{self.name}"][0])

    def __set__(self, opt: Any, value: Any) -> None:
        opt._model.__dict__[f"opt_{self.name}"][0] = self.check(value)

    def check(self, value: Any) -> float:
        return _real(self.name, value, LIMITS.get(f"opt_{self.name}", FINITE))


class _Vector(_Option):
    """An option that is a row of reals: reading returns a live array, assignment copies."""

    def __get__(self, opt: Any, owner: Any = None) -> Any:
        return self if opt is None else getattr(opt._model, f"opt_{self.name}")

    def __set__(self, opt: Any, value: Any) -> None:
        target = opt._model.__dict__[f"opt_{self.name}"]
        target[...] = self.check(value, target)

    def check(self, value: Any, present: Any = None) -> np.ndarray:
        """Requires as many numbers as the option has: a single number would be broadcast.

        The error shows a valid input: zeros if 0 was given, else the current values.
        """
        present = np.asarray(value if present is None else present)
        try:
            array = converted(value)
        except ValueError:
            array = np.zeros(0)
        if array.shape != present.shape or array.dtype.kind not in "iuf":
            zero = isinstance(value, int | float) and value == 0
            example = ", ".join(f"{x:g}" for x in (np.zeros(present.shape) if zero else present))
            allowed = f"{present.size} numbers, for example {self.name} = {example}"
            raise ModelError(f"option {self.name}: got {value!r}, allowed are {allowed}")
        if not np.isfinite(array).all():
            raise ModelError(f"option {self.name}: got {value!r}, allowed are finite numbers")
        return array


class _Integer(_Option):
    """An option that is a size of the record, shared by all worlds.

    Args:
        doc: description of the option.
        most: the largest value.
    """

    def __init__(self, doc: str, most: int = MOST):
        super().__init__(doc)
        self.most = most

    def __get__(self, opt: Any, owner: Any = None) -> Any:
        return self if opt is None else self.shown(opt._model.size_values()[f"opt_{self.name}"])

    def __set__(self, opt: Any, value: Any) -> None:
        number = self.check(value)
        self.refuse(opt, number)
        opt._model.take_constants({f"opt_{self.name}": number})

    def shown(self, number: int) -> Any:
        """Returns the value in the form that users read."""
        return number

    def check(self, value: Any) -> int:
        return _count(self.name, value, self.most)

    def refuse(self, opt, number: int) -> None:
        """Raises an error for a value that is incompatible with the other settings of the model."""
        model = opt._model
        values = {name.removeprefix("opt_"): value for name, value in model.size_values().items()}
        values["tendon_equalities"] = tendon_equalities(model.eq_type)
        values["implicit_bodies"] = int(np.count_nonzero(model.__dict__["body_gyroscopic"] == Gyroscopic.IMPLICIT))
        problems = clashes(values | {self.name: number}, self.name)
        if problems:
            raise UnsupportedFeatureError(problems)


class _Bits(_Integer):
    """An option of bits in 32-bit memory: with the highest bit, the number is negative, as in MuJoCo."""

    def check(self, value: Any) -> int:
        return whole_argument(self.name, value, -(1 << 31), (1 << 31) - 1)


class _Choice(_Integer):
    """An option that is one of several choices, given by name, number or MuJoCo's enum.

    Args:
        kind: the choices.
        doc: description of the option.
        table: table of choices that can be extended by registration; None: the choices are fixed.
    """

    def __init__(self, kind: type[IntEnum], doc: str, table: Mapping[int, Scheme | ConvexSolver] | None = None):
        super().__init__(doc)
        self.kind, self._table = kind, table

    def shown(self, number: int) -> Any:
        return self.kind(number) if number in set(self.kind) else number

    def numbers(self) -> dict[str, int]:
        """Returns the allowed names and their numbers."""
        if self._table is None:
            return {_word(member): int(member) for member in self.kind}
        return {entry.name: number for number, entry in self._table.items()}

    def check(self, value: Any) -> int:
        numbers = self.numbers()
        found = numbers.get(value.lower()) if isinstance(value, str) else whole_number(value)
        if found is None or found not in numbers.values():
            hint = near(value.lower(), numbers) if isinstance(value, str) else ""
            raise ModelError(f"option {self.name}: got {value!r}, allowed are {', '.join(map(repr, numbers))}{hint}")
        return found


class _ContactModelChoice(_Choice):
    """The contact model; reads as its name."""

    def shown(self, number: int) -> str:
        return _word(ContactModel(number))

    def refuse(self, opt, number: int) -> None:
        super().refuse(opt, number)
        opt._model.check_edits()


class _LcpSolverChoice(_Choice):
    """The LCP solver; the name of a registered solver is also a value."""

    def __get__(self, opt: Any, owner: Any = None) -> Any:
        found = super().__get__(opt, owner)
        return opt._model.user_lcp_solver.name if found is LcpSolver.REGISTERED else found

    def __set__(self, opt: Any, value: Any) -> None:
        super().__set__(opt, value)
        opt._model.__dict__["user_lcp_solver"] = REGISTERED_SOLVERS.get(value) if isinstance(value, str) else None

    def numbers(self) -> dict[str, int]:
        own = {_word(member): int(member) for member in LcpSolver if member != LcpSolver.REGISTERED}
        return own | dict.fromkeys(REGISTERED_SOLVERS, int(LcpSolver.REGISTERED))

    def check(self, value: Any) -> int:
        if isinstance(value, str) and value in REGISTERED_SOLVERS:
            return int(LcpSolver.REGISTERED)
        # a registered solver has a name, not the number that all of them share
        numbers = self.numbers()
        found = numbers.get(value.lower()) if isinstance(value, str) else whole_number(value)
        if found is None or found == LcpSolver.REGISTERED or found not in numbers.values():
            found = numbers[one_of(f"option {self.name}", value, numbers)]  # raises
        return found


class _Flags(_Integer):
    """Flags: bits, MuJoCo's enum, an MJCF name, comma-separated names, or a collection of these."""

    def __init__(self, kind: type[IntFlag], doc: str):
        super().__init__(doc)
        self.kind = kind

    def shown(self, number: int) -> IntFlag:
        return self.kind(number)

    def check(self, value: Any) -> int:
        if isinstance(value, str):
            value = value.replace("|", ",").split(",")
        if not isinstance(value, list | tuple | set | frozenset):
            return self._known(super().check(value))
        names, bits = {_word(flag): int(flag) for flag in self.kind}, 0
        for flag in value:
            if isinstance(flag, str):
                bits |= names[one_of(f"option {self.name}", flag.strip().lower(), names)]
            else:
                bits |= self.check(flag)
        return self._known(bits)

    def _known(self, bits: int) -> int:
        every = sum(self.kind)
        if bits & ~every:
            allowed = f"those of mjt{self.kind.__name__}Bit, {every:#x}"
            raise ModelError(f"option {self.name}: got bits {bits:#x}, allowed are {allowed}")
        return bits


FILTERPARENT = (
    "option disableflags: got a change of filterparent, which is fixed when the model is loaded; set it in the XML"
)


class _DisableFlags(_Flags):
    """Disable flags; `filterparent` is fixed, because it determined the candidate pairs."""

    def refuse(self, opt, number: int) -> None:
        if (number ^ opt.disableflags) & Disable.FILTERPARENT:
            raise ModelError(FILTERPARENT)
        super().refuse(opt, number)


class Option:
    """The physics options of a model; edits take effect at the next step."""

    __slots__ = ("_model",)

    timestep = _Number("Time step [s], > 0.")
    impratio = _Number("Ratio of frictional to normal contact impedance, > 0.")
    tolerance = _Number("Tolerance of the solver: it stops at a smaller scaled improvement or gradient.")
    ls_tolerance = _Number("Tolerance of the line search: it stops at a smaller relative slope.")
    density = _Number("Density of the fluid [kg/m^3]; 0: no fluid.")
    viscosity = _Number("Viscosity of the fluid [Pa s].")
    gravity = _Vector("Gravitational acceleration (3,) [m/s^2].")
    wind = _Vector("Velocity of the fluid, wind (3,) [m/s].")
    magnetic = _Vector("Magnetic flux (3,) [T], measured by magnetometers.")
    ccd_tolerance = _Number("Tolerance of the distance at impact [m], if the flag speculative is enabled.")
    o_margin = _Number("Margin of all contacts [m], if the flag override is enabled.")
    o_solref = _Vector("solref of all contacts (2,), if the flag override is enabled.")
    o_solimp = _Vector("solimp of all contacts (5,), if the flag override is enabled.")
    o_friction = _Vector("Friction of all contacts (5,), if the flag override is enabled.")
    contact_model = _ContactModelChoice(ContactModel, "Contact model: convex (MuJoCo's), lcp (ODE's) or coulomb.")
    integrator = _Choice(Integrator, "Integrator: euler, rk4, implicit, implicitfast or discrete.", SCHEMES)
    cone = _Choice(Cone, "Friction cone: pyramidal or elliptic.")
    solver = _Choice(Solver, "Solver of the convex model: newton, cg (primal) or pgs (dual).", SOLVERS)
    iterations = _Integer("Largest number of solver iterations.")
    noslip_iterations = _Integer("Largest number of iterations of the no-slip solver; 0: disabled.")
    sdf_initpoints = _Integer("Starting points of collisions of signed distance fields, at most 10000.", MOST_OF_SDF)
    sdf_iterations = _Integer("Iterations of the minimization from each point, at most 10000.", MOST_OF_SDF)
    sdf_tolerance = _Number("Length of a step that ends the minimization [m]; 0: as MuJoCo, sdf_iterations steps.")
    sleep_tolerance = _Number("Sleep tolerance: a tree whose velocities are smaller may fall asleep [m/s].")
    noslip_tolerance = _Number("Tolerance of the no-slip solver: it stops at a smaller scaled improvement.")
    ls_iterations = _Integer("Largest number of line search iterations.")
    disableflags = _DisableFlags(Disable, "Disabled flags: bits of mjtDisableBit, or their names.")
    enableflags = _Flags(Enable, "Enabled optional flags: bits of mjtEnableBit, or their names.")
    forward_dynamics = _Choice(
        ForwardDynamics, "Forward dynamics: auto, crb (factor of M) or aba (articulated bodies)."
    )
    disableactuator = _Bits("Disabled actuator groups, as bits; -1 (`~0`): all groups from 0 to 30.")
    lcp_solver = _LcpSolverChoice(LcpSolver, "lcp: dantzig (exact), pgs, apgd, or the name of a registered solver.")
    lcp_iterations = _Integer("lcp: largest number of iterations; for dantzig, of passes of consistent friction.")
    lcp_friction = _Choice(LcpFriction, "lcp: friction limits of dantzig, frozen (ODE's) or consistent.")
    lcp_cone = _Choice(LcpCone, "lcp: friction cone, pyramid, or cone (pgs and apgd only).")
    lcp_tolerance = _Number("lcp: tolerance of pgs and apgd; they stop at a smaller residual.")
    lcp_relaxation = _Number("lcp: relaxation factor of pgs, between 0 and 2.")
    softness = _Choice(Softness, "lcp: softness of rows by erp (and cfm), or by solref (and solimp).")
    erp = _Number("lcp: error reduction parameter (ERP), the fraction of an error that a step corrects, 0 to 1.")
    cfm = _Number("lcp: constraint force mixing (CFM), the velocity error of a row per unit force [m/(s N)], >= 0.")
    contact_max_vel = _Number("lcp: largest velocity that corrects penetration [m/s].")
    contact_min_depth = _Number("lcp: penetration that is not corrected [m].")
    gyroscopic = _Choice(Gyroscopic, "Gyroscopic torque of free bodies: explicit (MuJoCo's), implicit (ODE's) or off.")
    rotation = _Choice(Rotation, "Quaternion update: finite (exponential map) or infinitesimal (first order).")

    def __init__(self, model: ModelFields):
        object.__setattr__(self, "_model", model)

    @classmethod
    def choices(cls, name: str) -> tuple[str, ...]:
        """Returns the names that an option accepts, such as those of all integrators; empty if it is no choice."""
        option = vars(cls).get(name)
        return tuple(option.numbers()) if isinstance(option, _Choice) else ()

    def __getattr__(self, name: str) -> Any:
        if name in PASSED_THROUGH:
            return getattr(self._model.mj_model.opt, name)
        raise UnknownAttributeError(f"unknown option {name!r}{near(name, dir(self))}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in PASSED_THROUGH:
            setattr(self._model.mj_model.opt, name, _count(name, value))
        elif isinstance(vars(Option).get(name), _Option):
            object.__setattr__(self, name, value)
        else:
            raise UnknownAttributeError(f"unknown option {name!r}{near(name, dir(self))}")

    def __dir__(self):
        return [*(n for n, option in vars(type(self)).items() if isinstance(option, _Option)), *PASSED_THROUGH]

    def __repr__(self) -> str:
        choices = {"integrator": SCHEMES[self.integrator].name, "solver": SOLVERS[self.solver].name}
        choices |= {"cone": _word(self.cone), "contact_model": self.contact_model}
        return f"Option(timestep={self.timestep:g}, {', '.join(f'{k}={v}' for k, v in choices.items())})"


def set_integers(model: ModelFields, values: Mapping[str, int]) -> None:
    """Sets integer options together: only the final combination must be compatible.

    Args:
        model: the model, modified in place.
        values: values by field name, `opt_integrator`, ...

    Raises:
        ModelError: a value that an option does not accept, with the allowed values.
        UnsupportedFeatureError: incompatible settings.
    """
    found = {name.removeprefix("opt_"): value for name, value in values.items()}
    found = {name: vars(Option)[name].check(value) for name, value in found.items()}
    if (found.get("disableflags", model.opt_disableflags) ^ model.opt_disableflags) & Disable.FILTERPARENT:
        raise ModelError(FILTERPARENT)
    problems = clashes(found | {"nlink": model.nlink, "tendon_equalities": tendon_equalities(model.eq_type)})
    if problems:
        raise UnsupportedFeatureError(problems)
    model.take_constants({f"opt_{name}": value for name, value in found.items()})


def check_options(opt) -> None:
    """Raises an error for option values that no setter accepts; `features.unsupported` reports unsupported features.

    Args:
        opt: an mjOption, or anything with its attributes.

    Raises:
        ModelError: with the option's name, its value and the allowed values.
    """
    for name, option in vars(Option).items():
        if isinstance(option, _Option) and f"opt_{name}" not in DEFAULTS:
            with suppress(UnsupportedFeatureError):
                option.check(getattr(opt, name))
