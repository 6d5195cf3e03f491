"""A frozen batch has the bits of `Batch`; queries of a frozen world are those of `featherlane.query`."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import link, processor
from featherlane.engine.simulation.frozen.loader import SOURCE
from featherlane.engine.simulation.frozen.queries import QUERIES
from featherlane.errors import UnknownAttributeError
from simulation.frozen.test_frozen import ASLEEP, CONVEX_PAIR, LEG

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(processor.host()[0] != "linux", reason="frozen worlds run on Linux"),
    pytest.mark.skipif(bool(link.linking_problem()), reason="needs a C compiler"),
]
BATCH = (1, "batch")
MODELS = {
    "humanoid": (lambda: fl.bundled("humanoid"), ("xpos", "sensordata", "qfrc_constraint")),
    "quadruped": (lambda: fl.bundled("quadruped"), ("xquat", "energy")),
    "boxes": (lambda: fl.bundled("box_stack"), ()),
    "convex pair": (lambda: fl.load(CONVEX_PAIR), ("cvel",)),
    "muscle": (lambda: fl.load(LEG.format(integrator="RK4")), ("sensordata", "actuator_force")),
    "sleep": (lambda: fl.load(ASLEEP), ("xpos",)),
}


def frozen(folder, name, **options):
    load, outputs = MODELS[name]
    model, path = load(), folder / "world.flz"
    fl.freeze(model, path, width=BATCH, outputs=outputs, **options)
    return model, path, outputs


@pytest.fixture(scope="module")
def leg(tmp_path_factory):
    return frozen(tmp_path_factory.mktemp("leg"), "muscle", queries=tuple(QUERIES))


# ---- bits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_worlds_are_those_of_a_batch(name, tmp_path, rng):
    model, path, outputs = frozen(tmp_path, name)
    ours, theirs = fl.thaw(path, nworld=11), fl.Batch(model, 11)
    for output in outputs:
        theirs.bind(output)
    ours.qvel = theirs.qvel = rng.uniform(-0.5, 0.5, (11, model.nv))
    for n in (1, 5, 40):
        ours.ctrl = theirs.ctrl = rng.uniform(-1, 1, (11, model.nu))
        ours.xfrc_applied = theirs.xfrc_applied = rng.uniform(-1, 1, (11, model.nbody, 6))
        ours.step(n)
        theirs.step(n)
        for field in ("time", "ncon", "nefc", "nreset", "solver_niter", "qacc_warmstart", *outputs):
            np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field), err_msg=field)
        np.testing.assert_array_equal(ours.get_state(), theirs.get_state())
        assert all((ours.status[key] == count).all() for key, count in theirs.status.items())
    ours.forward()
    theirs.forward()
    for field in ("ncon", *outputs):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field), err_msg=field)
    np.testing.assert_array_equal(ours.get_state(), theirs.get_state())
    assert ours.self_test()


def test_a_world_of_a_batch_is_one_world(leg):
    _, path, _ = leg
    batch, world = fl.thaw(path, nworld=3), fl.thaw(path)
    assert (batch.nworld, world.nworld) == (3, 1)
    batch.ctrl = [[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]]
    world.ctrl = [0.3, -0.4]
    batch.step(100)
    world.step(100)
    np.testing.assert_array_equal(batch.get_state()[1], world.get_state())
    world.set_state(batch.get_state()[2])
    batch.step(5)
    world.step(5)
    np.testing.assert_array_equal(batch.get_state()[2], world.get_state())


def test_chosen_worlds_are_reset(leg):
    batch = fl.thaw(leg[1], nworld=9)
    start = batch.get_state()
    batch.step(20)
    end = batch.get_state()
    batch.reset([2, 8])
    now, reset = batch.get_state(), np.isin(np.arange(9), [2, 8])
    np.testing.assert_array_equal(now[reset], start[reset])
    np.testing.assert_array_equal(now[~reset], end[~reset])
    assert not batch.sensordata[2].any() and batch.sensordata[3].any()
    batch.reset(~reset)
    np.testing.assert_array_equal(batch.get_state(), start)
    batch.set_state(end)
    batch.reset()
    np.testing.assert_array_equal(batch.get_state(), start)
    with pytest.raises(fl.ModelError, match="ids: got 9, allowed are 0 to 8"):
        batch.reset([9])


def test_a_batch_starts_in_the_state_of_the_file(tmp_path):
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    data.step(30)
    fl.freeze(model, tmp_path / "world.flz", data=data, width=BATCH)
    batch = fl.thaw(tmp_path / "world.flz", nworld=10)
    batch.step(20)
    data.step(20)
    assert (batch.get_state() == data.get_state()).all()


def test_a_non_finite_world_is_counted_alone(leg):
    batch = fl.thaw(leg[1], nworld=10)
    batch.qvel[4, 0] = np.nan
    with pytest.warns(fl.NonFiniteWarning, match="a frozen batch had values"):
        batch.step()
    assert batch.nreset.tolist() == [int(k == 4) for k in range(10)] and np.isfinite(batch.qvel).all()


# ---- refusals --------------------------------------------------------------------------------------------------------
def test_what_a_frozen_batch_cannot_do_is_refused_by_name(leg, tmp_path):
    model, path, _ = leg
    batch = fl.thaw(path, nworld=2)
    with pytest.raises(UnknownAttributeError, match=r"no 'xpos'; freeze the model with outputs=\('xpos',\)"):
        _ = batch.xpos
    for name in ("rollout", "expand", "bind", "checkpoint", "set_variant"):
        with pytest.raises(UnknownAttributeError, match=f"a frozen batch cannot do '{name}', allowed are step"):
            getattr(batch, name)
    for call in (lambda: batch.contact, lambda: batch.query("energy")):
        with pytest.raises(fl.ModelError, match=r"a frozen batch has no .*; thaw one world"):
            call()
    with pytest.raises(UnknownAttributeError, match="sensordata of a frozen batch is computed"):
        batch.sensordata = 0.0
    with pytest.raises(fl.ModelError, match=r"qpos: got .*, allowed is what broadcasts to \(2, 2\)"):
        batch.qpos = np.zeros(3)
    with pytest.raises(TypeError, match="a frozen batch cannot be pickled"):
        batch.__reduce__()
    for nworld in (0, -1, 1.5, 1 << 40):
        with pytest.raises(fl.ModelError, match="nworld: got"):
            fl.thaw(path, nworld=nworld)
    fl.freeze(model, tmp_path / "one.flz")
    with pytest.raises(fl.ModelError, match="has no batch; freeze the model with width="):
        fl.thaw(tmp_path / "one.flz", nworld=2)
    assert fl.thaw(tmp_path / "one.flz").nworld == 1


def test_arguments_of_freeze_are_checked(tmp_path):
    model, path = fl.bundled("pendulum"), tmp_path / "a.flz"
    for width in ((), (2,), ("batch",), "batch", 1, None):
        with pytest.raises(fl.ModelError, match="width: got"):
            fl.freeze(model, path, width=width)
    with pytest.raises(fl.ModelError, match="queries: got 'jak'"):
        fl.freeze(model, path, queries=("jak",))
    with pytest.raises(fl.ModelError, match="outputs: got names without a batch"):
        fl.freeze(model, path, outputs=("xpos",))
    with pytest.raises(fl.ModelError, match="xpoz"):
        fl.freeze(model, path, width=BATCH, outputs=("xpoz",))
    with pytest.raises(TypeError, match="outputs: got 'xpos', allowed is a sequence"):
        fl.freeze(model, path, width=BATCH, outputs="xpos")
    assert not path.exists()


# ---- queries ---------------------------------------------------------------------------------------------------------
def test_queries_are_those_of_a_data(leg, rng):
    model, path, _ = leg
    data, world = fl.Data(model), fl.thaw(path)
    for each in (data, world):
        each.ctrl = 0.4
        each.step(40)
        each.forward()
    point, query = rng.uniform(-1, 1, 3), fl.query
    pairs = [
        (world.query("jac", kind="point", id="leg", point=point)["jac"], query.jac(model, data, point, "leg")),
        (world.query("jac", kind="body", id="leg")["jac"], query.jac_body(model, data, "leg")),
        (world.query("jac", kind="com", id=2)["jac"], query.jac_body_com(model, data, 2)),
        (world.query("jac", kind="geom", id=2)["jac"], query.jac_geom(model, data, 2)),
        (world.query("jac", kind="site", id="foot")["jac"], query.jac_site(model, data, "foot")),
        (world.query("full_m")["jac_M"], query.full_m(model, data)),
        (world.query("jac_dot", kind="point", id="leg", point=point)["jac"], query.jac_dot(model, data, point, "leg")),
        (world.query("object_velocity", kind="body", id="leg")["motion"], query.object_velocity(model, data, "leg")),
        (world.query("object_velocity", kind="com", id=2)["motion"], query.object_velocity(model, data, ("body", 2))),
        (world.query("object_velocity", kind="site", id="foot")["motion"],
         query.object_velocity(model, data, ("site", "foot"))),
    ]  # fmt: skip
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, np.reshape(theirs, ours.shape))
        assert ours.any()
    for direction in np.concatenate([np.eye(3), -np.eye(3), rng.normal(size=(10, 3))]):
        direction /= np.linalg.norm(direction)
        theirs = query.ray(model, data, (0.01, 0.0, 2.0), direction, bodyexclude=1)
        ours = world.query("ray", point=(0.01, 0.0, 2.0), direction=direction, exclude=1)
        assert abs(ours["distance"][0] - theirs.distance) <= 1e-15 * abs(theirs.distance)
        assert ours["geom"][0] == theirs.geom and np.allclose(ours["normal"], theirs.normal, atol=1e-15)


def test_energies_and_inverse_dynamics_are_those_of_a_data(tmp_path):
    model = fl.bundled("arm")
    model.opt.enableflags |= fl.enums.Enable.ENERGY
    fl.freeze(model, tmp_path / "world.flz", queries=("energy", "inverse"))
    data, world = fl.Data(model), fl.thaw(tmp_path / "world.flz")
    for each in (data, world):
        each.qvel = 0.3
        each.step(20)
        each.forward()
    np.testing.assert_array_equal(world.query("energy")["energy"], data.energy)
    state, qacc = world.get_state(), np.linspace(-1.0, 1.0, model.nv)
    data.qacc[:] = qacc
    fl.inverse(model, data)
    np.testing.assert_array_equal(world.query("inverse", qacc=qacc)["qfrc_inverse"], data.qfrc_inverse)
    np.testing.assert_array_equal(world.get_state(), state)
    with pytest.raises(fl.ModelError, match=r"the file has no 'jac'; freeze the model with queries=\('jac',\)"):
        world.query("jac", kind="body", id=1)


def test_arguments_of_queries_are_checked(leg):
    world = fl.thaw(leg[1])
    cases = {
        "query: got 'jacobian'": lambda: world.query("jacobian"),
        "kind: got None, allowed are point, com, body": lambda: world.query("jac"),
        "id: got 3, allowed is a whole number from 0 to 2": lambda: world.query("jac", kind="body", id=3),
        "allowed is a call without an object": lambda: world.query("full_m", kind="body", id=1),
        "ray: lacks the argument direction": lambda: world.query("ray", point=(0, 0, 0)),
        "allowed is a unit vector": lambda: world.query("ray", point=(0, 0, 0), direction=(0, 0, np.nan)),
        "jac: got pont, allowed are point": lambda: world.query("jac", kind="body", id=1, pont=0),
        r"point: got .*, allowed is what broadcasts to \(3,\)": lambda: world.query(
            "jac", kind="point", id=1, point=(0, 0)
        ),
    }
    for text, call in cases.items():
        with pytest.raises(fl.ModelError, match=text):
            call()
    with pytest.raises(fl.UnknownNameError, match="site: got 'toe'"):
        world.query("jac", kind="site", id="toe")


# ---- C ---------------------------------------------------------------------------------------------------------------
PROGRAM = r"""
#include "featherlane.h"
#include <stdio.h>

int main(int argc, char **argv) {
    char error[256];
    fl_world *batch = argc == 2 ? fl_open_batch(argv[1], NULL, 5, error, sizeof error) : NULL;
    fl_world *world = argc == 2 ? fl_open(argv[1], NULL, error, sizeof error) : NULL;
    fl_field qpos, jac;
    if (!batch || !world || !fl_find(batch, "qpos", &qpos) || !fl_find(world, "jac", &jac)) return 2;
    double *ctrl = fl_reals(batch, "ctrl");
    int64_t nu = fl_size(batch, "nu"), foot[] = {6, fl_id(world, "site", "foot")};
    for (int64_t k = 0; k < 5 * nu; k++) ctrl[k] = 0.1 * (double)k;
    fl_step(batch, 30);
    fl_reset_world(batch, 4);
    printf("%d %lld %lld\n", qpos.ndim, (long long)qpos.shape[0], (long long)qpos.shape[1]);
    for (int64_t k = 0; k < qpos.count; k++) printf("%.17g ", ((double *)qpos.values)[k]);
    fl_forward(world);
    printf("\n%d %d\n", fl_query(world, "jac", foot), fl_query(world, "none", NULL) + fl_query(batch, "jac", foot));
    for (int64_t k = 0; k < jac.count; k++) printf("%.17g ", ((double *)jac.values)[k]);
    fl_field motion;
    for (int64_t k = 0; k < nu; k++) fl_reals(world, "ctrl")[k] = 0.4;
    fl_step(world, 30);
    fl_forward(world);
    if (!fl_find(world, "motion", &motion) || !fl_query(world, "jac_dot", foot)) return 3;
    printf("\n");
    for (int64_t k = 0; k < jac.count; k++) printf("%.17g ", ((double *)jac.values)[k]);
    if (!fl_query(world, "object_velocity", foot)) return 4;
    printf("\n");
    for (int64_t k = 0; k < motion.count; k++) printf("%.17g ", ((double *)motion.values)[k]);
    fl_close(batch), fl_close(world);
    return fl_open_batch(argv[1], NULL, 0, error, sizeof error) != NULL;
}
"""


def test_c_steps_batches_and_answers_queries(leg, tmp_path):
    model, path, _ = leg
    (tmp_path / "main.c").write_text(PROGRAM)
    options = "-std=c99 -Wall -Wextra -Wconversion -Wpedantic -Werror -O1".split()
    command = [*link.compiler(), *options, f"-I{SOURCE.parent}", "-o", tmp_path / "main", tmp_path / "main.c", SOURCE]
    subprocess.run([*command, "-ldl"], check=True, timeout=120)
    done = subprocess.run([tmp_path / "main", path], capture_output=True, text=True, check=True, timeout=60)
    shape, qpos, answers, jac, jac_dot, motion = done.stdout.splitlines()
    batch, data = fl.Batch(model, 5), fl.Data(model)
    batch.ctrl = 0.1 * np.arange(5 * model.nu).reshape(5, model.nu)
    batch.step(30)
    batch.reset([4], forward=False)
    assert (shape, answers) == (f"2 5 {model.nq}", "1 0")
    np.testing.assert_array_equal(np.array(qpos.split(), float), batch.qpos.ravel())
    data.forward()
    np.testing.assert_array_equal(np.array(jac.split(), float), np.ravel(fl.query.jac_site(model, data, "foot")))
    data.ctrl = 0.4
    data.step(30)
    data.forward()
    site, foot = fl.query.object_velocity(model, data, ("site", "foot")), model.site("foot")
    rate = fl.query.jac_dot(model, data, data.site_xpos[foot.id], int(model.site_bodyid[foot.id]))
    np.testing.assert_array_equal(np.array(motion.split(), float), site)
    np.testing.assert_array_equal(np.array(jac_dot.split(), float), np.ravel(rate))
    assert site.any() and np.any(rate)
