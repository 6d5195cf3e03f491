"""The size report counts code, and no comment, docstring, blank line or import."""

import ast

from measure import size

TEXT = '''"""Module.

Two paragraphs."""

import os
from a import (
    b,
)

# a comment
X = """text
that is code"""  # two lines


def f(a):
    """Docstring."""
    return (
        a  # three lines

        + 1
    )
'''


def test_code_lines_exclude_docstrings_comments_blank_lines_and_imports():
    assert size.code_lines(TEXT) == 2 + 1 + 4


def test_packages_and_changes_are_listed_with_the_engine_and_the_sum():
    new = size.sizes(
        [("src/featherlane/engine/model/a.py", "x = 1\n"), ("src/featherlane/apps/cli/b.py", "y = 1\nz = 2\n")]
    )
    old = size.sizes([("src/featherlane/engine/model/a.py", "x = 1\nw = 2\n"), ("src/featherlane/old.py", "v = 1\n")])
    rows = {line.split()[0]: line.split()[1:] for line in size.table(new, old)[1:]}
    assert rows == {
        "model": ["1", "-1", "1", "-1"],
        "cli": ["2", "+2", "2", "+2"],
        "old.py": ["0", "-1", "0", "-1"],
        "engine": ["1", "-1", "1", "-1"],
        "all": ["3", "+0", "3", "+0"],
    }


ROWS = """
def one(d):
    for k in range(d.ndofrow[0], d.nrow[0]):
        pass

def two(d):
    for k in range(d.nrow[0]):
        pass
    for k in range(d.ncon_slot[0]):
        pass

def blocks(d):
    for q in range(d.nrow[0] + d.ncon_slot[0]):
        pass
"""


def test_row_enumerations_are_functions_with_loops_over_several_kinds_of_rows():
    assert size.row_enumerations([ast.parse(ROWS)]) == 1


def test_the_source_is_counted():
    code, every = size.sizes(size.working_tree())
    assert set(code) >= {"lanes", "solver", "__init__.py"} and 0 < code["solver"] < every["solver"]


KERNELS = '''
@kernel
def scale(x):
    """Docstring."""
    return 2.0 * x


@kernel
def sum_costs(d):
    for k in range(d.ndofrow[0]):
        scale(d.dofrow_D[k])
    for k in range(d.ncon_slot[0]):
        d.con_D[k] = d.primal.con_y[k]


@kernel
def whiten_row(d):
    for k in range(d.ngenrow[0]):
        d.genrow_J[k] = 0.0


class A:
    def step(self):
        """Steps."""


class B:
    def step(self):
        """Steps.

        Twice."""


class C:
    def step(self):
        """Steps.

        Args:
            nstep: number of time steps."""


class D:
    def step(self):
        """Steps.

        Args:
            nstep: number of time steps."""

    def reset(self):
        """Resets."""
'''


def test_mechanisms_are_counted_by_names():
    counts = list(
        size.mechanisms(
            [("src/featherlane/engine/solver/a.py", KERNELS), ("src/featherlane/apps/cli/b.py", KERNELS)]
        ).values()
    )
    assert counts == [1, 0, 1, 1, 1, 12, 1]


def test_the_mechanisms_of_the_source_are_listed_with_their_changes():
    now = size.mechanisms(size.working_tree())
    lines = size.mechanism_table(now, {title: count + 1 for title, count in now.items()})
    assert len(lines) == len(now) and all(line.endswith("-1") for line in lines)
