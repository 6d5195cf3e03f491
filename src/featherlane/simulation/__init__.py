"""What a step consists of, and how worlds are kept, stepped, recorded and queried.

Packages, each of which imports those above it alone:

    step        kernels: the contents of a step and of inverse dynamics, waking, bad numbers
    tile        memory of W worlds side by side, on which stages run; the loop over tiles
    user        functions of the user that stages call
    world       one world (`Data`)
    query       questions about its state
    stages.py   stages alone, for one world, made from the stages and their docstrings (`docstring.py`)
    steps.py    steps of one world, and stages that are more than a call
    batch       many worlds (`Batch`)
"""
