"""Chains of dofs and the bodies of candidate pairs, against their definitions."""

import numpy as np

from featherlane.engine.model import load
from scenes import joints


def ancestors(model, dof):
    """Returns the dofs from `dof` to the root."""
    path = []
    while dof >= 0:
        path.append(dof)
        dof = model.dof_parentid[dof]
    return path


def test_chains_are_the_dofs_on_the_path_to_the_root():
    model = load(joints.XML)
    for dof in range(model.nv):
        start = model.chain_rowadr[dof]
        row = model.chain_colind[start : start + model.chain_rownnz[dof]]
        assert list(row) == ancestors(model, dof)[::-1]
    assert model.nchain == model.chain_rownnz.sum()


def test_the_last_dof_moves_its_body_and_no_later_one_does():
    model = load(joints.XML)
    for body in range(model.nbody):
        above = body
        while above and not model.body_dofnum[above]:
            above = model.body_parentid[above]
        own = np.flatnonzero(model.dof_bodyid == above) if above else [-1]
        assert model.body_lastdof[body] == max(own)


def test_colliding_geoms_equal_those_of_the_candidates():
    model = load(joints.XML)
    assert list(model.collide_geom) == sorted({*model.cand_geom1, *model.cand_geom2})


def test_a_model_without_dofs_has_empty_chains():
    model = load("<mujoco><worldbody><body><geom size='.1'/></body></worldbody></mujoco>")
    assert model.nchain == model.nv == model.ncollide == 0
    assert list(model.body_lastdof) == [-1, -1]


def test_rows_below_are_those_with_an_entry_in_the_column():
    model = load(joints.XML)
    for column in range(model.nv):
        rows = [
            i
            for i in range(column + 1, model.nv)
            if column in model.M_colind[model.M_rowadr[i] : model.M_rowadr[i] + model.M_rownnz[i]]
        ]
        assert rows == list(range(column + 1, column + 1 + model.M_below[column]))


def test_the_last_child_has_the_largest_number():
    model = load(joints.XML)
    for body in range(model.nbody):
        children = [i for i in range(1, model.nbody) if model.body_parentid[i] == body]
        assert model.body_lastchild[body] == max(children, default=-1)
