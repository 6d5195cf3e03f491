"""Runs tests shipped in another library's wheel against an integration, with the import replaced.

    python tests/exam.py rollout [test names]

Comparisons with MuJoCo's results use a relative tolerance of 1e-9, because the two engines sum in different
order; comparisons between our own results stay exact.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

TOLERANT = "np.testing.assert_allclose(\\1, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(\\2).max(initial=0.0)))"


class Exam(NamedTuple):
    """Defines a test file of the package `mujoco`, the replacement of its import, and its comparisons with MuJoCo.

    `compared` is a pattern of the second argument of assert_array_equal, `others` are patterns of other comparisons
    with MuJoCo, with groups of both arguments and of the second one.
    """

    file: str
    imports: tuple[str, str]
    compared: str
    others: tuple[tuple[str, str], ...] = ()


EXAMS = {
    "rollout": Exam(
        "rollout_test.py",
        ("from mujoco import rollout", "from featherlane.integrations import mujoco_rollout as rollout"),
        r"py_state|py_sensordata|np\.expand_dims\(state2, axis=0\)",
    ),
    "batch": Exam(
        "batch_test.py",
        ("from mujoco import batch\n", "from featherlane.integrations import mujoco_batch as batch\n"),
        r"(?:ref\[i\]|di?)\.(?:qpos|qvel|xpos|sensordata|energy)|d\.joint\('free'\)\.qpos|d\.sensor\(1\)\.data"
        r"|expected(?=, f')|state|sensordata|state\[:, -1, 0\]|jp|jr|ep|er|nrm|xpos\[sim\]",
        (
            (r"self\.assertEqual\((dist2?\[i, \w\], (ref|expected))\)", TOLERANT),
            (r"np\.array_equal\((xpos\[i\], (d\.xpos))\)", r"np.allclose(\1, rtol=1e-9, atol=1e-9)"),
        ),
    ),
}


def source(exam: Exam) -> str:
    """Returns the source of the tests with the import replaced."""
    import mujoco

    text = (Path(mujoco.__file__).parent / exam.file).read_text()
    old, new = exam.imports
    if old not in text:
        raise SystemExit(f"{exam.file}: no line {old!r}; tried with MuJoCo 3.17 to 4.0")
    text = text.replace(old, new)
    first = r"\w(?:[^()]|\([^()]*\))*"
    compared = (rf"np\.testing\.assert_array_equal\((?:\s*)({first}, ({exam.compared}))(?:, f'[^']*')?\)", TOLERANT)
    for pattern, replacement in (compared, *exam.others):
        text = re.sub(pattern, replacement, text)
    return text


def run(name: str, *tests: str) -> subprocess.CompletedProcess:
    """Runs an exam in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / EXAMS[name].file
        path.write_text(source(EXAMS[name]))
        return subprocess.run([sys.executable, str(path), *tests], text=True, capture_output=True)


if __name__ == "__main__":
    done = run(*sys.argv[1:])
    print(done.stdout, done.stderr)
    sys.exit(done.returncode)
