"""Tasks of robosuite: same models, controllers, observations, rewards and initial states, in batches.

    source.py         reads a live robosuite environment: model, controllers, observables, initial states
    observations.py   observables as functions over the batch
    rewards.py        what each task rewards and requires
    wipe.py           what Wipe observes, rewards and requires
    contacts.py       which groups of geoms are in contact
    task.py           `RobosuiteTask`: actions, observations, rewards, resets

robosuite is imported when a task is made; nothing of it is copied.
Source: robosuite 1.5.2; each task's results match to rounding (tests/integrations/with_robosuite_tasks.py).
"""

from __future__ import annotations

from featherlane.environments.robosuite import rewards, wipe
from featherlane.environments.robosuite.rewards import Goal
from featherlane.environments.robosuite.task import RobosuiteTask, TwoArmTask

# task: its base class, what it rewards, its description
TABLE: dict[str, tuple[type[RobosuiteTask], type[Goal], str]] = {
    "Lift": (RobosuiteTask, rewards.Lift, "Lifts a cube."),
    "Door": (RobosuiteTask, rewards.Door, "Opens a door."),
    "Stack": (RobosuiteTask, rewards.Stack, "Stacks a cube on another one."),
    "NutAssembly": (RobosuiteTask, rewards.NutAssembly, "Puts two nuts around their pegs."),
    "NutAssemblySingle": (RobosuiteTask, rewards.NutAssembly, "Puts a nut, square or round, around its peg."),
    "NutAssemblySquare": (RobosuiteTask, rewards.NutAssembly, "Puts a square nut around its peg."),
    "NutAssemblyRound": (RobosuiteTask, rewards.NutAssembly, "Puts a round nut around its peg."),
    "PickPlace": (RobosuiteTask, rewards.PickPlace, "Puts four objects into their bins."),
    "PickPlaceSingle": (RobosuiteTask, rewards.PickPlace, "Puts one of four objects into its bin."),
    "PickPlaceMilk": (RobosuiteTask, rewards.PickPlace, "Puts a carton of milk into its bin."),
    "PickPlaceBread": (RobosuiteTask, rewards.PickPlace, "Puts a loaf of bread into its bin."),
    "PickPlaceCereal": (RobosuiteTask, rewards.PickPlace, "Puts a box of cereal into its bin."),
    "PickPlaceCan": (RobosuiteTask, rewards.PickPlace, "Puts a can into its bin."),
    "Wipe": (RobosuiteTask, wipe.Wipe, "Wipes markers of dirt off a table."),
    "ToolHang": (RobosuiteTask, rewards.ToolHang, "Assembles a frame, and hangs a tool on it."),
    "TwoArmLift": (TwoArmTask, rewards.TwoArmLift, "Lifts a pot with two arms."),
    "TwoArmPegInHole": (TwoArmTask, rewards.TwoArmPegInHole, "Brings a peg into a hole with two arms."),
    "TwoArmHandover": (TwoArmTask, rewards.TwoArmHandover, "Hands a hammer from one arm to the other."),
    "TwoArmTransport": (
        TwoArmTask,
        rewards.TwoArmTransport,
        "Exchanges a payload and trash between bins with two arms.",
    ),
}


def task_class(name: str, base: type[RobosuiteTask], goal: type[Goal], text: str) -> type[RobosuiteTask]:
    """Returns the class of a task."""
    return type(name, (base,), {"name": f"robosuite.{name}", "goal": goal, "__doc__": text, "__module__": __name__})


TASKS = tuple(task_class(name, *entry) for name, entry in TABLE.items())
globals().update({task.__name__: task for task in TASKS})  # pickles name classes
