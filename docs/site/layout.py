"""A hook of the site: tables and code that fit into the column of a page.

A comment before a table, or before the marker of its section, names the columns to show; further groups of columns are
tables below it, which are folded:

    <!-- columns: ratio; float32 | MuJoCo [us]; ours [us] -->

The first column is that of every table.  Each other column must be in a group; a column of a further processor
(`ratio, Intel Xeon`) follows its column without being named.  Code that is wider than the
column is drawn smaller, and code that is wider still has its lines broken.  Pages are written without indentation.
"""

from __future__ import annotations

import html
import re

CODE = 100  # characters of a line that fits at 1400 pixels, in the size of other code
SMALL = 122  # in the smaller size
TABLE = re.compile(
    r"^<!-- columns: (?P<columns>[^\n]+) -->\n(?P<between>(?:<!--[^\n]*-->\n|\n)*)(?P<table>(?:\|[^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
BLOCK = re.compile(r'<div class="([\w -]*)highlight">(<pre>.*?<code[^>]*>)(.*?)(</code></pre>)', re.DOTALL)


def cells(line: str) -> list[str]:
    """Returns the cells of a row of a Markdown table."""
    return [cell.strip() for cell in re.sub(r"^\||\|$", "", line.strip()).replace("\\|", "&#124;").split("|")]


def groups(text: str, columns: list[str]) -> list[list[int]]:
    """Returns the places of the columns of each group; the first column is in each.

    Raises:
        ValueError: a column is not in the table, or is in no group, or two have one name.
    """
    named = [[name.strip() for name in part.split(";")] for part in text.split(" | ")]
    unnamed = [name for name in columns[1:] if all(name not in group for group in named)]
    for name in unnamed:
        for group in named:
            if (ratio := name.rpartition(", ")[0]) in group and ratio in columns:
                group.insert(group.index(ratio) + 1, name)
    taken = {name for group in named for name in group}
    if taken != set(columns[1:]) or len(taken) != len(columns) - 1:
        raise ValueError(f"columns {sorted(taken)}; allowed are all of {columns[1:]}")
    return [[0, *(columns.index(name) for name in group)] for group in named]


def folded(text: str, table: str) -> str:
    """Returns a table with the columns of the first group, and the others in a fold."""
    rows = [cells(line) for line in table.strip().splitlines()]
    parts = [
        "\n".join(f"| {' | '.join(row[k] for k in group if k < len(row))} |" for row in rows)
        for group in groups(text, rows[0])
    ]
    if len(parts) == 1:
        return parts[0] + "\n"
    rest = "\n\n".join(parts[1:])
    return f'{parts[0]}\n\n<details markdown="1">\n<summary>Other columns</summary>\n\n{rest}\n\n</details>\n'


def on_page_markdown(markdown, page, config, files):
    """Tables with the columns that their comment names."""
    return TABLE.sub(lambda found: found["between"] + folded(found["columns"], found["table"]), markdown)


def width(code: str) -> int:
    """Returns the characters of the longest line of code in HTML."""
    return max(map(len, html.unescape(re.sub(r"<[^>]+>", "", code)).splitlines()), default=0)


def on_page_content(content, page, config, files):
    """Marks blocks of code by their width; in tables, names may be broken after `/` and `_`, and ranges may not."""

    def marked(block) -> str:
        size = "" if (wide := width(block[3])) <= CODE else "small " if wide <= SMALL else "small broken "
        return f'<div class="{block[1]}{size}highlight">{block[2]}{block[3]}{block[4]}'

    def fitted(text: str) -> str:
        return re.sub(r"(?<=\w[/_,])(?=\w\w)", "<wbr>", re.sub(r"(?<=\d) - (?=\d)", "&nbsp;-&nbsp;", text))

    def breakable(table) -> str:
        parts = re.split(r"(<[^>]+>)", table[0])
        return "".join(part if part.startswith("<") else fitted(part) for part in parts)

    content = BLOCK.sub(marked, content)
    return re.sub(r"<table>.*?</table>", breakable, content, flags=re.DOTALL)


def on_post_page(output, page, config):
    """Removes the indentation and the empty lines of a page outside of code; they are a seventh of the site."""
    parts = re.split(r"(<pre.*?</pre>)", output, flags=re.DOTALL)
    return "".join(part if part.startswith("<pre") else re.sub(r"\s*\n\s*", "\n", part) for part in parts)
