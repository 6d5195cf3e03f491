"""Gymnasium environments for reinforcement learning: worlds of a batch as one vector environment or one environment.

    compiled.py         compiled functions of a task that run in lanes within the step
    task.py             `Task`: observation, reward terms, termination, initial states
    vector_env.py       `TaskEnv`: n worlds of a task as a `VectorEnv`
    observations.py     groups of observations, their noise and images
    checkpoints.py      checkpoints of a `TaskEnv`
    rollout.py          rollouts of a `TaskEnv` with a compiled policy in the loop
    single_env.py       `SingleEnv`: one world as an `Env`
    batch_env.py        `BatchEnv`: a task defined by functions
    random_streams.py   a random number generator for each world
    gymnasium_v5/       Gymnasium's MuJoCo tasks
    dm_control/         tasks of dm_control's suite
    libero/             tasks of LIBERO's suites
    robosuite/          tasks of robosuite
    tasks/              tasks of the bundled robots, and their base classes
    registry.py         names for `gymnasium.make` and `gymnasium.make_vec`

Requires the extra `gym`.  Importing it registers the tasks: `gymnasium.make_vec("featherlane/Ant-v5", num_envs=4096)`.
"""

from featherlane.extension import requiring

with requiring("gymnasium", "featherlane.environments"):
    import gymnasium as gymnasium

from featherlane.environments.batch_env import BatchEnv, Before
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.registry import make_vec, register_tasks, tasks
from featherlane.environments.rollout import Rollout
from featherlane.environments.single_env import SingleEnv
from featherlane.environments.task import Task
from featherlane.environments.tasks import (
    ArmPush,
    ArmReach,
    ArmTask,
    HandTurn,
    HumanoidRough,
    HumanoidWalk,
    Quadruped,
    QuadrupedRough,
    RobotTask,
    VelocityTask,
)
from featherlane.environments.vector_env import TaskEnv

__all__ = [  # noqa: RUF022  in groups
    # vector environments of a task
    "Rollout",
    "TaskEnv",
    # vector environments defined by functions
    "BatchEnv",
    "Before",
    # single environments
    "SingleEnv",
    # task definition
    "Task",
    # robot tasks
    "ArmPush",
    "ArmReach",
    "HandTurn",
    "HumanoidRough",
    "HumanoidWalk",
    "Quadruped",
    "QuadrupedRough",
    # base classes of robot tasks
    "ArmTask",
    "RobotTask",
    "VelocityTask",
    # registered tasks
    "make_vec",
    "register_tasks",
    "tasks",
    # random numbers
    "RandomStreams",
]

register_tasks()
