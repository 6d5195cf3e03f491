"""Controllers of robots as kernels over a batch.

actions.py             `Actions`: how actions of a policy are read; the base of the controllers
chain.py               the joints of an arm; kernels that controllers share
operational_space.py   `OperationalSpace`: a site follows a pose
joints.py              `JointPosition`, `JointVelocity`, `JointTorque`
gripper.py             `Gripper`: fingers open and close
composite.py           `Composite`: several controllers as one
"""
