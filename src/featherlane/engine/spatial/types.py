"""Row types: vectors, rotations, spatial vectors and inertias, with the names of their parts.

The operators and attributes of these types are kernels of `vector.py`, `quaternion.py`, `motion.py` and `inertia.py`.
"""

from featherlane.engine.lanes.rows import row_type

Vec2 = row_type("Vec2", "x y")
Vec3 = row_type("Vec3", "x y z")
Vec4 = row_type("Vec4", "x y z w")
Vec5 = row_type("Vec5", "a b c d e")
Vec6 = row_type("Vec6", "a b c d e f")
Vec10 = row_type("Vec10", "a b c d e f g h i j")
Quat = row_type("Quat", "w x y z")
Mat3 = row_type("Mat3", "xx xy xz yx yy yz zx zy zz")  # by rows
Sym3 = row_type("Sym3", "xx xy xz yy yz zz")  # a symmetric matrix: the upper triangle by rows
Motion = row_type("Motion", "wx wy wz vx vy vz")  # rotation first
Force = row_type("Force", "mx my mz fx fy fz")  # moment first
Wrench = row_type("Wrench", "fx fy fz mx my mz")  # force first, as in MuJoCo's xfrc_applied
Inertia = row_type("Inertia", "Ixx Iyy Izz Ixy Ixz Iyz mx my mz mass")
# a symmetric 6 x 6 matrix: rotation to moment (a Sym3), translation to moment (a Mat3), translation to force (a Sym3)
Stiffness = row_type(
    "Stiffness",
    "aaxx aaxy aaxz aayy aayz aazz alxx alxy alxz alyx alyy alyz alzx alzy alzz llxx llxy llxz llyy llyz llzz",
)
Box = row_type("Box", "cx cy cz hx hy hz")  # centre and half sizes
Bounds = row_type("Bounds", "lx ly lz hx hy hz")  # lower and upper corner
Range = row_type("Range", "lower upper")
Powers = row_type("Powers", "second third")  # coefficients of a polynomial
Invweight = row_type("Invweight", "linear angular")
Intrinsic = row_type("Intrinsic", "fx fy cx cy")  # of a camera
Solref = row_type("Solref", "timeconst dampratio")
Solimp = row_type("Solimp", "dmin dmax width midpoint power")
