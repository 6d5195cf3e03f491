"""`featherlane freeze` and `featherlane check`: write a frozen world, and run its self-test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from featherlane import Data, freeze, load, thaw
from featherlane.apps.cli.exit import complain
from featherlane.apps.cli.output import check_target, console, name_value_table, print_json
from featherlane.apps.cli.settings import set_options
from featherlane.apps.cli.simulate import keyframe_of
from featherlane.errors import ModelError


def freeze_model(
    source: str,
    out: Path,
    options: Mapping[str, Any],
    keyframe: str | None,
    settings: Sequence[str],
    force: bool,
    as_json: bool,
) -> None:
    """Writes the file, and prints its hash; `options` are those of `featherlane.freeze`.

    Raises:
        ModelError: the model cannot be read or frozen, or the file exists.
    """
    if check_target(out, ".flz").exists() and not force:
        raise ModelError(f"{out}: exists already; --force replaces it")
    model = load(source)
    set_options(model, settings)
    data = Data(model)
    data.reset(keyframe=None if keyframe is None else keyframe_of(model, keyframe))
    found = {"file": str(out), "hash": freeze(model, out, data=data, **options), "bytes": out.stat().st_size}
    if as_json:
        print_json(found)
        return
    size = f"{found['bytes'] / 1e6:.2f} MB"
    console().print(name_value_table(str(out), {"size": size, "hash": str(found["hash"])}))


def check_file(file: Path, trust: str | None, as_json: bool) -> int:
    """Runs the self-test; returns the exit code.

    Raises:
        ModelError: the file cannot be opened.
    """
    world = thaw(file, trust=trust)
    equal = world.self_test()
    found = {"file": str(file), "hash": world.hash, "version": world.version, "kernels": world.target, "equal": equal}
    if as_json:
        print_json(found)
    else:
        result = "every state has the recorded bits" if equal else "states differ from the recorded ones"
        rows = {"hash": world.hash, "written by": f"Featherlane {world.version}", "kernels": world.target}
        console().print(name_value_table(str(file), rows | {"self-test": result}))
    return 0 if equal else complain(f"{file}: states differ from the recorded ones")
