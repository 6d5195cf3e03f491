"""Declaration of a method: its options are checked by name, and become arguments of its stage."""

import pytest

from featherlane.engine.solver.lcp.method import ONE, ROWS, Choice, Count, Method, Number, OptionError
from featherlane.engine.solver.lcp.pivot.lemke import solve_lemke

METHOD = Method(
    "some",
    solve_lemke,
    ONE,
    numbers={"order": Choice("rows", ("rows", "random"), ""), "iterations": Count(100, "")},
    parameters={"tolerance": Number(1e-8, 0.0, 1.0, "")},
)


def test_settings_are_defaults_or_given_values():
    assert METHOD.settings({}) == ([0, 100], [1e-8])
    assert METHOD.settings({"iterations": 7, "order": "random"}) == ([1, 7], [1e-8])
    assert METHOD.settings({"tolerance": 1, "iterations": 0}) == ([0, 0], [1.0])
    numbers, parameters = METHOD.settings({"tolerance": 0})
    assert [type(x) for x in (*numbers, *parameters)] == [int, int, float]


@pytest.mark.parametrize(("given", "message"), [
    ({"iteration": 1}, "'some' has no option 'iteration'"),
    ({"order": "row"}, "'some': order: got 'row'"),
    ({"iterations": -1}, "iterations: got -1"),
    ({"iterations": 1.5}, "iterations: got 1.5"), ({"iterations": 1 << 31}, "iterations: got 2147483648"),
    ({"tolerance": -1e-9}, "tolerance is -1e-09"), ({"tolerance": 1.1}, "tolerance is 1.1"),
    ({"tolerance": "x"}, "tolerance is 'x'"), ({"tolerance": float("nan")}, "tolerance is nan"),
])  # fmt: skip
def test_invalid_option_values_are_refused_by_name(given, message):
    with pytest.raises(OptionError, match=message):
        METHOD.settings(given)


def test_an_option_for_a_method_without_options_is_refused():
    with pytest.raises(OptionError):
        Method("bare", solve_lemke, ROWS).settings({"x": 1})
    assert Method("bare", solve_lemke, ROWS).settings({}) == ([], [])
    assert (METHOD.symmetric, METHOD.bounded, ONE == ROWS) == (True, True, False)


def test_the_largest_count_fits_an_int():
    assert Count(0, "").number("n", (1 << 31) - 1) == 2147483647
