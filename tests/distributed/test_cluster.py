"""A real Ray on this machine: started, connected to, and refused."""

import socket

import pytest

import featherlane as fl
from featherlane.distributed import connect

ray = pytest.importorskip("ray")
SMALL = {"object_store_memory": 100 << 20}


@pytest.fixture
def nobody():
    """A port where somebody listens who is no Ray."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_a_ray_is_started_and_ended():
    with connect(cores=2, options=SMALL) as cluster:
        assert cluster.is_own and cluster.cores == 2
        [node] = cluster.nodes
        assert node.machine.versions == fl.distributed.machine.versions()
        with connect() as again:
            assert not again.is_own
        assert ray.is_initialized()  # what was there stays
        with pytest.raises(fl.ModelError, match=r"this process is in the cluster at"):
            connect("10.0.0.1:6379")
    assert not ray.is_initialized()


@pytest.mark.parametrize("address", ["10.0.0.1", "ray://10.0.0.1:10001", ":1", "a:b", "10.0.0.1:0", ""])
def test_what_is_no_address_is_refused_at_once(address):
    with pytest.raises(fl.ModelError, match="allowed is HOST:PORT"):
        connect(address)


def test_an_address_of_another_type_is_refused():
    with pytest.raises(fl.ModelError, match="got int"):
        connect(6379)


def test_an_address_that_does_not_answer_is_an_error_in_time(nobody):
    with pytest.raises(fl.ModelError, match="no Ray answers") as refused:
        connect(nobody, timeout=3)
    assert "leave the address out" in str(refused.value)
    assert not ray.is_initialized()
