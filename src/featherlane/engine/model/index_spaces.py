"""Index spaces: the ranges of indices that belong to one object, for `for` loops of kernels.

MuJoCo stores the joints, dofs and geoms of a body, the outputs of an actuator and the entries of a sparse row one after
another: the first index in a field `..adr`, their number in a field `..num` or `..nnz`.
"""

from featherlane.engine.lanes import kernel


@kernel
def body_joints(m, b):
    """Returns the range of the joints between body b and its parent."""
    return range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b])


@kernel
def body_dofs(m, b):
    """Returns the range of the dofs of these joints."""
    return range(m.body_dofadr[b], m.body_dofadr[b] + m.body_dofnum[b])


@kernel
def body_geoms(m, b):
    """Returns the range of the geoms of body b."""
    return range(m.body_geomadr[b], m.body_geomadr[b] + m.body_geomnum[b])


@kernel
def tree_dofs(m, t):
    """Returns the range of the dofs of kinematic tree t."""
    return range(m.tree_dofadr[t], m.tree_dofadr[t] + m.tree_dofnum[t])


@kernel
def actuator_outputs(m, i):
    """Returns the range of the outputs of actuator i."""
    return range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i])


@kernel
def moment_entries(m, o):
    """Returns the range of the entries of row o of actuator_moment: the moment arms of output o."""
    return range(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o])


@kernel
def tendon_entries(m, t):
    """Returns the range of the entries of row t of ten_J: the Jacobian of the length of tendon t."""
    return range(m.ten_J_rowadr[t], m.ten_J_rowadr[t] + m.ten_J_rownnz[t])


@kernel
def inertia_entries(m, i):
    """Returns the range of the entries of row i of M: dof i and its ancestors."""
    return range(m.M_rowadr[i], m.M_rowadr[i] + m.M_rownnz[i])
