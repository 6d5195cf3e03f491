"""The cache of objects: recompilation after an edit, and folders that are shared, broken or inaccessible."""

import hashlib
import importlib
import importlib.util
import os
import shlex
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from featherlane.engine.lanes import Field, Layout, cache, kernel, stage, toolchain
from scenes.cells import CELLS, cells, library

HELPERS = """
from featherlane.engine.lanes import fma, kernel

FACTOR = 3.0


@kernel
def twice(x):
    \"\"\"2 x.\"\"\"
    return 2.0 * x


@kernel
def thrice(x):
    return FACTOR * x
"""
STAGES = """
from featherlane.engine.lanes import stage
from {package} import helpers
from {package}.helpers import twice


@stage
def first(d):
    d.x[0] = twice(d.x[0])


@stage
def second(d):
    d.x[0] = helpers.thrice(d.x[0])


@stage
def both(d):
    first(d)
    second(d)
"""
NAMES = ("first", "second", "both")


@pytest.fixture
def write_stages(tmp_path, monkeypatch):
    """Returns a function from the two modules' texts to a new import of them, always under the same file names."""
    monkeypatch.setenv("FEATHERLANE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FEATHERLANE_MODE", "jit")
    folder = tmp_path / "edited"
    folder.mkdir()

    def load(name, text):
        (folder / f"{name}.py").write_text(text)
        spec = importlib.util.spec_from_loader(f"edited.{name}", loader=None)
        module = importlib.util.module_from_spec(spec)
        exec(compile(text, str(folder / f"{name}.py"), "exec"), module.__dict__)
        monkeypatch.setitem(sys.modules, f"edited.{name}", module)
        return module

    def write(helpers=HELPERS, stages=STAGES):
        package = importlib.util.module_from_spec(importlib.util.spec_from_loader("edited", None, is_package=True))
        monkeypatch.setitem(sys.modules, "edited", package)
        package.helpers = load("helpers", helpers)
        return load("stages", stages.replace("{package}", "edited"))

    return write


def keys(module):
    return {n: cache.key(getattr(module, n), library().records, "f64", 8, "x86-64-v3", False) for n in NAMES}


def changed(write_stages, **edited):
    before, after = keys(write_stages()), keys(write_stages(**edited))
    return {n for n in NAMES if before[n] != after[n]}


@pytest.mark.parametrize(
    "old, new, recompiled",
    [
        ("2.0 * x", "x + x", {"first"}),
        ("FACTOR * x", "x * FACTOR", {"second"}),
        ("FACTOR = 3.0", "FACTOR = 4.0", {"second"}),
        ("FACTOR = 3.0", "FACTOR = 3.0  # a comment", set()),
        ("2 x.", "Two times x.", set()),
        ("import fma, kernel", "import fma, kernel, sqrt", set()),
    ],
)
def test_editing_a_helper_recompiles_exactly_its_callers(write_stages, old, new, recompiled):
    assert changed(write_stages, helpers=HELPERS.replace(old, new)) == recompiled


def test_editing_a_stage_recompiles_it_and_not_its_callers(write_stages):
    assert changed(write_stages, stages=STAGES.replace("twice(d.x[0])", "twice(d.y[0])")) == {"first"}


def test_renaming_a_called_stage_recompiles_its_callers(write_stages):
    before, after = keys(write_stages()), keys(write_stages(stages=STAGES.replace("def second(d)", "def second(m, d)")))
    assert {n for n in NAMES if before[n] != after[n]} == {"second", "both"}


def test_swapping_two_helpers_is_noticed(write_stages):
    swapped = STAGES.replace("import twice", "import thrice as twice").replace("helpers.thrice", "helpers.twice")
    assert changed(write_stages, stages=swapped) == {"first", "second"}


def test_kernels_with_equal_names_are_distinguished_by_their_closures():
    def scaled(factor):
        @kernel
        def scale(x):
            return factor * x

        return scale

    def staged(a, b):
        @stage
        def mixes(d):
            d.x[0] = a(d.x[0]) + b(d.y[0])

        return mixes.code_hash()

    two, three, four = scaled(2.0), scaled(3.0), scaled(4.0)
    assert staged(two, three) == staged(two, scaled(3.0))
    assert len({staged(two, three), staged(two, four), staged(three, two), staged(two, two)}) == 4


def test_an_edit_gives_a_new_result_in_a_new_library(write_stages):
    def result(module):
        d = cells("float64", 8, 1, x=np.ones(8))
        library().bind(module.both, d)()
        return d.arrays["x"][0, 0]

    assert result(write_stages()) == 6
    assert result(write_stages(helpers=HELPERS.replace("2.0 * x", "5.0 * x"))) == 15
    assert result(write_stages()) == 6


@stage
def adds_one(d):
    d.x[0] = d.x[0] + 1.0


def test_every_compiled_form_has_its_own_name():
    records = library().records
    forms = [("f64", 1, "a", False), ("f64", 8, "a", False), ("f32", 8, "a", False), ("f64", 1, "b", False)]
    names = {cache.key(adds_one, records, *form) for form in [*forms, ("f64", 1, "a", True)]}
    assert len(names) == 5 and all(n.startswith("fl_adds_one_f") and n.endswith(".o") for n in names)


def test_another_layout_has_another_name():
    more = Layout("Cells", (*CELLS.fields, Field("more", "int")))
    a, b = (cache.key(adds_one, {"d": (x, False)}, "f64", 8, "a", False) for x in (CELLS, more))
    assert a != b


# ---- the folder ------------------------------------------------------------------------------------------------
@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "cache"
    monkeypatch.setenv("FEATHERLANE_CACHE", str(path))
    monkeypatch.setenv("FEATHERLANE_MODE", "jit")
    monkeypatch.setattr(cache, "_unwritten", {})
    monkeypatch.setattr(cache, "_reported", set())
    return path


def result():
    d = cells("float64", 8, 1)
    library().bind(adds_one, d)()
    return d.arrays["x"][0, 0]


def test_the_folder_is_made_and_the_object_is_used_again(folder, capfd, monkeypatch):
    assert result() == 1 and "compiling kernels just in time" in capfd.readouterr().err
    assert [p.suffix for p in folder.iterdir()] == [".o"]
    monkeypatch.setattr(toolchain, "lower", None)  # it must not be called again
    assert result() == 1 and capfd.readouterr().err == ""


def test_an_unusable_cache_is_reported_once_and_is_not_an_error(folder, capfd, monkeypatch):
    folder.parent.mkdir()
    folder.write_text("a file stands where the folder should be")
    assert result() == 1
    assert f"{folder} is not writable" in capfd.readouterr().err
    monkeypatch.setattr(toolchain, "lower", None)  # the process itself keeps what it compiled
    assert result() == 1 and capfd.readouterr().err == ""


def test_a_failed_write_leaves_nothing_in_the_folder(folder, capfd, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(cache.os, "replace", full)
        cache.write_object("a.o", b"code")
        cache.write_object("b.o", b"more")
    assert not list(folder.iterdir()) and (cache.read_object("a.o"), cache.read_object("b.o")) == (b"code", b"more")
    assert capfd.readouterr().err.count("No space left on device") == 1


def test_only_the_owner_can_write_the_cache_for_any_umask(folder):
    before = os.umask(0)
    try:
        assert result() == 1
    finally:
        os.umask(before)
    (path,) = folder.iterdir()
    assert not folder.stat().st_mode & 0o022 and not path.stat().st_mode & 0o022 and cache.has_object(path.name)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_can_write_is_refused_with_the_command_that_repairs_it(folder, mode, capfd):
    assert result() == 1
    (path,) = folder.iterdir()
    folder.chmod(mode)
    capfd.readouterr()
    assert not cache.has_object(path.name) and result() == 1  # compiled in this process
    printed = capfd.readouterr().err
    assert printed.count("is not used, because it is writable by other users") == 1 and f"mode {mode:04o}" in printed
    command = printed.partition("repair it with ")[2].partition(",")[0]
    assert command == f"chmod go-w {folder}"
    subprocess.run(shlex.split(command), check=True, timeout=900)
    assert cache.has_object(path.name)


def test_an_object_that_others_can_write_is_compiled_again(folder):
    assert result() == 1
    (path,) = folder.iterdir()
    path.chmod(0o666)
    assert not cache.has_object(path.name)
    assert result() == 1 and cache.has_object(path.name) and not path.stat().st_mode & 0o022


@pytest.mark.parametrize("owner, reader, is_trusted", [(0, 1000, True), (7, 7, True), (1000, 0, False), (8, 7, False)])
def test_only_objects_of_this_user_and_root_are_trusted(owner, reader, is_trusted, tmp_path, monkeypatch):
    found = list(tmp_path.stat())
    found[stat.ST_UID] = owner
    monkeypatch.setattr(cache.os, "geteuid", lambda: reader)
    assert (cache.distrusted(os.stat_result(found)) == "") is is_trusted


@pytest.mark.parametrize("broken", [lambda o: b"", lambda o: o[:-100], lambda o: o[:500] + bytes(len(o) - 500)])
def test_a_broken_object_is_compiled_again(folder, broken):
    assert result() == 1
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(broken(whole))
    assert cache.read_object(path.name) is None and not cache.has_object(path.name)
    assert result() == 1
    assert path.read_bytes() == whole


def test_an_object_under_another_name_is_not_used(folder):
    cache.write_object("a.o", b"code")
    (folder / "b.o").write_bytes((folder / "a.o").read_bytes())
    (folder / "c.o").write_bytes(hashlib.sha256(b"").digest())  # the checksum of nothing
    assert (cache.read_object("a.o"), cache.read_object("b.o"), cache.read_object("c.o")) == (b"code", None, None)


def test_readers_never_find_a_partial_object(folder):
    whole, stop, wrong = [bytes([k]) * 200_000 for k in range(2)], threading.Event(), []
    cache.write_object("a.o", whole[0])

    def read():
        while not stop.is_set():
            if cache.read_object("a.o") not in whole:
                wrong.append(True)

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(100):
        cache.write_object("a.o", whole[k % 2])
    stop.set()
    reader.join()
    assert not wrong and [p.name for p in folder.iterdir()] == ["a.o"]


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("FEATHERLANE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "featherlane" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.directory().parts[-3:] == (".cache", "featherlane", "kernels")
