"""Pictures of the viewer, taken in a headless Chromium: `python docs/images/viewer.py [ROBOT.xml]`.

Needs `pip install 'featherlane[view]' playwright pillow` and a chromium; the robot is a file with meshes: robosuite's
Panda.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import featherlane as fl
from featherlane.cli import run_command
from featherlane.viewer.playback import read_recording

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
        path = HERE / f"viewer_{name}.png"
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
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
    page.ask(lambda: session.grab(0, body, torso))
    page.ask(lambda: page.pick(0, body))
    for k in range(60):
        page.ask(lambda k=k: session.drag(torso + np.array((0.1, 0.0, 0.75)) * min(1.0, k / 40)))
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


def main():
    """Takes all pictures; with a robot's file as argument only that of the robot."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        camera = Camera(playwright)
        for path in sys.argv[1:]:
            camera.look(fl.view(path, port=0, paused=True), "robot", robot)
        if sys.argv[1:]:
            return
        camera.look(fl.view("humanoid", port=0, paused=True), "humanoid", humanoid, (1.6, -2.6, 1.5), (0.4, 0, 0.8))
        camera.look(fl.view("quadruped", nworld=1024, port=0, paused=True), "batch", crowd, wait=12_000)
        camera.look(recording(folder), "recording", lambda page, tab: page.ask(lambda: page.source.seek(30)))
        camera.browser.close()


if __name__ == "__main__":
    main()
