"""Uses every public name but the functions of kernels; `tests/test_typing.py` checks it with pyright in strict mode."""

from pathlib import Path
from typing import Any

import numpy as np

import featherlane as fl
from featherlane import (
    distributed,
    enums,
    environments,
    errors,
    extension,
    lanes,
    lcp,
    query,
    registration,
    results,
    stages,
    tree,
)

Array = np.ndarray[Any, np.dtype[Any]]

PUSH = """
<mujoco>
  <worldbody>
    <site name="origin"/>
    <body name="box"><joint name="slide" type="slide"/><geom name="side" size=".1"/><site name="tip"/></body>
  </worldbody>
  <tendon><spatial name="way"><site site="origin"/><site site="tip"/></spatial></tendon>
  <actuator><general name="wire" joint="slide" gaintype="user" gainprm="2" delay="0.01" nsample="5"/></actuator>
  <sensor><user name="height" dim="1" needstage="pos" nsample="5"/></sensor>
  <keyframe><key name="home" qpos="0.1"/></keyframe>
</mujoco>
"""


# ---- models ----------------------------------------------------------------------------------------------------------
@fl.kernel
def gain(m: Any, d: Any, i: int) -> float:
    """Returns the gain of actuator i."""
    return m.actuator_gainprm[i][0]


@fl.kernel
def drive(m: Any, d: Any, p: Any) -> None:
    """Sets the controls to the targets."""
    for k in range(m.nu):
        d.ctrl[k] = p.target[k]


def height(model: fl.Model, xpos: Array) -> Array:
    """Returns the height of the box, (..., 1)."""
    return xpos[..., 1, 2:]


def edit(spec: Any, length: float) -> None:
    spec.body("lower").pos = [0, -0.05, -length]


def models() -> fl.Model:
    names: list[str] = fl.bundled_names()
    model: fl.Model = fl.bundled("box_stack", links=fl.Link("ball", 1, "world", anchor=(0.0, 0.0, 1.0)))
    model = fl.load(Path("robot.urdf"), package_dirs=["packages"], repair=True)
    model = fl.load(
        "robot.urdf",
        base="free",
        floor=True,
        height="auto",
        home={"knee": 0.6},
        actuators={"knee": "position", "wheel": "velocity"},
        gains={"knee": (100.0, 5.0), "wheel": 2.0},
        edit=lambda spec: spec.worldbody.add_site(name="goal"),
    )
    model = fl.load("cup.xml", collision={"geoms": ["cup"], "octree_maxdepth": 7})
    divided: list[results.Decomposition] = fl.load("cup.xml", convex_decomposition={"threshold": 0.1}).decompositions
    volume: float = sum(part.volume for part in divided)
    model = fl.load(PUSH, assets={"mesh.obj": b""})
    model = fl.load("scene.xml", variants={"object": ["mug", "bowl"], "arm": {"long": lambda spec: None}})
    source: str = model.source
    fl.set_user_actuator(model, "wire", gain=gain)
    fl.set_user_sensor(model, "height", height, reads=("xpos",))
    fl.set_const(model)
    fl.set_length_range(model, ["wire"], uselimit=True)
    option: results.Option = model.opt
    option.timestep = 0.001
    stat: results.Statistics = model.stat
    extent: float = stat.extent + stat.meaninertia + stat.meanmass + stat.meansize
    box: results.NamedView = model.body("box")
    box.mass = 2.0
    where: int = box.id + len(box.name)
    found: results.Variants = fl.variants("double_pendulum", [0.5, 0.6], edit)
    first: fl.Model = found.models[0][0]
    place: Array = found.place
    findings: list[results.Finding] = fl.diagnose(model, ["trial"])
    lines: list[str] = [str(finding) + finding.severity for finding in findings]
    mj: Any = model.to_mujoco()
    print(names, source, volume, extent, where, first, place, lines, mj, model.names("joint"), model.size_values())
    fl.show_config()
    return model


# ---- worlds ----------------------------------------------------------------------------------------------------------
def one_world(model: fl.Model) -> fl.Data:
    data = fl.Data(model, given_contacts=4)
    fl.step(model, data, nstep=2)
    fl.forward(model, data)
    fl.inverse(model, data)
    fl.reset_data(model, data)
    fl.reset_data_keyframe(model, data, "home")
    fl.set_keyframe(model, data, "home")
    data.step(3)
    data.forward()
    data.reset(keyframe="home")
    recorded: dict[str, Array] = data.rollout(10, np.zeros((10, model.nu)), record=["qpos", "time"])
    recorded = data.rollout(10, lambda data, step: np.zeros(model.nu))
    contacts = fl.Contacts([-0.001], [[0.0, 0.0, -0.1]], [[0.0, 0.0, 1.0]], body=[[0, 1]], friction=1.0)
    data.give_contacts(contacts, replace=True)
    data.clear_given_contacts()
    copied: fl.Data = data.copy()
    bits: fl.State = fl.State.QPOS | fl.State.QVEL
    state: Array = fl.get_state(model, copied, bits)
    fl.set_state(model, copied, state, bits)
    copied.set_state(copied.get_state())
    size: int = fl.state_size(model, bits) + copied.ne + copied.nefc
    fl.init_ctrl_history(model, data, "wire", None, np.zeros(5))
    control: Array = fl.read_ctrl(model, data, "wire", time=0.0)
    fl.init_sensor_history(model, data, "height", None, np.zeros(5), phase=0.0)
    control = fl.read_sensor(model, data, "height", time=0.0)
    fl.add_sensor_noise(model, data, rng=0)
    counts: dict[str, int] = data.status
    there: Array = fl.integrate_pos(model, model.qpos0, np.zeros(model.nv), 0.1)
    velocity: Array = fl.differentiate_pos(model, 0.1, model.qpos0, there)
    print(recorded, size, control, counts, velocity, fl.normalize_quat(model, there), data.contact, data.qpos)
    return data


def with_error_control(model: fl.Model, batch: fl.Batch) -> None:
    result: results.Integration = fl.integrate(
        model,
        batch,
        [0.1] * 8,
        accuracy=1e-4,
        times=[0.05, 0.1],
        record="qpos",
        control=lambda time, worlds: np.zeros(model.nu),
        event=lambda time, worlds: worlds.qpos[:, 0],
        min_step=1e-8,
        max_step=0.01,
        max_steps=1000,
        velocity_time=0.1,
    )
    ends: Array = result.status == results.IntegrationStatus.REACHED
    recorded: dict[str, Array] = result.recorded
    print(ends, recorded, result.evaluations, fl.integrate(model, fl.Data(model), 0.1, control=np.zeros(1)).error)


def many_worlds(model: fl.Model) -> fl.Batch:
    batch = fl.Batch(model, nworld=8, nthread=2, dtype="float32", record_failures=5)
    batch.step(2, ids=[0, 3])
    batch.step(ids=np.arange(8) % 2 == 0)
    batch.forward()
    batch.reset(ids=1, keyframe="home")
    masses: Array = batch.expand("body_mass")
    masses[:, 1] *= np.linspace(0.5, 1.5, 8)
    batch.set_const()
    batch.set_variant("object", "mug", ids=[0, 3], inertia=False)
    held: Array = batch.get_variant("object", ids=[0, 3])
    arcs: tuple[Array, Array] = batch.tendon_arcs(ids=[1])
    print(held, arcs)
    groups: list[str] = [*model.variants, *model.variants["object"]]
    position: Array = batch.bind("xpos")
    out = {"qpos": np.empty((8, 20, model.nq), np.float32)}
    recorded: dict[str, Array] = batch.rollout(20, np.zeros((8, 20, model.nu)), record=("qpos",), out=out)
    recorded = batch.rollout(20, {"ctrl": np.zeros((20, model.nu))}, reduce="mean")
    recorded = batch.rollout(20, lambda batch, step: np.zeros((8, model.nu)), ids=None)
    hits: results.Hits = batch.ray([0.0, 0.0, 1.0], [0.0, 0.0, -1.0], geoms=[0])
    images: results.Images = batch.render(0, width=8, height=6, output=("depth", "segmentation"))
    controller = fl.Controller(batch, drive, target=2)
    controller.target = 1.0
    arm = fl.controllers.OperationalSpace(batch, "hand", ["wire", 1], orientation=False, decoupled=False)
    arm.target_pos = [0.1, 0.0, 0.0]
    print(batch.rollout(25, control=arm), arm.stiffness * 2.0)
    actions = fl.controllers.Actions(
        input_min=-1.0,
        input_max=[1.0],
        output_min=None,
        output_max=0.1,
        input_type="delta",
        impedance_mode="fixed",
        kp_limits=(0.0, 300.0),
        damping_ratio_limits=(0.0, 10.0),
        single_precision_rotations=False,
    )
    reach = fl.controllers.OperationalSpace(
        batch, 0, [0], orientation="held", base="hand", actions=actions, position_limits=(-1.0, [1.0, 1.0, 2.0])
    )
    joint = fl.controllers.JointPosition(batch, ["wire"], actions=actions, compensated=True, position_limits=(-1, 1))
    speed = fl.controllers.JointVelocity(
        batch, ["wire"], 2.0, actions=actions, compensated=True, velocity_limits=(-1, 1)
    )
    torque = fl.controllers.JointTorque(batch, ["wire"], actions=None, compensated=True, torque_limits=None)
    fingers = fl.controllers.Gripper(batch, [0], directions=-1, columns=[0], speed=0.2, binary=True, each_step=False)
    robot = fl.controllers.Composite({"arm": reach, "hand": fingers})
    robot.set_goal(np.zeros((8, robot.action_width)), "desired")
    robot.reset(ids=[0])
    least: Array = robot.action_limits[0]
    print(least, robot.columns["arm"], robot.parts["arm"].actuators, joint.goal, speed.kp, torque.goal)
    goal: Array = controller.target + controller.rows["target"]
    print(batch.rollout(2, controller)["qpos"], controller.function, goal)
    noise = fl.DepthNoise(std=0.01, growth=0.001, quantization=0.001, dropout=0.01, fill=0.0, seed=[1, 2])
    camera = fl.Camera(
        "eye", width=8, height=6, output=("depth", "rgb"), noise=noise, geom_rgb=np.zeros((model.ngeom, 3))
    )
    images = batch.render(camera, ids=[0])
    batch.rollout(2, record=("qpos", camera))
    targets = [
        fl.IkTarget(("site", "tip"), position=(0.0, 0.0, 1.0)),
        fl.IkTarget(("geom", "side"), orientation=(1, 0, 0, 0)),
    ]
    solved: results.IkSolution = fl.ik(batch, targets, dofs=["slide"], posture_weight=0.01, restarts=2, tolerance=1e-3)
    print(solved.qpos, solved.position_error, solved.status == results.IkStatus.REACHED)
    beams: fl.patterns.RayPattern = fl.patterns.lidar(channels=[-5.0, 5.0], horizontal=(-30, 30))
    scanned: results.Scan = batch.scan(
        ("site", 0), beams, alignment="base", output=("distance", "point"), bodyexclude=-1
    )
    heights: Array = batch.height_scan("box", fl.patterns.grid(order="yx"), ids=[1], miss=0.0)
    heights = batch.height_scan(1, fl.patterns.ring([0.1, 0.2]), alignment="world", out=np.empty((8, 17), np.float32))
    jacp, jacr = batch.jac([("geom", 0), "box"], local=True)
    jacp, jacr = batch.jac_dot([0.0, 0.0, 0.1], "box", ids=[3])
    matrices: list[Array] = [batch.coriolis_matrix(), batch.torque_regressor(0.0), batch.inertial_parameters([1])]
    matrices += [batch.moment_arms(), batch.moment_arms([1])]
    matrices += [batch.full_m(), batch.angular_momentum_matrix(1), batch.jac_subtree_com("box"), jacp, jacr]
    motions: list[Array] = [
        batch.object_velocity(("geom", "side")),
        batch.object_acceleration([("site", 0)], local=True),
    ]
    touching: results.ContactLists = batch.contacts(("geom", 0), ["box"], output="force", num=2, reduce="maxforce")
    pushes: list[Array] = [batch.net_contact_force("box"), batch.net_contact_force(["box"], ("subtree", 0), ids=[2])]
    print(images.depth, scanned.point, heights, matrices, motions, touching.found, pushes)
    apart: results.Distances = batch.geom_distance("side", 0)
    now: dict[str, Array] = batch.present_fields(("xpos", "sensordata"), ids=[0])
    batch.inverse(np.zeros((8, model.nv)))
    forces: Array = batch.qfrc_inverse
    kept: dict[str, Array] = batch.checkpoint()
    batch.restore(kept)
    data: fl.Data = batch.get_data(3)
    one: fl.Model = batch.get_model(3)
    status: dict[str, Array] = batch.status
    batch.set_state(batch.get_state(fl.State.PHYSICS), fl.State.PHYSICS)
    if batch.failures:
        failure: results.Failure = batch.failures[0]
        failure.save("failure.npz")
        again: fl.Data = fl.load_failure("failure.npz").replay(-1, checked=True)
        print(failure.cause, failure.time, again)
    digest: str = fl.freeze(one, "world.flz", targets=("x86-64-v3",), data=data)
    frozen: results.FrozenWorld = fl.thaw("world.flz", trust=digest)
    together: results.FrozenBatch = fl.thaw("world.flz", nworld=8)
    together.set_state(together.get_state())
    jacobian: np.ndarray = frozen.query("jac", kind="body", id=1)["jac"]
    jacobian.sum()
    frozen.step(2)
    frozen.set_state(frozen.get_state())
    print(frozen.contact, frozen.status, frozen.constant("body_mass"), frozen.id("body", "torso"), frozen.self_test())
    print(now, groups, position, recorded, hits.normal, apart.fromto, forces, data, one, status, batch.copy())
    return batch


def energy(worlds: fl.Worlds) -> float:
    worlds.step(5)
    worlds.qvel = np.zeros(worlds.qvel.shape)
    worlds.bind("energy")
    worlds.forward()
    state: Array = worlds.get_state()
    worlds.set_state(state)
    assert worlds.count_of("non_finite").shape == (worlds.nworld,)
    recorded: dict[str, Array] = worlds.rollout(3, record=("energy", fl.Camera("eye", width=8, height=6)))
    return float(recorded["energy"].sum()) + worlds.nworld


def kinds(model: fl.Model, batch: fl.Batch) -> float:
    mixed = fl.MixedBatch([(model, 3), (fl.bundled("arm"), 2)])
    mixed.reset(ids=[0], forward=False)
    mask: Array = mixed.mask("qpos")
    mixed.set_state(mixed.get_state())
    models: tuple[fl.Model, ...] = mixed.models
    assert len(models) == 2 and mixed.count_of("non_finite").sum() == 0
    twice = fl.MixedBatch([(model, 1), (model, 1)], cpu_ids=[0])
    assert fl.Batch(model, 2, cpu_ids=(0,)).nthread == twice.nthread == 1
    copied: fl.MixedBatch = twice.copy()
    assert copied.models == (model, model) and batch.groups[0].nworld == batch.nworld and batch.models == (model,)
    linear: results.Linearization = fl.linearize(twice.models, twice)
    seen: results.Images = twice.render("eye", width=8, height=6, output="normal", ids=[1], far=3.0)
    found: results.Scan = twice.scan("box", fl.patterns.ring(), output="geom")
    heights: Array = twice.height_scan("box", fl.patterns.grid(), miss=1.0)
    print(seen.normal, found.geom, heights)
    assert linear.A.ndim == 3
    return energy(batch) + energy(mixed) + float(mask.sum())


def shown(batch: fl.Batch) -> None:
    with fl.view(batch.model, batch, port=0, token=False) as page:
        view: results.View = page
        while view.is_running():
            view.draw.arrow("force", np.zeros(3), [0.0, 0.0, 1.0], color=(1, 0, 0), radius=0.02, world=1)
            view.draw.line("path", np.eye(3))
            view.draw.points("feet", np.eye(3))
            view.draw.text("state", "stance", [0.0, 0.0, 1.0])
            view.draw.clear("state")
            view.sync()
        print(view.url, view.visitors)
    print(fl.export_html(batch.model, {"time": np.zeros((1, 2)), "qpos": np.zeros((1, 2, 7))}, "motion.html", fps=50))


# ---- derivatives and queries -----------------------------------------------------------------------------------------
def speed_gradient(step: int, state: results.RolloutState) -> Array | None:
    return np.concatenate([0 * state.qpos, 2 * state.qvel], -1) if step == 50 else None


def derivatives(model: fl.Model, data: fl.Data, batch: fl.Batch) -> None:
    step: results.Linearization = fl.linearize(model, batch, sensors=True, parameters=["body_mass[box]"])
    differences = fl.linearize(model, data, method="finite_difference", eps=1e-5, centered=False)
    print(step.A, step.B, step.C, step.D, step.P["body_mass[box]"], step.switching, differences.A)
    rates: results.AccelerationDerivatives = fl.acceleration_derivatives(model, data)
    forces: results.InverseDerivatives = fl.inverse_derivatives(model, data, qacc=np.zeros(model.nv))
    smooth: results.RneaDerivatives = fl.rnea_derivatives(model, data)
    gradient: results.RolloutGradient = fl.rollout_gradient(
        model, batch, np.zeros((50, 1)), loss_gradient=speed_gradient
    )
    end: results.RolloutState = gradient.end
    print(rates.DaDu, forces.DfDq, smooth.DtauDv, gradient.control, end.time)


def queries(model: fl.Model, data: fl.Data) -> None:
    linear, angular = query.jac(model, data, [0.0, 0.0, 0.1], "box")
    pairs: list[tuple[Array, Array]] = [query.jac_body(model, data, 1), query.jac_body_com(model, data, "box")]
    pairs += [query.jac_geom(model, data, "side"), query.jac_site(model, data, "tip")]
    middle: Array = query.jac_subtree_com(model, data, 0)
    velocity: Array = query.object_velocity(model, data, ("body", "box"), local=True)
    rate: Array = query.object_acceleration(model, data, ("body", "box"), local=True)
    rates: tuple[Array, Array] = query.jac_dot(model, data, [0.0, 0.0, 0.1], "box")
    momentum: Array = query.angular_momentum_matrix(model, data, 1)
    print(rate, rates, momentum, fl.lcp.Problem.from_data(data).n)
    pull: Array = query.apply_ft(model, data, [0.0, 0.0, 5.0], np.zeros(3), (0.0, 0.0, 0.0), "box")
    forces: list[Array] = [query.contact_force(model, data, k) for k in range(data.ncon)]
    violation: tuple[Array, Array] = query.contact_residual(model, data)
    pulled: Array = query.equality_force(model, data, "weld")
    elements: list[lcp.RowElement] = lcp.Problem.from_data(data).elements
    print(pulled, elements)
    mass: Array = query.full_m(model, data)
    coriolis: Array = query.coriolis_matrix(model, data)
    arms: Array = query.moment_arms(model, data)
    parameters: Array = query.inertial_parameters(model, data)
    regressor: Array = query.torque_regressor(model, data, data.qacc)
    print(coriolis, arms, parameters, regressor)
    product: Array = query.mul_m(model, data, query.solve_m(model, data, np.ones(model.nv)))
    hits: results.Hits = query.ray(model, data, [0.0, 0.0, 1.0], [0.0, 0.0, -1.0], bodyexclude="box")
    apart: results.Distances = query.geom_distance(model, data, "side", [0], distmax=2.0)
    path: results.TendonPath = query.tendon_path(model, data, 0)
    mixed: results.ContactParameters = query.contact_parameters(model, "side", 0)
    print(mixed.friction, mixed.dim)
    print(linear, angular, pairs, middle, velocity, pull, forces, violation, mass, product, hits.geom, apart.distance)
    print([line.shape for line in path.branches()])


def in_stages(model: fl.Model, data: fl.Data) -> None:
    stages.kinematics(model, data)
    stages.frames(model, data)
    stages.com_pos(model, data)
    stages.cameras(model, data)
    stages.tendon(model, data)
    stages.crb(model, data)
    stages.factor_m(model, data)
    stages.transmission(model, data)
    stages.collision(model, data)
    stages.forward_position(model, data)
    stages.com_vel(model, data)
    stages.rne_vel(model, data)
    stages.passive_vel(model, data)
    stages.actuator_vel(model, data)
    stages.smooth_vel(model, data)
    stages.passive(model, data)
    stages.forward_velocity(model, data)
    stages.actuation(model, data)
    stages.smooth_acceleration(model, data)
    stages.make_constraint(model, data)
    stages.islands(model, data)
    stages.solve(model, data)
    stages.forward_constraint(model, data)
    stages.rne_post_constraint(model, data)
    stages.subtree_vel(model, data)
    stages.energy(model, data)
    stages.aba(model, data)
    stages.euler(model, data)
    stages.implicit(model, data)
    stages.implicitfast(model, data)
    stages.runge_kutta(model, data)
    stages.compare_forward_inverse(model, data)
    bias: Array = stages.rne(model, data, flg_acc=True)
    forces: Array = stages.inverse_smooth(model, data)
    half: Array = stages.half_solve(model, data, np.ones(model.nv))
    print(bias, forces, half)


# ---- modules ---------------------------------------------------------------------------------------------------------
def points() -> None:
    found: registration.Registration = registration.register_points(np.eye(3), 2.0 * np.eye(3))
    status = registration.RegistrationStatus.UNIQUE
    rotation, translation, scale = found
    print(rotation, translation, scale, found.residual, found.rank, found.status == status)


def complementarity() -> None:
    A, b = np.eye(2), np.ones(2)
    problem = lcp.Problem(A, b, lo=np.zeros(2), hi=np.ones(2))
    solution: lcp.Solution = lcp.solve(problem, method="pgs", iterations=50)
    many: lcp.BatchSolution = lcp.solve_batch(A[None], b[None])
    cone: lcp.Solution = lcp.solve_cone(problem)
    print(lcp.cone_residual(problem, cone.x))
    again: lcp.Solution = lcp.Solver(2).solve(problem)
    lcp.register("mine", gain, iterations=10)
    methods: dict[str, lcp.Method] = lcp.methods()
    status = lcp.Status.SOLVED
    print(solution.x, many.x, again.status == status, problem.residual(solution.x), methods)
    try:
        lcp.solve(A, b, method="pgs", unknown=1)
    except (lcp.OptionError, lcp.ProblemError) as error:
        print(error)


def sparsity() -> None:
    parents = tree.from_book([0, 1, 1])
    tree.check_parents(parents)
    print(tree.depth(parents), tree.subtree(parents), tree.support(parents), tree.to_book(parents))
    pattern = tree.sparsity(tree.expand_parents(parents, [1, 1, 1]))
    H = np.where(pattern, 0.1, 0.0) + np.eye(3)
    tree.check_sparsity(H, parents)
    L, D = tree.ltdl(H, parents)
    factor = tree.ltl(H, parents)
    x = tree.solve(H, parents, np.ones(3), factorization="ltl")
    y = tree.mul_h(H, parents, x) + tree.mul_l(factor, parents, x) + tree.mul_lt(L, parents, x, unit=True)
    z = tree.solve_l(factor, parents, y) + tree.solve_lt(factor, parents, y)
    counts: tree.BranchCounts = tree.branch_counts(parents)
    costs: dict[str, tree.Cost] = tree.cost_table(parents)
    compared: tree.ForwardCosts = tree.compare_costs(parents)
    inertia = tree.inertia_from_inverse_dynamics(lambda qdd: H @ qdd, 3)
    print(D, z, counts, {name: cost.flops for name, cost in costs.items()}, compared.ratio, inertia)
    print(tree.choose_forward_dynamics(parents))


def on_a_cluster(model: fl.Model) -> None:
    with distributed.Batch(model, nworld=100) as spread:
        spread.set("qvel", np.zeros((100, model.nv)))
        spread.step(5, ids=[1, 2])
        recorded: dict[str, Array] = spread.rollout(5)
        counts: Array = spread.reduce(distributed.Histogram((-1.0, 0.0, 1.0)), "qpos")
        print(recorded, counts, spread.reduce("mean", "qpos"), spread.get("qpos"), energy(spread))
    cluster: distributed.Cluster = distributed.connect("10.0.0.1:6379")
    solver: distributed.Source = distributed.choice(["newton", "cg"])
    parameters = {
        "opt.solver": solver,
        "body_mass[box]": distributed.uniform(0.5, 1.5),
        "geom_friction": distributed.log_uniform(0.5, 1.5, apply="scale"),
        "qpos": distributed.normal(0.0, 0.1, each=True),
        "qvel": distributed.drawn(lambda rng: rng.uniform(-1, 1, 1)),
        "ctrl": distributed.grid([0.0, 1.0]),
        "act": distributed.values([[0.0], [1.0]]),
    }
    try:
        result: distributed.Sweep = distributed.sweep(
            model, parameters, 50, reduce={"end": "final qpos[0]"}, nodes=cluster
        )
    except distributed.SweepInterrupted:
        result = distributed.load_sweep("sweep.npz")
    result.save("sweep.npz")
    print(result.parameters, result.results, result.columns, result.bad(), len(result), cluster.cores)


class SwingUp(environments.Task):
    """Defines a task by its reward and its initial states."""

    model = "cartpole"

    def observation(self, worlds: fl.Batch) -> Array:
        return worlds.qpos

    def reward(self, worlds: fl.Batch, actions: Array, before: Any) -> Array:
        return np.cos(worlds.qpos[:, 1])

    def start(self, worlds: fl.Batch, ids: Array, random: environments.RandomStreams) -> None:
        worlds.qpos[ids, 1:] = random.uniform(ids, -0.5, 0.5, 1)


class Sensed(environments.Task):
    """Has an actor with noise and a critic without it."""

    model = "cartpole"

    def observation(self, worlds: fl.Batch) -> dict[str, dict[str, Array]]:
        return {"actor": {"qpos": worlds.qpos}, "critic": {"qpos": worlds.qpos, "qvel": worlds.qvel}}

    def observation_noise(
        self, worlds: fl.Batch, ids: Array, random: environments.RandomStreams
    ) -> dict[str, dict[str, Array]]:
        return {"actor": {"qpos": 0.01 * random.normal(ids, 2)}}


class Slow(environments.VelocityTask):
    """Defines a walking task by its reward terms."""

    def terms(self, worlds: fl.Batch) -> dict[str, Array]:
        return super().terms(worlds) | {
            "high": worlds.qpos[:, 2] - self.height_at(worlds.qpos[:, 0], worlds.qpos[:, 1])
        }


def robot_tasks() -> list[environments.RobotTask]:
    walkers = [environments.QuadrupedRough(terrain=("rough",), push=0.3), environments.HumanoidRough(curriculum=True)]
    flat = [environments.Quadruped(mass=(0.9, 1.1)), environments.HumanoidWalk(cadence=1.0), Slow()]
    arms: list[environments.ArmTask] = [environments.ArmReach(rate=2.0), environments.ArmPush(spread=0.3)]
    return [*walkers, *flat, *arms, environments.HandTurn(speed=0.5)]


def observed(batch: fl.Batch) -> Array:
    return batch.qpos


def rewarded(batch: fl.Batch, before: environments.Before) -> Array:
    return -np.abs(batch.qpos[:, 1]) - before.qvel[:, 1]


def rough_ground(spec: Any) -> None:
    ground = fl.terrain.Terrain(("rough", "stairs"), {"rough": 0.1, "stairs": 0.6}, seed=1, levels=3)
    ground.add_to(spec, geom="floor")
    tile: Array = ground.tile("stairs", [0, 2])
    at: Array = ground.centres[tile]
    ground.put_back(at, tile)
    print(fl.terrain.KINDS, ground.height_at(at[:, 0], at[:, 1]), ground.samples, ground.half, ground.side, ground.cell)


def learning() -> None:
    environments.register_tasks()
    tasks: dict[str, type[environments.Task]] = environments.tasks()
    env: environments.TaskEnv = environments.make_vec("featherlane/Ant-v5", num_envs=8)
    vector = environments.TaskEnv(SwingUp(), num_envs=8, dtype="float32")
    seen, infos = vector.reset(seed=0)
    kept: dict[str, Any] = vector.checkpoint()
    vector.restore(kept)
    seen, rewards, terminated, truncated, infos = vector.step(np.zeros((8, 1)))
    policy = fl.policies.MLP(
        [np.zeros((4, 2)), np.zeros((1, 4))], [np.zeros(4), np.zeros(1)], "elu", mean=0.0, std=[0.1]
    )
    policy.set_weights([np.zeros((4, 2)), np.zeros((1, 4))])
    policy.set_normalization(np.zeros(2), np.ones(2), count=3)
    policy.update_normalization(seen)
    noise: Array = fl.policies.gaussian_noise(1, nworld=8, nstep=5, n=1)
    played: environments.Rollout = vector.rollout(5, policy.copy(), noise)
    actions: Array = policy(played.observations[:, 0], noise[:, 0]) + policy.sample(seen)
    print(actions, fl.policies.MLP.from_torch(None), fl.policies.LaneFunctions(gain, gain))
    one = environments.SingleEnv(Sensed())
    first, reward, ended, cut, told = one.step(np.zeros(1))
    short = environments.BatchEnv("cartpole", 8, observation=observed, reward=rewarded)
    print(tasks, env.num_envs, seen, rewards, terminated, truncated, infos, first, reward, ended, cut, told, short)


def compiled() -> None:
    number = lanes.Field("n", kind="size")
    layout = lanes.Layout("example", (number,))
    kinds: tuple[type, ...] = (lanes.Kernel, lanes.Stage, lanes.Record, lanes.Library)
    memory: Array = lanes.aligned((4, 8))
    print(layout.signature(), kinds, memory, lanes.KernelError)


# ---- errors ----------------------------------------------------------------------------------------------------------
def caught(model: fl.Model) -> None:
    try:
        model.body("nowhere")
    except fl.UnknownNameError as error:
        print(error)
    except fl.UnsupportedFeatureError as error:
        features: list[str] = list(error.features)
        print(features)
    except (fl.InstallationError, fl.ModelError, fl.FeatherlaneError) as error:
        print(error)
    print(issubclass(fl.NonFiniteWarning, UserWarning), issubclass(fl.CapacityWarning, UserWarning))
    kinds: list[type[Exception]] = [
        errors.ArgumentError,
        errors.ArgumentTypeError,
        errors.CallError,
        errors.CapacityWarning,
        errors.FeatherlaneError,
        errors.InstallationError,
        errors.MissingMethodError,
        errors.ModelError,
        errors.NonFiniteWarning,
        errors.OutOfRangeError,
        errors.SingularMatrixError,
        errors.UnknownAttributeError,
        errors.UnknownNameError,
        errors.UnsupportedFeatureError,
        errors.WorkerLostError,
    ]
    texts: list[str] = [errors.near("newtn", ("newton", "cg")), errors.few([1, 2, 3], 2), errors.page("errors")]
    errors.warn_of_full("world 1", 64, owner="batch", level=1)
    errors.warn_of_non_finite("world 1", True, owner="batch", level=1)
    print(texts)
    print(kinds, enums.Disable.CONTACT, extension.one_of("solver", "cg", ("newton", "cg")))
