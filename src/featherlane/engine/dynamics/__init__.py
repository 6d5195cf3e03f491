"""Computes smooth dynamics: the motion of the state without constraints.

Each part is a stage `f(m, d)`; a step calls them in this order:

    kinematics, collision_frames, path_frames | frames, com_pos, tendon, crb, factor_m, transmission      position
    com_vel, tendon_velocity, passive, rne                                                               velocity
    actuation, smooth_acceleration                                                   force
    euler | implicit | implicitfast | advance | rk4_start, (rk4_stage, ...) x 3, rk4_finish      integration
"""
