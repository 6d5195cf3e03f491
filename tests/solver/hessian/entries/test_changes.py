"""Groups of bodies whose rows have not switched keep their entries and their factor, bit by bit."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian import capacity
from featherlane.engine.solver.hessian.choice import select_factorization
from featherlane.engine.solver.hessian.entries.changes import find_changes
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS
from featherlane.engine.solver.hessian.equation import assemble_hessian, solve_first
from oracles.uncompiled import call, records

STACKS, HIGH = 3, 3


def stacks(cone, condim):
    """Returns stacks of bodies with a hinge and a limit each; the bodies of a stack are pressed into each other."""
    bodies = "".join(
        f'<body pos="{x} {0.01 * z} {0.095 + 0.19 * z}"><freejoint/><geom size="0.1"/><body pos="0.1 0 0">'
        '<joint axis="0 1 0" range="-0.5 0.01" frictionloss="0.1"/><geom size="0.03"/></body></body>'
        for x in range(STACKS)
        for z in range(HIGH)
    )
    return f"""<mujoco><option cone="{cone}"/><default><geom condim="{condim}" friction="0.6 0.02 0.01"/></default>
      <worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>"""


class Tile:
    """A tile of stacks at the rows of the solver's solution, and solutions of H x = f by assembly and factor."""

    def __init__(self, cone, condim, width):
        self.ws = Workspace(fl.load(stacks(cone, condim)), width)
        rng = np.random.default_rng(0)
        self.a, self.m = self.ws.arrays, self.ws.model
        self.a["qvel"][...] = rng.uniform(-0.3, 0.3, self.a["qvel"].shape)
        self.ws.run(forward)
        self.records = records(self.ws)
        call(select_factorization, *self.records)
        self.a["primal.live"][...] = 1.0
        self.f = rng.normal(size=self.a["primal.search"].shape)
        assert self.a["hessian.pattern"][0] == BLOCKS

    def solution(self):
        """Returns the solution and the factor."""
        self.a["primal.search"][...] = self.f
        call(assemble_hessian, *self.records)
        call(solve_first, *self.records)
        return [self.a[name].copy() for name in ("primal.search", "hessian.H", "hessian.dinv")]

    def changed_groups(self):
        groups = np.unique(self.a["hessian.group"])
        return [g for g in groups if self.a["hessian.changed"][g]] if self.a["hessian.partial"][0] else [*groups]

    def assert_same_as_from_scratch(self):
        kept = self.solution()
        changed = self.changed_groups()
        self.a["hessian.assembled"][...] = 0.0
        for one, other in zip(kept, self.solution(), strict=True):
            assert np.array_equal(one, other)
        return changed

    def release(self, body, worlds=slice(None)):
        """Lets the contacts of a body separate in some worlds."""
        n, y = int(self.a["ncon_slot"][0]), self.a["primal.con_y"].reshape(2, -1, 3, self.ws.width)
        slots = [k for k in range(n) if body in self.a["con_body"][2 * k : 2 * k + 2]]
        assert slots
        for k in slots:
            y[:, k, :, worlds] = 0.0  # along the normal and tangents, and about the rotation axes
            y[0, k, 0, worlds] = 1.0


@pytest.fixture(autouse=True)
def only_block_rows(monkeypatch):
    """Leaves no capacity for rows closed under paths, which such a small scene would use."""
    monkeypatch.setattr(capacity, "PATH_DOFS", 0)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_only_the_group_of_a_switched_contact_is_computed(cone, condim, width):
    tile = Tile(cone, condim, width)
    first, *_ = tile.solution()
    assert len(tile.changed_groups()) == STACKS
    if condim < 4:  # rotation axes that push count as changed
        assert tile.assert_same_as_from_scratch() == []
    tile.solution()
    tile.release(body=1, worlds=slice(0, 1))
    changed = tile.assert_same_as_from_scratch()
    assert len(changed) == (1 if condim < 4 else STACKS)
    assert not np.array_equal(tile.solution()[0], first)


def test_a_search_for_changes_makes_the_factor_invalid():
    tile = Tile("pyramidal", 3, 1)
    tile.solution()
    call(find_changes, *tile.records)
    assert tile.a["hessian.partial"][0] == 1 and not tile.a["hessian.changed"].any()
    call(find_changes, *tile.records)
    assert tile.a["hessian.partial"][0] == 0


@pytest.mark.parametrize("width", [1, 8])
def test_only_the_group_of_a_switched_row_is_computed(width):
    tile = Tile("pyramidal", 3, width)
    tile.solution()
    rows = range(int(tile.a["nrow"][0]))
    k = next(k for k in rows if tile.m.dof_treeid[tile.a["row_dof"][k]] == HIGH)  # of the second stack
    lo, hi = tile.a["row_lo"][k], tile.a["row_hi"][k]
    force = -tile.a["row_D"][k] * tile.a["primal.row_x"][k]
    bound = (force <= lo) | (force >= hi)
    assert bound.any() or (force > lo).any()
    tile.a["primal.row_x"][k] = np.where(bound, 0.0, 1e9)  # a bounded row becomes free, a free one bounded
    (changed,) = tile.assert_same_as_from_scratch()
    assert changed == tile.a["hessian.group"][tile.m.dof_blockid[tile.a["row_dof"][k]]]


def test_a_world_that_the_solver_continues_again_has_no_factor():
    tile = Tile("pyramidal", 3, 8)
    tile.solution()
    tile.a["primal.live"][0, 3] = 0.0
    tile.solution()
    assert tile.a["hessian.partial"][0] == 1
    tile.a["primal.live"][0, 3] = 1.0
    tile.solution()
    assert tile.a["hessian.partial"][0] == 0


def test_another_step_computes_all_groups():
    tile = Tile("pyramidal", 3, 1)
    tile.solution()
    call(select_factorization, *tile.records)
    tile.solution()
    assert tile.a["hessian.partial"][0] == 0
