"""Looks up colours of textures: texture coordinates of points on geoms, faces of a cube, interpolation between texels.

Lanes hold different pixels, with different geoms and textures.  A texel is one number, red + 256 green + 65536 blue.
Source: MuJoCo 4.0's OpenGL renderer (texture coordinates of built-in shapes; OpenGL's cube maps).
Deviation: there are no mipmaps, so a texture that is much finer than the pixels is sampled without averaging.
"""

from featherlane.engine.prelude import *

FULL_ROTATION = 6.28318530717958647692
RIGHT_ANGLE = 1.57079632679489661923


@kernel
def texel(m, texels, start, wide, column, row):
    """Returns (red, green, blue) from 0 to 1 of a texel of an image `wide` texels wide.

    Args:
        texels: the texels of all textures.
        start: the index of the image's first texel, in two parts: start[0] * 4096 + start[1].
        column, row: whole numbers within the image.
    """
    # in float64, since an address may exceed 2^24: adding a zero in float64 converts, and times are float64 always
    zero = 0.0 * m.opt_timestep[0]
    index = ((start[0] + zero) * 4096.0 + start[1]) + (row + zero) * wide + column
    packed = gather(texels, where(index >= 0.0, index, 0.0))
    blue = floor(packed / 65536.0)
    rest = packed - 65536.0 * blue
    green = floor(rest / 256.0)
    return Vec3((rest - 256.0 * green) / 255.0, green / 255.0, blue / 255.0)


@kernel
def two_texels(x, n, repeats):
    """Returns (first, second, weight): the texels around x of n in a row, and the weight of the second.

    Lanes of the mask `repeats` wrap around, others stay at the edge.
    """
    first = floor(x)
    weight = x - first
    second = first + 1.0
    # modulo n
    first_wrapped = first - n * floor(first / n)
    second_wrapped = second - n * floor(second / n)
    last = n - 1.0
    first = clip(where(repeats, first_wrapped, first), 0.0, last)
    return first, clip(where(repeats, second_wrapped, second), 0.0, last), weight


@kernel
def interpolated(m, texels, image, st, repeats):
    """Returns the colour (red, green, blue) at texture coordinates (s, t) of an image, bilinear between texels.

    Args:
        image: (start, first row, (texels in a row, rows)); the first row counts from the start.
        st: (s, t) from 0 to 1 over the image, right and down.
        repeats: mask of lanes in which the image repeats beyond its edges; in others the edge continues.
    """
    start, first_row, (wide, high) = image
    # texel centres are at 0.5, 1.5, ...
    x0, x1, x_weight = two_texels(st[0] * wide - 0.5, wide, repeats)
    y0, y1, y_weight = two_texels(st[1] * high - 0.5, high, repeats)
    y0, y1 = y0 + first_row, y1 + first_row
    c00, c10 = texel(m, texels, start, wide, x0, y0), texel(m, texels, start, wide, x1, y0)
    c01, c11 = texel(m, texels, start, wide, x0, y1), texel(m, texels, start, wide, x1, y1)
    upper, lower = c00 + x_weight * (c10 - c00), c01 + x_weight * (c11 - c01)
    # in the precision of the batch
    return Vec3(real(m, x) for x in upper + y_weight * (lower - upper))


@kernel
def cube_face(v):
    """Returns (face, s, t) where a direction v meets a cube's faces; s, t from 0 to 1, right and down.

    Faces 0 to 5: +x, -x, +y, -y, +z, -z.  s and t of each face are those of OpenGL's cube maps.
    """
    x, y, z = v
    on_x = (fabs(x) >= fabs(y)) & (fabs(x) >= fabs(z))
    on_y = not_(on_x) & (fabs(y) >= fabs(z))
    largest = fmax(where(on_x, fabs(x), where(on_y, fabs(y), fabs(z))), MINVAL)
    face = where(on_x, where(x > 0.0, 0.0, 1.0), where(on_y, where(y > 0.0, 2.0, 3.0), where(z > 0.0, 4.0, 5.0)))
    # from -largest to largest on the face
    s = where(on_x, where(x > 0.0, -z, z), where(on_y, x, where(z > 0.0, x, -x)))
    t = where(on_y, where(y > 0.0, z, -z), -y)
    return face, 0.5 * (s / largest + 1.0), 0.5 * (t / largest + 1.0)


@kernel
def longitude(x, y):
    """Returns the angle of a point about the z axis, divided by 2 pi, from 0 to 1."""
    angle = atan2(y, x) / FULL_ROTATION
    return where(angle < 0.0, angle + 1.0, angle)


@kernel
def latitude(q):
    """Returns the angle of a point of the unit sphere from the equator, divided by pi / 2: 0 to 1 at either pole."""
    return atan2(fabs(q[2]), sqrt(fma(q[0], q[0], q[1] * q[1]))) / RIGHT_ANGLE


@kernel
def box_coordinates(q, normal):
    """Returns (s, t) on the face of a unit box, -1 to 1, that has the normal."""
    # faces normal to z: (x, -y); to x: (y, -z); to y: (x, -z).  A component of the normal above 0.7 selects the face
    on_z, on_x = fabs(normal[2]) > 0.7, fabs(normal[0]) > 0.7
    return 0.5 + 0.5 * where(on_x, q[1], q[0]), 0.5 - 0.5 * where(on_z, q[1], q[2])


@kernel
def flat_coordinates(kind, local, q, normal, size, mapped):
    """Returns (s, t) of an image on the surface of a geom, before it is repeated.

    Args:
        kind: type of the geom, a value.
        local: the point in the geom's frame [m].
        q: the point in units of the geom's shape: a sphere has radius 1, a box, cylinder or cap goes from -1 to 1.
        normal: in the geom's frame.
        size: of the geom [m].
        mapped: (mask, s, t): whether a mesh has coordinates of the texture, and these.
    """
    # plane; its infinite sides have a repetition each 2 m
    s = where(size[0] > 0.0, 0.5 + 0.5 * q[0], 0.5 * local[0])
    t = where(size[1] > 0.0, 0.5 - 0.5 * q[1], -0.5 * local[1])
    azimuth = longitude(q[0], q[1])
    elevation = latitude(q)
    s_box, t_box = box_coordinates(q, normal)
    is_box = kind == 1.0 * BOX
    is_round = (kind == 1.0 * SPHERE) | (kind == 1.0 * ELLIPSOID)
    s, t = where(is_box, s_box, s), where(is_box, t_box, t)
    # sphere and ellipsoid: longitude and latitude
    s = where(is_round, azimuth, s)
    t = where(is_round, 0.5 - 0.5 * copysign(elevation, q[2]), t)
    # capsule: its half spheres go from |z| = 1 to 2
    is_capsule = kind == 1.0 * CAPSULE
    on_cap = fabs(q[2]) > 1.0
    cap_elevation = latitude((q[0], q[1], q[2] - copysign(1.0, q[2])))  # relative to the centre of the half sphere
    s = where(is_capsule, azimuth, s)
    t = where(is_capsule, where(on_cap, where(q[2] > 0.0, 1.0 - cap_elevation, cap_elevation), 0.5 - 0.5 * q[2]), t)
    # cylinder: its side, or the disk at an end
    is_cylinder = kind == 1.0 * CYLINDER
    on_side = fabs(normal[2]) < 0.5
    s = where(is_cylinder, where(on_side, azimuth, 0.5 + 0.5 * q[0]), s)
    t = where(is_cylinder, where(on_side, 0.5 - 0.5 * q[2], 0.5 + 0.5 * q[1]), t)
    # other shapes: their coordinates of the texture, or a projection along z
    is_free = (kind == 1.0 * MESH) | (kind == 1.0 * SDF) | (kind == 1.0 * HFIELD)
    s = where(mapped[0], mapped[1], where(is_free, 0.5 * q[0], s))
    return s, where(mapped[0], mapped[2], where(is_free, -0.5 * q[1], t))
