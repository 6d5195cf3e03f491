"""Queries of a state, for the bits of `bits_scenes.py`: rays, distances, inverse dynamics, derivatives."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable

import numpy as np

import featherlane as fl
from bits.features import ALL
from bits.hashes import Outcome, Scene, model_inputs
from bits.models import GROUNDS, MECHANISM, aligned, heap, shapes, tree
from bits.motion import WORLDS, Motion, start, symmetric
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.model.enums import Enable

# every kind of equality constraint, by bodies and by sites, and joints of every type
FASTENED = """
<mujoco><compiler angle="radian"/>
  <worldbody>
    <body name="base" pos="0 0 .2"><freejoint/><geom size=".1"/>
      <body name="upper" pos=".1 0 0"><joint name="j1" axis="0 1 0" ref=".1"/><geom size=".02"/>
        <body name="lower" pos=".3 0 0"><joint name="j2" axis="0 1 .3"/><joint name="s" type="slide" axis="1 0 0"/>
          <geom size=".02"/><site name="tip" pos=".2 0 .05"/></body></body>
      <body name="left" pos="0 .1 0"><joint name="ball" type="ball"/><geom size=".02"/>
        <body name="hand" pos=".2 0 0"><joint name="j3" axis="0 0 1"/><geom size=".02"/>
          <site name="palm" pos=".1 0 0" quat=".9 .1 .2 .3"/></body></body></body>
    <body name="tool" pos=".5 .2 .3"><freejoint/><geom size=".02"/><site name="grip" pos="0 0 .04"/></body>
    <body name="post"><site name="post" pos=".1 .5 .3"/></body>
  </worldbody>
  <tendon>
    <fixed name="sum"><joint joint="j1" coef="1"/><joint joint="j2" coef="-.5"/></fixed>
    <spatial name="cord"><site site="post"/><site site="palm"/></spatial>
    <spatial name="rope"><site site="tip"/><site site="grip"/></spatial>
  </tendon>
  <equality>
    <joint joint1="j2" joint2="j1" polycoef=".1 .7 -.4 .3 .2"/>
    <joint joint1="s" polycoef=".03 0 0 0 0"/>
    <connect body1="lower" body2="hand" anchor=".15 .05 0"/>
    <connect site1="tip" site2="grip"/>
    <weld body1="tool" body2="hand" relpose=".1 0 .1 .8 .2 .1 0" anchor=".02 0 0"/>
    <weld site1="palm" site2="post" torquescale=".5"/>
    <tendon tendon1="sum" polycoef=".2 0 0 0 0"/>
    <tendon tendon1="rope" tendon2="cord" polycoef=".01 .5 .2 0 0"/>
  </equality>
</mujoco>"""
DATA_ALONE = ("float64",)


def worlds(name: str, model: fl.Model, dtype: str, **kicks) -> fl.Batch:
    """Returns a batch whose worlds are displaced and moving."""
    rng, n = np.random.default_rng(zlib.crc32(name.encode())), WORLDS[dtype]
    batch = fl.Batch(model, n, nthread=1, dtype=dtype)
    starts = [start(model, Motion(fl.load, **kicks), rng) for _ in range(n)]
    for field in starts[0]:
        getattr(batch, field)[...] = [world[field] for world in starts]
    return batch


def query(ask: Callable) -> Callable:
    """Turns a function (batch, rng) -> arrays into a function that computes a scene from a model."""

    @functools.wraps(ask)
    def compute(name: str, xml: str, position: float, options: dict, dtype: str) -> Outcome:
        model = fl.load(resolve_name(xml))
        for option, value in options.items():
            setattr(model.opt, option, value)
        batch = worlds(name, model, dtype, position=position)
        batch.mute()
        return Outcome(model_inputs(model), ask(batch, np.random.default_rng(zlib.crc32(name.encode()))))

    return compute


@query
def rays(batch, rng):
    """Casts rays per world and for all worlds, of all lengths, some with a cutoff or an excluded body."""
    n = batch.nworld
    point, direction = 2.0 * symmetric(rng, n, 40, 3), symmetric(rng, n, 40, 3)
    point[..., 2] = 0.6 * rng.random((n, 40))
    found = batch.ray(point, direction)
    down = batch.ray(point[0] + (0, 0, 1), (0, 0, -1), flg_static=False, bodyexclude=2, cutoff=1.2)
    out = {f"own {k}": v for k, v in found._asdict().items()} | {f"down {k}": v for k, v in down._asdict().items()}
    data = batch.get_data(0)
    return out | {f"alone {k}": v for k, v in fl.query.ray(batch.model, data, point[0], direction[0])._asdict().items()}


@query
def distances(batch, rng):
    """Measures all pairs of geoms, near and far."""
    model = batch.model
    pairs = [p for p in itertools.combinations(range(model.ngeom), 2) if not (model.geom_type[list(p)] < 2).all()]
    first, second = np.array(pairs).T
    near = batch.geom_distance(first, second, 0.3)._asdict()
    far = batch.geom_distance(first[::7], second[::7])._asdict()
    alone = fl.query.geom_distance(model, batch.get_data(1), first, second, 0.3)._asdict()
    return {f"{what} {k}": v for what, v in (("near", near), ("far", far), ("alone", alone)) for k, v in v.items()}


@query
def jacobians(batch, rng):
    """Computes Jacobians of points of a body, of a body's frame and of a site, batched and alone."""
    point, body = symmetric(rng, batch.nworld, 3), batch.model.nbody - 1
    out = {"point": batch.jac(point, body), "body": batch.jac_body(body)}
    if batch.model.nsite:
        out["site"] = batch.jac_site(0)
    out["alone"] = fl.query.jac(batch.model, batch.get_data(1), point[1], body)
    return {f"{what} {part}": v for what, pair in out.items() for part, v in zip(("p", "r"), pair, strict=True)}


@query
def dynamics(batch, rng):
    """Computes Coriolis matrices, regressors and parameters of inertia, batched and alone; moves positions."""
    model, data, qacc = batch.model, batch.get_data(1), symmetric(rng, batch.nworld, batch.model.nv)
    out = {"C": batch.coriolis_matrix(), "Y": batch.torque_regressor(qacc), "parameters": batch.inertial_parameters()}
    out |= {"own C": fl.query.coriolis_matrix(model, data), "own Y": fl.query.torque_regressor(model, data, qacc[1])}
    moved = fl.integrate_pos(model, batch.qpos, qacc, 0.3)
    between = fl.differentiate_pos(model, 0.3, batch.qpos, 2.0 * moved)
    return out | {"moved": moved, "between": between, "unit": fl.normalize_quat(model, 2.0 * moved)}


@query
def inverse_kinematics(batch, rng):
    """Solves for poses, axes and postures from random positions, with restarts."""
    batch.qpos += 0.5 * symmetric(rng, batch.nworld, batch.model.nq)
    point = 0.5 * symmetric(rng, batch.nworld, 3) + (0.0, 0.0, 0.7)
    quat = symmetric(rng, batch.nworld, 4)
    goals = {
        "pose": (fl.IkTarget(("site", 0), position=point, orientation=quat), {"restarts": 2}),
        "axis": (fl.IkTarget(("site", 0), position=point, look_at=(1.0, 0.0, 0.5)), {"posture_weight": 0.05}),
    }
    results = {what: fl.ik(batch, target, **options)._asdict() for what, (target, options) in goals.items()}
    return {f"{what} {k}": v for what, found in results.items() for k, v in found.items()}


@query
def sensing(batch, rng):
    """Scans from a body, and computes rates, accelerations, matrices and contacts of each world."""
    body = batch.model.nbody - 1
    batch.step(5)
    down = batch.height_scan(body, fl.patterns.grid((0.5, 0.4)), cutoff=9.0)
    around = batch.scan(body, symmetric(rng, 100, 3), output=("distance", "geom", "normal"))
    out = {f"scan {k}": v for k, v in around._asdict().items() if v is not None} | {"height_scan": down}
    out["jac"], out["jac_dot"] = batch.jac([body, ("body", 1)], local=True)[0], batch.jac_dot([body])[1]
    out |= {"M": batch.full_m(), "momentum": batch.angular_momentum_matrix(0), "com": batch.jac_subtree_com(1)}
    out |= {
        name: getattr(batch, name)([("body", 1), ("body", body)]) for name in ("object_velocity", "object_acceleration")
    }
    found = batch.contacts(output=("force", "dist", "geom", "linvel"), num=12, reduce="mindist")._asdict()
    return out | {f"contact {k}": v for k, v in found.items() if v is not None}


@query
def inverse(batch, rng):
    """Computes inverse dynamics of given accelerations, and of those of forward dynamics after some steps."""
    batch.inverse(5.0 * symmetric(rng, batch.nworld, batch.model.nv))
    given = batch.qfrc_inverse.copy()
    batch.step(5)
    data = batch.get_data(0)
    fl.inverse(batch.model, data)
    batch.inverse()
    return {"given": given, "own": batch.qfrc_inverse, "alone": data.qfrc_inverse.copy()}


@query
def forward_and_inverse(batch, rng):
    """Measures the distance of both, one world at a time."""
    data = batch.get_data(0)
    fl.stages.compare_forward_inverse(batch.model, data)
    return {"solver_fwdinv": data.solver_fwdinv.copy()}


@query
def derivatives(batch, rng):
    """Computes derivatives of a step, of sensors and of inverse dynamics, by differences."""
    model = batch.model
    step = fl.linearize(model, batch, sensors=bool(model.nsensor), nthread=1, method="finite_difference")
    once = fl.linearize(model, batch, centered=False, nthread=1, method="finite_difference")
    force = fl.inverse_derivatives(model, batch, nthread=1, method="finite_difference")
    alone = fl.inverse_derivatives(model, batch.get_data(0), actuation=True, nthread=1, method="finite_difference")
    results = {"step": step, "once": once, "force": force, "alone": alone}
    parts = [(what, k, v) for what, r in results.items() for k, v in r._asdict().items()]
    return {f"{what} {k}": v for what, k, v in parts if isinstance(v, np.ndarray) and k != "switching"}


@query
def exact_derivatives(batch, rng):
    """Computes step and acceleration derivatives implicitly, batched and alone, after one and after more steps."""
    model, out = batch.model, {}
    for steps in (1, 20):
        batch.step(steps)
        results = {"step": fl.linearize(model, batch, nthread=1), "force": fl.acceleration_derivatives(model, batch)}
        results["alone"] = fl.linearize(model, batch.get_data(1), nthread=1)
        for what, r in results.items():
            out |= {f"{what} {steps} {k}": v for k, v in r._asdict().items() if isinstance(v, np.ndarray)}
    return out


STAGES = (
    "forward_position forward_velocity kinematics frames cameras com_pos tendon crb factor_m transmission collision "
    "com_vel passive rne subtree_vel actuation smooth_acceleration make_constraint solve rne_post_constraint energy "
    "aba actuator_vel passive_vel rne_vel smooth_vel forward_constraint islands"
).split()
WRITTEN = "cacc cfrc_int cfrc_ext qacc qfrc_constraint tree_island qDeriv".split()


@query
def stages(batch, rng):
    """Runs every stage alone, on one world; returns their output fields, and products with M."""
    model, data, out = batch.model, batch.get_data(0), {}
    for name in STAGES:
        getattr(fl.stages, name)(model, data)
        for field in (*ALL, *WRITTEN):
            out[f"{name} {field}"] = np.array(getattr(data, field)) if hasattr(data, field) else np.zeros(0)
    x = symmetric(rng, model.nv)
    out |= {"mul_m": fl.query.mul_m(model, data, x), "solve_m": fl.query.solve_m(model, data, x)}
    out["half_solve"] = fl.stages.half_solve(model, data, x)
    return out | {"rne_acc": fl.stages.rne(model, data, True), "full_m": fl.query.full_m(model, data)}


@query
def history(batch, rng):
    """Records each iteration of a solve."""
    data, model = batch.get_data(0), batch.model
    data.record_solver = True
    fl.forward(model, data)
    found = data.solver_history
    return {name: np.array(found[name]) for name in found.dtype.names}


def queries() -> dict[str, Scene]:
    """Returns scenes with queries."""
    out = {}

    def add(name, compute, xml, dtypes=("float64", "float32"), position=0.05, **options):
        out[name] = Scene(functools.partial(compute, name, xml, position, options), dtypes)

    for ground in GROUNDS:
        add(f"rays, {ground}", rays, shapes(ground))
        add(f"distances, {ground}", distances, shapes(ground))
    for lying in (False, True):
        add(f"distances, aligned{' and lying' * lying}", distances, aligned(lying), position=0.0)
    for name in ("arm", "humanoid"):
        add(f"jacobians, {name}", jacobians, name)
        add(f"dynamics, {name}", dynamics, name)
        add(f"inverse kinematics, {name}", inverse_kinematics, name)
    add("inverse kinematics, equalities", inverse_kinematics, FASTENED)
    for ground in GROUNDS:
        add(f"sensing, {ground}", sensing, shapes(ground))
    add("sensing, humanoid", sensing, "humanoid")
    for integrator in ("euler", "implicit", "implicitfast", "discrete"):
        add(f"inverse {integrator}", inverse, tree(1), integrator=integrator)
        add(f"inverse {integrator} of a mechanism", inverse, MECHANISM, integrator=integrator)
        if integrator != "discrete":
            flags = {"integrator": integrator, "enableflags": int(Enable.INVDISCRETE)}
            add(f"inverse {integrator}, discrete time", inverse, tree(1), **flags)
            add(f"inverse {integrator} of shapes, discrete time", inverse, shapes("plane"), **flags)
    articulated = {"integrator": "implicitfast", "enableflags": int(Enable.INVDISCRETE), "forward_dynamics": "aba"}
    add("inverse of a humanoid, discrete time", inverse, "humanoid", **articulated)
    add("inverse of a heap", inverse, heap())
    add("forward and inverse", forward_and_inverse, heap(), DATA_ALONE)
    for name in ("arm", "double_pendulum"):
        add(f"derivatives, {name}", derivatives, name)
    for name, xml in {"arm": "arm", "quadruped": "quadruped", "heap": heap(), "mechanism": MECHANISM}.items():
        for integrator in ("euler", "implicit", "implicitfast"):
            add(f"exact derivatives, {name} {integrator}", exact_derivatives, xml, DATA_ALONE, integrator=integrator)
    for seed in (0, 1, 5):
        light = tree(seed).replace('armature=".01"', "")  # of tendons: `aba` does not support them
        add(f"stages, tree {seed}", stages, light, DATA_ALONE)
    add("dynamics, tree 5", dynamics, tree(5))
    for solver in ("newton", "cg", "pgs"):
        add(f"history of {solver}", history, heap(), DATA_ALONE, solver=solver)
    return out
