"""What the viewer's server costs: time, bytes, and how long one waits for the first picture; about two minutes.

    pip install -e '.[view]' && python benchmarks/viewer.py --write

A process steps a model and shows frames at a steady rate; another one takes all that a page would be sent, and draws
nothing.  The share of a core is the time of the first process over that of the clock, with and without physics.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

from report import arguments, markdown, origin, publish

# model, worlds, frames per second, steps in each
CASES = (
    ("humanoid", 1, 60, 3),
    ("hand", 1, 60, 3),
    ("humanoid", 64, 60, 1),
    ("quadruped", 1024, 20, 1),
    ("quadruped", 1024, 0, 1),
)
SECONDS = 8.0
WARM = 60  # frames until everything is loaded and sent
PORTS = 8790  # and above
COLUMNS = (
    "model", "worlds", "target [frames/s]", "actual [frames/s]", "server [% of a core]", "of which physics [%]",
    "time per frame [ms]", "bytes per frame",
)  # fmt: skip
FIRST = 5  # processes whose first picture is waited for
# what a page is sent: lengths of messages, one a line, as they come
SINK = """
import sys, time, viser
from websockets.sync.client import connect
while True:
    try:
        page = connect(f"ws://127.0.0.1:{sys.argv[1]}", subprotocols=["viser-v" + viser.__version__], max_size=None)
        break
    except OSError:
        time.sleep(0.02)
while True:
    print(len(page.recv()), time.time(), flush=True)
"""
# the shortest program that shows a model
SHOW = """
import sys, time, viser
import featherlane as fl
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.scene import Scene
from featherlane.extension import batch_of
model = fl.bundled(sys.argv[2])
data = fl.Data(model)
server = viser.ViserServer(host="127.0.0.1", port=int(sys.argv[1]), verbose=False)
scene = Scene(server, model)
scene.show(Frame.of(batch_of(data), None, scene.drawn_layers))
time.sleep(60)
"""


def show(port: int, name: str, worlds: int, rate: int, steps: int) -> dict[str, float]:
    """Show frames for some seconds; shares and times."""
    import viser  # pyright: ignore[reportMissingImports]

    import featherlane as fl
    from featherlane.apps.viewer.frame import Frame
    from featherlane.apps.viewer.scene import Scene
    from featherlane.extension import batch_of

    model = fl.bundled(name)
    source = fl.Batch(model, worlds, nthread=1) if worlds > 1 else fl.Data(model)
    server = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
    scene = Scene(server, model, worlds)

    def move() -> float:
        start = time.thread_time()
        if isinstance(source, fl.Batch):
            source.step(steps)
        else:
            for _ in range(steps):
                fl.step(model, source)
        return time.thread_time() - start

    def draw() -> None:
        scene.show(Frame.of(batch_of(source), None, scene.drawn_layers))

    for _ in range(WARM):
        move(), draw()
        time.sleep(0.02)
    physics, drawing, frames, start, used = 0.0, 0.0, 0, time.perf_counter(), time.process_time()
    begun = time.time()
    while (passed := time.perf_counter() - start) < SECONDS:
        if rate and frames / rate > passed:
            time.sleep(frames / rate - passed)
            continue
        physics += move()
        before = time.thread_time()
        draw()
        drawing += time.thread_time() - before
        frames += 1
    shares = {"server": time.process_time() - used, "physics": physics}
    return {name: share / passed for name, share in shares.items()} | {
        "rate": frames / passed,
        "frame": drawing / frames,
        "frames": frames,
        "begun": begun,
        "ended": time.time(),
    }


def measure(k: int, case: tuple[str, int, int, int]) -> tuple:
    """A row of the table."""
    port = str(PORTS + k)
    sink = subprocess.Popen([sys.executable, "-c", SINK, port], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    command = [sys.executable, __file__, "--show", port, *map(str, case)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))  # viser talks, too
    shown = sink.communicate()[0].decode().split()
    lengths = [int(n) for n, at in zip(shown[::2], shown[1::2], strict=True) if found["begun"] < float(at)]
    name, worlds, rate, _ = case
    reached = f"{found['rate']:.0f}"
    size = sum(lengths) / max(found["frames"], 1)
    return (
        name, worlds, rate or "maximum", reached, f"{100 * found['server']:.1f}", f"{100 * found['physics']:.1f}",
        f"{1e3 * found['frame']:.2f}", f"{size:,.0f}",
    )  # fmt: skip


def first_picture(k: int) -> float:
    """Seconds from the start of a process until a page has all of a humanoid."""
    port = str(PORTS + 100 + k)
    sink = subprocess.Popen([sys.executable, "-c", SINK, port], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(1.0)  # it waits
    start = time.time()
    shown = subprocess.Popen([sys.executable, "-c", SHOW, port, "humanoid"], stdout=subprocess.DEVNULL)
    time.sleep(6.0)
    shown.terminate(), shown.wait()
    return float(sink.communicate()[0].decode().split()[-1]) - start


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--show", nargs=5, metavar=("PORT", "MODEL", "WORLDS", "RATE", "STEPS"), help="one process")
    asked = parser.parse_args()
    if asked.show:
        port, name, *numbers = asked.show
        print(json.dumps(show(int(port), name, *map(int, numbers))))
        return
    rows = [measure(k, case) for k, case in enumerate(CASES)]
    waits = [first_picture(k) for k in range(FIRST + 1)][1:]  # the first one fills the system's cache
    shown = (
        f"The first complete frame of a humanoid is received {statistics.median(waits):.2f} s after the start of the "
        f"process ({min(waits):.2f} to {max(waits):.2f} s in {FIRST} runs)."
    )
    publish("viewer", f"{markdown(COLUMNS, rows)}\n\n{shown}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
