"""Text follows plain technical English: private words and constructions stay below a limit in each kind of text.

`tests/data/language.txt` has the patterns.  Code, quoted names and tables of numbers are not counted.  Run this file as
a script to list the places: `python tests/test_language.py [kind]`.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATTERNS = [
    line for line in (ROOT / "tests/data/language.txt").read_text().splitlines() if line and not line.startswith("#")
]
PATTERN = re.compile(rf"\b(?:{'|'.join(PATTERNS)})\b", re.IGNORECASE)
CODE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)", re.DOTALL)
SETTING_COMMENT = re.compile(r"(?:^|\s)#(?!!)\s*(.*)")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")
SETTINGS = ("pyproject.toml", "mkdocs.yml", ".pre-commit-config.yaml", ".ci/*", ".github/**/*.yml", ".devcontainer/*")
LIMIT = 2.0  # occurrences per 1,000 words

Text = tuple[Path, int, str]  # file, first line, text


def pages(*paths: Path) -> Iterator[Text]:
    """Yields the text of Markdown files without their code."""
    for path in paths:
        yield path, 1, CODE.sub(lambda m: "\n" * m[0].count("\n"), path.read_text())


def docstrings(*paths: Path) -> Iterator[Text]:
    """Yields the docstrings of Python files."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                constant = node.body[0].value
                yield path, constant.lineno, CODE.sub(lambda m: "\n" * m[0].count("\n"), constant.value)


def comments(*paths: Path) -> Iterator[Text]:
    """Yields the comments of Python files."""
    for path in paths:
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type == tokenize.COMMENT:
                yield path, token.start[0], CODE.sub("", token.string)


def python(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def scripts() -> list[Path]:
    """Returns the scripts that write documentation, and the build hook."""
    return [*python("docs"), ROOT / "hatch_build.py"]


def changelog() -> Path:
    return ROOT / "CHANGELOG.md"


def settings(*paths: Path) -> Iterator[Text]:
    """Yields the comments of TOML and YAML files and of shell scripts, one text a line."""
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := SETTING_COMMENT.search(line):
                yield path, number, CODE.sub("", match[1])


KINDS = {
    "readme": lambda: pages(*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob(".github/**/*.md"))),
    "docs": lambda: pages(*sorted((ROOT / "docs").rglob("*.md"))),
    "changelog": lambda: pages(changelog()),
    "docstrings": lambda: docstrings(*python("src")),
    "comments": lambda: comments(*python("src")),
    "tests": lambda: [*docstrings(*python("tests")), *comments(*python("tests"))],
    "benchmarks": lambda: [*docstrings(*python("benchmarks")), *comments(*python("benchmarks"))],
    "examples": lambda: [*docstrings(*python("examples")), *comments(*python("examples"))],
    "scripts": lambda: [*docstrings(*scripts()), *comments(*scripts())],
    "settings": lambda: settings(*sorted(each for pattern in SETTINGS for each in ROOT.glob(pattern))),
}


def found(kind: str) -> tuple[list[str], int]:
    """Returns the places where a pattern occurs, and the number of words."""
    places, words = [], 0
    for path, first, text in KINDS[kind]():
        words += len(WORD.findall(text))
        for match in PATTERN.finditer(text):
            line = first + text.count("\n", 0, match.start())
            places.append(f"{path.relative_to(ROOT)}:{line}: {match[0]}")
    return places, words


@pytest.mark.parametrize("kind", KINDS)
def test_private_words_are_rare(kind):
    places, words = found(kind)
    rate = 1000 * len(places) / words
    assert rate <= LIMIT, f"{rate:.1f} per 1,000 words: python tests/test_language.py {kind}"


def test_a_private_word_is_found_outside_of_code_only():
    text = "Each world has mates, see `mates`.\n```\ntold\n```\n"
    assert PATTERN.findall(CODE.sub("", text)) == ["mates"]


if __name__ == "__main__":
    for kind in sys.argv[1:] or KINDS:
        places, words = found(kind)
        if sys.argv[1:]:
            print("\n".join(places))
        print(f"{kind}: {len(places)} in {words} words, {1000 * len(places) / words:.1f} per 1,000")
