"""Finds every public function, method and setter, with valid arguments: an unknown one is an error."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import featherlane as fl
from featherlane.engine.model.fields import EDITABLE_INTS
from featherlane.engine.model.model import LIVE
from featherlane.engine.simulation.batch.arrays import STATE
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.data_fields import SETTABLE

BIG = 1 << 20  # bytes of an array that is scratch, not state
SCENE = """
<mujoco><option timestep=".004"/>
<default><geom density="500"/></default>
<asset><mesh name="wedge" vertex="-.1 -.1 -.1 .2 -.1 -.1 -.1 .15 -.1 .2 .15 -.1 -.1 0 .15 .2 0 .15"/>
  <material name="steel"/></asset>
<worldbody><light name="sun"/>
  <geom name="floor" type="plane" size="5 5 1"/><site name="post" pos="0 0 1"/><camera name="eye" pos="0 0 3"/>
  <body name="crate" pos="0 0 .099"><freejoint name="crate"/><geom name="crate" type="box" size=".1 .1 .1"/></body>
  <body name="arm" pos="1 0 1"><joint name="shoulder" type="ball"/><geom name="arm" type="capsule" size=".04 .1"/>
    <body name="hand" pos=".2 0 0"><joint name="elbow" axis="0 1 0" range="-40 40" limited="true" damping=".1"/>
      <joint name="wrist" type="slide" axis="1 0 0" stiffness="5" frictionloss=".1"/>
      <geom name="hand" type="mesh" mesh="wedge"/><site name="hand"/></body></body>
  <body name="target" mocap="true" pos="2 0 1"><geom name="target" size=".05"/></body>
</worldbody>
<tendon>
  <spatial name="string" range="0 2" limited="true" stiffness="1"><site site="post"/><site site="hand"/></spatial>
  <fixed name="sum"><joint joint="elbow" coef="1"/><joint joint="wrist" coef="-1"/></fixed></tendon>
<equality><weld name="held" body1="crate" body2="target" active="false"/><joint joint1="elbow" joint2="wrist"/>
</equality>
<contact><pair name="touch" geom1="crate" geom2="arm"/><exclude name="apart" body1="arm" body2="target"/></contact>
<custom><numeric name="gait" data="1 2"/></custom>
<actuator><position name="servo" joint="elbow" kp="5" delay=".01" nsample="4"/>
  <general name="filter" tendon="sum" dyntype="filter" dynprm=".1"/><muscle name="muscle" tendon="string"/>
  <general name="own" joint="wrist" gaintype="user"/></actuator>
<sensor><accelerometer name="felt" site="hand" noise=".1"/><jointpos name="angle" joint="elbow" nsample="4"/>
  <framepos name="place" objtype="body" objname="hand"/>
  <user name="own" dim="2"/></sensor>
<keyframe><key name="home" time="1"/></keyframe></mujoco>
"""


def make_heavy(spec) -> None:
    """Makes the variant `heavy` of the hand."""
    spec.geom("hand").density = 3000


@functools.cache
def exact_friction() -> tuple[fl.Model, fl.Data]:
    """Returns a model with the contact model coulomb, and its world."""
    model = fl.bundled("quadruped")
    model.opt.contact_model = "coulomb"
    data = fl.Data(model)
    fl.forward(model, data)
    return model, data


class World:
    """Holds a model, a world and a batch of it, with all results computed from them."""

    def __init__(self):
        self.m = fl.load(SCENE, variants={"hand": {"light": lambda spec: None, "heavy": make_heavy}})
        fl.set_user_actuator(self.m, "own", gain=lambda m, d, i: 1.0)
        fl.set_user_sensor(self.m, "own", lambda model, felt: felt[..., :2])
        self.d, self.b = fl.Data(self.m, given_contacts=2), fl.Batch(self.m, 3, nthread=1, given_contacts=2)
        fl.step(self.m, self.d, 2)
        self.x = fl.MixedBatch([(self.m, 2), (fl.bundled("pendulum"), 1)], nthread=1)
        self.s = fl.distributed.Batch(self.m, 3, nthread=1, given_contacts=2)  # distributed over this process only
        for batch in (self.b, self.x, self.s):
            batch.bind("xpos")
            batch.expand("body_mass")
            batch.step(2)

        self.flags = {name: self.m.rows[name].copy() for name in (*EDITABLE_INTS, "hfield_data")}
        self.settings, self.kept = self._settings(), {name: array.copy() for name, array in self.arrays().items()}

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns all memory that a call with an error must leave unchanged."""
        m, d, b = self.m, self.d, self.b
        found = {f"model.{kind}": getattr(m, f"{kind}_buffer") for kind in ("real", "int", "scalar")}
        found |= {name: getattr(m, name) for name in ("key_qpos", "key_qvel", "key_act", "key_ctrl", "key_time")}
        rooms = {name: array for name, array in d.workspace.arrays.items() if array.nbytes < BIG}
        found |= {
            f"data.{name}": array for name, array in rooms.items() if DATA[name].role not in ("address", "pointer")
        }
        found |= {f"spread.{name}": tracked.array for name, tracked in self.s._fields.tracked.items()}
        found |= {f"spread.sent.{name}": array for name, array in self.s._fields._sent.items()}
        for place, batch in enumerate((b, *self.x.groups, self.s._send[0].__self__.batch)):
            for part in ("rows", "expanded", "bound"):
                label = f"batch {place} of {batch.nworld} {part}"
                found |= {f"{label}.{name}": array for name, array in getattr(batch.arrays, part).items()}
        return found

    def _settings(self) -> dict[str, Any]:
        m, d = self.m, self.d
        functions = tuple(m.user_sensors.values()), tuple(m.user_actuators.values())
        return m.size_values() | {"functions": functions, "record": d.record_solver, "model of data": id(d.model)}

    def seen(self) -> dict[str, Any]:
        """Returns a copy of all that a call with an error must leave unchanged, for comparison."""
        return self._settings() | {name: array.tobytes() for name, array in self.arrays().items()}

    def put_back(self) -> bool:
        """Restores the initial state; returns whether that was possible."""
        now = self.arrays()
        if now.keys() != self.kept.keys() or any(now[name].shape != a.shape for name, a in self.kept.items()):
            return False
        for name, array in self.kept.items():
            if now[name].flags.writeable:
                now[name][...] = array
        for name, value in self.flags.items():
            self.m._memory[name][...] = value
        for name, value in self.m.size_values().items():
            if value != self.settings[name]:
                self.m._set_size(name, self.settings[name])
        self.d.record_solver = self.settings["record"]
        self.m.__dict__["_stamp"] = None
        self.m._edited.update(LIVE)
        for batch in (self.b, *self.x.groups, self.s._send[0].__self__.batch):
            batch.arrays.expanded.edited.update(batch.arrays.expanded)
        return self._settings() == self.settings


# ---- sites -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Site:
    """Describes a callable of the world, its valid arguments as functions of the world, and their names in errors."""

    name: str
    call: Callable[..., Any]
    valid: dict[str, Callable[[World], Any]]
    words: tuple[str, ...] = ()
    free: tuple[str, ...] = ()  # arguments that accept any object


UP, DOWN = (0.0, 0.0, 3.0), (0.0, 0.0, -1.0)
FRAME = [[0.0, 0.0, 1.0]]
ARGUMENTS: dict[str, Callable[[World], Any]] = {
    "model": lambda w: w.m,
    "data": lambda w: w.d,
    "nstep": lambda w: 1,
    "key": lambda w: "home",
    "keyframe": lambda w: 0,
    "forward": lambda w: True,
    "dt": lambda w: 0.1,
    "qpos": lambda w: w.d.qpos.copy(),
    "qpos1": lambda w: w.d.qpos.copy(),
    "qvel": lambda w: w.d.qvel.copy(),
    "qpos2": lambda w: w.d.qpos.copy(),
    "bits": lambda w: int(fl.State.FULLPHYSICS),
    "actuator": lambda w: "servo",
    "state": lambda w: fl.get_state(w.m, w.d, int(fl.State.FULLPHYSICS)),
    "time": lambda w: 0.0,
    "interp": lambda w: "linear",
    "values": lambda w: np.zeros(4),
    "times": lambda w: np.arange(4.0),
    "eps": lambda w: 1e-6,
    "centered": lambda w: True,
    "actuation": lambda w: False,
    "qacc": lambda w: w.d.qacc.copy(),
    "nthread": lambda w: 1,
    "sensors": lambda w: True,
    "x": lambda w: np.ones(w.m.nv),
    "flg_acc": lambda w: True,
    "contact": lambda w: 0,
    "force": lambda w: UP,
    "torque": lambda w: UP,
    "point": lambda w: UP,
    "body": lambda w: "hand",
    "geom": lambda w: "hand",
    "site": lambda w: "hand",
    "kind": lambda w: "body",
    "object": lambda w: ("body", "hand"),
    "local": lambda w: True,
    "rng": lambda w: 3,
    "sensordata": lambda w: w.d,
    "sensor": lambda w: "angle",
    "geom1": lambda w: "hand",
    "geom2": lambda w: "crate",
    "distmax": lambda w: 2.0,
    "direction": lambda w: DOWN,
    "geomgroup": lambda w: [1, 1, 1, 1, 1, 1],
    "flg_static": lambda w: True,
    "bodyexclude": lambda w: "hand",
    "cutoff": lambda w: 9.0,
    "geoms": lambda w: ["hand", "crate"],
    "names": lambda w: ["xpos", "cvel"],
    "tendon": lambda w: "string",
    "a": lambda w: np.eye(3),
    "b": lambda w: 2 * np.eye(3) + 1,
    "scale": lambda w: True,
    "weights": lambda w: np.ones(3),
    "actuators": lambda w: "muscle",
    "uselimit": lambda w: False,
    "given_contacts": lambda w: 2,
    "record_failures": lambda w: 2,
    "checks": lambda w: (),
    "frictionloss": lambda w: True,
    "nworld": lambda w: 3,
    "models": lambda w: [(w.m, 2)],
    "parameters": lambda w: [0.1, 0.1, 0.2],
    "edit": lambda w: lambda spec, parameter: None,
    "dtype": lambda w: "float64",
    "name": lambda w: "xpos",
    "ids": lambda w: [0, 2],
    "world": lambda w: 1,
    "kept": lambda w: w.b.checkpoint(),
    "record": lambda w: ("qpos", "xpos"),
    "control": lambda w: np.zeros((3, 1, w.m.nu)),
    "batch": lambda w: w.b,
    "loss_gradient": lambda w: np.ones((3, 2, 2 * w.m.nv + w.m.na)),
    "stage": lambda w: "velocity",
    "interval": lambda w: 1,
    "how": lambda w: "mean",
    "reduce": lambda w: None,
    "edges": lambda w: [-1.0, 0.0, 1.0],
    "value": lambda w: np.zeros((2, 3)),
    "out": lambda w: {"qpos": np.zeros((3, 1, w.m.nq))},
    "source": lambda w: str(Path(fl.__path__[0], "engine", "model", "bundled", "pendulum.xml")),
    "assets": lambda w: None,
    "links": lambda w: (),
    "package_dirs": lambda w: (),
    "convex_decomposition": lambda w: None,
    "collision": lambda w: "sdf",
    "repair": lambda w: True,
    "base": lambda w: None,
    "floor": lambda w: False,
    "home": lambda w: None,
    "gains": lambda w: None,
    "armature": lambda w: None,
    "variants": lambda w: None,
    "phase": lambda w: 0.0,
    "inertia": lambda w: True,
    "variant": lambda w: "heavy",
    "function": lambda w: None,
    "reads": lambda w: ("sensordata",),
    "cpu_ids": lambda w: None,
    "joint": lambda w: "elbow",
    "equality": lambda w: 0,
    "camera": lambda w: "eye",
    "width": lambda w: 4,
    "height": lambda w: 3,
    "output": lambda w: ("depth",),
    "pattern": lambda w: fl.patterns.grid((0.2, 0.2)),
    "alignment": lambda w: "yaw",
    "miss": lambda w: 5.0,
    "first": lambda w: "crate",
    "second": lambda w: ("geom", "floor"),
    "other": lambda w: ("subtree", "world"),
    "num": lambda w: 2,
    "near": lambda w: 0.1,
    "far": lambda w: 10.0,
    "fields": lambda w: None,
    "mj_data": lambda w: mujoco.MjData(w.m.mj_model),
    # of given contacts
    "dist": lambda w: [-0.01],
    "pos": lambda w: [UP],
    "frame": lambda w: FRAME,
    "dim": lambda w: [3],
    "friction": lambda w: [[1, 1, 0.005, 0.0001, 0.0001]],
    "solref": lambda w: [[0.02, 1.0]],
    "solimp": lambda w: [[0.9, 0.95, 0.001, 0.5, 2]],
    "solreffriction": lambda w: [[0.0, 0.0]],
    "includemargin": lambda w: [0.0],
    "adhesion": lambda w: [0.0],
    "erp": lambda w: [0.2],
    "cfm": lambda w: [1e-5],
    "restitution": lambda w: [0.5],
    "restitution_vel": lambda w: [0.1],
    "slip": lambda w: [[0.0, 0.0]],
    "frictionforce": lambda w: [0],
    "motion": lambda w: [[0.0, 0.0, 0.0]],
    "replace": lambda w: False,
    "count": lambda w: [1, 1, 1],
    # of integrations
    "until": lambda w: w.x.time.max() + 0.02,
    "accuracy": lambda w: 1e-3,
    "min_step": lambda w: 1e-6,
    "max_step": lambda w: 0.05,
    "max_steps": lambda w: 100,
    "velocity_time": lambda w: 0.5,
    "event": lambda w: None,
    # of inverse kinematics
    "targets": lambda w: fl.IkTarget(("site", "hand"), position=w.b.get_data(0).site("hand").xpos),
    "dofs": lambda w: ["elbow", 0],
    "limits": lambda w: True,
    "posture": lambda w: w.m.qpos0,
    "posture_weight": lambda w: 0.01,
    "restarts": lambda w: 1,
    "seed": lambda w: 1,
    "tolerance": lambda w: 1e-3,
    "max_iterations": lambda w: 20,
}
WORLDS = ("Data", "Batch", "MixedBatch")
FREE = {"edit", "function", "rng", "activation", "gain", "bias", "method"}
# what an argument is called in errors
WORDS = {
    "model": ("MjModel",),
    "key": ("keyframe", "body", "joint", "geom", "site", "actuator", "tendon", "link", "sensor", "camera", "pair"),
    "x": ("vector", "matrix", "nv"),
    "source": ("load", "model", "file", "asset", "XML", "folder", "no such"),
    "sensordata": ("data",),
    "data": ("model",),
    "name": ("bind", "expand", "record", "field"),
    "kept": ("restore", "checkpoint"),
    "world": ("ids",),
    "models": ("MixedBatch", "model", "nworld"),
    "parameters": ("variants", "parameter"),
    "nworld": ("ids",),
    "actuators": ("actuator",),
    "function": ("sensor", "kernel"),
    "object": ("body", "kind"),
    "rng": ("seed",),
    "how": ("reduce", "edges"),
    "value": STATE,
    "body": ("geom", "contact"),
    "geom": ("body", "contact", "set_variant"),
    "given_contacts": ("contacts",),
    "control": ("ctrl", "kernel"),
    "batch": ("model",),
    "links": ("link",),
    "dtype": ("float",),
    "state": ("State",),
    "bits": ("State",),
    "a": ("points",),
    "b": ("points", "a"),
    "geom1": ("geom",),
    "geom2": ("geom",),
    "bodyexclude": ("body",),
    "dofs": ("joint",),
    "pattern": ("direction",),
    "first": ("body", "geom"),
    "second": ("body", "geom"),
    "other": ("body", "geom"),
    "qpos1": ("qpos",),
    "qpos2": ("qpos",),
}
# public, but not for users' arguments: internal, or for MuJoCo's objects
PASSED_OVER = {
    "check_values",
    "given_rows",
    "holds_between",
    "keyframe_numbers",
    "sense",
    "variant_values",
    "world_shape",
    "load_failure",
    "freeze",
    "thaw",
    "read_constants",
    "shared_arrays",
    "is_editable",
    "take_constants",
    "write_to",
    "sensor_values",
    "kernel",
    "show_config",
    "view",
    "export_html",
    "writable",
    "bundled_names",
    "bundled",
    "link",
    "control_kernel",
    "query",
    "move_into",
    "row_memory",
    "take_over",
    "watch",
}


def sites() -> dict[str, Site]:
    """Returns every public callable and setter."""
    found = {}
    public = {
        name: getattr(module, name) for module in (fl, fl.stages, fl.query, fl.registration) for name in module.__all__
    }
    for name, item in public.items():
        if callable(item) and (not inspect.isclass(item) or name in WORLDS) and name not in PASSED_OVER:
            found[name] = _site(name, item)
    found |= _methods("data", fl.Data, lambda w: w.d) | _methods("batch", fl.Batch, lambda w: w.b)
    # contacts that another call gave by bodies have no counterpart in MuJoCo
    found["batch.to_mujoco"] = _site("batch.to_mujoco", fl.Batch.to_mujoco, lambda w: fl.Batch(w.m, 3))
    found |= _methods("mixed", fl.MixedBatch, lambda w: w.x)
    found |= _methods("spread", fl.distributed.Batch, lambda w: w.s)
    found |= _methods("model", fl.Model, lambda w: w.m) | _setters() | _rest()
    return found


def _site(name: str, item, owner=None) -> Site:
    """Returns a site of a callable, whose arguments are known by their names."""
    names = [
        p.name
        for p in inspect.signature(item).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    valid = {n: ARGUMENTS[n] for n in names if n != "self" and (n in ARGUMENTS or n not in FREE)}
    label = name.rpartition(".")[2]
    if label in ("linearize", "inverse_derivatives"):
        valid["method"] = lambda w: "finite_difference"
    if label in ("linearize", "rollout_gradient"):  # names of fields; elsewhere parameters are numbers
        valid["parameters"] = lambda w: ("geom_friction", "body_mass[hand]")
    if "key" in valid and label in ARGUMENTS:
        valid["key"] = ARGUMENTS[label]
    if "key" in valid and label in ("pair", "link", "keyframe", "exclude", "light", "material", "mesh", "numeric"):
        valid["key"] = lambda w: 0
    if "give_contacts" in name:  # one of the two
        valid.pop("geom"), valid.update(body=lambda w: [[0, 1]])
    if label == "contact_residual":
        valid |= {"model": lambda w: exact_friction()[0], "data": lambda w: exact_friction()[1]}
    if label == "height_scan" or "history" in label or label in ("read_ctrl", "read_sensor"):  # of a Data
        valid["ids"] = lambda w: None
    elif "out" in valid:
        valid |= {"record": lambda w: ("qpos",), "ids": lambda w: None}
    if "count" in valid:
        valid["ids"] = lambda w: None
    if name == "integrate":  # of a model without delays
        rod = {"model": lambda w: w.x.groups[1].model, "data": lambda w: w.x.groups[1], "control": lambda w: None}
        valid |= rod | {"times": lambda w: w.x.groups[1].time + np.array([0.01])}
    if label == "load":
        valid |= {"actuators": lambda w: None, "height": lambda w: None, "edit": lambda w: None}
    if label == "set_variant":
        valid |= {"geom": lambda w: "hand", "ids": lambda w: [0]}
    if name == "set_user_sensor":
        valid["sensor"] = lambda w: "own"
    if name == "set_user_actuator":
        valid |= {"actuators": lambda w: "own", "gain": lambda w: lambda m, d, i: 1.0}
    if label in ("object_velocity", "object_acceleration"):
        valid["object"] = lambda w: ("body", "hand")
    if label == "scan":
        valid["output"] = lambda w: ("distance", "geom")
    if label == "contacts":
        valid |= {"output": lambda w: ("force", "dist"), "reduce": lambda w: "mindist"}
    if label == "height_scan":
        valid["out"] = lambda w: np.empty((3, 9))
    if name.startswith("mixed.") and label in ("render", "scan", "height_scan"):  # the second model lacks the objects
        valid |= {"ids": lambda w: [0]} | ({"out": lambda w: None} if label == "height_scan" else {})
    if name.startswith("mixed.") and "kept" in valid:
        valid["kept"] = lambda w: w.x.checkpoint()
    if name.startswith("spread.") and "kept" in valid:
        valid["kept"] = lambda w: w.s.checkpoint()
    if name == "data.rollout":
        valid["control"] = lambda w: np.zeros((1, w.m.nu))
    if name == "mixed.set_state":
        valid["state"] = lambda w: w.x.get_state(int(fl.State.FULLPHYSICS))
    if name == "mixed.rollout":
        valid |= {"control": lambda w: np.zeros((3, 1, w.m.nu)), "out": lambda w: None}
    if name in ("batch.expand", "mixed.expand", "spread.expand"):
        valid["name"] = lambda w: "geom_friction"
    if name == "spread.set":
        valid |= {"name": lambda w: "mocap_pos", "value": lambda w: np.zeros((2, 1, 3))}
    if name == "spread.call":
        valid["function"] = lambda w: lambda b: b.nworld

    def call(_, **arguments):
        if name == "integrate" and any(isinstance(arguments[given], type) for given in ("control", "event")):
            return None  # the callable's own error
        if owner is None:
            return item(**arguments)
        if name == "spread.call" and arguments["function"] is object:
            return None  # the callable's own error
        return getattr(owner(_), label)(**arguments)

    return Site(name, call, valid, (label,))


def _methods(kind: str, cls, owner) -> dict[str, Site]:
    found = {}
    for name in dir(cls):
        item = inspect.getattr_static(cls, name)
        if name.startswith("_") or name in PASSED_OVER or not inspect.isfunction(item):
            continue
        found[f"{kind}.{name}"] = _site(f"{kind}.{name}", item, owner)
    return found


def _setters() -> dict[str, Site]:
    """Returns assignments: options, fields of models, data and batches, attributes of named objects."""
    found = {}

    def add(kind, name, owner, attribute=None):
        attribute = attribute or name

        def put(world, value):
            setattr(owner(world), attribute, value)

        def get(world):
            value = getattr(owner(world), attribute)
            return value.copy() if isinstance(value, np.ndarray) else value

        found[f"{kind}.{name} ="] = Site(f"{kind}.{name} =", put, {"value": get}, (name, attribute))

    for name in dir(fl.bundled("pendulum").opt):
        add("opt", name, lambda w: w.m.opt)
    for name in LIVE:
        if not name.startswith("opt_"):  # those of model.opt
            add("model", name, lambda w: w.m)
    for name in sorted(SETTABLE):
        add("data", name, lambda w: w.d)
    for name in STATE:
        add("batch", name, lambda w: w.b)
    add("data", "record_solver", lambda w: w.d)
    add("stat", "meaninertia", lambda w: w.m.stat)
    for kind, attributes in (
        ("body", "mass pos inertia"),
        ("joint", "range damping axis"),
        ("geom", "size friction"),
        ("actuator", "gainprm"),
    ):
        for attribute in attributes.split():
            add(
                f"model.{kind}",
                attribute,
                lambda w, kind=kind: getattr(w.m, kind)(
                    "hand" if kind in ("body", "geom") else ("elbow", "servo")[kind == "actuator"]
                ),
            )
    for attribute in ("qpos", "qvel"):
        add("data.joint", attribute, lambda w: w.d.joint("elbow"))
        add("batch.joint", attribute, lambda w: w.b.joint("shoulder"))
    add("batch.actuator", "ctrl", lambda w: w.b.actuator("servo"))
    return found


PARENTS = [-1, 0, 1, 1]
H = np.diag([3.0, 3.0, 3.0, 3.0]) + 0.1 * np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 1]])
A, B = 3 * np.eye(3) + 0.5, np.array([1.0, -1.0, 2.0])


def _rest() -> dict[str, Site]:
    """Returns sites of LCPs, trees, links, environments."""
    lcp = {
        "A": lambda w: A,
        "b": lambda w: B,
        "lo": lambda w: np.array([0, -np.inf, -1.0]),
        "hi": lambda w: np.array([np.inf, np.inf, 1.0]),
        "findex": lambda w: [-1, -1, 0],
        "add": lambda w: [0.0, 0.0, 0.1],
        "J": lambda w: np.eye(3),
        "Minv": lambda w: np.ones(3),
        "cfm": lambda w: np.full(3, 1e-6),
        "problem": lambda w: fl.lcp.Problem(A, B, lo=-np.ones(3), hi=np.ones(3)),
        "n": lambda w: 3,
        "x": lambda w: np.zeros(3),
        "tol": lambda w: 1e-9,
        "tolerance": lambda w: 1e-9,
        "iterations": lambda w: 20,
        "threads": lambda w: 1,
        "nthread": lambda w: 1,
        "symmetric": lambda w: True,
    }
    found = {}

    def add(name, call, valid, words=()):
        def run(_, **arguments):
            if isinstance(arguments.get("inverse_dynamics"), type):
                return None  # the callable's own error
            return call(**arguments)

        found[name] = Site(name, run, valid, (name, *words))

    def pick(*names, **others):
        return {name: lcp[name] for name in names} | others

    words = ("row", "matrix", "method", "problem", "Problem", "solve")
    add("lcp.Problem", fl.lcp.Problem, pick("A", "b", "lo", "hi", "findex", "add", "symmetric"), words)
    add(
        "lcp.Problem.from_jacobian",
        fl.lcp.Problem.from_jacobian,
        pick("J", "Minv", "cfm", "b", "lo", "hi", "findex", "add"),
        words,
    )
    for method in fl.lcp.methods():
        given_ = pick("b") if method == "lemke" else pick("b", "lo", "hi", "findex", "add")
        add(
            f"lcp.solve {method}", fl.lcp.solve, pick("A") | given_ | {"method": lambda w, method=method: method}, words
        )
    add(
        "lcp.Solver",
        lambda n, method, problem: fl.lcp.Solver(n, method).solve(problem),
        pick("n", "problem", method=lambda w: "pgs"),
        words,
    )
    add(
        "lcp.solve_batch",
        fl.lcp.solve_batch,
        pick("b", "lo", "hi", "A", A=lambda w: A[None].repeat(2, 0), b=lambda w: B[None].repeat(2, 0)),
        words,
    )
    problem = fl.lcp.Problem(A, B, lo=-np.ones(3), hi=np.ones(3))
    for name in ("residual", "bounds", "multiply"):
        add(f"lcp.Problem.{name}", getattr(problem, name), pick("x"), words)
    add("lcp.Problem.valid", problem.valid, pick("x", "tol"), words)
    tree = {
        "parents": lambda w: PARENTS,
        "H": lambda w: H,
        "L": lambda w: fl.tree.ltl(H, PARENTS),
        "y": lambda w: np.ones(4),
        "x": lambda w: np.ones(4),
        "b": lambda w: np.ones(4),
        "dofs": lambda w: [1, 2, 1, 3],
        # takes a vector of any length, so that errors of a wrong n are those of the function, not of H @ qacc
        "inverse_dynamics": lambda w: lambda qacc: H[:, : qacc.size] @ qacc[:4],
        "n": lambda w: 4,
    }
    tree["from_book"] = lambda w: [0, 1, 2, 2]
    for name in fl.tree.__all__:
        item = getattr(fl.tree, name)
        if inspect.isfunction(item):
            named = [n for n in inspect.signature(item).parameters if n in tree]
            add(f"tree.{name}", item, {n: tree.get(name, tree[n]) for n in named}, ("matrix", "freedom", "parent"))
    link = {
        "kind": lambda w: "hinge",
        "body1": lambda w: "crate",
        "body2": lambda w: "hand",
        "name": lambda w: "l",
        "anchor": lambda w: UP,
        "axis": lambda w: DOWN,
        "range": lambda w: (-1.0, 1.0),
        "erp": lambda w: 0.2,
        "cfm": lambda w: 1e-5,
        "motor_vel": lambda w: 1.0,
        "motor_force": lambda w: 1.0,
        "motor_cfm": lambda w: 1e-5,
        "motor_fudge": lambda w: 1.0,
        "stop_erp": lambda w: 0.1,
        "stop_cfm": lambda w: 1e-5,
        "stop_bounce": lambda w: 0.1,
    }
    add("Link", lambda **arguments: fl.load(SCENE, links=fl.Link(**arguments)), link, ("link", "body"))
    network = {
        "weights": lambda w: [np.ones((4, 3)), np.ones((2, 4))],
        "biases": lambda w: [np.ones(4), np.ones(2)],
        "activation": lambda w: "elu",
        "mean": lambda w: np.zeros(3),
        "variance": lambda w: 1.0,
        "clip": lambda w: 5.0,
        "scale": lambda w: 0.5,
        "offset": lambda w: np.zeros(2),
        "std": lambda w: 0.1,
        "low": lambda w: -1.0,
        "high": lambda w: np.ones(2),
    }
    words = ("layer", "network", "observations", *network)
    add("policies.MLP", fl.policies.MLP, network, words)
    policy = fl.policies.MLP(network["weights"](None))
    given = {"observations": lambda w: np.ones((5, 3)), "noise": lambda w: np.ones((5, 2))}
    add("policies.MLP.sample", policy.sample, given, words)
    add(
        "policies.MLP.update_normalization", policy.copy().update_normalization, {"observations": given["observations"]}
    )
    counts = {"seed": lambda w: 3, "nworld": lambda w: 2, "nstep": lambda w: 4, "n": lambda w: 1}
    add("policies.gaussian_noise", fl.policies.gaussian_noise, counts)
    grid = {
        "kinds": lambda w: ("rough", "stairs"),
        "height": lambda w: 0.1,
        "seed": lambda w: 3,
        "levels": lambda w: 2,
        "side": lambda w: 2.0,
        "rim": lambda w: 0.2,
        "cell": lambda w: 0.1,
    }
    add("terrain.Terrain", fl.terrain.Terrain, grid, (*grid, "kind"))
    found |= _environments()
    return found


def _environments() -> dict[str, Site]:
    try:
        from featherlane.environments import BatchEnv
    except ImportError:
        return {}
    made = {
        "model": lambda w: w.m,
        "num_envs": lambda w: 3,
        "observation": lambda w: lambda batch: batch.qpos,
        "reward": lambda w: lambda batch, before: batch.time,
        "terminated": lambda w: lambda batch: batch.time > 9,
        "start": lambda w: lambda batch, ids, rng: None,
        "frame_skip": lambda w: 2,
        "max_episode_steps": lambda w: 9,
        "nthread": lambda w: 1,
        "dtype": lambda w: "float64",
        "autoreset_mode": lambda w: "NextStep",
        "info": lambda w: True,
        "copy": lambda w: False,
        "render_mode": lambda w: None,
        "render_worlds": lambda w: 2,
    }

    def build(world, **arguments):
        environment = BatchEnv(**arguments)
        environment.reset(seed=1)
        environment.step(np.zeros(environment.action_space.shape))

    def act(world, **arguments):
        environment = BatchEnv(
            world.m, 3, observation=lambda batch: batch.qpos, reward=lambda batch, before: batch.time, nthread=1
        )
        environment.reset(**{name: arguments[name] for name in ("seed", "options")})
        environment.step(arguments["actions"])

    words = ("nworld", "ids", "load", "batch", "seed", "control", "nstep")
    return {
        "BatchEnv": Site("BatchEnv", build, made, words),
        "BatchEnv.step": Site(
            "BatchEnv.step",
            act,
            {
                "actions": lambda w: np.zeros((3, w.m.nu)),
                "seed": lambda w: 1,
                "options": lambda w: {"reset_mask": np.ones(3, bool)},
            },
            (*words, "reset_mask"),
        ),
    }
