"""A kernel's syntax tree, found in the file that it came from.

The tree must be that of the function which runs: the file may have been edited since it was imported.  So the code that
its text compiles to is held against the function's.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
from collections.abc import Iterator

from featherlane.lanes.compiler import grammar, webs
from featherlane.lanes.compiler.rules import KernelLanguageError, broken
from featherlane.lanes.kernel import Kernel, bytecode


@functools.cache
def source_of(kernel: Kernel) -> Source:
    """A kernel's source, read once: it is the same for all programs.

    Raises:
        KernelLanguageError: see `Source`.
    """
    return Source(kernel)


class Source:
    """What a kernel is written as.

    Attributes:
        kernel: the kernel.
        name, file, first_line: of its function.
        body: its statements; of a lambda, the return of its expression.
        parameters: their names.
        switches: places of parameters that a condition or an unrolled range names: a constant given there is part of
            the signature.

    Raises:
        KernelLanguageError: the text cannot be read, is not that of the function, or says what no kernel may.
    """

    def __init__(self, kernel: Kernel):
        function = kernel.function
        code = function.__code__
        self.kernel, self.name = kernel, function.__name__
        self.file, self.first_line = code.co_filename, code.co_firstlineno
        node = _node(self, code)
        self.body = [ast.copy_location(ast.Return(node.body), node.body)] if isinstance(node, ast.Lambda) else node.body
        self.first_line = node.lineno
        self.parameters = self._checked_parameters(node)
        for statement in self.body:
            grammar.check(self, statement)
        self.webs = webs.Webs(self, self.parameters, self.body)
        self.switches = frozenset(self._switches())
        cells = zip(code.co_freevars, (_content(c) for c in function.__closure__ or ()), strict=True)
        self._scopes = dict(cells), function.__globals__, vars(builtins)

    def line(self, number: int) -> str:
        """A line of the file."""
        return linecache.getline(self.file, number).rstrip()

    def outside(self, name: str):
        """What a name means that the kernel does not bind itself.

        Raises:
            StopIteration: it means nothing.
        """
        return next(scope for scope in self._scopes if name in scope)[name]

    def names(self) -> list[str]:
        """Every name that `outside` knows."""
        return [name for scope in self._scopes for name in scope]

    def _checked_parameters(self, node) -> list[str]:
        a = node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
            raise broken(
                self,
                (a.defaults + [x for x in a.kw_defaults if x] or [a.vararg or a.kwarg or node])[0],
                (
                    "a kernel takes plain parameters: no default, no *args, no **kwargs, no keyword; "
                    "pass every argument by its place"
                ),
            )
        return [x.arg for x in a.args]

    def _switches(self) -> Iterator[int]:
        """Parameters whose first value some condition or some unrolled range asks for by name."""
        places = {self.webs.of_parameter(p): k for k, p in enumerate(self.parameters) if self.webs.is_constant(p)}
        for statement in self.body:
            for node in ast.walk(statement):
                for name in _names_to_know(node):
                    if isinstance(name, ast.Name) and getattr(name, "web", None) in places:
                        yield places[name.web]


def _names_to_know(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a condition, or of a range that is unrolled."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return ast.walk(node.test)
    if isinstance(node, ast.comprehension) and is_call(node.iter, "range"):
        return ast.walk(node.iter)
    if isinstance(node, ast.For) and is_call(node.iter, "unrolled"):
        return ast.walk(node.iter)
    return iter(())


def is_call(node: ast.AST, name: str) -> bool:
    """Is it a call of a function of that name?"""
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # bound later than the kernel
        return None


def _node(source: Source, code):
    """The function's node in the syntax tree of its file."""
    here = (source.name, source.file, source.first_line, "", "")
    linecache.checkcache(source.file)
    lines = linecache.getlines(source.file, source.kernel.function.__globals__)
    if not lines:
        raise KernelLanguageError(
            *here, "the source of a kernel must be readable: write it in a file or a notebook's cell"
        )
    try:
        found = _functions("".join(lines), source.file).get(code.co_name, [])
    except SyntaxError:
        found = []
    wanted = repr(bytecode(code))  # as text: 1 == 1.0 == True, 0.0 == -0.0 and nan != nan
    # where it stood when it was imported, else where it has moved to
    for node, compiled in sorted(found, key=lambda f: f[1].co_firstlineno != code.co_firstlineno):
        if repr(bytecode(compiled)) == wanted:
            return node
    raise KernelLanguageError(*here, "its file has changed since it was imported: import it anew")


@functools.lru_cache(maxsize=64)
def _functions(text: str, file: str) -> dict[str, list]:
    """Name -> (node, code) of every function of that name in a text."""
    nodes: dict[tuple[str, int], list] = {}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            line = decorators[0].lineno if decorators else node.lineno
            nodes.setdefault((getattr(node, "name", "<lambda>"), line), []).append(node)
    codes: dict[tuple[str, int], list] = {}
    for code in _codes(compile(tree, file, "exec", dont_inherit=True)):
        codes.setdefault((code.co_name, code.co_firstlineno), []).append(code)
    found: dict[str, list] = {}
    for (name, line), here in nodes.items():
        # several lambdas on a line: in the order of their columns
        here.sort(key=lambda node: node.col_offset)
        compiled = sorted(codes.get((name, line), []), key=_column)
        found.setdefault(name, []).extend(zip(here, compiled, strict=False))
    return found


def _column(code) -> int:
    """Where the code of a function begins in its line."""
    return min((p[2] for p in code.co_positions() if p[3] and p[3] > p[2]), default=0)


def _codes(code) -> Iterator:
    for c in code.co_consts:
        if inspect.iscode(c):
            yield c
            yield from _codes(c)
