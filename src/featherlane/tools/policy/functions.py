"""`LaneFunctions`: compiled observation, reward and termination of a task, which a rollout calls in lanes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel, Record, Stage
from featherlane.engine.lanes.runtime import KernelError, mode
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.user.function import address_of, refuse_addresses
from featherlane.errors import InstallationError, ModelError
from featherlane.tools.policy.play import PLAY

PARAMETERS = ("d", "p", "at_start")


class LaneFunctions(NamedTuple):
    """Holds the compiled functions of a task: kernels `f(d, p, at_start)` in the kernel language.

    `d` has the present state and the task's `fields`, as after `TaskEnv.step`.  `at_start` is 1 for the first state of
    an episode, else 0.  Constants are numbers of the enclosing functions.

    Attributes:
        observe: writes the observation, `p.obs[k]`.
        score: adds the reward terms to `p.reward[0]`, a float64 that is 0 before, and sets `p.terminated[0]` to 1 in
            worlds that terminate.  It reads the controls `d.ctrl`, and `p.before[k]`.
        remember: stores values of the present state for the reward of the next action in `p.next[k]`; `score` reads
            them as `p.before[k]`.  None: nothing is stored.
        nbefore: number of these values.
        start_stage: stage up to which the derived fields of initial states are computed: "none", "position", "velocity"
            or "acceleration", as in `Batch.step`.  "task": "acceleration" if the task's `forward_at_start` is True.
    """

    observe: Kernel
    score: Kernel
    remember: Kernel | None = None
    nbefore: int = 0
    start_stage: str = "task"


@kernel
def nothing(d, p, at_start):
    """Writes nothing."""


_stages: dict[tuple[str, tuple[str, ...]], Stage] = {}  # by hash of the code and fields that it may read
_by_name: dict[str, Stage] = {}


def stages(task: str, functions: LaneFunctions, fields: Sequence[str]) -> dict[str, Stage]:
    """Returns the stages of a task's functions, by the field of `PLAY` that has their address.

    Args:
        task: name of the task, for messages.
        functions: the functions.
        fields: derived fields that they may read.

    Raises:
        ModelError: a function is no kernel, has other parameters, or reads a field that is not computed.
    """
    given = {"observe": functions.observe, "score": functions.score, "remember": functions.remember or nothing}
    return {name: _stage(f"{task}: {name}", function, fields) for name, function in given.items()}


def _stage(label: str, function: Kernel, fields: Sequence[str]) -> Stage:
    if not isinstance(function, Kernel) or isinstance(function, Stage):
        raise ModelError(f"{label}: got {type(function).__name__}, allowed is a featherlane.kernel")
    key = function.code_hash(), tuple(fields)
    if key not in _stages:
        _check(label, function, fields)

        def calling(d, p, at_start):
            function(d, p, at_start)

        calling.__name__ = f"task_{Kernel(calling).code_hash()[:24]}"
        _stages[key] = _by_name.setdefault(calling.__name__, Stage(calling, {"p": PLAY}))
    return _stages[key]


def _check(label: str, function: Kernel, fields: Sequence[str]) -> None:
    """Raises an error for other parameters, functions that take addresses, and fields that are not computed."""
    given = tuple(inspect.signature(function.function).parameters)
    if len(given) != len(PARAMETERS):
        raise ModelError(f"{label}: got a function with the parameters {given}, allowed is f{PARAMETERS}")
    refuse_addresses(label, function)
    named = {name for k in function.contained() for name in k.names} & set(DATA.that("shown")) - PLAY.index.keys()
    missing = sorted(named - set(DATA.that("lasts")) - set(fields))
    if missing:
        raise ModelError(f"{label}: got reads of {', '.join(missing)}, allowed are the state and the task's `fields`")


def connect(label: str, record: Record, functions: Mapping[str, Stage]) -> None:
    """Writes the addresses of the functions into a record of `PLAY`; compiles them if necessary.

    Raises:
        ModelError: a function cannot be compiled, or may not be with FEATHERLANE_MODE=prebuilt.
        InstallationError: it has to be compiled, and no compiler is installed.
    """
    if mode() == "prebuilt":
        raise ModelError(f"{label}: compiled() is not allowed with FEATHERLANE_MODE=prebuilt, allowed is auto")
    record.functions[:] = [nothing]  # number 0 is not used
    for name, function in functions.items():
        if mode() == "python":
            record.functions.append(function)
            record.set_size(name, len(record.functions) - 1)
        else:
            record.set_size(name, _address(f"{label}: {name}", function, record))


def _address(label: str, function: Stage, record: Record) -> int:
    from featherlane.engine.lanes.compiler.rules import KernelLanguageError

    try:
        return address_of(function, record.dtype, record.width)
    except KernelLanguageError as error:
        raise ModelError(f"{label} cannot be compiled: {error}") from None
    except KernelError as error:
        raise InstallationError(f"{label}: {error}") from None
