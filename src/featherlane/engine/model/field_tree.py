"""Converts MuJoCo's trees over triangles, for contacts with signed distance fields.

MuJoCo visits triangles in the order of its tree, and drops contacts that are close to earlier ones, so its contacts
depend on the tree.  Rays use faster trees (`triangle_tree`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.derived import derived
from featherlane.engine.model.pair import MESH_FIELD
from featherlane.engine.model.triangle_tree import GROUP, NO_CHILD, triangle_corners
from featherlane.errors import ModelError

if TYPE_CHECKING:
    import mujoco

ROUNDING = 1e-6  # of a mesh's size: MuJoCo computes boxes before rounding vertices to float32; they may be 1e-7 short
_field = Declare()


@derived(
    size("nfieldnode", "nodes of MuJoCo's trees of all meshes, if one may touch a signed distance field"),
    size("nfieldgroup", "groups of triangles of these trees"),
    _field.int("fieldnode_adr", "nmesh", "1", "root of MuJoCo's tree of the mesh, -1: none"),
    _field.int("fieldnode_child", "nfieldnode 8", "1", "children: a node, or -1 - a group of triangles; else none"),
    _field.scalar("fieldnode_box", "nfieldnode 6 8", "m", "lower and upper corner of the children's boxes"),
    _field.scalar("fieldgroup_vert", "nfieldgroup 9 8", "m", "corners of eight triangles"),
    _field.int("fieldgroup_face", "nfieldgroup 8", "1", "row of mesh_face of each triangle, -1: none"),
)
def field_trees(mj: mujoco.MjModel, pairs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Converts MuJoCo's trees to eight children a node, if a mesh may touch a signed distance field; else none exist.

    Three levels of MuJoCo's binary tree become one; a part of it with at most eight triangles becomes a group.
    Source: MuJoCo's `mesh_bvhadr`, `bvh_child`, `bvh_nodeid`, `bvh_aabb` (centre and half sides there).
    """
    number = mj.mesh_bvhnum * (pairs["cand_function"] == MESH_FIELD).any()
    trees = [slice(a, a + n) for a, n in zip(mj.mesh_bvhadr, number, strict=True)]
    rows = np.concatenate([np.arange(t.start, t.stop) for t in trees]) if trees else np.zeros(0, int)
    roots = np.cumsum(number) - number
    child = np.where(mj.bvh_child[rows] < 0, -1, mj.bvh_child[rows] + np.repeat(roots, number)[:, None])
    mesh = np.repeat(np.arange(mj.nmesh), number)
    leaf = mj.bvh_nodeid[rows] >= 0
    # number of triangles below each node, and of those before it
    count, depth = leaf.astype(int), mj.bvh_depth[rows]
    for level in range(depth.max(initial=0), -1, -1):
        inner = np.flatnonzero((depth == level) & ~leaf)
        count[inner] = count[child[inner]].sum(1)
    count, before = np.append(count, 0), np.cumsum(leaf) - leaf
    if (before[child[~leaf, 1]] != before[child[~leaf, 0]] + count[child[~leaf, 0]]).any():
        raise ModelError("bvh_child: the nodes of a mesh's tree are not listed in depth-first order")
    corners = triangle_corners(mj, mesh[leaf], mj.bvh_nodeid[rows][leaf])
    children, groups, links, opened = [], [], [], roots[number > 0]
    nnode, ngroup = len(opened), 0
    while len(opened):
        at = opened[:, None]
        for _ in range(3):
            splits = (count[at] > GROUP) & (at >= 0)
            at = np.stack([np.where(splits, child[at, 0], at), np.where(splits, child[at, 1], -1)], -1)
            at = at.reshape(len(opened), -1)
        is_node, is_group = (at >= 0) & (count[at] > GROUP), (at >= 0) & (count[at] <= GROUP)
        link = np.full(at.shape, NO_CHILD)
        link[is_node] = nnode + np.arange(is_node.sum())
        link[is_group] = -1 - (ngroup + np.arange(is_group.sum()))
        children.append(at)
        links.append(link)
        groups.append(at[is_group])
        nnode, ngroup, opened = nnode + int(is_node.sum()), ngroup + int(is_group.sum()), at[is_node]
    at, of_group = np.concatenate([*children, np.zeros((0, 8), int)]), np.concatenate([*groups, np.zeros(0, int)])
    largest = [np.abs(mj.bvh_aabb[t]).sum(axis=1).max(initial=0.0) for t in trees]
    half = mj.bvh_aabb[rows, 3:] + ROUNDING * np.repeat(np.asarray(largest, float), number)[:, None]
    box = np.concatenate([mj.bvh_aabb[rows, :3] - half, mj.bvh_aabb[rows, :3] + half], axis=1)
    k = np.arange(GROUP)
    present = k < count[of_group][:, None]
    slot = np.where(present, before[of_group][:, None] + k, 0)
    vert = corners[slot] * present[..., None]
    face = (mj.mesh_faceadr[mesh] + mj.bvh_nodeid[rows])[leaf][slot]
    return {
        "fieldnode_adr": np.where(number > 0, np.cumsum(number > 0) - 1, -1),
        "fieldnode_child": np.concatenate([*links, np.zeros((0, 8), int)]),
        "fieldnode_box": np.where((at >= 0)[..., None], box[at], 0.0).transpose(0, 2, 1) if len(at) else box[:0],
        "fieldgroup_vert": vert.transpose(0, 2, 1),
        "fieldgroup_face": np.where(present, face, -1),
    }
