"""Controllers of robots as kernels over a batch.

operational_space.py   `OperationalSpace`: a site follows a pose
"""
