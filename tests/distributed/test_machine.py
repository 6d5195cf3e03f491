"""A machine's description of itself, and the comparison of nodes; without Ray."""

import sys

import pytest

import featherlane as fl
from featherlane.distributed import cluster, machine


def test_core_lists_in_linux_format_are_parsed():
    assert machine.core_numbers("0-2,5,8-9\n") == {0, 1, 2, 5, 8, 9}
    assert machine.core_numbers("\n") == set()


def test_allowed_cores_are_grouped_by_numa_node(tmp_path):
    for node, cores in (("node10", "4-5"), ("node2", "2-3"), ("node0", "0-1")):
        (tmp_path / node).mkdir()
        (tmp_path / node / "cpulist").write_text(cores)
    assert machine.numa_cores({0, 2, 3, 4, 9}, tmp_path) == ((0,), (2, 3), (4,), (9,))


def test_without_numa_information_all_cores_are_one_node(tmp_path):
    assert machine.numa_cores({3, 1}, tmp_path) == ((1, 3),)


def test_this_machine_has_cores_and_versions():
    here = machine.this_machine()
    assert sum(map(len, here.cores)) >= 1
    assert here.versions["featherlane"] == fl.__version__
    assert machine.versions() == here.versions


def test_a_node_with_other_versions_is_refused_with_both():
    there = machine.versions() | {"kernels": "0123", "featherlane": "0.0.1"}
    with pytest.raises(fl.InstallationError, match=r"10\.0\.0\.7.*0\.0\.1.*0123"):
        cluster.check_versions("10.0.0.7", there)
    cluster.check_versions("10.0.0.7", machine.versions())


def test_an_older_featherlane_with_missing_fields_is_refused():
    there = {name: version for name, version in machine.versions().items() if name != "kernels"}
    with pytest.raises(fl.InstallationError):
        cluster.check_versions("10.0.0.7", there)


def test_without_ray_one_error_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(fl.InstallationError, match=r"pip install 'featherlane\[distributed\]'"):
        fl.distributed.connect()
