"""Registration of points: recovery, global optimality, naive searches, degenerate sets, and batches of sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featherlane as fl
from featherlane.registration import RegistrationStatus as Status

ROUNDING = 1e-13  # some hundred rounding errors of values of order 1
CLOSE = {"rtol": ROUNDING, "atol": ROUNDING}
ANSWER = ("rotation", "translation", "scale", "residual", "rank", "status")


def rotation(rng, m):
    """Returns a random proper rotation."""
    Q = np.linalg.qr(rng.standard_normal((m, m)))[0]
    Q[:, 0] *= np.linalg.det(Q)
    return Q


def flat(rng, n, m, rank):
    """Returns n random points in a random `rank`-dimensional subspace of R^m."""
    return rng.standard_normal((n, rank)) @ rotation(rng, m)[:rank]


def residual(a, b, w, R, t, c):
    return (w * ((b - (c * a @ R.T + t)) ** 2).sum(-1)).sum()


def covariance(a, b, w):
    """Computes Sigma and the mean square of a from the definition; also the means."""
    w = w / w.sum()
    mean_a, mean_b = w @ a, w @ b
    return ((b - mean_b).T * w) @ (a - mean_a), w @ ((a - mean_a) ** 2).sum(-1), mean_a, mean_b


def check_proper(R, c):
    np.testing.assert_allclose(R @ R.T, np.eye(len(R)), atol=1e-13)
    assert np.linalg.det(R) > 0 and c >= 0


def check_optimal(result, a, b, w):
    """Checks the minimum over all proper rotations: R^T Sigma is symmetric, its two smallest eigenvalues sum to >= 0.

    Necessary and sufficient: a half turn in their plane would increase the trace by twice that sum.
    """
    R, t, c = result
    check_proper(R, c)
    Sigma, variance, mean_a, mean_b = covariance(a, b, w)
    M = R.T @ Sigma
    small = ROUNDING * (1 + np.abs(Sigma).max())
    np.testing.assert_allclose(M, M.T, atol=small)
    assert len(R) == 1 or np.linalg.eigvalsh((M + M.T) / 2)[:2].sum() >= -small
    assert c * variance == pytest.approx(max(np.trace(M), 0.0), rel=1e-12, abs=small)
    np.testing.assert_allclose(t, mean_b - c * R @ mean_a, atol=1e-12 * (1 + c))
    direct = residual(a, b, w, R, t, c)
    assert np.sqrt(result.residual) == pytest.approx(np.sqrt(direct), rel=1e-12, abs=ROUNDING * (1 + c))


# ---- laws ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("m", range(1, 7))
@pytest.mark.parametrize("thickness", [0, 1], ids=["flat", "full"])
def test_a_similarity_is_recovered(rng, m, thickness):
    rank = max(m - 1 + thickness, 1)
    for _ in range(20):
        R, t, c = rotation(rng, m), rng.standard_normal(m), rng.uniform(0.1, 10.0)
        a = flat(rng, m + 3, m, rank) + rng.standard_normal(m)
        result = fl.registration.register_points(a, c * a @ R.T + t)
        assert result.status == Status.UNIQUE and result.rank == rank
        # the rounding error grows as one over the smallest extent of the random set
        np.testing.assert_allclose(result.rotation, R, atol=1e-11)
        np.testing.assert_allclose(result.translation, t, atol=1e-10)
        assert result.scale == pytest.approx(c, rel=1e-12) and result.residual < 1e-24  # 1e-13 c in 27 coordinates


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 9), st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_the_solution_is_the_global_minimum(seed, m, n, rank_a, rank_b, related):
    rng = np.random.default_rng(seed)
    a, w = flat(rng, n, m, min(rank_a, m)) + rng.standard_normal(m), rng.uniform(0.1, 2.0, n)
    b = flat(rng, n, m, min(rank_b, m))
    if related:  # half of them reflected, with errors of every size
        b = a @ np.linalg.qr(rng.standard_normal((m, m)))[0] + 10.0 ** rng.integers(-15, 1) * b
    result = fl.registration.register_points(a, b, weights=w)
    assert result.status in (Status.UNIQUE, Status.ROTATION_NOT_UNIQUE, Status.COINCIDENT)
    if result.status == Status.COINCIDENT:
        np.testing.assert_array_equal(result.rotation, np.eye(m))
        assert result.scale == 1
    else:
        check_optimal(result, a, b, w)
    fixed = fl.registration.register_points(a, b, scale=False, weights=w)
    np.testing.assert_array_equal(fixed.rotation, result.rotation)
    assert fixed.scale == 1 and fixed.residual >= result.residual * (1 - 1e-9) - 1e-25


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_no_perturbation_improves_the_solution(rng, m):
    a, b, w = rng.standard_normal((12, m)), rng.standard_normal((12, m)), rng.random(12)
    result = fl.registration.register_points(a, b, weights=w)
    for size in np.repeat([1e-4, 1e-2, 1.0], 100):
        turn = np.linalg.qr(np.eye(m) + size * rng.standard_normal((m, m)))[0]
        turn[:, 0] *= np.linalg.det(turn)
        t, c = result.translation + size * rng.standard_normal(m), abs(result.scale + size * rng.standard_normal())
        assert residual(a, b, w, turn @ result.rotation, t, c) >= result.residual * (1 - 1e-12)


def test_mirror_images_are_matched_by_rotations(rng):
    for m in (2, 3, 4, 5):
        a = rng.standard_normal((10, m)) * np.arange(1, m + 1)
        mirror = rotation(rng, m) * np.where(np.arange(m) == m - 1, -1.0, 1.0)
        result = fl.registration.register_points(a, a @ mirror.T)
        check_optimal(result, a, a @ mirror.T, np.ones(10))
        assert result.status == Status.UNIQUE and result.rank == m and result.scale > 0 and result.residual > 0.1


def test_the_mirror_image_of_a_planar_set_is_a_rotation_of_it(rng):
    a = flat(rng, 8, 3, 2)
    result = fl.registration.register_points(a, -a)
    assert result.status == Status.UNIQUE and result.rank == 2
    assert result.residual < 1e-28 and result.scale == pytest.approx(1.0)
    check_proper(result.rotation, result.scale)


def test_a_weight_counts_as_that_many_points(rng):
    a, b, times = rng.standard_normal((6, 3)), rng.standard_normal((6, 3)), rng.integers(0, 4, 6)
    weighted = fl.registration.register_points(a, b, weights=times)
    repeated = fl.registration.register_points(a.repeat(times, 0), b.repeat(times, 0))
    huge = fl.registration.register_points(a, b, weights=times * 1e300)
    for name in ANSWER:
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), **CLOSE)
    np.testing.assert_allclose(huge.rotation, weighted.rotation, **CLOSE)
    assert huge.residual == pytest.approx(weighted.residual * 1e300)


# ---- naive and recorded ----------------------------------------------------------------------------------------------
def test_umeyamas_example():
    """Umeyama 1991, section IV: his three points, R, t, c and the mean square error."""
    result = fl.registration.register_points([(0, 0), (1, 0), (0, 2)], [(0, 0), (-1, 0), (0, 2)])
    R, t, c = result
    np.testing.assert_allclose(R, [[0.832, 0.555], [-0.555, 0.832]], atol=5e-4)
    np.testing.assert_allclose(t, [-0.800, 0.400], atol=5e-4)
    assert c == pytest.approx(0.721, abs=5e-4) and result.residual / 3 == pytest.approx(0.533, abs=5e-4)


def test_a_search_over_angles_finds_nothing_better(rng):
    for mirrored in (False, True):
        a, b, w = rng.standard_normal((7, 2)), rng.standard_normal((7, 2)), rng.random(7)
        a = b * (-1, 1) + 0.3 * a if mirrored else a
        result = fl.registration.register_points(a, b, weights=w)
        Sigma, variance, mean_a, mean_b = covariance(a, b, w)
        found = []
        for angle in np.linspace(0, 2 * np.pi, 7201):
            R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            c = max(np.trace(R.T @ Sigma), 0.0) / variance
            found.append(residual(a, b, w, R, mean_b - c * R @ mean_a, c))
        assert result.residual <= min(found) == pytest.approx(result.residual, rel=1e-5)  # half a grid step, squared


@pytest.mark.parametrize("kind", ["random", "planar", "mirrored"])
def test_quaternions_give_the_same_rotation(rng, kind):
    """Horn, J. Opt. Soc. Am. A 4(4), 1987: R is the quaternion of the largest eigenvalue of a symmetric matrix."""
    a, b, w = flat(rng, 9, 3, 2 if kind == "planar" else 3), rng.standard_normal((9, 3)), rng.random(9)
    if kind != "random":
        b = 0.01 * b - a @ rotation(rng, 3).T
    S = covariance(a, b, w)[0].T
    skew = [S[1, 2] - S[2, 1], S[2, 0] - S[0, 2], S[0, 1] - S[1, 0]]
    N = np.block([[np.trace(S), np.array(skew)], [np.c_[skew], S + S.T - np.trace(S) * np.eye(3)]])
    q, x = np.split(np.linalg.eigh(N)[1][:, -1], [1])
    cross = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
    expected = np.eye(3) + 2 * q * cross + 2 * cross @ cross
    np.testing.assert_allclose(fl.registration.register_points(a, b, weights=w).rotation, expected, atol=1e-11)


# ---- independence of rounding ----------------------------------------------------------------------------------------
def of_every_kind(rng):
    """Returns pairs of sets by name, with their rank and status."""
    line, plane, body = (flat(rng, 8, 3, rank) for rank in (1, 2, 3))
    other, point, cube = rng.standard_normal((8, 3)), np.zeros((8, 3)), np.indices((2, 2, 2)).reshape(3, 8).T * 1.0
    return {
        "body": (body, body @ rotation(rng, 3).T, 3, Status.UNIQUE),
        "plane": (plane, plane @ rotation(rng, 3).T, 2, Status.UNIQUE),
        "plane to a body": (plane, other, 2, Status.UNIQUE),
        "body to a plane": (other, plane, 2, Status.UNIQUE),
        "line": (line, line @ rotation(rng, 3).T, 1, Status.ROTATION_NOT_UNIQUE),
        "line to a body": (line, other, 1, Status.ROTATION_NOT_UNIQUE),
        "line turned round": (line, -line, 1, Status.ROTATION_NOT_UNIQUE),
        "cube": (cube, cube @ rotation(rng, 3).T, 3, Status.UNIQUE),
        "cube mirrored": (cube, -cube, 3, Status.ROTATION_NOT_UNIQUE),
        "body to a point": (body, point, 0, Status.ROTATION_NOT_UNIQUE),
        "point to a body": (point, body, 0, Status.COINCIDENT),
        "point": (point, point, 0, Status.COINCIDENT),
    }


@pytest.mark.parametrize("name", of_every_kind(np.random.default_rng(0)))
@pytest.mark.parametrize("far", [0.0, 1.0, 1e6, 1e12])
def test_rank_and_status_of_every_kind_of_set_far_away_and_in_any_unit(rng, name, far):
    a, b, rank, status = of_every_kind(rng)[name]
    a, b = a + far * rng.standard_normal(3), b + far * rng.standard_normal(3)
    reference = fl.registration.register_points(a, b)
    assert (reference.rank, reference.status) == (rank, status)
    check_proper(reference.rotation, reference.scale)
    for unit_a, unit_b in ((1e-9, 1e12), (1e12, 1e-9), (1e-150, 1e-150), (1e-290, 1e-300), (1e200, 1e290)):
        result = fl.registration.register_points(unit_a * a, unit_b * b)
        assert (result.rank, result.status) == (rank, status)
        if status == Status.UNIQUE:
            # rounding a coordinate rotates a set of extent 1 by the same amount
            np.testing.assert_allclose(result.rotation, reference.rotation, atol=1e-14 * (1e3 + 1e2 * far))
            assert result.scale == pytest.approx(reference.scale * (unit_b / unit_a), rel=1e-11 + 1e-14 * far)
        elif name not in ("line turned round", "cube mirrored"):
            np.testing.assert_allclose(result.rotation, reference.rotation, atol=1e-14 * (1e3 + 1e2 * far))


@pytest.mark.parametrize("thickness", [1e-3, 1e-6, 1e-9, 1e-12])
def test_rotation_accuracy_of_a_thin_set_matches_its_extent(rng, thickness):
    for _ in range(10):
        R, axes = rotation(rng, 3), rotation(rng, 3)
        a = rng.standard_normal((20, 3)) * (1.0, thickness, 0.0) @ axes
        result = fl.registration.register_points(a, a @ R.T)
        assert (result.rank, result.status) == (2, Status.UNIQUE)
        # one over the thickness, not its square as for a covariance in fixed axes
        np.testing.assert_allclose(result.rotation, R, atol=3e-15 / thickness + ROUNDING)


def correlated(rng, n, extents_a, extents_b, common, far=100.0):
    """Returns two sets whose kth coordinates have correlation common_k, all others 0; rotated and moved far away."""
    m = len(common)
    X = np.linalg.qr(np.c_[np.ones(n), rng.standard_normal((n, 2 * m))])[0][:, 1:] * np.sqrt(n)
    common = np.asarray(common)
    a, b = X[:, :m], X[:, :m] * common + X[:, m:] * np.sqrt(1 - common**2)
    a, b = a * extents_a @ rotation(rng, m), b * extents_b @ rotation(rng, m)
    return a + far * rng.standard_normal(m), b + far * rng.standard_normal(m)


@pytest.mark.parametrize(
    "extents_a, extents_b, common, rank",
    [
        ((1, 1, 0), (1, 1, 0), (1, 0, 0), 1),  # two planes that share a line
        ((1, 1, 0), (1, 1e-6, 0), (1, 0, 0), 1),
        ((1, 1e-6, 0), (1, 1, 0), (1, 0, 0), 1),
        ((1, 1e-6, 0), (1, 1e-6, 0), (1, 0, 0), 1),
        ((1, 0, 0), (1, 0, 0), (1e-8, 0, 0), 1),  # two weakly correlated lines
        ((1, 1, 1e-9), (1, 1, 1e-9), (1, 0, 1), 1),  # the second's rounding error hides the third
        ((1, 1, 1e-9), (1, 1, 1e-9), (1, 1e-3, 1), 3),
        ((1, 1e-3, 1e-6), (1, 1e-3, 1e-6), (1e-3, 0.1, 1), 3),
    ],
)
def test_the_rank_counts_singular_values_above_rounding(rng, extents_a, extents_b, common, rank):
    for _ in range(20):
        a, b = correlated(rng, 30, extents_a, extents_b, common)
        result = fl.registration.register_points(a, b)
        assert (result.rank, result.status) == (rank, Status.UNIQUE if rank > 1 else Status.ROTATION_NOT_UNIQUE)


def test_many_points_at_one_place_and_on_one_line(rng):
    n = 100_000
    for weights in (None, rng.random(n)):
        place = 1e3 * rng.standard_normal(6)
        result = fl.registration.register_points(np.tile(place, (n, 1)), np.tile(2 * place, (n, 1)), weights=weights)
        assert result.status == Status.COINCIDENT
        # a one-pass mean is wrong by the rounding error of its sum, a hundred times as much
        np.testing.assert_allclose(result.translation, place, rtol=1e-15)
    for far in (0.0, 1e3):
        line = flat(rng, n, 6, 1) + far * rng.standard_normal(6)
        assert fl.registration.register_points(line, line @ rotation(rng, 6).T).rank == 1


def test_float32_rounding_does_not_count_as_extent(rng):
    line = (flat(rng, 20, 3, 1) + 100.0).astype(np.float32)
    turned = (line.astype(float) @ rotation(rng, 3).T).astype(np.float32)
    assert fl.registration.register_points(line, turned).status == Status.ROTATION_NOT_UNIQUE
    assert fl.registration.register_points(line.astype(float), turned.astype(float)).rank > 1
    assert fl.registration.register_points(line, turned).rotation.dtype == np.float64


# ---- degenerate sets -------------------------------------------------------------------------------------------------
def test_a_line_takes_the_smallest_rotation_to_its_image(rng):
    for m in (3, 4, 5):
        R, a = rotation(rng, m), flat(rng, 8, m, 1) + 1.0
        b = 2.5 * a @ R.T
        result = fl.registration.register_points(a, b)
        check_optimal(result, a, b, np.ones(8))
        assert result.residual < 1e-26 and result.scale == pytest.approx(2.5)
        # it rotates in one plane, by the angle between the lines
        along_a, along_b = a[0] - a[1], b[0] - b[1]
        cosine = along_a @ along_b / np.linalg.norm(along_a) / np.linalg.norm(along_b)
        assert np.trace(result.rotation) == pytest.approx(m - 2 + 2 * cosine)


def test_coincident_and_missing_points(rng):
    b = rng.standard_normal((8, 3))
    for n, weights, status in (
        (0, None, Status.NO_POINTS),
        (8, np.zeros(8), Status.NO_POINTS),
        (1, None, Status.COINCIDENT),
        (8, [0, 0, 3, 0, 0, 0, 0, 0], Status.COINCIDENT),
        (2, None, Status.ROTATION_NOT_UNIQUE),
    ):
        result = fl.registration.register_points(b[:n] + 1.0, b[:n], weights=weights)
        assert result.status is status and result.residual < 1e-26
        np.testing.assert_allclose(result.rotation, np.eye(3), atol=ROUNDING)  # LAPACK's, differs by processor
        assert result.scale == pytest.approx(1.0)
        np.testing.assert_allclose(result.translation, 0.0 if status == Status.NO_POINTS else -1.0, **CLOSE)
    for _ in range(10):  # one point up to rounding: the scale has no noise
        point = 1e6 * rng.standard_normal(3) * (1 + 2e-16 * rng.integers(-1, 2, (8, 3)))
        assert fl.registration.register_points(b, point).scale == 0
    assert (
        fl.registration.register_points(b[:2, :2], b[2:4, :2]).status == Status.UNIQUE
    )  # two points give a planar rotation


def test_one_dimension_has_no_mirror_image():
    a = np.array([[0.0], [1.0], [3.0]])
    R, t, c = fl.registration.register_points(a, 4 - a)
    assert R == [[1.0]] and c == 0 and t == pytest.approx(4 - 4 / 3)
    assert fl.registration.register_points(a, 4 - a).status == Status.UNIQUE
    assert fl.registration.register_points(a, 4 - a, scale=False).rotation == [[1.0]]
    assert fl.registration.register_points(a, 0 * a).status == Status.UNIQUE
    assert fl.registration.register_points(0 * a, a).status == Status.COINCIDENT
    assert fl.registration.register_points(0 * a, a, scale=False).status == Status.UNIQUE


def test_an_overflowing_solution_has_status_not_finite(rng):
    a = rng.standard_normal((5, 3))
    result = fl.registration.register_points(1e-200 * a, 1e200 * a)
    assert result.status is Status.NOT_FINITE and np.isnan(result.scale) and np.isnan(result.rotation).all()
    assert fl.registration.register_points(1e-200 * a, 1e200 * a, scale=False).status == Status.UNIQUE
    far = np.array([[1.7e308], [1.5e308]])
    assert fl.registration.register_points(far, far).status == Status.UNIQUE
    assert fl.registration.register_points(far, -far, scale=False).status is Status.NOT_FINITE  # t is twice as far


# ---- batches of sets -------------------------------------------------------------------------------------------------
def test_a_set_is_bitwise_equal_in_any_batch(rng):
    kinds = of_every_kind(rng).values()
    a, b, w = np.stack([kind[0] for kind in kinds]), np.stack([kind[1] for kind in kinds]), rng.random((len(kinds), 8))
    batch = fl.registration.register_points(a, b, weights=w)
    broken_a, broken_b = a.copy(), b.copy()
    broken_a[::3, 2, 1], broken_b[1::3, 4, 0] = np.nan, -np.inf
    broken = fl.registration.register_points(broken_a, broken_b, weights=w)
    for i in range(len(kinds)):
        alone = fl.registration.register_points(a[i], b[i], weights=w[i])
        for name in ANSWER:
            np.testing.assert_array_equal(getattr(batch, name)[i], getattr(alone, name), err_msg=name)
            if i % 3 == 2:
                np.testing.assert_array_equal(getattr(broken, name)[i], getattr(alone, name), err_msg=name)
    told = broken.status == Status.NOT_FINITE
    np.testing.assert_array_equal(told, np.arange(len(kinds)) % 3 != 2)
    assert (broken.rank[told] == 0).all()
    for name in ANSWER[:4]:
        assert np.isnan(getattr(broken, name)[told]).all() and np.isfinite(getattr(broken, name)[~told]).all()


def test_ragged_sets_equal_single_sets(rng):
    a, b, w = rng.standard_normal((12, 9, 3)), rng.standard_normal((12, 9, 3)), rng.random((12, 9))
    for i in range(12):
        a[i, i:], b[i, i:], w[i, i:] = np.nan, np.inf, 0.0
    batch = fl.registration.register_points(a, b, weights=w)
    for i in range(12):
        alone = fl.registration.register_points(a[i, :i], b[i, :i], weights=w[i, :i])
        for name in ANSWER:
            np.testing.assert_allclose(getattr(batch, name)[i], getattr(alone, name), err_msg=name, **CLOSE)


def test_leading_axes_broadcast(rng):
    a, b, w = rng.standard_normal((6, 3)), rng.standard_normal((4, 1, 6, 3)), rng.random((5, 6))
    result = fl.registration.register_points(a, b, weights=w)
    shapes = {"rotation": (3, 3), "translation": (3,), "scale": (), "residual": (), "rank": (), "status": ()}
    assert {name: getattr(result, name).shape for name in ANSWER} == {k: (4, 5, *s) for k, s in shapes.items()}
    alone = fl.registration.register_points(a, b[2, 0], weights=w[3])
    np.testing.assert_allclose(result.rotation[2, 3], alone.rotation, **CLOSE)
    np.testing.assert_allclose(result.residual[2, 3], alone.residual, **CLOSE)
    empty = fl.registration.register_points(np.zeros((0, 6, 3)), np.zeros((6, 3)))
    assert empty.rotation.shape == (0, 3, 3) and empty.status.shape == (0,)


def test_arguments_are_not_modified(rng):
    a, b, w = rng.standard_normal((6, 3)), rng.standard_normal((6, 3)), rng.random(6)
    a[0], w[0] = np.nan, 0.0
    copies = a.copy(), b.copy(), w.copy()
    fl.registration.register_points(a, b, weights=w)
    for given_array, copy in zip((a, b, w), copies, strict=True):
        np.testing.assert_array_equal(given_array, copy)


@pytest.mark.parametrize(
    "a, b, weights, message",
    [
        (np.zeros(3), np.zeros(3), None, "^a:"),
        (np.zeros((4, 0)), np.zeros((4, 0)), None, "^a:"),
        (np.zeros((4, 3)), 1.0, None, "^b:"),
        (np.zeros((4, 3)), np.zeros((5, 3)), None, r"b: got shape \(5, 3\), allowed is \(\.\.\., 4, 3\)"),
        (np.zeros((4, 3)), np.zeros((4, 2)), None, "^b:"),
        (np.zeros((2, 4, 3)), np.zeros((3, 4, 3)), None, "^a, b, weights:"),
        (np.zeros((4, 3)), np.zeros((4, 3)), np.ones(3), "^weights:"),
        (np.zeros((2, 4, 3)), np.zeros((4, 3)), np.ones((3, 4)), "^a, b, weights:"),
        (np.zeros((2, 3)), np.zeros((2, 3)), [1, -2], "^weights:"),
        (np.zeros((2, 3)), np.zeros((2, 3)), [np.nan, 1], "^weights:"),
        (np.zeros((2, 3)), np.zeros((2, 3)), [1, np.inf], "^weights:"),
        (np.zeros((2, 3), complex), np.zeros((2, 3)), None, "^a:"),
        (np.zeros((2, 3)), [["x", "y", "z"]] * 2, None, "^b:"),
        (np.zeros((2, 3)), [[1, 2, 3], [4, 5]], None, "^b:"),
    ],
)
def test_invalid_arguments_are_refused(a, b, weights, message):
    with pytest.raises(ValueError, match=message):
        fl.registration.register_points(a, b, weights=weights)


def test_a_status_prints_its_name_and_is_an_int():
    points = np.eye(3)
    status = fl.registration.register_points(points, points).status
    assert str(status) == f"{status}" == "UNIQUE" and f"{status:>8}" == "  UNIQUE"
    assert status == 0 and f"{status:d}" == "0" and isinstance(status, int)
    assert str(fl.lcp.Status.SOLVED) == "SOLVED" and str(fl.results.IkStatus.STATIONARY) == "STATIONARY"
    assert str(fl.results.IntegrationStatus.EVENT) == "EVENT"
