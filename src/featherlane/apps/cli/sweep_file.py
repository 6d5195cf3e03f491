"""Reads a parameter sweep from a TOML file: `featherlane sweep FILE`.

model = "humanoid"                  # a bundled name, or a path relative to this file
samples = 100                       # at each point of the grids and lists
seed = 0

[options]                           # model options for all samples
integrator = "implicitfast"

[parameters]
"geom_friction[floor, 0]" = { grid = [0.4, 0.8, 1.2] }
"body_mass + body_inertia" = { uniform = [0.8, 1.2], apply = "scale" }

[rollout]
seconds = 2.0                       # or steps = 400
control = "random"                  # or zero, FILE.npy, FILE.py:NAME

[reduce]                            # or, above: reduce = "FILE.py:NAME"
height = "final qpos[2]"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from featherlane import bundled_names, load
from featherlane.apps.cli.settings import set_option
from featherlane.apps.cli.user_file import function_in, with_model_errors
from featherlane.distributed.sweeps import values as sweep_values
from featherlane.errors import ModelError
from featherlane.extension import one_of, read_array

TOP = ("model", "samples", "seed", "options", "parameters", "rollout", "reduce")
ROLLOUT = ("steps", "seconds", "control", "keyframe", "dtype", "record")
SOURCES: dict[str, Callable[..., Any]] = {
    "grid": sweep_values.grid,
    "values": sweep_values.values,
    "choice": sweep_values.choice,
    "uniform": sweep_values.uniform,
    "log_uniform": sweep_values.log_uniform,
    "normal": sweep_values.normal,
    "drawn": sweep_values.drawn,
}
OF_TWO = ("uniform", "log_uniform", "normal")
EACH = ("choice", *OF_TWO)
LONGEST = 1 << 26  # characters; a device is endless
MOST_STEPS = 1e12  # as in `featherlane simulate`


def read_sweep(path: Path) -> dict[str, Any]:
    """Reads a file and returns the arguments for `fl.distributed.sweep`.

    Raises:
        ModelError: the file cannot be read, or an entry is invalid; the message names file and entry.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LONGEST + 1)
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: cannot be read as text: {error}") from None
    except OSError as error:
        raise ModelError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    if len(text) > LONGEST:
        raise ModelError(f"{path}: longer than {LONGEST:,} characters")
    try:
        settings = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ModelError(f"{path}: {error}") from None
    try:
        return _arguments(settings, path.parent)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _arguments(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    _known("the file", settings, TOP)
    for name in ("model", "rollout", "reduce"):
        if name not in settings:
            raise ModelError(f"the entry {name} is missing; allowed entries are {', '.join(TOP)}")
    source = settings["model"]
    if not isinstance(source, str):
        raise ModelError(f"model: got {source!r}, allowed is the name of a bundled model or a path")
    model = load(source if source in bundled_names() else folder / Path(source).expanduser())
    for name, value in _table(settings, "options").items():
        set_option(model, name, tuple(value) if isinstance(value, list) else value)
    parameters = {path: _source(path, given, folder) for path, given in _table(settings, "parameters").items()}
    reduce = settings["reduce"]
    return {
        "model": model,
        "parameters": parameters,
        "rollout": _rollout(_table(settings, "rollout"), model, folder),
        "reduce": _function("reduce", reduce, folder) if isinstance(reduce, str) else _table(settings, "reduce"),
        "nsample": settings.get("samples", 1),
        "seed": settings.get("seed", 0),
    }


def _known(what: str, table: dict[str, Any], allowed: tuple[str, ...]) -> None:
    for name in table:
        one_of(what, name, allowed)


def _table(settings: dict[str, Any], name: str) -> dict[str, Any]:
    given = settings.get(name, {})
    if not isinstance(given, dict):
        raise ModelError(f"{name}: got {given!r}, allowed is a table [{name}]")
    return given


def _source(path: str, given: Any, folder: Path) -> Any:
    """Returns the values of a parameter: a list, or a table like { uniform = [0.8, 1.2], apply = "scale" }."""
    if not isinstance(given, dict):
        return given
    what = f"parameter {path!r}"
    _known(what, given, (*SOURCES, "apply", "each"))
    kinds = [name for name in given if name in SOURCES]
    if len(kinds) != 1:
        raise ModelError(f"{what}: got {given!r}, allowed is one of {', '.join(SOURCES)}")
    kind, value = kinds[0], given[kinds[0]]
    if "each" in given and kind not in EACH:
        raise ModelError(f"{what}: got each with {kind}, allowed with {', '.join(EACH)}")
    if kind in OF_TWO and not (isinstance(value, list) and len(value) == 2):
        raise ModelError(f"{what}: {kind}: got {value!r}, allowed are two numbers")
    arguments = (
        value
        if kind in OF_TWO
        else [with_model_errors(_function(what, value, folder), what) if kind == "drawn" else value]
    )
    try:
        return SOURCES[kind](*arguments, **{name: given[name] for name in ("apply", "each") if name in given})
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None


def _rollout(given: dict[str, Any], model, folder: Path) -> dict[str, Any]:
    """Returns the options of the rollouts."""
    _known("rollout", given, ROLLOUT)
    if ("steps" in given) == ("seconds" in given):
        raise ModelError("rollout: got both or neither of steps and seconds, allowed is one of them")
    result = {name: given[name] for name in ("keyframe", "dtype", "record") if name in given}
    result["nstep"] = given["steps"] if "steps" in given else _steps(given["seconds"], model.opt.timestep)
    control = given.get("control", "zero")
    if not isinstance(control, str):
        raise ModelError(f"rollout: control: got {control!r}, allowed are zero, random, FILE.npy and FILE.py:NAME")
    if control.endswith(".npy"):
        result["control"] = read_array(folder / Path(control).expanduser(), f"rollout: control: {control}")
    elif ".py" in control:
        result["control"] = with_model_errors(
            _function("rollout: control", control, folder), f"rollout: control: {control}"
        )
    elif control != "zero":
        result["control"] = control
    return result


def _steps(seconds: Any, timestep: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds / timestep <= MOST_STEPS:
        raise ModelError(f"rollout: seconds: got {seconds!r}, allowed are finite numbers > 0")
    return max(1, round(seconds / timestep))


def _function(what: str, given: Any, folder: Path) -> Any:
    """Returns the function of FILE.py:NAME."""
    if not isinstance(given, str) or ".py:" not in given:
        raise ModelError(f"{what}: got {given!r}, allowed is FILE.py:NAME")
    file, _, name = given.rpartition(":")
    try:
        return function_in(folder / Path(file).expanduser(), name, f"function {name}")
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from error
