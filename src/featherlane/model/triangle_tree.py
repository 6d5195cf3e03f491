"""Builds trees of boxes over the triangles of meshes, for rays.

A node has up to eight children: other nodes, or groups of up to eight triangles.  Nodes are split where the surface
area heuristic estimates the fewest tests: a ray that hits a box hits a box in it with the ratio of their areas.
All meshes are built at once: each step splits one part of each node that is being built.
Source: Wald, On fast construction of SAH-based bounding volume hierarchies (2007): bins along each axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.errors import ModelError
from featherlane.lanes.layout import Declare, size
from featherlane.model.derived import derived

if TYPE_CHECKING:
    import mujoco

GROUP, NO_CHILD = 8, 1 << 30  # children of a node of a tree; no child
BINS = 16  # equal parts of the sorted triangles, between which they can be split
HALVED = 8  # from this level on, the largest parts are halved, which limits a tree's depth
MARGIN = 1e-9  # of boxes, relative to the distance of their corners from the mesh's origin
_field = Declare()


@derived(
    size("nmeshnode", "nodes of the bounding volume trees of all meshes"),
    size("ntrianglegroup", "groups of triangles of all meshes"),
    _field.int("meshnode_adr", "nmesh", "1", "root of the mesh's bounding volume tree"),
    _field.int("meshnode_child", "nmeshnode 8", "1", "children: a node, or -1 - a group of triangles; else none"),
    _field.scalar("meshnode_box", "nmeshnode 6 8", "m", "lower and upper corner of the children's boxes"),
    _field.scalar("trianglegroup_vert", "ntrianglegroup 9 8", "m", "corners of eight triangles"),
    _field.int("trianglegroup_face", "ntrianglegroup 8", "1", "row of mesh_face of each triangle, -1: none"),
)
def triangle_trees(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Builds the tree of each mesh, in the mesh's frame."""
    triangles = Triangles(mj)
    children, boxes, groups, nnode, ngroup = [], [], [], mj.nmesh, 0
    start, count, level = mj.mesh_faceadr.astype(int), mj.mesh_facenum.astype(int), 0
    while len(start):
        start, count, box = triangles.divide(start, count, level >= HALVED)
        is_node, is_group = count > GROUP, (count > 0) & (count <= GROUP)
        child = np.full(count.shape, NO_CHILD)
        child[is_node] = nnode + np.arange(is_node.sum())
        child[is_group] = -1 - (ngroup + np.arange(is_group.sum()))
        children.append(child)
        boxes.append(box)
        groups.append(triangles.members(start[is_group], count[is_group]))
        start, count, level = start[is_node], count[is_node], level + 1
        nnode, ngroup = nnode + int(is_node.sum()), ngroup + int(is_group.sum())
    face = np.concatenate([*groups, np.zeros((0, GROUP), int)])
    box = np.concatenate([*boxes, np.zeros((0, GROUP, 6))])
    box += MARGIN * np.abs(box).sum(axis=2, keepdims=True) * np.repeat([-1.0, 1.0], 3)
    vert = triangles.corners[face].astype(float) * (face >= 0)[..., None]
    return {
        "meshnode_adr": np.arange(mj.nmesh),
        "meshnode_child": np.concatenate([*children, np.zeros((0, GROUP), int)]),
        "meshnode_box": box.transpose(0, 2, 1),
        "trianglegroup_vert": vert.transpose(0, 2, 1),
        "trianglegroup_face": face,
    }


class Triangles:
    """Holds the triangles of all meshes, in orders in which each part of a tree is contiguous.

    Attributes:
        corners: (n, 9) corners [m], in float32 as those of an MjModel.
        box: (6, n) lower and upper corners of the bounding boxes [m].
        order: (3, n) triangles by place, within a part sorted by the middles of their boxes along each axis.
    """

    def __init__(self, mj: mujoco.MjModel):
        mesh = np.repeat(np.arange(mj.nmesh), mj.mesh_facenum)
        self.corners = triangle_corners(mj, mesh, np.arange(len(mesh)) - mj.mesh_faceadr[mesh])
        vertices = self.corners.reshape(-1, 3, 3)
        self.box = np.concatenate([vertices.min(axis=1).T, vertices.max(axis=1).T])
        middle = self.box[:3] + self.box[3:]
        self.order = np.stack([np.lexsort((x, mesh)) for x in middle]).astype(np.int32)

    def members(self, start, count):
        """Returns (n, 8): the triangles of each of n groups, -1 beyond its count."""
        k = np.arange(GROUP)
        place = np.minimum(start[:, None] + k, self.order.shape[1] - 1)
        return np.where(k < count[:, None], self.order[0, place], -1)

    def divide(self, start, count, halved):
        """Divides k contiguous parts into up to eight each; returns starts, counts and boxes (k, 8), (k, 8), (k, 8, 6).

        Args:
            start, count: (k,) place of the first triangle of each part, and its triangles.
            halved: halve the largest parts, rather than split those with the largest area well.
        """
        none = np.zeros((len(start), GROUP - 1), int)
        start, count = np.column_stack([start, none]), np.column_stack([count, none])
        box = np.zeros((len(start), GROUP, 6))
        self._bound(start, count, box, np.flatnonzero(count[:, 0]), 0)
        for k in range(1, GROUP):
            worth = count.astype(float) if halved else _area(np.moveaxis(box, -1, 0))
            worth[count <= GROUP] = -1.0
            part = np.argmax(worth, axis=1)
            node = np.flatnonzero(worth[np.arange(len(part)), part] >= 0.0)
            if not len(node):
                break
            part = part[node]
            first = self._split(start[node, part], count[node, part], halved)
            start[node, k], count[node, k] = start[node, part] + first, count[node, part] - first
            count[node, part] = first
            self._bound(start, count, box, node, part)
            self._bound(start, count, box, node, k)
        return start, count, box

    def _bound(self, start, count, box, node, part) -> None:
        """Computes the boxes of parts."""
        if len(node):
            place, at = _places(start[node, part], count[node, part])
            own = self.box[:, self.order[0, place]]
            box[node, part, :3] = np.minimum.reduceat(own[:3], at, axis=1).T
            box[node, part, 3:] = np.maximum.reduceat(own[3:], at, axis=1).T

    def _split(self, start, count, halved):
        """Divides each part in two; returns the numbers of triangles in the first."""
        place, at = _places(start, count)
        own, part = self.order[:, place], np.repeat(np.arange(len(count)), count)
        rank = np.arange(len(part)) - at[part]
        axis, number = self._best(own, at, part, rank, count)
        if halved:
            number = count // 2
        is_first = np.zeros(self.order.shape[1], bool)
        is_first[own[axis[part], np.arange(len(part))]] = rank < number[part]
        for k in range(3):
            first = is_first[own[k]]
            before = np.cumsum(first) - first
            before -= before[at][part]
            self.order[k, start[part] + np.where(first, before, number[part] + rank - before)] = own[k]
        return number

    def _best(self, own, at, part, rank, count):
        """Returns (axis, number of triangles in the first half) of the split of each part with the fewest tests."""
        bins = np.minimum(count, BINS)
        key = part * BINS + rank * bins[part] // count[part]
        number = np.bincount(key, minlength=len(at) * BINS)
        filled = np.flatnonzero(number)
        starts = (np.cumsum(number) - number)[filled]
        number = number.reshape(-1, BINS)
        below = np.cumsum(number, axis=1)[:, :-1]
        above = count[:, None] - below
        groups = -(-below // GROUP), -(-above // GROUP)
        cost = []
        for axis in range(3):
            box, bounds = self.box[:, own[axis]], np.full((6, len(at) * BINS), np.inf, np.float32)
            bounds[3:] = -np.inf
            bounds[:3, filled] = np.minimum.reduceat(box[:3], starts, axis=1)
            bounds[3:, filled] = np.maximum.reduceat(box[3:], starts, axis=1)
            bounds = bounds.reshape(6, -1, BINS)
            rest = _area(_accumulated(bounds[:, :, ::-1]))[:, -2::-1]
            cost.append(_area(_accumulated(bounds))[:, :-1] * groups[0] + rest * groups[1])
        cost = np.where(above > 0, np.stack(cost, axis=1).transpose(1, 0, 2), np.inf).transpose(1, 0, 2)
        best = np.argmin(cost.reshape(len(at), -1), axis=1)
        axis, last = best // (BINS - 1), best % (BINS - 1)
        return axis, below[np.arange(len(at)), last]


def triangle_corners(mj: mujoco.MjModel, mesh: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Returns (n, 9) corners of triangles, numbered within their meshes; checks the indices of vertices."""
    face = mj.mesh_face[mj.mesh_faceadr[mesh] + triangle]
    wrong = (face < 0) | (face >= mj.mesh_vertnum[mesh][:, None])
    if wrong.any():
        i = int(np.flatnonzero(wrong.any(1))[0])
        raise ModelError(
            f"mesh_face: got {face[i]} in triangle {triangle[i]} of mesh {mesh[i]}, allowed are vertices of this mesh"
        )
    return mj.mesh_vert[mj.mesh_vertadr[mesh][:, None] + face].reshape(-1, 9)


def _places(start: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (places of all triangles of several parts, starts of the parts among these)."""
    at = np.cumsum(count) - count
    return np.repeat(start - at, count) + np.arange(count.sum()), at


def _accumulated(bounds: np.ndarray) -> np.ndarray:
    """Returns the boxes around the first 1, 2, ... of boxes (6, k, n)."""
    return np.concatenate([np.minimum.accumulate(bounds[:3], axis=2), np.maximum.accumulate(bounds[3:], axis=2)])


def _area(box: np.ndarray) -> np.ndarray:
    """Returns half the surface areas of boxes (6, ...); 0 for empty ones."""
    x, y, z = np.where(box[:3] <= box[3:], box[3:] - box[:3], 0.0)
    return x * y + y * z + z * x
