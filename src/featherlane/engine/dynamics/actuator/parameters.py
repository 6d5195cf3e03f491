"""Names the ten parameters of actuators by kind: rows of actuator_gainprm, actuator_biasprm and actuator_dynprm.

    gain = MotorGain(m.actuator_gainprm[i])
    gain.R

Parameters without a meaning have letters.
"""

from featherlane.engine.lanes.rows import row_type

Affine = row_type("Affine", "constant by_length by_velocity d e f g h i j")
Muscle = row_type("Muscle", "low high force scale lmin lmax vmax fpmax fvmax j")
MuscleRates = row_type("MuscleRates", "rise fall width d e f g h i j")  # dynprm of a muscle
MotorGain = row_type("MotorGain", "R K alpha T0 kp ki kd Vmax i j")
MotorRates = row_type("MotorRates", "te rate RT C Ta sigma0 sigma1 slew Imax j")  # dynprm of a motor
MotorFriction = row_type("MotorFriction", "amplitude poles phase coulomb static speed g h i j")  # biasprm of a motor
PidRates = row_type("PidRates", "bound slew c d e f g h i j")  # dynprm of a pid
