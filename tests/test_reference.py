"""The reference lists every public name with shapes, units, errors and an example; every error has a page."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import Kernel
from pages import blocks, links
from scenes import sensors

ROOT = Path(__file__).parents[1]
PARTS = (
    "results query patterns controllers policies terrain stages registration environments distributed lcp tree lanes"
).split()
MODULES = ["featherlane", *(f"featherlane.{part}" for part in PARTS)]
NAMES = [(module, name) for module in MODULES for name in importlib.import_module(module).__all__]
WITHOUT_EXAMPLES = "enums errors extension".split()  # tables, errors of docs/errors.md, functions for front ends
THINGS = [(m, n) for m, n in NAMES if not inspect.ismodule(getattr(importlib.import_module(m), n))]
# functions that compute nothing from arguments and raise no errors
NO_ERRORS = {"bundled_names", "show_config", "kernel", "methods", "register_tasks", "tasks"}
ARRAYS = re.compile(r"ArrayLike|ndarray|NDArray|IntArray")
SHAPE = re.compile(r"\((?:\.\.\.|\w+),[\w ., +*]*\)")
UNIT = re.compile(r"\[(?:m|kg|s|rad|N|J|1|T|1/s)[^\]]*\]")
ERRORS = ["FeatherlaneError", "ModelError", "UnknownNameError", "UnsupportedFeatureError", "InstallationError",
          "KernelError", "KernelLanguageError", "ProblemError", "OptionError", "NonFiniteWarning", "CapacityWarning",
          "ArgumentError", "ArgumentTypeError", "OutOfRangeError", "UnknownAttributeError", "SingularMatrixError",
          "CallError", "MissingMethodError", "WorkerLostError"]  # fmt: skip


def thing(module: str, name: str):
    return getattr(importlib.import_module(module), name)


def signature(made) -> str:
    """Returns a function's signature; for a kernel that of its Python function."""
    try:
        return str(inspect.signature(made.function if isinstance(made, Kernel) else made))
    except (TypeError, ValueError):
        return ""


def examples(name: str) -> dict[tuple[str, str], str]:
    """Returns, for each name in the headings of a page, the text below the heading."""
    found, module = {}, ""
    for part in re.split(r"^(?=#{2,3} )", (ROOT / "docs/reference" / name).read_text(), flags=re.MULTILINE):
        head, _, rest = part.partition("\n")
        module = head[3:].strip() if head.startswith("## ") else module
        if head.startswith("### "):
            found |= {(module, name.strip()): rest for name in head[4:].split(",")}
    return found


EXAMPLES, OF_MEMBERS = examples("examples.md"), examples("members.md")


def test_a_public_name_has_an_example_that_uses_it(subtests):
    for module, name in THINGS:
        with subtests.test(module=module, name=name):
            assert (module, name) in EXAMPLES, "docs/reference/examples.md has no heading with it"
            code = "\n".join(re.findall(r"^```python\n(.*?)^```$", EXAMPLES[module, name], re.DOTALL | re.MULTILINE))
            used = rf"\b(?:fl|{'|'.join(PARTS)})\.{name}\b"
            by_result = {
                "Solution": "Solution",
                "Model": "Model",
            }  # an example names the class of a function's result in a comment
            assert re.search(used, code) or by_result.get(name, "\0") in code


def test_no_example_is_of_a_name_that_is_not_public():
    assert set(EXAMPLES) <= set(NAMES)


@pytest.mark.parametrize("name", {text: name for name, text in (EXAMPLES | OF_MEMBERS).items()}.values(), ids=".".join)
def test_an_example_runs_alone(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks.run((EXAMPLES | OF_MEMBERS)[name], tmp_path)


def test_an_example_of_members_uses_them(subtests):
    for (module, name), text in OF_MEMBERS.items():
        owner, _, member = name.partition(".")
        with subtests.test(module=module, name=name):
            assert hasattr(thing(module, owner), member)
            assert re.search(rf"\.{member}\b", blocks.python(text)[0])


def test_a_public_name_has_a_docstring(subtests, reference):
    others = [(f"featherlane.{part}", name) for part in WITHOUT_EXAMPLES for name in thing("featherlane", part).__all__]
    for module, name in THINGS + [other for other in others if not reference.is_constant(thing(*other))]:
        with subtests.test(module=module, name=name):
            made = thing(module, name)
            text = (
                inspect.getdoc(made.function if isinstance(made, Kernel) and hasattr(made, "function") else made) or ""
            )
            assert len(text) > 10 and not text.startswith(f"{name}("), "it needs a separate docstring"


def test_a_function_documents_its_errors_shapes_and_units(subtests):
    """Functions of model and data share the errors in simulation/steps.py; they read and write fields."""
    for module, name in THINGS:
        function = thing(module, name)
        if module not in ("featherlane", "featherlane.query", "featherlane.stages") or not inspect.isfunction(function):
            continue
        with subtests.test(name=name):
            parameters, text = list(inspect.signature(function).parameters), inspect.getdoc(function)
            assert "Raises:" in text or parameters[:2] == ["model", "data"] or name in NO_ERRORS
            if ARRAYS.search(signature(function)):
                assert SHAPE.search(text), "no shape, as (nv,) or (..., 3)"
                assert UNIT.search(text) or name in UNITLESS, "no unit, as [m/s]"


# arguments and results are coordinates in any unit, or have the unit of an argument
UNITLESS = {
    "register_points",
    "half_solve",
    "normalize_quat",
    "get_state",
    "set_state",
    "add_sensor_noise",
    "view",
    "set_user_sensor",
}


@pytest.mark.parametrize("part", "registration lcp tree environments distributed".split())
def test_other_functions_document_their_errors_and_shapes(part):
    module = f"featherlane.{part}"
    for name in importlib.import_module(module).__all__:
        made = thing(module, name)
        if inspect.isfunction(made) and ARRAYS.search(signature(made)):
            told = inspect.getdoc(made) or ""
            assert SHAPE.search(told), f"{module}.{name}: no shape"
            assert "Raises:" in told or "errors as in" in told, f"{module}.{name}: no errors"


def subclasses(cls: type) -> set[type]:
    return {cls}.union(*map(subclasses, cls.__subclasses__()))


def test_every_error_links_its_section_of_the_error_page():
    code = "import featherlane as fl, featherlane.engine.lanes.compiler.rules, featherlane.environments\n"
    code += "def s(c): return {c}.union(*map(s, c.__subclasses__()))\n"
    code += "print(*(c.__name__ for c in s(fl.FeatherlaneError) | {fl.NonFiniteWarning, fl.CapacityWarning} "
    code += "if c.__module__.startswith('featherlane')))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=900
    ).stdout.split()
    assert sorted(printed) == sorted(ERRORS)
    anchors = links.anchors((ROOT / "docs/errors.md").read_text())
    assert {name.lower() for name in ERRORS} <= anchors
    from featherlane.engine.lanes.compiler.rules import KernelLanguageError

    others = {fl.NonFiniteWarning, fl.CapacityWarning, KernelLanguageError}
    found = {cls.__name__: cls for cls in subclasses(fl.FeatherlaneError) | others}
    for name in sorted(ERRORS):
        assert f"docs/errors.md#{name.lower()}" in (found[name].__doc__ or ""), name


def test_dimensions_of_sensors_equal_those_of_compiled_models():
    pytest.importorskip("mkdocs")
    sys.path.insert(0, str(ROOT / "docs" / "site"))
    try:
        reference = importlib.import_module("reference")
    finally:
        sys.path.pop(0)
    for kind in reference.SENSORS:
        assert reference.sensor_name(kind) in reference.UNITS
    seen = set()
    for name in sensors.GROUPS:
        model = mujoco.MjModel.from_xml_string(sensors.group_scene(name))
        for kind, dim in zip(model.sensor_type, model.sensor_dim, strict=True):
            name = reference.sensor_name(int(kind))
            if reference.UNITS.get(name, (0, ""))[0]:
                seen.add(name)
                assert reference.UNITS[name][0] == dim, name
    assert len(seen) > 20
    assert np.all([unit for _, unit in reference.UNITS.values()])


@pytest.fixture
def reference(monkeypatch):
    """Returns the hook that writes the reference."""
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    return importlib.import_module("reference")


def test_a_signature_shows_defaults_and_annotations_as_written(reference):
    def call(a: "int | None", b: str = "x", c=np.linalg.norm, d=fl.State.QPOS) -> "fl.Model": ...

    shown = reference.signature("call", call)
    assert shown == "call(a: int | None, b: str = 'x', c=norm, d=State.QPOS) -> fl.Model"
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            text = reference.signature(name, thing(module, name)) if callable(thing(module, name)) else ""
            assert "ForwardRef" not in text and " object at 0x" not in text, text
            if re.search(r"= ?'\w+'", signature(thing(module, name))):
                assert re.search(r"= ?'\w+'", text), text


def test_members_of_batch_have_a_group_and_an_example_and_no_internal_one_is_shown(reference):
    """`grouped` raises if a member is in no group."""
    internal = importlib.import_module("members").INTERNAL
    assert all(reference.grouped(fl.distributed.Batch)), "a group without a title"
    members = {name for group in reference.grouped(fl.Batch).values() for name, _ in group}
    assert len(members) > 40 and not members & internal
    assert {f"Batch.{name}" for name in members} <= {name for module, name in OF_MEMBERS if module == "featherlane"}
    classes = fl.Batch, fl.Data, fl.Model, fl.MixedBatch
    assert all(any(hasattr(cls, name.rpartition(".")[2]) for cls in classes) for name in internal)
    pages = [path for path in ROOT.glob("docs/**/*.md")]
    shown = "\n".join(path.read_text() for path in pages)
    assert not [name for name in internal if re.search(rf"`batch\.{name}\b", shown)]


def test_members_of_an_enumeration_are_listed(reference):
    page = reference.module_page("lcp", "featherlane.lcp")
    assert all(f"| `{member.name}` |" in page for member in fl.lcp.Status)


def test_the_page_of_a_module_without_examples_shows_all_its_names(reference):
    for part in WITHOUT_EXAMPLES:
        page = reference.module_page(part, f"featherlane.{part}")
        assert not [name for name in thing("featherlane", part).__all__ if f"{{ #{name} }}" not in page]


def test_constants_are_in_a_table_of_their_group(reference):
    assert f"| `HINGE` {{ #HINGE }} | {fl.enums.HINGE} |" in reference.module_page("enums", "featherlane.enums")


def test_each_sensor_type_has_a_separate_description(reference):
    rows = [line.split(" | ")[-1] for line in reference.sensors_page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(set(rows)) > 40 and not any("Writes" in row for row in rows)
