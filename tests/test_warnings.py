"""Warnings: non-finite states once; MuJoCo's messages; no log file in the user's folder."""

import copy
import pickle
import warnings

import mujoco
import numpy as np
import pytest

import featherlane as fl

XML = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
<actuator><motor joint="j" gear="1e6"/></actuator></mujoco>"""
# two trees in contact: the first cannot sleep alone
RESTLESS = """<mujoco><worldbody>
<body sleep="init"><freejoint/><geom size=".1"/></body><body pos=".15 0 0"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""
PUSH = 1e9


@pytest.fixture
def model():
    return fl.load(XML)


def test_a_batch_warns_once_of_non_finite_worlds(model):
    batch = fl.Batch(model, 12)
    batch.ctrl[[3, 7]] = PUSH
    with pytest.warns(fl.NonFiniteWarning, match=r"worlds 3, 7 each had .* reset .* once .* disables") as caught:
        batch.step(5)
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch.ctrl[5] = PUSH
        batch.step(5)
        copy.deepcopy(batch).step()
        pickle.loads(pickle.dumps(batch)).step()
    assert (batch.nreset > 0).sum() == 3


def test_a_rollout_warns_and_names_a_few(model):
    batch = fl.Batch(model, 12)
    batch.ctrl = PUSH
    with pytest.warns(fl.NonFiniteWarning, match="7 and 4 more"):
        batch.rollout(3)


def test_a_data_warns_once(model):
    data = fl.Data(model)
    data.ctrl = PUSH
    with pytest.warns(fl.NonFiniteWarning, match="reset") as caught:
        fl.step(model, data, 3)
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data.reset()
        data.ctrl = PUSH
        fl.step(model, data, 3)
    assert data.nreset > 0


def test_a_muted_data_counts_without_a_warning(model):
    data = fl.Data(model)
    data.mute()
    data.ctrl = PUSH
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data.step(20)
    assert data.status["non_finite"] > 0


def test_without_autoreset_the_warning_mentions_it(model):
    model.opt.disableflags = "autoreset"
    batch, data = fl.Batch(model, 2), fl.Data(model)
    batch.ctrl[1], data.ctrl = PUSH, PUSH
    with pytest.warns(fl.NonFiniteWarning, match="world 1 .*continued"):
        batch.step(5)
    with pytest.warns(fl.NonFiniteWarning, match="continued"):
        fl.step(model, data, 5)


def test_a_batch_continues_after_a_warning_raised_as_error(model):
    batch, data = fl.Batch(model, 3), fl.Data(model)
    batch.ctrl[1], data.ctrl = PUSH, PUSH
    with warnings.catch_warnings():
        warnings.simplefilter("error", fl.NonFiniteWarning)
        with pytest.raises(fl.NonFiniteWarning):
            batch.step(5)
        with pytest.raises(fl.NonFiniteWarning):
            fl.step(model, data, 5)
    time = batch.time[0]
    batch.step()
    fl.step(model, data)
    assert batch.time[0] > time and np.isfinite(batch.qpos).all()


def test_finite_worlds_do_not_warn(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fl.Batch(model, 3).step(5)
        fl.step(model, fl.Data(model), 5)


def test_mujoco_warnings_become_python_warnings_without_a_log_file(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="MuJoCo"):
        fl.load(RESTLESS)
    assert not list(tmp_path.iterdir()) and "WARNING" not in "".join(capfd.readouterr())
    assert mujoco.get_mju_user_warning() is None


def test_existing_mujoco_warning_handlers_are_kept():
    heard = []
    mujoco.set_mju_user_warning(heard.append)
    try:
        fl.load(RESTLESS)
        assert len(heard) == 1
    finally:
        mujoco.set_mju_user_warning(None)
