"""Tasks of dm_control's suite that `suite.BENCHMARKING` lists: same models, observations, rewards and initial states.

    suite_task.py   `SuiteTask`: models and rewards from the installed dm_control, names, collision-free initial states
    sampling.py     uniform joint positions

Each domain has one file.  Models are read from the installed dm_control at run time (the extra `dm-control`).
Source: dm_control 1.0.50, suite/*.py; each task's results match to rounding (tests/environments/test_dm_control.py).
"""

from featherlane.environments.dm_control.acrobot import AcrobotSwingup, AcrobotSwingupSparse
from featherlane.environments.dm_control.ball_in_cup import BallInCupCatch
from featherlane.environments.dm_control.cartpole import (
    CartpoleBalance,
    CartpoleBalanceSparse,
    CartpoleSwingup,
    CartpoleSwingupSparse,
)
from featherlane.environments.dm_control.cheetah import CheetahRun
from featherlane.environments.dm_control.finger import FingerSpin, FingerTurnEasy, FingerTurnHard
from featherlane.environments.dm_control.fish import FishSwim, FishUpright
from featherlane.environments.dm_control.hopper import HopperHop, HopperStand
from featherlane.environments.dm_control.humanoid import HumanoidRun, HumanoidStand, HumanoidWalk
from featherlane.environments.dm_control.manipulator import ManipulatorBringBall
from featherlane.environments.dm_control.pendulum import PendulumSwingup
from featherlane.environments.dm_control.point_mass import PointMassEasy
from featherlane.environments.dm_control.reacher import ReacherEasy, ReacherHard
from featherlane.environments.dm_control.swimmer import Swimmer6, Swimmer15
from featherlane.environments.dm_control.walker import WalkerRun, WalkerStand, WalkerWalk

TASKS = (
    AcrobotSwingup,
    AcrobotSwingupSparse,
    BallInCupCatch,
    CartpoleBalance,
    CartpoleBalanceSparse,
    CartpoleSwingup,
    CartpoleSwingupSparse,
    CheetahRun,
    FingerSpin,
    FingerTurnEasy,
    FingerTurnHard,
    FishUpright,
    FishSwim,
    HopperStand,
    HopperHop,
    HumanoidStand,
    HumanoidWalk,
    HumanoidRun,
    ManipulatorBringBall,
    PendulumSwingup,
    PointMassEasy,
    ReacherEasy,
    ReacherHard,
    Swimmer6,
    Swimmer15,
    WalkerStand,
    WalkerWalk,
    WalkerRun,
)
