"""`featherlane.integrations.mjbatch` next to mjbatch: the same calls, in random order.

mjbatch 0.1.4 needs MuJoCo 3.14; `test_other_mujoco.py` runs this file in a separate process.
"""

import mjbatch as theirs
import mujoco
import numpy as np
import pytest

from featherlane.integrations import mjbatch as ours

N = 7
SCENE = """<mujoco>
  <option timestep="0.004" tolerance="0"/>
  <size nuserdata="2"/>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <body name="box" pos="0 0 .3">
      <freejoint name="root"/>
      <geom name="box" type="box" size=".1 .1 .1"/>
      <body name="arm" pos=".1 0 .1">
        <joint name="elbow" axis="0 1 0" damping=".1" range="-1 1" limited="true"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
        <site name="tip" pos=".3 0 0"/>
      </body>
    </body>
    <body name="wrist" pos="1 0 1"> <joint name="ball" type="ball" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 0 .2 -.2" size=".04"/> </body>
    <body name="target" mocap="true" pos="0 0 1"/>
  </worldbody>
  <equality> <connect body1="arm" body2="target" anchor=".3 0 0" active="false"/> </equality>
  <actuator> <motor name="motor" joint="elbow" gear="2"/>
    <general joint="ball" dyntype="filter" dynprm=".05" gear="0 1 0"/> </actuator>
  <sensor> <framepos name="place" objtype="site" objname="tip"/> <touch site="tip"/> <gyro name="gyro" site="tip"/>
  </sensor>
  <keyframe> <key qpos="0 0 1 1 0 0 0 .2 1 0 0 0" ctrl=".3 -.1"/> <key qvel="0 0 1 0 0 0 .2 0 .1 0"/> </keyframe>
</mujoco>"""
STATE = ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "userdata", "time")
WRITTEN = ("ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "qvel", "eq_active", "userdata", "state")
DERIVED = ("sensordata", "xpos", "site_xmat", "actuator_force", "cvel", "qfrc_bias", "qacc")
ABSENT = """body_awake body_awake_ind bvh_aabb_dyn bvh_active dof_awake_ind flexedge_J flexedge_length flexedge_velocity
    flexelem_aabb flexelem_krot flexvert_J flexvert_conage flexvert_lambda flexvert_length flexvert_xpos light_xdir
    light_xpos moment_colind moment_rowadr moment_rownnz parent_awake_ind plugin plugin_state qDeriv qH qHDiagInv qLU
    ten_wrapadr ten_wrapnum wrap_obj wrap_xpos"""  # fields of MjData that Featherlane does not have
UNEXPANDED = "names_map plugin plugin_attradr plugin_stateadr plugin_statenum"


def model():
    return mujoco.MjModel.from_xml_string(SCENE)


def close(found, reference, name="", rtol=1e-7):
    found, reference = np.asarray(found, float), np.asarray(reference, float)
    assert found.shape == reference.shape, name
    atol = rtol * max(1.0, np.abs(reference).max(initial=0.0))
    np.testing.assert_allclose(found, reference, rtol, atol, err_msg=name)


class Pair:
    """Makes the same calls on both, and compares all arrays."""

    def __init__(self, seed, **how):
        self.rng, self.model = np.random.default_rng(seed), model()
        self.batches = [library.Batch(self.model, N, 2, **how) for library in (ours, theirs)]
        self.arrays = {}

    def bind(self, name, dtype=None):
        self.arrays[name] = [batch.bind(name, dtype) for batch in self.batches]

    def call(self, name, *args, **how):
        for batch in self.batches:
            getattr(batch, name)(*args, **how)

    def write(self, name, sims, value):
        for array in self.arrays[name]:
            array[sims] = value

    def compare(self, single=frozenset()):
        for name, (found, reference) in self.arrays.items():
            assert found.dtype == reference.dtype, name
            close(found, reference, name, 1e-5 if name in single else 1e-7)

    def ids(self):
        some = np.flatnonzero(self.rng.random(N) < 0.6)
        return [None, some, np.isin(np.arange(N), some)][self.rng.integers(3)]


@pytest.mark.parametrize("seed", range(12))
def test_random_calls(seed):
    """Writes to state vectors, fields and float32 copies, in between steps, resets and forward passes."""
    pair, rng = Pair(seed, forward=bool(seed % 2)), np.random.default_rng(seed)
    single = {name for name in (*STATE, *DERIVED) if rng.random() < 0.4}
    for name in ("state", "eq_active", *STATE, *DERIVED):
        pair.bind(name, np.float32 if name in single else None)
    for batch in pair.batches:
        batch.expand("body_mass")[:, 1] *= 1.1
    start = pair.arrays["state"][1].copy()
    actions = ["step", "step", "step", "forward", "reset", "jac", "wrong", "nothing"]
    written = [*WRITTEN]
    if seed % 3 == 0:  # mjbatch computes constants of equalities with mocap poses of other simulations
        actions.append("set_const")
        written.remove("mocap_pos")
    for _ in range(60):
        sims = np.flatnonzero(rng.random(N) < 0.5)
        name = rng.choice(written)
        value = rng.normal(0, 0.3, pair.arrays[name][1][sims].shape)
        if name == "eq_active":
            value = value > 0.2
        if name == "state":
            value = start[sims]  # not a copy of rows, which differ by rounding: a reset keeps changed elements
            value[:, 1 : 1 + pair.model.nq + pair.model.nv] += rng.normal(0, 0.1, pair.model.nq + pair.model.nv)
        pair.write(name, sims, value)
        action = rng.choice(actions)
        if action == "step":
            pair.call("step", pair.ids(), int(rng.integers(1, 4)))
        elif action == "forward":
            pair.call("forward", pair.ids())
        elif action == "reset":
            pair.call("reset", pair.ids(), int(rng.integers(-1, 2)))
        elif action == "set_const":  # leaves the state and what the caller wrote as they are
            pair.call("set_const", pair.ids())
        elif action == "jac":
            found = [np.zeros((N, 3, pair.model.nv)) for _ in pair.batches]
            for batch, jacp in zip(pair.batches, found, strict=True):
                batch.jac(jacp, None, np.ones((N, 3)), np.full(N, 2, np.int32))
            close(*found)
        elif action == "wrong":
            for batch in pair.batches:
                with pytest.raises(ValueError, match="keyframe"):
                    batch.reset(keyframe=9)
            continue
        else:
            continue
        pair.compare(single)


@pytest.mark.parametrize("seed", range(4))
def test_random_model_fields(seed):
    pair, rng = Pair(seed), np.random.default_rng(100 + seed)
    for name in ("qpos", "qvel", "sensordata"):
        pair.bind(name)
    fields = {
        name: [batch.expand(name) for batch in pair.batches] for name in ("body_mass", "gravity", "geom_friction")
    }
    fields["dof_damping"] = [batch.expand("dof_damping", np.float32) for batch in pair.batches]
    derived = ("body_subtreemass", "dof_invweight0", "body_invweight0", "dof_M0")
    for k in range(12):
        name = rng.choice(list(fields))
        sims, scale = np.flatnonzero(rng.random(N) < 0.5), rng.uniform(0.8, 1.2)
        for array in fields[name]:
            array[sims] *= array.dtype.type(scale)
        if k % 3 == 0:
            ids = np.flatnonzero(rng.random(N) < 0.5)
            pair.call("set_const", None if k == 9 else ids)
        pair.call("step", None, 2)
        pair.compare()
        for each in fields.values():
            close(*each)
    for name in derived:
        close(*(batch.expand(name) for batch in pair.batches), name)


def test_named_views_have_equal_shapes_and_types():
    pair = Pair(0)
    pair.call("reset", keyframe=0)
    for call in (
        lambda b: vars(b.joint("root")),
        lambda b: vars(b.joint("ball")),
        lambda b: vars(b.joint("elbow")),
        lambda b: vars(b.actuator("motor")),
        lambda b: vars(b.body("arm")),
        lambda b: vars(b.site("tip")),
        lambda b: {"place": b.sensor("place"), "gyro": b.sensor("gyro")},
    ):
        found, reference = (call(batch) for batch in pair.batches)
        pair.call("forward")
        assert found.keys() == reference.keys()
        for name in found:
            assert found[name].dtype == reference[name].dtype
            close(found[name], reference[name], name)


@pytest.mark.parametrize(("call", "absent"), [("bind", ABSENT), ("expand", UNEXPANDED)])
def test_fields_have_mjbatchs_shapes_and_types(call, absent):
    pair, lacking = Pair(0), set()
    for name in {*dir(mujoco.MjData(pair.model)), *dir(pair.model), *dir(pair.model.opt), "state", "warning"}:
        try:
            reference = getattr(pair.batches[1], call)(name)
        except ValueError:
            continue
        try:
            found = getattr(pair.batches[0], call)(name)
        except ValueError:
            lacking.add(name)
        else:
            assert (found.shape, found.dtype) == (reference.shape, reference.dtype), name
    assert lacking == set(absent.split())


def test_public_names():
    found, reference = ({name for name in dir(batch) if not name.startswith("_")} for batch in Pair(0).batches)
    assert found == reference
    assert {"Batch", "Joint", "Actuator", "Body", "Site"} <= set(dir(theirs))


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.bind("nope"),
        lambda b: b.bind("gravity"),
        lambda b: b.expand("qvel"),
        lambda b: b.expand("tex_data"),
        lambda b: b.bind("qpos", np.float16),
        lambda b: b.bind("state", np.float32),
        lambda b: b.expand("geom_contype", np.float32),
        lambda b: (b.bind("qvel", np.float32), b.bind("qvel")),
        lambda b: (b.expand("body_mass"), b.expand("body_mass", np.float32)),
        lambda b: b.step(nstep=0),
        lambda b: b.step(np.array([2, 1])),
        lambda b: b.step(np.array([N])),
        lambda b: b.step(np.ones(N - 1, bool)),
        lambda b: b.reset(keyframe=2),
        lambda b: b.step(nstep=2, history=np.empty((N, 2, 3))),
        lambda b: b.rays(np.zeros((N, 2, 3)), np.ones((N, 2, 3)), np.empty((N, 4))[:, ::2]),
        lambda b: b.rays(np.zeros((N, 2, 3)), np.ones((N, 2, 3), np.float32), np.empty((N, 2))),
        lambda b: b.jac(None, np.empty((N, 3, 3)), np.zeros((N, 3)), np.zeros(N, np.int32)),
    ],
)
def test_wrong_arguments_raise_mjbatchs_errors(call):
    for batch in Pair(0).batches:
        with pytest.raises(ValueError):
            call(batch)
