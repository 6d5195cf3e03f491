"""The time from a one-line edit of a kernel to the result of its test, compiled just in time; a minute or two.

    python benchmarks/edit_loop.py

Needs an editable install.  The sources are copied; the edit adds a line `edit = K` to a kernel of the copy, with a new
K in each round.  Each case first runs without an edit, which fills the cache of compiled kernels.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import ROOT, markdown

CASES = (  # (file, kernel, arguments of pytest)
    ("dynamics/body/newton_euler.py", "_store_body_force", "dynamics/test_parity.py"),
    ("collision/pairs/primitive.py", "sphere_sphere", "collision/test_primitive.py -k sphere-sphere"),
    ("constraint/ball.py", "write_ball_limits", "constraint/test_rows.py -k ball_limits"),
    ("solver/primal/newton.py", "newton", "solver/test_newton.py -k same_bits_alone"),
    ("simulation/step/forward.py", "forward", "simulation/test_position.py"),
)
ROUNDS = 3


def edited(text: str, kernel: str, number: int) -> str:
    """The source with a line `edit = number` before the first statement of a kernel."""
    function = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == kernel)
    first = next(s for s in function.body if not isinstance(getattr(s, "value", None), ast.Constant))
    lines = text.splitlines(keepends=True)
    lines.insert(first.lineno - 1, f"{' ' * first.col_offset}edit = {number}\n")
    return "".join(lines)


def seconds(folder: Path, test: str) -> float:
    """How long pytest takes for some tests, with the sources in a folder.

    Raises:
        CalledProcessError: a test fails.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", *f"{ROOT / 'tests'}/{test}".split()]
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "src")
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("prebuilt"))
        for path, kernel, test in CASES:
            file = source / "featherlane" / "engine" / path
            text, times = file.read_text(), []
            seconds(source, test)
            plain = seconds(source, test)
            for number in range(ROUNDS):
                file.write_text(edited(text, kernel, time.time_ns() + number))
                times.append(seconds(source, test))
            file.write_text(text)
            rows.append((f"`{path}`", f"`{kernel}`", f"`{test}`", f"{plain:.1f}", f"{statistics.median(times):.1f}"))
    print(markdown(("file", "kernel", "test", "without an edit [s]", "after an edit [s]"), rows))


if __name__ == "__main__":
    main()
