"""Tasks of robosuite: same models, controllers, observations, rewards and initial states, in batches.

    source.py         reads a live robosuite environment: model, controllers, observables, initial states
    observations.py   observables as functions over the batch
    rewards.py        what each task rewards and requires
    contacts.py       a controller that records which groups of geoms are in contact
    task.py           `RobosuiteTask`: actions, observations, rewards, resets

robosuite is imported when a task is made; nothing of it is copied.
Source: robosuite 1.5.2; each task's results match to rounding (tests/integrations/with_robosuite_tasks.py).
"""

from featherlane.environments.robosuite.task import RobosuiteTask, TwoArmTask


class Lift(RobosuiteTask):
    """Lifts a cube."""

    name = "robosuite.Lift"


class Door(RobosuiteTask):
    """Opens a door."""

    name = "robosuite.Door"


class Stack(RobosuiteTask):
    """Stacks a cube on another one."""

    name = "robosuite.Stack"


class NutAssembly(RobosuiteTask):
    """Puts two nuts around their pegs."""

    name = "robosuite.NutAssembly"


class NutAssemblySingle(RobosuiteTask):
    """Puts a nut, square or round, around its peg."""

    name = "robosuite.NutAssemblySingle"


class NutAssemblySquare(RobosuiteTask):
    """Puts a square nut around its peg."""

    name = "robosuite.NutAssemblySquare"


class NutAssemblyRound(RobosuiteTask):
    """Puts a round nut around its peg."""

    name = "robosuite.NutAssemblyRound"


class PickPlace(RobosuiteTask):
    """Puts four objects into their bins."""

    name = "robosuite.PickPlace"


class PickPlaceSingle(RobosuiteTask):
    """Puts one of four objects into its bin."""

    name = "robosuite.PickPlaceSingle"


class PickPlaceMilk(RobosuiteTask):
    """Puts a carton of milk into its bin."""

    name = "robosuite.PickPlaceMilk"


class PickPlaceBread(RobosuiteTask):
    """Puts a loaf of bread into its bin."""

    name = "robosuite.PickPlaceBread"


class PickPlaceCereal(RobosuiteTask):
    """Puts a box of cereal into its bin."""

    name = "robosuite.PickPlaceCereal"


class PickPlaceCan(RobosuiteTask):
    """Puts a can into its bin."""

    name = "robosuite.PickPlaceCan"


class Wipe(RobosuiteTask):
    """Wipes markers of dirt off a table."""

    name = "robosuite.Wipe"


class ToolHang(RobosuiteTask):
    """Assembles a frame, and hangs a tool on it."""

    name = "robosuite.ToolHang"


class TwoArmLift(TwoArmTask):
    """Lifts a pot with two arms."""

    name = "robosuite.TwoArmLift"


class TwoArmPegInHole(TwoArmTask):
    """Brings a peg into a hole with two arms."""

    name = "robosuite.TwoArmPegInHole"


class TwoArmHandover(TwoArmTask):
    """Hands a hammer from one arm to the other."""

    name = "robosuite.TwoArmHandover"


class TwoArmTransport(TwoArmTask):
    """Exchanges a payload and trash between bins with two arms."""

    name = "robosuite.TwoArmTransport"


TASKS = (
    Lift,
    Door,
    Stack,
    NutAssembly,
    NutAssemblySingle,
    NutAssemblySquare,
    NutAssemblyRound,
    PickPlace,
    PickPlaceSingle,
    PickPlaceMilk,
    PickPlaceBread,
    PickPlaceCereal,
    PickPlaceCan,
    Wipe,
    ToolHang,
    TwoArmLift,
    TwoArmPegInHole,
    TwoArmHandover,
    TwoArmTransport,
)
