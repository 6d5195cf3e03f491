"""Worlds keep data of their pairs between steps; it saves searches and changes no bit of the results."""

import copy
import pickle

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.collision import collision
from featherlane.engine.collision.convex.facet import (
    CROSSING,
    EDGE_FACE,
    FACE_EDGE,
    FACE_FIRST,
    FACE_SECOND,
    FACES,
    FIRST,
    SECOND,
)
from featherlane.engine.collision.convex.pair import convex
from featherlane.engine.collision.convex.result_cache import (
    BY_DIRECTION,
    BY_GROWTH,
    BY_PROOF,
    BY_SEARCH,
    ENTRY,
    HEADER,
    MOST_ENTRIES,
    MOST_PROOFS,
    memory_of_world,
    proofs,
    recall_entries,
)
from featherlane.engine.lanes.record import address, aligned
from featherlane.engine.model.enums import BOX, CAPSULE, MESH, SPHERE
from featherlane.engine.simulation.step.forward import forward_position
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.naive import rotation
from oracles.penetration import Solid, polytope_distance
from robots.wheels import model_path

FOUND = ("manifold.count", "manifold.dist", "manifold.pos", "manifold.normal")
STONE, PRISM, ROCK = range(3)  # the meshes below


def random_rotation(rng, angle=None):
    """Returns rotations by any angle, or by a given one, about any axis."""
    axis = rng.normal(size=3)
    return rotation(axis / np.linalg.norm(axis), rng.uniform(0, 2 * np.pi) if angle is None else angle)


def hull_text(points):
    return " ".join(f"{x:.6f}" for x in np.ravel(points))


def meshes(rng):
    """Returns a rough stone, a prism with flat faces of many corners, and a box that is a mesh."""
    stone = rng.normal(size=(40, 3))
    stone = 0.1 * stone / np.linalg.norm(stone, axis=1, keepdims=True) * rng.uniform(0.7, 1.0, (40, 1))
    angle = 2 * np.pi * np.arange(12) / 12
    ring = np.stack([0.08 * np.cos(angle), 0.08 * np.sin(angle)], axis=1)
    prism = np.concatenate([np.c_[ring, np.full(12, z)] for z in (-0.05, 0.05)])
    rock = 0.06 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    return stone, prism, rock


@pytest.fixture(scope="module")
def model():
    assets = "".join(
        f'<mesh name="m{k}" vertex="{hull_text(points)}"/>' for k, points in enumerate(meshes(np.random.default_rng(3)))
    )
    bodies = "".join(f'<body><freejoint/><geom type="mesh" mesh="m{k}"/></body>' for k in range(3))
    return fl.load(f"<mujoco><asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>")


class Pair:
    """Returns two shapes in one world, with or without memory."""

    def __init__(self, model, shapes):
        self.workspace = Workspace(model, 1)
        self.run, arrays = self.workspace.bound(convex), self.workspace.arrays
        self.memory = aligned((self.workspace.sizes["nmemory"],))
        for side, (kind, data, size) in enumerate(shapes):
            arrays["shapes.type"][side], arrays["shapes.data"][side] = kind, data
            arrays["shapes.size"][3 * side : 3 * side + 3] = size
        arrays["recall.key"][0] = 1

    def place(self, pos, mat):
        """Sets the pose of the second shape in the frame of the first, which stays at the origin."""
        arrays = self.workspace.arrays
        arrays["shapes.pos"][:3], arrays["shapes.mat"][:9] = 0.0, np.eye(3).ravel()
        arrays["shapes.pos"][3:], arrays["shapes.mat"][9:] = pos, mat.ravel()

    def found(self, remember: bool):
        """Returns the pair function's output as bytes."""
        arrays, base = self.workspace.arrays, address(self.memory)
        arrays["recall.pair"][:] = (base + 8 * HEADER, base) if remember else (0, 0)
        self.run()
        n = int(arrays["manifold.count"][0])
        return n, [arrays[name][: n * (3 if name.endswith(("pos", "normal")) else 1)].tobytes() for name in FOUND]


def walk(pair, pos, mat, drift, turn, nstep):
    """Returns the steps of a walk with contact; results are bitwise identical with and without memory."""
    touching = 0
    for _ in range(nstep):
        pair.place(pos, mat)
        found = pair.found(True)
        assert found == pair.found(False)
        touching += found[0] > 0
        pos, mat = pos + drift, turn @ mat
    return touching


def shape(kind, data=-1, size=(0.0, 0.0, 0.0)):
    return kind, data, size


SHAPES = {
    "stone": shape(MESH, STONE),
    "prism": shape(MESH, PRISM),
    "rock": shape(MESH, ROCK),
    "box": shape(BOX, -1, (0.05, 0.07, 0.09)),
    "plank": shape(BOX, -1, (0.2, 0.03, 0.02)),
    "capsule": shape(CAPSULE, -1, (0.03, 0.06, 0.0)),
    "sphere": shape(SPHERE, -1, (0.05, 0.0, 0.0)),
}
PAIRS = [
    ("stone", "stone"),
    ("stone", "prism"),
    ("prism", "prism"),
    ("rock", "rock"),
    ("box", "rock"),
    ("box", "stone"),
    ("plank", "prism"),
]
PAIRS += [("capsule", "stone"), ("capsule", "prism"), ("sphere", "rock"), ("sphere", "prism"), ("capsule", "capsule")]


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
@pytest.mark.parametrize("limit", [0.0, 0.02])
def test_a_moving_pair_has_bitwise_equal_results_with_and_without_cache(model, names, limit, rng):
    pair = Pair(model, [SHAPES[name] for name in names])
    pair.workspace.arrays["shapes.limit"][0] = limit
    touching = 0
    for _ in range(60):
        pos, mat = rng.normal(scale=0.08, size=3), random_rotation(rng)
        # collinear faces in one walk of three: rounding decides there
        if rng.integers(3) == 0:
            mat = np.eye(3)[rng.permutation(3)] if rng.integers(2) else np.eye(3)
        steps = rng.choice([0.0, 1e-9, 3e-7, 1e-4, 2e-3], size=2)
        turn = random_rotation(rng, steps[0])
        drift = steps[1] * rng.normal(size=3)
        touching += walk(pair, pos, mat, drift, turn, 25)
    counts = pair.memory[:HEADER]
    assert touching > 100
    assert counts[BY_DIRECTION] + counts[BY_PROOF] > 0.3 * counts[: BY_SEARCH + 1].sum()


@pytest.mark.parametrize(
    ("names", "pos", "turn", "kind"),
    [
        (("rock", "rock"), (0.03, 0.02, 0.11), (0, 0), FACES),
        (("box", "rock"), (0.01, 0.02, 0.145), (0, 0), FACES),
        (("plank", "plank"), (0.01, 0.02, 0.035), (2, np.pi / 2), FACES),  # no corner is above the other one
        (("sphere", "rock"), (0.01, 0.02, 0.105), (0, 0), FACE_SECOND),
        (("rock", "sphere"), (0.0, 0.0, 0.09), (0, 0), FACE_FIRST),
        (("rock", "box"), (0.01, 0.02, 0.15), (0, 0.7), FACE_EDGE),
        (("plank", "box"), (0.01, 0.02, 0.11), (1, 0.8), FACE_EDGE),  # no end of the edge is above the face
        (("box", "rock"), (0.085, 0.02, 0.132), (1, 0.7), EDGE_FACE),
    ],
)
def test_a_cached_facet_is_verified(model, names, pos, turn, kind):
    pair, mat = Pair(model, [SHAPES[name] for name in names]), rotation(np.eye(3)[turn[0]], turn[1])
    for _ in range(3):
        pair.place(np.array(pos), mat)
        assert pair.found(True)[0] > 0
    assert pair.workspace.arrays["facet.kind"][0] == kind
    assert pair.memory[BY_SEARCH] == 1
    assert pair.memory[BY_PROOF] == 2


def test_random_walks_cover_every_kind_of_facet(model, rng):
    kinds = set()
    for names in (("stone", "stone"), ("stone", "rock"), ("rock", "stone"), ("rock", "rock")):
        pair = Pair(model, [SHAPES[name] for name in names])
        for _ in range(200):
            pair.place(rng.normal(scale=0.06, size=3), random_rotation(rng) if rng.integers(4) else np.eye(3))
            for _ in range(2):
                before = pair.memory[BY_PROOF]
                pair.found(True)
                if pair.memory[BY_PROOF] > before:
                    kinds.add(int(pair.workspace.arrays["facet.kind"][0]))
    assert kinds == {FIRST, SECOND, CROSSING, FACE_FIRST, FACE_SECOND, FACES}


def test_a_stale_or_empty_cache_does_not_change_results(model, rng):
    pair = Pair(model, [SHAPES["stone"], SHAPES["prism"]])
    for _ in range(300):
        pair.place(rng.normal(scale=0.07, size=3), random_rotation(rng))
        assert pair.found(True) == pair.found(False)


@pytest.mark.parametrize("side", [0, 1])
def test_changed_shapes_are_recomputed(model, side, rng):
    pair, hits = Pair(model, [SHAPES["rock"], SHAPES["stone"]]), 0
    arrays = pair.workspace.arrays
    for _ in range(400):
        kind, data, size = SHAPES[rng.choice(["stone", "prism", "rock", "box", "plank"])]
        arrays["shapes.type"][side], arrays["shapes.data"][side] = kind, data
        arrays["shapes.size"][3 * side : 3 * side + 3] = rng.uniform(0.5, 2.0) * np.array(size)
        turn = np.eye(3) if rng.integers(2) else random_rotation(rng, 0.01)
        pair.place(rng.uniform(0.10, 0.22) * np.array([1.0, 0.1, 0.2]), turn)
        found = pair.found(True)
        assert found == pair.found(False)
        hits += found[0] > 0
    assert 50 < hits < 350
    assert pair.memory[BY_DIRECTION] > 20


def round_hull(n):
    """Returns n points on an ellipsoid, spread evenly."""
    z, turn = np.linspace(-1 + 1 / n, 1 - 1 / n, n), np.pi * (1 + 5**0.5) * np.arange(n)
    r = np.sqrt(1 - z * z)
    return np.stack([0.10 * r * np.cos(turn), 0.08 * r * np.sin(turn), 0.06 * z], axis=1)


@pytest.fixture(scope="module")
def eggs():
    """Returns two hulls with many nearly equally deep facets: polytopes outgrow their records."""
    assets = "".join(f'<mesh name="m{n}" vertex="{hull_text(round_hull(n))}"/>' for n in (60, 300))
    bodies = "".join(f'<body><freejoint/><geom type="mesh" mesh="m{n}"/></body>' for n in (60, 300))
    return fl.load(f"<mujoco><asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>")


@pytest.mark.parametrize(("one", "other"), [(0, 0), (0, 1), (1, 1)])
def test_a_continued_search_has_bitwise_equal_results(eggs, one, other, rng):
    pair = Pair(eggs, [shape(MESH, one), shape(MESH, other)])
    touching = 0
    for k in range(30):
        pos, mat = rng.normal(size=3), random_rotation(rng)
        pos *= (0.04 if k % 2 else 0.08) / np.linalg.norm(pos)
        touching += walk(pair, pos, mat, 1e-3 * rng.normal(size=3), random_rotation(rng, 0.02), 30)
    assert touching == 900
    assert pair.memory[BY_GROWTH] > 60


@pytest.mark.parametrize("names", [("box", "rock"), ("plank", "prism")], ids="-".join)
def test_a_search_continued_in_an_unrelated_pose_has_bitwise_equal_results(model, names):
    """The cached polytope may be folded there, so that faces cannot grow."""
    for seed in (0, 1):
        pair, rng = Pair(model, [SHAPES[name] for name in names]), np.random.default_rng(seed)
        for _ in range(2500):
            pair.place(rng.normal(scale=0.05, size=3), random_rotation(rng))
            assert pair.found(True) == pair.found(False)
        assert pair.memory[BY_GROWTH] > 60


def test_a_continued_search_keeps_its_polytope(eggs, rng):
    pair, growths = Pair(eggs, [shape(MESH, 0), shape(MESH, 1)]), 0
    pos, mat = np.array([0.1, 0.05, 0.03]), random_rotation(rng)
    turn = random_rotation(rng, 0.01)
    for _ in range(300):
        before = pair.memory[BY_GROWTH]
        pair.place(pos, mat)
        pair.found(True)
        if pair.memory[BY_GROWTH] > before:
            growths, proofs = growths + 1, pair.memory[BY_PROOF]
            assert pair.found(True)[0] > 0
            assert pair.memory[BY_PROOF] == proofs + 1
        mat = turn @ mat
    assert growths > 20


TIP, CHIP = 0, 2  # corners of the face of `chipped`


def chipped():
    """Returns a model with a face of four corners: a triangle, and a corner beyond its base that is 40 um too low."""
    top = np.array([[0, 0, 0], [0.1, -0.01, 0], [0.104, 0, 0], [0.1, 0.01, 0]])
    points = np.concatenate([top, [[0.05, 0, -0.5], [0.06, 0.002, -0.5], [0.06, -0.002, -0.5]]])
    body = '<body><freejoint/><geom type="mesh" mesh="m"/></body>'
    asset = f'<asset><mesh name="m" vertex="{hull_text(points)}"/></asset>'
    whole = fl.load(f"<mujoco>{asset}<worldbody>{body}{body}</worldbody></mujoco>")
    corners, normal = face_of_four(whole)
    mj = whole.to_mujoco()
    chip = np.linalg.norm(mj.mesh_vert - corners[CHIP], axis=1).argmin()
    mj.mesh_vert[chip] -= (4e-5 * normal).astype(np.float32)
    return fl.load(mj)


def face_of_four(model):
    """Returns (corners, normal) of the first face of four corners; the first corner is the farthest from the others."""
    f = int(np.flatnonzero(model.hull_outlinenum == 4)[0])
    ring = model.hull_outline[model.hull_outlineadr[f] :][:4]
    corners = np.array(model.hull_vert)[ring]
    far = np.linalg.norm(corners[:, None] - corners[None], axis=2).sum(axis=1).argmax()
    return np.roll(corners, -far, axis=0), np.array(model.hull_planenormal[f])


def test_a_triangle_of_a_face_is_no_proof(rng):
    """Near the border of a face its triangle is the facet; farther inside, the face is."""
    model = chipped()
    (tip, a, _, b), normal = face_of_four(model)
    n = np.cross(a - tip, b - tip)
    n = n / np.linalg.norm(n) * np.sign(n @ normal)
    along = (a - tip) / np.linalg.norm(a - tip)
    inwards = np.cross(n, along) * np.sign(np.cross(n, along) @ (b - tip))
    pair, kinds = Pair(model, [shape(MESH, 0), SHAPES["sphere"]]), set()
    for _ in range(40):
        border = tip + rng.uniform(0.06, 0.08) * along
        for inside in (rng.uniform(1.2e-4, 4e-4), rng.uniform(1e-3, 4e-3)):
            pair.place(border + inside * inwards - rng.uniform(1e-4, 1e-3) * n, np.eye(3))
            assert pair.found(True) == pair.found(False)
            kinds.add(int(pair.workspace.arrays["facet.kind"][0]))
    assert kinds == {FIRST, FACE_FIRST}


def test_nearly_flat_caps_that_mirror_each_other(rng):
    """The origin's projection is on the diagonal of the facet, so a face beyond the diagonal has the same distance."""
    r, angle = 0.02 * np.sqrt(rng.uniform(size=60)), rng.uniform(0, 2 * np.pi, 60)
    cap = np.stack([r * np.cos(angle), r * np.sin(angle), 0.05 - 1e-4 * r * r], axis=1)
    points = np.concatenate([cap, 0.03 * np.array([[1, 1, 0], [1, -1, 0], [-1, 1, 0], [-1, -1, 0]])])
    text = " ".join(f"{x:.9g}" for x in points.ravel())
    body = '<body><freejoint/><geom type="mesh" mesh="m"/></body>'
    asset = f'<asset><mesh name="m" vertex="{text}"/></asset>'
    model = fl.load(f"<mujoco>{asset}<worldbody>{body}{body}</worldbody></mujoco>")
    mj, pair, frame, touching = model.to_mujoco(), Pair(model, [shape(MESH, 0)] * 2), np.empty(9), 0
    mujoco.mju_quat2Mat(frame, mj.mesh_quat[0])  # the mesh's principal axes
    frame, centre = frame.reshape(3, 3), mj.mesh_pos[0]
    top = (frame @ np.array(model.hull_vert).T + centre[:, None])[2].max()
    for _ in range(400):
        angle = rng.uniform(0, 2 * np.pi)
        axis, across = np.array([np.cos(angle), np.sin(angle), 0]), np.array([-np.sin(angle), np.cos(angle), 0])
        pos = np.array([0, 0, 2 * top - rng.choice([5e-7, 2e-6, 1e-5])]) + rng.uniform(-0.02, 0.02) * across
        turn = rotation(axis, np.pi)
        pos, drift = frame.T @ (pos + turn @ centre - centre), frame.T @ np.array([0, 0, 1e-9])
        touching += walk(pair, pos, frame.T @ turn @ frame, drift, np.eye(3), 3)
    assert touching > 500
    assert pair.memory[BY_PROOF] > 100


# least share of steps with contact that a cached proof solves
LEAN_PAIRS = {("box", "prism"): 0.05, ("rock", "box"): 0.05, ("plank", "stone"): 0.42, ("prism", "plank"): 0.05}


def lean_walks(model, names, rng, nwalk):
    """Walks with nearly parallel faces of the two parts; returns the pair, and the number of steps with contact."""
    parts = [("stone", "prism", "rock").index(name) if name in ("stone", "prism", "rock") else name for name in names]
    pair, touching = Pair(model, [SHAPES[name] for name in names]), 0
    for _ in range(nwalk):
        (n, here, _), (other, there, _) = (a_face(model, part, rng) for part in parts)
        mat = axes_with(n, rng) @ np.diag([1.0, -1.0, -1.0]) @ axes_with(other, rng).T
        # the axis of the angle between the faces is an edge of a box in one walk of three
        angle = 10 ** rng.uniform(-7, -2.4)
        axis = mat[:, rng.integers(3)] if rng.integers(3) == 0 else rng.normal(size=3)
        mat = rotation(axis / np.linalg.norm(axis), angle) @ mat
        pos = n * (here + there - 10 ** rng.uniform(-6, -2.5)) + axes_with(n, rng)[:, :2] @ rng.normal(
            scale=0.03, size=2
        )
        drift = rng.choice([0.0, 1e-6, 1e-4]) * rng.normal(size=3)
        turn = random_rotation(rng, rng.choice([0.0, 1e-7, 1e-5]))
        touching += walk(pair, pos, mat, drift, turn, 6)
    return pair, touching


@pytest.mark.parametrize("names", LEAN_PAIRS, ids="-".join)
def test_nearly_parallel_faces_have_bitwise_equal_results_with_and_without_cache(model, names, rng):
    pair, touching = lean_walks(model, names, rng, 100)
    assert touching > 250
    assert pair.memory[BY_PROOF] > LEAN_PAIRS[names] * touching


@pytest.mark.parametrize("angle", [5e-6, 1e-4, 1e-3])
def test_a_facet_nearly_parallel_to_the_face_of_a_box_is_verified(model, angle):
    pair, axis = Pair(model, [SHAPES["box"], SHAPES["rock"]]), np.array([-1.0, 2.0, 0.0]) / 5**0.5
    pair.place(np.array([0.03, 0.03, 0.149]), rotation(axis, angle))
    for _ in range(3):
        assert pair.found(True)[0] > 0
    assert pair.workspace.arrays["facet.kind"][0] == FACE_SECOND
    assert pair.memory[BY_SEARCH] == 1
    assert pair.memory[BY_PROOF] == 2


# ---- coplanar --------------------------------------------------------------------------------------------------------
def turned(points, rng):
    """Returns randomly rotated points, as nine digits: float32 then moves them out of their faces."""
    return " ".join(f"{x:.9g}" for x in np.ravel(points @ random_rotation(rng).T))


@pytest.fixture(scope="module")
def flanges():
    """Returns the meshes, rotated, and a wide flange of eighty corners."""
    rng = np.random.default_rng(4)
    angle = 2 * np.pi * np.arange(40) / 40
    ring = 0.2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    parts = [*meshes(rng), np.concatenate([np.c_[ring, np.full(40, z)] for z in (-0.03, 0.03)])]
    assets = "".join(f'<mesh name="m{k}" vertex="{turned(points, rng)}"/>' for k, points in enumerate(parts))
    bodies = "".join(f'<body><freejoint/><geom type="mesh" mesh="m{k}"/></body>' for k in range(4))
    return fl.load(f"<mujoco><asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>")


FLANGE = 3
SINGLE = 2.0**-24  # relative rounding of vertices, which are stored in float32
DECIDED = 1e-14  # m: error of the oracle's and our distance of parts of about 0.2 m
PARTS = [shape(MESH, k) for k in (STONE, PRISM, ROCK, FLANGE)] + [SHAPES["box"], SHAPES["capsule"]]
FLUSH_PAIRS = [(FLANGE, FLANGE), (PRISM, FLANGE), (ROCK, PRISM), (STONE, ROCK), (4, PRISM), (ROCK, 4), (5, FLANGE)]


def a_face(model, part, rng):
    """Returns (normal of a face with many corners, the part's extent along it, the rounding of its vertices)."""
    kind, mesh, size = SHAPES[part] if isinstance(part, str) else PARTS[part]
    if kind != MESH:
        n = np.eye(3)[rng.integers(3)] * rng.choice([-1, 1])
        return n, np.abs(n) @ size if kind == BOX else size[0] + size[1] * abs(n[2]), 0.0
    faces = model.hull_polyadr[mesh] + np.argsort(
        -model.hull_outlinenum[model.hull_polyadr[mesh] :][: model.hull_polynum[mesh]]
    )
    n = np.array(model.hull_planenormal[rng.choice(faces[:4])])
    vert = model.hull_vert[model.hull_vertadr[mesh] :][: model.hull_vertnum[mesh]]
    return n, (vert @ n).max(), SINGLE * np.linalg.norm(vert, axis=1).max()


def axes_with(n, rng):
    """Returns a rotation whose third column is n."""
    t = np.cross(n, rng.normal(size=3))
    t /= np.linalg.norm(t)
    return np.stack([t, np.cross(n, t), n], axis=1)


def face_to_face(model, parts, rng, gap, beside=0.0, limit=0.0):
    """Returns (pos, mat, rounding): a face of the second part is so many roundings beyond the limit of one here."""
    (n, here, error), (other, there, other_error) = (a_face(model, part, rng) for part in parts)
    mat = axes_with(n, rng) @ np.diag([1.0, -1.0, -1.0]) @ axes_with(other, rng).T
    rounding = 2.0 * (error + other_error)
    pos = n * (here + there + limit + gap * rounding) + axes_with(n, rng)[:, :2] @ rng.normal(scale=beside, size=2)
    return pos, mat, rounding


@pytest.mark.parametrize("parts", FLUSH_PAIRS, ids=str)
@pytest.mark.parametrize("limit", [0.0, 0.01])
def test_coplanar_parts_have_bitwise_equal_results_with_and_without_cache(flanges, parts, limit, rng):
    pair = Pair(flanges, [PARTS[part] for part in parts])
    pair.workspace.arrays["shapes.limit"][0] = limit
    touching = 0
    for _ in range(60):
        gap = rng.choice([100, 4, 0.5, 0.25, 0, -0.25, -0.5, -4]) * (1 + 0.2 * rng.normal())
        pos, mat, rounding = face_to_face(flanges, parts, rng, gap, 0.03, limit)
        mat = random_rotation(rng, rng.choice([0.0, 1e-9, 1e-8, 1e-7, 5e-7])) @ mat
        drift = rounding * rng.choice([0.0, 0.05, 0.5]) * rng.normal(size=3)
        turn = random_rotation(rng, rng.choice([0, 1e-8]))
        touching += walk(pair, pos, mat, drift, turn, 12)
    assert 50 < touching < 660


def solids(model, parts, pos, mat):
    """Returns two parts as solids of the oracle, the first at the origin."""
    found = []
    for part, at, turn in zip(parts, (np.zeros(3), pos), (np.eye(3), mat), strict=True):
        kind, mesh, size = PARTS[part]
        vert = model.hull_vert[model.hull_vertadr[mesh] :][: model.hull_vertnum[mesh]]
        found.append(Solid(*(("hull", vert) if kind == MESH else ("box", np.array(size))), at, turn))
    return found


@pytest.mark.parametrize("parts", [pair for pair in FLUSH_PAIRS if pair[0] != 5], ids=str)
def test_coplanar_parts_touch_if_their_exact_distance_is_negative(flanges, parts, rng):
    """The faces are flat up to the rounding of their vertices to float32: the oracle has their exact shape."""
    pair, seen = Pair(flanges, [PARTS[part] for part in parts]), set()
    for _ in range(40):
        pos, mat, _ = face_to_face(flanges, parts, rng, rng.choice([0.3, 0.05, 0.0, -0.05, -0.3]), 0.02)
        distance, _ = polytope_distance(*solids(flanges, parts, pos, mat))
        pair.place(pos, mat)
        if abs(distance) > DECIDED:
            seen.add(distance < 0)
            for remembers in (False, True, True):
                assert (pair.found(remembers)[0] > 0) == (distance < 0)
    assert seen == {True, False}


# ---- worlds ----------------------------------------------------------------------------------------------------------
JOINTED = """
<mujoco>
  <option timestep="0.002"/>
  <asset><mesh name="stone" vertex="{stone}"/><mesh name="prism" vertex="{prism}"/></asset>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body pos="0 0 .4"><freejoint/><geom type="mesh" mesh="stone"/>
      <body pos=".05 0 .02"><joint axis="0 1 0" range="-60 60" damping=".01"/><geom type="mesh" mesh="prism"/>
        <body pos=".12 0 0"><joint axis="0 0 1" damping=".01"/><geom type="mesh" mesh="stone"/></body></body></body>
    <body pos=".1 .1 .7"><freejoint/><geom type="capsule" size=".03 .06"/></body>
    <body pos="-.1 .1 .9"><freejoint/><geom type="box" size=".05 .07 .03"/></body>
  </worldbody>
</mujoco>"""


@pytest.fixture(scope="module")
def heap():
    stone, prism, _ = meshes(np.random.default_rng(3))
    text = JOINTED.format(stone=hull_text(stone), prism=hull_text(prism))
    return fl.load(text)


def scattered(model, n, seed=0, dtype="float64"):
    batch = fl.Batch(model, n, dtype=dtype)
    batch.qvel += 0.5 * np.random.default_rng(seed).standard_normal(batch.qvel.shape)
    return batch


def remembered(batch):
    """Returns the memory of pairs: it changes no result, so no public attribute shows it."""
    return batch.pair_memory


def forget(batch):
    remembered(batch)[...] = 0.0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("contact", ["convex", "lcp"])
def test_steps_are_bitwise_equal_with_and_without_cache(heap, contact, dtype):
    heap = copy.copy(heap)
    heap.opt.contact_model = contact
    one, other = scattered(heap, 24, dtype=dtype), scattered(heap, 24, dtype=dtype)
    for _ in range(300):
        forget(other)
        one.step()
        other.step()
        assert one.qpos.tobytes() == other.qpos.tobytes()
        assert one.qvel.tobytes() == other.qvel.tobytes()
    counts = remembered(one)[:, :HEADER].sum(axis=0)
    assert counts[BY_PROOF] > 500
    assert counts[BY_DIRECTION] > 500
    assert remembered(other)[:, BY_PROOF].sum() == 0


def test_a_batch_a_copy_and_a_data_step_bitwise_equally(heap):
    batch = scattered(heap, 9)
    batch.step(150)
    fresh, kept = copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))
    data = fl.Data(heap)
    for name in ("qpos", "qvel", "qacc_warmstart"):
        getattr(data, name)[:] = getattr(batch, name)[4]
    for _ in range(40):
        batch.step()
        fl.step(heap, data)
    fresh.step(40)
    kept.step(40)
    assert fresh.qpos.tobytes() == kept.qpos.tobytes() == batch.qpos.tobytes()
    assert data.qpos.tobytes() == batch.qpos[4].tobytes()


def test_a_data_clears_its_cache_for_another_model(heap):
    data = fl.Data(heap)
    for _ in range(200):
        fl.step(heap, data)
    memory = data.workspace.arrays["recall.memory"]
    assert memory[BY_PROOF] > 0
    data.model = copy.deepcopy(heap)
    assert not memory.any()


def test_a_bound_stage_keeps_its_cache_alive(heap):
    runs = []
    for _ in range(8):
        workspace = Workspace(heap, 8)
        workspace.run(forward_position)
        runs.append(workspace.bound(collision))
        record = workspace.record
        held = record.arrays["recall.memory"]
        start = address(held)
        assert start <= workspace.arrays["recall_address"][7] < start + held.nbytes
        del workspace
    rooms = [np.full(1 << 18, 1.0) for _ in range(20)]  # reuses freed slots
    for run in runs:
        run()
    assert all((room == 1.0).all() for room in rooms)


def test_queries_do_not_write_the_cache(heap):
    batch = scattered(heap, 9)
    batch.step(50)
    before = remembered(batch).copy()
    batch.geom_distance(1, 2)
    assert (remembered(batch) == before).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["robosuite/grippers/fourier_left_hand", "robosuite/robots/jaco/robot", "robosuite/robots/spot/robot"]
)
def test_robots_step_bitwise_equally_with_and_without_cache(name):
    robot = fl.load(str(model_path(name)))
    one, other = fl.Batch(robot, 64), fl.Batch(robot, 64)
    controls = np.random.default_rng(1)
    for k in range(400):
        if k % 20 == 0:
            one.ctrl[:] = other.ctrl[:] = controls.uniform(-1, 1, (64, robot.nu))
        forget(other)
        one.step()
        other.step()
        assert one.qvel.tobytes() == other.qvel.tobytes()
    assert remembered(one)[:, BY_PROOF].sum() > 500


# ---- capacity --------------------------------------------------------------------------------------------------------
def test_cache_size_per_world():
    assert [recall_entries(n) for n in (0, 1, 2, 3, 200, 10**6)] == [0, 1, 2, 4, 256, MOST_ENTRIES]
    assert proofs(3) == 4
    assert proofs(10**6) == MOST_PROOFS
    assert memory_of_world(0, 0) == 0
    assert memory_of_world(4, 2) > HEADER + 4 * ENTRY


def test_a_model_without_hulls_has_no_cache():
    assert Workspace.sizes_of(fl.bundled("humanoid"))["nrecall"] == 0
