"""Elementary functions against mpmath, NumPy at the edges, and themselves at other widths and CPU levels."""

import mpmath
import numpy as np
import pytest

from featherlane.engine.lanes import acos, asin, atan2, exp, log, pow_, processor, sincos, stage
from scenes.cells import FORMS, OUTPUTS, evaluate, library, same_bits

STAGES = library()
N = 256
NUMBERS = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-320, 1e-310, -1e-310, 1e300, -1e300)


@stage
def circular(d):
    for i in range(d.n):
        d.out[OUTPUTS * i], d.out[OUTPUTS * i + 1] = sincos(d.x[i])


@stage
def exponential(d):
    for i in range(d.n):
        d.out[OUTPUTS * i] = exp(d.x[i])


@stage
def logarithm(d):
    for i in range(d.n):
        d.out[OUTPUTS * i] = log(d.x[i])


@stage
def power(d):
    for i in range(d.n):
        d.out[OUTPUTS * i] = pow_(d.x[i], d.y[i])


@stage
def arcs(d):
    for i in range(d.n):
        d.out[OUTPUTS * i] = asin(d.x[i])
        d.out[OUTPUTS * i + 1] = acos(d.x[i])


@stage
def angle(d):
    for i in range(d.n):
        d.out[OUTPUTS * i] = atan2(d.y[i], d.x[i])


STAGED = {
    "sincos": (circular, (lambda x, y: mpmath.sin(x), lambda x, y: mpmath.cos(x))),
    "exp": (exponential, (lambda x, y: mpmath.exp(x),)),
    "log": (logarithm, (lambda x, y: mpmath.log(x),)),
    "pow_": (power, (lambda x, y: mpmath.power(x, y),)),
    "arcs": (arcs, (lambda x, y: mpmath.asin(x), lambda x, y: mpmath.acos(x))),
    "atan2": (angle, (lambda x, y: mpmath.atan2(y, x),)),
}
# the documented bounds, in units in the last place
ULP = {"sincos": 1.5, "exp": 1.0, "log": 1.0, "pow_": 1.5, "arcs": 1.5, "atan2": 2.5}


def samples(rng, dtype):
    """Yields arguments (function, x, y) that reach every branch of every function."""
    double = dtype == "float64"

    def flat(a, b):
        return rng.uniform(a, b, N)

    def spread(a, b):
        return np.exp(rng.uniform(a, b, N))

    edge = 1 - spread(-30 if double else -14, -1)
    multiples = rng.integers(1, 6 * 10**8 if double else 60000, N) * (np.pi / 2)
    exponent, tiny, largest = (709.0, -744.0, 709.0) if double else (88.0, -103.0, 88.0)
    wide = spread(tiny, largest)
    pairs = {
        "sincos": [(flat(-4, 4), 0), (spread(-30, 20.7 if double else 11.5), 0), (multiples, 0)],
        "exp": [(flat(-exponent, exponent), 0), (flat(-1, 1), 0), (-spread(-40, -2), 0)],
        "log": [(wide, 0), (flat(0.4, 2), 0), (flat(0.99, 1.01), 0)],
        "pow_": [
            (flat(0, 1), flat(0, 10)),
            (wide, flat(-0.9, 0.9)),
            (flat(0.5, 2), flat(-exponent, exponent)),
            (flat(0.999, 1.001), flat(-1e4, 1e4)),
        ],
        "arcs": [(flat(-1, 1), 0), (spread(-40, 0), 0), (edge, 0), (-edge, 0)],
        "atan2": [
            (flat(-1, 1), flat(-1, 1)),
            (spread(-20, 20), -spread(-20, 20)),
            (-flat(1, 1.2), flat(0.4, 0.6)),
            (flat(0.9, 1), -flat(0.9, 1)),
        ],
    }
    for name, cases in pairs.items():
        for x, y in cases:
            yield name, x.astype(dtype), np.broadcast_to(y, x.shape).astype(dtype)


def errors(found, exact):
    """Returns the error of each value, in spacings of the nearest number of its type."""
    nearest = np.abs(np.array([float(e) for e in exact]).astype(found.dtype))
    units = [float(u) for u in np.spacing(nearest)]
    return [float(abs(mpmath.mpf(float(a)) - e)) / u for a, e, u in zip(found, exact, units, strict=True)]


@pytest.mark.parametrize("dtype, w", [("float64", 8), ("float32", 16)])
def test_errors_are_below_the_stated_bounds(dtype, w, rng):
    worst = dict.fromkeys(ULP, 0.0)
    with mpmath.workprec(160):
        for name, x, y in samples(rng, dtype):
            tried, exact = STAGED[name]
            out = evaluate(STAGES, tried, dtype, w, x=x, y=y)
            for k, f in enumerate(exact):
                answers = [f(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(x, y, strict=True)]
                worst[name] = max(worst[name], *errors(out[k], answers))
    assert all(worst[name] <= ULP[name] for name in ULP), worst


@pytest.mark.parametrize("dtype, w", FORMS)
def test_uncompiled_is_close(dtype, w, rng):
    # uncompiled, fma rounds twice: reductions lose what one rounding saves
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    for name, x, y in samples(rng, dtype):
        x, y = x[:64], y[:64]
        if name == "sincos":
            x = np.clip(x, -10, 10)
        tried = STAGED[name][0]
        compiled = evaluate(STAGES, tried, dtype, w, x=x, y=y)
        uncompiled = evaluate(STAGES, tried, dtype, w, compiled=False, x=x, y=y)
        np.testing.assert_allclose(uncompiled, compiled, rtol=tolerance, atol=tolerance)


def specials(dtype):
    """Returns all pairs of special numbers, in a multiple of 16."""
    with np.errstate(over="ignore"):
        return [np.resize(a, 240).astype(dtype) for a in np.meshgrid(NUMBERS, NUMBERS)]


def reference(name, x, y):
    with np.errstate(all="ignore"):
        if name == "pow_":
            return [np.where(np.isnan(x) & (y == 0), 1.0, np.power(np.where(x == 0, 0.0, x), y))]
        functions = {"sincos": (np.sin, np.cos), "exp": (np.exp,), "log": (np.log,), "arcs": (np.arcsin, np.arccos)}
        return [np.arctan2(y, x)] if name == "atan2" else [f(x) for f in functions[name]]


@pytest.mark.parametrize("dtype, w", FORMS)
@pytest.mark.parametrize("name", STAGED)
def test_special_values_are_as_in_numpy(name, dtype, w):
    x, y = specials(dtype)
    if name == "sincos":
        x = np.where(np.isfinite(x), np.clip(x, -3, 3), x) + 0.0  # sin(-0) is +0
    if name == "pow_":  # its domain
        x, y = np.where((x < 0) & (y != 0), np.nan, x), np.where(np.isfinite(y), y, 1.5).astype(dtype)
    out = evaluate(STAGES, STAGED[name][0], dtype, w, x=x, y=y)
    for found, expected in zip(out, reference(name, x, y), strict=False):
        np.testing.assert_allclose(found, expected, rtol=1e-14 if dtype == "float64" else 1e-6, atol=0)
        assert np.array_equal(np.signbit(found)[found == found], np.signbit(expected)[found == found])


@pytest.mark.parametrize("dtype, w", FORMS)
def test_arcs_are_not_a_number_outside_their_domain(dtype, w):
    past = np.nextafter(np.dtype(dtype).type(1), np.dtype(dtype).type(2))
    out = evaluate(STAGES, arcs, dtype, w, x=np.resize([past, -past, 2.0, -1e30], 16))
    assert np.isnan(out[:2]).all()


@pytest.mark.parametrize("x, expected", [(710.0, np.inf), (-745.2, 0.0), (-745.0, 5e-324), (-708.5, np.exp(-708.5))])
def test_exp_overflows_and_underflows_gradually(x, expected):
    found = evaluate(STAGES, exponential, "float64", 1, x=[x])[0, 0]
    assert found == expected or abs(found - expected) <= np.spacing(expected)


def everything(dtype, w, rng):
    for name, x, y in [*samples(rng, dtype), *((name, *specials(dtype)) for name in STAGED)]:
        yield STAGED[name][0], {"x": x, "y": y}


@pytest.mark.parametrize("dtype, w", [("float64", 8), ("float64", 2), ("float32", 16)])
def test_results_do_not_depend_on_the_tile_width(dtype, w, rng):
    for tried, inputs in everything(dtype, w, rng):
        one = evaluate(STAGES, tried, dtype, 1, **inputs)
        assert same_bits(evaluate(STAGES, tried, dtype, w, **inputs), one), tried


@pytest.mark.parametrize("level", ["x86-64-v3", "native"])
@pytest.mark.parametrize("dtype, w", FORMS)
def test_results_do_not_depend_on_the_cpu_level(level, dtype, w, rng, monkeypatch):
    best = processor.cpu_level()
    monkeypatch.setenv("FEATHERLANE_CPU", level)
    try:
        processor.cpu_level()
    except ValueError:
        pytest.skip(f"this machine has no {level}")
    stages = library()
    if best == level:
        pytest.skip(f"{level} is this machine's own level")
    for tried, inputs in everything(dtype, w, rng):
        assert same_bits(evaluate(stages, tried, dtype, w, **inputs), reference_bits(tried, dtype, w, inputs)), tried


def reference_bits(tried, dtype, w, inputs):
    """Returns the bits at this machine's CPU level: STAGES keeps what it compiled before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FEATHERLANE_CPU")
        return evaluate(STAGES, tried, dtype, w, **inputs)
