"""Every rule of the kernel language: a kernel that breaks it raises an error with its file, its line and the rule.

In each kernel here the line that breaks the rule ends in `# broken`.
"""

import importlib.util
import math
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from featherlane.engine.lanes import (
    any_,
    call,
    eights,
    false_mask,
    fma,
    gather,
    gather_rows,
    join,
    kernel,
    lane_index,
    not_,
    prefetch,
    read_lane,
    real,
    scalars,
    scale_exponent,
    split_exponent,
    sqrt,
    stage,
    unrolled,
    where,
    whole,
    width,
    write_lane,
)
from featherlane.engine.lanes.compiler.grammar import RULES
from featherlane.engine.lanes.compiler.rules import KernelLanguageError
from featherlane.engine.lanes.record import python_record
from scenes.cells import cells, library

CASES = {}
NAMES = ["a", "b"]


class Segment(NamedTuple):
    start: float
    end: float


def says(rule):
    """Decorates a stage that breaks a rule, with words of the rule."""

    def enter(function):
        CASES[function.__name__] = stage(function), rule
        return function

    return enter


@kernel
def twice(x):
    return 2.0 * x


@kernel
def scaled(x, factor):
    return factor * x


@kernel
def clears(d):
    d.x[0] = 0.0


@kernel
def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)  # broken


@kernel
def even(n):
    return odd(n - 1)


@kernel
def odd(n):
    return even(n - 1)  # broken


@kernel
def with_default(x, factor=2.0):  # broken
    return factor * x


@kernel
def with_rest(*x):
    return x[0]


# ---- branches ------------------------------------------------------------------------------------------------------
@says("a mask .* cannot decide a branch.*where")
def branches_on_a_comparison(d):
    if d.x[0] > 0.0:  # broken
        d.x[0] = 1.0


@says("a value .* cannot decide a branch")
def branches_on_a_value(d):
    while d.x[0]:  # broken
        d.x[0] = 1.0


@says("cannot decide a branch.*any_")
def joins_masks_by_and(d):
    d.x[0] = where(d.x[0] > 0.0 and d.y[0] > 0.0, 1.0, 0.0)  # broken


@says("cannot decide a branch")
def negates_a_mask_by_not(d):
    d.x[0] = where(not (d.x[0] > 0.0), 1.0, 0.0)  # broken


@says("cannot decide a branch")
def chooses_by_a_mask(d):
    d.x[0] = 1.0 if d.x[0] > 0.0 else 2.0  # broken


@says("a plain number cannot decide a branch")
def branches_on_a_plain_number(d):
    if sqrt(2.0):  # broken
        d.x[0] = 1.0


# ---- kinds ---------------------------------------------------------------------------------------------------------
@says("k changes its type: it is an int .* and a value")
def changes_a_kind(d):
    k = 0
    if d.n > 3:
        k = d.y[0]  # broken
    d.x[0] = d.x[k]


@says(r"s changes its type.*Start a sum with 0\.0")
def starts_a_sum_with_an_int(d):
    s = 0
    for i in range(d.n):
        s += d.x[i]  # broken
    d.x[0] = s


@says("t changes its type: it is a tuple of 2.*a tuple keeps its length|A tuple keeps its length")
def changes_a_tuples_length(d):
    t = (1.0, 2.0)
    if d.n > 3:
        t = (1.0, 2.0, 3.0)  # broken
    d.x[0] = t[0]


@says("rows changes its type")
def changes_a_field(d):
    rows = d.x
    if d.n > 3:
        rows = d.k  # broken
    d.x[0] = rows[0]


@says("cannot be an index")
def indexes_by_a_value(d):
    d.x[0] = d.y[d.x[0]]  # broken


@says("a plain number, needed is an int")
def indexes_by_a_plain_number(d):
    d.x[0] = d.y[1.0]  # broken


@says("a value .* needed is an int.*whole")
def stores_a_value_as_an_int(d):
    d.k[0] = d.x[0]  # broken


@says(r"a mask .* needed is a value .*where\(mask, 1.0, 0.0\)")
def stores_a_mask(d):
    d.x[0] = d.x[0] > 0.0  # broken


@says("a mask .* [+] a value")
def adds_a_mask(d):
    d.x[0] = (d.x[0] > 0.0) + d.y[0]  # broken


@says("a mask .* is compared")
def compares_masks(d):
    d.x[0] = where((d.x[0] > 0.0) == (d.y[0] > 0.0), 1.0, 0.0)  # broken


@says(r"a value .* // .*floor\(x / y\)")
def divides_values_as_ints(d):
    d.x[0] = d.x[0] // d.y[0]  # broken


@says("bit operations are for ints")
def shifts_a_value(d):
    d.x[0] = d.x[0] << 2  # broken


@says("not_")
def inverts_a_mask(d):
    d.x[0] = where(~(d.x[0] > 0.0), 1.0, 0.0)  # broken


@says("a tuple of 2 .* plain number")
def multiplies_a_tuple(d):
    t = (1.0, 2.0) * 2.0  # broken
    d.x[0] = t[0]


@says("one return has|W numbers cannot|changes its type|returns")
def takes_two_returns(d):
    d.x[0] = either(d.n, d)


@kernel
def either(n, d):
    if n > 3:
        return 1
    return d.x[0]  # broken


@says("one return has a value .*, another has nothing")
def takes_what_some_ways_return(d):
    d.x[0] = returned_on_some_ways(d.n, d)


@kernel
def returned_on_some_ways(n, d):  # broken
    if n > 3:
        return d.x[0]


@says("nothing")
def binds_nothing(d):
    x = clears(d)  # broken
    d.x[0] = x


@says("a stage returns no value")
def returns_from_a_stage(d):  # broken
    return d.x[0]


# ---- records -------------------------------------------------------------------------------------------------------
@says("Cells has no field xx; did you mean 'x'")
def misspells_a_field(d):
    d.x[0] = d.xx[0]  # broken


@says("the model is read-only")
def writes_the_model(m, d):
    m.x[0] = d.x[0]  # broken


@says("the model is read-only")
def adds_to_the_model(m, d):
    m.x[0] += d.x[0]  # broken


@says("the model is read-only")
def writes_a_lane_of_the_model(m, d):
    write_lane(m.x, 0, 0, 1.0)  # broken


@says("an int: only a record and a NamedTuple have fields")
def asks_an_int_for_a_field(d):
    d.x[0] = d.n.x  # broken


@says("s is a tuple of 2: it has no attribute ends.*end")
def a_part_that_a_named_tuple_lacks(d):
    s = Segment(d.x[0], d.x[1])
    d.y[0] = s.ends  # broken


@says("Segment takes .*'start', 'end'.*, got 1 arguments")
def a_named_tuple_without_all_parts(d):
    s = Segment(d.x[0])  # broken
    d.y[0] = s.start


@says("Segment is called without start")
def a_named_tuple_without_a_named_part(d):
    s = Segment(end=d.x[0])  # broken
    d.y[0] = s.end


@says("d.x.sum is neither|records and modules|method")
def calls_a_method(d):
    d.x[0] = d.x.sum()  # broken


@says("d.step is a method")
def calls_a_method_of_a_record(d):
    d.step()  # broken


@says("names and rows of fields")
def sets_a_field_itself(d):
    d.x = 0.0  # broken


@says("an int cannot be indexed")
def indexes_a_size(d):
    d.x[0] = d.n[0]  # broken


@says("a tuple of 2 cannot be assigned by index")
def sets_a_part_of_a_tuple(d):
    t = (1.0, 2.0)
    t[0] = 3.0  # broken


@says("differs by world")
def sees_a_world_where_all_are_shared(d1):
    d1.table[0] = d1.x[0]  # broken


# ---- names and numbers -----------------------------------------------------------------------------------------------
@says("nowhere is not defined")
def names_what_does_not_exist(d):
    d.x[0] = nowhere  # broken  # noqa: F821


@says("y has no value here")
def reads_before_it_binds(d):
    d.x[0] = y  # broken  # noqa: F821
    y = 1.0
    d.x[0] = y


@says("a list cannot be a constant of a kernel")
def names_a_list(d):
    d.x[0] = NAMES  # broken


@says("a str cannot be a constant")
def passes_a_text(d):
    d.x[0] = twice("two")  # broken


@says("a NoneType cannot be a constant")
def passes_none(d):
    d.x[0] = twice(None)  # broken


@says("does not fit into an int of 64 bits")
def names_a_huge_int(d):
    d.k[0] = 1 << 70  # broken


@says("cannot be evaluated: .*division by zero")
def divides_by_zero(d):
    d.x[0] = 1.0 / 0  # broken


@says("part 2 of a tuple of 2")
def takes_a_part_that_is_not_there(d):
    t = (1.0, 2.0)
    d.x[0] = t[2]  # broken


@says("elements of different types")
def takes_a_part_of_any_kind(d):
    t = (1, d.x[0])
    d.x[0] = t[d.n]  # broken


@says("a tuple of 2 assigned to 3 names")
def unpacks_too_many(d):
    a, b, c = (1.0, 2.0)  # broken
    d.x[0] = a + b + c


# ---- calls ---------------------------------------------------------------------------------------------------------
@says("recursive calls itself; recursion")
def calls_a_recursive_kernel(d):
    d.k[0] = recursive(3)


@says("fields of ints|an int, needed is a field|changes its type")
def keeps_two_fields(d):
    rows = d.x
    for _ in range(d.n):
        rows[0] = 1.0
        rows = d.k  # broken


@says("even calls itself|odd calls itself")
def calls_kernels_that_call_each_other(d):
    d.k[0] = even(d.n)


@says("math.sin cannot be called.*did you mean .*'sincos'")
def calls_math(d):
    d.x[0] = math.sin(d.x[0])  # broken


@says("np.sqrt cannot be called.*did you mean 'sqrt'")
def calls_numpy(d):
    d.x[0] = np.sqrt(d.x[0])  # broken


@says("print cannot be called")
def prints(d):
    print(d.n)  # broken


@says("says cannot be called.*decorator")
def calls_a_plain_function(d):
    d.x[0] = says(d.x[0])  # broken


@says("got a range with step 1, needed is an int")
def stores_a_range(d):
    r = range(3)
    d.k[0] = r  # broken


@says("the step of a range that is returned or assigned must be a number")
def keeps_a_range_with_any_step(d):
    r = range(3, 0, d.n)  # broken
    for i in r:
        d.k[0] = i


@says("range takes one to three arguments, got 0")
def keeps_an_empty_range(d):
    r = range()  # broken
    d.k[0] = r


@says("an unrolled loop runs over a tuple or over range")
def unrolls_a_range_of_a_kernel(d):
    for i in unrolled(first_rows(d)):  # broken
        d.k[0] = i


@says("an unrolled loop runs over a tuple or over range")
def makes_a_tuple_of_a_range_of_a_kernel(d):
    t = tuple(d.x[i] for i in first_rows(d))  # broken
    d.x[0] = t[0]


@says("one return has a range with step 1, another has a range with step -1")
def returns_ranges_of_two_steps(d):
    for i in up_or_down(d.n):
        d.k[0] = i


@kernel
def first_rows(d):
    return range(d.n)


@kernel
def up_or_down(n):
    if n > 0:
        return range(n)
    return range(-n, 0, -1)  # broken


@says(r"twice takes \(x\), got 2 arguments")
def passes_too_many(d):
    d.x[0] = twice(d.x[0], 2.0)  # broken


@says("sqrt takes 1 arguments, got 2")
def passes_too_many_to_a_function(d):
    d.x[0] = sqrt(d.x[0], 2.0)  # broken


@says("defaults")
def calls_a_kernel_with_a_default(d):
    d.x[0] = with_default(d.x[0])


@says("sqrt takes positional arguments only")
def passes_by_name_to_a_function(d):
    d.x[0] = sqrt(x=d.x[0])  # broken


@says("scaled has no parameter facto; did you mean 'factor'")
def misspells_a_parameter(d):
    d.x[0] = scaled(d.x[0], facto=2.0)  # broken


@says("scaled got x twice, by position and by keyword")
def passes_twice(d):
    d.x[0] = scaled(d.x[0], x=2.0)  # broken


@says("scaled is called without factor")
def forgets_an_argument(d):
    d.x[0] = scaled(x=d.x[0])  # broken


@says(r"`\*\*` is not allowed")
def passes_a_dict(d):
    d.x[0] = scaled(d.x[0], **factor)  # broken  # noqa: F821


@says("clears is a local variable")
def calls_what_it_binds(d):
    clears = d.n
    clears(d)  # broken


@says(r"`\*` is not allowed")
def passes_a_tuple_as_arguments(d):
    t = (1.0,)
    d.x[0] = twice(*t)  # broken


@says("min: got a value .*fmin")
def takes_the_least_value(d):
    d.x[0] = min(d.x[0], d.y[0])  # broken


@says("any_: got a value")
def asks_any_of_a_value(d):
    d.k[0] = any_(d.x[0])  # broken


@says("not_: got an int")
def negates_an_int(d):
    d.k[0] = not_(d.n)  # broken


@says("width: got an int")
def asks_an_int_for_its_width(d):
    d.k[0] = width(d.n)  # broken


@says("lane_index: got a value")
def asks_a_value_for_lanes(d):
    d.x[0] = lane_index(d.x[0])  # broken


@says("gather: got a value")
def gathers_from_a_value(d):
    d.x[0] = gather(d.x[0], d.y[0])  # broken


@says("eights: got a field of reals")
def takes_eight_reals_of_worlds(d):
    d.x[0] = eights(d.x)[0]  # broken


@says("read_lane: got a field of ints")
def reads_a_lane_of_ints(d):
    d.x[0] = read_lane(d.k, 0, 0)  # broken


@says("whole: got a value .*x 8")
def makes_an_int_of_many(d):
    d.k[0] = whole(d.x[0])  # broken


@says("scalars: got a record .* plain number")
def takes_a_real_for_an_address(d):
    d.x[0] = scalars(d, 1.0)[0]  # broken


@says("prefetch: got .* plain number")
def prefetches_at_a_real(d):
    prefetch(d.x, 1.0)  # broken


@says("call: got .* plain number")
def passes_a_real_to_a_function(d):
    call(d.k[0], d, 1.0, 2)  # broken


@says("real: got a plain number")
def makes_a_real_of_no_record(d):
    d.x[0] = real(1.0, d)  # broken


@says("where: got a value")
def chooses_by_a_value(d):
    d.x[0] = where(d.x[0], 1.0, 0.0)  # broken


@says("where: got .* an int, a tuple")
def chooses_between_kinds(d):
    d.x[0] = where(d.x[0] > 0.0, 1, (1.0, 2.0))  # broken


@says("false_mask: got a value")
def takes_a_mask_of_a_value(d):
    d.x[0] = where(false_mask(d.x[0]), 1.0, 0.0)  # broken


@says("split_exponent: got an int")
def splits_an_int(d):
    f, e = split_exponent(d.n)  # broken
    d.x[0] = scale_exponent(f, e)


# ---- syntax --------------------------------------------------------------------------------------------------------
@says("list comprehensions are not allowed in a kernel: write a tuple")
def comprehends(d):
    x = [d.x[i] for i in range(3)]  # broken
    d.x[0] = x[0]


@says("generators are not allowed in a kernel: write a tuple")
def keeps_a_generator(d):
    x = (d.x[i] for i in range(3))  # broken
    x, _ = tuple(x)
    d.x[0] = x


@says("`if` is not allowed in a comprehension")
def leaves_parts_out(d):
    x = tuple(d.x[i] for i in range(3) if i != 1)  # broken
    d.x[0] = x[0]


@says("the bounds of an unrolled range must be known")
def comprehends_an_unknown_number(d):
    x = tuple(d.x[i] for i in range(d.n))  # broken
    d.x[0] = x[0]


@says("the bounds of an unrolled range must be known")
def unrolls_an_unknown_number(d):
    for i in unrolled(range(d.n)):  # broken
        d.x[i] = 0.0


@says("100 iterations would be unrolled, allowed are 64")
def unrolls_too_much(d):
    for i in unrolled(range(100)):  # broken
        d.x[i] = 0.0


@says(r"unrolled\(range\(...\)\) is allowed only in a `for` loop")
def keeps_what_is_unrolled(d):
    x = unrolled((1.0, 2.0))  # broken
    d.x[0] = x[0]


@says("tuple: got a value")
def makes_a_tuple_of_a_value(d):
    x = tuple(d.x[0])  # broken
    d.x[0] = x[0]


@says("i is not defined")
def names_what_a_comprehension_binds(d):
    x = tuple(d.x[i] for i in range(3))
    d.x[i] = x[0]  # broken  # noqa: F821


@says("lists are not allowed")
def makes_a_list(d):
    x = [1.0, 2.0]  # broken
    d.x[0] = x[0]


@says("dicts are not allowed")
def makes_a_dict(d):
    x = {1: 2.0}  # broken
    d.x[0] = x[1]


@says("`[*][*]` is not allowed")
def raises_to_a_power(d):
    d.x[0] = d.x[0] ** 2  # broken


@says("exceptions are not allowed")
def raises(d):
    raise ValueError(d.n)  # broken


@says("functions are not allowed inside a kernel")
def defines(d):
    def inner(x):  # broken
        return x

    d.x[0] = inner(d.x[0])


@says("imports are not allowed")
def imports(d):
    import math  # broken

    d.x[0] = math.pi


@says("`:=` is not allowed")
def binds_within_an_expression(d):
    d.x[0] = (x := d.y[0]) + x  # broken


@says("annotations are not allowed")
def annotates(d):
    x: float = d.x[0]  # broken
    d.x[0] = x


@says("strings are not allowed")
def formats(d):
    d.x[0] = f"{d.n}"  # broken


@says("`is` is not allowed in a kernel: compare numbers with ==")
def compares_identity(d):
    if d.n is d.n:  # broken
        d.x[0] = 1.0


@says("`else` is not allowed after a loop in a kernel")
def loops_with_an_else(d):
    for i in range(3):  # broken
        d.x[i] = 0.0
    else:
        d.x[0] = 1.0


@says("`for` loops over a field")
def loops_over_a_field(d):
    for x in d.x:  # broken
        d.x[0] = x


@says("range takes one to three arguments")
def counts_by_nothing(d):
    for i in range():  # broken
        d.x[i] = 0.0


@says("a range with step 0 does not end")
def counts_in_place(d):
    for i in range(0, 3, 0):  # broken
        d.x[i] = 0.0


@says(r"a tuple of 2 \+ a tuple of 1; join\(a, b\) concatenates them")
def adds_tuples(d):
    t = (d.x[0], d.x[1]) + (d.x[2],)  # broken
    d.x[0] = t[0]


@says("join: got .*, allowed is tuples")
def joins_a_value(d):
    t = join((d.x[0],), d.x[1])  # broken
    d.x[0] = t[0]


def marked_lines() -> set[int]:
    """Returns the lines of this file that end in the mark."""
    with open(__file__) as f:
        return {k for k, line in enumerate(f, 1) if line.split("  # noqa")[0].rstrip().endswith("# broken")}


MARKED = marked_lines()


@pytest.mark.parametrize("name", CASES)
def test_a_broken_rule_is_reported_with_its_line(name):
    broken, rule = CASES[name]
    with pytest.raises(KernelLanguageError, match=f"(?s){rule}") as caught:
        library_of_tests().function(broken, "f64", 8)
    error = caught.value
    assert error.file == __file__ and error.line in MARKED
    with open(__file__) as f:
        line = f.readlines()[error.line - 1].strip()
    assert error.source == line and line in str(error) and f"line {error.line}" in str(error)
    assert not error.mark or (set(error.mark) <= {" ", "^"} and len(error.mark) <= len(line))


def library_of_tests():
    """Returns a library with records `m` and `d` of cells, and `d1` for stages of one world at a time."""
    made = library()
    made.records["d1"] = made.records["d"]
    return made


def test_every_mark_is_reached():
    """Each marked line belongs to a case: every rule has a test."""
    reached = set()
    for broken, _ in CASES.values():
        with pytest.raises(KernelLanguageError) as caught:
            library_of_tests().function(broken, "f64", 8)
        reached.add(caught.value.line)
    assert reached == MARKED


@pytest.mark.parametrize("lanes", [1, 16])
def test_two_precisions_of_each_world_meet_in_float64(lanes):
    """Sums, comparisons, choices, masks and gathers of times and reals promote types as NumPy does."""

    @stage
    def mixes(d):
        later = (d.clock[0] > d.x[0]) & (d.x[0] > 0.0)
        d.clock[1] = where(later, d.clock[0] + d.x[0], d.x[0])
        d.x[1] = fma(d.clock[0], 1.0, -70000.0)
        d.clock[2] = gather_rows(d.clock, d.x[2])

    step = np.float32(0.01)
    x = np.repeat(np.array([step, 0, 1], np.float32), lanes)
    for compiled in (True, False):
        cell = cells("float32", lanes, 3, x=x, clock=np.repeat([70000.01, 0, 0], lanes))
        assert cell.arrays["clock"].dtype == np.float64
        if compiled:
            library().function(mixes, "f32", lanes)(cell.address)
        else:
            mixes(python_record(cell))
        np.testing.assert_array_equal(cell.arrays["clock"][1], 70000.01 + float(step))
        np.testing.assert_array_equal(cell.arrays["x"][1], np.float32(70000.01 - 70000.0))
        np.testing.assert_array_equal(cell.arrays["clock"][2], cell.arrays["clock"][1])


# ---- constructs that the syntax table rejects ----------------------------------------------------------------------
REFUSED = {
    "SetComp": "x = {k for k in (1, 2)}",
    "DictComp": "x = {k: k for k in (1, 2)}",
    "ListComp": "x = [k for k in (1, 2)]",
    "Set": "x = {1, 2}",
    "Lambda": "x = lambda: 1",
    "ClassDef": "class A: pass",
    "ImportFrom": "from math import pi",
    "Assert": "assert d.n > 0",
    "Try": "try:\n        pass\n    finally:\n        pass",
    "With": "with d:\n        pass",
    "Global": "global x",
    "Delete": "del d",
    "Starred": "x = (*(1, 2),)",
    "Yield": "yield 1",
    "YieldFrom": "yield from (1,)",
    "Match": "match d.n:\n        case 1:\n            pass",
    "IsNot": "x = d.n is not 3",
    "AsyncFunctionDef": "async def f(): pass",
    "FormattedValue": "x = f'{d}'",
}


def written(tmp_path, text, name="kernels"):
    """Returns a module with that text."""
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"{name}_{tmp_path.name}", path)
    module = importlib.util.module_from_spec(spec)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_syntax_is_refused_by_its_rule(kind, tmp_path):
    text = f"from featherlane.engine.lanes import stage\n@stage\ndef f(d):\n    {REFUSED[kind]}\n"
    with pytest.raises(KernelLanguageError, match="line 4, in f: ") as caught:
        library().function(written(tmp_path, text).f, "f64", 8)
    rules = {node.__name__: rule for node, rule in RULES.items()}
    assert rules.get(kind, "strings are not allowed") in str(caught.value)


@pytest.mark.parametrize("parameters", ["d, n=1", "d, *n", "d, *, n", "d, **n", "d, /, n"])
def test_parameters_are_plain(parameters, tmp_path):
    text = f"from featherlane.engine.lanes import kernel, stage\n@kernel\ndef k({parameters}):\n    d.x[0] = 1.0\n"
    text += "@stage\ndef f(d):\n    k(d)\n"
    with pytest.raises(KernelLanguageError, match="line 3, in k: "):
        library().function(written(tmp_path, text).f, "f64", 8)


# ---- the source ----------------------------------------------------------------------------------------------------
EDITED = "from featherlane.engine.lanes import stage\n\n\n@stage\ndef f(d):\n    d.x[0] = 1.0\n"


@pytest.mark.parametrize("edit", ["2.0", "1", "True"])
def test_a_source_file_edited_after_import_is_not_compiled(tmp_path, monkeypatch, edit):
    """1 == 1.0 == True, but they are different constants."""
    monkeypatch.setenv("FEATHERLANE_CACHE", str(tmp_path / "cache"))  # the next test's object would do
    module = written(tmp_path, EDITED)
    (tmp_path / "kernels.py").write_text(EDITED.replace("1.0", edit))
    with pytest.raises(KernelLanguageError, match="changed"):
        library().function(module.f, "f64", 8)


def test_an_expression_that_is_nested_too_deeply_is_refused(tmp_path):
    module = written(tmp_path, EDITED.replace("1.0", "d.x[0]" + " + d.x[0]" * 600))
    with pytest.raises(KernelLanguageError, match="nested"):
        library().function(module.f, "f64", 8)


def test_a_kernel_that_moved_in_its_file_is_found(tmp_path):
    module = written(tmp_path, EDITED)
    (tmp_path / "kernels.py").write_text("# a comment\n\n" + EDITED)
    library().function(module.f, "f64", 8)


def test_a_kernel_without_a_file_is_refused():
    scope = {}
    exec(EDITED.replace("1.0", "3.0"), scope)
    with pytest.raises(KernelLanguageError, match="readable"):
        library().function(scope["f"], "f64", 8)


def test_lambdas_on_one_line_are_distinguished():
    one, two = kernel(lambda x: x + 1.0), kernel(lambda x: x + 2.0)

    @stage
    def both(d):
        d.x[0] = one(two(d.x[0]))

    library().function(both, "f64", 8)


def test_an_error_survives_pickling():
    with pytest.raises(KernelLanguageError) as caught:
        library().function(CASES["writes_the_model"][0], "f64", 8)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.line == caught.value.line


def test_errors_are_short():
    for broken, _ in CASES.values():
        with pytest.raises(KernelLanguageError) as caught:
            library_of_tests().function(broken, "f64", 8)
        assert len(caught.value.rule) < 300 and "\n" not in caught.value.rule
