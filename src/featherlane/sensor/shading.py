"""Computes the colours that a camera sees: materials, textures, lights with shadows, and the sky.

    colour = texture * (emission + sum over lights of a (ambient + diffuse max(n.l, 0) + specular max(n.h, 0)^s)).

n is the normal, l the direction to the light, h halfway between l and the eye, a the light's attenuation.  A light that
casts shadows has no effect on a point that it does not reach.
Source: MuJoCo mjr_render (OpenGL's fixed-function lighting), mjv_makeLights, mj_camlight; Blinn (1977).
Deviation: light is computed for each pixel, not for each corner of a tessellation.  Shadows are rays instead of maps.
    No reflections, haze or transparency: a geom whose alpha is not 0 is opaque.
"""

from featherlane.prelude import *
from featherlane.collision.rays.ray import intersect_geom, meets_bounding_sphere
from featherlane.sensor.texture import cube_face, flat_place, interpolated

SURFACE = 13  # numbers of a geom in the table of surfaces
EMISSION, SPECULAR, SHININESS, TEXTURE, TEXEL_HIGH, TEXEL_LOW, WIDE, HIGH = range(8)
REPEAT_X, REPEAT_Y, UNIFORM, MAPPED, SHAPE = range(8, SURFACE)
NO_TEXTURE, FLAT, CUBE = range(3)
TRIANGLE = 24  # numbers of a triangle: corners, normals and places in the texture, of three corners each
LIGHT = 34  # numbers of a light
HEADLIGHT = -1  # its mode
POS, DIR, POSCOM0, POS0, DIR0, AMBIENT, DIFFUSE, SHINE, FADING, CUTOFF, EXPONENT = (*range(5, 32, 3), 32, 33)
SKIN = 1e-4  # shadow rays start this far above a surface, relative to the distance from the camera


@kernel
def table3(d, table, k):
    """Returns three numbers of a table."""
    return Vec3(real(d, x) for x in table[k : k + 3])


@kernel
def place_lights(m, d, p):
    """Computes position and direction of each light in world axes; a headlight looks along the camera's axis.

    Source: MuJoCo mj_camlight (lights alone).
    """
    L, cam = doubles(d, p.lights), p.camera
    for k in range(p.nlight):
        o = LIGHT * k
        mode, b, target = whole(L[o]), whole(L[o + 1]), whole(L[o + 2])
        if mode == HEADLIGHT:
            pos, R = d.cam_xpos[cam], d.cam_xmat[cam]
            way = -R.columns[2]
        else:
            R, body = d.xmat[b], d.xpos[b]
            pos, way = body + R @ table3(d, L, o + POS), R @ table3(d, L, o + DIR)
            if mode == CAMLIGHT_TRACK:
                pos, way = body + table3(d, L, o + POS0), table3(d, L, o + DIR0)
            elif mode == CAMLIGHT_TRACKCOM:
                pos, way = d.subtree_com[b] + table3(d, L, o + POSCOM0), table3(d, L, o + DIR0)
            elif mode == CAMLIGHT_TARGETBODY and target >= 0:
                way = d.xpos[target] - pos
            elif mode == CAMLIGHT_TARGETBODYCOM and target >= 0:
                way = d.subtree_com[target] - pos
        p.light_frame[k, 0] = pos
        p.light_frame[k, 1] = normalize3(way)[0]


@kernel
def gathered3(rows, k):
    """Returns three components of a row that differs by lane; k is the index of the first."""
    a = flat(rows)
    return Vec3(gather_rows(a, k), gather_rows(a, k + 1.0), gather_rows(a, k + 2.0))


@kernel
def three(table, k):
    """Returns three numbers of a table whose place differs by lane."""
    return Vec3(gather(table, k), gather(table, k + 1.0), gather(table, k + 2.0))


@kernel
def corner_weights(a, b, c, q):
    """Returns the weights of a triangle's corners at a point of its plane."""
    u, v, w = b - a, c - a, q - a
    uu, uv, vv, wu, wv = dot(u, u), dot(u, v), dot(v, v), dot(w, u), dot(w, v)
    det = fma(uu, vv, -uv * uv)
    good = det > 0.0
    scale = 1.0 / where(good, det, 1.0)
    y, z = where(good, fma(vv, wu, -uv * wv) * scale, 0.0), where(good, fma(uu, wv, -uv * wu) * scale, 0.0)
    return 1.0 - y - z, y, z


@kernel
def on_mesh(d, p, is_mesh, local, normal):
    """Returns (normal, s, t) at a point of a mesh, in its frame: interpolated between the corners of the triangle."""
    T, first = doubles(d, p.triangles), TRIANGLE * where(is_mesh, d.ray.triangle[0], 0.0)
    w = corner_weights(three(T, first), three(T, first + 3.0), three(T, first + 6.0), local)
    n, s, t = Vec3(zeros(3)), 0.0, 0.0
    for k in unrolled(range(3)):
        n = fma(w[k], three(T, first + (9.0 + 3.0 * k)), n)
        s = fma(w[k], gather(T, first + (18.0 + 2.0 * k)), s)
        t = fma(w[k], gather(T, first + (19.0 + 2.0 * k)), t)
    n = normalize3(n)[0]
    smooth = is_mesh & (dot(n, normal) > 0.0)
    return where(smooth, n, normal), s, t


@kernel
def local_places(m, d, g, kind, local):
    """Returns (size, q): the size of each lane's geom in three axes, and the point relative to the shape.

    The ends of a capsule are half spheres from 1 to 2 along its axis.
    """
    x, y, z = gathered3(m.geom_size, 3.0 * g)
    sphere, round = kind == 1.0 * SPHERE, (kind == 1.0 * CAPSULE) | (kind == 1.0 * CYLINDER)
    size = x, where(sphere | round, x, y), where(sphere, x, where(round, y, z))
    q = tuple(where(size[i] > 0.0, local[i] / where(size[i] > 0.0, size[i], 1.0), local[i]) for i in range(3))
    beyond = fabs(local[2]) - size[2]
    cap = copysign(1.0 + fmax(beyond, 0.0) / fmax(size[0], MINVAL), local[2])
    return size, (q[0], q[1], where((kind == 1.0 * CAPSULE) & (beyond > 0.0), cap, q[2]))


@kernel
def textured(m, d, p, g, textures, local, normal, mapped):
    """Returns the colour of each lane's texture at a point of geom g, white without one.

    Args:
        textures: kind of the lane's texture.
        local, normal: in the geom's frame.
        mapped: (mask, s, t): whether the geom has coordinates of the texture, and these.
    """
    S, texels, o = doubles(d, p.surfaces), doubles(d, p.texels), SURFACE * g
    kind = gather(S, o + SHAPE)
    size, q = local_places(m, d, g, kind, local)
    flat, uniform = textures == 1.0 * FLAT, gather(S, o + UNIFORM) > 0.0
    start, wide, high = (gather(S, o + TEXEL_HIGH), gather(S, o + TEXEL_LOW)), gather(S, o + WIDE), gather(S, o + HIGH)

    # images on surfaces
    s, t = flat_place(kind, local, q, normal, size, mapped)
    infinite = (kind == 1.0 * PLANE) & ((size[0] <= 0.0) | (size[1] <= 0.0))
    free = ((kind == 1.0 * MESH) | (kind == 1.0 * SDF) | (kind == 1.0 * HFIELD)) & not_(mapped[0])
    shift = where(infinite | free, -0.5, 0.0)
    s = fma(s, gather(S, o + REPEAT_X) * where(uniform & (size[0] > 0.0), size[0], 1.0), shift)
    t = fma(t, gather(S, o + REPEAT_Y) * where(uniform & (size[1] > 0.0), size[1], 1.0), shift)

    # images on the faces of a cube around the geom
    scaled = (kind >= 1.0 * SPHERE) & (kind <= 1.0 * BOX)
    way = tuple(where(scaled, q[i], local[i]) * where(uniform, size[i], 1.0) for i in range(3))
    face, s_cube, t_cube = cube_face(way)
    place = where(flat, s, s_cube), where(flat, t, t_cube)
    wide = where(wide > 0.0, wide, 1.0)
    image = start, where(flat, 0.0, face * high), (wide, where(flat, high, wide))
    colour = interpolated(m, texels, image, place, flat)
    white = textures == 1.0 * NO_TEXTURE
    return Vec3(where(white, 1.0, x) for x in colour)


@kernel
def sky(m, d, p, direction):
    """Returns the colour of the sky in a direction, black without one.

    MuJoCo's sky texture has its y axis upwards, along the world's z axis.
    """
    colour = Vec3(zeros(3))
    if p.sky_width > 0:
        face, s, t = cube_face(Vec3(direction.x, direction.z, -direction.y))
        start = p.sky_texel // 4096, p.sky_texel % 4096
        image = start, face * p.sky_stride, (p.sky_width, p.sky_width)
        colour = interpolated(m, doubles(d, p.texels), image, (s, t), false_mask(d))
    return colour


@stage
def find_occluders(m, d):
    """Finds the lanes whose rays hit any geom before the light.

    The geom that shaded the last pixels is tested first.
    Reads:  ray.point [m], ray.direction (unit), camera.ncandidate, camera.candidate, camera.occluder, geom_xpos,
            geom_xmat, ray.distance [m]: to the light, negative in lanes that are not asked.
    Writes: ray.geom, -1 without a hit, camera.occluder, ray.*.
    Scratch: shapes.*, line.*.
    Frame: world.   Cost: O(ngeom).
    """
    p, v = d.ray.point[0], d.ray.direction[0]
    d.ray.geom[0] = -1.0
    k = -1
    while k < d.camera.ncandidate[0] and any_(d.ray.distance[0] >= 0.0):
        g = d.camera.occluder[0] if k < 0 else d.camera.candidate[k]
        near = meets_bounding_sphere(m, d, g, p, v) & (d.ray.distance[0] >= 0.0)
        intersect_geom(m, d, g, near, packet=1)
        shaded = near & (d.ray.geom[0] >= 0.0)
        if any_(shaded):
            d.camera.occluder[0] = g
            d.ray.distance[0] = where(shaded, -1.0, d.ray.distance[0])
        k += 1


@kernel
def reached(m, d, lit, point, to_light, distance):
    """Returns the lanes of the mask `lit` that a light at a distance reaches; overwrites the results of `cast`."""
    d.ray.point[0] = point
    d.ray.direction[0] = to_light
    d.ray.distance[0], d.ray.culls[0] = where(lit, distance, -1.0), 0
    find_occluders(m, d)
    d.ray.culls[0] = 1
    return lit & (d.ray.geom[0] < 0.0)


@kernel
def shine(m, d, p, k, point, normal, to_eye, specular, shininess, skin, seen):
    """Returns (matt, gloss): light k's (ambient + diffuse) and specular colours at a point, three components each."""
    L, o, pos, way = doubles(d, p.lights), LIGHT * k, p.light_frame[k, 0], p.light_frame[k, 1]
    fade, distance = 1.0, 1e20
    to_light = -way
    if whole(L[o + 3]) != LIGHT_DIRECTIONAL:
        to_light, distance = normalize3(pos - point)
        a = table3(d, L, o + FADING)
        fade = 1.0 / fmax(fma(distance, fma(distance, a[2], a[1]), a[0]), MINVAL)
        along = -dot(to_light, way)
        if L[o + CUTOFF] > -1.0:
            spot = pow_(fmax(along, 0.0), real(d, L[o + EXPONENT]))
            fade = where(along >= L[o + CUTOFF], fade * spot, 0.0)
    facing = fmax(dot(normal, to_light), 0.0)
    halfway = normalize3(to_light + to_eye)[0]
    gloss = where(facing > 0.0, specular * pow_(fmax(dot(normal, halfway), 0.0), shininess), 0.0)
    if whole(L[o + 4]) == 1:
        lit = seen & (facing > 0.0) & (fade > 0.0)
        if any_(lit):
            lit = reached(m, d, lit, fma(skin, normal, point), to_light, distance)
        fade = where(lit, fade, 0.0)
    ambient, diffuse, bright = table3(d, L, o + AMBIENT), table3(d, L, o + DIFFUSE), table3(d, L, o + SHINE)
    return fade * fma(facing, diffuse, ambient), fade * (gloss * bright)


@kernel
def shade(m, d, p, origin, direction, seen, colours):
    """Sets p.rgb to the colours of the pixels whose rays `cast` has just followed; uses `ray` for shadows.

    Args:
        origin, direction: of the rays.
        seen: mask of lanes that see a surface.
    """
    rgb, base = sky(m, d, p, direction), doubles(d, colours)
    if any_(seen):
        S, g, x = doubles(d, p.surfaces), where(seen, d.ray.geom[0], 0.0), where(seen, d.ray.distance[0], 0.0)
        o, face = SURFACE * g, d.ray.normal[0]
        normal, point = face, fma(x, direction, origin)
        kind, textures = gather(S, o + SHAPE), gather(S, o + TEXTURE)
        is_mesh = seen & (kind == 1.0 * MESH)
        texture = Vec3(1.0, 1.0, 1.0)
        if any_(is_mesh | (textures > 0.0)):
            k = 9.0 * g
            n, t, b = gathered3(d.geom_xmat, k), gathered3(d.geom_xmat, k + 3.0), gathered3(d.geom_xmat, k + 6.0)
            R = Mat3(join(n, t, b))
            local = R.T @ (point - gathered3(d.geom_xpos, 3.0 * g))
            n, mapped = R.T @ face, (false_mask(d), 0.0, 0.0)
            if any_(is_mesh):
                smooth, s, t = on_mesh(d, p, is_mesh, local, n)
                mapped = is_mesh & (gather(S, o + MAPPED) > 0.0), s, t
                normal = where(is_mesh, R @ smooth, normal)
            if any_(textures > 0.0):
                texture = textured(m, d, p, g, textures, local, n, mapped)
        rgba = three(base, 3.0 * g)
        emission, specular, shininess = gather(S, o + EMISSION), gather(S, o + SPECULAR), gather(S, o + SHININESS)
        to_eye = -direction
        plain, added = emission * rgba, Vec3(zeros(3))
        for k in range(p.nlight):
            matt, gloss = shine(m, d, p, k, point, normal, to_eye, specular, shininess, SKIN * x, seen)
            light = fma(matt, rgba, gloss)
            # lights with shadows are separate passes, each limited to 1
            if whole(doubles(d, p.lights)[LIGHT * k + 4]) == 1:
                added = added + clip(light, 0.0, 1.0)
            else:
                plain = plain + light
        lit = clip(plain, 0.0, 1.0) + added
        rgb = where(seen, Vec3(texture[i] * lit[i] for i in range(3)), rgb)
    p.rgb[0:3] = 255.0 * clip(rgb, 0.0, 1.0)
