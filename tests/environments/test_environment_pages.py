"""Pages of environments: they are up to date, and their indices are those of the observations."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import featherlane.environments as environments
from featherlane.environments import Task, TaskEnv

DOCS = Path(__file__).parents[2] / "docs"
MOST_BYTES = 60_000  # of a picture
pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass:UserWarning", "ignore:.*bound precision.*:UserWarning")


@pytest.fixture(scope="module")
def writer():
    """Returns the module docs/environment_pages.py; the import path is restored after the tests."""
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("environment_pages", DOCS / "environment_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.provide_dm_control()
    yield module
    sys.path[:] = before


@pytest.mark.ci
@pytest.mark.parametrize("family", ["robots", "gymnasium", "dm_control"])
def test_pages_match_their_environments(family, writer):
    page = (DOCS / "environments" / f"{family}.md").read_text()
    assert page == writer.page(family), "run: python docs/environment_pages.py"


def test_every_environment_has_a_section_and_a_small_picture(writer):
    families = writer.families()
    named = [name for sections in families.values() for names in sections for name in names]
    # those of integrations/robosuite.md and integrations/libero.md
    others = [name for name in environments.tasks() if name.startswith(("robosuite.", "libero_"))]
    assert sorted([*named, *others]) == sorted(environments.tasks())
    for family, sections in families.items():
        page = (DOCS / "environments" / f"{family}.md").read_text()
        for names in sections:
            picture = writer.picture(names[0])
            assert f"(../images/{picture})" in page
            assert (DOCS / "images" / picture).stat().st_size < MOST_BYTES
            assert all(f"## {name}\n" in page or f"`featherlane/{name}`" in page for name in names)


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Ant-v5", "HandTurn-v0"])
def test_indices_are_those_of_a_step(name):
    """The states of a step are compared: the pages are made from random arrays."""
    family = "robots" if name.endswith("v0") else "gymnasium"
    page = (DOCS / "environments" / f"{family}.md").read_text()
    rows = page.partition(f"### Observation of {name}\n")[2].partition("\n### ")[0]
    env = environments.make_vec(name, 2, nthread=1)
    env.reset(seed=0)
    for _ in range(3):
        observation = env.step(env.action_space.sample())[0]
    found = re.findall(r"^\| (\d+) \| `\w+` \| (angle|angular velocity) of `(\w+)` \|", rows, re.MULTILINE)
    assert len(found) > 10
    for index, what, joint in found:
        values = env.batch.joint(joint).qpos if what == "angle" else env.batch.joint(joint).qvel
        np.testing.assert_array_equal(observation[:, int(index)], np.reshape(values, -1))


class Squares(Task):
    """Observes a function that the script does not recognize."""

    name, model = "Squares-v0", "cartpole"

    def observation(self, worlds):
        return {"last": worlds.qpos[:, :1] - 0.25, "squared": worlds.qpos**2}

    def reward(self, worlds, actions, before):
        return np.zeros(worlds.nworld)


def test_an_unknown_element_must_be_described(writer, monkeypatch):
    env = TaskEnv(Squares(), writer.observations.NWORLD)
    env.reset(seed=0)
    with pytest.raises(LookupError, match=r"Squares-v0: describe element 0 of 'squared'"):
        writer.observations.observed(env)
    joints = [writer.observations.Element(f"square {k}", "m²") for k in range(2)]
    monkeypatch.setitem(writer.observations.DESCRIBED, "squared", joints)
    part, (quantity, unit) = writer.observations.observed(env)[0]
    assert (part, unit) == ("last", "m") and quantity.endswith(" - 0.25")
