"""Computes the frames of cameras, and the ray through a point or a pixel of the image.

A camera looks along -z, x to the right of its image and y up.
Source: MuJoCo mj_camlight, mju_camPixelRay; its documentation, XML reference, body/camera/mode.
"""

from featherlane.engine.prelude import *

RAD_PER_HALF_DEGREE = 3.14159265358979323846 / 360.0
FOVY = 12  # index in camera.free, behind the position (3) and the orientation (9)


@kernel
def look_at(pos, target):
    """Returns the orientation of an upright camera at pos that looks at a target: x is horizontal."""
    z = normalize3(pos - target)[0]
    x = normalize3(cross(Vec3(0.0, 0.0, 1.0), z))[0]
    y = normalize3(cross(z, x))[0]
    return Mat3(join(x, y, z)).T


@stage
def cameras(m, d):
    """Computes the frames of all cameras: fixed to a body, following it in world axes, or looking at another body.

    `forward` includes this stage.
    Source: MuJoCo mj_camlight (cameras alone).
    Reads:  xpos, xquat, xmat, subtree_com.   Writes: cam_xpos (ncam, 3) [m], cam_xmat (ncam, 9).   Frame: world.
    """
    for i in range(m.ncam):
        camera = m.camera[i]
        b, target, mode = camera.bodyid, camera.targetbodyid, camera.mode
        # mode `fixed`: the pose in the body's frame
        pos = d.xpos[b] + d.xmat[b] @ camera.pos
        R = (d.xquat[b] @ camera.quat).matrix
        # track: the offset from the body, or from its subtree's com, and the axes keep their values at qpos0
        if mode == CAMLIGHT_TRACK:
            pos = d.xpos[b] + camera.pos0
            R = camera.mat0
        elif mode == CAMLIGHT_TRACKCOM:
            pos = d.subtree_com[b] + camera.poscom0
            R = camera.mat0
        # target: the fixed position, looking at a body (-1: none) or its subtree's com
        elif mode == CAMLIGHT_TARGETBODY and target >= 0:
            R = look_at(pos, d.xpos[target])
        elif mode == CAMLIGHT_TARGETBODYCOM and target >= 0:
            R = look_at(pos, d.subtree_com[target])
        d.cam_xpos[i] = pos
        d.cam_xmat[i] = R


@kernel
def image_size(m, i):
    """Returns width and height of camera i's image [pixels]."""
    return m.cam_resolution[i, 0], m.cam_resolution[i, 1]


@kernel
def focal_length(fovy, height_px):
    """Returns the focal length [pixels] by a vertical field of view [degree]: height / 2 / tan(fovy / 2)."""
    sine, cosine = sincos(RAD_PER_HALF_DEGREE * fovy)
    return 0.5 * height_px * (cosine / where(sine == 0.0, 1.0, sine))


@kernel
def focal_lengths(m, i, image):
    """Returns the focal lengths of camera i along x and y [pixels]: from its sensor's size if given, else from fovy.

    By fovy: height / 2 / tan(fovy / 2).  By the sensor: focal length [m] / sensor size [m] * image size [pixels].
    image: (width, height) [pixels].
    Note: MuJoCo divides focal length by sensor size in float32.
    """
    camera = m.camera[i]
    width_px, height_px = image
    sensor_x, sensor_y = camera.sensorsize[0], camera.sensorsize[1]
    has_size = (sensor_x != 0.0) & (sensor_y != 0.0)
    by_fovy = focal_length(camera.fovy, height_px)
    fx = where(has_size, camera.intrinsic.fx / where(has_size, sensor_x, 1.0) * width_px, by_fovy)
    return fx, where(has_size, camera.intrinsic.fy / where(has_size, sensor_y, 1.0) * height_px, by_fovy)


@kernel
def principal_point(m, i):
    """Returns the pixel coordinates (x, y) of camera i's optical axis; by fovy the image's centre."""
    camera = m.camera[i]
    width_px, height_px = image_size(m, i)
    sensor_x, sensor_y = camera.sensorsize[0], camera.sensorsize[1]
    has_size = (sensor_x != 0.0) & (sensor_y != 0.0)
    cx = where(has_size, camera.intrinsic.cx / where(has_size, sensor_x, 1.0) * width_px, 0.5 * width_px)
    return cx, where(has_size, camera.intrinsic.cy / where(has_size, sensor_y, 1.0) * height_px, 0.5 * height_px)


@kernel
def project(m, d, i, point):
    """Returns the pixel coordinates (x, y) of a point in camera i's image, right of and below its upper left corner.

    (width / 2 - fx x / z, height / 2 + fy y / z) of a point (x, y, z) in the camera's frame, z < 0 in front of it.  The
    optical axis passes through the middle of the image, as in MuJoCo's projection sensor, not the principal point.
    """
    fx, fy = focal_lengths(m, i, image_size(m, i))
    x, y, z = d.cam_xmat[i].T @ (point - d.cam_xpos[i])
    # |z| is at least MINVAL, with the sign of z
    z = where(z < 0.0, -fmax(-z, MINVAL), fmax(z, MINVAL))
    width_px, height_px = image_size(m, i)
    return fma(-fx, x / z, 0.5 * width_px), fma(fy, y / z, 0.5 * height_px)


@kernel
def pixel_ray(m, d, i, column, row):
    """Returns (origin, unit direction) of the ray through the centre of a pixel; row 0 is the top of the image.

    i: the camera; column, row: the pixel.  Orthographic cameras have parallel rays; fovy is then the height of the
    image [m], and also its width, as in MuJoCo, whatever its number of pixels.
    """
    pos, R = d.cam_xpos[i], d.cam_xmat[i]
    u, v = column + 0.5, row + 0.5  # centre of the pixel, right and down
    if m.cam_projection[i] == PROJ_PERSPECTIVE:
        fx, fy = focal_lengths(m, i, image_size(m, i))
        cx, cy = principal_point(m, i)
        direction = normalize3(R @ Vec3((u - cx) / fx, (cy - v) / fy, -1.0))[0]
    else:
        width_px, height_px = image_size(m, i)
        half_size = 0.5 * m.cam_fovy[i]
        x = (2.0 * u - width_px) / width_px * half_size
        y = (height_px - 2.0 * v) / height_px * half_size
        pos = pos + R @ Vec3(x, y, 0.0)
        direction = -R.columns[2]
    return pos, direction


@kernel
def place_camera(m, d, i, tracked):
    """camera.xpos, camera.xmat <- frame of camera i, or of the free camera if i < 0.

    camera.free has the position [m] and the orientation, a matrix by rows, of the free camera.
    tracked: body at whose subtree's com the free camera looks; the position is then relative to this com; -1: none.
    """
    if i >= 0:
        d.camera.xpos[0], d.camera.xmat[0] = d.cam_xpos[i], d.cam_xmat[i]
    else:
        pos = Vec3(d.camera.free[0:3])
        if tracked >= 0:
            pos = pos + d.subtree_com[tracked]
        d.camera.xpos[0], d.camera.xmat[0] = pos, Mat3(d.camera.free[3:12])


@kernel
def image_ray(m, d, i, image, column, row):
    """Returns (origin, unit direction) of the ray through the centre of a pixel of an image as MuJoCo renders it.

    It differs from `pixel_ray` (mju_camPixelRay) in the principal point and in orthographic cameras:
    - free camera: perspective, with the vertical field of view camera.free[FOVY]; the axis is at the image's centre;
    - perspective: the principal point is an offset from the image's centre;
    - orthographic: fovy is the height of the image [m], and pixels are square.

    Args:
        i: the camera, whose frame is in camera.xpos and camera.xmat; -1: the free one.
        image: (width, height) [pixels], as values.
        column, row: values; row 0 is the top.

    Source: MuJoCo mjv_cameraFrustum.
    """
    pos, R = d.camera.xpos[0], d.camera.xmat[0]
    width_px, height_px = image
    # pixels from the image's centre, right and up
    x = column + (0.5 - 0.5 * width_px)
    y = 0.5 * height_px - (row + 0.5)
    if i < 0:
        f = focal_length(d.camera.free[FOVY], height_px)
        direction = normalize3(R @ Vec3(x / f, y / f, -1.0))[0]
    elif m.cam_projection[i] == PROJ_PERSPECTIVE:
        camera = m.camera[i]
        fx, fy = focal_lengths(m, i, image)
        sensor_x, sensor_y = camera.sensorsize[0], camera.sensorsize[1]
        has_size = (sensor_x != 0.0) & (sensor_y != 0.0)
        x = where(has_size, x + camera.intrinsic.cx / where(has_size, sensor_x, 1.0) * width_px, x)
        y = where(has_size, y + camera.intrinsic.cy / where(has_size, sensor_y, 1.0) * height_px, y)
        direction = normalize3(R @ Vec3(x / fx, y / fy, -1.0))[0]
    else:
        metres_per_pixel = m.cam_fovy[i] / height_px
        pos = pos + R @ Vec3(x * metres_per_pixel, y * metres_per_pixel, 0.0)
        direction = -R.columns[2]
    return pos, direction
