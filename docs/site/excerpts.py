"""A hook of the site: inserts functions of the source next to their equations, by name, so that pages show what runs.

    {{ source: featherlane.engine.dynamics.body.newton_euler:rne }}

becomes the text of that function, and a link to its line; a name that is not there fails the build.  A method has the
name of its class before its name, `module:Class.method`, and no link.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^\{\{ source: ([\w.]+):([\w.]+) \}\}$", re.MULTILINE)


def excerpt(module: str, name: str) -> tuple[str, Path, int]:
    """The text of a function or class with its decorators, without its docstring; its file and line."""
    path = Path("src", *module.split(".")).with_suffix(".py")
    text = (ROOT / path).read_text()
    kinds = ast.FunctionDef | ast.ClassDef
    node: ast.Module | ast.FunctionDef | ast.ClassDef = ast.parse(text)
    for part in name.split("."):
        inner = [n for n in node.body if isinstance(n, kinds) and n.name == part]
        if not inner:
            raise LookupError(f"{path} has no {name}")
        node = inner[0]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines()
    told = node.body[0] if ast.get_docstring(node) is not None and len(node.body) > 1 else None
    kept = range(first, node.end_lineno + 1)
    left_out = range(told.lineno, told.end_lineno + 1) if told else range(0)
    code = "\n".join(lines[k - 1] for k in kept if k not in left_out)
    return textwrap.dedent(code), path, first


def on_page_markdown(markdown, page, config, files):
    """Functions in place of their names."""
    up = "../" * (page.file.src_uri.count("/"))

    def shown(match) -> str:
        code, path, line = excerpt(match[1], match[2])
        if "." in match[2]:
            return f"`{path.as_posix()}`, `{match[2]}`:\n\n```python\n{code}\n```"
        link = f'[`{path.name}`, {match[2]}]({up}source/{path.as_posix()}.md){{ data-line="{line}" }}'
        return f"{link}\n\n```python\n{code}\n```"

    return BLOCK.sub(shown, markdown)


def named(text: str) -> set[str]:
    """The files of the source that have a page because a page shows a function of them, with a link."""
    found = [module for module, name in BLOCK.findall(text) if "." not in name]
    return {Path("src", *module.split(".")).with_suffix(".py").as_posix() for module in found}
