"""The rules of the package's metadata, and the contents of an installed package."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import mujoco
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import featherlane
import oracle
from featherlane.engine.model import reader

ROOT = Path(__file__).parents[1]
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = METADATA["project"]
EXTRAS = {name: [Requirement(text) for text in listed] for name, listed in PROJECT["optional-dependencies"].items()}
NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
BUILD = [Requirement(text) for text in METADATA["build-system"]["requires"]]
EVERY = [*NEEDED, *BUILD, *(requirement for listed in EXTRAS.values() for requirement in listed)]
BUNDLED = set(
    "pendulum double_pendulum cartpole slider_crank arm quadruped quadruped_elliptic humanoid rope chain box_stack "
    "stacks pile pyramid hand".split()
)


def test_no_dependency_overwrites_an_installed_mujoco():
    assert not {"mujoco-core", "mujoco-studio"} & {canonicalize_name(each.name) for each in EVERY}
    # dm_control requires a MuJoCo, and is therefore in no extra but its own
    assert [name for name, listed in EXTRAS.items() if "dm-control" in {each.name for each in listed}] == ["dm-control"]


def test_any_supported_mujoco_version_satisfies_the_requirements():
    (needed,) = [requirement for requirement in EVERY if requirement.name == "mujoco"]
    assert needed in NEEDED and not needed.extras and str(needed.specifier) == f">={'.'.join(map(str, reader.OLDEST))}"


def test_the_compiler_has_one_lower_bound_everywhere():
    bounds = {str(requirement.specifier) for requirement in EVERY if requirement.name == "llvmlite"}
    assert len(bounds) == 1 and re.fullmatch(r">=\d+\.\d+(\.\d+)?", *bounds)
    assert "llvmlite" in {requirement.name for requirement in BUILD}


def test_prebuilt_kernels_need_no_compiler():
    assert "llvmlite" not in {requirement.name for requirement in NEEDED}


def test_the_installation_page_lists_every_extra():
    page = (ROOT / "docs" / "install.md").read_text()
    assert [name for name in EXTRAS if f"`{name}`" not in page] == []


def test_the_reference_mujoco_has_one_fixed_version():
    assert mujoco.__version__ == oracle.VERSION == "4.0.1" and oracle.folder() in Path(mujoco.__file__).parents
    code = "import mujoco; print(mujoco.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=900)
    assert done.stdout.strip() == oracle.VERSION


def test_the_build_hook_is_declared_if_it_exists():
    declared = "custom" in METADATA["tool"]["hatch"]["build"]["targets"]["wheel"].get("hooks", {})
    assert declared is (ROOT / "hatch_build.py").exists()


def test_one_version_is_reported_everywhere():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    entry = re.search(r"^  version = \{(.*)\},$", (ROOT / "docs" / "faq.md").read_text(), re.MULTILINE)[1]
    assert featherlane.__version__ == cited == entry == PROJECT["version"]


def test_pre_commit_and_ci_lint_with_one_version():
    (ruff,) = [requirement for requirement in EXTRAS["lint"] if requirement.name == "ruff"]
    assert f"rev: v{str(ruff.specifier).removeprefix('==')}" in (ROOT / ".pre-commit-config.yaml").read_text()


def test_the_package_contains_its_types_and_models():
    home = Path(featherlane.__path__[0])
    assert (home / "py.typed").exists()
    assert {path.stem for path in (home / "engine" / "model" / "bundled").glob("*.xml")} == BUNDLED


def test_import_loads_no_compiler():
    code = "import sys, featherlane; sys.exit(str({'llvmlite'} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=900)
    assert done.stderr.strip() == "", done.stderr
