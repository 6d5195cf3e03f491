"""Groups the bindings of a name into variables.

A name may be bound several times.  Bindings that reach the same use are one variable, a web, and have one type; other
bindings of the same name are separate variables.  Source: Muchnick, Advanced Compiler Design and Implementation,
sec. 16.3 (webs); reaching definitions over structured control flow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from featherlane.engine.lanes.compiler.rules import broken

Reaching = dict[str, frozenset[int]]  # name -> bindings that may have set its value


class Webs:
    """The variables of a kernel.  Each `ast.Name` of a local name gets its variable's number as `web`.

    `bound_once` holds variables with a single binding, whose value is that binding's.  `maybe_unbound` holds variables
    that may be read before they are bound.  For `x += 1` the node has the web that is
    read, the target the web that is bound.

    Raises:
        KernelLanguageError: a name is used at a place where it has no value.
    """

    def __init__(self, source, parameters: list[str], body: list[ast.stmt]):
        self._source = source
        self._parent: list[int] = []
        self._bindings: dict[object, int] = {}  # node, or name of a parameter -> binding
        self._reads: dict[ast.AST, int] = {}  # node -> a binding that reaches it
        self._names: dict[ast.expr, list[ast.Name]] = {}  # local names that an expression reads
        self._loops: list[tuple[list, list]] = []  # states at each `break`, each `continue` of the enclosing loops
        self._locals = set(parameters) | _bound_names(body)
        self._unbound = {name: self._binding(("unbound", name)) for name in sorted(self._locals - set(parameters))}
        self._parameters = {name: self._binding(("parameter", name)) for name in parameters}
        start = {name: frozenset((b,)) for name, b in (*self._unbound.items(), *self._parameters.items())}
        self._block(body, start, True)
        self._finish()
        del self._reads, self._names, self._loops

    def of_parameter(self, name: str) -> int:
        """Returns the variable of a parameter."""
        return self._find(self._parameters[name])

    def is_constant(self, name: str) -> bool:
        """Returns whether a parameter is never rebound."""
        return self.of_parameter(name) in self.bound_once

    # ---- numbers ----------------------------------------------------------------------------------------------
    def _binding(self, key) -> int:
        if key not in self._bindings:
            self._bindings[key] = len(self._parent)
            self._parent.append(len(self._parent))
        return self._bindings[key]

    def _find(self, k: int) -> int:
        while self._parent[k] != k:
            self._parent[k] = k = self._parent[self._parent[k]]
        return k

    def _finish(self):
        unbound = set(self._unbound.values())
        count: dict[int, int] = {}
        for b in self._bindings.values():
            count[self._find(b)] = count.get(self._find(b), 0) + 1
        self.bound_once = {root for root, n in count.items() if n == 1} - unbound
        self.maybe_unbound = {self._find(b) for b in unbound}
        for key, b in self._bindings.items():
            if isinstance(key, ast.AST):
                key.web = self._find(b)
        for node, b in self._reads.items():
            node.web = self._find(b)

    # ---- statements -------------------------------------------------------------------------------------------
    def _block(self, body: Iterable[ast.stmt], now: Reaching | None, final: bool) -> Reaching | None:
        """Returns the bindings that reach the end of a block; None if the end is unreachable."""
        for s in body:
            if now is None:
                return None
            now = self._statement(s, now, final)
        return now

    def _statement(self, s, now: Reaching, final: bool) -> Reaching | None:
        if isinstance(s, (ast.For, ast.While)):
            return self._loop(s, now, final)
        if isinstance(s, ast.If):
            self._read(s.test, now, final)
            return _meet(self._block(s.body, dict(now), final), self._block(s.orelse, dict(now), final))
        if isinstance(s, ast.AugAssign):
            if isinstance(s.target, ast.Name):
                self._read_name(s, s.target.id, now, final)
            else:
                self._read(s.target, now, final)
        if getattr(s, "value", None) is not None:
            self._read(s.value, now, final)
        for target in [s.target] if isinstance(s, ast.AugAssign) else getattr(s, "targets", ()):
            self._bind(target, now, final)
        if isinstance(s, ast.Return):
            return None
        if isinstance(s, (ast.Break, ast.Continue)):
            if not self._loops:
                raise broken(self._source, s, "`break` and `continue` are allowed only in a loop")
            self._loops[-1][isinstance(s, ast.Continue)].append(now)
            return None
        return now

    def _loop(self, s, now: Reaching, final: bool) -> Reaching:
        if isinstance(s, ast.For):
            self._read(s.iter, now, final)
        head = now
        # bindings of the body also reach its start: one extra pass finds them, whatever is inside
        for last in (False, True) if final else (False,):
            self._loops.append(([], []))
            around = dict(head)
            if isinstance(s, ast.While):
                self._read(s.test, around, last)
            else:
                self._bind(s.target, around, last)
            end = self._block(s.body, around, last)
            leaving, again = self._loops.pop()
            for reached in (end, *again):
                head = _meet(head, reached)
        for reached in leaving:
            head = _meet(head, reached)
        return dict(head)

    def _bind(self, target: ast.expr, now: Reaching, final: bool) -> None:
        if isinstance(target, ast.Name):
            now[target.id] = frozenset((self._binding(target),))
        elif isinstance(target, ast.Tuple):
            for part in target.elts:
                self._bind(part, now, final)
        else:
            self._read(target, now, final)

    # ---- expressions ------------------------------------------------------------------------------------------
    def _read(self, e: ast.expr, now: Reaching, final: bool) -> None:
        if e not in self._names:  # a loop is walked more than once
            self._names[e] = list(self._names_in(e, {}))
        for node in self._names[e]:
            self._read_name(node, node.id, now, final)

    def _names_in(self, e: ast.AST, own: dict[str, int]) -> Iterator[ast.Name]:
        """Yields local names that an expression reads, except those that a comprehension binds (`own`)."""
        todo = [e]
        while todo:
            node = todo.pop()
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in own:
                    self._reads[node] = own[node.id]
                elif node.id in self._locals:
                    yield node
            elif isinstance(node, ast.GeneratorExp):
                within = dict(own)
                for g in node.generators:
                    yield from self._names_in(g.iter, within)
                    within |= {name.id: self._binding(name) for name in _bound_nodes([g.target])}
                yield from self._names_in(node.elt, within)
            else:
                todo += ast.iter_child_nodes(node)

    def _read_name(self, node, name: str, now: Reaching, final: bool) -> None:
        reaching = sorted(now[name])
        if final and reaching == [self._unbound.get(name)]:
            raise broken(self._source, node, f"{name} has no value here: assign it first")
        for b in reaching[1:]:
            self._parent[self._find(b)] = self._find(reaching[0])
        self._reads[node] = reaching[0]


def _meet(a: Reaching | None, b: Reaching | None) -> Reaching | None:
    """Merges the bindings that reach a place on two paths."""
    if a is None or b is None:
        return b if a is None else a
    return {name: a[name] | b[name] for name in a}


def _bound_names(body: list[ast.stmt]) -> set[str]:
    """Returns names that a kernel binds outside of comprehensions."""
    loops = (node for s in body for node in ast.walk(s) if isinstance(node, ast.comprehension))
    within = set(_bound_nodes([g.target for g in loops]))
    return {node.id for node in _bound_nodes(body) if node not in within}


def _bound_nodes(trees: Iterable[ast.AST]) -> list[ast.Name]:
    nodes = (node for tree in trees for node in ast.walk(tree))
    return [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
