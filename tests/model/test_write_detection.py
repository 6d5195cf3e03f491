"""Writes of users are detected by reference counts, which need the global interpreter lock."""

import os
import subprocess
import sys

import numpy as np
import pytest

from featherlane.engine.model.write_detection import SMALL, TrackedArray, check_interpreter
from featherlane.errors import InstallationError


@pytest.fixture
def tracked():
    return TrackedArray(np.zeros((4, 3)))


def test_an_unreferenced_array_is_not_held(tracked):
    for _ in range(100):  # the interpreter specializes code that runs often
        assert not tracked.is_held()


@pytest.mark.parametrize(
    "reference",
    [
        lambda view: view,
        lambda view: view[1:],
        lambda view: view.reshape(-1),
        lambda view: view.T,
        lambda view: memoryview(view),
        lambda view: [view],
        lambda view: lambda: view,
        lambda view: np.asarray(view),
        lambda view: iter(view),
        lambda view: view.flat,
    ],
)
def test_every_kind_of_reference_is_counted_until_it_is_released(reference, tracked):
    for _ in range(100):
        held = reference(tracked.view)
        assert tracked.is_held()
        del held
        assert not tracked.is_held()


def test_a_local_variable_of_a_calling_function_counts(tracked):
    def caller():
        view = tracked.view
        seen = tracked.is_held()
        view[0] = 1.0
        return seen

    assert caller() and not tracked.is_held()


@pytest.mark.parametrize("rows", [3, SMALL])
def test_changed_values_are_found_and_large_arrays_always_count_as_changed(rows):
    tracked = TrackedArray(np.zeros(rows))
    tracked.keep()
    assert tracked.has_changed() == (tracked.array.nbytes > SMALL)
    tracked.view[1] = 2.0
    assert tracked.has_changed() and tracked.array[1] == 2.0


def test_a_python_without_its_lock_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(InstallationError, match=r"free-threaded Python .* is not supported: .*PYTHON_GIL=1"):
        check_interpreter()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    check_interpreter()


def test_the_import_fails_without_the_lock():
    code = "import sys; sys._is_gil_enabled = lambda: False; import featherlane"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "InstallationError: free-threaded Python" in done.stderr
