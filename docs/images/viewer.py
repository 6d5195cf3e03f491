"""Takes the pictures of the viewer in a headless Chromium: `python docs/images/viewer.py [NAME...]`; five minutes.

Needs `pip install 'featherlane[view]' playwright pillow` and a chromium.  A picture contains the texts of its buttons,
which `tests/test_overview_pages.py` compares with the source of the viewer.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, PngImagePlugin
from playwright.sync_api import sync_playwright

import featherlane as fl
from featherlane.apps.cli import run_command
from featherlane.apps.viewer.playback import read_recording

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from robots.wheels import model_path

HERE = Path(__file__).parent

SIZE = {"width": 1100, "height": 640}
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
COLOURS = 128  # of a picture, so that it stays small


class Camera:
    """A browser that looks at one page after the other."""

    def __init__(self, playwright):
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        self.browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)

    def look(self, view, name, prepare=lambda page, tab: None, position=None, at=None, wait=4000):
        """Save what a page shows as `viewer_NAME.png`."""
        tab = self.browser.new_page(viewport=SIZE)
        if position is not None:
            view.server.initial_camera.position, view.server.initial_camera.look_at = position, at
        tab.goto(view.url)
        tab.wait_for_selector("canvas", timeout=120_000)
        tab.wait_for_timeout(wait)
        tab.evaluate("document.querySelectorAll('.mantine-Notification-root').forEach(note => note.remove())")
        prepare(view.page, tab)
        tab.wait_for_timeout(wait)
        tab.mouse.move(5, 5)
        image = Image.open(io.BytesIO(tab.screenshot(timeout=120_000))).convert("RGB")
        buttons = PngImagePlugin.PngInfo()
        buttons.add_text("buttons", "\n".join(filter(None, tab.locator("button").all_inner_texts())))
        path = HERE / f"viewer_{name}.png"
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True, pnginfo=buttons)
        print(path.name, path.stat().st_size // 1000, "kB", flush=True)
        tab.close()
        view.close()


def humanoid(page, tab):
    """Sits down and is lifted by a hand, with plots."""
    session = page.source
    tab.get_by_text("Time", exact=True).first.click()
    tab.get_by_text("Plots", exact=True).first.click()
    body = session.model.names("body").index("torso")
    page.ask(lambda: page.scene.switch("forces", None, True))
    for _ in range(150):
        page.ask(lambda: session.advance(2))
        page.ask(page.panel.refresh)
    torso = page.ask(page.frame).pos[0, body]
    page.ask(lambda: session.mouse.grab(0, body, torso))
    page.ask(lambda: page.pick(0, body))
    for k in range(60):
        page.ask(lambda k=k: session.mouse.move(torso + np.array((0.1, 0.0, 0.75)) * min(1.0, k / 40)))
        page.ask(lambda: session.advance(3))
        page.ask(page.panel.refresh)


def robot(page, tab):
    """Shows the visual meshes only, in front of a grey gradient: the robot is white."""
    shade = np.linspace(70, 150, SIZE["height"])[:, None, None].astype(np.uint8)
    page.server.scene.set_background_image(np.broadcast_to(shade, (SIZE["height"], SIZE["width"], 3)))
    page.ask(lambda: page.scene.switch("geoms", 0, False))
    page.ask(lambda: page.source.advance(60))
    tab.mouse.move(350, 300)
    tab.mouse.wheel(0, -600)  # nearer


def crowd(page, tab):
    """Gives each of the 1024 robots a different gait."""
    session, random = page.source, np.random.default_rng(0)
    batch = session.parts[0].batch
    for _ in range(25):
        batch.ctrl[:] = random.uniform(-1, 1, batch.ctrl.shape)
        page.ask(lambda: session.advance(10))
    page.ask(lambda: page.draw_first(1024))


def recording(folder):
    """A view of a pile that was simulated before."""
    path = Path(folder) / "pile.npz"
    run_command(["simulate", "pile", "--seconds", "2", "--out", str(path)])
    return fl.view("pile", frames=read_recording(path), port=0, paused=True)


def pictures(folder):
    """Returns, by name, what opens a page, what prepares it, and other options of `look`."""
    panda = str(model_path("robosuite/robots/panda/robot"))
    near = {"position": (1.6, -2.6, 1.5), "at": (0.4, 0, 0.8)}
    return {
        "humanoid": (lambda: fl.view("humanoid", port=0, paused=True), humanoid, near),
        "batch": (lambda: fl.view("quadruped", nworld=1024, port=0, paused=True), crowd, {"wait": 12_000}),
        "recording": (lambda: recording(folder), lambda page, tab: page.ask(lambda: page.source.seek(30)), {}),
        "robot": (lambda: fl.view(panda, port=0, paused=True), robot, {}),
    }


def main():
    """Takes the named pictures, or all."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        camera, known = Camera(playwright), pictures(folder)
        for name in sys.argv[1:] or known:
            opened, prepare, options = known[name]
            camera.look(opened(), name, prepare, **options)
        camera.browser.close()


if __name__ == "__main__":
    main()
