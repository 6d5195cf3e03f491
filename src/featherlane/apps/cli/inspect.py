"""`featherlane inspect`: elements of a model, computational cost, and unsupported features."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from rich.text import Text
from rich.tree import Tree

from featherlane import Data, load
from featherlane.apps.cli.output import console, name_value_table, print_json, table
from featherlane.enums import SLIDE
from featherlane.errors import ModelError
from featherlane.extension import source_report
from featherlane.tree import branch_counts, choose_forward_dynamics, compare_costs, cost_table, sparsity

SIZES = "nq nv nu na nbody njnt ngeom nsite nmocap nsensor neq ntendon nkey".split()
CAPACITIES = {
    "nconmax": "contacts",
    "nrowmax": "scalar rows (friction loss, limits, equalities)",
}
JOINT_TYPES = ("free", "ball", "slide", "hinge")
PICTURE = 96  # largest number of DoFs for a sparsity picture
HULLS = 12  # most hulls that are listed, the largest
BLOCKS = " ▀▄█"  # empty, upper half, lower half and full cell


def inspect(source: str, as_json: bool) -> None:
    """Describes a model, including one with unsupported features.

    Raises:
        ModelError: the model cannot be found, read or compiled.
    """
    description = describe(source)
    if as_json:
        print_json(description)
    else:
        _print(description)


def describe(source: str) -> dict[str, Any]:
    """Returns everything that `inspect` prints, as plain values."""
    report = source_report(source)
    mj = report.mj_model
    parents = np.asarray(mj.dof_parentid)
    return {
        "model": report.name,
        "sizes": {size: int(getattr(mj, size)) for size in SIZES},
        "mass": float(mj.body_mass.sum()),
        "options": _options(mj),
        "features": _features(mj),
        "unsupported": report.unsupported,
        "sensors_not_computed": report.sensors_not_computed,
        "bodies": _bodies(mj),
        "actuators": _actuators(mj),
        "candidate_pairs": _candidates(mj, report.pairs),
        "bounding_tests": report.bounding_tests,
        "capacities": _capacities(mj) if not report.unsupported else {},
        "parents": parents.tolist(),
        "sparsity": _sparsity(parents),
        "costs": _costs(parents),
        "forward_dynamics": _forward(parents),
    }


def _word(enum: str, value: int) -> str:
    """Returns the last part of a MuJoCo enum's name: mjINT_EULER -> euler."""
    import mujoco

    return getattr(mujoco, enum)(int(value)).name.split("_", 1)[1].lower()


def _name(mj, kind: str, ident: int) -> str:
    import mujoco

    return mujoco.mj_id2name(mj, getattr(mujoco.mjtObj, f"mjOBJ_{kind}"), int(ident)) or f"#{ident}"


def _options(mj) -> dict[str, Any]:
    opt = mj.opt
    return {
        "timestep": float(opt.timestep),
        "integrator": _word("mjtIntegrator", opt.integrator),
        "solver": _word("mjtSolver", opt.solver),
        "cone": _word("mjtCone", opt.cone),
        "iterations": int(opt.iterations),
        "tolerance": float(opt.tolerance),
        "gravity": opt.gravity.tolist(),
    }


def _features(mj) -> dict[str, int]:
    """Counts the elements that use each feature, without unused features."""
    joints = Counter(_word("mjtJoint", kind) for kind in mj.jnt_type)
    found = {f"{kind} joints": joints[kind] for kind in JOINT_TYPES}
    found |= {
        "joint limits": int((mj.jnt_limited > 0).sum()),
        "friction loss": int((mj.dof_frictionloss > 0).sum()),
        "joint springs": int((mj.jnt_stiffness != 0).sum()),
        "joint damping": int((mj.dof_damping != 0).sum()),
        "armature": int((mj.dof_armature > 0).sum()),
        "joint force limits": int((mj.jnt_actfrclimited[mj.jnt_type >= SLIDE] > 0).sum()),
        "gravity compensation": int((mj.body_gravcomp != 0).sum()),
        "mocap bodies": int(mj.nmocap),
        "explicit pairs": int(mj.npair),
        "excluded body pairs": int(mj.nexclude),
        "equalities": int(mj.neq),
        "tendons": int(mj.ntendon),
        "flexes": int(mj.nflex),
    }
    return {name: count for name, count in found.items() if count}


def _bodies(mj) -> list[dict[str, Any]]:
    """Returns bodies in order, with their joints and the DoFs of each joint."""
    bodies = []
    for b in range(mj.nbody):
        start = mj.body_jntadr[b]
        joints = []
        for j in range(start, start + mj.body_jntnum[b]):
            dofs = np.flatnonzero(mj.dof_jntid == j).tolist()
            entry = {"name": _name(mj, "JOINT", j), "type": _word("mjtJoint", mj.jnt_type[j]), "dofs": dofs}
            if mj.jnt_limited[j]:
                entry["range"] = mj.jnt_range[j].tolist()
            joints.append(entry)
        bodies.append(
            {
                "name": _name(mj, "BODY", b),
                "parent": int(mj.body_parentid[b]),
                "mass": float(mj.body_mass[b]),
                "geoms": int(mj.body_geomnum[b]),
                "joints": joints,
            }
        )
    return bodies


# the object that an actuator acts on, by transmission
TARGETS = {"joint": "JOINT", "jointinparent": "JOINT", "tendon": "TENDON", "body": "BODY"}


def _target(mj, i: int) -> str:
    """Returns the target of actuator i: `elbow`, `tendon flexor`, `site hand from base`; joints without their type."""
    transmission, (first, second) = _word("mjtTrn", mj.actuator_trntype[i]), mj.actuator_trnid[i]
    kind = TARGETS.get(transmission, "SITE" if transmission != "so3" or second >= 0 else "JOINT")
    name = _name(mj, kind, first)
    if kind == "JOINT":
        return name
    reference = f" from {_name(mj, kind, second)}" if kind == "SITE" and second >= 0 else ""
    return f"{transmission} {name}{reference}"


def _actuators(mj) -> list[dict[str, Any]]:
    rows = []
    for i in range(mj.nactuator):
        u, o = mj.actuator_ctrladr[i], mj.actuator_outadr[i]
        limited = mj.actuator_ctrlnum[i] > 0 and mj.actuator_ctrllimited[u]
        rows.append(
            {
                "name": _name(mj, "ACTUATOR", i),
                "target": _target(mj, i),
                "gear": mj.actuator_gear[o].tolist(),
                "gain": _word("mjtGain", mj.actuator_gaintype[i]),
                "bias": _word("mjtBias", mj.actuator_biastype[i]),
                "dynamics": _word("mjtDyn", mj.actuator_dyntype[i]),
                "controls": int(mj.actuator_ctrlnum[i]),
                "activations": int(mj.actuator_actnum[i]),
                "delay": float(mj.actuator_delay[i]),
                "control_range": mj.actuator_ctrlrange[u].tolist() if limited else None,
            }
        )
    return rows


def _candidates(mj, found: dict[str, np.ndarray]) -> dict[str, dict[str, int]]:
    """Counts candidate pairs by the types of their geoms: pairs, and the most contact points."""
    types: dict[str, dict[str, int]] = {}
    for geom1, geom2, npoint in zip(found["cand_geom1"], found["cand_geom2"], found["cand_npoint"], strict=True):
        key = f"{_word('mjtGeom', mj.geom_type[geom1])}-{_word('mjtGeom', mj.geom_type[geom2])}"
        entry = types.setdefault(key, {"pairs": 0, "points": 0})
        entry["pairs"] += 1
        entry["points"] += int(npoint)
    return types


def _capacities(mj) -> dict[str, int]:
    """Returns the capacity for contacts, and for rows of one DoF and of several."""
    try:
        data = Data(load(mj))
    except ModelError:
        return {}
    return {name: int(getattr(data, name)) for name in CAPACITIES}


def _sparsity(parents: np.ndarray) -> dict[str, Any]:
    """Computes Featherstone's branch counts and the density of the mass matrix."""
    counts, n = branch_counts(parents), len(parents)
    return {
        "n": counts.n,
        "D0": counts.D0,
        "D1": counts.D1,
        "D2": counts.D2,
        "density": (n + 2 * counts.D1) / (n * n) if n else 0.0,
    }


def _costs(parents: np.ndarray) -> dict[str, dict[str, int]]:
    """Returns the operation counts of each function on this tree."""
    costs = cost_table(parents).items()
    return {name: {"sqrt": c.sqrt, "div": c.div, "mul": c.mul, "add": c.add, "flops": c.flops} for name, c in costs}


def _forward(parents: np.ndarray) -> dict[str, Any]:
    """Compares the operation counts of both forward dynamics algorithms."""
    costs = compare_costs(parents)
    parts = {name: getattr(costs, name).flops for name in ("rne", "crb", "ltdl", "solve", "crb_total", "aba")}
    return parts | {"ratio": costs.ratio, "cheaper": choose_forward_dynamics(parents)}


def _tree(bodies: list[dict[str, Any]]) -> Tree:
    nodes: list[Tree] = []
    for b, body in enumerate(bodies):
        label = Text(body["name"], style="bold")
        label.append(f"  {body['mass']:.3g} kg" if b else "", style="dim")
        label.append(f"  {body['geoms']} geoms" if body["geoms"] else "", style="dim")
        for joint in body["joints"]:
            first, last = joint["dofs"][0], joint["dofs"][-1]
            dofs = str(first) if first == last else f"{first}-{last}"
            limits = " [{:.3g}, {:.3g}]".format(*joint["range"]) if "range" in joint else ""
            label.append(f"\n{joint['type']} {joint['name']}: dof {dofs}{limits}", style="cyan")
        nodes.append(Tree(label) if b == 0 else nodes[body["parent"]].add(label))
    return nodes[0]


def _picture(parents: list[int]) -> Text:
    """Draws the pattern of the mass matrix, two rows per line."""
    pattern = sparsity(np.asarray(parents))
    pattern = np.vstack([pattern, np.zeros((len(pattern) % 2, len(pattern)), bool)])
    halves = pattern[::2] + 2 * pattern[1::2]
    return Text("\n".join("".join(BLOCKS[half] for half in row) for row in halves))


def _print(d: dict[str, Any]) -> None:
    screen = console()
    sizes = ", ".join(f"{name} {value}" for name, value in d["sizes"].items() if value)
    options = ", ".join(f"{name} {value}" for name, value in d["options"].items())
    features = ", ".join(f"{count} {name}" for name, count in d["features"].items())
    capacities = ", ".join(f"{value} {CAPACITIES[name]}" for name, value in d["capacities"].items())
    about = {"sizes": sizes, "mass": f"{d['mass']:.4g} kg", "options": options, "features": features}
    if capacities:
        about["capacities"] = capacities
    if d["sensors_not_computed"]:
        about["sensors"] = (
            f"{d['sensors_not_computed']} unsupported sensors (their values are not computed; the "
            f"motion does not depend on them)"
        )
    screen.print(name_value_table(d["model"], about))
    _print_support(screen, d["unsupported"])
    screen.print(_tree(d["bodies"]))
    if d["actuators"]:
        screen.print(_actuator_table(d["actuators"]))
    if d["candidate_pairs"]:
        rows = [[name, c["pairs"], c["points"]] for name, c in d["candidate_pairs"].items()]
        screen.print(table("Candidate geom pairs", ["types", "pairs", "maximum number of contacts"], rows))
    _print_bounding_tests(screen, d["bounding_tests"])
    if d["parents"]:
        _print_costs(screen, d)


def _print_support(screen, lacking: list[str]) -> None:
    if not lacking:
        screen.print(Text("All features that affect the motion are supported.", style="green"))
        return
    screen.print(Text("Not supported, but needed for the motion:", style="bold red"))
    for line in lacking:
        screen.print(Text(f"  {line}"))


def _actuator_table(actuators: list[dict[str, Any]]):
    rows = [
        [
            a["name"],
            a["target"],
            " ".join(f"{g:g}" for g in np.trim_zeros(a["gear"], "b")) or "0",
            f"{a['gain']}, {a['bias']}",
            _dynamics(a),
            "[{:g}, {:g}]".format(*a["control_range"]) if a["control_range"] else "",
        ]
        for a in actuators
    ]
    return table("Actuators", ["name", "on", "gear", "gain, bias", "dynamics", "control range"], rows)


def _dynamics(actuator: dict[str, Any]) -> str:
    """Returns the type of the activation, the number of activations if not one, and the delay of the control."""
    text, number, delay = actuator["dynamics"], actuator["activations"], actuator["delay"]
    if number > 1:
        text += f" ({number})"
    return f"{text}, {1000 * delay:g} ms delay" if delay else text


def _print_bounding_tests(screen, d: dict[str, Any]) -> None:
    """Prints the tests; prints nothing for a model without pairs."""
    if not d["spheres"]:
        return
    boxes, tree = d["body_boxes"], d["tree"]
    lines = {"candidates": f"{d['listed']} pairs of geoms"}
    if boxes["pairs_of_bodies"]:
        lines["boxes of bodies"] = f"{boxes['pairs_of_bodies']} pairs of bodies, with {boxes['pairs']} pairs of geoms"
    if tree["geoms"]:
        lines["bounding volume tree"] = f"{tree['geoms']} geoms, instead of {tree['pairs']} pairs"
    lines["bounding spheres"] = (
        f"{d['spheres']} pairs of geoms; contacts of {d['closed_form']} are computed in closed form"
    )
    if d["turned_boxes"]:
        lines["oriented boxes"] = f"{d['turned_boxes']} pairs of geoms; contacts are computed iteratively"
    screen.print(name_value_table("Broad-phase tests", lines))
    if d["hulls"]:
        rows = [[hull["mesh"], hull["geoms"], hull["vertices"], hull["faces"]] for hull in d["hulls"][:HULLS]]
        more = len(d["hulls"]) - HULLS
        title = (
            f"Largest colliding convex hulls; {more} smaller hulls are not listed"
            if more > 0
            else "Colliding convex hulls"
        )
        screen.print(table(title, ["mesh", "geoms", "vertices", "faces"], rows))


def _print_costs(screen, d: dict[str, Any]) -> None:
    s, f = d["sparsity"], d["forward_dynamics"]
    counts = ", ".join(f"{name} {s[name]}" for name in ("n", "D0", "D1", "D2"))
    screen.print(f"Mass matrix: {counts}; {100 * s['density']:.0f} % of the entries are non-zero")
    if len(d["parents"]) <= PICTURE:
        screen.print(_picture(d["parents"]))
    rows = [[name, c["sqrt"], c["div"], c["mul"], c["add"], c["flops"]] for name, c in d["costs"].items()]
    screen.print(table("Operations (Featherstone, table 6.6)", ["", "sqrt", "div", "mul", "add", "all"], rows))
    screen.print(
        f"Operation count of forward dynamics: composite rigid body O(n d^2) {f['crb_total']}, "
        f"articulated body O(n) {f['aba']}; {f['cheaper']} is cheaper (ratio {f['ratio']:.2f})"
    )
