"""Loads a model: from a file, XML text, an MjModel or an MjSpec to a `Model`.

MuJoCo reads and compiles the source; nothing is simulated here.  Unsupported features that would change the motion
raise an error that names them.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.actuators import check_actuators
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.bundle import bundled_file, resolve_name
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.decomposition import Decomposition, decompose
from featherlane.engine.model.derived import derive
from featherlane.engine.model.edit import Edit, apply_edit
from featherlane.engine.model.fields import DERIVED
from featherlane.engine.model.link import Link, listed
from featherlane.engine.model.model import Model
from featherlane.engine.model.mujoco_arrays import centred_inertias, read_sizes, with_missing_fields
from featherlane.engine.model.mujoco_versions import check_compiled, merges_wrongly
from featherlane.engine.model.obj_objects import merged_objects
from featherlane.engine.model.option import check_options
from featherlane.engine.model.packages import Folders
from featherlane.engine.model.reader import forget_files, heard, hint, mujoco_module
from featherlane.engine.model.repair import ADVICE, repairing
from featherlane.engine.model.repair_inertias import misread_inertials
from featherlane.engine.model.robot_setup import NOT_SET_UP, RobotSetup, set_up
from featherlane.engine.model.scene_meshes import converted_scenes, use_contents
from featherlane.engine.model.sdf_collision import use_fields
from featherlane.engine.model.servos import Actuators, Armatures, Gains, velocity_joints
from featherlane.engine.model.set_const import recompile_constants
from featherlane.engine.model.shapes import check_shapes
from featherlane.engine.model.source import (
    SHOWN,
    Source,
    clean,
    file_hints,
    found_file,
    is_binary,
    is_text,
    is_urdf,
    possible_repairs,
    read_source,
)
from featherlane.engine.model.stl_text import binary_stl_files
from featherlane.engine.model.tables import check_tables
from featherlane.engine.model.urdf import dropped_elements, link_names, root_links
from featherlane.engine.model.variant import Declared, Variants, compile_variants, select
from featherlane.errors import ModelError, UnsupportedFeatureError

OBJECTS = "MuJoCo reads only the faces of the first object of an OBJ file, here all objects are read: {}"
REPAIRED = "repaired:\n  {}"
UNREAD = "not read from mesh files: {}"
FUSED = (
    "links without a body, as fixed joints merge them into the body that carries them: {}; to keep them, add "
    '<mujoco><compiler fusestatic="false"/></mujoco> to the robot'
)


class Compiled(NamedTuple):
    """Holds a compiled source.

    Attributes:
        mj_model: a new MjModel.
        name: its name for messages.
        text: its XML text, or "".
        decompositions: meshes that were divided into convex parts.
        repairs: changes that `repair` made.
        spec: the `mujoco.MjSpec` before it was compiled, if it was requested.
    """

    mj_model: Any
    name: str
    text: str = ""
    decompositions: Sequence[Decomposition] = ()
    repairs: Sequence[str] = ()
    spec: Any = None


class Meshes(NamedTuple):
    """Holds the arguments of `load` that change meshes."""

    convex_decomposition: str | Mapping[str, Any] | None = None
    collision: str | Mapping[str, Any] | None = None

    @property
    def given(self) -> list[str]:
        """Returns the names of the arguments that are given."""
        return [name for name, value in zip(self._fields, self, strict=True) if value is not None]


UNCHANGED = Meshes()


def _copied(mujoco: Any, source: Any) -> Compiled:
    """Copies an MjModel, or reads a binary model."""
    if isinstance(source, mujoco.MjModel):
        return Compiled(copy.copy(source), "MjModel")
    path = str(found_file(source))
    return Compiled(mujoco.MjModel.from_binary_path(path), path)


def _contents(read: Source) -> tuple[dict[str, bytes], list[str]]:
    """Returns contents of mesh files that MuJoCo does not read, or not completely, by path; and texts of warnings.

    The texts also have the repairs.
    """
    contents, merged = merged_objects(read.spec, read.folders)
    scenes, unread = converted_scenes(read.spec, read.folders)
    texts = [(OBJECTS, ", ".join(merged)), (UNREAD, "; ".join(unread)), (REPAIRED, "\n  ".join(read.repairs))]
    contents |= scenes | binary_stl_files(read.spec, read.folders)
    return contents, [f"{read.name}: {text.format(what)}" for text, what in texts if what]


def _prepared(source: Any, read: Source, contents: dict[str, bytes], setup: RobotSetup, copied: bool) -> Any:
    """Returns a specification with the contents of its files and its setup; a given MjSpec is copied before."""
    spec = read.spec
    if spec is source and (copied or contents or setup.given or merges_wrongly(spec)):
        spec = spec.copy()
    use_contents(spec, contents)
    if setup.given:
        set_up(spec, read.text, setup)
    _keep_bodies(spec)
    return spec


def _keep_bodies(spec: Any) -> None:
    """Disables `fusestatic` if this MuJoCo would misplace an inertia."""
    if merges_wrongly(spec):
        spec.compiler.fusestatic = False


def _changed(spec: Any, read: Source, texts: Sequence[str], meshes: Meshes, keeps: bool) -> Compiled:
    """Compiles a specification, after the changes of its meshes; with `keeps` it remains uncompiled.

    texts: warnings.
    """
    found = []
    if meshes.collision is not None:
        use_fields(spec, meshes.collision)
    if meshes.convex_decomposition is not None:
        found = decompose(spec, meshes.convex_decomposition)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mj_model = (spec.copy() if keeps else spec).compile()
    for text in dict.fromkeys([*(f"MuJoCo: {str(warning.message).strip()}" for warning in caught), *texts]):
        warnings.warn(text, stacklevel=5)
    return Compiled(mj_model, read.name, read.text, found, read.repairs, spec if keeps else None)


def _first(lines: Sequence[str]) -> list[str]:
    """Returns at most SHOWN different lines of a message, and the number of the others."""
    lines = list(dict.fromkeys(lines))
    return [*lines[:SHOWN], *([f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])]


@contextmanager
def errors_of(source: Any, assets: Mapping[str, bytes] | None = None) -> Iterator[None]:
    """Converts MuJoCo's errors to ModelError, with the name of the source, missing files and possible repairs."""
    mujoco = mujoco_module()
    try:
        yield
    except ModelError:
        raise
    except (ValueError, mujoco.FatalError) as error:
        if is_text(source):
            where = "XML text"
        else:
            where = str(found_file(source)) if isinstance(source, str | Path) else type(source).__name__
        text = str(error).strip()
        hints, (repairs, problems) = file_hints(text, source, assets), possible_repairs(source, assets)
        lines = [*_first(hints), *_first(problems), *([ADVICE, *_first(repairs)] if repairs else [])]
        rest = "".join(f"\n  {line}" for line in lines)
        raise ModelError(f"{where}: {text}{hint(text, mujoco.__version__)}{rest}") from None


def compile_source(
    source: Any,
    assets: Mapping[str, bytes] | None = None,
    package_dirs: Folders = (),
    meshes: Meshes = UNCHANGED,
    setup: RobotSetup = NOT_SET_UP,
    edit: Edit | None = None,
    variants: Declared | None = None,
) -> Compiled:
    """Compiles a source with MuJoCo, whatever its features.

    Args:
        source, assets, package_dirs: as for `load`.
        meshes: changes of meshes.
        setup: base, floor, actuators and keyframe that are added.
        edit: a function that changes the specification after the setup.
        variants: not None: the result has the specification, of which variants are compiled.

    Raises:
        ModelError: the source cannot be found, read or compiled; with the file and the parser's line.  Or a field has
            an invalid value (NaN, a negative mass): MuJoCo compiles some of these.
        InstallationError: `mujoco` is missing, too old or broken; with the command that repairs it.
    """
    mujoco = mujoco_module()
    is_empty = isinstance(source, str) and not clean(source)
    if is_empty or not isinstance(source, str | Path | mujoco.MjModel | mujoco.MjSpec):
        given = "an empty text" if is_empty else type(source).__name__
        raise ModelError(f"load: got {given}, allowed are a bundled name, a path, XML text, an MjModel or an MjSpec")
    if edit is not None and not callable(edit):
        raise ModelError(f"edit: got {type(edit).__name__}, allowed is a function edit(spec)")
    source = resolve_name(source)
    if isinstance(source, mujoco.MjModel) or is_binary(source):
        given = "an MjModel" if isinstance(source, mujoco.MjModel) else "a binary model"
        others = {"assets": assets, "edit": edit, "variants": variants}
        for name in (*meshes.given, *setup.given, *(name for name, value in others.items() if value is not None)):
            raise ModelError(f"{name}: got {given}, allowed are a path, XML text and an MjSpec")
        with heard(), errors_of(source):
            return _copied(mujoco, source)
    copied = bool(meshes.given) or edit is not None or variants is not None
    spec, read, texts = with_setup(source, assets, package_dirs, setup, copied)
    if edit is not None:
        with heard():  # not errors_of: errors of the function are not MuJoCo's
            apply_edit(f"load: {read.name}", edit, spec)
    with heard(), errors_of(source, assets):
        if edit is not None:
            contents, others = _contents(read._replace(spec=spec))  # also of meshes that the function added
            use_contents(spec, contents)
            _keep_bodies(spec)
            texts = [*texts, *others]
        return _changed(spec, read, texts, meshes, keeps=variants is not None)


def specification(source: Any, assets: Mapping[str, bytes] | None = None, package_dirs: Folders = ()) -> Any:
    """Returns a `mujoco.MjSpec` of a source, to which elements can be added before loading.

    Args:
        source: a bundled name, a path, XML text or an MjSpec (copied).
        assets, package_dirs: as for `load`.

    Raises:
        ModelError: the source cannot be found or read, or is an MjModel.
    """
    source = resolve_name(source)
    with heard(), errors_of(source):
        spec = read_source(source, assets, package_dirs).spec
        return spec.copy() if spec is source else spec


def with_setup(
    source: Any, assets: Mapping[str, bytes] | None, package_dirs: Folders, setup: RobotSetup, copied: bool = True
) -> tuple[Any, Source, list[str]]:
    """Returns a `mujoco.MjSpec` of a source with its files and its setup, what was read, and texts of warnings.

    Args:
        source, assets, package_dirs: as for `specification`.
        setup: checked base, floor, actuators and keyframe that are added.
        copied: whether a given MjSpec is always copied; otherwise only before it is changed.

    Raises:
        ModelError: the source cannot be found or read, or is an MjModel; or the setup does not fit.
    """
    source = resolve_name(source)
    with heard(), errors_of(source, assets):
        read = read_source(source, assets, package_dirs)
        contents, texts = _contents(read)
        spec = _prepared(source, read, contents, setup, copied)
    return spec, read, texts


def load(
    source: Any,
    assets: Mapping[str, bytes] | None = None,
    *,
    links: Link | Sequence[Link] = (),
    package_dirs: Folders = (),
    convex_decomposition: str | Mapping[str, Any] | None = None,
    variants: Declared | None = None,
    collision: str | Mapping[str, Any] | None = None,
    repair: bool = False,
    base: str | None = None,
    floor: bool = False,
    height: float | str | None = None,
    home: Mapping[str, float] | None = None,
    actuators: Actuators | None = None,
    gains: Gains | None = None,
    armature: Armatures | None = None,
    edit: Edit | None = None,
) -> Model:
    """Loads a model; `model.source` is the path of the file, "XML text", "MjModel" or "MjSpec".

    Args:
        source: the path of an MJCF or URDF file of any suffix, of a ZIP file with one such file and its assets, or of
            a model saved by `mj_saveModel`; XML text that starts with `<`, a `mujoco.MjModel` (copied), a
            `mujoco.MjSpec` (compiled), or the name of a bundled model: `humanoid` is the model, `./humanoid` a file.
        assets: files that XML text refers to, content by name.
        links: joints between bodies outside the tree, one or several `Link`; such a model has the contact model `lcp`.
        package_dirs: folders in which a URDF's `package://NAME/PATH` is searched: folders that hold packages, or the
            package itself.  The folders of ROS_PACKAGE_PATH, AMENT_PREFIX_PATH and CMAKE_PREFIX_PATH, and the
            folders above the file, are searched after them.
        convex_decomposition: None: meshes collide as their convex hulls, as in MuJoCo.  `coacd`: concave meshes that
            collide are divided into convex parts by CoACD, which are cached, and `model.decompositions` describes
            them.  Or a dict of options: `method`, `threshold` (largest concavity, 0.05), `max_convex_hull` (most parts
            of a mesh, -1: any number), `seed` (0), `repair` (False: a mesh that is not watertight is refused).
        variants: groups of variants by name; `Batch.set_variant` selects a world's variant in a group.  Under the name
            of a geom: names of its meshes.  Under the name of a body: names of geoms, of which a world has one.  Under
            any other name: functions `edit(spec)` by variant, which change a copy of the `mujoco.MjSpec` and may delete
            geoms.  The model has the first variant of each group.  Not together with `convex_decomposition` or
            `collision`.
        collision: None: geoms collide with the shapes of the source.  `sdf`: mesh geoms that collide become signed
            distance fields (type `sdf`), whose octrees MuJoCo computes.  Or a dict of options: `method`, `geoms` (list
            of names, also of geoms that do not collide), `octree_maxdepth` (6: the box of a mesh is divided into at
            most 64 x 64 x 64 cells).
        repair: whether invalid elements that other simulators accept are repaired, as `model.repairs` lists.  In a
            URDF: impossible, zero and missing masses and inertias, misprinted numbers, repeated elements, shapes
            without geometry, limits in the wrong order.  In MJCF: what MuJoCo removed since 2.3, such as global
            coordinates; commas between numbers, missing textures, skins and materials.  Valid elements remain.
        base: `free`: the only body on the world, such as the root link of a URDF, gets a free joint `base`.  `fixed`:
            it has none; a free joint is removed.  None: as in the source.
        floor: whether the plane z = 0 is added, a geom `floor`.
        height: `auto`: the base is placed so that the lowest point of its tree's colliding geoms touches z = 0.  Or z
            of the base's frame [m].  None: `auto` if `base` is given, otherwise as in the source.
        home: positions of some joints [rad, m] in the keyframe `home`, in which `height` also places a free base.
            Other joints are at zero, or at the limit next to it.
        actuators: `position`, `velocity` or `motor`: each hinge and slide gets such an actuator with its name, except
            joints that follow others (`<mimic>`).  Or a dict of these by joint.  Effort limits become force ranges and
            ranges of motors, joint limits ranges of positions, velocity limits of a URDF ranges of velocities.  The
            integrator Euler becomes implicitfast, unless all are motors.
        gains: (kp, kv) of position actuators, kv of velocity actuators, or a dict of these by joint [N m/rad,
            N m s/rad, or N/m, N s/m].  None: kp = min(effort / (0.1 rad or 0.01 m), J / (2 h)^2) and
            kv = 2 sqrt(kp I), which is damping ratio 1, for the time step h, the inertia I about the joint while other
            joints are at rest, and J while they are free.  Velocity actuators with both limits have
            kv = effort / (0.1 velocity).
        armature: rotor inertia of the hinges, n^2 J of a gear with the ratio n [kg m^2], or a dict of these by joint
            (of slides in kg).  URDF has none.  It allows larger gains: light feet need it.
        edit: a function `edit(spec)` that changes the `mujoco.MjSpec` before it is compiled.  It has all that `base` to
            `armature` added; `convex_decomposition`, `collision` and `variants` are applied afterwards.  An MjSpec
            that is the source does not change.  Errors of the function are raised unchanged, with a note.

    With any argument from `base` to `armature`, the model has the keyframe `home`, and two bodies of a URDF do not
    collide if a joint connects them, or if they touch in the zero position or in `home`.

    Warns:
        UserWarning: URDF elements that MuJoCo ignores, and links whose mass it computes from collision geometry
            (`model.dropped`); links that it merges (`model.fused`).  OBJ files of several objects: all are read here,
            MuJoCo reads the faces of the first.  Materials and textures of COLLADA and glTF files, which are not read.
            The repairs.

    Raises:
        UnsupportedFeatureError: the model has unsupported features that would change its motion; lists all.  Or a
            sensor measures contacts or distances of a geom that convex parts would replace.
        ModelError: the source cannot be found, read or compiled; with the file and the parser's line.  Or a field has
            an invalid value (NaN, a negative mass): MuJoCo compiles some of these.  Or a mesh to be divided is
            degenerate or not watertight.  Or a mesh of an SDF geom is degenerate, not watertight or intersects itself,
            or its octree exceeds the limit of nodes.  Or a COLLADA or glTF file is damaged or has no triangles.  Or
            an argument of the setup is wrong, or the model has already what it would add.
        UnknownNameError: `home`, `actuators` or `gains` has an unknown joint.
        InstallationError: `mujoco` is missing, too old or broken, or a library for meshes is missing; with the command
            that repairs it.
    """
    meshes, setup = (
        Meshes(convex_decomposition, collision),
        RobotSetup(base, floor, height, home, actuators, gains, armature),
    )
    forget_files()  # also those of an MjSpec
    with repairing(flag("repair", repair)):
        model = load_unchecked(
            source,
            assets,
            links=links,
            package_dirs=package_dirs,
            meshes=meshes,
            variants=variants,
            setup=setup.checked(),
            edit=edit,
        )
    model.check_edits()
    return model


def bundled(name: str, links: Link | Sequence[Link] = ()) -> Model:
    """Loads a model that comes with the package; `model.source` is the path of its file.

    Args:
        name: the name of a bundled model, see `bundled_names`.
        links: as for `load`.

    Raises:
        ModelError: no bundled model has this name, or a link is wrong.
        InstallationError: `mujoco` is missing, too old or broken; with the command that repairs it.
    """
    return load(bundled_file(name), links=links)


def load_unchecked(
    source: Any,
    assets: Mapping[str, bytes] | None = None,
    *,
    links: Link | Sequence[Link] = (),
    package_dirs: Folders = (),
    meshes: Meshes = UNCHANGED,
    variants: Declared | None = None,
    setup: RobotSetup = NOT_SET_UP,
    edit: Edit | None = None,
) -> Model:
    """Loads a model as `load` does, without checking its values; used to diagnose invalid models."""
    source = resolve_name(source)
    for argument in meshes.given if variants is not None else ():
        raise ModelError(f"load: got variants and {argument}, allowed is one of them")
    links = listed(links)
    found = compile_source(source, assets, package_dirs, meshes, setup, edit, variants)
    with heard():
        if variants is None:
            model = from_mujoco(found.mj_model, found.name, links)
        else:
            with errors_of(source, assets):
                compiled, labelled = compile_variants(found.spec, variants)
            model = _with_variants(compiled, labelled, found.name, links)
    model.decompositions, model.repairs = found.decompositions, found.repairs
    model.dropped, model.fused = report_losses(found.name, found.text, model.names("body"), setup.actuators)
    return model


def report_losses(
    name: str, text: str, bodies: Sequence[str], actuators: Actuators | None
) -> tuple[list[str], list[str]]:
    """Warns of elements of a URDF that MuJoCo ignores, and of links that it merges; returns both.

    Args:
        name: name of the source for messages.
        text: its XML text.
        bodies: names of the compiled bodies.
        actuators: actuators that are added; those of velocities read velocity limits.
    """
    if not is_urdf(text):
        return [], []
    dropped = dropped_elements(text, velocity_joints(text, actuators)) + misread_inertials(text)
    if dropped:
        warnings.warn(f"{name}: not read from the URDF: {'; '.join(dropped)}", stacklevel=4)
    kept = {*bodies, *root_links(text)[1:]}
    fused = [link for link in link_names(text) if link not in kept]
    if fused:
        warnings.warn(f"{name}: {FUSED.format(', '.join(map(repr, fused)))}", stacklevel=4)
    return dropped, fused


def _with_variants(found: Variants, labelled, source: str, links: Sequence[Link]) -> Model:
    """Returns the model of all variants, with the first variant of each group."""
    for label, mj in labelled:
        check_features(with_missing_fields(mj), f"{source}: {label}")
    model = from_mujoco(found.mj_model, source, links, found.hulls_of, len(labelled))
    model.variants.update(found.groups)
    select(model, found.reals)
    recompile_constants(model)
    model.keep_loaded()
    return model


def check_features(mj, source: str) -> dict[str, np.ndarray]:
    """Returns the candidate pairs of a compiled model; raises an error for what it has and we do not support."""
    from featherlane.engine.model.features import (
        unsupported,
    )  # imports mujoco, which takes longer than the whole package

    check_compiled(mj)
    pairs = candidates(mj)
    problems = unsupported(mj, pairs)
    if problems:
        raise UnsupportedFeatureError(problems, source)
    check_options(mj.opt)
    check_actuators(mj)
    check_shapes(mj, np.union1d(pairs["cand_geom1"], pairs["cand_geom2"]))
    return pairs


def from_mujoco(
    mj_model, source: str, links: Sequence[Link] = (), hulls_of: Sequence[Any] | None = None, nvariant: int = 0
) -> Model:
    """Returns a `Model` that owns `mj_model`, with links; checks features and computes the fields of DERIVED."""
    mj = with_missing_fields(mj_model)
    pairs = check_features(mj, source)
    hulls_of = [mj] * mj.nmesh if hulls_of is None else hulls_of
    sizes, arrays = derive(DERIVED, mj=mj, pairs=pairs, links=links, hulls_of=hulls_of, nvariant=nvariant)
    model = Model(mj_model, read_sizes(mj_model) | sizes, centred_inertias(mj) | arrays, source)
    check_tables(model)
    if links:
        model.link_names.extend(link.name for link in links)
        model.opt.contact_model = "lcp"
    return model
