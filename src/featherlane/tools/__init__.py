"""Tools over the engine: derivatives, inverse kinematics, integration with error control, policies, rendered videos.

Private: `featherlane` and its modules `query`, `controllers`, `policies` and `results` list what users may call.
"""
