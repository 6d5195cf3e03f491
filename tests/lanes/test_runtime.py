"""Execution of a stage: modes, prebuilt objects, with and without a compiler, stages that call stages."""

import ctypes
import gc
import shutil
import sys
import weakref

import numpy as np
import pytest

from featherlane.engine.lanes import (
    Field,
    KernelError,
    Layout,
    Record,
    allocate,
    call,
    kernel,
    processor,
    runtime,
    stage,
)
from featherlane.engine.lanes.layout import layout_hash
from featherlane.engine.lanes.link import link
from featherlane.errors import ArgumentError
from scenes.cells import FORMS, cells, library


@kernel
def plus(x, y):
    return x + y


@stage
def leaf(d):
    for i in range(d.n):
        d.x[i] = plus(d.x[i], 1.0)


@stage
def branch(d, times):
    for _ in range(times):
        leaf(d)


@stage
def root(m, d, times):
    branch(d, times)
    leaf(d)
    for i in range(d.n):
        d.y[i] = m.x[i] * d.x[i]


def records(dtype="float64", w=8):
    m, d = cells(dtype, w, 2), cells(dtype, w, 2)
    m.arrays["x"][:] = 3
    return m, d


@pytest.fixture
def mode(monkeypatch):
    return lambda name: monkeypatch.setenv("FEATHERLANE_MODE", name)


# ---- modes -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("chosen", ["auto", "jit", "checked", "python"])
@pytest.mark.parametrize("dtype, w", FORMS)
def test_a_stage_calls_stages_in_every_mode(mode, chosen, dtype, w):
    mode(chosen)
    m, d = records(dtype, w)
    run = library().bind(root, m, d)
    run(4)
    assert np.all(d.arrays["x"] == 5) and np.all(d.arrays["y"] == 15)
    run(0)
    assert np.all(d.arrays["x"] == 6) and np.all(d.arrays["y"] == 18)


@pytest.mark.parametrize("chosen", ["auto", "checked", "python"])
def test_integer_arguments_may_be_bound(mode, chosen):
    mode(chosen)
    m, d = records()
    run = library().bind(root, m, d, numbers=(4,))
    run(), run()
    assert np.all(d.arrays["x"] == 10)
    library().bind(branch, d, numbers=(0,))()
    library().bind(branch, d, numbers=(-(2**40),))()  # as a 64-bit number
    assert np.all(d.arrays["x"] == 10)


def test_an_unknown_mode_is_an_error(mode):
    mode("fast")
    with pytest.raises(ArgumentError):
        library().bind(leaf, cells("float64", 8, 2))


def test_an_empty_mode_means_the_default(mode):
    mode("")
    assert runtime.mode() == "auto"


def test_compiled_and_uncompiled_forms_of_a_stage_coexist(mode):
    stages, (m, d) = library(), records()
    for chosen, times in (("jit", 1), ("checked", 2), ("python", 3), ("jit", 4)):
        mode(chosen)
        stages.bind(root, m, d)(times)
    assert np.all(d.arrays["x"] == 1 + 2 + 3 + 4 + 4)


def test_the_configuration_lists_the_settings_in_use(mode):
    for chosen, form in (("python", "uncompiled"), ("jit", "just in time"), ("checked", "just in time")):
        mode(chosen)
        found = library().configuration()
        assert found["kernels"].startswith(form) and found["mode"] == chosen
        assert found["cpu"] == processor.cpu_level() and found["widths"].startswith("float64 ")


# ---- CPU levels and widths ---------------------------------------------------------------------------------------
def test_an_unknown_cpu_level_is_an_error(monkeypatch):
    monkeypatch.setenv("FEATHERLANE_CPU", "pentium")
    with pytest.raises(ValueError, match=r"FEATHERLANE_CPU: got 'pentium', allowed on this machine are .*native"):
        processor.cpu_level()


def test_a_cpu_level_that_the_machine_lacks_is_an_error(monkeypatch):
    monkeypatch.setattr(processor, "_flags", frozenset)
    monkeypatch.setenv("FEATHERLANE_CPU", "x86-64-v3")
    with pytest.raises(ArgumentError):
        processor.cpu_level()


@pytest.mark.parametrize(
    "flags, level",
    [
        (processor.V4, "x86-64-v4"),
        (processor.V3, "x86-64-v3"),
        (processor.V4 - {"fma"}, "x86-64"),
        (processor.V4 - {"avx"}, "native"),
    ],
)
def test_the_best_cpu_level_is_chosen(monkeypatch, flags, level):
    monkeypatch.delenv("FEATHERLANE_CPU", raising=False)
    monkeypatch.setattr(processor, "_flags", lambda: flags)
    assert processor.cpu_level() == level


@pytest.mark.parametrize("dtype, variable, usual", [("float64", "", 8), ("float32", "32", 16)])
def test_tile_widths(monkeypatch, dtype, variable, usual):
    monkeypatch.delenv(f"FEATHERLANE_WIDTH{variable}", raising=False)
    assert processor.tile_width(dtype) == usual
    monkeypatch.setenv(f"FEATHERLANE_WIDTH{variable}", "4")
    assert processor.tile_width(dtype) == 4
    for wrong in ("3", "eight", "0"):
        monkeypatch.setenv(f"FEATHERLANE_WIDTH{variable}", wrong)
        with pytest.raises(ArgumentError):
            processor.tile_width(dtype)


@pytest.mark.parametrize("dtype", ["float16", np.int64, "nonsense", complex])
def test_other_precisions_are_errors(dtype):
    with pytest.raises(ArgumentError):
        processor.base_of(dtype)


@pytest.mark.parametrize("w", [1, 2, 4, 8, 16, 32])
def test_every_allowed_width_runs(mode, w):
    mode("jit")
    d = cells("float64", w, 2)
    library().bind(leaf, d)()
    assert np.all(d.arrays["x"] == 1)


# ---- bindings ----------------------------------------------------------------------------------------------------
def test_bindings_take_the_stages_records(mode):
    mode("jit")
    stages, (m, d) = library(), records()
    with pytest.raises(ValueError, match=r"stage root: got records \(Cells\)"):
        stages.bind(root, d)
    with pytest.raises(ValueError, match="float64 x 8, float32 x 8"):
        stages.bind(root, m, cells("float32", 8, 2))
    with pytest.raises(ArgumentError):
        stages.bind(root, m, cells("float64", 1, 2))
    other = Layout("Other", (Field("x", "real", (2,)),))
    wrong = Record(other, {}, allocate(other, {}, width=8, dtype="float64"), width=8, dtype="float64")
    with pytest.raises(ValueError, match="Other"):
        stages.bind(root, m, wrong)


def test_records_come_first(mode):
    @stage
    def numbers_first(k, d):
        d.x[0] = d.x[k]

    with pytest.raises(ArgumentError):
        library().bind(numbers_first, cells("float64", 8, 2))


def test_a_binding_keeps_its_code_and_records_alive(mode):
    mode("jit")
    stages, (m, d) = library(), records()
    x, needed = d.arrays["x"], [weakref.ref(a) for a in (m, d)]
    run = stages.bind(root, m, d)
    del stages, m, d
    gc.collect()
    assert all(a() is not None for a in needed)
    run(4)
    assert np.all(x == 5)


def test_two_stages_of_one_name_are_an_error(mode):
    mode("jit")
    stages, d = library(), cells("float64", 8, 2)
    stages.bind(leaf, d)
    with pytest.raises(KernelError):
        stages.bind(other_leaf(), d)


def other_leaf():
    @stage
    def leaf(d):
        for i in range(d.n):
            d.x[i] = 100.0

    return leaf


def test_libraries_with_equal_stage_names_do_not_mix(mode):
    mode("jit")
    inner = other_leaf()

    @stage
    def branch(d, times):
        for _ in range(times):
            inner(d)

    first, second, d = library(), library(), cells("float64", 8, 2)
    first.bind(leaf, d)
    second.bind(inner, d)
    second.bind(branch, d)(1)
    assert np.all(d.arrays["x"] == 100)
    first.bind(globals()["branch"], d)(1)
    assert np.all(d.arrays["x"] == 101)


# ---- prebuilt objects ----------------------------------------------------------------------------------------------
@pytest.fixture
def prebuild(tmp_path, monkeypatch):
    """Returns a function that links an object of some stages under a layout hash, in the runtime's search folder."""
    if not shutil.which("gcc"):
        pytest.skip("linking needs gcc")
    monkeypatch.setattr(runtime, "PREBUILT", tmp_path)

    def build(stages, hash_of):
        objects = []
        for s in stages:
            objects.append(tmp_path / f"{s.name}.o")
            objects[-1].write_bytes(library().object_code(s, "f64", 8, cpu=processor.cpu_level()))
        out = tmp_path / f"{processor.cpu_level()}.so"
        link([str(o) for o in objects], str(out), {"featherlane_layout": hash_of})

    return build


def no_compiler(monkeypatch):
    for name in ("llvmlite", "llvmlite.binding", "featherlane.engine.lanes.engine"):
        monkeypatch.setitem(sys.modules, name, None)


@stage
def caller(m, d, function, i):
    call(function, m, d, i)


@stage
def called(m, d, i):
    d.x[i] = d.x[i] + 2.0 * m.x[i]


@pytest.mark.parametrize("chosen", ["jit", "checked", "python"])
@pytest.mark.parametrize("dtype, w", FORMS)
def test_a_function_is_called_by_its_address(mode, chosen, dtype, w):
    mode(chosen)
    stages, (m, d) = library(), records(dtype, w)
    d.functions[:] = [None, called]
    address = 1
    if chosen != "python":
        function = stages.function(called, processor.base_of(np.dtype(dtype)), w, checked=chosen == "checked")
        address = ctypes.cast(function, ctypes.c_void_p).value
    stages.bind(caller, m, d)(address, 1)
    assert np.all(d.arrays["x"][1] == 6) and np.all(d.arrays["x"][0] == 0)


@stage
def caller_with_numbers(d, function, i):
    call(function, i, 2 * i, i - 3)


@pytest.mark.parametrize("chosen", ["jit", "checked", "python"])
def test_a_c_function_is_called_with_numbers(mode, chosen):
    mode(chosen)
    given, (_, d) = [], records()
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(lambda *numbers: given.append(numbers))
    library().bind(caller_with_numbers, d)(ctypes.cast(function, ctypes.c_void_p).value, 2**40)
    assert given == [(2**40, 2**41, 2**40 - 3)]


def test_a_prebuilt_stage_calls_just_in_time_stages(prebuild, mode):
    prebuild([caller], library().layout_hash())
    mode("auto")
    stages, (m, d) = library(), records()
    function = stages.function(called, "f64", 8)
    stages.bind(caller, m, d)(ctypes.cast(function, ctypes.c_void_p).value, 1)
    assert stages.configuration()["kernels"] == "ahead of time"
    assert np.all(d.arrays["x"][1] == 6)


@pytest.mark.parametrize("chosen", ["auto", "prebuilt"])
def test_a_prebuilt_object_needs_no_compiler(prebuild, mode, chosen, monkeypatch):
    prebuild([leaf, branch, root], library().layout_hash())
    no_compiler(monkeypatch)
    mode(chosen)
    stages, (m, d) = library(), records()
    stages.bind(root, m, d)(4)
    assert np.all(d.arrays["y"] == 15)
    assert stages.configuration()["kernels"] == "ahead of time"


def test_a_stage_that_is_not_prebuilt_is_compiled_with_its_callees(prebuild, mode):
    prebuild([leaf], library().layout_hash())
    mode("auto")
    stages, (m, d) = library(), records()
    stages.bind(leaf, d)()
    stages.bind(root, m, d)(4)
    assert np.all(d.arrays["x"] == 6)


def test_a_prebuilt_object_of_other_layouts_is_refused(prebuild, mode, monkeypatch):
    prebuild([leaf], layout_hash(Layout("Old", ())))
    mode("prebuilt")
    with pytest.raises(KernelError, match="layouts"):
        library().bind(leaf, cells("float64", 8, 2))
    mode("auto")
    assert "other record layouts" in library().configuration()["kernels"]
    d = cells("float64", 8, 2)
    library().bind(leaf, d)()
    assert np.all(d.arrays["x"] == 1)


def test_a_stage_or_object_that_is_not_prebuilt_is_an_error(prebuild, mode):
    mode("prebuilt")
    with pytest.raises(KernelError, match="no prebuilt kernels for"):
        library().bind(leaf, cells("float64", 8, 2))
    prebuild([leaf], library().layout_hash())
    with pytest.raises(KernelError, match="fl_leaf_f32x16"):
        library().bind(leaf, cells("float32", 16, 2))


@pytest.mark.parametrize("chosen", ["auto", "jit", "checked"])
def test_a_missing_compiler_names_the_extra(mode, chosen, monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "PREBUILT", tmp_path)
    no_compiler(monkeypatch)
    mode(chosen)
    with pytest.raises(KernelError, match=r"featherlane\[jit\]"):
        library().bind(leaf, cells("float64", 8, 2))


def test_a_link_failure_quotes_the_linker(prebuild, tmp_path):
    with pytest.raises(RuntimeError, match="gcc"):
        link([str(tmp_path / "missing.o")], str(tmp_path / "a.so"), {})


# ---- determinism over CPU levels -----------------------------------------------------------------------------------
@stage
def sums(d):
    total = d.x[0]
    for i in range(1, d.n):
        total = total * 0.7 + d.x[i] * d.y[i] / 3.0
        d.z[i] = total


@pytest.mark.parametrize("dtype, w", [("float64", 8), ("float32", 16)])
def test_sums_are_bitwise_equal_at_every_width_and_cpu_level(mode, monkeypatch, dtype, w, rng):
    mode("jit")
    x, y = rng.normal(size=(2, 40, w))
    found = []
    levels = [level for level in processor.LEVELS if allowed(level, monkeypatch)]
    for level in [*levels, "native"]:
        monkeypatch.setenv("FEATHERLANE_CPU", level)
        stages = library()
        wide = cells(dtype, w, 40, x=x, y=y)
        stages.bind(sums, wide)()
        narrow = [cells(dtype, 1, 40, x=x[:, k], y=y[:, k]) for k in range(w)]
        for one in narrow:
            stages.bind(sums, one)()
        found += [wide.arrays["z"], np.concatenate([one.arrays["z"] for one in narrow], axis=1)]
    assert all(np.array_equal(f, found[0]) for f in found)


def allowed(level, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_CPU", level)
    try:
        return processor.cpu_level() == level
    except ValueError:
        return False
