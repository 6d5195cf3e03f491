"""A hook of the site: writes a page for each example, with its description, its picture and its source.

The description is that of the example's row in `docs/gallery.md`.  The build fails if an example has no row or no
picture.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
EXAMPLES, DOCS = ROOT / "examples", ROOT / "docs"
ROW = re.compile(r"^\| \[(\w+)\.py\]\(\.\./examples/\1\.py\) \| (.*) \|$", re.MULTILINE)
# others are the name of the file
TITLES = {"ppo": "PPO", "rllib_halfcheetah": "RLlib half-cheetah", "sim_to_real": "Sim-to-real locomotion"}
# pictures of other scripts: file name without suffix, and the command that draws it
CONTROL = "balance_humanoid", "swing_up", "hop", "identify", "throw_cube", "five_quadrupeds"
PICTURES = {name: (f"control_{name}", f"control.py {name}") for name in CONTROL} | {
    "identify_arm": ("real_arm", ""),
    "identify_toss": ("real_impacts_toss", ""),
    "tree_factorization": ("sparsity", "chapters.py sparsity"),
    "vector_env": ("humanoid", "humanoid.py"),
    "static_optimization": ("static_optimization", "muscles.py"),
    "ppo": ("learning", ""),
    "tune_balance": ("example_balance_pole", "examples.py balance_pole"),
}
PAGE = """# {title}

{about}.

![{title}: the result of the example](../images/{picture}.png){{ width="480" }}

```sh
python examples/{name}.py
```

Other examples are in the [gallery](../gallery.md#examples).{drawn}

## Source code

`examples/{name}.py`:

```python
{source}
```
"""


def picture(name: str) -> tuple[str, str]:
    """Returns the picture of an example in `docs/images`, without suffix, and the arguments that draw it."""
    return PICTURES.get(name, (f"example_{name}", f"examples.py {name}"))


def page(name: str, about: str) -> str:
    """Returns the page of an example.

    Raises:
        FileNotFoundError: its picture does not exist.
    """
    image, command = picture(name)
    if not (DOCS / "images" / f"{image}.png").is_file():
        raise FileNotFoundError(f"docs/images/{image}.png: run `python docs/images/{command}`")
    title = TITLES.get(name, name.replace("_", " ").capitalize())
    drawn = f" `python docs/images/{command}` draws the picture." if command else ""
    source = (EXAMPLES / f"{name}.py").read_text().strip()
    return PAGE.format(
        title=title, about=about[0].upper() + about[1:], picture=image, name=name, drawn=drawn, source=source
    )


def pages() -> dict[str, str]:
    """Returns the page of each example, by name.

    Raises:
        LookupError: an example has no row in the gallery, or a row no example.
    """
    rows = dict(ROW.findall((DOCS / "gallery.md").read_text()))
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    if names != set(rows):
        raise LookupError(f"docs/gallery.md and examples/ differ: {sorted(names ^ set(rows))}")
    return {name: page(name, about) for name, about in rows.items()}


def on_files(files, config):
    """Adds the pages."""
    for name, text in pages().items():
        files.append(File.generated(config, f"examples/{name}.md", content=text))
    return files
