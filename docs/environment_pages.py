"""Writes the pages of docs/environments from the environments themselves.

    python docs/environment_pages.py             # the pages
    python docs/environment_pages.py --pictures  # the pages and their pictures

The models of dm_control are read from its wheel if it is not installed. Pictures need
`pip install '.[view]'`; headless machines draw through EGL.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parent
sys.path += [str(DOCS), str(DOCS.parent / "tests")]
observations = importlib.import_module("observations")

FOLDER, IMAGES = DOCS / "environments", DOCS / "images"
SIZE, IDLE, COLORS = (320, 240), 10, 96  # pixels, actions before a picture, its colours
RENDERING = {
    "camera_id", "camera_name", "width", "height", "max_geom", "visual_options",
    "default_camera_config",
}  # fmt: skip
AXIS = re.compile(r"`[^`]*`|\b[wxyz]{1,2}\b")
INTRO = """{about}

The section of a task has these headings:

| heading | content |
|---|---|
| Observation | index, quantity and unit of each element; the column "part" is its key in `task.observation` |
| Action | index, actuator and range of each element |
| Reward | the terms, and their weights or the code that computes them |

The tables have this notation:

- An index such as 3-5 is a range that includes both ends.
- `rotation matrix xz` of a body is the entry in row x and column z of the rotation matrix from the body's frame to
  the world frame.
- Names in backquotes are names in the model file.

`python docs/environment_pages.py` writes this page. The program finds the quantity of each element of the observation.
It fills the arrays of the simulation, such as `qpos`, with random numbers. Then the task computes its observation from
these arrays. An element that equals an entry of an array has the quantity of this entry.
"""
ABOUT = {
    "robots": (
        "Environments of the bundled robots",
        "This page lists the spaces, rewards and termination of the seven tasks of the bundled robots. [Robot "
        "tasks](../tasks.md) describes their rewards, actions and domain randomization in words.",
    ),
    "gymnasium": (
        "Gymnasium environments",
        "This page lists the spaces, rewards and termination of Gymnasium's MuJoCo tasks of version 5. [Reinforcement "
        "learning](../training.md#gymnasium-tasks) compares Featherlane's tasks with the original tasks.",
    ),
    "dm_control": (
        "dm_control environments",
        "This page lists the spaces and rewards of the tasks of dm_control's suite, grouped by domain. The models are "
        "those of the installed dm_control. [dm_control](../integrations/dm_control.md) compares Featherlane's tasks "
        "with the original tasks.",
    ),
}
EXAMPLE = {
    "robots": "featherlane/Quadruped-v0",
    "gymnasium": "featherlane/Ant-v5",
    "dm_control": "featherlane/dm_control.walker-walk",
}
REWARDS = "[Observations and rewards](../tasks.md#observations-and-rewards) defines the terms and their weights."


def families() -> dict[str, list[list[str]]]:
    """Returns the tasks of each page, grouped by section."""
    from featherlane.environments.dm_control import TASKS as suite
    from featherlane.environments.gymnasium_v5 import TASKS as gymnasium
    from featherlane.environments.tasks import TASKS as robots

    domains = [[task.name for task in some] for _, some in groupby(suite, domain)]
    return {
        "robots": [[task.name] for task in robots],
        "gymnasium": [[task.name] for task in gymnasium],
        "dm_control": domains,
    }


def domain(task: type) -> str:
    """Returns the domain of a task of dm_control."""
    return task.name.removeprefix("dm_control.").partition("-")[0]  # pyright: ignore


def provide_dm_control() -> None:
    """Makes models and rewards of dm_control importable from its wheel unless it is installed."""
    if importlib.util.find_spec("dm_control") is None:  # pyright: ignore
        wheels = importlib.import_module("robots.wheels")
        sys.path.append(str(wheels.dm_control_suite()))


def made(name: str, count: int = observations.NWORLD, **settings: Any):
    """Returns an environment after its reset."""
    from featherlane import environments

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = environments.make_vec(name, count, nthread=1, **settings)
        env.reset(seed=0)
    return env


def table(head: tuple[str, ...], rows: Iterator | list) -> str:
    """Returns a table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def merged(rows: list[tuple[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Yields index, part, quantity and unit; components of a vector are one row."""
    mark = lambda found: found[0] if found[0][0] == "`" else "@"  # noqa: E731
    key = lambda row: (row[1][0], AXIS.sub(mark, row[1][1][0]), row[1][1][1])  # noqa: E731
    for (part, skeleton, unit), some in groupby(enumerate(rows), key):
        group = list(some)
        if "@" not in skeleton:
            yield from (
                (str(k), f"`{part}`", element[0], unit) for k, (_, element) in group
            )
            continue
        axes = [
            next(a for a in AXIS.findall(e[0]) if a[0] != "`") for _, (_, e) in group
        ]
        first, last = group[0][0], group[-1][0]
        index = f"{first}-{last}" if last > first else f"{first}"
        yield index, f"`{part}`", skeleton.replace("@", ", ".join(axes)), unit


def action(env) -> str:
    """Returns the table of the actions."""
    model, space = env.batch.model, env.single_action_space
    rows = []
    for k in range(model.nu):
        named = observations.name(model, "actuator", k)
        rows.append(
            (k, named, f"[{space.low[k]:.4g}, {space.high[k]:.4g}]", effect(env, k))
        )
    return table(("index", "actuator", "range", "effect"), rows)


def effect(env, k: int) -> str:
    """Returns what an actuator does, with the value for a control of 1 or the range of its target."""
    model = env.batch.model
    mj = model.mj_model
    gain, bias = mj.actuator_gainprm[k], mj.actuator_biasprm[k]
    low, high = mj.actuator_ctrlrange[k]
    to = int(mj.actuator_trnid[k, 0])
    kinds = {0: "joint", 3: "tendon"}
    kind = kinds.get(int(mj.actuator_trntype[k]))
    target = f"{kind} {observations.name(model, kind, to)}" if kind else "its target"
    slide = kind == "joint" and int(mj.jnt_type[to]) == observations.SLIDE
    if (
        mj.actuator_biastype[k] == 0
        and mj.actuator_gaintype[k] == 0
        and mj.actuator_dyntype[k] == 0
    ):
        force = gain[0] * mj.actuator_gear[k, 0]
        unit = "N m" if kind == "joint" and not slide else "N"
        return f"{'force' if unit == 'N' else 'torque'} on {target}, {force:.4g} {unit} per unit"
    if bias[1] != 0.0:
        unit = "m" if slide else "rad" if kind == "joint" else ""
        ends = f", target between {low:.4g} and {high:.4g} {unit}".rstrip()
        return f"position servo on {target}{ends}"
    if bias[2] != 0.0:
        return f"velocity servo on {target}"
    return (
        f"actuator with activation on {target}"
        if mj.actuator_dyntype[k]
        else f"on {target}"
    )


def methods(task: type, first: tuple[str, ...]) -> dict[str, None]:
    """Returns the methods that compute a reward, and those of the same package that they call: module:Class.name."""
    found: dict[str, None] = {}
    todo = list(first)
    while todo:
        function = inspect.getattr_static(task, todo.pop(0), None)
        if not inspect.isfunction(function) or function.__module__.endswith(".task"):
            continue
        label = f"{function.__module__}:{function.__qualname__}"
        if label not in found:
            found[label] = None
            todo += re.findall(
                r"(?:self|super\(\))\.(\w+)\(", inspect.getsource(function)
            )
    return found


def sources(tasks: list[type], first: tuple[str, ...]) -> str:
    """Returns the marks that the site replaces by the code of methods."""
    found = {label: None for task in tasks for label in methods(task, first)}
    hidden = ("contact_forces", "measured", "jerk")
    shown = [label for label in found if not label.endswith(hidden)]
    return "\n\n".join(f"{{{{ source: {label} }}}}" for label in shown)


def options(task: type) -> str:
    """Returns the table of the keyword arguments of a task."""
    rows = []
    for field in dataclasses.fields(task):
        if field.init and field.name not in RENDERING:
            default = field.default
            text = (
                "file of the model"
                if field.name == "xml_file"
                else repr(default).replace("inf", "np.inf")
            )
            rows.append(
                (
                    f"`{field.name}`",
                    f"`{default}`" if field.name == "xml_file" else f"`{text}`",
                )
            )
    return table(("option", "default"), rows)


def termination(env) -> str:
    """Returns when an episode terminates."""
    task = env.task
    if task.terminated(env.batch) is None:
        return "never"
    text = inspect.getdoc(type(task).terminated) or ""
    if text.startswith("Terminates "):
        if "`lowest`" in text:  # a constant of the task
            text = text.replace("`lowest`", f"{task.lowest:g} m above the ground")
        return text.removeprefix("Terminates ").rstrip(".")
    ranges = [
        f"`{name}={value}`"
        for name, value in vars(task).items()
        if name.startswith("healthy_") and name.endswith("range")
    ]
    if ranges:
        return (
            f"if the state leaves {', '.join(ranges)}; see the code of `healthy` below"
        )
    return "see the code of `terminated` below"


def facts(env) -> str:
    """Returns the table of an environment's sizes and times."""
    import mujoco

    task, model = env.task, env.batch.model
    space, low = env.single_observation_space, env.single_action_space.low
    integrator = mujoco.mjtIntegrator(model.mj_model.opt.integrator).name
    integrator = integrator.removeprefix("mjINT_").lower()
    rows = [
        ("observation", f"shape {space.shape}, {space.dtype}"),
        ("action", f"shape {low.shape}"),
        ("time step", f"{1000 * float(model.opt.timestep):g} ms"),
        ("time steps per action", f"{task.frame_skip}: {1000 * task.dt:g} ms"),
        ("episode", f"{task.limit} actions, {task.limit * task.dt:g} s"),
        ("termination", termination(env)),
        ("integrator", f"`{integrator}`"),
    ]
    if task.reward_threshold is not None:
        rows.append(
            (
                "return from which on the task counts as solved",
                f"{task.reward_threshold:g}",
            )
        )
    return table(("property", "value"), rows)


def section(names: list[str], family: str) -> str:
    """Returns the section of one or more tasks with one model."""
    envs = [made(name) for name in names]
    seen = [observations.observed(made(name)) for name in names]
    tasks = [type(env.task) for env in envs]
    title = (
        domain(tasks[0]).replace("_", " ").capitalize()
        if family == "dm_control"
        else names[0]
    )
    first = tasks[0]
    about = inspect.getdoc(first) or ""
    if family == "dm_control":
        about = (inspect.getdoc(inspect.getmodule(first)) or "").partition(": ")[2]  # pyright: ignore
    about = about.partition("\n\n")[0].replace("\n", " ")
    parts = [f"## {title}", about[:1].upper() + about[1:]]
    parts.append(
        f"![{title}: a world some steps after its reset](../images/{picture(names[0])})"
    )
    if family == "dm_control":
        rows = [
            (f"`featherlane/{task.name}`", (inspect.getdoc(task) or "").splitlines()[0])
            for task in tasks
        ]
        parts.append(table(("environment", "description"), rows))
    parts += [facts(envs[0])]
    layouts: dict[str, list[str]] = {}
    for name, rows in zip(names, seen, strict=True):
        text = table(("index", "part", "quantity", "unit"), merged(rows))
        layouts.setdefault(text, []).append(f"`{name.rpartition('-')[2]}`")
    for text, some in layouts.items():
        parts += [
            f"### Observation of {title}"
            + (f": {', '.join(some)}" if len(layouts) > 1 else ""),
            text,
        ]
    parts += [
        f"### Action of {title}",
        action(envs[0]),
        f"### Reward of {title}",
        *reward(title, envs, tasks, family),
    ]
    return "\n\n".join(parts)


def reward(title: str, envs: list, tasks: list[type], family: str) -> list[str]:
    """Returns the text about rewards and options."""
    if family == "robots":
        terms = table(
            ("term", "weight"),
            [(f"`{n}`", f"{w:g}") for n, w in envs[0].task.weight.items()],
        )
        return [REWARDS, terms, f"### Options of {title}", options(tasks[0])]
    if family == "dm_control":
        return [sources(tasks, ("reward",))]
    code = sources(tasks, ("reward", "terminated"))
    return [
        "The reward is the sum of the terms that `reward` returns:",
        code,
        f"### Options of {title}",
        options(tasks[0]),
    ]


def picture(name: str) -> str:
    """Returns the file name of the picture of a section."""
    return f"env_{re.sub(r'[^a-z0-9]+', '_', name.removeprefix('dm_control.').lower())}.png"


def page(family: str) -> str:
    """Returns a page."""
    title, about = ABOUT[family]
    code = (
        "```python\nimport gymnasium as gym\n\nimport featherlane.environments\n\n"
        f'env = gym.make_vec("{EXAMPLE[family]}", num_envs=64)\n'
        "print(env.single_observation_space.shape, env.single_action_space.shape)\n```\n"
    )
    code += "\n```text\n{} {}\n```\n"
    env = made(EXAMPLE[family].removeprefix("featherlane/"), 1)
    spaces = env.single_observation_space.shape, env.single_action_space.shape
    parts = [
        f"# {title}",
        INTRO.format(about=textwrap.fill(about, 120)),
        code.format(*spaces),
    ]
    parts += [section(names, family) for names in families()[family]]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def draw(name: str) -> None:
    """Draws the picture of a section."""
    from PIL import Image

    width, height = SIZE
    env = made(name, 1, render_mode="rgb_array", width=width, height=height)
    for _ in range(IDLE):
        env.step(np.zeros(env.action_space.shape))
    image = Image.fromarray(env.render()[0])
    image.quantize(COLORS).save(IMAGES / picture(name), optimize=True)
    env.close()


if __name__ == "__main__":
    importlib.import_module("oracle").use()
    provide_dm_control()
    FOLDER.mkdir(exist_ok=True)
    for family, sections in families().items():
        (FOLDER / f"{family}.md").write_text(page(family))
        for names in sections if "--pictures" in sys.argv else ():
            draw(names[0])
    print(f"wrote {FOLDER}")
