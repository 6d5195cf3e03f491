"""Kernels of a step: forward and inverse dynamics, sleep, non-finite values, solution of a tile in parts."""
