"""The contact model lcp, and standalone boxed LCPs, for the recorded bits of `bits_scenes.py`."""

from __future__ import annotations

import functools
import zlib

import numpy as np

import featherlane as fl
from bits.features import give, spoil
from bits.hashes import Outcome, Scene
from bits.models import BELTS, CHAIN, SPECIAL, heap, shapes, tree
from bits.motion import FEW, Motion, loading, symmetric
from scenes.lcp import SCENE

SOLVERS = {
    "dantzig": {"lcp_friction": "frozen"},
    "dantzig consistent": {"lcp_solver": "dantzig", "lcp_friction": "consistent"},
    "pgs": {"lcp_solver": "pgs", "lcp_iterations": 30, "lcp_relaxation": 1.2},
    "pgs cone": {"lcp_solver": "pgs", "lcp_iterations": 30, "lcp_cone": "cone"},
    "apgd": {"lcp_solver": "apgd", "lcp_iterations": 30},
    "apgd cone": {"lcp_solver": "apgd", "lcp_iterations": 30, "lcp_cone": "cone"},
}
OPTIONS = {
    "softness solref": {"softness": "solref"},
    "rigid": {"cfm": 0.0, "erp": 0.8, "contact_max_vel": 0.5, "contact_min_depth": 0.001},
    "gyroscopic implicit": {"gyroscopic": "implicit"},
    "gyroscopic off": {"gyroscopic": "off"},
    "rotation infinitesimal": {"rotation": "infinitesimal"},
}
BODIES = """
<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="9 9 1"/>
  <body name="a" pos="0 0 .3"><freejoint/><geom size=".1" mass="1"/></body>
  <body name="b" pos="1 0 .3" euler="10 0 40"><freejoint/><geom size=".2" mass="2"/></body>
  <body name="c" pos="1 1 .3" euler="0 50 0"><freejoint/><geom type="box" size=".1 .2 .1" mass="3"/></body>
  <body name="d" pos="1 1 1"><freejoint/><geom size=".2" mass="1"/></body>
  <body name="e" pos="0 1 1" euler="0 0 70"><freejoint/><geom size=".2" mass="2"/></body>
  <body name="l" pos="2 0 1"><joint axis="0 1 0"/><joint axis="1 0 1" pos="0 .1 0"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/></body>
</worldbody></mujoco>
"""
LINKS = (
    fl.Link("ball", "a", "b", anchor=(0.4, 0.1, 0.3)),
    fl.Link("hinge", "b", "c", anchor=(1, 0.5, 0.3), axis=(1, 2, 2), motor_vel=1.0, motor_force=2.0),
    fl.Link("slider", "c", "d", axis=(0, 0.6, 0.8), range=(-0.02, 0.02), stop_bounce=0.5, motor_vel=1, motor_force=9),
    fl.Link("hinge", "l", "b", anchor=(2, 0, 1), axis=(0, 1, 0), range=(-0.1, 0.2), cfm=1e-4, erp=0.3),
    fl.Link("fixed", "e", "d"),
    fl.Link("ball", "e", anchor=(0, 1, 1.2)),
)


# ---- motions ---------------------------------------------------------------------------------------------------------
def under_lcp(source, links=(), **options):
    """Returns a loader of a model under the contact model lcp."""
    return loading(source, links, integrator="euler", noslip_iterations=0, contact_model="lcp", **options)


def with_surfaces() -> fl.Model:
    """Returns a model with restitution, slip, friction by force, softness of each geom; motors and stops of joints."""
    model = under_lcp(SCENE)()
    for name, values in {
        "geom_erp": (-1.0, 0.4, 0.6),
        "geom_cfm": (-1.0, 1e-4, 1e-3),
        "geom_restitution": (0.5, 0.0, 0.2),
        "geom_restitution_vel": (0.0, 0.1, 0.3),
        "geom_frictionforce": (0, 1, 0),
        "jnt_motor_vel": (1.0, -1.0, 0.0),
        "jnt_motor_force": (2.0, 0.0, 1.0),
        "jnt_stop_bounce": (0.3, 0.0, 0.5),
        "jnt_stop_erp": (-1.0, 0.1, 0.3),
    }.items():
        field = getattr(model, name)
        field[:] = np.resize(values, len(field))
    model.geom_slip[::2] = 0.1, 0.2
    return model


def motions() -> dict[str, Motion]:
    """Returns motions under the contact model lcp."""
    out = {}
    for solver, options in SOLVERS.items():
        out[f"lcp {solver}"] = Motion(under_lcp(SCENE, **options), 20, position=0.05)
        out[f"lcp {solver}, heap"] = Motion(under_lcp(heap(), **options), 15, position=0.03)
        for name in ("humanoid", "hand", "slider_crank"):
            out[f"lcp {solver}, {name}"] = Motion(under_lcp(name, **options), 20, position=0.1, drop=0.5)
        for name in ("box_stack", "pile"):
            few = Motion(under_lcp(name, **options), 4, position=0.005, velocity=0.3, worlds=FEW)
            out[f"lcp {solver}, {name}"] = few
    for option, values in OPTIONS.items():
        out[f"lcp {option}"] = Motion(under_lcp(SCENE, **values), 15, position=0.05)
        out[f"lcp {option}, shapes"] = Motion(under_lcp(shapes("plane"), **values), 10, position=0.02, velocity=3.0)
    out["lcp box_stack, upright"] = Motion(under_lcp("box_stack"), 10, position=0.0, velocity=0.01, worlds=FEW)
    out["lcp surfaces"] = Motion(with_surfaces, 20, position=0.05)
    out["lcp belts"] = Motion(under_lcp(BELTS), 20, position=0.01)
    out["lcp long chain"] = Motion(under_lcp(CHAIN), 10, position=0.05)
    out["lcp long chain, bent"] = Motion(under_lcp(CHAIN), 5, position=0.5)
    out["lcp given contacts"] = Motion(under_lcp(heap()), 20, position=0.03, user=give, given=4)
    out["lcp spoiled"] = Motion(under_lcp(heap()), 8, position=0.03, user=spoil)
    out["lcp special"] = Motion(under_lcp(SPECIAL), 15, position=0.01)
    out["lcp tree"] = Motion(under_lcp(tree(1)), 15)
    out["lcp without warm start"] = Motion(under_lcp(heap(flag='warmstart="disable"')), 10, position=0.03)
    for solver in ("dantzig", "pgs", "apgd"):
        linked = under_lcp(BODIES, LINKS, **SOLVERS[solver])
        out[f"lcp links, {solver}"] = Motion(linked, 20, position=0.02)
    return out


# ---- standalone problems --------------------------------------------------------------------------------------------
METHODS = {
    "dantzig": ({}, {"friction": "consistent"}, {"start": "rows"}),
    "pgs": ({}, {"friction": "cone"}, {"order": "quickstep", "seed": 3}, {"relaxation": 1.3, "iterations": 20}),
    "apgd": ({}, {"friction": "cone", "iterations": 30}),
    "lemke": ({},),
}
COUNT = 11


def problem(rng, n: int, friction: bool) -> dict[str, np.ndarray]:
    """Returns a positive definite matrix of few digits, whose sums are exact in any order, and all kinds of bounds."""
    M = rng.integers(-4, 5, (n, n)) / 4.0
    found = {"A": M.T @ M + 0.5 * n * np.eye(n), "b": 3.0 * symmetric(rng, n), "lo": np.zeros(n)}
    found |= {"hi": np.full(n, np.inf), "findex": np.full(n, -1)}
    if friction:
        rows = np.arange(n) % 3 > 0
        found["findex"][rows] = np.arange(n)[rows] // 3 * 3
        found["hi"][rows] = 0.5
    else:
        found["lo"] = np.where(rng.random(n) < 0.5, 0.0, -rng.random(n))
        found["lo"][rng.random(n) < 0.2] = -np.inf
        found["hi"] = np.where(rng.random(n) < 0.5, np.inf, rng.random(n))
    return found


def drawn(name: str, n: int, count: int, method: str) -> list[dict[str, np.ndarray]]:
    """Returns problems of n rows, every other one with friction; for Lemke's method standard ones."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    found = [problem(rng, n, k % 2 == 0) for k in range(count)]
    if method == "lemke":
        found = [{"A": p["A"] + np.triu(p["A"], 1), "b": p["b"]} for p in found]
        found.append({"A": np.full((n, n), 2.0) + np.eye(n), "b": np.ones(n)})  # all rows tie
    return found


def solve(name: str, method: str, dtype: str) -> Outcome:
    """Solves problems of some sizes, one after the other, with every set of options."""
    inputs, outputs = {}, {}
    for n in (1, 6, 21, 60):
        for k, given in enumerate(drawn(f"{name} {n}", n, 4, method)):
            inputs |= {f"{n} {k} {field}": value for field, value in given.items()}
            for o, options in enumerate(METHODS[method]):
                found = fl.lcp.solve(**given, method=method, **options)
                outputs |= {f"{n} {k} {o} {field}": np.asarray(v) for field, v in vars(found).items()}
    return Outcome(inputs, outputs)


def solve_together(name: str, method: str, dtype: str) -> Outcome:
    """Solves problems of one structure in lanes: with a matrix, and with its factors."""
    inputs, outputs = {}, {}
    for n in (6, 21, 63):
        given = drawn(f"{name} {n}", n, 2 * COUNT, method)[::2]
        A, b = (np.array([p[field] for p in given]) for field in ("A", "b"))
        shared = {field: given[0][field] for field in ("lo", "hi", "findex")}
        rng = np.random.default_rng(n)
        J, Minv = symmetric(rng, COUNT, n, n + 3), 0.5 + rng.random(n + 3)
        inputs |= {f"{n} A": A, f"{n} b": b, f"{n} J": J, f"{n} Minv": Minv}
        for o, options in enumerate(METHODS[method]):
            found = {"dense": fl.lcp.solve_batch(A, b, **shared, method=method, **options)}
            if method != "dantzig":
                factors = {"J": J, "Minv": Minv, "cfm": 0.1}
                found["factors"] = fl.lcp.solve_batch(None, b, **shared, **factors, method=method, **options)
            for form, solution in found.items():
                outputs |= {f"{n} {o} {form} {field}": np.asarray(v) for field, v in vars(solution).items()}
    return Outcome(inputs, outputs)


def problems() -> dict[str, Scene]:
    """Calls fl.lcp.solve with every method, and solve_batch with those that have it."""
    out = {}
    for method in METHODS:
        name = f"lcp.solve {method}"
        out[name] = Scene(functools.partial(solve, name, method), dtypes=("float64",))
        if method != "lemke":
            name = f"lcp.solve_batch {method}"
            out[name] = Scene(functools.partial(solve_together, name, method), dtypes=("float64",))
    assert set(METHODS) == set(fl.lcp.methods()), "a method of fl.lcp is in no scene"
    return out
