"""Writes the tables of the model checks into diagnostics.md: `python docs/doctor.py`."""

from __future__ import annotations

from pathlib import Path

from featherlane.apps.doctor.diagnose import all_checks

PAGE = Path(__file__).parent / "diagnostics.md"
BEGIN, END = "<!-- doctor:begin -->", "<!-- doctor:end -->"
TITLES = {
    "differences": "Unsupported and differently read elements",
    "edits": "Edits of a loaded model",
    "unused": "Settings without effect",
    "trial": "Trial simulation",
    "motion": "Contacts and loops in the trial",
    "rest": "Rest and energy in the trial",
    "starts": "Initial states",
    "inertia": "Masses and inertias",
    "springs": "Springs, dampers and servos",
    "rows": "Constraints and the time step",
    "actuators": "Actuators",
    "sensors": "Sensors",
    "contacts": "Contacts and flags",
    "precision": "Precision and units",
    "cost": "Slow models",
}


def page() -> str:
    """Returns the whole page, with the tables between their markers."""
    parts, checks = [], all_checks().values()
    for subject in dict.fromkeys(check.subject for check in checks):
        parts += [
            f"\n### {TITLES[subject]}\n",
            "| check | severity | description | why it matters |",
            "| --- | --- | --- | --- |",
        ]
        for check in checks:
            if check.subject == subject:
                parts.append(
                    f"| `{check.name}` | {check.severity} | {check.physics} | {check.why} |"
                )
    head, rest = PAGE.read_text().split(BEGIN)
    return "\n".join([head + BEGIN, *parts, "\n" + END]) + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
