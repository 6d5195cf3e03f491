"""Runs the tests of one mutant: a copy of the sources with one file changed, and pytest in a process group."""

from __future__ import annotations

import compileall
import contextlib
import importlib.util
import os
import py_compile
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutants.operators import Mutant

REPORTED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py.*?)(?: - .*)?$", re.MULTILINE)  # of pytest's short summary
CRASHED = re.compile(r'File "([^"]+)", line \d+ in (test_\w+)')  # of faulthandler
PASSED, USAGE, EMPTY = 0, 4, 5  # pytest's exit codes


class Trials:
    """Provides the copy of the sources, the compiled kernels and the environment of a run; a context manager.

    Args:
        source: the folder `src` of a checkout.
        tests: the folder of tests, of any checkout.
        cache: folder of compiled kernels; None for a temporary one.
        limit: time per mutant [s].
        arguments: further arguments of pytest.
    """

    def __init__(self, source: Path, tests: Path, cache: Path | None, limit: float, arguments: list[str]):
        self.tests, self.limit = tests.resolve(), limit
        self.scratch = tempfile.TemporaryDirectory(prefix="mutants-")
        home = Path(self.scratch.name)
        self.package, self.cache = home / "src" / "featherlane", (cache or home / "kernels").resolve()
        shutil.copytree(source, home / "src", ignore=shutil.ignore_patterns("__pycache__"))
        # bytecode is compared by hash, not by time: a mutated file may have the time and the size of its original
        compileall.compile_dir(home / "src", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(home / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            "PYTHONDONTWRITEBYTECODE": "1",
            "FEATHERLANE_CACHE": str(self.cache),
        }
        self.pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider"]
        self.pytest += ["-n", "0"] if importlib.util.find_spec("xdist") else []
        self.pytest += ["--hypothesis-seed=0"] if importlib.util.find_spec("hypothesis") else []
        self.pytest += arguments
        self.sound: set[str] = set()  # tests that pass without mutation

    def __enter__(self) -> Trials:
        self.cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        code, text = self._run([sys.executable, "-m", "featherlane", "compile", "--processes", "1"], None)
        if code:
            raise RuntimeError(f"the kernels do not compile without mutation:\n{text}")
        self.kernels = set(os.listdir(self.cache))
        return self

    def __exit__(self, *error) -> None:
        self.scratch.cleanup()

    def judge(self, mutant: Mutant) -> dict[str, object]:
        """Return the verdict, the times [s] and the first failing test of a mutant.

        The verdict is `killed`, `survived`, `timed out`, or `error` if the failing test fails without mutation, too.
        """
        path, start, used = self.package / mutant.path, time.monotonic(), cpu_time()
        original = path.read_text()
        target = self.tests / mutant.path.split("/")[0]
        try:
            path.write_text(mutant.apply(original))
            code, text = self._run([*self.pytest, str(target)], self.limit)
        finally:
            path.write_text(original)
        seconds, cpu = round(time.monotonic() - start, 1), round(cpu_time() - used, 1)
        if code in (None, PASSED):
            verdict, named = ("timed out" if code is None else "survived"), ""
        else:
            test = failed(code, text, self.tests.parent)
            verdict = "killed" if code != EMPTY and self._passes(test, target) else "error"
            named = test or "no test collected"
        for path in self.cache.iterdir():  # each mutant starts from the same kernels; a killed compiler leaves a folder
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name not in self.kernels:
                path.unlink(missing_ok=True)
        return {"verdict": verdict, "seconds": seconds, "cpu": cpu, "test": named}

    def _passes(self, test: str, target: Path) -> bool:
        """Return whether a test passes without mutation.  If none was reported: whether the tests are collected."""
        key = test or str(target)
        if key in self.sound:
            return True
        # a name may contain the separator of the summary; the whole test or file is run instead
        for node in dict.fromkeys((test, test.split("[")[0], test.split("::")[0])):
            code, text = self._run([*self.pytest, *([node] if test else ["--collect-only", str(target)])], None)
            if code not in (USAGE, EMPTY):
                break
        if code == PASSED:
            self.sound.add(key)
        else:
            print(f"{key} fails without mutation:\n{text[-2000:]}", flush=True)
        return code == PASSED

    def _run(self, command: list[str], limit: float | None) -> tuple[int | None, str]:
        """Run a command next to the tests; return its exit code (None: out of time) and its output."""
        with tempfile.TemporaryDirectory(dir=self.scratch.name) as examples, tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command,
                cwd=self.tests.parent,
                env=self.environment | {"HYPOTHESIS_STORAGE_DIRECTORY": examples},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                kill_group(process.pid)
                process.wait()
            output.seek(0)
            return code, output.read()


def failed(code: int, text: str, root: Path) -> str:
    """Return the test that failed or crashed first, from pytest's exit code and output; empty if none was collected."""
    found = REPORTED.search(text)
    if found or code >= 0:
        return found[1] if found else ""
    crashed = CRASHED.search(text)
    return f"{os.path.relpath(crashed[1], root)}::{crashed[2]}" if crashed else ""


def cpu_time() -> float:
    """Return the CPU time of all finished children [s].  On a loaded machine fewer tests run within the limit."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kill_group(group: int) -> None:
    """Kill the remaining processes of a process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
