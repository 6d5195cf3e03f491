"""Computes the slider-crank: a rod from a crank's pin to a slider that moves along the z axis of its site.

    l = a.v - sqrt(det),   det = (a.v)^2 + r^2 - v.v,   v from the slider's site to the pin, a the axis, r the rod

is the rod's end along the axis.  If the rod is too short to reach the axis (det <= 0), l = a.v.
Source: MuJoCo, transmission slidercrank.
"""

from featherlane.prelude import *
from featherlane.dynamics.body.wrench import add_wrench_moment, clear_moment


@kernel
def _gradients(m, d, i, axis, v):
    """Returns (l, dl/dv, dl/da) of actuator i, without its gear."""
    rod, av = m.actuator_cranklength[i], dot(axis, v)
    det = fma(av, av, fma(rod, rod, -dot(v, v)))
    reaches = det > 0.0
    s = sqrt(where(reaches, det, 1.0))
    along, across = where(reaches, 1.0 - av / s, 1.0), where(reaches, 1.0 / s, 0.0)
    return av - where(reaches, s, 0.0), fma(across, v, along * axis), along * v


@kernel
def slider_crank(m, d, i):
    """Computes length and moment of an actuator on a slider-crank: forces at both pins, and a torque on the axis.

    A rotation w of the slider's body moves the axis by w x a, hence the torque a x dl/da.
    Reads:  site_xpos, site_xmat of both sites.   Writes: actuator_length, actuator_moment.
    """
    o, crank, slider = m.actuator_outadr[i], m.actuator_trnid[i, 0], m.actuator_trnid[i, 1]
    pin, end = d.site_xpos[crank], d.site_xpos[slider]
    axis = d.site_xmat[slider].columns[2]
    length, by_vector, by_axis = _gradients(m, d, i, axis, pin - end)

    gear = m.actuator_gear[o][0]
    d.actuator_length[o] = gear * length
    force, torque = gear * by_vector, gear * cross(axis, by_axis)
    clear_moment(m, d, o)
    add_wrench_moment(m, d, o, m.site_bodyid[crank], pin, force, zeros(3))
    add_wrench_moment(m, d, o, m.site_bodyid[slider], end, -force, torque)
