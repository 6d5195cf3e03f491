"""Tools over the engine: derivatives, inverse kinematics, integration with error control, policies, rendered videos.

Private: `featherlane`, `featherlane.query`, `featherlane.policies` and `featherlane.results` list what users may call.
"""
