"""When many machines pay: costs measured here, and runs on 1 to 1000 nodes simulated from them; two minutes.

    python benchmarks/planning.py --write --cores 64 --gbit 1 10

Measured: a world's step on one core, what is added for each sample and each chunk of a sweep, a call of a Ray actor,
and how fast arrays go through the object store, each the least of some rounds.  Given: cores of a node, bandwidth and
latency of the network, which one machine cannot measure.  Simulated: one process sends inputs to all nodes, one
after the other over its own link; each node computes; what is recorded comes back over the same link, in the order in
which nodes are done.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane import distributed as fd
from featherlane.distributed.sweeps.chunk import LARGEST as CHUNK
from featherlane.distributed.sweeps.chunk import SECONDS, timed_chunk
from featherlane.distributed.sweeps.plan import make_plan
from featherlane.distributed.sweeps.workers import AHEAD, next_chunk_size

MODEL = "humanoid"
NODES = (1, 2, 4, 10, 30, 100, 300, 1000)
WORLDS, ROLLOUTS = 65_536, 1_000_000
LARGE = 64 << 20  # bytes of an array whose way through the object store is timed
REAL = 8  # bytes
COLUMNS = 8  # of a sweep's table
SHARES = 6  # batches whose times are compared
CALLS = 200  # of an actor, sent one after the other
SETTLED = 300  # steps before it counts: all have fallen


@dataclass(frozen=True)
class Costs:
    """What was measured, in seconds and bytes.

    Attributes:
        step: a world's step on one core.
        spread: standard deviation of that between batches, relative to its mean.
        send: driver's time to send a call.
        answer: from a call that computes nothing to its answer.
        rate: bytes per second through the object store, one way.
        sample: of a sweep, without its steps: sampling, constants, reduction.
        chunk: driver's time for what comes of a chunk.
        inputs, outputs: bytes of a world's step: controls, positions and velocities.
        result: bytes of a sample's row.
    """

    step: float
    spread: float
    send: float
    answer: float
    rate: float
    sample: float
    chunk: float
    inputs: int
    outputs: int
    result: int


@dataclass(frozen=True)
class Network:
    """What is given: cores of a node, bytes per second of the driver's link, seconds one way."""

    cores: int
    bandwidth: float
    latency: float


# ---- measured --------------------------------------------------------------------------------------------------------
def least(run: Callable[[], object], rounds: int) -> float:
    """Seconds of a call where nothing disturbs it: what else the machine does only adds."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def measured(rounds: int) -> Costs:
    """All costs, on this machine."""
    model = fl.bundled(MODEL)
    steps = [step_cost(model, seed, rounds) for seed in range(SHARES)]
    send, answer, rate, chunk = by_ray(rounds)
    return Costs(
        step=float(np.mean(steps)),
        spread=float(np.std(steps) / np.mean(steps)),
        send=send,
        answer=answer,
        rate=rate,
        sample=sample_cost(model, rounds),
        chunk=chunk,
        inputs=REAL * model.nu,
        outputs=REAL * (model.nq + model.nv),
        result=REAL * COLUMNS,
    )


def step_cost(model: fl.Model, seed: int, rounds: int) -> float:
    """A world's step on one core, of worlds that lie on the floor and are moved by different controls."""
    batch, rng = fl.Batch(model, 256, nthread=1), np.random.default_rng(seed)
    batch.ctrl = rng.uniform(-0.5, 0.5, batch.ctrl.shape)
    batch.step(SETTLED)
    return least(lambda: batch.step(10), rounds) / (10 * batch.nworld)


def sample_cost(model: fl.Model, rounds: int) -> float:
    """Returns the cost of a sweep's sample without its steps."""
    parameters, reduce = {"body_mass": fd.uniform(0.8, 1.2, apply="scale")}, {"height": "final qpos[2]"}
    plan, samples = make_plan(model, parameters, 1, reduce, 0, CHUNK), np.arange(CHUNK)
    batch = fl.Batch(model, CHUNK, nthread=1)

    def by_hand():
        batch.reset()
        batch.rollout(1)

    return max(0.0, least(lambda: timed_chunk(plan, samples, 1), rounds + 1) - least(by_hand, rounds + 1)) / CHUNK


def by_ray(rounds: int) -> tuple[float, float, float, float]:
    """Sending a call, its answer, bytes per second, and the driver's time for what comes of a chunk."""
    with fd.connect(cores=2, options={"object_store_memory": 1 << 30}) as cluster:
        ray = cluster.ray

        class Node:
            def take(self, given):
                return len(given)

            def give(self, nbytes):
                return np.ones(nbytes, np.uint8)

        node, small = ray.remote(Node).remote(), np.zeros(64)
        ray.get(node.take.remote(small))

        def sent():
            waiting = [node.take.remote(small) for _ in range(CALLS)]
            taken.append(time.perf_counter() - start)
            ray.get(waiting)

        taken: list[float] = []
        for _ in range(rounds):
            start = time.perf_counter()
            sent()
        whole = least(sent, rounds) / CALLS
        answer = least(lambda: ray.get(node.take.remote(small)), 20 * rounds)
        moved = least(lambda: ray.get(node.give.remote(LARGE)).sum(), rounds)
        return min(taken[:rounds]) / CALLS, answer, LARGE / moved, whole


# ---- simulated -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Work:
    """Calls of a batch.

    Attributes:
        nstep: steps of a call.
        sends: are controls of each step sent, or does a kernel set them where worlds are?
        frames: how many times positions and velocities come back: each step, once, never (they stay, or are reduced).
    """

    nstep: int
    sends: bool
    frames: int

    def __str__(self) -> str:
        sent = "controls sent" if self.sends else "controls by kernel"
        back = {0: "nothing returned", 1: "last step returned"}.get(self.frames, "every step returned")
        return f"{self.nstep} steps per call, {sent}, {back}"


def batch_call(costs: Costs, network: Network, nodes: int, worlds: int, work: Work) -> float:
    """Seconds of a call of a batch whose worlds are spread over so many nodes; one node is this machine itself."""
    rng, share = np.random.default_rng(nodes), worlds / nodes
    compute = share * work.nstep * costs.step / network.cores
    taken = compute * (1.0 + costs.spread * np.abs(rng.standard_normal(nodes)))
    if nodes == 1:
        return float(taken[0])
    link = min(network.bandwidth, costs.rate)
    sending = costs.send + share * work.nstep * costs.inputs * work.sends / link
    arrived = np.arange(1, nodes + 1) * sending + network.latency + costs.answer
    free = 0.0
    for done in np.sort(arrived + taken) + network.latency:
        free = max(free, float(done)) + share * work.frames * costs.outputs / link
    return free


def whole_sweep(costs: Costs, network: Network, nodes: int, rollouts: int, nstep: int) -> float:
    """Seconds of a sweep: chunks go to whichever core is free first; one driver sends them and keeps what comes."""
    rng, link = np.random.default_rng(nodes), min(network.bandwidth, costs.rate)
    one, cores = nstep * costs.step + costs.sample, nodes * network.cores
    free, done = [0.0] * cores, []
    driver, left = 0.0, rollouts
    while left or done:
        if left and len(done) < AHEAD * cores:
            size = min(left, CHUNK, max(1, int(SECONDS / one)), next_chunk_size(left, cores, 1.0 / one))
            left -= size
            driver += costs.send
            start = max(driver + network.latency + costs.answer, heapq.heappop(free))
            end = start + size * one * (1.0 + costs.spread * abs(rng.standard_normal()))
            heapq.heappush(free, end)
            heapq.heappush(done, (end + network.latency, size))
        else:
            ready, size = heapq.heappop(done)
            driver = max(driver, ready) + costs.chunk + size * costs.result / link
    return driver


WORKS = (
    Work(1, True, 1),
    Work(100, True, 100),
    Work(100, False, 100),
    Work(100, False, 1),
    Work(100, False, 0),
    Work(1000, False, 0),
)


# ---- written ---------------------------------------------------------------------------------------------------------
def cost_table(costs: Costs) -> str:
    """What was measured."""
    rows = [
        ["time per world and step, one core", f"{1e6 * costs.step:.2f} us"],
        ["its standard deviation between batches", f"{100 * costs.spread:.1f} %"],
        ["sending a call to a node", f"{1e3 * costs.send:.2f} ms"],
        ["round trip of an empty call", f"{1e3 * costs.answer:.2f} ms"],
        ["throughput of the object store", f"{costs.rate / 1e9:.1f} GB/s"],
        ["overhead per sample of a sweep", f"{1e6 * costs.sample:.0f} us"],
        ["driver time per chunk of a sweep", f"{1e3 * costs.chunk:.2f} ms"],
        ["controls per world and step", f"{costs.inputs} bytes"],
        ["positions and velocities per world", f"{costs.outputs} bytes"],
    ]
    return markdown((MODEL, "measured"), rows)


def speed_table(costs: Costs, networks: list[tuple[str, Network]]) -> str:
    """How many times as fast as one node."""
    rows = []
    for name, network in networks:
        for work in WORKS:
            alone = batch_call(costs, network, 1, WORLDS, work)
            speeds = [alone / batch_call(costs, network, n, WORLDS, work) for n in NODES[1:]]
            rows.append([str(work), name, *map(shown, speeds)])
    for name, network in networks:
        for nstep in (1000, 10_000):
            alone = ROLLOUTS * (nstep * costs.step + costs.sample) / network.cores
            speeds = [alone / whole_sweep(costs, network, n, ROLLOUTS, nstep) for n in NODES[1:]]
            rows.append([f"sweep, {nstep:,} steps per rollout", name, *map(shown, speeds)])
    return markdown(("work", "network", *(f"{n} nodes" for n in NODES[1:])), rows)


def shown(speed: float) -> str:
    """A ratio in three digits."""
    return f"{speed:.2f}" if speed < 10 else f"{speed:.1f}" if speed < 100 else f"{speed:.0f}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="turns of each measurement")
    parser.add_argument("--cores", type=int, default=64, help="of a node")
    parser.add_argument("--gbit", type=float, nargs="+", default=[1.0, 10.0], help="of the driver's link")
    parser.add_argument("--latency", type=float, default=50e-6, help="one way [s]")
    asked = parser.parse_args()
    costs = measured(asked.rounds)
    networks = [(f"{g:g} Gbit/s", Network(asked.cores, g * 1e9 / 8, asked.latency)) for g in asked.gbit]
    given = f"Each node has {asked.cores} cores, and the latency is {1e6 * asked.latency:g} us:"
    work = f"Calls have {WORLDS:,} worlds, and sweeps have {ROLLOUTS:,} rollouts."
    head = f"The next table has the speed-up relative to one node without transfers. {work} {given}"
    tables = f"{cost_table(costs)}\n\n{head}\n\n{speed_table(costs, networks)}"
    publish("planning", f"{tables}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
