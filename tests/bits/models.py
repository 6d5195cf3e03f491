"""Models for the recorded bits, as MJCF text: random trees of all kinds of elements, shapes in contact, a heap."""

from __future__ import annotations

import itertools

import numpy as np

TYPES = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
GROUNDS = ("plane", "hfield", *TYPES)
# a wedge of six corners and a lump of ten, by hand
MESHES = """
<mesh name="wedge" vertex="-.1 -.1 -.1 .2 -.1 -.1 -.1 .15 -.1 .2 .15 -.1 -.1 0 .15 .2 0 .15"/>
<mesh name="lid" vertex=".2 .1 -.05 .1 .2 -.05 -.1 .2 -.05 -.2 .1 -.05 -.2 -.1 -.05 -.1 -.2 -.05 .1 -.2 -.05
  .2 -.1 -.05 .2 .1 .05 .1 .2 .05 -.1 .2 .05 -.2 .1 .05 -.2 -.1 .05 -.1 -.2 .05 .1 -.2 .05 .2 -.1 .05"/>
<mesh name="lump" vertex=".2 0 0 -.15 .05 0 0 .18 .02 .03 -.17 0 0 .02 .2 .02 0 -.16 .1 .1 .1 -.1 .1 -.1 .1 -.1 .1
  .1 .08 -.12"/>
<hfield name="hills" nrow="5" ncol="7" size="4 4 .2 .2" elevation="0 .2 .5 .3 .1 0 .4 .2 .3 .1 0 .6 .3 .2 .1 0 .4
  .7 .5 .2 0 .3 .2 .1 .4 .2 .6 .1 .5 .3 .2 .1 0 .3 .2"/>
"""
SIZES = {
    "sphere": 'type="sphere" size=".15"',
    "capsule": 'type="capsule" size=".08 .12"',
    "ellipsoid": 'type="ellipsoid" size=".18 .12 .1"',
    "cylinder": 'type="cylinder" size=".12 .1"',
    "box": 'type="box" size=".1 .13 .16"',
    "mesh": 'type="mesh" mesh="lump"',
    "wedge": 'type="mesh" mesh="wedge"',
    "lid": 'type="mesh" mesh="lid"',
    "plane": 'type="plane" size="9 9 1"',
    "hfield": 'type="hfield" hfield="hills"',
}
HEIGHT = {"sphere": 0.15, "capsule": 0.2, "ellipsoid": 0.1, "cylinder": 0.1, "box": 0.16, "mesh": 0.2, "wedge": 0.1}
HEIGHT |= {"lid": 0.05, "plane": 0.0, "hfield": 0.1}  # m: from the centre to the surface above or below


class Numbers:
    """Returns values as text, bitwise identical everywhere."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def __call__(self, low: float = -1.0, high: float = 1.0, count: int = 1) -> str:
        return " ".join(f"{low + (high - low) * x:.3f}" for x in self.rng.random(count))

    def among(self, options):
        """Returns a random one of several."""
        return options[int(self.rng.integers(len(options)))]

    def chance(self, part: float) -> bool:
        """Returns True in this fraction of the cases."""
        return bool(self.rng.random() < part)


# ---- shapes ----------------------------------------------------------------------------------------------------------
def shapes(ground: str, option: str = "", seed: int = 3) -> str:
    """Returns free bodies of every shape on one kind of ground, upright and rotated; friction of every dimension."""
    draw, bodies = Numbers(seed), ""
    for k, (kind, turned) in enumerate(itertools.product((*TYPES, "wedge", "lid"), (False, True))):
        x, y, dim = 1.0 * (k % 5) - 2, 1.0 * (k // 5) - 1, (1, 3, 4, 6)[k % 4]
        high = 0.27 if turned else HEIGHT[ground] + HEIGHT[kind] - 0.002
        if ground not in ("plane", "hfield"):
            euler = draw(-90, 90, 3) if turned else "0 0 0"
            bodies += f'<geom {SIZES[ground]} pos="{x} {y} 0" euler="{euler}"/>'
        bodies += f"""<body pos="{x} {y} {high:.3f}" euler="{draw(-90, 90, 3) if turned else "0 0 0"}"><freejoint/>
          <geom {SIZES[kind]} condim="{dim}" friction=".7 .02 .01" margin="{0.01 * (k % 2)}"/></body>"""
    floor = f"<geom {SIZES[ground]}/>" if ground in ("plane", "hfield") else ""
    return f"""<mujoco><option timestep=".005" {option}/><asset>{MESHES}</asset>
      <worldbody>{floor}{bodies}</worldbody></mujoco>"""


def stones(count: int = 5, corners: int = 150) -> str:
    """Returns smooth hulls that lie on each other: their faces bend slightly, some inwards."""
    draw, meshes, bodies = np.random.default_rng(5), "", ""
    for k in range(count):
        v = 2.0 * draw.random((corners, 3)) - 1.0
        v /= np.maximum(np.abs(v).max(axis=1), np.abs(v).sum(axis=1) / 2.0)[:, None]
        numbers = " ".join(f"{x:.4f}" for x in (v * (0.1, 0.08, 0.06)).ravel())
        meshes += f'<mesh name="stone{k}" vertex="{numbers}"/>'
        place = f"{0.05 * (k % 2)} {0.03 * (k % 3)} {0.07 + 0.13 * k}"
        bodies += f'<body pos="{place}"><freejoint/><geom type="mesh" mesh="stone{k}"/></body>'
    return f"""<mujoco><option timestep=".004"/><asset>{meshes}</asset>
      <worldbody><geom type="box" size="2 2 .1" pos="0 0 -.1"/>{bodies}</worldbody></mujoco>"""


def aligned(lying: bool = False) -> str:
    """Returns bodies of every shape inside each other, with parallel axes: every choice of an axis is a tie."""
    euler = "90 0 0" if lying else "0 0 0"
    bodies = "".join(f'<body euler="{euler}"><freejoint/><geom {SIZES[kind]}/></body>' for kind in (*TYPES, *TYPES))
    rods = "".join(
        f'<body pos="{x} 0 {0.1 * k}" euler="0 90 0"><freejoint/><geom {SIZES["capsule"]}/></body>'
        for k, x in enumerate((3, 3.1, 3.5))
    )
    return f"<mujoco><asset>{MESHES}</asset><worldbody>{bodies}{rods}</worldbody></mujoco>"


def heap(option: str = "", flag: str = "") -> str:
    """Returns bodies on a floor, on each other and apart, with an arm and a chain of balls, with all rows."""
    free = "".join(
        f'<body name="f{k}" pos="{0.12 * (k % 3)} {0.1 * (k % 2)} {0.12 + 0.11 * k}"><freejoint/>'
        f'<geom {SIZES[kind]} condim="{(3, 4, 6, 1, 3, 6)[k]}"/></body>'
        for k, kind in enumerate(("box", "sphere", "box", "capsule", "ellipsoid", "cylinder"))
    )
    return f"""<mujoco><option timestep=".004" {option}><flag {flag}/></option>
    <default><geom friction=".6 .02 .01"/></default>
    <worldbody><geom type="plane" size="5 5 1"/>{free}
      <body name="arm" pos="-.5 0 .3"><joint name="a" axis="0 1 0" limited="true" range="-20 20" frictionloss=".2"/>
        <geom type="capsule" fromto="0 0 0 .3 0 -.05" size=".04"/>
        <body pos=".3 0 -.05"><joint name="b" axis="0 1 1" damping=".1" limited="true" range="-10 10"/>
          <joint name="c" type="slide" axis="1 0 0" limited="true" range="-.05 .05"/>
          <geom type="capsule" fromto="0 0 0 .25 0 -.1" size=".04" condim="4"/></body></body>
      <body name="ball" pos="0 .6 .1"><joint type="ball" limited="true" range="0 20" frictionloss=".05"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".05"/>
        <body name="end" pos=".2 0 0"><joint type="ball"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".05"/></body>
      </body>
      <body pos="1 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    </worldbody>
    <tendon><fixed name="t" limited="true" range="-.1 .1" frictionloss=".1"><joint joint="a" coef="1"/>
      <joint joint="b" coef="-1"/></fixed></tendon>
    <equality><connect body1="f0" body2="f3" anchor="0 0 .1"/><joint joint1="a" joint2="c" polycoef="0 .2 0 0 0"/>
      </equality></mujoco>"""


# ---- trees -----------------------------------------------------------------------------------------------------------
def tree(seed: int, option: str = "", flag: str = "") -> str:
    """Returns a random forest: branching trees of all joints and shapes, tendons, actuators, equalities, sensors."""
    draw = Numbers(seed)
    grown = _Grown()
    roots = "".join(_branch(draw, grown, 0) for _ in range(2 + seed % 3))
    ground = SIZES["hfield" if seed % 3 == 2 else "plane"]
    return f"""<mujoco><option timestep=".004" gravity="{draw(-1, 1, 2)} -9.8" {option}><flag {flag}/></option>
    <compiler autolimits="true"/><asset>{MESHES}</asset>
    <worldbody><geom name="ground" {ground} friction=".8 .01 .01"/><site name="post" pos="{draw(-0.5, 0.5, 2)} 1"/>
      <body name="hand" mocap="true" pos="{draw(-1, 1, 2)} .4"><geom name="palm" {SIZES["box"]}/></body>
      {roots}</worldbody>
    <tendon>{_tendons(draw, grown)}</tendon>
    <actuator>{_actuators(draw, grown)}</actuator>
    <equality>{_equalities(draw, grown)}</equality>
    <sensor>{_sensors(draw, grown)}</sensor></mujoco>"""


class _Grown:
    """Names of the elements created so far."""

    def __init__(self):
        self.bodies, self.hinges, self.slides, self.balls = [], [], [], []

    @property
    def straight(self) -> list[str]:
        """Returns joints of one coordinate."""
        return [*self.hinges, *self.slides]


def _branch(draw, grown, depth: int) -> str:
    """Returns a body with its joints and shape, and its children."""
    name = f"b{len(grown.bodies)}"
    grown.bodies.append(name)
    place = f"{draw(-1, 1, 2)} {draw(0.15, 0.6)}" if depth == 0 else draw(-0.3, 0.3, 3)
    joints = "<freejoint/>" if depth == 0 and draw.chance(0.6) else _joints(draw, grown, name)
    kind = draw.among((*TYPES, "wedge"))
    extra = f'gravcomp="{draw(0, 1)}"' if draw.chance(0.2) else ""
    geom = f'<geom name="{name}" {SIZES[kind]} condim="{draw.among((1, 3, 3, 4, 6))}" euler="{draw(-90, 90, 3)}"/>'
    children = "".join(_branch(draw, grown, depth + 1) for _ in range(draw.among((0, 1, 1, 2)) if depth < 4 else 0))
    return f"""<body name="{name}" pos="{place}" euler="{draw(-40, 40, 3)}" {extra}>{joints}{geom}
      <site name="{name}" pos="{draw(-0.1, 0.1, 3)}"/>{children}</body>"""


def _joints(draw, grown, body: str) -> str:
    """Returns a ball joint, or up to three hinges and slides."""
    give = f'armature="{draw(0, 0.05)}" damping="{draw(0, 0.5)}"'
    if draw.chance(0.25):
        grown.balls.append(f"{body}ball")
        limit = 'range="0 60"' if draw.chance(0.5) else ""
        return f'<joint name="{body}ball" type="ball" {give} {limit} stiffness="{draw(0, 2)}"/>'
    out = ""
    for k in range(draw.among((1, 1, 2, 3))):
        slide, name = draw.chance(0.3), f"{body}j{k}"
        (grown.slides if slide else grown.hinges).append(name)
        kind = 'type="slide" range="-.1 .1"' if slide else 'range="-50 50"'
        loss = f'frictionloss="{draw(0, 0.5)}"' if draw.chance(0.4) else ""
        spring = f'stiffness="{draw(0, 5)} {draw(0, 1)}" springref="{draw(-0.2, 0.2)}"' if draw.chance(0.4) else ""
        out += f'<joint name="{name}" {kind} axis="{draw(-1, 1, 2)} 1" {give} {loss} {spring}/>'
    return out


def _tendons(draw, grown) -> str:
    a, b, c = (draw.among(grown.bodies) for _ in range(3))
    out = f'<spatial name="string" range="0 {draw(0.5, 1.5)}" stiffness="{draw(0, 9)}" damping="{draw(0, 1)}">'
    out += f'<site site="post"/><site site="{a}"/><pulley divisor="2"/><site site="{b}"/>'
    out += "".join(f'<site site="{s}"/>' for s in dict.fromkeys((c, a)) if s != b) or '<site site="post"/>'
    out += "</spatial>"
    if grown.straight:
        joints = dict.fromkeys(draw.among(grown.straight) for _ in range(3))
        terms = "".join(f'<joint joint="{j}" coef="{draw(-1, 1)}"/>' for j in joints)
        out += f'<fixed name="sum" frictionloss=".1" range="-.2 .2" armature=".01">{terms}</fixed>'
    return out


SERVOS = (
    '<motor {} gear="{}"/>',
    '<position {} gear="{}" kp="20" kv="1"/>',
    '<velocity {} gear="{}" kv="2"/>',
    '<intvelocity {} gear="{}" kp="9" actrange="-2 2"/>',
    '<muscle {} gear="{}" lengthrange="-1 1" force="20"/>',
    '<general {} gear="{}" dyntype="filterexact" dynprm=".03" gaintype="affine" gainprm="2 -1 -1"/>',
    '<cylinder {} gear="{}" area="2" timeconst=".05"/>',
    '<pid {} gear="{}" kp="12" kv="1" ki="5" slewmax="3"/>',
    '<dcmotor {} gear="{}" motorconst=".6" resistance="1.5"/>',
)


def _actuators(draw, grown) -> str:
    on = [f'joint="{j}"' for j in grown.straight] + ['tendon="string"']
    out = "".join(draw.among(SERVOS).format(where, draw(-3, 3)) for where in on)
    out += "".join(f'<motor joint="{j}" gear="{draw(-2, 2, 3)}"/>' for j in grown.balls)
    site, other = draw.among(grown.bodies), draw.among(grown.bodies)
    reference = f'refsite="{other}"' if other != site else ""
    out += f'<motor site="{site}" {reference} gear="{draw(-2, 2, 6)}"/>'
    return out + f'<adhesion body="{site}" ctrlrange="0 1" gain="5"/>'


def _equalities(draw, grown) -> str:
    a, b = draw.among(grown.bodies), draw.among(grown.bodies)
    other = f'body2="{b}"' if b != a else ""
    out = f'<connect body1="{a}" {other} anchor="{draw(-0.2, 0.2, 3)}"/>'
    out += f'<weld body1="{draw.among(grown.bodies)}" body2="hand" torquescale=".5" solref=".2 1"/>'
    if len(grown.straight) > 1:
        out += f'<joint joint1="{grown.straight[0]}" joint2="{grown.straight[-1]}" polycoef="0 .5 .1 0 0"/>'
    return out


def _sensors(draw, grown) -> str:
    a, b = draw.among(grown.bodies), draw.among(grown.bodies)
    at_site = "".join(f'<{kind} site="{a}"/>' for kind in "accelerometer gyro force torque rangefinder touch".split())
    frames = "".join(f'<{kind} objtype="body" objname="{b}"/>' for kind in "framequat framelinacc frameangvel".split())
    return at_site + frames + f'<subtreeangmom body="{a}"/><distance geom1="{a}" geom2="palm"/><e_kinetic/>'


# ---- by hand ---------------------------------------------------------------------------------------------------------
def crowd(count: int, flag: str = "") -> str:
    """Returns enough free bodies over a floor that a tree finds their pairs; some have two geoms."""
    draw, bodies, side = Numbers(1), "", 6
    for k in range(count):
        place = f"{0.25 * (k % side)} {0.25 * (k // side % side)} {0.12 + 0.22 * (k // side**2)}"
        kind = draw.among(('size=".12"', 'type="capsule" size=".08 .06"', 'type="box" size=".1 .1 .1"'))
        second = '<geom size=".06" pos="0 0 .1"/>' if k % 5 == 0 else ""
        bodies += f'<body pos="{place}" euler="{draw(-90, 90, 3)}"><freejoint/><geom {kind}/>{second}</body>'
    return f"""<mujoco><option><flag {flag}/></option><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody>
      </mujoco>"""


def rafts(count: int, geoms: int) -> str:
    """Returns bodies of enough geoms that boxes of bodies are tested first."""
    spheres = "".join(f'<geom size=".04" pos="{0.07 * (k % 8)} {0.07 * (k // 8)} 0"/>' for k in range(geoms))
    bodies = "".join(
        f'<body pos="{0.3 * (k % 2)} 0 {0.05 + 0.09 * k}"><freejoint/>{spheres}</body>' for k in range(count)
    )
    return f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>'


def _chain(length: int) -> str:
    """Returns a long chain of hinges, balls and slides that lies on the floor, and a ball on it."""
    kinds = ('type="ball" range="0 20" limited="true"', 'range="-9 9" limited="true"', 'type="slide" range="-.01 .01"')
    text = ""
    for k in range(length):
        text += f'<body pos="{"0 0 .06" if k == 0 else ".2 0 0"}"><joint axis="0 1 1" {kinds[k % 3]} armature=".01"/>'
        text += '<geom type="capsule" fromto="0 0 0 .2 0 0" size=".05" conaffinity="0"/>'
    ball = '<body pos=".5 0 .15"><freejoint/><geom size=".05"/></body>'
    return f"""<mujoco><compiler autolimits="true"/><option timestep=".004" cone="elliptic"/><worldbody>
      <geom type="plane" size="9 9 1"/>{text}{"</body>" * length}{ball}</worldbody></mujoco>"""


CHAIN = _chain(24)
YIELDING = """
<mujoco><compiler angle="radian"/><option timestep=".01" integrator="Euler"/>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody><site name="wall" pos="0 0 1"/>
  <body><joint name="h" axis="0 1 .2" stiffness="2 .3 .1" springref=".2" springyield=".3" damping=".1 .05"/>
    <geom size=".1" pos=".2 0 0"/>
    <body pos=".3 0 0"><joint name="s" type="slide" axis="0 1 .2" stiffness="20" springref=".2" springyield=".1"/>
      <geom size=".1" pos=".2 0 0"/>
      <body pos=".3 0 0"><joint type="ball" stiffness="2 .2 .1" springyield=".3"/>
        <geom type="box" size=".1 .2 .05" pos=".2 0 0"/><site name="end" pos=".1 .1 .1"/></body></body></body>
  <body pos="0 0 6"><joint type="free" stiffness="3"/><geom size=".1" pos=".2 0 0"/></body>
</worldbody>
<tendon><spatial springyield=".05" stiffness="9" springlength="0 .3"><site site="wall"/><site site="end"/></spatial>
  <fixed springyield=".02" stiffness="9" springlength="0 .1"><joint joint="s" coef="-1"/></fixed></tendon></mujoco>
"""
# contacts within the margin and in the gap, of one and several points, of pairs, and adhesion actuators
ADHESIVE = """
<mujoco><option cone="pyramidal" timestep=".004"/>
<default><geom condim="4" friction=".8 .02 .003" gap=".01" margin=".002"/></default>
<worldbody>
  <geom name="floor" type="plane" size="5 5 .1" adhesion="1"/>
  <body name="box" pos="0 0 .102"><freejoint/><geom name="box" type="box" size=".1 .1 .1" adhesion=".5"/>
    <site name="box" size=".2"/></body>
  <body name="ball" pos=".05 0 .3"><freejoint/><geom name="ball" size=".1" adhesion="2"/></body>
  <body pos="1 0 .103"><freejoint/><geom type="capsule" size=".1 .2" euler="90 20 0"/></body>
  <body pos="-1 0 .1"><freejoint/><geom size=".1" adhesion="3" priority="1"/></body>
  <body pos="-2 0 .1"><freejoint/><geom size=".1" adhesion="-1.3"/></body>
  <body name="arm" pos="0 2 .5"><joint axis="0 1 0" damping=".1"/><joint axis="1 0 0" stiffness="1"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 0 -.3"/>
    <body pos=".3 0 -.3"><joint axis="0 1 0" frictionloss=".01"/>
      <geom name="tip" type="capsule" size=".05" fromto="0 0 0 .2 0 -.14"/></body></body>
</worldbody>
<contact><pair geom1="tip" geom2="floor" adhesion="1.7" condim="3" gap=".02" margin=".01"/></contact>
<actuator><adhesion body="box" ctrlrange="0 1" gain="3"/><adhesion body="arm" ctrlrange="0 1" gain="5"/>
  <general body="ball" gaintype="affine" gainprm="2 0 -.5" biastype="affine" biasprm=".1 0 -3"/></actuator>
<sensor><touch site="box"/><contact geom1="box" geom2="floor" num="4" reduce="maxforce" data="found force dist"/>
  <contact geom1="ball" data="found force torque pos" reduce="netforce"/><force site="box"/></sensor></mujoco>
"""
BELTS = """
<mujoco><option cone="pyramidal"/><default><geom condim="6" friction="1 .02 .003"/></default>
<worldbody>
  <geom type="plane" size="5 5 .1" surfacevel="1 .2 .5 .3 .1 2"/>
  <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" surfacevel=".2 1 -.5 .3 -.1 .4"/></body>
  <body pos=".05 0 .295"><freejoint/><geom size=".1" surfacevel="0 0 0 1 2 3" condim="4"/></body>
  <body pos="1 0 .1"><freejoint/><geom type="capsule" size=".1 .2" euler="90 20 0" condim="3"/></body>
</worldbody></mujoco>
"""
# a branching tree on a ball, free bodies simple and not, and forces on sites, between sites, and of cranks
MECHANISM = """
<mujoco><compiler autolimits="true"/><option timestep=".01" integrator="Euler"/>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody><site name="still" pos=".3 .2 .1" euler="20 30 40"/>
  <body pos="0 0 1"><joint name="root" type="ball"/><geom size=".1" pos=".1 .2 .1"/>
    <site name="trunk" pos=".1 .2 .3" euler="10 50 20"/>
    <body pos=".3 0 0"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
      <site name="elbow" pos=".1 .3 .2" euler="40 10 70"/>
      <body pos=".3 0 0"><joint axis="1 0 0"/><joint type="slide" axis="0 1 1"/><geom size=".1" pos=".1 0 0"/>
        <site name="hand" pos=".2 .1 .2" euler="15 25 70"/></body></body>
    <body pos="-.3 0 0"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
      <site name="other" pos=".2 .1 .2" euler="15 25 70"/></body></body>
  <body pos="1 0 0"><freejoint/><geom type="box" size=".1 .2 .3"/><site name="simple" pos=".2 .1 .2"/></body>
  <body pos="1 0 0"><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/><site name="lone" pos=".2 .1 .2"/></body>
</worldbody>
<default><general gaintype="affine" gainprm="2 .3 -.5" biastype="affine" biasprm=".1 -5 -3"/></default>
<actuator>
  <general site="hand" gear=".1 .2 .3 .4 .5 -.6"/><general site="lone" gear=".1 .2 .3 .4 .5 -.6"/>
  <general site="hand" refsite="still" gear=".1 .2 .3 .4 .5 -.6"/>
  <general site="hand" refsite="trunk" gear=".1 .2 .3 .4 .5 -.6"/>
  <general site="hand" refsite="other" gear="0 0 0 .4 .5 -.6"/>
  <general site="simple" refsite="lone" gear=".1 .2 .3 .4 .5 -.6"/>
  <general cranksite="hand" slidersite="elbow" cranklength=".8" gear="1.5"/>
  <general cranksite="hand" slidersite="elbow" cranklength=".01" gear="1.5"/>
  <general cranksite="hand" slidersite="lone" cranklength="2" gear="1.5"/>
  <position joint="root" gear="1 0 0" kp="3" kv=".2"/><position jointinparent="root" gear="0 0 1" kp="3"/>
</actuator></mujoco>
"""
# a string through the middle of a ball, armature and damping of motors, a torque limit, a mesh as a site
SPECIAL = """
<mujoco><option timestep=".005" integrator="Euler"/><compiler autolimits="true"/><asset>{meshes}</asset>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody><site name="w" pos="-1 0 1"/><site name="v" pos="0 1 1"/>
  <geom name="ball" size=".2" pos="0 0 1"/><geom name="roll" type="cylinder" size=".1 .5" pos="0 0 1"/>
  <site name="room" type="mesh" mesh="wedge" pos=".5 0 1"/>
  <body pos=".5 0 1"><joint name="x" type="slide" axis="1 0 0" damping=".1"/><geom name="g" size=".1" mass="1"/>
    <site name="s"/>
    <body pos=".2 0 0"><joint name="h" axis="0 1 0"/><geom size=".05" pos=".1 0 0"/><site name="t" pos=".1 0 .1"/>
      <body pos=".2 0 0"><joint name="b" type="ball"/><geom size=".05" pos=".1 .1 0"/></body></body></body>
</worldbody>
<tendon><spatial name="middle" stiffness="3" damping=".1"><site site="w"/><geom geom="ball"/><site site="s"/></spatial>
  <spatial name="round" stiffness="3"><site site="v"/><geom geom="roll"/><site site="t"/></spatial>
  <spatial name="free"><site site="v"/><site site="t"/></spatial>
  <fixed name="sum"><joint joint="x" coef="1"/><joint joint="h" coef=".5"/></fixed></tendon>
<actuator><motor joint="x" armature=".2" damping=".3 .1 .2" gear="2"/><motor tendon="sum" armature=".1" damping=".2"/>
  <position tendon="free" kp="5" kv=".3"/><orientation joint="b" kp="30" kv=".2" forcerange="0 1"/></actuator>
<equality><tendon tendon1="round" tendon2="sum" polycoef="0 .5 .1 0 0"/><tendon tendon1="free"/></equality>
<sensor><force site="s"/><torque site="t"/><insidesite objtype="geom" objname="g" site="room"/>
  <contact site="room" data="found dist pos"/></sensor></mujoco>
""".replace("{meshes}", MESHES)


def fast_bodies(flags: str = "") -> str:
    """Returns a body of each convex shape over a thin plate and a plane, with contacts within the step."""
    kinds = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
    bodies = "".join(
        f'''<body pos="{0.12 * i} {0.05 * (i % 2)} .3"><freejoint/>
          <geom type="{kind}" {'mesh="tetra"' if kind == "mesh" else 'size=".03 .04 .02"'} mass=".3"/></body>'''
        for i, kind in enumerate(kinds)
    )
    return f"""<mujoco><option timestep=".002"><flag speculative="enable" {flags}/></option>
      <asset><mesh name="tetra" vertex="-.04 -.04 0  .04 -.04 0  0 .04 0  0 0 .05"/></asset><worldbody>
      <geom type="plane" size="3 3 1"/><geom type="box" size=".6 .6 .001" pos=".3 0 .1"/>{bodies}
      </worldbody></mujoco>"""
