"""Forces times trees: each force that implicit integrators differentiate, on each kind of tree with a special path."""

from __future__ import annotations

import numpy as np

import featherlane as fl
from scenes.states import kicked

BOX = '<geom type="box" size=".1 .2 .3"/>'
OFF = '<geom type="box" size=".1 .2 .3" pos=".05 .03 .02" euler="10 20 30"/>'
SITE = '<site name="{}" pos=".1 .05 .2" euler="20 30 40"/>'
A, B = SITE.format("a"), SITE.format("b")
FREE = '<body {simple} pos="0 0 1"><joint name="j" type="free" {joint}/>'
SLIDES = "".join(
    f'<joint name="{name}" type="slide" axis="{axis}" {{joint}}/>'
    for name, axis in zip("jkl", ("1 0 0", "0 1 0", "0 0 1"), strict=True)
)
# bodies; the joint `j` and the site `a` take the forces
TREES = {
    "free": f"{FREE}{BOX}{A}</body>",
    "free off its com": f"{FREE}{OFF}{A}</body>",
    "free with a fixed body": f'{FREE}{BOX}<body pos=".3 0 0">{OFF}{A}</body></body>',
    "two free": f'{FREE}{BOX}{A}</body><body pos="1 0 1"><joint type="free" {{joint}}/>{OFF}{B}</body>',
    "free with a hinge": f'<body {{simple}} pos="0 0 1"><freejoint/>{BOX}{A}<body pos=".3 0 0">'
    f'<joint name="j" axis="1 .2 0" {{joint}}/>{OFF}{B}</body></body>',
    "ball": f'<body {{simple}} pos="0 0 1"><joint name="j" type="ball" {{joint}}/>{BOX}{A}</body>',
    "slides": f'<body {{simple}} pos="0 0 1">{SLIDES}{BOX}{A}</body>',
    "slides and a ball": f'<body {{simple}} pos="0 0 1">{SLIDES}<joint type="ball" {{joint}}/>{BOX}{A}</body>',
    "chain": f'<body {{simple}} pos="0 0 1"><joint name="j" axis="1 .5 0" {{joint}}/>{OFF}{A}<body pos=".3 0 .1">'
    f'<joint name="k" axis="0 1 .2" {{joint}}/>{BOX}<body pos=".3 0 .1"><joint type="ball" {{joint}}/>{OFF}{B}</body>'
    "</body></body>",
}
LONE = [name for name in TREES if "free" in name and "hinge" not in name]
GEARS = {"free": "1 .5 .3 .2 .4 .6", "ball": ".3 .5 .7"}
SLOPES = 'gaintype="affine" gainprm="1 -2 -50" biastype="affine" biasprm="1 -3 -40"'


def spatial(attributes: str, end: str = '<site site="w"/>') -> str:
    return f'<spatial name="t" {attributes}>{end}<site site="a"/></spatial>'


WRAPPED = '<site site="w"/><geom geom="wrap" sidesite="w"/>'
FIXED = (
    '<fixed name="t" damping="30 5 2" stiffness="20"><joint joint="j" coef="1.3"/><joint joint="k" coef="-.7"/></fixed>'
)
# parts of the model by force: joint attributes, tendon, actuator, option, geoms' fluid shape
FORCES = {
    "none": {},
    "joint damping": {"joint": 'damping="30"'},
    "joint damping polynomial": {"joint": 'damping="3 2 1" stiffness="30 2 1"'},
    "joint armature": {"joint": 'damping="3" armature=".3" frictionloss=".2"'},
    "tendon damping": {"tendon": spatial('damping="300"')},
    "tendon damping polynomial": {"tendon": spatial('damping="30 20 10"')},
    "tendon spring": {"tendon": spatial('damping="100" stiffness="300 20 10" springlength=".2"')},
    "tendon armature": {"tendon": spatial('damping="100" armature="3"')},
    "tendon limit": {"tendon": spatial('damping="100" range="0 .2" limited="true" frictionloss="3"')},
    "wrapped tendon": {"tendon": spatial('damping="300"', WRAPPED)},
    "tendon between bodies": {"tendon": spatial('damping="300"', '<site site="b"/>')},
    "fixed tendon": {"tendon": FIXED},
    "tendon servo": {"tendon": spatial('damping="3"'), "actuator": '<position tendon="t" kp="2000" kv="200"/>'},
    "tendon motor damping": {"tendon": spatial(""), "actuator": '<motor tendon="t" damping="200" armature=".5"/>'},
    "tendon muscle": {"tendon": spatial(""), "actuator": '<muscle tendon="t" lengthrange=".1 3" force="500"/>'},
    "tendon dc motor": {"tendon": spatial(""), "actuator": '<dcmotor tendon="t" motorconst="3" resistance=".1"/>'},
    "velocity servo": {"joint": 'damping="3"', "actuator": '<velocity joint="j" kv="100" gear="{gear}"/>'},
    "velocity servo in parent axes": {"actuator": '<velocity jointinparent="j" kv="100" gear="{gear}"/>'},
    "position servo": {"actuator": '<position joint="j" kp="1000" kv="50" gear="{gear}"/>'},
    "clamped servo": {"actuator": '<velocity joint="j" kv="100" gear="{gear}" forcerange="-.1 .1"/>'},
    "motor damping": {
        "joint": 'damping="2"',
        "actuator": '<motor joint="j" gear="{gear}" damping="20" armature=".2"/>',
    },
    "affine gain": {"actuator": f'<general joint="j" gear="{{gear}}" {SLOPES}/>'},
    "dc motor": {"actuator": '<dcmotor joint="j" motorconst="3" resistance=".1" gear="{gear}"/>'},
    "site": {"actuator": f'<general site="a" gear="1 2 3 .5 .4 .3" {SLOPES}/>'},
    "site and reference": {"actuator": f'<general site="a" refsite="w" gear="1 2 3 .5 .4 .3" {SLOPES}/>'},
    "crank": {"actuator": f'<general cranksite="a" slidersite="w" cranklength="3" {SLOPES}/>'},
    "box in a fluid": {"option": 'density="50" viscosity="3" wind="1 2 3"', "joint": 'damping="3"'},
    "ellipsoid in a fluid": {"option": 'density="50" viscosity="3"', "shape": 'fluidshape="ellipsoid"'},
    "all": {
        "joint": 'damping="5 1 1" stiffness="30" armature=".1"',
        "tendon": spatial('damping="100" stiffness="300" springlength=".1"'),
        "actuator": '<position joint="j" kp="100" kv="50" gear="{gear}"/><velocity tendon="t" kv="20"/>',
        "option": 'density="50" viscosity="3"',
        "shape": 'fluidshape="ellipsoid"',
    },
}


def fits(force: str, tree: str) -> bool:
    """Returns whether the tree has the joints and sites that the force needs."""
    return not (force == "fixed tendon" and 'name="k"' not in TREES[tree]) and not (
        force == "tendon between bodies" and 'name="b"' not in TREES[tree]
    )


def scene(force: str, tree: str, integrator: str, simple: str = "") -> str:
    """Returns the model of a force on a tree, without contacts; `simple`: attributes of its first bodies."""
    part = {"joint": "", "tendon": "", "actuator": "", "option": "", "shape": "", **FORCES[force]}
    gear = GEARS.get(tree.split()[0] if tree not in ("free with a hinge",) else "", "1.3")
    bodies = TREES[tree].format(joint=part["joint"], simple=simple)
    return f"""
    <mujoco><option timestep=".01" integrator="{integrator}" tolerance="1e-14" {part["option"]}/>
    <default><geom contype="0" conaffinity="0" {part["shape"]}/></default>
    <worldbody><site name="w" pos=".3 .2 1.7"/>
    <geom name="wrap" type="cylinder" size=".1 .3" pos=".2 .1 1.5" euler="80 10 0"/>{bodies}</worldbody>
    <tendon>{part["tendon"]}</tendon><actuator>{part["actuator"].format(gear=gear)}</actuator></mujoco>"""


def moving(model: fl.Model, seed: int = 0) -> fl.Data:
    """Returns a `Data` in a random state with random controls."""
    rng, data = np.random.default_rng(seed), fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng, velocity=2.0)
    data.ctrl, data.act = rng.standard_normal(model.nu), rng.uniform(0, 1, model.na)
    return data
