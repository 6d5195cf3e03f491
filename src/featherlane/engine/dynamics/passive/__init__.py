"""Passive forces: springs, dampers, gravity compensation, fluid forces."""
