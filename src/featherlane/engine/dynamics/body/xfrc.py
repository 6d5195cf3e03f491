"""Maps user-applied forces on bodies to the DoFs."""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.com import point_wrench


@kernel
def add_xfrc(m, d, result):
    """result += J^T xfrc_applied, at the centres of mass of the bodies; bodies without a force are skipped.

    result: (nv,) forces of the DoFs.
    """
    for i in range(1, m.nbody):
        xfrc = d.xfrc_applied[i]
        size = fabs(xfrc[0]) + fabs(xfrc[1]) + fabs(xfrc[2]) + (fabs(xfrc[3]) + fabs(xfrc[4]) + fabs(xfrc[5]))
        has_force = size != 0.0
        if any_(has_force):
            # the spatial force at the centre of mass of the tree, to which cdof refers
            wrench = point_wrench(d, xfrc.force, moment=xfrc.torque, point=d.xipos[i], root=m.body_rootid[i])
            k = m.body_lastdof[i]  # then its ancestors; -1: none
            while k >= 0:
                f = result[k]
                result[k] = where(has_force, f + dot(d.cdof[k], wrench), f)
                k = m.dof_parentid[k]
