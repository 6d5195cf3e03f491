"""Queries of a `Data` take a shorter path than those of a batch, with equal bits and errors for every feature.

Each group of a `MixedBatch` is a batch, and deformable bodies are not supported.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherlane as fl
from bits.motion import Motion, World, start
from bits.scenes import MOTIONS
from featherlane.engine.simulation.batch.object_queries import ObjectQueries
from featherlane.engine.simulation.batch.one_world import batch_of
from featherlane.engine.simulation.batch.sensing import Sensing
from featherlane.engine.simulation.batch.world_queries import WorldQueries
from sampling import every

# scenes of tests/bits that together have every feature
SCENES = (
    "tree 4",  # joints, meshes, a height field, tendons, equalities, sensors, actuators, a mocap body
    "sensors box",  # every sensor, cameras of every mode
    "shapes on hfield",
    "hand",
    "tendons implicit",
    "actuators Euler",
    "equalities",
    "welded",
    "adhesive elliptic",
    "belts elliptic",
    "signed distance fields",
    "mechanism RK4",
    "special discrete",
    "yielding Euler",
    "water implicitfast",
    "sensors sampled",
    "sensors tactile",
    "user actuators",
    "user sensor",
    "given contacts elliptic",
    "sleep stack",
    "sleep mocap",
    "heap PGS elliptic, noslip",
    "long chain by articulated bodies",
    "lcp tree",
    "lcp links, dantzig",
    "lcp belts",
    "speculative coulomb",
)
COUNTS = "njnt nmesh nhfield ntendon neq nsensor nu na nmocap nsite ncam nhistory".split()
POINT, DOWN = (0.1, 0.2, 0.3), (0.2, -0.1, -1.0)
RAYS = np.linspace((-1, 0, 5), (1, 0.1, 5), 40)

# a query of an object `ask` about a model m, by name; words after the first one distinguish cases
QUERIES = {
    "jac": lambda ask, m: ask.jac(POINT, m.nbody - 1),
    "jac of the static body": lambda ask, m: ask.jac(POINT, 0),
    "jac_body": lambda ask, m: ask.jac_body(m.nbody - 1),
    "jac_body_com": lambda ask, m: ask.jac_body_com(m.nbody - 1),
    "jac_geom": lambda ask, m: ask.jac_geom(m.ngeom - 1),
    "jac_site": lambda ask, m: ask.jac_site(m.nsite - 1),
    "jac_subtree_com": lambda ask, m: ask.jac_subtree_com(1),
    "jac_dot": lambda ask, m: ask.jac_dot(POINT, m.nbody - 1),
    "angular_momentum_matrix": lambda ask, m: ask.angular_momentum_matrix(1),
    "full_m": lambda ask, m: ask.full_m(),
    "moment_arms": lambda ask, m: ask.moment_arms(),
    "coriolis_matrix": lambda ask, m: ask.coriolis_matrix(),
    "inertial_parameters": lambda ask, m: ask.inertial_parameters(),
    "torque_regressor": lambda ask, m: ask.torque_regressor(np.linspace(-1, 1, m.nv)),
    "ray": lambda ask, m: ask.ray((0.02, 0.01, 5), DOWN),
    "ray many": lambda ask, m: ask.ray(RAYS, DOWN),
    "ray options": lambda ask, m: ask.ray(RAYS, DOWN, (1, 1, 0, 0, 0, 1), False, 1, cutoff=4.9, geoms=range(m.ngeom)),
    "geom_distance": lambda ask, m: ask.geom_distance(m.ngeom - 1, 0),
    "geom_distance many": lambda ask, m: ask.geom_distance(np.arange(1, m.ngeom), np.arange(m.ngeom - 1), 0.3),
    "inverse": lambda ask, m: ask.inverse(np.linspace(-1, 1, m.nv)),
    "inverse of forward dynamics": lambda ask, m: ask.inverse(),
    "contact_force": lambda ask, m: ask.contact_force(),
    "equality_force": lambda ask, m: ask.equality_force(m.neq - 1),
    "present_fields": lambda ask, m: ask.present_fields(("xpos", "site_xmat", "cdof")),
    "present_fields of velocities": lambda ask, m: ask.present_fields(("cvel", "ten_velocity", "actuator_length")),
}
for kind, count in {"body": "nbody", "xbody": "nbody", "geom": "ngeom", "site": "nsite", "camera": "ncam"}.items():
    for name in ("object_velocity", "object_acceleration"):
        QUERIES[f"{name} {kind}"] = lambda ask, m, f=name, k=kind, n=count: getattr(ask, f)((k, getattr(m, n) - 1))
        QUERIES[f"{name} {kind} in its axes"] = lambda ask, m, f=name, k=kind: getattr(ask, f)((k, 0), local=True)
WRONG = {
    "jac": lambda ask: ask.jac(POINT, "nobody"),
    "jac of number": lambda ask: ask.jac(POINT, 99),
    "jac of float": lambda ask: ask.jac(POINT, 1.5),
    "jac of shape": lambda ask: ask.jac((0.0, 1.0), 1),
    "jac of text": lambda ask: ask.jac("abc", 1),
    "jac_body": lambda ask: ask.jac_body(-1),
    "jac_body_com": lambda ask: ask.jac_body_com("nobody"),
    "jac_geom": lambda ask: ask.jac_geom("nothing"),
    "jac_site": lambda ask: ask.jac_site(None),
    "jac_subtree_com": lambda ask: ask.jac_subtree_com("nobody"),
    "jac_dot": lambda ask: ask.jac_dot(POINT, -1),
    "jac_dot of shape": lambda ask: ask.jac_dot([[1.0, 2.0], [3.0, 4.0]], 1),
    "angular_momentum_matrix": lambda ask: ask.angular_momentum_matrix(np.nan),
    "torque_regressor": lambda ask: ask.torque_regressor("fast"),
    "object_velocity": lambda ask: ask.object_velocity(("joint", 0)),
    "object_velocity of three": lambda ask: ask.object_velocity(("body", 0, 1)),
    "object_velocity of axes": lambda ask: ask.object_velocity(1, local=2),
    "object_acceleration": lambda ask: ask.object_acceleration(("site", "nothing")),
    "ray": lambda ask: ask.ray((0, 0), DOWN),
    "ray of a point": lambda ask: ask.ray((0, 0, np.nan), DOWN),
    "ray of no direction": lambda ask: ask.ray((0, 0, 1), (0, 0, 0)),
    "ray of groups": lambda ask: ask.ray((0, 0, 1), DOWN, (1, 0)),
    "ray of static": lambda ask: ask.ray((0, 0, 1), DOWN, None, 3),
    "ray of a body": lambda ask: ask.ray((0, 0, 1), DOWN, bodyexclude=99),
    "ray of a cutoff": lambda ask: ask.ray((0, 0, 1), DOWN, cutoff=-1.0),
    "ray of geoms": lambda ask: ask.ray((0, 0, 1), DOWN, geoms="nothing"),
    "equality_force": lambda ask: ask.equality_force("nothing"),
    "geom_distance": lambda ask: ask.geom_distance("nothing", 0),
    "geom_distance of number": lambda ask: ask.geom_distance(99, 0),
    "geom_distance of planes": lambda ask: ask.geom_distance(0, 0),
    "geom_distance of shapes": lambda ask: ask.geom_distance([0, 1, 1], [1, 0]),
    "geom_distance of a limit": lambda ask: ask.geom_distance(0, 1, -1.0),
}
WITHOUT_ARGUMENTS = {
    "full_m",
    "moment_arms",
    "coriolis_matrix",
    "inertial_parameters",
    "contact_force",
    "inverse",
    "present_fields",
}  # inputs of `fl.inverse` are fields
# why a query of one world, or of a batch, is not compared
OF_ONE_WORLD = {
    "apply_ft": "a product with `jac`",
    "contact_parameters": "of the model, not of a state",
    "contact_residual": "of the forces of the last pass",
    "mul_m": "any number of vectors",
    "solve_m": "any number of vectors",
    "tendon_path": "uncompiled, so equal to rounding: test_tendon_path.py",
}
OF_BATCHES = {
    "contacts": "lists of selections; its forces are compared as contact_force",
    "height_scan": "a scan",
    "net_contact_force": "a reduction of `contacts`",
    "query": "what all others call",
    "render": "images",
    "scan": "rays of a pattern",
    "sense": "images and scans",
    "tendon_arcs": "compared with `tendon_path` in test_tendon_path.py",
}


# ---- both paths under one interface ----------------------------------------------------------------------------------
class OfData:
    """Asks queries of a `Data`."""

    def __init__(self, data: fl.Data):
        self.data = data

    def __getattr__(self, name: str):
        return functools.partial(getattr(fl.query, name), self.data.model, self.data)

    def passed(self) -> fl.Data:
        """Returns a copy after forward dynamics, whose fields a query of a batch computes."""
        copied = self.data.copy()
        copied.mute()
        copied.forward()
        return copied

    def contact_force(self):
        data = self.passed()
        forces = [fl.query.contact_force(data.model, data, k) for k in range(data.ncon)]
        return np.reshape(forces, (-1, 6))

    def equality_force(self, equality):
        data = self.passed()
        return fl.query.equality_force(data.model, data, equality)

    def inverse(self, qacc=None):
        data = self.passed()
        if qacc is not None:
            data.qacc = qacc
        fl.inverse(data.model, data)
        return data.qfrc_inverse

    def present_fields(self, names):
        data = self.passed()
        return tuple(getattr(data, name) for name in names)


class OfBatch:
    """Asks queries of a batch, for one of its worlds."""

    def __init__(self, batch: fl.Batch, world: int):
        self.batch, self.world = batch, world

    def __getattr__(self, name: str):
        return lambda *given, **options: self.row(getattr(self.batch, name)(*given, **options))

    def row(self, found: Any):
        return tuple(part[self.world] for part in found) if isinstance(found, tuple) else found[self.world]

    def jac_body_com(self, body):
        return self.jac(("body", body))

    def jac_geom(self, geom):
        return self.jac(("geom", geom))

    def contact_force(self):
        found = self.batch.contacts(output=("force", "torque"))
        assert found.force is not None and found.torque is not None
        return np.concatenate([found.force, found.torque], axis=-1)[self.world, : found.found[self.world]]

    def inverse(self, qacc=None):
        self.batch.inverse(qacc)
        return self.row(self.batch.qfrc_inverse)

    def present_fields(self, names):
        return self.row(tuple(self.batch.present_fields(names).values()))


def answer(function: Callable[..., Any], *given: Any) -> tuple:
    """Returns bits of the parts of a result, or type and message of an error, without what it allows."""
    try:
        found = function(*given)
    except (ValueError, TypeError, LookupError, NotImplementedError) as error:
        return type(error), str(error).partition(", allowed")[0]
    parts = found if isinstance(found, tuple) else (found,)
    return tuple((np.shape(part), np.ascontiguousarray(part).tobytes()) for part in parts)


# ---- states ----------------------------------------------------------------------------------------------------------
def change(worlds: fl.Data | fl.Batch) -> None:
    """Changes positions, velocities, mocap poses and forces of a world, or of all worlds."""
    worlds.qpos[..., 0] += 0.07
    worlds.qvel[..., -1] -= 0.3
    worlds.mocap_pos[...] += 0.05
    worlds.xfrc_applied[..., -1, :] = 1.0


def change_inputs(worlds: fl.Data | fl.Batch) -> None:
    """Changes what only accelerations depend on."""
    worlds.ctrl[...] += 0.2
    worlds.qfrc_applied[...] -= 0.3
    worlds.eq_active[...] = 1 - worlds.eq_active
    worlds.clear_given_contacts()


# each follows from the one before, so that memory of queries holds another state
STATES = {
    "at the start": lambda worlds: None,
    "after a pass": lambda worlds: worlds.forward(),
    "changed after the pass": change,
    "after steps": lambda worlds: worlds.step(3),
    "with other inputs": change_inputs,
    "after a second pass": lambda worlds: worlds.forward(),
    "after a reset": lambda worlds: worlds.reset(),
}


def worlds_of(name: str, motion: Motion) -> tuple[fl.Data, fl.Batch, fl.Batch]:
    """Returns a `Data`, a batch of that world, and a batch of three worlds, of which it is the second."""
    model, rng = motion.model(), np.random.default_rng(zlib.crc32(name.encode()))
    begin, other = start(model, motion, rng), start(model, motion, rng)
    data = fl.Data(model, motion.given)
    alone, batch = (fl.Batch(model, n, nthread=1, given_contacts=motion.given) for n in (1, 3))
    for field, row in begin.items():
        setattr(data, field, row)
        setattr(alone, field, row)
        setattr(batch, field, [other[field], row, other[field]])
    if motion.user:
        for world in (data, World(alone, 0), World(batch, 1)):
            motion.user(0, world)
    for worlds in (data, alone, batch):
        worlds.mute()
    return data, alone, batch


def differences(model: fl.Model, ask: OfData, others: dict[str, OfBatch]) -> list[str]:
    """Returns the queries that the others answer with other bits or another error."""
    found = {query: answer(function, ask, model) for query, function in QUERIES.items()}
    return [
        f"{query}, {name}"
        for name, other in others.items()
        for query, function in QUERIES.items()
        if answer(function, other, model) != found[query]
    ]


@pytest.mark.parametrize("name", every(7, SCENES))
def test_queries_of_a_data_have_the_bits_of_those_of_a_batch(name):
    data, alone, batch = worlds_of(name, MOTIONS[name])
    others = {"a batch of one world": OfBatch(alone, 0), "a batch of three": OfBatch(batch, 1)}
    for state, function in STATES.items():
        for worlds in (data, alone, batch):
            function(worlds)
        assert not differences(data.model, OfData(data), others), state
    view = {"a view of the data": OfBatch(batch_of(data), 0)}
    for state in ("after a pass", "changed after the pass"):
        STATES[state](data)
        assert not differences(data.model, OfData(data), view), state


@functools.cache
def small_model() -> fl.Model:
    return MOTIONS["led"].model()


@pytest.mark.parametrize("query", WRONG)
def test_wrong_arguments_are_the_same_errors(query):
    model = small_model()
    kind, message = answer(WRONG[query], OfData(fl.Data(model)))
    assert isinstance(kind, type), "no error"
    assert answer(WRONG[query], OfBatch(fl.Batch(model, 1), 0)) == (kind, message)


def test_every_query_is_compared_or_has_a_reason():
    methods = [vars(cls).items() for cls in (ObjectQueries, WorldQueries, Sensing)]
    of_batches = {name for items in methods for name, value in items if name[0] != "_" and callable(value)}
    compared = {query.split()[0] for query in QUERIES}
    assert set(fl.query.__all__) - compared == OF_ONE_WORLD.keys()
    assert of_batches - compared == OF_BATCHES.keys()
    assert {query.split()[0] for query in WRONG} == compared - WITHOUT_ARGUMENTS


@pytest.mark.ci
def test_the_scenes_have_every_feature():
    models = [MOTIONS[name].model() for name in SCENES]
    assert not [count for count in COUNTS if not any(getattr(model, count) for model in models)]
    assert {model.opt.contact_model for model in models} == {"convex", "lcp", "coulomb"}
    assert any(model.user_sensors for model in models) and any(model.flg_adhesion for model in models)
