"""A hook of the site: drawings in the words of Mermaid become SVG when it is built, so that no script draws them.

It supports what these pages use: `flowchart TD` and `LR`; nodes `A[text]`, `A{text}`, `A[(text)]` with `<br>`; edges
`-->`, `-.->` and `-->|label|`.  Anything else is an error of the build.  Ranks are longest paths from the sources
without the edges that lead back, the order within a rank that of the mean of the neighbours above.
"""

from __future__ import annotations

import html
import re
from itertools import pairwise

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NODE = r"(\w+)(\[\(.*?\)\]|\[.*?\]|\{.*?\})?"
EDGE = re.compile(rf"{NODE} +(-->|-\.->)(?:\|(.*?)\|)? *{NODE}")
LETTER, LINE, PAD, GAP, RANK = 7.2, 17.0, 12.0, 26.0, 52.0  # sizes in pixels


def read(text: str) -> tuple[str, dict[str, list[str]], list[tuple[str, str, bool, str]]]:
    """The direction, the lines of each node, and the edges: from, to, dashed, label."""
    head, *lines = [line.strip() for line in text.strip().splitlines()]
    direction = re.fullmatch(r"flowchart (TD|LR)", head)
    if not direction:
        raise ValueError(f"a drawing begins with {head!r}: allowed are 'flowchart TD' and 'flowchart LR'")
    nodes: dict[str, list[str]] = {}
    edges = []
    for line in lines:
        edge = EDGE.fullmatch(line)
        if not edge:
            raise ValueError(f"a drawing has the line {line!r}: allowed are edges between nodes")
        a, shape_a, arrow, label, b, shape_b = edge.groups()
        for name, shape in ((a, shape_a), (b, shape_b)):
            if shape or name not in nodes:
                nodes[name] = re.split("<br/?>", shape.strip("[](){}") if shape else name)
        edges.append((a, b, arrow == "-.->", label or ""))
    return direction[1], nodes, edges


def ranks(nodes, edges) -> tuple[dict[str, int], set[int]]:
    """The rank of each node, and the edges that lead back."""
    back, rank, state = set(), dict.fromkeys(nodes, 0), {}

    def visit(name):
        state[name] = "open"
        for k, (a, b, *_) in enumerate(edges):
            if a == name:
                if state.get(b) == "open":
                    back.add(k)
                elif b not in state:
                    visit(b)
        state[name] = "done"

    for name in nodes:
        if name not in state:
            visit(name)
    for _ in nodes:
        for k, (a, b, *_) in enumerate(edges):
            if k not in back:
                rank[b] = max(rank[b], rank[a] + 1)
    return rank, back


def chains(edges, rank, back) -> dict[int, list[str]]:
    """For each edge the names of its bends, one in each rank that it crosses."""
    spans = {k: range(rank[a] + 1, rank[b]) for k, (a, b, *_) in enumerate(edges) if k not in back}
    return {k: [f"{k}.{level}" for level in span] for k, span in spans.items()}


def places(direction, nodes, edges, rank, back) -> dict[str, tuple[float, float, float, float]]:
    """The middle, width and height of each node, and of each bend of an edge."""
    size = {n: (LETTER * max(map(len, text)) + 2 * PAD, LINE * len(text) + PAD) for n, text in nodes.items()}
    level_of, parents = dict(rank), {n: [] for n in nodes}
    for k, bends in chains(edges, rank, back).items():
        a, b = edges[k][:2]
        way = [a, *bends, b]
        for i, n in enumerate(bends):
            size[n], level_of[n] = (8.0, 8.0), rank[a] + 1 + i
        for n, m in pairwise(way):
            parents.setdefault(m, []).append(n)
    along, across = (1, 0) if direction == "TD" else (0, 1)
    found: dict[str, list[float]] = {}
    start = 0.0
    for level in range(max(rank.values()) + 1):
        row = [n for n in level_of if level_of[n] == level]
        means = {n: [found[a][across] for a in parents.get(n, ()) if a in found] for n in row}
        row.sort(key=lambda n: sum(means[n]) / len(means[n]) if means[n] else 0.0)
        extent = sum(size[n][across] for n in row) + GAP * (len(row) - 1)
        thick, at = max(size[n][along] for n in row), -extent / 2
        for n in row:
            middle = [0.0, 0.0]
            middle[across], middle[along] = at + size[n][across] / 2, start + thick / 2
            found[n] = middle
            at += size[n][across] + GAP
        start += thick + RANK * (1.0 if direction == "TD" else 1.6)
    return {n: (*found[n], *size[n]) for n in found}


def border(place, towards) -> tuple[float, float]:
    """Where the line from the middle of a box to a point leaves the box."""
    x, y, w, h = place
    dx, dy = towards[0] - x, towards[1] - y
    t = min(w / 2 / abs(dx) if dx else 1e9, h / 2 / abs(dy) if dy else 1e9)
    return x + t * dx, y + t * dy


def svg(text: str) -> str:
    """The drawing."""
    direction, nodes, edges = read(text)
    rank, back = ranks(nodes, edges)
    place = places(direction, nodes, edges, rank, back)
    left = min(x - w / 2 for x, _, w, _ in place.values())
    right = max(x + w / 2 for x, _, w, _ in place.values())
    top = min(y - h / 2 for _, y, _, h in place.values())
    bottom = max(y + h / 2 for _, y, _, h in place.values())
    parts, side = [], 46.0
    for k, (a, b, dashed, label) in enumerate(edges):
        style = "edge dashed" if dashed else "edge"
        (xa, ya, wa, ha), (xb, yb, wb, hb) = place[a], place[b]
        if a == b:  # a loop at the outer side
            points = f"M{xa + wa / 2:.0f},{ya - 6:.0f} c34,-14 34,26 0,14"
            at = (xa + wa / 2 + 30, ya)
        elif k in back and direction == "TD":  # round the right side, upward
            points = f"M{xa + wa / 2:.0f},{ya:.0f} H{right + side - 20:.0f} V{yb:.0f} H{xb + wb / 2 + 6:.0f}"
            at = (right + side - 20, (ya + yb) / 2)
        elif k in back:  # below, leftward
            low = bottom + side - 20
            points = f"M{xa:.0f},{ya + ha / 2:.0f} V{low:.0f} H{xb:.0f} V{yb + hb / 2 + 6:.0f}"
            at = ((xa + xb) / 2, low)
        else:
            bends = [place[n][:2] for n in chains(edges, rank, back)[k]]
            x0, y0 = border(place[a], bends[0] if bends else (xb, yb))
            x1, y1 = border(place[b], bends[-1] if bends else (xa, ya))
            points = f"M{x0:.0f},{y0:.0f} " + " ".join(f"L{x:.0f},{y:.0f}" for x, y in [*bends, (x1, y1)])
            end = bends[0] if bends else (x1, y1)
            at = ((x0 + end[0]) / 2, (y0 + end[1]) / 2)
        parts.append(f'<path class="{style}" d="{points}" marker-end="url(#tip)"/>')
        if label:
            where = f'text-anchor="middle" x="{at[0]:.0f}" y="{at[1] + 4:.0f}"'
            parts.append(f'<text class="label" {where}>{html.escape(label)}</text>')
    for name, lines in nodes.items():
        x, y, w, h = place[name]
        parts.append(
            f'<rect class="node" x="{x - w / 2:.0f}" y="{y - h / 2:.0f}" width="{w:.0f}" height="{h:.0f}" rx="6"/>'
        )
        for i, line in enumerate(lines):
            at = y + LINE * (i - (len(lines) - 1) / 2) + 4.5
            parts.append(
                f'<text text-anchor="middle" x="{x:.0f}" y="{at:.0f}">{html.escape(html.unescape(line))}</text>'
            )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    tip += '<path class="tip" d="M0,0 L8,4 L0,8 Z"/></marker>'
    more = side if back and direction == "TD" else 30.0 if any(a == b for a, b, *_ in edges) else 4.0
    width, height = right - left + more + 4, bottom - top + (side if back and direction == "LR" else 4.0) + 4
    view = f"{left - 4:.0f} {top - 4:.0f} {width:.0f} {height:.0f}"
    return (
        f'<div class="flowchart"><svg role="img" viewBox="{view}" style="min-width: {min(width, 560):.0f}px" '
        f'width="{width:.0f}" xmlns="http://www.w3.org/2000/svg"><defs>{tip}</defs>{"".join(parts)}</svg></div>'
    )


def on_page_markdown(markdown, page, config, files):
    """Drawings in place of their words."""
    return BLOCK.sub(lambda match: svg(match[1]) + "\n", markdown)
