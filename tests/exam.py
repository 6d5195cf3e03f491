"""Runs tests of another library against an integration, with the import replaced.

    python tests/exam.py rollout [test names]
    python tests/exam.py mjbatch [options of pytest]
    python tests/exam.py pages [names of pages]
    python tests/exam.py adapters [names of adapters]

`pages` runs the examples of docs/integrations in separate environments (`pages/environments.py`), `adapters` our tests
of adapters (`integrations/adapters.py`).  All other tests are files of MuJoCo's wheel, or of a repository
(`repositories.py`).

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

import repositories
from integrations import adapters
from pages import environments

TOLERANT = "np.testing.assert_allclose(\\1, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(\\2).max(initial=0.0)))"


class Exam(NamedTuple):
    """Defines a test file, the replacement of its import, and its comparisons with MuJoCo.

    `file` is a file of the package `mujoco`, or of `repository` (its name and commit), which pytest runs.  `compared`
    is a pattern of the second argument of assert_array_equal, `others` are patterns of other comparisons with MuJoCo,
    with groups of both arguments and of the second one.
    """

    file: str
    imports: tuple[str, str]
    compared: str
    others: tuple[tuple[str, str], ...] = ()
    repository: tuple[str, str] | None = None


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
    "mjbatch": Exam(
        "tests/test_batch.py",
        ("from mjbatch import Batch\n", "from featherlane.integrations.mjbatch import Batch\n"),
        r"(?:d|data)\.(?:qpos|qvel|sensordata)|\(one if i == 2 else four\)\[i\]\.qpos",
        ((r"np\.testing\.assert_array_equal\((arr, (\[getattr\(d, field\) for d in datas\])), field\)", TOLERANT),),
        (repositories.MJBATCH, repositories.MJBATCH_TESTS),
    ),
}


def source(exam: Exam) -> str:
    """Returns the source of the tests with the import replaced."""
    if exam.repository is None:
        import mujoco

        path = Path(mujoco.__file__).parent / exam.file
    else:
        path = repositories.file(*exam.repository, exam.file)
    text = path.read_text()
    old, new = exam.imports
    if old not in text:
        raise SystemExit(f"{path}: no line {old!r}; tried with MuJoCo 3.17 to 4.0")
    text = text.replace(old, new)
    first = r"\w(?:[^()]|\([^()]*\))*"
    compared = (rf"np\.testing\.assert_array_equal\((?:\s*)({first}, ({exam.compared}))(?:, f'[^']*')?\)", TOLERANT)
    for pattern, replacement in (compared, *exam.others):
        text = re.sub(pattern, replacement, text)
    return text


def run(name: str, *tests: str) -> subprocess.CompletedProcess:
    """Runs an exam in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(EXAMS[name].file).name
        path.write_text(source(EXAMS[name]))
        pytest = () if EXAMS[name].repository is None else ("-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider")
        return subprocess.run(
            [sys.executable, *pytest, str(path), *tests], text=True, capture_output=True, timeout=3600
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["pages"]:
        sys.exit(environments.main(*sys.argv[2:]))
    if sys.argv[1:2] == ["adapters"]:
        sys.exit(adapters.main(*sys.argv[2:]))
    if not set(sys.argv[1:2]) & set(EXAMS):
        sys.exit(f"usage: python tests/exam.py {{{','.join(EXAMS)},pages,adapters}} [arguments]")
    done = run(*sys.argv[1:])
    print(done.stdout, done.stderr)
    sys.exit(done.returncode)
