"""Write doctor.md, the page of the doctor, from the registry of its checks: `python docs/doctor.py`."""

from __future__ import annotations

from pathlib import Path

from featherlane.doctor.diagnose import all_checks

PAGE = Path(__file__).parent / "doctor.md"
HEAD = """# Doctor

```sh
featherlane doctor robot.xml         # what is wrong with it, why that matters, what to try
featherlane doctor robot.xml --all   # every element, not the first four of each kind
featherlane doctor robot.xml --json  # for programs; exit code 2 where there is an error
```

```python
import featherlane as fl

model = fl.load("humanoid")
model.opt.timestep = 0.02
for finding in fl.diagnose(model):  # edits count; checks=["overlap"] asks for some checks alone
    print(finding)  # finding.severity, .check, .kind, .id, .element, .seen, .why, .advice
```

It looks at the model in `qpos0` and in each keyframe (32 at most), with the controls that stand there, and lets each
of these starts run for a second, or 500 steps; fewer in large models. Where an environment puts the robot elsewhere
before it steps, findings about `qpos0` say what would happen there. Nothing of the model is changed.

- An **error**: the model cannot be computed, or its numbers turn bad as it stands.
- A **warning**: it runs, and hardly moves as its author meant.
- A **note** is worth knowing; many good models have some.

Thresholds are physical and stand below; none was fitted to a model. No finding does not mean that a model is right. Of
muscles and of functions of the user no stiffness is known; a system of more than 400 coupled dofs is not asked for its
modes, nor one whose inertia is singular; modes are those at rest at a start, without gravity and contacts.

What the engine itself says of each step is told in [Honesty](honesty.md).

*h* is the time step, *w* a natural frequency in rad/s, *d* a damping and *I* the inertia that it acts on.

Written by `docs/doctor.py` from the checks in `src/featherlane/doctor`; a new one is a function there with a docstring,
and two small models in `tests/doctor/test_checks.py`, one that has the illness and one that does not.
"""
TITLES = {
    "differences": "Refused, or read otherwise",
    "unused": "Without effect",
    "trial": "A second of trial",
    "starts": "At the start",
    "inertia": "Masses and inertias",
    "springs": "Springs, dampers, servos",
    "rows": "Constraints and the time step",
    "actuators": "Actuators",
    "sensors": "Sensors",
    "contacts": "Contacts and flags",
    "precision": "Precision and units",
    "cost": "Slow",
}


def page() -> str:
    """The whole page."""
    parts, checks = [HEAD], all_checks().values()
    for subject in dict.fromkeys(check.subject for check in checks):
        parts += [
            f"\n## {TITLES[subject]}\n",
            "| check | | found where | why it matters |",
            "| --- | --- | --- | --- |",
        ]
        for check in checks:
            if check.subject == subject:
                parts.append(f"| `{check.name}` | {check.severity} | {check.physics} | {check.why} |")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
