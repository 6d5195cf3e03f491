"""Terrain: one height field of square tiles; each world uses one tile.

All worlds of a batch share the heights of the field; robots stand at different places in it.  A tile's heights are
periodic in its side length, and a rim of the periodic continuation surrounds it.  A robot that leaves its tile is
moved back by one side length and finds the same ground there, so the ground of a world is unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import bounded, instance, one_of, whole_argument
from featherlane.engine.model.assignment import as_real_array
from featherlane.errors import ModelError

BASE = 0.2  # thickness of the ground under the lowest point [m]
STEP, RUN, STONE, GAP, PLATFORM = 0.5, 0.5, 1.0, 0.4, 1.0  # lengths in the plane [m], see the functions below
LEAST_HEIGHT = 1e-3  # of a height field, which MuJoCo requires to be positive [m]
Kind = Callable[[int, float, float, np.random.Generator], np.ndarray]


# ---- kinds: heights from 0 to 1 of n x n samples with period n, cell metres apart -----------------------------------
def _flat(n: int, cell: float, difficulty: float, random: np.random.Generator) -> np.ndarray:
    return np.zeros((n, n))


def _rough(n: int, cell: float, difficulty: float, random: np.random.Generator) -> np.ndarray:
    """Returns random heights, averaged over neighbours."""
    z = random.uniform(size=(n, n))
    z = (z + np.roll(z, 1, 0) + np.roll(z, 1, 1) + np.roll(z, (1, 1), (0, 1))) / 4
    return (z - z.min()) / (z.max() - z.min())


def _waves(n: int, cell: float, difficulty: float, random: np.random.Generator) -> np.ndarray:
    """Returns two waves along each axis."""
    place = 2.0 * np.pi * np.arange(n) / n
    return 0.5 + 0.25 * (np.sin(2 * place)[:, None] + np.sin(2 * place)[None])


def _steps(n: int, cell: float, difficulty: float, random: np.random.Generator) -> np.ndarray:
    """Returns squares of side STEP with random heights."""
    m = max(1, round(n * cell / STEP))
    at = np.arange(n) * m // n
    return random.uniform(size=(m, m))[np.ix_(at, at)]


def _slopes(n: int, cell: float, difficulty: float, random: np.random.Generator) -> np.ndarray:
    """Returns a pyramid with a square platform of side 2 PLATFORM."""
    top = max(1, n // 2 - round(PLATFORM / cell))
    return np.minimum(_rings(n), top) / top


def _stairs(n: int, cell: float, difficulty: float, random: np.random.Generator) -> np.ndarray:
    """Returns a pyramid of stairs of length RUN, with a square platform of side 2 PLATFORM."""
    run = max(1, round(RUN / cell))
    last = max(1, (n // 2 - round(PLATFORM / cell)) // run)
    return np.minimum(_rings(n) // run, last) / last


def _stones(n: int, cell: float, difficulty: float, random: np.random.Generator) -> np.ndarray:
    """Returns level stones STONE apart, with gaps between them that are GAP * difficulty wide at the bottom."""
    m = max(1, round(n * cell / STONE))
    within = np.arange(n) - -(-(np.arange(n) * m // n) * n // m)  # samples from the beginning of a stone's square
    stone = within >= max(1, round(GAP * difficulty / cell))
    return np.where(stone[:, None] & stone[None], 1.0, 0.0)


def _rings(n: int) -> np.ndarray:
    """Returns the number of samples from the border of the tile, (n, n)."""
    distance = np.minimum(np.arange(n), n - np.arange(n))
    return np.minimum(distance[:, None], distance[None])


KINDS: Mapping[str, Kind] = {
    "flat": _flat, "rough": _rough, "waves": _waves, "steps": _steps, "slopes": _slopes, "stairs": _stairs,
    "stones": _stones,
}  # fmt: skip
FULL = ("stones",)  # kinds with the full height in all levels


class Terrain:
    """A height field with a grid of tiles: kinds of ground along x, levels of difficulty along y.

    A tile of level k has (k + 1) / levels of the height of its kind.  The stepping stones ("stones") have the full
    height in all levels; their gaps grow with the level.

    Args:
        kinds: kinds of ground: names of `KINDS`, or functions (n, cell, difficulty, random) that return heights from 0
            to 1 of n x n samples, `cell` metres apart, which should be periodic; `difficulty` is (level + 1) / levels.
        height: from the lowest to the highest point of the highest level [m], or such heights by kind.
        seed: seed of the heights.
        levels: number of levels.
        side: side of a tile [m].
        rim: width of the periodic continuation around a tile [m].
        cell: spacing of the samples [m].

    Attributes:
        kinds: names of the kinds.
        levels, side, cell: as above; the side is a multiple of the cell.
        height: the greatest height [m].
        samples: heights [m], row by row along y.
        half: half lengths of the field along x and y, (2,) [m].
        centres: centres of the tiles, (number of kinds * levels, 2) [m].

    Raises:
        ModelError: no or unknown kinds, numbers out of range, or a function that returns other heights.

    Source: Rudin, Hoeller, Reist, Hutter, Learning to walk in minutes using massively parallel deep reinforcement
        learning, 2021 (a grid of kinds and levels); the periodic tiles are Featherlane's.
    """

    def __init__(
        self,
        kinds: Sequence[str | Kind],
        height: float | Mapping[str, float] = 0.1,
        seed: int = 0,
        *,
        levels: int = 4,
        side: float = 8.0,
        rim: float = 1.5,
        cell: float = 0.1,
    ):
        functions = _functions(kinds)
        self.kinds, self.levels = tuple(functions), whole_argument("levels", levels, 1)
        cell = bounded("cell", cell, 0.0, 10.0, above=True)
        n, border = round(bounded("side", side, 4 * cell) / cell), round(bounded("rim", rim, 0.0) / cell)
        self.side, self.cell = n * cell, cell
        heights, random = _heights(height, self.kinds), np.random.default_rng(whole_argument("seed", seed, 0))
        self.height, rows = max(heights.values()), []
        for level in range(self.levels):
            tiles = []
            for name, function in functions.items():
                scale = heights[name] if name in FULL else heights[name] * (level + 1) / self.levels
                unit = _checked(name, function(n, cell, (level + 1) / self.levels, random), n)
                tiles.append(np.pad(scale * unit, border, mode="wrap"))
            rows.append(np.concatenate(tiles, axis=1))
        self.samples: np.ndarray = np.concatenate(rows, axis=0)
        self.half: np.ndarray = cell * (np.array(self.samples.shape[::-1]) - 1) / 2
        column, row = np.meshgrid(np.arange(len(self.kinds)), np.arange(self.levels), indexing="ij")
        pitch = n + 2 * border  # samples of a tile with its rims
        corner = np.stack([column.ravel(), row.ravel()], axis=1) * pitch + pitch / 2
        self.centres: np.ndarray = corner * cell - self.half

    def add_to(self, spec: Any, geom: str = "floor") -> None:
        """Makes this terrain the shape of a geom of a `mujoco.MjSpec`, before the model is loaded.

        Args:
            spec: the specification.
            geom: name of the geom, usually a plane, whose position is that of the field's centre.

        Raises:
            ModelError: the specification has no such geom, or has a height field "terrain".
        """
        import mujoco

        ground = next((each for each in spec.geoms if each.name == geom), None)
        if ground is None:
            names = ", ".join(repr(each.name) for each in spec.geoms if each.name) or "none, because all are unnamed"
            raise ModelError(f"geom: got {geom!r}, allowed are the geoms of the specification: {names}")
        if any(field.name == "terrain" for field in spec.hfields):
            raise ModelError("spec: got a specification with the height field 'terrain', allowed is one without")
        (rows, columns), most = self.samples.shape, max(self.height, LEAST_HEIGHT)
        unit = self.samples / most
        spec.add_hfield(
            name="terrain", nrow=rows, ncol=columns, size=[*self.half, most, BASE], userdata=unit.ravel().tolist()
        )
        ground.type, ground.hfieldname = mujoco.mjtGeom.mjGEOM_HFIELD, "terrain"

    def tile(self, kind: ArrayLike, level: ArrayLike) -> np.ndarray:
        """Returns the number of the tile of a kind and a level, the row in `centres`; arrays of numbers also work.

        Args:
            kind: name, or number of the kind, from 0.
            level: level, from 0.

        Raises:
            ModelError: unknown kinds or levels.
        """
        if isinstance(kind, str):
            kind = self.kinds.index(one_of("kind", kind, self.kinds))
        kind, level = np.asarray(kind), np.asarray(level)
        for name, values, count in (("kind", kind, len(self.kinds)), ("level", level, self.levels)):
            if values.dtype.kind not in "iu" or (values < 0).any() or (values >= count).any():
                raise ModelError(f"{name}: got {values}, allowed are whole numbers from 0 to {count - 1}")
        return kind * self.levels + level

    def height_at(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Returns ground heights [m] at positions of any shape [m], relative to the centre of the field.

        These are the heights of the triangles that bodies and rays touch: a diagonal divides each cell of the height
        field, from its sample with the least x and y to the opposite one.  Outside of the field, they are those of the
        nearest point of its border.  The height at NaN is NaN.

        Raises:
            ModelError: no numbers, or shapes that do not broadcast.
        """
        x, y = (as_real_array(name, at, "are positions [m]") for name, at in (("x", x), ("y", y)))
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            raise ModelError(
                f"x, y: got the shapes {x.shape} and {y.shape}, allowed are shapes that broadcast"
            ) from None
        rows, columns = self.samples.shape
        u = np.clip((x + self.half[0]) / self.cell, 0.0, columns - 1.0)
        v = np.clip((y + self.half[1]) / self.cell, 0.0, rows - 1.0)
        i, j = np.fmin(u, columns - 2.0).astype(int), np.fmin(v, rows - 2.0).astype(int)  # a cell also for NaN
        u, v, z, at = u - i, v - j, self.samples.ravel(), j * columns + i
        first, last = z.take(at), z.take(at + columns + 1)  # the ends of the diagonal
        corner = z.take(np.where(u >= v, at + 1, at + columns))
        return first + np.maximum(u, v) * (corner - first) + np.minimum(u, v) * (last - corner)

    def put_back(self, at: np.ndarray, tile: np.ndarray) -> None:
        """Moves positions that have left their tiles by one side length in place, to the same ground.

        Args:
            at: (n, 2) [m], a writable array of real numbers.
            tile: (n,) numbers of the tiles.

        Raises:
            ModelError: another array, or an unknown tile.
        """
        fits = isinstance(at, np.ndarray) and at.ndim == 2 and at.shape[1] == 2 and at.dtype.kind == "f"
        if not fits or not at.flags.writeable:
            given = f"{at.dtype} {at.shape}" if isinstance(at, np.ndarray) else type(at).__name__
            raise ModelError(f"at: got {given}, allowed is a writable array of reals (n, 2)")
        tile, most = np.asarray(tile), len(self.centres) - 1
        if tile.dtype.kind not in "iu" or tile.shape != at.shape[:1] or (tile < 0).any() or (tile > most).any():
            raise ModelError(f"tile: got {tile}, allowed are {len(at)} whole numbers from 0 to {most}")
        offset = at - self.centres[tile]
        at -= self.side * np.round(offset / self.side)


def _functions(kinds: Any) -> dict[str, Kind]:
    """Returns the functions of kinds by name.

    Raises:
        ModelError: no kinds, unknown ones, or two of one name.
    """
    instance("kinds", kinds, Sequence, "a list of kinds of ground")
    given = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    found: list[tuple[str, Any]] = [
        (getattr(k, "__name__", repr(k)), k) if callable(k) else (k, KINDS[one_of("kinds", k, KINDS)]) for k in given
    ]
    names = [name for name, _ in found]
    if not names or len(set(names)) < len(names):
        raise ModelError(f"kinds: got {names}, allowed are different kinds of {', '.join(KINDS)}, at least one")
    return dict(found)


def _heights(height: Any, kinds: tuple[str, ...]) -> dict[str, float]:
    """Returns the height of each kind [m].

    Raises:
        ModelError: a kind without height, an unknown kind, or a height out of range.
    """
    if not isinstance(height, Mapping):
        return dict.fromkeys(kinds, bounded("height", height, 0.0))
    if set(height) != set(kinds):
        raise ModelError(
            f"height: got heights of {', '.join(map(str, height))}, allowed are those of {', '.join(kinds)}"
        )
    return {kind: bounded(f"height[{kind!r}]", height[kind], 0.0) for kind in kinds}


def _checked(name: str, unit: Any, n: int) -> np.ndarray:
    """Returns the heights of a tile.

    Raises:
        ModelError: another shape, or heights beyond 0 to 1.
    """
    unit = np.asarray(unit)
    if unit.shape != (n, n) or unit.dtype.kind not in "fiu" or not ((unit >= 0) & (unit <= 1)).all():
        raise ModelError(f"kinds: {name}: got {unit.dtype} {unit.shape}, allowed are numbers from 0 to 1, ({n}, {n})")
    return unit
