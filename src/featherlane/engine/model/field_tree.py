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
    node_number = mj.mesh_bvhnum * (pairs["cand_function"] == MESH_FIELD).any()  # nodes of each mesh's binary tree
    trees = [slice(a, a + n) for a, n in zip(mj.mesh_bvhadr, node_number, strict=True)]
    # the nodes of these trees, one tree after the other: `rows` are their rows of mj.bvh_*, `child` their children
    rows = np.concatenate([np.arange(t.start, t.stop) for t in trees]) if trees else np.zeros(0, int)
    roots = np.cumsum(node_number) - node_number
    child = np.where(mj.bvh_child[rows] < 0, -1, mj.bvh_child[rows] + np.repeat(roots, node_number)[:, None])
    mesh = np.repeat(np.arange(mj.nmesh), node_number)
    leaf = mj.bvh_nodeid[rows] >= 0  # a leaf holds one triangle
    count = _triangles_below(child, leaf, mj.bvh_depth[rows])
    before = np.cumsum(leaf) - leaf  # triangles of the nodes before
    if (before[child[~leaf, 1]] != before[child[~leaf, 0]] + count[child[~leaf, 0]]).any():
        raise ModelError("bvh_child: the nodes of a mesh's tree are not listed in depth-first order")

    nodes, links, groups = _wide_tree(child, count, roots[node_number > 0])

    # boxes: MuJoCo's, enlarged by the rounding of the largest one of their tree
    largest = [np.abs(mj.bvh_aabb[t]).sum(axis=1).max(initial=0.0) for t in trees]
    half = mj.bvh_aabb[rows, 3:] + ROUNDING * np.repeat(np.asarray(largest, float), node_number)[:, None]
    box = np.concatenate([mj.bvh_aabb[rows, :3] - half, mj.bvh_aabb[rows, :3] + half], axis=1)
    # in depth-first order, the triangles of a group are consecutive leaves
    k = np.arange(GROUP)
    present = k < count[groups][:, None]
    triangle = np.where(present, before[groups][:, None] + k, 0)
    corners = triangle_corners(mj, mesh[leaf], mj.bvh_nodeid[rows][leaf])[triangle] * present[..., None]
    face = (mj.mesh_faceadr[mesh] + mj.bvh_nodeid[rows])[leaf][triangle]
    return {
        "fieldnode_adr": np.where(node_number > 0, np.cumsum(node_number > 0) - 1, -1),
        "fieldnode_child": links,
        "fieldnode_box": (
            np.where((nodes >= 0)[..., None], box[nodes], 0.0).transpose(0, 2, 1) if len(nodes) else box[:0]
        ),
        "fieldgroup_vert": corners.transpose(0, 2, 1),
        "fieldgroup_face": np.where(present, face, -1),
    }


def _triangles_below(child: np.ndarray, leaf: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Returns the number of triangles below each node of binary trees, and one more entry, 0, for the child -1."""
    count = leaf.astype(int)
    for level in range(depth.max(initial=0), -1, -1):
        inner = np.flatnonzero((depth == level) & ~leaf)
        count[inner] = count[child[inner]].sum(1)
    return np.append(count, 0)


def _wide_tree(child: np.ndarray, count: np.ndarray, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merges three levels of binary trees into one, level by level.

    Args:
        child: (n, 2) children of each binary node, -1: none.
        count: triangles below each binary node.
        roots: binary nodes that become the first nodes.

    Returns:
        The binary nodes that are the eight children of each node (-1: none), the fields `fieldnode_child` of these
        children, and the binary node of each group of triangles.
    """
    nodes, links, groups = [], [], []
    opened = roots  # binary nodes that become nodes in this round
    nnode, ngroup = len(roots), 0
    while len(opened):
        # a binary node with at most eight triangles is not split further
        parts = opened[:, None]
        for _ in range(3):
            splits = (count[parts] > GROUP) & (parts >= 0)
            parts = np.stack([np.where(splits, child[parts, 0], parts), np.where(splits, child[parts, 1], -1)], -1)
            parts = parts.reshape(len(opened), -1)
        is_node, is_group = (parts >= 0) & (count[parts] > GROUP), (parts >= 0) & (count[parts] <= GROUP)
        link = np.full(parts.shape, NO_CHILD)
        link[is_node] = nnode + np.arange(is_node.sum())
        link[is_group] = -1 - (ngroup + np.arange(is_group.sum()))
        nodes.append(parts)
        links.append(link)
        groups.append(parts[is_group])
        nnode, ngroup = nnode + int(is_node.sum()), ngroup + int(is_group.sum())
        opened = parts[is_node]
    none = np.zeros((0, 8), int)
    return np.concatenate([*nodes, none]), np.concatenate([*links, none]), np.concatenate([*groups, none[:, 0]])
