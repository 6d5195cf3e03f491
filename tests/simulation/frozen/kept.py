"""Frozen files of a release in tests/data/frozen, which each later version must step with equal bits.

    python tests/simulation/frozen/kept.py        adds the files of the present version

Members that several files share, such as kernels, are stored once, compressed, under their hashes; worlds.json lists
the members of each file in their order.  Files of a release are never written again.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "data" / "frozen"
TARGETS = ("x86-64-v3", "aarch64", "wasm32")
QUERIES = ("jac", "full_m", "energy", "ray")
NAMES = ("humanoid", "convex pair", "muscle, tendon, sensors")  # in MODELS of test_frozen.py
DATE = (2026, 1, 1, 0, 0, 0)


def index() -> dict[str, dict]:
    """Returns hash and members of each kept file, by `version, model`."""
    path = FOLDER / "worlds.json"
    return json.loads(path.read_text()) if path.exists() else {}


def unpacked(folder: Path, name: str) -> tuple[Path, str]:
    """Writes a kept file into a folder, byte for byte as `freeze` wrote it; returns its path and its hash."""
    entry, path = index()[name], folder / f"{name}.flz".replace(" ", "_").replace(",", "")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for member, digest in entry["members"].items():
            file.writestr(zipfile.ZipInfo(member, DATE), lzma.decompress((FOLDER / f"{digest}.xz").read_bytes()))
        file.comment = entry["comment"].encode()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"], name
    return path, entry["hash"]


def keep(path: Path, name: str, digest: str) -> None:
    """Adds a file of `freeze`."""
    members = {}
    with zipfile.ZipFile(path) as file:
        for member in file.namelist():
            content = file.read(member)
            members[member] = hashlib.sha256(content).hexdigest()[:16]
            (FOLDER / f"{members[member]}.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
        comment = file.comment.decode()
    whole = hashlib.sha256(path.read_bytes()).hexdigest()
    entry = {"hash": digest, "sha256": whole, "comment": comment, "members": members}
    (FOLDER / "worlds.json").write_text(json.dumps(index() | {name: entry}, indent=1) + "\n")


def emulator(folder: Path, source: Path, loader: Path) -> list[str] | None:
    """Returns the command that replays files under QEMU as on AArch64 (replay.c); None if something is missing."""
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    compiler, libraries = shutil.which("aarch64-linux-gnu-gcc"), Path("/usr/aarch64-linux-gnu")
    if not (qemu and compiler and libraries.exists()):
        return None
    program = folder / "replay-aarch64"
    options = ["-std=c99", "-O1", f"-I{loader.parent}", "-o", program]
    subprocess.run([compiler, *options, source, loader, "-ldl"], check=True, timeout=120)
    return [qemu, "-L", str(libraries), str(program)]


def main() -> None:
    """Freezes the models of this version."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from importlib.metadata import version

    import featherlane as fl
    from simulation.frozen.test_frozen import MODELS

    FOLDER.mkdir(exist_ok=True)
    for model in NAMES:
        name, path = f"{version('featherlane')}, {model}", FOLDER / "new.flz"
        if name in index():
            raise SystemExit(f"{name} is kept already; files of a release are never written again")
        keep(path, name, fl.freeze(MODELS[model](), path, targets=TARGETS, width=(1, "batch"), queries=QUERIES))
        path.unlink()


if __name__ == "__main__":
    main()
