"""Assignment of worlds to tiles: a permutation, grouped by contact; it does not change results."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch.order import LASTS, TileOrder
from featherlane.engine.simulation.tile.arrange import BLOCK, POOL
from featherlane.engine.simulation.tile.capacity import EFFORT_BITS, EFFORTS, SIGNATURE_BITS
from featherlane.engine.simulation.tile.team import Team

WORDS, WIDTH = 8, 8
LINE = 64  # bytes
PAIRS = SIGNATURE_BITS * WORDS


def signatures(touches):
    """Returns (worlds, WORDS) in the layout of `sign_contacts`, from (worlds, PAIRS) bools."""
    weights = 1 << np.arange(SIGNATURE_BITS)[::-1]
    return (touches.reshape(len(touches), WORDS, SIGNATURE_BITS) * weights).sum(axis=2).astype(float)


def union(touches, order):
    """Returns the number of touching pairs per tile, averaged over all tiles."""
    return np.mean([touches[order[k : k + WIDTH]].any(axis=0).sum() for k in range(0, len(order), WIDTH)])


def order_of(touches, worlds=None, threads=1):
    worlds = np.arange(len(touches)) if worlds is None else worlds
    return TileOrder(len(touches), WORDS, WIDTH, Team(threads)).of(worlds, signatures(touches), 1)


@pytest.mark.parametrize("mode", ["jit", "python", "checked"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_each_world_has_one_place(share, mode, rng, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_MODE", mode)
    touches = rng.random((75, PAIRS)) < share
    assert np.array_equal(np.sort(order_of(touches)), np.arange(75))
    some = np.sort(rng.choice(75, 41, replace=False))
    assert np.array_equal(np.sort(order_of(touches, some)), some)


def test_worlds_of_one_pattern_share_tiles(rng):
    patterns = rng.random((20, PAIRS)) < 0.02
    kind = rng.permutation(np.repeat(np.arange(20), WIDTH))
    of_tile = kind[order_of(patterns[kind])].reshape(-1, WIDTH)
    assert (of_tile == of_tile[:, :1]).all()


def test_unions_are_smaller_than_by_sorting(rng):
    """Worlds touch with three of 36 pairs on average, as a hand does with an object."""
    touches = np.zeros((256, PAIRS), bool)
    touches[:, :36] = rng.random((256, 36)) < 1 / 12
    by_sorting, by_filling = union(touches, np.lexsort(signatures(touches).T[::-1])), union(touches, order_of(touches))
    assert by_filling < 0.9 * by_sorting < 0.9 * union(touches, np.arange(256))


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_tiles_are_filled_as_described(share, rng):
    """Sorts by the rarest pairs, then by the smallest growth of the union, then by the smallest missing part."""
    touches = rng.random((150, PAIRS)) < share * rng.random(PAIRS)
    count = touches.sum(axis=0)
    rare_first = sorted(np.flatnonzero(count), key=lambda pair: (count[pair], pair))
    left = sorted(range(150), key=lambda world: (tuple(touches[world, rare_first]), world))
    expected = []
    while left:
        if len(expected) % WIDTH == 0:
            union_of_tile, best = np.zeros(PAIRS, bool), left[0]
        else:
            best = min(
                left[:POOL],
                key=lambda w: ((touches[w] & ~union_of_tile).sum(), (union_of_tile & ~touches[w]).sum(), left.index(w)),
            )
        left.remove(best)
        expected.append(best)
        union_of_tile = union_of_tile | touches[best]
    assert np.array_equal(order_of(touches), expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_are_ordered_alone_by_any_thread(threads, rng):
    n = 4 * BLOCK + 77
    touches = rng.random((n, PAIRS)) < 0.05 * rng.random(PAIRS)
    blocks = [first + order_of(touches[first : first + BLOCK]) for first in range(0, n, BLOCK)]
    assert np.array_equal(order_of(touches, threads=threads), np.concatenate(blocks))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_write_to_no_common_cache_line(dtype):
    """Rows begin on a cache line, and a block of worlds has a whole number of lines of each field."""
    batch = fl.Batch(fl.bundled("quadruped"), 2 * BLOCK, dtype=dtype)
    batch.step()
    for name, rows in batch.runner.arrays.rows.items():
        assert rows.ctypes.data % LINE == 0 or not rows.size, name
        assert rows[:BLOCK].nbytes % LINE == 0, name


def test_an_order_serves_some_steps_of_the_same_worlds(rng):
    first, later = (signatures(rng.random((64, PAIRS)) < 0.05) for _ in range(2))
    worlds, order = np.arange(64), TileOrder(64, WORDS, WIDTH, Team(1))
    kept = order.of(worlds, first, 1)
    for _ in range(LASTS - 1):
        assert np.array_equal(order.of(worlds, later, 1), kept)
    assert not np.array_equal(order.of(worlds, later, 1), kept)


def test_a_few_worlds_in_between_leave_the_others_their_order(rng):
    first, later = (signatures(rng.random((64, PAIRS)) < 0.05) for _ in range(2))
    worlds, order = np.arange(64), TileOrder(64, WORDS, WIDTH, Team(1))
    kept = order.of(worlds, first, 1)
    assert np.array_equal(np.sort(order.of(worlds[:40], later, 1)), worlds[:40])
    assert np.array_equal(order.of(worlds, later, 1), kept)
    for _ in range(LASTS):
        few = order.of(worlds[:40], first, 1)
    assert np.array_equal(order.of(worlds[:40], later, 1), few)


def test_slow_worlds_have_bits_in_the_last_word_and_share_tiles():
    model = fl.load(
        "<mujoco><option cone='elliptic'/><worldbody><geom type='plane' size='9 9 1'/><body pos='0 0 .2'><freejoint/>"
        "<geom type='box' size='.1 .2 .1'/></body></worldbody></mujoco>"
    )
    batch = fl.Batch(model, 64, nthread=1)
    batch.qpos[::2, 2] = 0.099
    batch.qvel[::4] = np.random.default_rng(0).normal(size=(16, 6))
    batch.bind("solver_niter")
    batch.step()
    niter, signature = batch.solver_niter.ravel(), batch.runner.arrays.rows["signature"]
    full = (1 << EFFORT_BITS) - 1
    bits = [sum(full << EFFORT_BITS * level for level, least in enumerate(EFFORTS) if n > least) for n in niter]
    assert np.array_equal(signature[:, -1], bits) and len(set(bits)) > 1
    order = TileOrder(64, signature.shape[1], WIDTH, Team(1)).of(np.arange(64), signature, 1)
    worst = lambda worlds: niter[worlds].reshape(-1, WIDTH).max(axis=1).mean()  # noqa: E731
    assert worst(order) < worst(np.arange(64))


def test_results_do_not_depend_on_the_order(rng):
    """One long call computes the order once, many short ones a few times; half batches have other worlds per tile."""
    model = fl.bundled("humanoid")
    speeds = rng.standard_normal((40, model.nv))

    def run(*calls):
        batch = fl.Batch(model, 40)
        batch.qvel[:] = speeds
        for nstep, ids in calls:
            batch.step(nstep, ids=ids)
        return batch.qpos.tobytes(), batch.qvel.tobytes()

    whole = run((60, None))
    assert run(*[(1, None)] * 60) == whole
    assert run(*[(7, None)] * 8, (4, None)) == whole
    assert run(*[(20, range(0, 40, 2)), (20, range(1, 40, 2))] * 3) == whole
