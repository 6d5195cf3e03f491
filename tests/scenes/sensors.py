"""Defines models with sensors of every kind, on every kind of object: for parity with MuJoCo, group by group.

A scene has a floor, a floating body, a limb of it with hinges, a ball and a slide whose limits are active, bodies
that are welded, static and mocap, cameras of every mode, tendons, actuators and sites of every shape.  Curved
shapes touch only the floor: the general method for convex shapes may choose other contact points than MuJoCo's.
"""

from __future__ import annotations

SITES = {
    "sphere": 'type="sphere" size=".12"',
    "capsule": 'type="capsule" size=".08 .1"',
    "ellipsoid": 'type="ellipsoid" size=".1 .15 .12"',
    "cylinder": 'type="cylinder" size=".1 .12"',
    "box": 'type="box" size=".1 .12 .11"',
}
OBJECTS = {
    "body": ("body", "thigh"),
    "xbody": ("xbody", "thigh"),
    "geom": ("geom", "shin"),
    "site": ("site", "sole"),
    "camera": ("camera", "eye"),
}
REFERENCES = {
    "none": None,
    "body": ("body", "torso"),
    "xbody": ("xbody", "torso"),
    "geom": ("geom", "trunk"),
    "site": ("site", "hip"),
    "camera": ("camera", "chaser"),
    "static": ("site", "post"),
    "mocap": ("site", "hand"),
}
FRAMES = "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel".split()
ACCELERATIONS = "framelinacc frameangacc".split()
AT_SITES = "accelerometer velocimeter gyro force torque magnetometer rangefinder".split()

BODY = """
<geom name="floor" type="plane" size="5 5 .1" conaffinity="3"/>
<site name="post" pos=".4 -.3 .7" euler="10 20 30"/>
<camera name="still" pos="0 -2 1" xyaxes="1 0 0 0 .3 1" resolution="4 3" sensorsize="0.03125 0.0234375"
  focal="0.015625 0.03125" principal="0.001953125 -0.00390625"/>
<camera name="watcher" mode="targetbody" target="torso" pos="1 1 2"/>
<camera name="follower" mode="targetbodycom" target="torso" pos="1 -1 2"/>
<body name="hand" mocap="true" pos=".1 .2 .9" euler="30 10 5">
  <geom name="palm" type="box" size=".05 .06 .02"/><site name="hand" pos=".02 .01 .03"/></body>
<body name="torso" pos="0 0 .45">
  <freejoint/>
  <geom name="trunk" type="box" size=".15 .1 .12" mass="3"/>
  <site name="hip" pos=".05 .02 .03" euler="20 30 40"/>
  <camera name="tracker" mode="track" pos=".3 .2 .1"/>
  <camera name="chaser" mode="trackcom" pos=".1 .2 .3" euler="40 0 10"/>
  <body name="thigh" pos=".2 0 0">
    <joint name="knee" axis="0 1 0" pos="0 0 .05" range="-5 5" limited="true" margin=".03"/>
    <geom name="bone" type="capsule" size=".05 .1" pos="0 0 -.2" mass="1"/>
    <camera name="eye" pos=".05 .02 -.1" euler="100 20 30" fovy="50" resolution="5 4"/>
    <camera name="flat" pos=".05 .02 -.1" euler="30 20 30" projection="orthographic" fovy=".4" resolution="3 2"/>
    <body name="shank" pos="0 0 -.3">
      <joint name="ankle" type="ball" range="0 8" limited="true" margin=".02"/>
      <geom name="shin" type="ellipsoid" size=".06 .05 .1" pos=".01 .02 -.1" mass=".5" contype="2" conaffinity="0"/>
      <site name="sole" pos="0 .01 -.15" euler="170 20 40"/>
      <body name="foot" pos="0 0 -.2"><geom name="foot" type="sphere" size=".06" mass=".3"/>
        <site name="pad" pos=".01 0 -.02" euler="10 5 2" {site}/></body>
    </body>
  </body>
  <body name="arm" pos="-.2 0 .1">
    <joint name="slider" type="slide" axis="0 0 1" range="-.01 .01" limited="true"/>
    <geom name="forearm" type="cylinder" size=".04 .08" mass=".4" euler="30 20 10" contype="2" conaffinity="0"/>
    <site name="wrist" pos="0 .05 0"/>
  </body>
</body>
<body name="crate" pos=".35 .1 .1"><freejoint/>
  <geom name="crate" type="box" size=".1 .1 .1" mass=".8"/><site name="lid" pos="0 0 .1"/></body>
"""
TAIL = """
<tendon><fixed name="cord" limited="true" range="-.02 .03" margin=".01">
  <joint joint="knee" coef=".7"/><joint joint="slider" coef="-.4"/></fixed></tendon>
<actuator>
  <motor name="push" joint="slider" gear="20"/>
  <position name="bend" joint="knee" kp="30" kv="2"/>
  <general name="twist" joint="ankle" gear="1 2 3"/>
</actuator>
<equality>
  <connect name="leash" body1="crate" body2="torso" anchor="0 .1 .1"/>
  <weld name="bond" site1="lid" site2="post" torquescale=".6" solref=".1 1"/>
</equality>
"""
OPTION = '<option timestep="0.004" tolerance="0" iterations="60" ls_iterations="60" magnetic="0.1 -0.4 0.5" {}/>'
CONTACT_FIELDS = "found force torque dist pos normal tangent linvel angvel"
CONTACT_OBJECTS = {
    "all": "",
    "geom": 'geom1="floor"',
    "geoms": 'geom1="foot" geom2="floor"',
    "second": 'geom2="foot"',
    "body": 'body1="foot"',
    "bodies": 'body1="crate" body2="world"',
    "subtree": 'subtree1="torso"',
    "subtrees": 'subtree1="torso" subtree2="torso"',
    "mixed": 'subtree1="crate" geom2="floor"',
    "site": 'site="pad"',
    "site and body": 'site="pad" body2="foot"',
}


def frames(kind: str) -> str:
    """Returns a sensor of a kind for each pair of object and reference."""
    lines = []
    for on, name in OBJECTS.values():
        for reference in REFERENCES.values():
            of = "" if reference is None else f'reftype="{reference[0]}" refname="{reference[1]}"'
            lines.append(f'<{kind} objtype="{on}" objname="{name}" {of}/>')
    return "".join(lines)


def _groups() -> dict[str, str]:
    """Returns elements of `sensor`, by the name of their test."""
    everything = [*OBJECTS.values(), ("site", "post"), ("site", "hand"), ("body", "world")]
    out = {kind: frames(kind) for kind in FRAMES}
    for kind in ACCELERATIONS:
        out[kind] = "".join(f'<{kind} objtype="{on}" objname="{name}"/>' for on, name in everything)
    for kind in AT_SITES:
        out[kind] = "".join(f'<{kind} site="{site}"/>' for site in "hip sole pad wrist lid post hand".split())
    for shape in SITES:
        out[f"touch {shape}"] = '<touch site="pad"/>'
        inside = "".join(f'<insidesite objtype="{on}" objname="{name}" site="pad"/>' for on, name in OBJECTS.values())
        out[f"insidesite {shape}"] = inside + '<insidesite objtype="geom" objname="foot" site="pad"/>'
    out["joints"] = "".join(f'<{k} joint="{j}"/>' for k in ("jointpos", "jointvel") for j in ("knee", "slider"))
    out["joints"] += '<ballquat joint="ankle"/><ballangvel joint="ankle"/><jointactuatorfrc joint="knee"/>'
    out["limits"] = "".join(
        f'<jointlimit{what} joint="{joint}"/>'
        for what in ("pos", "vel", "frc")
        for joint in ("knee", "ankle", "slider")
    )
    out["limits"] += "".join(f'<tendonlimit{what} tendon="cord"/>' for what in ("pos", "vel", "frc"))
    out["actuators"] = "".join(
        f'<actuator{what} actuator="{name}"/>' for what in ("pos", "vel", "frc") for name in ("push", "bend", "twist")
    )
    out["tendons"] = '<tendonpos tendon="cord"/><tendonvel tendon="cord"/><tendonactuatorfrc tendon="cord"/>'
    out["subtrees"] = "".join(
        f'<subtree{what} body="{body}"/>'
        for what in ("com", "linvel", "angmom")
        for body in ("world", "torso", "thigh", "crate", "hand")
    )
    out["cameras"] = "".join(
        f'<framepos objtype="camera" objname="{c}"/><framequat objtype="camera" objname="{c}"/>'
        f'<framexaxis objtype="camera" objname="{c}"/><framezaxis objtype="camera" objname="{c}"/>'
        for c in ("still", "watcher", "follower", "tracker", "chaser", "eye", "flat")
    )
    out["camprojection"] = "".join(f'<camprojection site="sole" camera="{c}"/>' for c in ("still", "eye"))
    out["rays of cameras"] = "".join(
        f'<rangefinder camera="{c}" data="dist dir origin point normal depth"/>' for c in ("still", "eye", "flat")
    )
    out["rays of sites"] = "".join(
        f'<rangefinder site="{s}" data="{data}"/>'
        for s in ("sole", "post")
        for data in ("dist dir origin point normal depth", "point normal", "depth")
    )
    pairs = ('geom1="foot" geom2="crate"', 'geom1="crate" geom2="foot"', 'body1="thigh" geom2="floor"')
    pairs += ('body1="crate" body2="torso"', 'geom1="forearm" geom2="floor"')
    out["distances"] = "".join(
        f'<{kind} {pair} cutoff="{cutoff}"/>'
        for kind in ("distance", "normal", "fromto")
        for pair in pairs
        for cutoff in (0, 0.4, 5)
    )
    out["world"] = "<e_potential/><e_kinetic/><clock/>"
    for reduce in ("none", "mindist", "maxforce", "netforce"):
        fields = CONTACT_FIELDS if reduce != "netforce" else "found force torque dist pos normal tangent"
        out[f"contact {reduce}"] = "".join(
            f'<contact {of} reduce="{reduce}" num="{1 if reduce == "netforce" else 3}" data="{fields}"/>'
            for of in CONTACT_OBJECTS.values()
        )
    out["contact stages"] = '<contact geom1="floor" data="found"/><contact data="dist pos" num="2" reduce="mindist"/>'
    out["contact stages"] += '<contact data="linvel" num="4"/><contact data="found" num="1" reduce="maxforce"/>'
    out["cutoff"] = (
        '<framepos objtype="geom" objname="shin" cutoff=".1"/><touch site="pad" cutoff="3"/>'
        '<gyro site="hip" cutoff=".5"/>'
        '<framelinvel objtype="geom" objname="shin" cutoff=".1"/>'
        '<framelinacc objtype="geom" objname="shin" cutoff="2"/>'
        '<rangefinder site="post" cutoff=".2"/><jointlimitfrc joint="knee" cutoff="1"/><clock cutoff=".001"/>'
        '<insidesite objtype="geom" objname="foot" site="pad" cutoff=".5"/><contact data="dist" cutoff=".001"/>'
        '<e_kinetic cutoff=".3"/><actuatorfrc actuator="bend" cutoff=".2"/>'
    )
    return out


GROUPS = _groups()


def scene(sensors: str, shape: str = "sphere", options: str = "") -> str:
    """Returns the model with these sensors; `shape` is that of the site `pad`."""
    body = BODY.format(site=SITES[shape])
    option = OPTION.format(options)
    return f"<mujoco>{option}<worldbody>{body}</worldbody>{TAIL}<sensor>{sensors}</sensor></mujoco>"


def group_scene(group: str, options: str = "") -> str:
    """Returns the model of a group."""
    shape = group.split()[-1]
    return scene(GROUPS[group], shape if shape in SITES else "sphere", options)
