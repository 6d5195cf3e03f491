"""Compares every pair of shapes with MuJoCo in touching, deep, near (within the margin) and degenerate poses.

A pair in closed form has the same contact points as MuJoCo.  A convex pair has one distance (mj_geomDistance) and, if
it is unique, one normal: those of its deepest point are compared.  The number of points of a flat contact differs
between the engines; MuJoCo may even replace the deepest point by two points along an edge.
A height field has the same distance and normal from a separate shape.  Depths differ: MuJoCo measures that of a prism.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import mujoco
import numpy as np

import featherlane as fl
from featherlane.engine.model.pair import CONVEX, FIELD_PAIR, FIRST_SCALAR, HEIGHTS, MESH_FIELD, PAIR_FUNCTIONS
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.exact_contacts import is_disputed
from oracles.penetration import overlap, signed_distance, solids
from scenes.poses import aligned_poses, collide, frames, oracle, oracle_of_bodies, random_quat
from scenes.signed_distance import angle

WIDTH = 8
MARGIN = 0.04  # m
SLACK = 1e-6  # m: so close to the limit, either answer is accepted
APART = 1e-3  # m: below this, the difference of MuJoCo's two points gives no accurate normal
TYPES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
# typical sizes [m]
HALF = {"sphere": 0.2, "capsule": 0.3, "ellipsoid": 0.25, "cylinder": 0.2, "box": 0.25, "mesh": 0.2, "sdf": 0.3}
GEOMS = {
    "plane": 'type="plane" size="1 1 1"',
    "hfield": 'type="hfield" hfield="rough"',
    "sphere": 'type="sphere" size="0.2"',
    "capsule": 'type="capsule" size="0.12 0.2"',
    "ellipsoid": 'type="ellipsoid" size="0.25 0.2 0.12"',
    "cylinder": 'type="cylinder" size="0.2 0.15"',
    "box": 'type="box" size="0.12 0.2 0.25"',
    "mesh": 'type="mesh" mesh="rock"',
    "sdf": 'type="sdf" mesh="angle"',
}
# offsets of centres at which aligned shapes are concentric, touch with faces, or with edges
OFFSETS = (0.0, 0.05, 0.12, 0.2, 0.24, 0.3199, 0.35, 0.4, 0.45)
FAMILIES = ("margin", "touching", "deep", "degenerate")
FIELDS = (FIELD_PAIR, MESH_FIELD)
CELLS = [(TYPES[int(a)], TYPES[int(b)], ident, most) for ident, a, b, most in PAIR_FUNCTIONS]

SCENE = """
<mujoco>
  <option ccd_tolerance="1e-14" ccd_iterations="1000"/>
  <asset>
    <mesh name="rock" vertex="{rock}"/>
    <mesh name="angle" vertex="{angle[0]}" face="{angle[1]}"/>
    <hfield name="rough" nrow="9" ncol="9" size="1.2 1.2 0.4 0.2" elevation="{heights}"/>
  </asset>
  <default><geom margin="{margin}"/></default>
  <worldbody>
    <body mocap="true"><geom {first}/></body>
    <body><freejoint/><geom {second}/></body>
  </worldbody>
</mujoco>
"""


@dataclass
class Agreement:
    """Records the agreement of one pair, over the poses of one family.

    Attributes:
        poses: number of poses.
        touching: number of those with a contact in MuJoCo.
        same: number of those whose number of contacts is MuJoCo's.
        found: number of contact points of poses with the same number of them.
        equal: number of those that are MuJoCo's, up to MINIMIZED.
        distance: largest difference of the least distance; from mj_geomDistance for convex pairs [m].
        normal: largest difference of the deepest point's normal, if the normal is unique.
        points: largest difference of positions and distances, point by point, if their number is the same [m].
        missed: poses with a missing or a false contact of ours, with a distance that is not at the limit;
            decided by MuJoCo's contacts, or its distance for convex pairs (it misses some, too).
        wrong: overlapping boxes and meshes whose depth in MuJoCo differs from ours; compared with `exact_depth`.
        disputed: poses of closed pairs in which MuJoCo's contacts are not exact; they are not compared.
    """

    poses: int = 0
    touching: int = 0
    same: int = 0
    found: int = 0
    equal: int = 0
    distance: float = 0.0
    normal: float = 0.0
    points: float = 0.0
    missed: int = 0
    wrong: int = 0
    disputed: int = 0
    worst: dict[str, object] = field(default_factory=dict)

    def meet(self, name: str, value: float, pose) -> None:
        if value > getattr(self, name):
            setattr(self, name, float(value))
            self.worst[name] = pose


def model_of(first: str, second: str):
    """Returns the two shapes, the first on a mocap body, the second free."""
    rng = np.random.default_rng(5)
    rock = rng.normal(size=(16, 3))
    rock *= 0.2 / np.linalg.norm(rock, axis=1, keepdims=True)
    heights = " ".join(f"{h:.4f}" for h in rng.uniform(0, 1, 81))
    numbers = " ".join(f"{x:.6f}" for x in rock.ravel())
    given = {"rock": numbers, "heights": heights, "angle": angle()}
    return fl.load(SCENE.format(**given, margin=MARGIN / 2, first=GEOMS[first], second=GEOMS[second]))


def is_closed(ident: int) -> bool:
    """Returns whether MuJoCo has a closed form for the pair, with the same points as ours."""
    return ident not in (CONVEX, HEIGHTS, *FIELDS)


def has_exact_depth(first: str, second: str, ident: int) -> bool:
    """Returns whether the pair has a closed form, and its contacts can be compared with the exact depth."""
    return is_closed(ident) and second != "sdf"


def where(ident: int) -> str:
    """Returns whether the pair is tested in lanes, or one world at a time."""
    return "per world" if ident >= FIRST_SCALAR else "vectorized"


def poses(model, first: str, second: str, family: str, n: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions (n, 2, 3) and quaternions (n, 2, 4) of a family."""
    if family == "degenerate":
        heights = OFFSETS if first != "plane" else (0.0, 0.12, 0.15, 0.2, 0.25, 0.32)
        return aligned_poses(rng, (OFFSETS, OFFSETS, heights), n)
    quat = np.stack([random_quat(rng, n), random_quat(rng, n)], axis=1)
    along = rng.standard_normal((n, 3))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    target = {
        "margin": rng.uniform(0.1, 0.9, n) * MARGIN,
        "touching": -(10.0 ** rng.uniform(-6, -3, n)),
        "deep": -rng.uniform(0.1, 0.6, n) * 0.12,
    }[family]
    pos = np.zeros((n, 2, 3))
    if first == "hfield":
        # over and in the middle of the field, in its frame
        quat[:, 0] = (1.0, 0.0, 0.0, 0.0)
        pos[:, 1, :2] = rng.uniform(-0.6, 0.6, (n, 2))
        pos[:, 1, 2] = 0.3 + HALF[second] * rng.uniform(0.2, 1.0, n) + (family == "margin") * 0.1
        return pos, quat
    if second == "sdf":
        # the contact exists only where the shapes overlap
        low, high = {"margin": (0.3, 0.4), "touching": (0.15, 0.3), "deep": (0.05, 0.15)}[family]
        pos[:, 1] = along * rng.uniform(low, high, (n, 1))
        if first == "plane":
            quat[:, 0], pos[:, 1] = (1.0, 0.0, 0.0, 0.0), pos[:, 1] * (1.0, 1.0, 0.0) + (0.0, 0.0, 0.15)
        return pos, quat
    data = fl.Data(model)
    for k in range(n):
        if first == "plane":
            mujoco.mju_rotVecQuat(along[k], np.array([0.0, 0.0, 1.0]), quat[k, 0])
        data.mocap_quat[0], data.qpos[3:7] = quat[k, 0], quat[k, 1]
        away = 0.6
        for _ in range(6):
            data.qpos[:3] = away * along[k]
            fl.stages.kinematics(model, data)
            away -= fl.query.geom_distance(model, data, 0, 1, 10.0)[0] - target[k]
        pos[k, 1] = away * along[k]
    return pos, quat


def deepest(contact) -> tuple[float, np.ndarray]:
    """Returns the least distance, and the normal there."""
    k = int(np.argmin(contact["dist"]))
    return float(contact["dist"][k]), np.reshape(contact["frame"], (-1, 9))[k, :3]


def truth(model, xpos, xmat) -> tuple[np.ndarray, np.ndarray]:
    """Returns MuJoCo's signed distance of the two geoms in each pose, and the normal: NaN if they almost touch."""
    mj = model.to_mujoco()
    data, distance, normal = mujoco.MjData(mj), np.zeros(len(xpos)), np.full((len(xpos), 3), np.nan)
    mujoco.mj_kinematics(mj, data)
    for k, (p, R) in enumerate(zip(xpos, xmat, strict=True)):
        data.geom_xpos[:], data.geom_xmat[:] = p, R
        ends = np.zeros(6)
        distance[k] = mujoco.mj_geomDistance(mj, data, 0, 1, 10.0, ends)
        if abs(distance[k]) > APART:
            normal[k] = (ends[3:] - ends[:3]) / distance[k]
    return distance, normal


def polyhedra(model, xpos, xmat) -> list[np.ndarray] | None:
    """Returns the vertices of both geoms in one pose, (n, 3) each; None if a geom is no box and no mesh."""
    mj, out = model.to_mujoco(), []
    for i, kind in enumerate(model.geom_type):
        if kind == mujoco.mjtGeom.mjGEOM_BOX:
            points = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * model.geom_size[i]
        elif kind == mujoco.mjtGeom.mjGEOM_MESH:
            start, number = mj.mesh_vertadr[mj.geom_dataid[i]], mj.mesh_vertnum[mj.geom_dataid[i]]
            points = mj.mesh_vert[start : start + number]
        else:
            return None
        out.append(points @ xmat[i].reshape(3, 3).T + xpos[i])
    return out


def exact_depth(a: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray]:
    """Returns the distance (negative) and normal of two overlapping convex polyhedra, from a to b.

    The depth is the least overlap along any direction.  It is attained at the normal of a face, or of two edges.  All
    planes through three vertices and all lines through two include these: a further direction only has more overlap.

    Args:
        a, b: vertices, (n, 3).
    """
    edges = [np.array([q - p for p, q in itertools.combinations(points, 2)]) for points in (a, b)]
    planes = [np.array([np.cross(q - p, r - p) for p, q, r in itertools.combinations(points, 3)]) for points in (a, b)]
    n = np.concatenate([*planes, np.cross(edges[0][:, None], edges[1][None]).reshape(-1, 3)])
    size = np.linalg.norm(n, axis=1)
    n = n[size > 1e-12] / size[size > 1e-12, None]
    n = np.concatenate([n, -n])
    overlap = (n @ a.T).max(axis=1) - (n @ b.T).min(axis=1)
    k = int(np.argmin(overlap))
    return -float(overlap[k]), n[k]


def compare(first: str, second: str, ident: int, family: str, n: int, seed: int = 0) -> Agreement:
    """Compares one pair and family, ours in tiles of eight worlds."""
    model, rng = model_of(first, second), np.random.default_rng(seed)
    moved = poses(model, first, second, family, n, rng)
    xpos, xmat = frames(model, *moved)
    distance, normal = truth(model, xpos, xmat) if ident == CONVEX else (None, None)
    out = Agreement(poses=n)
    theirs_of = oracle_of_bodies(model, *moved) if second == "sdf" else oracle(model, xpos, xmat)
    for k, (ours, theirs) in enumerate(zip(collide(model, xpos, xmat, WIDTH), theirs_of, strict=True)):
        if has_exact_depth(first, second, ident) and is_disputed(*solids(model, xpos[k], xmat[k]), theirs, rng):
            out.disputed += 1
            continue
        if len(ours) == 0 or len(theirs["dist"]) == 0:
            present = ours if len(ours) else theirs
            if ident == CONVEX:
                out.missed += (distance[k] < MARGIN - SLACK) if len(ours) == 0 else (distance[k] > MARGIN + SLACK)
            else:
                out.missed += len(present["dist"]) > 0 and deepest(present)[0] < MARGIN - SLACK
            continue
        out.touching += 1
        (d, u), (e, v) = deepest(ours), deepest(theirs)
        if ident == HEIGHTS and e < 0.0:
            out.missed += d > SLACK
            continue
        if ident == CONVEX:
            e, v = distance[k], normal[k]
            if e < -APART and abs(d - e) > EXACT and (hulls := polyhedra(model, xpos[k], xmat[k])):
                out.wrong += 1
                e, v = exact_depth(*hulls)
        out.meet("distance", abs(d - e), k)
        if family != "degenerate" and not np.any(np.isnan(v)):
            out.meet("normal", np.abs(u - v).max(), k)
        if len(ours) == len(theirs["dist"]):
            out.same += 1
            apart = np.maximum(np.abs(ours["pos"] - theirs["pos"]).max(1), np.abs(ours["dist"] - theirs["dist"]))
            out.found += len(apart)
            out.equal += np.count_nonzero(apart < MINIMIZED)
            out.meet("points", apart.max(), k)
    return out


@dataclass
class Depths:
    """Records the largest errors of the deepest contact of a closed pair.

    Attributes:
        depth: difference from the exact distance; a missing contact counts with its depth [m].
        normal: difference of the distance and of minus the overlap along the normal [m].
    """

    depth: float = 0.0
    normal: float = 0.0

    def meet(self, a, b, contacts, exact: float) -> None:
        if len(contacts["dist"]) == 0:
            self.depth = max(self.depth, min(MARGIN, exact) * -1.0 if exact < 0.0 else 0.0)
            return
        d, n = deepest(contacts)
        self.depth = max(self.depth, abs(d - exact))
        self.normal = max(self.normal, abs(d + float(overlap(a, b, np.asarray(n, float))[0])))


def measure_depths(first: str, second: str, family: str, n: int, seed: int = 0) -> dict[str, Depths]:
    """Returns the errors of float64, float32 and MuJoCo in poses of a family.  Float32 starts from rounded poses."""
    model, rng = model_of(first, second), np.random.default_rng(seed)
    xpos, xmat = frames(model, *poses(model, first, second, family, n, rng))
    single = [x.astype(np.float32).astype(float) for x in (xpos, xmat)]
    runs = {
        "float64": (xpos, xmat, collide(model, xpos, xmat, WIDTH)),
        "float32": (*single, collide(model, *single, 2 * WIDTH, Workspace(model, 2 * WIDTH, np.float32))),
        "MuJoCo": (xpos, xmat, oracle(model, xpos, xmat)),
    }
    found = {name: Depths() for name in runs}
    for name, (pos, mat, contacts) in runs.items():
        for p, R, points in zip(pos, mat, contacts, strict=True):
            a, b = solids(model, p, R)
            found[name].meet(a, b, points, signed_distance(a, b, rng))
    return found


# ---- requirements, and their page --------------------------------------------------------------------------------
CLOSED, EXACT, CURVED = 1e-8, 1e-6, 1e-4  # MuJoCo's normals of curved shapes stop at about 1e-5
ROUND = {"ellipsoid", "cylinder"}
MINIMIZED = 1e-5  # m: MuJoCo's gradients are differences over 1e-8 m, and a descent amplifies their errors
SHARE = 0.95  # of the points: a starting point on the corner of a box ends elsewhere after a rounding error
COAXIAL = 2e-5  # m: MuJoCo's error for a capsule along a cylinder's axis, whose depth is exactly the sum of radii
# m: errors of the depth, and of the overlap along the normal (its error times the size); two rules of MuJoCo are kept:
# distances of nearly parallel capsules are those at the ends, and a face of a box is preferred to two edges
DEPTH = {"float64": (CLOSED, 1e-7), "float32": (1e-6, 5e-4)}
RULED = {("capsule", "capsule"): 1e-4, ("box", "box"): 2e-2}


def bounds(first: str, second: str, ident: int, family: str) -> dict[str, float]:
    """Returns the largest differences allowed; in degenerate poses rounding decides the points of a contact."""
    if ident in FIELDS:
        return {}
    if is_closed(ident):
        names = ("distance",) if family == "degenerate" else ("distance", "normal", "points")
        allowed = dict.fromkeys(names, CLOSED)
    else:
        allowed = {"distance": EXACT, "normal": CURVED if {first, second} & ROUND else EXACT}
    if family == "degenerate" and ident == CONVEX:
        allowed["distance"] = COAXIAL
    return allowed | {"missed": 0}


def failures(first: str, second: str, ident: int, family: str, found: Agreement) -> dict[str, str]:
    """Returns the quantities beyond their bound, and the pose."""
    wrong = {
        name: f"{getattr(found, name):.1e} at pose {found.worst.get(name)}"
        for name, most in bounds(first, second, ident, family).items()
        if not getattr(found, name) <= most
    }
    if ident in FIELDS and family != "degenerate" and found.equal < SHARE * found.found:
        wrong["equal"] = f"{found.equal} of {found.found}"
    if is_closed(ident) and family != "degenerate" and found.same < found.touching:
        wrong["same"] = f"{found.same} of {found.touching}"
    return wrong


def depth_failures(first: str, second: str, found: dict[str, Depths]) -> dict[str, str]:
    """Returns the errors of depths beyond their bound."""
    ruled = RULED.get((first, second), 0.0)
    return {
        f"{name} {what}": f"{getattr(found[name], what):.1e}"
        for name, most in DEPTH.items()
        for what, bound in zip(("depth", "normal"), most, strict=True)
        if not getattr(found[name], what) <= bound + ruled
    }


HEAD = """# Pairs of shapes

This page lists the collision method of each pair of geom types, and the differences of its contacts from MuJoCo's. A
mesh geom collides as its convex hull.

`python docs/pairs.py` writes this page. It runs the tests of `tests/pages/pairs.py` on {n} poses of each pair, and
stops with an error if a test fails.

## Collision methods

Each cell lists the collision method, the processing of the worlds (*vectorized* or *per world*), and the largest number
of contact points. Each pair is listed once, on or above the diagonal. A pair without an entry has no contacts.

- **closed**: A formula computes the contact points. They are the same as MuJoCo's, except where MuJoCo's depth or
  normal is wrong ([Depth of closed pairs](#depth-of-closed-pairs)). If the axis of a capsule meets a box, the pair is
  computed by the method *convex*.
- **convex**: The algorithm GJK computes the distance of separate shapes. The algorithm EPA computes the depth of
  overlapping shapes. Newton's method refines the normal of curved shapes. The contact points lie on the touching faces,
  edges and caps. If the flag `multiccd` is disabled, the pair has one contact point, as in MuJoCo.
- **heights**: The surface of the height field consists of triangles. The other shape touches each triangle as it
  touches a plane. It touches ridges and peaks by the method *convex*. At most 50 points remain, the deepest ones.
- **minimized**: A gradient descent from each of several starting points searches for a point inside both shapes. Each
  such point is a contact point, as in MuJoCo, up to 50 of them. The descent uses the [signed distance
  field](contact.md#signed-distance-fields) of each shape.
- *vectorized*: All worlds of a [tile](glossary.md) are computed at once.
- *per world*: The worlds are computed one after another, in float64.
"""


DEPTHS = """
## Depth of closed pairs

The table lists the largest errors of the deepest contact [m], over the same poses. The reference is brute force
(`tests/oracles/penetration.py`): the smallest overlap over the normals of all faces and all pairs of edges of
polytopes, plus the radii of round shapes.

- depth: the difference of the distance from the exact one. A missing contact counts with its depth.
- normal: the difference of the depth and of the overlap along the contact's normal. It is 0 if moving the shapes apart
  along the normal, by the depth, separates them.

MuJoCo's errors have these causes:

- A capsule whose axis meets a box: MuJoCo computes spheres at points of the axis. The contact is missing, or too
  shallow, and capsules may be pulled through plates.
- A sphere on the axis of a capsule or cylinder, and capsules on one axis: if the axes of the frames are parallel,
  MuJoCo's normal is the x axis. This direction may be along the capsule.
- A sphere whose centre is on the rim of a cylinder: MuJoCo's normal is tangential to the rim.
- A cylinder that stands almost upright on a plane: MuJoCo's points are off the rim, by 1e-4 m at an angle of 1e-12 and
  by 1e-2 m at 3e-15 (radius 0.2 m).

Two rules of MuJoCo are kept, although they are not exact. The distances of two capsules within 1e-4 of parallel are
those at the ends of their overlap. Two boxes have a face contact if the depth of two edges is less by up to 5 %, and
the angle is small; the contact points are then corners of the face, along whose normal other corners may be deeper.

| pair | depth, float64 | normal, float64 | depth, float32 | normal, float32 | depth, MuJoCo | normal, MuJoCo |
|---|---:|---:|---:|---:|---:|---:|"""


def kind(ident: int) -> str:
    return {CONVEX: "convex", HEIGHTS: "heights"}.get(ident, "minimized" if ident in FIELDS else "closed")


def matrix() -> str:
    """Returns the pairs by their two shapes."""
    cells = {(a, b): f"{kind(ident)}, {where(ident)}, {most}" for a, b, ident, most in CELLS}
    lines = ["| | " + " | ".join(TYPES) + " |", "|---|" + "---|" * len(TYPES)]
    for a in TYPES:
        lines.append(f"| **{a}** | " + " | ".join(cells.get((a, b), "") for b in TYPES) + " |")
    return "\n".join(lines)


def page(n: int, progress=lambda label: None) -> str:
    """Returns the page, after running every cell on n poses.

    Raises:
        AssertionError: lists the quantities beyond their bound.
    """
    lines = [
        "| pair | poses in contact | distance | normal | all points | same count | distance, degenerate |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    disputed, depths = 0, []
    for first, second, ident, _ in CELLS:
        progress(f"{first}-{second}")
        found = {family: compare(first, second, ident, family, n // len(FAMILIES)) for family in FAMILIES}
        for family, result in found.items():
            wrong = failures(first, second, ident, family, result)
            assert not wrong, f"{first}-{second}, {family}: {wrong}"
        disputed += sum(result.wrong for result in found.values())
        usual = [found[family] for family in FAMILIES if family != "degenerate"]
        worst = {name: max(getattr(r, name) for r in usual) for name in ("distance", "normal", "points")}
        same = sum(r.same for r in found.values()) / sum(r.touching for r in found.values())
        points = f"{worst['points']:.0e}" if is_closed(ident) else ""
        if has_exact_depth(first, second, ident):
            depths.append(depth_row(first, second, n // len(FAMILIES)))
        count = "" if ident == HEIGHTS else f"{100 * same:.0f} %"
        if ident in FIELDS:
            touching = sum(r.touching for r in found.values())
            equal = sum(r.equal for r in usual) / sum(r.found for r in usual)
            lines.append(f"| {first}-{second} | {touching} | | | {100 * equal:.1f} % | {100 * same:.0f} % | |")
            continue
        lines.append(
            f"| {first}-{second} | {sum(r.touching for r in found.values())} | {worst['distance']:.0e} | "
            f"{worst['normal']:.0e} | {points} | {count} | {found['degenerate'].distance:.0e} |"
        )
    about = """
## Accuracy compared with MuJoCo

The table lists the largest differences from MuJoCo 4.0.1. The sampled poses have four groups of equal size:

- margin: the distance is positive and within the margin;
- touching: the depth is small;
- deep: the depth is large;
- degenerate: concentric shapes, parallel or nearly parallel axes, faces on faces, edges on edges.

For pairs with a height field or a signed distance field (sdf), the positions of the shapes are sampled instead of the
depth. Fewer sampled poses are therefore in contact than for other pairs.

| column | meaning |
|---|---|
| poses in contact | poses in which both engines find a contact |
| distance | difference of the distance at the deepest point [m] |
| normal | difference of the components of the normal at the deepest point |
| all points | closed pairs: difference of position and distance of any contact point [m] |
| | minimized pairs: share of contact points that agree to 1e-5 m |
| same count | share of poses with the same number of contact points |
| distance, degenerate | as distance, for the degenerate poses; other differences are without these poses |

The reference for the distance and normal of convex pairs is `mj_geomDistance`. The reference for all other values is
MuJoCo's list of contacts.

The values of height fields are those of separate shapes. If the shapes overlap, Featherlane measures depths below the
surface, and MuJoCo measures the depth in each of the triangular prisms below the triangles.

Some contact points of minimized pairs do not agree with MuJoCo, because the gradient descent amplifies rounding errors.
This happens if a starting point lies on the corner of a box. It also happens if a step of the descent ends at the edge
of a signed distance field.

Some differences are errors of MuJoCo:

- Normal of curved shapes: MuJoCo's iteration stops at an error of about 1e-5.
- Boxes and meshes that overlap: if MuJoCo's depth is wrong by more than 1e-6 m (poses: {wrong}), the reference is the
  smallest overlap along the normals of all faces and of all pairs of edges.
- Capsule along the axis of a cylinder: the exact depth is the sum of the radii. Featherlane returns this sum. MuJoCo's
  error is at most 1e-5 m.
- Closed pairs in deep or coincident poses: the next section lists MuJoCo's errors. The table leaves out these poses.
"""
    return "\n".join([HEAD.format(n=n), matrix(), about.format(wrong=disputed), *lines, DEPTHS, *depths]) + "\n"


def depth_row(first: str, second: str, n: int) -> str:
    """Returns the row of a closed pair in the table of depths.

    Raises:
        AssertionError: lists the errors beyond their bound.
    """
    worst = {name: Depths() for name in ("float64", "float32", "MuJoCo")}
    for family in FAMILIES:
        for name, found in measure_depths(first, second, family, n).items():
            for what in ("depth", "normal"):
                setattr(worst[name], what, max(getattr(worst[name], what), getattr(found, what)))
    wrong = depth_failures(first, second, worst)
    assert not wrong, f"{first}-{second}: {wrong}"
    numbers = (f"{getattr(worst[name], what):.0e}" for name in worst for what in ("depth", "normal"))
    return f"| {first}-{second} | " + " | ".join(numbers) + " |"
