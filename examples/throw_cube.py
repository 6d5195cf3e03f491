"""Optimizes the throw of a cube that slides against a puck, by gradients through two contact models.

If the cube stops before the puck, the gradient is zero.  Two remedies are shown: random throws around the present one,
and contact forces that begin before the bodies touch.
"""

import numpy as np

import featherlane as fl

# a soft contact of 8 mm lets boxes slide without small hops, which would make derivatives meaningless
SCENE = """<mujoco><option timestep="0.0025" cone="elliptic"/>
  <default><joint type="slide"/><geom type="box" size="0.1 0.1 0.1" friction="0.2"/>
    <default class="soft"><geom solref="0.01 1" solimp="0.01 0.9 0.02 0.5 2" margin="0.008"/></default></default>
  <worldbody><geom class="soft" type="plane" size="5 1 0.1"/>
    <body pos="0 0 0.3"><joint axis="1 0 0"/><joint axis="0 0 1"/><geom class="soft" name="cube" mass="1"/></body>
    <body pos="1.2 0 0.105"><joint axis="1 0 0"/><joint axis="0 0 1"/><geom class="soft" name="puck" mass="0.5"/>
      </body></worldbody>
  <contact><pair geom1="cube" geom2="puck" condim="1" solref="0.05 1" solimp="0.01 0.95 {reach}" margin="{reach}"/>
  </contact></mujoco>"""
# distance that the puck must travel [m]; its index in qpos
MARK, STEPS, PUCK = (0.3, 600, 2)
# release, forward and upward [m/s]
SHORT, LONG = (np.array([1.6, 0.5]), np.array([2.2, 0.5]))


def load(contact_model, reach):
    """Return the scene; the contact force of cube and puck begins at the distance `reach` [m]."""
    model = fl.load(SCENE.format(reach=reach))
    model.opt.contact_model = contact_model
    # lcp: resting bodies overlap by 1 mm, so they stay in contact, and overlaps are removed slowly
    model.opt.contact_min_depth, model.opt.contact_max_vel = 1e-3, 0.02
    return model


def throw(model, releases):
    """Return the distance of the puck [m] for each release (n, 2)."""
    batch = fl.Batch(model, len(releases))
    batch.qvel[:, :2] = releases
    batch.step(STEPS)
    return batch.qpos[:, PUCK].copy()


def slope(model, release):
    """Return the distance of the puck [m] and its gradient with respect to the release."""
    batch = fl.Batch(model, 1)
    batch.qvel[0, :2] = release
    # gradient of the distance with respect to the last state
    far = np.eye(2 * model.nv)[PUCK]
    found = fl.rollout_gradient(
        model, batch, np.zeros((STEPS, model.nu)), loss_gradient=far[None]
    )
    return found.end.qpos[0, PUCK], found.state[0, model.nv : model.nv + 2]


def aim(model, release, rounds=20):
    """Move the release along the gradient until the puck hits the mark; 16 step lengths are tried in one batch."""
    for _ in range(rounds):
        distance, by_release = slope(model, release)
        if abs(distance - MARK) < 1e-3:
            break
        step = (MARK - distance) * by_release / (by_release @ by_release)
        tries = release + 0.7 ** np.arange(16)[:, None] * step
        release = tries[abs(throw(model, tries) - MARK).argmin()]
    print(
        f"    release at {release[0]:.3f} and {release[1]:.3f} m/s: the puck moves {distance:.4f} m"
    )
    assert abs(distance - MARK) < 1e-3
    return release


def smoothed_slope(model, release, spread=0.3, n=256):
    """Return the gradient of the mean distance of random throws: their covariance with the distances."""
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
            f"{contact_model}: a short throw has the gradient {lost}; random throws around it"
        )
        assert not lost.any()
        while not slope(model, release)[1].any():
            uphill = smoothed_slope(model, release)
            release = release + 0.1 * uphill / np.linalg.norm(uphill)
        aim(model, release)
    print("convex: contact force from a distance of 0.5 m, then 0.2 m and 0.02 m")
    release = SHORT
    for reach in (0.5, 0.2, 0.02):
        release = aim(load("convex", reach), release)


if __name__ == "__main__":
    main()
