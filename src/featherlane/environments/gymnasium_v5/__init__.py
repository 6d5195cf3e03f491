"""Gymnasium's MuJoCo tasks, version 5: same models, arguments, spaces, rewards, terminations and initial states.

Each task has one file.  Models are read from the installed Gymnasium; reward weights are its defaults.
Source: Gymnasium, envs/mujoco/*_v5.py; each task's results match to rounding (tests/environments).
"""

from featherlane.environments.gymnasium_v5.ant import Ant
from featherlane.environments.gymnasium_v5.half_cheetah import HalfCheetah
from featherlane.environments.gymnasium_v5.hopper import Hopper
from featherlane.environments.gymnasium_v5.humanoid import Humanoid
from featherlane.environments.gymnasium_v5.humanoid_standup import HumanoidStandup
from featherlane.environments.gymnasium_v5.inverted_double_pendulum import InvertedDoublePendulum
from featherlane.environments.gymnasium_v5.inverted_pendulum import InvertedPendulum
from featherlane.environments.gymnasium_v5.pusher import Pusher
from featherlane.environments.gymnasium_v5.reacher import Reacher
from featherlane.environments.gymnasium_v5.swimmer import Swimmer
from featherlane.environments.gymnasium_v5.walker2d import Walker2d

TASKS = (
    Ant,
    HalfCheetah,
    Hopper,
    Humanoid,
    HumanoidStandup,
    InvertedDoublePendulum,
    InvertedPendulum,
    Pusher,
    Reacher,
    Swimmer,
    Walker2d,
)
