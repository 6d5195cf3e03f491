"""Robots of URDF files stand after `fl.load` with a base, a floor and actuators; the model is MuJoCo's."""

import warnings

import mujoco
import numpy as np
import pytest

import featherlane as fl
from robots import urdf

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*not read from the URDF"),
    pytest.mark.filterwarnings("ignore:.*links without a body"),
]
STANDING = {"base": "free", "floor": True, "actuators": "position"}
SIDES, LEGS = ("left", "right"), ("fl", "fr", "hl", "hr")
BENT = {f"{side}_{part}": angle for side in SIDES for part, angle in (("hip", -0.3), ("knee", 0.6), ("ankle", -0.3))}
CROUCHED = {f"{leg}_{part}": angle for leg in LEGS for part, angle in (("hip", 0.6), ("knee", -1.2))}
ROBOTS = {
    "biped": (urdf.biped(), None, 0.87),
    "bent biped": (urdf.biped(), BENT, 0.07 + 0.8 * np.cos(0.3)),
    "quadruped": (urdf.quadruped(), None, 0.42),
    "crouched quadruped": (urdf.quadruped(), CROUCHED, 0.42 * np.cos(0.6) + 0.015 * np.sin(0.6)),
}
robots = pytest.mark.parametrize("name", ROBOTS)
SAG = 0.01  # m: a leg bends under the weight
TILT = 0.02  # rad
DEFLECTION = 0.06  # rad: a knee of 82 N m/rad under the weight
ROUNDING = 1e-12  # m
SAME = 1e-9  # relative: accelerations of two engines


def standing(name, **other):
    text, home, _ = ROBOTS[name]
    return fl.load(text, **(STANDING | {"home": home} | other))


def pairs_without_contact(model):
    mj = model.to_mujoco()
    return {tuple(mj.body(int(b)).name for b in (each >> 16, each & 0xFFFF)) for each in mj.exclude_signature}


@robots
def test_it_stands_for_five_seconds(name):
    model = standing(name)
    data = fl.Data(model)
    data.reset(keyframe="home")
    start = data.qpos.copy()
    for _ in range(10):
        data.step(250)
        assert abs(data.qpos[2] - start[2]) < SAG
        assert 2 * np.linalg.norm(data.qpos[4:7]) < TILT
        assert abs(data.qpos[7:] - start[7:]).max() < DEFLECTION
    assert abs(data.qvel).max() < 0.02 and not any(data.status.values())


@robots
def test_the_base_is_placed_so_that_the_soles_touch_the_floor(name):
    model = standing(name)
    expected = ROBOTS[name][2]
    np.testing.assert_allclose(model.key_qpos[0, 2], expected, atol=ROUNDING)
    np.testing.assert_allclose(model.qpos0[2], 0.87 if "biped" in name else 0.42, atol=ROUNDING)


@robots
def test_accelerations_equal_mujocos(name):
    model = standing(name)
    mj, data = model.to_mujoco(), fl.Data(model)
    mj.opt.tolerance = model.opt.tolerance = 0.0
    rival = mujoco.MjData(mj)
    random = np.random.default_rng(0)
    data.reset(keyframe="home")
    data.qpos[2] -= 0.002  # contacts
    data.qvel = 0.1 * random.standard_normal(model.nv)
    data.ctrl = random.uniform(-1, 1, model.nu)
    rival.qpos[:], rival.qvel[:], rival.ctrl[:] = data.qpos, data.qvel, data.ctrl
    fl.forward(model, data)
    mujoco.mj_forward(mj, rival)
    assert data.ncon == rival.ncon > 3
    np.testing.assert_allclose(data.qacc, rival.qacc, rtol=SAME, atol=SAME * abs(rival.qacc).max())


def test_the_model_equals_one_that_mujocos_specification_builds():
    """Builds the same robot with MuJoCo alone."""
    spec = mujoco.MjSpec.from_string(urdf.biped())
    trunk = spec.body("trunk")
    trunk.add_freejoint(name="base")
    trunk.pos = [0, 0, 0.87]
    for joint in [joint.name for joint in spec.joints if joint.name != "base"]:
        actuator = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=100.0, kv=5.0)
        actuator.forcelimited, actuator.forcerange = True, [-80, 80]
        actuator.ctrllimited, actuator.ctrlrange = True, spec.joint(joint).range
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    expected, found = spec.compile(), standing("biped", gains=(100.0, 5.0)).to_mujoco()
    assert expected.nexclude == found.nexclude == 0
    names = "body_mass body_inertia body_pos jnt_range geom_pos geom_size geom_type actuator_gainprm actuator_biasprm "
    names += "actuator_forcerange actuator_ctrlrange actuator_trnid dof_M0 qpos0"
    for name in names.split():
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=ROUNDING, err_msg=name)
    assert found.opt.integrator == expected.opt.integrator


def test_gains_follow_from_effort_inertia_and_damping_ratio():
    model = standing("quadruped")
    mj, h = model.to_mujoco(), model.opt.timestep
    data, M = mujoco.MjData(mj), np.zeros((model.nv, model.nv))
    mujoco.mj_forward(mj, data)
    mujoco.mj_fullM(mj, data, M)
    inertia, alone = np.diag(M)[6:], 1 / np.diag(np.linalg.inv(M))[6:]
    kp = np.minimum(25 / 0.1, alone / (2 * h) ** 2)
    assert {250.0 in kp, bool((kp < 250).any())} == {True}, "both bounds are active"
    np.testing.assert_allclose(model.actuator_gainprm[:, 0], kp, rtol=1e-9)
    np.testing.assert_allclose(-model.actuator_biasprm[:, 2], 2 * np.sqrt(kp * inertia), rtol=1e-9)
    assert not {finding.check for finding in fl.diagnose(model)} & {"step-unstable", "undamped"}


def test_limits_become_ranges_and_mimic_joints_have_no_actuator():
    model = fl.load(urdf.arm(), actuators={"elbow": "position", "wrist": "motor", "left_finger": "velocity"})
    mj = model.to_mujoco()
    elbow, wrist, left = mj.actuator("elbow"), mj.actuator("wrist"), mj.actuator("left_finger")
    assert list(elbow.ctrlrange) == [-2, -0.2] and list(elbow.forcerange) == [-40, 40]
    assert list(left.ctrlrange) == [-0.2, 0.2] and list(left.forcerange) == [-20, 20]
    assert left.gainprm[0] == pytest.approx(20 / (0.1 * 0.2)) == -left.biasprm[2]
    assert not mj.actuator_ctrllimited[wrist.id] and not mj.actuator_forcelimited[wrist.id], "an effort of 0 is none"
    assert wrist.gainprm[0] == 1 and not wrist.biasprm.any()
    every = fl.load(urdf.arm(), actuators="motor")
    assert every.names("actuator") == ["turn", "elbow", "wrist", "left_finger"]
    assert list(every.to_mujoco().actuator("elbow").ctrlrange) == [-40, 40]
    assert (every.opt.integrator.name, model.opt.integrator.name) == ("EULER", "IMPLICITFAST")


def test_read_velocity_limits_are_no_loss():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one = fl.load(urdf.quadruped(), actuators={"fl_hip": "velocity"})
        every = fl.load(urdf.quadruped(), actuators="velocity")
    assert every.dropped == []
    assert "joint 'fl_knee'" in one.dropped[0] and "joint 'fl_hip'" not in one.dropped[0]
    assert len([each for each in caught if "velocity" in str(each.message)]) == 1


def test_gains_are_given_for_all_joints_or_by_joint():
    gains = {"left_hip": (300, 20), "right_hip": [200, 10]}
    model = standing("biped", gains=gains)
    default = standing("biped")
    for name in default.names("actuator"):
        i = model.actuator(name).id
        kp, kv = gains.get(name, (default.actuator_gainprm[i, 0], -default.actuator_biasprm[i, 2]))
        assert (model.actuator_gainprm[i, 0], model.actuator_biasprm[i, 2]) == (kp, -kv)
    velocity = fl.load(urdf.biped(), actuators="velocity", gains=7)
    assert (velocity.actuator_gainprm[:, 0] == 7).all()


def test_an_armature_is_that_of_all_hinges_or_of_named_joints_and_allows_larger_gains():
    light, heavy = standing("biped"), standing("biped", armature=0.02)
    ankle = light.actuator("left_ankle").id
    assert (heavy.dof_armature[6:] == 0.02).all() and not heavy.dof_armature[:6].any()
    assert light.actuator_gainprm[ankle, 0] < 400 and heavy.actuator_gainprm[ankle, 0] == 800
    arm = fl.load(urdf.arm(), armature={"left_finger": 0.5, "elbow": 0.1})
    named = dict(zip(arm.names("joint"), arm.dof_armature, strict=True))
    assert named == {"turn": 0, "elbow": 0.1, "wrist": 0, "left_finger": 0.5, "right_finger": 0}
    assert not fl.load(urdf.arm(), armature=0.1).joint("left_finger").armature[0], "a slide has another unit"


def test_home_has_positions_controls_and_joints_that_follow():
    model = fl.load(urdf.arm(), actuators="position", home={"left_finger": 0.03})
    named = dict(zip(model.names("joint"), model.key_qpos[0], strict=True))
    assert named == pytest.approx({"turn": 0, "elbow": -0.2, "wrist": 0, "left_finger": 0.03, "right_finger": 0.025}), (
        "the elbow's range does not contain 0"
    )
    assert list(model.key_ctrl[0]) == pytest.approx([0, -0.2, 0, 0.03])
    assert model.names("keyframe") == ["home"]


def test_a_fixed_base_is_placed_in_home():
    floating = (
        urdf.biped()
        .replace('<robot name="robot">', '<robot name="robot"><link name="root"/>')
        .replace(
            "</robot>", '<joint name="float" type="floating"><parent link="root"/><child link="trunk"/></joint></robot>'
        )
    )
    assert fl.load(floating).nq == 13
    for text in (urdf.biped(), floating):
        model = fl.load(text, base="fixed", floor=True, home=BENT)
        data = fl.Data(model)
        data.reset(keyframe="home")
        fl.forward(model, data)
        assert model.nq == 6
        foot = data.body("left_foot")
        assert foot.xpos[2] == pytest.approx(0.07), "the sole touches the floor"


def test_the_height_can_be_given():
    model = standing("bent biped", height=1.5)
    assert model.qpos0[2] == model.key_qpos[0, 2] == 1.5
    arm = fl.load(urdf.arm(), height=0.5)
    data = fl.Data(arm)
    fl.forward(arm, data)
    assert data.body("upper").xpos[2] == pytest.approx(0.8)


@pytest.mark.parametrize("shape", ["sphere", "capsule", "cylinder", "ellipsoid", "box", "mesh"])
def test_the_lowest_point_of_each_shape_touches_the_floor(shape):
    """Compares with the heights of many points of the surface."""
    sizes = {"sphere": (0.1,), "capsule": (0.05, 0.1), "cylinder": (0.05, 0.1)}
    size = " ".join(map(str, sizes.get(shape, (0.05, 0.1, 0.2))))
    inside = f'type="{shape}" size="{size}"' if shape != "mesh" else 'type="mesh" mesh="wedge"'
    text = f"""<mujoco><asset><mesh name="wedge" vertex="0 0 0  .2 0 0  0 .3 0  0 0 .4  .1 .1 .5"/></asset><worldbody>
      <body name="base" euler="30 40 50" pos="1 2 3"><geom name="g" {inside} pos=".1 .2 .3" euler="10 70 20"/></body>
      </worldbody></mujoco>"""
    model = fl.load(text, base="free", floor=True)
    mj = model.to_mujoco()
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    geom = mj.geom("g").id
    R = data.geom_xmat[geom].reshape(3, 3)
    points = surface(shape, mj, geom)
    assert (points @ R.T + data.geom_xpos[geom])[:, 2].min() == pytest.approx(0.0, abs=1e-4)
    assert list(model.qpos0[:2]) == [1, 2]


def surface(kind, mj, geom):
    """Returns many points of the surface of a geom, in its frame."""
    if kind == "mesh":
        return mj.mesh_vert.astype(float)
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(-np.pi / 2, np.pi / 2, 361))
    ball = np.stack([np.cos(u) * np.cos(v), np.sin(u) * np.cos(v), np.sin(v)], axis=-1).reshape(-1, 3)
    a, b, c = mj.geom_size[geom]
    if kind == "sphere":
        return a * ball
    if kind == "ellipsoid":
        return ball * [a, b, c]
    if kind == "capsule":
        return a * ball + b * np.sign(ball[:, 2:]) * [0, 0, 1]
    if kind == "cylinder":
        rim = np.stack([a * np.cos(u[0]), a * np.sin(u[0]), 0 * u[0]], axis=-1)
        return np.concatenate([rim + [0, 0, b], rim - [0, 0, b]])
    return np.stack(np.meshgrid((-a, a), (-b, b), (-c, c)), axis=-1).reshape(-1, 3)


def test_links_that_touch_at_rest_do_not_collide():
    assert pairs_without_contact(fl.load(urdf.arm(), base="fixed")) == {("pedestal", "upper")}
    # an ankle of two joints: shank and foot touch, but are no neighbours
    shank, foot = urdf.link("shank", (0.1, 0.1, 0.4), 1.0), urdf.link("foot", (0.2, 0.1, 0.06), 1.0)
    cross = urdf.link("cross", (0.01, 0.01, 0.01), 0.1)
    parts = (urdf.joint("pitch", "shank cross", "0 0 -0.2"), urdf.joint("roll", "cross foot", "0 0 0", "1 0 0"))
    text = urdf.robot(shank, cross, foot, *parts)
    data = fl.Data(fl.load(text))
    fl.forward(data.model, data)
    assert data.ncon > 0
    model = fl.load(text, **STANDING)
    assert pairs_without_contact(model) == {("shank", "foot")}
    data = fl.Data(model)
    fl.forward(model, data)
    assert all("floor" in (model.geom(int(g)).name for g in each.geom) for each in data.contact[: data.ncon])


def test_links_that_touch_in_home_do_not_collide():
    text = urdf.arm().replace('lower="-2"', 'lower="-3.1"')
    neighbours = {("pedestal", "upper")}
    assert pairs_without_contact(fl.load(text, floor=True)) == neighbours
    folded = pairs_without_contact(fl.load(text, home={"elbow": -3.1}))
    assert folded == neighbours | {(one, other) for one in ("pedestal", "upper") for other in ("hand", "left", "right")}


def test_without_arguments_the_model_is_that_of_the_file():
    expected, found = mujoco.MjModel.from_xml_string(urdf.arm()), fl.load(urdf.arm()).to_mujoco()
    assert (found.nu, found.nkey, found.nexclude, found.nq) == (0, 0, 0, expected.nq)
    np.testing.assert_array_equal(found.body_pos, expected.body_pos)


def test_a_link_named_world_is_the_world():
    text = (
        urdf.biped()
        .replace('<robot name="robot">', '<robot name="robot"><link name="world"/>')
        .replace("</robot>", urdf.joint("weld", "world trunk", "0 0 1", kind="fixed") + "</robot>")
    )
    model = fl.load(text, **STANDING)
    assert model.nq == 13 and model.qpos0[2] == pytest.approx(0.87)


def test_files_with_meshes_and_repairs_stand(tmp_path):
    package = tmp_path / "robot"
    (package / "meshes").mkdir(parents=True)
    corners = [(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.3, 0.1)]
    faces = "1 2 4,1 4 3,5 8 6,5 7 8,1 6 2,1 5 6,3 4 8,3 8 7,1 3 7,1 7 5,2 6 8,2 8 4".split(",")
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {face}" for face in faces]
    (package / "meshes" / "body.obj").write_text("\n".join(lines))
    mesh = '<geometry><mesh filename="package://robot/meshes/body.obj"/></geometry>'
    inertial = '<inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="2.5" ixy="0" ixz="0" iyz="0"/></inertial>'
    file = tmp_path / "robot.urdf"
    file.write_text(f'<robot name="r"><link name="a">{inertial}<collision>{mesh}</collision></link></robot>')
    with pytest.raises(fl.errors.ModelError, match="repair=True"):
        fl.load(file, package_dirs=tmp_path, base="free")
    with pytest.warns(UserWarning, match="repaired"):
        model = fl.load(file, package_dirs=tmp_path, repair=True, base="free", floor=True)
    assert model.qpos0[2] == pytest.approx(0.3, abs=1e-6)
    data = fl.Data(model)
    data.step(200)
    assert data.qpos[2] == pytest.approx(0.3, abs=0.002) and data.ncon == 4


def test_mjcf_and_specifications_are_set_up_and_not_changed():
    text = """<mujoco><worldbody><geom name="table" type="plane" size="1 1 1"/><body name="base" pos="0 0 2">
      <geom size=".1"/><body name="arm" pos="0 0 .1"><joint name="j" axis="0 1 0" actuatorfrcrange="-5 5"/>
      <geom type="capsule" fromto="0 0 0 0 0 .3" size=".05"/></body></body></worldbody></mujoco>"""
    spec = mujoco.MjSpec.from_string(text)
    for source in (text, spec):
        model = fl.load(source, base="free", actuators="position")
        assert (model.nq, model.nu) == (8, 1) and model.qpos0[2] == pytest.approx(0.1)
        assert pairs_without_contact(model) == set(), "an MJCF file lists them itself"
    assert len(spec.joints) == 1 and len(spec.actuators) == 0


def test_meshes_and_variants_are_set_up_too():
    text = (
        """<mujoco><worldbody><body name="base" pos="0 0 2"><geom name="ball" size=".1"/></body></worldbody></mujoco>"""
    )

    def grow(spec):
        spec.geom("ball").size[0] = 0.2

    model = fl.load(text, base="free", floor=True, variants={"size": {"small": lambda spec: None, "large": grow}})
    assert model.nq == 7 and model.qpos0[2] == pytest.approx(0.1)


FREE = '<mujoco><worldbody><body name="b"><freejoint name="root"/><geom size=".1"/></body></worldbody></mujoco>'
TWO = '<mujoco><worldbody><body name="b"><geom size=".1"/></body><body name="c"/></worldbody></mujoco>'
SLIDE = '<mujoco><worldbody><body name="b"><joint name="x" type="slide"/><geom size=".1"/></body></worldbody></mujoco>'
KEYED = TWO.replace('<body name="c"/>', "").replace("</mujoco>", '<keyframe><key name="home"/></keyframe></mujoco>')
SERVO = SLIDE.replace("</mujoco>", '<actuator><motor joint="x"/></actuator></mujoco>')
NAMELESS = SLIDE.replace(' name="x"', "")
FLOORED = TWO.replace('<body name="c"/>', '<geom name="floor" size=".1"/>')
EMPTY = (
    '<mujoco><worldbody><body name="b"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>'
)
WRONG = {
    "base": (urdf.arm(), {"base": "floating"}, "base: got 'floating', allowed are free, fixed"),
    "a base that is free": (FREE, {"base": "free"}, "base: got 'free', but the model has the free joint 'root'"),
    "a base on joints": (SLIDE, {"base": "free"}, "base: .* the base 'b' has the joint 'x'"),
    "two bases": (TWO, {"base": "free"}, "base: the world has 'b', 'c'; allowed is one body"),
    "no base": ("<mujoco/>", {"height": "auto"}, "height: the world has no body"),
    "keyframes": (KEYED, {"base": "free"}, r"base: 'free' would change the size of qpos, .* keyframes \('home'\)"),
    "a second home": (KEYED, {"home": {}}, "home: the model has a keyframe 'home' already"),
    "a second floor": (FLOORED, {"floor": True}, "floor: the model has a geom 'floor' already"),
    "floor": (urdf.arm(), {"floor": "yes"}, "floor: got .*'yes', allowed are True and False"),
    "height": (urdf.arm(), {"height": "low"}, "height: got 'low', allowed are 'auto' and a finite number"),
    "an infinite height": (urdf.arm(), {"height": np.nan}, "height: got nan"),
    "no geoms": (EMPTY, {"base": "free"}, "height: no geom of 'b' and its descendants collides; allowed is a number"),
    "home": (urdf.arm(), {"home": 0.3}, "home: got float, allowed is a dict"),
    "an unknown joint": (urdf.arm(), {"home": {"elbw": 0}}, "home: no joint 'elbw'; did you mean 'elbow'"),
    "a position beyond": (urdf.arm(), {"home": {"elbow": 1}}, "home: joint 'elbow': got 1, allowed is its range"),
    "a position of nan": (urdf.arm(), {"home": {"elbow": np.nan}}, "home: joint 'elbow': got nan"),
    "a mimic position": (urdf.arm(), {"home": {"right_finger": 0}}, "home: joint 'right_finger' follows another"),
    "a free position": (FREE, {"home": {"root": 0}}, "home: joint 'root' is a free or ball joint"),
    "actuators": (
        urdf.arm(),
        {"actuators": "torque"},
        "actuators: got 'torque', allowed are position, vel",
    ),
    "a number of actuators": (urdf.arm(), {"actuators": 3}, "actuators: got 3"),
    "kind of a joint": (urdf.arm(), {"actuators": {"elbow": "pos"}}, "actuators: joint 'elbow': got 'pos'"),
    "unknown actuators": (urdf.arm(), {"actuators": {"elbw": "motor"}}, "actuators: no joint 'elbw'; did you mean"),
    "mimic actuators": (urdf.arm(), {"actuators": {"right_finger": "motor"}}, "joint 'right_finger' follows another"),
    "free actuators": (FREE, {"actuators": {"root": "motor"}}, "actuators: joint 'root' is a free or ball joint"),
    "second actuators": (SERVO, {"actuators": "motor"}, "actuators: joint 'x' has an actuator already"),
    "nameless joints": (NAMELESS, {"actuators": "motor"}, "actuators: joint #0 has no name"),
    "gains alone": (urdf.arm(), {"gains": (1, 2)}, "gains: allowed only with actuators"),
    "gains": (urdf.arm(), {"actuators": "position", "gains": (1, 2, 3)}, r"gains: got \(1, 2, 3\)"),
    "negative gains": (
        urdf.arm(),
        {"actuators": "position", "gains": (-1, 2)},
        "gains: got -1, allowed is a finite number",
    ),
    "text gains": (urdf.arm(), {"actuators": "position", "gains": "high"}, "gains: got 'high'"),
    "one gain": (
        urdf.arm(),
        {"actuators": "position", "gains": 5},
        r"joint 'turn': got 5.0, allowed .* \(kp, kv\)",
    ),
    "two gains": (urdf.arm(), {"actuators": "velocity", "gains": (5, 1)}, "allowed for velocity is a number kv"),
    "motor gains": (urdf.arm(), {"actuators": "motor", "gains": {"elbow": 5}}, "allowed for motor is none"),
    "armature": (urdf.arm(), {"armature": "light"}, "armature: got 'light', allowed is a finite number"),
    "a negative armature": (urdf.arm(), {"armature": {"elbow": -1}}, "armature: joint 'elbow': got -1, allowed is"),
    "unknown armatures": (urdf.arm(), {"armature": {"elbw": 1}}, "armature: no joint 'elbw'; did you mean 'elbow'"),
    "free armatures": (FREE, {"armature": {"root": 1}}, "armature: joint 'root' is a free or ball joint"),
    "unknown gains": (
        urdf.arm(),
        {"actuators": "position", "gains": {"elbw": (1, 2)}},
        "gains: no actuator on a j",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named(case):
    text, arguments, message = WRONG[case]
    with pytest.raises(fl.errors.ModelError, match=message):
        fl.load(text, **arguments)


def test_unknown_joints_are_unknown_names():
    for argument in (
        {"home": {"x": 0}},
        {"actuators": {"x": "motor"}},
        {"actuators": "position", "gains": {"x": (1, 1)}},
    ):
        with pytest.raises(fl.errors.UnknownNameError, match="'x'"):
            fl.load(urdf.arm(), **argument)


def test_compiled_models_cannot_be_set_up():
    with pytest.raises(fl.errors.ModelError, match="base: got an MjModel"):
        fl.load(mujoco.MjModel.from_xml_string(FREE), base="fixed")
