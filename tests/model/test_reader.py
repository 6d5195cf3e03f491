"""The MuJoCo that reads models: old, broken and missing ones raise an error with the repair; gaps are named."""

import copy
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.cli.inspect import describe
from featherlane.engine.model import bundled, load, mujoco_arrays, reader
from featherlane.engine.model import mujoco_versions as older
from featherlane.engine.model.enums import Disable, Enable
from featherlane.engine.model.mujoco_arrays import ABSENT, read_field, write_field
from featherlane.engine.model.set_const import Constants
from featherlane.errors import InstallationError, ModelError

HERE = Path("site-packages")
BOTH = r"pip uninstall -y mujoco mujoco-core mujoco-studio && pip install 'mujoco==3.17.0'"
LOAD = "import featherlane as fl\ntry: fl.bundled('pendulum')\nexcept fl.InstallationError as error: print(error)"


@pytest.mark.parametrize(
    "found", [{}, {"mujoco": "3.6.0"}, {"mujoco-core": "4.0.1"}, {"mujoco": "4.0.0", "mujoco-core": "4.0.0"}]
)
def test_one_mujoco_from_3_6_on_is_accepted(found):
    reader.check_distributions(found, HERE)
    for version in found.values() or ["3.6.0"]:
        reader.check_version(version, found, HERE)


@pytest.mark.parametrize(
    "found, message",
    [
        ({"mujoco": "3.17.0", "mujoco-core": "4.0.1"}, f"(?s)mujoco 3.17.0 and mujoco-core 4.0.1.*overwritten.*{BOTH}"),
        ({"mujoco": "3.5.0"}, r"(?s)mujoco 3\.5\.0 .*too old, allowed is >= 3\.6.*pip install 'mujoco>=3\.6'"),
        ({"mujoco": "3.3.0", "mujoco-core": "4.0.1"}, r"(?s)mujoco 3\.3\.0.*pip install 'mujoco>=3\.6'"),
    ],
)
def test_mixed_and_old_distributions_are_refused_with_the_fix(found, message):
    with pytest.raises(InstallationError, match=message):
        reader.check_distributions(found, HERE)


@pytest.mark.parametrize(
    "version, found, message",
    [
        ("3.5.0", {}, "mujoco 3.5.0 .*too old"),
        ("4.0.1", {"mujoco": "3.17.0"}, f"(?s)imported module has version 4.0.1.*{BOTH}"),
        ("", {"mujoco": "3.17.0"}, f"(?s)has no version.*{BOTH}"),
    ],
)
def test_a_module_that_differs_from_the_installed_distribution_is_refused(version, found, message):
    with pytest.raises(InstallationError, match=message):
        reader.check_version(version, found, HERE)


def faked(folder, module, **distributions):
    """Creates a folder with a module `mujoco`, unless the text is None, and metadata of distributions."""
    (folder / "mujoco").mkdir()
    if module is not None:
        (folder / "mujoco" / "__init__.py").write_text(module)
    for name, version in distributions.items():
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.parametrize(
    "module, distributions, message",
    [
        (
            "print('imported')",
            {"mujoco": "3.17.0", "mujoco_core": "4.0.1"},
            "one has overwritten the other",
        ),
        ("print('imported')", {"mujoco": "3.5.0"}, "too old"),
        ("raise OSError('libmujoco.so.3.17.0')", {"mujoco": "3.17.0"}, "different versions: libmujoco.so.3.17.0"),
        ("__version__ = '3.5.1'", {}, "mujoco 3.5.1 "),
        (None, {"mujoco_core": "4.0.0"}, "__init__.py is missing"),
    ],
)
def test_a_broken_mujoco_is_reported_at_import(tmp_path, module, distributions, message):
    faked(tmp_path, module, **distributions)
    code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
    if module is None:
        # a folder without a module is used only if a module does not exist
        code += f"sys.path[:] = [p for p in sys.path if p == {str(tmp_path)!r} or not has_mujoco(p)]\n"
        code = "import pathlib\ndef has_mujoco(p): return (pathlib.Path(p) / 'mujoco/__init__.py').exists()\n" + code
        code = "import numpy, featherlane\n" + code
    done = subprocess.run([sys.executable, "-c", code + LOAD], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    assert message in done.stdout and "\n  pip " in done.stdout and "imported" not in done.stdout


def test_a_missing_mujoco_is_reported_with_the_install_command(monkeypatch):
    monkeypatch.delitem(sys.modules, "mujoco")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InstallationError, match=r"pip install 'mujoco>=3\.6'"):
        reader.mujoco_module.__wrapped__()
    assert reader.installed() == "not installed"


@pytest.mark.parametrize(
    "message, version, said",
    [
        ("Schema violation: unrecognized attribute: 'springyield'", "3.17.0", "'springyield' requires 4.0 or newer"),
        ("invalid keyword: 'discrete'", "3.12.0", "'discrete' requires 3.13 or newer"),
        ("invalid keyword: '(null)'", "3.15.0", "installed is MuJoCo 3.15.0; a newer version may support it"),
        ("Schema violation: unrecognized attribute: 'springyeild'", "4.0.0", ""),
        ("unrecognized name 'palm' of sensorized object", "3.12.0", ""),
        ("no decoder found for mesh file 'hip.ply'", "4.0.1", "STL, OBJ, MSH, COLLADA and glTF files"),
    ],
)
def test_unknown_keywords_and_formats_are_reported(message, version, said):
    assert said in reader.hint(message, version) and bool(said) is bool(reader.hint(message, version))


# ---- models of older versions ----------------------------------------------------------------------------


class Older:
    """Returns a 4.0.1 MjModel as an older version has it: some fields are missing, rows of eq_data are shorter."""

    def __init__(self, mj):
        self.__dict__["mj"] = mj

    def __getattr__(self, name):
        if name in ABSENT or name == "key_plastic":
            raise AttributeError(name)
        value = getattr(self.mj, name)
        return value[:, :11] if name == "eq_data" else value

    def __copy__(self):
        return Older(copy.copy(self.mj))


def test_fields_missing_in_older_versions_have_neutral_values():
    mj = mujoco.MjModel.from_xml_string(TENDON)
    for name in ABSENT:
        np.testing.assert_array_equal(read_field(Older(mj), name), read_field(mj, name), err_msg=name)
        write_field(Older(mj), name, 7)


def test_shorter_rows_of_equality_data_are_read_and_written():
    mj = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='a'><freejoint/><geom size='1'/></body></worldbody>"
        "<equality><weld body1='a' relpose='1 2 3 1 0 0 0'/></equality></mujoco>"
    )
    mj.eq_data[0, 11] = 5
    found = read_field(Older(mj), "eq_data")
    assert found.shape == (1, 12) and found[0, 11] == 0 and np.array_equal(found[:, :11], mj.eq_data[:, :11])
    write_field(Older(mj), "eq_data", np.arange(12.0))
    assert np.array_equal(mj.eq_data[0], [*range(11), 5])


def test_older_versions_enable_multiccd_by_a_bit(monkeypatch):
    monkeypatch.setattr(mujoco_arrays, "_multiccd_bit", lambda: 1 << 4)
    monkeypatch.setattr(mujoco_arrays, "_sleep_bit", lambda: 1 << 5)
    mj = mujoco.MjModel.from_xml_string("<mujoco><option><flag energy='enable' contact='disable'/></option></mujoco>")
    energy, contact = int(Enable.ENERGY), int(Disable.CONTACT)
    assert read_field(mj, "opt_disableflags") == Disable.MULTICCD | Disable.CONTACT
    for flags in (0, Disable.MULTICCD):
        write_field(mj, "opt_disableflags", contact | flags)
        write_field(mj, "opt_enableflags", energy | Enable.SLEEP)
        assert mj.opt.enableflags == energy | 1 << 5 | (0 if flags else 1 << 4)
        assert mj.opt.disableflags == contact
        assert read_field(mj, "opt_disableflags") == contact | flags
        assert read_field(mj, "opt_enableflags") == energy | Enable.SLEEP


def test_keyframes_of_an_older_version_have_no_plastic_part():
    model = copy.deepcopy(bundled("humanoid"))
    model.__dict__["mj_model"] = Older(model.mj_model)
    assert model.nkey and model.key_plastic.shape == (model.nkey, 0)
    fl.set_keyframe(model, fl.Data(model), 0)


def version_is(monkeypatch, version):
    monkeypatch.setattr(mujoco, "__version__", version)


@pytest.mark.parametrize(
    "version, actuator, said",
    [
        ("3.13.0", "<pid joint='h' kp='1' delay='.01' nsample='5'/>", "actuator #0: got a history of several controls"),
        ("3.14.0", "<pid joint='h' kp='1' delay='.01' nsample='5'/>", ""),
        ("3.13.0", "<motor joint='h' delay='.01' nsample='5'/>", ""),
        (
            "3.11.0",
            "<general joint='h' gaintype='dcmotor' biastype='dcmotor' dyntype='dcmotor' actearly='true'"
            " gainprm='1 1 0 0 0 0 0 0 1' dynprm='.5'/>",
            "actuator #0: position input of a DC motor",
        ),
    ],
)
def test_actuators_that_an_older_version_stores_in_another_format_are_refused(monkeypatch, version, actuator, said):
    mj = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint name='h'/><geom size='1'/></body></worldbody>"
        f"<actuator>{actuator}</actuator></mujoco>"
    )
    version_is(monkeypatch, version)
    if said:
        with pytest.raises(ModelError, match=f"(?s)compiled by MuJoCo {version}.*{said}"):
            load(mj)
    else:
        load(mj)


TENDON = """<mujoco><worldbody>
<body><joint name="h"/><joint name="g" axis="0 1 0"/><geom size="1"/><site/></body></worldbody>
<tendon><fixed name="t"><joint joint="h" coef="1"/><joint joint="g" coef="1"/></fixed></tendon></mujoco>"""


@pytest.mark.parametrize(
    "edit, said",
    [
        (lambda mj: mj.jnt_type.__setitem__(0, 1), "a ball or free joint, allowed are slides and hinges"),
        (lambda mj: mj.wrap_objid.__setitem__(1, 0), "a joint twice"),
        (lambda mj: mj.tendon_armature.__setitem__(0, -1.0), "armature is -1"),
    ],
)
def test_tendons_that_the_newest_compiler_refuses_are_refused(monkeypatch, edit, said):
    mj = mujoco.MjModel.from_xml_string(TENDON)
    version_is(monkeypatch, "3.17.0")
    older.check_compiled(mj)
    edit(mj)
    with pytest.raises(ModelError, match=said):
        older.check_compiled(mj)
    assert any(said in line for line in describe(mj)["unsupported"])


SHAPES = """<mujoco><worldbody> <geom type="plane" size="1 1 .1"/> <body> <freejoint/>
  <geom type="sphere" size=".1"/> <geom type="capsule" size=".1 .2"/> <geom type="ellipsoid" size=".1 .2 .3"/>
  <geom type="cylinder" size=".1 .2"/> <geom type="box" size=".1 .2 .3"/> {more} </body> </worldbody></mujoco>"""


def test_bounding_volumes_of_older_versions_equal_those_of_the_newest(monkeypatch):
    mj = mujoco.MjModel.from_xml_string(SHAPES.format(more=""))
    compiled, stale = mj.geom_size.copy(), {name: getattr(mj, name).copy() for name in ("geom_rbound", "geom_aabb")}
    mj.geom_size[1:4] *= 1.7
    mj.geom_size[5:] *= 0.3
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    expected = {name: getattr(mj, name).copy() for name in stale}
    for name, values in stale.items():
        assert not np.array_equal(values, expected[name])
        getattr(mj, name)[:] = values
    version_is(monkeypatch, "3.15.0")
    older.update_bounding_volumes(mj, compiled)
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(mj, name), values, rtol=1e-15)


def test_size_edits_that_cannot_update_fluid_forces_are_refused(monkeypatch):
    model = fl.load(SHAPES.format(more='<geom name="wing" type="box" size=".1 .2 .3" fluidshape="ellipsoid"/>'))
    constants, sizes = Constants(model), model.geom_size.copy()
    sizes.reshape(-1, 3)[-1] *= 2
    constants({"geom_size": sizes})
    version_is(monkeypatch, "3.15.0")
    fl.set_const(model)
    constants({})
    with pytest.raises(ModelError, match="wing"):
        constants({"geom_size": sizes})
    model.geom_size[:] = sizes
    with pytest.raises(ModelError):
        fl.set_const(model)
