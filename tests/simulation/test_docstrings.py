"""The fields that stages document as read and written are the fields they read and write."""

import re

import numpy as np

import featherlane as fl
from featherlane.engine.simulation.docstring import sections
from featherlane.engine.simulation.tile.library import RECORDS, stages
from oracles.effects import Analysis

STAGES = stages()
ALL, OWN = Analysis(), Analysis(follow=False)
SHAPE = r"(?: \((\d[\w, ]*,?|\w+,(?: ?\w+,?)*)\))?"
NAME = r"([A-Za-z]\w*(?:\.\w+|\.(?=\*))?)"
WORD = re.compile(rf"(?<![\w`.]){NAME}(\*?){SHAPE}(?![\w`])")
MEASURED = re.compile(rf"{NAME}{SHAPE} \[([^\]]*)\]")
UNIT, QUOTED = re.compile(r" ?\[[^\]]*\]"), re.compile(r"`(\w+)`")


def declared(stage) -> dict:
    """Returns the fields of a stage's records, by name."""
    layouts = [record[0] for record in stage.layouts(RECORDS) if record]
    return {f.name: f for layout in layouts for f in layout.fields}


def named(stage, label: str) -> tuple[set[str], set[str], list[str]]:
    """Returns the fields that a section names, those matched by its words with a star, and its errors."""
    fields, plain, starred, wrong = declared(stage), set(), set(), []
    text = sections(stage.function).get(label, "")
    for name, _, unit in MEASURED.findall(text):
        if name in fields and fields[name].unit not in (unit, "1"):
            wrong.append(f"{name}: unit [{unit}], it is [{fields[name].unit}]")
    text = UNIT.sub("", text)
    for name, star, shape in WORD.findall(text):
        if star:
            found = {field for field in fields if field.startswith(name)}
            starred |= found
            wrong += [] if found else [f"{name}* is no field"]
        elif name in fields:
            plain.add(name)
            expected = tuple(map(str, fields[name].shape))
            given = tuple(part.strip() for part in shape.split(",") if part.strip())
            wrong += [f"{name}: shape {given}, it is {expected}"] if shape and given != expected else []
        elif "_" in name:
            wrong.append(f"{name} is no field")
    for item in re.split(r"[,;:.](?: |$)", re.sub(r" \([^)]*\)", "", QUOTED.sub("that stage", text))):
        if re.fullmatch(r"[A-Za-z][\w.]*", item.strip()) and item.strip() not in fields:
            wrong.append(f"{item.strip()} is no field")
    known = STAGES.keys() | set(stage.parameters)
    wrong += [f"`{name}` is no stage" for name in QUOTED.findall(text) if name not in known]
    return plain, starred, wrong


def touched(analysis: Analysis, stage, kind: int) -> set[str]:
    """Returns the fields that a stage reads (0) or writes (1), of all its records."""
    return set().union(*analysis.fields(stage)[kind].values())


def test_a_stage_documents_its_reads_and_writes(subtests):
    for name in STAGES:
        with subtests.test(name=name):
            stage = STAGES[name]
            found = sections(stage.function).keys()
            assert {"", "Reads"} <= found and found & {"Writes", "Scratch"}
            for kind, label in ((0, "Reads"), (1, "Writes"), (1, "Scratch")):
                plain, starred, wrong = named(stage, label)
                assert not wrong, f"{label}: {'; '.join(wrong)}"
                done = touched(ALL, stage, kind)
                assert plain - starred <= done, f"{label} what it does not: {sorted(plain - done)}"


def test_a_stage_documents_all_its_stores(subtests):
    """Writes of the stages that it calls are documented in the docstrings of those stages."""
    for name in STAGES:
        with subtests.test(name=name):
            stage = STAGES[name]
            documented = set()
            for label in ("Writes", "Scratch"):
                plain, starred, _ = named(stage, label)
                documented |= plain | starred | said_of_others(stage, label)
            # the record of a stage is declared next to it
            own = {f.name for layout in stage.records.values() for f in layout.fields}
            assert touched(OWN, stage, 1) <= documented | own


def said_of_others(stage, label: str) -> set[str]:
    """Returns the fields that the stages write whose names occur in a section."""
    others = QUOTED.findall(sections(stage.function).get(label, ""))
    return set().union(*(touched(ALL, STAGES[name], 1) for name in others if name in STAGES))


RUN = """forward_position forward_velocity actuation smooth_acceleration collision make_constraint solve_constraint
sensor_acc smooth_vel implicitfast aba inverse""".split()


def test_fields_changed_by_a_run_are_found_in_the_source():
    """Checks the effects themselves: memory before and after."""
    model = fl.bundled("humanoid")
    model.opt.enableflags, model.opt.cone = "energy", "elliptic"
    data, seen = fl.Data(model), set()
    data.qpos[2] = 0.2
    fl.step(model, data, 3)
    arrays = data.workspace.arrays
    for name in RUN:
        before = {field: array.copy() for field, array in arrays.items()}
        data.workspace.bound(STAGES[name])()
        changed = {field for field, array in arrays.items() if not np.array_equal(array, before[field])}
        assert changed <= touched(ALL, STAGES[name], 1), name
        seen |= changed
    assert len(seen) > 50
