"""The scenes whose bits are recorded, by name; see `bits.py`."""

from __future__ import annotations

import itertools

import featherlane as fl
from bits import features, lcp, queries
from bits.models import GROUNDS, aligned, fast_bodies, heap, shapes, stones, tree
from bits.motion import FEW, Motion, loading

LARGE = {"chain", "pile", "pyramid", "stacks", "rope"}  # hundreds of dofs
INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
SOLVERS = ("Newton", "CG", "PGS")
CONES = ("pyramidal", "elliptic")
TREES = (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)  # the second one diverges immediately


def bundled(name: str) -> Motion:
    """Returns a bundled model, thrown so that it soon touches something."""
    if name in LARGE:
        return Motion(loading(name), 6, position=0.02, velocity=0.5, worlds=FEW)
    return Motion(loading(name), 40, position=0.1, drop=0.5 if name in ("humanoid", "quadruped") else 0.0)


def drawn(seed: int) -> Motion:
    """Returns a random forest, with the options in turn."""
    return Motion(loading(tree(seed, f'integrator="{INTEGRATORS[seed % 5]}" cone="{CONES[seed % 2]}"')), 25)


def swept() -> dict[str, Motion]:
    """Returns fast bodies with contacts within the step, under every contact model and with sleep."""
    out = {}
    for model in ("convex", "lcp", "coulomb"):
        out[f"speculative {model}"] = Motion(loading(fast_bodies(), contact_model=model), 6, velocity=80.0)
    out["speculative discrete"] = Motion(loading(fast_bodies(), integrator="discrete"), 6, velocity=80.0)
    out["speculative sleep"] = Motion(loading(fast_bodies('sleep="enable"')), 6, velocity=80.0)
    return out


def solved() -> dict[str, Motion]:
    """Returns a heap under every solver of the convex contact model."""
    out = {}
    for solver, cone in itertools.product(SOLVERS, CONES):
        name, option = f"heap {solver} {cone}", f'solver="{solver}" cone="{cone}" impratio="3"'
        out[name] = Motion(loading(heap(option)), 20, position=0.03)
        out[f"{name}, one island"] = Motion(loading(heap(option, 'island="disable"')), 10, position=0.03)
        out[f"{name}, noslip"] = Motion(loading(heap(option), noslip_iterations=5), 10, position=0.03)
    return out


def motions() -> dict[str, Motion]:
    """Returns every motion."""
    out = {name: bundled(name) for name in fl.bundled_names()}
    out |= {f"tree {seed}": drawn(seed) for seed in TREES}
    out |= {f"shapes on {g}": Motion(loading(shapes(g)), 30, position=0.02, velocity=0.3) for g in GROUNDS}
    out["stones"] = Motion(loading(stones()), 40, position=0.01)
    for integrator in INTEGRATORS:
        falling = loading("humanoid", integrator=integrator)
        out[f"humanoid {integrator}"] = Motion(falling, 20, position=0.1, drop=0.5)
        out[f"heap {integrator}"] = Motion(loading(heap(f'integrator="{integrator}"')), 20, position=0.03)
    for lying in (False, True):
        away = {"position": 0.0, "velocity": 0.1}
        out[f"aligned{' and lying' * lying}"] = Motion(loading(aligned(lying)), 5, **away, worlds=FEW)
    groups = (solved(), features.elements(), features.uses(), features.sleep(), lcp.motions(), swept())
    for group in groups:
        out |= group
    return out


MOTIONS = motions()
SCENES = {name: motion.scene(name) for name, motion in MOTIONS.items()} | lcp.problems() | queries.queries()
