"""Smooth dynamics: from the state to motion without constraints.

Every pass is a stage `f(m, d)`; a step calls them in this order:

    kinematics, collision_frames | frames, com_pos, crb, factor_m, transmission      position
    com_vel, passive, rne                                                            velocity
    actuation, smooth_acceleration                                                   force
    euler | implicit | implicitfast | advance | rk4_start, (rk4_stage, ...) x 3, rk4_finish      integration
"""
