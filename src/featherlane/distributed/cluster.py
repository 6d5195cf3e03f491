"""Starts or connects to Ray, and checks that its nodes run the same versions as this process.

Only this module imports Ray, on demand.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from featherlane.distributed.interrupt import Held
from featherlane.distributed.machine import Machine, versions
from featherlane.errors import InstallationError, ModelError
from featherlane.extension import private, required, whole_argument

ADDRESS = "allowed is HOST:PORT of the cluster's head node, or 'auto' for the cluster of this machine"
TIMEOUT = 30.0  # time for a cluster to answer [s]


def ray_module() -> Any:
    """Imports and returns Ray.

    Raises:
        InstallationError: Ray is not installed, or cannot be imported.
    """
    return required("ray", "a distributed run")


class Node(NamedTuple):
    """A node of the cluster.

    Attributes:
        id: Ray's identifier.
        address: network address.
        cores: number of cores that Ray schedules.
        machine: description of the machine.
    """

    id: str
    address: str
    cores: int
    machine: Machine


class Cluster:
    """Holds a connection to Ray, whose nodes have the versions of this process; as a context manager it calls `close`.

    Attributes:
        ray: the module.
        address: address of the head node.
        is_own: whether `connect` started this Ray.
        nodes: nodes at the time of connection.
    """

    def __init__(self, ray: Any, is_own: bool, timeout: float):
        self.ray, self.is_own = ray, is_own
        self.address: str = ray.get_runtime_context().gcs_address
        self.nodes = _nodes(ray, timeout)

    @property
    def cores(self) -> int:
        """Returns the number of cores that Ray schedules on all nodes."""
        return sum(node.cores for node in self.nodes)

    def close(self) -> None:
        """Ends the Ray that `connect` started; an existing cluster keeps running."""
        if self.is_own and self.ray.is_initialized():
            self.ray.shutdown()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Cluster({self.address}, {len(self.nodes)} nodes, {self.cores} cores)"


def connect(
    address: str | None = None,
    *,
    cores: int | None = None,
    timeout: float = TIMEOUT,
    options: Mapping[str, Any] | None = None,
) -> Cluster:
    """Connects to a Ray on this machine, or to a cluster by its address.

    A Ray that is started here listens only on the loopback address; other processes cannot join it.  A first Ctrl-C is
    raised once the connection is complete, and the connection is then closed.  A second Ctrl-C is raised at once.

    Args:
        address: HOST:PORT of the head node of a cluster that includes this machine.  "auto": the cluster that Ray
            finds.  None: the Ray that this process is connected to, or else a Ray that is started here.
        cores: number of cores that a started Ray schedules; None for those that this process may use.
        timeout: longest wait for an answer of a cluster or of one of its nodes [s].
        options: additional arguments of `ray.init`, such as `object_store_memory` or `runtime_env`.

    Returns:
        The `Cluster`, whose nodes have the versions of this process.

    Raises:
        InstallationError: Ray is not installed, or a node lacks Featherlane or has other versions than this process.
        ModelError: the address is invalid or does not answer, this process is in another cluster, or a node does not
            answer.
    """
    if address is not None and not isinstance(address, str):
        raise ModelError(f"address: got {type(address).__name__}, {ADDRESS}")
    check_form(address)
    cluster = None
    try:
        with Held():  # Ray may lose a Ctrl-C while it starts, or crash
            cluster = _connected(address, cores, timeout, options or {})
    except BaseException:
        if cluster is not None:
            cluster.close()
        raise
    return cluster


def _connected(address: str | None, cores: int | None, timeout: float, options: Mapping[str, Any]) -> Cluster:
    """Connects as `connect`; an exception ends a Ray that was started here."""
    ray = ray_module()
    given = {"log_to_driver": True, "logging_level": "WARNING", **options}
    is_own = not ray.is_initialized()
    try:
        if not is_own:
            _check_same(ray, address)
        elif address is None:
            number = {} if cores is None else {"num_cpus": cores}
            _start(ray, {"include_dashboard": False, **number, **given})
        else:
            _check_answers(address, timeout)
            try:
                ray.init(address=address, **given)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise _no_answer(address, str(error)) from None
        return Cluster(ray, is_own, timeout)
    except BaseException:
        if is_own:
            ray.shutdown()
        raise


def _start(ray: Any, options: Mapping[str, Any]) -> None:
    """Starts a Ray on this machine whose processes listen only on the loopback address.

    They listen on all addresses unless that of the node is a loopback address, which Ray selects if it cannot form a
    cluster: by default on macOS and Windows.  On Linux Ray replaces an address that is given as an option.
    """
    constants: Any = private("ray", private("ray", ray, "_private"), "ray_constants")
    before = private("ray", constants, "ENABLE_RAY_CLUSTER")
    constants.ENABLE_RAY_CLUSTER = False
    try:
        # "local": None would connect to a cluster that another user started on this machine
        ray.init(address="local", **options)
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _check_same(ray: Any, address: str | None) -> None:
    """Raises an error if this process is in another cluster than the requested one."""
    here = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", here):
        raise ModelError(
            f"address: got {address!r}, but this process is connected to the cluster at {here}; "
            f"disconnect with ray.shutdown()"
        )


def check_form(address: str | None) -> None:
    """Raises an error for an invalid address."""
    host, _, port = (address or "").rpartition(":")
    if address not in (None, "auto") and not (host and "/" not in address and port.isdigit() and 0 < int(port) < 65536):
        raise ModelError(f"address: got {address!r}, {ADDRESS}")


def check_nodes(nodes: Any) -> None:
    """Checks the argument `nodes` before Ray is imported.

    Raises:
        ModelError: the argument is not a number of workers, an address or a `Cluster`.
    """
    if isinstance(nodes, str):
        check_form(nodes)
    elif isinstance(nodes, int | np.integer) and not isinstance(nodes, bool):
        whole_argument("nodes", nodes, 1)
    elif not isinstance(nodes, Cluster):
        raise ModelError(
            f"nodes: got {type(nodes).__name__}, allowed are None, a number of workers and a "
            f"Cluster; as an address, {ADDRESS}"
        )


def _check_answers(address: str, timeout: float) -> None:
    """Checks that a Ray answers, in a separate process that can be ended, because Ray's functions retry forever."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check"]
    command += [] if address == "auto" else ["--address", address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise _no_answer(address, f"waited {timeout:g} s") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise _no_answer(address, lines[-1] if lines else f"exit status {done.returncode}")


def _no_answer(address: str, why: str) -> ModelError:
    start = (
        "start a cluster with `ray start --head`, and join it from this machine with `ray start --address=HOST:PORT`"
    )
    return ModelError(f"address: no Ray cluster answers at {address!r} ({why}); {start}, or omit the address")


# ---- nodes -----------------------------------------------------------------------------------------------------------
_known: dict[str, Node] = {}  # nodes already checked, by Ray's identifier


def _nodes(ray: Any, timeout: float) -> list[Node]:
    """Returns the cluster's nodes with their descriptions."""
    places = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
    pending = {n["NodeID"]: call_on_node(ray, n["NodeID"], describer()) for n in places if n["NodeID"] not in _known}
    for place in places:
        if place["NodeID"] not in pending:
            continue
        where, ref = place["NodeManagerAddress"], pending[place["NodeID"]]
        try:
            machine = ray.get(ref, timeout=timeout)
        except ray.exceptions.GetTimeoutError:
            raise ModelError(f"node {where}: no answer within {timeout:g} s") from None
        except ray.exceptions.RayError as error:
            raise ModelError(f"node {where}: the check failed: {last_line(error)}") from None
        if isinstance(machine, str):
            raise InstallationError(f"node {where}: Featherlane cannot be imported ({machine}): {PUT_THERE}")
        check_versions(where, machine[3])
        cores = int(place["Resources"]["CPU"])
        _known[place["NodeID"]] = Node(place["NodeID"], where, cores, Machine(*machine))
    if not places:
        raise ModelError("the cluster has no node with a free core")
    return [_known[place["NodeID"]] for place in places]


PUT_THERE = "install the same versions there, or ship them with connect(options={'runtime_env': ...})"


def call_on_node(ray: Any, node: str, function) -> Any:
    """Returns a reference to a function's result on a node, in a process that occupies no core."""
    strategy = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    options = {"num_cpus": 0, "scheduling_strategy": strategy(node_id=node, soft=False), "max_retries": 0}
    return ray.remote(function).options(**options).remote()


def describer():
    """Returns a function that describes its machine; it is pickled by value, because a node may lack Featherlane."""

    def describe():
        try:
            from featherlane.distributed.machine import this_machine

            return tuple(this_machine())
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    return describe


def check_versions(where: str, there: Mapping[str, str]) -> None:
    """Raises an error for a node whose models or results could differ from those here.

    Raises:
        InstallationError: names the differing versions of both sides.
    """
    here = versions()
    wrong = [name for name in here if there.get(name) != here[name]]
    if wrong:
        differing = ", ".join(f"{name} {there.get(name, 'of unknown version')} (here {here[name]})" for name in wrong)
        raise InstallationError(f"node {where}: different versions, {differing}: {PUT_THERE}")


def last_line(error: BaseException) -> str:
    """Returns the error message of an error that contains a traceback of another process."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
