"""The table of `python tests/exam.py adapters`, and how it counts tests."""

import re
import sys
import tomllib

import pytest

import separate
from integrations import adapters, other_mujoco, test_other_mujoco

EXTRAS = tomllib.loads((separate.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_each_adapter_has_an_extra_and_tests():
    for name, adapter in adapters.ADAPTERS.items():
        assert adapter.extra in EXTRAS, name
        files = [word.partition("::")[0] for word in adapter.tests if ".py" in word]
        assert files and all((other_mujoco.HERE / file).exists() for file in files), name


def test_each_library_of_an_adapter_is_tested():
    """The files of `with_*.py` are in the table of test_other_mujoco.py, and each of its libraries is an adapter."""
    assert {path.name for path in other_mujoco.HERE.glob("with_*.py")} == test_other_mujoco.FILES.keys()
    assert {module for module, *_ in test_other_mujoco.FILES.values()} <= adapters.ADAPTERS.keys()
    libraries = "sb3 torchrl skrl rsl-rl rllib unisim unilab dm-control mjbatch mjlab torch".split()
    tested = {adapter.extra for adapter in adapters.ADAPTERS.values()}
    assert set(libraries) <= tested and tested <= EXTRAS.keys()


def test_each_file_that_imports_a_library_of_an_adapter_is_run():
    """The main tests skip these: their environment has none of the libraries."""
    run = {word.partition("::")[0] for adapter in adapters.ADAPTERS.values() for word in adapter.tests}
    run = {(other_mujoco.HERE / file).resolve() for file in run if file.endswith(".py")}
    skips = re.compile(r"""importorskip\(["'](torch|torchrl|skrl|rsl_rl|stable_baselines3|ray\.rllib|ray\.tune)["']""")
    files = {path for path in (separate.ROOT / "tests").rglob("test_*.py") if skips.search(path.read_text())}
    assert len(files) >= 9 and files <= run, files - run


def test_a_separate_program_inherits_no_variables_of_python(monkeypatch, tmp_path):
    for name in separate.PYTHON:
        monkeypatch.setenv(name, "1")
    code = "import os; print(sorted(os.environ))"
    shown = separate.command(sys.executable, "-c", code, folder=tmp_path, CHOSEN="2")
    assert "'CHOSEN'" in shown and not any(repr(name) in shown for name in separate.PYTHON)


REPORT = """<testsuites><testsuite>
    <testcase name="a"/> <testcase name="b"><skipped message="absent"/></testcase>
    <testcase name="c"><properties><property name="passed" value="130"/>
    <property name="skipped" value="2"/></properties>
    </testcase> {more} </testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("more", "counts"),
    [("", (131, 0, 3)), ("<testcase name='d'><failure/></testcase><testcase><error/></testcase>", (131, 2, 3))],
)
def test_tests_of_another_process_are_counted(more, counts, tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT.format(more=more))
    assert other_mujoco.counts(report) == counts


@pytest.mark.parametrize(
    ("counts", "code"), [((3, 0, 1), 0), ((3, 1, 0), 1), ((0, 0, 4), 1), (RuntimeError("no wheel"), 1)]
)
def test_a_failure_sets_the_exit_code(counts, code, monkeypatch, capsys, tmp_path):
    def tested(*arguments):
        if isinstance(counts, Exception):
            raise counts
        return counts, "what pytest prints"

    monkeypatch.setattr(adapters, "tested", tested)
    assert adapters.main("skrl", "torch", "--wheel", str(tmp_path / "featherlane.whl")) == code
    printed = capsys.readouterr().out
    assert re.findall(r"^\w+", printed, re.MULTILINE) == ["adapter", "skrl", "torch"]
    assert ("what pytest prints" in printed or "no wheel" in printed) == bool(code)


def test_an_unknown_adapter_is_refused(capsys):
    with pytest.raises(SystemExit):
        adapters.main("skrll")
    assert "unknown adapters ['skrll'], allowed are gymnasium, dm_control" in capsys.readouterr().err
