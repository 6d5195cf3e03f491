"""Registers and compiles user callbacks, the functions that the engine calls."""
