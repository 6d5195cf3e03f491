"""Computes the colours that a camera sees: materials, textures, lights with shadows, and the sky.

    colour = texture * (emission + sum over lights of a (ambient + diffuse max(n.l, 0) + specular max(n.h, 0)^s)).

n is the normal, l the direction to the light, h halfway between l and the eye, a the light's attenuation.  A light that
casts shadows has no effect on a point that it does not reach.
Source: MuJoCo mjr_render (OpenGL's fixed-function lighting), mjv_makeLights, mj_camlight; Blinn (1977).
Deviation: light is computed for each pixel, not for each corner of a tessellation.  Shadows are rays instead of maps.
    No reflections, haze or transparency: a geom whose alpha is not 0 is opaque.

Lanes hold different pixels, so the geom of a lane is a value, and its data is gathered from tables of numbers: SURFACE
numbers for each geom, TRIANGLE for each triangle, LIGHT for each light.  The constants below are indices in these.  A
type of geoms is compared as a value: kind == 1.0 * MESH.
The record p has the addresses of these tables (surfaces, triangles, lights, texels), nlight, light_frame (position and
direction of each light), camera, rgb (the result) and the sky: sky_texel (first texel), sky_width (of a face, in
texels), sky_stride (rows from one face to the next).
intersect_geom stores hits of geom g that are nearer than ray.distance; packet=1: the lanes hold neighbouring rays.
meets_bounding_sphere(m, d, g, origin, direction) returns the mask of rays that meet the bounding sphere of geom g.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray import intersect_geom, meets_bounding_sphere
from featherlane.engine.sensor.texture import cube_face, flat_coordinates, interpolated

# numbers of a geom in the table of surfaces.  TEXTURE: NO_TEXTURE, FLAT or CUBE; TEXEL_HIGH, TEXEL_LOW: its first texel
# in two parts; WIDE, HIGH: its size in texels; REPEAT_X, REPEAT_Y, UNIFORM: texrepeat and texuniform of the material;
# MAPPED: 1 if a mesh has coordinates of the texture; SHAPE: type of the geom
SURFACE = 13
EMISSION, SPECULAR, SHININESS, TEXTURE, TEXEL_HIGH, TEXEL_LOW, WIDE, HIGH = range(8)
REPEAT_X, REPEAT_Y, UNIFORM, MAPPED, SHAPE = range(8, SURFACE)
NO_TEXTURE, FLAT, CUBE = range(3)
TRIANGLE = 24  # numbers of a triangle: positions, normals and texture coordinates of its three corners
NORMALS, COORDINATES = 9.0, 18.0  # where the normals, (3, 3), and the coordinates (s, t), (3, 2), of a triangle begin
LIGHT = 34  # numbers of a light
HEADLIGHT = -1  # its mode
MODE, BODY, TARGET, KIND, CASTS = range(5)  # of a light; CASTS: 1 if it casts shadows
# three numbers each: position and direction as in the model, its colours, and ATTENUATION (c_0, c_1, c_2);
# one number: CUTOFF, the cosine of the half angle, and EXPONENT of a spot light
POS, DIR, POSCOM0, POS0, DIR0, AMBIENT, DIFFUSE, SPECULAR_COLOUR, ATTENUATION, CUTOFF, EXPONENT = (
    *range(5, 32, 3),
    32,
    33,
)
SHADOW_OFFSET = 1e-4  # shadow rays start this far above a surface, relative to the distance from the camera


@kernel
def table3(table, k):
    """Returns three numbers of a table from index k on."""
    return Vec3(table[k : k + 3])


@kernel
def store_light_frames(m, d, p):
    """p.light_frame[k] <- (position, direction) of light k in world axes; a headlight looks along the camera's axis.

    Source: MuJoCo mj_camlight (lights alone).
    """
    table = doubles(d, p.lights)
    for k in range(p.nlight):
        light = LIGHT * k
        mode, b, target = whole(table[light + MODE]), whole(table[light + BODY]), whole(table[light + TARGET])
        if mode == HEADLIGHT:
            pos, R = d.camera.xpos[0], d.camera.xmat[0]
            direction = -R.columns[2]
        else:
            R, body_pos = d.xmat[b], d.xpos[b]
            # mode `fixed`; the other modes replace it
            pos = body_pos + R @ table3(table, light + POS)
            direction = R @ table3(table, light + DIR)
            if mode == CAMLIGHT_TRACK:
                pos = body_pos + table3(table, light + POS0)
                direction = table3(table, light + DIR0)
            elif mode == CAMLIGHT_TRACKCOM:
                pos = d.subtree_com[b] + table3(table, light + POSCOM0)
                direction = table3(table, light + DIR0)
            elif mode == CAMLIGHT_TARGETBODY and target >= 0:
                direction = d.xpos[target] - pos
            elif mode == CAMLIGHT_TARGETBODYCOM and target >= 0:
                direction = d.subtree_com[target] - pos
        p.light_frame[k, 0] = pos
        p.light_frame[k, 1] = normalize3(direction)[0]


@kernel
def gather_components(rows, k):
    """Returns three components of a field's rows, from component k on; k is a value, so lanes have different rows."""
    components = flat(rows)
    return Vec3(gather_rows(components, k), gather_rows(components, k + 1.0), gather_rows(components, k + 2.0))


@kernel
def gather3(table, k):
    """Returns three numbers of a table from index k on; k is a value, so lanes have different indices."""
    return Vec3(gather(table, k), gather(table, k + 1.0), gather(table, k + 2.0))


@kernel
def barycentric_coordinates(a, b, c, point):
    """Returns the barycentric coordinates of a point in the plane of a triangle a, b, c; (1, 0, 0) without area.

    They solve point - a = weight_b (b - a) + weight_c (c - a), by its normal equations.
    """
    u, v, w = b - a, c - a, point - a
    uu, uv, vv, wu, wv = dot(u, u), dot(u, v), dot(v, v), dot(w, u), dot(w, v)
    det = fma(uu, vv, -uv * uv)
    has_area = det > 0.0
    scale = 1.0 / where(has_area, det, 1.0)
    # (vv wu - uv wv) / det and (uu wv - uv wu) / det
    weight_b = where(has_area, fma(vv, wu, -uv * wv) * scale, 0.0)
    weight_c = where(has_area, fma(uu, wv, -uv * wu) * scale, 0.0)
    return 1.0 - weight_b - weight_c, weight_b, weight_c


@kernel
def interpolated_on_mesh(d, p, is_mesh, local, normal):
    """Returns (normal, s, t) at a point of a mesh: interpolated between the corners of the triangle that the ray hit.

    (s, t) are texture coordinates.  Where the interpolated normal points to the opposite side of the face, the
    face's normal is returned.

    Args:
        is_mesh: mask of lanes whose geom is a mesh.
        local, normal: the point and the face's normal in the mesh's frame.

    p.triangles has TRIANGLE numbers for each triangle, the positions of its corners first.
    """
    table = doubles(d, p.triangles)
    first = TRIANGLE * where(is_mesh, d.ray.triangle[0], 0.0)
    weights = barycentric_coordinates(
        gather3(table, first), gather3(table, first + 3.0), gather3(table, first + 6.0), local
    )
    n = Vec3(zeros(3))
    s, t = 0.0, 0.0
    for k in unrolled(range(3)):
        n = fma(weights[k], gather3(table, first + (NORMALS + 3.0 * k)), n)
        s = fma(weights[k], gather(table, first + (COORDINATES + 2.0 * k)), s)
        t = fma(weights[k], gather(table, first + (COORDINATES + 1.0 + 2.0 * k)), t)
    n = normalize3(n)[0]
    smooth = is_mesh & (dot(n, normal) > 0.0)
    return where(smooth, n, normal), s, t


@kernel
def shape_coordinates(m, g, kind, local):
    """Returns (size, q): the size of each lane's geom in three axes, and the point relative to the shape, local / size.

    The ends of a capsule are half spheres from |q_z| = 1 to 2 along its axis.

    Args:
        g, kind: the lane's geom and its type, values.
        local: the point in the geom's frame [m].
    """
    x, y, z = gather_components(m.geom_size, 3.0 * g)
    # the radius of a sphere holds for all axes, that of a capsule or cylinder for two; their half length is next
    is_sphere = kind == 1.0 * SPHERE
    is_tube = (kind == 1.0 * CAPSULE) | (kind == 1.0 * CYLINDER)
    size = x, where(is_sphere | is_tube, x, y), where(is_sphere, x, where(is_tube, y, z))
    q = tuple(where(size[i] > 0.0, local[i] / where(size[i] > 0.0, size[i], 1.0), local[i]) for i in range(3))
    beyond = fabs(local[2]) - size[2]
    on_cap = copysign(1.0 + fmax(beyond, 0.0) / fmax(size[0], MINVAL), local[2])
    return size, (q[0], q[1], where((kind == 1.0 * CAPSULE) & (beyond > 0.0), on_cap, q[2]))


@kernel
def repeated_coordinates(kind, s, t, size, repeats, uniform, is_mapped):
    """Returns texture coordinates (s, t) of a flat image that is repeated `repeats` times along s and t (texrepeat).

    Args:
        kind, s, t: type of the geom, and the coordinates of `flat_coordinates`.
        size: of the geom [m].
        uniform: mask of texuniform: the number of repetitions is in proportion to the geom's size.
        is_mapped: mask of meshes that have coordinates of the texture.
    """
    is_infinite = (kind == 1.0 * PLANE) & ((size[0] <= 0.0) | (size[1] <= 0.0))
    is_projected = ((kind == 1.0 * MESH) | (kind == 1.0 * SDF) | (kind == 1.0 * HFIELD)) & not_(is_mapped)
    # an image on an infinite plane or a projection has its centre at the origin
    shift = where(is_infinite | is_projected, -0.5, 0.0)
    s = fma(s, repeats[0] * where(uniform & (size[0] > 0.0), size[0], 1.0), shift)
    return s, fma(t, repeats[1] * where(uniform & (size[1] > 0.0), size[1], 1.0), shift)


@kernel
def texture_colour(m, d, p, g, texture_kind, local, normal, mapped):
    """Returns the colour of each lane's texture at a point of geom g, white without one.

    Texture coordinates are computed for both kinds of textures, FLAT and CUBE, and selected by the mask `is_flat`.

    Args:
        g: the lane's geom, a value.
        texture_kind: kind of the lane's texture: NO_TEXTURE, FLAT or CUBE, a value.
        local, normal: point and surface normal in the geom's frame.
        mapped: (mask, s, t): whether the geom has coordinates of the texture, and these.
    """
    table, texels = doubles(d, p.surfaces), doubles(d, p.texels)
    surface = SURFACE * g
    kind = gather(table, surface + SHAPE)
    size, q = shape_coordinates(m, g, kind, local)
    is_flat = texture_kind == 1.0 * FLAT
    uniform = gather(table, surface + UNIFORM) > 0.0
    # FLAT: coordinates on the surface, repeated
    repeats = gather(table, surface + REPEAT_X), gather(table, surface + REPEAT_Y)
    s, t = flat_coordinates(kind, local, q, normal, size, mapped)
    s, t = repeated_coordinates(kind, s, t, size, repeats, uniform, mapped[0])
    # CUBE: the face in the direction of the point from the geom's centre
    has_sizes = (kind >= 1.0 * SPHERE) & (kind <= 1.0 * BOX)  # in all axes
    direction = tuple(where(has_sizes, q[i], local[i]) * where(uniform, size[i], 1.0) for i in range(3))
    face, s_cube, t_cube = cube_face(direction)
    st = where(is_flat, s, s_cube), where(is_flat, t, t_cube)
    # the image: (first texel in two parts, first row, (texels in a row, rows)); the six faces of a cube, each wide x
    # wide, are `high` rows apart
    first_texel = gather(table, surface + TEXEL_HIGH), gather(table, surface + TEXEL_LOW)
    wide, high = gather(table, surface + WIDE), gather(table, surface + HIGH)
    wide = where(wide > 0.0, wide, 1.0)
    image = first_texel, where(is_flat, 0.0, face * high), (wide, where(is_flat, high, wide))
    colour = interpolated(m, texels, image, st, repeats=is_flat)
    is_white = texture_kind == 1.0 * NO_TEXTURE
    return Vec3(where(is_white, 1.0, x) for x in colour)


@kernel
def sky_colour(m, d, p, direction):
    """Returns the colour of the sky in a direction; black if the model has no sky.

    MuJoCo's sky texture has its y axis upwards, along the world's z axis.
    """
    colour = Vec3(zeros(3))
    if p.sky_width > 0:
        face, s, t = cube_face(Vec3(direction.x, direction.z, -direction.y))
        # the first texel in two parts that float32 represents exactly
        start = p.sky_texel // 4096, p.sky_texel % 4096
        image = start, face * p.sky_stride, (p.sky_width, p.sky_width)
        colour = interpolated(m, doubles(d, p.texels), image, (s, t), repeats=false_mask(d))
    return colour


@stage
def find_occluders(m, d):
    """Finds the lanes whose rays hit any geom before the light.

    The geom that shaded the last pixels is tested first.
    Reads:  ray.point [m], ray.direction (unit), camera.ncandidate, camera.candidate, camera.occluder, geom_xpos,
            geom_xmat, ray.distance [m]: to the light, negative in lanes that are not tested.
    Writes: ray.geom, -1 without a hit, camera.occluder, ray.*.
    Scratch: shapes.*, line.*.
    Frame: world.   Cost: O(ngeom).
    """
    origin, direction = d.ray.point[0], d.ray.direction[0]
    d.ray.geom[0] = -1.0
    k = -1  # the geom that shaded the last pixels; then the candidates
    while k < d.camera.ncandidate[0] and any_(d.ray.distance[0] >= 0.0):
        g = d.camera.occluder[0] if k < 0 else d.camera.candidate[k]
        # only lanes that no geom has shaded so far
        near = meets_bounding_sphere(m, d, g, origin, direction) & (d.ray.distance[0] >= 0.0)
        intersect_geom(m, d, g, near, packet=1)  # ray.geom <- g where it is hit
        shaded = near & (d.ray.geom[0] >= 0.0)
        if any_(shaded):
            d.camera.occluder[0] = g
            d.ray.distance[0] = where(shaded, -1.0, d.ray.distance[0])
        k += 1


@kernel
def reached_by_light(m, d, lit, point, to_light, distance):
    """Returns the lanes of the mask `lit` in which no geom is between a point and a light.

    to_light: unit direction; distance: to the light [m].
    Overwrites ray.*, the results of `cast`.  ray.culls is 0 meanwhile, so that rays also hit back sides.
    """
    d.ray.point[0] = point
    d.ray.direction[0] = to_light
    d.ray.distance[0] = where(lit, distance, -1.0)
    d.ray.culls[0] = 0
    find_occluders(m, d)
    d.ray.culls[0] = 1
    return lit & (d.ray.geom[0] < 0.0)


@kernel
def light_colours(m, d, p, k, point, normal, to_eye, specular, shininess, shadow_offset, seen):
    """Returns the terms a (ambient + diffuse n.l) and a specular (n.h)^s of light k at a point, three components each.

    Args:
        point, normal, to_eye: position, n, and the unit direction to the eye, in world axes.
        specular, shininess: of the surface, specular and the exponent s.
        shadow_offset: height above the surface from which shadow rays start [m].
        seen: mask of lanes that see a surface.
    """
    table = doubles(d, p.lights)
    light = LIGHT * k
    pos = p.light_frame[k, 0]
    direction = p.light_frame[k, 1]
    attenuation = 1.0  # a
    distance = 1e20  # a directional light is infinitely far
    to_light = -direction
    if whole(table[light + KIND]) != LIGHT_DIRECTIONAL:
        to_light, distance = normalize3(pos - point)
        # a = 1 / (c_0 + c_1 r + c_2 r^2), and within the cutoff of a spot light cos(angle)^exponent
        c = table3(table, light + ATTENUATION)
        attenuation = 1.0 / fmax(fma(distance, fma(distance, c[2], c[1]), c[0]), MINVAL)
        cosine = -dot(to_light, direction)
        # cosine of the spot's half angle; -1: it shines in all directions
        if table[light + CUTOFF] > -1.0:
            spot = pow_(fmax(cosine, 0.0), table[light + EXPONENT])
            attenuation = where(cosine >= table[light + CUTOFF], attenuation * spot, 0.0)
    facing = fmax(dot(normal, to_light), 0.0)
    halfway = normalize3(to_light + to_eye)[0]
    specular_factor = where(facing > 0.0, specular * pow_(fmax(dot(normal, halfway), 0.0), shininess), 0.0)
    if whole(table[light + CASTS]) == 1:
        lit = seen & (facing > 0.0) & (attenuation > 0.0)
        if any_(lit):
            lit = reached_by_light(m, d, lit, fma(shadow_offset, normal, point), to_light, distance)
        attenuation = where(lit, attenuation, 0.0)
    ambient = table3(table, light + AMBIENT)
    diffuse = table3(table, light + DIFFUSE)
    specular_colour = table3(table, light + SPECULAR_COLOUR)
    return attenuation * fma(facing, diffuse, ambient), attenuation * (specular_factor * specular_colour)


@kernel
def shade(m, d, p, origin, direction, seen, colours):
    """p.rgb <- the colours of the pixels, 0 to 255, whose rays `cast` has just followed; uses `ray` for shadows.

    Reads:  ray.geom, ray.distance, ray.normal, ray.triangle.

    Args:
        origin, direction: of the rays.
        seen: mask of lanes that see a surface.
        colours: address of the geoms' colours, three numbers each.
    """
    rgb = sky_colour(m, d, p, direction)
    base = doubles(d, colours)
    if any_(seen):
        table = doubles(d, p.surfaces)
        g, distance = where(seen, d.ray.geom[0], 0.0), where(seen, d.ray.distance[0], 0.0)
        surface = SURFACE * g
        face_normal = d.ray.normal[0]
        normal = face_normal
        point = fma(distance, direction, origin)
        kind, texture_kind = gather(table, surface + SHAPE), gather(table, surface + TEXTURE)
        is_mesh = seen & (kind == 1.0 * MESH)
        texture = Vec3(1.0, 1.0, 1.0)
        if any_(is_mesh | (texture_kind > 0.0)):
            # the point and the normal in the geom's frame; R by rows
            k = 9.0 * g
            row0 = gather_components(d.geom_xmat, k)
            row1 = gather_components(d.geom_xmat, k + 3.0)
            row2 = gather_components(d.geom_xmat, k + 6.0)
            R = Mat3(join(row0, row1, row2))
            local = R.T @ (point - gather_components(d.geom_xpos, 3.0 * g))
            local_normal = R.T @ face_normal
            mapped = (false_mask(d), 0.0, 0.0)
            if any_(is_mesh):
                smooth, s, t = interpolated_on_mesh(d, p, is_mesh, local, local_normal)
                mapped = is_mesh & (gather(table, surface + MAPPED) > 0.0), s, t
                normal = where(is_mesh, R @ smooth, normal)
            if any_(texture_kind > 0.0):
                texture = texture_colour(m, d, p, g, texture_kind, local, local_normal, mapped)
        colour = gather3(base, 3.0 * g)
        emission = gather(table, surface + EMISSION)
        specular = gather(table, surface + SPECULAR)
        shininess = gather(table, surface + SHININESS)
        to_eye = -direction
        # sums over the lights without and with shadows
        unshadowed = emission * colour
        shadowed = Vec3(zeros(3))
        # the module's formula, regrouped: colour = texture * (colour * (emission + sum of diffuse) + sum of specular)
        for k in range(p.nlight):
            diffuse_term, specular_term = light_colours(
                m, d, p, k, point, normal, to_eye, specular, shininess, SHADOW_OFFSET * distance, seen
            )
            reflected = fma(diffuse_term, colour, specular_term)
            # lights with shadows are separate passes, each limited to 1
            if whole(doubles(d, p.lights)[LIGHT * k + CASTS]) == 1:
                shadowed = shadowed + clip(reflected, 0.0, 1.0)
            else:
                unshadowed = unshadowed + reflected
        lit = clip(unshadowed, 0.0, 1.0) + shadowed
        rgb = where(seen, Vec3(texture[i] * lit[i] for i in range(3)), rgb)
    p.rgb[0:3] = 255.0 * clip(rgb, 0.0, 1.0)
