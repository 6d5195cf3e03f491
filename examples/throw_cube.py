"""A cube is thrown, lands, slides and knocks a puck onto a mark: by gradient, under both contact models.

A throw that stops short moves nothing: its gradient is zero, and says nothing.  Two things help: many throws at random
around it, and forces of contact that begin before touch.
"""

import numpy as np

import featherlane as fl

# boxes float on 8 mm of soft contact, which lets them slide without small hops, where slopes of a step mean nothing
SCENE = """<mujoco><option timestep="0.0025" cone="elliptic"/>
  <default><joint type="slide"/><geom type="box" size="0.1 0.1 0.1" friction="0.2"/>
    <default class="soft"><geom solref="0.01 1" solimp="0.01 0.9 0.02 0.5 2" margin="0.008"/></default></default>
  <worldbody><geom class="soft" type="plane" size="5 1 0.1"/>
    <body pos="0 0 0.3"><joint axis="1 0 0"/><joint axis="0 0 1"/><geom class="soft" name="cube" mass="1"/></body>
    <body pos="1.2 0 0.105"><joint axis="1 0 0"/><joint axis="0 0 1"/><geom class="soft" name="puck" mass="0.5"/>
      </body></worldbody>
  <contact><pair geom1="cube" geom2="puck" condim="1" solref="0.05 1" solimp="0.01 0.95 {reach}" margin="{reach}"/>
  </contact></mujoco>"""
MARK, STEPS, PUCK = (
    0.3,
    600,
    2,
)  # distance that the puck must travel [m]; its index in qpos
SHORT, LONG = (
    np.array([1.6, 0.5]),
    np.array([2.2, 0.5]),
)  # release, forward and upward [m/s]


def load(contact_model, reach):
    """The scene, where the cube pushes at the puck from a distance on: `reach` [m]."""
    model = fl.load(SCENE.format(reach=reach))
    model.opt.contact_model = contact_model
    # lcp: what rests overlaps by a millimetre, so that it stays in touch, and what overlaps is not kicked apart
    model.opt.contact_min_depth, model.opt.contact_max_vel = 1e-3, 0.02
    return model


def throw(model, releases):
    """How far the puck goes [m] with each of the releases (n, 2)."""
    batch = fl.Batch(model, len(releases))
    batch.qvel[:, :2] = releases
    batch.step(STEPS)
    return batch.qpos[:, PUCK].copy()


def slope(model, release):
    """How far the puck goes [m], and how that moves with the release: backwards through all steps."""
    batch = fl.Batch(model, 1)
    batch.qvel[0, :2] = release
    far = np.eye(2 * model.nv)[PUCK]  # the loss's gradient by the last state
    found = fl.rollout_gradient(model, batch, np.zeros((STEPS, model.nu)), far[None])
    return found.end.qpos[0, PUCK], found.state[0, model.nv : model.nv + 2]


def aim(model, release, rounds=20):
    """Newton's shortest step, times the best of 16 factors, thrown side by side."""
    for _ in range(rounds):
        distance, by_release = slope(model, release)
        if abs(distance - MARK) < 1e-3:
            break
        step = (MARK - distance) * by_release / (by_release @ by_release)
        tries = release + 0.7 ** np.arange(16)[:, None] * step
        release = tries[abs(throw(model, tries) - MARK).argmin()]
    print(
        f"    released with {release[0]:.3f} and {release[1]:.3f} m/s the puck goes {distance:.4f} m"
    )
    assert abs(distance - MARK) < 1e-3
    return release


def smoothed_slope(model, release, spread=0.3, n=256):
    """How the mean distance of throws at random around one moves with it: their covariance with the throws."""
    random = np.random.default_rng(0).normal(size=(n, 2))
    distance = throw(model, release + spread * random)
    return (distance - distance.mean()) @ random / (n * spread)


def main():
    for contact_model, reach in (("convex", 0.02), ("lcp", 0.001)):
        model = load(contact_model, reach)
        print(f"{contact_model}: a throw that hits")
        aim(model, LONG)
        release, lost = SHORT, slope(model, SHORT)[1]
        print(
            f"{contact_model}: a throw that stops short has the gradient {lost}; with throws at random around it"
        )
        assert not lost.any()
        while not slope(model, release)[1].any():
            uphill = smoothed_slope(model, release)
            release = release + 0.1 * uphill / np.linalg.norm(uphill)
        aim(model, release)
    print(
        "convex: a puck that feels the cube from 0.5 m on, then from 0.2 and 0.02 m on"
    )
    release = SHORT
    for reach in (0.5, 0.2, 0.02):
        release = aim(load("convex", reach), release)


if __name__ == "__main__":
    main()
