"""Registers the sensor types: all of MuJoCo's, and the plugin `mujoco.sensor.touch_grid`.

Source: MuJoCo's documentation, XML reference, sensor.
"""

from featherlane.engine.model import enums
from featherlane.engine.model.sensor import (
    ACCELERATION,
    ENERGIES,
    MOMENTA,
    POSITION,
    ROWS,
    VELOCITY,
    WRENCHES,
    Sensor,
    measure_acceleration,
    measure_position,
    measure_rows,
    measure_velocity,
    register,
)
from featherlane.engine.sensor import acceleration, position, velocity
from featherlane.engine.sensor.contact import contact_sensor
from featherlane.engine.sensor.distance import nearest_geoms
from featherlane.engine.sensor.inside import insidesite
from featherlane.engine.sensor.limit import limit_sensor
from featherlane.engine.sensor.rangefinder import rangefinder
from featherlane.engine.sensor.tactile import plugin_sensor, tactile
from featherlane.engine.sensor.touch import touch

__all__ = ["BUILT_IN", "measure_acceleration", "measure_position", "measure_rows", "measure_velocity"]

BUILT_IN = (
    # positions: frames, coordinates, lengths, camera projection and magnetic field
    Sensor(enums.SENS_FRAMEPOS, POSITION, position.framepos),
    Sensor(enums.SENS_FRAMEXAXIS, POSITION, position.frameaxis),
    Sensor(enums.SENS_FRAMEYAXIS, POSITION, position.frameaxis),
    Sensor(enums.SENS_FRAMEZAXIS, POSITION, position.frameaxis),
    Sensor(enums.SENS_FRAMEQUAT, POSITION, position.framequat),
    Sensor(enums.SENS_SUBTREECOM, POSITION, position.subtreecom),
    Sensor(enums.SENS_MAGNETOMETER, POSITION, position.magnetometer),
    Sensor(enums.SENS_CAMPROJECTION, POSITION, position.camprojection),
    Sensor(enums.SENS_JOINTPOS, POSITION, position.jointpos),
    Sensor(enums.SENS_BALLQUAT, POSITION, position.ballquat),
    Sensor(enums.SENS_TENDONPOS, POSITION, position.tendonpos),
    Sensor(enums.SENS_ACTUATORPOS, POSITION, position.actuatorpos),
    Sensor(enums.SENS_CLOCK, POSITION, position.clock),
    Sensor(enums.SENS_INSIDESITE, POSITION, insidesite),
    Sensor(enums.SENS_RANGEFINDER, POSITION, rangefinder),
    Sensor(enums.SENS_GEOMDIST, POSITION, nearest_geoms),
    Sensor(enums.SENS_GEOMNORMAL, POSITION, nearest_geoms),
    Sensor(enums.SENS_GEOMFROMTO, POSITION, nearest_geoms, is_cut=False),
    # velocities
    Sensor(enums.SENS_GYRO, VELOCITY, velocity.gyro),
    Sensor(enums.SENS_VELOCIMETER, VELOCITY, velocity.velocimeter),
    Sensor(enums.SENS_FRAMELINVEL, VELOCITY, velocity.framelinvel),
    Sensor(enums.SENS_FRAMEANGVEL, VELOCITY, velocity.frameangvel),
    Sensor(enums.SENS_SUBTREELINVEL, VELOCITY, velocity.subtreelinvel, reads=MOMENTA),
    Sensor(enums.SENS_SUBTREEANGMOM, VELOCITY, velocity.subtreeangmom, reads=MOMENTA),
    Sensor(enums.SENS_JOINTVEL, VELOCITY, velocity.jointvel),
    Sensor(enums.SENS_BALLANGVEL, VELOCITY, velocity.ballangvel),
    Sensor(enums.SENS_TENDONVEL, VELOCITY, velocity.tendonvel),
    Sensor(enums.SENS_ACTUATORVEL, VELOCITY, velocity.actuatorvel),
    # rows: contacts and limits
    Sensor(enums.SENS_TOUCH, ROWS, touch),
    Sensor(enums.SENS_TACTILE, ROWS, tactile),
    Sensor(enums.SENS_PLUGIN, ROWS, plugin_sensor),
    Sensor(enums.SENS_CONTACT, ROWS, contact_sensor, is_cut=False),
    Sensor(enums.SENS_JOINTLIMITPOS, ROWS, limit_sensor),
    Sensor(enums.SENS_JOINTLIMITVEL, ROWS, limit_sensor),
    Sensor(enums.SENS_JOINTLIMITFRC, ROWS, limit_sensor),
    Sensor(enums.SENS_TENDONLIMITPOS, ROWS, limit_sensor),
    Sensor(enums.SENS_TENDONLIMITVEL, ROWS, limit_sensor),
    Sensor(enums.SENS_TENDONLIMITFRC, ROWS, limit_sensor),
    # accelerations, forces and energy
    Sensor(enums.SENS_ACCELEROMETER, ACCELERATION, acceleration.accelerometer, reads=WRENCHES),
    Sensor(enums.SENS_FRAMELINACC, ACCELERATION, acceleration.framelinacc, reads=WRENCHES),
    Sensor(enums.SENS_FRAMEANGACC, ACCELERATION, acceleration.frameangacc, reads=WRENCHES),
    Sensor(enums.SENS_FORCE, ACCELERATION, acceleration.force, reads=WRENCHES),
    Sensor(enums.SENS_TORQUE, ACCELERATION, acceleration.torque, reads=WRENCHES),
    Sensor(enums.SENS_ACTUATORFRC, ACCELERATION, acceleration.actuatorfrc),
    Sensor(enums.SENS_JOINTACTFRC, ACCELERATION, acceleration.jointactfrc),
    Sensor(enums.SENS_TENDONACTFRC, ACCELERATION, acceleration.tendonactfrc),
    Sensor(enums.SENS_E_POTENTIAL, ACCELERATION, acceleration.e_potential, reads=ENERGIES),
    Sensor(enums.SENS_E_KINETIC, ACCELERATION, acceleration.e_kinetic, reads=ENERGIES),
)

for sensor in BUILT_IN:
    register(sensor)
