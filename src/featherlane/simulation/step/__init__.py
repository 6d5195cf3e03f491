"""Kernels of a step: its table of contents, that of inverse dynamics, sleep, bad numbers, halves of a tile."""
