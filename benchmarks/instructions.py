"""Instructions of a world's step, and their change since the last table; a quarter of an hour.

    python benchmarks/instructions.py --write
    python benchmarks/instructions.py bundled/humanoid

valgrind counts them.  Counts do not depend on the load of the machine, so they show changes of a few percent.  valgrind
has no AVX-512, so the kernels are those of x86-64-v3, which are compiled just in time if they are not installed.  Names
of models are those of `benchmarks/robots.py`, or `bundled/NAME`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from report import arguments, markdown, origin, publish, section, source_of

import featherlane as fl

MODELS = (
    "bundled/cartpole",
    "bundled/arm",
    "bundled/humanoid",
    "bundled/quadruped_elliptic",
    "bundled/hand",
    "bundled/pile",
    "robosuite_models/robots/g1/robot",
    "robosuite_models/robots/aloha/robot",
    "robosuite/robots/spot/robot",
)
CASES = {"float64": ("float64", 32), "float32": ("float32", 32), "one world": ("float64", 1)}  # (precision, worlds)
WARM, STEPS = 20, 30  # steps before counting, and counted ones
SHOWN = 0.02  # a larger change is printed in bold
COLUMNS = ("model", *CASES)
TOGGLE = "ffi_call*"  # function through which Python calls kernels


def steps(source: str) -> None:
    """Takes the steps of all cases; valgrind writes its counters before and after those that count."""
    model = fl.load(source)
    for case, (dtype, nworld) in CASES.items():
        batch = fl.Batch(model, nworld, 1, dtype=dtype)
        batch.step(WARM)
        _dump("before")
        for _ in range(STEPS):
            batch.step()
        _dump(case)


def _dump(name: str) -> None:
    if "FEATHERLANE_COUNTED" in os.environ:
        command = ["callgrind_control", f"--dump={name}", str(os.getpid())]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def counts(source: str) -> dict[str, float]:
    """Returns the instructions of a world's step by case.

    Raises:
        CalledProcessError: valgrind or the program fails.
        KeyError: valgrind wrote no counts of a case.
    """
    program = [sys.executable, __file__, "--steps", source]
    chosen = os.environ | {"FEATHERLANE_CPU": "x86-64-v3", "PYTHONHASHSEED": "0"}
    subprocess.run(program, env=chosen, check=True)  # compiles the kernels
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        counter = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={TOGGLE}"]
        command = [*counter, f"--callgrind-out-file={folder}/counts", *program]
        subprocess.run(command, env=chosen | {"FEATHERLANE_COUNTED": "1"}, check=True, stderr=subprocess.DEVNULL)
        for file in Path(folder).iterdir():
            text = file.read_text()
            (trigger,) = re.findall("^desc: Trigger: (.*)$", text, re.MULTILINE)
            found[trigger.removeprefix("dump ")] = int(re.findall(r"^totals: (\d+)", text, re.MULTILINE)[-1])
    return {case: found[case] / (STEPS * nworld) for case, (_, nworld) in CASES.items()}


def earlier() -> dict[tuple[str, str], float]:
    """Returns the counts on the page, by model and case."""
    found = {}
    for line in section("instructions").splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) and cells[0] in MODELS:
            for case, cell in zip(CASES, cells[1:], strict=True):
                found[cells[0], case] = float(cell.split(" ")[0].replace(",", ""))
    return found


def shown(number: float, before: float | None) -> str:
    """Returns a count, with its change if there is one; in bold if it is large."""
    change = number / before - 1.0 if before else 0.0
    text = f"{number:,.0f}" + (f" ({100 * change:+.1f} %)" if abs(change) >= 0.001 else "")
    return f"**{text}**" if abs(change) > SHOWN else text


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("models", nargs="*", help="models to count, all by default; only all can be written")
    asked = parser.parse_args()
    if asked.models and asked.write:
        parser.error("models: --write needs the counts of all models")
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    before, rows = earlier(), []
    for name in asked.models or MODELS:
        found = counts(source_of(name))
        rows.append([name, *(shown(n, before.get((name, case))) for case, n in found.items())])
        print(*rows[-1], file=sys.stderr)
    publish("instructions", f"{markdown(COLUMNS, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--steps"]:
        steps(sys.argv[2])
    else:
        main()
