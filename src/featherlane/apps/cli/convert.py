"""`featherlane convert`: writes a URDF as an MJCF file with its meshes, with a base, a floor and actuators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from featherlane import load
from featherlane.apps.cli.output import console, name_value_table, print_json
from featherlane.errors import ModelError
from featherlane.extension import RobotSetup, write_mjcf

SIZES = "nq nv nu nbody ngeom nkey".split()


@dataclass(frozen=True)
class Request:
    """Holds the arguments of the command, as `application` lists them."""

    source: str
    out: Path
    base: str | None = None
    floor: bool = False
    height: str | None = None
    home: list[str] | None = None
    actuators: list[str] | None = None
    gains: list[str] | None = None
    armature: list[str] | None = None
    force: bool = False
    as_json: bool = False

    def setup(self) -> RobotSetup:
        """Returns the arguments of `load`.

        Raises:
            ModelError: an option is not of the documented form.
        """
        height = self.height if self.height in (None, "auto") else _number("height", self.height)
        return RobotSetup(
            base=self.base,
            floor=self.floor,
            height=height,
            home=_by_joint("home", self.home, _number, False),
            actuators=_by_joint("actuators", self.actuators, lambda _, text: text),
            gains=_by_joint("gains", self.gains, _gain),
            armature=_by_joint("armature", self.armature, _number),
        )


def convert(request: Request) -> None:
    """Writes the files, and prints what the MJCF file has.

    Raises:
        ModelError: the model cannot be read, a file exists, or an option is wrong.
    """
    files = write_mjcf(request.source, request.out, setup=request.setup(), overwrite=request.force)
    model = load(files[0])
    found = {
        "file": str(files[0]),
        "assets": len(files) - 1,
        "sizes": {size: int(getattr(model, size)) for size in SIZES},
        "actuators": model.names("actuator"),
    }
    if request.as_json:
        print_json(found)
        return
    rows = {"sizes": ", ".join(f"{name} {value}" for name, value in found["sizes"].items() if value)}
    if len(files) > 1:
        rows["assets"] = f"{len(files) - 1} files in {files[1].parent}"
    if found["actuators"]:
        rows["actuators"] = ", ".join(found["actuators"])
    console().print(name_value_table(str(files[0]), rows))


def _by_joint(option: str, given: list[str] | None, read: Callable[[str, str], Any], alone: bool = True) -> Any:
    """Returns the value for all joints, or a dict of values by joint; None if the option is not given.

    Raises:
        ModelError: another form, or both forms.
    """
    if not given:
        return None
    if alone and len(given) == 1 and "=" not in given[0]:
        return read(option, given[0])
    values = {}
    for each in given:
        joint, found, value = each.partition("=")
        if not found or joint in values:
            either = "one value for all joints, or " if alone else ""
            raise ModelError(f"{option}: got {each!r}, allowed is {either}JOINT=VALUE, once for each joint")
        values[joint] = read(f"{option}: joint {joint!r}", value)
    return values


def _number(label: str, text: str) -> float:
    """Returns the number in a text.

    Raises:
        ModelError: it is no number.
    """
    try:
        return float(text)
    except ValueError:
        raise ModelError(f"{label}: got {text!r}, allowed is a number") from None


def _gain(label: str, text: str) -> float | tuple[float, ...]:
    """Returns kv, or kp and kv."""
    numbers = tuple(_number(label, part) for part in text.split(","))
    return numbers[0] if len(numbers) == 1 else numbers
