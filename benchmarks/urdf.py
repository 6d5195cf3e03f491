"""URDF files of public repositories: how many load, whether they are read as Pinocchio reads them, and load times.

    python benchmarks/urdf.py sets FOLDER ... [--exclude PATTERN] [--write]
    python benchmarks/urdf.py times

`sets` loads each URDF file in the folders whose collision meshes are there, with and without `repair=True`, in a
process with a time limit.  It compares position, axis, limits and damping of each joint, and mass, centre of mass and
inertia of what it carries, with Pinocchio, in an environment that it makes.  It prints a table, the differences, and
the refusals with their messages.
"""

from __future__ import annotations

import os
import queue
import re
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from report import arguments, markdown, origin, publish
from urdf_sets.comparison import differences
from urdf_sets.files import Robot, robots
from urdf_sets.load_times import time_rows
from urdf_sets.programs import Program

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from robots.wheels import cache_folder
from separate import command

PINOCCHIO = "pin==4.1.0"
PROGRAMS = Path(__file__).parent / "urdf_sets"
COLUMNS = ("set", "files", "with meshes", "load", "load with `repair`", "compared", "differ")
SHOWN = 400  # characters of a message


class Result(NamedTuple):
    """Holds what happened to a file.

    Attributes:
        robot: the file.
        answers: of `featherlane_loader.py`, without and with repair; empty if a mesh is missing.
        is_compared: whether Pinocchio reads the file, and it was loaded.
        lines: differences from Pinocchio.
    """

    robot: Robot
    answers: Sequence[dict[str, Any]] = ()
    is_compared: bool = False
    lines: Sequence[str] = ()


def pinocchio_python() -> Path:
    """Returns the Python of an environment with Pinocchio, which is made on first use."""
    home = cache_folder() / "environments" / PINOCCHIO.replace("==", "-")
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
        command(python, "-m", "pip", "install", "-q", "--only-binary", ":all:", PINOCCHIO, folder=home)
    return python


class Readers:
    """Pairs of programs that load a file, as many as threads use."""

    def __init__(self):
        self.python, self.idle, self.all = pinocchio_python(), queue.SimpleQueue(), []

    def result(self, robot: Robot) -> Result:
        """Returns the result of a file."""
        if robot.missing:
            return Result(robot)
        try:
            ours, reference = self.idle.get_nowait()
        except queue.Empty:
            ours = Program([sys.executable, str(PROGRAMS / "featherlane_loader.py")])
            reference = Program([str(self.python), "-I", str(PROGRAMS / "pinocchio_reader.py")])
            self.all += [ours, reference]
        found = _result(robot, ours, reference)
        self.idle.put((ours, reference))
        return found

    def stop(self) -> None:
        """Ends all programs."""
        for program in self.all:
            program.stop()


def _result(robot: Robot, ours: Program, reference: Program) -> Result:
    question = {"path": str(robot.path), "package_dirs": list(map(str, robot.packages))}
    repaired = ours.ask(question | {"repair": True})
    # a load without repairs is that without `repair`
    answers = [repaired if repaired.get("repairs") == [] else ours.ask(question | {"repair": False}), repaired]
    read = reference.ask({"path": str(robot.path)})
    loaded = [answer for answer in answers if "error" not in answer]
    is_compared = "error" not in read and len(loaded) > 0
    lines = [line for answer in loaded for line in differences(answer, read)] if is_compared else []
    return Result(robot, answers, is_compared, list(dict.fromkeys(lines)))


def row(name: str, found: Sequence[Result]) -> list[object]:
    """Returns a row of the table."""
    present = [each for each in found if each.answers]
    loaded = [sum("error" not in each.answers[k] for each in present) for k in (0, 1)]
    share = f" ({100 * loaded[1] / len(present):.1f} %)" if present else ""
    compared = [each for each in present if each.is_compared]
    differ = sum(len(each.lines) > 0 for each in compared)
    return [name, len(found), len(present), loaded[0], f"{loaded[1]}{share}", len(compared), differ]


def refusals(found: Sequence[Result]) -> Iterator[str]:
    """Yields the kinds of errors with `repair`: their number, and the first message."""
    kinds: dict[str, list[Result]] = {}
    for each in found:
        if each.answers and "error" in each.answers[1]:
            text = re.sub(r"'[^']*'|\S*/\S*|[-\d.]+", "", each.answers[1]["error"].splitlines()[0])
            kinds.setdefault(text, []).append(each)
    for same in sorted(kinds.values(), key=len, reverse=True):
        message = same[0].answers[1]["error"]
        yield f"{len(same)} x {same[0].robot.path}:\n    " + "\n    ".join(message[:SHOWN].splitlines())


def sets(folders: Sequence[Path], exclude: re.Pattern[str] | None, jobs: int, write: bool) -> None:
    """Prints the table, the differences and the refusals."""
    readers, rows, everything = Readers(), [], []
    with ThreadPoolExecutor(jobs) as pool:
        for folder in folders:
            found = list(pool.map(readers.result, robots(folder.resolve(), exclude)))
            rows.append(row(folder.name, found))
            everything += found
            print(*rows[-1], file=sys.stderr)
    readers.stop()
    for each in everything:
        if each.lines:
            print(f"{each.robot.path}:\n    " + "\n    ".join(line[:SHOWN] for line in each.lines[:5]))
    print(*refusals(everything), sep="\n")
    table = markdown(COLUMNS, [*rows, row("all", everything)])
    publish("urdf-sets", f"{table}\n\n{origin()}", write)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("what", choices=("sets", "times"))
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--exclude", type=re.compile, help="pattern of paths that are left out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files that are loaded at the same time")
    given = parser.parse_args()
    if given.what == "sets":
        if wrong := [str(folder) for folder in given.folders if not folder.is_dir()]:
            parser.error(f"no folder: {', '.join(wrong)}")
        sets(given.folders, given.exclude, given.jobs, given.write)
    else:
        with tempfile.TemporaryDirectory() as place:
            columns, rows = time_rows(Path(place))
            print(f"{markdown(columns, rows)}\n\n{origin()}")


if __name__ == "__main__":
    main()
