"""A hook of the site: live worlds, which WebAssembly steps in the reader's browser.

A comment `<!-- live: humanoid -->` becomes a world with its controls (live.js); the first page has one below its
picture.  The build freezes each world with each contact model, and writes their kernels once for all of them.
"""

from __future__ import annotations

import functools
import io
import json
import posixpath
import re
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import mujoco
from mkdocs.structure.files import File

import featherlane as fl
from featherlane.engine.simulation.frozen import wasm

HERE, FOLDER = Path(__file__).parent, "live"
CONTACT_MODELS = ("convex", "lcp", "coulomb")
WORLDS = {  # bundled model -> (its controller in live.js, its contact models)
    "humanoid": ("", CONTACT_MODELS),
    "arm": ("wave", ("convex", "coulomb")),  # lcp has no implicitfast
    "box_stack": ("", CONTACT_MODELS),
}
THREE = "jupyter_threejs_sage"  # a distribution with three.js alone
MARK = re.compile(r"^<!-- live: (\w+) -->$", re.MULTILINE)
IMAGE = re.compile(r"^!\[.*\]\(.*\)$", re.MULTILINE)
FIRST_PAGE = "index.md", "humanoid"
WORLD = """<div class="live" data-world="{name}" data-control="{control}" data-models="{models}" markdown="0">
<p>A live {title} runs here if the page comes from a server: <code>python -m http.server -d site</code>.</p>
</div>"""


def without_kernels(path: Path) -> tuple[bytes, dict[str, bytes]]:
    """Returns a frozen world, compressed, without its kernels and loaders, and its kernels by the name of their file.

    The manifest, and so the hash of the file, is unchanged: the loader verifies kernels that it gets elsewhere.
    """
    out, kernels = io.BytesIO(), {}
    with zipfile.ZipFile(path) as file, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as smaller:
        targets = {t["file"] for t in json.loads(file.read("manifest.json"))["targets"]}
        for member in file.infolist():
            content = file.read(member)
            if member.filename in targets:
                kernels[posixpath.basename(member.filename)] = content
            elif "/" not in member.filename:
                smaller.writestr(zipfile.ZipInfo(member.filename, member.date_time), content, zipfile.ZIP_DEFLATED)
        smaller.comment = file.comment
    return out.getvalue(), kernels


@functools.cache
def worlds() -> dict[str, bytes]:
    """Returns name -> content of the files of all worlds."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "world.flz")
        for name, (_, contact_models) in WORLDS.items():
            model = fl.bundled(name)
            model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
            for contact_model in contact_models:
                model.opt.contact_model = contact_model
                fl.freeze(model, path, targets=[wasm.LEVEL])
                found[f"{name}-{contact_model}.flz"], kernels = without_kernels(path)
                found |= kernels
    return found


def three() -> bytes:
    """Returns three.js.

    Raises:
        FileNotFoundError: its distribution is not installed.
    """
    spec = find_spec(THREE)
    if spec is None or not spec.origin:
        raise FileNotFoundError("the site needs three.js: pip install '.[docs]'")
    return next(Path(spec.origin).parent.glob("static/r130/three.min.js")).read_bytes()


def every_file() -> dict[str, bytes]:
    """Returns name -> content of the files that live worlds load."""
    loader = Path(wasm.__file__).with_name("featherlane.js").read_bytes()
    scripts = {"live.js": (HERE / "live.js").read_bytes(), "featherlane.js": loader, "three.min.js": three()}
    return scripts | worlds()


def on_files(files, config):
    """Adds the files that live worlds load."""
    for name, content in every_file().items():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
    unused = files.get_file_from_path("site/live.js")
    if unused is not None:
        files.remove(unused)
    return files


def marked(found: re.Match[str]) -> str:
    """Returns the element of a world.

    Raises:
        ValueError: the build freezes no such world.
    """
    name = found[1]
    if name not in WORLDS:
        raise ValueError(f"live: got {name}, allowed are {', '.join(WORLDS)}")
    control, contact_models = WORLDS[name]
    return WORLD.format(name=name, control=control, models=" ".join(contact_models), title=name.replace("_", " "))


def on_page_markdown(markdown, page, config, files):
    """Replaces the comments; the first page gets a world below its picture."""
    if page.file.src_uri == FIRST_PAGE[0]:
        markdown = IMAGE.sub(lambda image: f"{image[0]}\n\n<!-- live: {FIRST_PAGE[1]} -->", markdown, count=1)
    return MARK.sub(marked, markdown)


def on_page_content(content, page, config, files):
    """Adds the script to pages with a world."""
    if 'class="live"' not in content:
        return content
    up = posixpath.relpath(f"{FOLDER}/live.js", posixpath.dirname(page.file.dest_uri) or ".")
    return f'{content}<script type="module" src="{up}"></script>\n'
