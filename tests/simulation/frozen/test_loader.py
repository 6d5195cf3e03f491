"""The C loader: real-time calls, standard C and C++, and mutated files, which it refuses without a crash."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import link, processor
from featherlane.engine.simulation.frozen.loader import SOURCE

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(processor.host()[0] != "linux", reason="frozen worlds run on Linux"),
    pytest.mark.skipif(bool(link.linking_problem()), reason="needs a C compiler"),
]
STRICT = "-std=c99 -Wall -Wextra -Wconversion -Wpedantic -Werror -O1".split()
SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=all -g -O1".split()
COMMENT = "featherlane frozen world, SHA-256 of manifest.json: "
MUTANTS = int(os.environ.get("FEATHERLANE_FUZZ", "") or 150)
VALUES = (
    0,
    1,
    -1,
    3,
    63,
    64,
    1 << 20,
    (1 << 39) + 64,
    (1 << 63) - 1,
    1 << 64,
    -(1 << 63),
    0.5,
    True,
    None,
    "",
    "qpos",
    [],
    {},
)


def built(program: Path, out: Path, *options: str) -> Path:
    """Compiles a program with the loader."""
    command = [*link.compiler(), *options, f"-I{SOURCE.parent}", "-o", out, program, SOURCE, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert not done.returncode, done.stderr
    return out


@pytest.fixture(scope="module")
def humanoid(tmp_path_factory):
    model, path = fl.bundled("humanoid"), tmp_path_factory.mktemp("frozen") / "humanoid.flz"
    fl.freeze(model, path)
    return model, path


# ---- real time -------------------------------------------------------------------------------------------------------
def test_calls_allocate_nothing_and_need_no_system_call(humanoid, tmp_path):
    """The kernel ends a process in seccomp's strict mode at any other system call than read, write and exit."""
    wrap = "-Wl,--wrap=malloc,--wrap=calloc"
    program = built(HERE / "seal.c", tmp_path / "seal", "-O1", wrap)
    model, path = humanoid
    done = subprocess.run([program, path], capture_output=True, check=False, timeout=120)
    if done.returncode == 77:
        pytest.skip("the system has no seccomp")
    assert done.returncode == 0
    data = fl.Data(model)
    for k in range(500):
        data.ctrl = 0.001 * (k % 100) - 0.05 * (np.arange(model.nu) % 3)
        data.step()
    assert done.stdout[:-8] == data.get_state().tobytes()
    data.forward()
    assert int.from_bytes(done.stdout[-8:], "little") == data.ncon > 0


def test_the_example_reports_percentiles(humanoid, tmp_path):
    program = built(ROOT / "examples" / "realtime.c", tmp_path / "realtime", *STRICT)
    done = subprocess.run([program, humanoid[1], "0.05"], capture_output=True, text=True, check=True, timeout=60)
    first, *rows = done.stdout.splitlines()
    assert "10 steps of 5.000 ms" in first and [row.split()[0] for row in rows] == "50.0 90.0 99.0 99.9 100.0".split()
    done = subprocess.run([program, "no.flz"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, "no.flz: cannot be read\n")


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_the_header_is_valid_in_cpp(tmp_path):
    source = '#include "featherlane.h"\nint main() { return fl_open(nullptr, nullptr, nullptr, 0) != nullptr; }\n'
    (tmp_path / "main.cpp").write_text(source)
    options = "-Wall -Wextra -Werror -std=c++11 -c".split()
    subprocess.run(
        ["g++", *options, f"-I{SOURCE.parent}", "-o", tmp_path / "main.o", tmp_path / "main.cpp"], check=True
    )


# ---- mutated files ---------------------------------------------------------------------------------------------------
def packed(manifest: bytes, members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in {"manifest.json": manifest, **members}.items():
            file.writestr(name, content)
        file.comment = (COMMENT + hashlib.sha256(manifest).hexdigest()).encode()
    return out.getvalue()


def text_of(manifest: dict) -> bytes:
    return json.dumps(manifest, separators=(",", ":")).encode()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The manifest and members of a frozen pendulum whose kernels are an empty library: mutants are written quickly."""
    folder = tmp_path_factory.mktemp("small")
    options = {"width": (1, "batch"), "outputs": ("xpos",), "queries": ("jac", "full_m", "energy")}
    fl.freeze(fl.bundled("pendulum"), folder / "world.flz", **options)
    with zipfile.ZipFile(folder / "world.flz") as file:
        members = {name: file.read(name) for name in file.namelist() if not name.startswith("c/")}
    manifest = json.loads(members.pop("manifest.json"))
    (target,) = manifest["targets"]
    source = f'const char featherlane_layout[] = "{manifest["layout"]}";\n'
    names = {*manifest["symbols"].values(), manifest["batch"]["symbol"]}
    names |= {query["symbol"] for query in manifest["queries"].values()}
    source += "".join(f"int {name}(void) {{ return 0; }}\n" for name in sorted(names))
    command = [*link.compiler(), "-shared", "-fPIC", "-s", "-o", folder / "empty.so", "-x", "c", "-"]
    subprocess.run(command, input=source.encode(), check=True, timeout=60)
    members[target["file"]] = (folder / "empty.so").read_bytes()
    manifest["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    return manifest, members


@pytest.fixture(scope="module")
def openings(tmp_path_factory):
    """Opens files in the sanitized program; returns (opened, error) of each."""
    program = built(HERE / "openings.c", tmp_path_factory.mktemp("program") / "openings", "-std=c99", *SANITIZED)

    def run(paths):
        # a size that does not fit into memory is an error of the loader, not of the sanitizer
        env = os.environ | {"ASAN_OPTIONS": "allocator_may_return_null=1:max_allocation_size_mb=4096"}
        text = "".join(f"{path}\n" for path in paths)
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=False, timeout=900, env=env)
        assert not done.returncode, (len(done.stdout.splitlines()), done.stderr[-3000:])
        return [line.partition(" ")[::2] for line in done.stdout.splitlines()]

    return run


def places(node, at=()):
    """Yields the paths of all values of a JSON document."""
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield (*at, key)
        yield from places(node[key], (*at, key))


def test_two_open_files_have_separate_kernels(small, humanoid, tmp_path):
    """The system returns an open library for a second one of the same name, even if it is another file."""
    (tmp_path / "empty.flz").write_bytes(packed(text_of(small[0]), small[1]))
    full, empty = fl.thaw(humanoid[1]), fl.thaw(tmp_path / "empty.flz")
    full.step()
    empty.step()  # its kernels do nothing
    assert full.time > 0.0 and empty.time == 0.0
    assert full.self_test() and not empty.self_test()


def test_files_that_do_not_fit_are_refused(small, openings, tmp_path):
    manifest, members = small
    data = manifest["records"]["data"]

    def edited(change) -> bytes:
        other = json.loads(text_of(manifest))
        change(other)
        return packed(text_of(other), members)

    def array(m, name):
        return next(f for f in m["records"]["data"]["fields"] if f["name"] == name)

    other_member = members | {"data.bin": members["data.bin"] + b"x"}
    cases = {
        "has format 2, this loader reads 1": edited(lambda m: m.update(format=2)),
        "a member has another hash": packed(text_of(manifest), other_member),
        "has no kernels for this processor": edited(lambda m: m["targets"][0].update(architecture="sparc")),
        "other record layouts": edited(lambda m: m.update(layout="0123456789abcdef")),
        "a field is not behind the others": edited(lambda m: array(m, "qvel").update(offset=0)),
        "fields do not fit": edited(lambda m: m["records"]["data"].update(bytes=data["bytes"] - 64)),
        "fewer rows than its shape": edited(lambda m: array(m, "qpos").update(shape=[1000])),
        "manifest.json has no valid entry state": edited(lambda m: m.pop("state")),
        "an image has another length": edited(lambda m: m["records"]["data"].update(image="controls.bin")),
        "a pointer is outside of its field": edited(lambda m: m.update(pointers=[[0, 0]])),
        "a part": edited(lambda m: m["state"]["parts"].append(3)),
        "has no valid entry kernels/none": edited(lambda m: m["targets"][0].update(file="kernels/none")),
        "another end": packed(text_of(manifest), members)[:-1],
        "another comment": packed(text_of(manifest), members).replace(COMMENT[:5].encode(), b"FEATH"),
        "the hash of manifest.json": packed(text_of(manifest), members).replace(b'"unit":"m"', b'"unit":"k"', 1),
        "a query has other numbers": edited(lambda m: m["queries"]["jac"].update(numbers=[0])),
        "its kernels lack a function": edited(lambda m: m["queries"]["jac"].update(symbol="fl_none")),
        "controls do not fit": edited(lambda m: m["self_test"].update(blocks=11)),
        "too deep": packed(b"[" * 100, members),
        "a number": edited(lambda m: m["records"]["model"].update(bytes=-1)),
        "cannot be read": b"",
    }
    paths = [tmp_path / "fits.flz", *(tmp_path / f"{k}.flz" for k in range(len(cases)))]
    for path, content in zip(paths, [packed(text_of(manifest), members), *cases.values()], strict=True):
        path.write_bytes(content)
    (first, *found) = openings(paths)
    assert first == ("1", "")
    for (opened, error), wanted in zip(found, cases, strict=True):
        assert opened == "0" and wanted in error, (wanted, error)
    with pytest.raises(fl.ModelError, match=r"0\.flz: has format 2"):
        fl.thaw(paths[1])


def test_batches_that_do_not_fit_are_refused(small, tmp_path):
    manifest, members = small

    def tile(m, name):
        return next(f for f in m["batch"]["data"]["fields"] if f["name"] == name)

    cases = {
        "no field qpoz of the right type": lambda m: m["batch"]["load"].append("qpoz"),
        "a transfer does not fit into the tile": lambda m: tile(m, "qpos").update(kind="scalar"),
        "no field order of transfers": lambda m: m["batch"]["transfers"].remove("order"),
        "its kernels lack a function": lambda m: m["batch"].update(symbol="fl_none"),
        "a number is out of range": lambda m: m["batch"].update(width=0),
        "has no batch": lambda m: m["batch"].clear(),
    }
    path = tmp_path / "world.flz"
    path.write_bytes(packed(text_of(manifest), members))
    assert fl.thaw(path, nworld=11).nworld == 11
    for wanted, change in cases.items():
        other = json.loads(text_of(manifest))
        change(other)
        path.write_bytes(packed(text_of(other), members))
        with pytest.raises(fl.ModelError, match=wanted):
            fl.thaw(path, nworld=11)


def test_mutated_files_are_refused_or_fit(small, openings, tmp_path, rng):
    """Half of the mutants have a changed manifest with its right hash, half have changed bytes."""
    manifest, members = small
    whole, every, paths = packed(text_of(manifest), members), list(places(manifest)), []
    for k in range(MUTANTS):
        if k % 2:
            other = json.loads(text_of(manifest))
            # each second value is not of a field: there are a thousand fields
            chosen = [p for p in every if (p[0] in ("records", "batch") and len(p) > 3) == bool(k % 4 == 1)]
            *before, key = chosen[rng.integers(len(chosen))]
            inner = other
            for step in before:
                inner = inner[step]
            if rng.integers(4) == 0:
                del inner[key]
            else:
                inner[key] = VALUES[rng.integers(len(VALUES))]
            content = packed(text_of(other), members)
        else:
            bytes_ = np.frombuffer(whole, np.uint8).copy()
            at = rng.integers(len(bytes_), size=rng.integers(1, 4)) if k % 3 else len(bytes_) - rng.integers(1, 900, 2)
            bytes_[at] = rng.integers(0, 256, len(at))
            content = bytes_.tobytes()[: len(bytes_) - (rng.integers(len(bytes_)) if k % 10 == 0 else 0)]
        paths.append(tmp_path / f"{k}.flz")
        paths[-1].write_bytes(content)
    found = openings(paths)
    assert len(found) == MUTANTS
    refused = sum(opened == "0" for opened, _ in found)
    assert refused > 0.6 * MUTANTS  # the others changed texts, dates of members or numbers within their limits
