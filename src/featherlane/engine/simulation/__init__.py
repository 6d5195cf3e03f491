"""Defines what a step consists of, and stores, steps, records and queries worlds.

Packages, each of which imports only those above it:

    step        kernels: the passes of a step and of inverse dynamics, waking, non-finite values
    tile        memory of W worlds on which stages run; the loop over tiles
    user        user callbacks that stages call
    world       one world (`Data`)
    query       questions about its state
    stages.py   single stages for one world, generated from the stages and their docstrings (`docstring.py`)
    steps.py    steps of one world, and stages that need more than one call
    batch       many worlds (`Batch`)
    policy      policies in lanes, and rollouts of environments with them
    integration integration with error control, on copies of the worlds in a batch
"""
