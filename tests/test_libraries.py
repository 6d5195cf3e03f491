"""Optional libraries: errors if one is missing or unsupported, and the table of private names that are read."""

import ast
import functools
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import featherlane as fl
import test_layers
from featherlane import errors
from featherlane.engine import libraries
from featherlane.engine.libraries import LIBRARIES
from integrations.adapters import ADAPTERS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FILES = [path for path in test_layers.INSIDE if path != Path("libraries.py")]
TREES = {path: ast.parse((test_layers.ROOT / path).read_text()) for path in FILES}
NODES = {path: list(ast.walk(tree)) for path, tree in TREES.items()}
# documented although they begin with an underscore, or a module of the standard library
PUBLIC = {"_getframe", "_current_frames", "_handle", "_thread", "_fields", "_replace", "_asdict", "_make"}
# attributes that are replaced and not read
REPLACED = {("integrations/gymnasium.py", "_mujoco")}
# statement -> the command of the error, with the modules of LIBRARIES blocked
BLOCKED = {
    "import featherlane.environments.adapters.tensors": "featherlane[torch]",
    "import featherlane.environments.adapters.stable_baselines3": "featherlane[sb3]",
    "import featherlane.environments.adapters.torchrl": "featherlane[torchrl]",
    "import featherlane.environments.adapters.skrl": "featherlane[skrl]",
    "import featherlane.environments.adapters.rsl_rl": "featherlane[rsl-rl]",
    "import featherlane.integrations.unisim": "featherlane[unisim]",
    "import featherlane.integrations.unilab": "featherlane[unilab]",
    "import featherlane.integrations.jax": "featherlane[jax]",
    "import featherlane.integrations.torch": "featherlane[torch]",
    "from featherlane.integrations.mjlab import use; use()": "featherlane[mjlab]",
    "from featherlane.integrations.dm_control import use; use(0)": "featherlane[dm-control]",
    "from featherlane.integrations.robosuite import use; use(0)": "robosuite==1.5.2",
    "from featherlane.environments import make_vec; make_vec('robosuite.Lift')": "robosuite==1.5.2",
    "from featherlane.apps.viewer.lock import viser_module as m; m()": "featherlane[view]",
    "from featherlane.distributed.cluster import connect; connect()": "featherlane[distributed]",
    "from featherlane.apps.cli.plot import require_matplotlib as m; m()": "featherlane[plot]",
}
WITHOUT_GYMNASIUM = {
    "import featherlane.environments": "featherlane[gym]",
    "from featherlane.integrations.gymnasium import use; use(0)": "featherlane[gym]",
}
CODE = """
import importlib.util, sys
names, statements = sys.argv[1].split(), sys.argv[2:]
sys.modules.update(dict.fromkeys(names))
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in names else find(name, package)
from featherlane import InstallationError
for statement in statements:
    try:
        exec(statement)
    except InstallationError as error:
        print(str(error).replace("\\n", "|"))
    else:
        print("no error")
"""


# ---- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.ci
@pytest.mark.parametrize(
    ("blocked", "cases"),
    [({*LIBRARIES} - {"gymnasium", "mujoco", "numpy"}, BLOCKED), ({"gymnasium"}, WITHOUT_GYMNASIUM)],
)
def test_a_missing_library_is_named_with_the_command(blocked, cases, subtests):
    command = [sys.executable, "-c", CODE, " ".join(sorted(blocked)), *cases]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    for statement, line in zip(cases, done.stdout.splitlines(), strict=True):
        with subtests.test(statement=statement):
            assert re.fullmatch(
                rf".+ requires .+; install it with:\|  pip install '{re.escape(cases[statement])}'", line
            )


@pytest.mark.parametrize(("found", "good"), [("1.0.9", False), ("1.1", True), ("1.9.3", True), ("2.0", False)])
def test_an_unsupported_version_is_named_with_the_tried_one(found, good, monkeypatch):
    monkeypatch.setattr(libraries, "version", lambda distribution: found)
    if good:
        libraries.check_version("viser", "the viewer")
        return
    with pytest.raises(fl.InstallationError) as raised:
        libraries.check_version("viser", "the viewer")
    assert str(raised.value) == (
        f"the viewer requires viser>=1.1,<2; found viser {found}, tried with 1.1.1; install this version with:\n"
        "  pip install 'featherlane[view]' 'viser==1.1.1'"
    )


def test_a_library_without_an_imported_name_is_unsupported():
    with (
        pytest.raises(fl.InstallationError, match=r"no_such_name.*; found numpy 2\.\S+, tried with 2\."),
        libraries.requiring("numpy", "a test"),
    ):
        from numpy import no_such_name  # noqa: F401


def test_a_missing_private_name_is_reported_with_the_versions():
    with pytest.raises(
        fl.InstallationError, match=r"SimpleNamespace has no _gui_input_handle_from_uuid; found viser .* tried with"
    ):
        libraries.private("viser", SimpleNamespace(), "_gui_input_handle_from_uuid")
    with pytest.raises(AssertionError, match="not in the table"):
        libraries.private("viser", SimpleNamespace(), "_other")


# ---- the table -------------------------------------------------------------------------------------------------------
def test_versions_are_those_of_the_extras():
    for name, library in LIBRARIES.items():
        texts = EXTRAS[library.extra] if library.extra else PROJECT["dependencies"]
        for requirement in map(Requirement, texts):
            if requirement.name.replace("_", "-") == library.distribution:
                bounds = {each.operator: each.version for each in requirement.specifier}
                assert (bounds[">="], bounds.get("<", "")) == (library.first, library.below), name
        assert Version(library.first) <= Version(library.tried) < Version(library.below or "9999"), name


def test_tried_versions_are_those_of_the_adapters():
    pinned = dict(adapter.library.split("==") for adapter in ADAPTERS.values())
    for name, library in LIBRARIES.items():
        if library.distribution in pinned:
            assert library.tried == pinned[library.distribution], name


def test_each_private_name_is_in_use():
    source = "\n".join((test_layers.ROOT / path).read_text() for path in FILES)
    for name, library in LIBRARIES.items():
        unused = [each for each in library.private if not re.search(rf"\b{each}\b", source)]
        assert not unused, f"{name}: {unused}"


def stored(node):
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"


@functools.cache
def own_names():
    """Returns the private names that each package defines, and those that it sets."""
    names = defaultdict(set)
    for path, nodes in NODES.items():
        names[test_layers.layer_of(path.parts)] |= test_layers.defined(path)
        names[test_layers.layer_of(path.parts)] |= {node.attr for node in nodes if stored(node)}
        names[test_layers.layer_of(path.parts)] |= {
            node.value for node in nodes if isinstance(node, ast.Constant)
        }  # of setattr
    return names


def private_names(path):
    """Yields (line, name) of the private names that a file reads and that its package does not define."""
    own = own_names()[test_layers.layer_of(path.parts)]
    for line, name, owner in test_layers.names_read(path):
        if name not in own and owner not in ("self", "cls"):
            yield line, name
    for node in NODES[path]:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith("featherlane"):
            names = [str(node.module), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [each.value for each in node.args if isinstance(each, ast.Constant)]
        parts = [part for name in names for part in str(name).split(".")]
        yield from ((node.lineno, part) for part in parts if test_layers.is_private(part))


@pytest.mark.ci
def test_other_private_names_of_libraries_are_not_read():
    """`private(library, owner, name)` reads those of the table; a name that is read in another form is an error."""
    engine = set().union(*own_names().values())
    listed = {name for library in LIBRARIES.values() for name in library.private}
    wrong = []
    for path in FILES:
        for line, name in private_names(path):
            if (str(path), name) not in REPLACED and name not in PUBLIC and (name in listed or name not in engine):
                wrong.append(f"{path}, line {line}: {name}")
    assert not wrong, "\n".join(["use featherlane.engine.libraries.private for:", *wrong])


# ---- the documentation's address -------------------------------------------------------------------------------------
def docstrings(nodes):
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.body[0].value for node in nodes if isinstance(node, described) and ast.get_docstring(node)]


def test_messages_name_no_file_of_the_documentation():
    for path, nodes in NODES.items():
        known = {id(node) for node in docstrings(nodes)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in known:
                assert not re.search(r"\bdocs/|\w\.md\b", node.value), f"{path}, line {node.lineno}: use errors.page"


def test_pages_that_messages_name_exist():
    assert PROJECT["urls"]["Documentation"] == errors.DOCUMENTATION
    assert errors.page("fields") == "https://featherlane.github.io/featherlane/fields.html"
    calls = [node for nodes in NODES.values() for node in nodes if isinstance(node, ast.Call)]
    names = [ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == "page"]
    assert len(names) >= 3 and all((ROOT / "docs" / f"{name}.md").exists() for name in names)


def test_all_adapters_are_blocked():
    folder = test_layers.ROOT / "environments" / "adapters"
    found = {path.stem for path in folder.glob("*.py")} - {"__init__", "shared"}
    assert found == {name.rpartition(".")[2] for name in BLOCKED if ".adapters." in name}
