"""Row types of the records of derivatives: contacts at a displaced pose, their displacements, and their laws."""

from featherlane.engine.lanes import kernel
from featherlane.engine.lanes.rows import attribute, row_type
from featherlane.engine.spatial.types import Mat3, Vec3

ContactPlace = row_type("ContactPlace", "dist x y z xx xy xz yx yy yz zx zy zz")  # distance, point, frame by rows
ContactShift = row_type("ContactShift", "dist x y z wx wy wz")  # changes of distance and point, rotation of the frame
# derivatives by distance: relative derivative of all stiffnesses, derivative of -aref
ContactSlope = row_type("ContactSlope", "stiffness aref")
ContactCase = row_type("ContactCase", "apart deep fastest bounces")  # cases of the law: 1 in worlds in which it applies
Weight = row_type("Weight", "mass mx my mz")  # mass and first moment


@attribute(ContactShift, "position")
@attribute(ContactPlace, "position")
@kernel
def contact_position(c):
    """Returns the contact point of a ContactPlace [m], or its displacement of a ContactShift."""
    return Vec3(c[1:4])


@attribute(ContactPlace, "orientation")
@kernel
def contact_orientation(c):
    """Returns the contact frame; its rows are the normal and two tangents."""
    return Mat3(c[4:13])


@attribute(ContactShift, "rotation")
@kernel
def contact_rotation(c):
    """Returns the rotation vector of the contact frame."""
    return Vec3(c[4:7])


@attribute(Weight, "first_moment")
@kernel
def first_moment(w):
    """Returns the mass times the position of the centre of mass."""
    return Vec3(w[1:4])
