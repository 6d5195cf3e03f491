"""Docstrings and comments of the source name only what exists: identifiers with underscores, and files."""

import ast
import io
import re
import tokenize
from pathlib import Path

import mujoco

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
# words of two or more parts, which are long enough not to be symbols such as a_ref; file names
NAME = re.compile(r"(?<![\w./@-])([a-z]{3,}(?:_[a-z0-9]{2,})+|[a-z_]+\.py)\b(?!\.\w|\*)")
# names of other programs and libraries, and of examples
EXTERNAL = set(
    """
    ament_index compute_ray contact_sensor_maxmatch couple_tendon dtau_da dummy_vec_env.py env_config file.py flg_bias
    featherlane_unisim jax_enable_x64 legged_gym load_env_cfg major_version make_env max_vel mesh_poly min_depth
    mujoco_env.py nan_detection num_envs_per_env_runner object_store_memory oct_distance oct_gradient robot_env.py
    sshd_config time_limit_bootstrap
    """.split()
)
# symbols of formulas; functions of MuJoCo in C that its Python module does not have
SYMBOLS = {"tau_act", "tau_deact", "matrix_ij", "agentview_image", "agentview_depth"}
IN_C = re.compile(r"mj(d|c|cb)_\w+")


def texts(tree: ast.Module, code: str) -> tuple[list[str], set[int]]:
    """Returns docstrings and comments of a module, and the ids of the nodes of docstrings."""
    found, nodes = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            nodes.add(id(node.body[0].value))
            found.append(node.body[0].value.value)
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return found + [token.string for token in tokens if token.type == tokenize.COMMENT], nodes


def names(tree: ast.Module, docstrings: set[int]) -> set[str]:
    """Returns all identifiers of a module, and the words of its strings except docstrings."""
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg"):
            if isinstance(getattr(node, field, None), str):
                found.update(getattr(node, field).split("."))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found.update(re.findall(r"\w+", node.value))
    return found


def mujocos() -> set[str]:
    """Returns names of MuJoCo's module, and of the fields of its structures."""
    structures = (mujoco.MjModel, mujoco.MjData, mujoco.MjOption, mujoco.MjSpec, mujoco.MjvOption, mujoco.MjVisual)
    return {name for owner in (mujoco, *structures) for name in dir(owner)}


def unknown(modules: dict[str, str], known: set[str]) -> dict[str, set[str]]:
    """Returns the names in docstrings and comments of each module that no module defines."""
    mentioned, defined = {}, set(known)
    for name, code in modules.items():
        tree = ast.parse(code)
        found, docstrings = texts(tree, code)
        defined |= names(tree, docstrings)
        mentioned[name] = set(NAME.findall("\n".join(found)))
    return {name: words - defined for name, words in mentioned.items() if words - defined}


def test_docstrings_and_comments_name_what_exists():
    paths = sorted(SOURCE.rglob("*.py"))
    modules = {str(path.relative_to(SOURCE)): path.read_text() for path in paths}
    files = {path.name for path in ROOT.rglob("*.py")} | {path.stem for path in paths}
    found = unknown(modules, files | EXTERNAL | SYMBOLS | mujocos())
    left = {name: sorted(w for w in words if not IN_C.fullmatch(w)) for name, words in found.items()}
    assert {name: words for name, words in left.items() if words} == {}


def test_a_name_that_nothing_defines_is_found():
    code = '"""See old_name, shared_name and gone.py."""\n\n\ndef shared_name():  # calls lost_kernel\n    pass\n'
    assert unknown({"a.py": code}, {"a.py"}) == {"a.py": {"old_name", "gone.py", "lost_kernel"}}
