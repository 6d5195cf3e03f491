"""Random trees whose bodies touch each other: models for the fuzzer of derivatives.

A tree is sampled part by part.  Each part (joint, geom, tendon, actuator, equality, sensor, option) has the attributes
that enter its force, each present with some probability.
"""

from __future__ import annotations

import numpy as np

import featherlane as fl

SHAPES = ("sphere", "capsule", "ellipsoid", "box", "cylinder")
ROUND = SHAPES[:3]
INTEGRATORS = ("euler", "implicit", "implicitfast", "rk4", "discrete")
CONES = ("pyramidal", "elliptic")
CONTACT_MODELS = ("convex", "convex", "convex", "coulomb", "lcp")
PAIR_FRICTIONS = ".9 .3 .02 .004 .001", ".2 .7 .01 .001 .006", ".5 .5 .02 .002 .002"
SOLREFS = ".02 1", ".05 .6", ".01 1.5", "-900 -20"
SOLIMPS = ".9 .95 .001", ".5 .9 .05 .5 2", ".2 .99 .02 .3 3"
JOINTS = ("hinge", "hinge", "slide", "ball")


def _words(x) -> str:
    return " ".join(f"{v:.4g}" for v in np.atleast_1d(x))


def _tag(name: str, content: str = "", /, **attributes) -> str:
    given = "".join(f' {key.rstrip("_")}="{value}"' for key, value in attributes.items() if value is not None)
    return f"<{name}{given}>{content}</{name}>\n" if content else f"<{name}{given}/>\n"


class Tree:
    """Samples one model.

    Args:
        rng: the generator.

    Attributes:
        text: the model's MJCF.
        options: attributes of `model.opt` that MJCF lacks, and those that a solver needs for exact steps.
    """

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.joints: list[tuple[str, str]] = []
        self.bodies: list[str] = []
        self.geoms: list[str] = []
        self.sites: list[str] = []
        self.wraps: list[str] = []
        self.tendons: list[str] = []
        #: probability of each optional attribute: some models are plain
        self.often = float(rng.choice([0.0, 0.15, 0.4]))
        self.condims = [int(c) for c in rng.choice([1, 3, 3, 4, 6], size=int(rng.integers(1, 4)))]
        self.shapes = [str(s) for s in (ROUND if rng.random() < 0.7 else SHAPES)]
        self.options = self._options()
        self.text = self._model()

    def maybe(self, value, chance: float | None = None):
        """Returns the value, or None."""
        return value if self.rng.random() < (self.often if chance is None else chance) else None

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def number(self, low: float, high: float) -> str:
        return f"{self.rng.uniform(low, high):.4g}"

    def vector(self, size: float, n: int = 3) -> str:
        return _words(size * self.rng.uniform(-1, 1, n))

    def polynomial(self, size: float) -> str:
        """Returns one coefficient, or three, of a spring or a damper."""
        n = 3 if self.rng.random() < 0.2 else 1
        return _words(size * self.rng.uniform(0, 1, n))

    # ---- options -----------------------------------------------------------------------------------------------------
    def _options(self) -> dict:
        rng = self.rng
        out = {"tolerance": 0.0, "iterations": 200, "integrator": self.pick(INTEGRATORS), "cone": self.pick(CONES)}
        out["contact_model"] = self.pick(CONTACT_MODELS)
        if out["contact_model"] == "coulomb":
            out |= {"tolerance": 1e-14, "integrator": self.pick(INTEGRATORS[:3])}
        if out["contact_model"] == "lcp":
            out |= {"integrator": "euler", "cfm": 1e-3, "lcp_friction": self.pick(["frozen", "consistent"])}
            if rng.random() < 0.3:
                out |= {"lcp_solver": "apgd", "lcp_cone": "cone", "lcp_iterations": 100_000, "lcp_tolerance": 1e-13}
        elif out["contact_model"] == "convex" and rng.random() < 0.15:
            out |= {"noslip_iterations": int(rng.integers(1, 6)), "noslip_tolerance": 0.0}
        if rng.random() < self.often:
            out["impratio"] = float(self.pick([0.5, 3.0, 10.0]))
        for name, values in (("rotation", ("finite", "infinitesimal")), ("jacobian", (0, 1))):
            if rng.random() < 0.2 * self.often:
                out[name] = self.pick(values)
        return out

    def _option(self) -> str:
        air = self.maybe(True, 0.2 * (self.often > 0))
        flags = {
            "refsafe": self.maybe("disable", 0.3 * self.often),
            "eulerdamp": self.maybe("disable", 0.3 * self.often),
            "diagexact": self.maybe("enable", 0.1 * self.often),
            "gravity": self.maybe("disable", 0.2 * self.often),
            "damper": self.maybe("disable", 0.05 * self.often),
            "filterparent": self.maybe("disable", 0.2),
            "sleep": self.maybe("enable", 0.02),
        }
        flag = _tag("flag", **flags)
        return _tag(
            "option", flag, timestep=self.pick([".001", ".002", ".005"]), gravity=self.maybe(self.vector(9)),
            density=air and self.number(0, 50), viscosity=air and self.number(0, 1), wind=air and self.vector(2),
        )  # fmt: skip

    # ---- bodies ------------------------------------------------------------------------------------------------------
    def _joint(self, kind: str) -> str:
        name, limits = f"j{len(self.joints)}", None
        self.joints.append((name, kind))
        if kind != "ball" and self.maybe(True):
            limits = _words(np.sort(self.rng.uniform(-0.5, 0.5, 2)))
        elif kind == "ball" and self.maybe(True, 0.5 * self.often):
            limits = "0 " + self.number(0.05, 1)
        return _tag(
            "joint", name=name, type=kind, axis=None if kind == "ball" else self.vector(1),
            pos=None if kind == "slide" else self.maybe(self.vector(0.1), 0.5),
            armature=self.maybe(self.number(0, 0.1)), damping=self.maybe(self.polynomial(1)),
            stiffness=self.maybe(self.polynomial(30)),
            springref=None if kind == "ball" else self.maybe(self.number(-1, 1)),
            frictionloss=self.maybe(self.number(0, 0.5)), limited="true" if limits else None, range=limits,
            margin=limits and self.maybe(self.number(0, 0.2)), solreflimit=limits and self.maybe(self.pick(SOLREFS)),
            solreffriction=self.maybe(self.pick(SOLREFS), 0.2 * self.often),
            actuatorfrcrange=None if kind == "ball" else self.maybe("-.7 1", 0.2 * self.often),
            actuatorgravcomp=self.maybe("true", 0.2 * self.often),
        )  # fmt: skip

    def _geom(self, size: float) -> str:
        rng, name = self.rng, f"g{len(self.geoms)}"
        self.geoms.append(name)
        kind = self.pick(self.shapes)
        sizes = {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)
        friction = rng.uniform(0.1, 1.2), rng.uniform(0.001, 0.05), rng.uniform(0.0005, 0.01)
        return _tag(
            "geom", name=name, type=kind, size=_words(size * rng.uniform(0.6, 1.3, sizes)), quat=self.vector(1, 4),
            pos=self.vector(0.6 * size), condim=self.pick(self.condims), friction=self.maybe(_words(friction), 0.7),
            priority=self.maybe("1", 0.3 * self.often), solref=self.maybe(self.pick(SOLREFS)),
            solimp=self.maybe(self.pick(SOLIMPS)), margin=self.maybe(self.number(0, 0.05)),
            gap=self.maybe(self.number(0, 0.02), 0.2 * self.often), solmix=self.maybe("3", 0.2 * self.often),
            adhesion=self.maybe("2", 0.05 * self.often), surfacevel=self.maybe(self.vector(1, 6), 0.05 * self.often),
            fluidshape=self.maybe("ellipsoid", 0.3 * self.often), density=self.number(300, 2000),
        )  # fmt: skip

    def _body(self, depth: int) -> str:
        rng, name = self.rng, f"b{len(self.bodies)}"
        self.bodies.append(name)
        size = float(rng.uniform(0.06, 0.14))
        content = ""
        if depth == 0 and rng.random() < 0.35:
            loose = {"damping": self.maybe(self.polynomial(1)), "armature": self.maybe(self.number(0, 0.1))}
            content = _tag("joint", type="free", **loose, frictionloss=self.maybe(self.number(0, 0.5)))
        if not content:
            n = int(rng.choice([1, 1, 1, 2]))  # MuJoCo refuses a rotation after a ball
            content = "".join(self._joint(self.pick(JOINTS if k == n - 1 else JOINTS[:3])) for k in range(n))
        content += "".join(self._geom(size) for _ in range(int(rng.choice([1, 1, 2]))))
        for _ in range(2):
            self.sites.append(f"s{len(self.sites)}")
            content += _tag("site", name=self.sites[-1], pos=self.vector(1.5 * size), size=".05")
        if rng.random() < 0.3:
            self.wraps.append(f"w{len(self.wraps)}")
            content += _tag(
                "geom", name=self.wraps[-1], type=self.pick(["sphere", "cylinder"]), size=".03 .1", contype="0",
                conaffinity="0", mass="0", quat=self.vector(1, 4),
            )  # fmt: skip
        for _ in range(int(rng.choice([0, 1, 2, 3] if depth == 0 else [0, 0, 1, 2]))):
            if len(self.bodies) < 7:
                content += self._body(depth + 1)
        height = np.array([0.0, 0.0, rng.uniform(0.0, 0.4)]) if depth == 0 else 0.0
        return _tag(
            "body", content, name=name, pos=_words(rng.uniform(-1, 1, 3) * (0.25 if depth else 0.3) + height),
            quat=self.vector(1, 4), gravcomp=self.maybe(self.number(0, 1), 0.5 * self.often),
        )  # fmt: skip

    # ---- everything else ---------------------------------------------------------------------------------------------
    def _scalar_joint(self) -> str | None:
        names = [name for name, kind in self.joints if kind != "ball"]
        return self.pick(names) if names else None

    def _tendon(self) -> str:
        name = f"t{len(self.tendons)}"
        limits = self.maybe(_words(np.sort(self.rng.uniform(0, 0.6, 2))))
        common = {
            "name": name, "stiffness": self.maybe(self.polynomial(50), 0.5), "damping": self.maybe(self.polynomial(2)),
            "frictionloss": self.maybe(self.number(0, 0.5)), "limited": "true" if limits else None, "range": limits,
            "springlength": self.maybe(self.number(0, 0.3)), "margin": limits and self.maybe(self.number(0, 0.1)),
            "armature": self.maybe(self.number(0, 0.1), 0.3 * self.often),
            "actuatorfrcrange": self.maybe("-.6 1", 0.2 * self.often),
            "solreflimit": limits and self.maybe(self.pick(SOLREFS)),
            "solreffriction": self.maybe(self.pick(SOLREFS), 0.2 * self.often),
        }  # fmt: skip
        joint, other = self._scalar_joint(), self._scalar_joint()
        if self.rng.random() < 0.4 and joint:
            parts = _tag("joint", joint=joint, coef=self.number(-2, 2))
            if other and other != joint:
                parts += _tag("joint", joint=other, coef=self.number(-2, 2))
            self.tendons.append(name)
            return _tag("fixed", parts, **common)
        first, last = self.rng.choice(self.sites, 2, replace=False)
        parts = _tag("site", site=first)
        if self.wraps and self.rng.random() < 0.5:
            parts += _tag("geom", geom=self.pick(self.wraps))
        parts += _tag("site", site=last)
        if self.rng.random() < 0.2:
            parts += _tag("pulley", divisor="2") + _tag("site", site=first) + _tag("site", site=self.pick(self.sites))
        self.tendons.append(name)
        return _tag("spatial", parts, **common)

    def _transmission(self, kind: str) -> dict:
        """Returns what an actuator pulls; empty: nothing fits."""
        on, joint = (
            self.pick(["joint", "joint", "joint", "jointinparent", "tendon", "site", "slider"]),
            self._scalar_joint(),
        )
        if on == "tendon" and self.tendons:
            return {"tendon": self.pick(self.tendons)}
        if on == "site" and kind in ("motor", "general", "position"):
            place = {"site": self.pick(self.sites), "gear": self.vector(1, 6)}
            return place | {"refsite": self.maybe(self.sites[0], 0.3)}
        if on == "slider" and kind in ("motor", "general") and len(self.sites) > 1:
            crank, slider = self.rng.choice(self.sites, 2, replace=False)
            return {"cranksite": crank, "slidersite": slider, "cranklength": "1"}
        if on == "jointinparent" and self.joints:
            return {"jointinparent": self.pick(self.joints)[0], "gear": self.vector(1)}
        return {"joint": joint, "gear": self.maybe(self.number(-2, 2))} if joint else {}

    def _actuator(self) -> str:
        kind = self.pick("motor position velocity general general muscle damper intvelocity cylinder".split())
        kind = self.maybe(self.pick(["dcmotor", "pid"]), 0.2 * self.often) or kind
        place = self._transmission(kind)
        if not place:
            return ""
        own = {
            "position": {"kp": self.number(1, 30), "kv": self.maybe(self.number(0, 2), 0.5)},
            "intvelocity": {"kp": self.number(1, 30), "kv": self.number(0, 2), "actrange": "-1 1"},
            "velocity": {"kv": self.number(0, 3)},
            "damper": {"kv": self.number(0, 3)},
            "muscle": {"lengthrange": ".1 1", "force": "5"},
            "cylinder": {"timeconst": ".1", "area": "1", "bias": self.vector(2)},
            "dcmotor": {"motorconst": ".5", "resistance": "2", "inductance": self.maybe(".02", 0.5)},
            "pid": {"kp": "3", "ki": "1", "kd": None},
            "general": {
                "dyntype": self.pick(["none", "integrator", "filter", "filterexact"]), "dynprm": ".05",
                "gaintype": self.pick(["fixed", "affine"]), "gainprm": self.vector(5), "biastype": "affine",
                "biasprm": self.vector(5), "actearly": self.maybe("true", 0.3),
            },
        }.get(kind, {})  # fmt: skip
        bounded = "0 1" if kind in ("damper", "muscle") else self.maybe("-.5 .7")
        if kind in ("motor", "position") and self.maybe(True, 0.2 * self.often):
            own |= {"delay": ".004", "nsample": "8"}
        if kind != "dcmotor":
            own |= {"forcerange": self.maybe("-1.5 2", 0.5 * self.often)}
            own |= {"damping": self.maybe(self.polynomial(1), 0.3 * self.often)}
        own |= {"armature": self.maybe(self.number(0, 0.1), 0.2 * self.often)}
        return _tag(kind, **place, **own, ctrlrange=bounded)

    def _equality(self) -> str:
        kind = self.pick(["connect", "weld", "joint", "tendon"])
        soft = {"solref": self.maybe(self.pick(SOLREFS)), "solimp": self.maybe(self.pick(SOLIMPS))}
        if kind in ("connect", "weld") and len(self.bodies) > 1:
            one, two = self.rng.choice(self.bodies, 2, replace=False)
            own = {"anchor": self.vector(0.1)} if kind == "connect" or self.rng.random() < 0.5 else {}
            own |= {"torquescale": self.number(0.1, 2)} if kind == "weld" else {}
            if self.rng.random() < 0.3:
                one, two = self.rng.choice(self.sites, 2, replace=False)
                return _tag(kind, site1=one, site2=two, **soft)
            return _tag(kind, body1=one, body2=self.maybe(two, 0.7), **own, **soft)
        if kind == "joint" and self._scalar_joint():
            one, two = self._scalar_joint(), self._scalar_joint()
            return _tag("joint", joint1=one, joint2=None if one == two else two, polycoef=self.vector(0.5, 5), **soft)
        if kind == "tendon" and self.tendons:
            return _tag("tendon", tendon1=self.pick(self.tendons), polycoef=self.vector(0.3, 5), **soft)
        return ""

    def _sensor(self) -> str:
        kind = self.pick(
            "accelerometer velocimeter gyro force torque touch framepos framelinacc frameangacc framelinvel framexaxis"
            " jointpos jointactuatorfrc tendonpos tendonactuatorfrc subtreecom subtreeangmom subtreelinvel e_kinetic"
            " e_potential rangefinder magnetometer".split()
        )
        if kind.startswith("frame"):
            return _tag(kind, objtype="site", objname=self.pick(self.sites))
        if kind.startswith("joint"):
            joint = self._scalar_joint()
            return _tag(kind, joint=joint) if joint else ""
        if kind.startswith("tendon"):
            return _tag(kind, tendon=self.pick(self.tendons)) if self.tendons else ""
        if kind.startswith("subtree"):
            return _tag(kind, body=self.pick(self.bodies))
        return _tag(kind) if kind.startswith("e_") else _tag(kind, site=self.pick(self.sites))

    def _pair(self) -> str:
        one, two = self.rng.choice(self.geoms, 2, replace=False)
        return _tag(
            "pair", geom1=one, geom2=two, condim=self.pick([1, 3, 4, 6]), friction=self.pick(PAIR_FRICTIONS),
            solref=self.maybe(self.pick(SOLREFS)), margin=self.maybe(self.number(0, 0.05)),
            solreffriction=self.maybe(self.pick(SOLREFS[:3])), gap=self.maybe("0.01", 0.2 * self.often),
            solimp=self.maybe(self.pick(SOLIMPS)),
        )  # fmt: skip

    def _several(self, make, most: int) -> str:
        chance = 0.7 if self.often else 0.2
        return "".join(make() for _ in range(int(self.rng.integers(1, most + 1)))) if self.rng.random() < chance else ""

    def _model(self) -> str:
        rng = self.rng
        floor = _tag("geom", type="plane", size="5 5 1", condim=self.pick(self.condims), pos="0 0 -.1")
        world = floor if rng.random() < 0.4 else ""
        for _ in range(int(rng.choice([1, 1, 2, 3]))):
            world += self._body(0)
        parts = [self._option(), _tag("worldbody", world), _tag("tendon", self._several(self._tendon, 2))]
        parts.append(_tag("actuator", self._several(self._actuator, 3)))
        parts.append(_tag("equality", self._several(self._equality, 2) if rng.random() < 0.5 else ""))
        parts.append(_tag("sensor", self._several(self._sensor, 3)))
        if len(self.geoms) > 1:
            parts.append(_tag("contact", "".join(self._pair() for _ in range(int(rng.choice([0, 0, 1, 2, 3]))))))
        return _tag("mujoco", "".join(parts))

    def load(self) -> fl.Model:
        """Loads the model and sets its options."""
        model = fl.load(self.text)
        for name, value in self.options.items():
            setattr(model.opt, name, value)
        return model
