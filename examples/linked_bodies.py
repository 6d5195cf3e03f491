"""Simulates a slider-crank of three free bodies that links join, as in ODE; a motor turns the crank."""

import sys

import numpy as np

import featherlane as fl

CRANK, ROD, START = 0.5, 1.5, np.radians(60)
PIN = np.array([CRANK * np.cos(START), 0, CRANK * np.sin(START)])
END = np.array([PIN[0] + np.sqrt(ROD**2 - PIN[2] ** 2), 0, 0])
BODY = """
<body name="{name}" pos="{0} {1} {2}" xyaxes="{3} {4} {5} 0 1 0"><freejoint/>
  <geom type="box" size="{half} .05 .05" mass="1" contype="0" conaffinity="0"/></body>
"""


def body(name, a, b):
    """Return the MJCF of a free bar from a to b."""
    along = (b - a) / np.linalg.norm(b - a)
    return BODY.format(*(a + b) / 2, *along, name=name, half=np.linalg.norm(b - a) / 2)


def main(seconds=3.0):
    bodies = (
        body("crank", np.zeros(3), PIN)
        + body("rod", PIN, END)
        + body("block", END - (0.1, 0, 0), END + (0.1, 0, 0))
    )
    y = (0, 1, 0)
    motor = {"motor_vel": 2 * np.pi, "motor_force": 40.0}
    links = [
        fl.Link("hinge", "crank", name="shaft", anchor=(0, 0, 0), axis=y, **motor),
        fl.Link("hinge", "crank", "rod", anchor=PIN, axis=y),
        fl.Link("hinge", "rod", "block", anchor=END, axis=y),
        fl.Link(
            "slider", "block", name="cylinder", axis=(1, 0, 0)
        ),  # three redundant rows
    ]
    xml = f'<mujoco><option timestep=".002"/><worldbody>{bodies}</worldbody></mujoco>'
    model = fl.load(xml, links=links)
    data = fl.Data(model)
    for k in range(round(seconds / model.opt.timestep)):
        fl.step(model, data)
        if k % 250 == 0:
            angle, torque = data.link("shaft").position[0], data.link("shaft").force[4]
            print(
                f"{data.time:5.2f} s: crank {np.degrees(angle):7.1f} degrees, torque {torque:6.2f} N m"
            )

    fl.forward(model, data)
    angle = START - data.link("shaft").position[0]
    expected = (
        CRANK * np.cos(angle) + np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2) - END[0]
    )
    drift = abs(data.link("cylinder").position[0] - expected)
    assert drift < 1e-3, drift
    print(f"largest gap of the loop: {1000 * drift:.3f} mm")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
