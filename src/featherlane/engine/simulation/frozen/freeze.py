"""Writes a model, its memory and its compiled kernels into one file: `featherlane.freeze`."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.engine.lanes import Record, Stage
from featherlane.engine.lanes.build import shared_object
from featherlane.engine.lanes.kernel import symbol
from featherlane.engine.lanes.processor import WIDTHS, cpu_level, levels_of_architecture, split_target, target_name
from featherlane.engine.lanes.processor import levels as runnable_levels
from featherlane.engine.lanes.record import LINE, address
from featherlane.engine.lanes.runtime import mode
from featherlane.engine.model.arguments import instance, one_of, several_of
from featherlane.engine.model.array_file import whole_file
from featherlane.engine.model.enums import State
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.model.names import element
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.frozen import wasm
from featherlane.engine.simulation.frozen.loader import loader
from featherlane.engine.simulation.frozen.queries import QUERIES, prepared
from featherlane.engine.simulation.frozen.world import FrozenWorld, checked_path, moved
from featherlane.engine.simulation.step.forward import forward_pass, steps
from featherlane.engine.simulation.tile.fields import ADDRESSES, DATA
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.simulation.tile.tiles import run_tiles
from featherlane.engine.simulation.tile.workspace import in_use
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.engine.simulation.world.recordings import check_bindable
from featherlane.engine.simulation.world.state import places, state_size
from featherlane.errors import ArgumentTypeError, ModelError, UnsupportedFeatureError

FORMAT = 1
COMMENT = "featherlane frozen world, SHA-256 of manifest.json: "
DATE = (2026, 1, 1, 0, 0, 0)  # of all members: equal worlds have equal files
FORM: tuple[str, int] = ("f64", 1)  # one world in double precision
TILE = ("f64", WIDTHS["f64"])  # of a batch
STAGES = {"step": steps, "forward": forward_pass}
WIDTHS_OF_FILES = ((1,), (1, "batch"))
STEPS, BLOCKS = 1000, 10  # of the self-test; each block has its own controls
LOADERS = ("c/featherlane.h", "c/featherlane.c", "js/featherlane.js")
INPUTS = frozenset(field for query in QUERIES.values() for field, _ in query.inputs.values())
NAMED = ("body", "joint", "geom", "site", "actuator", "tendon", "sensor", "camera", "equality", "keyframe")
NUMBERS = {"real": "f8", "scalar": "f8", "int": "i4", "long": "i8"}
CROSS = {"aarch64": ("linux", "aarch64"), wasm.LEVEL: wasm.PLACE}  # levels of another architecture, and their system


def freeze(
    model: Model,
    path: str | Path,
    *,
    targets: Sequence[str] = (),
    data: Data | None = None,
    width: Sequence[int | str] = (1,),
    outputs: Sequence[str] = (),
    queries: Sequence[str] = (),
) -> str:
    """Writes a model with its memory and its compiled kernels into one file, for `thaw` and for C.

    The file steps worlds in float64, bitwise as `step` and `Batch` do now, in any later version of Featherlane, with
    any version of MuJoCo, and in C without Python.  docs/frozen.md describes the file.

    Args:
        model: the model, with its present values.
        path: the file, which ends in .flz.
        targets: CPU levels that the file has kernels for, such as "x86-64-v3" or "aarch64", and "wasm32" for browsers
            and Node.js; by default the level of this machine.  Targets that the installation has no kernels for are
            compiled now, which requires `featherlane[jit]` and, except for wasm32, a C compiler.
        data: the world whose state a reset of the frozen world restores; None: the model's defaults.
        width: (1,): one world; (1, "batch"): also batches, `thaw(path, nworld=n)`, whose kernels double the file.
        outputs: fields that a batch computes in addition to the state, such as "xpos" or "sensordata".
        queries: queries that one world can answer: "jac", "jac_dot", "object_velocity", "full_m", "energy", "inverse",
            "ray".

    Returns:
        The hash of the file, 64 hexadecimal digits: `thaw(path, trust=hash)` opens no other file.

    Raises:
        ArgumentTypeError: `model` is not a Model, `data` is not a Data.
        ModelError: an unknown target, width, output or query, a path without .flz, a file that cannot be written.
        UnsupportedFeatureError: the model has user callbacks, or sensors that are not computed.
        RuntimeError: the system is not Linux; the kernels of a target, or the C library, cannot be compiled here.
    """
    check_model(model)
    loader()  # raises an error on other systems
    if mode() == "python":
        raise ModelError("freeze: kernels run uncompiled (FEATHERLANE_MODE is python), allowed are the compiled modes")
    out, levels = checked_path(path), _levels(targets)
    if tuple(width) not in WIDTHS_OF_FILES if isinstance(width, tuple | list) else True:
        raise ModelError(f"width: got {width!r}, allowed are {' and '.join(map(str, WIDTHS_OF_FILES))}")
    if outputs and len(width) == 1:
        raise ModelError("outputs: got names without a batch, allowed are those of width=(1, 'batch')")
    _refuse(model)
    start, asked = _start(model, data), several_of("queries", queries, QUERIES) if len(queries) else ()
    manifest, members = _contents(model, start, levels, asked, _batch(start, outputs) if len(width) > 1 else {})
    controls = np.frombuffer(members["controls.bin"], "<f8").reshape(BLOCKS, model.nu)
    test = {"steps": STEPS // BLOCKS, "blocks": BLOCKS}
    manifest["self_test"] = test | {"hash": moved(_start(model, data), controls, test["steps"])}
    return _write(out, manifest, members, bool({*levels} & {*runnable_levels()}))


def _contents(
    model: Model, world: Data, levels: list[str], asked: tuple[str, ...], batch: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Returns the manifest, without the self-test, and the other members by name."""
    records, workspace = {"queries": prepared(world, asked)} if asked else {}, world.workspace
    sizes = {**workspace.sizes, "jac_nv": model.nv, "jac_nbody": model.nbody}
    records = {"model": workspace.rows.record, "data": workspace.record, **records}
    members: dict[str, bytes] = {}
    found = {name: _section(f"{name}.bin", record, sizes, members) for name, record in records.items()}
    forms = {FORM: [*STAGES.values(), *(QUERIES[n].stage for n in asked)]}
    if batch:
        members |= batch.pop("members")
        forms[TILE] = [run_tiles]
    kernels = [kernel for level in levels for kernel in _kernels(level, forms)]
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "featherlane": _version(),
        "source": Path(model.source).name,
        "layout": library().layout_hash(),
        "symbols": {name: symbol(stage, *FORM, False) for name, stage in STAGES.items()},
        "targets": [target for target, _ in kernels],
        "records": found,
        "pointers": _pointers(workspace.record, found["data"]["fields"]),
        "queries": {
            name: {"symbol": symbol(QUERIES[name].stage, *FORM, False), "numbers": QUERIES[name].numbers}
            for name in asked
        },
        "batch": batch,
        "state": _state(model),
        "names": {kind: model.names(kind) for kind in NAMED},
    }
    members |= {target["file"]: code for target, code in kernels}
    members["controls.bin"] = _controls(model).astype("<f8").tobytes()
    loaders = LOADERS if any(target["system"] == wasm.PLACE[0] for target, _ in kernels) else LOADERS[:2]
    return manifest, members | {name: Path(__file__).with_name(Path(name).name).read_bytes() for name in loaders}


def _write(path: Path, manifest: dict[str, Any], members: dict[str, bytes], is_runnable: bool) -> str:
    """Writes a zip without compression, whole or not at all, and runs its self-test; returns the hash of its manifest.

    Raises:
        ModelError: the file cannot be written, or its self-test fails.
    """
    manifest = manifest | {"files": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}}
    text = json.dumps(manifest, ensure_ascii=False, separators=(",", ":")).encode()
    digest, out = hashlib.sha256(text).hexdigest(), io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, content in {"manifest.json": text, **members}.items():
            file.writestr(zipfile.ZipInfo(name, DATE), content)
        file.comment = (COMMENT + digest).encode()
    try:
        with whole_file(path) as part:
            part.write_bytes(out.getvalue())
            if is_runnable and not FrozenWorld(part).self_test():
                raise ModelError(
                    f"{path}: the kernels have other bits than `step`, allowed are equal ones; report this"
                )
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from None
    return digest


def _levels(given: Any) -> list[str]:
    """Returns the targets by the names of the compiler, the best levels first."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ArgumentTypeError(f"targets: got {given!r}, allowed is a sequence of names")
    own = levels_of_architecture()
    known = {level: level for level in own}
    known |= {level: target_name(level, *place) for level, place in CROSS.items() if level not in own}
    wanted = [one_of("targets", name, known) for name in given] or [cpu_level()]
    if wanted == ["native"]:
        raise ModelError(f"targets: this machine has none of the CPU levels; allowed are {', '.join(known)}")
    return [name for level, name in known.items() if level in wanted]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("featherlane")
    except PackageNotFoundError:  # its source is on the path
        return "not installed"


def _kernels(level: str, forms: Mapping[tuple[str, int], Sequence[Stage]]) -> list[tuple[dict[str, str], bytes]]:
    """Returns (target, as the manifest lists it, and its code) for a level; wasm32 has two.

    forms: the stages of a native target; wasm32 has those of one world.
    """
    name, (system, architecture) = split_target(level)
    if name == wasm.LEVEL:
        codes = {
            f"{name}-{kind}.wasm.gz": code for kind, code in wasm.modules(library(), STAGES.values(), FORM).items()
        }
    else:
        codes = {f"{name}.so": shared_object(library(), forms, level)}
    found = {"system": system, "architecture": architecture}
    return [
        ({"name": file.split(".")[0], **found, "file": f"kernels/{system}-{architecture}/{file}"}, code)
        for file, code in codes.items()
    ]


def _refuse(model: Model) -> None:
    """Raises an error for all that a file cannot have, by name."""
    mj = model.mj_model
    found = [f"{element(mj, 'actuator', i)}: user-defined {kind}" for i, kind in model.user_actuators]
    found += [f"{element(mj, 'sensor', i)}: user-defined sensor" for i in model.user_sensors]
    found += [f"option lcp_solver: registered solver {model.opt.lcp_solver!r}"] if model.user_lcp_solver else []
    if found:
        raise UnsupportedFeatureError(found, model.source, "user callbacks cannot be frozen")
    check_bindable(model, "freeze", "sensordata")


def _start(model: Model, data: Data | None) -> Data:
    """Returns a new world in the state that the file has."""
    if data is not None:
        instance("data", data, Data, "a Data (created by featherlane.Data(model))", ArgumentTypeError)
        ready(model, data)
    world = ready(model, Data(model) if data is None else data.copy())
    world.mute()
    held = [
        name
        for name in ADDRESSES
        if (world.workspace.record.size(name) if DATA[name].kind == "size" else world.workspace.arrays[name].any())
    ]
    if held:
        raise ModelError(f"freeze: {', '.join(held)} hold addresses of callbacks, allowed are worlds without")
    return world


def _batch(start: Data, outputs: Sequence[str]) -> dict[str, Any]:
    """Returns the entry of a batch in the manifest, with its further members: those of a `Batch` that starts so."""
    model, members = start.model, {}
    if isinstance(outputs, str):
        raise ArgumentTypeError(f"outputs: got {outputs!r}, allowed is a sequence of names")
    batch, state = Batch(model, 2, 1), [field for field, _ in places(model, State.INTEGRATION)]
    for name in (*state, *outputs):
        batch.bind(name)
    plans, (_, width) = batch.runner.plans, TILE
    (workspace,) = plans.prepare(width)
    plan, forward = (plans.step_plan(nstep, width, {}, {}, None) for nstep in (1, 0))
    plan.begin(1, np.arange(2), np.arange(2))
    names = {kind: [t.field for t in plan.transfers[kind] if t.array.size] for kind in ("load", "store")}
    last = [t.field for t in forward.transfers["store"] if t.array.size]
    if names["store"][len(names["store"]) - len(last) :] != last:
        raise AssertionError("a forward pass stores other fields than the last ones of a step")
    tile = _section("tile.bin", workspace.record, workspace.sizes, members)
    kept = {*batch.arrays.rows, *batch.arrays.bound}
    return {
        "width": width,
        "symbol": symbol(run_tiles, *TILE, False),
        "data": tile,
        "worlds": _section("worlds.bin", start.workspace.record, start.workspace.sizes, members, kept),
        "pointers": _pointers(workspace.record, tile["fields"]),
        "transfers": [f.name for f in plan.record.layout.fields],
        **names,
        "forward_stores": len(last),
        "skips_outputs": int(plans.skips_outputs),
        "pair_memory": plans.pair_memory().shape[1],
        "members": members,
    }


def _section(
    image: str, record: Record, sizes: Mapping[str, int], members: dict[str, bytes], names: Container[str] | None = None
) -> dict[str, Any]:
    """Returns a record, or some of its fields, for the manifest; adds its image to the members."""
    fields, offset, lines, content = [], 0, [np.zeros(0, "<i8")], [np.zeros((0, LINE), np.uint8)]
    for f in (f for f in record.layout.fields if names is None or f.name in names):
        if f.kind == "size":
            fields.append({"name": f.name, "kind": "size", "value": record.size(f.name)})
            continue
        array = record.arrays[f.name]
        fields.append(
            {
                "name": f.name,
                "kind": f.kind,
                "type": NUMBERS[f.kind],
                "shape": f.dims(sizes),
                "unit": f.unit,
                "offset": offset,
                "rows": len(array),
                "writable": int(f.role in ("state", "drive", "input") or f.name in INPUTS),
                "reset": int(f.traits.reset or f.name == "tree_settled"),
                "whole": int(f.dtype == "int64" or f.kind in ("int", "long")),
            }
        )
        if f.role != "pointer":
            used = np.ascontiguousarray(in_use(array)).reshape(-1).view(np.uint8)
            rows = np.concatenate([used, np.zeros(-used.size % LINE, np.uint8)]).reshape(-1, LINE)
            (kept,) = np.nonzero(rows.any(1))
            lines.append((offset // LINE + kept).astype("<i8"))
            content.append(rows[kept])
        offset += -(-array.nbytes // LINE) * LINE + LINE
    every = np.concatenate(lines)
    members[image] = b"".join(
        part.tobytes() for part in (np.array([every.size], "<i8"), every, np.concatenate(content))
    )
    return {"bytes": offset, "image": image, "fields": fields}


def _pointers(record: Record, fields: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Returns (offset of a word, offset that it points to) for the words of the role `pointer` that are not 0."""
    offsets, found = {f["name"]: f["offset"] for f in fields if f["kind"] != "size"}, []
    spans = [(address(record.arrays[name]), record.arrays[name].nbytes, offset) for name, offset in offsets.items()]
    for name in record.layout.of("pointer"):
        for i, word in enumerate(record.arrays[name].tolist()):
            targets = [offset + word - first for first, nbytes, offset in spans if first <= word < first + nbytes]
            found += [(offsets[name] + 8 * i, target) for target in targets]
    return found


def _state(model: Model) -> dict[str, Any]:
    """Returns the layout of a state vector, `State.INTEGRATION`."""
    parts = [(field, at.start, at.stop - at.start) for field, at in places(model, State.INTEGRATION)]
    return {"size": state_size(model, State.INTEGRATION), "parts": parts}


def _controls(model: Model) -> np.ndarray:
    """Returns the controls of the self-test, (blocks, nu): random in the ranges, or in -1 to 1 without a range."""
    low, high = np.where(model.actuator_ctrllimited[:, None] != 0, model.actuator_ctrlrange, (-1.0, 1.0)).T
    seed = int.from_bytes(hashlib.sha256(b"featherlane self-test").digest()[:4], "little")
    return np.random.default_rng(seed).uniform(low, high, (BLOCKS, model.nu))
