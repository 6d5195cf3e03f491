"""Maps user-applied forces on bodies to the DoFs."""

from featherlane.prelude import *
from featherlane.dynamics.body.com import last_dof, point_wrench


@kernel
def add_xfrc(m, d, result):
    """result += J^T xfrc_applied, at the centres of mass of the bodies; bodies without a force are skipped."""
    for i in range(1, m.nbody):
        x = d.xfrc_applied[i]
        pushed = (fabs(x[0]) + fabs(x[1]) + fabs(x[2]) + (fabs(x[3]) + fabs(x[4]) + fabs(x[5]))) != 0.0
        if any_(pushed):
            wrench = point_wrench(d, x.force, x.torque, d.xipos[i], m.body_rootid[i])
            k = last_dof(m, i)
            while k >= 0:
                f = result[k]
                result[k] = where(pushed, f + dot(d.cdof[k], wrench), f)
                k = m.dof_parentid[k]
