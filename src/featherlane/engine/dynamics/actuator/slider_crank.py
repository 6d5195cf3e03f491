"""Computes the slider-crank: a rod from a crank's pin to a slider that moves along the z axis of its site.

    l = a.v - sqrt(det),   det = (a.v)^2 + r^2 - v.v,   v from the slider's site to the pin, a the axis, r the rod

is the rod's end along the axis.  If the rod is too short to reach the axis (det <= 0), l = a.v.
i is the index of an actuator, o that of its output.

`clear_moment` clears the row of an output in actuator_moment, and `add_wrench_moment` adds J^T of a wrench to it.

Source: MuJoCo, transmission slidercrank.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.wrench import add_wrench_moment, clear_moment


@kernel
def slider_crank_gradients(m, i, axis, v):
    """Returns (l, dl/dv, dl/da) of actuator i, without its gear;  v: from the slider's site to the pin;  a: the axis.

    With s = sqrt(det):  dl/dv = (1 - a.v / s) a + v / s,  dl/da = (1 - a.v / s) v;  if det <= 0, dl/dv = a, dl/da = v.
    """
    rod = m.actuator_cranklength[i]
    av = dot(axis, v)
    det = fma(av, av, fma(rod, rod, -dot(v, v)))
    reaches = det > 0.0
    s = sqrt(where(reaches, det, 1.0))
    axis_part = where(reaches, 1.0 - av / s, 1.0)
    v_part = where(reaches, 1.0 / s, 0.0)
    return av - where(reaches, s, 0.0), fma(v_part, v, axis_part * axis), axis_part * v


@kernel
def store_slider_crank(m, d, i):
    """Computes gear l and its gradient, length and moment of a slider-crank's actuator.

    The moment is that of forces dl/dv at the pin and -dl/dv at the slider, v from slider to pin, and of a torque on the
    axis.

    A rotation w of the slider's body moves the axis by w x a, hence the torque a x dl/da.
    Reads:  site_xpos, site_xmat of both sites.   Writes: actuator_length, actuator_moment.
    """
    o, crank, slider = m.actuator_outadr[i], m.actuator_trnid[i, 0], m.actuator_trnid[i, 1]
    pin, slider_pos = d.site_xpos[crank], d.site_xpos[slider]
    axis = d.site_xmat[slider].columns[2]
    length, dl_dv, dl_da = slider_crank_gradients(m, i, axis, pin - slider_pos)

    gear = m.actuator_gear[o][0]
    d.actuator_length[o] = gear * length
    force = gear * dl_dv
    torque = gear * cross(axis, dl_da)
    clear_moment(m, d, o)
    add_wrench_moment(m, d, o, m.site_bodyid[crank], pin, force, zeros(3))
    add_wrench_moment(m, d, o, m.site_bodyid[slider], slider_pos, -force, torque)
