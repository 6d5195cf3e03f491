"""Frozen worlds in WebAssembly: Node.js computes the bits of `fl.step`, with each multiply-add; files are checked."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import gzip
import hashlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import cache, processor
from featherlane.engine.lanes.runtime import KernelError
from featherlane.engine.simulation.frozen import wasm
from featherlane.engine.simulation.step.forward import forward_pass, steps
from featherlane.engine.simulation.tile.library import library
from simulation.frozen import kept

_spec = importlib.util.spec_from_file_location("models_of_frozen", Path(__file__).with_name("test_frozen.py"))
assert _spec and _spec.loader
_models = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_models)
MODELS = _models.MODELS

NODE = shutil.which("node")
LOADER = Path(wasm.__file__).with_name("featherlane.js")
REPLAY = Path(__file__).with_name("replay.mjs")
FORM = ("f64", 1)
CASES = 100_000  # of fused multiply-adds, of each kind
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(processor.host()[0] != "linux", reason="freeze runs on Linux"),
    pytest.mark.skipif(NODE is None, reason="needs node"),
]


@functools.cache
def flags() -> list[str]:
    """Returns the options of this node for relaxed SIMD, which is behind a flag before V8 11.4."""
    flag = "--experimental-wasm-relaxed-simd"
    done = subprocess.run([NODE or "", flag, "-e", ""], capture_output=True, check=False, timeout=60)
    return [flag] if done.returncode == 0 else []


def run(*wanted: dict, more: tuple[str, ...] = (), loader: Path = LOADER) -> list[dict]:
    """Opens files in node; returns the answers of replay.mjs."""
    text = "".join(json.dumps(each) + "\n" for each in wanted)
    command = [NODE or "", *flags(), *more, REPLAY, loader]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=600)
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Freezes a model of the list once: name -> (model, path, hash)."""
    folder, found = tmp_path_factory.mktemp("wasm"), {}

    def frozen(name):
        if name not in found:
            model, path = MODELS[name](), folder / f"{len(found)}.flz"
            found[name] = model, path, fl.freeze(model, path, targets=["wasm32"])
        return found[name]

    return frozen


# ---- bits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_node_has_the_bits_of_the_self_test(name, files):
    """With relaxed SIMD, if its multiply-add is exact here, and with the emulated one."""
    _, path, digest = files(name)
    for found in run({"path": str(path)}, {"path": str(path), "options": {"relaxed": False, "trust": digest}}):
        assert found["hash"] == found["expected"], found["target"]
        assert found["again"] == found["start"]


@pytest.mark.parametrize("name", kept.index())
def test_node_has_the_bits_of_kept_files(name, tmp_path):
    """With the loader of today, and with the one that the file has."""
    path, digest = kept.unpacked(tmp_path, name)
    loader = tmp_path / "featherlane.mjs"
    with zipfile.ZipFile(path) as file:
        loader.write_bytes(file.read("js/featherlane.js"))
    asked = {"path": str(path)}, {"path": str(path), "options": {"relaxed": False, "trust": digest}}
    for found in [*run(*asked), *run(*asked, loader=loader)]:
        assert found["hash"] == found["expected"], found["target"]


@pytest.mark.parametrize("name", ["humanoid", "muscle, tendon, sensors", "boxes"])
def test_fields_and_contacts_are_those_of_a_data(name, files, rng):
    model, path, _ = files(name)
    data = fl.Data(model)
    data.step(7)
    state, ctrl = data.get_state(), rng.uniform(-1, 1, (3, model.nu))
    fields = ["time", "qpos", "qvel", "xpos", "xmat", "sensordata", "ncon", "nreset", "solver_niter"]
    request = {"path": str(path), "state": state.tolist(), "ctrl": ctrl.tolist(), "steps": 40, "fields": fields}
    (found,) = run(request | {"constants": ["body_mass", "geom_type"]})
    for row in ctrl:
        data.ctrl = row
        data.step(40)
    data.forward()
    assert found["end"] == data.get_state().tobytes().hex() and found["found"] == 0
    for field in fields:
        ours = found["fields"][field]
        theirs = data.workspace.view(field)
        assert ours["content"] == theirs.tobytes().hex(), field
        assert np.prod(ours["shape"]) == theirs.size
    assert found["fields"]["qpos"]["writable"] and not found["fields"]["xpos"]["writable"]
    assert found["fields"]["xpos"]["unit"] == "m"
    assert found["constants"]["body_mass"] == model.body_mass.tolist()
    assert found["sizes"] == [model.nq, model.nv, model.nbody, -1] and found["names"]["body"] == model.names("body")
    assert len(found["contacts"]) == data.ncon > 0
    for k, contact in enumerate(found["contacts"]):
        for column in ("dist", "pos", "frame", "includemargin", "friction", "dim", "geom"):
            np.testing.assert_array_equal(np.ravel(contact[column]), np.ravel(data.contact[column][k]), err_msg=column)
        np.testing.assert_array_equal(contact["force"], fl.query.contact_force(model, data, k))


def test_a_file_has_kernels_of_several_targets(tmp_path):
    """Python opens the file with the kernels of this machine, node with those of WebAssembly."""
    model, path = fl.bundled("arm"), tmp_path / "arm.flz"
    digest = fl.freeze(model, path, targets=["wasm32", processor.cpu_level()])
    assert fl.thaw(path, trust=digest).self_test()
    (found,) = run({"path": str(path)})
    assert found["hash"] == found["expected"]
    with zipfile.ZipFile(path) as file:
        assert file.read("js/featherlane.js") == LOADER.read_bytes()
    with pytest.raises(fl.ModelError, match="has no kernels for this processor"):
        fl.freeze(model, path, targets=["wasm32"])
        fl.thaw(path)


# ---- multiply-add ----------------------------------------------------------------------------------------------------
PROGRAM = """
import fs from "node:fs";
const numbers = new Float64Array(fs.readFileSync(process.argv[2]).buffer), out = new Float64Array(numbers.length / 3);
const env = { __linear_memory: new WebAssembly.Memory({ initial: 32 }),
  __stack_pointer: new WebAssembly.Global({ value: "i32", mutable: true }, 1 << 20),
  __indirect_function_table: new WebAssembly.Table({ initial: 1, element: "anyfunc" }) };
const { fl_fma } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(process.argv[3])), { env }).exports;
for (let k = 0; k < out.length; k++) out[k] = fl_fma(numbers[3 * k], numbers[3 * k + 1], numbers[3 * k + 2]);
fs.writeFileSync(process.argv[4], new Uint8Array(out.buffer));
"""
SPECIAL = [0.0, 1.0, 1 + 2**-52, 1 - 2**-53, np.inf, np.nan, 5e-324, 3 * 5e-324, 2.0**-1022, 2.0**-1022 - 5e-324]
SPECIAL += [1.7976931348623157e308, 2.0**-537, 2.0**-538, 2.0**1000]


def products(rng: np.random.Generator) -> np.ndarray:
    """Returns operands (n, 3): of all bits, of sums that cancel, of subnormal results, and of special values."""

    def fraction():  # up to 53 bits, often few
        bits = rng.integers(1 << 52, 1 << 53, CASES) & ~((1 << rng.integers(0, 53, CASES)) - 1)
        return bits * rng.choice([-1.0, 1.0], CASES) * 2.0**-52

    with np.errstate(all="ignore"):
        every = rng.integers(0, 1 << 64, (CASES, 3), dtype=np.uint64).view(np.float64)
        x, y = (np.ldexp(fraction(), rng.integers(-600, 500, CASES)) for _ in range(2))
        cancel = np.stack([x, y, -(x * y) * (1 + rng.integers(-3, 4, CASES) * 2.0 ** -rng.integers(30, 54, CASES))], 1)
        e, total = rng.integers(-1070, 900, CASES), rng.integers(-1080, -1015, CASES)
        small = np.stack([np.ldexp(fraction(), e), np.ldexp(fraction(), total - e)], 1)
        small = np.column_stack([small, np.ldexp(fraction(), rng.integers(-1076, -1010, CASES))])
        special = rng.choice(SPECIAL, (CASES, 3)) * rng.choice([-1.0, 1.0], (CASES, 3))
        special[::2, 1] = np.ldexp(special[::2, 1], rng.integers(-60, 60, len(special[::2])))
    return np.concatenate([every, cancel, small, special])


@pytest.mark.parametrize("kind", ["exact", "relaxed"])
def test_the_multiply_add_has_one_rounding(kind, tmp_path, rng):
    """It equals libm's, bit for bit, also for subnormal results, and for a product that underflows plus zero."""
    numbers = np.ascontiguousarray(products(rng))
    numbers[0] = float.fromhex("-0x1.0ep-882"), float.fromhex("0x1.0b8ab85ce6541p-493"), 0.0  # -0
    fma = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6").fma
    fma.restype, fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    expected = np.array([fma(*row) for row in numbers.tolist()])
    names = [tmp_path / name for name in ("run.mjs", "numbers", "module.wasm", "out")]
    names[0].write_text(PROGRAM)
    names[1].write_bytes(numbers.tobytes())
    names[2].write_bytes(gzip.decompress(wasm.modules(library(), (steps, forward_pass), FORM)[kind]))
    done = subprocess.run([NODE or "", *flags(), *names], capture_output=True, text=True, check=False, timeout=300)
    if kind == "relaxed" and "CompileError" in done.stderr:
        pytest.skip("this node has no relaxed SIMD")
    assert not done.returncode, done.stderr
    found = np.frombuffer(names[3].read_bytes())
    a = 1 + 2.0**-27
    if kind == "relaxed" and fma(a, a, -1 - 2.0**-26) != 2.0**-54:
        pytest.skip("this processor has no fused multiply-add")
    same = (found.view(np.int64) == expected.view(np.int64)) | (np.isnan(found) & np.isnan(expected))
    assert same.all(), numbers[~same][:5]
    assert found[0] == 0.0 and np.signbit(found[0])


def test_a_processor_that_rounds_twice_gets_the_emulated_multiply_add(files):
    """V8 without FMA instructions computes relaxed SIMD by a product and a sum; the loader measures that."""
    _, path, _ = files("pendulum")
    first, second = run(
        {"path": str(path)}, {"path": str(path), "options": {"relaxed": True}}, more=("--no-enable-fma3",)
    )
    assert first["target"] == "wasm32-exact" and first["hash"] == first["expected"]
    assert "error" in second


# ---- files that do not fit -------------------------------------------------------------------------------------------
def changed(path: Path, out: Path, manifest=lambda m: None, members=lambda m: None, method=zipfile.ZIP_STORED) -> Path:
    """Writes a file with another manifest, whose hash is right, or with other members."""
    with zipfile.ZipFile(path) as file:
        content = {name: file.read(name) for name in file.namelist()}
    given = json.loads(content.pop("manifest.json"))
    manifest(given)
    members(content)
    text = json.dumps(given, separators=(",", ":")).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, each in {"manifest.json": text, **content}.items():
            file.writestr(name, each)
        file.comment = (
            f"featherlane frozen world, SHA-256 of manifest.json: {hashlib.sha256(text).hexdigest()}".encode()
        )
    out.write_bytes(buffer.getvalue())
    return out


def test_files_that_do_not_fit_are_refused(files, tmp_path):
    _, path, digest = files("pendulum")

    def array(m):
        return next(f for f in m["records"]["data"]["fields"] if f["name"] == "qpos")

    def kernel(m):
        return next(name for name in m if name.endswith("exact.wasm.gz"))

    cases = {
        "format 2": {"manifest": lambda m: m.update(format=2)},
        "data.bin has another hash": {"members": lambda m: m.update({"data.bin": m["data.bin"] + b"x"})},
        "the member model.bin is missing": {"members": lambda m: m.pop("model.bin")},
        "exact.wasm.gz has another hash": {"members": lambda m: m.update({kernel(m): b"x"})},
        "other record layouts": {"manifest": lambda m: m.update(layout="0123456789abcdef")},
        "has no kernels for wasm32": {"manifest": lambda m: m.update(targets=[])},
        "the field qpos does not fit": {"manifest": lambda m: array(m).update(offset=1 << 40)},
        "a record has no size": {"manifest": lambda m: m["records"]["data"].update(bytes=-64)},
    }
    wanted = [changed(path, tmp_path / f"{k}.flz", **change) for k, change in enumerate(cases.values())]
    (tmp_path / "cut.flz").write_bytes(path.read_bytes()[:-1])
    (tmp_path / "empty.flz").write_bytes(b"")
    found = run(*({"path": str(p), "options": {"relaxed": False}} for p in [*wanted, tmp_path / "cut.flz"]))
    for text, answer in zip([*cases, "its zip has another"], found, strict=True):
        assert text in answer.get("error", "opened"), (text, answer.get("error"))
    assert all(answer["kind"] == "FrozenError" for answer in found)
    trusted, empty = run({"path": str(path), "options": {"trust": 64 * "0"}}, {"path": str(tmp_path / "empty.flz")})
    assert trusted["error"] == f"its hash is {digest}, trusted is {64 * '0'}" and "another end" in empty["error"]


def test_a_compressed_file_is_read(files, tmp_path):
    """A site compresses files; hashes are those of the contents."""
    _, path, digest = files("arm")
    small = changed(path, tmp_path / "small.flz", method=zipfile.ZIP_DEFLATED)
    assert small.stat().st_size < path.stat().st_size
    (found,) = run({"path": str(small), "options": {"trust": digest}})
    assert found["hash"] == found["expected"]


# ---- the module ------------------------------------------------------------------------------------------------------
def test_a_module_calls_no_function_of_another():
    text = """declare double @sin(double)
declare double @llvm.copysign.f64(double, double)
define double @f(double %x) {
  %r = call double @sin(double %x)
  ret double %r
}
"""
    with pytest.raises(KernelError, match="calls a function of another module"):
        wasm.linked(wasm._compiled(text, "exact"), {})
    module = wasm.linked(
        wasm._compiled("declare double @llvm.copysign.f64(double, double)\n", "exact"), {"layout": "x"}
    )
    assert module.startswith(b"\0asm") and b'{"layout": "x"}' in module


def test_modules_are_the_same_each_time():
    first, second = (wasm.modules(library(), (steps, forward_pass), FORM) for _ in range(2))
    assert first == second and list(first) == ["relaxed", "exact"]


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setattr(cache, "read_object", lambda name: None)
    monkeypatch.setitem(sys.modules, "featherlane.engine.lanes.toolchain", None)
    monkeypatch.delattr(sys.modules["featherlane.engine.lanes"], "toolchain", raising=False)
    with pytest.raises(KernelError, match=r"wasm32 have to be compiled.*featherlane\[jit\]"):
        wasm.modules(library(), (steps, forward_pass), FORM)
