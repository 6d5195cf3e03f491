"""The cube tosses in PyBullet, Drake or DART: run by tosses.py under an interpreter that has the engine.

    PYTHON benchmarks/toss_engines.py pybullet PATH

Prints a record (JSON): errors on the held-out half before and after the identification, parameters, seconds.  Each
engine gets the same evolution strategy as Featherlane, with fewer candidates, because it simulates one toss at a time.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from toss_recording import HALF, INERTIA, MASS, RATE, Errors, Parameter, Recording, errors, evolve, halves, load

POPULATION, GENERATIONS, FIT_SAMPLES, FIT_TOSSES = 10, 12, 100, 100
GRAVITY, STEP = 9.81, 1.0 / RATE
SHAPE = {
    "friction": Parameter(0.17, 0.15),
    "half width [m]": Parameter(HALF, 0.0004, log=False),
    "height of the board [m]": Parameter(-0.0012, 0.0004, log=False),
    "inertia [kg m2]": Parameter(INERTIA, 0.1),
}


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Rotates a vector by a quaternion (w, x, y, z)."""
    t = 2.0 * np.cross(q[1:], v)
    return v + q[0] * t + np.cross(q[1:], t)


class Bullet:
    """PyBullet's default solver, one step for each sample."""

    name = "PyBullet"
    unknowns = SHAPE | {"restitution": Parameter(0.125, 0.4, most=1.0), "contact ERP": Parameter(0.2, 0.4, most=1.0)}

    def __init__(self) -> None:
        import pybullet

        self.p = pybullet
        pybullet.connect(pybullet.DIRECT)

    def build(self, values: dict[str, float]) -> None:
        """Makes the board and the cube."""
        p, half = self.p, values["half width [m]"]
        p.resetSimulation()
        p.setGravity(0.0, 0.0, -GRAVITY)
        p.setTimeStep(STEP)
        p.setPhysicsEngineParameter(
            contactERP=values["contact ERP"], enableConeFriction=1, restitutionVelocityThreshold=0
        )
        plane = p.createCollisionShape(p.GEOM_PLANE)
        board = p.createMultiBody(0.0, plane, basePosition=[0.0, 0.0, values["height of the board [m]"]])
        box = p.createCollisionShape(p.GEOM_BOX, halfExtents=[half] * 3)
        self.cube = p.createMultiBody(MASS, box)
        for body in (board, self.cube):
            p.changeDynamics(body, -1, lateralFriction=1.0, restitution=1.0, linearDamping=0.0, angularDamping=0.0)
        p.changeDynamics(board, -1, lateralFriction=values["friction"], restitution=values["restitution"])
        p.changeDynamics(self.cube, -1, localInertiaDiagonal=[values["inertia [kg m2]"]] * 3)

    def start(self, pose: np.ndarray, linear: np.ndarray, angular: np.ndarray) -> None:
        """Sets the state; both velocities in the world's frame."""
        self.p.resetBasePositionAndOrientation(self.cube, pose[:3], [*pose[4:], pose[3]])
        self.p.resetBaseVelocity(self.cube, linear, angular)

    def step(self) -> list[float]:
        """Steps to the next sample; returns the pose."""
        self.p.stepSimulation()
        (x, y, z), (i, j, k, w) = self.p.getBasePositionAndOrientation(self.cube)
        return [x, y, z, w, i, j, k]


class Dart:
    """DART's default LCP solver, one step for each sample."""

    name = "DART"
    unknowns = SHAPE | {"restitution": Parameter(0.125, 0.4, most=1.0)}

    def __init__(self) -> None:
        import dartpy

        self.dart = dartpy

    def build(self, values: dict[str, float]) -> None:
        """Makes the board and the cube."""
        dart, half, z = self.dart, values["half width [m]"], values["height of the board [m]"]
        self.world = dart.simulation.World()
        self.world.setGravity([0.0, 0.0, -GRAVITY])
        self.world.setTimeStep(STEP)
        self.world.getConstraintSolver().setCollisionDetector(dart.collision.BulletCollisionDetector())
        board, self.skeleton = dart.dynamics.Skeleton("board"), dart.dynamics.Skeleton("cube")
        _, fixed = board.createWeldJointAndBodyNodePair()
        self.joint, self.cube = self.skeleton.createFreeJointAndBodyNodePair()
        shapes = (fixed, [4.0, 4.0, 0.2]), (self.cube, [2.0 * half] * 3)
        for body, size in shapes:
            node = body.createShapeNode(dart.dynamics.BoxShape(size))
            node.createCollisionAspect()
            node.createDynamicsAspect()
            dynamics = node.getDynamicsAspect()
            dynamics.setFrictionCoeff(values["friction"])
            dynamics.setRestitutionCoeff(np.sqrt(values["restitution"]))  # DART multiplies both
        moved = dart.math.Isometry3()
        moved.set_translation([0.0, 0.0, z - 0.1])
        board.getJoint(0).setTransformFromParentBodyNode(moved)
        i = values["inertia [kg m2]"]
        self.cube.setInertia(dart.dynamics.Inertia(MASS, [0.0, 0.0, 0.0], np.diag([i, i, i])))
        self.world.addSkeleton(board)
        self.world.addSkeleton(self.skeleton)

    def start(self, pose: np.ndarray, linear: np.ndarray, angular: np.ndarray) -> None:
        """Sets the state; both velocities in the world's frame."""
        place = self.dart.math.Isometry3()
        place.set_translation(pose[:3])
        place.set_quaternion(self.dart.math.Quaternion(*pose[3:]))
        self.joint.setTransform(place)
        self.joint.setLinearVelocity(linear)
        self.joint.setAngularVelocity(angular)

    def step(self) -> list[float]:
        """Steps to the next sample; returns the pose."""
        self.world.step()
        place = self.cube.getWorldTransform()
        q = self.dart.math.Quaternion(place.rotation())
        return [*place.translation(), q.w(), q.x(), q.y(), q.z()]


class Drake:
    """Drake's discrete plant with the SAP solver; the cube touches with eight spheres of 0.1 mm at its corners."""

    name = "Drake"
    unknowns = SHAPE | {"stiffness [N/m]": Parameter(5e3, 0.6), "relaxation time [s]": Parameter(0.01, 0.6)}
    radius = 1e-4

    def build(self, values: dict[str, float]) -> None:
        """Makes the board and the cube."""
        from pydrake.geometry import AddContactMaterial, HalfSpace, ProximityProperties, Sphere
        from pydrake.math import RigidTransform
        from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction, DiscreteContactApproximation
        from pydrake.multibody.tree import SpatialInertia, UnitInertia
        from pydrake.systems.analysis import Simulator
        from pydrake.systems.framework import DiagramBuilder

        builder = DiagramBuilder()
        self.plant, _ = AddMultibodyPlantSceneGraph(builder, STEP)
        self.plant.set_discrete_contact_approximation(DiscreteContactApproximation.kLagged)
        unit = UnitInertia(*[values["inertia [kg m2]"] / MASS] * 3)
        self.cube = self.plant.AddRigidBody("cube", SpatialInertia(MASS, np.zeros(3), unit))

        def properties(stiffness: float) -> ProximityProperties:
            found = ProximityProperties()
            friction = CoulombFriction(values["friction"], values["friction"])
            AddContactMaterial(dissipation=0.0, point_stiffness=stiffness, friction=friction, properties=found)
            found.AddProperty("material", "relaxation_time", values["relaxation time [s]"] / 2.0)  # sum of both
            return found

        board = RigidTransform([0.0, 0.0, values["height of the board [m]"]])
        stiffness = 2.0 * values["stiffness [N/m]"]  # two equal springs in series
        self.plant.RegisterCollisionGeometry(
            self.plant.world_body(), board, HalfSpace(), "board", properties(stiffness)
        )
        inner = values["half width [m]"] - self.radius
        for k in range(8):
            corner = RigidTransform([inner * (1 - 2 * (k >> axis & 1)) for axis in range(3)])
            sphere = Sphere(self.radius)
            self.plant.RegisterCollisionGeometry(self.cube, corner, sphere, f"corner{k}", properties(stiffness))
        self.plant.Finalize()
        self.simulator = Simulator(builder.Build())
        self.context = self.plant.GetMyMutableContextFromRoot(self.simulator.get_mutable_context())

    def start(self, pose: np.ndarray, linear: np.ndarray, angular: np.ndarray) -> None:
        """Sets the state; both velocities in the world's frame."""
        self.simulator.get_mutable_context().SetTime(0.0)
        self.plant.SetPositions(self.context, [*pose[3:], *pose[:3]])
        self.plant.SetVelocities(self.context, [*angular, *linear])
        self.simulator.Initialize()
        self.count = 0

    def step(self) -> list[float]:
        """Steps to the next sample; returns the pose."""
        self.count += 1
        self.simulator.AdvanceTo(self.count * STEP)
        q = self.plant.GetPositions(self.context)
        return [*q[4:], *q[:4]]


ENGINES = {"pybullet": Bullet, "drake": Drake, "dart": Dart}


def simulate(engine, recording: Recording, values: dict[str, float]) -> Errors:
    """The errors of an engine with these parameters."""
    engine.build(values)
    pose = np.full((1, *recording.pose.shape), np.nan)
    for k, length in enumerate(recording.length):
        first, velocity = recording.pose[k, 0], recording.velocity[k]
        engine.start(
            first / [1, 1, 1, *[np.linalg.norm(first[3:])] * 4], velocity[:3], rotated(first[3:], velocity[3:])
        )
        pose[0, k, 0] = first
        for sample in range(1, length):
            pose[0, k, sample] = engine.step()
    return Errors(*(x[0] for x in errors(recording, pose)))


def main() -> None:
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in ENGINES:
        sys.exit(f"usage: toss_engines.py {{{','.join(ENGINES)}}} PATH [GENERATIONS]")
    generations = min(GENERATIONS, int(sys.argv[3])) if len(sys.argv) == 4 else GENERATIONS
    engine, recording = ENGINES[sys.argv[1]](), load(sys.argv[2])
    fit, held = halves(len(recording.length))
    some, judged = recording.part(fit[:FIT_TOSSES], FIT_SAMPLES), recording.part(held)
    names = list(engine.unknowns)

    def values(x: np.ndarray) -> dict[str, float]:
        return {name: float(engine.unknowns[name].value(x[k])) for k, name in enumerate(names)}

    before = simulate(engine, judged, values(np.zeros(len(names)))).summary()
    start, cpu = time.perf_counter(), time.process_time()
    found = values(
        evolve(
            lambda X: np.array([simulate(engine, some, values(x)).loss for x in X]),
            len(names),
            population=POPULATION,
            generations=generations,
        )
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    after = simulate(engine, judged, found).summary()
    record = {"name": engine.name, "before": before, "after": after, "parameters": found}
    record |= {"seconds": seconds, "cpu": cpu}
    print(json.dumps(record, default=float))


if __name__ == "__main__":
    main()
