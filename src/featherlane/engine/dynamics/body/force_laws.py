"""Force laws of springs and dampers with polynomial coefficients (k, c, e), and the energy of springs.

    spring     f = -x (k + c x + e x^2)         of a ball or a free joint -x (k + c |x| + e |x|^2) along the deflection
    damper     f = -v (k + c |v| + e v^2)
    energy     x^2 (k / 2 + c x / 3 + e x^2 / 4)

Derivatives of these forces are computed by `jvp`.  A test compares the energy's derivative with the force.
"""

from featherlane.engine.prelude import *


@kernel
def has_coefficients(coefficients):
    """Returns the mask of worlds where one of (k, c, e) is not 0."""
    k, c, e = coefficients
    return (k != 0.0) | (c != 0.0) | (e != 0.0)


@kernel
def spring_law(coefficients, x):
    """Returns -x (k + c x + e x^2); coefficients: (k, c, e)."""
    k, c, e = coefficients
    return where(has_coefficients(coefficients), -(x * fma(x, fma(x, e, c), k)), 0.0)


@kernel
def vector_spring_law(coefficients, x):
    """Returns -x (k + c |x| + e |x|^2) of a deflection x, a Vec3; coefficients: (k, c, e)."""
    k, c, e = coefficients
    length = norm3(x)
    s = fma(length, fma(length, e, c), k)
    return where(has_coefficients(coefficients), -(s * x), Vec3(zeros(3)))


@kernel
def damper_law(coefficients, v):
    """Returns -v (k + c |v| + e v^2); coefficients: (k, c, e)."""
    k, c, e = coefficients
    speed = fabs(v)
    return where(has_coefficients(coefficients), -(v * fma(speed, fma(speed, e, c), k)), 0.0)


@kernel
def spring_energy(coefficients, x):
    """Returns the integral of x (k + c x + e x^2); coefficients: (k, c, e)."""
    k, c, e = coefficients
    integral = (x * x) * fma(x, fma(0.25 * x, e, c * (1.0 / 3.0)), 0.5 * k)
    return where(has_coefficients(coefficients), integral, 0.0)


@kernel
def implicit_rate(coefficients, x):
    """Returns k + 2 c x + 3 e x^2, by which implicit integrators extrapolate a spring, or a damper with x = |v|."""
    k, c, e = coefficients
    return fma(x, fma(3.0 * e, x, 2.0 * c), k)
