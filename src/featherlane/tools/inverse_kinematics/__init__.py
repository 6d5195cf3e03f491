"""Inverse kinematics: positions of joints that bring bodies, sites and geoms to their targets."""
