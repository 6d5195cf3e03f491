"""Parent arrays: the book's example, MuJoCo's array, the sets by definition, and bad input."""

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featherlane import tree
from scenes.parents import BRANCHED, parent_arrays, paths_to_base, random_inertia, related


def test_expansion_gives_the_book_s_array():
    # Featherstone, table 6.4: joint 2 has three dofs
    expanded = tree.expand_parents(tree.from_book((0, 1, 1, 2, 2, 3)), (1, 3, 1, 1, 1, 1))
    np.testing.assert_array_equal(expanded, (-1, 0, 1, 2, 0, 3, 3, 4))
    np.testing.assert_array_equal(tree.to_book(expanded), (0, 1, 2, 3, 1, 4, 4, 5))


def test_expansion_equals_mujoco_s_dof_parentid():
    model = mujoco.MjModel.from_xml_string(BRANCHED)
    expanded = tree.expand_parents(model.body_parentid[1:] - 1, model.body_dofnum[1:])
    np.testing.assert_array_equal(expanded, model.dof_parentid)


@given(parent_arrays())
def test_single_dof_joints_expand_to_themselves(parents):
    np.testing.assert_array_equal(tree.expand_parents(parents, np.ones(parents.size, int)), parents)
    np.testing.assert_array_equal(tree.from_book(tree.to_book(parents)), parents)


@given(parent_arrays(), st.data())
def test_expanded_depth_is_the_number_of_dofs_on_the_path(parents, data):
    dofs = np.array([data.draw(st.integers(0, 3)) for _ in parents], dtype=int)
    depths = tree.depth(tree.expand_parents(parents, dofs))
    # the last dof of a joint is as deep as all dofs on its body's path
    expected = [sum(dofs[j] for j in path) for i, path in enumerate(paths_to_base(parents)) if dofs[i]]
    last = (np.cumsum(dofs) - 1)[dofs > 0]
    np.testing.assert_array_equal(depths[last], expected)


@given(parent_arrays())
def test_sets_and_pattern_equal_their_definition(parents):
    paths = paths_to_base(parents)
    beyond = [[j for j, path in enumerate(paths) if i in path] for i in range(parents.size)]
    assert [path.tolist() for path in tree.support(parents)] == [sorted(path) for path in paths]
    assert [nu.tolist() for nu in tree.subtree(parents)] == beyond
    np.testing.assert_array_equal(tree.depth(parents), [len(path) for path in paths])
    np.testing.assert_array_equal(tree.sparsity(parents), related(parents))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tree.check_parents([-1, 0, 5]), r"parents\[2\] is 5, allowed is -1 \(root\) or 0 to 1"),
        (lambda: tree.check_parents([-1, -2]), r"parents\[1\] is -2"),
        (lambda: tree.check_parents([0]), r"parents\[0\] is 0"),
        (lambda: tree.check_parents([[-1]]), "parents has shape"),
        (lambda: tree.check_parents([-1.0]), "parents has dtype"),
        (lambda: tree.from_book([0, 2]), "parent of 2 is 2"),
        (lambda: tree.from_book([-1]), r"parent of 1 is -1"),
        (lambda: tree.expand_parents([-1, 0], [1]), "dofs has 1 entries"),
        (lambda: tree.expand_parents([-1, 0], [1, -3]), r"dofs\[1\] is -3"),
    ],
)
def test_invalid_arrays_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_check_parents_returns_a_copy():
    given_array = np.array([-1, 0], dtype=np.intp)
    assert not np.shares_memory(tree.check_parents(given_array), given_array)


def test_check_sparsity_names_the_entry():
    parents = np.array([-1, 0, 0])
    H = random_inertia(parents, 0)
    tree.check_sparsity(H, parents)
    tree.check_sparsity(np.zeros((0, 0)), [])
    off = H.copy()
    off[2, 1] = off[1, 2] = 0.5
    with pytest.raises(ValueError, match=r"H\[1, 2\]"):
        tree.check_sparsity(off, parents)
    skew = np.stack([H, H])
    skew[1, 0, 1] += 1.0
    with pytest.raises(ValueError, match=r"H\[1, 0, 1\]"):
        tree.check_sparsity(skew, parents)
    with pytest.raises(ValueError, match=r"H\[0, 0\]"):
        tree.check_sparsity(H * np.nan, parents)
