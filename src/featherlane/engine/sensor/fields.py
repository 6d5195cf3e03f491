"""Fields of sensors and of their inputs."""

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.spatial.types import Force, Mat3, Vec3

_cameras_output = Declare("cameras", "output", condition="want_frames")
_subtree_vel_output = Declare("subtree_vel", "output", condition="want_subtree")
_rne_post_constraint_output = Declare("rne_post_constraint", "output", condition="want_wrenches")
_runge_kutta_scratch = Declare("runge_kutta", "scratch")
_step_scratch = Declare("step", "scratch")
_address = Declare("", "address")
_sensor_acc_scratch = Declare("sensor_acc", "scratch")
_camera = Declare("choose_geoms", "scratch", record="camera")
_publish_output = Declare("publish", "output", condition="want_sensors")

FIELDS = (
    size("want_sensors", "1: compute the values of sensors in each step"),
    size("want_subtree", "1: compute velocities and momenta of subtrees"),
    size("want_wrenches", "1: compute accelerations of bodies, and forces on and between them"),
    _cameras_output.rows(Vec3, "cam_xpos", "ncam", "m", "position of the camera"),
    _cameras_output.rows(Mat3, "cam_xmat", "ncam", "1", "orientation of the camera"),
    _subtree_vel_output.rows(Vec3, "subtree_linvel", "nbody", "m/s", "velocity of a subtree's centre of mass"),
    _subtree_vel_output.rows(
        Vec3, "subtree_angmom", "nbody", "kg m^2/s", "angular momentum of a subtree about its com"
    ),
    _rne_post_constraint_output.rows(
        Force, "cfrc_int", "nbody", "N m, N", "force that the parent exerts, at the tree's com"
    ),
    _rne_post_constraint_output.rows(Force, "cfrc_ext", "nbody", "N m, N", "external force, at the tree's com"),
    _runge_kutta_scratch.int(
        "in_stage",
        "1",
        "1",
        "1: the pass is an intermediate stage of a step, without sensors; 2: the last pass, whose fields users read",
    ),
    _step_scratch.int("unread", "1", "1", "1: no output of this step is read; a later pass writes them again"),
    _address.long("user_sensor", "nsensor", "1", "address of a sensor's compiled function; 0: none"),
    _sensor_acc_scratch.real("sensor_now", "nsensordata", "sensor's", "values without delay"),
    _publish_output.real("sensordata", "nsensordata", "sensor's", "values of all sensors"),
    _camera.int("ncandidate", "1", "1", "number of geoms that the camera can see"),
    _camera.int("candidate", "ngeom", "1", "geoms that the camera can see"),
    _camera.int("occluder", "1", "1", "geom that shaded the last pixels"),
    _camera.scalar("clip", "2", "m", "distances of the near and the far plane"),
    _camera.scalar(
        "free", "13", "m, 1, degree", "position, axes and field of view of a camera that is not the model's"
    ),
    _camera.rows(Vec3, "xpos", "1", "m", "position of the camera whose image is computed"),
    _camera.rows(Mat3, "xmat", "1", "1", "orientation of the camera whose image is computed"),
)
