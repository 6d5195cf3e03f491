"""`jvp` and `seed` against closed derivatives, compiled at every width, with bounds checks, and uncompiled."""

import numpy as np
import pytest

from featherlane.engine.lanes import (
    acos,
    any_,
    asin,
    atan2,
    clip,
    copysign,
    derivative_rule,
    exp,
    fabs,
    floor,
    fma,
    fmax,
    fmin,
    jvp,
    kernel,
    log,
    pow_,
    rint,
    scale_exponent,
    seed,
    sincos,
    split_exponent,
    split_tangents,
    sqrt,
    stage,
    where,
)
from featherlane.engine.lanes.compiler.rules import KernelLanguageError
from featherlane.engine.spatial.types import Mat3, Vec3
from featherlane.errors import ArgumentError, OutOfRangeError
from scenes.cells import FORMS, OUTPUTS, doubles, evaluate, library, same_bits

STAGES = library()
N = 32
ULPS = 16  # of each derivative: the rules round less than ten times
MODES = [(*form, mode) for form in FORMS for mode in ("compiled", "checked", "uncompiled")]


def run(stage, dtype, width, mode, **inputs):
    """Returns the outputs of a stage."""
    return evaluate(STAGES, stage, dtype, width, compiled=mode != "uncompiled", checked=mode == "checked", **inputs)


def tolerance(dtype):
    return ULPS * np.finfo(dtype).eps


# ---- functions -------------------------------------------------------------------------------------------------------
FUNCTIONS = {  # the kernel, for x and y in (0, 1), with its derivatives by x and y
    "+": (kernel(lambda x, y: (x + y) + 2.0), lambda x, y: (1.0, 1.0)),
    "-": (kernel(lambda x, y: 1.0 - (x - y)), lambda x, y: (-1.0, 1.0)),
    "*": (kernel(lambda x, y: 3.0 * x * y), lambda x, y: (3 * y, 3 * x)),
    "/": (kernel(lambda x, y: x / (y + 1.0)), lambda x, y: (1 / (y + 1), -x / (y + 1) ** 2)),
    "neg": (kernel(lambda x, y: -x), lambda x, y: (-1.0, 0.0)),
    "fma": (kernel(lambda x, y: fma(x, y, x)), lambda x, y: (y + 1, x)),
    "sqrt": (kernel(lambda x, y: sqrt(x)), lambda x, y: (0.5 / np.sqrt(x), 0.0)),
    "fabs": (kernel(lambda x, y: fabs(x - y) + abs(y)), lambda x, y: (np.sign(x - y), 1 - np.sign(x - y))),
    "fmin": (kernel(lambda x, y: fmin(x, y)), lambda x, y: (1.0 * (x < y), 1.0 * (x >= y))),
    "fmax": (kernel(lambda x, y: fmax(x, y)), lambda x, y: (1.0 * (x > y), 1.0 * (x <= y))),
    "clip": (kernel(lambda x, y: clip(x, y, 0.7)), lambda x, y: clip_slopes(x, y)),
    "where": (kernel(lambda x, y: where(x < y, x * x, y)), lambda x, y: (2 * x * (x < y), 1.0 * (x >= y))),
    "copysign": (kernel(lambda x, y: copysign(x, 0.5 - y)), lambda x, y: (np.sign(0.5 - y), 0.0)),
    "floor": (kernel(lambda x, y: floor(4.0 * x) + rint(4.0 * y) + x), lambda x, y: (1.0, 0.0)),
    "exp": (kernel(lambda x, y: exp(x - y)), lambda x, y: (np.exp(x - y), -np.exp(x - y))),
    "log": (kernel(lambda x, y: log(x)), lambda x, y: (1 / x, 0.0)),
    "pow_": (kernel(lambda x, y: pow_(x, y)), lambda x, y: (y * x ** (y - 1), x**y * np.log(x))),
    "sin": (kernel(lambda x, y: sincos(x)[0]), lambda x, y: (np.cos(x), 0.0)),
    "cos": (kernel(lambda x, y: sincos(y)[1]), lambda x, y: (0.0, -np.sin(y))),
    "asin": (kernel(lambda x, y: asin(x)), lambda x, y: (1 / np.sqrt((1 - x) * (1 + x)), 0.0)),
    "acos": (kernel(lambda x, y: acos(x)), lambda x, y: (-1 / np.sqrt((1 - x) * (1 + x)), 0.0)),
    "atan2": (kernel(lambda x, y: atan2(y, x)), lambda x, y: (-y / (x * x + y * y), x / (x * x + y * y))),
}


def clip_slopes(x, y):
    low, high = x <= y, np.maximum(x, y) >= 0.7
    return 1.0 * (~low & ~high), 1.0 * (low & ~high)


def differentiated(name):
    """Returns a stage: out <- the value, and value and derivatives by the arguments and by the fields."""
    f = FUNCTIONS[name][0]

    @kernel
    def of_fields(d, i):
        return f(d.x[i], d.y[i])

    by_fields = jvp(of_fields, "x", "y")

    def write(d):
        for i in range(d.n):
            d.out[OUTPUTS * i] = f(d.x[i], d.y[i])
            r, by_x, by_y = split_tangents(f(seed(d.x[i], 1.0, 0.0), seed(d.y[i], 0.0, 1.0)), 2)
            d.out[OUTPUTS * i + 1], d.out[OUTPUTS * i + 2], d.out[OUTPUTS * i + 3] = r, by_x, by_y
            r, by_x, by_y = by_fields(d, i)
            d.out[OUTPUTS * i + 4], d.out[OUTPUTS * i + 5], d.out[OUTPUTS * i + 6] = r, by_x, by_y

    write.__name__ = f"derivative_{list(FUNCTIONS).index(name)}"
    return write


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_functions(name, rng):
    x, y = rng.uniform(0.01, 0.99, (2, N))
    made = stage(differentiated(name))
    for dtype, width, mode in MODES:
        x_, y_ = x.astype(dtype).astype(float), y.astype(dtype).astype(float)
        out = run(made, dtype, width, mode, x=x_, y=y_)
        assert same_bits(out[1], out[0])  # a value has the same bits with tangents
        assert same_bits(out[4:7], out[1:4])
        for k, slope in enumerate(FUNCTIONS[name][1](x_, y_)):
            np.testing.assert_allclose(out[2 + k], slope + 0 * x_, rtol=tolerance(dtype), atol=tolerance(dtype))


# ---- kinks -----------------------------------------------------------------------------------------------------------
@stage
def kinks(d):
    """Derivatives at x = 0."""
    for i in range(d.n):
        x = seed(d.x[i], 1.0)
        z = 0.0 * d.x[i]
        results = (
            (fabs(x), sqrt(x * x), atan2(x, z)),
            (fmin(x, 0.0), fmax(x, 0.0), clip(x, 0.0, 1.0)),
            (clip(x, -1.0, 0.0), where(x > 0.0, 5.0 * x, 3.0 * x), asin(x + 1.0)),
        )
        _, slopes = split_tangents(results, 1)
        for row in range(3):
            for k in range(3):
                d.out[OUTPUTS * i + 3 * row + k] = slopes[row][k]


@pytest.mark.parametrize("form", MODES)
def test_derivatives_at_kinks_are_those_of_the_chosen_side(form):
    out = run(kinks, *form, x=np.zeros(form[1]))
    assert out[:9, 0].tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 3.0, 0.0]


# ---- rows, variables, calls ------------------------------------------------------------------------------------------
@kernel
def turned(d, i, v):
    """Returns the product of a matrix of y and a vector, and its squared length."""
    y, z = d.y[i], 0.0 * d.y[i]
    w = Mat3(z, -y, z, y, z, z, z, z, y) @ v - 2.0 * v / y
    return w, w.x * w.x + w.y * w.y + fma(w.z, w.z, 1.0)


@stage
def rows(d):
    for i in range(d.n):
        v = seed(Vec3(d.x[i], d.y[i], d.x[i]), Vec3(1.0, 0.0, 0.0), 1.0)
        (w, _), by_first, by_all = split_tangents(turned(d, i, v), 2)
        for k in range(3):
            d.out[OUTPUTS * i + k] = by_first[0][k]
            d.out[OUTPUTS * i + 3 + k] = by_all[0][k]
        d.out[OUTPUTS * i + 6] = by_first[1] - 2.0 * (w.x * by_first[0].x + w.y * by_first[0].y)


@pytest.mark.parametrize("form", MODES)
def test_rows_are_differentiated_part_by_part(form, rng):
    x, y = rng.uniform(1.0, 2.0, (2, N))
    out = run(rows, *form, x=x, y=y)
    expected = [-2 / y, y, 0 * y, -y - 2 / y, y - 2 / y, y - 2 / y, 0 * y]
    np.testing.assert_allclose(out[:7], expected, rtol=tolerance(form[0]), atol=100 * tolerance(form[0]))


@kernel
def assembled(d, i, n):
    """Returns x^n y + x + clock, with loops, branches, conditional expressions and items of tuples."""
    power, pair = 1.0, (d.x[i], d.y[i])
    for _ in range(n):
        power = power * pair[0]
    if n > 1:
        power *= pair[1]
    else:
        power = pair[1] * (pair[0] if n == 1 else 1.0)
    if any_(power > 1e30):
        power = 0.0 * power
    return power + d.x[i] + d.clock[i], n


by_x = jvp(assembled, "x")


@stage
def variables(d):
    for i in range(d.n):
        (r, _), (slope, zero) = by_x(d, i, n=i + 1)
        d.out[OUTPUTS * i], d.out[OUTPUTS * i + 1], d.out[OUTPUTS * i + 2] = r, slope, zero


@pytest.mark.parametrize("form", MODES)
def test_tangents_follow_variables_through_branches_and_loops(form, rng):
    dtype, width, _ = form
    x, y, clock = rng.uniform(1.0, 2.0, (3, 3 * width)).astype(dtype).astype(float)
    out, n = run(variables, *form, x=x, y=y, clock=clock), np.repeat([1, 2, 3], width)
    np.testing.assert_allclose(out[0], x**n * y + x + clock, rtol=tolerance(dtype))
    np.testing.assert_allclose(out[1], n * x ** (n - 1) * y + 1, rtol=tolerance(dtype))
    assert not out[2].any()


# ---- rules -----------------------------------------------------------------------------------------------------------
@kernel
def cube_root(x):
    """Returns the cube root by iterations, whose derivative would be that of the last iterate."""
    y = x
    for _ in range(60):
        y = y - (y * y * y - x) / (3.0 * y * y)
    return y


@derivative_rule(cube_root)
@kernel
def cube_root_partials(result, x):
    return (1.0 / (3.0 * result * result),)


@stage
def ruled(d):
    for i in range(d.n):
        r, slope = split_tangents(cube_root(x=seed(d.x[i] * d.x[i], 2.0 * d.x[i])), 1)
        d.out[OUTPUTS * i], d.out[OUTPUTS * i + 1] = r, slope


@pytest.mark.parametrize("form", MODES)
def test_a_rule_replaces_the_derivative_of_the_code(form, rng):
    x = rng.uniform(1.0, 2.0, N).astype(form[0]).astype(float)
    out = run(ruled, *form, x=x)
    np.testing.assert_allclose(out[:2], [x ** (2 / 3), 2 / 3 * x ** (-1 / 3)], rtol=tolerance(form[0]))


def test_an_edit_of_a_rule_compiles_its_stages_again():
    before, cube_root.rule = ruled.code_hash(), exp.rule
    try:
        assert ruled.code_hash() != before
    finally:
        cube_root.rule = cube_root_partials


def test_a_rule_has_a_parameter_for_the_result_and_each_argument():
    with pytest.raises(ArgumentError):
        derivative_rule(pow_)(cube_root_partials)


# ---- refused ---------------------------------------------------------------------------------------------------------
@kernel
def stores(d, i):
    d.out[i] = d.x[i]
    return d.x[i]


@kernel
def calls_a_stage(d, i):
    doubles(d)
    return d.x[i]


REFUSED = {  # kernels of (d, i), with words of the message
    "bits": (kernel(lambda d, i: scale_exponent(seed(d.x[i], 1.0), 1.0)), "scale_exponent: got a value"),
    "exponent": (kernel(lambda d, i: split_exponent(seed(d.x[i], 1.0))[0]), "with 1 tangents, allowed is a value"),
    "store": (jvp(stores, "x"), "split_tangents"),
    "stage": (jvp(calls_a_stage, "x"), "calls no stage"),
    "unknown field": (jvp(kernel(lambda d, i: d.x[i]), "qpos"), "no argument has a field qpos"),
    "ints": (jvp(kernel(lambda d, i: 1.0 * d.k[i]), "k"), "k is not a field of reals"),
    "nested": (kernel(lambda d, i: seed(seed(d.x[i], 1.0), 1.0)), "not nested"),
    "mixed": (kernel(lambda d, i: seed(d.x[i], 1.0) * seed(d.y[i], 1.0, 1.0)), "1 and 2 tangents are combined"),
    "split": (kernel(lambda d, i: split_tangents(seed(d.x[i], 1.0), 2)), "2 tangents of"),
    "index": (kernel(lambda d, i: d.x[seed(d.x[i], 1.0)]), "needed is an int"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_derivative_is_refused(name):
    f, words = REFUSED[name]

    def refused(d):
        for i in range(d.n):
            f(d, i)

    refused.__name__ = f"refused_{name.replace(' ', '_')}"
    made = stage(refused)
    for dtype, width in FORMS:
        with pytest.raises(KernelLanguageError, match=words):
            run(made, dtype, width, "compiled", x=np.ones(width))
    with pytest.raises((TypeError, OutOfRangeError)):
        run(made, "float64", 1, "uncompiled", x=np.ones(1))


@pytest.mark.parametrize("fields", [(), ("x", "x")])
def test_a_derivative_has_one_or_more_fields(fields):
    with pytest.raises(ArgumentError):
        jvp(assembled, *fields)
    with pytest.raises(ArgumentError):
        jvp(doubles, "x")
