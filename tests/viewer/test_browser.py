"""The page in a real browser: loading, running, dragging, scrubbing and picking, and its picture.

Chromium runs headless, with a software renderer, driven by Playwright; skipped if either is not installed.
"""

import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest

import featherlane as fl

pytest.importorskip("viser")
from featherlane.apps.viewer.view import open_page

sync_api = pytest.importorskip("playwright.sync_api")
image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.slow
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"] + [
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]  # only the page is loaded
SIZE = {"width": 1000, "height": 700}
PICTURE = (slice(200, 690), slice(20, 600))  # rows and columns that neither the panel nor a note covers
SECONDS = 60.0  # a software renderer on a busy machine


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("no chromium here")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """Opens a browser at a page."""

    def __init__(self, browser, url):
        self.tab = browser.new_page(viewport=SIZE, accept_downloads=True)
        self.asked, self.errors, self.logged = [], [], []
        self.tab.on("console", lambda message: self.logged.append(message.text))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("websocket", lambda socket: self.asked.append(socket.url))
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.answer = self.tab.goto(url)

    def picture(self):
        """Returns the picture of the worlds, (h, w, 3) floats."""
        shot = image.open(io.BytesIO(self.tab.screenshot())).convert("RGB")
        return np.asarray(shot, float)[PICTURE]

    def drawn(self):
        """Waits until something is drawn; returns the picture."""
        self.tab.wait_for_selector("canvas", timeout=1e3 * SECONDS)
        self.until(lambda: self.picture().std() > 8.0)
        return self.settled()

    def settled(self):
        """Returns the picture, once it no longer changes."""
        before = self.picture()
        for _ in range(30):
            self.tab.wait_for_timeout(300)
            now = self.picture()
            if np.abs(now - before).mean() < 0.05:
                break
            before = now
        return now

    def until(self, condition):
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"it did not come to that; {self.errors}"
            self.tab.wait_for_timeout(50)

    def button(self, name):
        self.tab.get_by_role("button", name=name, exact=True).first.click()

    def folder(self, name):
        self.tab.get_by_text(name, exact=True).first.click()


@pytest.fixture
def visit(chromium):
    visits = []

    def come(view, url=None):
        visits.append(Visit(chromium, url or view.url))
        return visits[-1]

    yield come
    for opened in visits:
        opened.tab.close()
        assert not [error for error in opened.errors if "unsafe-eval" not in error]  # splats, which are not used


@pytest.fixture
def served():
    views = []

    def serve(what, **options):
        views.append(fl.view(what, port=0, **options))
        return views[-1]

    yield serve
    for view in views:
        view.close()


def middle(view, world, body):
    """Returns a body's position on the screen: projected by the visitor's camera."""
    client = next(iter(view.server.get_clients().values()))
    camera = client.camera
    at = view.page.ask(view.page.frame)
    k = at.worlds.tolist().index(world)
    centre = view.page.source.model.body_ipos[body]
    w, x, y, z = at.quat[k, body]
    turn = np.array(
        [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
         [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
         [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]
    )  # fmt: skip
    point = at.pos[k, body] + turn @ centre + view.page.offsets[world]
    forward = camera.look_at - camera.position
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, camera.up_direction)
    right = right / np.linalg.norm(right)
    up = np.cross(right, forward)
    ray = point - camera.position
    scale = SIZE["height"] / 2 / np.tan(camera.fov / 2) / (ray @ forward)
    return SIZE["width"] / 2 + scale * (ray @ right), SIZE["height"] / 2 - scale * (ray @ up)


def test_it_runs_stops_and_rewinds(served, visit):
    view = served("humanoid", paused=True)
    here = visit(view)
    still = here.drawn()
    session = view.page.source
    assert session.clock == 0.0
    here.button("Run")
    here.until(lambda: session.clock > 1.5)
    here.button("Pause")
    here.until(lambda: not session.running)
    fallen = here.settled()
    assert np.abs(fallen - still).mean() > 1.0, "the humanoid fell"
    after = session.batch.qpos.copy()
    here.button("Back")
    here.until(lambda: session.position is not None)
    here.button("Step")
    here.until(lambda: session.position is None)
    assert np.array_equal(session.batch.qpos, after), "to the same bits"
    slider = here.tab.get_by_role("slider").first
    slider.focus()
    slider.press("Home")
    here.until(lambda: session.position == (0, 0))
    assert np.abs(here.settled() - still).mean() < 1.0, "as it began"
    here.button("Reset")
    here.until(lambda: session.position is None)


def test_a_body_is_picked_and_dragged_by_the_mouse(served, visit):
    view = served("humanoid", nworld=4, paused=True)
    here = visit(view)
    here.drawn()
    session = view.page.source
    body = session.model.names("body").index("torso")
    x, y = middle(view, 1, body)
    here.tab.mouse.click(x, y)
    here.until(lambda: view.page.picked is not None)
    assert view.page.picked == (1, body)
    here.tab.keyboard.down("Control")
    here.tab.mouse.move(x, y)
    here.tab.mouse.down()
    here.tab.mouse.move(x, y - 60, steps=10)
    here.until(lambda: session.mouse.grabbed is not None)
    assert session.mouse.grabbed.world == 1
    view.page.ask(lambda: session.advance(60))
    height = session.batch.qpos[:, 2]
    assert height[1] > height[0] == height[2], "the one that is held is lifted, the others are not"
    before = here.picture()
    here.tab.mouse.up()
    here.tab.keyboard.up("Control")
    here.until(lambda: session.mouse.grabbed is None)
    view.page.ask(lambda: session.advance(60))
    assert np.abs(here.settled() - before).max() > 30


def watcher(batch):
    """Returns the callbacks after a batch's calls: no public attribute shows whether there are any."""
    return batch.runner.watcher


def test_a_batch_is_observed_during_training(served, visit):
    model = fl.bundled("quadruped")
    batch, alone = fl.Batch(model, 256), fl.Batch(model, 256)
    view = served(batch)
    here = visit(view)
    start = here.drawn()
    here.until(lambda: watcher(batch) is not None)

    def train(worlds):
        for k in range(60):
            worlds.ctrl[:] = np.sin(0.1 * k + np.arange(256))[:, None]
            worlds.step(5)

    thread = threading.Thread(target=train, args=(batch,))
    thread.start()
    while thread.is_alive():
        here.tab.wait_for_timeout(20)
    here.until(lambda: view.page.source.batch.time[0] == batch.time[0])
    assert np.abs(here.settled() - start).mean() > 0.5
    train(alone)
    assert batch.qpos.tobytes() == alone.qpos.tobytes()
    here.tab.close()
    end = time.monotonic() + SECONDS
    while watcher(batch) is not None and time.monotonic() < end:
        time.sleep(0.05)
    assert watcher(batch) is None, "nobody looks any more"


def test_a_token_is_required_and_no_external_resource_is_loaded(served, visit):
    view = served("pendulum", host="0.0.0.0")
    there = visit(view, f"http://localhost:{view.port}/")
    assert there.answer.status == 403 and "token" in there.tab.inner_text("body")
    here = visit(view)
    assert here.answer.status == 200
    here.drawn()
    here.tab.wait_for_timeout(1000)
    at = f"//localhost:{view.port}/"
    assert all(at in url or url.startswith(("blob:", "data:")) for url in here.asked), here.asked
    assert any(url.startswith("ws:") for url in here.asked)


def test_switching_worlds_updates_no_removed_control(served, visit):
    view = served("box_stack")
    here = visit(view)
    here.drawn()
    for _ in range(2):
        here.button("Compare the contact models side by side")
        here.until(lambda: view.page.depth == 1)
        view.page.ask(lambda: view.page.source.run())
        here.tab.wait_for_timeout(1000)
        here.button("Back to the previous worlds")
        here.until(lambda: view.page.depth == 0)
        view.page.ask(lambda: view.page.source.run())
        here.tab.wait_for_timeout(1000)
    view.page.ask(lambda: view.page.panel.plots.remove("energy"))
    here.settled()
    assert not [text for text in here.logged if "non-existent component" in text]


HOSTILE = (
    "{window.hacked=1}<img src=x onerror=window.hacked=1><iframe srcdoc='<script>parent.hacked=1</script>'></iframe>"
    "<script>window.hacked=1</script>![i](/etc/passwd)[l](javascript:window.hacked=1) www.evil.invalid `*_# "
)


def hostile_model():
    """Returns a model in which every element that can have a name has a hostile one."""
    ours = lambda kind: quoteattr(HOSTILE + kind)  # noqa: E731
    named = lambda kind: f"name={ours(kind)}"  # noqa: E731
    return f"""<mujoco model={ours("model")}><asset>
    <texture {named("texture")} type="2d" builtin="flat" width="4" height="4"/>
    <material {named("material")} texture={ours("texture")}/>
    <mesh {named("mesh")} vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
    <light {named("light")} pos="0 0 3"/><camera {named("camera")} pos="0 -3 1"/>
    <body {named("body")}><joint {named("joint")}/><geom {named("geom")} size=".2" material={ours("material")}/>
    <site {named("site")}/></body><body {named("other")} pos="1 0 0"><freejoint {named("free")}/><geom type="mesh"
    mesh={ours("mesh")}/></body></worldbody>
    <tendon><fixed {named("tendon")}><joint joint={ours("joint")} coef="1"/></fixed></tendon>
    <actuator><motor {named("actuator")} joint={ours("joint")}/></actuator>
    <sensor><jointpos {named("sensor")} joint={ours("joint")}/></sensor>
    <equality><connect {named("equality")} body1={ours("other")} anchor="0 0 0" active="false"/></equality>
    <keyframe><key {named("key")}/></keyframe></mujoco>"""


def test_names_of_a_model_are_shown_as_text(served, visit):
    view = served(hostile_model(), paused=True)
    here = visit(view)
    here.drawn()
    page = view.page
    page.ask(lambda: page.panel.plots.add(HOSTILE + "sensor"))
    page.ask(lambda: page.pick(0, 1))
    for _ in range(2):
        page.ask(lambda: page.source.advance(5))
        page.ask(page.panel.refresh)
    page.do(lambda: page.source.set_mass(1, -1.0))
    for name in ("Plots", "Forces", "Actuators", "Bodies"):
        here.folder(name)
    here.until(lambda: "mass: got -1.0" in here.tab.inner_text("body"))
    text = " ".join(here.tab.inner_text("body").split())
    for kind in ("body", "actuator", "sensor"):
        assert HOSTILE + kind in text, kind
    assert here.tab.evaluate("window.hacked === undefined")
    assert here.tab.locator("iframe, a, img[src=x]").count() == 0


def test_unsupported_features_are_shown_as_text(visit):
    error = fl.UnsupportedFeatureError([HOSTILE + "flex", HOSTILE + "plugin"], HOSTILE + "model")
    with open_page(error, 0) as view:
        here = visit(view)
        here.until(lambda: HOSTILE + "plugin" in here.tab.inner_text("body"))
        assert here.tab.evaluate("window.hacked === undefined")
        assert here.tab.locator("iframe, a, img[src=x]").count() == 0


def test_only_a_notebook_can_embed_the_page(served, visit, tmp_path):
    view = served("pendulum", paused=True)
    (tmp_path / "evil.html").write_text(f'<iframe src="{view.url}"></iframe>')
    (tmp_path / "notebook.html").write_text(view._repr_html_())
    for name, shown in (("evil", 0), ("notebook", 1)):
        here = visit(None, (tmp_path / f"{name}.html").as_uri())
        here.tab.wait_for_timeout(3000)
        live = [frame for frame in here.tab.frames if frame.url.startswith("http")]
        assert sum(frame.locator("#root").count() for frame in live) == shown
        here.tab.close()


def test_an_exported_notebook_plays_the_recording(visit, tmp_path):
    model = fl.bundled("pendulum")
    frames = fl.Batch(model, 1).rollout(50, record=("time", "qpos"))
    path = tmp_path / "notebook.html"
    with fl.view(model, frames=frames, port=0, paused=True) as view:
        path.write_text(view._repr_html_())
    here = visit(None, path.as_uri())
    inside = here.tab.frame_locator("iframe")
    inside.locator("canvas").first.wait_for(state="attached", timeout=1e3 * SECONDS)
    here.until(lambda: here.picture().std() > 8.0)


def test_the_space_key_runs_and_pauses_after_clicks(served, visit):
    view = served("pendulum", paused=True)
    here = visit(view)
    here.drawn()
    session, scene = view.page.source, view.page.scene
    here.folder("Layers")
    here.tab.get_by_label("joints", exact=True).first.click()
    here.until(lambda: scene.is_on("joints"))
    here.tab.keyboard.press("Space")
    here.until(lambda: session.running)
    assert scene.is_on("joints")
    here.tab.keyboard.press("Space")
    here.until(lambda: not session.running)
    here.button("Run")
    here.until(lambda: session.running)
    here.tab.keyboard.press("Space")
    here.until(lambda: not session.running)
    here.tab.wait_for_timeout(500)
    assert not session.running, "the button was not clicked again"


def test_a_video_is_downloaded(served, visit, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    imageio = pytest.importorskip("imageio.v3")
    view = served("pendulum", paused=True)
    here = visit(view)
    here.drawn()
    view.page.source.batch.qvel[:] = 3.0
    view.page.ask(lambda: view.page.source.advance(100))
    with here.tab.expect_download(timeout=1e3 * SECONDS) as download:
        here.button("Video")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    pictures = imageio.imread(path)
    assert path.suffix == ".mp4" and len(pictures) == 1 + int(30 * view.page.source.clock + 1e-6)
    assert np.abs(pictures[0].astype(float) - pictures[-1]).mean() > 0.1


def test_a_saved_state_is_downloaded(served, visit, tmp_path):
    view = served("pendulum", paused=True)
    here = visit(view)
    here.drawn()
    here.folder("Bookmarks")
    with here.tab.expect_download(timeout=1e3 * SECONDS) as download:
        here.button("Save this state to a file")
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    with np.load(path) as file:
        assert file["state"].shape[0] == 1 and path.suffix == ".npz"


def command(*words):
    """Starts the command line, in a separate process, and yields the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "featherlane", "view", *words, "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"SSH_CONNECTION": ""},
    )  # fmt: skip
    line = process.stdout.readline()
    return process, line.split()[0] if line else ""


def ended(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def test_the_command_shows_a_model_a_recording_and_unsupported_features(visit, tmp_path):
    process, url = command("humanoid", "--worlds", "4", "--set", "timestep=0.004", "--keyframe", "squat")
    here = visit(None, url)
    here.drawn()
    assert here.tab.get_by_text("world 0 of 4").first.is_visible()
    assert ended(process) == (0, "", "\n")
    here.tab.close()

    recording = tmp_path / "out.npz"
    subprocess.run(
        [sys.executable, "-m", "featherlane", "simulate", "quadruped", "--seconds", "1", "--out", recording],
        check=True, capture_output=True,
        timeout=900,
    )  # fmt: skip
    process, url = command(str(recording))
    here = visit(None, url)
    here.drawn()
    here.until(lambda: "t = 1.000 s" in here.tab.inner_text("body"))
    assert ended(process)[0] == 0
    here.tab.close()

    model = tmp_path / "cloth.xml"
    model.write_text(
        '<mujoco><worldbody><flexcomp name="curtain" type="grid" count="4 4 1" spacing=".1 .1 .1" dim="2"/>'
        "</worldbody></mujoco>"
    )
    process, url = command(str(model))
    here = visit(None, url)
    here.until(lambda: "flex 'curtain': deformable body" in here.tab.inner_text("body"))
    code, _, err = ended(process)
    assert code == 2 and "curtain" in err
