"""A hook of the site: the reference, written from the code when the site is built.

Public names have their signature, their docstring, a link to the line that defines them, the errors that all calls of
their kind have in common, and their example (`name_examples.py`).  Options, sensors, actuators and commands have tables
from what declares them.
"""

from __future__ import annotations

import ast
import enum
import html
import importlib
import inspect
import re
import typing
from pathlib import Path
from types import ModuleType

import mujoco
import numpy as np
import typer
from docstrings import entry, escaped, first_line
from members import enum_members, grouped
from mkdocs.structure.files import File
from name_examples import Examples
from signatures import plain, signature

import featherlane as fl
from featherlane.apps.cli.application import application
from featherlane.engine.model.sensor import ACCELERATION, POSITION, ROWS, SENSORS, VELOCITY

ROOT = Path(__file__).parents[2]
MODULES = {
    "api": "featherlane",
    "results": "featherlane.results",
    "query": "featherlane.query",
    "patterns": "featherlane.patterns",
    "controllers": "featherlane.controllers",
    "policies": "featherlane.policies",
    "terrain": "featherlane.terrain",
    "stages": "featherlane.stages",
    "registration": "featherlane.registration",
    "environments": "featherlane.environments",
    "distributed": "featherlane.distributed",
    "lcp": "featherlane.lcp",
    "tree": "featherlane.tree",
    "lanes": "featherlane.lanes",
    "enums": "featherlane.enums",
    "errors": "featherlane.errors",
    "extension": "featherlane.extension",
}
# modules that import an optional library: their pages are made from the source alone
ADAPTERS = ("tensors", "stable_baselines3", "rsl_rl", "skrl", "torchrl")
BRIDGE = "tools/sensitivity/adjoint/bridge.py"  # documents `Dynamics` of the next two modules
SOURCES = {
    "torch": ("featherlane.integrations.torch", ("integrations/torch/__init__.py", BRIDGE)),
    "jax": ("featherlane.integrations.jax", ("integrations/jax/__init__.py", BRIDGE)),
    "adapters": (
        "featherlane.environments.adapters",
        tuple(f"environments/adapters/{name}.py" for name in ("__init__", *ADAPTERS)),
    ),
}
# the other reference pages: title, content
PAGES = {
    "../extending.md": (
        "Extending Featherlane",
        "guides for fields, joints, sensors, solvers, tasks",
    ),
    "../building.md": ("Build and profile", "environment variables, release wheels, profilers"),
    "options.md": ("Options", "`model.opt`: defaults and allowed values"),
    "../fields.md": ("Fields", "fields of `Model` and `Data`: shape, unit, meaning"),
    "../integrations/mujoco_rollout.md": ("mujoco.rollout", "the functions of `mujoco.rollout`, on Featherlane"),
    "../integrations/judo.md": ("judo", "judo's sampling controllers, on Featherlane"),
    "../integrations/mujoco_batch.md": ("mujoco.batch", "the class `mujoco.batch.Batch`, on Featherlane"),
    "../integrations/mujoco_data.md": ("MuJoCo data", "worlds copied to and from `mujoco.MjData`"),
    "../integrations/dm_control.md": ("dm_control", "the suite's tasks in batches, and environments on Featherlane"),
    "../integrations/robosuite.md": ("robosuite in batches", "robosuite's manipulation tasks in hundreds of worlds"),
    "../integrations/gymnasium.md": (
        "Gymnasium and robosuite",
        "their MuJoCo environments on Featherlane; how to port one",
    ),
    "../contact.md": ("Contact models, solvers and integrators", "options of contact, `fl.integrate`, `fl.lcp`"),
    "../integrations/unisim.md": ("UniSim and UniLab", "a backend of UniSim, and UniLab's tasks on it"),
    "../integrations/mjbatch.md": ("mjbatch", "the class `mjbatch.Batch`, on Featherlane"),
    "../integrations/mjlab.md": ("mjlab", "mjlab's tasks, on Featherlane"),
    "../stages.md": ("Compiled stages", "every stage, by source file"),
    "sensors.md": ("Sensor types", "what each type measures, dimension, unit"),
    "../inverse-kinematics.md": ("Inverse kinematics", "targets, method, limits and measurements of `fl.ik`"),
    "../cameras.md": ("Cameras", "depth, segmentation, normals and colours of many worlds"),
    "../sensing.md": (
        "Height scans, kinematics and contacts",
        "rays of patterns, Jacobians and contact forces of many worlds",
    ),
    "actuators.md": ("Actuator types", "transmissions, activations, gains, biases"),
    "../errors.md": ("Errors", "every exception and warning, with causes"),
    "command-line.md": ("Command line", "commands and options of `featherlane`"),
    "../features.md": ("Supported features", "what is supported, and the test of each kind"),
    "../pairs.md": ("Pairs of shapes", "collision of each pair of geom types, compared with MuJoCo"),
}
# errors that every function of a model and a `Data` may raise (simulation/steps.py)
COMMON = """TypeError: `data` is no Data, or `model` no Model.
ModelError: the model's sizes are not the data's.
RuntimeError: another thread is in a call of this data."""
COMMON_OF_BATCH = """RuntimeError: another thread is in a call of this batch.
ModelError: a shape, a world or a name that the batch does not have."""


def groups(module: ModuleType) -> dict[str, list[str]]:
    """Returns the public names by the comments of `__all__`, without modules, which have separate pages.

    The list of `featherlane.lanes` is that of the engine's package.
    """
    source = inspect.getsource(getattr(module, "_lanes", module))
    text = re.search(r"__all__ = \[.*?\n(.*?)^\]", source, re.DOTALL | re.MULTILINE)
    found: dict[str, list[str]] = {}
    group = ""
    for line in text[1].splitlines() if text else ():
        if line.strip().startswith("#"):
            group = line.strip(" #")
        elif name := re.search(r'"(\w+)"', line):
            found.setdefault(group, []).append(name[1])
    listed = {name for names in found.values() for name in names}
    found.setdefault("", []).extend(name for name in module.__all__ if name not in listed)
    apart = {name for name in module.__all__ if getattr(getattr(module, name), "__name__", "") in MODULES.values()}
    shown = {group: [n for n in names if n not in apart] for group, names in found.items()}
    return {group: names for group, names in shown.items() if names}


def place(thing) -> str:
    """Returns a link to the line that defines something, or nothing if it has no definition."""
    try:
        path = Path(inspect.getsourcefile(plain(thing)) or "").resolve()
        line = max(inspect.getsourcelines(plain(thing))[1], 1)  # 0 of a module
    except (OSError, TypeError):
        return ""
    if "featherlane" not in path.parts or path.suffix != ".py":
        return ""
    inside = path.parts[len(path.parts) - path.parts[::-1].index("featherlane") - 1 :]
    source = Path("src", *inside)
    return f'[source](../../{source.as_posix()}){{ data-line="{line}" }}' if (ROOT / source).is_file() else ""


def raises(thing, owner: str = "") -> str:
    """Returns the errors that all calls of a kind have in common."""
    if owner == "Batch":
        return COMMON_OF_BATCH
    try:
        parameters = list(inspect.signature(plain(thing)).parameters)
    except (TypeError, ValueError):
        return ""
    return COMMON if parameters[:2] == ["model", "data"] and not inspect.isclass(thing) else ""


def described(name: str, thing, level: int, anchor: str, owner: str = "") -> list[str]:
    """Heading, signature, docstring, common errors."""
    lines = [f"{'#' * level} {html.escape(name)} {{ #{anchor} }}", ""]
    if isinstance(thing, property):
        return [*lines, entry(inspect.getdoc(thing) or ""), ""]
    if callable(thing):
        lines += [f"```python\n{signature(name, thing)}\n```", ""]
    text = inspect.getdoc(plain(thing)) or inspect.getdoc(thing) or ""
    return [*lines, entry(text, raises(thing, owner)), "", place(thing), ""]


def is_constant(thing) -> bool:
    """Returns whether a public name is a value without a docstring, such as a number, a tuple or a union of types."""
    return not (callable(thing) or inspect.ismodule(thing)) or typing.get_origin(thing) is not None


def constants(found: dict[str, object]) -> list[str]:
    """Returns a table of constants: numbers, and the number of names of a tuple or a dict."""
    rows = []
    for name, value in found.items():
        shown = f"{value:g}" if isinstance(value, int | float) else type(value).__name__
        if isinstance(value, tuple | dict | frozenset):
            shown += f" of {len(value)} names"
        rows.append(f"| `{name}` {{ #{name} }} | {shown} |")
    return ["| name | value |", "| --- | ---: |", *rows, ""] if rows else []


def module_page(title: str, dotted: str) -> str:
    """A page of all public names of a module."""
    module, shown = importlib.import_module(dotted), Examples(dotted)
    lines = [f"# {dotted}", "", entry(inspect.getdoc(module) or ""), ""]
    for group, names in groups(module).items():
        if group:
            lines += [f"## {group[0].upper()}{group[1:]}", ""]
        things = {name: getattr(module, name) for name in names}
        lines += constants({name: thing for name, thing in things.items() if is_constant(thing)})
        for name, thing in things.items():
            if is_constant(thing):
                continue
            lines += described(name, thing, 3, name)
            lines += shown.lines(name)
            if inspect.isclass(thing) and not issubclass(thing, Exception):
                lines += enum_members(thing) if issubclass(thing, enum.Enum) else []
                for title, inside in grouped(thing).items():
                    lines += [f"#### {name}: {title}", ""] if title else []
                    for inner, member in inside:
                        level = 5 if title else 4
                        lines += described(f"{name}.{inner}", member, level, f"{name}.{inner}", name)
                        lines += shown.lines(f"{name}.{inner}")
    return "\n".join(lines)


def options_page() -> str:
    """Returns the page of a model's options: allowed values and defaults."""
    opt = fl.load("<mujoco/>").opt
    lines = [
        "# Options",
        "",
        "`model.opt` has MuJoCo's physics options and the options of the contact model `lcp`. An invalid value raises",
        "a `ModelError` with the given and the allowed values. Options that cannot be combined raise an",
        "`UnsupportedFeatureError`. An edit takes effect at the next step. `batch.expand` makes numeric options",
        "differ by world.",
        "",
        "| option | default | allowed | |",
        "| --- | --- | --- | --- |",
    ]
    for name, descriptor in vars(type(opt)).items():
        if name.startswith("_") or not hasattr(descriptor, "__set__"):
            continue
        default = getattr(opt, name)
        shown = default.name.lower() if hasattr(default, "name") and default.name else default
        shown = " ".join(f"{x:g}" for x in shown) if np.ndim(shown) else shown
        try:
            setattr(opt, name, -1)  # options that may be negative refuse at least an object
            setattr(opt, name, object())
        except fl.FeatherlaneError as error:
            allowed = str(error).partition("allowed ")[2].removeprefix("is ").removeprefix("are ")
        if allowed == "a whole number >= 0" and hasattr(default, "name"):
            allowed = ", ".join(repr(str(member.name).lower()) for member in type(default))
        about = html.escape(inspect.getdoc(descriptor) or "")
        lines.append(f"| `{name}` | `{shown}` | {html.escape(allowed)} | {about} |")
    return "\n".join(lines) + "\n"


WHEN = {POSITION: "position", VELOCITY: "velocity", ROWS: "constraints", ACCELERATION: "acceleration"}
# (dimension, unit) by the name in MuJoCo's files; tests/test_reference.py compares dimensions with compiled models
UNITS = {
    "touch": (1, "N"), "accelerometer": (3, "m/s^2"), "velocimeter": (3, "m/s"), "gyro": (3, "rad/s"),
    "force": (3, "N"), "torque": (3, "N m"), "magnetometer": (3, "T"), "rangefinder": (0, "m"),
    "camprojection": (2, "pixels"), "jointpos": (1, "m, rad"), "jointvel": (1, "m/s, rad/s"), "tendonpos": (1, "m"),
    "tendonvel": (1, "m/s"), "actuatorpos": (1, "m, rad"), "actuatorvel": (1, "m/s, rad/s"),
    "actuatorfrc": (1, "N, N m"), "jointactfrc": (1, "N, N m"), "tendonactfrc": (1, "N"), "ballquat": (4, "1"),
    "ballangvel": (3, "rad/s"), "jointlimitpos": (1, "m, rad"), "jointlimitvel": (1, "m/s, rad/s"),
    "jointlimitfrc": (1, "N, N m"), "tendonlimitpos": (1, "m"), "tendonlimitvel": (1, "m/s"),
    "tendonlimitfrc": (1, "N"), "framepos": (3, "m"), "framequat": (4, "1"), "framexaxis": (3, "1"),
    "frameyaxis": (3, "1"), "framezaxis": (3, "1"), "framelinvel": (3, "m/s"), "frameangvel": (3, "rad/s"),
    "framelinacc": (3, "m/s^2"), "frameangacc": (3, "rad/s^2"), "subtreecom": (3, "m"), "subtreelinvel": (3, "m/s"),
    "subtreeangmom": (3, "kg m^2/s"), "insidesite": (1, "1"), "geomdist": (1, "m"), "geomnormal": (3, "1"),
    "geomfromto": (6, "m"), "contact": (0, "by output"), "tactile": (0, "m, m/s"),
    "plugin": (0, "N, N m"), "e_potential": (1, "J"), "e_kinetic": (1, "J"),
    "clock": (1, "s"), "user": (0, "user-defined"),
}  # fmt: skip

# types whose kernel computes several types
LIMITS = {"pos": "Position minus margin", "vel": "Velocity", "frc": "Force"}
DESCRIPTIONS = {
    **{f"frame{axis}axis": f"The {axis} axis of an object, in world axes or in the reference frame." for axis in "xyz"},
    **{f"{what}limit{of}": f"{LIMITS[of]} of the first limit row of a {what}; 0 if there is none."
       for what in ("joint", "tendon") for of in LIMITS},
    "geomdist": "Signed distance of the nearest geoms, at most the cutoff.",
    "geomnormal": "Direction between the nearest points of the nearest geoms; zeros beyond the cutoff.",
    "geomfromto": "Segment between the nearest points of the nearest geoms; zeros beyond the cutoff.",
    "plugin": "Forces of the plugin `mujoco.sensor.touch_grid`.",
}  # fmt: skip


def sensor_name(kind: int) -> str:
    """Returns the name of a sensor type in MuJoCo's files."""
    return mujoco.mjtSensor(kind).name.removeprefix("mjSENS_").lower()


def sensors_page() -> str:
    """Returns the page of all supported sensor types."""
    lines = [
        "# Sensor types",
        "",
        "The table lists each sensor type, the stage after which it is computed, its dimension, its unit and what it",
        "measures. A type without a dimension has one that depends on the sensor. [Sensors](../sensors.md) describes",
        "reading, cutoff, delay and noise, and lists unsupported types.",
        "",
        "| sensor | after | dimension | unit | measures |",
        "| --- | --- | ---: | --- | --- |",
    ]
    for kind in sorted(SENSORS, key=lambda kind: (SENSORS[kind].when, sensor_name(kind))):
        name = sensor_name(kind)
        dim, unit = UNITS[name]
        about = first_line(inspect.getdoc(plain(SENSORS[kind].measure)) or "").removeprefix("Writes sensor i: ")
        about = html.escape(DESCRIPTIONS.get(name, f"{about[:1].upper()}{about[1:]}"))
        lines.append(f"| `{name}` | {WHEN[SENSORS[kind].when]} | {dim or ''} | {unit} | {about} |")
    return "\n".join(lines) + "\n"


def actuators_page() -> str:
    """Returns the page of actuators, from the docstrings of the modules that compute them."""
    lines = [
        "# Actuator types",
        "",
        "The force of an actuator is gain(l, l') u + bias(l, l'). Here u is the control, or an activation that follows",
        "the control. The length of the transmission is l, and its rate is l'. The moments of the transmission map the",
        "force to the DoFs. [Features](../features.md) lists every type with its test.",
        "[User callbacks](../callbacks.md) describes user-defined laws. Fields: [`actuator_*`](../fields.md#model).",
        "",
    ]
    package = importlib.import_module("featherlane.engine.dynamics.actuator")
    for name in (
        "transmission", "site_transmission", "slider_crank", "adhesion", "reflected", "control", "history",
        "setpoint", "activation", "gain", "muscle", "dcmotor", "orientation", "user", "actuation",
    ):  # fmt: skip
        module = importlib.import_module(f"{package.__name__}.{name}")
        title = name.replace("_", " ").replace("dcmotor", "DC motor")
        lines += [f"## {title[0].upper()}{title[1:]}", "", entry(inspect.getdoc(module) or "", table=True), ""]
        lines += [f"[source](../../src/featherlane/engine/dynamics/actuator/{name}.py)", ""]
    return "\n".join(lines)


def commands_page() -> str:
    """Returns the page of the commands, from the program."""
    group = typer.main.get_command(application)
    lines = ["# Command line", "", html.escape(" ".join((group.help or "").split())), ""]
    for name, command in group.commands.items():
        about = inspect.cleandoc(command.help or "")
        lines += [f"## featherlane {name}", "", html.escape(about), ""]
        rows = []
        for parameter in command.params:
            text = "".join(html.escape(" ".join((getattr(parameter, "help", "") or "").split())))
            shown = ", ".join(parameter.opts + parameter.secondary_opts)
            if parameter.param_type_name == "argument":
                shown = parameter.metavar or str(parameter.name).upper()
            default = parameter.default if isinstance(parameter.default, str | int | float) else ""
            default = "" if isinstance(parameter.default, bool) or default == "" else f"`{default}`"
            rows.append(f"| <code>{html.escape(shown).replace('|', '&#124;')}</code> | {default} | {text} |")
        lines += ["| option | default | |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def parsed(node: ast.ClassDef | ast.FunctionDef, level: int, anchor: str) -> list[str]:
    """Heading, signature and docstring of a function, or of a class and its public methods."""
    lines = [f"{'#' * level} {node.name} {{ #{anchor} }}", ""]
    inner = [n for n in node.body if isinstance(n, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else []
    called = next((n for n in inner if n.name == "__init__"), None) if isinstance(node, ast.ClassDef) else node
    if called:
        given = ast.unparse(called.args).removeprefix("self, ").removeprefix("self")
        lines += [f"```python\n{node.name}({given})\n```", ""]
    lines += [entry(ast.get_docstring(node) or ""), ""]
    public = {n.name: n for n in inner if not n.name.startswith("_")}
    return lines + [line for n in public.values() for line in parsed(n, level + 1, f"{anchor}.{n.name}")]


def parsed_names(file: str) -> dict[str, ast.ClassDef | ast.FunctionDef]:
    """The public functions and classes of a file by their full names, from its text."""
    body = ast.parse((ROOT / "src" / "featherlane" / file).read_text()).body
    found = [n for n in body if isinstance(n, ast.ClassDef | ast.FunctionDef) and not n.name.startswith("_")]
    if file != BRIDGE:
        return {f"{Path(file).stem}.{node.name}": node for node in found}
    (bridge,) = (node for node in found if isinstance(node, ast.ClassDef))
    bridge.name = "Dynamics"
    return {bridge.name: bridge}


def parsed_page(dotted: str, files: tuple[str, ...]) -> str:
    """A page of modules that are read and not imported."""
    lines = [f"# {dotted}", ""]
    for file in files:
        if file != BRIDGE:
            text = ast.get_docstring(ast.parse((ROOT / "src" / "featherlane" / file).read_text())) or ""
            lines += [] if file.endswith("__init__.py") else [f"## {Path(file).stem}", ""]
            lines += [entry(text), ""]
        for name, node in parsed_names(file).items():
            lines += parsed(node, 2 if file == BRIDGE else 3, name)
        lines += [f"[source](../../src/featherlane/{file})", ""]
    return "\n".join(lines)


def summary(rows: list[tuple[str, str, str]]) -> list[str]:
    """A table of names, their links and the first lines of their docstrings."""
    cells = [f"| [`{name}`]({link}) | {escaped(first_line(text))} |" for name, link, text in rows]
    return ["| name | |", "| --- | --- |", *cells, ""]


def index_page() -> str:
    """Every page of the reference, and every public name with the first line of its docstring."""
    lines = ["# API reference", "", "| page | content |", "| --- | --- |"]
    lines += [f"| [{title}]({link}) | {about} |" for link, (title, about) in PAGES.items()]
    modules = [*MODULES.items(), *((name, dotted) for name, (dotted, _) in SOURCES.items())]
    lines += [f"| [`{dotted}`]({name}.md) | [summary](#{dotted.replace('.', '')}) |" for name, dotted in modules]
    for page, dotted in MODULES.items():
        module = importlib.import_module(dotted)
        lines += ["", f"## {dotted} {{ #{dotted.replace('.', '')} }}", ""]
        for group, names in groups(module).items():
            lines += [f"### {group[0].upper()}{group[1:]} {{ #{page}-{slug(group)} }}", ""] if group else []
            things = [(name, thing) for name in names if not is_constant(thing := getattr(module, name))]
            texts = [(name, inspect.getdoc(plain(thing)) or inspect.getdoc(thing) or "") for name, thing in things]
            lines += summary([(name, f"{page}.md#{name}", text) for name, text in texts])
    for page, (dotted, files) in SOURCES.items():
        lines += ["", f"## {dotted} {{ #{dotted.replace('.', '')} }}", ""]
        found = {name: node for file in files for name, node in parsed_names(file).items()}
        lines += summary([(name, f"{page}.md#{name}", ast.get_docstring(node) or "") for name, node in found.items()])
    return "\n".join(lines) + "\n"


def slug(text: str) -> str:
    """An anchor of a heading."""
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def pages() -> dict[str, str]:
    """All pages of the reference by their names."""
    made = {name: module_page(name, dotted) for name, dotted in MODULES.items()}
    made |= {name: parsed_page(*source) for name, source in SOURCES.items()}
    tables = {"index": index_page, "options": options_page, "sensors": sensors_page, "actuators": actuators_page}
    return made | {name: page() for name, page in tables.items()} | {"command-line": commands_page()}


def on_files(files, config):
    """Adds the pages to those of `docs`."""
    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files
