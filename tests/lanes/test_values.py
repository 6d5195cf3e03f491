"""Every function and operator of values: compiled equals uncompiled, bitwise identical at every width."""

from fractions import Fraction

import numpy as np
import pytest

from featherlane.engine.lanes import (
    all_,
    any_,
    clip,
    copysign,
    count_ones,
    fabs,
    floor,
    fma,
    fmax,
    fmin,
    gather,
    gather_rows,
    kernel,
    lane_index,
    not_,
    prefetch,
    real,
    rint,
    scalars,
    scale_exponent,
    single_precision,
    split_exponent,
    sqrt,
    stage,
    where,
    width,
)
from scenes.cells import FORMS, OUTPUTS, cells, evaluate, library, same_bits

STAGES = library()
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 3.7, -3.7, 1e30, -1e-30]


@pytest.fixture
def numbers(rng):
    """Returns two flat inputs of 16 * 16 numbers: all pairs of special ones, then random ones."""
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    random = rng.normal(size=(2, 128)) * np.exp(rng.normal(size=128))
    return {"x": np.concatenate([x, random[0]]), "y": np.concatenate([y, random[1]])}


@stage
def arithmetic(d):
    for i in range(d.n):
        x, y, o = d.x[i], d.y[i], OUTPUTS * i
        d.out[o] = x + y
        d.out[o + 1] = x - y
        d.out[o + 2] = x * y
        d.out[o + 3] = x / y
        d.out[o + 4] = -x
        d.out[o + 5] = 2 * x
        d.out[o + 6] = x - 1
        d.out[o + 7] = 0.1 * x
        d.out[o + 8] = 1 / x
        d.out[o + 9] = x / 3.0
        d.out[o + 10] += x
        d.out[o + 10] -= 0.1
        d.out[o + 10] *= y
        d.out[o + 10] /= 0.7
        d.out[o + 11] = 7


@stage
def functions(d):
    for i in range(d.n):
        x, y, o = d.x[i], d.y[i], OUTPUTS * i
        d.out[o] = sqrt(fabs(x))
        d.out[o + 1] = fabs(x)
        d.out[o + 2] = floor(x)
        d.out[o + 3] = rint(x)
        d.out[o + 4] = fmin(x, y)
        d.out[o + 5] = fmax(x, y)
        d.out[o + 6] = fmin(x, 0.1)
        d.out[o + 7] = fmax(0, x)
        d.out[o + 8] = clip(x, -0.1, 0.3)
        d.out[o + 9] = clip(x, -1, fabs(y))
        d.out[o + 10] = copysign(x, y)
        d.out[o + 11] = copysign(1.0, x)


@stage
def comparisons(d):
    for i in range(d.n):
        x, y, o = d.x[i], d.y[i], OUTPUTS * i
        d.out[o] = where(x < y, 1.0, 0.0)
        d.out[o + 1] = where(x <= y, 1, 0)
        d.out[o + 2] = where(x > y, x, 0.1)
        d.out[o + 3] = where(x >= y, 0.1, y)
        d.out[o + 4] = where(x == y, x, y)
        d.out[o + 5] = where(x != y, 1.0, 0.0)
        d.out[o + 6] = where(x < 0.1, 1.0, 0.0)
        d.out[o + 7] = where(0 > x, 1.0, 0.0)  # noqa: SIM300


@stage
def masks(d):
    for i in range(d.n):
        x, y, o = d.x[i], d.y[i], OUTPUTS * i
        a, b = x > y, x > 0.0
        both = True
        both = both & a
        both &= b
        either = a
        either |= b
        d.out[o] = where(both, 1.0, 0.0)
        d.out[o + 1] = where(either, 1.0, 0.0)
        d.out[o + 2] = where(not_(a), 1.0, 0.0)
        d.out[o + 3] = where(where(a, b, not_(b)), x, y)
        d.out[o + 4] = where(a, 1.0, 0.0)


@stage
def integer_conditions(d):
    for i in range(d.n):
        x, y, o = d.x[i], d.y[i], OUTPUTS * i
        a = x > y
        d.out[o] = i * x
        d.out[o + 1] = where(i > 3, x, y)
        d.out[o + 2] = where(i > 3, 1.0, y)
        d.out[o + 3] = where(a & (i > 3), 1.0, 0.0)
        d.out[o + 4] = where((i > 3) | a, 1.0, 0.0)
        d.out[o + 5] = where(where(i > 3, a, not_(a)), 1.0, 0.0)
        d.out[o + 6] = where(d.table[i] > 0.5, x, y)
        d.out[o + 7] = where((d.table[i] > 0.5) & a, x, y)


@stage
def swaps(d):
    for i in range(d.n):
        x = d.x[i]
        d.x[i] = d.y[i]
        d.y[i] = x
        d.out[OUTPUTS * i], d.out[OUTPUTS * i + 1] = d.x[i], d.y[i]


@kernel
def halvings(x):
    """Counts halvings of x until it is below 1, lane by lane."""
    count = 0.0 * x
    active = x >= 1.0
    while any_(active):
        x = where(active, 0.5 * x, x)
        count = where(active, count + 1.0, count)
        active = active & (x >= 1.0)
    return count, x


@stage
def loops(d):
    for i in range(d.n):
        o = OUTPUTS * i
        d.out[o], d.out[o + 1] = halvings(fmin(fabs(d.x[i]), 1e30))


@stage
def exponents(d):
    for i in range(d.n):
        o = OUTPUTS * i
        f, e = split_exponent(clip(fabs(d.x[i]), 1e-30, 1e30))
        d.out[o], d.out[o + 1] = f, e
        d.out[o + 2] = scale_exponent(f, e)
        d.out[o + 3] = scale_exponent(d.x[i], -3)


@stage
def single_literals(d):
    for i in range(d.n):
        o = OUTPUTS * i
        chosen = where(d.x[i] > 0.0, 0.1, 0.2)
        d.out[o] = chosen * chosen * d.y[i]
        d.out[o + 1] = sqrt(where(d.x[i] > 0.0, 2.0, 3.0)) * 0.1 + d.y[i]
        d.out[o + 2] = sqrt(2.0) * d.x[i]


LANEWISE = (arithmetic, functions, comparisons, masks, loops, exponents, swaps)


@pytest.mark.parametrize("dtype, w", FORMS)
@pytest.mark.parametrize("tried", [*LANEWISE, integer_conditions], ids=lambda s: s.name)
def test_compiled_equals_uncompiled(tried, dtype, w, numbers, rng):
    numbers["table"] = rng.uniform(size=numbers["x"].size // w)
    compiled = evaluate(STAGES, tried, dtype, w, **numbers)
    uncompiled = evaluate(STAGES, tried, dtype, w, compiled=False, **numbers)
    for k in range(OUTPUTS):
        assert same_bits(compiled[k], uncompiled[k]), f"output {k}"


@pytest.mark.parametrize("dtype, w", [("float64", 8), ("float64", 2), ("float32", 16)])
@pytest.mark.parametrize("tried", [*LANEWISE, single_literals], ids=lambda s: s.name)
def test_results_do_not_depend_on_the_tile_width(tried, dtype, w, numbers):
    assert same_bits(evaluate(STAGES, tried, dtype, w, **numbers), evaluate(STAGES, tried, dtype, 1, **numbers))


@pytest.mark.parametrize("w", [1, 16])
def test_literals_keep_float32_in_masked_choices(w, numbers):
    y = numbers["y"].astype(np.float32)
    chosen = np.where(numbers["x"].astype(np.float32) > 0, np.float32(0.1), np.float32(0.2))
    assert same_bits(evaluate(STAGES, single_literals, "float32", w, **numbers)[0], chosen * chosen * y)


# ---- fused multiply-add ------------------------------------------------------------------------------------
@stage
def fused(d):
    for i in range(d.n):
        d.out[OUTPUTS * i] = fma(d.x[i], d.y[i], -(d.x[i] * d.y[i]))
        d.out[OUTPUTS * i + 1] = fma(d.x[i], 0.1, d.y[i])


@pytest.mark.parametrize("dtype, w", FORMS)
def test_fma_rounds_once(dtype, w, rng):
    x, y = rng.normal(size=(2, 64)).astype(dtype)
    out = evaluate(STAGES, fused, dtype, w, x=x, y=y)
    residual = [Fraction(float(a)) * Fraction(float(b)) - Fraction(float(a * b)) for a, b in zip(x, y, strict=True)]
    assert [Fraction(float(r)) for r in out[0]] == residual
    tenth = Fraction(float(np.dtype(dtype).type(0.1)))
    exact = [float(Fraction(float(a)) * tenth + Fraction(float(b))) for a, b in zip(x, y, strict=True)]
    assert np.array_equal(out[1], np.array(exact).astype(dtype))


# ---- tiles -----------------------------------------------------------------------------------------------
@stage
def tile(d):
    for i in range(d.n):
        x, o = d.x[i], OUTPUTS * i
        d.out[o] = real(d, 0.1)
        d.out[o + 1] = real(d, 1)
        d.out[o + 2] = lane_index(d)
        d.out[o + 3] = width(d)
        if any_(x > 0.0):
            d.out[o + 4] = 1
        if all_(x > 0.0):
            d.out[o + 5] = 1
        if not any_(x > 0.0):
            d.out[o + 6] = 1
        if any_(i > 3) and all_(i < 9):
            d.out[o + 7] = 1
        if single_precision(d) and single_precision(x):
            d.out[o + 8] = 1


@pytest.mark.parametrize("dtype, w", FORMS)
def test_reductions_and_facts_of_a_tile(dtype, w, rng):
    x = rng.normal(size=(16, w)) + np.linspace(-3, 3, 16)[:, None]
    out = evaluate(STAGES, tile, dtype, w, x=x)
    assert same_bits(out, evaluate(STAGES, tile, dtype, w, compiled=False, x=x))
    rows = out.reshape(OUTPUTS, 16, w)
    assert np.array_equal(rows[2:4, 0], [np.arange(w), np.full(w, w)])
    assert np.array_equal(rows[4, :, 0], (x > 0).any(axis=1))
    assert np.array_equal(rows[5, :, 0], (x > 0).all(axis=1))
    assert np.all(rows[8] == (dtype == "float32"))


# ---- integers ----------------------------------------------------------------------------------------------
@stage
def integers(d):
    for i in range(d.n):
        k, o = d.k[i], OUTPUTS * i
        d.out[o] = k // 3
        d.out[o + 1] = k % 3
        d.out[o + 2] = k // -3
        d.out[o + 3] = k % -3
        d.out[o + 4] = d.long[i] // 1000000007
        d.out[o + 5] = 0.5 * k
        d.k[i] = -k
        d.long[i] = d.long[i] + 1
        d.out[o + 6] = d.k[i]
        d.out[o + 7] = d.long[i] % 1000
        d.out[o + 8] = min(k, 3) + max(k, -3)
        d.out[o + 9] = (k & 6) | (k >> 1)
        d.out[o + 10] = count_ones(abs(k))
        d.out[o + 11] = count_ones(abs(d.long[i]))


@pytest.mark.parametrize("dtype, w", FORMS)
def test_integers_divide_as_in_python(dtype, w):
    inputs = {"x": np.zeros(12 * w), "k": np.arange(-6, 6), "long": 10**15 * np.arange(-6, 6)}
    compiled = evaluate(STAGES, integers, dtype, w, **inputs)
    assert same_bits(compiled, evaluate(STAGES, integers, dtype, w, compiled=False, **inputs))


# ---- indices that differ by world ----------------------------------------------------------------------------
@stage
def gathers(d):
    memory = scalars(d, d.long[0])
    for i in range(d.n):
        o = OUTPUTS * i
        d.out[o] = gather(d.table, d.x[i])
        d.out[o + 1] = gather_rows(d.y, d.x[i])
        d.out[o + 2] = real(d, d.table[i]) * d.y[i]
        d.out[o + 3] = memory[i]
        prefetch(memory, i + 1)
        memory[i] = 2.0 * memory[i]


@pytest.mark.parametrize("dtype, w", FORMS)
def test_gather_reads_an_index_per_world(dtype, w, rng):
    n = 6
    index, table = rng.integers(0, n, (n, w)), rng.normal(size=n).astype(dtype)
    y = rng.normal(size=(n, w)).astype(dtype)
    for compiled in (True, False):
        memory = np.arange(1, n + 1).astype(dtype)
        pointers = np.full(n, memory.ctypes.data)
        inputs = {"x": index, "table": table, "y": y, "long": pointers}
        out = evaluate(STAGES, gathers, dtype, w, compiled=compiled, **inputs).reshape(OUTPUTS, n, w)
        assert np.array_equal(out[0], table[index])
        assert np.array_equal(out[1], np.take_along_axis(y, index, axis=0))
        assert np.array_equal(out[2], table[:, None] * y)
        assert np.array_equal(out[3], np.repeat(np.arange(1, n + 1), w).reshape(n, w))
        assert np.array_equal(memory, 2 * np.arange(1, n + 1))


def test_a_view_out_of_its_rows_is_an_error_uncompiled():
    d = cells("float64", 8, 4)
    with pytest.raises(IndexError, match=r"x\[-1\]"):
        evaluate(STAGES, reads_below, "float64", 8, compiled=False, x=d.arrays["x"])


@stage
def reads_below(d):
    d.x[0] = d.x[-1]
