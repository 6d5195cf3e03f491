"""Finds the fields that kernels read and write, from their syntax trees, also through calls.

A name stands for everything assigned to it in the kernel: a record, a view of a field, or several of either.
Functions that are called by address are not analysed.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import NamedTuple

from featherlane.engine.lanes import Kernel, Stage, eights, flat, prefetch, write_lane
from featherlane.engine.lanes.choice import Choice
from featherlane.engine.lanes.kernel import is_named_tuple
from featherlane.engine.model.fields import MODEL
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.solver.lcp.fields import PROBLEM


class Place(NamedTuple):
    """Identifies a parameter, or a field of a record parameter.

    Attributes:
        parameter: its number.
        field: empty for what is given itself.
        part: the name of the part, of a NamedTuple that it is in.
    """

    parameter: int
    field: str = ""
    part: str = ""


class Effects(NamedTuple):
    """Holds the fields that a kernel reads and writes, and the places that its result may view."""

    reads: frozenset[Place]
    writes: frozenset[Place]
    result: frozenset[Place]


RECORDS = DATA.records | PROBLEM.records
GROUPS = {**DATA.groups, **MODEL.groups, **PROBLEM.groups}


def inner(outer: str, name: str) -> str:
    """Returns the field `name` of a record, of the record `outer` within it, or of an object of the group `outer`."""
    if outer.endswith("[]"):
        return GROUPS[outer[:-2]] + name
    return f"{outer}.{name}" if outer in RECORDS else name


NOTHING = Effects(frozenset(), frozenset(), frozenset())
GIVEN = frozenset({Place(0)})
MACHINE = {  # machine functions that write to their row arguments, or read them in a different way
    write_lane: Effects(frozenset(), GIVEN, frozenset()),
    prefetch: NOTHING,
    eights: Effects(frozenset(), frozenset(), GIVEN),
    flat: Effects(frozenset(), frozenset(), GIVEN),
}


class Reader(ast.NodeVisitor):
    """Analyses a kernel, with known names and known callees."""

    def __init__(self, kernel: Kernel, names: dict[str, frozenset[Place]], effects):
        self.scope, self.names, self.effects = dict(kernel.references()), names, effects
        self.reads, self.writes, self.result = set(), set(), set()

    def places(self, node) -> frozenset[Place]:
        """Returns the places that an expression may view."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, frozenset())
        if isinstance(node, ast.Attribute):
            places = self.places(node.value)
            return frozenset(
                Place(p.parameter, p.field if p.part else inner(p.field, node.attr))
                for p in places
                if p.part in ("", node.attr)
            )
        if isinstance(node, ast.IfExp):
            return self.places(node.body) | self.places(node.orelse)
        if isinstance(node, ast.Tuple):
            return frozenset().union(*map(self.places, node.elts))
        if isinstance(node, ast.Subscript):  # an element of a tuple; an object of a group; a number, of a field
            found = self.places(node.value)
            objects = (p._replace(field=f"{p.field}[]") for p in found if p.field in GROUPS)
            return frozenset([*(p for p in found if not p.field), *objects])
        if isinstance(node, ast.Call) and is_named_tuple(self.scope.get(ast.unparse(node.func))):
            parts = {
                **dict(zip(self.scope[node.func.id]._fields, node.args, strict=False)),
                **{k.arg: k.value for k in node.keywords},
            }
            return frozenset(Place(p.parameter, p.field, name) for name, v in parts.items() for p in self.places(v))
        if isinstance(node, ast.Call):
            called = self.called(node)
            return self.given(node, called.result) if called else frozenset()
        return frozenset()

    def called(self, node: ast.Call) -> Effects | None:
        """Returns the effects of the called kernel, if the callee is one."""
        target = self.scope.get(ast.unparse(node.func))
        if target in MACHINE:
            return MACHINE[target]
        return self.effects(target) if isinstance(target, Kernel) else None

    def given(self, node: ast.Call, found) -> frozenset[Place]:
        """Maps places of the callee to places here."""
        here = set()
        target = self.scope.get(ast.unparse(node.func))
        names = target.arguments[len(node.args) :] if isinstance(target, Kernel) and node.keywords else ()
        by_name = {k.arg: k.value for k in node.keywords}
        arguments = node.args + [by_name[name] for name in names]
        for place in found:
            for p in self.places(arguments[place.parameter]):
                if not p.part:
                    here.add(Place(p.parameter, place.field or p.field, place.part))
                elif not place.field:  # the whole NamedTuple
                    here.add(p)
                elif place.field == p.part:
                    here.add(Place(p.parameter, p.field, place.part))
        return frozenset(here)

    def visit_Call(self, node):
        called = self.called(node)
        if called:
            self.reads |= self.given(node, called.reads)
            self.writes |= self.given(node, called.writes)
        self.generic_visit(node)

    def visit_Attribute(self, node):
        found = self.places(node)
        if isinstance(node.ctx, ast.Store):  # a field of an object
            self.writes |= found
        else:
            self.reads |= found
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Attribute):
            self.reads |= self.places(node.target)
        self.generic_visit(node)

    def visit_Subscript(self, node):
        if isinstance(node.ctx, ast.Store):
            self.writes |= self.places(node.value)
            if isinstance(node.value, ast.Subscript):  # a part of a row: d.xmat[b][2] = x
                self.writes |= self.places(node.value.value)
        self.generic_visit(node)

    def visit_Return(self, node):
        if node.value:
            self.result |= self.places(node.value)
        self.generic_visit(node)

    def visit_Assign(self, node):
        for target in node.targets:
            self.bind(target, node.value)
        self.generic_visit(node)

    def bind(self, target, value) -> None:
        """Adds the places of an assigned value to a name."""
        if isinstance(target, ast.Tuple):
            parts = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
            for t, v in zip(target.elts, parts, strict=True):
                self.bind(t, v)
        elif isinstance(target, ast.Name):
            self.names[target.id] = self.names.get(target.id, frozenset()) | self.places(value)


class Analysis:
    """Finds effects of kernels, each once.

    Attributes:
        follow: whether the effects of called stages count, too.
    """

    def __init__(self, follow: bool = True):
        self.follow, self.found = follow, {}

    def effects(self, kernel: Kernel) -> Effects:
        """Returns a kernel's reads and writes of its arguments."""
        if id(kernel) not in self.found:
            self.found[id(kernel)] = NOTHING  # a stage that calls itself
            self.found[id(kernel)] = self._read(kernel)
        return self.found[id(kernel)]

    def called(self, kernel: Kernel) -> Effects:
        """Returns the effects of a call of the kernel."""
        return self.effects(kernel) if self.follow or not isinstance(kernel, Stage) else NOTHING

    def _read(self, kernel: Kernel) -> Effects:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kernel.function))).body[0]
        names = {a.arg: frozenset({Place(i)}) for i, a in enumerate(tree.args.args)}
        known = None
        while known != names:  # until no name gets further places
            known = dict(names)
            reader = Reader(kernel, names, self.called)
            for statement in tree.body:
                reader.visit(statement)
        found = [reader.reads, reader.writes, reader.result]
        if isinstance(kernel, Choice):
            # cases get all parameters but the one that selects them
            _, given = kernel.selection(range(len(names)), lambda *_: None)
            for case in (case for _, case in kernel.cases if isinstance(case, Kernel)):
                for own, of_case in zip(found, self.called(case), strict=True):
                    own |= {p._replace(parameter=given[p.parameter]) for p in of_case}
        return Effects(*map(frozenset, found))

    def fields(self, stage: Stage) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """Returns names of fields that a stage reads and writes, by the parameter with their record."""
        e = self.effects(stage)
        return tuple(
            {name: known(stage, name, places, i) for i, name in enumerate(stage.parameters)}
            for places in (e.reads, e.writes)
        )


def known(stage: Stage, name: str, places, i: int) -> set[str]:
    """Returns names of fields of parameter i among places; names of groups of objects are none."""
    fields = {p.field for p in places if p.parameter == i and p.field}
    return {f for f in fields if f in stage.records[name]} if name in stage.records else fields
