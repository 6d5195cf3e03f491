"""Defines random trees, matrices with their pattern, and numbers that count the operations done with them."""

import numpy as np
from hypothesis import strategies as st

# free, ball, slide and hinge joints, two joints on a body, welded bodies, two trees
BRANCHED = """
<mujoco>
  <worldbody>
    <body name="torso"><freejoint/><geom size=".1"/>
      <body name="plate"><geom size=".1"/>
        <body name="arm"><joint type="ball"/><geom size=".1"/>
          <body name="hand"><joint axis="1 0 0"/><joint axis="0 1 0"/><geom size=".1"/></body>
        </body>
        <body name="leg"><joint type="slide"/><geom size=".1"/></body>
      </body>
    </body>
    <body name="post"><geom size=".1"/><body name="gate"><joint/><geom size=".1"/></body></body>
  </worldbody>
</mujoco>
"""


@st.composite
def parent_arrays(draw, min_size=0, max_size=12):
    """Returns any parent array: chains, stars, forests and mixtures."""
    n = draw(st.integers(min_size, max_size))
    return np.array([draw(st.integers(-1, i - 1)) for i in range(n)], dtype=int)


def paths_to_base(parents):
    """Returns for each dof the set of its ancestors and itself, from the definition."""
    paths = []
    for i in range(len(parents)):
        path = {i}
        while parents[i] >= 0:
            i = int(parents[i])
            path.add(i)
        paths.append(path)
    return paths


def related(parents):
    """Returns the pattern (n, n) by definition: one of the two dofs is on the path of the other."""
    paths = paths_to_base(parents)
    n = len(paths)
    return np.array([[i in paths[j] or j in paths[i] for j in range(n)] for i in range(n)], dtype=bool).reshape(n, n)


def random_inertia(parents, seed, leading=(), dtype=np.float64):
    """Returns a symmetric positive definite matrix (..., n, n) with the tree's pattern, well conditioned."""
    n = len(parents)
    H = np.random.default_rng(seed).normal(size=(*leading, n, n)) * related(parents)
    H = H + np.swapaxes(H, -1, -2)
    # diagonally dominant
    diagonal = np.abs(H).sum(axis=-1) + 1.0
    H[..., np.arange(n), np.arange(n)] = diagonal
    return H.astype(dtype)


class Counted:
    """Counts the operations done with a number, in a tally that its results share."""

    def __init__(self, value, tally):
        self.value, self.tally = float(value), tally

    def _count(self, operation, value):
        self.tally[operation] = self.tally.get(operation, 0) + 1
        return Counted(value, self.tally)

    def __add__(self, other):
        return self._count("add", self.value + other.value)

    def __sub__(self, other):
        return self._count("add", self.value - other.value)

    def __mul__(self, other):
        return self._count("mul", self.value * other.value)

    def __truediv__(self, other):
        return self._count("div", self.value / other.value)

    def sqrt(self):
        return self._count("sqrt", self.value**0.5)

    def __gt__(self, bound):
        return self.value > bound

    def __lt__(self, bound):
        return self.value < bound

    def __float__(self):
        return self.value


def counted(values, tally):
    """Returns an object array of counted numbers."""
    array = np.empty(values.shape, dtype=object)
    for index, value in np.ndenumerate(values):
        array[index] = Counted(value, tally)
    return array
