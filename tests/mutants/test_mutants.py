"""Mutation operators change what they name and nothing else; samples repeat; verdicts come from pytest's output."""

import ast
from pathlib import Path

import pytest

from mutants.__main__ import is_worse, table
from mutants.operators import PACKAGES, mutants, sample
from mutants.trial import failed

KERNEL = '''"""1 < 2."""
from __future__ import annotations

from featherlane.engine.lanes import fmax, kernel


@kernel
def clip(m, d, i: Field[1]) -> Field[1]:
    """3 + 4."""
    d.x[i] = fmax(
        d.x[i], 0.0
    )
    d.s += not i
'''
CASES = {
    "x = a < b": {"x = (a <= b)", "x = (a > b)"},
    "x = a == b": {"x = (a != b)"},
    "x = a in b": {"x = (a not in b)"},
    "x = (a + b) - c": {"x = (a + b + c)", "x = ((a - b)) - c"},
    "x = a * b / c": {"x = (a * b * c)", "x = (a / b) / c"},
    "x = a & b | c": {"x = (a & b & c)", "x = (a | b) | c"},
    "x = a and b": {"x = (a or b)"},
    "x = not a": {"x = (a)"},
    "x = 0": {"x = (1)"},
    "x = 0.0": {"x = (1.0)"},
    "x = 1.5": {"x = (3.0)"},
    "x = where(m, a, b)": {"x = (where(m, b, a))"},
    "x = max(a, b)": {"x = (min)(a, b)"},
    "x[i] = y": {"pass"},
    "x += y": {"pass", "x -= y"},
    "if a:\n    b()": {"if (not a):\n    b()"},
    "x = True, 'a', None": set(),
    "raise ValueError(1 + 2)": set(),
    "assert a < b": set(),
    "x: Array[3]": set(),
    "x = f'{a + b}'": set(),
    "__all__ = [1]": set(),
    "if TYPE_CHECKING:\n    x = 1": set(),
}


@pytest.mark.parametrize("source", CASES)
def test_each_operator_changes_the_code_that_it_names(source):
    assert {mutant.apply(source) for mutant in mutants(source)} == CASES[source]


def test_mutants_keep_line_numbers_and_import_their_callees():
    changed = {mutant.key: mutant.apply(KERNEL) for mutant in mutants(KERNEL)}
    assert all(text.count("\n") == KERNEL.count("\n") for text in changed.values())
    assert "from featherlane.engine.lanes import fmin; from" in changed[":10:13 extreme: fmax -> fmin"]
    assert "d.x[(i - 1)] = fmax(" in changed[":10:8 index: i -> i - 1"]
    assert not any("3 + 4" in key or "1 < 2" in key or "Field" in key for key in changed)
    # kernels have no division of integers
    assert not any("/" in m.key for m in mutants("@kernel\ndef f(d, i):\n    return d.x[3 * i]"))


def test_a_sample_repeats_and_has_equal_numbers_of_each_package(tmp_path):
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.py").write_text("".join(f"x{k} = {k} + y\n" for k in range(9)))
    first = sample(tmp_path, 12, seed=5)
    assert first == sample(tmp_path, 12, seed=5) != sample(tmp_path, 12, seed=6)
    assert [sum(m.path.startswith(name) for m in first) for name in PACKAGES] == [2] * len(PACKAGES)
    for mutant in first:
        source = (tmp_path / mutant.path).read_text()
        assert ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))


def test_the_first_failing_test_is_read_from_the_output_of_pytest():
    summary = "..F\n== short test summary info ==\nFAILED tests/a/test_b.py::test_c[x 1.5-y] - AssertionError: 1 - 2\n"
    crash = f'Fatal Python error: Segmentation fault\n  File "{Path("/r/tests/a/test_b.py")}", line 7 in test_c\n'
    assert failed(1, summary, Path("/r")) == "tests/a/test_b.py::test_c[x 1.5-y]"
    assert failed(2, "ERROR tests/a/test_b.py - NameError: x\n", Path("/r")) == "tests/a/test_b.py"
    assert failed(-11, crash, Path("/r")) == "tests/a/test_b.py::test_c"
    assert failed(4, "ImportError while loading conftest", Path("/r")) == ""


def test_a_comparison_of_runs_counts_the_mutants_that_live(capsys):
    killed, lives = ({"package": "solver", "verdict": v, "test": ""} for v in ("killed", "timed out"))
    assert is_worse({"a": lives, "b": killed}, {"a": killed, "b": killed})
    assert "no longer killed (timed out): a" in capsys.readouterr().out
    assert not is_worse({"a": lives, "b": killed}, {"a": killed, "b": lives})
    assert table({"a": lives, "b": killed}).splitlines()[-1].split() == ["all", "1", "0", "1", "0"]
