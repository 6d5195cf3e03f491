"""Tables that benchmarks print and write into pages, each between its own two markers.

    python benchmarks/report.py --write    writes the median and the least row below every table again

Import this module first: measurements then use the tests' oracle and not the installed MuJoCo.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shlex
import sys
from pathlib import Path

import columns
import plots
from columns import markdown

from featherlane.apps.measure.machine import machine
from featherlane.engine.model.bundle import bundled_file

__all__ = ["markdown"]
ROOT = Path(__file__).parents[1]
LOAD = machine()["load"]  # before the measurement
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
    "idle-lanes": ROOT / "docs" / "performance-goals.md",
    "startup": ROOT / "docs" / "speed.md",
    "accessors": ROOT / "docs" / "speed.md",
    "derivatives": ROOT / "docs" / "speed.md",
    "exact_derivatives": ROOT / "docs" / "derivatives.md",
    "dm_control_derivatives": ROOT / "docs" / "derivatives.md",
    "smooth_derivatives": ROOT / "docs" / "derivatives.md",
    "latency": ROOT / "docs" / "speed.md",
    "frozen": ROOT / "docs" / "frozen.md",
    "frozen-wasm": ROOT / "docs" / "browser.md",
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
    "muscle-robots": ROOT / "docs" / "robots.md",
    "held-out-robots": ROOT / "docs" / "robots.md",
    "second-held-out-robots": ROOT / "docs" / "robots.md",
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
    "real-impacts-gradients": ROOT / "docs" / "real-impacts.md",
    "real-impacts-causes": ROOT / "docs" / "real-impacts.md",
    "real-arm": ROOT / "docs" / "real-arm.md",
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
    "gpu": ROOT / "docs" / "gpu.md",
    "published": ROOT / "docs" / "published.md",
    "published_grasp": ROOT / "docs" / "published.md",
    "urdf-sets": ROOT / "docs" / "migration-pinocchio.md",
    "integrations-robosuite": ROOT / "docs" / "integrations" / "robosuite.md",
    "integrations-libero": ROOT / "docs" / "integrations" / "libero.md",
    "integrations-libero-images": ROOT / "docs" / "integrations" / "libero.md",
    "integrations-mjlab": ROOT / "docs" / "integrations" / "mjlab.md",  # written without this module: MuJoCo 3.11
}


MODES = {
    "column": "add the ratios of this processor as columns of the page's table, which is of another processor",
    "replace": "write the table into its page even if the page's table is of another processor",
}


def arguments(doc: str) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    for mode, text in MODES.items():
        parser.add_argument(f"--write-{mode}", dest="write", action="store_const", const=mode, help=text)
    return parser


def source_of(name: str) -> str:
    """Returns the file of a model that is named `wheel/model` or `bundled/model`.

    Raises:
        Unreachable: see `model_path`.
    """
    return str(bundled_file(name.removeprefix("bundled/")) if name.startswith("bundled/") else model_path(name))


def origin() -> str:
    """The command, the machine with its load before the measurement, the versions and the date."""
    where = machine()
    options = ["--write" if option == "--write-replace" else option for option in sys.argv[1:]]
    command = shlex.join(["python", Path(sys.argv[0]).name, *options]).replace("python ", "python benchmarks/", 1)
    kernels, today = where["kernels"].partition(" (")[0], datetime.date.today().isoformat()
    load = "" if LOAD is None else f", load {LOAD:.1f} before"
    return (
        f"`{command}` wrote this table on {today}. Machine: {where['processor']}, {where['cores']} cores, "
        f"{where['cpu_level']}{load}. Kernels: compiled {kernels}. "
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


def publish(name: str, text: str, write: bool | str) -> None:
    """Prints a section; with `write` it also replaces the section of its page, and draws its plot (plots.py).

    Args:
        write: True, or one of `MODES`.

    Raises:
        MixedProcessors: see `columns.replaced` and `columns.with_column`.
    """
    print(columns.summarized(name, text))
    if write:
        old = section(name)
        made = (
            columns.with_column(name, old, text)
            if write == "column"
            else (columns.replaced(name, old, text, write == "replace"))
        )
        _put(name, made)


def _put(name: str, text: str) -> None:
    """Replaces the section of a page, and draws its plot."""
    page = PAGES[name].read_text()
    PAGES[name].write_text(_between(name).sub(lambda _: f"{text}\n", page))
    if name in plots.PLOTS:
        plots.draw(name, text)


def main() -> None:
    """Writes the summaries of all tables again, and prints them; nothing is measured."""
    parser = argparse.ArgumentParser(description="the median and the least row of every table of ratios")
    parser.add_argument("--write", action="store_true", help="write them into the pages")
    asked = parser.parse_args()
    for name in columns.RATIOS:
        text = columns.summarized(name, section(name))
        print(name, *columns.SUMMARY.findall(text), sep="")
        if asked.write and text != section(name):
            _put(name, text)


if __name__ == "__main__":
    main()
