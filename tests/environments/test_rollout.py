"""Rollouts with a compiled policy against the same steps made one by one from Python."""

import copy
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.environments import Rollout, Task, TaskEnv, make_vec
from featherlane.environments.gymnasium_v5.half_cheetah import HalfCheetah
from featherlane.extension import PolicyLoop
from featherlane.policies import MLP, LaneFunctions, gaussian_noise
from featherlane.tools.policy import episodes

N = 11  # more than a tile of float64 and no multiple of it
EQUAL = "HalfCheetah Ant Hopper Humanoid HumanoidStandup InvertedPendulum Pusher Swimmer Walker2d".split()
ROUNDED = "InvertedDoublePendulum Reacher".split()  # observed sines are those of the kernel language
SINGLE = ("Ant", "Swimmer", "Walker2d")  # float32; the others float64
ULP = 1.2e-16  # of a sine


def policy_of(env, seed=0):
    """Returns a random policy that fits an environment."""
    space, rng = env.single_action_space, np.random.default_rng(seed)
    k, nu = env.single_observation_space.shape[0], space.shape[0]
    weights = [rng.standard_normal((12, k)) / np.sqrt(k), rng.standard_normal((nu, 12)) / 4]
    return MLP(weights, std=0.5, clip=3.0, low=space.low, high=space.high)


def step_by_step(env, policy, noise, seen):
    """Returns what a rollout returns, of steps from Python."""
    rows, started = [], []
    for t in range(noise.shape[1]):
        given = noise[:, t].astype(seen.dtype)
        done = rows[-1][3] | rows[-1][4] if rows else np.zeros(len(seen), bool)
        started.append(done)
        actions = policy.sample(seen, given)
        seen, *rest = env.step(policy(seen, given))
        rows.append((seen, actions, *rest[:3]))
    return *(np.stack(part, axis=1) for part in zip(*rows, strict=True)), np.stack(started, axis=1)


def same_worlds(one, other):
    """Asserts that two environments are in the same state, generators included."""
    ones, others = one.batch.checkpoint(), other.batch.checkpoint()
    for name in ones.keys() - {"signature"}:  # of the last contacts, by which tiles are formed
        np.testing.assert_array_equal(ones[name], others[name], err_msg=name)
    for name, rows in one.batch.bound.items():
        np.testing.assert_array_equal(rows, other.batch.bound[name], err_msg=name)
    np.testing.assert_array_equal(one.elapsed, other.elapsed)
    states = [[g.bit_generator.state for g in env.random.generators] for env in (one, other)]
    assert states[0] == states[1]


@pytest.mark.parametrize("name", EQUAL)
def test_rollouts_equal_steps_bit_for_bit(name):
    dtype = "float32" if name in SINGLE else "float64"
    one, other = (make_vec(f"{name}-v5", N, nthread=k, dtype=dtype, max_episode_steps=9) for k in (2, 1))
    policy, seen = policy_of(one), one.reset(seed=1)[0]
    other.reset(seed=1)
    for block in range(2):
        noise = gaussian_noise(100 * block, nworld=N, nstep=14, n=policy.noutput)
        rollout = one.rollout(14, policy, noise)
        want = step_by_step(other, policy, noise, seen)
        np.testing.assert_array_equal(rollout.observations[:, 0], seen)
        found = rollout.observations[:, 1:], rollout.actions, rollout.rewards, rollout.terminated, rollout.truncated
        for rows, wanted in zip(found, want, strict=False):
            np.testing.assert_array_equal(rows, wanted)
        if not block:
            np.testing.assert_array_equal(rollout.started, want[-1])
        same_worlds(one, other)
        actions = np.zeros((N, policy.noutput))
        (seen, rewards, *ends), (wanted, other_rewards, *other_ends) = one.step(actions), other.step(actions)
        np.testing.assert_array_equal(seen, wanted)
        np.testing.assert_array_equal([rewards, *ends[:2]], [other_rewards, *other_ends[:2]])
    assert rollout.started.any()


@pytest.mark.parametrize("name", ROUNDED)
def test_rollouts_with_sines_equal_steps_to_rounding(name):
    one, other, third = (make_vec(f"{name}-v5", N, nthread=1) for _ in range(3))
    policy = policy_of(one)
    _, seen, _ = (env.reset(seed=1)[0] for env in (one, other, third))
    noise = gaussian_noise(0, nworld=N, nstep=60, n=policy.noutput)
    rollout = one.rollout(60, policy, noise)
    for t in range(60):
        np.testing.assert_allclose(rollout.observations[:, t], seen, rtol=0, atol=ULP)
        seen, rewards, *ends = other.step(
            policy.sample(rollout.observations[:, t], noise[:, t]).clip(policy.low, policy.high)
        )
        np.testing.assert_array_equal(rewards, rollout.rewards[:, t])
        np.testing.assert_array_equal(ends[:2], [rollout.terminated[:, t], rollout.truncated[:, t]])
        part = third.rollout(1, policy, noise[:, t : t + 1])
        np.testing.assert_array_equal(part.observations[:, 1], rollout.observations[:, t + 1])
    same_worlds(one, third)


def test_a_world_is_independent_of_the_other_worlds():
    many, alone = make_vec("Hopper-v5", N, nthread=2), make_vec("Hopper-v5", 1)
    policy, noise = policy_of(many), gaussian_noise(3, nworld=N, nstep=60, n=3)
    many.reset(seed=5), alone.reset(seed=9)  # world 4 of a seed 5
    whole, one = many.rollout(60, policy, noise), alone.rollout(60, policy, noise[4:5])
    for rows, row in zip(whole, one, strict=True):
        np.testing.assert_array_equal(rows[4], row[0])
    assert whole.terminated.any()


def test_a_bad_world_terminates_and_starts_again():
    one, other = (make_vec("HalfCheetah-v5", N, nthread=1) for _ in range(2))
    policy, noise = policy_of(one), np.zeros((N, 6, 6))
    for env in (one, other):
        env.reset(seed=2)
        env.batch.qvel[3, 0] = 1e30
    with pytest.warns(fl.NonFiniteWarning):
        rollout = one.rollout(6, policy, noise)
    seen = rollout.observations[:, 0]
    with pytest.warns(fl.NonFiniteWarning):
        _, _, rewards, ends, _, _ = step_by_step(other, policy, noise, seen)
    np.testing.assert_array_equal(rollout.terminated, ends)
    np.testing.assert_array_equal(rollout.rewards, rewards)
    assert rollout.terminated[3, 0] and rollout.started[3, 1] and rollout.terminated.sum() == 1
    same_worlds(one, other)


def test_a_nan_action_ends_the_episode_of_its_world():
    env = make_vec("HalfCheetah-v5", 3, nthread=1)
    env.reset(seed=0)
    env.batch.qvel[1] = 0.0  # the observation of world 1 gives the hidden values 0, of the others infinity
    weights = np.zeros((2, 17))
    weights[:, 8:] = 1e308
    layers = [weights, 1e308 * np.eye(2), np.tile([1.0, -1.0], (6, 1))]
    rollout = env.rollout(1, MLP(layers, activation="identity"))
    assert np.isnan(rollout.actions[[0, 2]]).all() and rollout.terminated[[0, 2], 0].all()
    np.testing.assert_array_equal(rollout.actions[1], 0.0)
    assert not rollout.terminated[1, 0] and np.isfinite(rollout.rewards).all()


def test_a_reset_after_an_interrupt_is_reproducible(monkeypatch):
    one, other = (make_vec("InvertedPendulum-v5", N, nthread=1) for _ in range(2))
    policy, noise, run, count = (
        policy_of(one),
        gaussian_noise(0, nworld=N, nstep=30, n=1),
        episodes.work,
        iter(range(9)),
    )
    monkeypatch.setattr(episodes, "PIECE_SECONDS", 0.0)  # one step in each piece

    def interrupted(*arguments):
        if next(count) == 4:
            raise KeyboardInterrupt
        run(*arguments)

    one.reset(seed=0)
    one.batch.runner.at_once = 1
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(episodes, "work", interrupted)
        one.rollout(30, policy, noise)
    assert len(set(one.batch.time)) <= 2  # worlds that started in the last step are at zero
    for env in (one, other):
        env.reset(seed=4)
    for rows, want in zip(one.rollout(30, policy, noise), other.rollout(30, policy, noise), strict=True):
        np.testing.assert_array_equal(rows, want)
    same_worlds(one, other)


def test_pieces_and_copies_change_no_result(monkeypatch):
    one = make_vec("InvertedPendulum-v5", N, nthread=1)
    policy, noise = policy_of(one), gaussian_noise(0, nworld=N, nstep=40, n=1)
    one.reset(seed=0)
    other = copy.deepcopy(one)
    whole = one.rollout(40, policy, noise)
    monkeypatch.setattr(episodes, "PIECE_SECONDS", 0.0)
    other.batch.runner.at_once = 1  # one step in each piece
    for rows, parts in zip(whole, other.rollout(40, policy, noise), strict=True):
        np.testing.assert_array_equal(rows, parts)
    same_worlds(one, other)
    assert whole.terminated.sum() > N


class Balance(Task):
    """Keeps the pole of a cart upright, for a reward of its height at a cost of controls."""

    model, frame_skip, max_episode_steps, fields = "cartpole", 2, 7, ("xpos",)
    cost = 0.01

    def observation(self, worlds):
        return {"qpos": worlds.qpos, "qvel": worlds.qvel, "x": worlds.xpos[:, 2, :1]}

    def before(self, worlds):
        return worlds.xpos[:, 2, 2].copy()

    def reward(self, worlds, actions, before):
        return {"up": worlds.xpos[:, 2, 2] - before, "effort": -self.cost * np.square(actions[:, 0])}

    def terminated(self, worlds):
        return np.abs(worlds.qpos[:, 1]) > 0.3

    def start(self, worlds, ids, random):
        worlds.qpos[ids, 1] = random.uniform(ids, -0.1, 0.1, 1)[:, 0]

    def compiled(self, worlds):
        nq, nv, cost = worlds.model.nq, worlds.model.nv, self.cost

        @fl.kernel
        def observe(d, p, at_start):
            for k in range(nq):
                p.obs[k], p.obs[nq + k] = d.qpos[k], d.qvel[k]
            p.obs[nq + nv] = d.xpos[2].x

        @fl.kernel
        def remember(d, p, at_start):
            p.next[0] = d.xpos[2].z

        @fl.kernel
        def score(d, p, at_start):
            p.reward[0] = p.reward[0] + (d.xpos[2].z - p.before[0])
            p.reward[0] = p.reward[0] + -cost * (d.ctrl[0] * d.ctrl[0])
            p.terminated[0] = fl.lanes.where(fl.lanes.fabs(d.qpos[1]) > 0.3, 1.0, 0.0)

        return LaneFunctions(observe, score, remember, 1)


@pytest.mark.parametrize("mode", ["auto", "python"])
def test_a_custom_task_is_compiled_and_follows_its_numbers(mode, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_MODE", mode)
    n, steps = (N, 20) if mode == "auto" else (3, 3)
    one, other = (TaskEnv(Balance(), n, nthread=1) for _ in range(2))
    one.batch.expand("body_mass")[:, 2] *= np.linspace(0.5, 2.0, n)
    other.batch.expand("body_mass")[:] = one.batch.expand("body_mass")
    policy, seen = policy_of(one), one.reset(seed=0)[0]
    other.reset(seed=0)
    for cost in (0.01, 0.5):
        one.task.cost = other.task.cost = cost
        noise = gaussian_noise(0, nworld=n, nstep=steps, n=1)
        rollout = one.rollout(steps, policy, noise)
        want = step_by_step(other, policy, noise, seen)
        np.testing.assert_array_equal(rollout.rewards, want[2])
        np.testing.assert_array_equal(rollout.observations[:, 1:], want[0])
        seen = want[0][:, -1]


def test_prebuilt_mode_refuses_to_compile(monkeypatch):
    env = TaskEnv(Balance(), 2)
    env.reset(seed=0)
    env.rollout(1, policy_of(env))
    monkeypatch.setenv("FEATHERLANE_MODE", "prebuilt")
    with pytest.raises(fl.ModelError, match="prebuilt"):
        env.rollout(1, policy_of(env))


class Reckless(HalfCheetah):
    """Overrides the reward, but not its compiled form."""

    def reward(self, worlds, actions, before):
        return {"forward": worlds.qvel[:, 0]}


class Broken(Balance):
    """Returns functions that are set by a test."""

    functions = ()

    def compiled(self, worlds):
        return LaneFunctions(*self.functions)


@fl.kernel
def reads_frames(d, p, at_start):
    p.obs[0] = d.site_xpos[0].x


@fl.kernel
def too_few(d, p):
    p.obs[0] = 0.0


@fl.kernel
def branches(d, p, at_start):
    if d.qpos[0] > 0.0:
        p.obs[0] = 1.0


@fl.kernel
def leaves(d, p, at_start):
    p.obs[1000] = d.qpos[0]


@fl.kernel
def score(d, p, at_start):
    p.terminated[0] = 0.0


@fl.kernel
def infinite(d, p, at_start):
    p.reward[0] = 1.0 / (d.qpos[0] * 0.0)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ((reads_frames, score), "observe: got reads of site_xpos"),
        ((too_few, score), "observe: got a function with the parameters"),
        ((branches, score), "observe cannot be compiled"),
        ((leaves, score), r"Play.obs\[1000\] of"),
        ((score, infinite), "reward: got"),
        ((len, score), "observe: got builtin"),
    ],
)
def test_invalid_functions_are_refused(functions, message):
    env = TaskEnv(Broken(), 2)
    env.task.functions = functions
    env.reset(seed=0)
    with pytest.raises(fl.ModelError, match=message):
        env.rollout(1, policy_of(env))


def with_a_delayed_sensor(spec):
    spec.add_sensor(
        name="angle", type=mujoco.mjtSensor.mjSENS_JOINTPOS, objtype=mujoco.mjtObj.mjOBJ_JOINT,
        objname=spec.joints[0].name, delay=0.02, nsample=4,
    )  # fmt: skip


def test_unsupported_environments_and_arguments_are_refused():
    env = TaskEnv(Balance(), 2)
    env.reset(seed=0)
    policy = policy_of(env)
    other = make_vec("Ant-v5", 2)
    other.reset()
    cases = [
        (TaskEnv(Reckless(), 2), "Reckless overrides reward"),
        (TaskEnv(Balance(), 2, autoreset_mode="SameStep"), "allowed is NextStep"),
        (TaskEnv(Balance(), 2, record_failures=3), "record_failures"),
        (make_vec("Ant-v5", 2, derived="fresh"), "derived"),
    ]
    for wrong, message in cases:
        wrong.reset()
        with pytest.raises(fl.ModelError, match=message):
            wrong.rollout(1, policy_of(wrong))
    delayed = Balance()
    delayed.model = fl.load("cartpole", edit=with_a_delayed_sensor)
    with pytest.raises(fl.ModelError, match="got the sensor 'angle' with a history"):
        wrong = TaskEnv(delayed, 2)
        wrong.reset()
        wrong.rollout(1, policy)
    with pytest.raises(fl.ModelError, match="policy: got 5 inputs and 1 outputs"):
        other.rollout(1, policy)
    with pytest.raises(fl.ModelError, match="policy: got int"):
        env.rollout(1, 3)
    with pytest.raises(fl.ModelError, match="nstep: got 0"):
        env.rollout(0, policy)
    for noise, message in ((np.zeros((2, 1)), "shape"), (np.full((2, 1, 1), np.nan), "nan at")):
        with pytest.raises(fl.ModelError, match=f"noise: got {message}"):
            env.rollout(1, policy, noise)

    class Scaling(Balance):
        def act(self, worlds, actions, ids):
            super().act(worlds, 2.0 * actions, ids)

        compiled = Balance.compiled

    class Proceeding(Balance):
        proceed, compiled = Balance.started, Balance.compiled

    for kind, message in ((Scaling, "act sets other controls"), (Proceeding, "overrides proceed")):
        with pytest.raises(fl.ModelError, match=message):
            env = TaskEnv(kind(), 2)
            env.reset(seed=0)
            env.rollout(1, MLP([np.ones((1, 5))], offset=0.5))

    class Plain(Balance):
        compiled = Task.compiled

    with pytest.raises(fl.ModelError, match=r"does not define compiled\(\)"):
        env = TaskEnv(Plain(), 2)
        env.reset()
        env.rollout(1, policy)


def test_a_loop_runs_worlds_without_an_environment():
    """Episodes of 4 steps from rest, with a policy that pushes; the step after an episode starts the next one."""
    model, policy = fl.bundled("cartpole"), MLP([[[0.1, 0.2, 0.3, 0.4]]], [[0.5]])
    n, nq, nv = 3, model.nq, model.nv

    @fl.kernel
    def observe(d, p, at_start):
        for k in range(nq):
            p.obs[k], p.obs[nq + k] = d.qpos[k], d.qvel[k]

    @fl.kernel
    def score(d, p, at_start):
        p.reward[0] = p.reward[0] + d.qpos[0]

    loop = PolicyLoop(
        fl.Batch(model, n, nthread=1), LaneFunctions(observe, score), label="push", ninput=nq + nv, limit=4
    )
    left = []
    found = loop.run(
        7, policy, lambda k: SimpleNamespace(rows=np.zeros((n, k, nq + nv)), leave=lambda used: left.append(used))
    )
    result = Rollout(*found)
    batch, seen = fl.Batch(model, n, nthread=1), np.zeros((n, nq + nv))
    for t in range(4):
        np.testing.assert_array_equal(result.observations[:, t], seen)
        batch.ctrl = policy(seen)
        batch.step()
        seen = np.concatenate((batch.qpos, batch.qvel), axis=1)
        np.testing.assert_array_equal(result.rewards[:, t], batch.qpos[:, 0])
    assert np.flatnonzero(result.truncated[0]).tolist() == [3] and not result.terminated.any()
    assert np.flatnonzero(result.started[0]).tolist() == [4] and (result.rewards[:, 4] == 0.0).all()
    np.testing.assert_array_equal(result.observations[:, 5:7], result.observations[:, 0:2])
    assert left[-1].tolist() == [1] * n and loop.elapsed.tolist() == [2] * n
