"""The kernel language: each construct, compiled, with and without bounds checks, gives plain Python's result."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from featherlane import lanes
from featherlane.engine.lanes import (
    any_,
    false_mask,
    fmax,
    join,
    kernel,
    single_precision,
    stage,
    true_mask,
    unrolled,
    where,
    width,
)
from scenes.cells import FORMS, OUTPUTS, cells, evaluate, library, same_bits

STAGES = library()
N = 6
SIGNS = (-1.0, 1.0)
NESTED = ((1, 2.0), (3, 4.0))


@kernel
def twice(x):
    return 2.0 * x


@kernel
def both(x, y):
    """Returns two results."""
    return x + y, x - y


@kernel
def chosen(x, doubled):
    """Branches on a constant: the other branch would not be valid."""
    if doubled:
        return twice(x), 1.0
    return x


@kernel
def counted(n, from_zero):
    """Rebinds a parameter that a condition names: it is not constant."""
    if from_zero:
        from_zero = n
    return from_zero + 1


def scaled(factor):
    @kernel
    def scale(x):
        return factor * x

    return scale


thrice, tenth = scaled(3.0), scaled(0.1)
plus_one = kernel(lambda x: x + 1.0)
LANGUAGE = []


def tried(function):
    LANGUAGE.append(stage(function))
    return LANGUAGE[-1]


@tried
def names_that_are_used_again(d):
    """Bindings that never meet are separate variables."""
    for q in range(3):
        d.out[q] = d.x[q]
    p, q = d.x[1], d.x[0]
    d.out[3] = p - q
    s = d.n
    d.out[4] = 1.0 * s
    s = d.x[0] * s
    d.out[5] = s
    if d.n > 3:
        t = d.y[0], d.y[1]
        d.out[6] = t[0] * t[1]
    else:
        t = 7
        d.out[6] = 1.0 * t


@tried
def names_that_are_carried_around(d):
    """Carries values from one iteration to the next, in ints, values and tuples."""
    a, b, k = 0.0, 1.0, 0
    pair = (a, b)
    for i in range(d.n):
        a, b = b, a + b * d.x[i]
        pair = (pair[1], pair[0] + d.y[i])
        k = k + i * i
    d.out[0] = a
    d.out[1] = b
    d.out[2] = pair[0]
    d.out[3] = pair[1]
    d.out[4] = 1.0 * k


@tried
def weak_numbers(d):
    """A plain number takes the precision of its operand, rounded once."""
    x = 0.1
    for i in range(2):
        x = x + d.x[i]
    d.out[0] = x
    lowest = -104.0 if single_precision(d) else -746.0
    d.out[1] = fmax(d.x[0], lowest)
    d.out[2] = 0.1 * d.x[0] + 2 * 0.3
    d.out[3] = d.n * d.x[0]
    d.out[4] = d.x[0] / 3


@tried
def loops_of_all_kinds(d):
    o = 0
    for i in range(d.n - 1, -1, -2):
        d.out[o] = d.x[i]
        o += 1
    step = -1 if d.n > 3 else 1
    for i in range(2, -1, step):
        d.out[o] = 1.0 * i
        o += 1
    i = 0
    while True:
        i += 1
        if i == 2:
            continue
        if i > 4:
            break
        d.out[o] = 1.0 * i
        o += 1
    for sign in SIGNS:
        d.out[o] = sign * d.x[0]
        o += 1
    for k, v in NESTED:
        if k == 3:
            break
        d.out[o] = k * v
        o += 1
    while o < 0:
        pass
    for i in range(3):
        for j in range(i):
            if j == 1:
                break
            d.out[o] += i + 0.5 * j
    i = 5
    for i in range(0):  # noqa: B007
        d.out[o] = 1.0
    d.out[o + 1] = 1.0 * i


@kernel
def inner(n, ends):
    """The ints between 0 and n, without `ends` of them at each end."""
    return range(ends, n - ends)


@kernel
def backwards(first, last):
    if first < last:
        return range(last, first - 1, -1)
    return range(first, last - 1, -1)


@tried
def ranges(d):
    o = 0
    for i in inner(d.n, 1):
        d.out[o] = 1.0 * i
        o += 1
    for i in inner(d.n, ends=d.n):
        d.out[o + i] = 1.0
    for i in backwards(2, 0):
        if i == 1:
            continue
        d.out[o] = 10.0 + i
        o += 1
    kept = range(2) if d.n > 0 else range(3)
    for i in kept:
        d.out[o] = 20.0 + i
        o += 1


@tried
def tuples(d):
    t = join((d.x[0], d.x[1]), (d.x[2],))
    d.out[0] = t[-1]
    for i in range(3):
        d.out[1 + i] = t[i]
    (a, b), c = both(d.x[0], d.y[0]), 2.0
    d.out[4] = a * b * c
    sizes = (3, 1, 2)
    d.out[5] = d.x[sizes[d.n % 3]]
    mixed = (1, d.x[0], 0.5)
    d.out[6] = mixed[1] * mixed[0] + mixed[2]
    d.out[7] = NESTED[1][1] * d.x[0]


class Rows(NamedTuple):
    """Rows of a field from one on."""

    field: object
    first: int
    pair: tuple[float, float]


@kernel
def moved(rows, by):
    return Rows(rows.field, rows.first + by, (2.0, 3.0))


@kernel
def row_sum(rows, n):
    total = rows.field[rows.first]
    for i in range(1, n):
        total += rows.field[rows.first + i]
    return total * rows.pair[1]


@tried
def named_tuples(d):
    rows = Rows(first=1, field=d.x, pair=both(d.y[0], d.y[1]))
    d.out[0] = row_sum(rows, 3)
    d.out[1] = row_sum(moved(rows, 1), n=2)
    field, first, _ = rows
    d.out[2] = field[first] + rows[0][rows[1]]
    for _ in range(d.n):
        rows = moved(rows, -1 if rows.first > 2 else 1)
    rows.field[0] = rows.pair[0] * rows.first
    known = KNOWN
    d.out[3] = d.x[0] + known.first


KNOWN = Rows(0.5, 3, (1.0, 2.0))


@tried
def conditions(d):
    n, x, y = d.n, d.x[0], d.y[0]
    d.out[0] = 1.0 if n > 3 and d.k[0] != 7 else 2.0
    d.out[1] = 1.0 if n < 3 or not d.k[0] < 8 else 2.0
    d.out[2] = 1.0 if 2 < n <= 6 else 2.0
    d.out[3] = 1.0 if n in (2, 4, 6) else 2.0
    d.out[4] = 1.0 if n not in (2, 4) else 2.0
    d.out[5] = where((x > -1.0) & (x < 1.0), 1.0, 0.0)
    d.out[6] = where(x > -1.0, y, x)
    d.out[7] = where((x == y) | (x != y), 1.0, 0.0)
    if any_(x > 1e30):
        d.out[8] = 1.0
    elif n:
        d.out[8] = 2.0
    else:
        d.out[8] = 3.0
    d.out[9] = 1.0 if True and n else 2.0
    b = n > 3
    d.out[10] = where(b, x, y)
    k = n if b else 0
    d.out[11] = 1.0 * k + (b + 1)
    d.out[12] = 1.0 if n > 1.5 else 2.0


@tried
def ints(d):
    n = d.n
    d.out[0] = 1.0 * (n // 4 + n % 4 + (-n) // 4 + (-n) % 4)
    d.out[1] = 1.0 * (n // -5 + n % -5 + (7 - n) // (n - 2))
    d.out[2] = 1.0 * ((n << 3) | (n >> 1) & ~1 ^ 5)
    d.out[3] = 1.0 * (abs(-n) + abs(n) + min(n, 2, 3) + max(n, 7))
    d.out[4] = n / 4
    d.out[5] = abs(d.x[0]) + abs(-1.5)
    d.out[6] = 1.0 * -n + +n
    d.k[1] = n > 3
    d.out[7] = 1.0 * d.k[1]


@tried
def constants_and_calls(d):
    doubled = chosen(d.x[0], True)
    d.out[0] = doubled[0] + doubled[1] + chosen(d.y[0], False)
    d.out[1] = thrice(d.x[0]) + tenth(d.x[0])
    d.out[2] = plus_one(d.x[0]) * math.pi
    d.out[3] = lanes.fmin(d.x[0], 0.5)
    d.out[4] = 1.0 * counted(d.n, 0) + counted(d.n, 1)
    d.out[5] = 1.0 * width(d) if width(d) < 0 else 1.0
    rows = d.x
    rows[2] = 5.0
    rows[2] += rows[1]
    d.out[6] = rows[2]


@kernel
def loaded(rows, i, n):
    """Makes a tuple whose length is a constant."""
    return tuple(rows[i + k] for k in range(n))


@kernel
def lower(n, x):
    """Makes a tuple of tuples of several lengths."""
    return tuple(tuple(x[r] * x[c] for c in range(r + 1)) for r in range(n))


@tried
def comprehensions(d):
    a, b = loaded(d.x, 0, 3), loaded(d.y, 1, 3)
    c = tuple(a[i] + b[i] for i in range(3))
    for i in range(3):
        d.out[i] = c[i]
    products = tuple(a[i] * b[j] for i in range(2) for j in range(2))
    d.out[3] = products[2]
    d.out[4] = lower(3, a)[2][1]
    d.out[5] = tuple(sign * v for sign, v in zip_of(a))[1]
    i = 7
    d.out[6] = tuple(i for i in SIGNS)[1] + i
    t = (d.n, d.x[0])
    d.out[7] = tuple(t)[1]
    d.out[8] = tuple(tuple(k * 1.0 for k in range(i, 1, -1)) for i in (3, 4))[1][2]


@kernel
def zip_of(a):
    return ((1.0, a[0]), (-1.0, a[1]))


@tried
def carried_tuples(d):
    """Updates a tuple part by part in a loop."""
    x = tuple(0.0 for _ in range(4))
    for i in range(d.n):
        x = tuple(x[k] + (k + 1) * d.x[i] for k in range(4))
    for k in unrolled(range(4)):
        d.out[k] = x[k]


@tried
def unrolled_loops(d):
    mixed, o = (1, d.x[0], 2.0), 0
    for i in unrolled(range(3)):
        d.out[i] = mixed[i] * d.y[i]
    for i in unrolled(range(2, -1, -1)):
        if i == 1:
            continue
        d.out[3 + o] = mixed[i] * 1.0
        o += 1
    for sign in unrolled(SIGNS):
        d.out[6 + o] = sign * d.x[0]
        o += 1
    for i in unrolled(range(0)):
        d.out[i] = 9.0


@tried
def arguments_by_name(d):
    d.out[0] = both(y=d.x[0], x=d.y[0])[1]
    d.out[1] = 1.0 * counted(d.n, from_zero=0)
    d.out[2] = chosen(d.x[0], doubled=False)
    add_to(d, x=1.0, row=3)


@kernel
def add_to(d, row, x):
    d.out[row] += x


@tried
def zeros_and_masks(d):
    d.out[0] = 0.0 - d.x[0]
    d.out[1] = where(true_mask(d), d.x[0], 7.0)
    d.out[2] = where(false_mask(d), d.x[0], 7.0)
    masks = false_mask(d)
    for i in range(d.n):
        masks = masks | (d.x[i] > 0.5)
    d.out[3] = where(masks & true_mask(d), d.y[0], 1.0)
    d.out[4] = 1.0 if any_(false_mask(d)) else 2.0


@pytest.mark.parametrize("checked", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("dtype, w", FORMS)
@pytest.mark.parametrize("program", LANGUAGE, ids=lambda s: s.name)
def test_compiled_kernels_equal_python(program, dtype, w, checked, rng):
    inputs = {"x": rng.normal(size=N * w), "y": rng.normal(size=N * w), "k": np.array([7, 1, 2, 3, 4, 5])}
    compiled = evaluate(STAGES, program, dtype, w, checked=checked, **inputs)
    assert np.any(compiled)
    assert same_bits(compiled, evaluate(STAGES, program, dtype, w, compiled=False, **inputs))


@stage
def bound_on_some_ways(d):
    for i in range(d.n):
        if i == 3:
            late = d.x[i]
    d.out[0] = late
    if d.n > 99:
        never = 3
    d.out[1] = 1.0 * never


def test_a_name_without_a_value_is_zero(rng):
    x = rng.normal(size=8 * N)
    out = evaluate(STAGES, bound_on_some_ways, "float64", 8, x=x).reshape(OUTPUTS, N, 8)
    assert np.array_equal(out[0, 0], x.reshape(N, 8)[3]) and not out[1].any()


@stage
def divides_by_nothing(d):
    d.out[0] = 1.0 * (7 // d.k[0]) + 7 % d.k[0]


def test_ints_divided_by_zero_raise_nothing():
    out = evaluate(STAGES, divides_by_nothing, "float64", 1, x=np.zeros(1), k=np.zeros(1))
    assert out[0, 0] == 7.0


@stage
def divides_shifts_and_counts_at_the_ends(d):
    least, n, zero = d.long[0], d.k[0], d.k[1]
    d.long[1] = least // n
    d.long[2] = least % n
    d.long[3] = 1 << (64 + zero)
    d.long[4] = least >> (64 + zero)
    for _ in range(5, 0, zero):
        d.long[5] = 1


def test_integer_overflow_raises_nothing():
    """The processor traps if -2^63 is divided by -1; a shift by 64 is undefined in LLVM."""
    d = cells("float64", 1, 6, long=[-(2**63), 0, 1, 1, 1, 0], k=[-1, 0, 0, 0, 0, 0])
    STAGES.function(divides_shifts_and_counts_at_the_ends, "f64", 1)(d.address)
    assert d.arrays["long"].tolist() == [-(2**63), -(2**63), 0, 0, -1, 0]


@stage
def names_a_nan(d):
    d.out[0] = where(d.x[0] > 0.0, 1e400 - 1e400, 1.0)


def test_a_constant_can_be_nan():
    """Python folds 1e400 - 1e400: the file's code equals the function's, though nan != nan."""
    assert evaluate(STAGES, names_a_nan, "float64", 1, x=np.zeros(1))[0, 0] == 1.0


@stage
def counts_calls(d):
    """The index of `+=` is computed once."""
    d.out[bumped(d)] += 2.0


@kernel
def bumped(d):
    d.k[0] = d.k[0] + 1
    return d.k[0]


def test_the_index_of_an_addition_is_computed_once():
    out = evaluate(STAGES, counts_calls, "float64", 1, x=np.zeros(1), k=np.zeros(1))
    assert out[1, 0] == 2.0 and out.sum() == 2.0


@stage
def adds(d, row, times):
    """Calls a stage by names."""
    d.out[row] += 1.0 * times


@stage
def calls_by_name(d):
    adds(d, times=3, row=1)
    adds(times=2, d=d, row=2)


@pytest.mark.parametrize("compiled", [True, False])
def test_stages_take_arguments_by_name(compiled):
    out = evaluate(STAGES, calls_by_name, "float64", 1, compiled=compiled, x=np.zeros(1))
    assert out[:3, 0].tolist() == [0.0, 3.0, 2.0]


@stage
def prices_by_name(d):
    d.out[1] = 1.0 * minus(right=bumped(d), left=bumped(d))


@kernel
def minus(left, right):
    return left - right


@pytest.mark.parametrize("compiled", [True, False])
def test_arguments_are_computed_in_the_order_in_which_they_are_written(compiled):
    out = evaluate(STAGES, prices_by_name, "float64", 1, compiled=compiled, x=np.zeros(1), k=np.zeros(1))
    assert out[1, 0] == 1.0


def test_comprehension_bounds_are_taken_from_the_call():
    """A constant named by an unrolled range is part of the signature: one kernel, two lengths."""

    @stage
    def two_lengths(d):
        d.out[0] = loaded(d.x, 0, 2)[1]
        d.out[1] = loaded(d.x, 0, n=4)[3]

    out = evaluate(STAGES, two_lengths, "float64", 1, x=np.arange(4.0))
    assert out[:2, 0].tolist() == [1.0, 3.0]
