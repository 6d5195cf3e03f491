"""Loads a model: from a file, XML text, an MjModel or an MjSpec to a `Model`.

MuJoCo reads and compiles the source; nothing is simulated here.  Unsupported features that would change the motion
raise an error that names them.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.actuators import check_actuators
from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import encodable
from featherlane.engine.model.bundle import bundled_file, resolve_name
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.decomposition import Decomposition, decompose
from featherlane.engine.model.derived import derive
from featherlane.engine.model.fields import DERIVED
from featherlane.engine.model.link import Link, listed
from featherlane.engine.model.model import Model
from featherlane.engine.model.mujoco_arrays import centred_inertias, read_sizes, with_missing_fields
from featherlane.engine.model.mujoco_versions import check_compiled
from featherlane.engine.model.option import check_options
from featherlane.engine.model.packages import SCHEME, Folders, listed_folders, resolve
from featherlane.engine.model.reader import heard, hint, mujoco_module
from featherlane.engine.model.sdf_collision import use_fields
from featherlane.engine.model.set_const import set_const
from featherlane.engine.model.shapes import check_shapes
from featherlane.engine.model.tables import check_tables
from featherlane.engine.model.urdf import dropped_elements, link_names
from featherlane.engine.model.variant import Declared, Variants, compile_variants, select
from featherlane.errors import ModelError, UnsupportedFeatureError

FUSED = (
    "links without a body, as fixed joints merge them into the body that carries them: {}; to keep them, add "
    '<mujoco><compiler fusestatic="false"/></mujoco> to the robot'
)


def _find(source: str | Path) -> Path:
    """Returns the file of a path."""
    path = Path(encodable("path", str(source))).expanduser()
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        raise ModelError(f"{str(source)[:60]!r}: {error.strerror}") from None
    if is_file:
        return path
    raise ModelError(f"{path}: is a folder, allowed is an MJCF or URDF file" if is_folder else f"{path}: no such file")


def _checked_assets(assets: Mapping[str, bytes] | None) -> dict[str, bytes]:
    """Returns the assets in MuJoCo's form: bytes by file name."""
    result = {}
    instance("assets", assets, Mapping | None, "a dict of contents by file name")
    for name, content in (assets or {}).items():
        if not isinstance(content, str | bytes | bytearray):
            raise ModelError(f"asset {name!r}: got {type(content).__name__}, allowed are bytes or str")
        if isinstance(content, str):
            content = encodable(f"asset {str(name)!a}", content).encode()
        result[encodable("assets", str(name))] = bytes(content)
    return result


def _is_urdf(text: str) -> bool:
    """Returns whether XML text has `robot` as its first element."""
    first = re.search(r"<([A-Za-z_][\w.-]*)", re.sub(r"<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>", "", text, flags=re.S))
    return first is not None and first.group(1) == "robot"


class Compiled(NamedTuple):
    """Holds a compiled source.

    Attributes:
        mj_model: a new MjModel.
        name: its name for messages.
        text: its XML text, or "".
        decompositions: meshes that were divided into convex parts.
    """

    mj_model: Any
    name: str
    text: str = ""
    decompositions: Sequence[Decomposition] = ()


class Meshes(NamedTuple):
    """Holds the arguments of `load` that change meshes."""

    convex_decomposition: str | Mapping[str, Any] | None = None
    collision: str | Mapping[str, Any] | None = None

    @property
    def given(self) -> list[str]:
        """Returns the names of the arguments that are given."""
        return [name for name, value in zip(self._fields, self, strict=True) if value is not None]


UNCHANGED = Meshes()


def _compile(mujoco: Any, source: Any, assets, package_dirs: Folders, meshes: Meshes) -> Compiled:
    """Compiles a source, after the changes of its meshes."""
    listed_folders(package_dirs)
    if assets is not None and not _is_text(source):
        raise ModelError("assets: allowed only with XML text; a file finds its own")
    if isinstance(source, mujoco.MjModel):
        for name in meshes.given:
            raise ModelError(f"{name}: got an MjModel, allowed are a path, XML text and an MjSpec")
        return Compiled(copy.copy(source), "MjModel")
    if isinstance(source, mujoco.MjSpec):
        if not meshes.given:
            return Compiled(source.compile(), "MjSpec")
        return _changed(source.copy(), meshes, "MjSpec")
    path, text = _found(source)
    files, name = _checked_assets(assets), "XML text" if path is None else str(path)
    is_resolved = SCHEME in text and _is_urdf(text)
    if is_resolved or meshes.given:
        spec = _spec(mujoco, path, text, files)
        if is_resolved:
            resolve(spec, package_dirs, path)
        return _changed(spec, meshes, name, text)
    if path is None:
        return Compiled(mujoco.MjModel.from_xml_string(text, files), name, text)
    return Compiled(mujoco.MjModel.from_xml_path(name), name, text)


def _changed(spec: Any, meshes: Meshes, name: str, text: str = "") -> Compiled:
    """Compiles a specification, some of whose meshes become SDF geoms or convex parts."""
    found: list[Decomposition] = []
    if meshes.collision is not None:
        use_fields(spec, meshes.collision)
    if meshes.convex_decomposition is not None:
        found = decompose(spec, meshes.convex_decomposition)
    return Compiled(spec.compile(), name, text, found)


def _found(source: str | Path) -> tuple[Path | None, str]:
    """Returns the file of a source (None for XML text) and its text."""
    if _is_text(source):
        return None, encodable("XML text", _clean(str(source)))
    path = _find(source)
    return path, path.read_text(encoding="utf-8-sig", errors="replace")


def _spec(mujoco: Any, path: Path | None, text: str, assets: dict[str, bytes]) -> Any:
    return mujoco.MjSpec.from_string(text, assets=assets) if path is None else mujoco.MjSpec.from_file(str(path))


def _clean(text: str) -> str:
    """Returns XML text without the characters that may precede its first `<`."""
    return text.lstrip("\ufeff \t\r\n")


def _is_text(source: Any) -> bool:
    return isinstance(source, str) and _clean(source).startswith("<")


@contextmanager
def _errors_of(source: Any) -> Iterator[None]:
    """Converts MuJoCo's errors to ModelError, with the name of the source."""
    mujoco = mujoco_module()
    try:
        yield
    except ModelError:
        raise
    except (ValueError, mujoco.FatalError) as error:
        if _is_text(source):
            where = "XML text"
        else:
            where = str(_find(source)) if isinstance(source, str | Path) else type(source).__name__
        text = str(error).strip()
        raise ModelError(f"{where}: {text}{hint(text, mujoco.__version__)}") from None


def compile_source(
    source: Any, assets: Mapping[str, bytes] | None = None, package_dirs: Folders = (), meshes: Meshes = UNCHANGED
) -> Compiled:
    """Compiles a source with MuJoCo, whatever its features.

    Args:
        source, assets, package_dirs: as for `load`.
        meshes: changes of meshes.

    Raises:
        ModelError: the source cannot be found, read or compiled; with the file and the parser's line.  Or a field has
            an invalid value (NaN, a negative mass): MuJoCo compiles some of these.
        InstallationError: `mujoco` is missing, too old or broken; with the command that repairs it.
    """
    mujoco = mujoco_module()
    is_empty = isinstance(source, str) and not _clean(source)
    if is_empty or not isinstance(source, str | Path | mujoco.MjModel | mujoco.MjSpec):
        given = "an empty text" if is_empty else type(source).__name__
        raise ModelError(f"load: got {given}, allowed are a bundled name, a path, XML text, an MjModel or an MjSpec")
    source = resolve_name(source)
    with heard(), _errors_of(source):
        return _compile(mujoco, source, assets, package_dirs, meshes)


def specification(source: Any, assets: Mapping[str, bytes] | None = None, package_dirs: Folders = ()) -> Any:
    """Returns a `mujoco.MjSpec` of a source, to which elements can be added before loading.

    Args:
        source: a bundled name, a path, XML text or an MjSpec (copied).
        assets, package_dirs: as for `load`.

    Raises:
        ModelError: the source cannot be found or read, or is an MjModel.
    """
    mujoco = mujoco_module()
    if isinstance(source, mujoco.MjSpec):
        return source.copy()
    if not isinstance(source, str | Path):
        given = type(source).__name__
        raise ModelError(f"specification: got {given}, allowed are a bundled name, a path, XML text or an MjSpec")
    source = resolve_name(source)
    with heard(), _errors_of(source):
        path, text = _found(source)
        spec = _spec(mujoco, path, text, _checked_assets(assets))
        resolve(spec, package_dirs, path)
        return spec


def load(
    source: Any,
    assets: Mapping[str, bytes] | None = None,
    *,
    links: Link | Sequence[Link] = (),
    package_dirs: Folders = (),
    convex_decomposition: str | Mapping[str, Any] | None = None,
    variants: Declared | None = None,
    collision: str | Mapping[str, Any] | None = None,
) -> Model:
    """Loads a model; `model.source` is the path of the file, "XML text", "MjModel" or "MjSpec".

    Args:
        source: the path of an MJCF or URDF file, XML text that starts with `<`, a `mujoco.MjModel` (copied), a
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

    Warns:
        UserWarning: URDF elements that MuJoCo ignores (`model.dropped`), and links that it merges (`model.fused`).

    Raises:
        UnsupportedFeatureError: the model has unsupported features that would change its motion; lists all.  Or a
            sensor measures contacts or distances of a geom that convex parts would replace.
        ModelError: the source cannot be found, read or compiled; with the file and the parser's line.  Or a field has
            an invalid value (NaN, a negative mass): MuJoCo compiles some of these.  Or a mesh to be divided is
            degenerate or not watertight.  Or a mesh of an SDF geom is degenerate, not watertight or intersects itself,
            or its octree exceeds the limit of nodes.
        InstallationError: `mujoco` is missing, too old or broken, or `coacd` is missing; with the command that repairs
            it.
    """
    meshes = Meshes(convex_decomposition, collision)
    model = load_unchecked(source, assets, links=links, package_dirs=package_dirs, meshes=meshes, variants=variants)
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
) -> Model:
    """Loads a model as `load` does, without checking its values; used to diagnose invalid models."""
    source = resolve_name(source)
    for argument in meshes.given if variants is not None else ():
        raise ModelError(f"load: got variants and {argument}, allowed is one of them")
    links = listed(links)
    mj_model, name, text, decompositions = compile_source(source, assets, package_dirs, meshes)
    with heard():
        if variants is None:
            model = from_mujoco(mj_model, name, links)
        else:
            spec = specification(source, assets, package_dirs)
            with _errors_of(source):
                found, labelled = compile_variants(spec, variants)
            model = _with_variants(found, labelled, name, links)
    model.decompositions = decompositions
    if text and _is_urdf(text):
        model.dropped = dropped_elements(text)
        if model.dropped:
            warnings.warn(f"{name}: not read from the URDF: {'; '.join(model.dropped)}", stacklevel=3)
        bodies = {*model.names("body")}
        model.fused = [link for link in link_names(text) if link not in bodies]
        if model.fused:
            warnings.warn(f"{name}: {FUSED.format(', '.join(map(repr, model.fused)))}", stacklevel=3)
    return model


def _with_variants(found: Variants, labelled, source: str, links: Sequence[Link]) -> Model:
    """Returns the model of all variants, with the first variant of each group."""
    for label, mj in labelled:
        check_features(with_missing_fields(mj), f"{source}: {label}")
    model = from_mujoco(found.mj_model, source, links, found.hulls_of, len(labelled))
    model.variants.update(found.groups)
    select(model, found.reals)
    set_const(model)
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
