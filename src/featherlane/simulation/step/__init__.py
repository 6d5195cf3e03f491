"""Kernels of a step: its table of contents, sleep, bad numbers, tiles."""
