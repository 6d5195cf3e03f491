"""Measures steps of frozen worlds in Node.js: microseconds, ratio to the kernels of this machine, and to real time.

    python benchmarks/frozen_wasm.py [--write]      # needs node, llvmlite and a C compiler

Rounds of all kernels alternate; the table has medians.  Worlds move on between rounds.  `--write` replaces the table of
docs/browser.md.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from report import markdown, origin, publish

import featherlane as fl
from featherlane.engine.lanes.processor import cpu_level
from featherlane.engine.simulation.frozen import wasm

MODELS = ("pendulum", "arm", "humanoid", "box_stack")
ROUNDS, STEPS, WARM = 9, 1000, 2000
FLAG = "--experimental-wasm-relaxed-simd"  # of older versions of node
PROGRAM = """
import { createInterface } from "node:readline";
const { open } = await import(process.argv[2]), steps = Number(process.argv[4]), warm = Number(process.argv[5]);
const worlds = [await open(process.argv[3]), await open(process.argv[3], { relaxed: false })];
for (const world of worlds) world.step(warm);
console.log(JSON.stringify(worlds.map((world) => world.target)));
for await (const line of createInterface({ input: process.stdin }))
  console.log(JSON.stringify(worlds.map((world) => {
    const start = performance.now();
    world.step(steps);
    return (1000 * (performance.now() - start)) / steps;
  })));
"""


def measured(name: str, folder: Path) -> tuple[float, dict[str, list[float]]]:
    """Returns the time step [s], and the microseconds of a step by kernels, in rounds."""
    model, path = fl.bundled(name), folder / f"{name}.flz"
    fl.freeze(model, path, targets=["wasm32", cpu_level()])
    world = fl.thaw(path)
    world.step(WARM)
    program = folder / "run.mjs"
    program.write_text(PROGRAM)
    loader = Path(wasm.__file__).with_name("featherlane.js").as_uri()
    node = shutil.which("node") or sys.exit("needs node")
    flags = [FLAG] if subprocess.run([node, FLAG, "-e", ""], capture_output=True, check=False).returncode == 0 else []
    command = [node, *flags, program, loader, path, str(STEPS), str(WARM)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdin and run.stdout
        kernels = json.loads(run.stdout.readline())
        found: dict[str, list[float]] = {each: [] for each in (world.target, *kernels)}
        for _ in range(ROUNDS):
            start = time.perf_counter()
            world.step(STEPS)
            found[world.target].append(1e6 * (time.perf_counter() - start) / STEPS)
            run.stdin.write("\n")
            run.stdin.flush()
            for each, value in zip(kernels, json.loads(run.stdout.readline()), strict=True):
                found[each].append(value)
        run.stdin.close()
    return model.opt.timestep, found


def main() -> None:
    columns, rows = ["model", "kernels", "step [us]", "ratio", "real-time factor"], []
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            timestep, found = measured(name, Path(folder))
            native = next(iter(found.values()))
            for kernels, times in found.items():
                ratio = median(a / b for a, b in zip(times, native, strict=True))
                real = 1e6 * timestep / median(times)
                rows.append([name, kernels, f"{median(times):.1f}", f"{ratio:.2f}", f"{real:.0f}"])
    publish("frozen-wasm", f"{markdown(columns, rows)}\n\n{origin()}", "--write" in sys.argv[1:])


if __name__ == "__main__":
    main()
