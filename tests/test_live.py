"""Live worlds of the site in a real browser: equal bits, dragging, reset, contact models, dark pages, phones.

Chromium runs headless with a software renderer, driven by Playwright; skipped if either is not installed.
"""

from __future__ import annotations

import http.server
import io
import re
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api")
image = pytest.importorskip("PIL.Image")
pytest.importorskip("jupyter_threejs_sage")
ROOT, SECONDS = Path(__file__).parents[1], 120.0
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
LIVE = "document.querySelector('.live').live"
MOST_BYTES = 3e6  # of a page's download
THEME = """:root { --md-default-fg-color--light: #555; --md-default-fg-color--lighter: #bbb; --md-typeset-color: #222;
--md-code-bg-color: #f5f5f5 } body { margin: 0; padding: 8px; font-size: 20px }
[data-md-color-scheme="slate"] { --md-default-fg-color--light: #aaa; --md-typeset-color: #ddd; background: #111820 }"""
PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{css}</style>
<body data-md-color-scheme="{scheme}"><article class="md-typeset">{world}
<script type="module" src="live/live.js"></script></article>"""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")]


@pytest.fixture(scope="module")
def hook():
    sys.path.insert(0, str(ROOT / "docs" / "site"))
    try:
        import live
    finally:
        sys.path.pop(0)
    return live


@pytest.fixture(scope="module")
def address(hook, tmp_path_factory):
    """Returns the address of a server with a page for each world and scheme, of the hook's files and elements."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "live").mkdir()
    for name, content in hook.every_file().items():
        (folder / "live" / name).write_bytes(content)
    css = THEME + (ROOT / "docs" / "site" / "site.css").read_text()
    for name in hook.WORLDS:
        world = hook.MARK.sub(hook.marked, f"<!-- live: {name} -->")
        for scheme in ("default", "slate"):
            (folder / f"{name}-{scheme}.html").write_text(PAGE.format(css=css, scheme=scheme, world=world))

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, directory=str(folder), **options)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A tab with a live world that has run its self-test."""

    def __init__(self, browser, address, name, scheme="default", width=900):
        self.tab, self.errors, self.bytes, self.hosts = (
            browser.new_page(viewport={"width": width, "height": 800}),
            [],
            0,
            set(),
        )
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("response", self.count)
        self.tab.goto(f"{address}/{name}-{scheme}.html")
        self.tab.wait_for_selector(".live[data-hash], .live[data-failed]", timeout=1e3 * SECONDS)
        self.until("document.querySelector('.live').live.world")

    def count(self, response):
        self.bytes += int(response.headers.get("content-length", 0))
        self.hosts.add(re.sub(r"^(\w+://[^/]+).*", r"\1", response.url))

    def evaluate(self, code):
        return self.tab.evaluate(f"(() => {{ const live = document.querySelector('.live').live; return {code}; }})()")

    def until(self, condition):
        self.tab.wait_for_function(condition, timeout=1e3 * SECONDS)

    @property
    def data(self):
        return self.evaluate("({ ...live.root.dataset })")

    def picture(self):
        shot = self.tab.locator(".live-scene").screenshot()
        return np.asarray(image.open(io.BytesIO(shot)).convert("RGB"), float)


@pytest.fixture
def visit(chromium, address):
    visits = []

    def come(*arguments, **options):
        visits.append(Visit(chromium, address, *arguments, **options))
        return visits[-1]

    yield come
    for each in visits:
        assert not each.errors and each.hosts == {address}
        each.tab.close()


@pytest.mark.parametrize("name", ["humanoid", "arm", "box_stack"])
def test_a_browser_has_the_bits_of_x86(name, visit):
    page = visit(name)
    data = page.data
    assert len(data["hash"]) == 64 and data["hash"] == data["expected"]
    assert "equal to x86-64's" in page.tab.inner_text(".live-note") and page.bytes < MOST_BYTES
    page.until("document.querySelector('.live').live.history.length > 5")
    assert page.picture().std() > 8.0  # something is drawn
    speed = page.tab.inner_text(".live-speed")
    print(f"{name}: {data['target']}, {speed}, {page.bytes / 1e6:.2f} MB")
    assert re.fullmatch(r"[\d.]+ x real time", speed)


def test_each_contact_model_has_the_bits_of_x86(visit):
    page, found = visit("box_stack"), set()
    for model in ("lcp", "coulomb", "convex"):
        page.tab.select_option(".live select", model)
        page.until(f"(({{ worlds, world }}) => worlds.get('{model}')?.world === world)({LIVE})")
        assert page.data["hash"] == page.data["expected"]
        found.add(page.data["hash"])
    assert len(found) == 3


def test_the_mouse_pulls_a_body_and_reset_restores_the_world(visit):
    page = visit("box_stack")
    page.tab.click("text=Pause")
    page.tab.click("text=Reset")
    start = page.evaluate("Array.from(live.world.field('qpos'))")
    box = page.tab.locator(".live-scene").bounding_box()
    place = page.evaluate(
        "(() => { const { THREE, camera } = live.scene; const p = new THREE.Vector3()"
        ".fromArray(live.world.field('xpos'), 3 * (live.world.size('nbody') - 1)).project(camera);"
        " return [p.x, p.y]; })()"
    )
    x, y = box["x"] + box["width"] * (1 + place[0]) / 2, box["y"] + box["height"] * (1 - place[1]) / 2
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x + 120, y - 30, steps=4)
    assert page.evaluate("live.drag?.body") > 0
    page.evaluate("live.run(true)")
    page.until("document.querySelector('.live').live.world.field('xfrc_applied').some((force) => force !== 0)")
    page.until("document.querySelector('.live').live.world.field('time')[0] > 0.5")
    page.tab.mouse.up()
    moved = page.evaluate("Array.from(live.world.field('qpos'))")
    assert np.abs(np.subtract(moved, start)).max() > 0.02
    page.tab.click("text=Pause")
    page.tab.click("text=Reset")
    assert page.evaluate("Array.from(live.world.field('qpos'))") == start


def test_a_drag_of_the_background_turns_the_camera(visit):
    page = visit("arm")
    before = page.evaluate("live.scene.turn")
    box = page.tab.locator(".live-scene").bounding_box()
    page.tab.mouse.move(box["x"] + 10, box["y"] + 10)
    page.tab.mouse.down()
    page.tab.mouse.move(box["x"] + 110, box["y"] + 10, steps=3)
    page.tab.mouse.up()
    assert page.evaluate("live.scene.turn") > before + 20


def test_dark_pages_and_phones(visit):
    light, dark = (visit("humanoid", scheme=scheme).picture()[:20].mean() for scheme in ("default", "slate"))
    assert light > 180 and dark < 80
    page = visit("humanoid", width=360)
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 360
    page.tab.evaluate("document.body.dataset.mdColorScheme = 'slate'")  # the reader switches
    page.until("document.querySelector('.live').live.scene.scene.background.r < 0.3")
