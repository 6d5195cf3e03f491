"""Mutations of MJCF: elements dropped, doubled, moved and grafted; attributes dropped, renamed and exchanged;
numbers that are extreme, zero, negative, NaN, infinite or of a wrong count.
"""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from collections import defaultdict

import numpy as np

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
EXTREME = "0 -1 1 nan inf -inf 1e300 -1e300 1e30 1e10 -1e10 1e-10 1e-300 1e5 1e3 1000000 2147483648 -0 0.5 2 3".split()
COUNTED = {  # counts that use memory: kept small
    "count", "nrow", "ncol", "nuser_body", "nkey", "nuserdata", "njmax", "nconmax", "memory", "nstack", "nsample",
    "iterations", "ls_iterations", "noslip_iterations", "ccd_iterations", "sdf_iterations", "resolution", "num", "user",
}  # fmt: skip
MOST = 60  # of a count
LONGEST = 400_000  # characters of a mutant
WORDS = (
    *"x true false auto world free ball slide hinge sphere capsule ellipsoid cylinder box mesh plane hfield".split(),
    *"Newton CG PGS elliptic pyramidal RK4 implicit implicitfast discrete Euler enable disable muscle".split(),
    *"integrator filter filterexact affine user none fixed track".split(),
    *("", "1 2 3", "0 0 0", "0 0 0 0", "1 0 0 0"),
)
GRAFTS = (
    '<option timestep="{}"/>',
    '<option integrator="RK4"/>',
    '<option cone="elliptic" impratio="{}"/>',
    '<option gravity="0 0 {}"/>',
    '<option density="{}" viscosity="{}" wind="1 2 3"/>',
    '<option magnetic="0 {} 1"/>',
    '<option noslip_iterations="5"/>',
    '<option integrator="discrete"/>',
    '<option integrator="implicit"/>',
    '<option solver="PGS"/>',
    '<option solver="CG"/>',
    '<option o_margin="{}" o_solref="{} 1"><flag override="enable"/></option>',
    '<option><flag sleep="enable"/></option>',
    '<option><flag energy="enable" fwdinv="enable"/></option>',
    '<option><flag multiccd="enable" nativeccd="disable"/></option>',
    '<option><flag island="disable"/></option>',
    '<option><flag filterparent="disable"/></option>',
    '<option><flag diagexact="enable"/></option>',
    '<compiler boundmass="{}" boundinertia="{}"/>',
    '<compiler settotalmass="{}"/>',
    '<compiler balanceinertia="true"/>',
    '<compiler inertiafromgeom="true"/>',
    '<compiler angle="radian"/>',
    '<compiler fusestatic="true" discardvisual="true"/>',
    '<compiler autolimits="false"/>',
    '<compiler alignfree="true"/>',
    '<statistic meaninertia="{}" meanmass="{}"/>',
    '<size nconmax="3"/>',
    '<size memory="1M"/>',
    '<default><geom condim="6" margin="{}" gap="{}"/></default>',
    '<default><geom solref="{} {}" solimp=".9 .95 .001 {} 2"/></default>',
    '<default><joint armature="{}" damping="{}"/></default>',
    '<default><joint frictionloss="{}" limited="true" range="-{} {}"/></default>',
    '<default><geom density="{}"/></default>',
)
BRANCHES = (
    '<body><freejoint/><geom size="{}" mass="{}"/></body>',
    '<body pos="0 0 {}"><geom size=".1"/></body>',
    '<body mocap="true"><geom type="box" size=".1 .1 {}"/></body>',
    '<geom type="plane" size="0 0 1" pos="0 0 {}"/>',
    '<body><joint type="ball" limited="true" range="0 {}"/><geom type="capsule" size=".1 {}"/></body>',
    '<body><joint axis="{} {} {}"/><geom type="cylinder" size="{} .1"/></body>',
    '<body gravcomp="{}"/>',
    '<replicate count="3" offset="{} 0 0" euler="0 0 {}"><body><freejoint/><geom size=".05"/></body></replicate>',
    '<body><joint type="slide" stiffness="{}" damping="{}" springdamper="{} 1"/>'
    '<geom size=".1" fluidshape="ellipsoid"/></body>',
    '<body><freejoint/><inertial pos="0 0 {}" mass="{}" diaginertia="{} {} 1"/></body>',
    '<frame pos="1 0 {}"><geom size=".1"/></frame>',
    '<composite type="cable" curve="s" count="4 1 1" size="{}"><joint kind="main" damping="{}"/>'
    '<geom type="capsule" size=".01"/></composite>',
    '<flexcomp type="grid" count="3 3 1" spacing=".1 .1 .1" name="cloth" dim="2"/>',
    '<site size="{}"/>',
    "<camera/>",
    "<light/>",
)


class Pool:
    """Collects values of attributes and elements of other models, by tag."""

    def __init__(self, roots):
        self.values, self.elements, self.children = defaultdict(set), defaultdict(list), defaultdict(set)
        for root in roots:
            for parent in root.iter():
                for child in parent:
                    self.children[parent.tag].add(child.tag)
                    if len(self.elements[child.tag]) < 300 and sum(1 for _ in child.iter()) < 30:
                        self.elements[child.tag].append(child)
                for name, value in parent.attrib.items():
                    if len(value) < 200 and len(self.values[parent.tag, name]) < 200:
                        self.values[parent.tag, name].add(value)
        self.values = {key: sorted(found) for key, found in self.values.items()}
        self.children = {tag: sorted(found) for tag, found in self.children.items()}
        self.names = defaultdict(list)
        for tag, name in sorted(self.values):
            self.names[tag].append(name)


class Mutator:
    """Applies mutations to one tree with one random generator."""

    def __init__(self, root: ET.Element, pool: Pool, rng: np.random.Generator):
        self.root, self.pool, self.rng = root, pool, rng
        self.done: list[str] = []

    def mutate(self, count: int) -> None:
        """Applies so many mutations, each of a kind that is possible here."""
        kinds = [self.number] * 8 + [self.graft] * 4 + [self.branch] * 2 + [self.crossed] * 2 + [self.word]
        kinds += [self.drop, self.double, self.move, self.forget, self.rename, self.exchange, self.count, self.branch]
        while len(self.done) < count:
            kind = self.among(kinds)
            told = kind()
            self.done.append(f"{kind.__name__}: {told}"[:300] if told else "nothing")

    # ---- choices -----------------------------------------------------------------------------------------------------
    def among(self, options):
        return options[int(self.rng.integers(len(options)))]

    def parents(self) -> dict[ET.Element, ET.Element]:
        return {child: parent for parent in self.root.iter() for child in parent}

    def element(self) -> ET.Element | None:
        found = list(self.root.iter())[1:]
        return self.among(found) if found else None

    def attribute(self, wanted=lambda name, value: True) -> tuple[ET.Element, str] | None:
        found = [(e, name) for e in self.root.iter() for name, value in e.attrib.items() if wanted(name, value)]
        return self.among(found) if found else None

    def extreme(self, value: float) -> str:
        """Replaces a number by another one."""
        if self.rng.random() < 0.5:
            return self.among(EXTREME)
        with np.errstate(all="ignore"):
            scaled = value * self.among((-1, 0, 10.0 ** self.rng.uniform(-8, 8), 1 + 0.3 * self.rng.standard_normal()))
        return f"{scaled:.6g}"

    def filled(self, text: str) -> str:
        """Returns a snippet with numbers, mostly usual ones."""
        while "{}" in text:
            usual = f"{self.rng.uniform(0, 1):.3g}"
            text = text.replace("{}", usual if self.rng.random() < 0.7 else self.among(EXTREME), 1)
        return text

    # ---- elements ----------------------------------------------------------------------------------------------------
    def drop(self) -> str:
        element, parents = self.element(), self.parents()
        if element is None:
            return ""
        parents[element].remove(element)
        return element.tag

    def double(self) -> str:
        element, parents = self.element(), self.parents()
        if element is None:
            return ""
        twin = copy.deepcopy(element)
        if self.rng.random() < 0.7:  # with a unique name, to avoid a clash
            for each in twin.iter():
                if "name" in each.attrib:
                    each.attrib["name"] += "'"
        parent = parents[element]
        parent.insert(list(parent).index(element), twin)
        return element.tag

    def move(self) -> str:
        element, parents = self.element(), self.parents()
        if element is None:
            return ""
        inside = set(element.iter())
        alike = [
            e
            for e in self.root.iter()
            if e not in inside and (e.tag == parents[element].tag or self.rng.random() < 0.02)
        ]
        if not alike:
            return ""
        parents[element].remove(element)
        self.among(alike).append(element)
        return element.tag

    def crossed(self) -> str:
        """Inserts an element that another model has at such a place."""
        parent = self.among(list(self.root.iter()))
        tags = self.pool.children.get(parent.tag)
        if not tags:
            return ""
        other = copy.deepcopy(self.among(self.pool.elements[self.among(tags)] or [ET.Element("geom")]))
        other.attrib.pop("name", None)
        if self.rng.random() < 0.5:
            other.attrib.pop("class", None)
        self._rewire(other)
        parent.append(other)
        return f"{parent.tag}/{ET.tostring(other, encoding='unicode')}"

    def _rewire(self, other: ET.Element) -> None:
        """Changes references of an element to names of this model."""
        names = defaultdict(list)
        for element in self.root.iter():
            if element.get("name"):
                names[element.tag].append(element.get("name"))
        names["joint"] += names["freejoint"]
        names["tendon"] = names["spatial"] + names["fixed"]
        for element in other.iter():
            for name in element.attrib:
                kind = name.rstrip("12")
                kind = {"objname": element.get("objtype", ""), "refname": element.get("reftype", "")}.get(name, kind)
                kind = {"refsite": "site", "cranksite": "site", "slidersite": "site", "jointinparent": "joint"}.get(
                    kind, kind
                )
                kind = {"sidesite": "site", "childclass": "default"}.get(kind, kind)
                if names.get(kind) and kind not in ("class",):
                    element.attrib[name] = self.among(names[kind])

    def graft(self) -> str:
        """Adds an option, a default or a compiler setting."""
        text = self.filled(self.among(GRAFTS))
        self.root.insert(int(self.rng.integers(2)) * len(self.root), ET.fromstring(text))
        return text

    def branch(self) -> str:
        """Adds a body or an element of a body."""
        bodies = [e for e in self.root.iter() if e.tag in ("body", "worldbody", "frame")]
        if not bodies:
            return ""
        text = self.filled(self.among(BRANCHES))
        self.among(bodies).append(ET.fromstring(text))
        return text

    # ---- attributes --------------------------------------------------------------------------------------------------
    def forget(self) -> str:
        found = self.attribute()
        if not found:
            return ""
        element, name = found
        return f"{element.tag} {name}={element.attrib.pop(name)}"

    def rename(self) -> str:
        """Changes the name of an attribute, or a name itself."""
        found = self.attribute()
        if not found:
            return ""
        element, name = found
        value = element.attrib.pop(name)
        new = self.among(self.pool.names.get(element.tag) or ["x"])
        element.attrib[new] = value
        return f"{element.tag} {name} -> {new}"

    def exchange(self) -> str:
        """Exchanges values of two attributes of an element."""
        found = self.attribute()
        if not found or len(found[0].attrib) < 2:
            return ""
        element, name = found
        other = self.among(sorted(element.attrib))
        element.attrib[name], element.attrib[other] = element.attrib[other], element.attrib[name]
        return f"{element.tag} {name} {other}"

    def word(self) -> str:
        """Sets a value that this attribute has elsewhere, or a word."""
        element = self.element()
        names = self.pool.names.get(element.tag) if element is not None else None
        if not names:
            return ""
        name = self.among(sorted(element.attrib)) if element.attrib and self.rng.random() < 0.5 else self.among(names)
        if name in ("name", "file"):
            return ""
        values = self.pool.values.get((element.tag, name))
        value = self.among(values) if values and self.rng.random() < 0.8 else self.among(WORDS)
        element.attrib[name] = self.bounded(name, value)
        return f"{element.tag} {name}={value}"

    def number(self) -> str:
        """Changes one number of an attribute, or all of them."""
        found = self.attribute(lambda name, value: bool(NUMBER.search(value)) and name not in ("name", "file", "rgba"))
        if not found:
            return ""
        element, name = found
        numbers = element.attrib[name].split()
        every, chosen = self.rng.random() < 0.2, int(self.rng.integers(len(numbers)))
        for k, text in enumerate(numbers):
            if (every or k == chosen) and NUMBER.fullmatch(text):
                numbers[k] = self.extreme(float(text))
        element.attrib[name] = self.bounded(name, " ".join(numbers))
        return f"{element.tag} {name}={element.attrib[name]}"

    def count(self) -> str:
        """Adds or removes a number."""
        found = self.attribute(lambda name, value: bool(NUMBER.search(value)) and name not in ("name", "file"))
        if not found:
            return ""
        element, name = found
        numbers = element.attrib[name].split()
        if self.rng.random() < 0.5:
            numbers.pop(int(self.rng.integers(len(numbers))))
        else:
            numbers += self.among(([self.among(EXTREME)], numbers, ["1"] * 40))
        element.attrib[name] = self.bounded(name, " ".join(numbers))
        return f"{element.tag} {name}={element.attrib[name]}"

    def bounded(self, name: str, value: str) -> str:
        """Limits counts to the memory of the machine."""
        if name not in COUNTED:
            return value
        return " ".join(str(MOST) if NUMBER.fullmatch(n) and float(n) > MOST else n for n in value.split())


def mutant(text: str, pool: Pool, rng: np.random.Generator) -> tuple[str, list[str]]:
    """Returns a model's text after one to four mutations, and their names."""
    mutator = Mutator(ET.fromstring(text), pool, rng)
    mutator.mutate(int(rng.choice((1, 2, 3, 4), p=(0.5, 0.25, 0.15, 0.1))))
    for element in mutator.root.iter():
        for name, value in element.attrib.items():
            element.attrib[name] = mutator.bounded(name, value)
    return ET.tostring(mutator.root, encoding="unicode")[:LONGEST], mutator.done
