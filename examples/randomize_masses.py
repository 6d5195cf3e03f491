"""Domain randomization: masses, friction and gravity differ by world in one batch."""

import sys

import numpy as np

import featherlane as fl


def main(nworld=256, nstep=250):
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, nworld)
    rng = np.random.default_rng(0)

    # an expanded field has a row for each world, initially the model's values
    scale = rng.uniform(0.5, 2.0, (nworld, 1))
    batch.expand("body_mass")[:] *= scale
    batch.expand("body_inertia")[:] *= scale[:, :, None]
    batch.expand("geom_friction")[:, :, 0] *= rng.uniform(0.3, 1.5, (nworld, 1))
    batch.expand("opt.gravity")[:, 0] = rng.uniform(-1.0, 1.0, nworld)
    batch.set_const()  # recomputes what depends on masses: inverse weights, ...

    batch.reset(keyframe="home")
    batch.step(nstep)
    mass = batch.expanded("body_mass").sum(axis=1)
    sag = batch.qpos[:, 2]
    print(
        f"masses from {mass.min():.1f} to {mass.max():.1f} kg, trunks from {sag.min():.3f} to {sag.max():.3f} m high"
    )
    print(f"correlation of mass and height: {np.corrcoef(mass, sag)[0, 1]:.2f}")

    # a copy of one world, with its model
    heaviest = int(mass.argmax())
    data = batch.get_data(heaviest)
    fl.step(data.model, data)
    print(
        f"world {heaviest} weighs {data.model.body_mass.sum():.1f} kg and has {data.ncon} contacts"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
