"""The simulation behind the page on planning obeys conservation laws of the simulated cluster."""

import importlib
import math
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORLDS, ROLLOUTS = 8192, 20_000


@pytest.fixture
def planning(monkeypatch):
    """Returns the module benchmarks/planning.py."""
    pytest.importorskip("llvmlite")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("planning")


@pytest.fixture
def costs(planning):
    return planning.Costs(step=5e-6, spread=0.0, send=1e-4, answer=1e-3, rate=2e9, sample=1e-4, chunk=3e-4,
                          inputs=168, outputs=440, result=64)  # fmt: skip


def network(planning, bandwidth=1e9, cores=8):
    return planning.Network(cores=cores, bandwidth=bandwidth, latency=5e-5)


def test_one_node_takes_the_time_of_its_steps(planning, costs):
    found = planning.batch_call(costs, network(planning), 1, WORLDS, planning.Work(100, True, 100))
    assert found == pytest.approx(WORLDS * 100 * 5e-6 / 8)


def test_call_time_is_at_least_compute_and_transfer_time(planning, costs):
    for nodes in (2, 10, 100):
        for work in planning.WORKS:
            found = planning.batch_call(costs, network(planning), nodes, WORLDS, work)
            computed = WORLDS * work.nstep * 5e-6 / 8 / nodes
            there, back = WORLDS * work.nstep * 168 * work.sends / 1e9, WORLDS * work.frames * 440 / 1e9
            assert found >= max(computed, there, back, nodes * 1e-4) * (1.0 - 1e-9)  # full-duplex link
            # and no more than one after the other
            assert found <= computed + there + back + nodes * 1e-4 + 1e-3 + 2 * 5e-5 + 1e-9


def test_local_work_scales_and_transfers_do_not(planning, costs):
    stays, sent = planning.Work(1000, False, 0), planning.Work(1000, True, 1000)

    def speed(work, nodes):
        alone = planning.batch_call(costs, network(planning), 1, WORLDS, work)
        return alone / planning.batch_call(costs, network(planning), nodes, WORLDS, work)

    assert 9.0 < speed(stays, 10) <= 10.0
    assert speed(sent, 10) < 2.0
    assert speed(stays, 1000) < speed(stays, 100)  # sending a thousand calls takes longer than the steps


def test_a_wider_link_is_no_slower(planning, costs):
    for work in planning.WORKS:
        taken = [planning.batch_call(costs, network(planning, b), 10, WORLDS, work) for b in (1e8, 1e9, 1e10, 1e11)]
        assert taken == sorted(taken, reverse=True) and taken[2] == taken[3]  # the object store is the limit


def test_unequal_nodes_wait_for_the_slowest(planning, costs):
    work = planning.Work(1000, False, 0)
    even = planning.batch_call(costs, network(planning), 30, WORLDS, work)
    assert planning.batch_call(replace(costs, spread=0.1), network(planning), 30, WORLDS, work) > 1.05 * even


def test_a_sweep_takes_at_least_its_work_and_its_driver(planning, costs):
    for nodes in (1, 4, 30, 300):
        for nstep in (100, 2000):
            found = planning.whole_sweep(costs, network(planning), nodes, ROLLOUTS, nstep)
            work = ROLLOUTS * (nstep * 5e-6 + 1e-4) / (8 * nodes)
            assert found >= work
            if nodes <= 4:
                assert found < 1.2 * work + 0.01
            assert found >= math.ceil(ROLLOUTS / 1024) * 3e-4


def test_a_sweep_is_no_slower_on_more_nodes_for_long(planning, costs):
    """The number of chunks follows the driver's send rate: ten times the nodes must not halve the speed."""
    taken = [planning.whole_sweep(costs, network(planning), n, ROLLOUTS, 500) for n in (1, 10, 100, 1000)]
    assert taken[0] > 6 * taken[1] and taken[3] < 2 * min(taken)
