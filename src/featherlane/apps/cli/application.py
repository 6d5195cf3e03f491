"""The commands and their options; each command's work is in its own module."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from featherlane import show_config
from featherlane.errors import ModelError, page
from featherlane.extension import repairing

application = typer.Typer(
    help="Rigid-body dynamics for batches of worlds. Exit codes: 0, success; 2, invalid input, "
    "or errors found by diagnose; 3, a world became non-finite or out of range; 130, interrupted.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PACKAGE_PATH = "ROS_PACKAGE_PATH"
RECORD_BAD = 16  # number of recorded steps of each world


class Precision(StrEnum):
    """Precision of the state and of all computations."""

    float64 = "float64"
    float32 = "float32"


class Rival(StrEnum):
    """Simulator that `bench` compares with."""

    mujoco = "mujoco"


class Base(StrEnum):
    """How the base of a robot moves."""

    free = "free"
    fixed = "fixed"


MODEL_HELP = (
    "A bundled model (pendulum, double_pendulum, cartpole, slider_crank, arm, quadruped, quadruped_elliptic, humanoid, "
    "rope, chain, box_stack, stacks, pile, pyramid, hand), or an MJCF or URDF file."
)
SWEEP_HELP = (
    "File of the sweep, with the entries model, samples, seed, [options], [parameters], "
    f"[rollout], [reduce]: {page('distributed')}"
)
Source = Annotated[str, typer.Argument(metavar="NAME|PATH", help=MODEL_HELP)]
Sources = Annotated[list[str], typer.Argument(metavar="NAME|PATH...", help=MODEL_HELP)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Dtype = Annotated[Precision, typer.Option(help="Precision of the state and of all computations.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a model option, such as contact_model=lcp or timestep=0.001. Can be repeated.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random controls.")]
Threads = Annotated[int, typer.Option(metavar="N", help="Number of threads; 0: one per core.")]
Keyframe = Annotated[str | None, typer.Option(metavar="NAME|N", help="Keyframe of the model to start from.")]
Nodes = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|N",
        help="Ray cluster to run on (HOST:PORT of its head node, or auto), or the number of workers "
        "on this machine. Requires: pip install 'featherlane[distributed]'.",
    ),
]


def _add_packages(context: typer.Context, folders: list[Path] | None) -> list[Path] | None:
    """Adds folders to ROS_PACKAGE_PATH while the command runs; its child processes search them, too."""
    if folders:
        before = os.environ.get(PACKAGE_PATH)
        os.environ[PACKAGE_PATH] = os.pathsep.join(
            [*(os.path.expanduser(folder) for folder in folders), *([before] if before else [])]
        )
        context.call_on_close(
            lambda: os.environ.pop(PACKAGE_PATH) if before is None else os.environ.update({PACKAGE_PATH: before})
        )
    return folders


PackageDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--package-dirs",
        metavar="DIR",
        help="Folder that contains ROS packages, or a package, for package:// paths of a URDF. Can be repeated.",
        callback=_add_packages,
    ),
]


def _set_repair(context: typer.Context, repair: bool) -> bool:
    """Repairs each model that the command loads."""
    context.with_resource(repairing(repair))
    return repair


Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Repair impossible inertias of a URDF, older MJCF and missing textures; a warning lists the repairs.",
        callback=_set_repair,
    ),
]


def _show_version(value: bool) -> None:
    if value:
        show_config()
        raise typer.Exit()


@application.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version, the kernels, the CPU level and the cache folders in use.",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None: ...


@application.command("simulate")
def _simulate(
    source: Source,
    worlds: Annotated[int, typer.Option(metavar="N", help="Number of worlds.")] = 1,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="S", help="Simulated time. Default: the length of the control file, else 5 s."),
    ] = None,
    controls: Annotated[
        str,
        typer.Option(
            metavar="zero|random|FILE.npy|FILE.py:NAME",
            help="zero; random: uniform in the actuators' control ranges (-1 to 1 without a range), held "
            "for 0.1 s; an array (steps, nu) or (worlds, steps, nu) in a file; or a function "
            "NAME(batch, step) in a Python file.",
        ),
    ] = "zero",
    seed: Seed = 0,
    keyframe: Keyframe = None,
    threads: Threads = 0,
    nodes: Nodes = None,
    dtype: Dtype = Precision.float64,
    fps: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            help="Recorded frames per simulated second. Default: 25, or fewer if a recording would exceed 256 MiB.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Record time, qpos, qvel, ctrl and status counts of every world, each with shape "
            "(worlds, frames, n). A step with a non-zero status code writes FILE.failure-WORLD-STEP.npz, too.",
        ),
    ] = None,
    record_failures: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of steps before a failure that its file contains; 0: no failure files. Requires --out.",
        ),
    ] = RECORD_BAD,
    video: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.mp4",
            help="Render world 0 to a video, also on a headless machine. Requires: pip install 'featherlane[view]'.",
        ),
    ] = None,
    camera: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Camera of the video. Default: the first camera of the model."),
    ] = None,
    settings: Settings = None,
    package_dirs: PackageDirs = None,
    repair: Repair = False,
    as_json: Json = False,
) -> int:
    """Simulate worlds of a model; report speed, solver convergence and status counts."""
    del package_dirs, repair  # set by their callbacks
    given = locals() | {"dtype": dtype.value, "settings": tuple(settings or ())}  # all parameters by name
    from featherlane.apps.cli.simulate import Request, simulate

    return simulate(Request(**given))


@application.command("sweep")
def _sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help=SWEEP_HELP)],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Run directory. It contains the model, the settings, the finished samples and, at the "
            "end, result.npz (and result.parquet if pyarrow is installed).",
        ),
    ] = None,
    nodes: Nodes = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the interrupted run in DIR.")] = False,
    threads: Threads = 0,
    chunk: Annotated[
        int, typer.Option(metavar="N", help="Number of samples that run at once; 0: as many as take a few seconds.")
    ] = 0,
    package_dirs: PackageDirs = None,
    repair: Repair = False,
    as_json: Json = False,
) -> int:
    """Run a parameter sweep: many rollouts with different parameters, each reduced to a few numbers."""
    del package_dirs, repair
    given = locals()  # all parameters by name
    from featherlane.apps.cli.sweep import Request, run_sweep

    return run_sweep(Request(**given))


@application.command("view")
def _view(
    source: Annotated[
        str,
        typer.Argument(metavar="NAME|PATH|FILE.npz", help=MODEL_HELP + " Or a recording written by `simulate --out`."),
    ],
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME|PATH", help="Model of a recording. Default: the model named in the recording."),
    ] = None,
    worlds: Annotated[int | None, typer.Option(metavar="N", help="Number of worlds. Default: 1.")] = None,
    drawn: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of worlds that are displayed at the start. Default: all, at most 64."),
    ] = None,
    keyframe: Keyframe = None,
    settings: Settings = None,
    threads: Annotated[
        int, typer.Option(metavar="N", help="Number of threads; 0: one for few worlds, one per core for many worlds.")
    ] = 0,
    dtype: Dtype = Precision.float64,
    paused: Annotated[bool, typer.Option("--paused", help="Start paused, until the Run button is pressed.")] = False,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address that serves the page: 127.0.0.1 for this machine only, 0.0.0.0 for all network interfaces.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Port of the page; 0: any free port. Default: 8080, or any free port if 8080 is in use."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser, if one is available.")] = True,
    token: Annotated[
        bool,
        typer.Option(
            "--token/--no-token",
            help="Require the random token in the printed address. Without a token, every user of this "
            "machine can open the page.",
        ),
    ] = True,
    package_dirs: PackageDirs = None,
    repair: Repair = False,
) -> int:
    """Show worlds in the browser: run, rewind, drag, edit, plot. Requires: pip install 'featherlane[view]'."""
    del package_dirs, repair
    given = locals() | {"dtype": dtype.value, "settings": tuple(settings or ())}  # all parameters by name
    from featherlane.apps.cli.view import Request, serve_page

    return serve_page(Request(**given))


@application.command("inspect")
def _inspect(source: Source, package_dirs: PackageDirs = None, repair: Repair = False, as_json: Json = False) -> None:
    """Describe a model: sizes, kinematic tree, sparsity and cost, features, unsupported features."""
    del package_dirs, repair
    from featherlane.apps.cli.inspect import inspect

    inspect(source, as_json)


@application.command("diagnose")
def _diagnose(
    source: Annotated[str | None, typer.Argument(metavar="[NAME|PATH]", help=MODEL_HELP)] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List every element instead of the first few of each kind.")
    ] = False,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Test the installation in seconds: accuracy, bits, MuJoCo.")
    ] = False,
    package_dirs: PackageDirs = None,
    repair: Repair = False,
    as_json: Json = False,
) -> int:
    """Check a model for errors, instabilities, elements without effect, and slow settings, or test the installation."""
    del package_dirs, repair
    from featherlane.apps.cli.diagnose import diagnose_source, run_self_test

    if self_test == (source is not None):
        raise typer.BadParameter("give either a model or --self-test", param_hint="NAME|PATH")
    return run_self_test(as_json) if source is None else diagnose_source(source, every, as_json)


@application.command("bench")
def _bench(
    sources: Sources,
    against: Annotated[Rival, typer.Option(help="Simulator to compare with.")] = Rival.mujoco,
    dtype: Dtype = Precision.float64,
    worlds: Annotated[int, typer.Option(metavar="N", help="Number of worlds, each with a different state.")] = 512,
    threads: Annotated[
        int, typer.Option(metavar="N", help="Number of threads for both simulators; 0: one per core.")
    ] = 1,
    steps: Annotated[int, typer.Option(metavar="N", help="Number of steps per call.")] = 4,
    rounds: Annotated[int, typer.Option(metavar="N", help="Number of measured rounds; the simulators alternate.")] = 9,
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Simulated time with random controls before the measurement.")
    ] = 1.5,
    seed: Seed = 0,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Disable contacts and constraints in both simulators.")
    ] = False,
    stages: Annotated[bool, typer.Option(help="Also measure each stage of a step.")] = True,
    package_dirs: PackageDirs = None,
    repair: Repair = False,
    as_json: Json = False,
) -> None:
    """Measure speed against MuJoCo, alternating in one process from the same settled states."""
    from featherlane.apps.cli.bench import bench
    from featherlane.apps.measure.speed_comparison import Course

    del against, package_dirs, repair  # one alternative so far
    course = Course(dtype.value, worlds, threads, nstep=steps, rounds=rounds, settle=seconds, seed=seed, smooth=smooth)
    bench(sources, course, stages, as_json)


@application.command("compare")
def _compare(
    source: Source,
    solvers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Solvers to compare. convex: newton, cg, pgs; coulomb: newton; lcp: dantzig, newton, "
            "pgs, apgd. Default: all.",
        ),
    ] = None,
    contact: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Contact models, some of convex, lcp and coulomb: simulate from one state under each of them, and "
            "compare the motions.",
        ),
    ] = None,
    states: Annotated[
        int, typer.Option(metavar="N", help="Number of states, sampled along one motion with random controls.")
    ] = 20,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of steps between two states (default: 20), or of the motion with --contact (default: 400).",
        ),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(metavar="N", help="Iteration limit of the solvers. Default: the model's."),
    ] = None,
    seed: Seed = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png", help="Plot the convergence, or the motions. Requires: pip install 'featherlane[plot]'."
        ),
    ] = None,
    package_dirs: PackageDirs = None,
    repair: Repair = False,
    as_json: Json = False,
) -> int:
    """Solve the same states with several solvers from a cold start, and report their convergence."""
    del package_dirs, repair
    from featherlane.apps.cli.compare import compare, compare_contact_models
    from featherlane.apps.measure.contact_models import SOLVERS as ALL_SOLVERS
    from featherlane.apps.measure.contact_models import Contest
    from featherlane.apps.measure.solvers import SOLVERS, Comparison

    names = SOLVERS if solvers is None else _listed(solvers)
    if contact is None:
        compare(Comparison(source, names, states, 20 if steps is None else steps, iterations, seed), plot, as_json)
        return 0
    models = _listed(contact)
    if solvers is None:
        names = tuple(dict.fromkeys(name for model in models for name in ALL_SOLVERS.get(model, ())))
    contest = Contest(source, models, names, 400 if steps is None else steps, iterations, seed)
    return compare_contact_models(contest, plot, as_json)


def _listed(text: str) -> tuple[str, ...]:
    """Splits a list at its commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _setup(metavar: str | None, text: str) -> Any:
    """Returns an option that sets up a robot; metavar None: the values of its type are shown."""
    return typer.Option(metavar=metavar, help=text, show_default=False)


@application.command("evaluate")
def _evaluate(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="libero_spatial, libero_object, libero_goal or libero_10.")
    ],
    policy: Annotated[
        str,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Function (observation, instruction, started) -> actions (worlds, 7), in a module or FILE.py; or "
            "random: random actions; or still: actions without motion.",
        ),
    ] = "random",
    episodes: Annotated[int, typer.Option(metavar="N", help="Number of episodes of each task.")] = 50,
    worlds: Annotated[int, typer.Option(metavar="N", help="Number of episodes that run at the same time.")] = 50,
    tasks: Annotated[str | None, typer.Option(metavar="N,...", help="Tasks from 0 to 9. Default: all.")] = None,
    horizon: Annotated[int, typer.Option(metavar="N", help="Number of actions after which an episode fails.")] = 600,
    settle: Annotated[
        int, typer.Option(metavar="N", help="Number of actions without motion before each episode.")
    ] = 10,
    image_size: Annotated[
        int, typer.Option(metavar="PIXELS", help="Size of the images that the policy gets; 0: none.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the table, as CSV or Markdown by the suffix.")
    ] = None,
    dtype: Dtype = Precision.float64,
    threads: Threads = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of random actions and of the poses of fixtures.")] = 0,
    as_json: Json = False,
) -> None:
    """Run a policy in the tasks of a LIBERO suite, and report its success with confidence intervals."""
    from featherlane.apps.cli.evaluate import evaluate_policy
    from featherlane.apps.measure.success import Evaluation

    try:
        chosen = None if tasks is None else tuple(int(number) for number in _listed(tasks))
    except ValueError:
        raise ModelError(f"tasks: got {tasks!r}, allowed are numbers from 0 to 9, as in 0,3") from None
    size = {"horizon": horizon, "settle": settle, "image_size": image_size}
    given = Evaluation(suite, episodes, worlds, chosen, seed=seed, dtype=dtype.value, threads=threads, **size)
    evaluate_policy(given, policy, out, as_json)


@application.command("convert")
def _convert(
    source: Source,
    out: Annotated[Path, typer.Argument(metavar="FILE.xml", help="The MJCF file.", show_default=False)],
    base: Annotated[
        Base | None, _setup(None, "free: add a free joint to the base; fixed: remove it. Default: unchanged.")
    ] = None,
    floor: Annotated[bool, typer.Option("--floor", help="Add the plane z = 0.")] = False,
    height: Annotated[
        str | None,
        _setup(
            "auto|M",
            "auto: place the base so that the lowest point of the robot touches z = 0; or z of the base. Default: auto "
            "with --base, else unchanged.",
        ),
    ] = None,
    home: Annotated[
        list[str] | None,
        _setup("JOINT=VALUE", "Position of a joint in the keyframe home, in rad or m. Can be repeated."),
    ] = None,
    actuators: Annotated[
        list[str] | None,
        _setup("KIND|JOINT=KIND", "position, velocity or motor, for all joints or for one. Can be repeated."),
    ] = None,
    gains: Annotated[
        list[str] | None,
        _setup(
            "KP,KV|KV|JOINT=...",
            "Gains of position actuators (KP,KV) or velocity actuators (KV), for all joints or for one. Can be "
            "repeated. Default: from effort limits and inertias.",
        ),
    ] = None,
    armature: Annotated[
        list[str] | None,
        _setup(
            "VALUE|JOINT=VALUE",
            "Rotor inertia of all hinges, or of one joint, in kg m^2 (slides: kg). Can be repeated.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    package_dirs: PackageDirs = None,
    repair: Repair = False,
    as_json: Json = False,
) -> None:
    """Write a URDF as an MJCF file with its meshes, with a base, a floor and actuators if requested."""
    del package_dirs, repair
    given: dict[str, Any] = locals() | {"base": None if base is None else base.value}  # all parameters by name
    from featherlane.apps.cli.convert import Request, convert

    convert(Request(**given))


@application.command("compile")
def _compile(
    dtype: Annotated[Precision | None, typer.Option(help="Precision of the kernels. Default: both.")] = None,
    processes: Annotated[int, typer.Option(metavar="N", help="Number of compiler processes; 0: one per core.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Compile even if prebuilt kernels are in use.")] = False,
    as_json: Json = False,
) -> None:
    """Compile all kernels into the cache, if none are prebuilt."""
    from featherlane.apps.cli.compile import compile_kernels

    compile_kernels(dtype and dtype.value, processes, force, as_json)


@application.command("freeze")
def _freeze(
    source: Source,
    out: Annotated[Path, typer.Argument(metavar="FILE.flz", help="The frozen world.", show_default=False)],
    targets: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL,...",
            help="CPU levels of the kernels: x86-64, x86-64-v3, x86-64-v4, aarch64; wasm32. Default: this machine's.",
        ),
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Add kernels that step many worlds together.")] = False,
    outputs: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Fields that a batch computes besides the state.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Queries that one world answers, such as jac or full_m.")
    ] = None,
    keyframe: Keyframe = None,
    settings: Settings = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    package_dirs: PackageDirs = None,
    repair: Repair = False,
    as_json: Json = False,
) -> None:
    """Write a model and its compiled kernels into one file, which keeps its bits in later versions and runs in C."""
    del package_dirs, repair
    from featherlane.apps.cli.freeze import freeze_model

    named = {"targets": targets, "outputs": outputs, "queries": queries}
    chosen: dict[str, Any] = {name: () if given is None else _listed(given) for name, given in named.items()}
    chosen["width"] = (1, "batch") if batch else (1,)
    freeze_model(source, out, chosen, keyframe, tuple(settings or ()), force, as_json)


@application.command("check")
def _check(
    file: Annotated[Path, typer.Argument(metavar="FILE.flz", help="A frozen world.", show_default=False)],
    trust: Annotated[
        str | None, typer.Option(metavar="HASH", help="Open the file only if it has this hash, which freeze printed.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run the self-test of a frozen world: do its kernels compute the recorded states here, bit for bit?"""
    from featherlane.apps.cli.freeze import check_file

    return check_file(file, trust, as_json)
