"""Builds trees of boxes over the triangles of meshes, for rays.

A node has up to eight children: other nodes, or groups of up to eight triangles.  Nodes are split where the surface
area heuristic estimates the fewest tests: a ray that hits a box hits a box in it with the ratio of their areas.
All meshes are built at once: each step splits one part of each node that is being built.
A large mesh is first divided into clusters, the cells of a Morton curve.  The upper levels of its tree split sets of
whole clusters, the lower levels the triangles of one cluster.
Source: Wald, On fast construction of SAH-based bounding volume hierarchies (2007): bins along each axis.
    Pantaleoni and Luebke, HLBVH: hierarchical LBVH construction for real-time ray tracing (2010): clusters.
Deviation: bins have equal numbers of triangles, not equal widths.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.derived import derived
from featherlane.errors import ModelError

if TYPE_CHECKING:
    import mujoco

GROUP, NO_CHILD = 8, 1 << 30  # children of a node of a tree; no child
BINS = 16  # equal parts of the sorted triangles, between which they can be split
HALVED = 8  # from this level on, the largest parts are halved, which limits a tree's depth
CLUSTER = 1 << 16  # most triangles of a cluster
CELL_BITS = 16  # of the number of a cell along each axis
SPREAD = 0x00FF0000FF0000FF, 0xF00F00F00F00F00F, 0x30C30C30C30C30C3, 0x9249249249249249  # every third bit, in 4 steps
BLOCK = 1 << 16  # triangles whose nodes are split at once, so that their arrays stay in a core's cache
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
    part, level = triangles.meshes(mj), 0
    while len(part.start):
        opened = []
        for block in part.blocks():
            parts = triangles.divide(block, level >= HALVED)
            is_node = parts.is_large()
            is_group = ~is_node & (parts.count > 0)
            child = np.full(is_node.shape, NO_CHILD)
            child[is_node] = nnode + np.arange(is_node.sum())
            child[is_group] = -1 - (ngroup + np.arange(is_group.sum()))
            children.append(child)
            boxes.append(parts.box[..., :6])
            groups.append(triangles.members(parts.start[is_group], parts.count[is_group]))
            opened.append(parts.where(is_node))
            nnode, ngroup = nnode + int(is_node.sum()), ngroup + int(is_group.sum())
        part, level = Parts(*(np.concatenate(values) for values in zip(*opened, strict=True))), level + 1
    face = np.concatenate([*groups, np.zeros((0, GROUP), int)])
    box = np.concatenate([*boxes, np.zeros((0, GROUP, 6))]) * np.repeat([1.0, -1.0], 3)
    box += MARGIN * np.abs(box).sum(axis=2, keepdims=True) * np.repeat([-1.0, 1.0], 3)
    vert = np.empty((len(face), 9, GROUP))
    for k in range(9):
        vert[:, k] = triangles.corners[k].take(face)
    return {
        "meshnode_adr": np.arange(mj.nmesh),
        "meshnode_child": np.concatenate([*children, np.zeros((0, GROUP), int)]),
        "meshnode_box": box.transpose(0, 2, 1),
        "trianglegroup_vert": vert,
        "trianglegroup_face": np.where(face >= 0, triangles.face[face], -1),
    }


class Parts(NamedTuple):
    """Holds parts of trees: sets of triangles, or of whole clusters.

    Attributes:
        start, count: place of the first item in the order of triangles (of clusters), and the number of items.
        coarse: whether the items are clusters.
        box: (..., 8) lower corner, negative upper corner [m], two zeros.
    """

    start: np.ndarray
    count: np.ndarray
    coarse: np.ndarray
    box: np.ndarray

    def where(self, chosen) -> Parts:
        """Returns the chosen parts."""
        return Parts(*(values[chosen] for values in self))

    def is_large(self) -> np.ndarray:
        """Returns whether a part is more than a group of triangles."""
        return self.coarse | (self.count > GROUP)

    def blocks(self) -> list[Parts]:
        """Returns the parts in consecutive blocks of similar numbers of triangles; of coarse parts, those opened."""
        work = np.where(self.coarse, GROUP * CLUSTER, self.count)
        number = (np.cumsum(work) - work) // BLOCK
        edges = [0, *(np.flatnonzero(np.diff(number)) + 1), len(number)]
        return [self.where(slice(a, b)) for a, b in pairwise(edges)]


class Triangles:
    """Holds the triangles of all meshes.

    Attributes:
        face: (n,) their rows in mesh_face.  Triangles of a cluster are contiguous, as are clusters of a mesh.
        corners: (9, n + 1) corners [m], in float32 as those of an MjModel; the last ones are zero.
        adr: (m + 1,) first triangle of each cluster, and n.
        fine, coarse: orders of triangles and clusters.
    """

    def __init__(self, mj: mujoco.MjModel):
        mesh = np.repeat(np.arange(mj.nmesh), mj.mesh_facenum)
        corners = triangle_corners(mj, mesh, np.arange(len(mesh)) - mj.mesh_faceadr[mesh])
        box = _boxes(corners)
        self.face, adr = np.arange(len(mesh)), [np.zeros(0, int)]
        for first, number in zip(mj.mesh_faceadr, mj.mesh_facenum, strict=True):
            own = slice(first, first + number)
            order, starts = _clusters(box[own])
            self.face[own] = first + order
            adr.append(first + starts)
        self.adr = np.append(np.concatenate(adr), len(mesh)).astype(int)
        self.corners, box = np.zeros((9, len(mesh) + 1), np.float32), box.take(self.face, axis=0)
        self.corners[:, :-1] = corners.take(self.face, axis=0).T
        number = np.diff(self.adr)
        self.fine = Sorted(box, np.repeat(np.arange(len(number)), number))
        bounds = np.minimum.reduceat(box, self.adr[:-1]) if len(number) else box
        self.coarse = Sorted(bounds, mesh[self.adr[:-1]], number)

    def meshes(self, mj: mujoco.MjModel) -> Parts:
        """Returns a part for each mesh."""
        start = np.searchsorted(self.adr, mj.mesh_faceadr)
        count = np.searchsorted(self.adr, mj.mesh_faceadr + mj.mesh_facenum) - start
        box = np.zeros((mj.nmesh, 8), np.float32)
        for k in np.flatnonzero(count):
            box[k] = self.coarse.box[start[k] : start[k] + count[k]].min(axis=0)
        part = Parts(start, count, count > 0, box)
        self._open(part)
        return part

    def members(self, start, count):
        """Returns (n, 8): the triangles of each of n groups, -1 beyond its count."""
        k = np.arange(GROUP)
        place = np.minimum(start[:, None] + k, self.fine.order.shape[1] - 1)
        return np.where(k < count[:, None], self.fine.order[0, place], -1)

    def divide(self, part: Parts, halved) -> Parts:
        """Divides k parts into up to eight each; returns (k, 8) parts.

        Args:
            part: (k,) parts.
            halved: halve the largest parts, rather than split those with the largest area well.
        """
        parts = Parts(*(np.zeros((len(values), GROUP, *values.shape[1:]), values.dtype) for values in part))
        for values, first in zip(parts, part, strict=True):
            values[:, 0] = first
        for k in range(1, GROUP):
            worth = np.where(parts.coarse, CLUSTER, 1.0) * parts.count if halved else _area(parts.box).astype(float)
            worth[~parts.is_large()] = -1.0
            at = np.argmax(worth, axis=1)
            node = np.flatnonzero(worth[np.arange(len(at)), at] >= 0.0)
            if not len(node):
                break
            at = at[node]
            parts.coarse[node, k] = parts.coarse[node, at]
            for is_coarse, items in ((False, self.fine), (True, self.coarse)):
                own = parts.coarse[node, k] == is_coarse
                n, p = node[own], at[own]
                if len(n):
                    start, count = parts.start[n, p], parts.count[n, p]
                    first, parts.box[n, p], parts.box[n, k] = items.split(start, count, halved)
                    parts.count[n, p], parts.start[n, k], parts.count[n, k] = first, start + first, count - first
            self._open(parts)
        return parts

    def _open(self, part: Parts) -> None:
        """Replaces each part of one cluster by its triangles."""
        one = part.coarse & (part.count == 1)
        cluster = self.coarse.order[0, part.start[one]]
        part.start[one], part.count[one] = self.adr[cluster], self.adr[cluster + 1] - self.adr[cluster]
        part.coarse[one] = False


class Sorted:
    """Holds items with boxes, in orders in which each part of a tree is contiguous.

    Attributes:
        box: (n, 8) lower corner, negative upper corner [m], two zeros; a minimum is the box around several.
        weight: (n,) triangles in each item; None: one.
        order: (3, n) items by place, within a part sorted by the middles of their boxes along each axis.
    """

    def __init__(self, box: np.ndarray, part: np.ndarray, weight: np.ndarray | None = None):
        self.box, self.weight = box, weight
        # 32 bits of a number, in its order, before those of the item: unequal keys have one order
        bits = (box[:, :3] - box[:, 3:6] + np.float32(0.0)).T.copy().view(np.int32).astype(np.int64)
        key = (bits ^ (bits >> 31 & 0x7FFFFFFF)) << 32 | np.arange(len(box))
        for first, end in pairwise([0, *(np.flatnonzero(np.diff(part)) + 1), len(part)]):
            key[:, first:end].sort(axis=1)
        self.order = key & 0xFFFFFFFF
        self._is_first = np.zeros(len(box), bool)

    def split(self, start, count, halved):
        """Divides each part in two; returns the numbers of items in the first, and the boxes of both."""
        at, part = np.cumsum(count) - count, np.repeat(np.arange(len(count)), count)
        place = np.arange(len(part))
        rank = place - at[part]
        own = self.order.take(start[part] + rank, axis=1)
        axis, number, *boxes = self._best(own, at, count, halved)
        # all first halves, then all second ones, are contiguous lists in each order
        is_before = rank < number[part]
        self._is_first[own.ravel().take(axis[part] * len(part) + place)] = is_before
        is_first, place = self._is_first.take(own), start[part] + rank
        before, after = place[is_before], place[~is_before]
        for order, items, first in zip(self.order, own, is_first, strict=True):
            order[before], order[after] = items[first], items[~first]
        return number, *boxes

    def _best(self, own, at, count, halved):
        """Returns (axis, number of items in the first half, boxes of both) of the split with the fewest tests."""
        bins, parts = np.minimum(count, BINS), np.arange(len(count))
        edge = np.minimum(-(np.arange(BINS + 1)[:, None] * -count // bins), count)
        allowed = edge[1:-1] < count
        if halved:
            allowed &= np.arange(1, BINS)[:, None] == bins // 2
        start = np.minimum(at + edge[:-1], own.shape[1] - 1).T
        below = np.minimum.reduceat(self.box.take(own.T, axis=0), start.ravel(), axis=0).reshape(-1, BINS, 3, 8)
        below[(edge[:-1] == edge[1:]).T] = np.inf  # empty bins
        below = below.transpose(1, 0, 2, 3)
        above = below.copy()
        for k in range(1, BINS):
            np.minimum(below[k], below[k - 1], out=below[k])
            np.minimum(above[-1 - k], above[-k], out=above[-1 - k])
        load = (at + edge)[..., None]
        if self.weight is not None:
            load = np.pad(np.cumsum(self.weight[own.T], axis=0), ((1, 0), (0, 0)))[at + edge]
        groups = -((load[0] - load[1:-1]) // GROUP), -((load[1:-1] - load[-1]) // GROUP)
        cost = _area(below[:-1]) * groups[0] + _area(above[1:]) * groups[1]
        cost[~allowed] = np.inf
        axis, last = np.divmod(cost.transpose(1, 2, 0).reshape(len(count), -1).argmin(axis=1), BINS - 1)
        return axis, edge[last + 1, parts], below[last, parts, axis], above[last + 1, parts, axis]


def triangle_corners(mj: mujoco.MjModel, mesh: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Returns (n, 9) corners of triangles, numbered within their meshes; checks the indices of vertices."""
    face = mj.mesh_face.take(mj.mesh_faceadr[mesh] + triangle, axis=0)
    wrong = (face < 0) | (face >= mj.mesh_vertnum[mesh][:, None])
    if wrong.any():
        i = int(np.flatnonzero(wrong.any(1))[0])
        raise ModelError(
            f"mesh_face: got {face[i]} in triangle {triangle[i]} of mesh {mesh[i]}, allowed are vertices of this mesh"
        )
    return mj.mesh_vert.take(mj.mesh_vertadr[mesh][:, None] + face, axis=0).reshape(-1, 9)


def _boxes(corners: np.ndarray) -> np.ndarray:
    """Returns (n, 8) the boxes of triangles: lower corner, negative upper corner, two zeros."""
    box = np.zeros((len(corners), 8), np.float32)
    a, b, c = corners[:, :3], corners[:, 3:6], corners[:, 6:]
    box[:, :3] = np.minimum(np.minimum(a, b), c)
    box[:, 3:6] = -np.maximum(np.maximum(a, b), c)
    return box


def _area(box: np.ndarray) -> np.ndarray:
    """Returns half the surface areas of boxes (..., 8); 0 for empty ones."""
    x, y, z = (np.maximum(-box[..., 3 + k] - box[..., k], 0.0) for k in range(3))
    return x * y + y * z + z * x


def _clusters(box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divides the triangles of a mesh into clusters, the largest cells with at most CLUSTER triangles.

    Args:
        box: (n, 8) boxes of triangles.

    Returns:
        (n,) triangles, ordered by cluster, and (m,) places of the first one of each cluster.
    """
    if len(box) <= CLUSTER:
        return np.arange(len(box)), np.zeros(min(len(box), 1), int)
    middle = np.subtract(box[:, :3], box[:, 3:6], dtype=float)
    middle -= middle.min(axis=0)
    cell = (middle * (((1 << CELL_BITS) - 1) / (middle.max() or 1.0))).astype(np.uint64)
    # two zeros after each bit
    for shift, mask in zip((16, 8, 4, 2), SPREAD, strict=True):
        cell = (cell | cell << np.uint64(shift)) & np.uint64(mask)
    code = cell[:, 0] << np.uint64(2) | cell[:, 1] << np.uint64(1) | cell[:, 2]
    order = np.argsort(code, kind="stable")
    code, edge = code[order].astype(int), np.array([0, len(code)])
    for bit in range(3 * CELL_BITS - 1, -1, -1):
        first = edge[:-1][np.diff(edge) > CLUSTER]
        edge = np.union1d(edge, np.maximum(np.searchsorted(code, (code[first] >> bit | 1) << bit), first))
    # a smallest cell may have more
    starts = [np.arange(a, b, CLUSTER) for a, b in pairwise(edge)]
    return order, np.concatenate(starts)
