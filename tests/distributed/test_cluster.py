"""A real Ray on this machine: start, connection, and errors."""

import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest

import featherlane as fl
from featherlane.distributed import cluster as cluster_module
from featherlane.distributed import connect
from featherlane.distributed.cluster import _check_answers
from featherlane.distributed.machine import versions

LISTENING = "0A"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}  # 127.0.0.1 twice, ::1


def processes(pid):
    """Returns remaining folders of a process and its descendants."""
    parents = {
        file.parent: int(file.read_text().rpartition(")")[2].split()[1]) for file in Path("/proc").glob("[0-9]*/stat")
    }
    found = [Path(f"/proc/{pid}")]
    for folder in found:
        found += [child for child, parent in parents.items() if str(parent) == folder.name]
    return found


@pytest.fixture
def nobody():
    """Returns a port with a listener other than Ray."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_ray_is_started_once_and_nodes_have_the_same_versions(cluster):
    assert cluster.is_own and cluster.cores == 6
    [node] = cluster.nodes
    assert node.machine.versions == versions()
    with connect() as again:
        assert not again.is_own
    assert cluster.ray.is_initialized()  # previous contents stay
    assert not connect(cluster.address).is_own
    with pytest.raises(fl.ModelError, match="this process"):
        connect("10.0.0.1:6379")


@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="Linux lists open ports there")
def test_a_started_ray_listens_on_loopback_only(cluster):
    assert cluster.address.startswith("127.0.0.1:")
    sockets = {os.readlink(file) for own in processes(os.getpid()) for file in own.glob("fd/*") if file.is_symlink()}
    rows = [row.split() for file in ("tcp", "tcp6") for row in Path(f"/proc/net/{file}").read_text().splitlines()[1:]]
    found = [row[1].split(":")[0] for row in rows if row[3] == LISTENING and f"socket:[{row[9]}]" in sockets]
    assert len(found) >= 5 and set(found) <= LOOPBACK


@pytest.mark.parametrize("address", ["10.0.0.1", "ray://10.0.0.1:10001", ":1", "a:b", "10.0.0.1:0", ""])
def test_an_invalid_address_is_refused_immediately(address):
    with pytest.raises(fl.ModelError, match="HOST:PORT"):
        connect(address)


def test_an_address_of_another_type_is_refused():
    with pytest.raises(fl.ModelError):
        connect(6379)


@pytest.mark.ci
def test_an_unreachable_address_raises_within_the_timeout(nobody):
    pytest.importorskip("ray")
    with pytest.raises(fl.ModelError, match="no Ray cluster answers") as refused:
        _check_answers(nobody, 3)
    assert "omit the address" in str(refused.value)


def test_a_ctrl_c_is_not_lost_while_ray_starts(monkeypatch):
    """Ray may swallow the exception; the interrupt follows at the end of the connection, and closes it."""
    closed = []

    class Started:
        def close(self):
            closed.append(self)

    def start(*given):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return Started()

    monkeypatch.setattr(cluster_module, "_connected", start)
    with pytest.raises(KeyboardInterrupt):
        connect()
    assert len(closed) == 1
