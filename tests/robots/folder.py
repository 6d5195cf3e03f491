"""Loads every MJCF file of folders and compares its model and its motion with MuJoCo's.

As a program, `python tests/robots folder FOLDER ...` prints a line for each file that is not equal, the messages of
refused files by kind, and a table with a line for each folder.  A file is one of:

- part: `<include>` inserts it into other models, so that it is no model itself;
- refused: MuJoCo does not compile it;
- repaired: likewise, but `fl.load(..., repair=True)` loads it, and its motion is equal or apart;
- unsupported: MuJoCo compiles it, and `fl.load` raises an error;
- static: a loaded model without DoFs, so that there is no motion to compare;
- equal: a loaded model of equal parameters, and every compared quantity is within its bound (`oracles/parity.py`);
- apart: likewise, but pairs of convex shapes have other contact points of equal depth in some states;
- differs: a loaded model with a larger error.
"""

from __future__ import annotations

import copy
import re
import sys
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np

import featherlane as fl
from oracles import parity
from robots.models import control_range

STEPS = 20  # compared from each of two starts
KINDS = ("part", "refused", "repaired", "unsupported", "static", "equal", "apart", "differs")
PART = "mujocoinclude"
DIVERGED = 1e3  # [rad/s, m/s]: from such a velocity on, a motion begins again
SPREAD = 0.1  # of random positions [rad, m] and velocities [rad/s, m/s]


@dataclass
class Files:
    """Kind of each file of a folder, and the reason for it.

    Attributes:
        kinds: kind by file.
        reasons: message of `fl.load` by refused or unsupported file, quantities beyond their bound by different one.
        nstate: compared states.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    nstate: int = 0


def model_files(folder: Path) -> list[Path]:
    """Returns sorted paths of all files whose first element is that of MJCF, or of a part of MJCF."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (".xml", ".mjcf") and path.is_file():
            text = re.sub(r"<!--.*?-->", "", path.read_text(errors="replace"), flags=re.S)
            first = re.search(r"<([A-Za-z]\w*)", text)
            if first and first[1] in ("mujoco", PART):
                found.append(path)
    return found


def survey(folder: Path, report=lambda line: None) -> Files:
    """Loads and compares each file of a folder."""
    found = Files()
    for path in model_files(folder):
        name = path.relative_to(folder).as_posix()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind, reason, nstate = examine(path)
        found.kinds[name], found.nstate = kind, found.nstate + nstate
        if reason:
            found.reasons[name] = reason
            first = reason.replace(str(folder), "").replace("\n", " | ")
            report(f"{kind:<11} {name}: {first}")
    return found


def examine(path: Path) -> tuple[str, str, int]:
    """Returns the kind of a file, the reason for it, and the number of compared states."""
    mj, (model, message) = None, _loaded(path)
    try:
        mj = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, mujoco.FatalError) as error:
        if PART in str(error):
            return "part", "", 0
    if mj is None and model is None:
        model = _loaded(path, repair=True)[0]
    if model is None:
        return ("refused" if mj is None else "unsupported"), message, 0
    unequal = different_parameters(mj, model.mj_model) if mj is not None else []
    worst = compare(copy.copy(model.mj_model), path.stem) if model.nv else None
    beyond = ", ".join([*unequal, *(f"{q} {error}" for q, error in (worst.beyond() if worst else {}).items())])
    if beyond:
        kind = "differs"
    elif mj is None:
        kind = "repaired"
    else:
        kind = "static" if worst is None else "apart" if worst.apart else "equal"
    return kind, beyond or message, worst.nstate if worst else 0


def _loaded(path: Path, repair: bool = False) -> tuple[fl.Model | None, str]:
    """Returns the model, or the error that `fl.load` raises."""
    try:
        return fl.load(path, repair=repair), ""
    except fl.ModelError as error:
        return None, str(error)


def different_parameters(mj: mujoco.MjModel, ours: mujoco.MjModel) -> list[str]:
    """Returns names of the arrays in which two compiled models differ."""
    names = [name for name in dir(mj) if not name.startswith("_") and isinstance(getattr(mj, name), np.ndarray)]
    return [name for name in names if not np.array_equal(getattr(mj, name), getattr(ours, name), equal_nan=True)]


def compare(mj: mujoco.MjModel, name: str) -> parity.Worst:
    """Returns the worst errors in STEPS steps from qpos0 and from a perturbed state, each from MuJoCo's state."""
    name = f"folder/{name}"
    mj = parity.exact(mj, name)
    return parity.compare_model(mj, name, 2 * STEPS, steps_from(mj))


def steps_from(mj: mujoco.MjModel) -> list[dict[str, np.ndarray]]:
    """Returns successive states from qpos0, and from positions and velocities SPREAD about it, with random controls."""
    rng, data, found = np.random.default_rng(0), mujoco.MjData(mj), []
    low, high = control_range(mj)
    for spread in (0.0, SPREAD):
        mujoco.mj_resetData(mj, data)
        mujoco.mj_integratePos(mj, data.qpos, spread * rng.uniform(-1, 1, mj.nv), 1.0)
        data.qvel[:] = spread * rng.uniform(-1, 1, mj.nv)
        data.ctrl[:] = 0.5 * (low + high) + np.sign(spread) * 0.5 * (high - low) * rng.uniform(-1, 1, mj.nu)
        start = parity.inputs(data)
        for _ in range(STEPS):
            found.append(parity.inputs(data))
            mujoco.mj_step(mj, data)
            if not np.abs(data.qvel).max() <= DIVERGED:
                parity.enter(data, start)
    return found


def kind_of(message: str) -> str:
    """Returns a message without paths, names and numbers."""
    text = message.split(": ", 1)[-1].split("\n")[0]
    return re.sub(r"'[^']*'|\S*/\S+|\b\d[\d.e+-]*", "_", text)


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.exit("python tests/robots folder FOLDER ...: no folder is given")
    table = [f"| folder | files | {' | '.join(KINDS)} | states |", "|---|" + "---:|" * (len(KINDS) + 2)]
    for folder in map(Path, arguments):
        found = survey(folder, lambda line: print(line, flush=True))
        groups = defaultdict(list)
        for name, reason in found.reasons.items():
            groups[found.kinds[name], kind_of(reason)].append(name)
        for (kind, text), names in sorted(groups.items(), key=lambda group: -len(group[1])):
            print(f"{len(names):>5} {kind}: {text}, such as {names[0]}")
        counts = Counter(found.kinds.values())
        cells = " | ".join(str(counts[kind]) for kind in KINDS)
        table.append(f"| {folder.name} | {len(found.kinds)} | {cells} | {found.nstate} |")
    print("\n".join(table))
    return 0
