"""Finds a kernel's syntax tree in its source file.

The file may have been edited since it was imported, but the tree must match the running function.  So the text is
compiled and its code is compared with the function's.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
from collections.abc import Iterator

from featherlane.engine.lanes.compiler import grammar, webs
from featherlane.engine.lanes.compiler.rules import KernelLanguageError, broken
from featherlane.engine.lanes.kernel import Kernel, bytecode


@functools.cache
def kernel_source(kernel: Kernel) -> Source:
    """Returns a kernel's source, which is read once for all programs.

    Raises:
        KernelLanguageError: see `Source`.
    """
    return Source(kernel)


class Source:
    """Source of a kernel.

    Attributes:
        kernel: the kernel.
        name, file, first_line: those of its function.
        body: its statements; for a lambda, the return of its expression.
        parameters: names of the parameters.
        switches: indices of parameters that a condition or an unrolled range names; a constant argument there is part
            of the signature.

    Raises:
        KernelLanguageError: the text is unreadable, does not match the function, or breaks a rule of the language.
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
            grammar.check_grammar(self, statement)
        self.webs = webs.Webs(self, self.parameters, self.body)
        self.switches = frozenset(self._switches())
        cells = zip(code.co_freevars, (_content(c) for c in function.__closure__ or ()), strict=True)
        self._scopes = dict(cells), function.__globals__, vars(builtins)

    def line(self, number: int) -> str:
        """Returns a line of the file."""
        return linecache.getline(self.file, number).rstrip()

    def outside(self, name: str):
        """Returns the object of a name that the kernel does not bind.

        Raises:
            StopIteration: the name is undefined.
        """
        return next(scope for scope in self._scopes if name in scope)[name]

    def names(self) -> list[str]:
        """Returns every name that `outside` finds."""
        return [name for scope in self._scopes for name in scope]

    def _checked_parameters(self, node) -> list[str]:
        a = node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
            raise broken(
                self,
                (a.defaults + [x for x in a.kw_defaults if x] or [a.vararg or a.kwarg or node])[0],
                (
                    "a kernel takes plain positional parameters; defaults, *args, **kwargs and keyword-only "
                    "parameters are not allowed"
                ),
            )
        return [x.arg for x in a.args]

    def _switches(self) -> Iterator[int]:
        """Yields indices of parameters whose argument a condition or an unrolled range uses by name."""
        places = {self.webs.of_parameter(p): k for k, p in enumerate(self.parameters) if self.webs.is_constant(p)}
        for statement in self.body:
            for node in ast.walk(statement):
                for name in _names_to_know(node):
                    if isinstance(name, ast.Name) and getattr(name, "web", None) in places:
                        yield places[name.web]


def _names_to_know(node: ast.AST) -> Iterator[ast.AST]:
    """Returns the nodes of a condition, or of a range that is unrolled."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return ast.walk(node.test)
    if isinstance(node, ast.comprehension) and is_call(node.iter, "range"):
        return ast.walk(node.iter)
    if isinstance(node, ast.For) and is_call(node.iter, "unrolled"):
        return ast.walk(node.iter)
    return iter(())


def is_call(node: ast.AST, name: str) -> bool:
    """Returns whether a node is a call of a function of that name."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # bound later than the kernel
        return None


def _node(source: Source, code):
    """Returns the function's node in the syntax tree of its file."""
    here = (source.name, source.file, source.first_line, "", "")
    linecache.checkcache(source.file)
    lines = linecache.getlines(source.file, source.kernel.function.__globals__)
    if not lines:
        raise KernelLanguageError(
            *here, "the source of a kernel must be readable: define the kernel in a file or a notebook cell"
        )
    try:
        found = _functions("".join(lines), source.file).get(code.co_name, [])
    except SyntaxError:
        found = []
    expected = repr(bytecode(code))  # as text, because 1 == 1.0 == True, 0.0 == -0.0 and nan != nan
    # tries the function at its imported line first, then functions elsewhere
    for node, compiled in sorted(found, key=lambda f: f[1].co_firstlineno != code.co_firstlineno):
        if repr(bytecode(compiled)) == expected:
            return node
    raise KernelLanguageError(*here, "its file has changed since the import: import the module again")


@functools.lru_cache(maxsize=64)
def _functions(text: str, file: str) -> dict[str, list]:
    """Returns name -> (node, code) for every function in a text."""
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
        # several lambdas on a line are matched by column
        here.sort(key=lambda node: node.col_offset)
        compiled = sorted(codes.get((name, line), []), key=_column)
        found.setdefault(name, []).extend(zip(here, compiled, strict=False))
    return found


def _column(code) -> int:
    """Returns the column at which the code of a function begins."""
    return min((p[2] for p in code.co_positions() if p[3] and p[3] > p[2]), default=0)


def _codes(code) -> Iterator:
    for c in code.co_consts:
        if inspect.iscode(c):
            yield c
            yield from _codes(c)
